//! Are a request's parameters in range?
use crate::memory_target::ring::RingSetup;
use crate::records::SetupRequest;
use ferric_abi::codes::TargetOp;
use ferric_abi::wire::pmtu;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Values of `SetupRequest::rights`, and RNR NAK timer codes.
const RIGHTS: u64 = 1 << 3;
const RNR_TIMERS: u64 = 1 << 5;
// log2 of the bytes of a slot, and of the slots.
const LEAST_SLOT: u64 = 6;
const MOST_SLOT: u64 = 12;
const MOST_COUNT: u64 = 6;

/// A verdict, three cycles behind the request, over a RAM of `2^A` rows of 8 bytes.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Check<const A: usize> {
    pub clock: Signal<In, Clock>,
    pub request: Signal<In, SetupRequest>,
    /// The present ring, its slots given back and handed out; there are queue pairs.
    pub ring: Signal<In, RingSetup>,
    pub consumer: Signal<In, Bits<16>>,
    pub head: Signal<In, Bits<16>>,
    pub busy: Signal<In, Bit>,
    /// It may not be done.
    pub refused: Signal<Out, Bit>,
    /// At once: the ring asked for is the present one; its bytes.
    pub ring_same: Signal<Out, Bit>,
    pub ring_bytes: Signal<Out, Bits<32>>,
    range: DFF<Bit>,
    qp: DFF<Bit>,
    fits: DFF<Bit>,
    back: DFF<Bit>,
    key_end: DFF<Bits<33>>,
    ring_end: DFF<Bits<33>>,
    #[init(Constant::new((8u64 << A).into()))]
    ram_bytes: Constant<Bits<33>>,
    op: Signal<Local, Bits<8>>,
    rights: Signal<Local, Bits<8>>,
    pmtu: Signal<Local, Bits<8>>,
    rnr: Signal<Local, Bits<8>>,
    slot: Signal<Local, Bits<8>>,
    count: Signal<Local, Bits<8>>,
    low: Signal<Local, Bits<32>>,
    log_ring: Signal<Local, Bits<5>>,
    bytes: Signal<Local, Bits<33>>,
    same: Signal<Local, Bit>,
    given: Signal<Local, Bits<16>>,
    ahead: Signal<Local, Bits<16>>,
}

#[kernel]
impl<const A: usize> Logic for Check<A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, range, qp, fits, back, key_end, ring_end);
        self.rights.next = self.request.val().rights;
        self.pmtu.next = self.request.val().pmtu;
        self.rnr.next = self.request.val().rnr_timer;
        self.slot.next = self.request.val().log_slot;
        self.count.next = self.request.val().log_count;
        self.low.next = self.request.val().start;
        self.key_end.d.next = bit_cast::<33, 32>(self.low.val()) + bit_cast::<33, 32>(self.request.val().length);
        self.range.d.next = (self.key_end.q.val() <= self.ram_bytes.val()) & self.request.val().length.any();
        self.qp.d.next = self.pmtu.val().any() & (self.pmtu.val() < (pmtu::MTU_4096 + 1) as u64) & (self.rights.val() < RIGHTS) & (self.rnr.val() < RNR_TIMERS);
        self.log_ring.next = self.slot.val().get_bits::<5>(0) + self.count.val().get_bits::<5>(0);
        self.bytes.next = bits::<33>(1) << self.log_ring.val();
        self.ring_end.d.next = bit_cast::<33, 32>(self.low.val()) + self.bytes.val();
        self.same.next = self.ring.val().valid
            & (self.ring.val().base == self.low.val())
            & (self.ring.val().log_slot == self.slot.val().get_bits::<4>(0))
            & (self.ring.val().log_count == self.count.val().get_bits::<3>(0));
        self.fits.d.next = (self.slot.val() > (LEAST_SLOT - 1) as u64)
            & (self.slot.val() < (MOST_SLOT + 1) as u64)
            & (self.count.val() < (MOST_COUNT + 1) as u64)
            & (self.ring_end.q.val() <= self.ram_bytes.val())
            & !self.low.val().get_bits::<12>(0).any()
            & (!self.busy.val() | self.same.val());
        self.given.next = self.request.val().consumer - self.consumer.val();
        self.ahead.next = self.head.val() - self.consumer.val();
        self.back.d.next = self.given.val() <= self.ahead.val();
        self.op.next = self.request.val().op;
        self.refused.next = ((self.op.val() == TargetOp::CreateQp as u64) & !self.qp.q.val())
            | ((self.op.val() == TargetOp::CreateKey as u64) & (!self.range.q.val() | (self.rights.val() > (RIGHTS - 1) as u64)))
            | ((self.op.val() == TargetOp::SetRing as u64) & !self.fits.q.val())
            | ((self.op.val() == TargetOp::Release as u64) & !self.back.q.val());
        self.ring_same.next = self.same.val();
        self.ring_bytes.next = self.bytes.val().get_bits::<32>(0);
    }
}
