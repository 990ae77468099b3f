//! Which extended headers follow the BTH: IBTA volume 1, table 38, and 9.2 for their sizes.

/// Extended headers of one opcode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Bytes of all of them.
    pub len: usize,
    /// RETH or AtomicETH: virtual address and remote key come first.
    pub address: bool,
    /// RETH: DMA length follows them.
    pub length: bool,
    /// FETH in front of the RETH; it is told where immediate data is.
    pub feth: bool,
    /// DETH first.
    pub deth: bool,
    /// AETH first.
    pub aeth: bool,
    /// AtomicETH: swap or addend, then compare, follow address and key.
    pub atomic: bool,
    /// AtomicAckETH behind the AETH.
    pub atomic_ack: bool,
    /// Where the immediate data (or the key to invalidate, IETH) is, bytes behind the BTH.
    pub imm: Option<usize>,
}

const RETH: usize = 16;
const FETH: usize = 4;
const DETH: usize = 8;
const AETH: usize = 4;
const IMM: usize = 4;

impl Headers {
    /// Headers of `opcode`. Unknown opcodes and the classes RD and XRC have none here: what follows the BTH is payload.
    pub fn of(opcode: u8) -> Self {
        let none = Self::default();
        let imm = Self { len: IMM, imm: Some(0), ..none };
        let reth = Self { len: RETH, address: true, length: true, ..none };
        let aeth = Self { len: AETH, aeth: true, ..none };
        match opcode {
            // RC, UC: SEND and WRITE
            0x03 | 0x05 | 0x09 | 0x23 | 0x25 | 0x29 => imm,
            0x06 | 0x0a | 0x26 | 0x2a => reth,
            0x0b | 0x2b => Self { len: RETH + IMM, imm: Some(RETH), ..reth },
            // RC: READ, acknowledge, atomics, SEND with invalidate
            0x0c => reth,
            0x0d | 0x0f..=0x11 => aeth,
            0x12 => Self { len: AETH + 8, atomic_ack: true, ..aeth },
            0x13 | 0x14 => Self { len: 28, address: true, atomic: true, ..none },
            0x16 | 0x17 => imm,
            // RC: FLUSH, ATOMIC WRITE (annex A19)
            0x1c => Self { len: FETH + RETH, feth: true, imm: Some(0), ..reth },
            0x1d => reth,
            // UD
            0x64 => Self { len: DETH, deth: true, ..none },
            0x65 => Self { len: DETH + IMM, deth: true, imm: Some(DETH), ..none },
            _ => none,
        }
    }
}
