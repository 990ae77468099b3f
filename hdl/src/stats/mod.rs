//! Event counters of each function. See README.md.

#[cfg(test)]
mod tests;

use crate::assembly::{AnyBlock, Counters};
use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{CtlReq, CtlResp};
use crate::prim::pack::{Concat2, Slice};
use crate::prim::ram::Ram;
use crate::prim::sum::{PlusOne, Sum};
use crate::prim::tally::{Lane, Tally};
use ferric_hdl_derive::{kernel, BlockNew};
pub use ferric_model::admin::stats::{FUNCTION_AT, OWN, TOTAL};
use rust_hdl::prelude::*;

/// Counters of the statistics block of a card.
pub const COUNTERS: usize = 128;

/// Blocks, or stages of blocks, that say whose events theirs are: places of `whose`.
pub const LANES: usize = 24;

const OWN_HIGH: u32 = OWN + 1;
const TOTAL_HIGH: u32 = TOTAL + 1;
/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("inc", &[]),
    ("s_ctl", &[]), // one access at a time
    ("m_ctl", &[]),
];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The function's counter that is asked for goes through the pipeline, or one after the other those of all functions.
    Ask,
    /// The last one is on its way.
    Last,
    Answer,
}

/// The bits of a block's `stat` that count `names`, of which `list` has the order. A name that it does not have fails to compile.
pub const fn flags(list: &[&str], names: &[&str]) -> u64 {
    let (mut bits, mut n) = (0, 0);
    while n < names.len() {
        bits |= 1 << place(list, names[n]);
        n += 1;
    }
    bits
}

const fn place(list: &[&str], name: &str) -> usize {
    let mut at = 0;
    while at < list.len() {
        if same(list[at].as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("no counter has this name");
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// The statistics of a card of 2^`LF` functions that counts `counters`. `LS` = `LF` + 7, `C` = `LF` + 8, `H` = 64 - `C`.
pub fn for_counters<const LF: usize, const LS: usize, const C: usize, const H: usize>(counters: &[Counters]) -> AnyBlock {
    let lanes: Vec<Lane> = counters.iter().map(|c| Lane { events: c.events.len(), whose: c.whose }).collect();
    AnyBlock::new(Stats::<COUNTERS, LANES, LF, LS, C, H>::new(&lanes))
}

/// `N` 64-bit counters, 2 to 128, for 2^`LF` functions. `L`: places for those who say whose their events are; `LS`: log2 of the sums; `C`, `H`: the bits of a
/// sum that the small counter has, and those above.
///
/// `lanes`: what is counted, from counter 0 on, and by which place.
#[derive(LogicBlock, BlockNew)]
#[given(lanes: &[Lane])]
#[demand((2..=128).contains(&N), "2 to 128 counters")]
#[demand(LS == LF + 7 && C == LS + 1 && H == 64 - C, "128 counters for each function; a small counter must not come round while all are visited")]
pub struct Stats<const N: usize, const L: usize, const LF: usize, const LS: usize, const C: usize, const H: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets the control-bus access in progress, keeps the counts.
    pub reset: Signal<In, Bit>,
    /// Bit `i` high for a cycle: one event of counter `i`.
    pub inc: Signal<In, Bits<N>>,
    /// In that cycle: the function whose events those of the lane with this place are.
    pub whose: [Signal<In, Bits<12>>; L],
    pub s_ctl: MsgSink<CtlReq>,
    pub m_ctl: MsgSrc<CtlResp>,
    events: DFF<Bits<N>>,
    of: [DFF<Bits<12>>; L],
    #[init(Tally::new(lanes))]
    tally: Tally<N, L, 7, LF, C>,
    sums: Ram<Bits<64>, LS>,
    /// The next sum to be renewed: counter, then function.
    scan: DFF<Bits<LS>>,
    /// Every fourth cycle is the control bus's, if it wants it.
    turn: DFF<Bits<2>>,
    /// The sum that is read, and what becomes of it: it is written, or asked for.
    look: DFF<Bits<LS>>,
    look_on: DFF<Bit>,
    look_asked: DFF<Bit>,
    /// The same of the new sum.
    put: DFF<Bits<LS>>,
    put_on: DFF<Bit>,
    put_asked: DFF<Bit>,
    sum: DFF<Bits<64>>,
    carry: PlusOne<H>,
    renewed: Concat2<C, H, 64>,
    place: Concat2<LF, 7, LS>,
    #[init(Slice::new(LF))]
    picked: Slice<LS, 7>,
    #[init(Slice::new(C))]
    upper_bits: Slice<64, H>,
    /// The access: counter, function, all functions, which half is the answer.
    counter: DFF<Bits<7>>,
    owner: DFF<Bits<LF>>,
    all: DFF<Bit>,
    upper: DFF<Bit>,
    err: DFF<Bit>,
    none: DFF<Bit>,
    /// The value of the last access to a low half.
    value: DFF<Bits<64>>,
    adder: Sum<64>,
    state: DFF<State>,
    #[init(Constant::new((N as u64).to_bits()))]
    counters: Constant<Bits<12>>,
    #[init(Constant::new((1u64 << LF).to_bits()))]
    owners: Constant<Bits<12>>,
    #[init(Constant::new(((1u64 << LF) - 1).to_bits()))]
    last: Constant<Bits<LF>>,
    line: Signal<Local, Bits<24>>,
    line_owner: Signal<Local, Bits<12>>,
    word: Signal<Local, Bits<6>>,
    asks: Signal<Local, Bit>,
    pick: Signal<Local, Bits<LS>>,
    old: Signal<Local, Bits<64>>,
    old_low: Signal<Local, Bits<C>>,
}

#[kernel]
impl<const N: usize, const L: usize, const LF: usize, const LS: usize, const C: usize, const H: usize> Logic for Stats<N, L, LF, LS, C, H> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, events, scan, turn, look, look_on, look_asked, put, put_on, put_asked, sum);
        dff_setup!(self, clock, counter, owner, all, upper, err, none, value, state);
        clock!(self, clock, tally, sums);
        self.events.d.next = self.inc.val();
        self.tally.inc.next = self.events.q.val();
        for i in 0..L {
            self.of[i].clock.next = self.clock.val();
            self.of[i].d.next = self.whose[i].val();
            self.tally.whose[i].next = self.of[i].q.val();
        }

        // ---- The control bus ----
        self.s_ctl.ready.next = false;
        self.m_ctl.valid.next = false;
        self.m_ctl.data.next.data = self.value.q.val().get_bits::<32>(0);
        if self.upper.q.val() {
            self.m_ctl.data.next.data = self.value.q.val().get_bits::<32>(32);
        }
        if self.none.q.val() {
            self.m_ctl.data.next.data = bits::<32>(0);
        }
        self.m_ctl.data.next.err = self.err.q.val();
        self.line.next = self.s_ctl.data.val().line;
        self.line_owner.next = self.line.val().get_bits::<12>(FUNCTION_AT);
        self.word.next = self.s_ctl.data.val().word;
        self.asks.next = false;
        self.adder.a.next = self.value.q.val();
        self.adder.b.next = self.sum.q.val();
        if self.put_asked.q.val() {
            self.value.d.next = self.adder.y.val();
        }
        match self.state.q.val() {
            State::Idle => {
                self.s_ctl.ready.next = true;
                self.counter.d.next = self.line.val().get_bits::<7>(0);
                self.owner.d.next = self.line.val().get_bits::<LF>(FUNCTION_AT);
                self.all.d.next = self.word.val() == TOTAL;
                self.upper.d.next = (self.word.val() == OWN_HIGH) | (self.word.val() == TOTAL_HIGH);
                self.err.d.next = false;
                self.none.d.next = self.word.val() > TOTAL_HIGH;
                if self.s_ctl.valid.val() {
                    self.state.d.next = State::Answer;
                    if (self.line.val().get_bits::<12>(0) >= self.counters.val()) | (self.line_owner.val() >= self.owners.val()) {
                        self.err.d.next = true;
                        self.none.d.next = true;
                    } else if (self.word.val() == OWN) | (self.word.val() == TOTAL) {
                        self.value.d.next = bits::<64>(0);
                        self.state.d.next = State::Ask;
                    }
                    if self.word.val() == TOTAL {
                        self.owner.d.next = bits::<LF>(0);
                    }
                }
            }
            State::Ask => {
                self.asks.next = self.turn.q.val() == 0;
                if self.turn.q.val() == 0 {
                    self.owner.d.next = self.owner.q.val() + 1;
                    if !self.all.q.val() | (self.owner.q.val() == self.last.val()) {
                        self.state.d.next = State::Last;
                    }
                }
            }
            State::Last => {
                if self.put_asked.q.val() {
                    self.state.d.next = State::Answer;
                }
            }
            State::Answer => {
                self.m_ctl.valid.next = true;
                if self.m_ctl.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }

        // ---- Which sum is looked at ----
        self.turn.d.next = self.turn.q.val() + 1;
        self.place.a.next = self.owner.q.val();
        self.place.b.next = self.counter.q.val();
        self.pick.next = self.scan.q.val();
        if self.asks.val() {
            self.pick.next = self.place.y.val();
        } else {
            self.scan.d.next = self.scan.q.val() + 1;
        }
        self.tally.row.next = self.pick.val().get_bits::<LF>(0);
        self.picked.x.next = self.pick.val();
        self.tally.sel.next = self.picked.y.val();
        self.sums.read_addr.next = self.pick.val();
        self.look.d.next = self.pick.val();
        self.look_on.d.next = !self.asks.val();
        self.look_asked.d.next = self.asks.val();

        // ---- Its low bits are where the small counter stood: it has been once round if it is below ----
        self.old.next = self.sums.read_data.val();
        self.old_low.next = self.old.val().get_bits::<C>(0);
        self.upper_bits.x.next = self.old.val();
        self.carry.a.next = self.upper_bits.y.val();
        self.renewed.a.next = self.tally.y.val();
        self.renewed.b.next = self.upper_bits.y.val();
        if self.tally.y.val() < self.old_low.val() {
            self.renewed.b.next = self.carry.y.val();
        }
        self.sum.d.next = self.renewed.y.val();
        self.put.d.next = self.look.q.val();
        self.put_on.d.next = self.look_on.q.val();
        self.put_asked.d.next = self.look_asked.q.val();
        self.sums.write_addr.next = self.put.q.val();
        self.sums.write_data.next = self.sum.q.val();
        self.sums.write_en.next = self.put_on.q.val();
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
