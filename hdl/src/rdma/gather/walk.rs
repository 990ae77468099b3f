//! Middle stage of the gatherer: walks the scatter/gather list and cuts the payload of one packet into segments.

use super::fit::Fit;
use super::{GatherJob, Owner, Segment};
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::access;
use crate::msg::{MrReq, WqeData, WqeFree, WqeRead};
use crate::prim::pack::Cast;
use crate::prim::sum::{Diff, LessOne, PlusOne, Sum};
use crate::records::Sge;
use crate::stream::{Backlog, MsgSlice};
use ferric_abi::codes::CqeStatus;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Keys that may be unanswered: the key unit has as many places for answers.
const MOST_KEYS: u64 = 32;
/// Bytes that the work request buffer is read in.
const GRANULE: u64 = 16;
/// Bytes of two of them, of which inline data are read at a time.
const PAIR: u64 = 2 * GRANULE;
/// Bytes of a buffer behind the head: inline data, or entries of one granule each.
const INLINE_BYTES: u64 = 480;
/// The same behind an address.
const ADDRESSED_BYTES: u64 = INLINE_BYTES - GRANULE;
const MOST_ENTRIES: u64 = INLINE_BYTES / GRANULE;
/// Granule of the first inline byte, if there is no address in front of it.
const INLINE: u64 = 2;
/// Granule of the entry behind the one that came with the order, or of the first inline byte behind an address; with an address in front of the entries.
const SECOND_ENTRY: u64 = 3;
const SECOND_ENTRY_ADDRESSED: u64 = SECOND_ENTRY + 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Load,
    /// Sends the only segment of a packet that lies within one entry and one page.
    Quick,
    Start,
    /// Looks whether inline data lie within their buffer.
    Judge,
    /// Reads entry `index` of the list.
    Read,
    Await,
    /// Passes over what earlier packets have sent: all of the entry, or a part.
    Skip,
    Pass,
    /// Compares, chooses, and sends one segment.
    Compare,
    Choose,
    Push,
    /// Sends inline data, two granules in a cycle.
    Inline,
    /// Ends the packet without a further segment.
    Close,
}

/// The list walker.
#[derive(LogicBlock, Default)]
pub struct Walk {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_job: MsgSink<GatherJob>,
    /// `s_job` is the requester's order, which alone can go on where the walk stands; the same order's fields, before anything is chosen.
    pub request: Signal<In, Bit>,
    pub request_handle: Signal<In, Bits<8>>,
    pub request_off: Signal<In, Bits<32>>,
    pub request_len: Signal<In, Bits<14>>,
    pub m_wqe: MsgSrc<WqeRead>,
    pub s_wqe: MsgSink<WqeData>,
    pub m_free: MsgSrc<WqeFree>,
    pub m_mr: MsgSrc<MrReq>,
    pub m_owner: MsgSrc<Owner>,
    pub m_segment: MsgSrc<Segment>,
    /// Pulse: the inline data of a packet have been read.
    pub copied: Signal<In, Bit>,
    /// Pulse: a key answer was taken.
    pub answered: Signal<In, Bit>,
    sge: Cast<Bits<128>, Sge>,
    first: Cast<Bits<128>, Sge>,
    state: DFF<State>,
    job: DFF<GatherJob>,
    /// Where the walk stands: byte `place` of the message in `handle` is at `va`, `rem` bytes before the entry's end.
    known: DFF<Bit>,
    handle: DFF<Bits<8>>,
    place: DFF<Bits<32>>,
    index: DFF<Bits<8>>,
    va: DFF<Bits<64>>,
    /// The low bits of `va` have gone on and passed over their end: the others follow a cycle later.
    carry: DFF<Bit>,
    low_va: Signal<Local, Bits<15>>,
    high_va: Signal<Local, Bits<64>>,
    kept_va: Signal<Local, Bits<14>>,
    upper: PlusOne<50>,
    /// What is left of the entry behind the segment, which is shorter than 2^13: the low bits with their borrow, and the others, of which one less needs no carry chain.
    low_rest: Signal<Local, Bits<15>>,
    fewer: LessOne<18>,
    high_rest: Signal<Local, Bits<18>>,
    short: Diff<32>,
    /// The number of opposite sign of `remains`, without a carry chain: what is left to skip behind an entry that ends before.
    beyond: PlusOne<32>,
    passed: Sum<64>,
    rem: DFF<Bits<32>>,
    key: DFF<Bits<32>>,
    skip: DFF<Bits<32>>,
    /// The entry ends before that. Otherwise where it is; what is left of the entry, negative if it ends before. All a cycle late.
    over: DFF<Bit>,
    target: DFF<Bits<64>>,
    remains: DFF<Bits<32>>,
    /// The segment goes: `rem` becomes what is behind it.
    steps: Signal<Local, Bit>,
    hit: DFF<Bit>,
    empty: DFF<Bit>,
    too_many: DFF<Bit>,
    pay: DFF<Bits<14>>,
    /// Bytes of the packet that earlier segments hold.
    at: DFF<Bits<14>>,
    /// Packets whose inline data are still to be read.
    copying: Backlog<6>,
    /// Keys asked for and not answered: the queue of answers has room for all.
    keys: DFF<Bits<6>>,
    fits: DFF<Bit>,
    in_page: DFF<Bit>,
    sge_in_page: DFF<Bit>,
    page: DFF<Bits<13>>,
    seg: DFF<Bits<13>>,
    ends: DFF<Bit>,
    status: DFF<Bits<8>>,
    granule: DFF<Bits<5>>,
    /// The packet's owner is still to be sent, together with the first of its inline data.
    owes: DFF<Bit>,
    frees: MsgSlice<WqeFree>,
    mr: DFF<MrReq>,
    mr_valid: DFF<Bit>,
    take: Signal<Local, Bit>,
    resume: Signal<Local, Bit>,
    /// Message offset behind this packet; inline data: it reaches beyond byte 480, or 464.
    reach: Signal<Local, Bits<32>>,
    low_reach: Signal<Local, Bits<15>>,
    far: Signal<Local, Bit>,
    far_addressed: Signal<Local, Bit>,
    /// Of a packet that comes, in the first entry and where the walk stands; of what is left of the packet at hand.
    from_first: Fit,
    from_here: Fit,
    rest_here: Fit,
    whole: Signal<Local, Bit>,
    quick: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
    asked: Signal<Local, Bit>,
    /// All of it is inline, and surely within the buffer.
    short_inline: Signal<Local, Bit>,
    inlines: Signal<Local, Bit>,
    may_close: Signal<Local, Bit>,
    piece: Signal<Local, Bits<14>>,
    in_granule: Signal<Local, Bits<32>>,
    more_sge: Signal<Local, Bit>,
    pushed: Signal<Local, Bit>,
    done: Signal<Local, Bit>,
    tail: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Walk {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, job, known, handle, place, index, va, carry, rem, key, skip, over, target, remains, hit, empty);
        dff_setup!(self, clock, too_many, pay, at, keys, fits, in_page, sge_in_page, page, seg, ends, status, granule, owes, mr, mr_valid);
        clock!(self, clock, frees, copying);
        self.carry.d.next = false;
        self.kept_va.next = self.va.q.val().get_bits::<14>(0);
        self.low_va.next = bit_cast::<15, 14>(self.kept_va.val()) + bit_cast::<15, 13>(self.seg.q.val());
        self.high_va.next = (self.va.q.val() >> 14) << 14;
        self.upper.a.next = self.va.q.val().get_bits::<50>(14);
        self.low_rest.next = bit_cast::<15, 14>(self.rem.q.val().get_bits::<14>(0)) - bit_cast::<15, 13>(self.seg.q.val());
        self.fewer.a.next = self.rem.q.val().get_bits::<18>(14);
        self.high_rest.next = self.rem.q.val().get_bits::<18>(14);
        if self.low_rest.val().get_bit(14) {
            self.high_rest.next = self.fewer.y.val();
        }
        self.short.a.next = self.rem.q.val();
        self.short.b.next = self.skip.q.val();
        self.beyond.a.next = !self.remains.q.val();
        self.over.d.next = self.short.below.val();
        self.target.d.next = self.passed.y.val();
        self.remains.d.next = self.short.y.val();
        self.passed.a.next = self.va.q.val();
        self.passed.b.next = bit_cast::<64, 32>(self.skip.q.val());
        self.copying.reset.next = self.reset.val();
        self.frees.reset.next = self.reset.val();
        MsgSrc::<WqeFree>::link(&mut self.m_free, &mut self.frees.m);
        self.m_mr.data.next = self.mr.q.val();
        self.m_mr.valid.next = self.mr_valid.q.val();
        self.mr_valid.d.next = self.mr_valid.q.val() & !self.m_mr.ready.val();
        self.s_job.ready.next = (self.state.q.val() == State::Load) & self.frees.s.ready.val();
        self.take.next = self.s_job.valid.val() & (self.state.q.val() == State::Load) & self.frees.s.ready.val();

        // Work request buffer: granule 0 and 1 are the head.
        self.more_sge.next = !(self.index.q.val() == self.job.q.val().num_sge);
        self.m_wqe.data.next.handle = self.job.q.val().handle;
        self.m_wqe.data.next.granule = self.granule.q.val();
        self.m_wqe.valid.next = (self.state.q.val() == State::Read) & self.more_sge.val();
        self.s_wqe.ready.next = self.state.q.val() == State::Await;
        self.sge.x.next = self.s_wqe.data.val().data;

        // To the issuer.
        self.inlines.next = self.state.q.val() == State::Inline;
        self.asks.next = !self.mr_valid.q.val() & !(self.keys.q.val() == MOST_KEYS);
        self.m_owner.valid.next = ((self.state.q.val() == State::Start) & !self.job.q.val().only_free)
            | ((self.state.q.val() == State::Quick) & self.asks.val() & self.m_segment.ready.val())
            | (self.inlines.val() & self.owes.q.val() & self.m_segment.ready.val());
        self.m_owner.data.next.function = self.job.q.val().function;
        self.m_owner.data.next.notify = self.job.q.val().notify;
        self.m_owner.data.next.qpn = self.job.q.val().qpn;
        self.m_owner.data.next.epoch = self.job.q.val().epoch;
        self.m_owner.data.next.psn = self.job.q.val().psn;
        self.m_owner.data.next.wqe_index = self.job.q.val().wqe_index;
        self.m_owner.data.next.round = self.job.q.val().round;
        self.m_owner.data.next.reply = self.job.q.val().reply;
        self.m_owner.data.next.handle = self.job.q.val().handle;
        self.m_owner.data.next.free = self.job.q.val().free;
        // The buffer must not go back before earlier packets of the request have been read.
        self.may_close.next = (self.state.q.val() == State::Close) & (self.copying.none.val() | !self.job.q.val().inline_data | !self.status.q.val().any());
        self.m_segment.valid.next = ((self.state.q.val() == State::Push) & self.asks.val())
            | ((self.state.q.val() == State::Quick) & self.asks.val() & self.m_owner.ready.val())
            | (self.inlines.val() & (!self.owes.q.val() | self.m_owner.ready.val()))
            | self.may_close.val();
        // Of inline data what lies within two aligned granules.
        self.piece.next = bits::<14>(PAIR);
        if self.granule.q.val().get_bit(0) {
            self.piece.next = bits::<14>(GRANULE);
        }
        self.tail.next = self.pay.q.val() <= self.piece.val();
        self.m_segment.data.next.len = self.seg.q.val();
        if self.inlines.val() {
            self.m_segment.data.next.len = self.piece.val().get_bits::<13>(0);
            if self.tail.val() {
                self.m_segment.data.next.len = self.pay.q.val().get_bits::<13>(0);
            }
        }
        self.m_segment.data.next.at = self.at.q.val();
        self.m_segment.data.next.keyed = !(self.state.q.val() == State::Close) & !self.inlines.val();
        self.m_segment.data.next.inline_data = self.inlines.val();
        self.m_segment.data.next.granule = self.granule.q.val();
        self.m_segment.data.next.last = self.ends.q.val() | (self.state.q.val() == State::Close) | (self.inlines.val() & self.tail.val());
        self.m_segment.data.next.status = self.status.q.val();
        self.pushed.next = self.m_segment.ready.val() & self.asks.val();

        // A packet at hand: where its walk begins, and whether one segment is all of it.
        self.first.x.next = self.s_job.data.val().sge;
        self.resume.next = self.request.val() & self.known.q.val() & (self.request_handle.val() == self.handle.q.val()) & (self.request_off.val() == self.place.q.val());
        self.from_first.va.next = self.first.y.val().addr;
        self.from_first.rem.next = self.first.y.val().length;
        self.from_first.len.next = self.s_job.data.val().pay_len;
        self.from_here.va.next = self.va.q.val();
        self.from_here.rem.next = self.rem.q.val();
        self.from_here.len.next = self.request_len.val();
        self.rest_here.va.next = self.va.q.val();
        self.rest_here.rem.next = self.rem.q.val();
        self.rest_here.len.next = self.pay.q.val();
        self.whole.next = self.from_first.in_entry.val() & self.from_first.in_page.val() & (self.s_job.data.val().pay_off == 0);
        if self.resume.val() {
            self.whole.next = self.from_here.in_entry.val() & self.from_here.in_page.val();
        }
        self.quick.next = self.whole.val()
            & self.s_job.data.val().pay_len.any()
            & self.s_job.data.val().num_sge.any()
            & (self.s_job.data.val().num_sge < MOST_ENTRIES)
            & !self.s_job.data.val().inline_data
            & !self.s_job.data.val().only_free;
        self.short_inline.next = self.s_job.data.val().inline_data
            & !self.s_job.data.val().only_free
            & !self.s_job.data.val().pay_off.any()
            & self.s_job.data.val().pay_len.any()
            & !self.s_job.data.val().pay_len.get_bits::<6>(8).any();
        self.in_granule.next = self.job.q.val().pay_off >> 4;
        self.reach.next = self.job.q.val().pay_off + bit_cast::<32, 14>(self.job.q.val().pay_len);
        self.low_reach.next = self.place.q.val().get_bits::<15>(0);
        self.far.next = self.job.q.val().pay_off.get_bits::<23>(9).any() | (self.low_reach.val() > INLINE_BYTES);
        self.far_addressed.next = self.job.q.val().addressed & (self.low_reach.val() > ADDRESSED_BYTES);
        self.done.next = false;
        self.steps.next = false;
        if self.carry.q.val() {
            self.va.d.next = (bit_cast::<64, 50>(self.upper.y.val()) << 14) | bit_cast::<64, 14>(self.kept_va.val());
        }

        match self.state.q.val() {
            State::Load => {
                if self.take.val() {
                    self.job.d.next = self.s_job.data.val();
                    self.hit.d.next = self.resume.val();
                    self.empty.d.next = self.s_job.data.val().pay_len == 0;
                    // 512 bytes a buffer, less the head, hold 30 entries or 480 bytes; an address takes the place of one.
                    self.too_many.d.next = (self.s_job.data.val().num_sge > MOST_ENTRIES) | (self.s_job.data.val().addressed & (self.s_job.data.val().num_sge == MOST_ENTRIES));
                    self.pay.d.next = self.s_job.data.val().pay_len;
                    self.at.d.next = bits::<14>(0);
                    self.status.d.next = bits::<8>(CqeStatus::Success as u64);
                    self.skip.d.next = self.s_job.data.val().pay_off;
                    self.seg.d.next = self.s_job.data.val().pay_len.get_bits::<13>(0);
                    self.ends.d.next = self.quick.val();
                    if !self.resume.val() {
                        // The first entry came with the order.
                        self.va.d.next = self.first.y.val().addr;
                        self.rem.d.next = self.first.y.val().length;
                        self.key.d.next = self.first.y.val().lkey;
                        self.index.d.next = bits::<8>(1);
                        self.granule.d.next = bits::<5>(SECOND_ENTRY);
                        if self.s_job.data.val().addressed {
                            self.granule.d.next = bits::<5>(SECOND_ENTRY_ADDRESSED);
                        }
                    }
                    self.state.d.next = State::Start;
                    if self.quick.val() {
                        self.state.d.next = State::Quick;
                    }
                    self.owes.d.next = self.short_inline.val();
                    if self.short_inline.val() {
                        self.granule.d.next = bits::<5>(INLINE);
                        if self.s_job.data.val().addressed {
                            self.granule.d.next = bits::<5>(SECOND_ENTRY);
                        }
                        self.state.d.next = State::Inline;
                    }
                }
            }
            State::Quick => {
                self.place.d.next = self.reach.val();
                if self.pushed.val() & self.m_owner.ready.val() {
                    self.mr_valid.d.next = true;
                    self.carry.d.next = self.low_va.val().get_bit(14);
                    self.va.d.next = self.high_va.val() | bit_cast::<64, 14>(self.low_va.val().get_bits::<14>(0));
                    self.steps.next = true;
                    self.handle.d.next = self.job.q.val().handle;
                    self.known.d.next = !self.job.q.val().free & !self.job.q.val().reply;
                    self.done.next = true;
                }
            }
            State::Start => {
                self.place.d.next = self.reach.val();
                self.handle.d.next = self.job.q.val().handle;
                self.known.d.next = false;
                if self.job.q.val().inline_data {
                    self.granule.d.next = self.in_granule.val().get_bits::<5>(0) + INLINE;
                    if self.job.q.val().addressed {
                        // One packet: it begins with the first byte.
                        self.granule.d.next = bits::<5>(SECOND_ENTRY);
                    }
                }
                if self.job.q.val().only_free {
                    self.done.next = self.copying.none.val();
                } else if self.m_owner.ready.val() {
                    if self.empty.q.val() {
                        self.state.d.next = State::Close;
                    } else if self.job.q.val().inline_data {
                        self.state.d.next = State::Judge;
                    } else if self.too_many.q.val() | !self.job.q.val().num_sge.any() {
                        self.status.d.next = bits::<8>(CqeStatus::LocalLength as u64);
                        self.state.d.next = State::Close;
                    } else if self.hit.q.val() | !self.skip.q.val().any() {
                        self.state.d.next = State::Compare;
                    } else {
                        self.state.d.next = State::Skip;
                    }
                }
            }
            State::Judge => {
                // `place` is where the packet ends.
                self.state.d.next = State::Inline;
                if self.far.val() | self.far_addressed.val() {
                    self.status.d.next = bits::<8>(CqeStatus::LocalLength as u64);
                    self.state.d.next = State::Close;
                }
            }
            State::Read => {
                if !self.more_sge.val() {
                    self.status.d.next = bits::<8>(CqeStatus::LocalLength as u64);
                    self.state.d.next = State::Close;
                } else if self.m_wqe.ready.val() {
                    self.granule.d.next = self.granule.q.val() + 1;
                    self.index.d.next = self.index.q.val() + 1;
                    self.state.d.next = State::Await;
                }
            }
            State::Await => {
                self.va.d.next = self.sge.y.val().addr;
                self.rem.d.next = self.sge.y.val().length;
                self.key.d.next = self.sge.y.val().lkey;
                if self.s_wqe.valid.val() {
                    self.state.d.next = State::Compare;
                    if self.skip.q.val().any() {
                        self.state.d.next = State::Skip;
                    }
                    if self.s_wqe.data.val().err {
                        self.status.d.next = bits::<8>(CqeStatus::LocalLength as u64);
                        self.state.d.next = State::Close;
                    }
                }
            }
            State::Skip => {
                self.state.d.next = State::Pass;
            }
            State::Pass => {
                if self.over.q.val() {
                    self.skip.d.next = self.beyond.y.val();
                    self.state.d.next = State::Read;
                } else {
                    self.va.d.next = self.target.q.val();
                    self.rem.d.next = self.remains.q.val();
                    self.skip.d.next = bits::<32>(0);
                    self.state.d.next = State::Compare;
                }
            }
            State::Compare => {
                self.skip.d.next = bits::<32>(0);
                self.page.d.next = self.rest_here.page.val();
                self.fits.d.next = self.rest_here.in_entry.val();
                self.in_page.d.next = self.rest_here.in_page.val();
                self.sge_in_page.d.next = self.rest_here.entry_in_page.val();
                self.state.d.next = State::Choose;
                if !self.rem.q.val().any() {
                    self.state.d.next = State::Read;
                }
            }
            State::Choose => {
                self.seg.d.next = self.page.q.val();
                self.ends.d.next = false;
                if self.fits.q.val() & self.in_page.q.val() {
                    self.seg.d.next = self.pay.q.val().get_bits::<13>(0);
                    self.ends.d.next = true;
                } else if !self.fits.q.val() & self.sge_in_page.q.val() {
                    self.seg.d.next = self.rem.q.val().get_bits::<13>(0);
                }
                self.state.d.next = State::Push;
            }
            State::Push => {
                if self.pushed.val() {
                    self.mr_valid.d.next = true;
                    self.carry.d.next = self.low_va.val().get_bit(14);
                    self.va.d.next = self.high_va.val() | bit_cast::<64, 14>(self.low_va.val().get_bits::<14>(0));
                    self.steps.next = true;
                    self.pay.d.next = self.pay.q.val() - bit_cast::<14, 13>(self.seg.q.val());
                    self.at.d.next = self.at.q.val() + bit_cast::<14, 13>(self.seg.q.val());
                    self.state.d.next = State::Compare;
                    if self.ends.q.val() {
                        self.done.next = true;
                        self.known.d.next = !self.job.q.val().free & !self.job.q.val().reply;
                    }
                }
            }
            State::Inline => {
                self.known.d.next = false;
                if self.m_segment.ready.val() & (!self.owes.q.val() | self.m_owner.ready.val()) {
                    self.owes.d.next = false;
                    self.granule.d.next = (self.granule.q.val() | 1) + 1;
                    self.pay.d.next = self.pay.q.val() - self.piece.val();
                    self.at.d.next = self.at.q.val() + self.piece.val();
                    self.done.next = self.tail.val();
                }
            }
            State::Close => {
                self.done.next = self.may_close.val() & self.m_segment.ready.val();
            }
            _ => {
                self.state.d.next = State::Load;
            }
        }
        if self.done.val() {
            self.state.d.next = State::Load;
        }
        // Chosen last, since the difference comes last.
        if self.steps.val() {
            self.rem.d.next = (bit_cast::<32, 18>(self.high_rest.val()) << 14) | bit_cast::<32, 14>(self.low_rest.val().get_bits::<14>(0));
        }
        // With inline data the buffer goes back when these have been read.
        self.frees.s.valid.next = self.done.val() & self.job.q.val().free & !self.inlines.val();
        self.frees.s.data.next.handle = self.job.q.val().handle;

        self.copying.came.next = self.done.val() & self.inlines.val();
        self.copying.went.next = self.copied.val();
        self.asked.next = self.m_segment.valid.val() & self.m_segment.ready.val() & self.m_segment.data.val().keyed;
        if self.asked.val() & !self.answered.val() {
            self.keys.d.next = self.keys.q.val() + 1;
        }
        if self.answered.val() & !self.asked.val() {
            self.keys.d.next = self.keys.q.val() - 1;
        }
        if !self.mr_valid.q.val() {
            self.mr.d.next.key = self.key.q.val();
            self.mr.d.next.pd = self.job.q.val().pd;
            self.mr.d.next.function = self.job.q.val().function;
            self.mr.d.next.qpn = self.job.q.val().qpn;
            self.mr.d.next.va = self.va.q.val();
            self.mr.d.next.chk_len = bit_cast::<32, 13>(self.seg.q.val());
            self.mr.d.next.whole = false;
            self.mr.d.next.access = bits::<6>(access::LOCAL_READ);
            if self.job.q.val().reply {
                // The peer's right to READ.
                self.mr.d.next.access = bits::<6>(access::REMOTE_READ);
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Load;
            self.known.d.next = false;
            self.keys.d.next = bits::<6>(0);
            self.mr_valid.d.next = false;
        }
    }
}
