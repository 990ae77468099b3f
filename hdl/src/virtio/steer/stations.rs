//! Whether a frame's destination is one of its function's MAC addresses. See README.md.

use crate::prim::pack::Cast;
use crate::prim::ram::Ram;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of a function's addresses: unicast ones from 0 on, groups from the middle on.
pub const LG_STATIONS: usize = 6;
/// The first place of a group.
pub const GROUPS: u64 = 1 << (LG_STATIONS - 1);
/// The bit of a destination that says that it is a group's: the lowest of its first byte.
pub const GROUP_BIT: usize = 40;

/// An address that the function receives; those of a kind stand one behind the other, and behind the last is one that is not `valid`, or the kind's end. `mac`: the first byte in the uppermost bits.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Station {
    pub mac: Bits<48>,
    pub valid: Bit,
    pub rsvd: Bits<15>,
}

/// Addresses of 2^`LF` functions, `LM` = `LF` + [`LG_STATIONS`]. One is looked at in each cycle.
#[derive(LogicBlock, BlockDefault)]
#[demand(LM == LF + LG_STATIONS, "as many lists as functions")]
pub struct Stations<const LF: usize, const LM: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    /// There is a destination of a function, until `ready` has been used.
    pub known: Signal<In, Bit>,
    pub owner: Signal<In, Bits<LF>>,
    pub mac: Signal<In, Bits<48>>,
    /// The list has been looked through; `found`: it is there.
    pub ready: Signal<Out, Bit>,
    pub found: Signal<Out, Bit>,
    /// An address is written, as [`Station`].
    pub write_en: Signal<In, Bit>,
    pub write_addr: Signal<In, Bits<LM>>,
    pub write_data: Signal<In, Bits<64>>,
    list: Ram<Station, LM>,
    written: Cast<Bits<64>, Station>,
    runs: DFF<Bit>,
    over: DFF<Bit>,
    hit: DFF<Bit>,
    at: DFF<Bits<LG_STATIONS>>,
    next_at: Signal<Local, Bits<LG_STATIONS>>,
    begins: Signal<Local, Bit>,
    /// The last place of a kind.
    ends: Signal<Local, Bit>,
    low: Signal<Local, Bits<5>>,
    same: Signal<Local, Bit>,
}

#[kernel]
impl<const LF: usize, const LM: usize> Logic for Stations<LF, LM> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, runs, over, hit, at);
        clock!(self, clock, list);
        self.written.x.next = self.write_data.val();
        self.list.write_en.next = self.write_en.val();
        self.list.write_addr.next = self.write_addr.val();
        self.list.write_data.next = self.written.y.val();
        self.begins.next = self.known.val() & !self.runs.q.val() & !self.over.q.val();
        self.next_at.next = self.at.q.val() + 1;
        if self.begins.val() {
            self.next_at.next = bits::<LG_STATIONS>(0);
            if self.mac.val().get_bit(GROUP_BIT) {
                self.next_at.next = bits::<LG_STATIONS>(GROUPS);
            }
        }
        self.at.d.next = self.next_at.val();
        self.list.read_addr.next = (bit_cast::<LM, LF>(self.owner.val()) << LG_STATIONS) | bit_cast::<LM, LG_STATIONS>(self.next_at.val());
        self.low.next = self.at.q.val().get_bits::<5>(0);
        self.ends.next = self.low.val().all() | !self.list.read_data.val().valid;
        self.same.next = self.list.read_data.val().valid & (self.list.read_data.val().mac == self.mac.val());
        if self.begins.val() {
            self.runs.d.next = true;
            self.hit.d.next = false;
        } else if self.runs.q.val() {
            if self.same.val() | self.ends.val() {
                self.runs.d.next = false;
                self.over.d.next = true;
                self.hit.d.next = self.same.val();
            }
        }
        // A frame that is too short for a header is not waited for.
        if !self.known.val() {
            self.runs.d.next = false;
            self.over.d.next = false;
        }
        self.ready.next = self.over.q.val();
        self.found.next = self.hit.q.val();
        if self.reset.val() {
            self.runs.d.next = false;
            self.over.d.next = false;
        }
    }
}
