//! What the flow tables are asked about frames that leave, and what they have said.

use crate::bus::MsgSrc;
use crate::net::rx::window::WINDOW_BITS;
use crate::stream::MsgFifo;
use crate::switch::sight::Sight;
use ferric_abi::csr::FUNCTION_PORTS;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of the places for windows that wait for their turn, and how many may wait before nothing more is taken: those that are under way then find room.
const LG_WINDOWS: usize = 4;
const WAITING: u64 = 8;
/// log2 of the places for answers, of which there are never more than beats that wait.
const LG_ANSWERS: usize = 7;
/// Bits of a number of frames that wait.
const FRAMES: usize = 8;
const FIRST_FUNCTION: u64 = FUNCTION_PORTS as u64;

/// A frame that would leave, as the tables are asked about it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Leaving {
    /// Its first 128 bytes, zeros behind its end.
    pub window: Bits<WINDOW_BITS>,
    /// It ends with the window, and how many bytes it has then.
    pub ended: Bit,
    pub len: Bits<8>,
    /// Who sends it: function, port, and the bridge domain of its network.
    pub function: Bits<6>,
    pub port: Bits<8>,
    pub domain: Bits<12>,
}

/// What was decided about one.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Told {
    /// Who sends it.
    pub function: Bits<6>,
    /// It does not leave.
    pub drops: Bit,
    /// But comes in again.
    pub returns: Bit,
    /// The tables were asked, and what has become of it: a place in [`crate::switch::program::EGRESS`].
    pub judged: Bit,
    pub place: Bits<3>,
    /// The action's line counts it.
    pub count: Bit,
    pub flow: Bits<12>,
}

/// A frame for the counters of flows: the action's line, and its bytes.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Used {
    pub flow: Bits<12>,
    pub len: Bits<17>,
}

/// Frames of one stream, whose beats are seen when they are taken.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Asking<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten.
    pub reset: Signal<In, Bit>,
    /// Whether frames that begin are asked about. Behind one that is, others are until all answers are there, so that frames stay in order.
    pub asks: Signal<In, Bit>,
    pub data: Signal<In, Bits<W>>,
    pub keep: Signal<In, Bits<K>>,
    pub last: Signal<In, Bit>,
    pub taken: Signal<In, Bit>,
    /// Two cycles behind a frame's first beat, once: whether it leaves, and who sends it.
    pub known: Signal<In, Bit>,
    pub leaves: Signal<In, Bit>,
    pub owner: Signal<In, Bits<6>>,
    pub domain: Signal<In, Bits<12>>,
    /// With `known`: it is asked about.
    pub asked: Signal<Out, Bit>,
    /// No beat is to be taken.
    pub busy: Signal<Out, Bit>,
    pub m_ask: MsgSrc<Leaving>,
    /// What was decided, in the order in which they were asked about.
    pub told: Signal<In, Told>,
    pub told_valid: Signal<In, Bit>,
    /// The same of the first frame that is still here.
    pub m_told: MsgSrc<Told>,
    /// A frame begins that leaves, of this function, at least a cycle ahead of its first beat.
    pub begins: Signal<Out, Bit>,
    pub begins_function: Signal<Out, Bits<6>>,
    sight: Sight<W, K>,
    asks1: DFF<Bit>,
    pending: DFF<Bits<FRAMES>>,
    wants: Signal<Local, Bit>,
    held: DFF<Bit>,
    function1: DFF<Bits<6>>,
    domain1: DFF<Bits<12>>,
    wanted: Signal<Local, Bit>,
    sender: Signal<Local, Bits<6>>,
    network: Signal<Local, Bits<12>>,
    windows: MsgFifo<Leaving, LG_WINDOWS>,
    busy1: DFF<Bit>,
    told1: DFF<Told>,
    told1_valid: DFF<Bit>,
    answers: MsgFifo<Told, LG_ANSWERS>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Asking<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asks1, pending, held, function1, domain1, busy1, told1, told1_valid);
        clock!(self, clock, sight, windows, answers);
        self.sight.reset.next = self.reset.val();
        self.windows.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        self.sight.data.next = self.data.val();
        self.sight.keep.next = self.keep.val();
        self.sight.last.next = self.last.val();
        self.sight.err.next = false;
        self.sight.valid.next = self.taken.val();
        // Who is asked about
        self.asks1.d.next = self.asks.val();
        self.wants.next = self.known.val() & self.leaves.val() & (self.asks1.q.val() | self.pending.q.val().any());
        self.asked.next = self.wants.val();
        if self.wants.val() & !self.told1_valid.q.val() {
            self.pending.d.next = self.pending.q.val() + 1;
        } else if self.told1_valid.q.val() & !self.wants.val() {
            self.pending.d.next = self.pending.q.val() - 1;
        }
        // A frame's window is complete when it is known where it goes, or later, and in front of the next frame.
        self.wanted.next = self.held.q.val();
        self.sender.next = self.function1.q.val();
        self.network.next = self.domain1.q.val();
        if self.known.val() {
            self.wanted.next = self.wants.val();
            self.sender.next = self.owner.val();
            self.network.next = self.domain.val();
        }
        self.held.d.next = self.wanted.val();
        self.function1.d.next = self.sender.val();
        self.domain1.d.next = self.network.val();
        self.windows.s.valid.next = self.sight.window_valid.val() & self.wanted.val();
        self.windows.s.data.next.window = self.sight.window.val();
        self.windows.s.data.next.ended = self.sight.ended.val();
        self.windows.s.data.next.len = self.sight.len.val();
        self.windows.s.data.next.function = self.sender.val();
        self.windows.s.data.next.port = bit_cast::<8, 6>(self.sender.val()) + FIRST_FUNCTION;
        self.windows.s.data.next.domain = self.network.val();
        self.busy1.d.next = self.windows.level.val() >= WAITING;
        self.busy.next = self.busy1.q.val();
        MsgSrc::<Leaving>::link(&mut self.m_ask, &mut self.windows.m);
        // What was said
        self.told1.d.next = self.told.val();
        self.told1_valid.d.next = self.told_valid.val();
        self.answers.s.valid.next = self.told1_valid.q.val();
        self.answers.s.data.next = self.told1.q.val();
        MsgSrc::<Told>::link(&mut self.m_told, &mut self.answers.m);
        self.begins.next = (self.known.val() & self.leaves.val() & !self.wants.val()) | (self.told1_valid.q.val() & !self.told1.q.val().drops);
        self.begins_function.next = self.owner.val();
        if self.told1_valid.q.val() {
            self.begins_function.next = self.told1.q.val().function;
        }
        if self.reset.val() {
            self.pending.d.next = bits::<FRAMES>(0);
            self.held.d.next = false;
            self.busy1.d.next = false;
            self.told1_valid.d.next = false;
        }
    }
}
