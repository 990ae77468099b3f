//! Work requests, as programs say them.
use ferric_abi::codes::WrOpcode;
use ferric_abi::host::Sge;

/// Local buffer of a work request.
pub type LocalSge = Sge;

/// A scatter/gather entry over `len` bytes from `addr` of the region with `lkey`.
#[inline]
pub fn sge(addr: u64, length: u32, lkey: u32) -> LocalSge {
    Sge::default().with_addr(addr).with_length(length).with_lkey(lkey)
}

/// Payload of a send.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// From registered memory.
    Sges(&'a [LocalSge]),
    /// Copied into the work request now; the buffer may be reused at once.
    Inline(&'a [u8]),
    /// It stands in the next slot already ([`crate::QueuePair::place_entries`], [`crate::QueuePair::place_inline`]).
    Placed(Placed),
}

/// What has been put into the next slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    pub(crate) length: u64,
    pub(crate) num_sge: u8,
    pub(crate) inline: bool,
}

/// A send work request.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// The program's number, given back in the completion.
    pub wr_id: u64,
    /// Operation.
    pub opcode: WrOpcode,
    /// Payload.
    pub payload: Payload<'a>,
    /// Remote address (WRITE).
    pub remote_addr: u64,
    /// Remote key (WRITE).
    pub rkey: u32,
    /// Immediate data (the `Imm` operations), or the peer's key to invalidate (`SendInv`).
    pub imm: u32,
    /// Ask for a completion on success.
    pub signaled: bool,
    /// Ask the peer for a solicited event.
    pub solicited: bool,
}

/// An RDMA READ: bytes of the peer's memory into registered memory of our own (with the right to local writes).
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest<'a> {
    /// The program's number.
    pub wr_id: u64,
    /// Where the bytes go.
    pub sges: &'a [LocalSge],
    /// Where they are.
    pub remote_addr: u64,
    /// Remote key.
    pub rkey: u32,
    /// Ask for a completion on success.
    pub signaled: bool,
    /// Not before the READs and atomics posted earlier are done.
    pub fence: bool,
}

/// What an atomic does to the 8 bytes it is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// Becomes `swap` if it is `compare`.
    CompareSwap {
        /// Value expected.
        compare: u64,
        /// Value put in its place.
        swap: u64,
    },
    /// Grows by this much, modulo 2^64.
    FetchAdd(u64),
}

/// An atomic operation on 8 aligned bytes of the peer's memory; what was there before comes back.
#[derive(Clone, Copy, Debug)]
pub struct AtomicRequest<'a> {
    /// The program's number.
    pub wr_id: u64,
    /// What to do.
    pub op: AtomicOp,
    /// Where the 8 bytes found go.
    pub sges: &'a [LocalSge],
    /// Address of the 8 bytes.
    pub remote_addr: u64,
    /// Remote key.
    pub rkey: u32,
    /// Ask for a completion on success.
    pub signaled: bool,
    /// Not before the READs and atomics posted earlier are done.
    pub fence: bool,
}

/// What a FLUSH is about (IBTA annex A19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// So many bytes from the remote address on.
    Range(u32),
    /// The whole region of the key; the address does not count.
    Region,
}

/// A FLUSH: complete when what earlier requests of the queue pair have written is where the peer's processors, and devices, see it.
#[derive(Clone, Copy, Debug)]
pub struct FlushRequest {
    /// The program's number.
    pub wr_id: u64,
    /// What is flushed.
    pub what: Flushed,
    /// Visible to all at the peer (global placement); it has to be asked for this or for `persistent`.
    pub global: bool,
    /// Survives a loss of power at the peer; cards of this kind refuse it.
    pub persistent: bool,
    /// Where it begins.
    pub remote_addr: u64,
    /// Remote key.
    pub rkey: u32,
    /// Ask for a completion on success.
    pub signaled: bool,
    /// Not before the READs and atomics posted earlier are done.
    pub fence: bool,
}

/// An ATOMIC WRITE: 8 aligned bytes of the peer's memory change at once (IBTA annex A19).
#[derive(Clone, Copy, Debug)]
pub struct AtomicWriteRequest {
    /// The program's number.
    pub wr_id: u64,
    /// The bytes, as they will lie in memory.
    pub value: [u8; 8],
    /// Address of the 8 bytes.
    pub remote_addr: u64,
    /// Remote key, with the right to WRITE.
    pub rkey: u32,
    /// Ask for a completion on success.
    pub signaled: bool,
    /// Not before the READs and atomics posted earlier are done.
    pub fence: bool,
}

/// A receive work request.
#[derive(Clone, Copy, Debug)]
pub struct RecvRequest<'a> {
    /// The program's number.
    pub wr_id: u64,
    /// Where to put the message.
    pub sges: &'a [LocalSge],
}
