//! From headers to bytes.
use super::carriage::Carriage;
use super::headers::{Pds, Ses};
use super::{crc32c, Registers};

/// Headers and payload of a frame to be built. Type and next header stand in the records already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// What carries it.
    pub carriage: Carriage,
    /// Packet delivery.
    pub pds: Pds,
    /// Semantics.
    pub ses: Ses,
    /// Payload.
    pub payload: &'a [u8],
}

/// The frame without its FCS.
pub fn build(message: &Message, registers: &Registers) -> Vec<u8> {
    let (pds, ses) = (message.pds.bytes(), message.ses.bytes());
    let trailer = if registers.crc { ferric_abi::uet::UET_CRC_BYTES } else { 0 };
    let (mut frame, start) = message.carriage.bytes(registers.port, pds.len() + ses.len() + message.payload.len() + trailer);
    frame.extend(pds);
    frame.extend(ses);
    frame.extend(message.payload);
    if registers.crc {
        let crc = crc32c(&frame[start..]);
        frame.extend(if registers.crc_big { crc.to_be_bytes() } else { crc.to_le_bytes() });
    }
    frame
}
