//! The headers of packet delivery and of semantics, one variant for each form.
use ferric_abi::layout::{get, Layout};
use ferric_abi::uet::{
    PdsAck, PdsAckCc, PdsControl, PdsNack, PdsRequest, PdsRequestCc, PdsRudi, PdsUud, SesAtomic, SesCompare, SesFirst, SesMedium, SesNext, SesResponse, SesResponseData, SesResponseDataSmall, SesSmall,
};

/// Packet delivery header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pds {
    /// RUD or ROD, with congestion state or without.
    Request(PdsRequest, Option<PdsRequestCc>),
    /// ACK, or ACK_CC with its second part.
    Ack(PdsAck, Option<PdsAckCc>),
    /// NACK.
    Nack(PdsNack),
    /// Control packet.
    Control(PdsControl),
    /// RUDI request or response.
    Rudi(PdsRudi),
    /// UUD request.
    Uud(PdsUud),
}

/// What atomics carry behind their request header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Operands {
    /// The extension.
    pub atomic: Option<SesAtomic>,
    /// Both operands of the compare-and-swap family.
    pub compare: Option<SesCompare>,
}

/// Header of semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ses {
    /// None.
    None,
    /// Small request.
    Small(SesSmall, Operands),
    /// Medium request.
    Medium(SesMedium, Operands),
    /// Standard request, first packet.
    First(SesFirst, Operands),
    /// Standard request, a packet behind it.
    Next(SesNext, Operands),
    /// Response.
    Response(SesResponse),
    /// Response with data.
    Data(SesResponseData),
    /// Response with data to a short request.
    DataSmall(SesResponseDataSmall),
}

/// Reserved fields of a record that are not zero.
fn set_fields(layout: &Layout, raw: &[u8], into: &mut Vec<String>) {
    let reserved = layout.fields.iter().filter(|f| f.name.starts_with("rsvd") && get(raw, layout.order, f.offset, f.width) != 0);
    into.extend(reserved.map(|f| format!("{}.{}", layout.name, f.name)));
}

impl Operands {
    fn bytes(&self) -> Vec<u8> {
        [self.atomic.map_or(Vec::new(), |a| a.0.to_vec()), self.compare.map_or(Vec::new(), |c| c.0.to_vec())].concat()
    }

    fn reserved(&self, into: &mut Vec<String>) {
        if let Some(atomic) = self.atomic {
            set_fields(&SesAtomic::LAYOUT, &atomic.0, into);
        }
    }
}

impl Pds {
    /// As it stands on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Request(head, cc) => [head.0.to_vec(), cc.map_or(Vec::new(), |cc| cc.0.to_vec())].concat(),
            Self::Ack(head, cc) => [head.0.to_vec(), cc.map_or(Vec::new(), |cc| cc.0.to_vec())].concat(),
            Self::Nack(head) => head.0.to_vec(),
            Self::Control(head) => head.0.to_vec(),
            Self::Rudi(head) => head.0.to_vec(),
            Self::Uud(head) => head.0.to_vec(),
        }
    }

    pub(super) fn reserved(&self, into: &mut Vec<String>) {
        match self {
            Self::Request(head, _) => set_fields(&PdsRequest::LAYOUT, &head.0, into),
            Self::Ack(head, cc) => {
                set_fields(&PdsAck::LAYOUT, &head.0, into);
                if let Some(cc) = cc {
                    set_fields(&PdsAckCc::LAYOUT, &cc.0, into);
                }
            }
            Self::Nack(head) => set_fields(&PdsNack::LAYOUT, &head.0, into),
            Self::Control(head) => set_fields(&PdsControl::LAYOUT, &head.0, into),
            Self::Rudi(head) => set_fields(&PdsRudi::LAYOUT, &head.0, into),
            Self::Uud(head) => set_fields(&PdsUud::LAYOUT, &head.0, into),
        }
    }
}

impl Ses {
    /// As it stands on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::None => Vec::new(),
            Self::Small(head, operands) => [&head.0[..], &operands.bytes()].concat(),
            Self::Medium(head, operands) => [&head.0[..], &operands.bytes()].concat(),
            Self::First(head, operands) => [&head.0[..], &operands.bytes()].concat(),
            Self::Next(head, operands) => [&head.0[..], &operands.bytes()].concat(),
            Self::Response(head) => head.0.to_vec(),
            Self::Data(head) => head.0.to_vec(),
            Self::DataSmall(head) => head.0.to_vec(),
        }
    }

    /// Operation, if it is a request.
    pub fn opcode(&self) -> Option<u8> {
        match self {
            Self::Small(head, _) => Some(head.opcode()),
            Self::Medium(head, _) => Some(head.opcode()),
            Self::First(head, _) => Some(head.opcode()),
            Self::Next(head, _) => Some(head.opcode()),
            _ => None,
        }
    }

    /// Version, which is 0.
    pub fn version(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Small(head, _) => head.version(),
            Self::Medium(head, _) => head.version(),
            Self::First(head, _) => head.version(),
            Self::Next(head, _) => head.version(),
            Self::Response(head) => head.version(),
            Self::Data(head) => head.version(),
            Self::DataSmall(head) => head.version(),
        }
    }

    pub(super) fn reserved(&self, into: &mut Vec<String>) {
        match self {
            Self::None => {}
            Self::Small(head, operands) => {
                set_fields(&SesSmall::LAYOUT, &head.0, into);
                operands.reserved(into);
            }
            Self::Medium(head, operands) => {
                set_fields(&SesMedium::LAYOUT, &head.0, into);
                operands.reserved(into);
            }
            Self::First(head, operands) => {
                set_fields(&SesFirst::LAYOUT, &head.0, into);
                operands.reserved(into);
            }
            Self::Next(head, operands) => {
                set_fields(&SesNext::LAYOUT, &head.0, into);
                operands.reserved(into);
            }
            Self::Response(head) => set_fields(&SesResponse::LAYOUT, &head.0, into),
            Self::Data(head) => set_fields(&SesResponseData::LAYOUT, &head.0, into),
            Self::DataSmall(head) => set_fields(&SesResponseDataSmall::LAYOUT, &head.0, into),
        }
    }
}
