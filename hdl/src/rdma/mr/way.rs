//! One way of the page-table cache: 2^`LX` slots of a tag and a page-table line.

use crate::prim::ram::RamHold;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Which line a slot holds.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Tag {
    pub valid: Bit,
    /// The line is on its way, by this read.
    pub pending: Bit,
    pub read: Bits<6>,
    /// Of the cache: what was stored in an earlier one is forgotten.
    pub round: Bits<6>,
    pub index: Bits<16>,
    /// Of the region: what it translated before its last registration is not what it translates.
    pub life: Bits<8>,
    /// Bits `LX` and up of the line's number: those below are in the slot's number. Lines from 2^`LINE_BITS` on have no slot.
    pub line: Bits<23>,
}

/// Lines that can be cached: of 4 KiB pages, the first 2^44 bytes of a region. What lies behind is read for each who asks.
pub const LINE_BITS: usize = 29;

/// A slot is read in one cycle and compared in the next; it stays until the next `read_en`.
#[derive(LogicBlock, Default)]
pub struct Way<const LX: usize> {
    pub clock: Signal<In, Clock>,
    pub read_en: Signal<In, Bit>,
    pub slot: Signal<In, Bits<LX>>,
    /// What the slot is compared with, and which entry of its line is wanted.
    pub own: Signal<In, Tag>,
    pub entry: Signal<In, Bits<3>>,
    /// The slot holds a line of this round, or waits for one (`awaits`).
    pub live: Signal<Out, Bit>,
    pub awaits: Signal<Out, Bit>,
    pub tag: Signal<Out, Tag>,
    /// It is the line of `own`.
    pub hit: Signal<Out, Bit>,
    pub pte: Signal<Out, Bits<64>>,
    pub tag_en: Signal<In, Bit>,
    pub line_en: Signal<In, Bit>,
    pub write_slot: Signal<In, Bits<LX>>,
    pub new_tag: Signal<In, Tag>,
    pub new_line: Signal<In, Bits<512>>,
    tags: RamHold<Tag, LX>,
    lines: RamHold<Bits<512>, LX>,
    line: Signal<Local, Bits<512>>,
    select: Signal<Local, Bits<9>>,
}

#[kernel]
impl<const LX: usize> Logic for Way<LX> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, tags, lines);
        self.tags.read_en.next = self.read_en.val();
        self.lines.read_en.next = self.read_en.val();
        self.tags.read_addr.next = self.slot.val();
        self.lines.read_addr.next = self.slot.val();
        self.tags.write_en.next = self.tag_en.val();
        self.lines.write_en.next = self.line_en.val();
        self.tags.write_addr.next = self.write_slot.val();
        self.lines.write_addr.next = self.write_slot.val();
        self.tags.write_data.next = self.new_tag.val();
        self.lines.write_data.next = self.new_line.val();
        self.tag.next = self.tags.read_data.val();
        self.live.next = self.tags.read_data.val().valid & (self.tags.read_data.val().round == self.own.val().round);
        self.awaits.next = self.live.val() & self.tags.read_data.val().pending;
        self.hit.next = self.live.val()
            & (self.tags.read_data.val().line == self.own.val().line)
            & (self.tags.read_data.val().index == self.own.val().index)
            & (self.tags.read_data.val().life == self.own.val().life);
        self.line.next = self.lines.read_data.val();
        self.select.next = bit_cast::<9, 3>(self.entry.val()) << 6;
        self.pte.next = self.line.val().get_bits::<64>(self.select.val().index());
    }
}
