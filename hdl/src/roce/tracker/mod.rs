//! Outstanding work requests. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{TrackEntry, TrackRead, TrackWrite};
use crate::prim::ram::RamHold;
use rust_hdl::prelude::*;

#[cfg(test)]
mod tests;

/// Work requests that one queue pair may have outstanding; the low 7 bits of the index address them.
pub const OUTSTANDING: u32 = 128;

/// Ring of 128 entries for each of `2^LQ` queue pairs. `LA` is `LQ` + 7.
#[derive(LogicBlock)]
pub struct Tracker<const LQ: usize, const LA: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Always ready; visible to reads accepted in later cycles.
    pub s_write: MsgSink<TrackWrite>,
    /// One read every second cycle.
    pub s_read: MsgSink<TrackRead>,
    /// The entry, one cycle after its read was accepted.
    pub m_entry: MsgSrc<TrackEntry>,
    mem: RamHold<TrackEntry, LA>,
    full: DFF<Bit>,
    write_slot: Signal<Local, Bits<7>>,
    read_slot: Signal<Local, Bits<7>>,
}

impl<const LQ: usize, const LA: usize> Default for Tracker<LQ, LA> {
    fn default() -> Self {
        assert_eq!(LA, LQ + 7, "LA must be LQ + 7");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            s_write: Default::default(),
            s_read: Default::default(),
            m_entry: Default::default(),
            mem: Default::default(),
            full: Default::default(),
            write_slot: Default::default(),
            read_slot: Default::default(),
        }
    }
}

impl<const LQ: usize, const LA: usize> Logic for Tracker<LQ, LA> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, full);
        clock!(self, clock, mem);
        self.write_slot.next = self.s_write.data.val().index.get_bits::<7>(0);
        self.read_slot.next = self.s_read.data.val().index.get_bits::<7>(0);
        self.s_write.ready.next = true;
        self.mem.write_en.next = self.s_write.valid.val();
        self.mem.write_addr.next =
            (bit_cast::<LA, 24>(self.s_write.data.val().qpn) << 7) | bit_cast::<LA, 7>(self.write_slot.val());
        self.mem.write_data.next.last_psn = self.s_write.data.val().last_psn;
        self.mem.write_data.next.signaled = self.s_write.data.val().signaled;
        self.mem.write_data.next.opcode = self.s_write.data.val().opcode;
        self.s_read.ready.next = !self.full.q.val();
        self.mem.read_en.next = self.s_read.valid.val() & !self.full.q.val();
        self.mem.read_addr.next =
            (bit_cast::<LA, 24>(self.s_read.data.val().qpn) << 7) | bit_cast::<LA, 7>(self.read_slot.val());
        self.m_entry.data.next = self.mem.read_data.val();
        self.m_entry.valid.next = self.full.q.val();
        if self.full.q.val() {
            self.full.d.next = !self.m_entry.ready.val();
        } else {
            self.full.d.next = self.s_read.valid.val();
        }
        if self.reset.val() {
            self.full.d.next = false;
        }
    }
}
