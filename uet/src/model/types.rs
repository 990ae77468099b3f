//! What goes into the model and what comes out of it.
use ferric_abi::uet::codes::{AckRequest, ControlType, NackCode};

/// A fabric endpoint, ours or a peer's: a line of the address table.
pub type Peer = u32;

/// How a PDC delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Reliable, in any order.
    Rud,
    /// Reliable, in order; goes back to the first that is missing.
    Rod,
}

/// A message that semantics want sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    /// Its number, unique while it is under way.
    pub id: u16,
    /// Bytes.
    pub bytes: u32,
    /// Its answer carries data, so that the target has to keep it.
    pub fetch: bool,
}

/// A packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Body {
    /// The message's number.
    pub message: u16,
    /// First byte in the message.
    pub offset: u32,
    /// Bytes.
    pub bytes: u32,
    /// Bytes of the whole message.
    pub total: u32,
    /// As in the message.
    pub fetch: bool,
}

impl Body {
    /// Whether no packet follows.
    pub fn last(&self) -> bool {
        self.offset + self.bytes == self.total
    }
}

/// What the target's semantics answer to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Response {
    /// The message's number.
    pub message: u16,
    /// Return code on the wire.
    pub code: u8,
    /// Bytes delivered.
    pub length: u32,
    /// Data of a fetching atomic.
    pub data: Option<u64>,
}

/// Destination's PDC id in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum To {
    /// Not known yet: PSN less Start_PSN.
    Syn(u16),
    /// The id.
    Id(u16),
}

/// Second part of an ACK_CC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sack {
    /// PSNs that may be outstanding, in units.
    pub mpr: u8,
    /// PSN of bit 0.
    pub base: u32,
    /// Bit i: PSN base + i is received.
    pub bitmap: u64,
    /// Bytes received in all, in 256, 24 bits.
    pub bytes: u32,
    /// Newest PSN received less oldest one missing.
    pub ooo: u16,
    /// Ticks from the request's arrival to its ACK.
    pub service: u16,
}

/// A packet, as packet delivery sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// RUD or ROD request.
    Request { mode: Mode, psn: u32, clear: i16, spdcid: u16, to: To, retx: bool, ar: bool, body: Body },
    /// Control packet.
    Control { kind: ControlType, mode: Mode, psn: u32, payload: u32, spdcid: u16, to: To, retx: bool, ar: bool },
    /// ACK or ACK_CC.
    Ack { cack: u32, psn: u32, sack: Option<Sack>, marked: bool, retx: bool, req: AckRequest, spdcid: u16, dpdcid: u16, response: Option<Response> },
    /// NACK.
    Nack { code: NackCode, psn: u32, spdcid: u16, dpdcid: u16, payload: u32, marked: bool, retx: bool },
}

/// What a timer of a PDC is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// Nothing has been acknowledged for too long.
    Rto,
    /// What was refused for want of something goes out again.
    Retry,
    /// Holes are looked at when nothing new may be sent.
    Stall,
    /// An ACK is owed.
    Ack,
    /// Kept responses want a clear.
    Clear,
    /// An initiator has had nothing to do.
    Idle,
    /// A target has asked for the close.
    CloseRequest,
    /// A target has heard nothing.
    Reap,
    /// Packets of a closed PDC may still be on their way.
    Safety,
}

/// What happens to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Semantics want a message sent.
    Post { peer: Peer, mode: Mode, message: Message },
    /// The target of a PDC wants a message sent in the return direction.
    Return { pdc: u16, message: Message },
    /// The link takes a packet.
    Grant,
    /// A frame has come.
    Received { from: Peer, packet: Packet, trim: Option<crate::wire::Trim>, ce: bool, ev: u16 },
    /// Semantics are done with a packet; `keep`: the answer must not be lost.
    Done { pdc: u16, psn: u32, response: Response, keep: bool },
    /// Semantics have no room for a packet (codes 07, 09, 0A). On ROD this comes before the next packet does.
    Refuse { pdc: u16, psn: u32, code: NackCode },
    /// It is so late.
    Tick(u64),
    /// A timer expires, whatever its time is: the model checker's clock.
    Expire { pdc: u16, timer: Timer },
    /// The program wants a PDC of its own closed.
    Close { pdc: u16 },
    /// The function that a PDC belongs to is reset, and others of this endpoint are not: it ends.
    Abort { pdc: u16 },
    /// The function is reset: all ends.
    Reset,
}

/// Why a message failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Failure {
    /// No answer after all retries.
    Timeout,
    /// The peer had no room after all retries.
    NoRoom,
    /// A refusal that ends the PDC.
    Refused(u8),
    /// The function was reset.
    Reset,
}

/// What an endpoint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Sends a packet on the path that `ev` chooses; `control`: in the class of acknowledges.
    Transmit { to: Peer, packet: Packet, ev: u16, control: bool },
    /// Hands a packet to semantics, which answer with `Done` or `Refuse`. `oldest`: none in front of it is missing; semantics that refused it for want of what those behind it hold would wait for ever.
    Deliver { pdc: u16, from: Peer, psn: u32, body: Body, oldest: bool },
    /// A packet of a message of ours is answered; none: it is done, and the answer says nothing else.
    Answered { message: u16, offset: u32, bytes: u32, response: Option<Response> },
    /// A message of ours has failed.
    Failed { message: u16, why: Failure },
    /// A target's PDC has ended in error: what it was receiving will not be completed.
    Gone { pdc: u16, from: Peer },
    /// Something that is counted.
    Count(Counter),
}

/// What is counted. All but the good path, so that a test can say what it has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Counter {
    Opened,
    Accepted,
    Closed,
    IdReused,
    Lingered,
    LingerCut,
    Ousted,
    SynAfterClose,
    CloseAgain,
    ClosedBy0e,
    TargetWantsClose,
    CloseRequestTaken,
    CloseRequestExpired,
    LimitReached,
    Reaped,
    NackSent(u8),
    NackTaken(u8),
    NackStale,
    NackHeldBack,
    Rto,
    Stall,
    PathLoss,
    AckRequestSent,
    AckRequestAnswered,
    ClearCommand,
    ClearRequest,
    KeptCleared,
    DuplicateAnswered,
    DuplicateDropped,
    TrimmedDropped,
    TrimmedDuplicate,
    PsnWrapped,
    PoolFull,
    RecordsFull,
    WindowFull,
    BadAck,
    Stray,
    Early,
    Ignored,
    Failed,
}

/// Registers of an endpoint: what operators choose and what sources disagree on. Times in ticks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Low bits of a PDC id that are its place in the pool; the pool has 2^n - 1 places.
    pub pool_bits: u32,
    /// Bits above them that tell lives apart.
    pub life_bits: u32,
    /// Places of the pool that are used.
    pub places: usize,
    /// Places that initiators, and targets, may have.
    pub share: usize,
    /// Of the targets' places those that one peer may have: its next takes that of its oldest.
    pub peer_share: usize,
    /// Of the initiators' places those that PDCs to one peer may have, with those that rest.
    pub peer_initiators: usize,
    /// Free places of the targets' share below which the oldest are asked to close.
    pub low: usize,
    /// Bytes of a packet.
    pub mtu: u32,
    /// PSNs of the receive window.
    pub window: u32,
    /// PSNs that a unit of `mpr` stands for.
    pub mpr_unit: u32,
    /// Units that a peer is taken to allow until it says so.
    pub default_mpr: u32,
    /// PSNs that may be outstanding before the first answer.
    pub first_window: u32,
    /// Packet records of the whole endpoint.
    pub records: usize,
    /// Responses that can be kept, of the whole endpoint; each PDC has one more place, for its oldest packet.
    pub kept: usize,
    /// PSNs after which a PDC is closed.
    pub limit: u32,
    /// First time-out.
    pub rto: u64,
    /// Time-outs in a row before the PDC fails.
    pub rto_max: u8,
    /// Wait after a refusal for want of something.
    pub nack_wait: u64,
    /// Refusals in a row before the PDC fails; 31: never.
    pub nack_max: u8,
    /// Time between two NACKs for one PSN.
    pub nack_gap: u64,
    /// Wait before an ACK that nobody asked for.
    pub ack_wait: u64,
    /// Bytes without an ACK, each packet counting at least `ack_least`.
    pub ack_bytes: u32,
    /// See `ack_bytes`.
    pub ack_least: u32,
    /// Stall time before a round trip is known.
    pub tail_loss: u64,
    /// Least stall time.
    pub stall_least: u64,
    /// Wait for a clear.
    pub clear_wait: u64,
    /// Wait for the close that a target asked for.
    pub close_wait: u64,
    /// An idle initiator closes.
    pub idle: u64,
    /// A target that hears nothing ends.
    pub reap: u64,
    /// Time for which packets of a closed PDC may come.
    pub safety: u64,
    /// Lingering targets give way when the pool is full.
    pub linger_cut: bool,
    /// Losses are found by the order on each path.
    pub path_order: bool,
    /// Path policy.
    pub spray: super::spray::Policy,
    /// Entropy values of a PDC.
    pub entropies: u16,
    /// Start of all random choices.
    pub seed: u64,
    /// Start_PSN of the first PDC of each place, in the place of a random one.
    pub first_psn: Option<u32>,
    /// Deliberate defect, for tests of the tests.
    pub defect: Option<Defect>,
}

/// A broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Defect {
    /// CACK goes past a response that is kept.
    CackPastKept,
    /// A packet that is already there is given to semantics again.
    DuplicateExecuted,
    /// A closed target does not linger.
    NoLinger,
    /// Ids have no lives, and are free at once.
    NoLives,
    /// A SACKed packet counts as answered.
    SackCompletes,
    /// CLEAR_PSN is the PSN of the request that carries it.
    ClearsUnanswered,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            pool_bits: 10,
            life_bits: 6,
            places: 1023,
            share: 767,
            peer_share: 256,
            peer_initiators: 256,
            low: 8,
            mtu: 4096,
            window: 512,
            mpr_unit: ferric_abi::uet::MPR_UNIT,
            default_mpr: 8,
            first_window: 512,
            records: 65_536,
            kept: 1024,
            limit: 1 << 31,
            rto: 1000,
            rto_max: 5,
            nack_wait: 1000,
            nack_max: 5,
            nack_gap: 32,
            ack_wait: 4,
            ack_bytes: 16 << 10,
            ack_least: 1 << 10,
            tail_loss: 1000,
            stall_least: 16,
            clear_wait: 1000,
            close_wait: 10_000,
            idle: 20_000,
            reap: 30_000_000,
            safety: 4000,
            linger_cut: true,
            path_order: true,
            spray: super::spray::Policy::Oblivious,
            entropies: 64,
            seed: 1,
            first_psn: None,
            defect: None,
        }
    }
}
