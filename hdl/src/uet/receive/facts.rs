//! What a request or a control packet is, by its headers.
use crate::prim::sum::Diff;
use crate::uet::head::types::{Carried, PdsFields, UetHead};
use ferric_abi::uet::codes::{ControlType, PdsType};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// See [`Reader`].
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Facts {
    /// It is a request; else a control packet. ROD.
    pub request: Bit,
    pub rod: Bit,
    /// Trimmed, in all or by the last hop.
    pub trim: Bits<2>,
    pub cut: Bit,
    /// Somebody waits for its ACK.
    pub wanted: Bit,
    /// Control packets: the close, the question what became of a packet.
    pub close: Bit,
    pub question: Bit,
    /// It says which responses its sender has: those of all PSNs in front of `upto`.
    pub clears: Bit,
    pub upto: Bits<32>,
}

/// Bits of half a PSN, and of that and one more.
const HALF: usize = 16;
const ONE_MORE: usize = HALF + 1;
const HALF_BITS: u64 = HALF as u64;

/// `upto` is three cycles behind the headers, which stay until the packet is dealt with.
#[derive(LogicBlock, BlockDefault)]
pub struct Reader {
    pub clock: Signal<In, Clock>,
    pub head: Signal<In, UetHead>,
    pub facts: Signal<Out, Facts>,
    // A half of the difference in a cycle.
    lower: Diff<HALF>,
    borrow: DFF<Bit>,
    low2: DFF<Bits<HALF>>,
    last2: DFF<Bits<HALF>>,
    less2: DFF<Bits<HALF>>,
    upper: Diff<ONE_MORE>,
    difference: Signal<Local, Bits<ONE_MORE>>,
    low3: DFF<Bits<HALF>>,
    high3: DFF<Bits<HALF>>,
    /// The sides of the difference.
    last: DFF<Bits<32>>,
    less: DFF<Bits<32>>,
    #[init(Constant::new(Bits::<32>::mask()))]
    ones: Constant<Bits<32>>,
    pds: Signal<Local, PdsFields>,
    carried: Signal<Local, Carried>,
    request: Signal<Local, Bit>,
    close: Signal<Local, Bit>,
    command: Signal<Local, Bit>,
    trim: Signal<Local, Bits<2>>,
    offset: Signal<Local, Bits<16>>,
    inverse: Signal<Local, Bits<16>>,
    /// The clear offset is 0; it is not above 0.
    same: Signal<Local, Bit>,
    past: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Reader {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, last, less, borrow, low2, last2, less2, low3, high3);
        self.pds.next = self.head.val().pds;
        self.carried.next = self.head.val().carried;
        self.trim.next = self.carried.val().trim;
        self.request.next = !(self.pds.val().kind == PdsType::Control as u64);
        self.close.next = !self.request.val() & (self.pds.val().follows == ControlType::CloseCommand as u64);
        self.command.next = !self.request.val() & (self.pds.val().follows == ControlType::ClearCommand as u64);
        self.facts.next.request = self.request.val();
        self.facts.next.rod = self.pds.val().rod | (self.pds.val().kind == PdsType::RodReq as u64) | (self.pds.val().kind == PdsType::RodCcReq as u64);
        self.facts.next.trim = self.trim.val();
        self.facts.next.cut = self.trim.val().any();
        self.facts.next.wanted = self.pds.val().ar | self.pds.val().syn;
        self.facts.next.close = self.close.val();
        self.facts.next.question = !self.request.val() & (self.pds.val().follows == ControlType::AckRequest as u64);
        // A request clears up to PSN and its clear offset, inclusive: x + y + 1 is x - !y. A command says the last PSN, and a close clears all in front of it.
        self.offset.next = self.pds.val().word;
        self.inverse.next = !self.offset.val();
        self.same.next = !self.offset.val().any();
        self.past.next = self.same.val() | self.offset.val().get_bit(15);
        self.last.d.next = self.pds.val().psn;
        self.less.d.next = bits::<32>(0);
        if self.command.val() {
            self.last.d.next = self.pds.val().payload;
            self.less.d.next = self.ones.val();
        } else if self.request.val() & self.same.val() {
            self.less.d.next = self.ones.val();
        } else if self.request.val() {
            self.less.d.next = bit_cast::<32, 16>(self.inverse.val());
        }
        self.lower.a.next = self.last.q.val().get_bits::<HALF>(0);
        self.lower.b.next = self.less.q.val().get_bits::<HALF>(0);
        self.low2.d.next = self.lower.y.val();
        self.borrow.d.next = self.lower.below.val();
        self.last2.d.next = self.last.q.val().get_bits::<HALF>(HALF);
        self.less2.d.next = self.less.q.val().get_bits::<HALF>(HALF);
        // Twice the upper halves, and what the lower one borrows is one of the half that is lost.
        self.upper.a.next = bit_cast::<ONE_MORE, HALF>(self.last2.q.val()) << 1;
        self.upper.b.next = (bit_cast::<ONE_MORE, HALF>(self.less2.q.val()) << 1) | bit_cast::<ONE_MORE, 1>(self.borrow.q.val().into());
        self.difference.next = self.upper.y.val();
        self.low3.d.next = self.low2.q.val();
        self.high3.d.next = self.difference.val().get_bits::<HALF>(1);
        self.facts.next.upto = (bit_cast::<32, HALF>(self.high3.q.val()) << HALF_BITS) | bit_cast::<32, HALF>(self.low3.q.val());
        // Of a trimmed packet nothing is believed, and an offset above 0 says nothing.
        self.facts.next.clears = !self.trim.val().any() & (self.close.val() | self.command.val() | (self.request.val() & self.past.val()));
    }
}
