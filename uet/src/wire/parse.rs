//! From bytes to headers.
use super::carriage::{checksum, Addresses, Carriage};
use super::headers::{Operands, Pds, Ses};
use super::{crc32c, Registers};
use ferric_abi::uet::codes::{AtomicOp, NextHeader, PdsType, SesOpcode};
use ferric_abi::uet::{PdsAck, PdsAckCc, PdsControl, PdsNack, PdsPrologue, PdsRequest, PdsRequestCc, PdsRudi, PdsUud, SesHead, UetEntropy, UET_CRC_BYTES};
use ferric_abi::uet::{SesAtomic, SesCompare, SesFirst, SesMedium, SesNext, SesResponse, SesResponseData, SesResponseDataSmall, SesSmall};
use ferric_abi::wire::{ethertype, protocol, Eth, Ipv4, Ipv6, Udp, Vlan};

/// Why a frame is not taken. Each is a counter of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bad {
    /// Neither UDP to the port nor the native protocol: none of ours.
    NotUet,
    /// Ends inside a header below the PDS.
    Truncated,
    /// IPv4 with options, or a fragment.
    Fragment,
    /// The header checksum of IPv4 is wrong.
    IpChecksum,
    /// The length of IP is beyond the frame or within a header.
    IpLength,
    /// The length of UDP is not that of IP.
    UdpLength,
    /// Source or destination is a group.
    Group,
    /// Ends inside the PDS header.
    PdsShort,
    /// A type that is reserved.
    PdsType(u8),
    /// A security header, which is not implemented.
    Tss,
    /// A type of ACK or NACK that is reserved.
    Ccx,
    /// A next header that is reserved.
    NextHeader(u8),
    /// One that this type may not have.
    NextNotAllowed(u8),
    /// Ends inside the SES header.
    SesShort,
    /// The CRC-32C is wrong.
    Crc,
    /// A version but 0.
    Version(u8),
    /// The header says more payload than there is.
    PayloadLength,
    /// A short form that is not a whole message.
    ShortForm,
    /// A small form with header data.
    HeaderData,
    /// Bytes beyond the end of the message.
    Range,
    /// DATAGRAM_SEND that is not UUD, or UUD that is not a datagram of one packet.
    Datagram,
}

/// How a frame was trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trim {
    /// By a switch on the way.
    Path,
    /// By the last switch.
    LastHop,
}

/// A frame, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// What carried it.
    pub carriage: Carriage,
    /// How it was trimmed; then there is neither SES header nor payload.
    pub trim: Option<Trim>,
    /// Packet delivery.
    pub pds: Pds,
    /// Semantics.
    pub ses: Ses,
    /// Payload, without what pads the frame.
    pub payload: Vec<u8>,
}

impl Parsed {
    /// Reserved fields that are not zero. They are ignored, and counted.
    pub fn reserved(&self) -> Vec<String> {
        let mut fields = Vec::new();
        self.pds.reserved(&mut fields);
        self.ses.reserved(&mut fields);
        fields
    }
}

/// Takes records off the front.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take<const N: usize>(&mut self, short: Bad) -> Result<[u8; N], Bad> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(short)?;
        self.0 = rest;
        Ok(*head)
    }
}

const GROUP_BIT: u64 = 1 << 40;

/// IP of either version: addresses, DSCP, ECN, hops, protocol; the cursor is cut to what IP says is its payload. The third part is the CRC's start, the addresses.
fn network<'a>(cursor: &mut Cursor<'a>, ether: u16) -> Result<(Addresses, u8, u8, u8, u8, &'a [u8]), Bad> {
    let whole = cursor.0;
    let (addresses, dscp, ecn, hops, kind, header, length) = match ether {
        ethertype::IPV4 => {
            let ip = Ipv4(cursor.take(Bad::Truncated)?);
            if ip.version() != 4 || ip.ihl() != 5 || ip.fragment() != 0 || ip.flags() & 1 != 0 {
                return Err(Bad::Fragment);
            }
            if checksum(&ip.0) != 0 {
                return Err(Bad::IpChecksum);
            }
            (Addresses::V4(ip.src(), ip.dst()), ip.dscp(), ip.ecn(), ip.ttl(), ip.protocol(), Ipv4::BYTES, ip.total_length() as usize)
        }
        ethertype::IPV6 => {
            let ip = Ipv6(cursor.take(Bad::Truncated)?);
            (Addresses::V6(ip.src(), ip.dst()), ip.dscp(), ip.ecn(), ip.hop_limit(), ip.next_header(), Ipv6::BYTES, Ipv6::BYTES + ip.payload_length() as usize)
        }
        _ => return Err(Bad::NotUet),
    };
    if length < header || length > whole.len() {
        return Err(Bad::IpLength);
    }
    cursor.0 = &whole[header..length];
    let addresses_at = if ether == ethertype::IPV4 { 12 } else { 8 };
    Ok((addresses, dscp, ecn, hops, kind, &whole[addresses_at..length]))
}

/// Ethernet with one tag at most: header, tag, EtherType of what follows.
fn link(cursor: &mut Cursor) -> Result<(Eth, Option<u16>, u16), Bad> {
    let eth = Eth(cursor.take(Bad::Truncated)?);
    if eth.ethertype() != ethertype::VLAN {
        return Ok((eth, None, eth.ethertype()));
    }
    let vlan = Vlan(cursor.take(Bad::Truncated)?);
    let tag = u16::from(vlan.pcp()) << 13 | u16::from(vlan.dei()) << 12 | vlan.vid();
    Ok((eth, Some(tag), vlan.ethertype()))
}

/// Addresses of IP, whatever is behind them.
pub fn addresses(frame: &[u8]) -> Result<Addresses, Bad> {
    let mut cursor = Cursor(frame);
    let (_, _, ether) = link(&mut cursor)?;
    network(&mut cursor, ether).map(|(addresses, ..)| addresses)
}

fn delivery(cursor: &mut Cursor) -> Result<(Pds, NextHeader), Bad> {
    let [high, low] = *cursor.0.first_chunk().ok_or(Bad::PdsShort)?;
    let prologue = PdsPrologue([high, low]);
    let kind = PdsType::from_u8(prologue.kind()).ok_or(Bad::PdsType(prologue.kind()))?;
    let pds = match kind {
        PdsType::Tss => return Err(Bad::Tss),
        PdsType::AckCcx | PdsType::NackCcx => return Err(Bad::Ccx),
        PdsType::RudReq | PdsType::RodReq => Pds::Request(PdsRequest(cursor.take(Bad::PdsShort)?), None),
        PdsType::RudCcReq | PdsType::RodCcReq => Pds::Request(PdsRequest(cursor.take(Bad::PdsShort)?), Some(PdsRequestCc(cursor.take(Bad::PdsShort)?))),
        PdsType::Ack => Pds::Ack(PdsAck(cursor.take(Bad::PdsShort)?), None),
        PdsType::AckCc => Pds::Ack(PdsAck(cursor.take(Bad::PdsShort)?), Some(PdsAckCc(cursor.take(Bad::PdsShort)?))),
        PdsType::Nack => Pds::Nack(PdsNack(cursor.take(Bad::PdsShort)?)),
        PdsType::Control => return Ok((Pds::Control(PdsControl(cursor.take(Bad::PdsShort)?)), NextHeader::None)),
        PdsType::RudiReq | PdsType::RudiResp => Pds::Rudi(PdsRudi(cursor.take(Bad::PdsShort)?)),
        PdsType::UudReq => Pds::Uud(PdsUud(cursor.take(Bad::PdsShort)?)),
    };
    let next = NextHeader::from_u8(prologue.next()).ok_or(Bad::NextHeader(prologue.next()))?;
    use NextHeader as N;
    let allowed = match kind {
        // READ data come as requests of the return direction.
        PdsType::RudReq | PdsType::RodReq | PdsType::RudCcReq | PdsType::RodCcReq => matches!(next, N::Small | N::Medium | N::Standard | N::ResponseData | N::ResponseDataSmall),
        PdsType::RudiReq => matches!(next, N::Small | N::Medium | N::Standard),
        PdsType::UudReq => matches!(next, N::Medium | N::Standard),
        PdsType::RudiResp => matches!(next, N::Response | N::ResponseData | N::ResponseDataSmall),
        PdsType::Ack | PdsType::AckCc => matches!(next, N::None | N::Response | N::ResponseData | N::ResponseDataSmall),
        _ => next == N::None,
    };
    if !allowed {
        return Err(Bad::NextNotAllowed(prologue.next()));
    }
    Ok((pds, next))
}

/// What atomics have behind the header, by their opcode.
fn operands(cursor: &mut Cursor, opcode: u8) -> Result<Operands, Bad> {
    let atomics = [SesOpcode::Atomic, SesOpcode::FetchingAtomic, SesOpcode::TaggedAtomic, SesOpcode::TaggedFetchAtomic];
    if !SesOpcode::from_u8(opcode).is_some_and(|op| atomics.contains(&op)) {
        return Ok(Operands::default());
    }
    let atomic = SesAtomic(cursor.take(Bad::SesShort)?);
    let swaps = (AtomicOp::Cswap as u8..=AtomicOp::Mswap as u8).contains(&atomic.operation());
    let compare = if swaps { Some(SesCompare(cursor.take(Bad::SesShort)?)) } else { None };
    Ok(Operands { atomic: Some(atomic), compare })
}

/// The SES header, and how many bytes of payload it says; none: all that there are.
fn semantics(cursor: &mut Cursor, next: NextHeader) -> Result<(Ses, Option<usize>), Bad> {
    Ok(match next {
        NextHeader::None => (Ses::None, None),
        NextHeader::Small => {
            let head = SesSmall(cursor.take(Bad::SesShort)?);
            (Ses::Small(head, operands(cursor, head.opcode())?), None)
        }
        NextHeader::Medium => {
            let head = SesMedium(cursor.take(Bad::SesShort)?);
            (Ses::Medium(head, operands(cursor, head.opcode())?), None)
        }
        NextHeader::Standard => {
            let som = cursor.0.first_chunk().map(|head| SesHead(*head)).ok_or(Bad::SesShort)?.som();
            if som {
                let head = SesFirst(cursor.take(Bad::SesShort)?);
                (Ses::First(head, operands(cursor, head.opcode())?), None)
            } else {
                let head = SesNext(cursor.take(Bad::SesShort)?);
                (Ses::Next(head, operands(cursor, head.opcode())?), Some(head.payload_length() as usize))
            }
        }
        NextHeader::Response => (Ses::Response(SesResponse(cursor.take(Bad::SesShort)?)), None),
        NextHeader::ResponseData => {
            let head = SesResponseData(cursor.take(Bad::SesShort)?);
            (Ses::Data(head), Some(head.payload_length() as usize))
        }
        NextHeader::ResponseDataSmall => {
            let head = SesResponseDataSmall(cursor.take(Bad::SesShort)?);
            (Ses::DataSmall(head), Some(head.payload_length() as usize))
        }
    })
}

/// What the headers say against each other; gives the bytes of payload.
fn agree(pds: &Pds, ses: &Ses, said: Option<usize>, there: usize) -> Result<usize, Bad> {
    if ses.version() != 0 {
        return Err(Bad::Version(ses.version()));
    }
    let bytes = said.unwrap_or(there);
    if bytes > there {
        return Err(Bad::PayloadLength);
    }
    let inside = |end: u64, length: u32| if end > u64::from(length) { Err(Bad::Range) } else { Ok(()) };
    match ses {
        Ses::Small(head, _) if head.hd() => return Err(Bad::HeaderData),
        Ses::Small(head, _) if !head.som() || !head.eom() => return Err(Bad::ShortForm),
        Ses::Medium(head, _) if !head.som() || !head.eom() => return Err(Bad::ShortForm),
        Ses::Next(head, _) => inside(u64::from(head.message_offset()) + bytes as u64, head.request_length())?,
        _ => {}
    }
    let datagram = ses.opcode() == Some(SesOpcode::DatagramSend as u8);
    let whole = match ses {
        Ses::First(head, _) => head.eom() && head.message_id() == 0,
        Ses::Medium(..) => true,
        _ => false,
    };
    if datagram != matches!(pds, Pds::Uud(_)) || datagram && !whole {
        return Err(Bad::Datagram);
    }
    // A message that is one packet says its length once: what is behind it pads the frame.
    let length = match ses {
        Ses::Small(head, _) => head.request_length() as usize,
        Ses::Medium(head, _) => head.request_length() as usize,
        Ses::First(head, _) if head.eom() => head.request_length() as usize,
        Ses::First(head, _) => (head.request_length() as usize).min(bytes),
        _ => bytes,
    };
    let carries = !matches!(ses.opcode().and_then(SesOpcode::from_u8), Some(SesOpcode::Read | SesOpcode::NoOp | SesOpcode::MessageError | SesOpcode::DeferrableReady)) && !swaps(ses);
    if !carries {
        return Ok(0);
    }
    if length > bytes {
        return Err(Bad::PayloadLength);
    }
    Ok(length)
}

/// Whether the operands stand in the header, so that the length counts bytes that are not payload.
fn swaps(ses: &Ses) -> bool {
    matches!(ses, Ses::Small(_, o) | Ses::Medium(_, o) | Ses::First(_, o) | Ses::Next(_, o) if o.compare.is_some())
}

/// Understands a frame, or says why not.
pub fn parse(frame: &[u8], registers: &Registers) -> Result<Parsed, Bad> {
    let (mut parsed, said) = headers(frame, registers)?;
    if parsed.trim.is_none() {
        let length = agree(&parsed.pds, &parsed.ses, said, parsed.payload.len())?;
        parsed.payload.truncate(length);
    }
    Ok(parsed)
}

/// Its headers, whether or not they contradict each other; all that is behind them counts as payload. For samples of headers, which are no packets.
pub fn layout(frame: &[u8], registers: &Registers) -> Result<Parsed, Bad> {
    headers(frame, registers).map(|(parsed, _)| parsed)
}

/// Whether the headers of a packet contradict each other.
pub fn agreed(parsed: &Parsed) -> Result<(), Bad> {
    let said = match parsed.ses {
        Ses::Next(head, _) => Some(head.payload_length() as usize),
        Ses::Data(head) => Some(head.payload_length() as usize),
        Ses::DataSmall(head) => Some(head.payload_length() as usize),
        _ => None,
    };
    agree(&parsed.pds, &parsed.ses, said, parsed.payload.len()).map(|_| ())
}

fn headers(frame: &[u8], registers: &Registers) -> Result<(Parsed, Option<usize>), Bad> {
    let mut cursor = Cursor(frame);
    let (eth, tag, ether) = link(&mut cursor)?;
    let (addresses, dscp, ecn, hops, kind, covered) = network(&mut cursor, ether)?;
    let trim = [(registers.dscp_trimmed, Trim::Path), (registers.dscp_trimmed_last, Trim::LastHop)].into_iter().find(|(number, _)| *number == dscp).map(|(_, trim)| trim);
    let (native, entropy) = if kind == protocol::UDP {
        let inner = cursor.0.len();
        let udp = Udp(cursor.take(Bad::Truncated)?);
        if udp.dst_port() != registers.port {
            return Err(Bad::NotUet);
        }
        // Who trims a frame may leave the length as it was.
        if trim.is_none() && udp.length() as usize != inner {
            return Err(Bad::UdpLength);
        }
        (None, udp.src_port())
    } else if registers.native == Some(kind) {
        (Some(kind), UetEntropy(cursor.take(Bad::Truncated)?).entropy())
    } else {
        return Err(Bad::NotUet);
    };
    let carriage = Carriage { dst_mac: eth.dst(), src_mac: eth.src(), tag, addresses, dscp, ecn, hops, native, entropy };
    if (eth.dst() | eth.src()) & GROUP_BIT != 0 {
        return Err(Bad::Group);
    }
    if trim.is_some() {
        let (pds, _) = delivery(&mut cursor)?;
        return Ok((Parsed { carriage, trim, pds, ses: Ses::None, payload: Vec::new() }, None));
    }
    if registers.crc {
        let (rest, crc) = cursor.0.split_last_chunk::<UET_CRC_BYTES>().ok_or(Bad::PdsShort)?;
        let said = if registers.crc_big { u32::from_be_bytes(*crc) } else { u32::from_le_bytes(*crc) };
        if crc32c(&covered[..covered.len() - UET_CRC_BYTES]) != said {
            return Err(Bad::Crc);
        }
        cursor.0 = rest;
    }
    let (pds, next) = delivery(&mut cursor)?;
    let (ses, said) = semantics(&mut cursor, next)?;
    Ok((Parsed { carriage, trim, pds, ses, payload: cursor.0.to_vec() }, said))
}
