//! Egress: slots, assembly buffer, ICRC insertion. See README.md.

mod alloc;
mod asm;
mod insert;
mod outfifo;
mod picker;
mod reader;
mod slots;
#[cfg(test)]
mod tests;
mod types;

use crate::bus::{AxisSrc, MsgSink, MsgSrc};
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

/// Bytes of the card's assembly buffer.
pub const ASM_BYTES: usize = 65536;
/// Slots: frames granted and not yet gone.
pub const SLOTS: usize = 128;
/// Bytes of header RAM per slot.
pub const SLOT_BYTES: usize = 128;
/// Bytes of the output FIFO: more than any frame a `SlotReq` can ask for, and three of the largest RoCE frames.
pub const OUT_BYTES: usize = 16384;

/// Events on `stat`.
pub const STATS: &[&str] = &["tx_frames", "tx_aborted"];

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // Data: slots (all but two) and rows come free in grant order, as frames are complete and leave; none starts with 120 reports waiting.
    ("s_slot[0]", &["m", "m_done", "m_reply_done", "s_seal[0]", "s_seal[1]", "s_hdr", "s_pay_done", "m_slot[0]"]),
    ("m_slot[0]", &["m", "m_done", "m_reply_done", "s_seal[0]", "s_seal[1]", "s_hdr", "s_pay_done", "m_slot[0]"]),
    // Acknowledges: two slots at least are theirs, they need no rows, and leave first.
    ("s_slot[1]", &["m", "m_done", "m_reply_done", "s_seal[1]", "s_hdr", "m_slot[1]"]),
    ("m_slot[1]", &["m", "m_done", "m_reply_done", "s_seal[1]", "s_hdr", "m_slot[1]"]),
    ("s_seal[*]", &[]),  // those of data after their inline bytes, which wait for a cycle without a row only
    ("s_pay_done", &[]), // one in every cycle
    ("s_hdr", &[]),      // the same
    ("s_inline", &[]),   // the next cycle without a row
];

/// Puts outgoing frames together and sends them. `2^asm_log2`: bytes of the assembly buffer, [`ASM_BYTES`] by default, as the card has;
/// no frame may be longer than half of it, for its rows lie one behind the other.
#[derive(LogicBlock, BlockNew)]
#[given(asm_log2: usize)]
#[demand((14..=16).contains(&asm_log2), "2^{asm_log2} bytes: two of the largest RoCE frames at least, 16 bits of addresses")]
pub struct Egress<const W: usize, const K: usize, const LK: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets all frames. Grants begin 128 cycles later.
    pub reset: Signal<In, Bit>,
    /// 0: data frames, 1: bypass frames.
    pub s_slot: [MsgSink<SlotReq>; 2],
    pub m_slot: [MsgSrc<SlotGrant>; 2],
    pub s_seal: [MsgSink<SlotSeal>; 2],
    pub s_pay_done: MsgSink<PayDone>,
    pub s_hdr: MsgSink<HdrDone>,
    pub hdr_we: Signal<In, Bit>,
    pub hdr_addr: Signal<In, Bits<11>>,
    pub hdr_data: Signal<In, Bits<W>>,
    pub asm_we: Signal<In, Bits<K>>,
    pub asm_row1: Signal<In, Bits<K>>,
    pub asm_addr: Signal<In, Bits<13>>,
    pub asm_data: Signal<In, Bits<W>>,
    pub s_inline: MsgSink<InlineWrite>,
    pub m: AxisSrc<W, K>,
    pub m_done: MsgSrc<TxDone>,
    /// The same of frames with `reply`.
    pub m_reply_done: MsgSrc<TxDone>,
    /// See [`STATS`].
    pub stat: Signal<Out, Bits<2>>,
    #[init(Allocator::new(asm_log2))]
    alloc: Allocator<K, LK>,
    slots: SlotTable,
    picker: Picker,
    picked: MsgSlice<Picked>,
    reader: FrameReader<W, K, LK>,
    insert: IcrcInsert<W, K, LK>,
    out: OutFifo<W, K>,
    #[init(Assembly::new(asm_log2))]
    assembly: Assembly<W, K, LK>,
    #[init(SizedRam::new((SLOTS * SLOT_BYTES / K).trailing_zeros() as usize))]
    headers: SizedRam<Bits<W>, 11>,
    done: MsgFifo<TxDone, 7>,
    reply_done: MsgFifo<TxDone, 7>,
    done_room: DFF<Bit>,
    h_we: DFF<Bit>,
    h_addr: DFF<Bits<11>>,
    h_data: DFF<Bits<W>>,
    init: DFF<Bits<8>>,
    starting: Signal<Local, Bit>,
}

impl<const W: usize, const K: usize, const LK: usize> Default for Egress<W, K, LK> {
    fn default() -> Self {
        Self::new(ASM_BYTES.trailing_zeros() as usize)
    }
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize> Logic for Egress<W, K, LK> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, done_room, h_we, h_addr, h_data, init);
        clock!(self, clock, alloc, slots, picker, picked, reader, insert, out, assembly, headers, done, reply_done);
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
        MsgSink::<HdrDone>::link(&mut self.s_hdr, &mut self.slots.s_hdr);
        MsgSink::<InlineWrite>::link(&mut self.s_inline, &mut self.assembly.s_inline);
        MsgSrc::<FrameRec>::join(&mut self.alloc.m_data, &mut self.picker.s_rec[0]);
        MsgSrc::<FrameRec>::join(&mut self.alloc.m_bypass, &mut self.picker.s_rec[1]);
        AxisSrc::<W, K>::link(&mut self.m, &mut self.out.m);
        MsgSrc::<TxDone>::link(&mut self.m_done, &mut self.done.m);
        MsgSrc::<TxDone>::link(&mut self.m_reply_done, &mut self.reply_done.m);
        // Start-up: every slot into the free list, every counter to zero.
        self.starting.next = !self.init.q.val().get_bit(7);
        if self.starting.val() {
            self.init.d.next = self.init.q.val() + 1;
        }
        self.alloc.init.next = self.starting.val();
        self.alloc.init_slot.next = self.init.q.val().get_bits::<7>(0);
        self.slots.init.next = self.starting.val();
        self.slots.init_slot.next = self.init.q.val().get_bits::<7>(0);
        self.slots.granted.next = self.alloc.granted.val();
        self.slots.granted_slot.next = self.alloc.granted_slot.val();
        self.slots.hold.next = self.assembly.pending.val();
        self.picker.seal_we.next = self.slots.seal_we.val();
        self.picker.seal.next = self.slots.seal.val();
        self.picker.hdr_we.next = self.slots.hdr_we.val();
        self.picker.hdr.next = self.slots.hdr.val();
        for i in 0..2 {
            self.slots.ask[i].next = self.picker.ask[i].val();
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
        self.h_we.d.next = self.hdr_we.val();
        self.h_addr.d.next = self.hdr_addr.val();
        self.h_data.d.next = self.hdr_data.val();
        self.headers.write_en.next = self.h_we.q.val();
        self.headers.write_addr.next = self.h_addr.q.val();
        self.headers.write_data.next = self.h_data.q.val();
        self.headers.read_addr.next = self.reader.hdr_addr.val();
        self.reader.hdr_data.next = self.headers.read_data.val();
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
            self.init.d.next = bits::<8>(0);
            self.h_we.d.next = false;
        }
    }
}
