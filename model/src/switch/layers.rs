//! The parse graph of the flow switch: which headers a frame has, and where. Written from SWITCH.md section 6 and the RFCs of the headers.
//!
//! What the graph does not have, what is truncated, and what lies beyond the window is [`Deep`]: software gets such a frame whole.
use ferric_abi::wire::{ethertype, protocol};

/// Bytes of a frame that the parser sees.
pub const WINDOW: usize = 128;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ESP: u8 = 50;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;

/// Why the parser does not understand a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deep {
    /// A header ends behind the frame, or a length field contradicts another one.
    Truncated,
    /// A header ends behind the window.
    Window,
    /// More than two tags.
    Tags,
    /// Headers that the graph does not have: an IPv6 extension, MPLS, NSH, foreign ARP.
    Unknown,
}

/// What part of a datagram a packet is; the numbers are those of `FlowKey::fragment`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragment {
    /// No fragment.
    #[default]
    Whole = 0,
    /// The first fragment: its ports are there.
    First = 1,
    /// A later fragment: no ports.
    Later = 2,
}

/// An IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ip {
    /// IPv6, else IPv4.
    pub v6: bool,
    /// Protocol behind the extension headers. A later fragment of IPv6 has 44, as Open vSwitch has it: what follows is no header.
    pub proto: u8,
    /// DSCP and ECN.
    pub tos: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Part of a datagram.
    pub fragment: Fragment,
    /// Source address; IPv4 in the lower 32 bits.
    pub src: u128,
    /// Destination address.
    pub dst: u128,
    /// Byte of the frame where the next layer begins.
    pub l4: usize,
    /// Byte of the frame behind the datagram; padding may follow.
    pub end: usize,
}

/// ARP over Ethernet for IPv4 (RFC 826).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arp {
    /// Operation; those above 255 count as 0.
    pub op: u8,
    /// Sender's protocol address.
    pub sender: u32,
    /// Target's protocol address.
    pub target: u32,
    /// Sender's hardware address.
    pub hardware: u64,
}

/// What is behind the addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upper {
    /// Anything else.
    #[default]
    Other,
    /// ARP over Ethernet for IPv4.
    Arp(Arp),
    /// IPv4 or IPv6.
    Ip(Ip),
}

/// The headers of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Destination MAC address; the first byte on the wire is the highest of 48 bits.
    pub dmac: u64,
    /// Source MAC address.
    pub smac: u64,
    /// Tag control information of the first tag.
    pub tag: Option<u16>,
    /// The first tag is a service tag.
    pub service: bool,
    /// There is a second tag.
    pub second: bool,
    /// Type behind the tags.
    pub ethertype: u16,
    /// Byte where the layer behind the tags begins: 14, 18 or 22.
    pub l3: usize,
    /// What that layer is.
    pub upper: Upper,
    /// Ports of TCP and UDP, type and code of ICMP; zero for others and for later fragments.
    pub ports: (u16, u16),
    /// All twelve TCP flags.
    pub tcp_flags: u16,
}

impl Layers {
    /// The IP header, if there is one.
    pub fn ip(&self) -> Option<&Ip> {
        match &self.upper {
            Upper::Ip(ip) => Some(ip),
            _ => None,
        }
    }

    /// Destination port of a UDP packet whose UDP header is in it.
    pub fn udp_to(&self) -> Option<u16> {
        self.ip().filter(|ip| ip.proto == protocol::UDP && ip.fragment != Fragment::Later).map(|_| self.ports.1)
    }
}

/// Reads within the frame and the window.
#[derive(Clone, Copy)]
struct Window<'a>(&'a [u8]);

impl Window<'_> {
    fn bytes<const N: usize>(self, at: usize) -> Result<[u8; N], Deep> {
        if at + N > WINDOW && at + N <= self.0.len() {
            return Err(Deep::Window);
        }
        self.0.get(at..at + N).and_then(|b| b.try_into().ok()).ok_or(Deep::Truncated)
    }

    fn u8(self, at: usize) -> Result<u8, Deep> {
        self.bytes::<1>(at).map(|b| b[0])
    }

    fn u16(self, at: usize) -> Result<u16, Deep> {
        self.bytes(at).map(u16::from_be_bytes)
    }

    fn u32(self, at: usize) -> Result<u32, Deep> {
        self.bytes(at).map(u32::from_be_bytes)
    }

    fn mac(self, at: usize) -> Result<u64, Deep> {
        self.bytes::<6>(at).map(|b| b.iter().fold(0, |v, b| v << 8 | u64::from(*b)))
    }
}

/// The headers of `frame`, from its Ethernet header on, without check sequence.
pub fn parse(frame: &[u8]) -> Result<Layers, Deep> {
    let w = Window(frame);
    let mut layers = Layers { dmac: w.mac(0)?, smac: w.mac(6)?, ethertype: w.u16(12)?, l3: 14, ..Default::default() };
    if matches!(layers.ethertype, ethertype::VLAN | ethertype::SERVICE_VLAN) {
        layers.service = layers.ethertype == ethertype::SERVICE_VLAN;
        layers.tag = Some(w.u16(14)?);
        layers.ethertype = w.u16(16)?;
        layers.l3 = 18;
        if layers.ethertype == ethertype::VLAN {
            layers.second = true;
            layers.ethertype = w.u16(20)?;
            layers.l3 = 22;
        }
    }
    match layers.ethertype {
        ethertype::VLAN | ethertype::SERVICE_VLAN => return Err(Deep::Tags),
        ethertype::ARP => layers.upper = Upper::Arp(arp(w, layers.l3)?),
        ethertype::IPV4 => ip_layers(w, &mut layers, ipv4)?,
        ethertype::IPV6 => ip_layers(w, &mut layers, ipv6)?,
        // MPLS and NSH have layers below that decide; so has LLC, whose frames have a length here.
        0x8847 | 0x8848 | 0x894f | ..0x0600 => return Err(Deep::Unknown),
        _ => {}
    }
    Ok(layers)
}

fn arp(w: Window, at: usize) -> Result<Arp, Deep> {
    if w.bytes::<6>(at)? != [0, 1, 8, 0, 6, 4] {
        return Err(Deep::Unknown);
    }
    let op = u8::try_from(w.u16(at + 6)?).unwrap_or(0);
    Ok(Arp { op, hardware: w.mac(at + 8)?, sender: w.u32(at + 14)?, target: w.u32(at + 24)? })
}

fn ip_layers(w: Window, layers: &mut Layers, header: fn(Window, usize) -> Result<Ip, Deep>) -> Result<(), Deep> {
    let ip = header(w, layers.l3)?;
    layers.upper = Upper::Ip(ip);
    if ip.fragment == Fragment::Later {
        return Ok(());
    }
    let least = match ip.proto {
        protocol::TCP => 20,
        protocol::UDP | protocol::ICMP | protocol::ICMPV6 => 8,
        _ => return Ok(()),
    };
    // ICMP of the other version is a protocol like any other.
    if matches!((ip.proto, ip.v6), (protocol::ICMP, true) | (protocol::ICMPV6, false)) {
        return Ok(());
    }
    if ip.l4 + least > ip.end {
        return Err(Deep::Truncated);
    }
    layers.ports = match ip.proto {
        protocol::TCP | protocol::UDP => (w.u16(ip.l4)?, w.u16(ip.l4 + 2)?),
        _ => (w.u8(ip.l4)?.into(), w.u8(ip.l4 + 1)?.into()),
    };
    if ip.proto == protocol::TCP {
        layers.tcp_flags = w.u16(ip.l4 + 12)? & 0xfff;
    }
    Ok(())
}

/// RFC 791.
fn ipv4(w: Window, at: usize) -> Result<Ip, Deep> {
    let first = w.u8(at)?;
    let header = usize::from(first & 15) * 4;
    let total = usize::from(w.u16(at + 2)?);
    // The header up to its last byte has to be in the window, options too.
    if first >> 4 != 4 || header < 20 || total < header || at + total > w.0.len() {
        return Err(Deep::Truncated);
    }
    w.u8(at + header - 1)?;
    let part = w.u16(at + 6)?;
    let fragment = match (part & 0x1fff, part & 0x2000) {
        (0, 0) => Fragment::Whole,
        (0, _) => Fragment::First,
        _ => Fragment::Later,
    };
    let (src, dst) = (w.u32(at + 12)?.into(), w.u32(at + 16)?.into());
    Ok(Ip { v6: false, proto: w.u8(at + 9)?, tos: w.u8(at + 1)?, ttl: w.u8(at + 8)?, fragment, src, dst, l4: at + header, end: at + total })
}

/// RFC 8200, with an optional hop-by-hop header of eight bytes and an optional fragment header.
fn ipv6(w: Window, at: usize) -> Result<Ip, Deep> {
    let first = w.u32(at)?;
    let end = at + 40 + usize::from(w.u16(at + 4)?);
    if first >> 28 != 6 || end > w.0.len() {
        return Err(Deep::Truncated);
    }
    let (src, dst) = (u128::from_be_bytes(w.bytes(at + 8)?), u128::from_be_bytes(w.bytes(at + 24)?));
    let mut ip = Ip { v6: true, proto: w.u8(at + 6)?, tos: (first >> 20) as u8, ttl: w.u8(at + 7)?, fragment: Fragment::Whole, src, dst, l4: at + 40, end };
    if ip.proto == HOP_BY_HOP {
        let [next, length] = w.bytes(ip.l4)?;
        if length != 0 {
            return Err(Deep::Unknown);
        }
        (ip.proto, ip.l4) = (next, ip.l4 + 8);
    }
    if ip.proto == FRAGMENT {
        let [next, _, high, low] = w.bytes(ip.l4)?;
        let offset = u16::from_be_bytes([high, low]);
        // RFC 8200 ignores these bits, Open vSwitch takes the packet for a fragment: software decides.
        if offset & 6 != 0 {
            return Err(Deep::Unknown);
        }
        ip.fragment = match (offset & 0xfff8, offset & 1) {
            (0, 0) => Fragment::Whole,
            (0, _) => Fragment::First,
            _ => Fragment::Later,
        };
        ip.l4 += 8;
        if ip.fragment != Fragment::Later {
            ip.proto = next;
        }
    }
    if ip.l4 > end {
        return Err(Deep::Truncated);
    }
    let later = ip.fragment == Fragment::Later;
    match ip.proto {
        FRAGMENT if later => Ok(ip),
        HOP_BY_HOP | ROUTING | FRAGMENT | ESP | AUTHENTICATION | DESTINATION | MOBILITY => Err(Deep::Unknown),
        _ => Ok(ip),
    }
}
