//! Small writes of the engine and the moves of received frames, in one ordered stream to the DMA writer. See README.md.

use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::msg::{VqPut, WrCmd, WrDone};
use crate::prim::arb::RrPick;
use crate::prim::keep_mask::RangeMask;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use crate::prim::rotate::ByteRotate;
use crate::stream::{AxisSlice, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_put[*]", &["m_cmd", "m_data", "s_data"]),
    ("s_cmd", &["m_cmd", "m_data", "s_data"]),
    // The command of the beats stands in front of them: the mover shows it first.
    ("s_data", &["m_cmd", "m_data"]),
    ("s_done", &["m_done[..]", "m_moved"]),
    ("m_cmd", &[]),          // an answer is awaited of a command that has been given
    ("m_data", &["s_data"]), // of the command in front of them
    ("m_done[*]", &["m_cmd", "m_data", "s_data", "s_done", "m_moved"]),
    ("m_moved", &["m_cmd", "m_data", "s_data", "s_done", "m_done[..]"]), // of moves that have been given
];

/// Clients of small writes.
pub const CLIENTS: usize = 2;
/// Those and the mover.
const ALL: usize = CLIENTS + 1;
/// Bytes of a write that is wide, and of one that is not.
const WIDE: u64 = 4;
const NARROW: u64 = 2;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Command,
    Word,
    Beats,
}

/// One write at a time. A tag of 0 is the mover's, 1 and 2 are the clients'.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK, "K must be W / 8, LK its logarithm")]
pub struct Put<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while writes are in flight.
    pub reset: Signal<In, Bit>,
    pub s_put: [MsgSink<VqPut>; CLIENTS],
    pub m_done: [MsgSrc<WrDone>; CLIENTS],
    /// The mover's.
    pub s_cmd: MsgSink<WrCmd>,
    pub s_data: AxisSink<W, K>,
    pub m_moved: MsgSrc<WrDone>,
    /// The DMA writer's payload port.
    pub m_cmd: MsgSrc<WrCmd>,
    pub m_data: AxisSrc<W, K>,
    pub s_done: MsgSink<WrDone>,
    state: DFF<State>,
    turn: DFF<Bits<ALL>>,
    pick: RrPick<ALL>,
    waiting: Gather<ALL>,
    chosen: OneHotMux<VqPut, CLIENTS>,
    mark: OneHotMux<Bits<8>, CLIENTS>,
    some: Signal<Local, Bits<CLIENTS>>,
    puts: [MsgSlice<VqPut>; CLIENTS],
    moves: MsgSlice<WrCmd>,
    beats: AxisSlice<W, K>,
    out: AxisSlice<W, K>,
    word: DFF<VqPut>,
    command: DFF<WrCmd>,
    answers: MsgSlice<WrDone>,
    dones: [MsgSlice<WrDone>; CLIENTS],
    moved: MsgSlice<WrDone>,
    rotate: ByteRotate<W, K, LK>,
    strobes: RangeMask<K, 7>,
    lane: Signal<Local, Bits<LK>>,
    iova: Signal<Local, Bits<64>>,
    length: Signal<Local, Bits<7>>,
    asked: Signal<Local, Bits<ALL>>,
    whose: Signal<Local, Bits<8>>,
    /// The oldest answer is for whom, and has gone on.
    mine: Signal<Local, Bit>,
    #[init(std::array::from_fn(|i| Constant::new((i as u64 + 1).into())))]
    tags: [Constant<Bits<8>>; CLIENTS],
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for Put<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, turn, word, command);
        clock!(self, clock, moves, beats, out, answers, moved);
        self.moves.reset.next = self.reset.val();
        self.beats.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        self.moved.reset.next = self.reset.val();
        MsgSink::<WrCmd>::link(&mut self.s_cmd, &mut self.moves.s);
        AxisSink::<W, K>::link(&mut self.s_data, &mut self.beats.s);
        AxisSrc::<W, K>::link(&mut self.m_data, &mut self.out.m);
        MsgSink::<WrDone>::link(&mut self.s_done, &mut self.answers.s);
        MsgSrc::<WrDone>::link(&mut self.m_moved, &mut self.moved.m);
        self.waiting.x[0].next = self.moves.m.valid.val();
        for i in 0..CLIENTS {
            self.puts[i].clock.next = self.clock.val();
            self.puts[i].reset.next = self.reset.val();
            self.dones[i].clock.next = self.clock.val();
            self.dones[i].reset.next = self.reset.val();
            MsgSink::<VqPut>::link(&mut self.s_put[i], &mut self.puts[i].s);
            MsgSrc::<WrDone>::link(&mut self.m_done[i], &mut self.dones[i].m);
            self.puts[i].m.ready.next = (self.state.q.val() == State::Idle) & self.pick.grant.val().get_bit(i + 1);
            self.waiting.x[i + 1].next = self.puts[i].m.valid.val();
            self.chosen.x[i].next = self.puts[i].m.data.val();
            self.mark.x[i].next = self.tags[i].val();
        }
        self.asked.next = self.waiting.y.val();
        self.pick.req.next = self.asked.val();
        self.some.next = self.pick.grant.val().get_bits::<CLIENTS>(1);
        self.chosen.sel.next = self.some.val();
        self.mark.sel.next = self.some.val();
        self.pick.last.next = self.turn.q.val();
        self.moves.m.ready.next = (self.state.q.val() == State::Idle) & self.pick.grant.val().get_bit(0);

        // The one beat of a small write.
        self.iova.next = self.word.q.val().iova;
        self.lane.next = self.iova.val().get_bits::<LK>(0);
        self.length.next = bits::<7>(NARROW);
        if self.word.q.val().wide {
            self.length.next = bits::<7>(WIDE);
        }
        self.rotate.x.next = bit_cast::<W, 32>(self.word.q.val().data);
        self.rotate.n.next = self.lane.val();
        self.strobes.lo.next = bit_cast::<7, LK>(self.lane.val());
        self.strobes.hi.next = bit_cast::<7, LK>(self.lane.val()) + self.length.val();
        self.m_cmd.valid.next = self.state.q.val() == State::Command;
        self.m_cmd.data.next = self.command.q.val();
        self.out.s.data.next = self.beats.m.data.val();
        self.out.s.keep.next = self.beats.m.keep.val();
        self.out.s.last.next = self.beats.m.last.val();
        self.out.s.valid.next = (self.state.q.val() == State::Beats) & self.beats.m.valid.val();
        self.beats.m.ready.next = (self.state.q.val() == State::Beats) & self.out.s.ready.val();
        if self.state.q.val() == State::Word {
            self.out.s.data.next = self.rotate.y.val();
            self.out.s.keep.next = self.strobes.keep.val();
            self.out.s.last.next = true;
            self.out.s.valid.next = true;
        }

        match self.state.q.val() {
            State::Idle => {
                self.command.d.next = self.moves.m.data.val();
                self.command.d.next.tag = bits::<8>(0);
                self.word.d.next = self.chosen.y.val();
                if self.some.val().any() {
                    self.command.d.next.iova = self.chosen.y.val().iova;
                    self.command.d.next.function = self.chosen.y.val().function;
                    self.command.d.next.len = bits::<13>(NARROW);
                    if self.chosen.y.val().wide {
                        self.command.d.next.len = bits::<13>(WIDE);
                    }
                    self.command.d.next.tag = self.mark.y.val();
                }
                if self.asked.val().any() {
                    self.turn.d.next = self.pick.grant.val();
                    self.state.d.next = State::Command;
                }
            }
            State::Command => {
                if self.m_cmd.ready.val() {
                    self.state.d.next = State::Word;
                    if self.turn.q.val().get_bit(0) {
                        self.state.d.next = State::Beats;
                    }
                }
            }
            State::Word => {
                if self.out.s.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Beats => {
                if self.out.s.ready.val() & self.beats.m.valid.val() & self.beats.m.last.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }

        // Answers go to whom their tag names.
        self.whose.next = self.answers.m.data.val().tag;
        self.moved.s.data.next = self.answers.m.data.val();
        self.moved.s.valid.next = self.answers.m.valid.val() & !self.whose.val().any();
        self.mine.next = self.moved.s.ready.val() & !self.whose.val().any();
        for i in 0..CLIENTS {
            self.dones[i].s.data.next = self.answers.m.data.val();
            self.dones[i].s.valid.next = self.answers.m.valid.val() & (self.whose.val() == self.tags[i].val());
            if (self.whose.val() == self.tags[i].val()) & self.dones[i].s.ready.val() {
                self.mine.next = true;
            }
        }
        self.answers.m.ready.next = self.mine.val();
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.turn.d.next = bits::<ALL>(0);
        }
    }
}
