//! The ICRC of a FLUSH as Linux' `rdma_rxe` has it. Its table of opcodes says nothing of where the payload of a FLUSH begins, so what it takes for the payload are all bytes from
//! the BTH on: these enter the CRC a second time, unmasked (seen in kernels up to 7.3). Both ends do so, and Linux speaks to Linux; by annex A17.3.3 each of the packets is damaged.
use ferric_abi::wire::{opcode, Bth, Feth, Reth, ICRC_BYTES};
use ferric_hdl::net::icrc::model::{crc, icrc, packet_end};

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

#[cfg(test)]
mod tests {
    use super::*;

    /// A FLUSH that `rdma_rxe` of kernel 7.3.4 has sent.
    #[test]
    fn the_icrc_of_a_packet_from_linux_becomes_the_right_one() {
        let mut frame = [0x52; 12].to_vec();
        frame.extend([8, 0]);
        frame.extend(0x4500_0040_2004_0000_4011_0699_0a09_0002_u128.to_be_bytes());
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
