//! Records of the PDC manager.
#![allow(missing_docs)]
use crate::uet::types::LINE;
use rust_hdl::prelude::*;

/// Bits of a line of the address table: a peer, and with it the function and the traffic class that it belongs to.
pub const PEER: usize = 16;
/// Bits of a PDC id: place in the pool (low bits, never 0) and life.
pub const ID: usize = 16;
/// Bits of a count of places.
pub const PLACES: usize = LINE + 1;

/// What the manager is asked.
pub mod pdc_ask {
    /// A message wants a PDC of {`peer`, `rod`}: the one that is there, or a new one.
    pub const POST: u64 = 0;
    /// A request or a control packet has come from `peer`.
    pub const ARRIVE: u64 = 1;
    /// An ACK has been judged by `loss`.
    pub const ACK: u64 = 2;
    /// A NACK has come.
    pub const NACK: u64 = 3;
    /// Whether `id` is alive, and whether it is this peer's; nothing changes.
    pub const LOOK: u64 = 4;
    /// It takes no more messages (initiator), or wants to be closed (target).
    pub const CLOSE: u64 = 5;
    /// Its CLOSE_COMMAND goes out.
    pub const LEAVE: u64 = 6;
    /// The CLOSE_COMMAND that came has been judged by `window`.
    pub const SHUT: u64 = 7;
    /// It ends in error: retries or a timer have run out, or the driver wants it so.
    pub const FAIL: u64 = 8;
    /// The safety time of a place is over.
    pub const SAFE: u64 = 9;
    /// It has work, or none (`busy`).
    pub const WORK: u64 = 10;
    /// A POST found no place: somebody is asked to go.
    pub const ROOM: u64 = 11;
    /// All PDCs of `function` end in error; an answer for each, and one behind them.
    pub const RESET: u64 = 12;
}

/// What came of it.
pub mod verdict {
    /// It is so: the PDC is there, the order is carried out.
    pub const DONE: u64 = 0;
    /// A PDC was opened, or accepted.
    pub const OPENED: u64 = 1;
    /// No such PDC, or it is in no state for this.
    pub const NOBODY: u64 = 2;
    /// Of POST: the PDC of this peer takes no more.
    pub const LATER: u64 = 3;
    /// Of POST: no place is free.
    pub const FULL: u64 = 4;
    /// A NACK with `code` goes back, with the PDC's id if `own`.
    pub const REFUSE: u64 = 5;
    /// The packet is dropped.
    pub const DROP: u64 = 6;
    /// The CLOSE_COMMAND has come again, and is acknowledged again.
    pub const AGAIN: u64 = 7;
    /// Of ACK: not to be believed.
    pub const BAD: u64 = 8;
    /// The PDC is over, and all is well.
    pub const CLOSED: u64 = 9;
    /// It is over, in error.
    pub const FAILED: u64 = 10;
    /// Of SHUT: it lingers, and the close is acknowledged.
    pub const LINGERS: u64 = 11;
    /// Of NACK: the packet goes out again at once; after a wait; all from the one that is expected on.
    pub const RESEND: u64 = 12;
    pub const RETRY: u64 = 13;
    pub const REWIND: u64 = 14;
    /// Of NACK: its packet is not out.
    pub const STALE: u64 = 15;
}

/// What was done to another PDC to make room.
pub mod victim {
    pub const NONE: u64 = 0;
    /// An initiator takes no more messages.
    pub const LEAVES: u64 = 1;
    /// A target wants to be closed.
    pub const ASKED: u64 = 2;
    /// A lingering target is gone, or one of a peer that has its share.
    pub const CUT: u64 = 3;
}

/// Where a PDC is in its life.
pub mod stage {
    pub const FREE: u64 = 0;
    /// An initiator that does not know its peer's id.
    pub const SYN: u64 = 1;
    pub const OPEN: u64 = 2;
    /// The CLOSE_COMMAND is out.
    pub const CLOSE_WAIT: u64 = 3;
    /// A target that was closed.
    pub const LINGER: u64 = 4;
    /// An initiator's place after its end, until no packet can be on its way.
    pub const REST: u64 = 5;
}

/// Bits of `Pdc::stat`.
pub const STAT_BITS: usize = 23;
/// What they count.
pub const STATS: [&str; STAT_BITS] = [
    "uet_pdc_opened",
    "uet_pdc_accepted",
    "uet_pdc_reused",
    "uet_pdc_closed",
    "uet_pdc_lingered",
    "uet_pdc_linger_cut",
    "uet_pdc_syn_after_close",
    "uet_pdc_close_again",
    "uet_pdc_closed_by_0e",
    "uet_pdc_asked_to_close",
    "uet_pdc_made_to_leave",
    "uet_pdc_no_room",
    "uet_pdc_refused",
    "uet_pdc_trimmed",
    "uet_pdc_early",
    "uet_pdc_late",
    "uet_pdc_stray",
    "uet_pdc_bad_ack",
    "uet_pdc_stale",
    "uet_pdc_failed",
    "uet_pdc_ignored",
    "uet_pdc_unknown_nack",
    "uet_pdc_ousted",
];

/// The bit of each.
pub mod stat {
    pub const OPENED: u64 = 1;
    pub const ACCEPTED: u64 = 1 << 1;
    pub const REUSED: u64 = 1 << 2;
    pub const CLOSED: u64 = 1 << 3;
    pub const LINGERED: u64 = 1 << 4;
    pub const LINGER_CUT: u64 = 1 << 5;
    pub const SYN_AFTER_CLOSE: u64 = 1 << 6;
    pub const CLOSE_AGAIN: u64 = 1 << 7;
    pub const CLOSED_BY_0E: u64 = 1 << 8;
    pub const ASKED: u64 = 1 << 9;
    pub const LEAVES: u64 = 1 << 10;
    pub const NO_ROOM: u64 = 1 << 11;
    pub const REFUSED: u64 = 1 << 12;
    pub const TRIMMED: u64 = 1 << 13;
    pub const EARLY: u64 = 1 << 14;
    pub const LATE: u64 = 1 << 15;
    pub const STRAY: u64 = 1 << 16;
    pub const BAD_ACK: u64 = 1 << 17;
    pub const STALE: u64 = 1 << 18;
    pub const FAILED: u64 = 1 << 19;
    /// A control packet of congestion management, which is not there.
    pub const IGNORED: u64 = 1 << 20;
    /// A NACK with a code that is none.
    pub const UNKNOWN_NACK: u64 = 1 << 21;
    /// A target that made room for another one of its peer, which has its share.
    pub const OUSTED: u64 = 1 << 22 | FAILED;
    /// A close that is refused because messages of ours are open.
    pub const FAILED_REFUSED: u64 = FAILED | REFUSED;
    /// A NACK that says that there is no room.
    pub const NO_PDC: u64 = NO_ROOM | REFUSED;
}

/// An order.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct PdcAsk {
    /// See [`pdc_ask`].
    pub kind: Bits<4>,
    pub peer: Bits<PEER>,
    /// PDC id here (dpdcid of a packet), and at the peer (spdcid).
    pub id: Bits<ID>,
    pub peer_id: Bits<ID>,
    /// Of POST and ARRIVE: mode, and whose the peer is.
    pub rod: Bit,
    pub function: Bits<6>,
    /// Of ARRIVE: a request; else a control packet of the type `control`.
    pub request: Bit,
    pub control: Bits<4>,
    /// It says SYN, and how far it is from Start_PSN.
    pub syn: Bit,
    pub offset: Bits<12>,
    pub trim: Bit,
    /// Of ARRIVE and SHUT.
    pub psn: Bits<32>,
    /// Of NACK.
    pub code: Bits<8>,
    /// Of NACK: its packet is not out; it is the close.
    pub stale: Bit,
    pub closes: Bit,
    /// Of ACK: it covers what was never sent; nothing is out any more; the peer wants to be closed.
    pub bad: Bit,
    pub empty: Bit,
    pub wants: Bit,
    /// Of SHUT: messages of ours are open; nothing in front of the close is missing.
    pub unfinished: Bit,
    pub whole: Bit,
    /// Of LOOK: the id alone counts; it is for an answer that has come, which is counted if it is nobody's.
    pub bare: Bit,
    pub heard: Bit,
    /// Of WORK.
    pub busy: Bit,
}

/// What is known of a place of the pool; a line of the context store, so that no field straddles a word.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct PdcLine {
    /// See [`stage`].
    pub stage: Bits<3>,
    pub initiator: Bit,
    pub rod: Bit,
    /// An initiator that takes no more messages; a target that wants to be closed.
    pub closing: Bit,
    pub wants: Bit,
    pub function: Bits<6>,
    /// The place had a PDC before.
    pub used: Bit,
    pub spare: Bits<2>,
    /// The id at the peer; 0: not known yet.
    pub peer_id: Bits<ID>,
    pub peer: Bits<PEER>,
    /// Its own id, or the last one of this place.
    pub id: Bits<ID>,
    /// Start_PSN, or the last one.
    pub start: Bits<32>,
    /// Of a target that lingers: PSN of the close less Start_PSN.
    pub close: Bits<32>,
}

/// An answer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct PdcTold {
    /// See [`verdict`].
    pub verdict: Bits<4>,
    pub code: Bits<8>,
    pub own: Bit,
    /// Of RESET: more answers follow.
    pub more: Bit,
    /// The PDC, if one is meant, as it is now.
    pub line: PdcLine,
    /// See [`victim`]. A cut may stand beside another.
    pub victim: Bits<2>,
    pub victim_id: Bits<ID>,
    /// The one that was cut or ousted; 0: none.
    pub cut_id: Bits<ID>,
    /// Places in use: of initiators, with those that rest; of targets, with those that linger.
    pub initiators: Bits<PLACES>,
    pub targets: Bits<PLACES>,
    pub resting: Bits<PLACES>,
    pub lingering: Bits<PLACES>,
}

/// What an order comes to, for the PDC that it means.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Ruling {
    pub verdict: Bits<4>,
    pub code: Bits<8>,
    pub own: Bit,
    /// The peer's id is known from now on.
    pub latch: Bit,
    pub closing: Bit,
    pub wants: Bit,
    pub leaves: Bit,
    pub lingers: Bit,
    /// It ends; its place is free at once.
    pub over: Bit,
    pub free: Bit,
    /// It has work, or has none.
    pub work: Bit,
    /// Of POST: it takes no more, and another one is opened beside it.
    pub beside: Bit,
    pub stat: Bits<STAT_BITS>,
}

/// Who is looked for among those that may go.
pub mod class {
    pub const NONE: u64 = 0;
    pub const INITIATOR: u64 = 1;
    pub const TARGET: u64 = 2;
    pub const LINGERS: u64 = 3;
}

/// A PDC's name in the directory.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Key {
    pub initiator: Bit,
    pub peer: Bits<PEER>,
    /// The mode, or a target's id at the peer.
    pub low: Bits<ID>,
}
