//! The functions' addresses and searches: looked through for a frame, read and written by the control bus, one access at a time.

use super::header::Key;
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use crate::prim::pack::Cast;
use crate::prim::ram::Ram;
use crate::prim::word::{WordPick, WordPut};
use crate::records::{AddressCtx, NeighbourCtx};
use ferric_abi::context;
use ferric_abi::csr::{ADDRESSES, NEIGHBOUR_LINE};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bits of a line, of either kind.
const LINE: usize = 8 * context::AddressCtx::BYTES;
const WORDS: u64 = (LINE / 32) as u64;
/// The word that is written last.
const LAST: u64 = WORDS - 1;
/// `NeighbourCtx::state`.
const ASKED: u64 = 1;
const KNOWN: u64 = 2;

/// What is wanted of the table: the function that has an address; that seeks one; the same, and it has found it; what a function seeks, and from which address.
pub(super) mod want {
    pub const OWN: u64 = 0;
    pub const SEEKER: u64 = 1;
    pub const FOUND: u64 = 2;
    pub const SEARCH: u64 = 3;
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Everything is wiped after a reset.
    Clear,
    Idle,
    /// One address a cycle goes by.
    Scan,
    /// The one that was asked for is read once more.
    Again,
    /// A search and the address that it is from.
    Search,
    SearchRead,
    Source,
    SourceRead,
    Judge,
    /// The answer to who asked.
    Give,
    /// A word for the control bus.
    Read,
    Merge,
    Write,
    Answer,
}

/// The addresses of `2^LF` functions; LA = LF + 4.
#[derive(LogicBlock, BlockDefault)]
#[demand(LA == LF + ADDRESSES.trailing_zeros() as usize && LA <= 16, "LA is log2 of all functions' addresses")]
#[demand(context::NeighbourCtx::BYTES == context::AddressCtx::BYTES)]
pub(super) struct Table<const LF: usize, const LA: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; wipes the table within 2^LA cycles.
    pub reset: Signal<In, Bit>,
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    /// One of [`want`]; `go`, what is wanted and the key stay until `done`.
    pub go: Signal<In, Bit>,
    pub want: Signal<In, Bits<2>>,
    pub key: Signal<In, Key>,
    /// Whose search is wanted.
    pub whose: Signal<In, Bits<LF>>,
    /// Functions that can be meant, a bit each, unless a search is wanted.
    pub within: Signal<In, Bits<64>>,
    /// What has been found.
    pub mac: Signal<In, Bits<48>>,
    pub done: Signal<Out, Bit>,
    /// There is one. The other outputs stay until the next `go`.
    pub hit: Signal<Out, Bit>,
    pub holder: Signal<Out, Bits<LF>>,
    pub address: Signal<Out, AddressCtx>,
    pub sought: Signal<Out, Bits<128>>,
    /// For one cycle: this function is to ask.
    pub ask: Signal<Out, Bit>,
    pub ask_function: Signal<Out, Bits<LF>>,
    lines: Ram<Bits<LINE>, LA>,
    searches: Ram<Bits<LINE>, LF>,
    state: DFF<State>,
    // The scan: the line that is read, the one whose row is here, the one that has been compared.
    index: DFF<Bits<LA>>,
    reads: DFF<Bit>,
    index1: DFF<Bits<LA>>,
    valid1: DFF<Bit>,
    index2: DFF<Bits<LA>>,
    valid2: DFF<Bit>,
    same: [DFF<Bit>; 4],
    mac_same: DFF<Bit>,
    tag_same: DFF<Bit>,
    live: DFF<Bit>,
    meant: DFF<Bit>,
    search: DFF<Bits<LINE>>,
    wanted: [DFF<Bit>; 4],
    asked: DFF<Bit>,
    found: DFF<Bit>,
    /// The address that it is, or asks from, and whose it is; the word's row.
    own_row: DFF<Bits<LINE>>,
    owner: DFF<Bits<LF>>,
    row: DFF<Bits<LINE>>,
    access: DFF<CtlReq>,
    response: DFF<CtlResp>,
    to_search: DFF<Bit>,
    as_address: Cast<Bits<LINE>, AddressCtx>,
    as_search: Cast<Bits<LINE>, NeighbourCtx>,
    as_row: Cast<NeighbourCtx, Bits<LINE>>,
    given: Cast<Bits<LINE>, AddressCtx>,
    written: Cast<Bits<LINE>, NeighbourCtx>,
    pick: WordPick<Bits<LINE>>,
    put: WordPut<Bits<LINE>>,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LA)).to_bits()))]
    no_address: Constant<Bits<24>>,
    #[init(Constant::new((((1u64 << 24) - (1u64 << LF)) & !u64::from(NEIGHBOUR_LINE)).to_bits()))]
    no_search: Constant<Bits<24>>,
    line: Signal<Local, Bits<24>>,
    beyond: Signal<Local, Bits<24>>,
    beyond_search: Signal<Local, Bits<24>>,
    bad: Signal<Local, Bit>,
    ip: Signal<Local, Bits<128>>,
    own: Signal<Local, Bits<128>>,
    peer: Signal<Local, Bits<128>>,
    seeks: Signal<Local, Bits<128>>,
    equal: Signal<Local, Bit>,
    /// Function of the line that is here, or whose search is looked at.
    which: Signal<Local, Bits<LA>>,
    shifted_within: Signal<Local, Bits<64>>,
    seeker: Signal<Local, Bit>,
    shifted: Signal<Local, Bits<LA>>,
    upper: Signal<Local, Bits<LA>>,
    source: Signal<Local, Bits<LA>>,
    place: Signal<Local, Bits<24>>,
    over: Signal<Local, Bit>,
}

#[kernel]
impl<const LF: usize, const LA: usize> Logic for Table<LF, LA> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, index, reads, index1, valid1, index2, valid2, mac_same, tag_same, live, meant, search, asked, found, own_row, owner, row, access, response, to_search);
        clock!(self, clock, lines, searches);
        for i in 0..4 {
            self.same[i].clock.next = self.clock.val();
            self.wanted[i].clock.next = self.clock.val();
        }
        // The row that was read, word against word; then whether all is as asked for.
        self.as_address.x.next = self.lines.read_data.val();
        self.ip.next = self.as_address.y.val().ip;
        self.own.next = self.key.val().ip;
        self.same[0].d.next = self.ip.val().get_bits::<32>(0) == self.own.val().get_bits::<32>(0);
        self.same[1].d.next = self.ip.val().get_bits::<32>(32) == self.own.val().get_bits::<32>(32);
        self.same[2].d.next = self.ip.val().get_bits::<32>(64) == self.own.val().get_bits::<32>(64);
        self.same[3].d.next = self.ip.val().get_bits::<32>(96) == self.own.val().get_bits::<32>(96);
        self.mac_same.d.next = self.key.val().group | (self.as_address.y.val().mac == self.key.val().mac);
        self.tag_same.d.next = (self.as_address.y.val().vlan == self.key.val().vlan) & (!self.key.val().vlan | (self.as_address.y.val().vid == self.key.val().vid));
        self.live.d.next = self.as_address.y.val().valid & (self.as_address.y.val().ipv6 == self.key.val().ipv6);
        self.equal.next =
            self.same[0].q.val() & self.same[1].q.val() & self.same[2].q.val() & self.same[3].q.val() & self.mac_same.q.val() & self.tag_same.q.val() & self.live.q.val() & self.meant.q.val();
        self.which.next = self.index.q.val();
        if self.want.val() == want::OWN {
            self.which.next = self.index1.q.val() >> 4;
        }
        self.shifted_within.next = self.within.val() >> bit_cast::<64, LA>(self.which.val());
        self.meant.d.next = self.shifted_within.val().get_bit(0);
        self.index1.d.next = self.index.q.val();
        self.valid1.d.next = self.reads.q.val();
        self.index2.d.next = self.index1.q.val();
        self.valid2.d.next = self.valid1.q.val();

        // The search of one function, in a register; and with what has been found.
        self.as_search.x.next = self.search.q.val();
        self.seeks.next = self.as_search.y.val().ip;
        self.peer.next = self.key.val().peer;
        self.wanted[0].d.next = self.seeks.val().get_bits::<32>(0) == self.peer.val().get_bits::<32>(0);
        self.wanted[1].d.next = self.seeks.val().get_bits::<32>(32) == self.peer.val().get_bits::<32>(32);
        self.wanted[2].d.next = self.seeks.val().get_bits::<32>(64) == self.peer.val().get_bits::<32>(64);
        self.wanted[3].d.next = self.seeks.val().get_bits::<32>(96) == self.peer.val().get_bits::<32>(96);
        self.asked.d.next = self.as_search.y.val().state == ASKED;
        self.seeker.next = self.wanted[0].q.val() & self.wanted[1].q.val() & self.wanted[2].q.val() & self.wanted[3].q.val() & self.asked.q.val() & self.equal.val();
        self.as_row.x.next = self.as_search.y.val();
        self.as_row.x.next.mac = self.mac.val();
        self.as_row.x.next.state = bits::<2>(KNOWN);
        self.shifted.next = self.index.q.val() << 4;
        self.source.next = self.shifted.val() | bit_cast::<LA, 4>(self.as_search.y.val().source);

        // The control bus.
        self.line.next = self.s_ctl.data.val().line;
        self.beyond.next = self.line.val() & self.no_address.val();
        self.beyond_search.next = self.line.val() & self.no_search.val();
        self.bad.next = (self.s_ctl.data.val().word >= WORDS) | (self.beyond.val().any() & (!self.line.val().get_bit(16) | self.beyond_search.val().any()));
        self.place.next = self.access.q.val().line;
        self.pick.x.next = self.row.q.val();
        self.pick.sel.next = self.access.q.val().word;
        self.put.x.next = self.row.q.val();
        self.put.sel.next = self.access.q.val().word;
        self.put.data.next = self.access.q.val().data;
        self.written.x.next = self.row.q.val();
        self.s_ctl.ready.next = false;
        self.m_ctl.valid.next = self.state.q.val() == State::Answer;
        self.m_ctl.data.next = self.response.q.val();
        self.ask.next = false;
        self.ask_function.next = self.place.val().get_bits::<LF>(0);

        self.lines.read_addr.next = self.index.q.val();
        self.lines.write_addr.next = self.place.val().get_bits::<LA>(0);
        self.lines.write_data.next = self.row.q.val();
        self.lines.write_en.next = false;
        self.searches.read_addr.next = self.index.q.val().get_bits::<LF>(0);
        self.searches.write_addr.next = self.place.val().get_bits::<LF>(0);
        self.searches.write_data.next = self.row.q.val();
        self.searches.write_en.next = false;
        self.given.x.next = self.own_row.q.val();
        self.address.next = self.given.y.val();
        self.sought.next = self.seeks.val();
        self.upper.next = self.index.q.val() >> 4;
        self.holder.next = self.owner.q.val();
        self.hit.next = self.found.q.val();
        self.done.next = self.state.q.val() == State::Give;
        self.over.next = self.index.q.val().get_bits::<LF>(0).all();

        match self.state.q.val() {
            State::Clear => {
                self.index.d.next = self.index.q.val() + 1;
                self.lines.write_addr.next = self.index.q.val();
                self.lines.write_data.next = bits::<LINE>(0);
                self.lines.write_en.next = true;
                self.searches.write_addr.next = self.index.q.val().get_bits::<LF>(0);
                self.searches.write_data.next = bits::<LINE>(0);
                self.searches.write_en.next = true;
                if self.index.q.val().all() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                self.index.d.next = bits::<LA>(0);
                self.valid1.d.next = false;
                self.valid2.d.next = false;
                self.found.d.next = false;
                self.access.d.next = self.s_ctl.data.val();
                self.to_search.d.next = self.beyond.val().any();
                self.response.d.next.err = self.bad.val();
                self.response.d.next.data = bits::<32>(0);
                if self.go.val() {
                    if self.want.val() == want::OWN {
                        self.reads.d.next = true;
                        self.state.d.next = State::Scan;
                    } else {
                        self.state.d.next = State::Search;
                        if self.want.val() == want::SEARCH {
                            self.index.d.next = bit_cast::<LA, LF>(self.whose.val());
                        }
                    }
                } else {
                    self.s_ctl.ready.next = true;
                    if self.s_ctl.valid.val() {
                        self.state.d.next = State::Read;
                        self.index.d.next = self.line.val().get_bits::<LA>(0);
                        if self.bad.val() {
                            self.state.d.next = State::Answer;
                        }
                    }
                }
            }
            State::Scan => {
                self.index.d.next = self.index.q.val() + 1;
                if self.index.q.val().all() {
                    self.reads.d.next = false;
                }
                if self.valid2.q.val() & self.equal.val() {
                    self.found.d.next = true;
                    self.index.d.next = self.index2.q.val();
                    self.reads.d.next = false;
                    self.state.d.next = State::Again;
                } else if self.valid2.q.val() & !self.valid1.q.val() {
                    self.state.d.next = State::Give;
                }
            }
            State::Again => {
                self.valid2.d.next = false;
                self.state.d.next = State::SourceRead;
            }
            State::Search => {
                self.state.d.next = State::SearchRead;
            }
            State::SearchRead => {
                self.search.d.next = self.searches.read_data.val();
                self.state.d.next = State::Source;
            }
            State::Source => {
                self.lines.read_addr.next = self.source.val();
                self.state.d.next = State::SourceRead;
            }
            State::SourceRead => {
                self.own_row.d.next = self.lines.read_data.val();
                self.owner.d.next = self.index.q.val().get_bits::<LF>(0);
                self.state.d.next = State::Judge;
                if self.want.val() == want::OWN {
                    self.owner.d.next = self.upper.val().get_bits::<LF>(0);
                    self.state.d.next = State::Give;
                }
            }
            State::Judge => {
                // Of a search only whether it is under way and from a valid address.
                self.found.d.next = self.asked.q.val() & self.given.y.val().valid;
                self.state.d.next = State::Give;
                if self.want.val() != want::SEARCH {
                    self.found.d.next = self.seeker.val();
                    if !self.seeker.val() & !self.over.val() {
                        self.index.d.next = self.index.q.val() + 1;
                        self.state.d.next = State::Search;
                    }
                    if self.seeker.val() & (self.want.val() == want::FOUND) {
                        self.searches.write_addr.next = self.index.q.val().get_bits::<LF>(0);
                        self.searches.write_data.next = self.as_row.y.val();
                        self.searches.write_en.next = true;
                    }
                }
            }
            State::Give => {
                self.reads.d.next = false;
                self.state.d.next = State::Idle;
            }
            State::Read => {
                self.state.d.next = State::Merge;
            }
            State::Merge => {
                self.row.d.next = self.lines.read_data.val();
                if self.to_search.q.val() {
                    self.row.d.next = self.searches.read_data.val();
                }
                self.state.d.next = State::Write;
            }
            State::Write => {
                self.response.d.next.data = self.pick.y.val();
                self.row.d.next = self.put.y.val();
                self.lines.write_data.next = self.put.y.val();
                self.lines.write_en.next = self.access.q.val().write & !self.to_search.q.val();
                self.searches.write_data.next = self.put.y.val();
                self.searches.write_en.next = self.access.q.val().write & self.to_search.q.val();
                self.state.d.next = State::Answer;
            }
            State::Answer => {
                if self.m_ctl.ready.val() {
                    self.ask.next = !self.response.q.val().err & self.access.q.val().write & self.to_search.q.val() & (self.access.q.val().word == LAST) & (self.written.y.val().state == ASKED);
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Clear;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Clear;
            self.index.d.next = bits::<LA>(0);
            self.reads.d.next = false;
        }
    }
}
