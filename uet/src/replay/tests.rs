//! Every recorded file passes; with anything altered that is compared, it fails.
use super::capture::transport;
use super::*;
use crate::wire::{checksum, Addresses};
use pcap_file::pcap::PcapReader;

const FILES: [&str; 5] = ["golden_vectors", "ns3_rud_loss_retx", "ns3_rud_write_1pkt", "xdp2_uet_pds", "xdp2_uet_ses"];

fn frames(name: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/../tests/captures/uet/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
    let mut reader = PcapReader::new(std::fs::File::open(&path).unwrap_or_else(|e| panic!("{path}: {e}"))).unwrap();
    std::iter::from_fn(|| Some(reader.next_packet()?.unwrap().data.to_vec())).collect()
}

/// Makes the checksum of UDP right again, as whoever alters a frame on purpose would.
fn sum(frame: &mut [u8]) {
    const IP: usize = 14;
    let udp = IP + 20;
    frame[udp + 6..udp + 8].fill(0);
    let words = [&frame[IP + 12..udp], &[0, 17], &frame[udp + 4..udp + 6], &frame[udp..]].concat();
    frame[udp + 6..udp + 8].copy_from_slice(&checksum(&words).to_be_bytes());
}

#[test]
fn every_recorded_file_passes_in_each_role() {
    for name in FILES {
        let frames = frames(name);
        for role in [Role::Initiator, Role::Target, Role::Both] {
            let outcome = replay(&frames, role).unwrap_or_else(|what| panic!("{name}, {role:?}: {what}"));
            assert_eq!(outcome.exchanged + outcome.samples, frames.len(), "{name}");
            let live = name.starts_with("ns3");
            assert_eq!((outcome.exchanged > 0, outcome.samples == 0), (live, live), "{name}");
        }
    }
}

/// What the peer does otherwise is what its README says.
#[test]
fn deviations_have_names() {
    let outcome = replay(&frames("ns3_rud_loss_retx"), Role::Both).unwrap();
    use Deviation::*;
    let wanted = [SynStays, RetxMissing, ArMissing, ShortNext, ClearBehind, NoResponse, NoState];
    assert_eq!(outcome.deviations, wanted.into_iter().collect());
}

/// Bits that an exchange is free in: the flag ar of requests; what ACKs wish; the room that a target gives, and what it says of congestion; where a bitmap begins that has no bits.
/// What the only packet of a message says of it, and whether it is RUD or ROD, is what the program wanted. The id of a target that is never used again is any. A CLEAR_PSN of the last request is free up to what was acknowledged.
fn free(frame: &[u8], n: usize, bit: usize, alone: bool) -> bool {
    let pds = 14 + 20 + 8;
    let (byte, mask) = (bit / 8 - pds, 0x80 >> (bit % 8));
    let request = frame[pds] >> 3 == 2;
    match byte {
        0 if request && alone => mask == 0x08,
        // The offset of this SYN is the id that the target has.
        1 if request && n == 2 => mask & 0x0c != 0,
        1 if request => mask == 0x08,
        3 if request => n == 6 && mask == 0x02,
        1 => mask & 0x06 != 0,
        12.. if request && alone => true,
        8 | 9 if !request && alone => true,
        13 if !request => true,
        14 | 15 if !request => frame[pds + 16..pds + 24] == [0; 8],
        24..=31 if !request => true,
        _ => false,
    }
}

/// Each bit of each header of the live exchanges, with the checksum of UDP made right.
#[test]
fn every_altered_bit_of_a_header_is_noticed() {
    let mut passed = Vec::new();
    let mut altered = 0;
    for name in ["ns3_rud_write_1pkt", "ns3_rud_loss_retx"] {
        let good = frames(name);
        for n in 0..good.len() {
            let pds = 14 + 20 + 8;
            let request = good[n][pds] >> 3 == 2;
            let som = good[n][pds + 13] & 1 == 1;
            let small = good[n][pds + 1] & 0x80 != 0 && good[n][pds] & 1 == 0;
            let header = match () {
                () if !request => 32,
                () if small => 12 + 20,
                () if som => 12 + 44,
                () => 12 + 32,
            };
            for bit in pds * 8..(pds + header) * 8 {
                let mut frames = good.clone();
                frames[n][bit / 8] ^= 0x80 >> (bit % 8);
                sum(&mut frames[n]);
                altered += 1;
                if !free(&good[n], n, bit, good.len() == 2) && replay(&frames, Role::Both).is_ok() {
                    passed.push(format!("{name} {n}: byte {} mask {:#x}", bit / 8 - pds, 0x80 >> (bit % 8)));
                }
            }
        }
    }
    assert!(altered > 2000);
    assert!(passed.is_empty(), "{} alterations pass: {passed:#?}", passed.len());
}

#[test]
fn frames_that_are_missing_or_out_of_place_are_noticed() {
    let good = frames("ns3_rud_loss_retx");
    for n in 0..good.len() {
        let mut without = good.clone();
        without.remove(n);
        // Acknowledges count together: one in the middle may be missing.
        let acknowledge = n % 2 == 1 && n + 1 < good.len();
        assert_eq!(replay(&without, Role::Both).is_ok(), acknowledge, "without frame {n}");
        if n + 1 < good.len() {
            let mut other = good.clone();
            other.swap(n, n + 1);
            assert!(replay(&other, Role::Both).is_err(), "frames {n} and {} change places", n + 1);
        }
    }
}

#[test]
fn a_frame_by_itself_is_judged_by_its_layout() {
    let good = frames("golden_vectors");
    let at = transport(&crate::wire::layout(&good[1], &registers(false)).unwrap().carriage);
    for (n, byte, value) in [(1, 0, 0x81), (2, 0, 0xf8), (3, 0, 0x78), (1, 0, 0x17)] {
        let mut frames = good.clone();
        frames[n][at + byte] = value;
        assert!(replay(&frames, Role::Both).is_err(), "frame {n}, byte {byte}");
    }
    let mut short = good.clone();
    short[1][at - 3] -= 1;
    assert!(replay(&short, Role::Both).is_err());
    assert!(replay(&[], Role::Both).is_err());
    assert!(matches!(crate::wire::layout(&good[1], &registers(false)).unwrap().carriage.addresses, Addresses::V4(..)));
}

/// A packet that a checksum of UDP says is another is not replayed.
#[test]
fn checksums_are_judged() {
    let mut frames = frames("ns3_rud_write_1pkt");
    let end = frames[0].len() - 1;
    frames[0][end] ^= 1;
    assert!(replay(&frames, Role::Both).is_err());
}
