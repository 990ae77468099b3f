//! Where a bridge domain's stations are. See README.md.

#[cfg(test)]
mod tests;

use super::bank::{self, HashBank};
use super::beyond;
use crate::prim::pack::{Cast, Concat2};
use crate::prim::ram::Ram;
use crate::prim::sized::Delay;
use ferric_abi::switch::destination;
use ferric_abi::switch::station::{kind, DOMAIN_BITS, KEY_BITS, NUMBER_BITS, RESULT_BITS};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Cycles from an address to its station.
pub const LATENCY: u64 = bank::LATENCY + 1;
/// Cycles from an address to the read of its domain's flood group.
const FLOOD: usize = bank::LATENCY as usize - 1;
/// Bytes of a key, bits of the middle word of its hash, and of a line.
const BYTES: usize = KEY_BITS / 8;
const MIDDLE: usize = 64;
pub const LINE: usize = KEY_BITS + RESULT_BITS + 3;
/// Bits of the MAC address with the zeros behind it.
const MAC: usize = KEY_BITS - DOMAIN_BITS;

const REMOTE: u64 = kind::REMOTE as u64;
const GROUP: u64 = kind::GROUP as u64;
const TO_PORT: u64 = destination::PORT as u64;
const TO_UPLINK: u64 = destination::UPLINK as u64;
const TO_GROUP: u64 = destination::GROUP as u64;

/// Where a frame goes, as the verdict has it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Station {
    /// `ferric_abi::switch::destination`.
    pub kind: Bits<3>,
    /// Port, uplink or group.
    pub number: Bits<NUMBER_BITS>,
    /// Line of the encapsulation table; 0: none.
    pub encap: Bits<NUMBER_BITS>,
}

/// Bits of a flood group that is read.
const FLOOD_BITS: usize = NUMBER_BITS + 1;

/// The flood group of a bridge domain.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Flood {
    group: Bits<NUMBER_BITS>,
    there: Bit,
}

/// Stations in four ways of 2^`LG` lines, and flood groups of as many domains; those beyond have none. One address a cycle, never stalled.
#[derive(LogicBlock, BlockDefault)]
#[demand(LATENCY == 7 && LG <= DOMAIN_BITS)]
pub struct Fdb<const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten. Stations and groups stay.
    pub reset: Signal<In, Bit>,
    pub valid: Signal<In, Bit>,
    pub domain: Signal<In, Bits<DOMAIN_BITS>>,
    pub mac: Signal<In, Bits<48>>,
    pub generation: Signal<In, Bits<2>>,
    /// [`LATENCY`] cycles later: the address' station, or its domain's flood group.
    pub found_valid: Signal<Out, Bit>,
    pub hit: Signal<Out, Bit>,
    pub station: Signal<Out, Station>,
    /// A station is written, at any time: a line as `bank` has it.
    pub write: Signal<In, Bit>,
    pub write_way: Signal<In, Bits<2>>,
    pub write_line: Signal<In, Bits<LG>>,
    pub write_data: Signal<In, Bits<LINE>>,
    /// A domain's flood group is written, at any time. `there` low: the domain is not flooded.
    pub write_flood: Signal<In, Bit>,
    pub flood_domain: Signal<In, Bits<LG>>,
    pub flood_group: Signal<In, Bits<NUMBER_BITS>>,
    pub there: Signal<In, Bit>,
    /// A station's line, or a domain's flood group, is read when no address wants the memory: `read` or `read_flood` and the numbers stay until `read_done`, which brings it: the line as `bank` has it; the
    /// group, and above it that it is there.
    pub read: Signal<In, Bit>,
    pub read_flood: Signal<In, Bit>,
    pub read_way: Signal<In, Bits<2>>,
    pub read_line: Signal<In, Bits<LG>>,
    pub read_done: Signal<Out, Bit>,
    pub read_data: Signal<Out, Bits<LINE>>,
    bank: HashBank<KEY_BITS, BYTES, MIDDLE, RESULT_BITS, LINE, LG>,
    key: Concat2<DOMAIN_BITS, MAC, KEY_BITS>,
    #[init(Delay::new(FLOOD))]
    domains: Delay<Bits<DOMAIN_BITS>>,
    floods: Ram<Flood, LG>,
    /// A bridge domain that has no line has one of these bits.
    #[init(beyond(LG))]
    beyond: Constant<Bits<DOMAIN_BITS>>,
    /// An address wants the flood groups.
    #[init(Delay::new(FLOOD))]
    wants: Delay<Bit>,
    taken: Signal<Local, Bit>,
    read6: DFF<Bit>,
    group: Cast<Flood, Bits<FLOOD_BITS>>,
    within6: DFF<Bit>,
    flooded: Signal<Local, Bit>,
    number: Signal<Local, Bits<NUMBER_BITS>>,
    kind: Signal<Local, Bits<2>>,
    valid7: DFF<Bit>,
    hit7: DFF<Bit>,
    station7: DFF<Station>,
}

#[kernel]
impl<const LG: usize> Logic for Fdb<LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, read6, within6, valid7, hit7, station7);
        clock!(self, clock, bank, domains, floods, wants);
        self.bank.reset.next = self.reset.val();
        self.key.a.next = self.domain.val();
        self.key.b.next = bit_cast::<MAC, 48>(self.mac.val());
        self.bank.valid.next = self.valid.val();
        self.bank.key.next = self.key.y.val();
        self.bank.generation.next = self.generation.val();
        self.bank.write.next = self.write.val();
        self.bank.write_way.next = self.write_way.val();
        self.bank.write_line.next = self.write_line.val();
        self.bank.write_data.next = self.write_data.val();
        self.bank.read.next = self.read.val();
        self.bank.read_way.next = self.read_way.val();
        self.bank.read_line.next = self.read_line.val();
        self.wants.x.next = self.valid.val();
        self.domains.x.next = self.domain.val();
        self.floods.read_addr.next = bit_cast::<LG, DOMAIN_BITS>(self.domains.y.val());
        if !self.wants.y.val() {
            self.floods.read_addr.next = self.read_line.val();
        }
        self.taken.next = self.read_flood.val() & !self.wants.y.val() & !self.read6.q.val();
        self.read6.d.next = self.taken.val();
        self.group.x.next = self.floods.read_data.val();
        self.read_done.next = self.bank.read_done.val() | self.read6.q.val();
        self.read_data.next = self.bank.read_data.val();
        if self.read6.q.val() {
            self.read_data.next = bit_cast::<LINE, FLOOD_BITS>(self.group.y.val());
        }
        self.within6.d.next = !(self.domains.y.val() & self.beyond.val()).any();
        self.flooded.next = self.within6.q.val() & self.floods.read_data.val().there;
        self.floods.write_en.next = self.write_flood.val();
        self.floods.write_addr.next = self.flood_domain.val();
        self.floods.write_data.next.there = self.there.val();
        self.floods.write_data.next.group = self.flood_group.val();
        self.number.next = self.bank.result.val().get_bits::<NUMBER_BITS>(0);
        self.kind.next = self.bank.result.val().get_bits::<2>(12);
        self.valid7.d.next = self.bank.found_valid.val();
        self.hit7.d.next = self.bank.found_valid.val() & (self.bank.hit.val() | self.flooded.val());
        self.station7.d.next.kind = bits::<3>(TO_PORT);
        self.station7.d.next.number = self.number.val();
        self.station7.d.next.encap = bits::<NUMBER_BITS>(0);
        if self.kind.val() == REMOTE {
            self.station7.d.next.kind = bits::<3>(TO_UPLINK);
            self.station7.d.next.number = bit_cast::<NUMBER_BITS, 2>(self.bank.result.val().get_bits::<2>(14));
            self.station7.d.next.encap = self.number.val();
        }
        if self.kind.val() == GROUP {
            self.station7.d.next.kind = bits::<3>(TO_GROUP);
        }
        if !self.bank.hit.val() {
            self.station7.d.next.kind = bits::<3>(TO_GROUP);
            self.station7.d.next.number = self.floods.read_data.val().group;
            self.station7.d.next.encap = bits::<NUMBER_BITS>(0);
        }
        self.found_valid.next = self.valid7.q.val();
        self.hit.next = self.hit7.q.val();
        self.station.next = self.station7.q.val();
        if self.reset.val() {
            self.read6.d.next = false;
            self.valid7.d.next = false;
            self.hit7.d.next = false;
        }
    }
}
