//! Captured exchanges of Ultra Ethernet with the simulated card as target: every recorded file passes; with anything altered that is compared, it fails.
use ferric_abi::uet::codes::NackCode;
use ferric_tests::uet::forge::sum;
use ferric_tests::uet::replay::{compare, understood, Player, Transcript};
use ferric_uet::model::Packet;
use ferric_uet::replay::load;
use std::collections::BTreeSet;
use std::path::Path;

const FILES: [&str; 5] = ["golden_vectors", "ns3_rud_loss_retx", "ns3_rud_write_1pkt", "xdp2_uet_pds", "xdp2_uet_ses"];
/// Where UDP and PDS headers are in the live exchanges, and bytes of an acknowledge.
const IP: usize = 14;
const UDP: usize = 34;
const PDS: usize = 42;
const ACK: usize = 32;

fn frames(name: &str) -> Vec<Vec<u8>> {
    load(Path::new(&format!("{}/captures/uet/{name}.pcap", env!("CARGO_MANIFEST_DIR")))).unwrap()
}

/// The frames with a bit of frame `n` inverted, and the checksums made right, as whoever alters one on purpose would.
fn altered(good: &[Vec<u8>], n: usize, byte: usize, mask: u8) -> Vec<Vec<u8>> {
    let mut frames = good.to_vec();
    let frame = &mut frames[n];
    frame[byte] ^= mask;
    sum(frame);
    frame[UDP + 6..UDP + 8].fill(0);
    let words = [&frame[IP + 12..UDP], &[0, 17], &frame[UDP + 4..UDP + 6], &frame[UDP..]].concat();
    let mut total: u32 = words.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    frame[UDP + 6..UDP + 8].copy_from_slice(&(!total as u16).to_be_bytes());
    frames
}

/// Compares a capture with what the card answered to that exchange before.
fn against(transcript: &Transcript, frames: &[Vec<u8>]) -> Result<(), String> {
    let (exchanges, rest) = understood(frames, &mut BTreeSet::new())?;
    match &exchanges[..] {
        [exchange] if rest.is_empty() && exchange.frames.len() == transcript.answers.len() => compare(exchange, transcript, &mut BTreeSet::new()),
        _ => Err("another exchange".into()),
    }
}

fn played(player: &mut Player, frames: &[Vec<u8>]) -> Transcript {
    let (exchanges, _) = understood(frames, &mut BTreeSet::new()).unwrap();
    player.play(&exchanges[0]).unwrap()
}

/// Bits that a target is free in: what it wishes, the room that it gives, what it says of congestion, where a bitmap without bits begins, and the id of one that is never used again.
fn free(frame: &[u8], byte: usize, mask: u8, alone: bool) -> bool {
    match byte {
        1 => mask & 0x06 != 0,
        8 | 9 => alone,
        13 | 24..=31 => true,
        14 | 15 => frame[PDS + 16..PDS + 24] == [0; 8],
        _ => false,
    }
}

#[test]
fn every_recorded_file_passes_on_the_card_as_target() {
    let mut player = Player::new(64).unwrap();
    for name in FILES {
        let frames = frames(name);
        let outcome = player.replay(&frames).unwrap_or_else(|what| panic!("{name}: {what}"));
        assert_eq!(outcome.exchanged + outcome.samples, frames.len(), "{name}");
        assert_eq!(outcome.exchanged > 0, name.starts_with("ns3"), "{name}");
    }
}

/// Each bit of each answer of the live exchanges, against what the card answers.
#[test]
fn every_altered_bit_of_an_answer_is_noticed() {
    let mut player = Player::new(64).unwrap();
    let (mut passed, mut count) = (Vec::new(), 0);
    for name in ["ns3_rud_write_1pkt", "ns3_rud_loss_retx"] {
        let good = frames(name);
        let transcript = played(&mut player, &good);
        assert_eq!(against(&transcript, &good), Ok(()));
        for n in (1..good.len()).step_by(2) {
            for (byte, mask) in (0..ACK).flat_map(|byte| (0..8).map(move |bit| (byte, 0x80 >> bit))) {
                count += 1;
                if !free(&good[n], byte, mask, good.len() == 2) && against(&transcript, &altered(&good, n, PDS + byte, mask)).is_ok() {
                    passed.push(format!("{name} {n}: byte {byte} mask {mask:#x}"));
                }
            }
        }
    }
    assert_eq!(count, 5 * ACK * 8);
    assert!(passed.is_empty(), "{} alterations pass: {passed:#?}", passed.len());
}

/// What the initiator says otherwise, the card answers otherwise: type, flags, PSN and offset of requests.
#[test]
fn altered_requests_are_answered_otherwise() {
    let mut player = Player::new(64).unwrap();
    let good = frames("ns3_rud_loss_retx");
    // Type, retx, syn, PSN (both ends), sender's id, offset of the SYN.
    let bits = [(0, 0x08), (0, 0x40), (1, 0x10), (1, 0x04), (4, 0x80), (5, 0x01), (6, 0x10), (7, 0x01), (7, 0x02), (9, 0x01), (10, 0x08), (11, 0x01), (11, 0x04)];
    let mut passed = Vec::new();
    for n in (0..good.len()).step_by(2) {
        for (byte, mask) in bits {
            // The offset of this SYN is the id that the target has.
            let free = n == 2 && (byte, mask) == (1, 0x04);
            if !free && player.replay(&altered(&good, n, PDS + byte, mask)).is_ok() {
                passed.push(format!("{n}: byte {byte} mask {mask:#x}"));
            }
        }
    }
    assert!(passed.is_empty(), "{} alterations pass: {passed:#?}", passed.len());
    // Missing and out of place.
    for n in 0..good.len() {
        let mut without = good.clone();
        without.remove(n);
        // Acknowledges count together: one in the middle may be missing.
        let acknowledge = n % 2 == 1 && n + 1 < good.len();
        assert_eq!(player.replay(&without).is_ok(), acknowledge, "without frame {n}");
        if n + 1 < good.len() {
            let mut other = good.clone();
            other.swap(n, n + 1);
            assert!(player.replay(&other).is_err(), "frames {n} and {} change places", n + 1);
        }
    }
    assert!(player.replay(&good).is_ok());
}

/// A card that answers otherwise is noticed: each field that is compared, an answer too many, one too few, and a byte in memory.
#[test]
fn a_card_that_answers_otherwise_is_noticed() {
    let mut player = Player::new(64).unwrap();
    let good = frames("ns3_rud_loss_retx");
    let transcript = played(&mut player, &good);
    assert_eq!(against(&transcript, &good), Ok(()));
    let defects: [(&str, fn(&mut Packet)); 9] = [
        ("CACK", |p| {
            if let Packet::Ack { cack, .. } = p {
                *cack += 1
            }
        }),
        ("PSN", |p| {
            if let Packet::Ack { psn, .. } = p {
                *psn -= 1
            }
        }),
        ("mark", |p| {
            if let Packet::Ack { marked, .. } = p {
                *marked = true
            }
        }),
        ("retx", |p| {
            if let Packet::Ack { retx, .. } = p {
                *retx ^= true
            }
        }),
        ("own id", |p| {
            if let Packet::Ack { spdcid, .. } = p {
                *spdcid ^= 0x10
            }
        }),
        ("other id", |p| {
            if let Packet::Ack { dpdcid, .. } = p {
                *dpdcid ^= 0x10
            }
        }),
        ("bitmap", |p| {
            if let Packet::Ack { sack: Some(sack), .. } = p {
                sack.bitmap ^= 1 << 40
            }
        }),
        ("response", |p| {
            if let Packet::Ack { response: Some(response), .. } = p {
                response.code = 0x1c
            }
        }),
        ("length", |p| {
            if let Packet::Ack { response: Some(response), .. } = p {
                response.length += 1
            }
        }),
    ];
    for n in (0..good.len()).step_by(2) {
        for (what, defect) in &defects {
            let mut other = transcript.clone();
            defect(other.answers[n].last_mut().unwrap());
            assert!(against(&other, &good).is_err(), "{what} behind packet {n}");
        }
        let mut other = transcript.clone();
        other.answers[n].clear();
        assert!(against(&other, &good).is_err(), "no answer to packet {n}");
        let mut other = transcript.clone();
        other.answers[n].push(Packet::Nack { code: NackCode::InvalidPdc, psn: 1, spdcid: 0, dpdcid: 1, payload: 0, marked: false, retx: false });
        assert!(against(&other, &good).is_err(), "a refusal of packet {n}");
    }
    let mut other = transcript;
    other.memory[100] ^= 1;
    assert!(against(&other, &good).is_err());
}
