//! A card of two engines that make headers, played by the bench of `net/tx`, with an engine between the card and the wire.
use super::*;
use crate::assembly::WaitGraph;
use crate::bus::{HdrSink, HdrSrc, MsgSink, MsgSrc};
use crate::engines::wire::TO_THE_WIRE;
use crate::engines::{wire, Check};
use crate::msg::{HdrDone, InlineWrite, SlotGrant, SlotReq, SlotSeal};
use crate::net::tx::tests::makers::{play, PORTS};
use crate::stream::AxisSlice;
use crate::tb::Tb;
use crate::with_sizes;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

const WIDTH: usize = 64;

/// Wires from the bench to the card.
#[derive(LogicBlock, BlockDefault)]
struct Played<const W: usize> {
    pub s_slot: MsgSink<SlotReq>,
    pub m_slot: MsgSrc<SlotReq>,
    pub s_grant: MsgSink<SlotGrant>,
    pub m_grant: MsgSrc<SlotGrant>,
    pub s_inline: MsgSink<InlineWrite>,
    pub m_inline: MsgSrc<InlineWrite>,
    pub s_seal: MsgSink<SlotSeal>,
    pub m_seal: MsgSrc<SlotSeal>,
    pub s_row: HdrSink<W>,
    pub m_row: HdrSrc<W>,
    pub s_done: MsgSink<HdrDone>,
    pub m_done: MsgSrc<HdrDone>,
}

#[kernel]
impl<const W: usize> Logic for Played<W> {
    #[hdl_gen]
    fn update(&mut self) {
        self.m_slot.data.next = self.s_slot.data.val();
        self.m_slot.valid.next = self.s_slot.valid.val();
        self.s_slot.ready.next = self.m_slot.ready.val();
        self.m_grant.data.next = self.s_grant.data.val();
        self.m_grant.valid.next = self.s_grant.valid.val();
        self.s_grant.ready.next = self.m_grant.ready.val();
        self.m_inline.data.next = self.s_inline.data.val();
        self.m_inline.valid.next = self.s_inline.valid.val();
        self.s_inline.ready.next = self.m_inline.ready.val();
        self.m_seal.data.next = self.s_seal.data.val();
        self.m_seal.valid.next = self.s_seal.valid.val();
        self.s_seal.ready.next = self.m_seal.ready.val();
        self.m_row.slot.next = self.s_row.slot.val();
        self.m_row.row.next = self.s_row.row.val();
        self.m_row.data.next = self.s_row.data.val();
        self.m_row.valid.next = self.s_row.valid.val();
        self.m_done.data.next = self.s_done.data.val();
        self.m_done.valid.next = self.s_done.valid.val();
        self.s_done.ready.next = self.m_done.ready.val();
    }
}

/// An engine of which the bench plays all but the wires, with headers of up to `longest` bytes.
fn played<const W: usize>(a: &mut Assembly, number: usize, longest: usize) {
    let name = ["first", "second"][number];
    let port = |port: &str| format!("{name}.{port}");
    a.instance(name, Played::<W>::default).waits(&[
        ("s_slot", &["m_slot"]),
        ("s_grant", &["m_grant"]),
        ("s_inline", &["m_inline"]),
        ("s_seal", &["m_seal"]),
        ("s_done", &["m_done"]),
        ("m_seal", &["s_seal"]),
        ("m_done", &["s_done"]),
    ]);
    let (frames, headers) = (["m_slot", "s_grant", "m_inline", "m_seal"].map(port), ["m_row", "m_done"].map(port));
    a.client("frames out", &frames.each_ref().map(|port| port.as_str()));
    a.client_with("headers", longest, &headers.each_ref().map(|port| port.as_str()));
    for ((outside, _), inner) in PORTS.iter().zip(["s_slot", "m_grant", "s_inline", "s_seal", "s_row", "s_done"]) {
        a.expose(&outside.replace('*', &number.to_string()), &port(inner));
    }
}

const fn engine(name: &'static str, lines: fn(&mut Assembly, &Sizes)) -> Engine {
    Engine { name, what: "Of a test.", needs: &[], capabilities: 0, receives: "", check: Check::None, doorbells: &[], commands: &[], reset: None, lines }
}

const FIRST: Engine = engine("first", |a, sizes| with_sizes!(*sizes, played::<W>(a, 0, 256)));
const SECOND: Engine = engine("second", |a, sizes| with_sizes!(*sizes, played::<W>(a, 1, 40)));
const TOO_LONG: Engine = engine("second", |a, sizes| with_sizes!(*sizes, played::<W>(a, 1, 257)));
const POLICY: Engine = engine("policy", |a, _| {
    a.instance("policy", AxisSlice::<WIDTH, { WIDTH / 8 }>::default).waits(&[("s", &["m"])]);
    a.link(TO_THE_WIRE, wire::SWITCH, "policy.s", "policy.m");
});

fn card(engines: Vec<&'static Engine>, width: usize) -> Card {
    Card { engines, ..Card::named(DEFAULT, width).unwrap() }
}

#[test]
fn engines_that_make_headers_share_the_egress() {
    let card = card(vec![&FIRST, &SECOND, &POLICY], WIDTH);
    let built = card.list().assemble().unwrap_or_else(|faults| panic!("{faults:#?}"));
    let graph = WaitGraph::of(&built);
    assert!(graph.faults.is_empty() && graph.circle().is_none(), "{:#?} {:?}", graph.faults, graph.circle());
    play(Tb::new("card_headers", built), WIDTH / 8, [30, 20], 200);
}

#[test]
fn one_engine_that_makes_headers_has_the_egress_to_itself() {
    for width in WIDTHS {
        let list = card(vec![&FIRST], width).list();
        assert!(list.instances.iter().all(|i| !i.name.ends_with("_share")));
        assert!(list.assemble().is_ok());
    }
}

#[test]
fn a_header_that_no_egress_has_room_for_is_a_fault_of_the_card() {
    let faults = card(vec![&FIRST, &TOO_LONG], WIDTH).list().assemble().err().unwrap_or_default();
    assert_eq!(faults, ["pool headers: a header of 257 bytes, and at most 256 are possible"]);
}
