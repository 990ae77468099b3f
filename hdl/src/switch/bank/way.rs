//! One way of a table: a memory of whole lines, and whether the one that was read is the key's.

use crate::prim::pack::{Gather, Slice};
use crate::prim::ram::Ram;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of a line behind key and result: generation, and that the line counts.
pub(super) const TAIL: usize = 3;

/// Keys of `N` bits, which are `B` bytes, results of `R` bits, lines of `L` bits, 2^`LG` of them.
#[derive(LogicBlock, BlockDefault)]
#[demand(N == 8 * B && L == N + R + TAIL)]
pub(super) struct Way<const N: usize, const B: usize, const R: usize, const L: usize, const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Line that is read.
    pub addr: Signal<In, Bits<LG>>,
    pub write: Signal<In, Bit>,
    pub write_addr: Signal<In, Bits<LG>>,
    pub write_data: Signal<In, Bits<L>>,
    /// The line, two cycles after its number.
    pub row: Signal<Out, Bits<L>>,
    /// With the line: the key and the generation that are looked for.
    pub key: Signal<In, Bits<N>>,
    pub generation: Signal<In, Bits<2>>,
    /// A cycle later, from registers: the line is the key's, and what it leads to.
    pub hit: Signal<Out, Bit>,
    pub result: Signal<Out, Bits<R>>,
    memory: Ram<Bits<L>, LG>,
    line: DFF<Bits<L>>,
    bytes: Gather<B>,
    equal: DFF<Bits<B>>,
    #[init(Slice::new(N))]
    found: Slice<L, R>,
    #[init(Slice::new(N + R))]
    tail: Slice<L, 2>,
    #[init(Slice::new(N + R + 2))]
    counts: Slice<L, 1>,
    ours: DFF<Bit>,
    result1: DFF<Bits<R>>,
}

#[kernel]
impl<const N: usize, const B: usize, const R: usize, const L: usize, const LG: usize> Logic for Way<N, B, R, L, LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, line, equal, ours, result1);
        clock!(self, clock, memory);
        self.memory.read_addr.next = self.addr.val();
        self.memory.write_addr.next = self.write_addr.val();
        self.memory.write_data.next = self.write_data.val();
        self.memory.write_en.next = self.write.val();
        self.line.d.next = self.memory.read_data.val();
        self.row.next = self.line.q.val();
        self.found.x.next = self.line.q.val();
        self.tail.x.next = self.line.q.val();
        self.counts.x.next = self.line.q.val();
        for i in 0..B {
            self.bytes.x[i].next = self.line.q.val().get_bits::<8>(i * 8) == self.key.val().get_bits::<8>(i * 8);
        }
        self.equal.d.next = self.bytes.y.val();
        self.ours.d.next = self.counts.y.val().any() & (self.tail.y.val() == self.generation.val());
        self.result1.d.next = self.found.y.val();
        self.hit.next = self.equal.q.val().all() & self.ours.q.val();
        self.result.next = self.result1.q.val();
    }
}
