//! Images for FPGAs, as far as it takes to know which part one is for and which addresses it fills.

use std::collections::BTreeMap;

/// What an image is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Xilinx `.bit`: the part's name from its header.
    XilinxBit { part: String },
    /// Intel HEX for a flash: first address, address behind the last byte.
    Mcs { low: u32, high: u32 },
    /// ECP5 `.bit`.
    Ecp5,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub kind: Kind,
    /// IDCODE that the configuration logic will compare with its own.
    pub idcode: Option<u32>,
    /// Bytes that go into a flash.
    pub size: u32,
}

/// Why a file is no image.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ImageError {
    #[error("it is neither a Xilinx .bit, nor an .mcs, nor an ECP5 .bit")]
    Unknown,
    #[error("it ends in the middle of {0}")]
    Short(&'static str),
    #[error("line {0} is not Intel HEX, or its checksum is wrong")]
    Hex(usize),
    #[error("it writes address {0:#010x} twice")]
    Overlap(u32),
}

/// Start of a `.bit` (the length and the first bytes of a fixed field).
const BIT: [u8; 13] = [0, 9, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0, 0, 1];
/// Synchronisation word of Xilinx configuration data (UG570, table 9-1).
const SYNC: [u8; 4] = [0xaa, 0x99, 0x55, 0x66];
/// Packet header: write one word to the IDCODE register (UG570, chapter 9).
const WRITE_IDCODE: [u8; 4] = [0x30, 0x01, 0x80, 0x01];
/// ECP5 preamble (FPGA-TN-02039).
const ECP5: [u8; 4] = [0xff, 0xff, 0xbd, 0xb3];
/// ECP5 command VERIFY_ID with its operand bytes.
const VERIFY_ID: [u8; 4] = [0xe2, 0, 0, 0];

/// Looks at an image.
pub fn read(bytes: &[u8]) -> Result<Image, ImageError> {
    if bytes.starts_with(&BIT) {
        return bit(bytes);
    }
    if bytes.first() == Some(&b':') {
        return mcs(bytes);
    }
    // Comments come before an ECP5's preamble.
    match at(bytes, &ECP5).filter(|_| bytes.first() == Some(&0xff)) {
        Some(start) => Ok(Image { kind: Kind::Ecp5, idcode: word_after(&bytes[start..], &VERIFY_ID), size: bytes.len() as u32 }),
        None => Err(ImageError::Unknown),
    }
}

fn at(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|w| w == what)
}

/// The big-endian word behind the first occurrence of `what`.
fn word_after(bytes: &[u8], what: &[u8]) -> Option<u32> {
    let start = at(bytes, what)? + what.len();
    bytes.get(start..start + 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn xilinx_idcode(data: &[u8]) -> Option<u32> {
    word_after(&data[at(data, &SYNC)?..], &WRITE_IDCODE)
}

fn bit(bytes: &[u8]) -> Result<Image, ImageError> {
    let mut rest = &bytes[BIT.len()..];
    let mut part = None;
    loop {
        let (&key, after) = rest.split_first().ok_or(ImageError::Short("its header"))?;
        if key == b'e' {
            let (length, data) = after.split_first_chunk::<4>().ok_or(ImageError::Short("its header"))?;
            let length = u32::from_be_bytes(*length);
            let data = data.get(..length as usize).ok_or(ImageError::Short("its data"))?;
            let part = part.ok_or(ImageError::Unknown)?;
            return Ok(Image { kind: Kind::XilinxBit { part }, idcode: xilinx_idcode(data), size: length });
        }
        let (length, after) = after.split_first_chunk::<2>().ok_or(ImageError::Short("its header"))?;
        let length = usize::from(u16::from_be_bytes(*length));
        let text = after.get(..length).ok_or(ImageError::Short("its header"))?;
        if key == b'b' {
            part = Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_string());
        }
        rest = &after[length..];
    }
}

fn mcs(bytes: &[u8]) -> Result<Image, ImageError> {
    let mut memory: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let (mut base, mut next) = (0u32, None);
    let mut ended = false;
    for (number, line) in String::from_utf8_lossy(bytes).lines().enumerate() {
        let bad = || ImageError::Hex(number + 1);
        let digits = line.trim_end().strip_prefix(':').filter(|d| d.is_ascii() && d.len() % 2 == 0).ok_or_else(bad)?;
        let record: Vec<u8> = (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16)).collect::<Result<_, _>>().map_err(|_| bad())?;
        let [length, high, low, kind, data @ .., _] = record.as_slice() else { return Err(bad()) };
        if usize::from(*length) != data.len() || record.iter().fold(0u8, |s, b| s.wrapping_add(*b)) != 0 || ended {
            return Err(bad());
        }
        match (kind, data) {
            (0, _) => {
                let address = base.wrapping_add(u32::from(u16::from_be_bytes([*high, *low])));
                // Runs are kept, so that a file of 100 MB has few entries.
                match next.filter(|(end, _)| *end == address).and_then(|(_, start)| memory.get_mut(&start).map(|run| (run, start))) {
                    Some((run, start)) => {
                        run.extend(data);
                        next = Some((address + data.len() as u32, start));
                    }
                    None => {
                        if memory.insert(address, data.to_vec()).is_some() {
                            return Err(ImageError::Overlap(address));
                        }
                        next = Some((address + data.len() as u32, address));
                    }
                }
            }
            (1, []) => ended = true,
            (4, [high, low]) => base = u32::from_be_bytes([*high, *low, 0, 0]),
            (2, [high, low]) => base = u32::from(u16::from_be_bytes([*high, *low])) << 4,
            _ => return Err(bad()),
        }
    }
    if !ended {
        return Err(ImageError::Short("its records"));
    }
    let mut end = 0;
    for (start, run) in &memory {
        if *start < end {
            return Err(ImageError::Overlap(*start));
        }
        end = start + run.len() as u32;
    }
    let low = *memory.keys().next().ok_or(ImageError::Short("its records"))?;
    let idcode = memory.values().find_map(|run| xilinx_idcode(run));
    Ok(Image { kind: Kind::Mcs { low, high: end }, idcode, size: memory.values().map(|r| r.len() as u32).sum() })
}
