//! The engine against the golden model's end, and against itself, over a channel of frames.
mod card;
mod ends;
mod world;

use ferric_abi::uet::codes::{PdsType, ReturnCode};
use ferric_uet::model::{Config, Mode};
use ferric_uet::wire::{parse, Pds as Head, Ses};
use world::{config, registers, Channel, Side, World, OWN};

const RTL: Side = Side::Engine;
const MODEL: Side = Side::Model;

/// The first packet out of the gateware, and its acknowledge.
fn one_write<const W: usize, const K: usize, const L: usize>() {
    let mut world = World::new::<W, K, L>([RTL, MODEL], config(), Channel::good(), 0);
    world.write(0, 0, Mode::Rud, 100, b"sixteen bytes of");
    world.until_ended(400);
    assert_eq!(world.seen.len(), 2, "a request and an ACK");
    let [request, answer] = [0, 1].map(|n| parse(&world.seen[n].1, &registers()).unwrap());
    let (Head::Request(head, None), Ses::First(ses, _)) = (request.pds, request.ses) else { panic!("{request:?}") };
    assert_eq!((head.kind(), head.syn(), head.ar(), head.retx(), head.dpdcid()), (PdsType::RudReq as u8, true, true, false, 0));
    assert_eq!((head.clear_offset(), head.spdcid() != 0), (0xffff, true));
    assert_eq!((ses.request_length(), ses.offset(), ses.som(), ses.eom(), ses.header_data()), (16, 100, true, true, 101));
    assert_eq!((ses.job_id(), ses.pid(), ses.index(), ses.initiator(), ses.key()), (0x12_3456, 0x789, 0xabc, 0xdead_beef, 0x0123_4567_89ab_cdef));
    let (Head::Ack(ack, Some(_)), Ses::Response(_)) = (answer.pds, answer.ses) else { panic!("{answer:?}") };
    assert_eq!((ack.cack(), ack.dpdcid()), (head.psn(), head.spdcid()));
    world.check();
    world.rest();
}

#[test]
fn one_write_of_the_engine_is_acknowledged_by_the_model() {
    one_write::<64, 8, 4>();
    one_write::<512, 64, 7>();
}

/// The same the other way.
fn one_answer<const W: usize, const K: usize, const L: usize>() {
    let mut world = World::new::<W, K, L>([MODEL, RTL], config(), Channel::good(), 0);
    world.write(0, 0, Mode::Rud, 100, b"sixteen bytes of");
    world.until_ended(400);
    let [request, answer] = [0, 1].map(|n| parse(&world.seen[n].1, &registers()).unwrap());
    let Head::Request(head, None) = request.pds else { panic!("{request:?}") };
    let (Head::Ack(ack, Some(cc)), Ses::Response(response)) = (answer.pds, answer.ses) else { panic!("{answer:?}") };
    assert_eq!((ack.cack(), ack.psn_offset(), ack.dpdcid(), ack.retx(), ack.marked()), (head.psn(), 0, head.spdcid(), false, false));
    assert_eq!((cc.mpr(), response.code(), response.modified_length()), (1, ReturnCode::Ok as u8, 16));
    assert_eq!(answer.carriage.entropy, request.carriage.entropy);
    world.check();
    world.rest();
}

#[test]
fn one_write_of_the_model_is_acknowledged_by_the_engine() {
    one_answer::<64, 8, 4>();
    one_answer::<512, 64, 7>();
}

/// A packet that opens its PDC waits for nothing, and neither do those behind it.
#[test]
fn sixteen_packets_leave_before_the_first_answer() {
    let mut world = World::new::<64, 8, 4>([RTL, MODEL], config(), Channel { delay: 400, ..Channel::good() }, 0);
    let data = world.random(16 * 256);
    world.write(0, 0, Mode::Rud, 0, &data);
    world.until_ended(2000);
    let first_answer = world.seen.iter().position(|(from, _)| *from == 1).unwrap();
    assert_eq!(first_answer, 16, "{} frames before the first answer", first_answer);
    world.check();
    world.rest();
}

/// Several PDCs, messages of all lengths, a channel that loses, repeats and reorders: every byte once, every end once, and all places free at the end.
fn bad_channel(sides: [Side; 2], seed: u64) {
    let channel = Channel { delay: 20, jitter: 60, lose: 4, repeat: 4, mark: 5 };
    let mut world = World::new::<64, 8, 4>(sides, config(), channel, seed);
    world.slow(30, 10);
    for round in 0..3 {
        for n in 0..24 {
            let bytes = 1 + world.below(if n % 4 < 2 { 6000 } else { 600 }) as usize;
            let data = world.random(bytes);
            let mode = if n % 5 == 4 { Mode::Rod } else { Mode::Rud };
            let from = n % 2;
            world.write(from, n / 2 % OWN.len(), mode, 8000 * (24 * round + n as u64), &data);
        }
        world.until_ended(60_000);
        world.check();
        if round == 1 {
            world.rest();
        }
    }
    world.rest();
    for (from, side) in sides.into_iter().enumerate() {
        let reached = world.reached(from);
        println!("{side:?} against {:?}: {reached:?}", sides[1 - from]);
        // Requests of both modes, sent again, too; closes; ACKs of new packets and old, with holes, and of closes; refusals by semantics and of what is out of order.
        let wanted = ["request 2", "request 2 again", "request 3", "request 3 again", "SYN", "control 4", "ACK 1", "ACK 0", "SACK", "plain ACK", "NACK 0x0d"];
        let missing: Vec<_> = wanted.iter().filter(|what| !reached.contains_key(**what)).collect();
        assert!(missing.is_empty(), "{side:?} never sent {missing:?}: {reached:?}");
        assert!(side == MODEL || reached.contains_key("NACK 0x0a"), "{reached:?}");
    }
}

#[test]
fn a_bad_channel_to_the_model_loses_nothing() {
    bad_channel([RTL, MODEL], 1);
    bad_channel([MODEL, RTL], 2);
}

#[test]
fn a_bad_channel_between_engines_loses_nothing() {
    bad_channel([RTL, RTL], 3);
}

/// Half of all messages fail at their target: whatever is lost or repeated, the initiator hears of each what the target has said, and never that all was well.
fn errors(sides: [Side; 2], seed: u64) {
    let channel = Channel { delay: 20, jitter: 60, lose: 12, repeat: 4, mark: 5 };
    let config = Config { clear_wait: 300, ..config() };
    let mut world = World::new::<64, 8, 4>(sides, config, channel, seed);
    world.slow(60, 4);
    for round in 0..3 {
        for n in 0..24 {
            let bytes = 1 + world.below(if n % 4 < 2 { 6000 } else { 600 }) as usize;
            let data = world.random(bytes);
            let mode = if n % 5 == 4 { Mode::Rod } else { Mode::Rud };
            let (from, pair, at) = (n % 2, n / 2 % OWN.len(), 8000 * (24 * round + n as u64));
            if world.below(2) == 0 {
                world.write_in_vain(from, pair, mode, at, &data);
            } else {
                world.write(from, pair, mode, at, &data);
            }
        }
        world.until_ended(100_000);
        world.check();
    }
    world.rest();
    for (from, side) in sides.into_iter().enumerate() {
        let reached = world.reached(from);
        println!("errors: {side:?} against {:?}: {reached:?}", sides[1 - from]);
        // The code of a bad address; ACKs that ask for a clear; clears and what asks for them.
        let wanted = ["ACK 29", "ACK 1", "ACK 0", "wants CLEAR", "control 2", "control 3"];
        let missing: Vec<_> = wanted.iter().filter(|what| !reached.contains_key(**what)).collect();
        assert!(missing.is_empty(), "{side:?} never sent {missing:?}: {reached:?}");
    }
}

#[test]
fn what_a_target_says_reaches_its_initiator() {
    errors([RTL, MODEL], 11);
    errors([MODEL, RTL], 12);
    errors([RTL, RTL], 13);
}

/// More packets are with semantics than responses could be kept: the others are refused before they are executed.
#[test]
fn without_a_place_for_its_response_nothing_is_executed() {
    let mut world = World::new::<64, 8, 4>([MODEL, RTL], Config { nack_wait: 100, ..config() }, Channel::good(), 14);
    world.slow(600, 0);
    for n in 0..3 {
        let data = world.random(100 * 256);
        world.write(0, n, Mode::Rud, 40_000 * n as u64, &data);
    }
    world.until_ended(60_000);
    let reached = world.reached(1);
    assert!(reached.contains_key("NACK 0x08"), "{reached:?}");
    world.check();
    world.rest();
}

/// Cycles, without stalls: printed.
#[test]
fn how_long_a_packet_takes() {
    for (name, cycles) in [("W = 64", world::figures::<64, 8, 4>()), ("W = 512", world::figures::<512, 64, 7>())] {
        let [first, next, taken, acked] = cycles;
        println!("uet/pds {name}: message to its first frame {first} cycles when it opens its PDC, {next} when that is open; frame to semantics {taken}, their answer to ACK {acked}");
        assert!(first < 700 && next < 500 && taken < 250 && acked < 250, "{cycles:?}");
    }
}
