//! Reads of page-table lines under way: where each line goes, and who waits for it.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{RdCmd, RdRow};
use crate::prim::ram::RamAsync;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Where a line goes.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Home {
    /// It has a slot of the cache.
    pub kept: Bit,
    pub way: Bit,
    pub slot: Bits<14>,
    pub index: Bits<16>,
    pub life: Bits<8>,
    pub line: Bits<23>,
}

/// Who waits for a line: a list from `first` to `last`, in the order in which they came. Each is named by its place among the answers and its port, as in `cache.rs`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Waiters {
    any: Bit,
    first: Bits<7>,
    last: Bits<7>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// A row has come: it goes to its slot.
    Store,
    /// Who waits for it is answered, one a cycle.
    Wake,
}

/// Up to 2^`LO` reads. Rows come back in the order of their reads: that is the contract of a port of small reads, so the ids are a ring.
#[derive(LogicBlock, BlockDefault)]
#[demand((2..=6).contains(&LO), "a tag of the cache names 4 to 64 reads")]
pub struct Misses<const LO: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a read begins, under the number `id`. Only while there is `room`: not behind somebody who joins, since both write the list.
    /// (In the cache no read begins there anyway: who joins has found a line, only who has found none asks, and the look ahead asks when no query has been at hand.)
    pub ask: Signal<In, Bit>,
    pub owner: Signal<In, Bits<12>>,
    pub addr: Signal<In, Bits<64>>,
    pub goes: Signal<In, Home>,
    /// `waiter` waits for it.
    pub waited: Signal<In, Bit>,
    pub id: Signal<Out, Bits<6>>,
    pub room: Signal<Out, Bit>,
    /// Less than half of the reads that there may be are under way.
    pub few: Signal<Out, Bit>,
    /// None is under way.
    pub none: Signal<Out, Bit>,
    /// Pulse: `waiter` waits for read `joins_id`, too.
    pub joins: Signal<In, Bit>,
    pub joins_id: Signal<In, Bits<6>>,
    pub waiter: Signal<In, Bits<7>>,
    /// A row is being stored and used; no read begins meanwhile, nobody joins one who has not been told of before.
    pub busy: Signal<Out, Bit>,
    /// Pulse: `row` goes `home`, or its read has failed.
    pub store: Signal<Out, Bit>,
    pub home: Signal<Out, Home>,
    pub row: Signal<Out, Bits<512>>,
    pub failed: Signal<Out, Bit>,
    /// Pulse: `woken` is answered by `row`.
    pub wake: Signal<Out, Bit>,
    pub woken: Signal<Out, Bits<7>>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    homes: RamAsync<Home, LO>,
    waiters: RamAsync<Waiters, LO>,
    /// Who has come behind a waiter, by its port and the number of its place.
    behind: RamAsync<Bits<7>, 6>,
    state: DFF<State>,
    /// Of the next read.
    next: DFF<Bits<LO>>,
    under_way: DFF<Bits<7>>,
    half: DFF<Bit>,
    cmd: DFF<RdCmd>,
    cmd_valid: DFF<Bit>,
    row_q: DFF<Bits<512>>,
    row_err: DFF<Bit>,
    row_id: DFF<Bits<LO>>,
    any: DFF<Bit>,
    cursor: DFF<Bits<7>>,
    last: DFF<Bits<7>>,
    /// Who joins was told in the cycle before: the list is a memory behind the comparison of tags.
    joined: DFF<Bit>,
    joined_id: DFF<Bits<LO>>,
    joiner: DFF<Bits<7>>,
    list: Signal<Local, Bits<LO>>,
    /// The last one in the list, and the one that is woken.
    end_of: Signal<Local, Bits<7>>,
    at: Signal<Local, Bits<7>>,
    over: Signal<Local, Bit>,
    row_tag: Signal<Local, Bits<8>>,
    #[init(Constant::new((1u64 << LO).into()))]
    most: Constant<Bits<7>>,
    #[init(Constant::new((1u64 << (LO - 1)).into()))]
    some: Constant<Bits<7>>,
}

#[kernel]
impl<const LO: usize> Logic for Misses<LO> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, next, under_way, half, cmd, cmd_valid, row_q, row_err, row_id, any, cursor, last, joined, joined_id, joiner);
        clock!(self, clock, homes, waiters, behind);
        self.id.next = bit_cast::<6, LO>(self.next.q.val());
        self.room.next = !self.cmd_valid.q.val() & !self.joined.q.val() & !(self.under_way.q.val() == self.most.val());
        self.half.d.next = self.under_way.q.val() < self.some.val();
        self.few.next = self.half.q.val();
        self.none.next = !self.under_way.q.val().any() & (self.state.q.val() == State::Idle);
        self.busy.next = !(self.state.q.val() == State::Idle);

        // A read begins.
        self.m_rd.valid.next = self.cmd_valid.q.val();
        self.m_rd.data.next = self.cmd.q.val();
        if self.m_rd.ready.val() {
            self.cmd_valid.d.next = false;
        }
        if !self.cmd_valid.q.val() {
            self.cmd.d.next.iova = self.addr.val();
            self.cmd.d.next.function = self.owner.val();
            self.cmd.d.next.rows = bits::<4>(1);
            self.cmd.d.next.tag = bit_cast::<8, LO>(self.next.q.val());
        }
        self.homes.write_en.next = self.ask.val();
        self.homes.write_addr.next = self.next.q.val();
        self.homes.write_data.next = self.goes.val();
        if self.ask.val() {
            self.cmd_valid.d.next = true;
            self.next.d.next = self.next.q.val() + 1;
            self.under_way.d.next = self.under_way.q.val() + 1;
        }

        // One more in the list of a read.
        self.joined.d.next = self.joins.val();
        self.joined_id.d.next = self.joins_id.val().get_bits::<LO>(0);
        self.joiner.d.next = self.waiter.val();
        self.list.next = self.joined_id.q.val();
        if !self.joined.q.val() {
            self.list.next = self.row_id.q.val();
        }
        self.waiters.read_addr.next = self.list.val();
        self.waiters.write_en.next = self.ask.val() | self.joined.q.val();
        self.waiters.write_addr.next = self.list.val();
        self.waiters.write_data.next.any = true;
        self.waiters.write_data.next.first = self.joiner.q.val();
        self.waiters.write_data.next.last = self.joiner.q.val();
        if self.ask.val() {
            self.waiters.write_addr.next = self.next.q.val();
            self.waiters.write_data.next.any = self.waited.val();
            self.waiters.write_data.next.first = self.waiter.val();
            self.waiters.write_data.next.last = self.waiter.val();
        } else if self.waiters.read_data.val().any {
            self.waiters.write_data.next.first = self.waiters.read_data.val().first;
        }
        self.end_of.next = self.waiters.read_data.val().last;
        self.behind.write_en.next = self.joined.q.val() & self.waiters.read_data.val().any;
        self.behind.write_addr.next = bit_cast::<6, 5>(self.end_of.val().get_bits::<5>(0)) | (bit_cast::<6, 7>(self.end_of.val() >> 6) << 5);
        self.behind.write_data.next = self.joiner.q.val();

        // A row comes.
        self.s_rd.ready.next = self.state.q.val() == State::Idle;
        self.row_tag.next = self.s_rd.data.val().tag;
        self.store.next = (self.state.q.val() == State::Store) & self.homes.read_data.val().kept;
        self.homes.read_addr.next = self.row_id.q.val();
        self.home.next = self.homes.read_data.val();
        self.row.next = self.row_q.q.val();
        self.failed.next = self.row_err.q.val();
        self.wake.next = (self.state.q.val() == State::Wake) & self.any.q.val();
        self.woken.next = self.cursor.q.val();
        self.at.next = self.cursor.q.val();
        self.behind.read_addr.next = bit_cast::<6, 5>(self.at.val().get_bits::<5>(0)) | (bit_cast::<6, 7>(self.at.val() >> 6) << 5);
        self.over.next = !self.any.q.val() | (self.cursor.q.val() == self.last.q.val());
        match self.state.q.val() {
            State::Idle => {
                self.row_q.d.next = self.s_rd.data.val().data;
                self.row_err.d.next = self.s_rd.data.val().err;
                self.row_id.d.next = self.row_tag.val().get_bits::<LO>(0);
                if self.s_rd.valid.val() {
                    self.state.d.next = State::Store;
                }
            }
            State::Store => {
                self.any.d.next = self.waiters.read_data.val().any;
                self.cursor.d.next = self.waiters.read_data.val().first;
                self.last.d.next = self.waiters.read_data.val().last;
                // One who has joined just now is written first.
                if !self.joined.q.val() {
                    self.under_way.d.next = self.under_way.q.val() - 1;
                    self.state.d.next = State::Wake;
                }
            }
            State::Wake => {
                self.cursor.d.next = self.behind.read_data.val();
                if self.over.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.next.d.next = bits::<LO>(0);
            self.under_way.d.next = bits::<7>(0);
            self.cmd_valid.d.next = false;
            self.joined.d.next = false;
        }
    }
}
