//! What the layouts of `ferric_abi::uet` say, as the blocks' tables and permutations.
use super::types::cause;
use ferric_abi::layout::Layout;
use ferric_abi::uet::codes::{AtomicOp, NextHeader, PdsType, SesOpcode};
use ferric_abi::uet::{PdsAck, PdsAckCc, PdsControl, PdsNack, PdsRequest, PdsRequestCc, PdsRudi, PdsUud};
use ferric_abi::uet::{SesAtomic, SesCompare, SesFirst, SesMedium, SesNext, SesResponse, SesResponseData, SesResponseDataSmall, SesSmall, UetEntropy};
use ferric_abi::wire::Udp;
use rust_hdl::prelude::*;

/// Bytes in front of the PDS header: UDP, and the entropy header of native carriage.
pub(super) const UDP: usize = Udp::BYTES;
pub(super) const ENTROPY: usize = UetEntropy::BYTES;
/// Longest PDS header.
pub(super) const PDS: usize = PdsAck::BYTES + PdsAckCc::BYTES;
/// Longest SES header, and what an atomic may have behind it.
pub(super) const SES: usize = SesFirst::BYTES;
pub(super) const OPERANDS: usize = SesAtomic::BYTES + SesCompare::BYTES;
/// Longest PDS header of a request, so the longest headers, with and without what is in front.
pub(super) const BODY: usize = PdsRequest::BYTES + PdsRequestCc::BYTES + SES + OPERANDS;
pub(in crate::uet) const WINDOW: usize = UDP + BODY;

pub(super) const PDS_BITS: usize = 8 * PDS;
pub(super) const SES_BITS: usize = 8 * SES;
pub(super) const OPERANDS_BITS: usize = 8 * OPERANDS;
/// SES header and operands.
pub(super) const TAIL_BITS: usize = SES_BITS + OPERANDS_BITS;
pub(super) const BODY_BITS: usize = 8 * BODY;
pub(in crate::uet) const WINDOW_BITS: usize = 8 * WINDOW;
/// A body with the SES header behind the longest PDS header, of which the end is never used.
pub(super) const LONG_BITS: usize = PDS_BITS + TAIL_BITS;

/// Lengths of PDS headers that something may stand behind.
pub(super) const PLACES: usize = 5;
pub(super) const PLACE: [usize; PLACES] = [PdsUud::BYTES, PdsRudi::BYTES, PdsRequest::BYTES, PdsRequest::BYTES + PdsRequestCc::BYTES, PDS];
/// Lengths of SES headers that operands may stand behind: small, medium, standard.
pub(super) const SHORTS: [usize; 3] = [SesSmall::BYTES, SesMedium::BYTES, SesFirst::BYTES];

/// Numbers of the forms.
pub(super) mod form {
    use super::NextHeader;
    pub const SMALL: u64 = NextHeader::Small as u64;
    pub const MEDIUM: u64 = NextHeader::Medium as u64;
    pub const STANDARD: u64 = NextHeader::Standard as u64;
    pub const RESPONSE: u64 = NextHeader::Response as u64;
    pub const DATA: u64 = NextHeader::ResponseData as u64;
    pub const DATA_SMALL: u64 = NextHeader::ResponseDataSmall as u64;
}

/// First and last operation of the compare-and-swap family.
pub(super) const FIRST_SWAP: u64 = AtomicOp::Cswap as u64;
pub(super) const LAST_SWAP: u64 = AtomicOp::Mswap as u64;

/// What type and next header of a PDS header say.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Kind {
    /// Why such a packet is not taken whatever its length is, and why if it is long enough.
    pub early: Bits<5>,
    pub late: Bits<5>,
    /// Bytes of the header, and which of `PLACE` that is.
    pub size: Bits<6>,
    pub place: Bits<PLACES>,
    /// SES header.
    pub form: Bits<3>,
    pub request: Bit,
    pub request_cc: Bit,
    pub ack: Bit,
    pub ack_cc: Bit,
    pub nack: Bit,
    pub control: Bit,
    pub rudi: Bit,
    pub uud: Bit,
}

/// Bits of a type and a next header together, and of [`Kind`].
pub(super) const KIND_KEY: usize = 9;
pub(super) const KIND_BITS: usize = 5 + 5 + 6 + PLACES + 3 + 8;

/// Packs widths and values, the first lowest.
fn packed(fields: &[(usize, u128)]) -> u128 {
    fields.iter().rev().fold(0, |all, (width, value)| {
        assert!(value >> width == 0);
        all << width | value
    })
}

/// Entry of the table of types: the type is in the low 5 bits, the next header above.
pub(super) fn kind(key: usize) -> u128 {
    let (kind, next) = ((key & 31) as u8, (key >> 5) as u8);
    let early = |early: u64| packed(&[(5, early.into()), (KIND_BITS - 5, 0)]);
    use PdsType as T;
    let Some(kind) = PdsType::from_u8(kind) else { return early(cause::PDS_TYPE) };
    let request = matches!(kind, T::RudReq | T::RodReq);
    let request_cc = matches!(kind, T::RudCcReq | T::RodCcReq);
    let rudi = matches!(kind, T::RudiReq | T::RudiResp);
    let size = match kind {
        T::Tss => return early(cause::TSS),
        T::AckCcx | T::NackCcx => return early(cause::CCX),
        T::RudReq | T::RodReq => PdsRequest::BYTES,
        T::RudCcReq | T::RodCcReq => PdsRequest::BYTES + PdsRequestCc::BYTES,
        T::Ack => PdsAck::BYTES,
        T::AckCc => PDS,
        T::Nack => PdsNack::BYTES,
        T::Control => PdsControl::BYTES,
        T::RudiReq | T::RudiResp => PdsRudi::BYTES,
        T::UudReq => PdsUud::BYTES,
    };
    use NextHeader as N;
    let late = match (kind, NextHeader::from_u8(next)) {
        (T::Control, _) => cause::NONE,
        (_, None) => cause::NEXT_HEADER,
        (_, Some(next)) => {
            let allowed = match kind {
                T::RudReq | T::RodReq | T::RudCcReq | T::RodCcReq => matches!(next, N::Small | N::Medium | N::Standard | N::ResponseData | N::ResponseDataSmall),
                T::RudiReq => matches!(next, N::Small | N::Medium | N::Standard),
                T::UudReq => matches!(next, N::Medium | N::Standard),
                T::RudiResp => matches!(next, N::Response | N::ResponseData | N::ResponseDataSmall),
                T::Ack | T::AckCc => matches!(next, N::None | N::Response | N::ResponseData | N::ResponseDataSmall),
                _ => next == N::None,
            };
            if allowed {
                cause::NONE
            } else {
                cause::NEXT_NOT_ALLOWED
            }
        }
    };
    let place = PLACE.iter().enumerate().map(|(n, bytes)| u128::from(*bytes == size) << n).sum();
    let form = if late != cause::NONE || kind == T::Control { 0 } else { next };
    let is = [request | request_cc, request_cc, matches!(kind, T::Ack | T::AckCc), kind == T::AckCc, kind == T::Nack, kind == T::Control, rudi, kind == T::UudReq];
    let mut fields = vec![(5, 0), (5, late.into()), (6, size as u128), (PLACES, place), (3, form.into())];
    fields.extend(is.map(|is| (1, is.into())));
    packed(&fields)
}

/// What the operation of a request says.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Operation {
    /// The atomics' extension follows.
    pub atomic: Bit,
    pub datagram: Bit,
    /// No payload follows, whatever the length says.
    pub bare: Bit,
}

/// Entry of the table of operations.
pub(super) fn operation(opcode: usize) -> u128 {
    use SesOpcode as O;
    let Some(opcode) = SesOpcode::from_u8(opcode as u8) else { return 0 };
    let atomic = matches!(opcode, O::Atomic | O::FetchingAtomic | O::TaggedAtomic | O::TaggedFetchAtomic);
    let bare = matches!(opcode, O::Read | O::NoOp | O::MessageError | O::DeferrableReady);
    packed(&[(1, atomic.into()), (1, (opcode == O::DatagramSend).into()), (1, bare.into())])
}

/// Entry of the table of forms: bytes of the SES header.
pub(super) fn form_bytes(form: usize) -> u128 {
    let bytes = match NextHeader::from_u8(form as u8) {
        None | Some(NextHeader::None) => 0,
        Some(NextHeader::Small) => SesSmall::BYTES,
        Some(NextHeader::Medium) => SesMedium::BYTES,
        Some(NextHeader::Standard) => SesFirst::BYTES,
        Some(NextHeader::Response) => SesResponse::BYTES,
        Some(NextHeader::ResponseData) => SesResponseData::BYTES,
        Some(NextHeader::ResponseDataSmall) => SesResponseDataSmall::BYTES,
    };
    bytes as u128
}

/// Raw bits of fields of the record of `layout` at byte `at`, for `BePick::new` and `BePack::new`.
fn bits_of(layout: &Layout, at: usize, names: &[&str]) -> Vec<usize> {
    let field = |name: &&str| layout.field(name).unwrap_or_else(|| panic!("{} has no field {name}", layout.name));
    names.iter().map(field).flat_map(|f| (0..f.width).map(move |bit| 8 * at + layout.raw_bit(f, bit))).collect()
}

/// How many bits of a record are reserved.
pub(super) const fn reserved_bits(layout: &Layout) -> usize {
    let (mut n, mut bits) = (0, 0);
    while n < layout.fields.len() {
        let name = layout.fields[n].name.as_bytes();
        if name.len() > 3 && name[0] == b'r' && name[1] == b's' && name[2] == b'v' && name[3] == b'd' {
            bits += layout.fields[n].width;
        }
        n += 1;
    }
    bits
}

/// Raw bits of its reserved fields.
pub(super) fn reserved(layout: &Layout, at: usize) -> Vec<usize> {
    let names: Vec<&str> = layout.fields.iter().map(|f| f.name).filter(|name| name.starts_with("rsvd")).collect();
    bits_of(layout, at, &names)
}

/// Where the fields of a PDS header stand, whatever its type is.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Front {
    pub kind: Bits<5>,
    pub follows: Bits<4>,
    /// `marked` or `rod`; `retx`; `ar`, `probe` or `rudi`; `req` or, above, `syn`.
    pub high: Bit,
    pub retx: Bit,
    pub middle: Bit,
    pub low: Bits<2>,
    pub word: Bits<16>,
    pub psn: Bits<32>,
    pub spdcid: Bits<16>,
    pub dpdcid: Bits<16>,
    /// Of an ACK with congestion state its type, 4 reserved bits, MPR and SACK offset.
    pub payload: Bits<32>,
    pub bitmap: Bits<64>,
    pub state: Bits<64>,
}

pub(super) fn front() -> Vec<usize> {
    let ack = bits_of(&PdsAck::LAYOUT, 0, &["kind", "next", "marked", "retx", "probe", "req", "psn_offset", "cack", "spdcid", "dpdcid"]);
    let payload = bits_of(&PdsNack::LAYOUT, 0, &["payload"]);
    let cc = bits_of(&PdsAckCc::LAYOUT, PdsAck::BYTES, &["bitmap", "state"]);
    [ack, payload, cc].concat()
}

/// Type and next header, the key of [`kind`].
pub(super) fn prologue() -> Vec<usize> {
    bits_of(&PdsAck::LAYOUT, 0, &["kind", "next"])
}

/// Where the fields of a request stand, whatever its form is; of responses the first ones stand in the same places.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Request {
    pub opcode: Bits<6>,
    pub version: Bits<2>,
    pub dc: Bit,
    pub ie: Bit,
    pub rel: Bit,
    pub hd: Bit,
    pub eom: Bit,
    pub som: Bit,
    pub message: Bits<16>,
    pub generation: Bits<8>,
    pub job: Bits<24>,
    pub pid: Bits<12>,
    pub index: Bits<12>,
    pub offset: Bits<64>,
    pub initiator: Bits<32>,
    pub key: Bits<64>,
    pub header_data: Bits<64>,
    pub request_length: Bits<32>,
}

pub(super) fn request() -> Vec<usize> {
    let names = ["opcode", "version", "dc", "ie", "rel", "hd", "eom", "som", "message_id", "generation", "job_id", "pid", "index", "offset", "initiator", "key", "header_data", "request_length"];
    bits_of(&SesFirst::LAYOUT, 0, &names)
}

/// What other packets of a standard request have in the place of header data.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Later {
    pub payload_length: Bits<14>,
    pub message_offset: Bits<32>,
}

pub(super) fn later() -> Vec<usize> {
    bits_of(&SesNext::LAYOUT, 0, &["payload_length", "message_offset"])
}

/// Length of a short form; it stands in the same place in a small and a medium one.
pub(super) fn short_length() -> Vec<usize> {
    bits_of(&SesSmall::LAYOUT, 0, &["request_length"])
}

/// Bits of a length in short forms and of payload lengths.
pub(super) const LENGTH: usize = 14;

/// A response.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Response {
    pub list: Bits<2>,
    pub code: Bits<6>,
    pub modified_length: Bits<32>,
}

pub(super) fn response() -> Vec<usize> {
    bits_of(&SesResponse::LAYOUT, 0, &["list", "code", "modified_length"])
}

/// What only a response with data has, or has elsewhere.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Data {
    pub read_id: Bits<16>,
    pub payload_length: Bits<14>,
    pub modified_length: Bits<32>,
    pub message_offset: Bits<32>,
}

pub(super) fn data() -> Vec<usize> {
    bits_of(&SesResponseData::LAYOUT, 0, &["read_id", "payload_length", "modified_length", "message_offset"])
}

/// The same of a response with data to a short request.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct DataSmall {
    pub payload_length: Bits<14>,
    pub request_psn: Bits<32>,
}

pub(super) fn data_small() -> Vec<usize> {
    bits_of(&SesResponseDataSmall::LAYOUT, 0, &["payload_length", "request_psn"])
}

/// The extension of atomics and the operands behind it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Extension {
    pub operation: Bits<8>,
    pub datatype: Bits<8>,
    pub control: Bits<8>,
    pub compare: Bits<128>,
    pub swap: Bits<128>,
}

pub(super) fn extension() -> Vec<usize> {
    let atomic = bits_of(&SesAtomic::LAYOUT, 0, &["operation", "datatype", "control"]);
    [atomic, bits_of(&SesCompare::LAYOUT, SesAtomic::BYTES, &["compare", "swap"])].concat()
}
