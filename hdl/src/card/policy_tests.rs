//! An engine between the card's ports and the card, where the switch will stand: a hairpin, which sends what comes off the wire back to the wire as well.
use super::*;
use crate::assembly::WaitGraph;
use crate::bus::{AxisSink, AxisSrc};
use crate::engines::wire::{self, OFF_THE_WIRE, TO_THE_WIRE};
use crate::engines::Check;
use crate::net::rx;
use crate::stats::flags;
use crate::stream::{AxisArb, AxisFifo};
use crate::tb::{Rng, Tb};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

const WIDTH: usize = 64;
const K: usize = WIDTH / 8;

/// Frames pass it from `s` to `m`, a cycle later, and from `to_s` to `to_m`; a copy of the former goes to `to_m`, too.
#[derive(LogicBlock, BlockDefault)]
struct Hairpin {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Off the wire: always ready, as the port wants it, and nobody behind it waits.
    pub s: AxisSink<WIDTH, K>,
    pub s_err: Signal<In, Bit>,
    pub m: AxisSrc<WIDTH, K>,
    pub m_err: Signal<Out, Bit>,
    /// To the wire.
    pub to_s: AxisSink<WIDTH, K>,
    pub to_m: AxisSrc<WIDTH, K>,
    /// Frames that came off the wire.
    pub seen: Signal<Out, Bits<16>>,
    data: DFF<Bits<WIDTH>>,
    keep: DFF<Bits<K>>,
    last: DFF<Bit>,
    err: DFF<Bit>,
    valid: DFF<Bit>,
    count: DFF<Bits<16>>,
    copies: AxisFifo<WIDTH, K, 10>,
    arb: AxisArb<WIDTH, K, 2>,
}

#[kernel]
impl Logic for Hairpin {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, data, keep, last, err, valid, count);
        clock!(self, clock, copies, arb);
        self.copies.reset.next = self.reset.val();
        self.arb.reset.next = self.reset.val();
        self.s.ready.next = true;
        self.data.d.next = self.s.data.val();
        self.keep.d.next = self.s.keep.val();
        self.last.d.next = self.s.last.val();
        self.err.d.next = self.s_err.val();
        self.valid.d.next = self.s.valid.val();
        self.m.data.next = self.data.q.val();
        self.m.keep.next = self.keep.q.val();
        self.m.last.next = self.last.q.val();
        self.m_err.next = self.err.q.val();
        self.m.valid.next = self.valid.q.val();
        self.copies.s.data.next = self.data.q.val();
        self.copies.s.keep.next = self.keep.q.val();
        self.copies.s.last.next = self.last.q.val();
        self.copies.s.valid.next = self.valid.q.val();
        if self.valid.q.val() & self.last.q.val() {
            self.count.d.next = self.count.q.val() + 1;
        }
        self.seen.next = self.count.q.val();
        AxisSink::<WIDTH, K>::link(&mut self.to_s, &mut self.arb.s[0]);
        AxisSrc::<WIDTH, K>::join(&mut self.copies.m, &mut self.arb.s[1]);
        AxisSrc::<WIDTH, K>::link(&mut self.to_m, &mut self.arb.m);
        if self.reset.val() {
            self.valid.d.next = false;
            self.count.d.next = bits::<16>(0);
        }
    }
}

const HAIRPIN: Engine = Engine {
    name: "hairpin",
    what: "Sends back what comes.",
    needs: &[],
    capabilities: 0,
    receives: "",
    check: Check::None,
    doorbells: &[],
    commands: &[],
    reset: None,
    lines: |a, _| {
        a.instance("hairpin", Hairpin::default).waits(&[("s", &[]), ("to_s", &["to_m"])]);
        a.link_all(OFF_THE_WIRE, wire::SWITCH, &["hairpin.s", "hairpin.s_err"], &["hairpin.m", "hairpin.m_err"]);
        a.link(TO_THE_WIRE, wire::SWITCH, "hairpin.to_s", "hairpin.to_m");
        for (port, inner) in [("seen", "hairpin.seen"), ("rx_stat", "front.stat"), ("rx_strange", "front.strange")] {
            a.expose(port, inner);
        }
    },
};

#[test]
fn an_engine_stands_between_the_ports_and_the_card() {
    let card = Card { engines: vec![&HAIRPIN], ..Card::named(DEFAULT, WIDTH).unwrap() };
    let built = card.list().assemble().unwrap_or_else(|faults| panic!("{faults:#?}"));
    let graph = WaitGraph::of(&built);
    assert!(graph.faults.is_empty() && graph.circle().is_none(), "{:#?}", graph.faults);
    assert!(graph.edges["hairpin.s"].is_empty(), "the MAC never waits");
    assert!(built.joints.iter().any(|j| (j.from.as_str(), j.to.as_str()) == ("egress.m", "hairpin.to_s")), "what the card sends passes it");

    let mut tb = Tb::new("card_hairpin", built);
    let (source, sink) = (tb.axis_source("rx", 20), tb.axis_sink("tx", 30));
    // Until the cell buffer has its cells.
    tb.run(600);
    let mut rng = Rng::new(tb.seed());
    let frames: Vec<Vec<u8>> = (0..30u8)
        .map(|n| {
            let len = rng.range(20, 300) as usize;
            let mut frame = rng.bytes(len);
            // To everybody, or to a station that is not here.
            frame[..6].fill(if n % 3 == 0 { 0xff } else { n << 1 });
            frame[12..14].copy_from_slice(&[0x88, 0xb5]);
            frame
        })
        .collect();
    frames.iter().for_each(|frame| source.push(frame));
    let counts = |tb: &mut Tb| {
        let (stat, strange) = (tb.get("rx_stat"), tb.get("rx_strange"));
        let one = |bits: u64, names: &[&str], name: &str| u64::from(bits & flags(names, &[name]) != 0);
        [one(stat, rx::STATS, "rx_frames"), one(stat, rx::STATS, "rx_raw"), one(strange, rx::STRANGERS, "rx_other_station")]
    };
    let (mut got, mut sums) = (Vec::new(), [0; 3]);
    for _ in 0..6000 {
        tb.cycle();
        sums.iter_mut().zip(counts(&mut tb)).for_each(|(sum, n)| *sum += n);
        got.extend(std::iter::from_fn(|| sink.pop()));
    }
    assert_eq!(got, frames, "back on the wire");
    assert_eq!((tb.get("seen"), sums), (30, [30, 10, 20]), "and in the card");
}
