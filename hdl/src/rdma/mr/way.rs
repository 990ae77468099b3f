//! One way of the page-table cache: 512 slots of a tag and a page-table line.

use crate::prim::ram::RamHold;
use rust_hdl::prelude::*;

/// Which line a slot holds.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Tag {
    pub valid: Bit,
    pub index: Bits<16>,
    /// Of the region: what it translated before its last registration is not what it translates.
    pub life: Bits<8>,
    pub line: Bits<49>,
}

/// A slot is read in one cycle and compared in the next; it stays until the next `read_en`.
#[derive(LogicBlock, Default)]
pub struct Way {
    pub clock: Signal<In, Clock>,
    pub read_en: Signal<In, Bit>,
    pub slot: Signal<In, Bits<9>>,
    /// What the slot is compared with, and which entry of its line is wanted.
    pub own: Signal<In, Tag>,
    pub entry: Signal<In, Bits<3>>,
    pub tag: Signal<Out, Tag>,
    pub hit: Signal<Out, Bit>,
    pub pte: Signal<Out, Bits<64>>,
    pub write_en: Signal<In, Bit>,
    pub write_slot: Signal<In, Bits<9>>,
    pub new_tag: Signal<In, Tag>,
    pub new_line: Signal<In, Bits<512>>,
    tags: RamHold<Tag, 9>,
    lines: RamHold<Bits<512>, 9>,
    line: Signal<Local, Bits<512>>,
    select: Signal<Local, Bits<9>>,
}

impl Logic for Way {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, tags, lines);
        self.tags.read_en.next = self.read_en.val();
        self.lines.read_en.next = self.read_en.val();
        self.tags.read_addr.next = self.slot.val();
        self.lines.read_addr.next = self.slot.val();
        self.tags.write_en.next = self.write_en.val();
        self.lines.write_en.next = self.write_en.val();
        self.tags.write_addr.next = self.write_slot.val();
        self.lines.write_addr.next = self.write_slot.val();
        self.tags.write_data.next = self.new_tag.val();
        self.lines.write_data.next = self.new_line.val();
        self.tag.next = self.tags.read_data.val();
        self.hit.next = self.tags.read_data.val().valid
            & (self.tags.read_data.val().line == self.own.val().line)
            & (self.tags.read_data.val().index == self.own.val().index)
            & (self.tags.read_data.val().life == self.own.val().life);
        self.line.next = self.lines.read_data.val();
        self.select.next = bit_cast::<9, 3>(self.entry.val()) << 6;
        self.pte.next = self.line.val().get_bits::<64>(self.select.val().index());
    }
}
