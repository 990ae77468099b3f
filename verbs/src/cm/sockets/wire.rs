//! What two rsockets tell each other: private data of the connection, and immediate data of each message. Both are rsockets' own, so the peer may be Linux's librdmacm.
//!
//! Numbers of the private data are in network order. Places that are written into the peer's memory later are in the peer's order.

/// Version of the private data.
const VERSION: u8 = 1;
/// The sender is a big-endian machine.
const BIG_ENDIAN: u8 = 1;
/// The sender has said how many mappings it has room for.
const MAPPINGS: u8 = 2;

/// Memory that the peer may write to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Address of the first byte.
    pub addr: u64,
    /// Remote key.
    pub key: u32,
    /// Bytes; entries, where the place is a table.
    pub length: u32,
}

impl Place {
    /// Bytes of a place in memory.
    pub const BYTES: usize = 16;

    /// As the peer reads it in its memory.
    pub fn to_bytes(self, big_endian: bool) -> [u8; Self::BYTES] {
        let mut b = [0; Self::BYTES];
        let (addr, key, length) =
            if big_endian { (self.addr.to_be_bytes(), self.key.to_be_bytes(), self.length.to_be_bytes()) } else { (self.addr.to_le_bytes(), self.key.to_le_bytes(), self.length.to_le_bytes()) };
        b[..8].copy_from_slice(&addr);
        b[8..12].copy_from_slice(&key);
        b[12..].copy_from_slice(&length);
        b
    }

    /// As it stands in this machine's memory, which is little-endian; or in network order.
    pub fn of_bytes(b: [u8; Self::BYTES], big_endian: bool) -> Self {
        let word = |at: usize| [b[at], b[at + 1], b[at + 2], b[at + 3]];
        let long = [b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]];
        if big_endian {
            Self { addr: u64::from_be_bytes(long), key: u32::from_be_bytes(word(8)), length: u32::from_be_bytes(word(12)) }
        } else {
            Self { addr: u64::from_le_bytes(long), key: u32::from_le_bytes(word(8)), length: u32::from_le_bytes(word(12)) }
        }
    }
}

/// A number of mappings in eight bits: as it is up to 128, above that in steps of 256.
pub fn scaled(mappings: u16) -> u8 {
    if mappings <= 128 {
        mappings as u8
    } else {
        128 | (mappings >> 8) as u8
    }
}

/// The number of mappings that eight bits stand for.
pub fn unscaled(b: u8) -> u16 {
    if b <= 128 {
        b.into()
    } else {
        u16::from(b & 127) << 8
    }
}

/// What each side says of itself when it connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// It is a big-endian machine.
    pub big_endian: bool,
    /// Messages of data that it has receives for.
    pub credits: u16,
    /// Mappings that it has room for.
    pub mappings: u16,
    /// Its table of places; `length` is in entries. Room for mappings follows it.
    pub table: Place,
    /// The first part of its receive buffer.
    pub buffer: Place,
}

impl Opening {
    /// Bytes of private data.
    pub const BYTES: usize = 40;

    /// As private data.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut b = [0; Self::BYTES];
        b[0] = VERSION;
        b[1] = MAPPINGS | if self.big_endian { BIG_ENDIAN } else { 0 };
        b[2..4].copy_from_slice(&self.credits.to_be_bytes());
        b[7] = scaled(self.mappings);
        b[8..24].copy_from_slice(&self.table.to_bytes(true));
        b[24..].copy_from_slice(&self.buffer.to_bytes(true));
        b
    }

    /// From private data, which may be longer. `None`: it is not of an rsocket, or makes no sense.
    pub fn of_bytes(b: &[u8]) -> Option<Self> {
        let b: &[u8; Self::BYTES] = b.get(..Self::BYTES)?.try_into().ok()?;
        let place = |at: usize| {
            let mut bytes = [0; Place::BYTES];
            bytes.copy_from_slice(&b[at..at + Place::BYTES]);
            Place::of_bytes(bytes, true)
        };
        let mappings = if b[1] & MAPPINGS != 0 { unscaled(b[7]) } else { 0 };
        let o = Self { big_endian: b[1] & BIG_ENDIAN != 0, credits: u16::from_be_bytes([b[2], b[3]]), mappings, table: place(8), buffer: place(24) };
        (b[0] == VERSION && o.table.length > 0).then_some(o)
    }
}

/// Immediate data of a message: the kind in the upper three bits, a number below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// So many bytes have been written into the receive buffer.
    Data(u32),
    /// Messages of data that have been granted since the connection was made (modulo 65,536); a place may have been written into the table.
    Credits(u16),
    /// A mapping has been written into the table.
    Mapped(u32),
    /// The sender neither sends nor receives any more.
    Disconnect,
    /// Nothing but a sign of life.
    KeepAlive,
    /// The sender sends no more.
    Shutdown,
    /// Of a kind that is not defined.
    Unknown(u32),
}

/// Bits of the number.
const NUMBER: u32 = (1 << 29) - 1;

impl Message {
    /// As immediate data.
    pub fn to_imm(self) -> u32 {
        let (kind, number) = match self {
            Self::Data(n) => (0, n),
            Self::Credits(n) => (4, n.into()),
            Self::Mapped(n) => (6, n),
            Self::Disconnect => (7, 0),
            Self::KeepAlive => (7, 1),
            Self::Shutdown => (7, 2),
            Self::Unknown(imm) => return imm,
        };
        kind << 29 | number & NUMBER
    }

    /// From immediate data.
    pub fn of_imm(imm: u32) -> Self {
        match (imm >> 29, imm & NUMBER) {
            (0, n) => Self::Data(n),
            (4, n) => Self::Credits(n as u16),
            (6, n) => Self::Mapped(n),
            (7, 0) => Self::Disconnect,
            (7, 1) => Self::KeepAlive,
            (7, 2) => Self::Shutdown,
            _ => Self::Unknown(imm),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those of rsockets' documentation, put together by hand.
    #[test]
    fn private_data_are_those_of_rsockets() {
        let table = Place { addr: 0x0102_0304_0506_0708, key: 0x1122_3344, length: 2 };
        let buffer = Place { addr: 0x7f00_0000_1000, key: 0x5566_7788, length: 0x1_0000 };
        let o = Opening { big_endian: false, credits: 384, mappings: 1, table, buffer };
        let bytes = [
            1, 2, 1, 0x80, 0, 0, 0, 1, //
            1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 2, //
            0, 0, 0x7f, 0, 0, 0, 0x10, 0, 0x55, 0x66, 0x77, 0x88, 0, 1, 0, 0,
        ];
        assert_eq!(o.to_bytes(), bytes);
        assert_eq!(Opening::of_bytes(&[&bytes[..], &[0; 16]].concat()), Some(o));
        let changed = |at: usize, to: u8| {
            let mut b = bytes;
            b[at] = to;
            Opening::of_bytes(&b)
        };
        assert_eq!([changed(0, 2), changed(23, 0), Opening::of_bytes(&bytes[..39]), Opening::of_bytes(&[])], [None; 4]);
        assert_eq!(changed(1, 0), Some(Opening { mappings: 0, ..o }));
        assert_eq!(changed(1, 3), Some(Opening { big_endian: true, ..o }));
        assert_eq!(table.to_bytes(false), [8, 7, 6, 5, 4, 3, 2, 1, 0x44, 0x33, 0x22, 0x11, 2, 0, 0, 0]);
        assert_eq!(Place::of_bytes(table.to_bytes(false), false), table);
    }

    #[test]
    fn messages_have_their_numbers() {
        let all = [
            (Message::Data(65_536), 65_536),
            (Message::Credits(384), 0x8000_0180),
            (Message::Mapped(3), 0xc000_0003),
            (Message::Disconnect, 0xe000_0000),
            (Message::KeepAlive, 0xe000_0001),
            (Message::Shutdown, 0xe000_0002),
            (Message::Unknown(0x2000_0001), 0x2000_0001),
            (Message::Unknown(0xe000_0003), 0xe000_0003),
        ];
        for (message, imm) in all {
            assert_eq!((message.to_imm(), Message::of_imm(imm)), (imm, message));
        }
        // The credits of Linux may have a seventeenth bit.
        assert_eq!(Message::of_imm(0x8001_0005), Message::Credits(5));
    }

    #[test]
    fn mappings_come_in_steps() {
        assert_eq!([0, 1, 128, 129, 255, 256, 600, 0x7f00].map(|n| unscaled(scaled(n))), [0, 1, 128, 128, 128, 256, 512, 0x7f00]);
    }
}
