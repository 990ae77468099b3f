//! Ring table and scheduler: what goes into the pipeline over the table and what comes out of it. See README.md.
//!
//! An operation starts only when everything it may lead to has room.

mod act;
mod look;

use super::carried::Carried;
use super::merge::DoorbellMerge;
use super::SqJob;
use crate::bus::{MsgSink, MsgSrc};
use crate::host::table::posted::PostedLook;
use crate::host::table::{TablePipe, ROOM_OF_16};
use crate::msg::{CtlReq, CtlResp, DoorbellMsg, SqCmd, WqeDoorbell};
use crate::prim::pack::Gather;
use crate::records::RingCtx;
use crate::stream::{MsgFifo, MsgSlice};
use act::SqAct;
use ferric_hdl_derive::{kernel, BlockDefault};
use look::SqLook;
use rust_hdl::prelude::*;

/// Most requests that one fetch may take.
const BURST: u64 = 1 << LOG_BURST;
const LOG_BURST: usize = 3;

/// What an operation does. Cmd: `SqCmd`. Direct: doorbell whose request is kept for it. Turn: head of the active list.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Kind {
    Cmd,
    Doorbell,
    Direct,
    Turn,
}

/// One operation in the pipeline. `index`: new producer of a doorbell, new fetch index of a command. `place`: of the request that a doorbell carries.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Op {
    kind: Kind,
    function: Bits<12>,
    index: Bits<16>,
    epoch: Bits<8>,
    command: Bits<2>,
    place: Bits<4>,
}

/// What Look finds out for Act beside [`PostedFacts`](crate::host::table::posted::PostedFacts).
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Facts {
    /// producer != index of the operation.
    index_differs: Bit,
    /// Most requests one fetch may take now (a doorbell's own included), buffers aside.
    burst: Bits<4>,
    /// `burst` requests empty the queue.
    whole: Bit,
}

#[derive(LogicBlock, BlockDefault)]
pub(super) struct SqSched<const LQ: usize, const NB: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_db: MsgSink<DoorbellMsg>,
    pub s_wqe: MsgSink<WqeDoorbell>,
    pub s_cmd: [MsgSink<SqCmd>; 2],
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    pub m_job: MsgSrc<SqJob>,
    /// Pulse: a job goes into the queue in front of `m_job`.
    pub issued: Signal<Out, Bit>,
    /// A buffer came back.
    pub freed: Signal<In, Bit>,
    /// The request that a doorbell left at `wqe_place`, until `wqe_taken`.
    pub wqe_place: Signal<In, Bits<4>>,
    pub wqe_data: Signal<Out, Bits<512>>,
    pub wqe_taken: Signal<In, Bit>,
    /// Bit 0: bad doorbell, 1: doorbell beyond the ring.
    pub stat: Signal<Out, Bits<2>>,
    /// Who rang.
    pub stat_function: Signal<Out, Bits<12>>,
    both: MsgSlice<SqCmd>,
    /// Port 1 has its turn.
    second: DFF<Bit>,
    db: DoorbellMerge,
    carried: Carried,
    active: MsgFifo<Bits<LQ>, LQ>,
    jobs: MsgFifo<SqJob, 4>,
    ready: Gather<4>,
    pipe: TablePipe<Op, RingCtx, LQ, 4, 5>,
    posted: PostedLook,
    look: SqLook,
    act: SqAct,
    keep_active: DFF<Bit>,
    buffers: DFF<Bits<9>>,
    /// A cycle ago there were enough for any fetch. Act takes no more than there are.
    plenty: DFF<Bit>,
    #[init(Constant::new((NB as u64).to_bits()))]
    all_buffers: Constant<Bits<9>>,
    cmd: Signal<Local, SqCmd>,
    cmd_op: Signal<Local, Op>,
    room: Signal<Local, Bit>,
    act_id: Signal<Local, Bits<24>>,
    back: Signal<Local, Bits<9>>,
    ctl_row: Signal<Local, RingCtx>,
}

#[kernel]
impl<const LQ: usize, const NB: usize> Logic for SqSched<LQ, NB> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, second, keep_active, buffers, plenty);
        clock!(self, clock, both, db, carried, active, jobs, pipe, posted, look);
        self.db.reset.next = self.reset.val();
        self.both.reset.next = self.reset.val();
        self.carried.reset.next = self.reset.val();
        self.active.reset.next = self.reset.val();
        self.jobs.reset.next = self.reset.val();
        self.pipe.reset.next = self.reset.val();
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.db.s);
        MsgSink::<WqeDoorbell>::link(&mut self.s_wqe, &mut self.carried.s);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.pipe.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.pipe.m_ctl);
        MsgSrc::<SqJob>::link(&mut self.m_job, &mut self.jobs.m);

        // ---- The sources: commands (0), doorbells (1), doorbells that carry their request (2), the head of the active list (3) ----
        // Both ports' commands wait in one row, in the order in which they are taken: one at port 1 may be the answer to one that port 0 has given away.
        self.both.s.data.next = self.s_cmd[0].data.val();
        self.both.s.valid.next = self.s_cmd[0].valid.val();
        if self.second.q.val() {
            self.both.s.data.next = self.s_cmd[1].data.val();
            self.both.s.valid.next = self.s_cmd[1].valid.val();
        }
        self.s_cmd[0].ready.next = self.both.s.ready.val() & !self.second.q.val();
        self.s_cmd[1].ready.next = self.both.s.ready.val() & self.second.q.val();
        // Port 1 has its turn until it has given one away; then port 0 has one.
        self.second.d.next = self.s_cmd[1].valid.val() & !(self.second.q.val() & self.both.s.ready.val());
        self.cmd.next = self.both.m.data.val();
        self.cmd_op.next.kind = Kind::Cmd;
        self.cmd_op.next.function = bits::<12>(0);
        self.cmd_op.next.index = self.cmd.val().index;
        self.cmd_op.next.epoch = self.cmd.val().epoch;
        self.cmd_op.next.command = self.cmd.val().op;
        self.cmd_op.next.place = bits::<4>(0);
        self.pipe.id[0].next = self.cmd.val().qpn;
        self.pipe.op[0].next = self.cmd_op.val();
        self.ready.x[0].next = self.both.m.valid.val();
        self.both.m.ready.next = self.pipe.grant.val().get_bit(0);
        self.pipe.id[1].next = self.db.m.data.val().id;
        self.pipe.op[1].next.kind = Kind::Doorbell;
        self.pipe.op[1].next.function = self.db.m.data.val().function;
        self.pipe.op[1].next.index = self.db.m.data.val().index;
        self.pipe.op[1].next.epoch = bits::<8>(0);
        self.pipe.op[1].next.command = bits::<2>(0);
        self.pipe.op[1].next.place = bits::<4>(0);
        self.ready.x[1].next = self.db.m.valid.val();
        self.db.m.ready.next = self.pipe.grant.val().get_bit(1);
        // Up to four operations may be on their way to the job FIFO of 16.
        self.room.next = self.jobs.level.val() < ROOM_OF_16;
        // A doorbell that finds no room for a job is one like any other: its request is in the ring, too.
        self.pipe.id[2].next = self.carried.m.data.val().qpn;
        self.pipe.op[2].next.kind = Kind::Doorbell;
        if self.room.val() {
            self.pipe.op[2].next.kind = Kind::Direct;
        }
        self.pipe.op[2].next.function = self.carried.m.data.val().function;
        self.pipe.op[2].next.index = self.carried.m.data.val().index;
        self.pipe.op[2].next.epoch = bits::<8>(0);
        self.pipe.op[2].next.command = bits::<2>(0);
        self.pipe.op[2].next.place = self.carried.m.data.val().place;
        self.ready.x[2].next = self.carried.m.valid.val();
        self.carried.m.ready.next = self.pipe.grant.val().get_bit(2);
        self.carried.keep.next = self.room.val();
        self.pipe.id[3].next = bit_cast::<24, LQ>(self.active.m.data.val());
        self.pipe.op[3].next.kind = Kind::Turn;
        self.pipe.op[3].next.function = bits::<12>(0);
        self.pipe.op[3].next.index = bits::<16>(0);
        self.pipe.op[3].next.epoch = bits::<8>(0);
        self.pipe.op[3].next.command = bits::<2>(0);
        self.pipe.op[3].next.place = bits::<4>(0);
        // With fewer buffers than a burst a fetch would take each as it comes back: a read of the host for every request.
        self.ready.x[3].next = self.active.m.valid.val() & self.plenty.q.val() & self.room.val();
        self.plenty.d.next = self.buffers.q.val().get_bits::<6>(LOG_BURST).any();
        self.active.m.ready.next = self.pipe.grant.val().get_bit(3);
        self.pipe.req.next = self.ready.y.val();

        // A request that a doorbell carried is there until Act has no use for it or the fetcher has written it.
        self.carried.drop.next = self.act.drop_request.val();
        self.carried.drop_place.next = self.pipe.act_op.val().place;
        self.carried.written.next = self.wqe_taken.val();
        self.carried.read.next = self.wqe_place.val();
        self.wqe_data.next = self.carried.data.val();

        // ---- Look ----
        self.posted.row.next = self.pipe.look_row.val();
        self.posted.asker.next = self.pipe.look_op.val().function;
        self.posted.index.next = self.pipe.look_op.val().index;
        self.posted.again.next = false;
        self.posted.copy.next = false;
        self.posted.inside.next = self.pipe.look_inside.val();
        self.look.op.next = self.pipe.look_op.val();
        self.look.row.next = self.pipe.look_row.val();
        self.look.posted.next = self.posted.found.val();

        // ---- Act ----
        self.act_id.next = self.pipe.act_id.val();
        self.act.valid.next = self.pipe.act_valid.val();
        self.act.op.next = self.pipe.act_op.val();
        self.act.id.next = self.act_id.val();
        self.act.row.next = self.pipe.act_row.val();
        self.act.posted.next = self.posted.facts.val();
        self.act.facts.next = self.look.facts.val();
        self.act.buffers.next = self.buffers.q.val();
        // The jobs promised at Select have their room all the same.
        self.act.may_issue.next = !self.active.m.valid.val() & self.room.val();
        self.pipe.write.next = self.act.write.val();
        self.pipe.new_row.next = self.act.new_row.val();
        self.active.s.data.next = self.act_id.val().get_bits::<LQ>(0);
        self.active.s.valid.next = self.act.enlist.val();
        self.jobs.s.data.next = self.act.job.val();
        self.jobs.s.valid.next = self.act.issue.val();
        self.issued.next = self.act.issue.val();
        self.stat.next = self.act.stat.val();
        self.stat_function.next = self.pipe.act_op.val().function;
        self.back.next = bits::<9>(0);
        if self.freed.val() {
            self.back.next = bits::<9>(1);
        }
        self.buffers.d.next = self.buffers.q.val() + self.back.val() - self.act.used.val();

        // A control write keeps `active`, which belongs to the list.
        if self.pipe.ctl_look.val() {
            self.keep_active.d.next = self.pipe.look_row.val().active;
        }
        self.ctl_row.next = self.pipe.ctl_row.val();
        self.ctl_row.next.active = self.keep_active.q.val();
        self.pipe.ctl_new_row.next = self.ctl_row.val();

        if self.reset.val() {
            self.buffers.d.next = self.all_buffers.val();
        }
    }
}
