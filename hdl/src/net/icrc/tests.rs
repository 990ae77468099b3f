use super::model::{icrc, seal, RESIDUE};
use super::{IcrcPipe, LATENCY};
use crate::tb::{Rng, Tb};
use std::collections::VecDeque;

/// RoCEv2 frames as Linux sends them (Soft-RoCE, SEND with path MTU 1024).
pub(crate) fn captured() -> Vec<Vec<u8>> {
    let file = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures/v4_rc_send_mtu1024.pcapng")).unwrap();
    let mut reader = pcap_file::pcapng::PcapNgReader::new(file).unwrap();
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        if let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.unwrap() {
            frames.push(packet.data.to_vec());
        }
    }
    frames
}

/// A frame with random contents and consistent lengths; `body` bytes between BTH and ICRC.
pub(crate) fn random_frame(rng: &mut Rng, vlan: bool, ipv6: bool, body: usize) -> Vec<u8> {
    let mut f = rng.bytes(12);
    if vlan {
        f.extend([0x81, 0x00, 0x20, 0x05]);
    }
    let udp = 8 + 12 + body + 4;
    if ipv6 {
        f.extend([0x86, 0xdd, 0x60 | (rng.next_u32() as u8 & 15)]);
        f.extend(rng.bytes(3));
        f.extend((udp as u16).to_be_bytes());
        f.push(17);
        f.extend(rng.bytes(33));
    } else {
        f.extend([0x08, 0x00, 0x45]);
        f.extend(rng.bytes(1));
        f.extend((udp as u16 + 20).to_be_bytes());
        f.extend(rng.bytes(16));
    }
    f.extend(rng.bytes(udp));
    f
}

#[test]
fn model_agrees_with_linux() {
    let frames = captured();
    assert!(frames.len() > 20, "only {} frames", frames.len());
    for (n, frame) in frames.iter().enumerate() {
        let sent = u32::from_le_bytes(frame[frame.len() - 4..].try_into().unwrap());
        assert_eq!(icrc(frame), Some(sent), "frame {n}");
        let mut padded = frame.clone();
        padded.extend([0x55; 7]);
        assert_eq!(icrc(&padded), Some(sent), "bytes behind the IP packet do not count");
        assert_eq!(icrc(&frame[..frame.len() - 1]), None);
    }
}

#[test]
fn model_ignores_exactly_the_variant_fields() {
    let mut rng = Rng::new(7);
    for (vlan, ipv6, variant) in [
        (false, false, vec![(15, 0xff), (22, 0xff), (24, 0xff), (25, 0xff), (40, 0xff), (41, 0xff), (46, 0xff)]),
        (true, true, vec![(18, 0x0f), (19, 0xff), (20, 0xff), (21, 0xff), (25, 0xff), (64, 0xff), (65, 0xff), (70, 0xff)]),
    ] {
        let frame = random_frame(&mut rng, vlan, ipv6, 33);
        let right = icrc(&frame).unwrap();
        let l3 = 14 + 4 * usize::from(vlan);
        for bit in 0..8 * (frame.len() - 4) {
            let lengths = if ipv6 { [l3 + 4, l3 + 5] } else { [l3 + 2, l3 + 3] };
            let mut other = frame.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            // A changed type or length is another frame altogether.
            if (bit / 8 >= 12 && bit / 8 <= l3 && !(bit / 8 == l3 && bit % 8 < 4)) || lengths.contains(&(bit / 8)) || (!ipv6 && bit / 8 == l3) {
                continue;
            }
            let ignored = bit / 8 < l3 || variant.iter().any(|(at, mask)| *at == bit / 8 && mask >> (bit % 8) & 1 == 1);
            assert_eq!(icrc(&other) == Some(right), ignored, "vlan {vlan} ipv6 {ipv6} bit {bit}");
        }
    }
}

/// Runs frames through the pipe as fast as they go (`gap` 0) or with idle cycles, checking value, order and cycle.
fn run<const W: usize, const K: usize, const LK: usize>(name: &str, frames: &[Vec<u8>], gap: u32) {
    let mut tb = Tb::new(name, IcrcPipe::<W, K, LK>::default());
    let mut rng = Rng::new(tb.seed() ^ 0x5eed);
    let mut due: VecDeque<(u64, u32)> = VecDeque::new();
    let mut results = 0;
    let check = |tb: &mut Tb, due: &mut VecDeque<(u64, u32)>, results: &mut usize| {
        if tb.get("crc_valid") == 1 {
            let (cycle, crc) = due.pop_front().expect("a result nobody waits for");
            assert_eq!((tb.cycles(), tb.get("crc") as u32), (cycle, crc), "result {results}");
            *results += 1;
        }
        assert!(due.front().is_none_or(|(cycle, _)| *cycle > tb.cycles()), "result {results} is late");
    };
    for frame in frames {
        let transmit = rng.percent(50);
        let mut bytes = frame.clone();
        let vlan = u64::from(bytes[12] == 0x81);
        let ipv6 = u64::from(bytes[14 + 4 * vlan as usize] >> 4 == 6);
        let right = icrc(frame).unwrap();
        let damaged = !transmit && rng.percent(20);
        if transmit {
            let n = bytes.len();
            bytes[n - 4..].fill(0);
        } else {
            seal(&mut bytes).unwrap();
            if damaged {
                // The last eight bytes hold no field that the ICRC leaves out.
                let at = bytes.len() - 1 - rng.below(8) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
        }
        for (n, beat) in bytes.chunks(K).enumerate() {
            while gap > 0 && rng.percent(gap) {
                tb.set("valid", 0);
                tb.cycle();
                check(&mut tb, &mut due, &mut results);
            }
            let mut data = beat.to_vec();
            data.extend(rng.bytes(K - beat.len()));
            let words: Vec<u32> = data.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
            let last = (n + 1) * K >= bytes.len();
            tb.set_wide("data", words);
            tb.set_wide("keep", u128::MAX >> (128 - beat.len()));
            for (port, value) in [("first", n == 0), ("last", last), ("valid", true), ("drop4", transmit)] {
                tb.set(port, value.into());
            }
            tb.set("vlan", vlan);
            tb.set("ipv6", ipv6);
            if last {
                let cycle = tb.cycles() + LATENCY as u64;
                if damaged {
                    // What it is does not matter; that it is not the residue does.
                    due.push_back((cycle, !super::model::crc(super::model::start(vlan == 1), &masked(&bytes, vlan == 1, ipv6 == 1))));
                    assert_ne!(due.back().unwrap().1, RESIDUE);
                } else {
                    due.push_back((cycle, if transmit { right } else { RESIDUE }));
                }
            }
            tb.cycle();
            check(&mut tb, &mut due, &mut results);
        }
    }
    tb.set("valid", 0);
    for _ in 0..LATENCY {
        tb.cycle();
        check(&mut tb, &mut due, &mut results);
    }
    assert_eq!(results, frames.len());
}

fn masked(bytes: &[u8], vlan: bool, ipv6: bool) -> Vec<u8> {
    let mask = |(at, byte): (usize, &u8)| {
        let (zeros, ones) = super::model::masks(at, vlan, ipv6);
        (byte | ones) & !zeros
    };
    bytes.iter().enumerate().map(mask).collect()
}

fn frames(rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut frames = captured();
    for body in 0..150 {
        let (vlan, ipv6) = (rng.percent(50), rng.percent(50));
        frames.push(random_frame(rng, vlan, ipv6, body));
    }
    for _ in 0..150 {
        let most = if rng.percent(10) { 4100 } else { 12 };
        let body = rng.below(most) as usize;
        let (vlan, ipv6) = (rng.percent(30), rng.percent(40));
        frames.push(random_frame(rng, vlan, ipv6, body));
    }
    frames
}

#[test]
fn pipe_64_agrees_with_the_model() {
    let frames = frames(&mut Rng::new(1));
    run::<64, 8, 3>("icrc64", &frames, 0);
    run::<64, 8, 3>("icrc64", &frames, 40);
}

#[test]
fn pipe_512_agrees_with_the_model() {
    let frames = frames(&mut Rng::new(2));
    run::<512, 64, 6>("icrc512", &frames, 0);
    run::<512, 64, 6>("icrc512", &frames, 40);
}
