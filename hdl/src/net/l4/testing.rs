//! Received packets, right ones and wrong ones.
use crate::tb::Rng;
use ferric_model::net::sums::{finish, pseudo, sum};

/// A TCP or UDP packet with a right checksum, mostly, and padding behind it, sometimes.
pub(crate) fn packet(rng: &mut Rng) -> Vec<u8> {
    let (six, tcp) = (rng.percent(50), rng.percent(50));
    let mut frame = rng.bytes(12);
    for _ in 0..[0, 0, 1, 2, 3][rng.below(5) as usize] {
        frame.extend(if rng.percent(50) { [0x81, 0] } else { [0x88, 0xa8] });
        frame.extend(rng.bytes(2));
    }
    let payload = [0, 1, 30, 600, 1400][rng.below(5) as usize];
    let payload = rng.below(payload + 1) as usize;
    let mut body = rng.bytes(if tcp { 20 } else { 8 } + payload);
    let protocol = if rng.percent(4) {
        rng.next_u32() as u8
    } else if tcp {
        6
    } else {
        17
    };
    // A field of a length, wrong now and then.
    let near = |rng: &mut Rng, length: usize| if rng.percent(4) { (length as u64 + rng.below(5)).wrapping_sub(2) as u16 } else { length as u16 };
    if !tcp {
        let length = near(rng, body.len());
        body[4..6].copy_from_slice(&length.to_be_bytes());
    }
    if rng.percent(4) {
        body.truncate(rng.below(24) as usize);
    }
    let addresses = rng.bytes(if six { 32 } else { 8 });
    let (src, dst) = addresses.split_at(addresses.len() / 2);
    let place = if tcp { 16 } else { 6 };
    if body.len() >= place + 2 {
        body[place..place + 2].fill(0);
        let found = finish(sum(pseudo(src, dst, protocol, body.len() as u32), &body));
        let found = if found == 0 { 0xffff } else { found };
        if !rng.percent(6) {
            body[place..place + 2].copy_from_slice(&found.to_be_bytes());
        }
    }
    if six {
        frame.extend([0x86, 0xdd, 0x60 | rng.below(16) as u8, 0, 0, 0]);
        frame.extend(near(rng, body.len()).to_be_bytes());
        frame.extend([protocol, 64]);
        frame.extend(&addresses);
    } else {
        let options = if rng.percent(30) { rng.below(11) as usize } else { 0 };
        let mut ip = vec![0x45 + options as u8, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        ip.extend(&addresses);
        ip.extend(rng.bytes(4 * options));
        let length = if rng.percent(3) { rng.next_u32() as u16 } else { near(rng, ip.len() + body.len()) };
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        if rng.percent(6) {
            ip[6..8].copy_from_slice(&[[0x20, 0], [0, 1], [0x1f, 0xff], [0x80, 0]][rng.below(4) as usize]);
        }
        if rng.percent(3) {
            ip[0] = rng.next_u32() as u8;
        }
        let found = finish(sum(0, &ip));
        ip[10..12].copy_from_slice(&found.to_be_bytes());
        frame.extend([8, 0]);
        frame.extend(ip);
    }
    frame.extend(body);
    if rng.percent(25) {
        let padding = rng.below(150) as usize;
        frame.extend(rng.bytes(padding));
    }
    if rng.percent(8) {
        frame.truncate(1 + rng.below(frame.len() as u64) as usize);
    }
    if rng.percent(15) {
        let at = rng.below(frame.len() as u64) as usize;
        frame[at] ^= 1 << rng.below(8);
    }
    frame
}
