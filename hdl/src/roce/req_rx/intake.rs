//! Brings everything that can happen to a requester into one queue of decoded events.

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::done_status;
use crate::msg::{CellRead, QpError, ReadDone, RxAnswer, TimerEvent, TxDone};
use crate::prim::arb::RrPick;
use crate::prim::pack::Gather;
use ferric_abi::wire::{opcode, syndrome};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// What happened. `kind`: see the constants in [`kind`]. `psn`, `index`, `status`, `syndrome` as far as the kind has them.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Event {
    pub qpn: Bits<24>,
    pub kind: Bits<4>,
    pub psn: Bits<24>,
    pub index: Bits<16>,
    pub status: Bits<8>,
    pub syndrome: Bits<8>,
    // Of an answer: READ RESPONSE First or Only, Last or Only; an AETH that is no acknowledge; where its bytes are; an atomic's value.
    pub first: Bit,
    pub last: Bit,
    pub bad: Bit,
    pub handle: Bits<12>,
    pub pay_off: Bits<8>,
    pub pay_len: Bits<13>,
    pub data: Bits<64>,
}

/// Event kinds.
pub mod kind {
    /// Acknowledge of `psn`.
    pub const ACK: u8 = 0;
    /// RNR NAK at `psn`, timer code in `syndrome`.
    pub const RNR: u8 = 1;
    /// Sequence NAK: the peer expects `psn`.
    pub const NAK_SEQUENCE: u8 = 2;
    /// NAK that ends the queue pair with `status`.
    pub const NAK_FATAL: u8 = 3;
    /// Packet `psn` of a transport without acknowledges has left.
    pub const DEPARTED: u8 = 4;
    /// Look whether something can be retired.
    pub const LOOK: u8 = 5;
    /// Work request `index` failed locally with `status`.
    pub const LOCAL: u8 = 6;
    /// Retransmission timer.
    pub const TIMEOUT: u8 = 7;
    /// RNR timer.
    pub const RNR_TIMER: u8 = 8;
    /// The responder half failed with `status`.
    pub const PEER_HALF: u8 = 9;
    /// READ RESPONSE `psn`.
    pub const READ: u8 = 10;
    /// ATOMIC ACKNOWLEDGE `psn`.
    pub const ATOMIC: u8 = 11;
    /// Answer `psn` is in host memory, or could not be placed (`status`).
    pub const PLACED: u8 = 12;
    /// The local operation whose turn it is has been executed.
    pub const WORKED: u8 = 13;
    /// All answers accepted before the queue pair failed are in host memory.
    pub const QUIET: u8 = 14;
}

/// Serves its six inputs in turn, frames while nothing else is there. Two event registers: of two positive acknowledges, or two departures, of a
/// queue pair in a row only the younger goes on, it says all the older one does.
#[derive(LogicBlock, Default)]
pub struct Intake {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_rx: MsgSink<RxAnswer>,
    pub s_tx_done: [MsgSink<TxDone>; 2],
    pub s_timer: MsgSink<TimerEvent>,
    pub s_error: MsgSink<QpError>,
    pub s_placed: MsgSink<ReadDone>,
    /// Frames are taken: whatever an answer leads to has a place.
    pub room: Signal<In, Bit>,
    pub m_event: MsgSrc<Event>,
    pub m_cell: MsgSrc<CellRead>,
    /// Pulse: a response that nobody here understands was dropped.
    pub unexpected: Signal<Out, Bit>,
    /// Whose input is open, one-hot: frames, departures, local failures and departures of the egress, timers, errors, placed answers.
    turn: DFF<Bits<6>>,
    pick: RrPick<6>,
    waiting: Gather<6>,
    next: DFF<Event>,
    next_valid: DFF<Bit>,
    ev: DFF<Event>,
    ev_valid: DFF<Bit>,
    free: DFF<CellRead>,
    free_valid: DFF<Bit>,
    odd: DFF<Bit>,
    open: Signal<Local, Bit>,
    gone: Signal<Local, Bit>,
    later: Signal<Local, Bits<24>>,
    /// A younger one says all that this says.
    sums: Signal<Local, Bit>,
    merge: Signal<Local, Bit>,
    offered: Signal<Local, Bits<6>>,
    served: Signal<Local, Bit>,
    at_rx: Signal<Local, Bit>,
    aeth: Signal<Local, Bits<32>>,
    syndrome: Signal<Local, Bits<8>>,
    class: Signal<Local, Bits<2>>,
    code: Signal<Local, Bits<5>>,
    known: Signal<Local, Bit>,
    op: Signal<Local, Bits<8>>,
    read: Signal<Local, Bit>,
    atomic: Signal<Local, Bit>,
    done: Signal<Local, TxDone>,
    done_valid: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Intake {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, turn, next, next_valid, ev, ev_valid, free, free_valid, odd);
        self.m_event.data.next = self.ev.q.val();
        self.m_event.valid.next = self.ev_valid.q.val();
        self.m_cell.data.next = self.free.q.val();
        self.m_cell.valid.next = self.free_valid.q.val();
        self.unexpected.next = self.odd.q.val();
        self.odd.d.next = false;
        self.free_valid.d.next = self.free_valid.q.val() & !self.m_cell.ready.val();

        // Event registers.
        self.gone.next = self.ev_valid.q.val() & self.m_event.ready.val();
        self.later.next = self.next.q.val().psn - self.ev.q.val().psn;
        self.sums.next = (self.ev.q.val().kind == kind::ACK) | (self.ev.q.val().kind == kind::DEPARTED);
        self.merge.next =
            self.next_valid.q.val() & self.ev_valid.q.val() & !self.gone.val() & self.sums.val() & (self.next.q.val().kind == self.ev.q.val().kind) & (self.next.q.val().qpn == self.ev.q.val().qpn);
        self.ev_valid.d.next = self.ev_valid.q.val() & !self.gone.val();
        self.next_valid.d.next = self.next_valid.q.val() & !self.merge.val();
        if self.merge.val() & !self.later.val().get_bit(23) {
            self.ev.d.next.psn = self.next.q.val().psn;
        }
        if !self.ev_valid.q.val() | self.gone.val() {
            self.ev.d.next = self.next.q.val();
            self.ev_valid.d.next = self.next_valid.q.val();
            self.next_valid.d.next = false;
        }

        // Whose turn it is: chosen one cycle ahead; who is there stays until it is served.
        self.open.next = !self.next_valid.q.val();
        self.at_rx.next = self.open.val() & self.turn.q.val().get_bit(0) & !self.free_valid.q.val() & self.room.val();
        self.s_rx.ready.next = self.at_rx.val();
        self.s_tx_done[0].ready.next = self.open.val() & self.turn.q.val().get_bit(1);
        self.s_tx_done[1].ready.next = self.open.val() & self.turn.q.val().get_bit(2);
        self.s_timer.ready.next = self.open.val() & self.turn.q.val().get_bit(3);
        self.s_error.ready.next = self.open.val() & self.turn.q.val().get_bit(4);
        self.s_placed.ready.next = self.open.val() & self.turn.q.val().get_bit(5);
        self.waiting.x[0].next = self.s_rx.valid.val() & self.room.val();
        self.waiting.x[5].next = self.s_placed.valid.val();
        self.waiting.x[1].next = self.s_tx_done[0].valid.val();
        self.waiting.x[2].next = self.s_tx_done[1].valid.val();
        self.waiting.x[3].next = self.s_timer.valid.val();
        self.waiting.x[4].next = self.s_error.valid.val();
        self.offered.next = self.turn.q.val() & self.waiting.y.val();
        self.served.next = self.open.val() & (!self.turn.q.val().get_bit(0) | !self.free_valid.q.val());
        self.pick.req.next = self.waiting.y.val();
        self.pick.last.next = self.turn.q.val();
        if self.served.val() | !self.offered.val().any() {
            self.turn.d.next = bits::<6>(1);
            if self.waiting.y.val().any() {
                self.turn.d.next = self.pick.grant.val();
            }
        }

        // AETH (IBTA 9.7.5): syndrome in the top byte, then the MSN.
        self.aeth.next = self.s_rx.data.val().aeth;
        self.syndrome.next = self.aeth.val().get_bits::<8>(24);
        self.class.next = self.syndrome.val().get_bits::<2>(5);
        self.code.next = self.syndrome.val().get_bits::<5>(0);
        self.op.next = self.s_rx.data.val().opcode;
        // READ RESPONSE First 0x0d, Middle, Last, Only 0x10 (the Middle has no AETH); ATOMIC ACKNOWLEDGE 0x12.
        self.read.next = (self.op.val() == opcode::READ_RESPONSE_FIRST)
            | (self.op.val() == opcode::READ_RESPONSE_MIDDLE)
            | (self.op.val() == opcode::READ_RESPONSE_LAST)
            | (self.op.val() == opcode::READ_RESPONSE_ONLY);
        self.atomic.next = self.op.val() == opcode::ATOMIC_ACKNOWLEDGE;
        self.known.next = (self.op.val() == opcode::ACKNOWLEDGE) & !self.syndrome.val().get_bit(7) & !(self.class.val() == 2) & !((self.class.val() == syndrome::KIND_NAK) & (self.code.val() > 3));
        self.done.next = self.s_tx_done[0].data.val();
        self.done_valid.next = self.s_tx_done[0].valid.val();
        if self.turn.q.val().get_bit(2) {
            self.done.next = self.s_tx_done[1].data.val();
            self.done_valid.next = self.s_tx_done[1].valid.val();
        }
        if self.open.val() {
            self.next.d.next.index = self.done.val().wqe_index;
            self.next.d.next.syndrome = self.syndrome.val();
            self.next.d.next.first = (self.op.val() == opcode::READ_RESPONSE_FIRST) | (self.op.val() == opcode::READ_RESPONSE_ONLY);
            self.next.d.next.last = (self.op.val() == opcode::READ_RESPONSE_LAST) | (self.op.val() == opcode::READ_RESPONSE_ONLY);
            self.next.d.next.bad = !(self.op.val() == opcode::READ_RESPONSE_MIDDLE) & (self.syndrome.val().get_bit(7) | self.class.val().any());
            self.next.d.next.handle = self.s_rx.data.val().handle;
            self.next.d.next.pay_off = self.s_rx.data.val().pay_off;
            self.next.d.next.pay_len = self.s_rx.data.val().pay_len;
            self.next.d.next.data = self.s_rx.data.val().operand;
            if self.turn.q.val().get_bit(0) {
                self.next.d.next.qpn = self.s_rx.data.val().dest_qpn;
                self.next.d.next.psn = self.s_rx.data.val().psn;
                self.next.d.next.kind = bits::<4>(kind::ACK);
                if self.class.val() == syndrome::KIND_RNR {
                    self.next.d.next.kind = bits::<4>(kind::RNR);
                }
                if self.class.val() == syndrome::KIND_NAK {
                    self.next.d.next.kind = bits::<4>(kind::NAK_FATAL);
                    if self.code.val() == 0 {
                        self.next.d.next.kind = bits::<4>(kind::NAK_SEQUENCE);
                    }
                }
                // NAK codes 1 to 3 are completion statuses 9 to 11.
                self.next.d.next.status = bit_cast::<8, 5>(self.code.val()) + 8;
                if self.read.val() {
                    self.next.d.next.kind = bits::<4>(kind::READ);
                }
                if self.atomic.val() {
                    self.next.d.next.kind = bits::<4>(kind::ATOMIC);
                }
                if self.at_rx.val() & self.s_rx.valid.val() {
                    self.next_valid.d.next = self.known.val() | self.read.val() | self.atomic.val();
                    self.odd.d.next = !(self.known.val() | self.read.val() | self.atomic.val());
                }
            } else if self.turn.q.val().get_bit(3) {
                self.next.d.next.qpn = self.s_timer.data.val().qpn;
                self.next.d.next.kind = bits::<4>(kind::TIMEOUT) + bit_cast::<4, 1>(self.s_timer.data.val().kind.into());
                self.next_valid.d.next = self.s_timer.valid.val();
            } else if self.turn.q.val().get_bit(4) {
                self.next.d.next.qpn = self.s_error.data.val().qpn;
                self.next.d.next.kind = bits::<4>(kind::PEER_HALF);
                self.next.d.next.status = self.s_error.data.val().cause;
                self.next_valid.d.next = self.s_error.valid.val();
            } else if self.turn.q.val().get_bit(5) {
                self.next.d.next.qpn = self.s_placed.data.val().qpn;
                // Of its order's word the part where `RoceWord` has the PSN.
                self.next.d.next.psn = self.s_placed.data.val().transport;
                self.next.d.next.kind = bits::<4>(kind::PLACED);
                if self.s_placed.data.val().status == done_status::QUIET {
                    self.next.d.next.kind = bits::<4>(kind::QUIET);
                }
                self.next.d.next.status = self.s_placed.data.val().status;
                self.next_valid.d.next = self.s_placed.valid.val();
            } else {
                self.next.d.next.qpn = self.done.val().qpn;
                self.next.d.next.psn = self.done.val().psn;
                self.next.d.next.status = self.done.val().status;
                self.next.d.next.kind = bits::<4>(kind::LOCAL);
                if self.done.val().status == 0 {
                    self.next.d.next.kind = bits::<4>(kind::DEPARTED);
                }
                if self.done.val().status == done_status::QUIET {
                    self.next.d.next.kind = bits::<4>(kind::LOOK);
                }
                if self.done.val().status == done_status::WORKED {
                    self.next.d.next.kind = bits::<4>(kind::WORKED);
                }
                self.next_valid.d.next = self.done_valid.val();
            }
        }
        // Whatever a received frame says, its buffer goes back; that of an answer to a READ when its bytes have been moved.
        if !self.free_valid.q.val() {
            self.free.d.next.handle = self.s_rx.data.val().handle;
            self.free.d.next.free = true;
        }
        if self.at_rx.val() & self.s_rx.valid.val() {
            self.free_valid.d.next = !self.read.val();
        }
        if self.reset.val() {
            self.turn.d.next = bits::<6>(1);
            self.next_valid.d.next = false;
            self.ev_valid.d.next = false;
            self.free_valid.d.next = false;
        }
    }
}
