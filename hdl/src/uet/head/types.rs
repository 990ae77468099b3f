//! Records of the headers. A field that a packet's type or form lacks is zero.
#![allow(missing_docs)]
use rust_hdl::prelude::*;

/// Why a packet is not taken: each is a bit of `Parser::stat`. The model's name for each is in `ferric_uet::wire::Bad`.
pub mod cause {
    pub const NONE: u64 = 0;
    /// UDP to another port.
    pub const NOT_UET: u64 = 1;
    /// It ends inside the header of UDP or the entropy header.
    pub const TRUNCATED: u64 = 2;
    /// The length of UDP is not that of IP.
    pub const UDP_LENGTH: u64 = 3;
    /// It ends inside the PDS header.
    pub const PDS_SHORT: u64 = 4;
    /// A type that is reserved.
    pub const PDS_TYPE: u64 = 5;
    /// A security header, which is not implemented.
    pub const TSS: u64 = 6;
    /// A type of ACK or NACK that is reserved.
    pub const CCX: u64 = 7;
    /// A next header that is reserved.
    pub const NEXT_HEADER: u64 = 8;
    /// A next header that this type may not have.
    pub const NEXT_NOT_ALLOWED: u64 = 9;
    /// It ends inside the SES header.
    pub const SES_SHORT: u64 = 10;
    /// A version but 0.
    pub const VERSION: u64 = 11;
    /// The header says more payload than there is.
    pub const PAYLOAD_LENGTH: u64 = 12;
    /// A short form that is not a whole message.
    pub const SHORT_FORM: u64 = 13;
    /// A small form with header data.
    pub const HEADER_DATA: u64 = 14;
    /// Bytes beyond the end of the message.
    pub const RANGE: u64 = 15;
    /// DATAGRAM_SEND that is not UUD, or UUD that is not a datagram of one packet.
    pub const DATAGRAM: u64 = 16;
}

/// Bits of a cause.
pub const CAUSE: usize = 5;
/// Bits of `Parser::stat`.
pub const STAT_BITS: usize = 18;
/// What the bits of `Parser::stat` count: each packet one of all but the last, and the last beside, if it is taken although reserved fields are not zero.
pub const STATS: [&str; STAT_BITS] = [
    "uet_rx",
    "uet_rx_other",
    "uet_rx_truncated",
    "uet_rx_udp_length",
    "uet_rx_pds_short",
    "uet_rx_pds_type",
    "uet_rx_tss",
    "uet_rx_ccx",
    "uet_rx_next",
    "uet_rx_next_not_allowed",
    "uet_rx_ses_short",
    "uet_rx_version",
    "uet_rx_payload_length",
    "uet_rx_short_form",
    "uet_rx_header_data",
    "uet_rx_range",
    "uet_rx_datagram",
    "uet_rx_reserved",
];

/// What the headers in front say of a packet whose bytes are on the stream.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Note {
    /// It came right behind IP, with the entropy header in the place of UDP.
    pub native: Bit,
    /// A switch on the way (1) or the last switch (2) has cut off what is behind the PDS header.
    pub trim: Bits<2>,
    /// Line of the address table that the frame's addresses are, whether it came with ECN CE, and what its keeper calls it: they go through.
    pub peer: Bits<16>,
    pub congested: Bit,
    pub handle: Bits<16>,
    /// Bytes of the packet, of which the stream may then have the headers only; 0: as many as come.
    pub bytes: Bits<16>,
}

/// What carries a packet.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Carried {
    /// As in [`Note`].
    pub native: Bit,
    pub trim: Bits<2>,
    /// Entropy value: UDP source port, or entropy field.
    pub entropy: Bits<16>,
    /// As in [`Note`]; the builder looks at none of them.
    pub peer: Bits<16>,
    pub congested: Bit,
    pub handle: Bits<16>,
}

/// PDS header (UE 3.5.10).
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct PdsFields {
    /// `PdsType`.
    pub kind: Bits<5>,
    /// Next header (`NextHeader`); of a control packet its type (`ControlType`).
    pub follows: Bits<4>,
    /// Of ACK, NACK and RUDI response.
    pub marked: Bit,
    /// Of a control packet.
    pub rod: Bit,
    pub retx: Bit,
    /// Of a request and a control packet.
    pub ar: Bit,
    pub syn: Bit,
    /// Of an ACK.
    pub probe: Bit,
    /// Of an ACK: `AckRequest`.
    pub req: Bits<2>,
    /// Of a NACK.
    pub rudi: Bit,
    /// Clear offset of a request, PSN offset of an ACK, opaque word of a control packet; of a NACK the code, in the upper half.
    pub word: Bits<16>,
    /// PSN; of an ACK CACK; of RUDI the packet id.
    pub psn: Bits<32>,
    pub spdcid: Bits<16>,
    /// With `syn`: `PdsSyn`.
    pub dpdcid: Bits<16>,
    /// Of a NACK and a control packet; of a request with congestion state that state.
    pub payload: Bits<32>,
    /// Of an ACK with congestion state, as the rest.
    pub cc_type: Bits<4>,
    pub mpr: Bits<8>,
    pub sack_offset: Bits<16>,
    pub bitmap: Bits<64>,
    pub state: Bits<64>,
}

/// SES header (UE 3.4), without what stands behind that of an atomic.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct SesFields {
    /// Which it is (`NextHeader`); 0: none.
    pub form: Bits<3>,
    /// `SesOpcode`, or `ResponseOpcode`.
    pub opcode: Bits<6>,
    // Of requests.
    pub dc: Bit,
    pub ie: Bit,
    pub rel: Bit,
    pub hd: Bit,
    pub eom: Bit,
    pub som: Bit,
    /// Of a standard request, a response and a response with data.
    pub message: Bits<16>,
    pub generation: Bits<8>,
    pub job: Bits<24>,
    pub pid: Bits<12>,
    pub index: Bits<12>,
    /// Of a medium request with `hd`: header data.
    pub offset: Bits<64>,
    pub initiator: Bits<32>,
    pub key: Bits<64>,
    /// Of the first packet of a standard request.
    pub header_data: Bits<64>,
    pub request_length: Bits<32>,
    /// Of the other packets of a standard request, and of a response with data.
    pub message_offset: Bits<32>,
    // Of responses.
    pub list: Bits<2>,
    /// `ReturnCode`.
    pub code: Bits<6>,
    pub modified_length: Bits<32>,
    pub read_id: Bits<16>,
    pub request_psn: Bits<32>,
}

/// What stands behind the SES header of an atomic (UE figure 3-16).
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Operands {
    /// The extension is there; both operands of the compare-and-swap family are.
    pub atomic: Bit,
    pub swaps: Bit,
    /// `AtomicOp`, `AtomicType`.
    pub operation: Bits<8>,
    pub datatype: Bits<8>,
    pub control: Bits<8>,
    pub compare: Bits<128>,
    pub swap: Bits<128>,
}

/// All headers of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct UetHead {
    pub carried: Carried,
    pub pds: PdsFields,
    pub ses: SesFields,
    pub operands: Operands,
    /// Bytes from the end of IP's header to the payload, and bytes of payload without what pads the packet.
    pub pay_off: Bits<8>,
    pub pay_len: Bits<16>,
    /// A reserved field is not zero. The builder writes zeros whatever this says.
    pub reserved: Bit,
}
