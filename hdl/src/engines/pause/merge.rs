//! Puts pause frames between the frames to the wire.

use super::decode::{LEAST, WINDOW};
use crate::bus::{AxisSink, AxisSrc};
use crate::prim::pack::BePack;
use crate::records::PauseFrame;
use ferric_abi::wire;
use ferric_abi::wire::ethertype;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// A time that is as good as for ever, and the one that ends it (IEEE 802.3 annex 31B.2).
const LONGEST: u64 = 0xffff;

/// Frames pass from `s` to `m` in the same cycle: a register would cost each of them one. In between `m` has the pause frame.
#[derive(LogicBlock, BlockDefault)]
#[demand(WINDOW % W == 0 && W == 8 * K)]
pub(super) struct Merge<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<W, K>,
    pub m: AxisSrc<W, K>,
    /// A pause frame is to go out; it begins in the next cycle.
    pub want: Signal<In, Bit>,
    pub launch: Signal<Out, Bit>,
    /// What it says while it goes out.
    pub stop: Signal<In, Bit>,
    pub by_priority: Signal<In, Bit>,
    pub which: Signal<In, Bits<8>>,
    pub mac: Signal<In, Bits<48>>,
    /// The pause frame itself.
    sending: DFF<Bit>,
    beat: DFF<Bits<4>>,
    /// A frame has begun and not ended.
    inside: DFF<Bit>,
    frame: Signal<Local, PauseFrame>,
    span: Signal<Local, Bits<16>>,
    times: [Signal<Local, Bits<16>>; 8],
    #[init(BePack::of(&wire::PauseFrame::LAYOUT, 0))]
    pack: BePack<WINDOW, PauseFrame>,
    rest: Signal<Local, Bits<WINDOW>>,
    distance: Signal<Local, Bits<10>>,
    final_beat: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    between: Signal<Local, Bit>,
    #[init(Constant::new(wire::PAUSE_ADDRESS.to_bits()))]
    address: Constant<Bits<48>>,
    #[init(Constant::new((W.ilog2() as u64).to_bits()))]
    lw: Constant<Bits<4>>,
    #[init(Constant::new((((LEAST - 1) / K) as u64).to_bits()))]
    last_beat: Constant<Bits<4>>,
    #[init(Constant::new((u64::MAX >> (63 - (LEAST - 1) % K)).to_bits()))]
    last_keep: Constant<Bits<K>>,
    #[init(Constant::new((u64::MAX >> (64 - K)).to_bits()))]
    all: Constant<Bits<K>>,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Merge<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, sending, beat, inside);
        // The frame
        self.span.next = bits::<16>(0);
        if self.stop.val() {
            self.span.next = bits::<16>(LONGEST);
        }
        for i in 0..8 {
            self.times[i].next = bits::<16>(0);
            if self.by_priority.val() & self.which.val().get_bit(i) {
                self.times[i].next = self.span.val();
            }
        }
        self.frame.next.dst = self.address.val();
        self.frame.next.src = self.mac.val();
        self.frame.next.ethertype = bits::<16>(ethertype::MAC_CONTROL as u64);
        self.frame.next.opcode = bits::<16>(wire::PAUSE_LINK as u64);
        self.frame.next.first = self.span.val();
        if self.by_priority.val() {
            self.frame.next.opcode = bits::<16>(wire::PAUSE_PRIORITY as u64);
            self.frame.next.first = bit_cast::<16, 8>(self.which.val());
        }
        self.frame.next.time0 = self.times[0].val();
        self.frame.next.time1 = self.times[1].val();
        self.frame.next.time2 = self.times[2].val();
        self.frame.next.time3 = self.times[3].val();
        self.frame.next.time4 = self.times[4].val();
        self.frame.next.time5 = self.times[5].val();
        self.frame.next.time6 = self.times[6].val();
        self.frame.next.time7 = self.times[7].val();
        self.pack.x.next = self.frame.val();
        self.distance.next = bit_cast::<10, 4>(self.beat.q.val()) << self.lw.val();
        self.rest.next = self.pack.y.val() >> self.distance.val();
        self.final_beat.next = self.beat.q.val() == self.last_beat.val();
        // Whose turn it is
        self.m.data.next = self.s.data.val();
        self.m.keep.next = self.s.keep.val();
        self.m.last.next = self.s.last.val();
        self.m.valid.next = self.s.valid.val();
        self.s.ready.next = self.m.ready.val();
        if self.sending.q.val() {
            self.m.data.next = self.rest.val().get_bits::<W>(0);
            self.m.keep.next = self.all.val();
            if self.final_beat.val() {
                self.m.keep.next = self.last_keep.val();
            }
            self.m.last.next = self.final_beat.val();
            self.m.valid.next = true;
            self.s.ready.next = false;
            if self.m.ready.val() {
                self.beat.d.next = self.beat.q.val() + 1;
                self.sending.d.next = !self.final_beat.val();
            }
        }
        // A frame that has been offered goes first: what is offered stays.
        self.moves.next = self.s.valid.val() & self.m.ready.val() & !self.sending.q.val();
        if self.moves.val() {
            self.inside.d.next = !self.s.last.val();
        }
        self.between.next = (self.moves.val() & self.s.last.val()) | (!self.inside.q.val() & !self.s.valid.val());
        self.launch.next = self.want.val() & !self.sending.q.val() & self.between.val();
        if self.launch.val() {
            self.sending.d.next = true;
            self.beat.d.next = bits::<4>(0);
        }
        if self.reset.val() {
            self.sending.d.next = false;
            self.inside.d.next = false;
        }
    }
}
