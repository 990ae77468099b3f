//! The available side: whose turn it is, and the table of queues. See README.md.

pub mod packed;
pub mod ring;

use crate::bus::{MsgSink, MsgSrc};
use crate::context::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, RdCmd, RdRow, VqHead, VqLooked, VqNotify, VqPut, VqTold, VqWalked, WrDone};
use crate::prim::ram::Ram;
use crate::records::VqAvail;
use crate::stream::MsgSlice;
use crate::virtio::stock::Room;
use crate::virtio::turns::Turns;
use ferric_hdl_derive::{kernel, BlockDefault};
use packed::Packed;
use ring::Ring;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_notify", &["s_refill"]), // notifications merge: neither waits for a turn
    ("s_refill", &[]),
    ("s_row", &[]),
    ("s_done", &[]),
    ("s_room", &[]),
    ("s_walked", &[]),
    ("s_ctl", &["m_rd", "s_row", "m_head", "s_walked", "m_put", "s_done", "m_ask", "s_room", "m_give_up", "m_looked", "m_ctl"]), // between turns
    ("s_look", &["m_rd", "s_row", "m_head", "s_walked", "m_put", "s_done", "m_ask", "s_room", "m_give_up", "m_ctl"]),            // so are looks
    ("m_ctl", &[]),
    ("m_looked", &["m_rd", "s_row", "m_head", "s_walked", "m_put", "s_done", "m_ask", "s_room", "m_give_up", "m_ctl"]),
];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Sweep,
    Idle,
    Line,
    Lines,
    Load,
    Begin,
    Route,
    GiveUp,
    Turn,
    Store,
    Looked,
}

/// `2^LQ` queues, one turn at a time.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=15).contains(&LQ), "a queue number has 16 bits, the list of turns a place for each")]
pub struct Queue<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a read or a write is in flight. All lines become zero (`2^LQ` cycles).
    pub reset: Signal<In, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// The driver's, and the stock's; taken at once.
    pub s_notify: MsgSink<VqNotify>,
    pub s_refill: MsgSink<VqNotify>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_row: MsgSink<RdRow>,
    pub m_head: MsgSrc<VqHead>,
    /// What the walker has found at a place of a packed ring.
    pub s_walked: MsgSink<VqWalked>,
    pub m_put: MsgSrc<VqPut>,
    pub s_done: MsgSink<WrDone>,
    /// To the stock: whether there is room for a chain. The answer comes to the question, and to each head of a receive queue when its chain is in stock.
    pub m_ask: MsgSrc<VqNotify>,
    pub s_room: MsgSink<Room>,
    /// The transmit unit has room for one more chain. Pulse: one is on its way to it; the cycle behind that `tx_room` knows of it.
    pub tx_room: Signal<In, Bit>,
    pub tx_promise: Signal<Out, Bit>,
    /// To the receive unit: all that is in stock of a queue that does not run.
    pub m_give_up: MsgSrc<VqNotify>,
    /// The receive unit's, for whose frame there is not enough in stock: a turn of this queue at once, which ends with its first chain, and whether one has come.
    pub s_look: MsgSink<VqNotify>,
    pub m_looked: MsgSrc<VqLooked>,
    /// Pulse: a head was none, or the ring is lost.
    pub told_valid: Signal<Out, Bit>,
    pub told: Signal<Out, VqTold>,
    ctl: CtlLine<VqAvail, LQ>,
    rows: Ram<VqAvail, LQ>,
    turns: Turns<LQ>,
    asked: MsgSlice<VqNotify>,
    state: DFF<State>,
    sweep: DFF<Bits<LQ>>,
    queue: DFF<Bits<16>>,
    row: DFF<VqAvail>,
    /// The queue whose line was written last, if it does not run; it has been notified since, and is the next.
    ended: DFF<Bits<16>>,
    ending: DFF<Bit>,
    urgent: DFF<Bit>,
    /// It is another turn's at once.
    again: DFF<Bit>,
    /// The turn is a look; a chain has come.
    looks: DFF<Bit>,
    found: DFF<Bit>,
    /// A turn's way through a split ring, and through a packed one.
    ring: Ring,
    packed: Packed,
    #[init(Constant::new(VqAvail::default()))]
    zero: Constant<VqAvail>,
    queue_line: Signal<Local, Bits<LQ>>,
    full: Signal<Local, Bit>,
    hurry: Signal<Local, Bit>,
    final_word: Signal<Local, Bit>,
    written: Signal<Local, VqAvail>,
    is_packed: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize> Logic for Queue<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, sweep, queue, row, ended, ending, urgent, again, looks, found);
        clock!(self, clock, ctl, rows, turns, asked, ring, packed);
        self.ctl.reset.next = self.reset.val();
        self.turns.reset.next = self.reset.val();
        self.asked.reset.next = self.reset.val();
        self.ring.reset.next = self.reset.val();
        self.packed.reset.next = self.reset.val();
        MsgSink::<VqNotify>::link(&mut self.s_look, &mut self.asked.s);
        self.asked.m.ready.next = false;
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.ctl.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.ctl.m_ctl);
        // Software waits for the end of the queue that it has taken out of service: nobody else does for that long.
        self.final_word.next = self.ending.q.val() & (self.s_notify.data.val().queue == self.ended.q.val());
        self.turns.s_notify.data.next = self.s_notify.data.val();
        self.turns.s_notify.valid.next = self.s_notify.valid.val() & !self.final_word.val();
        self.s_notify.ready.next = self.turns.s_notify.ready.val();
        if self.final_word.val() & self.s_notify.valid.val() & self.turns.s_notify.ready.val() {
            self.urgent.d.next = true;
            self.ending.d.next = false;
        }
        MsgSink::<VqNotify>::link(&mut self.s_refill, &mut self.turns.s_refill);
        MsgSrc::<RdCmd>::link(&mut self.m_rd, &mut self.ring.m_rd);
        MsgSink::<RdRow>::link(&mut self.s_row, &mut self.ring.s_row);
        MsgSink::<VqWalked>::link(&mut self.s_walked, &mut self.packed.s_walked);
        self.turns.again.next = false;
        self.turns.queue.next = self.queue.q.val();
        self.turns.m.ready.next = false;
        self.ctl.row.next = self.rows.read_data.val();
        self.ctl.row_valid.next = false;
        self.queue_line.next = self.queue.q.val().get_bits::<LQ>(0);
        self.rows.read_addr.next = self.queue_line.val();
        if self.state.q.val() == State::Idle {
            self.rows.read_addr.next = self.ctl.addr.val();
        }
        self.rows.write_addr.next = self.queue_line.val();
        self.rows.write_data.next = self.row.q.val();
        self.written.next = self.ctl.new_row.val();
        self.rows.write_en.next = false;

        // A turn's way through the ring: one of the two has it, the other is idle.
        self.is_packed.next = self.row.q.val().packed;
        self.ring.go.next = false;
        self.ring.row.next = self.row.q.val();
        self.ring.queue.next = self.queue.q.val();
        self.ring.looks.next = self.looks.q.val();
        self.packed.go.next = false;
        self.packed.row.next = self.row.q.val();
        self.packed.queue.next = self.queue.q.val();
        self.packed.looks.next = self.looks.q.val();
        self.m_head.valid.next = self.ring.m_head.valid.val() | self.packed.m_head.valid.val();
        self.m_head.data.next = self.ring.m_head.data.val();
        self.ring.m_head.ready.next = self.m_head.ready.val();
        self.packed.m_head.ready.next = self.m_head.ready.val();
        self.m_put.valid.next = self.ring.m_put.valid.val() | self.packed.m_put.valid.val();
        self.m_put.data.next = self.ring.m_put.data.val();
        self.ring.m_put.ready.next = self.m_put.ready.val();
        self.packed.m_put.ready.next = self.m_put.ready.val();
        self.m_ask.valid.next = self.ring.m_ask.valid.val() | self.packed.m_ask.valid.val();
        self.m_ask.data.next.queue = self.queue.q.val();
        self.ring.m_ask.ready.next = self.m_ask.ready.val();
        self.packed.m_ask.ready.next = self.m_ask.ready.val();
        self.ring.s_done.data.next = self.s_done.data.val();
        self.ring.s_done.valid.next = self.s_done.valid.val() & !self.is_packed.val();
        self.packed.s_done.data.next = self.s_done.data.val();
        self.packed.s_done.valid.next = self.s_done.valid.val() & self.is_packed.val();
        self.s_done.ready.next = self.ring.s_done.ready.val() | self.packed.s_done.ready.val();
        self.ring.s_room.data.next = self.s_room.data.val();
        self.ring.s_room.valid.next = self.s_room.valid.val() & !self.is_packed.val();
        self.packed.s_room.data.next = self.s_room.data.val();
        self.packed.s_room.valid.next = self.s_room.valid.val() & self.is_packed.val();
        self.s_room.ready.next = self.ring.s_room.ready.val() | self.packed.s_room.ready.val();
        // All queues share the walker: a chain that would wait in it for its frame's turn is left to a later turn.
        self.full.next = !self.row.q.val().receive & !self.tx_room.val();
        self.ring.full.next = self.full.val();
        self.packed.full.next = self.full.val();
        // Software waits for one chain of another queue and not for all of a turn. A frame that waits for its chain waits for all of it: a turn's first chain is three reads, each of the others a quarter of one.
        self.hurry.next = self.ctl.req.val() | self.urgent.q.val();
        self.ring.hurry.next = self.hurry.val();
        self.packed.hurry.next = self.hurry.val();
        self.tx_promise.next = (self.ring.gave.val() | self.packed.gave.val()) & !self.row.q.val().receive;
        self.told_valid.next = self.ring.told_valid.val() | self.packed.told_valid.val();
        self.told.next = self.ring.told.val();
        if self.is_packed.val() {
            self.m_head.data.next = self.packed.m_head.data.val();
            self.m_put.data.next = self.packed.m_put.data.val();
            self.told.next = self.packed.told.val();
        }
        self.m_give_up.valid.next = self.state.q.val() == State::GiveUp;
        self.m_give_up.data.next.queue = self.queue.q.val();
        self.m_looked.valid.next = self.state.q.val() == State::Looked;
        self.m_looked.data.next.queue = self.queue.q.val();
        self.m_looked.data.next.found = self.found.q.val();

        match self.state.q.val() {
            State::Sweep => {
                self.rows.write_addr.next = self.sweep.q.val();
                self.rows.write_data.next = self.zero.val();
                self.rows.write_en.next = true;
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val().all() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.again.d.next = false;
                self.looks.d.next = false;
                self.found.d.next = false;
                self.queue.d.next = self.turns.m.data.val().queue;
                if self.ctl.req.val() {
                    self.state.d.next = State::Line;
                } else if self.asked.m.valid.val() {
                    self.asked.m.ready.next = true;
                    self.queue.d.next = self.asked.m.data.val().queue;
                    self.looks.d.next = true;
                    self.state.d.next = State::Load;
                } else if self.urgent.q.val() {
                    self.queue.d.next = self.ended.q.val();
                    self.urgent.d.next = false;
                    self.state.d.next = State::Load;
                } else if self.turns.m.valid.val() {
                    self.turns.m.ready.next = true;
                    self.state.d.next = State::Load;
                }
            }
            State::Line => {
                // The row that was asked for in Idle.
                self.ctl.row_valid.next = true;
                self.state.d.next = State::Lines;
            }
            State::Lines => {
                self.rows.write_addr.next = self.ctl.addr.val();
                self.rows.write_data.next = self.ctl.new_row.val();
                if self.ctl.done.val() {
                    self.rows.write_en.next = self.ctl.we.val();
                    if self.ctl.we.val() & !self.urgent.q.val() {
                        self.ended.d.next = bit_cast::<16, LQ>(self.ctl.addr.val());
                        self.ending.d.next = !self.written.val().enabled;
                    }
                    self.state.d.next = State::Idle;
                }
            }
            State::Load => {
                self.state.d.next = State::Begin;
            }
            State::Begin => {
                self.row.d.next = self.rows.read_data.val();
                self.state.d.next = State::Route;
            }
            State::Route => {
                self.state.d.next = State::Turn;
                if !self.row.q.val().enabled | self.row.q.val().broken | (self.looks.q.val() & !self.row.q.val().receive) {
                    self.state.d.next = State::Idle;
                    if self.looks.q.val() {
                        self.state.d.next = State::Looked;
                    } else if self.row.q.val().receive & !self.row.q.val().enabled & !self.row.q.val().given_up {
                        self.state.d.next = State::GiveUp;
                    }
                } else if self.full.val() {
                    self.again.d.next = true;
                    self.state.d.next = State::Store;
                } else {
                    self.ring.go.next = !self.is_packed.val();
                    self.packed.go.next = self.is_packed.val();
                }
            }
            State::GiveUp => {
                // What comes back behind the last of them is counted like a chain: the queue is not empty before.
                if self.m_give_up.ready.val() {
                    self.row.d.next.taken = self.row.q.val().taken + 1;
                    self.row.d.next.given_up = true;
                    self.state.d.next = State::Store;
                }
            }
            State::Turn => {
                if self.ring.over.val() | self.packed.over.val() {
                    self.state.d.next = State::Store;
                }
            }
            State::Store => {
                self.rows.write_en.next = true;
                self.turns.again.next = self.again.q.val();
                self.state.d.next = State::Idle;
                if self.looks.q.val() {
                    self.state.d.next = State::Looked;
                }
            }
            State::Looked => {
                if self.m_looked.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        // What the turn has come to so far.
        if self.ring.passed.val() {
            self.row.d.next.fetch = self.row.q.val().fetch + 1;
        }
        if self.packed.passed.val() {
            self.row.d.next.fetch = self.packed.fetch.val();
            self.row.d.next.wrap = self.packed.wrap.val();
        }
        if self.ring.gave.val() | self.packed.gave.val() {
            self.row.d.next.taken = self.row.q.val().taken + 1;
        }
        if self.ring.lost.val() | self.packed.lost.val() {
            self.row.d.next.broken = true;
        }
        if self.ring.again.val() | self.packed.again.val() {
            self.again.d.next = true;
        }
        if self.ring.found.val() | self.packed.found.val() {
            self.found.d.next = true;
        }
        if self.reset.val() {
            self.state.d.next = State::Sweep;
            self.sweep.d.next = bits::<LQ>(0);
            self.ending.d.next = false;
            self.urgent.d.next = false;
        }
    }
}
