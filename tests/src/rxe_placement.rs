//! What Linux' `rdma_rxe` does otherwise than annex A19 has it (seen in kernels up to 7.3), for a relay between it and a card.
//!
//! * A FLUSH or an ATOMIC WRITE that it sends again has lost its address: it is zero then.
//! * The answer to a FLUSH is given once: a duplicate of the request is dropped.
//! * The ICRC of a FLUSH. Its table of opcodes says nothing of where the payload of a FLUSH begins, so what it takes for the payload are all bytes
//!   from the BTH on: these enter the CRC a second time, unmasked. Both ends do so, and Linux speaks to Linux; by annex A17.3.3 each of the packets is damaged.
use ferric_abi::wire::{opcode, Bth, Eth, Feth, Ipv4, Ipv6, Reth, Udp, Vlan, ICRC_BYTES};
use ferric_hdl::net::icrc::model::{crc, icrc, packet_end};
use std::collections::HashSet;

/// BTH, FETH and RETH.
const HEADERS: usize = Bth::BYTES + Feth::BYTES + Reth::BYTES;

/// Where the ICRC of a frame is, the right one and Linux'; `None`: it is no FLUSH. The frame has passed for RoCEv2.
fn both(frame: &[u8]) -> Option<(usize, [u8; 4], [u8; 4])> {
    let (end, ..) = packet_end(frame)?;
    let at = end.checked_sub(ICRC_BYTES)?;
    let headers = frame.get(at.checked_sub(HEADERS)?..at)?;
    let right = icrc(frame)?;
    (headers[0] == opcode::FLUSH).then(|| (at, right.to_le_bytes(), (!crc(!right, headers)).to_le_bytes()))
}

/// Gives a FLUSH whose ICRC is right the one that Linux wants (`to_linux`), or one of Linux' the right one. Any other frame, and what is damaged, stays as it is.
pub fn translate(frame: &mut [u8], to_linux: bool) {
    let Some((at, right, linux)) = both(frame) else { return };
    let (from, to) = if to_linux { (right, linux) } else { (linux, right) };
    if frame[at..at + ICRC_BYTES] == from {
        frame[at..at + ICRC_BYTES].copy_from_slice(&to);
    }
}

/// Which frames must not be lost, because Linux cannot repeat them.
#[derive(Default)]
pub struct Once {
    /// PSNs of the FLUSH requests that have gone to Linux.
    flushes: HashSet<u32>,
}

impl Once {
    /// Whether the frame must arrive. It has passed for RoCEv2.
    pub fn has_to_arrive(&mut self, frame: &[u8], from_linux: bool) -> bool {
        let Some((_, vlan, ipv6)) = packet_end(frame) else { return false };
        let at = Eth::BYTES + if vlan { Vlan::BYTES } else { 0 } + if ipv6 { Ipv6::BYTES } else { Ipv4::BYTES } + Udp::BYTES;
        let Some(bth) = frame.get(at..).and_then(|rest| rest.first_chunk()).copied().map(Bth) else { return false };
        match (bth.opcode(), from_linux) {
            (opcode::FLUSH, false) => {
                self.flushes.insert(bth.psn());
                false
            }
            (opcode::ATOMIC_WRITE, true) => true,
            (opcode::ATOMIC_WRITE, false) => {
                // The number has gone round, or is another queue pair's.
                self.flushes.remove(&bth.psn());
                false
            }
            (opcode::READ_RESPONSE_ONLY, true) => self.flushes.contains(&bth.psn()),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_cannot_repeat_has_to_arrive() {
        let frame = |op: u8, psn: u8| {
            let mut f = [0x52; 12].to_vec();
            f.extend([8, 0]);
            f.extend(0x4500_0030_2004_0000_4011_0699_0a09_0002_u128.to_be_bytes());
            f.extend([0x0a, 9, 0, 1, 0xc0, 0x36, 0x12, 0xb7, 0, 0x1c, 0, 0]);
            f.extend([op, 0, 0xff, 0xff, 0, 0, 0, 3, 0x80, 0, 0, psn, 0, 0, 0, 0, 0, 0, 0, 0]);
            f
        };
        let mut once = Once::default();
        assert!(!once.has_to_arrive(&frame(opcode::READ_RESPONSE_ONLY, 7), true), "no FLUSH has this PSN");
        assert!(!once.has_to_arrive(&frame(opcode::FLUSH, 7), false), "the card can repeat it");
        assert!(once.has_to_arrive(&frame(opcode::READ_RESPONSE_ONLY, 7), true));
        assert!(!once.has_to_arrive(&frame(opcode::READ_RESPONSE_ONLY, 7), false));
        assert!(once.has_to_arrive(&frame(opcode::ATOMIC_WRITE, 8), true) && !once.has_to_arrive(&frame(opcode::ATOMIC_WRITE, 8), false));
        assert!(!once.has_to_arrive(&frame(opcode::ACKNOWLEDGE, 8), true));
    }

    /// A FLUSH that `rdma_rxe` of kernel 7.3.4 has sent.
    #[test]
    fn the_icrc_of_a_packet_from_linux_becomes_the_right_one() {
        let mut frame = [0x52; 12].to_vec();
        frame.extend([8, 0]);
        frame.extend(0x4500_0040_2000_4000_4011_0699_0a09_0002_u128.to_be_bytes());
        frame.extend(0x0a09_0001_c036_12b7_002c_0000_u128.to_be_bytes()[4..].iter());
        frame.extend(0x1c00_ffff_0000_0003_80ff_fff7_0000_0001_u128.to_be_bytes());
        frame.extend(0x0000_7fbc_79af_4010_0000_0101_0000_0c07_u128.to_be_bytes());
        frame.extend([0x98, 0xe0, 0xe0, 0x35]);
        let sent = frame.clone();
        translate(&mut frame, true);
        assert_eq!(frame, sent, "its ICRC is not right");
        translate(&mut frame, false);
        assert_eq!(frame[74..], icrc(&frame).unwrap().to_le_bytes());
        translate(&mut frame, true);
        assert_eq!(frame, sent);
        // Damaged, or no FLUSH.
        for at in [42, 50, 76] {
            let mut other = sent.clone();
            other[at] ^= 1;
            let kept = other.clone();
            translate(&mut other, false);
            assert_eq!(other, kept);
        }
    }
}
