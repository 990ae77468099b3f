//! The walker: from the head of a chain to its buffers, with all checks. See README.md.

pub mod ahead;
pub mod entry;
#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{RdCmd, RdRow, VqHead, VqPiece, VqTold, VqWalked};
use crate::prim::sum::Sum;
use ahead::Ahead;
use entry::{Entries, Entry};
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::MAX_SEGMENTS;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_head", &["m_rd", "s_row", "m_tx", "m_rx", "m_walked"]), // one chain at a time
    ("s_row", &[]),                                             // taken when it comes
    ("m_tx", &["s_row"]),
    ("m_rx", &["s_row"]),
    ("m_walked", &["m_rd", "s_row", "m_tx", "m_rx"]),
];

/// Bytes of a chain to be sent, at most; bits of their number in a message, and of a sum that has one more.
const MOST: u64 = 1 << 17;
const TOTAL: usize = 18;
const WIDER: usize = TOTAL + 1;
/// Bytes of a descriptor, as a power of two, and those of an indirect table that say that it has whole ones.
const LG_DESC: usize = 4;
/// Descriptors that are wanted at once, at most: a block of rows has so many.
const AT_ONCE: u64 = super::queue::ring::NEWS;
/// Most descriptors of a chain, or of an indirect table.
const BUFFERS: u64 = MAX_SEGMENTS as u64;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Aim,
    Ask,
    Row,
    Pick,
    Judge,
    Act,
    Emit,
    Next,
    Answer,
    End,
}

/// What is wrong or right with a descriptor, decided in Judge.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Facts {
    /// Its direction is not the queue's; a readable one behind a writable one has a wrong direction in either kind of queue.
    wrong_way: Bit,
    /// There are too many.
    too_many: Bit,
    /// The chain has too many bytes to be sent.
    too_long: Bit,
    /// It leads to an indirect table that may be.
    leads: Bit,
    /// The next one is beyond the table; as many have been read as the table has.
    outside: Bit,
    loops: Bit,
}

/// One chain at a time, a descriptor in five cycles, or in six and a read of the host; a chain and an indirect table take one more.
#[derive(LogicBlock, BlockDefault)]
#[demand(MOST < 1 << TOTAL && BUFFERS == 256, "the sums have room")]
pub struct Walk {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a read is in flight.
    pub reset: Signal<In, Bit>,
    pub s_head: MsgSink<VqHead>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_row: MsgSink<RdRow>,
    /// Chains of transmit and of receive queues.
    pub m_tx: MsgSrc<VqPiece>,
    pub m_rx: MsgSrc<VqPiece>,
    /// Of each head of a packed ring what is there, before the end of its chain is shown.
    pub m_walked: MsgSrc<VqWalked>,
    /// Pulse: a chain ends with a cause.
    pub told_valid: Signal<Out, Bit>,
    pub told: Signal<Out, VqTold>,
    state: DFF<State>,
    head: DFF<VqHead>,
    /// The table that is read, its entries, and whether it is an indirect one.
    base: DFF<Bits<64>>,
    entries: DFF<Bits<16>>,
    inside: DFF<Bit>,
    /// Descriptor that is read, how many have been in this table, and in the chain.
    n: DFF<Bits<16>>,
    taken: DFF<Bits<16>>,
    /// Of a packed table its last descriptor, that behind `n`, and whether `n` is the last: a cycle later.
    top: DFF<Bits<16>>,
    behind: DFF<Bits<16>>,
    last: DFF<Bit>,
    /// What the chain is given back as; descriptors of a packed ring that it has so far; its end is not to be found; there is none.
    id: DFF<Bits<16>>,
    slots: DFF<Bits<16>>,
    lost: DFF<Bit>,
    gone: DFF<Bit>,
    buffers: DFF<Bits<9>>,
    total: DFF<Bits<TOTAL>>,
    /// Bytes, or so many that nobody counts them.
    any: DFF<Bit>,
    /// Rows that have been read; the one at hand was read for a chain before this one.
    ahead: Ahead,
    old: DFF<Bit>,
    /// How many descriptors from this one on will be wanted, a cycle later.
    wanted: DFF<Bits<6>>,
    to_end: Signal<Local, Bits<16>>,
    failed: DFF<Bit>,
    /// Where descriptor `n` lies: added up one cycle before it is used.
    at: DFF<Bits<64>>,
    desc: DFF<Entry>,
    facts: DFF<Facts>,
    sum: DFF<Bits<TOTAL>>,
    cause: DFF<Bits<5>>,
    place: Sum<64>,
    entry: Entries,
    #[init(Constant::new((!63u64).to_bits()))]
    whole_rows: Constant<Bits<64>>,
    #[init(Constant::new(MOST.into()))]
    most: Constant<Bits<TOTAL>>,
    #[init(Constant::new(((1u64 << TOTAL) - 1).into()))]
    beyond: Constant<Bits<TOTAL>>,
    row_of: Signal<Local, Bits<64>>,
    offset: Signal<Local, Bits<64>>,
    wraps: Signal<Local, Bit>,
    seen: Signal<Local, Entry>,
    found: Signal<Local, Facts>,
    length: Signal<Local, Bits<32>>,
    crooked: Signal<Local, Bits<4>>,
    steep: Signal<Local, Bits<4>>,
    table_at: Signal<Local, Bits<64>>,
    table_entries: Signal<Local, Bits<28>>,
    sum_wide: Signal<Local, Bits<WIDER>>,
    sum_low: Signal<Local, Bits<TOTAL>>,
    sum_next: Signal<Local, Bits<TOTAL>>,
    huge: Signal<Local, Bit>,
    vast: Signal<Local, Bit>,
    buffers_next: Signal<Local, Bits<9>>,
    taken_next: Signal<Local, Bits<16>>,
    piece: Signal<Local, VqPiece>,
    shows: Signal<Local, Bit>,
    took: Signal<Local, Bit>,
    blamed: Signal<Local, Bits<5>>,
    n_next: Signal<Local, Bits<16>>,
    skims: Signal<Local, Bit>,
    faulty: Signal<Local, Bit>,
    closes: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Walk {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, head, base, entries, inside, n, taken, top, behind, last, gone, id, slots, lost, buffers, total, any, old, wanted, failed, at, desc, facts, sum, cause);
        // Where the descriptor lies. A table at the end of the address space does not go on at its beginning.
        self.offset.next = bit_cast::<64, 16>(self.n.q.val()) << LG_DESC;
        self.place.a.next = self.base.q.val();
        self.place.b.next = self.offset.val();
        self.wraps.next = self.base.q.val().get_bit(63) & !self.at.q.val().get_bit(63);
        self.row_of.next = self.at.q.val() & self.whole_rows.val();
        self.m_rd.valid.next = false;
        self.m_rd.data.next.iova = self.row_of.val();
        self.m_rd.data.next.function = self.head.q.val().function;
        self.m_rd.data.next.rows = self.ahead.rows.val();
        self.m_rd.data.next.tag = bits::<8>(0);
        self.s_head.ready.next = false;
        self.s_row.ready.next = true;
        self.ahead.clock.next = self.clock.val();
        self.ahead.reset.next = self.reset.val();
        self.ahead.at.next = self.at.q.val();
        self.ahead.inside.next = self.inside.q.val();
        self.ahead.wanted.next = self.wanted.q.val();
        self.ahead.goes.next = false;
        self.ahead.comes.next = self.s_row.valid.val();
        self.ahead.came.next = self.s_row.data.val();
        self.ahead.forget.next = false;
        self.ahead.forget_table.next = false;
        // All chains that are new stand in the ring since its index was read, and all of a table since its chain was seen.
        self.to_end.next = self.entries.q.val() - self.n.q.val();
        self.wanted.d.next = self.head.q.val().news;
        if self.inside.q.val() {
            self.wanted.d.next = bits::<6>(AT_ONCE);
            if self.to_end.val() < AT_ONCE {
                self.wanted.d.next = self.to_end.val().get_bits::<6>(0);
            }
        }
        self.top.d.next = self.entries.q.val() - 1;
        self.n_next.next = self.n.q.val() + 1;
        self.last.d.next = self.n.q.val() == self.top.q.val();
        self.behind.d.next = self.n_next.val();
        if self.n.q.val() == self.top.q.val() {
            self.behind.d.next = bits::<16>(0);
        }
        self.entry.row.next = self.ahead.row.val();
        self.entry.which.next = self.at.q.val().get_bits::<2>(4);
        self.entry.packed.next = self.head.q.val().packed;
        self.entry.inside.next = self.inside.q.val();
        self.entry.wrap.next = self.head.q.val().wrap;
        self.entry.behind.next = self.behind.q.val();
        self.entry.last.next = self.last.q.val();
        // Of a chain in a packed ring it is not known before its last descriptor how many places it takes: a bad one is read on, but not shown.
        self.skims.next = self.head.q.val().packed & !self.inside.q.val();

        // ---- Judge ----
        self.seen.next = self.desc.q.val();
        self.length.next = self.seen.val().length;
        self.vast.next = (self.length.val() >> TOTAL).any();
        self.sum_wide.next = bit_cast::<WIDER, TOTAL>(self.total.q.val()) + bit_cast::<WIDER, TOTAL>(self.length.val().get_bits::<TOTAL>(0));
        self.huge.next = self.vast.val() | self.sum_wide.val().get_bit(TOTAL);
        self.sum_low.next = self.sum_wide.val().get_bits::<TOTAL>(0);
        self.sum_next.next = self.sum_low.val();
        // What carries, or is as long as that, stays as long as that.
        if self.huge.val() {
            self.sum_next.next = self.beyond.val();
        }
        self.buffers_next.next = self.buffers.q.val() + 1;
        self.taken_next.next = self.taken.q.val() + 1;
        self.table_at.next = self.seen.val().addr;
        self.crooked.next = self.length.val().get_bits::<4>(0);
        self.steep.next = self.table_at.val().get_bits::<4>(0);
        self.table_entries.next = self.length.val().get_bits::<28>(LG_DESC);
        self.found.next.wrong_way = self.seen.val().write != self.head.q.val().receive;
        self.found.next.too_many = self.buffers_next.val() > BUFFERS;
        self.found.next.too_long = !self.head.q.val().receive & (self.huge.val() | (self.sum_low.val() > self.most.val()));
        self.found.next.leads = self.head.q.val().indirect
            & !self.inside.q.val()
            & !self.seen.val().has_next
            & !self.crooked.val().any()
            & !self.steep.val().any()
            & self.table_entries.val().any()
            & (self.table_entries.val() <= BUFFERS);
        self.found.next.outside = self.seen.val().to >= self.entries.q.val();
        self.found.next.loops = self.taken_next.val() >= self.entries.q.val();

        // ---- Act ----
        self.blamed.next = bits::<5>(0);
        if self.desc.q.val().indirect {
            if !self.facts.q.val().leads {
                self.blamed.next = bits::<5>(VirtioCause::BadIndirect as u64);
            }
        } else if self.facts.q.val().wrong_way {
            self.blamed.next = bits::<5>(VirtioCause::BadDirection as u64);
        } else if self.facts.q.val().too_many | self.facts.q.val().too_long {
            self.blamed.next = bits::<5>(VirtioCause::LongChain as u64);
        }

        self.faulty.next = self.blamed.val().any() | self.cause.q.val().any();
        self.m_walked.valid.next = self.state.q.val() == State::Answer;
        self.m_walked.data.next.none = self.gone.q.val();
        self.m_walked.data.next.lost = self.lost.q.val();
        self.m_walked.data.next.slots = self.slots.q.val();

        // ---- What is shown ----
        self.piece.next.queue = self.head.q.val().queue;
        self.piece.next.function = self.head.q.val().function;
        self.piece.next.merged = self.head.q.val().merged;
        self.piece.next.sums = self.head.q.val().sums;
        self.piece.next.id = self.id.q.val();
        self.piece.next.slots = self.slots.q.val();
        if self.lost.q.val() {
            self.piece.next.slots = bits::<16>(0);
        }
        self.piece.next.ends = self.state.q.val() == State::End;
        self.piece.next.cause = self.cause.q.val();
        self.piece.next.total = self.total.q.val();
        self.piece.next.addr = self.desc.q.val().addr;
        self.piece.next.len = self.desc.q.val().length;
        self.shows.next = (self.state.q.val() == State::End) | (self.state.q.val() == State::Emit);
        self.m_tx.data.next = self.piece.val();
        self.m_rx.data.next = self.piece.val();
        self.m_tx.valid.next = self.shows.val() & !self.head.q.val().receive;
        self.m_rx.valid.next = self.shows.val() & self.head.q.val().receive;
        self.took.next = (self.m_tx.ready.val() & !self.head.q.val().receive) | (self.m_rx.ready.val() & self.head.q.val().receive);
        self.told_valid.next = false;
        self.told.next.queue = self.head.q.val().queue;
        self.told.next.cause = self.cause.q.val();
        self.told.next.lost = self.lost.q.val();
        self.closes.next = false;

        match self.state.q.val() {
            State::Idle => {
                self.s_head.ready.next = true;
                self.head.d.next = self.s_head.data.val();
                self.base.d.next = self.s_head.data.val().desc;
                self.entries.d.next = self.s_head.data.val().size;
                self.n.d.next = self.s_head.data.val().head;
                self.inside.d.next = false;
                self.taken.d.next = bits::<16>(0);
                self.buffers.d.next = bits::<9>(0);
                self.total.d.next = bits::<TOTAL>(0);
                self.any.d.next = false;
                self.old.d.next = true;
                self.cause.d.next = bits::<5>(0);
                self.id.d.next = self.s_head.data.val().head;
                self.slots.d.next = bits::<16>(0);
                self.lost.d.next = false;
                self.gone.d.next = false;
                if self.s_head.valid.val() {
                    self.state.d.next = State::Aim;
                    self.ahead.forget.next = !self.s_head.data.val().keeps;
                }
            }
            // The first descriptor of a table.
            State::Aim => {
                self.at.d.next = self.place.y.val();
                self.state.d.next = State::Ask;
            }
            State::Ask => {
                if self.wraps.val() {
                    self.failed.d.next = true;
                    self.state.d.next = State::Pick;
                } else if self.ahead.here.val() {
                    self.desc.d.next = self.entry.y.val();
                    self.state.d.next = State::Judge;
                } else if !self.ahead.busy.val() {
                    self.m_rd.valid.next = true;
                    if self.m_rd.ready.val() {
                        self.ahead.goes.next = true;
                        self.state.d.next = State::Row;
                    }
                }
            }
            State::Row => {
                self.failed.d.next = self.s_row.data.val().err;
                self.old.d.next = false;
                if self.s_row.valid.val() {
                    self.state.d.next = State::Pick;
                }
            }
            State::Pick => {
                self.desc.d.next = self.entry.y.val();
                self.state.d.next = State::Judge;
                if self.failed.q.val() {
                    self.cause.d.next = bits::<5>(VirtioCause::RingDma as u64);
                    if self.inside.q.val() {
                        self.cause.d.next = bits::<5>(VirtioCause::BadIndirect as u64);
                    }
                    self.lost.d.next = self.skims.val();
                    self.closes.next = true;
                }
            }
            State::Judge => {
                self.facts.d.next = self.found.val();
                self.sum.d.next = self.sum_next.val();
                self.taken.d.next = self.taken_next.val();
                // Availability is the first one's alone: it was written last.
                self.gone.d.next = self.head.q.val().packed & self.seen.val().absent & !self.slots.q.val().any();
                if self.skims.val() {
                    self.id.d.next = self.seen.val().id;
                    self.slots.d.next = self.taken_next.val();
                }
                self.state.d.next = State::Act;
            }
            State::Act => {
                if !self.cause.q.val().any() {
                    self.cause.d.next = self.blamed.val();
                }
                if self.gone.q.val() {
                    self.state.d.next = State::Answer;
                    if self.old.q.val() {
                        // It may have come since the row was read.
                        self.ahead.forget.next = true;
                        self.taken.d.next = bits::<16>(0);
                        self.slots.d.next = bits::<16>(0);
                        self.cause.d.next = bits::<5>(0);
                        self.state.d.next = State::Ask;
                    }
                } else if self.faulty.val() & self.skims.val() {
                    self.n.d.next = self.desc.q.val().to;
                    self.state.d.next = State::Next;
                } else if self.blamed.val().any() {
                    self.closes.next = true;
                } else if self.desc.q.val().indirect {
                    self.base.d.next = self.desc.q.val().addr;
                    self.entries.d.next = bit_cast::<16, 28>(self.table_entries.val());
                    self.inside.d.next = true;
                    self.n.d.next = bits::<16>(0);
                    self.taken.d.next = bits::<16>(0);
                    self.ahead.forget_table.next = true;
                    self.state.d.next = State::Aim;
                } else {
                    self.n.d.next = self.desc.q.val().to;
                    self.buffers.d.next = self.buffers_next.val();
                    self.total.d.next = self.sum.q.val();
                    self.state.d.next = State::Next;
                    if self.length.val().any() {
                        self.any.d.next = true;
                        self.state.d.next = State::Emit;
                    }
                }
            }
            State::Emit => {
                if self.took.val() {
                    self.state.d.next = State::Next;
                }
            }
            State::Next => {
                self.at.d.next = self.place.y.val();
                self.state.d.next = State::Ask;
                if !self.desc.q.val().has_next {
                    self.closes.next = true;
                    if !self.any.q.val() & !self.cause.q.val().any() {
                        self.cause.d.next = bits::<5>(VirtioCause::Short as u64);
                    }
                } else if self.facts.q.val().outside {
                    self.closes.next = true;
                    self.cause.d.next = bits::<5>(VirtioCause::BadNext as u64);
                } else if self.facts.q.val().loops {
                    self.closes.next = true;
                    self.lost.d.next = self.skims.val();
                    self.cause.d.next = bits::<5>(VirtioCause::LongChain as u64);
                }
            }
            State::Answer => {
                if self.m_walked.ready.val() {
                    self.state.d.next = State::End;
                    if self.gone.q.val() {
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::End => {
                if self.took.val() {
                    self.told_valid.next = self.cause.q.val().any();
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        // Who waits for the answer knows it before the chain's end is shown: then a slot for its frame is promised.
        if self.closes.val() {
            self.state.d.next = State::End;
            if self.head.q.val().packed {
                self.state.d.next = State::Answer;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
