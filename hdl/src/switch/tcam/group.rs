//! Fourteen wildcard rules.

use crate::prim::arb::{BinToOneHot, FirstSet, OneHotToBin};
use crate::prim::mux::OneHotMux;
use crate::prim::pack::Gather;
use crate::prim::ram::RamAsync;
use ferric_abi::switch::ternary::{BITS, CHUNKS, CHUNK_BITS, RULES};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of a rule's place in its group.
pub const PLACE: usize = 4;
/// Bits of a rule's generation, and that it counts.
pub const STATE: usize = GENERATION + 1;
const GENERATION: usize = 2;
const COUNTS_AT: u64 = GENERATION as u64;
/// Bits of a row.
pub const ROW: usize = CHUNKS * RULES;

/// The kernel has these as numbers: a chunk's and a row's distance, and the last chunk.
const _: () = assert!(CHUNK_BITS == 5 && RULES == 14 && CHUNKS == 64);

/// One packet a cycle.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Group {
    pub clock: Signal<In, Clock>,
    /// What rules see of a packet; from registers.
    pub packet: Signal<In, Bits<BITS>>,
    /// A cycle later: the generation that is asked.
    pub generation: Signal<In, Bits<2>>,
    /// Three cycles after the packet: a rule of the generation fits, and which one is first.
    pub hit: Signal<Out, Bit>,
    pub place: Signal<Out, Bits<PLACE>>,
    /// A row is written; a packet in the same cycle meets the old one.
    pub write_row: Signal<In, Bit>,
    pub row: Signal<In, Bits<CHUNK_BITS>>,
    pub row_data: Signal<In, Bits<ROW>>,
    /// A rule counts from now on in a generation, or does not count any more.
    pub write_rule: Signal<In, Bit>,
    pub rule: Signal<In, Bits<PLACE>>,
    pub rule_counts: Signal<In, Bit>,
    pub rule_generation: Signal<In, Bits<2>>,
    /// A rule's generation, and above it that it counts; combinational.
    pub asked: Signal<In, Bits<PLACE>>,
    pub state: Signal<Out, Bits<STATE>>,
    memories: [RamAsync<Bits<RULES>, CHUNK_BITS>; CHUNKS],
    /// Rules that take the first n chunks.
    take: [Signal<Local, Bits<RULES>>; CHUNKS],
    fits1: DFF<Bits<RULES>>,
    chosen: BinToOneHot<RULES, PLACE>,
    counts: [DFF<Bit>; RULES],
    generations: [DFF<Bits<2>>; RULES],
    asks: BinToOneHot<RULES, PLACE>,
    counting: Gather<RULES>,
    own: Signal<Local, Bits<RULES>>,
    generation_of: OneHotMux<Bits<GENERATION>, RULES>,
    ours: Gather<RULES>,
    ours2: DFF<Bits<RULES>>,
    first: FirstSet<RULES>,
    number: OneHotToBin<RULES, PLACE>,
    hit3: DFF<Bit>,
    place3: DFF<Bits<PLACE>>,
}

#[kernel]
impl Logic for Group {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, fits1, ours2, hit3, place3);
        for i in 0..CHUNKS {
            self.memories[i].clock.next = self.clock.val();
            self.memories[i].read_addr.next = self.packet.val().get_bits::<CHUNK_BITS>(i * 5);
            self.memories[i].write_en.next = self.write_row.val();
            self.memories[i].write_addr.next = self.row.val();
            self.memories[i].write_data.next = self.row_data.val().get_bits::<RULES>(i * 14);
        }
        self.take[0].next = self.memories[0].read_data.val();
        for i in 1..CHUNKS {
            self.take[i].next = self.take[i - 1].val() & self.memories[i].read_data.val();
        }
        self.fits1.d.next = self.take[63].val();
        self.chosen.en.next = self.write_rule.val();
        self.chosen.x.next = self.rule.val();
        for i in 0..RULES {
            self.counts[i].clock.next = self.clock.val();
            self.generations[i].clock.next = self.clock.val();
            self.counts[i].d.next = self.counts[i].q.val();
            self.generations[i].d.next = self.generations[i].q.val();
            if self.chosen.y.val().get_bit(i) {
                self.counts[i].d.next = self.rule_counts.val();
                self.generations[i].d.next = self.rule_generation.val();
            }
            self.counting.x[i].next = self.counts[i].q.val();
            self.generation_of.x[i].next = self.generations[i].q.val();
            self.ours.x[i].next = self.fits1.q.val().get_bit(i) & self.counts[i].q.val() & (self.generations[i].q.val() == self.generation.val());
        }
        self.asks.en.next = true;
        self.asks.x.next = self.asked.val();
        self.generation_of.sel.next = self.asks.y.val();
        self.own.next = self.counting.y.val() & self.asks.y.val();
        self.state.next = (bit_cast::<STATE, 1>(self.own.val().any().into()) << COUNTS_AT) | bit_cast::<STATE, GENERATION>(self.generation_of.y.val());
        self.ours2.d.next = self.ours.y.val();
        self.first.x.next = self.ours2.q.val();
        self.number.x.next = self.first.y.val();
        self.hit3.d.next = self.ours2.q.val().any();
        self.place3.d.next = self.number.y.val();
        self.hit.next = self.hit3.q.val();
        self.place.next = self.place3.q.val();
    }
}
