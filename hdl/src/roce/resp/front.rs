//! What the responder does next: picks jobs and fetches their lines while the one before is in hand.
use super::decode::{OpDecode, OpKind};
use super::park::Park;
use crate::bus::MsgSink;
use crate::context::bus::CtxClient;
use crate::context::pair::LinePair;
use crate::msg::{QpError, RqFlush, RxRequest};
use crate::records::RspCtx;
use crate::stream::{MsgFifo, MsgSlice};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Of `links`: the packet that takes the line then is the last to go on with it.
const LAST_LINK: u64 = 6;

/// Why the responder works on a line.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Job {
    Packet,
    /// Queue pair error found by the placement chain.
    PlaceError,
    /// Queue pair error found by the requester.
    PeerError,
    Flush,
    Barrier,
}

/// The next job, its line fetched through one of two clients of the context store in turn, so that the line of the job before
/// may still be in hand. `LQ`: log2 of the number of queue pairs (depth of the error queues), `LP`: log2 of the requests that may wait for atomics.
#[derive(LogicBlock, Default)]
pub struct Front<const LQ: usize, const LP: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_rx: MsgSink<RxRequest>,
    pub s_flush: MsgSink<RqFlush>,
    pub s_error: [MsgSink<QpError>; 2],
    pub barrier: Signal<In, Bit>,
    /// See `park.rs`.
    pub over: Signal<In, Bit>,
    pub over_qpn: Signal<In, Bits<24>>,
    pub over_count: Signal<In, Bits<9>>,
    pub raw_qpn: Signal<In, Bits<32>>,
    pub ctx: [CtxClient<RspCtx>; 2],
    /// The next job is wanted; it is there, with its line: both high, it is in hand in the next cycle.
    pub want: Signal<In, Bit>,
    pub valid: Signal<Out, Bit>,
    pub next_job: Signal<Out, Job>,
    pub next_raw: Signal<Out, Bit>,
    pub next_id: Signal<Out, Bits<24>>,
    /// `has_line`: a line was asked for and there is one.
    pub line: Signal<Out, RspCtx>,
    pub has_line: Signal<Out, Bit>,
    /// The job in hand.
    pub job: Signal<Out, Job>,
    pub id: Signal<Out, Bits<24>>,
    pub rx: Signal<Out, RxRequest>,
    pub kind: Signal<Out, OpKind>,
    /// It is an atomic, and waited for until `over`.
    pub counted: Signal<Out, Bit>,
    pub place_error: Signal<Out, QpError>,
    pub flush: Signal<Out, RqFlush>,
    /// With `valid`: the next packet is of the queue pair in hand and goes on with its line, `line` means nothing.
    pub chain: Signal<Out, Bit>,
    /// Pulse: the job in hand, not a packet, is done.
    pub finish: Signal<In, Bit>,
    /// Pulse, not while `giving`: the line in hand goes back as `after`, unless `chain` keeps it.
    pub give: Signal<In, Bit>,
    pub dirty: Signal<In, Bit>,
    pub after: Signal<In, RspCtx>,
    pub giving: Signal<Out, Bit>,
    flushes: MsgSlice<RqFlush>,
    errors: [MsgFifo<QpError, LQ>; 2],
    decode: OpDecode,
    park: Park<LQ, LP>,
    lines: LinePair<RspCtx>,
    /// The next job.
    some: DFF<Bit>,
    job_next: DFF<Job>,
    id_next: DFF<Bits<24>>,
    rx_next: DFF<RxRequest>,
    needs: DFF<Bit>,
    /// It is a packet of the queue pair that was in hand when it was picked; that stays in hand until it is taken.
    same: DFF<Bit>,
    asking: DFF<Bit>,
    /// `asking`, and it needs a line: in one bit, since the store's choice behind it takes most of a cycle.
    wish: DFF<Bit>,
    /// Its line has been asked for, and it waits for atomics: see `LinePair`.
    vain: DFF<Bit>,
    /// It is a packet that may have to wait for atomics in front of it; it has waited; it may go on, and is one of these.
    check: DFF<Bit>,
    again: DFF<Bit>,
    counts: DFF<Bit>,
    ripe: DFF<Bit>,
    /// The one in hand; `holds`: with its line, for `links` packets in a row, and one more may go on with it.
    holds: DFF<Bit>,
    links: DFF<Bits<3>>,
    job_now: DFF<Job>,
    id_now: DFF<Bits<24>>,
    rx_now: DFF<RxRequest>,
    kind_now: DFF<OpKind>,
    counted_now: DFF<Bit>,
    client_now: DFF<Bit>,
    /// It is not a packet: nothing else is begun.
    alone: DFF<Bit>,
    barrier_due: DFF<Bit>,
    /// Packets that go before the next flush; none was there in the last cycle.
    due: DFF<Bits<3>>,
    idle: DFF<Bit>,
    /// In the last cycle there was nothing but packets: one may be picked, and nothing else is. A register, because `s_rx.ready` is not to follow all of what may be picked.
    quiet: DFF<Bit>,
    back: DFF<RspCtx>,
    back_id: DFF<Bits<24>>,
    back_client: DFF<Bit>,
    back_dirty: DFF<Bit>,
    back_busy: DFF<Bit>,
    free: Signal<Local, Bit>,
    /// The packet that is picked.
    came: Signal<Local, RxRequest>,
    picks: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    /// Something is picked, if there is nothing yet.
    begins: Signal<Local, Bit>,
    other: Signal<Local, Bit>,
    flushes_now: Signal<Local, Bit>,
    raw: Signal<Local, Bit>,
    raw_ok: Signal<Local, Bit>,
    there: Signal<Local, Bit>,
    mine: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize, const LP: usize> Logic for Front<LQ, LP> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, some, job_next, id_next, rx_next, needs, same, asking, check, again, counts, counted_now);
        dff_setup!(self, clock, wish, vain, quiet, ripe, holds, links, job_now, id_now, rx_now, kind_now, client_now);
        dff_setup!(self, clock, alone, barrier_due, due, idle, back, back_id, back_client, back_dirty, back_busy);
        clock!(self, clock, flushes, decode, park, lines);
        self.park.reset.next = self.reset.val();
        self.park.over.next = self.over.val();
        self.park.over_qpn.next = self.over_qpn.val();
        self.park.over_count.next = self.over_count.val();
        self.flushes.reset.next = self.reset.val();
        self.lines.reset.next = self.reset.val();
        MsgSink::<RqFlush>::link(&mut self.s_flush, &mut self.flushes.s);
        for i in 0..2 {
            self.errors[i].clock.next = self.clock.val();
            self.errors[i].reset.next = self.reset.val();
            self.errors[i].m.ready.next = false;
            MsgSink::<QpError>::link(&mut self.s_error[i], &mut self.errors[i].s);
        }
        self.flushes.m.ready.next = false;
        if self.barrier.val() {
            self.barrier_due.d.next = true;
        }

        // Picks.
        // A queue may have thousands of receives to flush: while packets come, seven of them go before each.
        self.idle.d.next = !self.s_rx.valid.val();
        self.flushes_now.next = self.flushes.m.valid.val() & (self.idle.q.val() | !self.due.q.val().any());
        self.other.next = self.barrier_due.q.val() | self.errors[0].m.valid.val() | self.errors[1].m.valid.val() | self.flushes_now.val();
        self.quiet.d.next = !self.barrier.val() & !self.other.val();
        self.free.next = !self.some.q.val() & !self.alone.q.val();
        // Those that have waited go first.
        self.came.next = self.s_rx.data.val();
        if self.park.m.valid.val() {
            self.came.next = self.park.m.data.val();
        }
        self.s_rx.ready.next = self.free.val() & self.quiet.q.val() & !self.park.m.valid.val() & self.park.room.val();
        self.park.m.ready.next = self.free.val() & self.quiet.q.val();
        self.picks.next = self.park.m.valid.val() | (self.s_rx.valid.val() & self.park.room.val());
        self.park.pick.next = self.free.val() & self.quiet.q.val() & self.picks.val();
        self.begins.next = self.other.val();
        if self.quiet.q.val() {
            self.begins.next = self.picks.val();
        }
        self.park.pick_qpn.next = self.came.val().dest_qpn;
        self.raw.next = self.came.val().raw;
        // The raw queue pair is the physical function's.
        self.raw_ok.next = self.raw_qpn.val().get_bit(31) & !self.came.val().function.any();
        if self.free.val() {
            self.rx_next.d.next = self.came.val();
            self.some.d.next = self.begins.val();
            self.asking.d.next = self.begins.val();
            self.wish.d.next = self.begins.val();
            self.check.d.next = self.quiet.q.val();
            self.again.d.next = self.park.m.valid.val();
            self.counts.d.next = false;
            self.needs.d.next = true;
            self.same.d.next = false;
            if self.quiet.q.val() {
                if self.s_rx.valid.val() & self.due.q.val().any() {
                    self.due.d.next = self.due.q.val() - 1;
                }
                self.job_next.d.next = Job::Packet;
                self.id_next.d.next = self.came.val().dest_qpn;
                self.same.d.next = self.came.val().dest_qpn == self.id_now.q.val();
                if self.raw.val() {
                    self.same.d.next = self.raw_qpn.val().get_bits::<24>(0) == self.id_now.q.val();
                    self.id_next.d.next = self.raw_qpn.val().get_bits::<24>(0);
                    self.needs.d.next = self.raw_ok.val();
                    self.wish.d.next = self.begins.val() & self.raw_ok.val();
                }
            } else if self.barrier_due.q.val() {
                self.job_next.d.next = Job::Barrier;
                self.needs.d.next = false;
                self.wish.d.next = false;
                self.barrier_due.d.next = self.barrier.val();
            } else if self.errors[0].m.valid.val() {
                self.job_next.d.next = Job::PlaceError;
                self.id_next.d.next = self.errors[0].m.data.val().qpn;
            } else if self.errors[1].m.valid.val() {
                self.job_next.d.next = Job::PeerError;
                self.id_next.d.next = self.errors[1].m.data.val().qpn;
            } else if self.flushes_now.val() {
                self.due.d.next = bits::<3>(7);
                self.job_next.d.next = Job::Flush;
                self.id_next.d.next = self.flushes.m.data.val().qpn;
            }
        }
        self.decode.opcode.next = self.rx_next.q.val().opcode;

        // Whoever must wait for an atomic in front of it is found in the cycle in which its line is asked for: too late for the store not to be asked, hence `vain`.
        self.park.rx.next = self.rx_next.q.val();
        self.park.check.next = self.some.q.val() & self.check.q.val();
        self.park.again.next = self.again.q.val();
        self.go.next = !self.check.q.val() | self.park.passes.val();
        if self.park.check.val() & self.park.passes.val() {
            self.check.d.next = false;
            self.counts.d.next = self.park.counts.val();
        }

        // Lines.
        self.there.next = self.some.q.val() & !self.asking.q.val();
        for i in 0..2 {
            CtxClient::<RspCtx>::link(&mut self.ctx[i], &mut self.lines.ctx[i]);
        }
        // The next packet may go on with the line in hand, so many times: the control bus wants it now and then.
        self.mine.next = self.holds.q.val() & self.same.q.val();
        self.ripe.d.next = self.some.q.val() & self.mine.val() & self.asking.q.val() & self.go.val();
        self.chain.next = self.ripe.q.val() & self.mine.val() & self.give.val() & self.want.val();
        self.lines.ask.next = self.wish.q.val() & !self.mine.val();
        self.vain.d.next = self.park.takes.val() & self.lines.ask.val() & self.lines.asked.val();
        self.lines.drop.next = self.vain.q.val();
        self.lines.id.next = self.id_next.q.val();
        if self.asking.q.val() & self.go.val() & ((self.lines.asked.val() & !self.mine.val()) | !self.needs.q.val()) {
            self.asking.d.next = false;
            self.wish.d.next = false;
        }
        self.lines.take.next = self.want.val() & self.there.val() & self.needs.q.val();
        self.line.next = self.lines.line.val();
        self.has_line.next = self.needs.q.val() & (!self.lines.fault.val() | self.chain.val());
        self.valid.next = (self.there.val() & (self.lines.valid.val() | !self.needs.q.val())) | self.chain.val();
        self.next_job.next = self.job_next.q.val();
        self.next_raw.next = self.rx_next.q.val().raw;
        self.next_id.next = self.id_next.q.val();
        self.job.next = self.job_now.q.val();
        self.id.next = self.id_now.q.val();
        self.rx.next = self.rx_now.q.val();
        self.kind.next = self.kind_now.q.val();
        self.counted.next = self.counted_now.q.val();
        self.place_error.next = self.errors[0].m.data.val();
        self.flush.next = self.flushes.m.data.val();
        if self.give.val() {
            self.holds.d.next = false;
        }
        if self.want.val() & self.valid.val() {
            self.some.d.next = false;
            self.alone.d.next = self.job_next.q.val() != Job::Packet;
            self.job_now.d.next = self.job_next.q.val();
            self.id_now.d.next = self.id_next.q.val();
            self.rx_now.d.next = self.rx_next.q.val();
            self.kind_now.d.next = self.decode.kind.val();
            self.counted_now.d.next = self.counts.q.val();
            self.holds.d.next = self.has_line.val() & (self.job_next.q.val() == Job::Packet);
            self.links.d.next = bits::<3>(0);
            if self.chain.val() {
                self.links.d.next = self.links.q.val() + 1;
                if self.links.q.val() == LAST_LINK {
                    self.holds.d.next = false;
                }
                self.asking.d.next = false;
                self.wish.d.next = false;
            } else {
                self.client_now.d.next = self.lines.client.val();
            }
        }
        if self.park.takes.val() {
            self.some.d.next = false;
            self.asking.d.next = false;
            self.wish.d.next = false;
        }
        // A finished job leaves its queue.
        if self.finish.val() {
            self.alone.d.next = false;
            match self.job_now.q.val() {
                Job::PlaceError => self.errors[0].m.ready.next = true,
                Job::PeerError => self.errors[1].m.ready.next = true,
                Job::Flush => self.flushes.m.ready.next = true,
                _ => {}
            }
        }

        // Back to the store, beside the next job.
        self.giving.next = self.back_busy.q.val();
        self.lines.give.next = self.back_busy.q.val();
        self.lines.give_client.next = self.back_client.q.val();
        self.lines.give_id.next = self.back_id.q.val();
        self.lines.dirty.next = self.back_dirty.q.val();
        self.lines.after.next = self.back.q.val();
        if self.lines.given.val() {
            self.back_busy.d.next = false;
        }
        if self.give.val() & !self.chain.val() {
            self.back.d.next = self.after.val();
            self.back_id.d.next = self.id_now.q.val();
            self.back_client.d.next = self.client_now.q.val();
            self.back_dirty.d.next = self.dirty.val();
            self.back_busy.d.next = true;
        }
        if self.reset.val() {
            self.some.d.next = false;
            self.asking.d.next = false;
            self.wish.d.next = false;
            self.vain.d.next = false;
            self.quiet.d.next = false;
            self.holds.d.next = false;
            self.alone.d.next = false;
            self.barrier_due.d.next = false;
            self.due.d.next = bits::<3>(0);
            self.back_busy.d.next = false;
        }
    }
}
