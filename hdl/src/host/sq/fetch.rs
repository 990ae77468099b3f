//! Burst fetch and offer: buffers for the scheduler's jobs, the read, and the requests in order to the requester.

use super::{job_kind, SqJob};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{RdCmd, SqWqe, WqeFree};
use crate::prim::arb::BinToOneHot;
use crate::prim::ram::RamAsync;
use crate::prim::sum::Sum;
use crate::stream::{Backlog, Fence, MsgFifo};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Below this level `reads` has room: for one command, and for one that is not counted yet.
const READS: u64 = 3;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Run,
    Put,
}

/// A request on its way: offered when its buffer is filled, in the order of the scheduler's decisions.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Pending {
    qpn: Bits<24>,
    index: Bits<16>,
    epoch: Bits<8>,
    function: Bits<12>,
    handle: Bits<8>,
    flush: Bit,
}

/// Turns jobs into reads and offers. `2^LB` buffers.
#[derive(LogicBlock, Default)]
pub(super) struct SqFetch<const LB: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_job: MsgSink<SqJob>,
    pub s_buffer: MsgSink<WqeFree>,
    pub m_rd: MsgSrc<RdCmd>,
    pub m_wqe: MsgSrc<SqWqe>,
    pub map_we: Signal<Out, Bit>,
    pub map_addr: Signal<Out, Bits<9>>,
    pub map_handle: Signal<Out, Bits<LB>>,
    pub open_en: Signal<Out, Bit>,
    pub open_done: Signal<Out, Bit>,
    pub put_en: Signal<Out, Bit>,
    pub put_handle: Signal<Out, Bits<LB>>,
    /// Where the request is that goes into it.
    pub put_place: Signal<Out, Bits<4>>,
    pub put_ready: Signal<In, Bit>,
    pub tag_done: Signal<In, Bit>,
    pub tag: Signal<In, Bits<6>>,
    pub head_addr: Signal<Out, Bits<LB>>,
    /// Of buffer `head_addr`.
    pub done: Signal<In, Bit>,
    pub err: Signal<In, Bit>,
    pub head: Signal<In, Bits<256>>,
    pub sge: Signal<In, Bits<128>>,
    pub more: Signal<In, Bits<128>>,
    /// Pulses for statistics.
    pub issued: Signal<Out, Bit>,
    pub flushed: Signal<Out, Bit>,
    pub offered: Signal<Out, Bit>,
    /// Whose job it is, and whose the fetch of the last cycle's `tag` was: its number gets a new owner in this cycle at the earliest, which shows in the next.
    pub job_function: Signal<Out, Bits<12>>,
    pub tag_function: Signal<Out, Bits<12>>,
    owners: RamAsync<Bits<12>, 6>,
    tag_now: DFF<Bits<6>>,
    /// Pulse: a job came to the queue in front of `s_job`.
    pub job_came: Signal<In, Bit>,
    /// Pulse in; pulse out when all reads of jobs that had come have left `m_rd`.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    state: DFF<State>,
    job: DFF<SqJob>,
    left: DFF<Bits<4>>,
    nth: DFF<Bits<3>>,
    index: DFF<Bits<16>>,
    iova: DFF<Bits<64>>,
    place: Sum<64>,
    buffer: DFF<Bits<8>>,
    fetch_no: DFF<Bits<6>>,
    busy: DFF<Bits<64>>,
    busy_set: BinToOneHot<64, 6>,
    busy_clear: BinToOneHot<64, 6>,
    reads: MsgFifo<RdCmd, 2>,
    /// Commands in `reads`.
    backlog: Backlog<3>,
    jobs: Fence<5>,
    asked: Fence<3>,
    order: MsgFifo<Pending, LB>,
    offers: MsgFifo<SqWqe, 3>,
    stride: Signal<Local, Bits<2>>,
    is_fetch: Signal<Local, Bit>,
    is_wqe: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    finish: Signal<Local, Bit>,
    offset: Signal<Local, Bits<24>>,
    offer_handle: Signal<Local, Bits<8>>,
    offer: Signal<Local, Bit>,
}

#[kernel]
impl<const LB: usize> Logic for SqFetch<LB> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, job, left, nth, index, iova, buffer, fetch_no, busy, tag_now);
        clock!(self, clock, owners, reads, backlog, order, offers, jobs, asked);
        self.jobs.reset.next = self.reset.val();
        self.asked.reset.next = self.reset.val();
        self.jobs.start.next = self.fence.val();
        self.asked.start.next = self.jobs.passed.val();
        self.passed.next = self.asked.passed.val();
        self.reads.reset.next = self.reset.val();
        self.backlog.reset.next = self.reset.val();
        self.order.reset.next = self.reset.val();
        self.offers.reset.next = self.reset.val();
        MsgSrc::<RdCmd>::link(&mut self.m_rd, &mut self.reads.m);
        MsgSrc::<SqWqe>::link(&mut self.m_wqe, &mut self.offers.m);

        self.is_fetch.next = self.job.q.val().kind == job_kind::FETCH;
        self.is_wqe.next = self.job.q.val().kind == job_kind::DIRECT;
        self.stride.next = self.job.q.val().stride;
        self.offset.next = self.s_job.data.val().offset;
        self.place.a.next = self.s_job.data.val().base;
        self.place.b.next = bit_cast::<64, 24>(self.offset.val());
        self.take.next = (self.state.q.val() == State::Run) & self.s_buffer.valid.val();
        self.finish.next = self.take.val() & (self.left.q.val() == 1);
        self.s_job.ready.next = false;
        self.s_buffer.ready.next = self.state.q.val() == State::Run;
        self.put_en.next = false;
        self.put_handle.next = bit_cast::<LB, 8>(self.buffer.q.val());
        self.put_place.next = self.job.q.val().place;
        match self.state.q.val() {
            State::Idle => {
                self.job.d.next = self.s_job.data.val();
                self.left.d.next = self.s_job.data.val().count;
                self.nth.d.next = bits::<3>(0);
                self.index.d.next = self.s_job.data.val().index;
                self.iova.d.next = self.place.y.val();
                // A fetch number is used again only after its last row; the read FIFO has room for one command, and for one that is not counted yet.
                if !self.busy.q.val().get_bit(self.fetch_no.q.val().index()) & (self.backlog.count.val() < READS) {
                    self.s_job.ready.next = true;
                    if self.s_job.valid.val() {
                        self.state.d.next = State::Run;
                    }
                }
            }
            State::Run => {
                self.buffer.d.next = self.s_buffer.data.val().handle;
                if self.take.val() {
                    self.left.d.next = self.left.q.val() - 1;
                    self.nth.d.next = self.nth.q.val() + 1;
                    self.index.d.next = self.index.q.val() + 1;
                }
                if self.finish.val() {
                    self.state.d.next = State::Idle;
                    if self.is_wqe.val() {
                        self.state.d.next = State::Put;
                    }
                }
            }
            State::Put => {
                self.put_en.next = true;
                if self.put_ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }

        // One buffer per cycle.
        self.map_we.next = self.take.val();
        self.map_addr.next = (bit_cast::<9, 6>(self.fetch_no.q.val()) << 3) | bit_cast::<9, 3>(self.nth.q.val());
        self.map_handle.next = bit_cast::<LB, 8>(self.s_buffer.data.val().handle);
        self.open_en.next = self.take.val();
        self.open_done.next = self.job.q.val().kind == job_kind::FLUSH;
        self.order.s.valid.next = self.take.val();
        self.order.s.data.next.qpn = self.job.q.val().qpn;
        self.order.s.data.next.index = self.index.q.val();
        self.order.s.data.next.epoch = self.job.q.val().epoch;
        self.order.s.data.next.function = self.job.q.val().function;
        self.order.s.data.next.handle = self.s_buffer.data.val().handle;
        self.order.s.data.next.flush = self.job.q.val().kind == job_kind::FLUSH;

        // The read goes out with the last buffer.
        self.job_function.next = self.job.q.val().function;
        self.owners.write_addr.next = self.fetch_no.q.val();
        self.owners.write_data.next = self.job.q.val().function;
        self.owners.write_en.next = self.finish.val() & self.is_fetch.val();
        self.tag_now.d.next = self.tag.val();
        self.owners.read_addr.next = self.tag_now.q.val();
        self.tag_function.next = self.owners.read_data.val();
        self.issued.next = self.finish.val() & self.is_fetch.val();
        self.flushed.next = self.take.val() & (self.job.q.val().kind == job_kind::FLUSH);
        self.reads.s.valid.next = self.finish.val() & self.is_fetch.val();
        self.jobs.came.next = self.job_came.val();
        self.jobs.went.next = self.finish.val();
        self.asked.came.next = self.finish.val() & self.is_fetch.val();
        self.asked.went.next = self.m_rd.valid.val() & self.m_rd.ready.val();
        self.backlog.came.next = self.finish.val() & self.is_fetch.val();
        self.backlog.went.next = self.m_rd.valid.val() & self.m_rd.ready.val();
        self.reads.s.data.next.iova = self.iova.q.val();
        self.reads.s.data.next.function = self.job.q.val().function;
        self.reads.s.data.next.rows = self.job.q.val().count << self.stride.val();
        self.reads.s.data.next.tag = bit_cast::<8, 6>(self.fetch_no.q.val()) | (bit_cast::<8, 2>(self.stride.val()) << 6);
        self.busy_set.x.next = self.fetch_no.q.val();
        self.busy_set.en.next = self.finish.val() & self.is_fetch.val();
        self.busy_clear.x.next = self.tag.val();
        self.busy_clear.en.next = self.tag_done.val();
        self.busy.d.next = (self.busy.q.val() & !self.busy_clear.y.val()) | self.busy_set.y.val();
        if self.finish.val() & self.is_fetch.val() {
            self.fetch_no.d.next = self.fetch_no.q.val() + 1;
        }

        // Offers.
        self.offer_handle.next = self.order.m.data.val().handle;
        self.offer.next = self.order.m.valid.val() & self.done.val() & self.offers.s.ready.val();
        self.order.m.ready.next = self.offer.val();
        self.head_addr.next = bit_cast::<LB, 8>(self.offer_handle.val());
        self.offered.next = self.offer.val();
        self.offers.s.valid.next = self.offer.val();
        self.offers.s.data.next.qpn = self.order.m.data.val().qpn;
        self.offers.s.data.next.index = self.order.m.data.val().index;
        self.offers.s.data.next.epoch = self.order.m.data.val().epoch;
        self.offers.s.data.next.function = self.order.m.data.val().function;
        self.offers.s.data.next.handle = self.order.m.data.val().handle;
        self.offers.s.data.next.flush = self.order.m.data.val().flush;
        self.offers.s.data.next.err = self.err.val();
        self.offers.s.data.next.head = self.head.val();
        self.offers.s.data.next.sge = self.sge.val();
        self.offers.s.data.next.more = self.more.val();

        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.busy.d.next = bits::<64>(0);
        }
    }
}
