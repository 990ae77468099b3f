//! What a replay needs of the machine it puts into the exchange. The golden model and the simulated card both are one.
use super::error::Result;
use super::frame::Kind;
use super::ud::{Datagrams, UdSetup};
use ferric_abi::wire::Feth;
use ferric_driver::types::{Mtu, Path};
use ferric_driver::{Access, CqeStatus};

/// Ticks (1.024 us) of a local ACK timeout exponent: 4.096 us * 2^timeout (IBTA 9.9.2.1).
pub fn timeout_ticks(timeout: u8) -> u64 {
    4 << timeout.min(31)
}

/// Microseconds of the RNR NAK timer codes (IBTA table 46).
const RNR_US: [u32; 32] = [
    655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680, 10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680,
    491_520,
];

/// Ticks a requester waits at least after an RNR NAK with this timer code.
pub fn rnr_ticks(code: u8) -> u64 {
    (RNR_US[code as usize & 31] as u64 * 1000).div_ceil(1024)
}

/// The connection as the replaced machine had it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Addresses of the packets it sends.
    pub path: Path,
    /// Path MTU.
    pub mtu: Mtu,
    /// The other side's queue pair number.
    pub peer_qpn: u32,
    /// First PSN sent.
    pub sq_psn: u32,
    /// First PSN expected.
    pub rq_psn: u32,
    /// Local ACK timeout exponent.
    pub timeout: u8,
    /// Transport retries.
    pub retry_cnt: u8,
    /// RNR retries, 7 for ever.
    pub rnr_retry: u8,
    /// RNR NAK timer code it sends.
    pub min_rnr_timer: u8,
    /// What the peer may do on this queue pair.
    pub access: Access,
    /// Work requests that may have to stand in one queue.
    pub depth: usize,
    /// UC instead of RC.
    pub unreliable: bool,
}

/// Protection domain of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// The queue pair's.
    Own,
    /// Another one.
    Other,
}

/// A region to register.
#[derive(Clone, Copy, Debug)]
pub struct RegionSpec {
    /// Bytes.
    pub len: usize,
    /// Wanted address within a 4 KiB page.
    pub page_offset: u64,
    /// Nothing before the first byte belongs to the region (behind the last byte nothing ever does); goes before `page_offset`.
    pub exact: bool,
    /// Rights.
    pub access: Access,
    /// Protection domain.
    pub domain: Domain,
    /// A peer may invalidate its key.
    pub fast: bool,
}

impl RegionSpec {
    /// A region of the queue pair's domain that nobody invalidates, anywhere in its page.
    pub fn new(len: usize, access: Access) -> Self {
        Self { len, page_offset: 0, exact: false, access, domain: Domain::Own, fast: false }
    }
}

/// A registered region.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// The endpoint's own index.
    pub index: usize,
    /// Address of the first byte.
    pub addr: u64,
    /// Local and remote key.
    pub key: u32,
    /// Bytes.
    pub len: usize,
}

/// A piece of a region.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Region.
    pub region: Region,
    /// First byte.
    pub offset: usize,
    /// Bytes.
    pub len: usize,
}

/// What a FLUSH asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flush {
    /// Placement and selectivity.
    pub feth: Feth,
    /// Bytes, unless it is the whole region.
    pub len: u32,
}

impl Flush {
    /// Of the whole region.
    pub fn whole(&self) -> bool {
        self.feth.selectivity() == 1
    }
}

/// A send request.
#[derive(Clone, Copy, Debug)]
pub struct Post {
    /// Number given back in the completion.
    pub id: u64,
    /// Operation: Send, Write, ReadRequest, an atomic, Flush or AtomicWrite.
    pub kind: Kind,
    /// Of an atomic: swap value or addend, and compare value.
    pub operands: (u64, u64),
    /// Immediate data.
    pub imm: Option<u32>,
    /// Key of the peer's that a SEND invalidates.
    pub invalidate: Option<u32>,
    /// Ask for a solicited event.
    pub solicited: bool,
    /// Source, or destination of a READ; `None` for no bytes.
    pub local: Option<Slice>,
    /// Remote address and key.
    pub remote: (u64, u32),
    /// Of a FLUSH.
    pub flush: Option<Flush>,
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// The request's number.
    pub id: u64,
    /// Receive side.
    pub recv: bool,
    /// Outcome.
    pub status: CqeStatus,
    /// Bytes received.
    pub len: u32,
    /// Immediate data.
    pub imm: Option<u32>,
    /// Key that the message has invalidated.
    pub invalidated: Option<u32>,
    /// Solicited event asked for by the sender.
    pub solicited: bool,
}

impl Done {
    /// The completion of a request that brings no more than its outcome.
    pub fn new(id: u64, recv: bool, status: CqeStatus) -> Self {
        Self { id, recv, status, len: 0, imm: None, invalidated: None, solicited: false }
    }
}

/// One machine with one connected queue pair. Time passes only in `settle` (as much as work in flight needs) and `advance`.
pub trait Endpoint {
    /// Its queue pair number.
    fn qpn(&self) -> u32;
    /// Registers memory.
    fn register(&mut self, spec: &RegionSpec) -> Result<Region>;
    /// Puts bytes into a region.
    fn write_memory(&mut self, region: &Region, offset: usize, bytes: &[u8]);
    /// Takes bytes out of a region.
    fn read_memory(&self, region: &Region, offset: usize, len: usize) -> Vec<u8>;
    /// Posts a send request.
    fn post_send(&mut self, post: &Post) -> Result<()>;
    /// Posts a receive request into `place` (`None`: no bytes).
    fn post_recv(&mut self, id: u64, place: Option<Slice>) -> Result<()>;
    /// A frame arrives from the wire.
    fn receive(&mut self, frame: &[u8]);
    /// Runs until nothing more happens without time passing.
    fn settle(&mut self);
    /// Ticks since some start.
    fn ticks(&self) -> u64;
    /// Lets ticks pass, and what they cause happen.
    fn advance(&mut self, ticks: u64);
    /// Takes the next completion.
    fn poll(&mut self) -> Option<Done>;
    /// Takes the frames sent since the last call, with the tick at which each left.
    fn take_frames(&mut self) -> Vec<(u64, Vec<u8>)>;
}

/// Makes endpoints: one per run.
pub trait Factory {
    /// A fresh machine with the connection ready to send.
    fn build(&self, setup: &Setup) -> Result<Box<dyn Endpoint>>;
    /// A fresh machine with a datagram queue pair.
    fn datagrams(&self, setup: &UdSetup) -> Result<Box<dyn Datagrams>>;
}
