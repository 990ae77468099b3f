//! Ring table of the receive queues: what goes into the pipeline over the table and what comes out of it. See README.md.

mod act;

use super::ahead::{blocks, RqLink};
use super::{RqFault, RqJob, BUFFERS, STATS};
use crate::bus::{MsgSink, MsgSrc};
use crate::host::table::posted::PostedLook;
use crate::host::table::{TablePipe, ROOM_OF_16};
use crate::msg::{CtlReq, CtlResp, DoorbellMsg, EqeReq, RqAlloc, RqCmd, RqFlush};
use crate::prim::pack::Gather;
use crate::prim::ram::{Ram, RamAsync};
use crate::records::RingCtx;
use crate::stream::{MsgFifo, MsgSlice};
use act::RqAct;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// With so few buffers left, one allocation at a time: there may be three in the pipeline.
const FEW: u64 = 3;
/// log2 of the rows of a block.
const LOG_ROWS: u64 = 3;
const ROWS: u64 = 1 << LOG_ROWS;
/// More posted requests than are told apart.
const PLENTY: u64 = 15;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Kind {
    Doorbell,
    Alloc,
    /// The request is fetched once more.
    Again,
    Cmd,
    /// The head of the active list: slots to be fetched ahead or to be flushed, blocks to be given back, or a shared receive queue whose words have been changed.
    Turn,
    Fault,
    /// The ring loses its blocks, unless it has used one of them since the last time.
    Evict,
}

/// One operation in the pipeline. `index`: new producer of a doorbell; slot that is fetched once more. `late`: an allocation that
/// the asker relies on, whatever has become of the queue since.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Op {
    kind: Kind,
    function: Bits<12>,
    index: Bits<16>,
    late: Bit,
}

#[derive(LogicBlock, BlockDefault)]
#[demand(LB <= 7, "a block's number has 7 bits")]
pub(super) struct RqTable<const LQ: usize, const LB: usize> {
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
    /// A job that reads is decided.
    pub reading: Signal<Out, Bit>,
    /// See [`RqAhead`](super::ahead::RqAhead).
    pub block: Signal<In, Bits<7>>,
    pub block_ok: Signal<In, Bit>,
    pub take: Signal<Out, Bit>,
    pub limit: Signal<In, Bits<4>>,
    pub roomy: Signal<In, Bit>,
    pub link_en: Signal<Out, Bit>,
    pub link_at: Signal<Out, Bits<7>>,
    pub link: Signal<Out, RqLink>,
    pub look_at: Signal<Out, Bits<7>>,
    pub chained: Signal<In, RqLink>,
    /// See [`RecvQueue`](super::RecvQueue).
    pub peek: Signal<In, Bits<24>>,
    pub posted: Signal<Out, Bits<4>>,
    /// A buffer came back.
    pub freed: Signal<In, Bit>,
    /// Whether buffer `victim` is filled; the number of the copy in its request.
    pub filled: Signal<In, Bit>,
    pub victim: Signal<Out, Bits<6>>,
    pub copy: Signal<In, Bits<16>>,
    /// Bad doorbell, doorbell beyond the ring, nothing posted, fetched once more, slot flushed, limit reached, shared queue in error, slot fetched ahead.
    pub stat: Signal<Out, Bits<8>>,
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
    /// The row that the control bus is going to change a word of.
    kept: DFF<RingCtx>,
    /// The ring can be fetched ahead: its blocks of eight rows do not cross a page; the slots that are posted behind the fetched ones, whether there is one, and fewer than eight.
    apt: DFF<Bit>,
    open: DFF<Bit>,
    joins: DFF<Bit>,
    below: DFF<Bit>,
    some: DFF<Bit>,
    few: DFF<Bit>,
    reads: DFF<Bit>,
    waiting: DFF<Bits<16>>,
    /// Whose each block is, the block that is looked at when one is wanted, and whether one is.
    owners: RamAsync<Bits<LQ>, LB>,
    hand: DFF<Bits<LB>>,
    owner: DFF<Bits<LQ>>,
    /// Per ring how many requests it had when its row was last written, at most 15; what is written there.
    rich: Ram<Bits<4>, LQ>,
    tells: DFF<Bit>,
    told: DFF<Bits<LQ>>,
    told_row: DFF<RingCtx>,
    wanted: DFF<Bit>,
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
    #[init(Constant::new((blocks(LB) - 1).to_bits()))]
    last_block: Constant<Bits<LB>>,
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
    looked: Signal<Local, RingCtx>,
    unfetched: Signal<Local, Bits<16>>,
    behind: Signal<Local, Bits<16>>,
    base: Signal<Local, Bits<64>>,
    log_rows: Signal<Local, Bits<5>>,
    fit: Signal<Local, Bit>,
    less: Signal<Local, Bit>,
    able: Signal<Local, Bit>,
    mine: Signal<Local, Bits<7>>,
    left: Signal<Local, Bits<16>>,
    asked: Signal<Local, Bits<24>>,
    turn: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize, const LB: usize> Logic for RqTable<LQ, LB> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, open, joins, below, some, few, reads, tells, told, told_row, kept, apt, waiting, hand, owner, wanted, buffers, settled);
        clock!(self, clock, db, alloc, cmd, fault, active, flushes, jobs, events, pipe, look, copies, owners, rich);
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

        // ---- The sources: doorbells (0), allocations (1), flush commands (2), the head of the active list (3), failed fetches or else the owner of a block (4) ----
        self.source.next.late = false;
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
        self.source.next.late = self.alloc.m.data.val().late;
        self.pipe.op[1].next = self.source.val();
        self.source.next.late = false;
        self.source.next.index = bits::<16>(0);
        self.pipe.id[1].next = self.alloc.m.data.val().ring;
        self.source.next.kind = Kind::Cmd;
        self.pipe.op[2].next = self.source.val();
        self.pipe.id[2].next = self.cmd.m.data.val().qpn;
        self.source.next.kind = Kind::Turn;
        self.pipe.op[3].next = self.source.val();
        self.pipe.id[3].next = bit_cast::<24, LQ>(self.active.m.data.val());
        self.source.next.kind = Kind::Fault;
        self.pipe.id[4].next = self.fault.m.data.val().ring;
        if !self.fault.m.valid.val() {
            self.source.next.kind = Kind::Evict;
            self.pipe.id[4].next = bit_cast::<24, LQ>(self.owner.q.val());
        }
        self.pipe.op[4].next = self.source.val();
        self.owners.read_addr.next = self.hand.q.val();
        self.owner.d.next = self.owners.read_data.val();
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
        self.ripe.next = (!self.alloc.m.data.val().again | self.settled.q.val()) & (!self.alloc.m.data.val().taken | self.filled.val());
        self.copies.read_addr.next = self.asker.val().get_bits::<LQ>(0);
        self.copies.write_addr.next = self.robbed.val().get_bits::<LQ>(0);
        self.copies.write_data.next = self.copy.val();
        self.copies.write_en.next = self.alloc.m.data.val().taken & self.pipe.grant.val().get_bit(1);
        self.ready.x[0].next = self.db.m.valid.val();
        self.ready.x[1].next = self.alloc.m.valid.val() & self.room.val() & self.event_room.val() & self.buffer_ok.val() & self.ripe.val();
        self.ready.x[2].next = self.cmd.m.valid.val();
        self.ready.x[3].next = self.active.m.valid.val() & self.room.val() & self.flush_room.val() & self.event_room.val();
        self.ready.x[4].next = self.wanted.q.val();
        if self.fault.m.valid.val() {
            self.ready.x[4].next = self.event_room.val();
        }
        self.pipe.req.next = self.ready.y.val();
        self.db.m.ready.next = self.pipe.grant.val().get_bit(0);
        self.alloc.m.ready.next = self.pipe.grant.val().get_bit(1);
        self.cmd.m.ready.next = self.pipe.grant.val().get_bit(2);
        self.active.m.ready.next = self.pipe.grant.val().get_bit(3);
        self.fault.m.ready.next = self.pipe.grant.val().get_bit(4);

        // ---- Look ----
        self.looked.next = self.pipe.look_row.val();
        self.turn.next = self.pipe.look_op.val().kind == Kind::Turn;
        self.behind.next = self.looked.val().fetch + bit_cast::<16, 8>(self.looked.val().ahead);
        self.look.asker.next = self.pipe.look_op.val().function;
        self.look.index.next = self.pipe.look_op.val().index;
        self.look.again.next = (self.pipe.look_op.val().kind == Kind::Again) | self.turn.val();
        self.look.copy.next = self.pipe.look_op.val().kind == Kind::Again;
        if self.turn.val() {
            self.look.index.next = self.behind.val();
        }
        self.look.row.next = self.looked.val();
        self.look.inside.next = self.pipe.look_inside.val();
        self.unfetched.next = self.looked.val().producer - self.behind.val();
        self.waiting.d.next = self.unfetched.val();
        self.some.d.next = self.looked.val().producer != self.behind.val();
        self.few.d.next = !self.unfetched.val().get_bits::<13>(3).any();
        self.base.next = self.looked.val().base;
        self.log_rows.next = bit_cast::<5, 4>(self.looked.val().log_size) + bit_cast::<5, 2>(self.looked.val().stride);
        self.fit.next = !self.base.val().get_bits::<3>(6).any() & (self.log_rows.val() >= LOG_ROWS);
        self.apt.d.next = self.fit.val();
        self.less.next = self.looked.val().blocks < self.limit.val();
        self.below.d.next = self.less.val();
        self.able.next = self.fit.val() & !self.looked.val().flush & !self.looked.val().error & !self.looked.val().active;
        self.open.d.next = self.able.val();
        self.joins.d.next = (self.looked.val().flush & !self.looked.val().active) | (self.able.val() & self.less.val() & self.roomy.val());

        // ---- Act ----
        self.act_id.next = self.pipe.act_id.val();
        self.act.valid.next = self.pipe.act_valid.val();
        self.act.op.next = self.pipe.act_op.val();
        self.act.id.next = self.act_id.val();
        self.act.row.next = self.pipe.act_row.val();
        self.act.facts.next = self.look.facts.val();
        self.act.apt.next = self.apt.q.val();
        self.act.waiting.next = self.waiting.q.val();
        self.act.some.next = self.some.q.val();
        self.act.few_left.next = self.few.q.val();
        self.act.block.next = self.block.val();
        self.act.block_ok.next = self.block_ok.val();
        self.act.open.next = self.open.q.val();
        self.act.joins.next = self.joins.q.val();
        self.act.below_limit.next = self.below.q.val();
        self.act.chained.next = self.chained.val();
        self.look_at.next = self.pipe.act_row.val().first;
        self.take.next = self.act.take.val();
        self.link_en.next = self.act.link_en.val();
        self.link_at.next = self.pipe.act_row.val().last;
        self.link.next = self.act.link.val();
        // A cycle late: no read leaves the card so soon.
        self.reads.d.next = self.act.reading.val();
        self.reading.next = self.reads.q.val();
        // How many there are is counted a cycle after Act; who looks reckons with allocations under way.
        self.tells.d.next = self.act.write.val() | self.pipe.ctl_write.val();
        self.told.d.next = self.act_id.val().get_bits::<LQ>(0);
        self.told_row.d.next = self.act.new_row.val();
        if self.pipe.ctl_write.val() {
            self.told.d.next = self.pipe.ctl_line.val();
            self.told_row.d.next.valid = false;
        }
        self.left.next = self.told_row.q.val().producer - self.told_row.q.val().fetch;
        self.rich.write_data.next = self.left.val().get_bits::<4>(0);
        if self.left.val().get_bits::<12>(4).any() {
            self.rich.write_data.next = bits::<4>(PLENTY);
        }
        if !self.told_row.q.val().valid | self.told_row.q.val().flush | self.told_row.q.val().error {
            self.rich.write_data.next = bits::<4>(0);
        }
        self.rich.write_addr.next = self.told.q.val();
        self.rich.write_en.next = self.tells.q.val();
        self.asked.next = self.peek.val();
        self.rich.read_addr.next = self.asked.val().get_bits::<LQ>(0);
        self.posted.next = self.rich.read_data.val();
        self.mine.next = self.block.val();
        self.owners.write_addr.next = self.mine.val().get_bits::<LB>(0);
        self.owners.write_data.next = self.act_id.val().get_bits::<LQ>(0);
        self.owners.write_en.next = self.act.take.val();
        if self.pipe.grant.val().get_bit(4) & !self.fault.m.valid.val() {
            self.wanted.d.next = false;
            self.hand.d.next = self.hand.q.val() + 1;
            if self.hand.q.val() == self.last_block.val() {
                self.hand.d.next = bits::<LB>(0);
            }
        }
        if self.act.starved.val() {
            self.wanted.d.next = true;
        }
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

        // A control write keeps `active`, which belongs to the list, and the blocks, which may be of another life from now on. A shared receive queue gets a turn
        // when one of its words has been written: its limit may be above what is left. The pipeline is empty then, so the list is not written by Act.
        if self.pipe.ctl_look.val() {
            self.kept.d.next = self.pipe.look_row.val();
        }
        self.ctl_row.next = self.pipe.ctl_row.val();
        self.changed.next = self.pipe.ctl_write.val() & ((self.ctl_row.val().shared & self.ctl_row.val().valid) | self.kept.q.val().blocks.any()) & !self.kept.q.val().active;
        self.ctl_row.next.active = self.kept.q.val().active | self.changed.val();
        self.ctl_row.next.ahead = self.kept.q.val().ahead;
        self.ctl_row.next.first = self.kept.q.val().first;
        self.ctl_row.next.last = self.kept.q.val().last;
        self.ctl_row.next.left = self.kept.q.val().left;
        self.ctl_row.next.blocks = self.kept.q.val().blocks;
        self.ctl_row.next.stale = self.kept.q.val().blocks.any();
        self.pipe.ctl_new_row.next = self.ctl_row.val();
        self.active.s.data.next = self.act_id.val().get_bits::<LQ>(0);
        if self.changed.val() {
            self.active.s.data.next = self.pipe.ctl_line.val();
        }
        self.active.s.valid.next = self.act.enlist.val() | self.changed.val();

        if self.reset.val() {
            self.buffers.d.next = self.all_buffers.val();
            self.wanted.d.next = false;
            self.tells.d.next = false;
            self.reads.d.next = false;
        }
    }
}
