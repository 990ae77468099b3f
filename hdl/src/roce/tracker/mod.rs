//! Outstanding work requests. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{TrackEntry, TrackRead, TrackWrite};
use crate::prim::sized::SizedRam;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_write", &[]),
    ("s_read", &["m_entry"]),
    ("m_entry", &[]), // two cycles later
];

#[cfg(test)]
mod tests;

/// Work requests that one queue pair may have outstanding; the low 8 bits of the index address them.
pub const OUTSTANDING: u32 = 256;

/// What is kept of a work request.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Kept {
    last_psn: Bits<24>,
    signaled: Bit,
    opcode: Bits<4>,
}

/// Ring of 256 entries for each of `2^LQ` queue pairs. `LA` is `LQ` + 8.
#[derive(LogicBlock, BlockDefault)]
#[demand(LA == LQ + 8, "LA must be LQ + 8")]
pub struct Tracker<const LQ: usize, const LA: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Always ready; visible to reads accepted in later cycles.
    pub s_write: MsgSink<TrackWrite>,
    /// One read every second cycle; the memories look at `data` before `valid` is known.
    pub s_read: MsgSink<TrackRead>,
    /// The entry, two cycles after its read was accepted.
    pub m_entry: MsgSrc<TrackEntry>,
    /// Even and odd indices, so that an entry and the one behind are read together; each of even and of odd queue pairs: one choice of four in
    /// one LUT, where a memory twice as deep brings a choice of its own.
    #[init([SizedRam::new(LA - 2), SizedRam::new(LA - 2)])]
    even: [SizedRam<Kept, LA>; 2],
    #[init([SizedRam::new(LA - 2), SizedRam::new(LA - 2)])]
    odd: [SizedRam<Kept, LA>; 2],
    even_addr: DFF<Bits<LA>>,
    odd_addr: DFF<Bits<LA>>,
    from_odd: DFF<Bit>,
    odd_queue: DFF<Bit>,
    /// The memories have been asked; what they said is in `found`.
    asked: DFF<Bit>,
    full: DFF<Bit>,
    found: DFF<TrackEntry>,
    write_slot: Signal<Local, Bits<8>>,
    read_slot: Signal<Local, Bits<8>>,
    read_queue: Signal<Local, Bits<LA>>,
    write_qpn: Signal<Local, Bits<24>>,
    read_qpn: Signal<Local, Bits<24>>,
    write_row: Signal<Local, Bits<LA>>,
    pair: Signal<Local, Bits<7>>,
    pair_on: Signal<Local, Bits<7>>,
    moves: Signal<Local, Bit>,
    kept: Signal<Local, Kept>,
    entry: Signal<Local, Kept>,
    behind: Signal<Local, Kept>,
    next_opcode: Signal<Local, Bits<4>>,
    even_at: Signal<Local, Bits<LA>>,
    odd_at: Signal<Local, Bits<LA>>,
}

#[kernel]
impl<const LQ: usize, const LA: usize> Logic for Tracker<LQ, LA> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, asked, full, found, even_addr, odd_addr, from_odd, odd_queue);
        self.write_slot.next = self.s_write.data.val().index.get_bits::<8>(0);
        self.read_slot.next = self.s_read.data.val().index.get_bits::<8>(0);
        self.s_write.ready.next = true;
        self.kept.next.last_psn = self.s_write.data.val().last_psn;
        self.kept.next.signaled = self.s_write.data.val().signaled;
        self.kept.next.opcode = self.s_write.data.val().opcode;
        self.write_qpn.next = self.s_write.data.val().qpn >> 1;
        self.write_row.next = (bit_cast::<LA, 24>(self.write_qpn.val()) << 7) | bit_cast::<LA, 7>(self.write_slot.val().get_bits::<7>(1));
        for i in 0..2 {
            self.even[i].clock.next = self.clock.val();
            self.odd[i].clock.next = self.clock.val();
            self.even[i].write_addr.next = self.write_row.val();
            self.odd[i].write_addr.next = self.write_row.val();
            self.even[i].write_data.next = self.kept.val();
            self.odd[i].write_data.next = self.kept.val();
        }
        self.even[0].write_en.next = self.s_write.valid.val() & !self.write_slot.val().get_bit(0) & !self.s_write.data.val().qpn.get_bit(0);
        self.even[1].write_en.next = self.s_write.valid.val() & !self.write_slot.val().get_bit(0) & self.s_write.data.val().qpn.get_bit(0);
        self.odd[0].write_en.next = self.s_write.valid.val() & self.write_slot.val().get_bit(0) & !self.s_write.data.val().qpn.get_bit(0);
        self.odd[1].write_en.next = self.s_write.valid.val() & self.write_slot.val().get_bit(0) & self.s_write.data.val().qpn.get_bit(0);
        self.s_read.ready.next = !self.asked.q.val();
        self.moves.next = self.asked.q.val() & (!self.full.q.val() | self.m_entry.ready.val());
        // Behind an odd index comes the even one of the next pair.
        self.read_qpn.next = self.s_read.data.val().qpn >> 1;
        self.read_queue.next = bit_cast::<LA, 24>(self.read_qpn.val()) << 7;
        self.pair.next = self.read_slot.val().get_bits::<7>(1);
        self.pair_on.next = self.pair.val();
        if self.read_slot.val().get_bit(0) {
            self.pair_on.next = self.pair.val() + 1;
        }
        // The memories read in every cycle: what was asked for last, until its register has a place for it, or else what may be asked for. `valid` comes late.
        self.even_at.next = self.even_addr.q.val();
        self.odd_at.next = self.odd_addr.q.val();
        if !self.asked.q.val() {
            self.even_at.next = self.read_queue.val() | bit_cast::<LA, 7>(self.pair_on.val());
            self.odd_at.next = self.read_queue.val() | bit_cast::<LA, 7>(self.pair.val());
            self.from_odd.d.next = self.read_slot.val().get_bit(0);
            self.odd_queue.d.next = self.s_read.data.val().qpn.get_bit(0);
        }
        self.even_addr.d.next = self.even_at.val();
        self.odd_addr.d.next = self.odd_at.val();
        for i in 0..2 {
            self.even[i].read_addr.next = self.even_at.val();
            self.odd[i].read_addr.next = self.odd_at.val();
        }
        if self.odd_queue.q.val() {
            if self.from_odd.q.val() {
                self.entry.next = self.odd[1].read_data.val();
                self.behind.next = self.even[1].read_data.val();
            } else {
                self.entry.next = self.even[1].read_data.val();
                self.behind.next = self.odd[1].read_data.val();
            }
        } else if self.from_odd.q.val() {
            self.entry.next = self.odd[0].read_data.val();
            self.behind.next = self.even[0].read_data.val();
        } else {
            self.entry.next = self.even[0].read_data.val();
            self.behind.next = self.odd[0].read_data.val();
        }
        self.next_opcode.next = self.behind.val().opcode;
        if self.moves.val() {
            self.found.d.next.last_psn = self.entry.val().last_psn;
            self.found.d.next.signaled = self.entry.val().signaled;
            self.found.d.next.opcode = self.entry.val().opcode;
            self.found.d.next.next_psn = self.behind.val().last_psn;
            self.found.d.next.next_asks = self.next_opcode.val().get_bit(2) & !self.next_opcode.val().all();
        }
        self.m_entry.data.next = self.found.q.val();
        self.m_entry.valid.next = self.full.q.val();
        self.asked.d.next = self.s_read.valid.val();
        if self.asked.q.val() {
            self.asked.d.next = !self.moves.val();
        }
        self.full.d.next = self.moves.val() | (self.full.q.val() & !self.m_entry.ready.val());
        if self.reset.val() {
            self.asked.d.next = false;
            self.full.d.next = false;
        }
    }
}
