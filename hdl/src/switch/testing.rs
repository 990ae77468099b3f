//! What the blocks' tests share: a tunnel, and frames of tenants.
use crate::tb::{Rng, Tb};
use ferric_abi::context::TunnelCtx;
use ferric_abi::switch::table::{self, ACTION_BITS};
use ferric_abi::switch::{Action, FlowCommand, FlowKey};
use ferric_driver::switch::place::Write;
use ferric_model::net::sums::{finish, sum};
use ferric_model::switch::layers::Layers;

const MAC: u64 = 0x0200_0000_0001;
const VNI: u32 = 0x12_3456;
const LOCAL: [u128; 2] = [0x0a01_0001, 0xfd00 << 112 | 1];
const REMOTE: [u128; 2] = [0x0a01_0002, 0xfd00 << 112 | 2];
/// A tunnel over IPv4 or IPv6.
pub fn tunnel(v6: bool) -> TunnelCtx {
    let n = usize::from(v6);
    TunnelCtx::default().with_valid(true).with_ipv6(v6).with_vni(VNI).with_smac(MAC).with_dmac(0x0200_0000_0002).with_local(LOCAL[n]).with_remote(REMOTE[n])
}

/// The lines of functions in a test bench.
pub fn set_lines(tb: &mut Tb, lines: &[TunnelCtx]) {
    for (function, ctx) in lines.iter().enumerate() {
        let words: Vec<u32> = ctx.0.chunks(4).map(|w| u32::from_le_bytes(w.try_into().expect("four"))).collect();
        tb.set_wide(&format!("ctx${function}"), &words[..]);
    }
}

/// Little-endian bytes as the test bench's words.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|w| w.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))).collect()
}

/// The command that writes a line of the table of stations.
pub fn homed(write: &Write) -> FlowCommand {
    let entry = write.entry.as_ref().map(|entry| (std::array::from_fn(|n| entry.key[n]), entry.result as u16, entry.generation));
    table::station(write.place.way, write.place.line.into(), entry.as_ref().map(|(key, result, generation)| (key, *result, *generation)))
}

/// A mask over the key: most bytes count, some do not, of a few only some bits.
pub fn any_mask(rng: &mut Rng) -> FlowKey {
    FlowKey(std::array::from_fn(|_| match rng.below(10) {
        0 => 0,
        1 => rng.next_u32() as u8,
        _ => 0xff,
    }))
}

/// An action of any kind, those that there are not among them.
pub fn any_action(rng: &mut Rng) -> Action {
    let mut bytes: [u8; Action::BYTES] = rng.bytes(Action::BYTES).try_into().expect("as many");
    bytes[ACTION_BITS / 8..].fill(0);
    let kind = [0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7][rng.below(12) as usize];
    Action(bytes).with_kind(kind)
}

/// The bytes of a MAC address.
pub fn mac(n: u64) -> [u8; 6] {
    std::array::from_fn(|i| n.to_be_bytes()[i + 2])
}

/// A frame of a tenant: IPv4 or IPv6 in up to three tags, with any ECN, ARP, any type; or any bytes.
pub fn any_inner(rng: &mut Rng) -> Vec<u8> {
    let length = if rng.percent(60) { rng.below(80) } else { rng.below(1500) } as usize;
    let payload = rng.bytes(length);
    if rng.percent(8) {
        return payload;
    }
    let mut frame = [mac(rng.next_u64()), mac(rng.next_u64())].concat();
    for n in 0..[0, 0, 0, 1, 2, 3][rng.below(6) as usize] {
        frame.extend(if n == 0 && rng.percent(50) { [0x88, 0xa8] } else { [0x81, 0x00] });
        frame.extend(rng.bytes(2));
    }
    let tos = rng.next_u32() as u8;
    match rng.below(8) {
        0..4 => {
            let mut ip = vec![0x45, tos, 0, 0, 1, 2, 0x40, 0, 64, [17, 6, 99][rng.below(3) as usize], 0, 0];
            ip.extend(rng.bytes(8));
            ip[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
            // Right and wrong checksums stay right and wrong, and both zeros.
            let checksum = match rng.below(4) {
                0 => [0x0000u16, 0xffff, 0xfffe][rng.below(3) as usize],
                1 => rng.next_u32() as u16,
                _ => finish(sum(0, &ip)),
            };
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            if rng.percent(10) {
                ip[0] = [0x44, 0x46, 0x55, 0x4f][rng.below(4) as usize];
            }
            frame.extend([0x08, 0x00]);
            frame.extend(ip);
        }
        4..6 => {
            let mut ip = vec![0x60 | tos >> 4, tos << 4, 0, 0];
            ip.extend((payload.len() as u16).to_be_bytes());
            ip.extend([[17, 6, 0, 44][rng.below(4) as usize], 64]);
            ip.extend(rng.bytes(32));
            frame.extend([0x86, 0xdd]);
            frame.extend(ip);
        }
        6 => frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]),
        _ => frame.extend(rng.bytes(2)),
    }
    frame.extend(payload);
    if rng.percent(10) {
        let cut = rng.range(10, 60) as usize;
        frame.truncate(cut);
    }
    frame
}

/// The IPv4 header's checksum made right again.
pub fn right(frame: &mut [u8], l3: usize) {
    if frame.len() >= l3 + 20 && frame[l3] >> 4 == 4 {
        frame[l3 + 10..l3 + 12].fill(0);
        let checksum = finish(sum(0, &frame[l3..l3 + 20]));
        frame[l3 + 10..l3 + 12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The fields of [`super::key::Old`] as the model's parser finds them in a frame.
pub fn old(layers: &Layers, frame: &[u8]) -> Vec<(&'static str, u128)> {
    let tags = match layers.l3 {
        14 => 0,
        18 => 1,
        _ => 2,
    };
    let Some(ip) = layers.ip() else { return vec![("tags", tags), ("tos", 0), ("ttl", 0), ("v4", 0), ("v6", 0)] };
    let mut fields = vec![("tags", tags), ("tos", ip.tos.into()), ("ttl", ip.ttl.into()), ("v4", (!ip.v6).into()), ("v6", ip.v6.into())];
    if !ip.v6 {
        fields.push(("checksum", u16::from_be_bytes([frame[layers.l3 + 10], frame[layers.l3 + 11]]).into()));
    }
    fields
}
