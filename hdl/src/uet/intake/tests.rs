//! Frames of all kinds, in a cell buffer that the bench plays, under stalls: whose they are, and what the parser gets of them.
use super::*;
use crate::tb::{Fields, Tb};
use ferric_abi::wire::{ethertype, protocol};
use std::collections::VecDeque;

const LE: usize = 2;
const PORT: u16 = 4793;

/// What becomes of a frame.
#[derive(Debug, PartialEq)]
enum Fate {
    Passed,
    Dropped,
    /// Peer, bytes behind IP, those of them that are shown, whether with CE.
    Taken(u64, u64, Vec<u8>, u64),
}

fn address(six: bool, n: u64) -> u128 {
    if six {
        0xfd00_0000_0000_0000_0000_0000_0000_0000 + u128::from(n)
    } else {
        u128::from(0x0a00_0000 + n)
    }
}

/// Line `n` speaks from `n + 1` to `n + 0x101`, lines 2 and on by IPv6; line 1 is not valid.
fn line(n: u64) -> Vec<u32> {
    let six = n >= 2;
    Fields::of::<PathCtx>().pack(&[("sip", address(six, n + 1)), ("dip", address(six, n + 0x101)), ("ipv6", six.into()), ("valid", u128::from(n != 1))])
}

/// A frame, and what becomes of it.
fn frame(tb: &mut Tb) -> (Vec<u8>, Fate) {
    let (n, kind, len) = (tb.rng().below(4), tb.rng().below(12), tb.rng().below(300));
    let six = n >= 2;
    let port = if kind == 0 { 4791 } else { PORT };
    let udp = Udp::default().with_src_port(7).with_dst_port(port).with_length(8 + len as u16);
    let mut packet = udp.0.to_vec();
    let payload = tb.rng().bytes(len as usize);
    packet.extend(payload);
    let ecn = tb.rng().below(4) as u8;
    let own = if kind == 1 { 0x40 } else { n + 1 };
    let other = if kind == 6 { 0x555 } else { n + 0x101 };
    let mut lies = 0;
    if kind == 2 {
        lies = 9;
    }
    let header = if six {
        let ip = Ipv6::default().with_version(6).with_ecn(ecn).with_payload_length(packet.len() as u16 + lies).with_next_header(if kind == 3 { 6 } else { protocol::UDP }).with_hop_limit(9);
        ip.with_src(address(true, other)).with_dst(address(true, own)).0.to_vec()
    } else {
        let ip = Ipv4::default().with_version(4).with_ihl(5).with_ecn(ecn).with_total_length((Ipv4::BYTES + packet.len()) as u16 + lies).with_protocol(if kind == 3 { 6 } else { protocol::UDP });
        let ip = ip.with_fragment(u16::from(kind == 4)).with_ttl(3).with_src(address(false, other) as u32).with_dst(address(false, own) as u32);
        let sum: u32 = ip.0.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        ip.with_checksum(!((sum & 0xffff) + (sum >> 16)) as u16 ^ u16::from(kind == 5)).0.to_vec()
    };
    let eth = Eth::default().with_dst(1).with_src(2).with_ethertype(if six { ethertype::IPV6 } else { ethertype::IPV4 });
    let mut bytes = [&eth.0[..], &header, &packet].concat();
    // Ethernet's padding is not the packet's.
    if kind != 2 {
        bytes.resize(bytes.len().max(60), 0xee);
    }
    let fate = if kind == 0 || kind == 3 || (kind == 4 && !six) {
        Fate::Passed
    } else if kind == 1 || kind == 2 || kind == 6 || n == 1 || (kind == 5 && !six) {
        Fate::Dropped
    } else {
        let shown = packet[..packet.len().min(WINDOW)].to_vec();
        Fate::Taken(n, packet.len() as u64, shown, u64::from(ecn == 3))
    };
    (bytes, fate)
}

fn run<const W: usize, const K: usize, const L: usize>(stall: u32, seed: u64) {
    let mut tb = Tb::with_seed(&format!("uet_intake{W}"), Intake::<W, K, L, LE>::default(), seed);
    let [desc, read, note] = [Fields::of::<RxDesc>(), Fields::of::<CellRead>(), Fields::of::<Note>()];
    let (descs, passed, reads, cells) = (tb.source("s_desc", stall), tb.sink("m_desc", stall), tb.sink("m_cell", stall), tb.axis_source("s_cell", stall));
    let (packets, notes) = (tb.axis_sink("m", stall), tb.sink("m_note", stall));
    tb.set("port", PORT.into());
    tb.reset();
    let lines: Vec<Vec<u32>> = (0..1 << LE).map(line).collect();
    let mut frames: VecDeque<(u64, Vec<u8>, Fate)> = VecDeque::new();
    let (mut sent, mut seen, mut at) = (0u64, [0u64; 3], 0);
    let (mut told, mut shown): (VecDeque<Vec<u32>>, VecDeque<Vec<u8>>) = Default::default();
    while seen.iter().sum::<u64>() < 250 {
        if sent < 250 && frames.len() < 4 {
            let (bytes, fate) = frame(&mut tb);
            descs.push(desc.pack(&[("handle", sent.into()), ("frame_len", bytes.len() as u128), ("raw", 1)]));
            frames.push_back((sent, bytes, fate));
            sent += 1;
        }
        // The memory of peers, a cycle later.
        tb.set_wide("path", &lines[at][..]);
        tb.begin();
        at = tb.get("line") as usize;
        let dropped = (tb.get("dropped") == 1).then(|| tb.get("dropped_handle"));
        tb.end();
        while let Some(words) = reads.pop() {
            let get = |name| read.get(&words, name) as usize;
            let (_, bytes, _) = frames.iter().find(|(handle, ..)| *handle as usize == get("handle")).unwrap();
            assert_eq!((get("off"), get("free")), (0, 0));
            cells.push(&bytes[..get("len")]);
        }
        let mut over = |handle: u64, fate: Fate| {
            let place = frames.iter().position(|(other, ..)| *other == handle).expect("each frame once");
            assert_eq!(frames.remove(place).unwrap().2, fate, "frame {handle}");
        };
        if let Some(handle) = dropped {
            over(handle, Fate::Dropped);
            seen[0] += 1;
        }
        while let Some(words) = passed.pop() {
            over(desc.get(&words, "handle") as u64, Fate::Passed);
            seen[1] += 1;
        }
        while let Some(words) = notes.pop() {
            told.push_back(words);
        }
        while let Some(bytes) = packets.pop() {
            shown.push_back(bytes);
        }
        while !shown.is_empty() && !told.is_empty() {
            let (bytes, words) = (shown.pop_front().unwrap(), told.pop_front().unwrap());
            let get = |name| note.get(&words, name) as u64;
            assert_eq!(get("handle") >> SIX, u64::from(get("peer") >= 2));
            over(get("handle") & 0xfff, Fate::Taken(get("peer"), get("bytes"), bytes, get("congested")));
            seen[2] += 1;
        }
        assert!(tb.cycles() < 400_000, "it hangs");
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

#[test]
fn frames_are_taken_passed_on_or_dropped_w64() {
    run::<64, 8, 4>(0, 1);
    run::<64, 8, 4>(50, 2);
}

#[test]
fn frames_are_taken_passed_on_or_dropped_w512() {
    run::<512, 64, 7>(0, 3);
    run::<512, 64, 7>(50, 4);
}
