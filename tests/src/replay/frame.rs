//! RoCEv2 frames as values: decoded from the wire, changed, and encoded again with right lengths and ICRC.
pub use super::op::{Kind, Op};
use ferric_abi::wire::{Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Eth, Feth, Ieth, ImmDt, Ipv4, Ipv6, Reth, Udp, Vlan};
use ferric_hdl::net::icrc::model as icrc;
use std::net::IpAddr;

const ROCE_PORT: u16 = 4791;
const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

/// Network layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ip {
    /// IPv4 without options.
    V4(Ipv4),
    /// IPv6 without extension headers.
    V6(Ipv6),
}

impl Ip {
    /// Source address.
    pub fn src(&self) -> IpAddr {
        match self {
            Ip::V4(h) => IpAddr::V4(h.src().into()),
            Ip::V6(h) => IpAddr::V6(h.src().into()),
        }
    }
    /// Destination address.
    pub fn dst(&self) -> IpAddr {
        match self {
            Ip::V4(h) => IpAddr::V4(h.dst().into()),
            Ip::V6(h) => IpAddr::V6(h.dst().into()),
        }
    }
}

/// One RoCEv2 frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Ethernet header.
    pub eth: Eth,
    /// 802.1Q tag.
    pub vlan: Option<Vlan>,
    /// IP header.
    pub ip: Ip,
    /// UDP header.
    pub udp: Udp,
    /// Base transport header.
    pub bth: Bth,
    /// Operation.
    pub op: Op,
    /// Datagram header.
    pub deth: Option<Deth>,
    /// FLUSH header.
    pub feth: Option<Feth>,
    /// RDMA header.
    pub reth: Option<Reth>,
    /// Atomic header.
    pub atomic: Option<AtomicEth>,
    /// Acknowledge header.
    pub aeth: Option<Aeth>,
    /// Atomic result.
    pub atomic_ack: Option<AtomicAckEth>,
    /// Immediate data.
    pub imm: Option<ImmDt>,
    /// Key to invalidate.
    pub ieth: Option<Ieth>,
    /// Payload without pad.
    pub payload: Vec<u8>,
    /// The pad bytes as they were.
    pub pad: Vec<u8>,
    /// ICRC as received XOR the right one: zero is right.
    pub icrc_error: u32,
}

/// Cuts a header off the front of a slice.
macro_rules! cut {
    ($rest:ident, $ty:ident) => {{
        let Some((head, tail)) = $rest.split_first_chunk::<{ $ty::BYTES }>() else { return Err(concat!("ends inside ", stringify!($ty)).into()) };
        $rest = tail;
        $ty(*head)
    }};
}

impl Frame {
    /// Decodes a frame; `Ok(None)` when it is not RoCEv2.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, String> {
        let mut rest = bytes;
        let eth = cut!(rest, Eth);
        let (vlan, ethertype) = if eth.ethertype() == ETHERTYPE_VLAN {
            let tag = cut!(rest, Vlan);
            (Some(tag), tag.ethertype())
        } else {
            (None, eth.ethertype())
        };
        let ip = match ethertype {
            ETHERTYPE_IPV4 => {
                let h = cut!(rest, Ipv4);
                if h.protocol() != 17 {
                    return Ok(None);
                }
                if h.ihl() != 5 {
                    return Err("IPv4 options".into());
                }
                let len = (h.total_length() as usize).checked_sub(Ipv4::BYTES).ok_or("IPv4 length shorter than its header")?;
                rest = rest.get(..len).ok_or("shorter than the IPv4 length says")?;
                Ip::V4(h)
            }
            ETHERTYPE_IPV6 => {
                let h = cut!(rest, Ipv6);
                if h.next_header() != 17 {
                    return Ok(None);
                }
                rest = rest.get(..h.payload_length() as usize).ok_or("shorter than the IPv6 length says")?;
                Ip::V6(h)
            }
            _ => return Ok(None),
        };
        let udp = cut!(rest, Udp);
        if udp.dst_port() != ROCE_PORT {
            return Ok(None);
        }
        let bth = cut!(rest, Bth);
        let op = Op::of(bth.opcode()).ok_or_else(|| format!("reserved opcode {:#04x}", bth.opcode()))?;
        let deth = if bth.opcode() >> 5 == 3 { Some(cut!(rest, Deth)) } else { None };
        let feth = if op.kind == Kind::Flush { Some(cut!(rest, Feth)) } else { None };
        let has_reth = matches!(op.kind, Kind::ReadRequest | Kind::Flush | Kind::AtomicWrite) || op.kind == Kind::Write && op.first;
        let reth = if has_reth { Some(cut!(rest, Reth)) } else { None };
        let atomic = if matches!(op.kind, Kind::CompareSwap | Kind::FetchAdd) { Some(cut!(rest, AtomicEth)) } else { None };
        let has_aeth = matches!(op.kind, Kind::Ack | Kind::AtomicAck) || op.kind == Kind::ReadResponse && (op.first || op.last);
        let aeth = if has_aeth { Some(cut!(rest, Aeth)) } else { None };
        let atomic_ack = if op.kind == Kind::AtomicAck { Some(cut!(rest, AtomicAckEth)) } else { None };
        let imm = if op.imm { Some(cut!(rest, ImmDt)) } else { None };
        let ieth = if op.invalidate { Some(cut!(rest, Ieth)) } else { None };
        let (body, crc) = rest.split_last_chunk::<4>().ok_or("no room for the ICRC")?;
        let len = body.len().checked_sub(bth.pad() as usize).ok_or("pad count exceeds the payload")?;
        let good = icrc::icrc(bytes).ok_or("no room for the ICRC")?;
        Ok(Some(Self {
            eth,
            vlan,
            ip,
            udp,
            bth,
            op,
            deth,
            feth,
            reth,
            atomic,
            aeth,
            atomic_ack,
            imm,
            ieth,
            payload: body[..len].to_vec(),
            pad: body[len..].to_vec(),
            icrc_error: good ^ u32::from_le_bytes(*crc),
        }))
    }

    /// The frame on the wire: lengths and IPv4 checksum are set, the UDP checksum is zero, the ICRC is right except for `icrc_error`.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = self.bth.0.to_vec();
        let mut put = |bytes: Option<&[u8]>| body.extend_from_slice(bytes.unwrap_or_default());
        put(self.deth.as_ref().map(|h| &h.0[..]));
        put(self.feth.as_ref().map(|h| &h.0[..]));
        put(self.reth.as_ref().map(|h| &h.0[..]));
        put(self.atomic.as_ref().map(|h| &h.0[..]));
        put(self.aeth.as_ref().map(|h| &h.0[..]));
        put(self.atomic_ack.as_ref().map(|h| &h.0[..]));
        put(self.imm.as_ref().map(|h| &h.0[..]));
        put(self.ieth.as_ref().map(|h| &h.0[..]));
        put(Some(&self.payload));
        put(Some(&self.pad));
        put(Some(&[0; 4]));
        let udp_len = (Udp::BYTES + body.len()) as u16;
        let mut out = self.eth.0.to_vec();
        if let Some(tag) = &self.vlan {
            out.extend_from_slice(&tag.0);
        }
        match self.ip {
            Ip::V4(h) => {
                let h = h.with_total_length(Ipv4::BYTES as u16 + udp_len).with_checksum(0);
                out.extend_from_slice(&h.with_checksum(!ones_sum(&h.0)).0);
            }
            Ip::V6(h) => out.extend_from_slice(&h.with_payload_length(udp_len).0),
        }
        out.extend_from_slice(&self.udp.with_length(udp_len).with_checksum(0).0);
        out.extend_from_slice(&body);
        if let (Some(good), Some(place)) = (icrc::icrc(&out), out.last_chunk_mut::<4>()) {
            *place = (good ^ self.icrc_error).to_le_bytes();
        }
        out
    }

    /// Decodes a frame that a machine under test sent, which has no excuse: checksums, lengths, reserved fields and ICRC must be right.
    pub fn decode_own(bytes: &[u8]) -> Result<Self, String> {
        let frame = Self::decode(bytes)?.ok_or("not RoCEv2")?;
        if frame.icrc_error != 0 {
            return Err(format!("ICRC is wrong by {:#010x}", frame.icrc_error));
        }
        if let Ip::V4(h) = frame.ip {
            if ones_sum(&h.0) != 0xffff {
                return Err("IPv4 header checksum is wrong".into());
            }
        }
        let l3 = Eth::BYTES + frame.vlan.map_or(0, |_| Vlan::BYTES);
        let udp_len = match frame.ip {
            Ip::V4(h) => h.total_length() as usize - Ipv4::BYTES,
            Ip::V6(h) => h.payload_length() as usize,
        };
        if frame.udp.length() as usize != udp_len {
            return Err(format!("UDP length {} under an IP payload of {udp_len}", frame.udp.length()));
        }
        let end = l3 + if matches!(frame.ip, Ip::V4(_)) { Ipv4::BYTES } else { Ipv6::BYTES } + udp_len;
        if frame.udp.checksum() != 0 && udp_sum(&frame.ip, &bytes[end - udp_len..end]) != 0xffff {
            return Err("UDP checksum is neither zero nor right".into());
        }
        if frame.bth.tver() != 0 || frame.bth.rsvd0() != 0 || frame.bth.rsvd1() != 0 {
            return Err("BTH version or reserved bits are not zero".into());
        }
        if frame.pad.iter().any(|b| *b != 0) {
            return Err("pad bytes are not zero".into());
        }
        if (frame.payload.len() + frame.pad.len()) % 4 != 0 || frame.pad.len() > 3 {
            return Err(format!("pad count {} for a payload of {} bytes", frame.bth.pad(), frame.payload.len()));
        }
        Ok(frame)
    }

    /// Packet sequence number.
    pub fn psn(&self) -> u32 {
        self.bth.psn()
    }

    /// One line for messages.
    pub fn brief(&self) -> String {
        let position = match (self.op.first, self.op.last) {
            _ if self.op.kind == Kind::Ack => "",
            (true, true) => " Only",
            (true, false) => " First",
            (false, false) => " Middle",
            (false, true) => " Last",
        };
        let aeth = self.aeth.map_or(String::new(), |a| format!(" {} MSN {}", Syndrome::of(a.syndrome()).name(), a.msn()));
        let tail = match (self.op.imm, self.op.invalidate) {
            (true, _) => " with immediate",
            (_, true) => " with invalidate",
            _ => "",
        };
        format!("{}{position}{tail} PSN {:#08x}{aeth}", self.op.kind.name(), self.psn())
    }
}

/// What an AETH says (IBTA 9.7.5.1, tables 44 and 46).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// Acknowledge (the credit count is not looked at).
    Ack,
    /// Receiver not ready, with its timer code.
    Rnr(u8),
    /// PSN sequence error.
    Sequence,
    /// Fatal NAK: 1 invalid request, 2 remote access error, 3 remote operational error, others as they came.
    Fatal(u8),
    /// Reserved class.
    Reserved,
}

impl Syndrome {
    /// Decodes the syndrome byte.
    pub fn of(byte: u8) -> Self {
        match (byte >> 5, byte & 31) {
            (0, _) => Self::Ack,
            (1, timer) => Self::Rnr(timer),
            (3, 0) => Self::Sequence,
            (3, code) => Self::Fatal(code),
            _ => Self::Reserved,
        }
    }
    /// The byte; credits as "not used".
    pub fn byte(self) -> u8 {
        match self {
            Self::Ack => 0x1f,
            Self::Rnr(timer) => 0x20 | timer,
            Self::Sequence => 0x60,
            Self::Fatal(code) => 0x60 | code,
            Self::Reserved => 0x40,
        }
    }
    /// Name for messages.
    pub fn name(self) -> String {
        match self {
            Self::Ack => "ACK".into(),
            Self::Rnr(t) => format!("RNR NAK (timer {t})"),
            Self::Sequence => "NAK sequence error".into(),
            Self::Fatal(1) => "NAK invalid request".into(),
            Self::Fatal(2) => "NAK remote access error".into(),
            Self::Fatal(3) => "NAK remote operational error".into(),
            Self::Fatal(c) => format!("NAK code {c}"),
            Self::Reserved => "reserved syndrome".into(),
        }
    }
}

/// Folded ones'-complement sum of 16-bit words.
fn ones_sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn udp_sum(ip: &Ip, datagram: &[u8]) -> u16 {
    let mut all = match ip {
        Ip::V4(h) => h.0[12..20].to_vec(),
        Ip::V6(h) => h.0[8..40].to_vec(),
    };
    all.extend_from_slice(&[0, 17]);
    all.extend_from_slice(&(datagram.len() as u16).to_be_bytes());
    all.extend_from_slice(datagram);
    ones_sum(&all)
}

/// Distance from `base` to `psn`, as far as 24 bits tell: negative when `psn` lies behind.
pub fn psn_distance(psn: u32, base: u32) -> i32 {
    ((psn.wrapping_sub(base) << 8) as i32) >> 8
}

/// `psn + n` in 24 bits.
pub fn psn_add(psn: u32, n: u32) -> u32 {
    psn.wrapping_add(n) & 0xff_ffff
}
