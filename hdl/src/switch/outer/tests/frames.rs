//! Packets of a tunnel, right ones and wrong ones.
use super::*;

/// The header that the peer of `ctx` puts in front of `inner`.
pub(super) fn outer(ctx: &TunnelCtx, rng: &mut Rng, inner: &[u8]) -> Vec<u8> {
    let mut frame = [mac(ctx.smac()), mac(ctx.dmac())].concat();
    if rng.percent(30) {
        frame.extend(if rng.percent(50) { [0x88, 0xa8] } else { [0x81, 0x00] });
        frame.extend(rng.bytes(2));
    }
    let tos = rng.next_u32() as u8;
    let mut udp =
        [&(0xc000 | rng.next_u32() as u16).to_be_bytes()[..], &[0x12, 0xb5], &(16 + inner.len() as u16).to_be_bytes(), &[0, 0], &[8, 0, 0, 0], &ctx.vni().to_be_bytes()[1..], &[0], inner].concat();
    let (src, dst) = (ctx.remote().to_be_bytes(), ctx.local().to_be_bytes());
    let (src, dst) = if ctx.ipv6() { (&src[..], &dst[..]) } else { (&src[12..], &dst[12..]) };
    if rng.percent(60) {
        // RFC 768: a sum of zero is sent as all ones.
        let checksum = finish(sum(pseudo(src, dst, 17, udp.len() as u32), &udp));
        udp[6..8].copy_from_slice(&(if checksum == 0 { 0xffff } else { checksum }).to_be_bytes());
    }
    if ctx.ipv6() {
        frame.extend([0x86, 0xdd, 0x60 | tos >> 4, tos << 4, 0, 0]);
        frame.extend((udp.len() as u16).to_be_bytes());
        frame.extend([17, 64]);
        frame.extend([src, dst].concat());
    } else {
        let mut ip = vec![0x45, tos, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
        ip.extend([src, dst].concat());
        ip[2..4].copy_from_slice(&(20 + udp.len() as u16).to_be_bytes());
        let checksum = finish(sum(0, &ip));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        frame.extend([0x08, 0x00]);
        frame.extend(ip);
    }
    frame.extend(udp);
    // Padding of a short frame, or of a peer that says nothing with many words.
    if rng.percent(20) {
        let padding = rng.below(200) as usize;
        frame.extend(rng.bytes(padding));
    }
    frame
}

/// A packet with what strangers do to it.
pub(super) fn any_frame(ctx: &TunnelCtx, rng: &mut Rng) -> Vec<u8> {
    let inner = any_inner(rng);
    if rng.percent(10) {
        return if inner.is_empty() { vec![2] } else { inner };
    }
    let mut frame = outer(ctx, rng, &inner);
    let l3 = if matches!((frame[12], frame[13]), (0x81, 0) | (0x88, 0xa8)) { 18 } else { 14 };
    let l4 = l3 + if ctx.ipv6() { 40 } else { 20 };
    let no_sum = |frame: &mut [u8]| frame[l4 + 6..l4 + 8].fill(0);
    let flip = |frame: &mut [u8], rng: &mut Rng, from: usize, bytes: u64| frame[from + rng.below(bytes) as usize] ^= 1 << rng.below(8);
    match rng.below(24) {
        0 => flip(&mut frame, rng, 0, 14),
        1 => flip(&mut frame, rng, l3, 20),
        2 => {
            // Every field of the outer IP header under a right sum.
            flip(&mut frame, rng, l3, (l4 - l3) as u64);
            right(&mut frame, l3);
        }
        3 => flip(&mut frame, rng, l4, 8),
        4 => {
            no_sum(&mut frame);
            flip(&mut frame, rng, l4 + 8, 8);
        }
        5 => {
            no_sum(&mut frame);
            flip(&mut frame, rng, l4 + 12, 3);
        }
        6 => {
            // A fragment, or some of its bits.
            if !ctx.ipv6() {
                frame[l3 + 6] = [0x20, 0x60, 0x3f, 0x80, 0][rng.below(5) as usize];
                frame[l3 + 7] = rng.below(2) as u8;
                right(&mut frame, l3);
            } else {
                frame[l3 + 6] = 44;
            }
        }
        7 => {
            let cut = rng.below(frame.len() as u64).max(1) as usize;
            frame.truncate(cut);
        }
        8 => {
            // Lengths that contradict each other.
            let length = u16::from_be_bytes([frame[l4 + 4], frame[l4 + 5]]).wrapping_add(rng.below(33) as u16).wrapping_sub(16);
            frame[l4 + 4..l4 + 6].copy_from_slice(&length.to_be_bytes());
        }
        9 => {
            // A shorter packet with as much behind it: down to no room for any header.
            let udp = rng.below(40) as u16;
            no_sum(&mut frame);
            frame[l4 + 4..l4 + 6].copy_from_slice(&udp.to_be_bytes());
            let at = if ctx.ipv6() { l3 + 4 } else { l3 + 2 };
            frame[at..at + 2].copy_from_slice(&(udp + if ctx.ipv6() { 0 } else { 20 }).to_be_bytes());
            right(&mut frame, l3);
        }
        10 => {
            // Options of the outer header.
            if !ctx.ipv6() {
                frame[l3] = 0x46;
            }
        }
        11 => {
            // A second tag.
            frame.splice(12..12, [0x81, 0, 0, 5]);
        }
        12 => flip(&mut frame, rng, l4 + 8, 60.min((inner.len() + 8) as u64)),
        13 => {
            // From another endpoint.
            let at = if ctx.ipv6() { l3 + 23 } else { l3 + 15 };
            frame[at] ^= 1;
            no_sum(&mut frame);
            right(&mut frame, l3);
        }
        _ => {}
    }
    frame
}
