//! The Toeplitz hash of a frame's addresses and ports, as their words pass. See README.md.

use crate::prim::ram::Ram;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of a key's words of 16 bits: 20 of them are used.
pub const LG_KEY: usize = 5;
/// Key words that the first word of a frame meets.
const WINDOW: u64 = 3;
/// Where the 32 bits of the key begin that a word's last bit meets.
const LAST_PLACE: u64 = 1;

/// What one word adds to the hash: for each of its bits that is set, 32 bits of the key from that bit's own place on. `window`: 48 bits of the key, the first in the uppermost.
#[derive(LogicBlock, Default)]
pub struct ToeplitzStep {
    pub word: Signal<In, Bits<16>>,
    pub window: Signal<In, Bits<48>>,
    pub y: Signal<Out, Bits<32>>,
    places: Signal<Local, Bits<48>>,
    part: Signal<Local, Bits<32>>,
    sum: Signal<Local, Bits<32>>,
}

#[kernel]
impl Logic for ToeplitzStep {
    #[hdl_gen]
    fn update(&mut self) {
        // The last bit's place comes to the lowest bits.
        self.places.next = self.window.val() >> LAST_PLACE;
        self.sum.next = bits::<32>(0);
        for i in 0..16 {
            self.part.next = bits::<32>(0);
            if self.word.val().get_bit(i) {
                self.part.next = self.places.val().get_bits::<32>(i);
            }
            self.sum.next = self.sum.val() ^ self.part.val();
        }
        self.y.next = self.sum.val();
    }
}

/// Keys of 2^`LF` functions, `LY` = `LF` + [`LG_KEY`].
#[derive(LogicBlock, BlockDefault)]
#[demand(LY == LF + LG_KEY, "as many keys as functions")]
pub struct Toeplitz<const LF: usize, const LY: usize> {
    pub clock: Signal<In, Clock>,
    /// Whose key it is, from `begins` on until the last word; `begins` is high for a cycle, eight cycles before the first word at the latest.
    pub owner: Signal<In, Bits<LF>>,
    pub begins: Signal<In, Bit>,
    /// A word, and that the addresses end with it.
    pub feeds: Signal<In, Bit>,
    pub feed: Signal<In, Bits<16>>,
    pub paired: Signal<In, Bit>,
    /// The hash of what has come, and that of the addresses.
    pub whole: Signal<Out, Bits<32>>,
    pub pair: Signal<Out, Bits<32>>,
    /// A key's words are written.
    pub write_en: Signal<In, Bit>,
    pub write_addr: Signal<In, Bits<LY>>,
    pub write_data: Signal<In, Bits<16>>,
    keys: Ram<Bits<16>, LY>,
    at: DFF<Bits<LG_KEY>>,
    loads: DFF<Bits<2>>,
    window: DFF<Bits<48>>,
    hash: DFF<Bits<32>>,
    of_pair: DFF<Bits<32>>,
    step: ToeplitzStep,
    next_at: Signal<Local, Bits<LG_KEY>>,
    shifts: Signal<Local, Bit>,
    sum: Signal<Local, Bits<32>>,
}

#[kernel]
impl<const LF: usize, const LY: usize> Logic for Toeplitz<LF, LY> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, at, loads, window, hash, of_pair);
        clock!(self, clock, keys);
        self.keys.write_en.next = self.write_en.val();
        self.keys.write_addr.next = self.write_addr.val();
        self.keys.write_data.next = self.write_data.val();
        self.shifts.next = self.feeds.val() | self.loads.q.val().any();
        self.next_at.next = self.at.q.val();
        if self.begins.val() {
            self.next_at.next = bits::<LG_KEY>(0);
        } else if self.shifts.val() {
            self.next_at.next = self.at.q.val() + 1;
        }
        self.at.d.next = self.next_at.val();
        self.keys.read_addr.next = (bit_cast::<LY, LF>(self.owner.val()) << LG_KEY) | bit_cast::<LY, LG_KEY>(self.next_at.val());
        if self.shifts.val() {
            self.window.d.next = (self.window.q.val() << 16) | bit_cast::<48, 16>(self.keys.read_data.val());
        }
        if self.begins.val() {
            self.loads.d.next = bits::<2>(WINDOW);
        } else if self.loads.q.val().any() {
            self.loads.d.next = self.loads.q.val() - 1;
        }
        self.step.word.next = self.feed.val();
        self.step.window.next = self.window.q.val();
        self.sum.next = self.hash.q.val() ^ self.step.y.val();
        if self.begins.val() {
            self.hash.d.next = bits::<32>(0);
        } else if self.feeds.val() {
            self.hash.d.next = self.sum.val();
            if self.paired.val() {
                self.of_pair.d.next = self.sum.val();
            }
        }
        self.whole.next = self.hash.q.val();
        self.pair.next = self.of_pair.q.val();
    }
}
