//! A table of exact keys in four ways. See README.md.

#[cfg(test)]
mod tests;
mod way;

use crate::prim::xor_matrix::XorMatrix;
pub use ferric_abi::switch::hash::{Hash, SEED, WAYS};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Cycles from a key to its result.
pub const LATENCY: u64 = 6;
/// Ways, as numbers of the write port.
const ONE: u64 = 1;
const TWO: u64 = 2;
const THREE: u64 = 3;

/// Middle word of a hash of keys of `N` bits.
fn middle<const N: usize, const M: usize>() -> XorMatrix<N, M> {
    let hash = Hash::<N, M>::new(SEED);
    XorMatrix::of(|bit| hash.column(bit).into())
}

/// Line of a way.
fn line<const N: usize, const M: usize, const LG: usize>(way: usize) -> XorMatrix<M, LG> {
    let hash = Hash::<N, M>::new(SEED);
    XorMatrix::of(|row| u128::from(hash.line_column(way, row)) & ((1 << LG) - 1))
}

/// Keys of `N` bits, which are `B` bytes, hashed by way of `M` bits; results of `R` bits; lines of `L` = `N` + `R` + 3 bits, 2^`LG` in each way: from the lowest bit on key, result, generation of two
/// bits, and that the line counts. A line is written in one cycle, so no lookup sees half of one.
#[derive(LogicBlock, BlockDefault)]
pub struct HashBank<const N: usize, const B: usize, const M: usize, const R: usize, const L: usize, const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous: lookups and reads under way are forgotten. The lines stay.
    pub reset: Signal<In, Bit>,
    /// A lookup; one a cycle.
    pub valid: Signal<In, Bit>,
    pub key: Signal<In, Bits<N>>,
    pub generation: Signal<In, Bits<2>>,
    /// [`LATENCY`] cycles later. Of two lines of the same key, which there are while it moves, the lower way's counts.
    pub found_valid: Signal<Out, Bit>,
    pub hit: Signal<Out, Bit>,
    pub result: Signal<Out, Bits<R>>,
    /// A line is written, at any time.
    pub write: Signal<In, Bit>,
    pub write_way: Signal<In, Bits<2>>,
    pub write_line: Signal<In, Bits<LG>>,
    pub write_data: Signal<In, Bits<L>>,
    /// A line is read when no lookup wants the memories: `read` and the line's number stay until `read_done`, which brings it.
    pub read: Signal<In, Bit>,
    pub read_way: Signal<In, Bits<2>>,
    pub read_line: Signal<In, Bits<LG>>,
    pub read_done: Signal<Out, Bit>,
    pub read_data: Signal<Out, Bits<L>>,
    #[init(middle())]
    middle: XorMatrix<N, M>,
    #[init(std::array::from_fn(line::<N, M, LG>))]
    places: [XorMatrix<M, LG>; 4],
    ways: [way::Way<N, B, R, L, LG>; 4],
    // Stage 1: middle word
    middle1: DFF<Bits<M>>,
    // Stage 2: lines' numbers; the memories take them in stage 3
    places2: [DFF<Bits<LG>>; 4],
    key1: DFF<Bits<N>>,
    key2: DFF<Bits<N>>,
    key3: DFF<Bits<N>>,
    key4: DFF<Bits<N>>,
    generation1: DFF<Bits<2>>,
    generation2: DFF<Bits<2>>,
    generation3: DFF<Bits<2>>,
    generation4: DFF<Bits<2>>,
    valid1: DFF<Bit>,
    valid2: DFF<Bit>,
    valid3: DFF<Bit>,
    valid4: DFF<Bit>,
    valid5: DFF<Bit>,
    valid6: DFF<Bit>,
    asked: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
    reads3: DFF<Bit>,
    reads4: DFF<Bit>,
    done5: DFF<Bit>,
    row5: DFF<Bits<L>>,
    hit6: DFF<Bit>,
    result6: DFF<Bits<R>>,
}

#[kernel]
impl<const N: usize, const B: usize, const M: usize, const R: usize, const L: usize, const LG: usize> Logic for HashBank<N, B, M, R, L, LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, middle1, key1, key2, key3, key4, generation1, generation2, generation3, generation4);
        dff_setup!(self, clock, valid1, valid2, valid3, valid4, valid5, valid6, reads3, reads4, done5, row5, hit6, result6);
        self.middle.x.next = self.key.val();
        self.middle1.d.next = self.middle.y.val();
        self.key1.d.next = self.key.val();
        self.key2.d.next = self.key1.q.val();
        self.key3.d.next = self.key2.q.val();
        self.key4.d.next = self.key3.q.val();
        self.generation1.d.next = self.generation.val();
        self.generation2.d.next = self.generation1.q.val();
        self.generation3.d.next = self.generation2.q.val();
        self.generation4.d.next = self.generation3.q.val();
        self.valid1.d.next = self.valid.val();
        self.valid2.d.next = self.valid1.q.val();
        self.valid3.d.next = self.valid2.q.val();
        self.valid4.d.next = self.valid3.q.val();
        self.valid5.d.next = self.valid4.q.val();
        self.valid6.d.next = self.valid5.q.val();
        // A read goes when nobody looks anything up, and not again before it is done.
        self.asked.next = self.read.val() & !self.reads3.q.val() & !self.reads4.q.val() & !self.done5.q.val();
        self.taken.next = self.asked.val() & !self.valid2.q.val();
        self.reads3.d.next = self.taken.val();
        self.reads4.d.next = self.reads3.q.val();
        self.done5.d.next = self.reads4.q.val();
        for i in 0..4 {
            self.places[i].x.next = self.middle1.q.val();
            self.places2[i].clock.next = self.clock.val();
            self.places2[i].d.next = self.places[i].y.val();
            self.ways[i].clock.next = self.clock.val();
            self.ways[i].addr.next = self.places2[i].q.val();
            if !self.valid2.q.val() {
                self.ways[i].addr.next = self.read_line.val();
            }
            self.ways[i].write_addr.next = self.write_line.val();
            self.ways[i].write_data.next = self.write_data.val();
            self.ways[i].key.next = self.key4.q.val();
            self.ways[i].generation.next = self.generation4.q.val();
        }
        self.ways[0].write.next = self.write.val() & !self.write_way.val().any();
        self.ways[1].write.next = self.write.val() & (self.write_way.val() == ONE);
        self.ways[2].write.next = self.write.val() & (self.write_way.val() == TWO);
        self.ways[3].write.next = self.write.val() & (self.write_way.val() == THREE);
        self.row5.d.next = self.ways[0].row.val();
        if self.read_way.val() == ONE {
            self.row5.d.next = self.ways[1].row.val();
        }
        if self.read_way.val() == TWO {
            self.row5.d.next = self.ways[2].row.val();
        }
        if self.read_way.val() == THREE {
            self.row5.d.next = self.ways[3].row.val();
        }
        self.hit6.d.next = self.ways[0].hit.val() | self.ways[1].hit.val() | self.ways[2].hit.val() | self.ways[3].hit.val();
        self.result6.d.next = self.ways[3].result.val();
        if self.ways[2].hit.val() {
            self.result6.d.next = self.ways[2].result.val();
        }
        if self.ways[1].hit.val() {
            self.result6.d.next = self.ways[1].result.val();
        }
        if self.ways[0].hit.val() {
            self.result6.d.next = self.ways[0].result.val();
        }
        self.found_valid.next = self.valid6.q.val();
        self.hit.next = self.hit6.q.val();
        self.result.next = self.result6.q.val();
        self.read_done.next = self.done5.q.val();
        self.read_data.next = self.row5.q.val();
        if self.reset.val() {
            self.valid1.d.next = false;
            self.valid2.d.next = false;
            self.valid3.d.next = false;
            self.valid4.d.next = false;
            self.valid5.d.next = false;
            self.valid6.d.next = false;
            self.reads3.d.next = false;
            self.reads4.d.next = false;
            self.done5.d.next = false;
        }
    }
}
