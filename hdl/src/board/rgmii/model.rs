//! Golden model of the wire: bytes of a frame with preamble and FCS (IEEE 802.3, clauses 3.1.1 and 3.2.9), and what RGMII
//! 1.3 carries in either half of a cycle.

/// Bytes of the longest frame that is not marked as too long, FCS included.
pub const LONGEST: usize = 9600;
/// Bytes of the shortest frame, FCS included.
pub const SHORTEST: usize = 64;
/// Idle bytes between two frames.
pub const GAP: usize = 12;
/// State of the FCS after a frame with its right FCS.
pub const RESIDUE: u32 = 0xdebb_20e3;

/// One byte of the FCS: generator 0x04c11db7, bits reflected. Starts from all ones, is sent inverted, lowest byte first.
pub fn step(state: u32, byte: u8) -> u32 {
    (0..8).fold(state ^ u32::from(byte), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
}

/// The FCS of these bytes, as its four bytes stand on the wire.
pub fn fcs(bytes: &[u8]) -> [u8; 4] {
    (!bytes.iter().fold(!0, |c, b| step(c, *b))).to_le_bytes()
}

/// A frame as it goes out: padded, with FCS, preamble and start delimiter.
pub fn wire(frame: &[u8]) -> Vec<u8> {
    let mut padded = frame.to_vec();
    padded.resize(frame.len().max(SHORTEST - 4), 0);
    let fcs = fcs(&padded);
    [&[0x55; 7][..], &[0xd5], &padded, &fcs].concat()
}

/// A byte, valid and error flag to the nine bits of a cycle: rise and fall, each with the control line on top.
pub fn lanes(byte: u8, valid: bool, error: bool) -> (u64, u64) {
    let (v, e) = (u64::from(valid), u64::from(valid ^ error));
    (u64::from(byte & 15) | v << 4, u64::from(byte >> 4) | e << 4)
}

/// The inverse of [`lanes`].
pub fn from_lanes(rise: u64, fall: u64) -> (u8, bool, bool) {
    let valid = rise >> 4 & 1 == 1;
    ((rise & 15 | (fall & 15) << 4) as u8, valid, valid ^ (fall >> 4 & 1 == 1))
}
