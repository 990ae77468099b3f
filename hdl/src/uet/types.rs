//! Records between the blocks of this engine.
#![allow(missing_docs)]
use rust_hdl::prelude::*;

/// Bits of a line: the place of a PDC in the pool.
pub const LINE: usize = 10;
/// Bits of a count within a window of at most 512 PSNs.
pub const COUNT: usize = 10;
/// Bits of a payload's length.
pub const PAYLOAD: usize = 14;

/// What `window` is asked for.
pub mod rx_ask {
    /// The PDC begins: `psn` is Start_PSN.
    pub const OPEN: u64 = 0;
    /// A request has come.
    pub const ARRIVE: u64 = 1;
    /// Semantics are done with it.
    pub const DONE: u64 = 2;
    /// Semantics have no room for it.
    pub const REFUSE: u64 = 3;
    /// The peer has the answers of all PSNs in front of `psn`.
    pub const CLEAR: u64 = 4;
    /// An ACK is going out.
    pub const SACK: u64 = 5;
}

/// What a request is to the window.
pub mod arrival {
    /// It is given to semantics.
    pub const NEW: u64 = 0;
    /// It has been, and is done or acknowledged.
    pub const OLD: u64 = 1;
    /// It has been, and is not done.
    pub const PENDING: u64 = 2;
    /// It has been; its answer is kept.
    pub const KEPT: u64 = 3;
    /// Outside the window.
    pub const OUTSIDE: u64 = 4;
    /// ROD, and one in front of it is missing, as has been said.
    pub const GAP: u64 = 5;
    /// The same, and it is to be said.
    pub const GAP_TELL: u64 = 6;
    /// It would be new, and there is no place for its answer.
    pub const NO_ROOM: u64 = 7;
}

/// An order to `window`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct RxAsk {
    /// See [`rx_ask`].
    pub kind: Bits<3>,
    pub line: Bits<LINE>,
    pub psn: Bits<32>,
    pub rod: Bit,
    pub retx: Bit,
    /// Of ARRIVE: it is trimmed, so that nothing is taken.
    pub trim: Bit,
    /// Of ARRIVE: no place for an answer is free. The oldest packet that is missing has one of its own.
    pub full: Bit,
    /// Of DONE: the answer has to be kept.
    pub keep: Bit,
    /// Of DONE: bytes of payload.
    pub bytes: Bits<PAYLOAD>,
}

/// Its answer: what came of the order, and the state behind it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct RxTold {
    /// Of ARRIVE: see [`arrival`].
    pub arrival: Bits<3>,
    /// Of ARRIVE: no PSN in front of it is missing.
    pub first: Bit,
    /// Of DONE, REFUSE: the packet was with semantics.
    pub ok: Bit,
    /// Of DONE: a hole in front of others is filled.
    pub filled: Bit,
    /// Of DONE: it is the first behind a hole.
    pub beyond: Bit,
    /// Of CLEAR: answers that need not be kept any more.
    pub freed: Bits<COUNT>,
    pub cack: Bits<32>,
    /// ROD: the PSN that has to come next.
    pub expected: Bits<32>,
    /// Of SACK: PSN of bit 0, and the bits.
    pub base: Bits<32>,
    pub bitmap: Bits<64>,
    /// Received in all, in 256 bytes.
    pub bytes: Bits<24>,
    /// Newest PSN received less the oldest one missing.
    pub ooo: Bits<16>,
    /// PSNs beyond CACK that are there; of them, with kept answers; with semantics.
    pub marked: Bits<COUNT>,
    pub held: Bits<COUNT>,
    pub pending: Bits<COUNT>,
}

/// Slots of a PDC for paths, log2.
pub const SLOT: usize = 6;

/// What became of a packet, as `spray` is told.
pub mod told {
    pub const NOTHING: u64 = 0;
    pub const OK: u64 = 1;
    pub const ECN: u64 = 2;
    pub const NACK: u64 = 3;
    pub const TIMEOUT: u64 = 4;
}

/// What a PSN carries.
pub mod content {
    pub const DATA: u64 = 0;
    pub const CLOSE: u64 = 1;
    pub const CLOSE_REQUEST: u64 = 2;
}

/// A packet that is out.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct TxRecord {
    /// See [`content`].
    pub content: Bits<2>,
    pub message: Bits<16>,
    /// First byte in the message; bytes.
    pub offset: Bits<32>,
    pub bytes: Bits<PAYLOAD>,
    /// Path that it took last, place in the order of sending, and when.
    pub slot: Bits<SLOT>,
    pub order: Bits<32>,
    pub time: Bits<32>,
    /// It was sent more than once.
    pub again: Bit,
}

/// An order to `records`: which packets, and what is done to each. Places count from Start_PSN.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct TxWalk {
    pub line: Bits<LINE>,
    /// The PDC begins: nothing is out.
    pub init: Bit,
    /// The packet at `from` is out, as `record` says; nothing else is looked at.
    pub put: Bit,
    pub record: TxRecord,
    /// Places from `from` on and in front of `upto`; at most a window.
    pub from: Bits<32>,
    pub upto: Bits<32>,
    /// Of the first 64 places only those whose bits are set, and no others.
    pub picks: Bit,
    pub bitmap: Bits<64>,
    /// Only those that are not, or that are.
    pub not_sacked: Bit,
    pub not_resend: Bit,
    pub not_wait: Bit,
    pub only_resend: Bit,
    pub only_wait: Bit,
    /// So many at most; 0: all.
    pub limit: Bits<3>,
    /// Done only to one that was overtaken on its path.
    pub overtaken: Bit,
    /// Done only to one whose last sending is `age` ticks ago.
    pub aged: Bit,
    pub now: Bits<32>,
    pub age: Bits<32>,
    /// What is done.
    pub set_sacked: Bit,
    pub clear_sacked: Bit,
    pub set_resend: Bit,
    pub clear_resend: Bit,
    pub set_wait: Bit,
    pub clear_wait: Bit,
    /// It is answered, and forgotten.
    pub remove: Bit,
    /// It has arrived: what was sent before it by the same path has not been, or is lost.
    pub arrived: Bit,
    /// See [`told`].
    pub told: Bits<3>,
    /// The answer that goes with it has a response of its own.
    pub response: Bit,
}

/// What `records` has found.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct TxFound {
    /// There was one; the first, and whether the peer has it.
    pub found: Bit,
    pub place: Bits<32>,
    pub record: TxRecord,
    pub sacked: Bit,
    /// Place behind the last one.
    pub last: Bits<32>,
    /// To so many something was done.
    pub done: Bits<COUNT>,
    /// Of the PDC now: packets out, to be sent again, to be sent again after a wait.
    pub outs: Bits<COUNT>,
    pub resends: Bits<COUNT>,
    pub waits: Bits<COUNT>,
}

/// What became of a packet: for `spray`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Tell {
    pub line: Bits<LINE>,
    pub slot: Bits<SLOT>,
    /// See [`told`].
    pub what: Bits<3>,
}

/// A packet of ours that is answered: for semantics.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Answered {
    pub line: Bits<LINE>,
    pub content: Bits<2>,
    pub message: Bits<16>,
    pub offset: Bits<32>,
    pub bytes: Bits<PAYLOAD>,
    /// The answer says more than that it is done.
    pub response: Bit,
}

/// An order to `spray`: a choice, or what became of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct SprayAsk {
    pub line: Bits<LINE>,
    /// The PDC begins.
    pub init: Bit,
    /// A packet is to be sent; `fixed`: always by the same path.
    pub choose: Bit,
    pub fixed: Bit,
    /// Without either: what became of a packet that went by `slot`, see [`told`].
    pub slot: Bits<SLOT>,
    pub what: Bits<3>,
}

/// The path of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Choice {
    pub slot: Bits<SLOT>,
    pub entropy: Bits<16>,
}

/// What `ack` is asked.
pub mod ack_ask {
    /// The PDC begins.
    pub const OPEN: u64 = 0;
    /// Semantics are done with a packet.
    pub const DONE: u64 = 1;
    /// An ACK has gone out for another reason.
    pub const SENT: u64 = 2;
    /// It is so late.
    pub const LATE: u64 = 3;
}

/// An ACK that is due or owed: what it says of the packet that it is for.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Owed {
    pub psn: Bits<32>,
    /// Response of semantics.
    pub message: Bits<16>,
    pub code: Bits<6>,
    pub length: Bits<32>,
    /// How the packet came: its entropy value, whether with ECN CE, whether sent again, when.
    pub entropy: Bits<16>,
    pub marked: Bit,
    pub retx: Bit,
    pub at: Bits<32>,
}

/// An order to `ack`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct AckAsk {
    /// See [`ack_ask`].
    pub kind: Bits<2>,
    pub line: Bits<LINE>,
    pub now: Bits<32>,
    /// Of DONE, as all that follows.
    pub owed: Owed,
    pub bytes: Bits<PAYLOAD>,
    /// It asked for its ACK, or still says SYN; its answer has to be kept.
    pub ask: Bit,
    pub keep: Bit,
    /// See [`RxTold`].
    pub filled: Bit,
    pub beyond: Bit,
}

/// Its answer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct AckTold {
    /// An ACK goes out now, as `owed` says.
    pub send: Bit,
    pub owed: Owed,
    /// Ticks from the packet's arrival until now, at most all ones.
    pub service: Bits<16>,
    /// One is owed, and when at last.
    pub waits: Bit,
    pub deadline: Bits<32>,
}

/// What `kept` is asked.
pub mod kept_ask {
    /// A packet goes to semantics: a place is taken for its response.
    pub const TAKE: u64 = 0;
    /// The response need not be kept, or there is none.
    pub const DROP: u64 = 1;
    /// It has to be kept.
    pub const KEEP: u64 = 2;
    /// The response to `psn`, if it is kept.
    pub const LOOK: u64 = 3;
    /// Those to all PSNs in front of `psn` go.
    pub const CLEAR: u64 = 4;
    /// The PDC begins or is over: it has none, and no places.
    pub const FORGET: u64 = 5;
}

/// An order to `kept`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct KeptAsk {
    /// See [`kept_ask`].
    pub kind: Bits<3>,
    pub line: Bits<LINE>,
    pub psn: Bits<32>,
    /// Of KEEP: the response.
    pub message: Bits<16>,
    pub code: Bits<6>,
    pub length: Bits<32>,
}

/// Its answer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct KeptTold {
    /// Of LOOK: it is kept, and what it is.
    pub found: Bit,
    pub message: Bits<16>,
    pub code: Bits<6>,
    pub length: Bits<32>,
    /// Responses of this PDC are kept.
    pub any: Bit,
}

/// What `loss` is asked.
pub mod loss_ask {
    /// The PDC begins: `psn` is Start_PSN.
    pub const OPEN: u64 = 0;
    /// A new packet goes out.
    pub const SEND: u64 = 1;
    /// The oldest of those to be sent again goes out.
    pub const AGAIN: u64 = 2;
    /// An ACK has come.
    pub const ACK: u64 = 3;
    /// A NACK has come after which `psn` is sent again at once.
    pub const NACK_AGAIN: u64 = 4;
    /// One after which it is sent again later; `all`: and all others.
    pub const NACK_LATER: u64 = 5;
    /// ROD: one that says what is expected (`cack`).
    pub const NACK_BACK: u64 = 6;
    /// The time-out, of `age` ticks.
    pub const RTO: u64 = 7;
    /// Nothing new may be sent and there are holes.
    pub const STALL: u64 = 8;
    /// The wait after NACK_LATER is over.
    pub const RETRY: u64 = 9;
}

/// An order to `loss`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct LossAsk {
    /// See [`loss_ask`].
    pub kind: Bits<4>,
    pub line: Bits<LINE>,
    pub now: Bits<32>,
    /// Of SEND and AGAIN: whether something is queued behind it, and its path. Of SEND: what it carries.
    pub more: Bit,
    pub slot: Bits<SLOT>,
    pub content: Bits<2>,
    pub message: Bits<16>,
    pub offset: Bits<32>,
    pub bytes: Bits<PAYLOAD>,
    /// Of ACK: CACK_PSN and ACK_PSN; of NACKs: PSN, and what is expected.
    pub cack: Bits<32>,
    pub psn: Bits<32>,
    /// Of NACK_LATER: all others, too. Of RTO: the PDC is ROD.
    pub all: Bit,
    /// Of RTO: ticks after which a packet is due again.
    pub age: Bits<32>,
    /// Of ACK: it has a SACK.
    pub sack: Bit,
    pub base: Bits<32>,
    pub bitmap: Bits<64>,
    pub rcvd: Bits<24>,
    /// PSNs that may be outstanding; 0: no news.
    pub range: Bits<16>,
    pub service: Bits<16>,
    pub marked: Bit,
    pub retx: Bit,
    /// It has a response that says something, or says that it has nothing new.
    pub response: Bit,
    pub nothing: Bit,
}

/// Its answer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct LossTold {
    /// The ACK is possible; there is a packet that is meant.
    pub ok: Bit,
    /// Of SEND, AGAIN: the packet.
    pub psn: Bits<32>,
    pub clear: Bits<16>,
    pub ar: Bit,
    pub record: TxRecord,
    /// Of ACK: something was acknowledged that had not been. So many are lost by the order on their path.
    pub progress: Bit,
    pub lost: Bits<3>,
    /// Of RTO: the oldest has come and only its answer is missing. Of STALL: so many are sent again.
    pub sacked: Bit,
    pub again: Bits<COUNT>,
    /// Of NACK_BACK: it goes back.
    pub back: Bit,
    // The state behind it.
    pub outs: Bits<COUNT>,
    pub resends: Bits<COUNT>,
    pub waits: Bits<COUNT>,
    /// PSN of the oldest that is out, or the next one.
    pub oldest: Bits<32>,
    /// The window has room.
    pub room: Bit,
    /// Something in front of what the peer has is missing there.
    pub hole: Bit,
    pub tries: Bits<4>,
    pub refusals: Bits<5>,
    /// How long a hole may be old.
    pub stall: Bits<32>,
}
