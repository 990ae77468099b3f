//! Finds pause frames among those that come off the wire.

use crate::prim::pack::BePick;
use crate::prim::slot::SlotMerge;
use crate::records::PauseFrame;
use ferric_abi::wire::{self, ethertype};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of the window that a frame's beginning is collected in: the least frame without its check sequence fits.
pub(super) const WINDOW: usize = 512;
/// Bytes of the least frame as the MAC hands it over, without its check sequence (IEEE 802.3, 3.2.7: 64 with it).
pub(super) const LEAST: usize = 60;

/// Any number of frames, a beat a cycle. What it says of a frame it says two cycles after the last beat.
#[derive(LogicBlock, BlockDefault)]
#[demand(WINDOW % W == 0 && W == 8 * K)]
pub(super) struct Decoder<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub data: Signal<In, Bits<W>>,
    pub keep: Signal<In, Bits<K>>,
    pub last: Signal<In, Bit>,
    /// With `last`: the MAC found the frame bad.
    pub err: Signal<In, Bit>,
    /// A beat comes in this cycle.
    pub valid: Signal<In, Bit>,
    /// For one cycle: a pause frame that is as it should be, which stands in `frame`.
    pub seen: Signal<Out, Bit>,
    /// With `seen`: it is of priorities.
    pub priorities: Signal<Out, Bit>,
    pub frame: Signal<Out, PauseFrame>,
    /// For one cycle: a MAC control frame that is no such frame.
    pub malformed: Signal<Out, Bit>,
    merge: SlotMerge<WINDOW, W>,
    acc: DFF<Bits<WINDOW>>,
    /// Beats of this frame that are in the window.
    slot: DFF<Bits<4>>,
    done: DFF<Bit>,
    long: DFF<Bit>,
    bad: DFF<Bit>,
    #[init(BePick::of(&wire::PauseFrame::LAYOUT, 0))]
    pick: BePick<WINDOW, PauseFrame>,
    seen1: DFF<Bit>,
    priorities1: DFF<Bit>,
    malformed1: DFF<Bit>,
    frame1: DFF<PauseFrame>,
    needed: Signal<Local, Bits<K>>,
    ends: Signal<Local, Bit>,
    full: Signal<Local, Bit>,
    control: Signal<Local, Bit>,
    link: Signal<Local, Bit>,
    priority_based: Signal<Local, Bit>,
    ours: Signal<Local, Bit>,
    fine: Signal<Local, Bit>,
    #[init(Constant::new(((WINDOW / W) as u64).to_bits()))]
    all_slots: Constant<Bits<4>>,
    /// The slot with the last byte of the least frame, and the byte's lane.
    #[init(Constant::new((((LEAST - 1) / K) as u64).to_bits()))]
    least_slot: Constant<Bits<4>>,
    #[init(Constant::new((1u64 << ((LEAST - 1) % K)).to_bits()))]
    least_lane: Constant<Bits<K>>,
    #[init(Constant::new(wire::PAUSE_ADDRESS.to_bits()))]
    address: Constant<Bits<48>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Decoder<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, acc, slot, done, long, bad, seen1, priorities1, malformed1, frame1);
        // The beginning of a frame. What lies behind the end of a short one does not matter: it is too short.
        self.merge.acc.next = self.acc.q.val();
        self.merge.data.next = self.data.val();
        self.merge.slot.next = bit_cast::<8, 4>(self.slot.q.val());
        self.merge.fresh.next = !self.slot.q.val().any();
        self.full.next = self.slot.q.val() == self.all_slots.val();
        self.needed.next = self.keep.val() & self.least_lane.val();
        self.ends.next = self.valid.val() & self.last.val();
        self.done.d.next = self.ends.val();
        self.bad.d.next = self.err.val();
        self.long.d.next = self.full.val() | ((self.slot.q.val() == self.least_slot.val()) & self.needed.val().any());
        if self.valid.val() {
            self.acc.d.next = self.merge.y.val();
            if !self.full.val() {
                self.slot.d.next = self.slot.q.val() + 1;
            }
            if self.last.val() {
                self.slot.d.next = bits::<4>(0);
            }
        }
        // What it is
        self.pick.x.next = self.acc.q.val();
        self.control.next = self.pick.y.val().ethertype == ethertype::MAC_CONTROL;
        self.link.next = self.pick.y.val().opcode == wire::PAUSE_LINK;
        self.priority_based.next = self.pick.y.val().opcode == wire::PAUSE_PRIORITY;
        self.ours.next = self.pick.y.val().dst == self.address.val();
        self.fine.next = self.ours.val() & (self.link.val() | self.priority_based.val()) & self.long.q.val() & !self.bad.q.val();
        self.seen1.d.next = self.done.q.val() & self.control.val() & self.fine.val();
        self.malformed1.d.next = self.done.q.val() & self.control.val() & !self.fine.val();
        self.priorities1.d.next = self.priority_based.val();
        self.frame1.d.next = self.pick.y.val();
        self.seen.next = self.seen1.q.val();
        self.malformed.next = self.malformed1.q.val();
        self.priorities.next = self.priorities1.q.val();
        self.frame.next = self.frame1.q.val();
        if self.reset.val() {
            self.slot.d.next = bits::<4>(0);
            self.done.d.next = false;
            self.seen1.d.next = false;
            self.malformed1.d.next = false;
        }
    }
}
