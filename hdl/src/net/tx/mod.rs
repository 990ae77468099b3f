//! Egress: slots, assembly buffer, ICRC insertion. See README.md.

mod alloc;
mod asm;
mod insert;
mod outfifo;
mod picker;
mod reader;
pub(crate) mod seals;
mod slots;
#[cfg(test)]
pub(crate) mod tests;
mod types;

use crate::assembly::{up_to_most, AnyBlock, MOST_CLIENTS};
use crate::bus::{AxisSrc, HdrSink, MsgSink, MsgSrc};
use crate::for_clients;
use crate::msg::{HdrDone, InlineWrite, PayDone, SlotGrant, SlotReq, SlotSeal, TxDone};
use crate::prim::sized::SizedRam;
use crate::stats::flags;
use crate::stream::{MsgFifo, MsgSlice};
use alloc::Allocator;
use asm::Assembly;
use ferric_hdl_derive::{kernel, BlockNew};
use insert::IcrcInsert;
use outfifo::OutFifo;
use picker::Picker;
use reader::FrameReader;
use rust_hdl::prelude::*;
use slots::SlotTable;
use types::{FrameRec, Picked};

/// Below this level a queue of 128 has room for what is decided but not yet counted, a handful.
const DONE_ROOM: u64 = 120;

/// log2 of the bytes of the assembly buffer of a card with 2^`slots` of them, 512 for each: 128 KiB for 256, which at 64 bytes a beat are two latencies of 1,000 cycles.
pub const fn asm_log2(slots: usize) -> usize {
    slots + 9
}
/// Bytes of a slot's header, at most and at least.
pub const MOST_HEADER: usize = 256;
pub const LEAST_HEADER: usize = 128;
/// Bytes of the output FIFO: more than any frame a `SlotReq` can ask for, and three of the largest RoCE frames.
pub const OUT_BYTES: usize = 16384;

/// Beats that may wait in front of the MAC when a frame begins and `shallow` is set: more than a frame takes from its beginning to the output FIFO, so that the MAC always has one.
pub const SHALLOW: usize = 32;

/// Events on `stat`.
pub const STATS: &[&str] = &["tx_frames", "tx_aborted"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // Data: slots (all but two) and rows come free in grant order, as frames are complete and leave; none starts with 120 reports waiting.
    ("s_slot[0]", &["m", "m_done", "m_reply_done", "s_seal[0]", "s_seal[1]", "s_hdr[..]", "s_pay_done", "m_slot[0]"]),
    ("m_slot[0]", &["m", "m_done", "m_reply_done", "s_seal[0]", "s_seal[1]", "s_hdr[..]", "s_pay_done", "m_slot[0]"]),
    // Acknowledges: two slots at least are theirs, they need no rows, and leave first.
    ("s_slot[1]", &["m", "m_done", "m_reply_done", "s_seal[1]", "s_hdr[..]", "m_slot[1]"]),
    ("m_slot[1]", &["m", "m_done", "m_reply_done", "s_seal[1]", "s_hdr[..]", "m_slot[1]"]),
    ("s_seal[*]", &[]),  // those of data after their inline bytes, which wait for a cycle without a row only
    ("s_pay_done", &[]), // one in every cycle
    ("s_hdr[*]", &[]),   // the same
    ("s_inline", &[]),   // the next cycle without a row
];

/// The card's egress with `2^LS` slots, for engines whose headers have at most so many bytes, each; `owners` as for [`Egress`].
pub fn for_headers<const W: usize, const K: usize, const LK: usize, const LS: usize>(longest: &[usize], owners: [usize; 2]) -> AnyBlock {
    let bytes = longest.iter().fold(LEAST_HEADER, |most, bytes| most.max(*bytes)).next_power_of_two();
    for_clients!(from one, longest.len(), <N> AnyBlock::new(Egress::<W, K, LK, N, LS>::new(asm_log2(LS), bytes.ilog2() as usize, owners)))
}

/// Whether there is an egress for engines with headers of at most so many bytes, each. Error: there is none, and why.
pub fn fits_headers(longest: &[usize]) -> Result<(), String> {
    up_to_most(longest)?;
    match longest.iter().find(|bytes| **bytes > MOST_HEADER) {
        Some(bytes) => Err(format!("a header of {bytes} bytes, and at most {MOST_HEADER} are possible")),
        None => Ok(()),
    }
}

/// Puts outgoing frames together and sends them. `2^LS` slots: frames granted and not yet gone. `2^asm_log2`: bytes of the assembly buffer; no frame may be longer than half of it, for its rows lie one behind the other.
/// `2^hdr_log2`: bytes of the longest header. `N` clients make headers. `owners`: whose headers the frames of port 0 and of port 1 have; several engines at port 0 say it in each request, and its number is 0.
#[derive(LogicBlock, BlockNew)]
#[given(asm_log2: usize, hdr_log2: usize, owners: [usize; 2])]
#[demand((1..=MOST_CLIENTS).contains(&N) && owners.iter().all(|n| *n < N), "{N} clients that make headers, and {owners:?} are none of them")]
#[demand((LEAST_HEADER.ilog2()..=MOST_HEADER.ilog2()).contains(&(hdr_log2 as u32)), "2^{hdr_log2} bytes of header: {LEAST_HEADER} to {MOST_HEADER}")]
#[demand((14..=17).contains(&asm_log2) && asm_log2 - LK <= 13, "2^{asm_log2} bytes: two of the largest RoCE frames at least, 13 bits of rows")]
#[demand((7..=8).contains(&LS) && LS + hdr_log2 - LK <= 12, "2^{LS} slots: 8 bits say which, and 12 a row of a header")]
pub struct Egress<const W: usize, const K: usize, const LK: usize, const N: usize, const LS: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets all frames. Grants begin `2^LS` cycles later.
    pub reset: Signal<In, Bit>,
    /// 0: data frames, 1: bypass frames.
    pub s_slot: [MsgSink<SlotReq>; 2],
    pub m_slot: [MsgSrc<SlotGrant>; 2],
    pub s_seal: [MsgSink<SlotSeal>; 2],
    pub s_pay_done: MsgSink<PayDone>,
    pub s_hdr: [MsgSink<HdrDone>; N],
    pub s_row: [HdrSink<W>; N],
    pub asm_we: Signal<In, Bits<K>>,
    pub asm_row1: Signal<In, Bits<K>>,
    pub asm_addr: Signal<In, Bits<13>>,
    pub asm_data: Signal<In, Bits<W>>,
    pub s_inline: MsgSink<InlineWrite>,
    /// The queue pair of the frame whose fate is decided, and the round that this is in, in the same cycle: a request of another round is given back unsent (`roce/rounds`).
    pub look: Signal<Out, Bits<24>>,
    pub round: Signal<In, Bits<2>>,
    /// No further data frame is chosen; bypass frames go on.
    pub hold: Signal<In, Bit>,
    /// At most [`SHALLOW`] beats wait in the output FIFO when a frame begins, so that little goes out behind a `hold`.
    pub shallow: Signal<In, Bit>,
    pub m: AxisSrc<W, K>,
    /// For one cycle, before its first beat is offered: a frame begins to leave, and whose it is. Frames leave in this order.
    pub begins: Signal<Out, Bit>,
    pub begins_function: Signal<Out, Bits<12>>,
    pub m_done: MsgSrc<TxDone>,
    /// The same of frames with `reply`.
    pub m_reply_done: MsgSrc<TxDone>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<2>>,
    #[init(Allocator::new(asm_log2, N, owners))]
    alloc: Allocator<K, LK, LS>,
    slots: SlotTable<N, LS>,
    picker: Picker<N, LS>,
    picked: MsgSlice<Picked>,
    #[init(FrameReader::new(hdr_log2))]
    reader: FrameReader<W, K, LK, N>,
    insert: IcrcInsert<W, K, LK>,
    out: OutFifo<W, K>,
    #[init(Assembly::new(asm_log2))]
    assembly: Assembly<W, K, LK>,
    #[init(std::array::from_fn(|_| SizedRam::new(LS + hdr_log2 - LK)))]
    headers: [SizedRam<Bits<W>, 12>; N],
    done: MsgFifo<TxDone, 7>,
    reply_done: MsgFifo<TxDone, 7>,
    done_room: DFF<Bit>,
    h_we: [DFF<Bit>; N],
    h_addr: [DFF<Bits<12>>; N],
    h_data: [DFF<Bits<W>>; N],
    /// Slots that are in the free list since the reset; bit `LS`: all of them.
    init: DFF<Bits<9>>,
    #[init(Constant::new((LS as u64).to_bits()))]
    log_slots: Constant<Bits<4>>,
    starting: Signal<Local, Bit>,
    slot: Signal<Local, Bits<8>>,
    first_row: Signal<Local, Bits<12>>,
    within: Signal<Local, Bits<5>>,
    #[init(Constant::new(((hdr_log2 - LK) as u64).to_bits()))]
    slot_shift: Constant<Bits<3>>,
    /// The bits of a row's number: whatever an engine says, it stays in its slot.
    #[init(Constant::new(((1u64 << (hdr_log2 - LK)) - 1).to_bits()))]
    row_bits: Constant<Bits<5>>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const N: usize, const LS: usize> Logic for Egress<W, K, LK, N, LS> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, done_room, init);
        clock!(self, clock, alloc, slots, picker, picked, reader, insert, out, assembly, done, reply_done);
        self.alloc.reset.next = self.reset.val();
        self.slots.reset.next = self.reset.val();
        self.picker.reset.next = self.reset.val();
        self.picked.reset.next = self.reset.val();
        self.reader.reset.next = self.reset.val();
        self.insert.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        self.assembly.reset.next = self.reset.val();
        self.done.reset.next = self.reset.val();
        self.reply_done.reset.next = self.reset.val();
        MsgSink::<SlotReq>::link(&mut self.s_slot[0], &mut self.alloc.s_slot[0]);
        MsgSink::<SlotReq>::link(&mut self.s_slot[1], &mut self.alloc.s_slot[1]);
        MsgSrc::<SlotGrant>::link(&mut self.m_slot[0], &mut self.alloc.m_slot[0]);
        MsgSrc::<SlotGrant>::link(&mut self.m_slot[1], &mut self.alloc.m_slot[1]);
        MsgSink::<SlotSeal>::link(&mut self.s_seal[0], &mut self.slots.s_seal[0]);
        MsgSink::<SlotSeal>::link(&mut self.s_seal[1], &mut self.slots.s_seal[1]);
        MsgSink::<PayDone>::link(&mut self.s_pay_done, &mut self.slots.s_pay_done);
        MsgSink::<InlineWrite>::link(&mut self.s_inline, &mut self.assembly.s_inline);
        MsgSrc::<FrameRec>::join(&mut self.alloc.m_data, &mut self.picker.s_rec[0]);
        MsgSrc::<FrameRec>::join(&mut self.alloc.m_bypass, &mut self.picker.s_rec[1]);
        AxisSrc::<W, K>::link(&mut self.m, &mut self.out.m);
        MsgSrc::<TxDone>::link(&mut self.m_done, &mut self.done.m);
        MsgSrc::<TxDone>::link(&mut self.m_reply_done, &mut self.reply_done.m);
        // Start-up: every slot into the free list, every counter to zero.
        self.starting.next = !self.init.q.val().get_bit(self.log_slots.val().index());
        if self.starting.val() {
            self.init.d.next = self.init.q.val() + 1;
        }
        self.alloc.init.next = self.starting.val();
        self.alloc.init_slot.next = self.init.q.val().get_bits::<8>(0);
        self.slots.init.next = self.starting.val();
        self.slots.init_slot.next = self.init.q.val().get_bits::<8>(0);
        self.slots.granted.next = self.alloc.granted.val();
        self.slots.granted_slot.next = self.alloc.granted_slot.val();
        self.slots.under_way.next = self.assembly.under_way.val();
        self.slots.written.next = self.assembly.written.val();
        self.look.next = self.picker.look.val();
        self.picker.round.next = self.round.val();
        self.picker.hold.next = self.hold.val();
        self.reader.shallow.next = self.shallow.val();
        self.picker.seal_we.next = self.slots.seal_we.val();
        self.picker.seal.next = self.slots.seal.val();
        for i in 0..2 {
            self.slots.ask[i].next = self.picker.ask[i].val();
            self.slots.whose[i].next = self.picker.whose[i].val();
            self.picker.sealed[i].next = self.slots.sealed[i].val();
            self.picker.headed[i].next = self.slots.headed[i].val();
            self.picker.failed[i].next = self.slots.failed[i].val();
        }
        // Jobs ahead of the reader: frames of one beat follow each other, or others, without a gap as far as there are some.
        self.picked.s.valid.next = self.picker.valid.val();
        self.picked.s.data.next.job = self.picker.job.val();
        self.picked.s.data.next.done = self.picker.done.val();
        self.picker.take.next = self.picked.s.ready.val() & self.picker.valid.val();
        self.reader.valid.next = self.picked.m.valid.val();
        self.reader.job.next = self.picked.m.data.val().job;
        self.reader.done.next = self.picked.m.data.val().done;
        self.picked.m.ready.next = self.reader.take.val();
        self.alloc.free_valid.next = self.reader.free_valid.val();
        self.alloc.free_slot.next = self.reader.free_slot.val();
        self.alloc.free_rows.next = self.reader.free_rows.val();
        // Memories
        for n in 0..N {
            MsgSink::<HdrDone>::link(&mut self.s_hdr[n], &mut self.slots.s_hdr[n]);
            self.picker.hdr_we[n].next = self.s_hdr[n].valid.val();
            self.picker.hdr[n].next = self.s_hdr[n].data.val();
            self.h_we[n].clock.next = self.clock.val();
            self.h_addr[n].clock.next = self.clock.val();
            self.h_data[n].clock.next = self.clock.val();
            self.h_we[n].d.next = self.s_row[n].valid.val() & !self.reset.val();
            self.slot.next = self.s_row[n].slot.val();
            self.first_row.next = bit_cast::<12, 8>(self.slot.val()) << self.slot_shift.val();
            self.within.next = self.s_row[n].row.val() & self.row_bits.val();
            self.h_addr[n].d.next = self.first_row.val() | bit_cast::<12, 5>(self.within.val());
            self.h_data[n].d.next = self.s_row[n].data.val();
            self.headers[n].clock.next = self.clock.val();
            self.headers[n].write_en.next = self.h_we[n].q.val();
            self.headers[n].write_addr.next = self.h_addr[n].q.val();
            self.headers[n].write_data.next = self.h_data[n].q.val();
            self.headers[n].read_addr.next = self.reader.hdr_addr.val();
            self.reader.hdr_data[n].next = self.headers[n].read_data.val();
        }
        self.assembly.asm_we.next = self.asm_we.val();
        self.assembly.asm_row1.next = self.asm_row1.val();
        self.assembly.asm_addr.next = self.asm_addr.val();
        self.assembly.asm_data.next = self.asm_data.val();
        self.assembly.raddr.next = self.reader.asm_addr.val();
        self.reader.asm_data.next = self.assembly.rdata.val();
        // The way out
        self.insert.beat_valid.next = self.reader.beat_valid.val();
        self.insert.beat.next = self.reader.beat.val();
        self.insert.tag.next = self.reader.tag.val();
        self.out.valid.next = self.insert.out_valid.val();
        self.out.data.next = self.insert.out.val();
        self.out.len.next = self.insert.out_len.val();
        self.out.last.next = self.insert.out_last.val();
        self.reader.popped.next = self.out.popped.val();
        self.begins.next = self.reader.begins.val();
        self.begins_function.next = self.reader.begins_function.val();
        // 128 places; a handful for what is decided but not yet in the count.
        self.done_room.d.next = (self.done.level.val() < DONE_ROOM) & (self.reply_done.level.val() < DONE_ROOM);
        self.reader.done_room.next = self.done_room.q.val();
        self.done.s.valid.next = self.reader.report.val() & !self.reader.report_data.val().reply;
        self.done.s.data.next = self.reader.report_data.val();
        self.reply_done.s.valid.next = self.reader.report.val() & self.reader.report_data.val().reply;
        self.reply_done.s.data.next = self.reader.report_data.val();
        self.stat.next = bits::<2>(0);
        if self.reader.sent.val() {
            self.stat.next = bits::<2>(flags(STATS, &["tx_frames"]) as u64);
        }
        if self.reader.aborted.val() {
            self.stat.next = bits::<2>(flags(STATS, &["tx_aborted"]) as u64);
        }
        if self.reset.val() {
            self.init.d.next = bits::<9>(0);
        }
    }
}
