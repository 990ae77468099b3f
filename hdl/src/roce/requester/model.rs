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
    /// Atomics: compare value or addend, swap value.
    pub operands: (u64, u64),
    /// Not before the READs and atomics in front of it are done.
    pub fence: bool,
}

impl WorkRequest {
    fn is_write(&self) -> bool {
        matches!(self.opcode, WrOpcode::Write | WrOpcode::WriteImm)
    }

    /// READ or atomic.
    pub fn asks(&self) -> bool {
        matches!(self.opcode, WrOpcode::Read | WrOpcode::CompareSwap | WrOpcode::FetchAdd)
    }

    /// Executed by the card itself; nothing goes out.
    pub fn is_local(&self) -> bool {
        matches!(self.opcode, WrOpcode::LocalInv | WrOpcode::RegMr)
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

/// The packets of one work request, first PSN given (IBTA 9.2.1, table 38; 9.7.2 on message segmentation). NOPs and local operations have none. A READ takes the PSNs of
/// its answer, and there is one request for each of them: that for the rest from there on, of which a requester sends those it needs.
pub fn packets(qp: QpType, request: &WorkRequest, mtu: u32, first_psn: u32) -> Vec<Packet> {
    if request.opcode == WrOpcode::Nop || request.is_local() {
        return Vec::new();
    }
    let count = packet_count(qp, request.length, mtu);
    let packet = |n: u32| {
        let (first, last) = (n == 0, n + 1 == count);
        let offset = n * mtu;
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
            psn: (first_psn + n) & 0xff_ffff,
            opcode,
            offset,
            length: if last { request.length - offset } else { mtu },
            reth: (request.is_write() && first).then_some((request.raddr, request.rkey, request.length)),
            imm: (imm || inv).then_some(request.imm),
            atomic: None,
            solicited: last && request.solicited && (!request.is_write() || imm),
            last,
        }
    };
    if !request.asks() {
        return (0..count).map(packet).collect();
    }
    let ask = |n: u32| {
        let offset = n * mtu;
        let (compare, swap) = request.operands;
        let base = Packet { psn: (first_psn + n) & 0xff_ffff, opcode: 0x0c, offset, length: 0, reth: None, imm: None, atomic: None, solicited: false, last: true };
        match request.opcode {
            WrOpcode::CompareSwap => Packet { opcode: 0x13, atomic: Some((request.raddr, request.rkey, swap, compare)), ..base },
            WrOpcode::FetchAdd => Packet { opcode: 0x14, atomic: Some((request.raddr, request.rkey, compare, 0)), ..base },
            _ => Packet { reth: Some((request.raddr.wrapping_add(offset.into()), request.rkey, request.length - offset)), ..base },
        }
    };
    (0..count).map(ask).collect()
}

/// `CqeStatus` with which the card must refuse a request without sending anything.
pub fn refusal(qp: QpType, opcode: u8, length: u32, mtu: u32) -> Option<u8> {
    let (malformed, too_long) = (Some(2), Some(1));
    let Some(code) = WrOpcode::from_u8(opcode) else { return malformed };
    let fits_transport = match (qp, code) {
        (_, WrOpcode::Nop) | (QpType::Rc | QpType::Uc, WrOpcode::LocalInv | WrOpcode::RegMr) => return None,
        (QpType::Rc, WrOpcode::CompareSwap | WrOpcode::FetchAdd) => length == 8,
        (QpType::Uc, WrOpcode::Read | WrOpcode::CompareSwap | WrOpcode::FetchAdd | WrOpcode::SendInv) => false,
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
