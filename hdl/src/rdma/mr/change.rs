//! Changes of regions and windows that come from the data path: invalidations by the peer or by a work request, registrations, windows bound.
//! One at a time; see README.md.

use super::extent::Extent;
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::{done_status, key_status};
use crate::msg::{MrChange, MrChanged, MrWork, TxDone};
use crate::records::MrCtx;
use crate::stats::flags;
use ferric_abi::codes::CqeStatus;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Events of [`Change::stat`], bit 0 first.
const STATS: &[&str] = &["invalidated", "changes_refused", "registered", "bound"];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The line that the key names.
    Ask,
    Judge,
    Decide,
    /// The region that a window is to be bound to: its line, then what the window is of it.
    Base,
    Measure,
    Verdict,
    /// The key's line is written.
    Write,
    /// The region has one window more.
    More,
    /// The region that the window belonged to has one less.
    Former,
    Count,
    Less,
    Done,
    /// Atomics that may have found the key as it was are waited for.
    Turn,
    Drain,
    Answer,
}

/// Reads, judges and writes lines of the table of `2^LM` regions.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=16).contains(&LM), "as the table")]
pub struct Change<const LM: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_change: MsgSink<MrChange>,
    pub m_changed: MsgSrc<MrChanged>,
    /// Local operations, and what became of them.
    pub s_work: MsgSink<MrWork>,
    pub m_worked: MsgSrc<TxDone>,
    /// Pulse: a bound window of region `parent` has been destroyed over the control bus.
    pub orphan: Signal<In, Bit>,
    pub parent: Signal<In, Bits<24>>,
    /// It waits to be counted. The control bus gets no row meanwhile, so the next window it destroys finds this one counted.
    pub uncounted: Signal<Out, Bit>,
    /// Pulse: the count of registrations of a region has wrapped; old translations must go.
    pub wrap: Signal<Out, Bit>,
    /// A row is wanted, until `row_valid`. From the first to `done` the table's other writers wait.
    pub req: Signal<Out, Bit>,
    pub addr: Signal<Out, Bits<LM>>,
    pub row_valid: Signal<In, Bit>,
    pub row: Signal<In, MrCtx>,
    /// Store `new_row` at `addr`.
    pub we: Signal<Out, Bit>,
    pub new_row: Signal<Out, MrCtx>,
    /// One cycle: the access is over.
    pub done: Signal<Out, Bit>,
    /// See `drain.rs`.
    pub turn_phase: Signal<Out, Bit>,
    pub dry: Signal<In, Bit>,
    /// Keys invalidated, changes refused, regions registered, windows bound.
    pub stat: Signal<Out, Bits<4>>,
    state: DFF<State>,
    work: DFF<MrWork>,
    /// The peer's; nobody's; otherwise the answer goes to the requester.
    remote: DFF<Bit>,
    orphaned: DFF<Bit>,
    pending: DFF<Bit>,
    /// The region of the window that waits to be counted.
    bereft: DFF<Bits<24>>,
    /// Behind it the change in hand goes on waiting for atomics.
    back: DFF<Bit>,
    former: DFF<Bits<24>>,
    /// Whose turn it is when both want something.
    turn: DFF<Bit>,
    hold: DFF<MrCtx>,
    base: DFF<MrCtx>,
    /// Its windows with one more and one less, a cycle later.
    more: DFF<Bits<24>>,
    fewer: DFF<Bits<24>>,
    extent: Extent,
    bad_key: DFF<Bit>,
    bad_owner: DFF<Bit>,
    bad_kind: DFF<Bit>,
    status: DFF<Bits<3>>,
    key: Signal<Local, Bits<32>>,
    index: Signal<Local, Bits<24>>,
    variant: Signal<Local, Bits<8>>,
    /// The region's key, of a window to be bound.
    region: Signal<Local, Bits<64>>,
    region_index: Signal<Local, Bits<24>>,
    region_variant: Signal<Local, Bits<8>>,
    named: Signal<Local, Bits<24>>,
    excess: Signal<Local, Bits<24>>,
    shared: Signal<Local, Bit>,
    again: Signal<Local, Bits<8>>,
    rights: Signal<Local, Bits<4>>,
    /// A window that was bound; one that is bound now.
    was: Signal<Local, Bit>,
    binds: Signal<Local, Bit>,
    empty: Signal<Local, Bit>,
    length: Signal<Local, Bits<64>>,
    windows: Signal<Local, Bits<24>>,
    good: Signal<Local, Bit>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LM)).to_bits()))]
    outside: Constant<Bits<24>>,
}

#[kernel]
impl<const LM: usize> Logic for Change<LM> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, work, remote, orphaned, pending, bereft, back, former, turn, hold, base, more, fewer, bad_key, bad_owner, bad_kind, status);
        clock!(self, clock, extent);
        self.extent.reset.next = self.reset.val();
        self.s_change.ready.next = (self.state.q.val() == State::Idle) & self.turn.q.val() & !self.pending.q.val();
        self.s_work.ready.next = (self.state.q.val() == State::Idle) & !self.turn.q.val() & !self.pending.q.val();
        self.m_changed.valid.next = (self.state.q.val() == State::Answer) & self.remote.q.val();
        self.m_changed.data.next.status = self.status.q.val();
        self.m_worked.valid.next = (self.state.q.val() == State::Answer) & !self.remote.q.val();
        self.m_worked.data.next.qpn = self.work.q.val().qpn;
        self.m_worked.data.next.epoch = bits::<8>(0);
        self.m_worked.data.next.psn = bits::<24>(0);
        self.m_worked.data.next.wqe_index = self.work.q.val().index;
        self.m_worked.data.next.reply = false;
        self.m_worked.data.next.notify = false;
        self.m_worked.data.next.status = bits::<8>(done_status::WORKED);
        if self.status.q.val().any() {
            self.m_worked.data.next.status = bits::<8>(CqeStatus::MwBind as u64);
        }
        self.key.next = self.work.q.val().key;
        self.index.next = self.key.val().get_bits::<24>(8);
        self.variant.next = self.key.val().get_bits::<8>(0);
        self.region.next = self.work.q.val().table;
        self.region_index.next = self.region.val().get_bits::<24>(8);
        self.region_variant.next = self.region.val().get_bits::<8>(0);
        self.named.next = self.index.val();
        if (self.state.q.val() == State::Base) | (self.state.q.val() == State::Measure) | (self.state.q.val() == State::More) {
            self.named.next = self.region_index.val();
        }
        self.excess.next = self.named.val() & self.outside.val();
        if (self.state.q.val() == State::Former) | (self.state.q.val() == State::Less) {
            self.named.next = self.former.q.val();
        }
        self.addr.next = self.named.val().get_bits::<LM>(0);
        self.req.next = (self.state.q.val() == State::Ask) | (self.state.q.val() == State::Base) | (self.state.q.val() == State::Former);
        self.done.next = self.state.q.val() == State::Done;
        self.again.next = self.hold.q.val().life;
        self.rights.next = self.work.q.val().access;
        self.length.next = self.work.q.val().length;
        self.empty.next = !self.length.val().any();
        self.was.next = self.hold.q.val().window & self.hold.q.val().valid;
        self.binds.next = self.work.q.val().bind & !self.empty.val();
        self.good.next = !self.status.q.val().any();
        self.windows.next = self.base.q.val().link;
        self.more.d.next = self.windows.val() + 1;
        self.fewer.d.next = self.windows.val() - 1;

        // What a window is of its region.
        self.extent.start.next = self.work.q.val().start;
        self.extent.length.next = self.length.val();
        self.extent.base.next = self.base.q.val();
        self.extent.go.next = false;

        // The line as it becomes; a region's line when windows are counted.
        self.we.next = false;
        self.new_row.next = self.hold.q.val();
        self.new_row.next.valid = self.work.q.val().register | self.binds.val();
        if self.work.q.val().register | self.binds.val() {
            self.new_row.next.variant = self.variant.val();
            self.new_row.next.local_write = self.rights.val().get_bit(0) & !self.work.q.val().bind;
            self.new_row.next.remote_write = self.rights.val().get_bit(1);
            self.new_row.next.remote_read = self.rights.val().get_bit(2);
            self.new_row.next.remote_atomic = self.rights.val().get_bit(3);
            self.new_row.next.life = self.again.val() + 1;
            self.new_row.next.page_size = self.work.q.val().page_size;
            self.new_row.next.start = self.work.q.val().start;
            self.new_row.next.length = self.length.val();
            // Page tables begin with a cache line.
            self.new_row.next.table = (self.region.val() >> 6) << 6;
        }
        if self.binds.val() {
            self.new_row.next.table = self.extent.root.val();
            self.new_row.next.direct = self.base.q.val().direct;
            self.new_row.next.page_size = self.base.q.val().page_size;
            self.new_row.next.link = self.region_index.val();
            self.new_row.next.qpn = self.work.q.val().qpn;
        }
        self.wrap.next = (self.state.q.val() == State::Write) & self.good.val() & (self.work.q.val().register | self.binds.val()) & self.again.val().all();
        // A key without any right of the peer is none of the peer's.
        self.shared.next = self.hold.q.val().remote_write | self.hold.q.val().remote_read | self.hold.q.val().remote_atomic;
        self.uncounted.next = self.pending.q.val();
        self.stat.next = bits::<4>(0);
        self.turn_phase.next = false;
        if self.orphan.val() {
            self.pending.d.next = true;
            self.bereft.d.next = self.parent.val();
        }
        match self.state.q.val() {
            State::Idle => {
                self.work.d.next = self.s_work.data.val();
                self.remote.d.next = self.turn.q.val();
                self.turn.d.next = !self.turn.q.val();
                self.orphaned.d.next = self.pending.q.val();
                self.former.d.next = self.bereft.q.val();
                self.back.d.next = false;
                if self.turn.q.val() {
                    self.work.d.next.key = self.s_change.data.val().key;
                    self.work.d.next.pd = self.s_change.data.val().pd;
                    self.work.d.next.function = self.s_change.data.val().function;
                    self.work.d.next.qpn = self.s_change.data.val().qpn;
                    self.work.d.next.register = false;
                    self.work.d.next.bind = false;
                }
                if self.pending.q.val() {
                    self.pending.d.next = false;
                    self.state.d.next = State::Former;
                } else if (self.turn.q.val() & self.s_change.valid.val()) | (!self.turn.q.val() & self.s_work.valid.val()) {
                    self.state.d.next = State::Ask;
                }
            }
            State::Ask => {
                self.hold.d.next = self.row.val();
                if self.row_valid.val() {
                    self.state.d.next = State::Judge;
                }
            }
            State::Judge => {
                // A registration needs a free region and brings its own key, and so does a window of type 2.
                self.bad_key.d.next = ((self.hold.q.val().valid == (self.work.q.val().register | self.work.q.val().bind)) & (!self.work.q.val().bind | self.hold.q.val().fast))
                    | (self.remote.q.val() & !self.shared.val())
                    | (!self.work.q.val().register & !self.work.q.val().bind & (self.hold.q.val().variant != self.variant.val()))
                    | self.excess.val().any();
                self.bad_owner.d.next = (self.hold.q.val().pd != self.work.q.val().pd)
                    | (self.hold.q.val().function != self.work.q.val().function)
                    | (self.was.val() & self.hold.q.val().fast & (self.hold.q.val().qpn != self.work.q.val().qpn));
                // Only windows are bound, only type 1 to nothing; only regions are registered, with a size of pages that there is.
                self.bad_kind.d.next = (!self.hold.q.val().fast & !self.work.q.val().bind)
                    | ((self.hold.q.val().window | self.work.q.val().page_size.all()) & self.work.q.val().register)
                    | (self.work.q.val().bind & (!self.hold.q.val().window | (self.hold.q.val().fast & self.empty.val())));
                self.former.d.next = self.hold.q.val().link;
                self.state.d.next = State::Decide;
            }
            State::Decide => {
                self.status.d.next = bits::<3>(0);
                self.state.d.next = State::Write;
                if self.bad_key.q.val() {
                    self.status.d.next = bits::<3>(key_status::KEY);
                } else if self.bad_owner.q.val() {
                    self.status.d.next = bits::<3>(key_status::DOMAIN);
                } else if self.bad_kind.q.val() {
                    self.status.d.next = bits::<3>(key_status::PERMISSION);
                } else if self.binds.val() {
                    self.state.d.next = State::Base;
                }
            }
            State::Base => {
                self.base.d.next = self.row.val();
                if self.row_valid.val() {
                    self.extent.go.next = true;
                    self.state.d.next = State::Measure;
                }
            }
            State::Measure => {
                self.bad_key.d.next = !self.base.q.val().valid | self.base.q.val().window | (self.base.q.val().variant != self.region_variant.val()) | self.excess.val().any();
                self.bad_owner.d.next = (self.base.q.val().pd != self.work.q.val().pd) | (self.base.q.val().function != self.work.q.val().function);
                // Who lets peers write through a window must be allowed to write himself.
                self.bad_kind.d.next = !self.base.q.val().bind | ((self.rights.val().get_bit(1) | self.rights.val().get_bit(3)) & !self.base.q.val().local_write);
                if self.extent.ready.val() {
                    self.state.d.next = State::Verdict;
                }
            }
            State::Verdict => {
                if self.bad_key.q.val() {
                    self.status.d.next = bits::<3>(key_status::KEY);
                } else if self.bad_owner.q.val() {
                    self.status.d.next = bits::<3>(key_status::DOMAIN);
                } else if self.extent.outside.val() {
                    self.status.d.next = bits::<3>(key_status::BOUNDS);
                } else if self.bad_kind.q.val() {
                    self.status.d.next = bits::<3>(key_status::PERMISSION);
                }
                self.state.d.next = State::Write;
            }
            State::Write => {
                self.we.next = self.good.val();
                self.state.d.next = State::Done;
                if !self.good.val() {
                    self.stat.next = bits::<4>(flags(STATS, &["changes_refused"]) as u64);
                } else if self.work.q.val().register {
                    self.stat.next = bits::<4>(flags(STATS, &["registered"]) as u64);
                } else if self.binds.val() {
                    self.stat.next = bits::<4>(flags(STATS, &["bound"]) as u64);
                    self.state.d.next = State::More;
                } else {
                    self.stat.next = bits::<4>(flags(STATS, &["invalidated"]) as u64);
                    if self.was.val() {
                        self.state.d.next = State::Former;
                    }
                }
            }
            State::More => {
                self.we.next = true;
                self.new_row.next = self.base.q.val();
                self.new_row.next.link = self.more.q.val();
                self.state.d.next = State::Done;
                if self.was.val() {
                    self.state.d.next = State::Former;
                }
            }
            State::Former => {
                self.base.d.next = self.row.val();
                if self.row_valid.val() {
                    self.state.d.next = State::Count;
                }
            }
            State::Count => {
                self.state.d.next = State::Less;
            }
            State::Less => {
                self.we.next = true;
                self.new_row.next = self.base.q.val();
                self.new_row.next.link = self.fewer.q.val();
                self.state.d.next = State::Done;
            }
            State::Done => {
                self.state.d.next = State::Answer;
                if self.back.q.val() {
                    self.orphaned.d.next = false;
                    self.state.d.next = State::Drain;
                } else if self.orphaned.q.val() {
                    self.state.d.next = State::Idle;
                } else if self.good.val() & !self.work.q.val().register {
                    self.state.d.next = State::Turn;
                }
            }
            State::Turn => {
                self.turn_phase.next = true;
                self.state.d.next = State::Drain;
            }
            State::Drain => {
                // The control bus must not wait for atomics.
                if self.pending.q.val() {
                    self.pending.d.next = false;
                    self.orphaned.d.next = true;
                    self.back.d.next = true;
                    self.former.d.next = self.bereft.q.val();
                    self.state.d.next = State::Former;
                } else if self.dry.val() {
                    self.state.d.next = State::Answer;
                }
            }
            State::Answer => {
                if (self.m_changed.ready.val() & self.remote.q.val()) | (self.m_worked.ready.val() & !self.remote.q.val()) {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.pending.d.next = false;
        }
    }
}
