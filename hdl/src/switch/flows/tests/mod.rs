//! Frames and their fates against the golden model, with gaps, while the next generation's tables are written and switched to.
mod bench;
mod frames;

use bench::Bench;
use frames::off_the_wire;

use super::model::{exception, Egress, Fate};
use super::{Flows, STATS};
use crate::msg::{Network, SentBy};
use crate::net::within::testing;
use crate::stream::bypass::tests::Past;
use crate::stream::bypass::LG_SILENCE;
use crate::switch::key::tests::any_frame;
use crate::switch::local::{Leaving, Told, Used};
use crate::switch::program::EGRESS;
use crate::switch::testing::{any_action, any_mask, homed, mac, words};
use crate::tb::{Fields, Rng, Tb};
use ferric_abi::codes::SwitchCause;
use ferric_abi::context::FlowPortCtx;
use ferric_abi::csr::FUNCTION_PORTS;
use ferric_abi::switch::station;
use ferric_abi::switch::table::{self, profile_line, KEY_BITS};
use ferric_abi::switch::ternary::{say, sources, Said, Source};
use ferric_abi::switch::{tag_op, Action, Exception, FlowCommand, FlowKey, FlowRecord, Verdict};
use ferric_abi::wire::ethertype;
use ferric_driver::switch::place::{Entry, Table};
use ferric_driver::switch::rules::{self, Rules};
use ferric_model::net::networks::{Networks, Through};
use ferric_model::switch::counters::FlowCounters;
use ferric_model::switch::decide::Facts;
use ferric_model::switch::edit::edited;
use ferric_model::switch::key::{key, masked, Origin};
use ferric_model::switch::layers::{parse, Deep, Layers, WINDOW};
use ferric_model::switch::tables::{MissAction, Port, PortKind, Rule, Station, Tables};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

pub(in crate::switch) use frames::seen;

/// Functions.
const NF: u16 = 4;
/// log2 of the lines of a way, and groups of rules.
const LG: usize = 6;
const G: usize = 2;
/// Actions of a generation; two generations take turns in as many lines each.
const ACTIONS: u64 = 24;
/// Lines of MAC addresses, of which generations have half each.
const REWRITES: u64 = table::rewrites(LG as u32) as u64;
const ENTRIES: usize = 60;
const RULES: usize = 8;
const STATIONS: usize = 40;
/// A domain that is flooded: that of function 2's tunnel.
const FLOODED: u16 = 3;
/// Frames that come again and again.
const POOL: usize = 100;
/// A frame's port is looked at in the second cycle behind the beat that completes its window.
const ASKED: u64 = 2;
/// Cycles in which a frame that is about to leave gets its answer.
const ANSWERED: u64 = 13;
/// Cycles in which everything that came has left.
const DRAIN: u64 = 120;

/// Cycles of silence after which frames go past, if they may.
const SILENCE: u64 = (1 << LG_SILENCE) + 10;

/// Where a frame comes from: what goes with it, and which function of this card has sent it, with the number of that one's network.
#[derive(Clone, Copy, Debug)]
struct Whence {
    network: (bool, u16),
    sender: Option<(u16, u16)>,
}

/// A frame, whether the MAC finds it bad, and where it comes from.
#[derive(Clone, Debug)]
struct Came {
    frame: Vec<u8>,
    bad: bool,
    whence: Whence,
}

/// A frame behind the block: its bytes, whether it is bad, whose it is, and what software is told of it.
type Gone = (Vec<u8>, bool, (bool, u16), u32);

/// A frame that is about to leave: its bytes, the function that sends it, and the number of its network if that has a tunnel.
type Leaver = (Vec<u8>, u16, Option<u16>);

/// What is said of one: its function, whether it does not leave, and whether it comes in again, what counts, and the flow that does.
type Answer = (u16, (bool, bool), Option<&'static str>, Option<u16>);

fn generations<const W: usize, const K: usize>(rounds: u8, gaps: u32) {
    let mut b = Bench::<W, K>::new(gaps, 11 + u64::from(gaps));
    // Off: every frame passes as it came.
    (0..50).for_each(|_| b.push_any());
    b.drain();
    assert!(b.stat.is_empty());
    b.tables.inbound.floods.insert(FLOODED, 77);
    b.writes.push_back(table::flood(FLOODED, Some(77)));
    b.write_all(false);
    b.leaving = 40;
    for round in 0..rounds {
        let next = (round + 1) & 3;
        b.prepare(next);
        b.write_all(true);
        // In the middle of frames: each is of one generation.
        b.port = FlowPortCtx::default().with_valid(true).with_drop_miss(round % 2 == 0).with_class(round / 4).with_generation(next).with_bridge(round % 3 != 0);
        for class in 0..8 {
            (0..60).for_each(|_| b.push_any());
            while b.beats.len() > 30 {
                b.cycle();
            }
            b.port = b.port.with_class(class & 3).with_egress(class != 5);
        }
        // Off in the middle of frames; then silence, after which frames go past until the next generation decides, in the middle of frames again.
        b.port = FlowPortCtx::default().with_egress(round % 2 == 0);
        (0..20).for_each(|_| b.push_any());
        b.drain();
        (0..SILENCE).for_each(|_| b.cycle());
        (0..40).for_each(|_| b.push_any());
        while b.beats.len() > 20 {
            b.cycle();
        }
    }
    b.port = FlowPortCtx::default();
    (0..50).for_each(|_| b.push_any());
    b.drain();
    assert!(b.by > 20 * u64::from(rounds), "{} frames went past", b.by);
    assert!(b.edited > 15, "{} frames were changed", b.edited);
    assert!(b.uses > 40, "{}", b.uses);
    assert!(b.again.len() == 4 && b.again.values().all(|n| *n > 1), "{:?}", b.again);
    assert!(b.unasked > 50 && EGRESS.iter().all(|name| b.told.get(name).is_some_and(|n| *n > 1)), "{} {:?}", b.unasked, b.told);
    for name in STATS {
        assert!(b.stat.get(name).is_some_and(|n| *n > 0), "{name}: {:?}", b.stat);
    }
}

#[test]
fn fates_are_the_models_w512() {
    generations::<512, 64>(10, 30);
    generations::<512, 64>(10, 0);
}

#[test]
fn fates_are_the_models_w64() {
    generations::<64, 8>(8, 30);
    generations::<64, 8>(8, 0);
}

/// Frames of one size back to back, in every cycle: none is lost, however short they are.
fn back_to_back<const W: usize, const K: usize>(lengths: &[usize]) {
    let mut b = Bench::<W, K>::new(0, 5);
    b.port = FlowPortCtx::default().with_valid(true);
    for length in lengths {
        for n in 0..400 {
            let mut frame = b.tb.rng().bytes(*length);
            // A tag of priorities that differ, and else nothing that is known.
            frame.iter_mut().skip(12).zip([0x81, 0, n as u8, 0, 0x88, 0xb5]).for_each(|(byte, to)| *byte = to);
            b.push(Came { frame, bad: false, whence: off_the_wire(false, 0) });
        }
        b.drain();
    }
    // A window that took its time, and then short frames in every cycle.
    for _ in 0..20 {
        let frame = b.tb.rng().bytes(128);
        b.push(Came { frame, bad: false, whence: off_the_wire(true, 2) });
        b.gaps = 80;
        (0..100).for_each(|_| b.cycle());
        b.gaps = 0;
        (0..200).for_each(|n| b.push(Came { frame: vec![n as u8; 1 + n % K], bad: false, whence: off_the_wire(true, 1) }));
        b.drain();
    }
    assert_eq!(b.stat.keys().copied().collect::<Vec<_>>(), ["software"]);
}

#[test]
fn short_frames_in_every_cycle() {
    back_to_back::<512, 64>(&[60, 64, 65, 128, 129, 1]);
    back_to_back::<64, 8>(&[60, 64, 8, 1, 9, 128, 136]);
}

/// From the last beat in to the last beat out, of a frame that ends with its window.
fn latency<const W: usize, const K: usize>(length: usize, decides: bool) -> u64 {
    let mut b = Bench::<W, K>::new(0, 3);
    let beats = length.div_ceil(K) as u64;
    b.port = FlowPortCtx::default().with_valid(decides);
    (0..SILENCE).for_each(|_| b.cycle());
    b.push(Came { frame: vec![7; length], bad: false, whence: off_the_wire(false, 0) });
    let out = (1..).find(|_| {
        b.cycle();
        b.tb.get("m$valid") & b.tb.get("m$last") == 1
    });
    out.expect("it comes out") - beats
}

#[test]
fn a_frame_waits_for_its_verdict() {
    assert_eq!([latency::<512, 64>(60, true), latency::<512, 64>(128, true)], [17, 18]);
    // The beats leave one by one.
    assert_eq!([latency::<64, 8>(60, true), latency::<64, 8>(128, true)], [24, 32]);
    // Nobody decides: a register.
    assert_eq!([latency::<512, 64>(60, false), latency::<64, 8>(128, false)], [0, 0]);
}
