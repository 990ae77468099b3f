//! Bad input: each kind has its name, and none is a panic.
use super::super::carriage::checksum;
use super::super::{parse, Bad, Parsed, Registers};
use super::{frames, registers};
use proptest::prelude::*;

const IP: usize = 14;
const UDP: usize = IP + 20;
const PDS: usize = UDP + 8;
const SES: usize = PDS + 12;

fn altered(change: impl Fn(&mut Vec<u8>)) -> Result<Parsed, Bad> {
    // The published WRITE, without its clear offset, which is ahead of the PSN.
    let mut frame = frames("golden_vectors")[1].clone();
    change(&mut frame);
    // What is changed in the header of IP is meant, so its sum is right.
    if frame.len() > IP + 20 {
        frame[IP + 10..IP + 12].fill(0);
        let sum = checksum(&frame[IP..IP + 20]);
        frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    }
    parse(&frame, &registers())
}

/// Cuts the frame, and says so in the headers of IP and UDP.
fn cut(frame: &mut Vec<u8>, to: usize) {
    frame.truncate(to);
    let (ip, udp) = ((to - IP) as u16, (to - UDP) as u16);
    frame[IP + 2..IP + 4].copy_from_slice(&ip.to_be_bytes());
    frame[UDP + 4..UDP + 6].copy_from_slice(&udp.to_be_bytes());
}

#[test]
fn what_is_wrong_has_a_name() {
    let prologue = |kind: u16, next: u16| move |f: &mut Vec<u8>| f[PDS..PDS + 2].copy_from_slice(&(kind << 11 | next << 7).to_be_bytes());
    assert!(altered(|_| ()).is_ok());
    assert_eq!(altered(|f| f.truncate(30)), Err(Bad::Truncated));
    assert_eq!(altered(|f| f[IP] = 0x46), Err(Bad::Fragment));
    assert_eq!(altered(|f| f[IP + 7] = 1), Err(Bad::Fragment));
    assert_eq!(altered(|f| f[IP + 3] = 19), Err(Bad::IpLength));
    assert_eq!(altered(|f| f[IP + 2] = 9), Err(Bad::IpLength));
    assert_eq!(altered(|f| f[UDP + 5] ^= 1), Err(Bad::UdpLength));
    assert_eq!(altered(|f| f[UDP + 3] ^= 1), Err(Bad::NotUet));
    assert_eq!(altered(|f| f[IP + 9] = 6), Err(Bad::NotUet));
    assert_eq!(altered(|f| f[0] |= 1), Err(Bad::Group));
    assert_eq!(altered(|f| f[6] |= 1), Err(Bad::Group));
    assert_eq!(altered(|f| cut(f, PDS + 11)), Err(Bad::PdsShort));
    assert_eq!(altered(|f| cut(f, SES + 43)), Err(Bad::SesShort));
    let mut unsummed = frames("golden_vectors")[1].clone();
    unsummed[IP + 8] ^= 1;
    assert_eq!(parse(&unsummed, &registers()), Err(Bad::IpChecksum));
    for kind in [0, 15, 31] {
        assert_eq!(altered(prologue(kind, 3)), Err(Bad::PdsType(kind as u8)));
    }
    for next in 7..16 {
        assert_eq!(altered(prologue(2, next)), Err(Bad::NextHeader(next as u8)));
    }
    for (kind, next) in [(2, 0), (2, 4), (7, 3), (10, 4), (4, 4), (5, 3), (6, 1)] {
        assert_eq!(altered(prologue(kind, next)), Err(Bad::NextNotAllowed(next as u8)));
    }
    assert_eq!(altered(prologue(1, 3)), Err(Bad::Tss));
    assert_eq!(altered(prologue(9, 0)), Err(Bad::Ccx));
    assert_eq!(altered(prologue(12, 0)), Err(Bad::Ccx));
    assert_eq!(altered(|f| f[SES + 1] |= 0x40), Err(Bad::Version(1)));
    assert_eq!(altered(|f| f[SES + 43] = 9), Err(Bad::PayloadLength));
    assert_eq!(altered(|f| f[SES] = 7), Err(Bad::Datagram));
    let later = |f: &mut Vec<u8>| {
        f[SES + 1] &= !1;
        f[SES + 32..SES + 44].copy_from_slice(&[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8]);
    };
    assert!(altered(later).is_ok());
    assert_eq!(
        altered(|f| {
            later(f);
            f[SES + 35] = 9
        }),
        Err(Bad::PayloadLength)
    );
    assert_eq!(
        altered(|f| {
            later(f);
            f[SES + 39] = 1
        }),
        Err(Bad::Range)
    );
    assert_eq!(
        altered(|f| {
            later(f);
            f[SES + 36..SES + 40].fill(0xff)
        }),
        Err(Bad::Range)
    );
    let small = |f: &mut Vec<u8>| {
        f[PDS..PDS + 2].copy_from_slice(&(2u16 << 11 | 1 << 7).to_be_bytes());
        f[SES + 1] = 3;
        f[SES + 2..SES + 4].copy_from_slice(&[0, 32]);
    };
    assert!(altered(small).is_ok());
    assert_eq!(
        altered(|f| {
            small(f);
            f[SES + 1] |= 4
        }),
        Err(Bad::HeaderData)
    );
    assert_eq!(
        altered(|f| {
            small(f);
            f[SES + 1] &= !2
        }),
        Err(Bad::ShortForm)
    );
}

proptest! {
    /// Random bytes, and recorded frames with bytes changed and ends cut.
    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), which in 0..40usize, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), end in any::<prop::sample::Index>(), crc in any::<bool>()) {
        let all: Vec<_> = ["golden_vectors", "xdp2_uet_pds", "xdp2_uet_ses"].iter().flat_map(|name| frames(name)).collect();
        let registers = Registers { crc, ..Registers::default() };
        let _ = parse(&bytes, &registers);
        let mut frame = all[which].clone();
        for (at, value) in changes {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        let _ = parse(&frame, &registers);
        frame.truncate(end.index(frame.len()));
        if let Ok(parsed) = parse(&frame, &registers) {
            prop_assert!(parsed.payload.len() < frame.len());
            let _ = parsed.reserved();
        }
    }
}
