//! Ring table of the receive queues: a four-stage pipeline as in `host/sq/sched.rs`, never stalled.
//!
//! Select - Row - Look - Act. Sources: doorbells, allocations, flush commands, the list of flushing queues, the control bus.

use super::RqJob;
use crate::bus::{MsgSink, MsgSrc};
use crate::host::ctl::line::CtlLine;
use super::BUFFERS;
use crate::msg::{CtlReq, CtlResp, DoorbellMsg, RqAlloc, RqCmd, RqFlush};
use crate::prim::arb::RrPick;
use crate::prim::mux::OneHotMux;
use crate::prim::ram::Ram;
use crate::records::RingCtx;
use crate::stream::{MsgFifo, MsgSlice};
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Kind {
    Doorbell,
    Alloc,
    Cmd,
    Turn,
    Ctl,
}

/// One operation in the pipeline. `index`: new producer of a doorbell.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Op {
    kind: Kind,
    id: Bits<24>,
    function: Bits<12>,
    index: Bits<16>,
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
    /// producer - fetch.
    pending: Bits<16>,
    /// index of the operation - fetch.
    ahead: Bits<16>,
    /// Bytes from `base` to slot `fetch`.
    offset: Bits<24>,
}

#[derive(LogicBlock, BlockDefault)]
pub(super) struct RqTable<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_db: MsgSink<DoorbellMsg>,
    pub s_alloc: MsgSink<RqAlloc>,
    pub s_cmd: MsgSink<RqCmd>,
    pub m_flush: MsgSrc<RqFlush>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    pub m_job: MsgSrc<RqJob>,
    /// A buffer came back.
    pub freed: Signal<In, Bit>,
    /// Bad doorbell, doorbell beyond the ring, nothing posted, no buffer, slot flushed.
    pub stat: Signal<Out, Bits<5>>,
    db: MsgSlice<DoorbellMsg>,
    alloc: MsgSlice<RqAlloc>,
    cmd: MsgSlice<RqCmd>,
    active: MsgFifo<Bits<LQ>, LQ>,
    flushes: MsgFifo<RqFlush, 4>,
    line: CtlLine<RingCtx, LQ>,
    jobs: MsgFifo<RqJob, 4>,
    table_ram: Ram<RingCtx, LQ>,
    pick: RrPick<5>,
    ops: OneHotMux<Op, 5>,
    last: DFF<Bits<5>>,
    booting: DFF<Bit>,
    boot: DFF<Bits<LQ>>,
    locked: DFF<Bit>,
    keep_active: DFF<Bit>,
    buffers: DFF<Bits<7>>,
    patience: DFF<Bits<11>>,
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
    all_buffers: Constant<Bits<7>>,
    #[init(Constant::new(RingCtx::default()))]
    zero_row: Constant<RingCtx>,
    // Select
    op_db: Signal<Local, Op>,
    op_alloc: Signal<Local, Op>,
    op_cmd: Signal<Local, Op>,
    op_turn: Signal<Local, Op>,
    op_ctl: Signal<Local, Op>,
    ids: [Signal<Local, Bits<24>>; 5],
    row_id: Signal<Local, Bits<24>>,
    look_id: Signal<Local, Bits<24>>,
    act_id: Signal<Local, Bits<24>>,
    queue: Signal<Local, Bits<LQ>>,
    row_queue: Signal<Local, Bits<LQ>>,
    look_queue: Signal<Local, Bits<LQ>>,
    act_queue: Signal<Local, Bits<LQ>>,
    free_of_hazard: [Signal<Local, Bit>; 5],
    room: Signal<Local, Bit>,
    can_ctl: Signal<Local, Bit>,
    can_db: Signal<Local, Bit>,
    can_cmd: Signal<Local, Bit>,
    can_alloc: Signal<Local, Bit>,
    can_turn: Signal<Local, Bit>,
    flush_room: Signal<Local, Bit>,
    allocs_ahead: Signal<Local, Bit>,
    buffer_ok: Signal<Local, Bit>,
    req: Signal<Local, Bits<5>>,
    picked: Signal<Local, Op>,
    picked_id: Signal<Local, Bits<24>>,
    // Look
    facts: Signal<Local, Facts>,
    lrow: Signal<Local, RingCtx>,
    excess: Signal<Local, Bits<24>>,
    slot_mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    fetch_now: Signal<Local, Bits<16>>,
    // Act
    row: Signal<Local, RingCtx>,
    new_row: Signal<Local, RingCtx>,
    fact: Signal<Local, Facts>,
    op: Signal<Local, Op>,
    fetch_next: Signal<Local, Bits<16>>,
    fetch_old: Signal<Local, Bits<16>>,
    kind: Signal<Local, Kind>,
    size: Signal<Local, Bits<17>>,
    within: Signal<Local, Bit>,
    posted: Signal<Local, Bit>,
    write: Signal<Local, Bit>,
    enlist: Signal<Local, Bit>,
    issue: Signal<Local, Bit>,
    flush: Signal<Local, Bit>,
    used: Signal<Local, Bits<7>>,
    back: Signal<Local, Bits<7>>,
    job: Signal<Local, RqJob>,
    flush_out: Signal<Local, RqFlush>,
    ctl_row: Signal<Local, RingCtx>,
}

impl<const LQ: usize> Logic for RqTable<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, last, booting, boot, locked, keep_active, buffers, patience);
        dff_setup!(self, clock, row_valid, row_op, look_valid, look_op, look_row, act_valid, act_op, act_row, act_facts);
        clock!(self, clock, db, alloc, cmd, active, flushes, line, jobs, table_ram);
        self.db.reset.next = self.reset.val();
        self.alloc.reset.next = self.reset.val();
        self.cmd.reset.next = self.reset.val();
        self.active.reset.next = self.reset.val();
        self.flushes.reset.next = self.reset.val();
        self.line.reset.next = self.reset.val();
        self.jobs.reset.next = self.reset.val();
        MsgSink::<DoorbellMsg>::link(&mut self.s_db, &mut self.db.s);
        MsgSink::<RqAlloc>::link(&mut self.s_alloc, &mut self.alloc.s);
        MsgSink::<RqCmd>::link(&mut self.s_cmd, &mut self.cmd.s);
        MsgSrc::<RqFlush>::link(&mut self.m_flush, &mut self.flushes.m);
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.line.s_ctl);
        MsgSrc::<CtlResp>::link(&mut self.m_ctl, &mut self.line.m_ctl);
        MsgSrc::<RqJob>::link(&mut self.m_job, &mut self.jobs.m);

        // ---- Select ----
        self.op_db.next.kind = Kind::Doorbell;
        self.op_db.next.id = self.db.m.data.val().id;
        self.op_db.next.function = self.db.m.data.val().function;
        self.op_db.next.index = self.db.m.data.val().index;
        self.op_alloc.next.kind = Kind::Alloc;
        self.op_alloc.next.id = self.alloc.m.data.val().qpn;
        self.op_alloc.next.function = bits::<12>(0);
        self.op_alloc.next.index = bits::<16>(0);
        self.op_cmd.next.kind = Kind::Cmd;
        self.op_cmd.next.id = self.cmd.m.data.val().qpn;
        self.op_cmd.next.function = bits::<12>(0);
        self.op_cmd.next.index = bits::<16>(0);
        self.op_turn.next.kind = Kind::Turn;
        self.op_turn.next.id = bit_cast::<24, LQ>(self.active.m.data.val());
        self.op_turn.next.function = bits::<12>(0);
        self.op_turn.next.index = bits::<16>(0);
        self.op_ctl.next.kind = Kind::Ctl;
        self.op_ctl.next.id = bit_cast::<24, LQ>(self.line.addr.val());
        self.op_ctl.next.function = bits::<12>(0);
        self.op_ctl.next.index = bits::<16>(0);
        self.ops.x[0].next = self.op_db.val();
        self.ops.x[1].next = self.op_alloc.val();
        self.ops.x[2].next = self.op_cmd.val();
        self.ops.x[3].next = self.op_turn.val();
        self.ops.x[4].next = self.op_ctl.val();
        self.ids[0].next = self.op_db.val().id;
        self.ids[1].next = self.op_alloc.val().id;
        self.ids[2].next = self.op_cmd.val().id;
        self.ids[3].next = self.op_turn.val().id;
        self.ids[4].next = self.op_ctl.val().id;
        self.row_id.next = self.row_op.q.val().id;
        self.look_id.next = self.look_op.q.val().id;
        self.act_id.next = self.act_op.q.val().id;
        self.row_queue.next = self.row_id.val().get_bits::<LQ>(0);
        self.look_queue.next = self.look_id.val().get_bits::<LQ>(0);
        self.act_queue.next = self.act_id.val().get_bits::<LQ>(0);
        for i in 0..5 {
            self.queue.next = self.ids[i].val().get_bits::<LQ>(0);
            self.free_of_hazard[i].next = !((self.row_valid.q.val() & (self.queue.val() == self.row_queue.val()))
                | (self.look_valid.q.val() & (self.queue.val() == self.look_queue.val()))
                | (self.act_valid.q.val() & (self.queue.val() == self.act_queue.val())));
        }
        // Up to four operations may be on their way to a FIFO of 16.
        self.room.next = self.jobs.level.val() < 10;
        self.flush_room.next = self.flushes.level.val() < 10;
        // An allocation waits up to 1024 cycles for a buffer: messages in progress may hold all of them, and only packets
        // behind the refused one can finish those, so the wait must end. The last buffer must not be promised twice: with few left, one allocation at a time.
        self.allocs_ahead.next = (self.row_valid.q.val() & (self.row_op.q.val().kind == Kind::Alloc))
            | (self.look_valid.q.val() & (self.look_op.q.val().kind == Kind::Alloc))
            | (self.act_valid.q.val() & (self.act_op.q.val().kind == Kind::Alloc));
        self.buffer_ok.next = self.patience.q.val().get_bit(10)
            | (self.buffers.q.val() > 3)
            | (self.buffers.q.val().any() & !self.allocs_ahead.val());
        if self.buffers.q.val().any() {
            self.patience.d.next = bits::<11>(0);
        } else if self.alloc.m.valid.val() & !self.patience.q.val().get_bit(10) {
            self.patience.d.next = self.patience.q.val() + 1;
        }
        self.can_db.next = self.db.m.valid.val() & self.free_of_hazard[0].val();
        self.can_alloc.next = self.alloc.m.valid.val() & self.room.val() & self.buffer_ok.val() & self.free_of_hazard[1].val();
        self.can_cmd.next = self.cmd.m.valid.val() & self.free_of_hazard[2].val();
        self.can_turn.next = self.active.m.valid.val() & self.flush_room.val() & self.free_of_hazard[3].val();
        self.can_ctl.next = self.line.req.val() & self.free_of_hazard[4].val();
        self.req.next = bits::<5>(0);
        if !self.locked.q.val() & !self.booting.q.val() {
            self.req.next = bit_cast::<5, 1>(self.can_db.val().into())
                | (bit_cast::<5, 1>(self.can_alloc.val().into()) << 1)
                | (bit_cast::<5, 1>(self.can_cmd.val().into()) << 2)
                | (bit_cast::<5, 1>(self.can_turn.val().into()) << 3)
                | (bit_cast::<5, 1>(self.can_ctl.val().into()) << 4);
        }
        self.pick.req.next = self.req.val();
        self.pick.last.next = self.last.q.val();
        if self.req.val().any() {
            self.last.d.next = self.pick.grant.val();
        }
        self.db.m.ready.next = self.pick.grant.val().get_bit(0);
        self.alloc.m.ready.next = self.pick.grant.val().get_bit(1);
        self.cmd.m.ready.next = self.pick.grant.val().get_bit(2);
        self.active.m.ready.next = self.pick.grant.val().get_bit(3);
        if self.pick.grant.val().get_bit(4) {
            self.locked.d.next = true;
        }
        self.ops.sel.next = self.pick.grant.val();
        self.picked.next = self.ops.y.val();
        self.picked_id.next = self.picked.val().id;
        self.table_ram.read_addr.next = self.picked_id.val().get_bits::<LQ>(0);
        self.row_op.d.next = self.picked.val();
        self.row_valid.d.next = self.req.val().any();

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
        self.slot_mask.next = bits::<16>(0xFFFF) << self.lrow.val().log_size;
        self.slot.next = self.fetch_now.val() & !self.slot_mask.val();
        self.facts.next.exists = self.lrow.val().valid & !self.excess.val().any();
        self.facts.next.mine = self.lrow.val().function == self.look_op.q.val().function;
        self.facts.next.more = self.lrow.val().producer != self.fetch_now.val();
        self.facts.next.pending = self.lrow.val().producer - self.fetch_now.val();
        self.facts.next.ahead = self.look_op.q.val().index - self.fetch_now.val();
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
        self.fetch_old.next = self.row.val().fetch;
        self.fetch_next.next = self.fetch_old.val() + 1;
        self.write.next = false;
        self.enlist.next = false;
        self.issue.next = false;
        self.flush.next = false;
        self.stat.next = bits::<5>(0);
        self.used.next = bits::<7>(0);
        self.size.next = bits::<17>(1) << self.row.val().log_size;
        self.within.next = (self.fact.val().ahead > self.fact.val().pending)
            & (bit_cast::<17, 16>(self.fact.val().ahead) <= self.size.val());
        self.posted.next = self.fact.val().exists & self.fact.val().more & !self.row.val().flush;
        self.job.next.ok = self.posted.val() & self.buffers.q.val().any();
        self.job.next.index = self.row.val().fetch;
        self.job.next.function = self.row.val().function;
        self.job.next.base = self.row.val().base;
        self.job.next.offset = self.fact.val().offset;
        self.job.next.stride = self.row.val().stride;
        self.flush_out.next.qpn = self.op.val().id;
        self.flush_out.next.index = self.row.val().fetch;
        if self.act_valid.q.val() {
            match self.kind.val() {
                Kind::Doorbell => {
                    if !self.fact.val().exists | !self.fact.val().mine {
                        self.stat.next = bits::<5>(1);
                    } else if !self.within.val() {
                        self.stat.next = bits::<5>(2);
                    } else {
                        self.write.next = true;
                        self.new_row.next.producer = self.op.val().index;
                        self.enlist.next = self.row.val().flush & !self.row.val().active;
                    }
                }
                Kind::Alloc => {
                    self.issue.next = true;
                    if !self.posted.val() {
                        self.stat.next = bits::<5>(4);
                    } else if !self.buffers.q.val().any() {
                        self.stat.next = bits::<5>(8);
                    } else {
                        self.write.next = true;
                        self.new_row.next.fetch = self.fetch_next.val();
                        self.used.next = bits::<7>(1);
                    }
                }
                Kind::Cmd => {
                    self.write.next = self.fact.val().exists;
                    self.new_row.next.flush = true;
                    self.enlist.next = self.fact.val().exists & self.fact.val().more & !self.row.val().active;
                }
                Kind::Turn => {
                    self.write.next = true;
                    self.new_row.next.active = false;
                    if self.fact.val().exists & self.fact.val().more & self.row.val().flush {
                        self.flush.next = true;
                        self.stat.next = bits::<5>(16);
                        self.new_row.next.fetch = self.fetch_next.val();
                        self.enlist.next = self.fact.val().pending != 1;
                    }
                }
                _ => {}
            }
        }
        if self.enlist.val() {
            self.new_row.next.active = true;
        }
        self.active.s.data.next = self.act_queue.val();
        self.active.s.valid.next = self.enlist.val();
        self.flushes.s.data.next = self.flush_out.val();
        self.flushes.s.valid.next = self.flush.val();
        self.jobs.s.data.next = self.job.val();
        self.jobs.s.valid.next = self.issue.val();
        self.back.next = bits::<7>(0);
        if self.freed.val() {
            self.back.next = bits::<7>(1);
        }
        self.buffers.d.next = self.buffers.q.val() + self.back.val() - self.used.val();

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
            self.row_valid.d.next = false;
            self.look_valid.d.next = false;
            self.act_valid.d.next = false;
            self.last.d.next = bits::<5>(0);
            self.patience.d.next = bits::<11>(0);
            self.buffers.d.next = self.all_buffers.val();
        }
    }
}
