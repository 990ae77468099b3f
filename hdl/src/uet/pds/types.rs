//! Records at the ports of the engine, and between its parts.
#![allow(missing_docs)]
use crate::uet::head::types::{SesFields, UetHead};
use crate::uet::pdc::types::{ID, PEER};
use crate::uet::types::{COUNT, LINE, PAYLOAD};
use rust_hdl::prelude::*;

/// What semantics say in every packet of a message (UE 3.4).
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Description {
    /// `SesOpcode`.
    pub opcode: Bits<6>,
    pub dc: Bit,
    pub ie: Bit,
    pub rel: Bit,
    pub hd: Bit,
    pub generation: Bits<8>,
    pub job: Bits<24>,
    pub pid: Bits<12>,
    pub index: Bits<12>,
    /// First byte in the buffer.
    pub offset: Bits<64>,
    pub initiator: Bits<32>,
    pub key: Bits<64>,
    /// Goes with the first packet only.
    pub header_data: Bits<64>,
}

/// A message that is to be sent.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Message {
    /// Line of the address table, mode, and whose it is.
    pub peer: Bits<PEER>,
    pub rod: Bit,
    pub function: Bits<6>,
    /// What semantics call it: stands in its end, and beside each of its packets.
    pub token: Bits<32>,
    /// Bytes.
    pub length: Bits<32>,
    pub says: Description,
}

/// Why a message has failed.
pub mod why {
    pub const NOTHING: u64 = 0;
    /// No answer after all time-outs.
    pub const TIMEOUT: u64 = 1;
    /// The peer had no room after all refusals.
    pub const NO_ROOM: u64 = 2;
    /// A NACK that ends the PDC: `code` is its code.
    pub const REFUSED: u64 = 3;
    /// Its peer was taken away here, or the function was reset.
    pub const GONE: u64 = 4;
}
/// Its bits.
pub const WHY: usize = 3;

/// Whose PDCs end, because they are peers no more.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Gone {
    /// Such an end is under way: what follows counts.
    pub on: Bit,
    /// Everybody; else `peer`.
    pub all: Bit,
    pub peer: Bits<PEER>,
}

/// The end of a message.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct MessageEnd {
    pub token: Bits<32>,
    /// See [`why`].
    pub why: Bits<WHY>,
    /// `ReturnCode`, or `NackCode` of a refusal.
    pub code: Bits<8>,
}

/// What `messages` is asked.
pub mod message_ask {
    /// The PDC begins: it has none.
    pub const OPEN: u64 = 0;
    /// A message is added to a PDC.
    pub const ADD: u64 = 1;
    /// The next packet of a PDC's oldest message that has one.
    pub const CUT: u64 = 2;
    /// What a packet that goes out again says.
    pub const LOOK: u64 = 3;
    /// All of a PDC fail.
    pub const FAIL: u64 = 4;
    /// A message fails that no PDC has.
    pub const AWAY: u64 = 5;
}

/// An order to `messages`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct MessageAsk {
    /// See [`message_ask`].
    pub kind: Bits<3>,
    pub line: Bits<LINE>,
    /// Of ADD and AWAY.
    pub message: Message,
    /// Of LOOK: the packet.
    pub id: Bits<16>,
    pub offset: Bits<32>,
    pub bytes: Bits<PAYLOAD>,
    /// Of FAIL and AWAY.
    pub why: Bits<WHY>,
    pub code: Bits<8>,
}

/// Its answer: of CUT and LOOK the packet, of CUT whether the PDC has more.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct MessageTold {
    pub id: Bits<16>,
    pub offset: Bits<32>,
    pub bytes: Bits<PAYLOAD>,
    /// It is the message's last.
    pub last: Bit,
    pub more: Bit,
    pub message: Message,
}

/// A PDC in the list of those that have something to send: again, or for the first time.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Listed {
    pub line: Bits<LINE>,
    pub again: Bit,
}

/// What stands beside a frame's headers: where it goes, and its payload.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct FrameNote {
    pub peer: Bits<PEER>,
    /// It goes in the class of acknowledges, and has no payload.
    pub control: Bit,
    /// Else: the message, its first byte, and how many.
    pub token: Bits<32>,
    pub offset: Bits<32>,
    pub bytes: Bits<PAYLOAD>,
}

/// A frame on its way out.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Outgoing {
    pub note: FrameNote,
    pub head: UetHead,
}

/// How a packet came: semantics give it back with their answer.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Came {
    pub entropy: Bits<16>,
    /// With ECN CE.
    pub congested: Bit,
    pub retx: Bit,
    /// An ACK is asked for, or the peer still says SYN.
    pub ask: Bit,
    /// When.
    pub at: Bits<32>,
}

/// A packet for semantics.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Delivered {
    /// Its keeper's name of the frame, and where its payload is in it, from the end of IP's header on.
    pub handle: Bits<16>,
    pub pay_off: Bits<8>,
    pub bytes: Bits<PAYLOAD>,
    /// The PDC's id here, the packet in it.
    pub id: Bits<ID>,
    pub peer: Bits<PEER>,
    pub psn: Bits<32>,
    /// None in front of it is missing: it has to be taken.
    pub first: Bit,
    pub came: Came,
    pub ses: SesFields,
}

/// What semantics say of a packet that they were given.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Finished {
    pub id: Bits<ID>,
    pub psn: Bits<32>,
    pub bytes: Bits<PAYLOAD>,
    pub came: Came,
    /// They have no room: `code` is a `NackCode`. Else it is done, and `code` is a `ReturnCode`.
    pub refused: Bit,
    /// The response must not be lost, though its code is OK (any other code never is).
    pub keep: Bit,
    pub code: Bits<8>,
    /// Of the response.
    pub message: Bits<16>,
    pub length: Bits<32>,
}

/// An initiator's PDC, as the transmit half keeps it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct TxLine {
    pub id: Bits<ID>,
    pub peer_id: Bits<ID>,
    pub peer: Bits<PEER>,
    pub start: Bits<32>,
    pub rod: Bit,
    /// It is there; it has gone, and its place rests.
    pub live: Bit,
    pub rests: Bit,
    /// The peer's id is not known; it takes no more messages; its close is out.
    pub syn: Bit,
    pub closing: Bit,
    pub leaving: Bit,
    /// Messages have packets that were not sent.
    pub queued: Bit,
    // As of `LossTold`.
    pub outs: Bit,
    pub resends: Bit,
    pub waits: Bit,
    pub room: Bit,
    pub hole: Bit,
    pub tries: Bits<4>,
    pub refusals: Bits<5>,
    /// It stands in a list of the schedule.
    pub listed_again: Bit,
    pub listed_new: Bit,
    /// Timers that run.
    pub rto_on: Bit,
    pub stall_on: Bit,
    pub retry_on: Bit,
    pub idle_on: Bit,
    /// When the time-out is, or the end of the rest.
    pub rto_at: Bits<32>,
}

/// A target's PDC, as the receive half keeps it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct RxLine {
    pub id: Bits<ID>,
    /// Responses are kept until they are cleared.
    pub holds: Bit,
    /// Timers that run.
    pub ack_on: Bit,
    pub life_on: Bit,
    pub clear_on: Bit,
    /// When its peer has been silent for too long, or it has lingered long enough.
    pub life_at: Bits<32>,
}

/// Bits of a count of packets of a message that are out.
pub const OUTS: usize = COUNT;
