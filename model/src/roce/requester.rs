//! What the requester must put on the wire and report for a list of work requests, however often it has to try.

use ferric_abi::codes::{QpType, WrOpcode};

/// A send work request as far as the requester looks at it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkRequest {
    pub opcode: WrOpcode,
    pub signaled: bool,
    pub solicited: bool,
    pub imm: u32,
    pub raddr: u64,
    pub rkey: u32,
    /// Bytes.
    pub length: u32,
    /// Atomics: compare value or addend, swap value. ATOMIC WRITE: the value. FLUSH: bytes.
    pub operands: (u64, u64),
    /// Not before the READs and atomics in front of it are done.
    pub fence: bool,
}

impl WorkRequest {
    fn is_write(&self) -> bool {
        matches!(self.opcode, WrOpcode::Write | WrOpcode::WriteImm)
    }

    /// READ, atomic, FLUSH or ATOMIC WRITE: it is done when its answer has come.
    pub fn asks(&self) -> bool {
        matches!(self.opcode, WrOpcode::Read | WrOpcode::CompareSwap | WrOpcode::FetchAdd | WrOpcode::Flush | WrOpcode::AtomicWrite)
    }

    /// Executed by the card itself; nothing goes out.
    pub fn is_local(&self) -> bool {
        matches!(self.opcode, WrOpcode::LocalInv | WrOpcode::RegMr | WrOpcode::BindMw)
    }

    fn has_imm(&self) -> bool {
        matches!(self.opcode, WrOpcode::SendImm | WrOpcode::WriteImm)
    }
}

/// One packet of the one true sequence of a queue pair. PSN and contents belong together for good.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    pub psn: u32,
    pub opcode: u8,
    /// First payload byte in the message.
    pub offset: u32,
    pub length: u32,
    /// FETH, in front of the RETH.
    pub feth: Option<u32>,
    /// RETH: address, key, length of the whole message.
    pub reth: Option<(u64, u32, u32)>,
    pub imm: Option<u32>,
    /// AtomicETH: address, key, swap value or addend, compare value.
    pub atomic: Option<(u64, u32, u64, u64)>,
    pub solicited: bool,
    pub last: bool,
}

/// Packets that a message of `length` bytes takes.
pub fn packet_count(qp: QpType, length: u32, mtu: u32) -> u32 {
    match qp {
        QpType::Rc | QpType::Uc => length.div_ceil(mtu).max(1),
        QpType::Ud | QpType::Raw => 1,
    }
}

/// Packet `n` of a work request whose first PSN is `first_psn` (IBTA 9.2.1, table 38; 9.7.2 on message segmentation). A READ takes the PSNs of its answer, and there
/// is one request for each of them: that for the rest from there on, of which a requester sends those it needs.
pub fn packet(qp: QpType, request: &WorkRequest, mtu: u32, first_psn: u32, n: u32) -> Packet {
    let offset = n * mtu;
    let psn = first_psn.wrapping_add(n) & 0xff_ffff;
    if request.asks() {
        let (compare, swap) = request.operands;
        let base = Packet { psn, opcode: 0x0c, offset, length: 0, feth: None, reth: None, imm: None, atomic: None, solicited: false, last: true };
        return match request.opcode {
            WrOpcode::CompareSwap => Packet { opcode: 0x13, atomic: Some((request.raddr, request.rkey, swap, compare)), ..base },
            WrOpcode::FetchAdd => Packet { opcode: 0x14, atomic: Some((request.raddr, request.rkey, compare, 0)), ..base },
            // The length of what is flushed is none of the answer's.
            WrOpcode::Flush => Packet { opcode: 0x1c, feth: Some(request.imm), reth: Some((request.raddr, request.rkey, compare as u32)), ..base },
            WrOpcode::AtomicWrite => Packet { opcode: 0x1d, length: 8, reth: Some((request.raddr, request.rkey, 8)), ..base },
            _ => Packet { reth: Some((request.raddr.wrapping_add(offset.into()), request.rkey, request.length - offset)), ..base },
        };
    }
    let (first, last) = (n == 0, n + 1 == packet_count(qp, request.length, mtu));
    let imm = last && request.has_imm();
    let inv = last && request.opcode == WrOpcode::SendInv;
    let position = match (first, last) {
        (true, true) => 4 + u8::from(imm),
        (true, false) => 0,
        (false, false) => 1,
        (false, true) => 2 + u8::from(imm),
    };
    let family = if request.is_write() { 6 } else { 0 };
    let opcode = match qp {
        QpType::Rc if inv => 0x16 + u8::from(first),
        QpType::Rc => family + position,
        QpType::Uc => 0x20 + family + position,
        QpType::Ud => 0x60 + position,
        QpType::Raw => 0,
    };
    Packet {
        psn,
        opcode,
        offset,
        length: if last { request.length - offset } else { mtu },
        feth: None,
        reth: (request.is_write() && first).then_some((request.raddr, request.rkey, request.length)),
        imm: (imm || inv).then_some(request.imm),
        atomic: None,
        solicited: last && request.solicited && (!request.is_write() || imm),
        last,
    }
}

/// All packets of a work request. NOPs and local operations have none.
pub fn packets(qp: QpType, request: &WorkRequest, mtu: u32, first_psn: u32) -> Vec<Packet> {
    if request.opcode == WrOpcode::Nop || request.is_local() {
        return Vec::new();
    }
    (0..packet_count(qp, request.length, mtu)).map(|n| packet(qp, request, mtu, first_psn, n)).collect()
}

/// Waiting times of RNR NAKs in units of 10 us, by timer code: IBTA volume 1, table 46.
pub const RNR_10US: [u32; 32] = [65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152];

/// Ticks of 1.024 us for a code, rounded up.
pub fn rnr_ticks(code: usize) -> u32 {
    (RNR_10US[code & 31] * 10_000).div_ceil(1024)
}

/// Larger codes of the local ACK timeout count as this one: its ticks fill the timer.
pub const LONGEST_TIMEOUT: u64 = 28;
/// Ticks of code 0 (IBTA 9.7.6.1.3: 4.096 us).
pub const TIMEOUT_TICKS: u64 = 4;

/// Packets on their way, and work requests of which some packet is: the window of a queue pair.
pub const WINDOW: u32 = 512;
/// See [`WINDOW`].
pub const TRACKED: u16 = 256;
/// Packets behind which an acknowledge is asked for in the midst of a message: those whose PSN ends with so many ones.
pub const ASK_EVERY: u32 = 16;

/// `CqeStatus` with which the card must refuse a request without sending anything.
pub fn refusal(qp: QpType, opcode: u8, length: u32, mtu: u32) -> Option<u8> {
    let (malformed, too_long) = (Some(2), Some(1));
    let Some(code) = WrOpcode::from_u8(opcode) else { return malformed };
    let fits_transport = match (qp, code) {
        (_, WrOpcode::Nop) | (QpType::Rc | QpType::Uc, WrOpcode::LocalInv | WrOpcode::RegMr | WrOpcode::BindMw) => return None,
        (QpType::Rc, WrOpcode::CompareSwap | WrOpcode::FetchAdd) => length == 8,
        // Nothing comes back.
        (QpType::Rc, WrOpcode::Flush | WrOpcode::AtomicWrite) => length == 0,
        (QpType::Uc, WrOpcode::Read | WrOpcode::CompareSwap | WrOpcode::FetchAdd | WrOpcode::Flush | WrOpcode::AtomicWrite | WrOpcode::SendInv) => false,
        (QpType::Rc | QpType::Uc, _) | (_, WrOpcode::Send) => true,
        (QpType::Ud, WrOpcode::SendImm) => true,
        _ => false,
    };
    let limit = match qp {
        QpType::Rc | QpType::Uc => 0x7fff_ffff,
        QpType::Ud => mtu,
        QpType::Raw => 9216,
    };
    if !fits_transport {
        malformed
    } else if length > limit || (qp == QpType::Raw && length == 0) {
        too_long
    } else {
        None
    }
}
