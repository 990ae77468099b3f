//! Ring table of the receive queues: what goes into the pipeline over the table and what comes out of it. See README.md.

mod act;

use super::{RqFault, RqJob, BUFFERS, STATS};
use crate::bus::{MsgSink, MsgSrc};
use crate::host::table::posted::PostedLook;
use crate::host::table::{TablePipe, ROOM_OF_16};
use crate::msg::{CtlReq, CtlResp, DoorbellMsg, EqeReq, RqAlloc, RqCmd, RqFlush};
use crate::prim::pack::Gather;
use crate::prim::ram::Ram;
use crate::records::RingCtx;
use crate::stream::{MsgFifo, MsgSlice};
use act::RqAct;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// With so few buffers left, one allocation at a time: there may be three in the pipeline.
const FEW: u64 = 3;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Kind {
    Doorbell,
    Alloc,
    /// The request is fetched once more.
    Again,
    Cmd,
    /// The head of the active list: a slot to be flushed, or a shared receive queue whose words have been changed.
    Turn,
    Fault,
}

/// One operation in the pipeline. `index`: new producer of a doorbell; slot that is fetched once more.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Op {
    kind: Kind,
    function: Bits<12>,
    index: Bits<16>,
}

#[derive(LogicBlock, BlockDefault)]
pub(super) struct RqTable<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_db: MsgSink<DoorbellMsg>,
    pub s_alloc: MsgSink<RqAlloc>,
    pub s_cmd: MsgSink<RqCmd>,
    pub m_flush: MsgSrc<RqFlush>,
    pub m_event: MsgSrc<EqeReq>,
    pub s_fault: MsgSink<RqFault>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    pub m_job: MsgSrc<RqJob>,
    /// A buffer came back.
    pub freed: Signal<In, Bit>,
    /// Buffers that are filled; the number of the copy in request `victim`.
    pub filled: Signal<In, Bits<64>>,
    pub victim: Signal<Out, Bits<6>>,
    pub copy: Signal<In, Bits<16>>,
    /// Bad doorbell, doorbell beyond the ring, nothing posted, fetched once more, slot flushed, limit reached, shared queue in error.
    pub stat: Signal<Out, Bits<7>>,
    /// Who rang, or else whose ring it is.
    pub stat_function: Signal<Out, Bits<12>>,
    db: MsgSlice<DoorbellMsg>,
    alloc: MsgSlice<RqAlloc>,
    cmd: MsgSlice<RqCmd>,
    fault: MsgSlice<RqFault>,
    active: MsgFifo<Bits<LQ>, LQ>,
    flushes: MsgFifo<RqFlush, 4>,
    jobs: MsgFifo<RqJob, 4>,
    events: MsgFifo<EqeReq, 4>,
    ready: Gather<5>,
    pipe: TablePipe<Op, RingCtx, LQ, 5, 6>,
    look: PostedLook,
    act: RqAct,
    keep_active: DFF<Bit>,
    buffers: DFF<Bits<7>>,
    /// Per queue pair: where the request that was taken away from it stands once more, of a shared receive queue.
    copies: Ram<Bits<16>, LQ>,
    /// The allocation at the head was there in the last cycle.
    settled: DFF<Bit>,
    #[init(Constant::new(BUFFERS.to_bits()))]
    all_buffers: Constant<Bits<7>>,
    /// Number of the first shared receive queue's ring.
    #[init(Constant::new((1u64 << (LQ - 1)).to_bits()))]
    first_shared: Constant<Bits<24>>,
    source: Signal<Local, Op>,
    act_id: Signal<Local, Bits<24>>,
    room: Signal<Local, Bit>,
    flush_room: Signal<Local, Bit>,
    event_room: Signal<Local, Bit>,
    changed: Signal<Local, Bit>,
    allocs_ahead: Signal<Local, Bit>,
    buffer_ok: Signal<Local, Bit>,
    ripe: Signal<Local, Bit>,
    theirs: Signal<Local, Bits<24>>,
    robbed: Signal<Local, Bits<24>>,
    asker: Signal<Local, Bits<24>>,
    gone: Signal<Local, Bits<6>>,
    back: Signal<Local, Bits<7>>,
    ctl_row: Signal<Local, RingCtx>,
}

#[kernel]
impl<const LQ: usize> Logic for RqTable<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, keep_active, buffers, settled);
        clock!(self, clock, db, alloc, cmd, fault, active, flushes, jobs, events, pipe, look, copies);
        self.db.reset.next = self.reset.val();
        self.alloc.reset.next = self.reset.val();
        self.cmd.reset.next = self.reset.val();
        self.active.reset.next = self.reset.val();
        self.flushes.reset.next = self.reset.val();
        self.pipe.reset.next = self.reset.val();
        self.jobs.reset.next = self.reset.val();
        self.fault.reset.next = self.reset.val();
        self.events.reset.next = self.reset.val();
        MsgSrc::<EqeReq>::link(&mut self.m_event, &mut self.events.m);
        MsgSink::<RqFault>::link(&mut self.s_fault, &mut self.fault.s);
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.db.s);
        MsgSink::<RqAlloc>::link(&mut self.s_alloc, &mut self.alloc.s);
        MsgSink::<RqCmd>::link(&mut self.s_cmd, &mut self.cmd.s);
        MsgSrc::<RqFlush>::link(&mut self.m_flush, &mut self.flushes.m);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.pipe.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.pipe.m_ctl);
        MsgSrc::<RqJob>::link(&mut self.m_job, &mut self.jobs.m);

        // ---- The sources: doorbells (0), allocations (1), flush commands (2), the head of the active list (3), failed fetches (4) ----
        self.source.next.kind = Kind::Doorbell;
        self.source.next.function = self.db.m.data.val().function;
        self.source.next.index = self.db.m.data.val().index;
        self.pipe.op[0].next = self.source.val();
        self.pipe.id[0].next = self.db.m.data.val().id;
        self.source.next.function = bits::<12>(0);
        self.source.next.index = bits::<16>(0);
        self.source.next.kind = Kind::Alloc;
        self.theirs.next = self.alloc.m.data.val().ring & self.first_shared.val();
        if self.alloc.m.data.val().again {
            self.source.next.kind = Kind::Again;
            // The slot of a shared ring may have been written anew: there is a copy.
            self.source.next.index = self.alloc.m.data.val().index;
            if self.theirs.val().any() {
                self.source.next.index = self.copies.read_data.val();
            }
        }
        self.pipe.op[1].next = self.source.val();
        self.source.next.index = bits::<16>(0);
        self.pipe.id[1].next = self.alloc.m.data.val().ring;
        self.source.next.kind = Kind::Cmd;
        self.pipe.op[2].next = self.source.val();
        self.pipe.id[2].next = self.cmd.m.data.val().qpn;
        self.source.next.kind = Kind::Turn;
        self.pipe.op[3].next = self.source.val();
        self.pipe.id[3].next = bit_cast::<24, LQ>(self.active.m.data.val());
        self.source.next.kind = Kind::Fault;
        self.pipe.op[4].next = self.source.val();
        self.pipe.id[4].next = self.fault.m.data.val().ring;
        // Up to four operations may be on their way to a FIFO of 16.
        self.room.next = self.jobs.level.val() < ROOM_OF_16;
        self.flush_room.next = self.flushes.level.val() < ROOM_OF_16;
        self.event_room.next = self.events.level.val() < ROOM_OF_16;
        // An allocation waits for a buffer. One comes: the responder leaves no more than some of them to messages in progress, and the orders that use the others
        // end. The last buffer must not be promised twice: with few left, one allocation at a time.
        self.allocs_ahead.next = (self.pipe.row_valid.val() & ((self.pipe.row_op.val().kind == Kind::Alloc) | (self.pipe.row_op.val().kind == Kind::Again)))
            | (self.pipe.look_valid.val() & ((self.pipe.look_op.val().kind == Kind::Alloc) | (self.pipe.look_op.val().kind == Kind::Again)))
            | (self.pipe.act_valid.val() & ((self.pipe.act_op.val().kind == Kind::Alloc) | (self.pipe.act_op.val().kind == Kind::Again)));
        self.buffer_ok.next = (self.buffers.q.val() > FEW) | (self.buffers.q.val().any() & !self.allocs_ahead.val());
        // A buffer that is taken away says where its request has a copy, once it is there; it is opened anew behind this allocation at the earliest.
        self.settled.d.next = self.alloc.m.valid.val() & !self.pipe.grant.val().get_bit(1);
        self.robbed.next = self.alloc.m.data.val().loser;
        self.asker.next = self.alloc.m.data.val().qpn;
        self.gone.next = self.alloc.m.data.val().victim;
        self.victim.next = self.gone.val();
        self.ripe.next = (!self.alloc.m.data.val().again | self.settled.q.val()) & (!self.alloc.m.data.val().taken | self.filled.val().get_bit(self.gone.val().index()));
        self.copies.read_addr.next = self.asker.val().get_bits::<LQ>(0);
        self.copies.write_addr.next = self.robbed.val().get_bits::<LQ>(0);
        self.copies.write_data.next = self.copy.val();
        self.copies.write_en.next = self.alloc.m.data.val().taken & self.pipe.grant.val().get_bit(1);
        self.ready.x[0].next = self.db.m.valid.val();
        self.ready.x[1].next = self.alloc.m.valid.val() & self.room.val() & self.event_room.val() & self.buffer_ok.val() & self.ripe.val();
        self.ready.x[2].next = self.cmd.m.valid.val();
        self.ready.x[3].next = self.active.m.valid.val() & self.flush_room.val() & self.event_room.val();
        self.ready.x[4].next = self.fault.m.valid.val() & self.event_room.val();
        self.pipe.req.next = self.ready.y.val();
        self.db.m.ready.next = self.pipe.grant.val().get_bit(0);
        self.alloc.m.ready.next = self.pipe.grant.val().get_bit(1);
        self.cmd.m.ready.next = self.pipe.grant.val().get_bit(2);
        self.active.m.ready.next = self.pipe.grant.val().get_bit(3);
        self.fault.m.ready.next = self.pipe.grant.val().get_bit(4);

        // ---- Look ----
        self.look.asker.next = self.pipe.look_op.val().function;
        self.look.index.next = self.pipe.look_op.val().index;
        self.look.again.next = self.pipe.look_op.val().kind == Kind::Again;
        self.look.row.next = self.pipe.look_row.val();
        self.look.inside.next = self.pipe.look_inside.val();

        // ---- Act ----
        self.act_id.next = self.pipe.act_id.val();
        self.act.valid.next = self.pipe.act_valid.val();
        self.act.op.next = self.pipe.act_op.val();
        self.act.id.next = self.act_id.val();
        self.act.row.next = self.pipe.act_row.val();
        self.act.facts.next = self.look.facts.val();
        self.pipe.write.next = self.act.write.val();
        self.pipe.new_row.next = self.act.new_row.val();
        self.events.s.data.next.eqn = self.act.eqn.val();
        self.events.s.data.next.kind = self.act.news.val();
        self.events.s.data.next.id = self.act_id.val() ^ self.first_shared.val();
        self.events.s.data.next.cause = bits::<16>(0);
        self.events.s.valid.next = self.act.tells.val();
        self.flushes.s.data.next = self.act.flush.val();
        self.flushes.s.valid.next = self.act.flushes.val();
        self.jobs.s.data.next = self.act.job.val();
        self.jobs.s.valid.next = self.act.issue.val();
        self.stat.next = self.act.stat.val();
        self.stat_function.next = self.act.whose.val();
        self.back.next = bits::<7>(0);
        if self.freed.val() {
            self.back.next = bits::<7>(1);
        }
        self.buffers.d.next = self.buffers.q.val() + self.back.val() - self.act.used.val();

        // A control write keeps `active`, which belongs to the list. A shared receive queue gets a turn when one of its words has been
        // written: its limit may be above what is left. The pipeline is empty then, so the list is not written by Act.
        if self.pipe.ctl_look.val() {
            self.keep_active.d.next = self.pipe.look_row.val().active;
        }
        self.ctl_row.next = self.pipe.ctl_row.val();
        self.changed.next = self.pipe.ctl_write.val() & self.ctl_row.val().shared & self.ctl_row.val().valid & !self.keep_active.q.val();
        self.ctl_row.next.active = self.keep_active.q.val() | self.changed.val();
        self.pipe.ctl_new_row.next = self.ctl_row.val();
        self.active.s.data.next = self.act_id.val().get_bits::<LQ>(0);
        if self.changed.val() {
            self.active.s.data.next = self.pipe.ctl_line.val();
        }
        self.active.s.valid.next = self.act.enlist.val() | self.changed.val();

        if self.reset.val() {
            self.buffers.d.next = self.all_buffers.val();
        }
    }
}
