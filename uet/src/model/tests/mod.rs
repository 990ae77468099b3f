//! Packet delivery, rule by rule.
mod paths;
mod source;
mod target;
mod windows;

use super::*;
use ferric_abi::uet::codes::{AckRequest, ControlType, NackCode, ReturnCode};
use std::sync::Arc;

/// The peer of all these tests, and the PDC id that it uses.
const PEER: Peer = 7;
const THEIRS: u16 = 0x4321;
/// Start_PSN of what the peer opens.
const START: u32 = 0xffff_fffd;

fn config() -> Config {
    Config { pool_bits: 2, places: 3, share: 2, low: 0, mtu: 100, window: 8, mpr_unit: 1, default_mpr: 8, first_window: 4, nack_gap: 0, spray: Policy::Fixed, ..Config::default() }
}

fn end(config: Config) -> Pds {
    Pds::new(Arc::new(config))
}

fn body(message: u16) -> Body {
    Body { message, offset: 0, bytes: 10, total: 10, fetch: false }
}

/// A request of the peer.
fn request(place: u32, to: To) -> Packet {
    Packet::Request { mode: Mode::Rud, psn: START.wrapping_add(place), clear: -1, spdcid: THEIRS, to, retx: false, ar: false, body: body((place as u16).wrapping_add(1)) }
}

fn control(kind: ControlType, place: u32, id: u16) -> Packet {
    Packet::Control { kind, mode: Mode::Rud, psn: START.wrapping_add(place), payload: 0, spdcid: THEIRS, to: To::Id(id), retx: false, ar: true }
}

fn receive(end: &mut Pds, packet: Packet) -> Vec<Action> {
    end.step(Event::Received { from: PEER, packet, trim: None, ce: false, ev: 99 })
}

/// Packets among actions.
fn sent(actions: &[Action]) -> Vec<Packet> {
    actions.iter().filter_map(|action| if let Action::Transmit { packet, .. } = action { Some(*packet) } else { None }).collect()
}

/// The one NACK among actions, if there is one.
fn nack(actions: &[Action]) -> Option<NackCode> {
    match sent(actions)[..] {
        [Packet::Nack { code, .. }] => Some(code),
        _ => None,
    }
}

fn delivered(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Deliver { .. })).count()
}

fn counted(actions: &[Action], counter: Counter) -> bool {
    actions.contains(&Action::Count(counter))
}

fn ok(message: u16) -> Response {
    Response { message, code: ReturnCode::Ok as u8, length: 10, data: None }
}

fn done(end: &mut Pds, pdc: u16, place: u32, keep: bool) -> Vec<Action> {
    let response = if keep { Response { code: ReturnCode::BadKey as u8, length: 0, ..ok(place as u16 + 1) } } else { ok(place as u16 + 1) };
    end.step(Event::Done { pdc, psn: START.wrapping_add(place), response, keep })
}

/// A target with one PDC whose first packet is done. Gives its id.
fn target(config: Config) -> (Pds, u16) {
    let mut end = end(config);
    let actions = receive(&mut end, request(0, To::Syn(0)));
    assert_eq!(delivered(&actions), 1);
    let id = end.pdcs().next().unwrap().id;
    let packets = sent(&done(&mut end, id, 0, false));
    assert!(matches!(packets[..], [Packet::Ack { cack: START, psn: START, dpdcid: THEIRS, .. }]), "{packets:?}");
    (end, id)
}

/// An initiator with `packets` out, which knows its peer's id if `open`. Gives its id and Start_PSN.
fn source(config: Config, mode: Mode, packets: u32, open: bool) -> (Pds, u16, u32) {
    let mtu = config.mtu;
    let mut end = end(config);
    end.step(Event::Post { peer: PEER, mode, message: Message { id: 1, bytes: packets * mtu, fetch: false } });
    for _ in 0..packets {
        end.step(Event::Grant);
    }
    let pdc = end.pdcs().next().unwrap();
    let (id, start) = (pdc.id, pdc.tx.start);
    if open {
        // Nothing is acknowledged by it.
        receive(
            &mut end,
            Packet::Ack { cack: start.wrapping_sub(1), psn: start.wrapping_sub(1), sack: None, marked: false, retx: false, req: AckRequest::None, spdcid: THEIRS, dpdcid: id, response: None },
        );
    }
    (end, id, start)
}

fn ack(id: u16, start: u32, covered: u32, psn: u32, response: Option<Response>) -> Packet {
    Packet::Ack { cack: start.wrapping_add(covered).wrapping_sub(1), psn: start.wrapping_add(psn), sack: None, marked: false, retx: false, req: AckRequest::None, spdcid: THEIRS, dpdcid: id, response }
}

fn refusal(id: u16, psn: u32, code: NackCode, payload: u32) -> Packet {
    Packet::Nack { code, psn, spdcid: THEIRS, dpdcid: id, payload, marked: false, retx: false }
}

/// PSNs that go out when the link takes all there is, those sent again.
fn again(end: &mut Pds) -> Vec<u32> {
    let mut psns = Vec::new();
    for _ in 0..32 {
        let packets = sent(&end.step(Event::Grant));
        psns.extend(packets.iter().filter_map(|packet| if let Packet::Request { psn, retx: true, .. } = packet { Some(*psn) } else { None }));
    }
    psns
}
