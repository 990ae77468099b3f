//! Requests that wait for atomics in front of them: SENDs, WRITEs and atomics of a queue pair are executed in the order in which they came (IBTA 9.5).
use crate::bus::MsgSrc;
use crate::msg::RxRequest;
use crate::prim::ram::{Ram, RamApart};
use ferric_abi::wire::opcode;
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Of a queue pair: atomics that have passed, modulo 512, and requests that wait.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Seen {
    passed: Bits<9>,
    waiting: Bits<8>,
}

/// Up to `2^LP` requests, of all `2^LQ` queue pairs; `LP` is 7 at most. One whose time has not come waits at the head for it, and those behind it, too; requests of
/// queue pairs that have none here are not held up unless all places are taken.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=7).contains(&LP), "2^{LP} places: a queue pair counts to 255")]
pub struct Park<const LQ: usize, const LP: usize> {
    pub clock: Signal<In, Clock>,
    /// Forgets everything, within 2^LQ cycles.
    pub reset: Signal<In, Bit>,
    /// A new request may be picked: the counts are clear, and there is a place should it have to wait. Without one nothing but `m` is: it makes room.
    pub room: Signal<Out, Bit>,
    /// A request of this queue pair is picked; from the next cycle on it is `rx` with `check`, until it `passes` or `takes` says that it waits here.
    pub pick: Signal<In, Bit>,
    pub pick_qpn: Signal<In, Bits<24>>,
    pub check: Signal<In, Bit>,
    pub rx: Signal<In, RxRequest>,
    /// It came from `m`.
    pub again: Signal<In, Bit>,
    pub passes: Signal<Out, Bit>,
    pub takes: Signal<Out, Bit>,
    /// With `passes`: an atomic, which is not over before `over` has said so.
    pub counts: Signal<Out, Bit>,
    /// Requests whose time has come.
    pub m: MsgSrc<RxRequest>,
    /// From `roce/reply`: so many atomics of queue pair `over_qpn` have been executed, or will never be, modulo 512.
    pub over: Signal<In, Bit>,
    pub over_qpn: Signal<In, Bits<24>>,
    pub over_count: Signal<In, Bits<9>>,
    /// The requests that wait, in a ring. Whoever is at its head has been read: a plain memory without the output stages of a FIFO, since nobody is in a hurry here.
    queue: RamApart<RxRequest, LP>,
    tail: DFF<Bits<LP>>,
    first: DFF<Bits<LP>>,
    count: DFF<Bits<8>>,
    full: DFF<Bit>,
    /// `head` is one.
    there: DFF<Bit>,
    /// So many wait when the last place is taken.
    #[init(Constant::new(((1u64 << LP) - 1).to_bits()))]
    last: Constant<Bits<8>>,
    seen: Ram<Seen, LQ>,
    ended: Ram<Bits<9>, LQ>,
    /// The counts at the outputs are those of the request under `check`, of the head of the queue.
    for_next: DFF<Bit>,
    for_head: DFF<Bit>,
    /// The time of the head has come.
    due: DFF<Bit>,
    sweeping: DFF<Bit>,
    sweep: DFF<Bits<LQ>>,
    head: Signal<Local, RxRequest>,
    head_low: Signal<Local, Bits<5>>,
    head_qpn: Signal<Local, Bits<24>>,
    head_free: Signal<Local, Bit>,
    pop: Signal<Local, Bit>,
    qpn: Signal<Local, Bits<24>>,
    excess: Signal<Local, Bits<24>>,
    head_opcode: Signal<Local, Bits<8>>,
    opcode: Signal<Local, Bits<8>>,
    low: Signal<Local, Bits<5>>,
    atomic: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
    /// Atomics of the queue pair are under way.
    open: Signal<Local, Bit>,
    blocked: Signal<Local, Bit>,
    known: Signal<Local, Bit>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LQ)).to_bits()))]
    outside: Constant<Bits<24>>,
}

#[kernel]
impl<const LQ: usize, const LP: usize> Logic for Park<LQ, LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, for_next, for_head, due, sweeping, sweep, tail, first, count, full, there);
        clock!(self, clock, queue, seen, ended);
        self.room.next = !self.full.q.val() & !self.sweeping.q.val();

        // Whose counts are read: those of whoever is looked at in the next cycle.
        self.head.next = self.queue.read_data.val();
        self.head_opcode.next = self.head.val().opcode;
        self.head_low.next = self.head_opcode.val().get_bits::<5>(0);
        self.head_qpn.next = self.head.val().dest_qpn;
        self.qpn.next = self.rx.val().dest_qpn;
        self.m.data.next = self.head.val();
        // It stays at the head from the cycle in which it was seen there.
        self.m.valid.next = self.due.q.val();
        self.pop.next = self.m.valid.val() & self.m.ready.val();
        self.seen.read_addr.next = self.head_qpn.val().get_bits::<LQ>(0);
        self.for_head.d.next = self.there.q.val() & !self.pop.val();
        self.for_next.d.next = false;
        if self.check.val() {
            self.seen.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
            self.for_head.d.next = false;
            self.for_next.d.next = true;
        }
        if self.pick.val() {
            self.seen.read_addr.next = self.pick_qpn.val().get_bits::<LQ>(0);
            self.for_head.d.next = false;
            self.for_next.d.next = true;
        }
        self.ended.read_addr.next = self.seen.read_addr.val();
        self.open.next = self.seen.read_data.val().passed != self.ended.read_data.val();

        // The head: READs (12) and atomics (19 and 20) are kept in order by `roce/reply`.
        self.head_free.next = (self.head_low.val() == opcode::READ_REQUEST) | (self.head_low.val() == opcode::COMPARE_SWAP) | (self.head_low.val() == opcode::FETCH_ADD);
        if self.for_head.q.val() & (self.head_free.val() | !self.open.val()) {
            self.due.d.next = true;
        }
        if self.pop.val() {
            self.due.d.next = false;
        }

        // The request that has been picked.
        self.opcode.next = self.rx.val().opcode;
        self.low.next = self.opcode.val().get_bits::<5>(0);
        self.atomic.next = ((self.low.val() == opcode::COMPARE_SWAP) | (self.low.val() == opcode::FETCH_ADD)) & !self.rx.val().raw;
        self.free.next = self.atomic.val() | (self.low.val() == opcode::READ_REQUEST);
        self.excess.next = self.qpn.val() & self.outside.val();
        self.blocked.next = !self.again.val() & !self.rx.val().raw & (self.seen.read_data.val().waiting.any() | (self.open.val() & !self.free.val()));
        self.known.next = self.check.val() & self.for_next.q.val();
        self.passes.next = self.known.val() & !self.blocked.val();
        self.takes.next = self.known.val() & self.blocked.val();
        self.counts.next = self.passes.val() & self.atomic.val() & !self.excess.val().any();

        // The ring. None is taken and leaves at once: one is picked or looked at.
        self.queue.write_data.next = self.rx.val();
        self.queue.write_addr.next = self.tail.q.val();
        self.queue.write_en.next = self.takes.val();
        self.queue.read_addr.next = self.first.q.val();
        self.there.d.next = self.count.q.val().any();
        if self.takes.val() {
            self.tail.d.next = self.tail.q.val() + 1;
            self.count.d.next = self.count.q.val() + 1;
            self.full.d.next = self.count.q.val() == self.last.val();
        }
        if self.pop.val() {
            self.queue.read_addr.next = self.first.q.val() + 1;
            self.first.d.next = self.first.q.val() + 1;
            self.count.d.next = self.count.q.val() - 1;
            self.there.d.next = self.count.q.val() != 1;
            self.full.d.next = false;
        }

        // The counts.
        self.seen.write_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.seen.write_data.next = self.seen.read_data.val();
        if self.counts.val() {
            self.seen.write_data.next.passed = self.seen.read_data.val().passed + 1;
        }
        if self.takes.val() {
            self.seen.write_data.next.waiting = self.seen.read_data.val().waiting + 1;
        }
        if self.again.val() {
            self.seen.write_data.next.waiting = self.seen.read_data.val().waiting - 1;
        }
        self.seen.write_en.next = self.counts.val() | self.takes.val() | (self.passes.val() & self.again.val());
        self.ended.write_addr.next = self.over_qpn.val().get_bits::<LQ>(0);
        self.ended.write_data.next = self.over_count.val();
        self.ended.write_en.next = self.over.val();
        if self.sweeping.q.val() {
            self.seen.write_addr.next = self.sweep.q.val();
            self.seen.write_data.next.passed = bits::<9>(0);
            self.seen.write_data.next.waiting = bits::<8>(0);
            self.seen.write_en.next = true;
            self.ended.write_addr.next = self.sweep.q.val();
            self.ended.write_data.next = bits::<9>(0);
            self.ended.write_en.next = true;
            self.sweep.d.next = self.sweep.q.val() + 1;
            self.sweeping.d.next = !self.sweep.q.val().all();
        }
        if self.reset.val() {
            self.due.d.next = false;
            self.sweeping.d.next = true;
            self.sweep.d.next = bits::<LQ>(0);
            self.tail.d.next = bits::<LP>(0);
            self.first.d.next = bits::<LP>(0);
            self.count.d.next = bits::<8>(0);
            self.full.d.next = false;
            self.there.d.next = false;
        }
    }
}
