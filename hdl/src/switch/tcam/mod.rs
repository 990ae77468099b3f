//! Wildcard rules. See README.md.

mod group;
#[cfg(test)]
mod tests;

use crate::prim::arb::{BinToOneHot, FirstSet, OneHotToBin};
use crate::prim::mux::OneHotMux;
use crate::prim::pack::{BePick, Concat2, Gather};
use crate::prim::ram::Ram;
pub use ferric_abi::switch::table::{KEY_BITS, RESULT_BITS};
pub use ferric_abi::switch::ternary::{sources, Source, BITS, CHUNK_BITS};
use ferric_hdl_derive::{kernel, BlockDefault};
use group::Group;
use group::STATE;
pub use group::{PLACE, ROW};
use rust_hdl::prelude::*;

/// Cycles from a key to what its rule leads to.
pub const LATENCY: u64 = 7;
/// Bits of a group's number, and of a rule's.
pub const GROUP: usize = 5;
pub const RULE: usize = GROUP + PLACE;
/// Bits of what is read.
pub const READ: usize = RESULT_BITS + STATE;
const PLACE_BITS: u64 = PLACE as u64;
/// The key, that it is that of an IPv6 packet, and a zero.
const ALL: usize = KEY_BITS + 2;

/// The two bits behind the key.
const SIX: u64 = 1;

/// What rules see of a packet.
fn seen(v6: bool) -> BePick<ALL, Bits<BITS>> {
    let place = |source: Source| match source {
        Source::Key(bit) => bit,
        Source::IsV6 => KEY_BITS,
        Source::Zero => KEY_BITS + 1,
    };
    BePick::new(sources(v6).map(place).to_vec())
}

/// `G` groups of fourteen rules. One key a cycle, never stalled.
#[derive(LogicBlock, BlockDefault)]
#[demand(G > 1 && G <= 1 << GROUP)]
pub struct Tcam<const G: usize> {
    pub clock: Signal<In, Clock>,
    pub key: Signal<In, Bits<KEY_BITS>>,
    pub v6: Signal<In, Bit>,
    pub generation: Signal<In, Bits<2>>,
    /// [`LATENCY`] cycles later: a rule of this generation fits, and the line of the action of the one with the lowest number.
    pub hit: Signal<Out, Bit>,
    pub action: Signal<Out, Bits<RESULT_BITS>>,
    /// A row of a group is written, at any time, while no rule counts for which it changes.
    pub write_row: Signal<In, Bit>,
    pub row: Signal<In, Bits<CHUNK_BITS>>,
    pub row_data: Signal<In, Bits<ROW>>,
    /// A rule counts from now on, in a generation, and leads to an action; or it does not count any more.
    pub write_rule: Signal<In, Bit>,
    pub rule: Signal<In, Bits<PLACE>>,
    pub rule_counts: Signal<In, Bit>,
    pub rule_generation: Signal<In, Bits<2>>,
    pub rule_action: Signal<In, Bits<RESULT_BITS>>,
    /// Of either write.
    pub group: Signal<In, Bits<GROUP>>,
    /// A packet's key of six cycles ago is looked up: what a key that only stayed behind its packet has found nobody waits for.
    pub looks: Signal<In, Bit>,
    /// A rule is read when no packet wants the memory: `read` and its number stay until `read_done`, which brings it: where it leads, its generation, and that it counts.
    pub read: Signal<In, Bit>,
    pub read_rule: Signal<In, Bits<RULE>>,
    pub read_done: Signal<Out, Bit>,
    pub read_data: Signal<Out, Bits<READ>>,
    taken: Signal<Local, Bit>,
    read_group: Signal<Local, Bits<GROUP>>,
    asks: BinToOneHot<G, GROUP>,
    state: OneHotMux<Bits<STATE>, G>,
    state7: DFF<Bits<STATE>>,
    read7: DFF<Bit>,
    found: Concat2<RESULT_BITS, STATE, READ>,
    // Stage 1: what rules see
    flags: Signal<Local, Bits<2>>,
    all: Concat2<KEY_BITS, 2, ALL>,
    #[init(seen(false))]
    others: BePick<ALL, Bits<BITS>>,
    #[init(seen(true))]
    six: BePick<ALL, Bits<BITS>>,
    packet1: DFF<Bits<BITS>>,
    generation1: DFF<Bits<2>>,
    generation2: DFF<Bits<2>>,
    // Stages 2 to 4: rows, generations, the first of each group
    groups: [Group; G],
    row_of: BinToOneHot<G, GROUP>,
    rule_of: BinToOneHot<G, GROUP>,
    // Stage 5: the first group
    hits: Gather<G>,
    first: FirstSet<G>,
    first5: DFF<Bits<G>>,
    places5: [DFF<Bits<PLACE>>; G],
    // Stage 6: the rule's number
    which: OneHotToBin<G, GROUP>,
    place: OneHotMux<Bits<PLACE>, G>,
    hit6: DFF<Bit>,
    number6: DFF<Bits<RULE>>,
    // Stage 7: what it leads to
    actions: Ram<Bits<RESULT_BITS>, RULE>,
    hit7: DFF<Bit>,
}

#[kernel]
impl<const G: usize> Logic for Tcam<G> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state7, read7, packet1, generation1, generation2, first5, hit6, number6, hit7);
        clock!(self, clock, actions);
        self.flags.next = bits::<2>(0);
        if self.v6.val() {
            self.flags.next = bits::<2>(SIX);
        }
        self.all.a.next = self.key.val();
        self.all.b.next = self.flags.val();
        self.others.x.next = self.all.y.val();
        self.six.x.next = self.all.y.val();
        self.packet1.d.next = self.others.y.val();
        if self.v6.val() {
            self.packet1.d.next = self.six.y.val();
        }
        self.generation1.d.next = self.generation.val();
        self.generation2.d.next = self.generation1.q.val();
        self.row_of.en.next = self.write_row.val();
        self.row_of.x.next = self.group.val();
        self.rule_of.en.next = self.write_rule.val();
        self.rule_of.x.next = self.group.val();
        for i in 0..G {
            self.groups[i].clock.next = self.clock.val();
            self.groups[i].packet.next = self.packet1.q.val();
            self.groups[i].generation.next = self.generation2.q.val();
            self.groups[i].write_row.next = self.row_of.y.val().get_bit(i);
            self.groups[i].row.next = self.row.val();
            self.groups[i].row_data.next = self.row_data.val();
            self.groups[i].write_rule.next = self.rule_of.y.val().get_bit(i);
            self.groups[i].rule.next = self.rule.val();
            self.groups[i].rule_counts.next = self.rule_counts.val();
            self.groups[i].rule_generation.next = self.rule_generation.val();
            self.groups[i].asked.next = self.read_rule.val().get_bits::<PLACE>(0);
            self.state.x[i].next = self.groups[i].state.val();
            self.hits.x[i].next = self.groups[i].hit.val();
            self.places5[i].clock.next = self.clock.val();
            self.places5[i].d.next = self.groups[i].place.val();
            self.place.x[i].next = self.places5[i].q.val();
        }
        self.first.x.next = self.hits.y.val();
        self.first5.d.next = self.first.y.val();
        self.which.x.next = self.first5.q.val();
        self.place.sel.next = self.first5.q.val();
        self.hit6.d.next = self.first5.q.val().any();
        self.number6.d.next = (bit_cast::<RULE, GROUP>(self.which.y.val()) << 4) | bit_cast::<RULE, PLACE>(self.place.y.val());
        self.actions.read_addr.next = self.number6.q.val();
        if !self.looks.val() {
            self.actions.read_addr.next = self.read_rule.val();
        }
        self.read_group.next = bit_cast::<GROUP, RULE>(self.read_rule.val() >> PLACE_BITS);
        self.asks.en.next = true;
        self.asks.x.next = self.read_group.val();
        self.state.sel.next = self.asks.y.val();
        self.taken.next = self.read.val() & !self.looks.val() & !self.read7.q.val();
        self.read7.d.next = self.taken.val();
        self.state7.d.next = self.state.y.val();
        self.found.a.next = self.actions.read_data.val();
        self.found.b.next = self.state7.q.val();
        self.read_data.next = self.found.y.val();
        self.read_done.next = self.read7.q.val();
        self.hit7.d.next = self.hit6.q.val();
        self.hit.next = self.hit7.q.val();
        self.action.next = self.actions.read_data.val();
        // A rule that is taken away still leads somewhere for those who have found it.
        self.actions.write_en.next = self.write_rule.val() & self.rule_counts.val();
        self.actions.write_addr.next = (bit_cast::<RULE, GROUP>(self.group.val()) << 4) | bit_cast::<RULE, PLACE>(self.rule.val());
        self.actions.write_data.next = self.rule_action.val();
    }
}
