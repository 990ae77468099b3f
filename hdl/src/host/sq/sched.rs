//! Ring table and scheduler: a four-stage pipeline over the table, one operation per cycle, never stalled.
//!
//! Select (round robin over the sources, reads the table) - Row - Look (differences) - Act (writes the table). An operation
//! starts only when no other one of its queue is in the later stages and everything it may lead to has room.

use super::{SqJob, BUFFERS};
use crate::bus::{MsgSink, MsgSrc};
use crate::host::ctl::line::CtlLine;
use crate::msg::{CtlReq, CtlResp, DoorbellMsg, SqCmd, WqeDoorbell};
use crate::prim::arb::RrPick;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Cast;
use crate::prim::ram::Ram;
use crate::records::{RingCtx, WqeHead};
use crate::stream::{MsgFifo, MsgSlice};
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// What an operation does. Cmd: `SqCmd`. Direct: WQE-carrying doorbell. Turn: head of the active list.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Kind {
    Cmd,
    Doorbell,
    Direct,
    Turn,
    Ctl,
}

/// One operation in the pipeline. `index`: new producer of a doorbell, new fetch index of a command.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Op {
    kind: Kind,
    id: Bits<24>,
    function: Bits<12>,
    index: Bits<16>,
    epoch: Bits<8>,
    command: Bits<2>,
}

/// What Look finds out for Act.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Facts {
    /// The queue exists and the number has no bits beyond the table.
    exists: Bit,
    /// It is the function's own.
    mine: Bit,
    /// producer != fetch.
    more: Bit,
    /// producer != index of the operation.
    index_differs: Bit,
    /// producer - fetch.
    pending: Bits<16>,
    /// index of the operation - fetch.
    ahead: Bits<16>,
    /// Most requests one fetch may take now (a doorbell's own included), buffers aside.
    burst: Bits<4>,
    /// `burst` requests empty the queue.
    whole: Bit,
    /// Bytes from `base` to slot `fetch`.
    offset: Bits<24>,
}

#[derive(LogicBlock, BlockDefault)]
pub(super) struct SqSched<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_db: MsgSink<DoorbellMsg>,
    pub s_wqe: MsgSink<WqeDoorbell>,
    pub s_cmd: [MsgSink<SqCmd>; 2],
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    pub m_job: MsgSrc<SqJob>,
    /// A buffer came back.
    pub freed: Signal<In, Bit>,
    /// The request of the WQE doorbell in progress, until `wqe_taken`.
    pub wqe_data: Signal<Out, Bits<512>>,
    pub wqe_taken: Signal<In, Bit>,
    /// Bit 0: bad doorbell, 1: doorbell beyond the ring.
    pub stat: Signal<Out, Bits<2>>,
    cmds: [MsgSlice<SqCmd>; 2],
    db: MsgSlice<DoorbellMsg>,
    wqe: MsgSlice<WqeDoorbell>,
    head: Cast<Bits<256>, WqeHead>,
    active: MsgFifo<Bits<LQ>, LQ>,
    line: CtlLine<RingCtx, LQ>,
    jobs: MsgFifo<SqJob, 4>,
    table_ram: Ram<RingCtx, LQ>,
    pick: RrPick<6>,
    ops: OneHotMux<Op, 6>,
    last: DFF<Bits<6>>,
    booting: DFF<Bit>,
    boot: DFF<Bits<LQ>>,
    locked: DFF<Bit>,
    keep_active: DFF<Bit>,
    buffers: DFF<Bits<8>>,
    hold: DFF<Bits<512>>,
    hold_busy: DFF<Bit>,
    row_valid: DFF<Bit>,
    row_op: DFF<Op>,
    look_valid: DFF<Bit>,
    look_op: DFF<Op>,
    look_row: DFF<RingCtx>,
    act_valid: DFF<Bit>,
    act_op: DFF<Op>,
    act_row: DFF<RingCtx>,
    act_facts: DFF<Facts>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LQ)).to_bits()))]
    outside: Constant<Bits<24>>,
    #[init(Constant::new(((1u64 << LQ) - 1).to_bits()))]
    boot_last: Constant<Bits<LQ>>,
    #[init(Constant::new(BUFFERS.to_bits()))]
    all_buffers: Constant<Bits<8>>,
    #[init(Constant::new(RingCtx::default()))]
    zero_row: Constant<RingCtx>,
    // Select
    op_cmd0: Signal<Local, Op>,
    op_cmd1: Signal<Local, Op>,
    op_db: Signal<Local, Op>,
    op_direct: Signal<Local, Op>,
    op_turn: Signal<Local, Op>,
    op_ctl: Signal<Local, Op>,
    ids: [Signal<Local, Bits<24>>; 6],
    row_id: Signal<Local, Bits<24>>,
    look_id: Signal<Local, Bits<24>>,
    act_id: Signal<Local, Bits<24>>,
    queue: Signal<Local, Bits<LQ>>,
    row_queue: Signal<Local, Bits<LQ>>,
    look_queue: Signal<Local, Bits<LQ>>,
    act_queue: Signal<Local, Bits<LQ>>,
    free_of_hazard: [Signal<Local, Bit>; 6],
    room: Signal<Local, Bit>,
    can_ctl: Signal<Local, Bit>,
    can_db: Signal<Local, Bit>,
    can_cmd1: Signal<Local, Bit>,
    can_cmd0: Signal<Local, Bit>,
    can_direct: Signal<Local, Bit>,
    can_turn: Signal<Local, Bit>,
    req: Signal<Local, Bits<6>>,
    picked: Signal<Local, Op>,
    picked_id: Signal<Local, Bits<24>>,
    wqe_data_in: Signal<Local, Bits<512>>,
    next_index: Signal<Local, Bits<16>>,
    head_index: Signal<Local, Bits<16>>,
    // Look
    facts: Signal<Local, Facts>,
    lrow: Signal<Local, RingCtx>,
    excess: Signal<Local, Bits<24>>,
    pending: Signal<Local, Bits<16>>,
    ahead: Signal<Local, Bits<16>>,
    wanted: Signal<Local, Bits<16>>,
    pend_over: Signal<Local, Bits<12>>,
    pend_low: Signal<Local, Bits<4>>,
    pend8: Signal<Local, Bits<4>>,
    fits8: Signal<Local, Bit>,
    block_log: Signal<Local, Bits<2>>,
    block_mask: Signal<Local, Bits<4>>,
    in_block: Signal<Local, Bits<4>>,
    block_left: Signal<Local, Bits<4>>,
    block_rest: Signal<Local, Bits<4>>,
    slot_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    fetch_now: Signal<Local, Bits<16>>,
    // Act
    row: Signal<Local, RingCtx>,
    new_row: Signal<Local, RingCtx>,
    fact: Signal<Local, Facts>,
    op: Signal<Local, Op>,
    kind: Signal<Local, Kind>,
    avail8: Signal<Local, Bits<4>>,
    take: Signal<Local, Bits<4>>,
    leaves_rest: Signal<Local, Bit>,
    size: Signal<Local, Bits<17>>,
    within: Signal<Local, Bit>,
    direct_ok: Signal<Local, Bit>,
    at_once: Signal<Local, Bit>,
    write: Signal<Local, Bit>,
    enlist: Signal<Local, Bit>,
    issue: Signal<Local, Bit>,
    used: Signal<Local, Bits<8>>,
    back: Signal<Local, Bits<8>>,
    job: Signal<Local, SqJob>,
    release_hold: Signal<Local, Bit>,
    ctl_row: Signal<Local, RingCtx>,
}

impl<const LQ: usize> Logic for SqSched<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, last, booting, boot, locked, keep_active, buffers, hold, hold_busy);
        dff_setup!(self, clock, row_valid, row_op, look_valid, look_op, look_row, act_valid, act_op, act_row, act_facts);
        clock!(self, clock, db, wqe, active, line, jobs, table_ram);
        self.db.reset.next = self.reset.val();
        self.wqe.reset.next = self.reset.val();
        self.active.reset.next = self.reset.val();
        self.line.reset.next = self.reset.val();
        self.jobs.reset.next = self.reset.val();
        for i in 0..2 {
            self.cmds[i].clock.next = self.clock.val();
            self.cmds[i].reset.next = self.reset.val();
            MsgSink::<SqCmd>::link(&mut self.s_cmd[i], &mut self.cmds[i].s);
        }
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.db.s);
        MsgSink::<WqeDoorbell>::link(&mut self.s_wqe, &mut self.wqe.s);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.line.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.line.m_ctl);
        MsgSrc::<SqJob>::link(&mut self.m_job, &mut self.jobs.m);

        // ---- Select ----
        self.wqe_data_in.next = self.wqe.m.data.val().data;
        self.head.x.next = self.wqe_data_in.val().get_bits::<256>(0);
        self.head_index.next = self.head.y.val().index;
        self.next_index.next = self.head_index.val() + 1;
        self.op_cmd0.next.kind = Kind::Cmd;
        self.op_cmd0.next.id = self.cmds[0].m.data.val().qpn;
        self.op_cmd0.next.function = bits::<12>(0);
        self.op_cmd0.next.index = self.cmds[0].m.data.val().index;
        self.op_cmd0.next.epoch = self.cmds[0].m.data.val().epoch;
        self.op_cmd0.next.command = self.cmds[0].m.data.val().op;
        self.op_cmd1.next.kind = Kind::Cmd;
        self.op_cmd1.next.id = self.cmds[1].m.data.val().qpn;
        self.op_cmd1.next.function = bits::<12>(0);
        self.op_cmd1.next.index = self.cmds[1].m.data.val().index;
        self.op_cmd1.next.epoch = self.cmds[1].m.data.val().epoch;
        self.op_cmd1.next.command = self.cmds[1].m.data.val().op;
        self.op_db.next.kind = Kind::Doorbell;
        self.op_db.next.id = self.db.m.data.val().id;
        self.op_db.next.function = self.db.m.data.val().function;
        self.op_db.next.index = self.db.m.data.val().index;
        self.op_db.next.epoch = bits::<8>(0);
        self.op_db.next.command = bits::<2>(0);
        self.op_direct.next.kind = Kind::Direct;
        self.op_direct.next.id = self.head.y.val().qpn;
        self.op_direct.next.function = self.wqe.m.data.val().function;
        self.op_direct.next.index = self.next_index.val();
        self.op_direct.next.epoch = bits::<8>(0);
        self.op_direct.next.command = bits::<2>(0);
        self.op_turn.next.kind = Kind::Turn;
        self.op_turn.next.id = bit_cast::<24, LQ>(self.active.m.data.val());
        self.op_turn.next.function = bits::<12>(0);
        self.op_turn.next.index = bits::<16>(0);
        self.op_turn.next.epoch = bits::<8>(0);
        self.op_turn.next.command = bits::<2>(0);
        self.op_ctl.next.kind = Kind::Ctl;
        self.op_ctl.next.id = bit_cast::<24, LQ>(self.line.addr.val());
        self.op_ctl.next.function = bits::<12>(0);
        self.op_ctl.next.index = bits::<16>(0);
        self.op_ctl.next.epoch = bits::<8>(0);
        self.op_ctl.next.command = bits::<2>(0);
        self.ops.x[0].next = self.op_cmd0.val();
        self.ops.x[1].next = self.op_cmd1.val();
        self.ops.x[2].next = self.op_db.val();
        self.ops.x[3].next = self.op_direct.val();
        self.ops.x[4].next = self.op_turn.val();
        self.ops.x[5].next = self.op_ctl.val();
        self.ids[0].next = self.op_cmd0.val().id;
        self.ids[1].next = self.op_cmd1.val().id;
        self.ids[2].next = self.op_db.val().id;
        self.ids[3].next = self.op_direct.val().id;
        self.ids[4].next = self.op_turn.val().id;
        self.ids[5].next = self.op_ctl.val().id;
        self.row_id.next = self.row_op.q.val().id;
        self.look_id.next = self.look_op.q.val().id;
        self.act_id.next = self.act_op.q.val().id;
        self.row_queue.next = self.row_id.val().get_bits::<LQ>(0);
        self.look_queue.next = self.look_id.val().get_bits::<LQ>(0);
        self.act_queue.next = self.act_id.val().get_bits::<LQ>(0);
        for i in 0..6 {
            self.queue.next = self.ids[i].val().get_bits::<LQ>(0);
            self.free_of_hazard[i].next = !((self.row_valid.q.val() & (self.queue.val() == self.row_queue.val()))
                | (self.look_valid.q.val() & (self.queue.val() == self.look_queue.val()))
                | (self.act_valid.q.val() & (self.queue.val() == self.act_queue.val())));
        }
        // Up to four operations may be on their way to the job FIFO of 16.
        self.room.next = self.jobs.level.val() < 10;
        self.can_cmd0.next = self.cmds[0].m.valid.val() & self.free_of_hazard[0].val();
        self.can_cmd1.next = self.cmds[1].m.valid.val() & self.free_of_hazard[1].val();
        self.can_db.next = self.db.m.valid.val() & self.free_of_hazard[2].val();
        self.can_direct.next =
            self.wqe.m.valid.val() & !self.hold_busy.q.val() & self.room.val() & self.free_of_hazard[3].val();
        self.can_turn.next =
            self.active.m.valid.val() & self.buffers.q.val().any() & self.room.val() & self.free_of_hazard[4].val();
        self.can_ctl.next = self.line.req.val() & self.free_of_hazard[5].val();
        self.req.next = bits::<6>(0);
        if !self.locked.q.val() & !self.booting.q.val() {
            self.req.next = bit_cast::<6, 1>(self.can_cmd0.val().into())
                | (bit_cast::<6, 1>(self.can_cmd1.val().into()) << 1)
                | (bit_cast::<6, 1>(self.can_db.val().into()) << 2)
                | (bit_cast::<6, 1>(self.can_direct.val().into()) << 3)
                | (bit_cast::<6, 1>(self.can_turn.val().into()) << 4)
                | (bit_cast::<6, 1>(self.can_ctl.val().into()) << 5);
        }
        self.pick.req.next = self.req.val();
        self.pick.last.next = self.last.q.val();
        if self.req.val().any() {
            self.last.d.next = self.pick.grant.val();
        }
        self.cmds[0].m.ready.next = self.pick.grant.val().get_bit(0);
        self.cmds[1].m.ready.next = self.pick.grant.val().get_bit(1);
        self.db.m.ready.next = self.pick.grant.val().get_bit(2);
        self.wqe.m.ready.next = self.pick.grant.val().get_bit(3);
        self.active.m.ready.next = self.pick.grant.val().get_bit(4);
        self.ops.sel.next = self.pick.grant.val();
        self.picked.next = self.ops.y.val();
        self.picked_id.next = self.picked.val().id;
        self.table_ram.read_addr.next = self.picked_id.val().get_bits::<LQ>(0);
        self.row_op.d.next = self.picked.val();
        self.row_valid.d.next = self.req.val().any();
        if self.pick.grant.val().get_bit(5) {
            self.locked.d.next = true;
        }
        if self.pick.grant.val().get_bit(3) {
            self.hold_busy.d.next = true;
        }
        if !self.hold_busy.q.val() {
            self.hold.d.next = self.wqe_data_in.val();
        }
        self.wqe_data.next = self.hold.q.val();

        // ---- Row ----
        self.look_valid.d.next = self.row_valid.q.val();
        self.look_op.d.next = self.row_op.q.val();
        self.look_row.d.next = self.table_ram.read_data.val();

        // ---- Look ----
        self.lrow.next = self.look_row.q.val();
        self.line.row.next = self.look_row.q.val();
        self.line.row_valid.next = self.look_valid.q.val() & (self.look_op.q.val().kind == Kind::Ctl);
        if self.look_valid.q.val() & (self.look_op.q.val().kind == Kind::Ctl) {
            self.keep_active.d.next = self.lrow.val().active;
        }
        self.excess.next = self.look_id.val() & self.outside.val();
        self.fetch_now.next = self.lrow.val().fetch;
        self.pending.next = self.lrow.val().producer - self.fetch_now.val();
        self.ahead.next = self.look_op.q.val().index - self.fetch_now.val();
        // What there is to fetch, once a plain doorbell has moved the producer.
        self.wanted.next = self.pending.val();
        if self.look_op.q.val().kind == Kind::Doorbell {
            self.wanted.next = self.ahead.val();
        }
        self.pend_over.next = self.wanted.val().get_bits::<12>(4);
        self.pend_low.next = self.wanted.val().get_bits::<4>(0);
        self.fits8.next = !self.pend_over.val().any() & (self.pend_low.val() <= 8);
        self.pend8.next = bits::<4>(8);
        if self.fits8.val() {
            self.pend8.next = self.pend_low.val();
        }
        // A fetch stays inside an aligned block of min(ring size, 512 bytes): it ends neither beyond the ring nor the read limit.
        // 3 - stride: the complement of two bits.
        self.block_log.next = !self.lrow.val().stride;
        if self.lrow.val().log_size < bit_cast::<4, 2>(self.block_log.val()) {
            self.block_log.next = bit_cast::<2, 4>(self.lrow.val().log_size);
        }
        self.block_mask.next = bits::<4>(7);
        match self.block_log.val().index() {
            0 => {
                self.block_mask.next = bits::<4>(0);
            }
            1 => {
                self.block_mask.next = bits::<4>(1);
            }
            2 => {
                self.block_mask.next = bits::<4>(3);
            }
            _ => {}
        }
        self.in_block.next = self.fetch_now.val().get_bits::<4>(0) & self.block_mask.val();
        self.block_rest.next = self.block_mask.val() - self.in_block.val();
        self.block_left.next = self.block_rest.val() + 1;
        if self.lrow.val().flush {
            self.block_left.next = bits::<4>(8);
        }
        self.slot_mask.next = bits::<16>(0xFFFF) << self.lrow.val().log_size;
        self.slot.next = self.fetch_now.val() & !self.slot_mask.val();
        self.facts.next.exists = self.lrow.val().valid & !self.excess.val().any();
        self.facts.next.mine = self.lrow.val().function == self.look_op.q.val().function;
        self.facts.next.more = self.lrow.val().producer != self.fetch_now.val();
        self.facts.next.index_differs = self.lrow.val().producer != self.look_op.q.val().index;
        self.facts.next.pending = self.pending.val();
        self.facts.next.ahead = self.ahead.val();
        self.facts.next.burst = self.pend8.val();
        self.facts.next.whole = self.fits8.val();
        if self.block_left.val() < self.pend8.val() {
            self.facts.next.burst = self.block_left.val();
            self.facts.next.whole = false;
        }
        self.facts.next.offset = (bit_cast::<24, 16>(self.slot.val()) << 6) << self.lrow.val().stride;
        self.act_valid.d.next = self.look_valid.q.val();
        self.act_op.d.next = self.look_op.q.val();
        self.act_row.d.next = self.look_row.q.val();
        self.act_facts.d.next = self.facts.val();

        // ---- Act ----
        self.op.next = self.act_op.q.val();
        self.kind.next = self.op.val().kind;
        self.row.next = self.act_row.q.val();
        self.fact.next = self.act_facts.q.val();
        self.new_row.next = self.row.val();
        self.write.next = false;
        self.enlist.next = false;
        self.issue.next = false;
        self.release_hold.next = false;
        self.stat.next = bits::<2>(0);
        self.used.next = bits::<8>(0);
        self.avail8.next = bits::<4>(8);
        if self.buffers.q.val() < 8 {
            self.avail8.next = self.buffers.q.val().get_bits::<4>(0);
        }
        self.take.next = self.fact.val().burst;
        self.leaves_rest.next = !self.fact.val().whole;
        if self.avail8.val() < self.fact.val().burst {
            self.take.next = self.avail8.val();
            self.leaves_rest.next = true;
        }
        self.size.next = bits::<17>(1) << self.row.val().log_size;
        self.within.next = (self.fact.val().ahead > self.fact.val().pending)
            & (bit_cast::<17, 16>(self.fact.val().ahead) <= self.size.val());
        self.direct_ok.next = !self.fact.val().more
            & (self.fact.val().ahead == 1)
            & (self.row.val().stride == 0)
            & !self.row.val().parked
            & !self.row.val().flush
            & self.buffers.q.val().any();
        // With nobody in the list a doorbell is its queue's turn. The jobs promised at Select have their room all the same.
        self.at_once.next = (self.kind.val() == Kind::Doorbell)
            & !self.active.m.valid.val()
            & !self.row.val().active
            & !self.row.val().parked
            & self.room.val()
            & self.take.val().any();
        self.job.next.kind = bits::<2>(0);
        self.job.next.qpn = self.op.val().id;
        self.job.next.index = self.row.val().fetch;
        self.job.next.epoch = self.row.val().epoch;
        self.job.next.function = self.row.val().function;
        self.job.next.count = self.take.val();
        self.job.next.base = self.row.val().base;
        self.job.next.offset = self.fact.val().offset;
        self.job.next.stride = self.row.val().stride;
        if self.act_valid.q.val() {
            match self.kind.val() {
                Kind::Cmd => {
                    self.write.next = self.fact.val().exists;
                    self.new_row.next.parked = self.op.val().command == 1;
                    if self.op.val().command != 2 {
                        self.new_row.next.fetch = self.op.val().index;
                        self.new_row.next.epoch = self.op.val().epoch;
                    }
                    if self.op.val().command == 3 {
                        self.new_row.next.flush = true;
                    }
                    self.enlist.next = self.fact.val().exists
                        & !self.row.val().active
                        & (self.op.val().command != 1)
                        & ((self.fact.val().index_differs & (self.op.val().command != 2))
                            | (self.fact.val().more & (self.op.val().command == 2)));
                }
                Kind::Turn => {
                    self.write.next = true;
                    if !self.fact.val().exists | self.row.val().parked | !self.fact.val().more {
                        self.new_row.next.active = false;
                    } else {
                        self.new_row.next.active = self.leaves_rest.val();
                        self.enlist.next = self.leaves_rest.val();
                        self.issue.next = self.take.val().any();
                        self.used.next = bit_cast::<8, 4>(self.take.val());
                        self.new_row.next.fetch = self.row.val().fetch + bit_cast::<16, 4>(self.take.val());
                        if self.row.val().flush {
                            self.job.next.kind = bits::<2>(1);
                        }
                    }
                }
                Kind::Ctl => {}
                _ => {
                    // A doorbell, with or without its request.
                    self.release_hold.next = self.kind.val() == Kind::Direct;
                    if !self.fact.val().exists | !self.fact.val().mine {
                        self.stat.next = bits::<2>(1);
                    } else if !self.within.val() {
                        self.stat.next = bits::<2>(2);
                    } else {
                        self.write.next = true;
                        self.new_row.next.producer = self.op.val().index;
                        if (self.kind.val() == Kind::Direct) & self.direct_ok.val() {
                            self.new_row.next.fetch = self.op.val().index;
                            self.release_hold.next = false;
                            self.issue.next = true;
                            self.used.next = bits::<8>(1);
                            self.job.next.kind = bits::<2>(2);
                            self.job.next.count = bits::<4>(1);
                        } else if self.at_once.val() {
                            self.issue.next = true;
                            self.used.next = bit_cast::<8, 4>(self.take.val());
                            self.new_row.next.fetch = self.row.val().fetch + bit_cast::<16, 4>(self.take.val());
                            self.enlist.next = self.leaves_rest.val();
                            if self.row.val().flush {
                                self.job.next.kind = bits::<2>(1);
                            }
                        } else {
                            self.enlist.next = !self.row.val().active & !self.row.val().parked;
                        }
                    }
                }
            }
        }
        if self.enlist.val() {
            self.new_row.next.active = true;
        }
        self.active.s.data.next = self.act_queue.val();
        self.active.s.valid.next = self.enlist.val();
        self.jobs.s.data.next = self.job.val();
        self.jobs.s.valid.next = self.issue.val();
        self.back.next = bits::<8>(0);
        if self.freed.val() {
            self.back.next = bits::<8>(1);
        }
        self.buffers.d.next = self.buffers.q.val() + self.back.val() - self.used.val();
        if self.release_hold.val() | self.wqe_taken.val() {
            self.hold_busy.d.next = false;
        }

        // Table write: the pipeline, a control write (it keeps `active`, which belongs to the list), or the sweep after a reset.
        self.ctl_row.next = self.line.new_row.val();
        self.ctl_row.next.active = self.keep_active.q.val();
        self.table_ram.write_addr.next = self.act_queue.val();
        self.table_ram.write_data.next = self.new_row.val();
        self.table_ram.write_en.next = self.write.val();
        if self.line.done.val() {
            self.table_ram.write_addr.next = self.line.addr.val();
            self.table_ram.write_data.next = self.ctl_row.val();
            self.table_ram.write_en.next = self.line.we.val();
            self.locked.d.next = false;
        }
        if self.booting.q.val() {
            self.table_ram.write_addr.next = self.boot.q.val();
            self.table_ram.write_data.next = self.zero_row.val();
            self.table_ram.write_en.next = true;
            self.boot.d.next = self.boot.q.val() + 1;
            if self.boot.q.val() == self.boot_last.val() {
                self.booting.d.next = false;
            }
        }
        if self.reset.val() {
            self.booting.d.next = true;
            self.boot.d.next = bits::<LQ>(0);
            self.locked.d.next = false;
            self.hold_busy.d.next = false;
            self.row_valid.d.next = false;
            self.look_valid.d.next = false;
            self.act_valid.d.next = false;
            self.last.d.next = bits::<6>(0);
            self.buffers.d.next = self.all_buffers.val();
        }
    }
}
