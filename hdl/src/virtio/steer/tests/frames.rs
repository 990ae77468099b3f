//! Frames of every kind, near to those that count.
use crate::tb::Rng;

pub const VLANS: [u16; 5] = [0, 5, 31, 32, 4095];
pub const BROADCAST: [u8; 6] = [0xff; 6];

/// An address of a small world: number `n`, a station's or a group's.
pub fn mac(group: bool, n: u64) -> [u8; 6] {
    // Numbers differ in one of the bytes, whichever.
    let mut mac = [if group { 0x33 } else { 0x32 }, 0x33, 0, 0, 0, 0];
    mac[2 + n as usize % 4] = 1 + (n / 4) as u8;
    mac
}

fn destination(rng: &mut Rng) -> [u8; 6] {
    match rng.below(10) {
        0 => BROADCAST,
        1 => [0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
        2..5 => mac(true, rng.below(36)),
        _ => mac(false, rng.below(20)),
    }
}

/// An IP header and what lies in front of it, of few addresses and ports so that flows meet again; sometimes broken.
pub fn headers(rng: &mut Rng) -> Vec<u8> {
    let six = rng.percent(50);
    let length = if six { 16 } else { 4 };
    let mut end = || {
        let mut address = vec![0x20; length];
        address[length - 1] = rng.below(4) as u8;
        (address, [0x13, rng.below(4) as u8])
    };
    let ((src, from), (dst, to)) = (end(), end());
    let protocol = [6, 6, 17, 17, 1, 0, 44][rng.below(7) as usize];
    let options = if rng.percent(20) { rng.below(11) as u8 } else { 0 };
    let mut head = if six {
        [&[0x60 | rng.below(16) as u8, 0, 0, 0, 0, 40, protocol, 64][..], &src, &dst].concat()
    } else {
        let fragment = if rng.percent(15) { [[0x20, 0], [0, 1], [0x1f, 0xff], [0x40, 0], [0x80, 0]][rng.below(5) as usize] } else { [0x40, 0] };
        [&[0x45 + options, 0, 0, 40, 0, 0][..], &fragment, &[64, protocol, 0, 0], &src, &dst, &rng.bytes(4 * usize::from(options))].concat()
    };
    // Another version, or an IPv4 header that is too short.
    if rng.percent(5) {
        head[0] = [0x44, 0x41, 0x40, 0x55, 0x65, 0x45, rng.next_u32() as u8][rng.below(7) as usize];
    }
    head.extend(from.into_iter().chain(to));
    let ether: [u8; 2] = match rng.below(25) {
        0 => [8, 6],
        1 => [0x81, 0],
        2 if six => [8, 0],
        2 => [0x86, 0xdd],
        _ if six => [0x86, 0xdd],
        _ => [8, 0],
    };
    let tag = match rng.below(10) {
        0..3 => [vec![0x81, 0], (VLANS[rng.below(5) as usize] | (rng.below(16) as u16) << 12).to_be_bytes().to_vec()].concat(),
        3 if rng.percent(20) => vec![0x88, 0xa8, 0, 5],
        _ => Vec::new(),
    };
    [tag, ether.to_vec(), head].concat()
}

/// A frame, whole or cut anywhere.
pub fn frame(rng: &mut Rng) -> Vec<u8> {
    let mut frame = [destination(rng).to_vec(), vec![2; 6], headers(rng)].concat();
    let payload = if rng.percent(10) { rng.below(1500) } else { rng.below(80) };
    frame.extend(rng.bytes(payload as usize));
    if rng.percent(15) {
        frame.truncate(1 + rng.below(frame.len() as u64) as usize);
    }
    frame
}

/// The frame that answers one: both ends change places.
pub fn answer(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let ip = if frame.get(12..14) == Some(&[0x81, 0]) { 18 } else { 14 };
    let Some(first) = frame.get(ip) else { return frame };
    let (at, half, l4) = if first >> 4 == 6 { (ip + 8, 16, ip + 40) } else { (ip + 12, 4, ip + 4 * usize::from(first & 15)) };
    if frame.len() >= l4 + 4 && l4 >= at + 2 * half {
        frame[at..at + 2 * half].rotate_left(half);
        frame[l4..l4 + 4].rotate_left(2);
    }
    frame
}
