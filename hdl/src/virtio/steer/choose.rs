//! Whether a frame is its function's, and which queue it goes to, by the function's tables. See README.md.

use super::stations::{Stations, LG_STATIONS};
use super::toeplitz::{Toeplitz, LG_KEY};
use crate::bus::{MsgSink, MsgSrc};
use crate::codes::steer_cause;
use crate::msg::{CtlReq, CtlResp, VsHead, VsNote, VsVerdict};
use crate::prim::pack::Cast;
use crate::prim::ram::{Ram, RamAsync};
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Tables of the control port: bits 16 to 23 of a line's number. What the rest of it is, and the word, stands in README.md.
pub mod tables {
    /// [`super::Function`], by function.
    pub const FUNCTIONS: u64 = 0;
    /// [`super::super::stations::Station`], by function and place.
    pub const STATIONS: u64 = 1;
    /// A bit for each VLAN that is received, 32 in a word.
    pub const VLANS: u64 = 2;
    /// Pairs by hash (RSS), one in a word.
    pub const PAIRS: u64 = 3;
    /// The key of the hash, 16 bits in a word, its first byte the upper one of the first.
    pub const KEYS: u64 = 4;
    /// The function that a queue belongs to.
    pub const OWNERS: u64 = 5;
    /// A write forgets all flows of a function.
    pub const FLOWS: u64 = 6;
    /// How many there are.
    pub const COUNT: u64 = 7;
}

/// log2 of a function's flows, of its pairs by hash, of its words of VLANs.
pub const LG_FLOWS: usize = 10;
pub const LG_PAIRS: usize = 7;
pub const LG_VLANS: usize = 7;
/// log2 of the words of a line.
const LG_WORD: usize = 6;
/// Where a line's number says the table.
const TABLE: usize = 16;

/// What a function receives and how it is spread, as the control queue has set it. `all_multicast`, `all_unicast`: also when there are more addresses than places, or no table has been negotiated. `vlans`: tags
/// are looked at. `multiqueue`: by flow, over `pairs`; `rss`: by hash, whose `types` are those of VIRTIO 1.3, 5.1.6.4.3.1; `mask` is one less than the entries of the table. `first`: pair of the engine that is pair 0 of the function.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Function {
    pub promiscuous: Bit,
    pub all_multicast: Bit,
    pub all_unicast: Bit,
    pub no_multicast: Bit,
    pub no_unicast: Bit,
    pub no_broadcast: Bit,
    pub vlans: Bit,
    pub multiqueue: Bit,
    pub rss: Bit,
    pub ipv4: Bit,
    pub tcpv4: Bit,
    pub udpv4: Bit,
    pub ipv6: Bit,
    pub tcpv6: Bit,
    pub udpv6: Bit,
    pub rsvd0: Bit,
    pub mask: Bits<8>,
    pub rsvd1: Bits<8>,
    pub pairs: Bits<8>,
    pub unclassified: Bits<8>,
    pub first: Bits<8>,
    pub rsvd2: Bits<8>,
}

/// Bits that none of 2^`lg` indices has.
fn beyond(lg: usize) -> Bits<16> {
    (0xffff >> lg << lg).into()
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Wait,
    Rules,
    Fetch,
    Pick,
    Judge,
    Say,
}

/// Of 2^`LF` functions and 2^`LQ` queues, one frame at a time. `LM`, `LV`, `LP`, `LY`: `LF` and the logarithms of a function's lines in the tables.
#[derive(LogicBlock, BlockDefault)]
#[demand(LM == LF + LG_STATIONS && LV == LF + LG_VLANS && LV == LF + LG_PAIRS && LP == LF + LG_FLOWS && LY == LF + LG_KEY, "the tables have a part for each function")]
#[demand(LF <= 8 && LQ <= 9, "a pair's number has 8 bits, a function's index in the largest table 16")]
pub struct Choose<const LF: usize, const LQ: usize, const LM: usize, const LV: usize, const LP: usize, const LY: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous. The tables stay as they are, but what is being forgotten is not forgotten.
    pub reset: Signal<In, Bit>,
    /// Writes of the tables; there are no reads.
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// The function whose frame it is, as long as it is here.
    pub whose: Signal<In, Bits<12>>,
    /// Of the frame that comes: as [`super::head::Head`] has them.
    pub known: Signal<In, Bit>,
    pub mac: Signal<In, Bits<48>>,
    pub feeds: Signal<In, Bit>,
    pub feed: Signal<In, Bits<16>>,
    pub paired: Signal<In, Bit>,
    /// Taken when its verdict is given.
    pub s_head: MsgSink<VsHead>,
    pub m_verdict: MsgSrc<VsVerdict>,
    pub s_note: MsgSink<VsNote>,
    asked: MsgSlice<CtlReq>,
    notes: MsgSlice<VsNote>,
    verdicts: MsgSlice<VsVerdict>,
    answers: DFF<Bit>,
    bad: DFF<Bit>,
    /// A write, a cycle after it has been taken.
    write: DFF<CtlReq>,
    writes: DFF<Bit>,
    /// The first word of a line of two.
    low: DFF<Bits<32>>,
    sweeps: DFF<Bit>,
    sweep: DFF<Bits<LG_FLOWS>>,
    swept: DFF<Bits<LF>>,
    functions: Ram<Function, LF>,
    written: Cast<Bits<64>, Function>,
    vlans: Ram<Bits<32>, LV>,
    pairs: Ram<Bits<8>, LV>,
    flows: Ram<Bits<8>, LP>,
    owners: RamAsync<Bits<LF>, LQ>,
    stations: Stations<LF, LM>,
    hash: Toeplitz<LF, LY>,
    was_known: DFF<Bit>,
    state: DFF<State>,
    cause: DFF<Bits<3>>,
    /// The frame has a hash, and which of the pairs it says.
    hashed: DFF<Bit>,
    index: DFF<Bits<LG_PAIRS>>,
    place: DFF<Bits<LG_FLOWS>>,
    pair: DFF<Bits<8>>,
    number: Signal<Local, Bits<LF>>,
    table_number: Signal<Local, Bits<8>>,
    line: Signal<Local, Bits<16>>,
    word: Signal<Local, Bits<LG_WORD>>,
    second: Signal<Local, Bit>,
    both: Signal<Local, Bits<64>>,
    long_line: Signal<Local, Bits<32>>,
    asks_for: Signal<Local, Bits<8>>,
    /// Which line of its table is asked for; there is no such line.
    place_asked: Signal<Local, Bits<16>>,
    stray: Signal<Local, Bit>,
    #[init(Constant::new(beyond(LF)))]
    no_function: Constant<Bits<16>>,
    #[init(Constant::new(beyond(LM)))]
    no_station: Constant<Bits<16>>,
    #[init(Constant::new(beyond(LV - LG_WORD)))]
    no_list: Constant<Bits<16>>,
    #[init(Constant::new(beyond(LQ)))]
    no_queue: Constant<Bits<16>>,
    destination: Signal<Local, Bits<48>>,
    vlan: Signal<Local, Bits<12>>,
    vlan_bit: Signal<Local, Bits<5>>,
    is_group: Signal<Local, Bit>,
    is_all: Signal<Local, Bit>,
    with_ports: Signal<Local, Bit>,
    plain: Signal<Local, Bit>,
    low_hash: Signal<Local, Bits<LG_PAIRS>>,
    low_mask: Signal<Local, Bits<LG_PAIRS>>,
    absolute: Signal<Local, Bits<8>>,
    fits: Signal<Local, Bit>,
    row: Signal<Local, Function>,
    noted: Signal<Local, Bits<16>>,
    note_pair: Signal<Local, Bits<8>>,
    owner: Signal<Local, Bits<LF>>,
}

#[kernel]
impl<const LF: usize, const LQ: usize, const LM: usize, const LV: usize, const LP: usize, const LY: usize> Logic for Choose<LF, LQ, LM, LV, LP, LY> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, answers, bad, write, writes, low, sweeps, sweep, swept, was_known, state, cause, hashed, index, place, pair);
        clock!(self, clock, asked, notes, verdicts, functions, vlans, pairs, flows, owners, stations, hash);
        self.asked.reset.next = self.reset.val();
        self.notes.reset.next = self.reset.val();
        self.verdicts.reset.next = self.reset.val();
        self.stations.reset.next = self.reset.val();
        MsgSink::<CtlReq>::link(&mut self.s_ctl, &mut self.asked.s);
        MsgSink::<VsNote>::link(&mut self.s_note, &mut self.notes.s);
        MsgSrc::<VsVerdict>::link(&mut self.m_verdict, &mut self.verdicts.m);
        self.number.next = self.whose.val().get_bits::<LF>(0);

        // ---- Writes ----
        self.asked.m.ready.next = !self.answers.q.val() & !self.sweeps.q.val();
        self.asks_for.next = self.asked.m.data.val().line.get_bits::<8>(TABLE);
        self.place_asked.next = self.asked.m.data.val().line.get_bits::<TABLE>(0);
        self.stray.next = (self.place_asked.val() & self.no_function.val()).any();
        if self.asks_for.val() == tables::STATIONS {
            self.stray.next = (self.place_asked.val() & self.no_station.val()).any();
        } else if (self.asks_for.val() == tables::VLANS) | (self.asks_for.val() == tables::PAIRS) {
            self.stray.next = (self.place_asked.val() & self.no_list.val()).any();
        } else if self.asks_for.val() == tables::OWNERS {
            self.stray.next = (self.place_asked.val() & self.no_queue.val()).any();
        }
        self.write.d.next = self.asked.m.data.val();
        self.writes.d.next = false;
        if self.asked.m.valid.val() & !self.answers.q.val() & !self.sweeps.q.val() {
            self.answers.d.next = true;
            self.bad.d.next = !self.asked.m.data.val().write | (self.asks_for.val() >= tables::COUNT) | self.stray.val();
            self.writes.d.next = self.asked.m.data.val().write & !self.stray.val();
        }
        self.m_ctl.valid.next = self.answers.q.val();
        self.m_ctl.data.next.data = bits::<32>(0);
        self.m_ctl.data.next.err = self.bad.q.val();
        if self.answers.q.val() & self.m_ctl.ready.val() {
            self.answers.d.next = false;
        }
        self.table_number.next = self.write.q.val().line.get_bits::<8>(TABLE);
        self.line.next = self.write.q.val().line.get_bits::<TABLE>(0);
        self.word.next = self.write.q.val().word;
        self.long_line.next = (bit_cast::<32, 16>(self.line.val()) << LG_WORD) | bit_cast::<32, LG_WORD>(self.word.val());
        self.both.next = (bit_cast::<64, 32>(self.write.q.val().data) << 32) | bit_cast::<64, 32>(self.low.q.val());
        self.second.next = self.writes.q.val() & self.word.val().get_bit(0);
        if self.writes.q.val() & !self.word.val().any() {
            self.low.d.next = self.write.q.val().data;
        }
        self.written.x.next = self.both.val();
        self.functions.write_addr.next = self.line.val().get_bits::<LF>(0);
        self.functions.write_data.next = self.written.y.val();
        self.functions.write_en.next = self.second.val() & (self.table_number.val() == tables::FUNCTIONS);
        self.stations.write_addr.next = self.line.val().get_bits::<LM>(0);
        self.stations.write_data.next = self.both.val();
        self.stations.write_en.next = self.second.val() & (self.table_number.val() == tables::STATIONS);
        self.vlans.write_addr.next = self.long_line.val().get_bits::<LV>(0);
        self.vlans.write_data.next = self.write.q.val().data;
        self.vlans.write_en.next = self.writes.q.val() & (self.table_number.val() == tables::VLANS);
        self.pairs.write_addr.next = self.long_line.val().get_bits::<LV>(0);
        self.pairs.write_data.next = self.write.q.val().data.get_bits::<8>(0);
        self.pairs.write_en.next = self.writes.q.val() & (self.table_number.val() == tables::PAIRS);
        self.hash.write_addr.next = (bit_cast::<LY, LF>(self.line.val().get_bits::<LF>(0)) << LG_KEY) | bit_cast::<LY, LG_KEY>(self.word.val().get_bits::<LG_KEY>(0));
        self.hash.write_data.next = self.write.q.val().data.get_bits::<16>(0);
        self.hash.write_en.next = self.writes.q.val() & (self.table_number.val() == tables::KEYS);
        self.owners.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.owners.write_data.next = self.write.q.val().data.get_bits::<LF>(0);
        self.owners.write_en.next = self.writes.q.val() & (self.table_number.val() == tables::OWNERS);
        if self.writes.q.val() & (self.table_number.val() == tables::FLOWS) {
            self.sweeps.d.next = true;
            self.sweep.d.next = bits::<LG_FLOWS>(0);
            self.swept.d.next = self.line.val().get_bits::<LF>(0);
        }

        // ---- Flows: a frame that leaves says where its answers go ----
        self.noted.next = self.notes.m.data.val().queue;
        self.note_pair.next = self.noted.val().get_bits::<8>(1);
        self.owners.read_addr.next = self.noted.val().get_bits::<LQ>(0);
        self.owner.next = self.owners.read_data.val();
        self.notes.m.ready.next = !self.sweeps.q.val();
        self.flows.write_addr.next = (bit_cast::<LP, LF>(self.owner.val()) << LG_FLOWS) | bit_cast::<LP, LG_FLOWS>(self.notes.m.data.val().place);
        self.flows.write_data.next = self.note_pair.val();
        self.flows.write_en.next = self.notes.m.valid.val();
        if self.sweeps.q.val() {
            self.flows.write_addr.next = (bit_cast::<LP, LF>(self.swept.q.val()) << LG_FLOWS) | bit_cast::<LP, LG_FLOWS>(self.sweep.q.val());
            self.flows.write_data.next = bits::<8>(0);
            self.flows.write_en.next = true;
            self.sweep.d.next = self.sweep.q.val() + 1;
            if self.sweep.q.val().all() {
                self.sweeps.d.next = false;
            }
        }

        // ---- A frame ----
        self.was_known.d.next = self.known.val();
        self.hash.begins.next = self.known.val() & !self.was_known.q.val();
        self.hash.owner.next = self.number.val();
        self.hash.feeds.next = self.feeds.val();
        self.hash.feed.next = self.feed.val();
        self.hash.paired.next = self.paired.val();
        self.stations.known.next = self.known.val();
        self.stations.owner.next = self.number.val();
        self.stations.mac.next = self.mac.val();
        self.functions.read_addr.next = self.number.val();
        self.row.next = self.functions.read_data.val();
        self.vlan.next = self.s_head.data.val().vlan;
        self.vlan_bit.next = self.vlan.val().get_bits::<5>(0);
        self.vlans.read_addr.next = (bit_cast::<LV, LF>(self.number.val()) << LG_VLANS) | bit_cast::<LV, LG_VLANS>(self.vlan.val().get_bits::<LG_VLANS>(5));
        self.pairs.read_addr.next = (bit_cast::<LV, LF>(self.number.val()) << LG_PAIRS) | bit_cast::<LV, LG_PAIRS>(self.index.q.val());
        self.flows.read_addr.next = (bit_cast::<LP, LF>(self.number.val()) << LG_FLOWS) | bit_cast::<LP, LG_FLOWS>(self.place.q.val());
        self.destination.next = self.mac.val();
        self.is_group.next = self.destination.val().get_bit(super::stations::GROUP_BIT);
        self.is_all.next = self.destination.val().all();
        self.with_ports.next = (self.s_head.data.val().v4 & ((self.s_head.data.val().tcp & self.row.val().tcpv4) | (!self.s_head.data.val().tcp & self.row.val().udpv4)))
            | (self.s_head.data.val().v6 & ((self.s_head.data.val().tcp & self.row.val().tcpv6) | (!self.s_head.data.val().tcp & self.row.val().udpv6)));
        self.plain.next = (self.s_head.data.val().v4 & self.row.val().ipv4) | (self.s_head.data.val().v6 & self.row.val().ipv6);
        self.low_mask.next = self.row.val().mask.get_bits::<LG_PAIRS>(0);
        self.low_hash.next = self.hash.pair.val().get_bits::<LG_PAIRS>(0);
        if self.s_head.data.val().ports & self.with_ports.val() {
            self.low_hash.next = self.hash.whole.val().get_bits::<LG_PAIRS>(0);
        }
        self.fits.next = self.pair.q.val() < self.row.val().pairs;
        self.absolute.next = self.row.val().first + self.pair.q.val();
        self.s_head.ready.next = (self.state.q.val() == State::Say) & self.verdicts.s.ready.val();
        self.verdicts.s.valid.next = self.state.q.val() == State::Say;
        self.verdicts.s.data.next.function = self.whose.val();
        self.verdicts.s.data.next.cause = self.cause.q.val();
        self.verdicts.s.data.next.queue = bit_cast::<16, 8>(self.absolute.val()) << 1;
        match self.state.q.val() {
            State::Wait => {
                if self.s_head.valid.val() & !self.sweeps.q.val() & (self.stations.ready.val() | !self.s_head.data.val().whole) {
                    self.state.d.next = State::Rules;
                }
            }
            State::Rules => {
                // The order is the golden model's.
                self.cause.d.next = bits::<3>(steer_cause::NONE);
                if !self.s_head.data.val().whole {
                    self.cause.d.next = bits::<3>(steer_cause::RUNT);
                } else if !self.row.val().promiscuous {
                    if self.row.val().vlans & self.s_head.data.val().tag & !self.vlans.read_data.val().get_bit(self.vlan_bit.val().index()) {
                        self.cause.d.next = bits::<3>(steer_cause::VLAN);
                    } else if self.is_all.val() {
                        if self.row.val().no_broadcast {
                            self.cause.d.next = bits::<3>(steer_cause::BROADCAST);
                        }
                    } else if self.is_group.val() {
                        if self.row.val().no_multicast | !(self.row.val().all_multicast | self.stations.found.val()) {
                            self.cause.d.next = bits::<3>(steer_cause::MULTICAST);
                        }
                    } else if self.row.val().no_unicast | !(self.row.val().all_unicast | self.stations.found.val()) {
                        self.cause.d.next = bits::<3>(steer_cause::UNICAST);
                    }
                }
                self.hashed.d.next = (self.s_head.data.val().ports & self.with_ports.val()) | self.plain.val();
                self.index.d.next = self.low_hash.val() & self.low_mask.val();
                self.place.d.next = self.s_head.data.val().place;
                self.state.d.next = State::Fetch;
            }
            State::Fetch => {
                self.state.d.next = State::Pick;
            }
            State::Pick => {
                self.pair.d.next = bits::<8>(0);
                if self.row.val().rss {
                    self.pair.d.next = self.row.val().unclassified;
                    if self.hashed.q.val() {
                        self.pair.d.next = self.pairs.read_data.val();
                    }
                } else if self.row.val().multiqueue & (self.s_head.data.val().v4 | self.s_head.data.val().v6) {
                    self.pair.d.next = self.flows.read_data.val() - self.row.val().first;
                }
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                self.state.d.next = State::Say;
                if !self.fits.val() {
                    // A flow whose pair is not in use any more is the first pair's. A table that leads elsewhere is the driver's fault, and nobody else's frames.
                    self.pair.d.next = bits::<8>(0);
                    if (self.row.val().rss | !self.row.val().pairs.any()) & !self.cause.q.val().any() {
                        self.cause.d.next = bits::<3>(steer_cause::NO_QUEUE);
                    }
                }
            }
            State::Say => {
                if self.verdicts.s.ready.val() {
                    self.state.d.next = State::Wait;
                }
            }
            _ => {
                self.state.d.next = State::Wait;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Wait;
            self.answers.d.next = false;
            self.writes.d.next = false;
            self.sweeps.d.next = false;
            self.was_known.d.next = false;
        }
    }
}
