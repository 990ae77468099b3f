//! Verdict on each frame, once its end, its headers and its ICRC are known.

use super::feed::Ending;
use super::{STATS, STRANGERS};
use crate::msg::RxDesc;
use crate::net::icrc::CHECK;
use crate::prim::ram::{RamApart, RamAsync, LUT_RAM_MAX_A};
use crate::stats::flags;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// [`Ending`] comes one cycle after the last beat; the ICRC's verdict is there [`CHECK`] after it.
const WAIT: usize = CHECK - 1;

/// log2 of the frames between the parser and the verdict: the feed's backlog (32) and some 20 pipeline stages.
const LG: usize = 6;

/// Address bits of the descriptors' memory: more than [`LG`], so that it becomes block RAM. As LUT RAM of an ECP5 it takes a twentieth of the chip.
const LG_BLOCK: usize = LUT_RAM_MAX_A + 1;

/// Drop causes of a frame on its way to the cell buffer and back.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Causes {
    pub mac_error: Bit,
    pub oversize: Bit,
    pub malformed: Bit,
    pub bad_icrc: Bit,
    pub stranger: Bit,
    pub other_station: Bit,
    pub foreign: Bit,
    pub raw: Bit,
    pub len: Bits<15>,
}

/// Joins the three in frame order; asks the cell buffer to keep or drop; makes the descriptor.
#[derive(LogicBlock, BlockDefault)]
pub struct Judge {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub ending: Signal<In, Ending>,
    pub crc_right: Signal<In, Bit>,
    pub crc_valid: Signal<In, Bit>,
    /// From the parser, always before the frame's `ending`.
    pub parsed: Signal<In, RxDesc>,
    pub malformed: Signal<In, Bit>,
    pub refused: Signal<In, Bit>,
    pub foreign: Signal<In, Bit>,
    pub parsed_valid: Signal<In, Bit>,
    // Cell buffer
    pub verdict: Signal<Out, Bit>,
    pub keep: Signal<Out, Bit>,
    pub done: Signal<In, Bit>,
    pub done_ok: Signal<In, Bit>,
    pub done_no_room: Signal<In, Bit>,
    pub done_handle: Signal<In, Bits<12>>,
    /// Complete descriptor; must be taken at once.
    pub desc: Signal<Out, RxDesc>,
    pub desc_valid: Signal<Out, Bit>,
    /// See [`super::STATS`].
    pub stat: Signal<Out, Bits<8>>,
    /// See [`super::STRANGERS`].
    pub strange: Signal<Out, Bits<2>>,
    /// A packet is dropped because it is foreign.
    pub foreign_seen: Signal<Out, Bit>,
    descs: RamApart<RxDesc, LG_BLOCK>,
    raws: RamAsync<Bit, LG>,
    bads: RamAsync<Bit, LG>,
    refusals: RamAsync<Bit, LG>,
    foreigners: RamAsync<Bit, LG>,
    wptr: DFF<Bits<LG>>,
    vptr: DFF<Bits<LG>>,
    dptr: DFF<Bits<LG>>,
    dptr_next: Signal<Local, Bits<LG>>,
    delay: [DFF<Ending>; WAIT],
    now: Signal<Local, Ending>,
    right: Signal<Local, Bit>,
    held: DFF<Bit>,
    raw: Signal<Local, Bit>,
    bad: Signal<Local, Bit>,
    good: Signal<Local, Bit>,
    causes1: DFF<Causes>,
    events: Signal<Local, Bits<8>>,
    stat3: DFF<Bits<8>>,
    events_strange: Signal<Local, Bits<2>>,
    strange3: DFF<Bits<2>>,
    foreign3: DFF<Bit>,
}

#[kernel]
impl Logic for Judge {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, wptr, vptr, dptr, held, causes1, stat3, strange3, foreign3);
        clock!(self, clock, descs, raws, bads, refusals, foreigners);
        for i in 0..2 {
            self.delay[i].clock.next = self.clock.val();
        }
        // Parsed headers wait for their frame's end
        self.descs.write_en.next = self.parsed_valid.val();
        self.descs.write_addr.next = bit_cast::<LG_BLOCK, LG>(self.wptr.q.val());
        self.descs.write_data.next = self.parsed.val();
        // The frame that is next done; what it reads was written some cycles before.
        self.dptr_next.next = self.dptr.q.val();
        if self.done.val() {
            self.dptr_next.next = self.dptr.q.val() + 1;
        }
        self.dptr.d.next = self.dptr_next.val();
        self.descs.read_addr.next = bit_cast::<LG_BLOCK, LG>(self.dptr_next.val());
        self.raws.write_en.next = self.parsed_valid.val();
        self.raws.write_addr.next = self.wptr.q.val();
        self.raws.write_data.next = self.parsed.val().raw;
        self.raws.read_addr.next = self.vptr.q.val();
        self.bads.write_en.next = self.parsed_valid.val();
        self.bads.write_addr.next = self.wptr.q.val();
        self.bads.write_data.next = self.malformed.val();
        self.bads.read_addr.next = self.vptr.q.val();
        self.refusals.write_en.next = self.parsed_valid.val();
        self.refusals.write_addr.next = self.wptr.q.val();
        self.refusals.write_data.next = self.refused.val();
        self.refusals.read_addr.next = self.vptr.q.val();
        self.foreigners.write_en.next = self.parsed_valid.val();
        self.foreigners.write_addr.next = self.wptr.q.val();
        self.foreigners.write_data.next = self.foreign.val();
        self.foreigners.read_addr.next = self.vptr.q.val();
        if self.parsed_valid.val() {
            self.wptr.d.next = self.wptr.q.val() + 1;
        }
        self.delay[0].d.next = self.ending.val();
        for i in 1..2 {
            self.delay[i].d.next = self.delay[i - 1].q.val();
        }
        // The ICRC's result comes at the end of the IP packet, at the latest in this cycle; a frame that is too short for its
        // packet has none and is malformed anyway.
        self.right.next = self.held.q.val();
        if self.crc_valid.val() {
            self.right.next = self.crc_right.val();
        }
        self.held.d.next = self.right.val();
        self.now.next = self.delay[1].q.val();
        self.raw.next = self.raws.read_data.val();
        self.bad.next = self.now.val().runt | (!self.raw.val() & (self.bads.read_data.val() | self.now.val().short));
        self.causes1.d.next.mac_error = self.now.val().mac_error;
        self.causes1.d.next.oversize = self.now.val().big & !self.now.val().mac_error;
        self.causes1.d.next.malformed = self.bad.val() & !self.now.val().big & !self.now.val().mac_error;
        self.causes1.d.next.bad_icrc = !self.raw.val() & !self.right.val() & !self.bad.val() & !self.now.val().big & !self.now.val().mac_error;
        // Sound in every respect; what is not RoCE needs no right ICRC.
        self.good.next = !self.now.val().mac_error & !self.now.val().big & !self.bad.val() & (self.raw.val() | self.right.val());
        self.causes1.d.next.foreign = self.good.val() & self.foreigners.read_data.val();
        self.causes1.d.next.stranger = self.good.val() & self.refusals.read_data.val() & !self.raw.val() & !self.foreigners.read_data.val();
        self.causes1.d.next.other_station = self.good.val() & self.refusals.read_data.val() & self.raw.val();
        self.causes1.d.next.raw = self.raw.val();
        self.causes1.d.next.len = self.now.val().len;
        self.verdict.next = self.now.val().valid;
        self.keep.next = self.good.val() & !self.refusals.read_data.val() & !self.foreigners.read_data.val();
        if self.now.val().valid {
            self.vptr.d.next = self.vptr.q.val() + 1;
        }
        // The cell buffer's answer, one cycle later
        self.desc.next = self.descs.read_data.val();
        self.desc.next.handle = self.done_handle.val();
        self.desc.next.frame_len = self.causes1.q.val().len.get_bits::<14>(0);
        if self.causes1.q.val().raw {
            self.desc.next.pay_len = self.causes1.q.val().len.get_bits::<13>(0);
        }
        self.desc_valid.next = self.done.val() & self.done_ok.val();
        self.events_strange.next = bits::<2>(0);
        if self.done.val() & self.causes1.q.val().stranger {
            self.events_strange.next = bits::<2>(flags(STRANGERS, &["rx_stranger"]) as u64);
        }
        if self.done.val() & self.causes1.q.val().other_station {
            self.events_strange.next = bits::<2>(flags(STRANGERS, &["rx_other_station"]) as u64);
        }
        self.strange3.d.next = self.events_strange.val();
        self.strange.next = self.strange3.q.val();
        self.foreign3.d.next = self.done.val() & self.causes1.q.val().foreign;
        self.foreign_seen.next = self.foreign3.q.val();
        self.events.next = bits::<8>(0);
        if self.done.val() {
            self.events.next = bits::<8>(flags(STATS, &["rx_frames"]) as u64);
            if self.done_ok.val() {
                if self.causes1.q.val().raw {
                    self.events.next = bits::<8>(flags(STATS, &["rx_frames", "rx_raw"]) as u64);
                } else {
                    self.events.next = bits::<8>(flags(STATS, &["rx_frames", "rx_roce"]) as u64);
                }
            }
            if self.causes1.q.val().malformed {
                self.events.next = bits::<8>(flags(STATS, &["rx_frames", "rx_malformed"]) as u64);
            }
            if self.causes1.q.val().bad_icrc {
                self.events.next = bits::<8>(flags(STATS, &["rx_frames", "rx_bad_icrc"]) as u64);
            }
            if self.done_no_room.val() {
                self.events.next = bits::<8>(flags(STATS, &["rx_frames", "rx_no_buffer"]) as u64);
            }
            if self.causes1.q.val().mac_error {
                self.events.next = bits::<8>(flags(STATS, &["rx_frames", "rx_mac_error"]) as u64);
            }
            if self.causes1.q.val().oversize {
                self.events.next = bits::<8>(flags(STATS, &["rx_frames", "rx_oversize"]) as u64);
            }
        }
        self.stat3.d.next = self.events.val();
        self.stat.next = self.stat3.q.val();
        if self.reset.val() {
            self.wptr.d.next = bits::<LG>(0);
            self.vptr.d.next = bits::<LG>(0);
            self.dptr.d.next = bits::<LG>(0);
            self.delay[0].d.next.valid = false;
            self.delay[1].d.next.valid = false;
            self.stat3.d.next = bits::<8>(0);
            self.strange3.d.next = bits::<2>(0);
            self.foreign3.d.next = false;
        }
    }
}
