//! Records between the parts of the egress.
#![allow(missing_docs)]
use crate::msg::TxDone;
use rust_hdl::prelude::*;

/// A granted frame waiting for its turn. `pay_end`: first byte behind the payload. `row`: its first assembly row.
/// `rows`: assembly rows to give back (skipped ones included). `beats`: its length at the MAC port. `client`: whose header it has.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct FrameRec {
    pub slot: Bits<8>,
    pub frame_len: Bits<14>,
    pub hdr_len: Bits<9>,
    pub pay_end: Bits<14>,
    pub raw: Bit,
    pub row: Bits<13>,
    pub rows: Bits<14>,
    pub beats: Bits<12>,
    pub client: Bits<3>,
}

/// A frame that is complete: to be sent, or with `drop` only to be given back. `plain`: without ICRC. `report`: tell the requester.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct TxJob {
    pub slot: Bits<8>,
    pub frame_len: Bits<14>,
    pub hdr_len: Bits<9>,
    pub pay_end: Bits<14>,
    pub row: Bits<13>,
    pub rows: Bits<14>,
    pub beats: Bits<12>,
    pub vlan: Bit,
    pub ipv6: Bit,
    pub plain: Bit,
    pub drop: Bit,
    pub report: Bit,
    pub client: Bits<3>,
    pub function: Bits<12>,
}

/// A job and what the requester or the replies are told of it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Picked {
    pub job: TxJob,
    pub done: TxDone,
}

/// What travels beside a beat. `len`, `body`: bytes of this beat inside the frame, inside the frame without its ICRC
/// (at most K). `turn`: frame length modulo 4.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct BeatTag {
    pub first: Bit,
    pub last: Bit,
    pub len: Bits<8>,
    pub body: Bits<8>,
    pub turn: Bits<2>,
    pub vlan: Bit,
    pub ipv6: Bit,
}
