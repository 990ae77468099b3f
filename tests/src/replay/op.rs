//! Operations: what the opcode of a packet says.

/// What a packet does (IBTA table 38), without its position in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// SEND.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ request.
    ReadRequest,
    /// RDMA READ response.
    ReadResponse,
    /// Acknowledge or NAK.
    Ack,
    /// Atomic acknowledge.
    AtomicAck,
    /// Compare and swap.
    CompareSwap,
    /// Fetch and add.
    FetchAdd,
    /// FLUSH (annex A19).
    Flush,
    /// ATOMIC WRITE (annex A19).
    AtomicWrite,
}

impl Kind {
    /// Request, as opposed to a response.
    pub fn is_request(self) -> bool {
        !matches!(self, Kind::ReadResponse | Kind::Ack | Kind::AtomicAck)
    }
    /// Answered by a frame that is more than an acknowledge.
    pub fn has_response(self) -> bool {
        self.brings_data() || matches!(self, Kind::Flush | Kind::AtomicWrite)
    }
    /// The answer carries bytes for the requester's memory.
    pub fn brings_data(self) -> bool {
        matches!(self, Kind::ReadRequest | Kind::CompareSwap | Kind::FetchAdd)
    }
    /// Name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Send => "SEND",
            Kind::Write => "RDMA WRITE",
            Kind::ReadRequest => "RDMA READ",
            Kind::ReadResponse => "RDMA READ response",
            Kind::Ack => "ACK",
            Kind::AtomicAck => "atomic ACK",
            Kind::CompareSwap => "compare and swap",
            Kind::FetchAdd => "fetch and add",
            Kind::Flush => "FLUSH",
            Kind::AtomicWrite => "ATOMIC WRITE",
        }
    }
}

/// Operation part of the BTH opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// What it does.
    pub kind: Kind,
    /// First packet of its message.
    pub first: bool,
    /// Last packet of its message.
    pub last: bool,
    /// Carries immediate data.
    pub imm: bool,
    /// Carries a key to invalidate.
    pub invalidate: bool,
}

/// No operation; never produced by `Op::of`.
const RESERVED: Op = Op::plain(Kind::Ack, false, false);

/// Operations by the low five bits of the opcode.
const OPS: [Op; 30] = {
    use Kind::*;
    const fn imm(kind: Kind, first: bool) -> Op {
        Op { imm: true, ..Op::plain(kind, first, true) }
    }
    const fn invalidate(first: bool) -> Op {
        Op { invalidate: true, ..Op::plain(Kind::Send, first, true) }
    }
    [
        Op::plain(Send, true, false),
        Op::plain(Send, false, false),
        Op::plain(Send, false, true),
        imm(Send, false),
        Op::plain(Send, true, true),
        imm(Send, true),
        Op::plain(Write, true, false),
        Op::plain(Write, false, false),
        Op::plain(Write, false, true),
        imm(Write, false),
        Op::plain(Write, true, true),
        imm(Write, true),
        Op::plain(ReadRequest, true, true),
        Op::plain(ReadResponse, true, false),
        Op::plain(ReadResponse, false, false),
        Op::plain(ReadResponse, false, true),
        Op::plain(ReadResponse, true, true),
        Op::plain(Ack, true, true),
        Op::plain(AtomicAck, true, true),
        Op::plain(CompareSwap, true, true),
        Op::plain(FetchAdd, true, true),
        RESERVED,
        invalidate(false),
        invalidate(true),
        RESERVED,
        RESERVED,
        RESERVED,
        RESERVED,
        Op::plain(Flush, true, true),
        Op::plain(AtomicWrite, true, true),
    ]
};

impl Op {
    /// The operation of an opcode, whatever its transport; `None` for reserved codes.
    pub fn of(opcode: u8) -> Option<Self> {
        let op = *OPS.get(usize::from(opcode & 31))?;
        // These and those of annex A19 are of reliable connections alone.
        let reliable = op.invalidate || matches!(op.kind, Kind::Flush | Kind::AtomicWrite);
        (op != RESERVED && (opcode >> 5 == 0 || !reliable)).then_some(op)
    }
    /// An operation that carries neither immediate data nor a key.
    pub const fn plain(kind: Kind, first: bool, last: bool) -> Self {
        Self { kind, first, last, imm: false, invalidate: false }
    }
    /// The RC opcode of this operation.
    pub fn code(self) -> Option<u8> {
        OPS.iter().position(|o| *o == self).map(|i| i as u8)
    }
}
