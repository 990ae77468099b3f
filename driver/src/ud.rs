//! Unreliable datagrams (IBTA volume 1, 9.8.3 and 10.2.2.3): one queue pair talks to any number of others, each request says to whom.
//!
//! The destination of a datagram (MAC, IP address, class, hop limit) travels in its work request; source address, 802.1Q tag and P_Key are
//! those the queue pair got by an admin command and cannot be chosen per request. See docs/decisions/0011-datagram-addresses.md.
use crate::error::{Error, Result};
use crate::qp::{path_line, Change, Datagram, Payload, QueuePair, SendRequest};
use crate::types::{Mac, Mtu, Path, QpState, QpType};
use ferric_abi::codes::{AdminOpcode, WrOpcode};
use ferric_abi::csr::FEATURE_MULTICAST;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Queue pair number of the general services interface (IBTA 3.9.1), in packets of and to every function.
pub const GSI_QPN: u32 = ferric_abi::csr::SPECIAL;
/// Q_Key of the general services interface (IBTA 10.2.4).
pub const GSI_QKEY: u32 = 0x8001_0000;
/// A request with this bit in its Q_Key is sent with the queue pair's own (IBTA 10.2.4).
pub const QKEY_OWN: u32 = 1 << 31;
/// Queue pair number of a datagram to a multicast group (IBTA 10.5).
pub const MULTICAST_QPN: u32 = 0xff_ffff;
/// Bytes in front of every received datagram.
pub const GRH_BYTES: usize = 40;

/// Where datagrams of a queue pair come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    /// Source MAC.
    pub smac: Mac,
    /// Source address; destinations are of the same family.
    pub sip: IpAddr,
    /// 802.1Q tag control information.
    pub vlan: Option<u16>,
    /// UDP source port.
    pub udp_sport: u16,
    /// IPv6 flow label.
    pub flow_label: u32,
}

/// Where a datagram goes: verbs' address handle. Costs nothing on the card; one may serve any number of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AddressHandle {
    /// Destination MAC; of a multicast group the group's.
    pub dmac: Mac,
    /// Destination address.
    pub dip: IpAddr,
    /// IPv4 ToS or IPv6 traffic class.
    pub tclass: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
}

impl AddressHandle {
    /// A destination with default class and a hop limit of 64.
    pub fn new(dmac: Mac, dip: IpAddr) -> Self {
        Self { dmac, dip, tclass: 0, hop_limit: 64 }
    }

    /// A multicast group, at its own MAC address (RFC 1112, RFC 2464); datagrams to it go to [`MULTICAST_QPN`]. Errors: `group` is no multicast address.
    pub fn multicast(group: IpAddr) -> Result<Self> {
        let dmac = match group {
            IpAddr::V4(a) if a.is_multicast() => {
                let [_, b, c, d] = a.octets();
                Mac([1, 0, 0x5e, b & 0x7f, c, d])
            }
            IpAddr::V6(a) if a.is_multicast() => {
                let [.., a, b, c, d] = a.octets();
                Mac([0x33, 0x33, a, b, c, d])
            }
            _ => return Err(Error::Invalid("this is no multicast address")),
        };
        Ok(Self::new(dmac, group))
    }

    /// The address word of the work request head, and the destination address behind it.
    fn words(&self) -> (u64, [u64; 2]) {
        let mac = self.dmac.0.iter().fold(0u64, |a, b| a << 8 | u64::from(*b));
        let dip = match self.dip {
            IpAddr::V4(a) => u128::from(u32::from(a)),
            IpAddr::V6(a) => u128::from(a),
        };
        (mac | u64::from(self.tclass) << 48 | u64::from(self.hop_limit) << 56, [dip as u64, (dip >> 64) as u64])
    }
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug)]
pub struct DatagramRequest<'a> {
    /// The program's number, given back in the completion.
    pub wr_id: u64,
    /// At most the path MTU; a longer one completes with `CqeStatus::LocalLength`.
    pub payload: Payload<'a>,
    /// To which machine.
    pub to: &'a AddressHandle,
    /// To which queue pair.
    pub dest_qpn: u32,
    /// Q_Key the receiver must have; with [`QKEY_OWN`] set the queue pair's own is sent.
    pub qkey: u32,
    /// Immediate data.
    pub imm: Option<u32>,
    /// Ask for a completion when it has been sent.
    pub signaled: bool,
    /// Ask the receiver for a solicited event.
    pub solicited: bool,
}

/// Addresses of a received datagram, from the 40 bytes in front of it (annex A17: an IPv4 header is the last 20 of them).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grh {
    /// Sender.
    pub sip: IpAddr,
    /// Destination: own address, or the multicast group's.
    pub dip: IpAddr,
    /// IPv4 ToS or IPv6 traffic class.
    pub tclass: u8,
}

impl Grh {
    /// Reads the 40 bytes. With IPv4 the first 20 are whatever the buffer held: the header is recognised by its own version, length and checksum.
    pub fn parse(area: &[u8; GRH_BYTES]) -> Option<Self> {
        let v4: [u8; 20] = area[20..].try_into().ok()?;
        let sum: u32 = v4.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        if v4[0] == 0x45 && (folded & 0xffff) + (folded >> 16) == 0xffff {
            let at = |n: usize| IpAddr::V4(Ipv4Addr::new(v4[n], v4[n + 1], v4[n + 2], v4[n + 3]));
            return Some(Self { sip: at(12), dip: at(16), tclass: v4[1] });
        }
        if area[0] >> 4 != 6 {
            return None;
        }
        let at = |n: usize| -> Option<IpAddr> { Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&area[n..n + 16]).ok()?))) };
        Some(Self { sip: at(8)?, dip: at(24)?, tclass: area[0] << 4 | area[1] >> 4 })
    }
}

impl QueuePair {
    fn must_be_ud(&self) -> Result<()> {
        if self.config().qp_type != QpType::Ud {
            return Err(Error::Invalid("only datagram queue pairs do this"));
        }
        Ok(())
    }

    pub(crate) fn change_to_init_ud(&self, qkey: u32) -> Result<Change> {
        self.must_be_ud()?;
        Ok(self.change("modify UD QP to INIT", QpState::Init, &[QpState::Init as u32, 0, 0, 0, 0, 0xffff, 0, qkey]))
    }

    pub(crate) fn change_to_rtr_ud(&self, mtu: Mtu, source: &Source) -> Result<Change> {
        self.must_be_ud()?;
        let nowhere = match source.sip {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let path =
            Path { dmac: Mac::default(), smac: source.smac, dip: nowhere, sip: source.sip, vlan: source.vlan, udp_sport: source.udp_sport, tclass: 0, hop_limit: 0, flow_label: source.flow_label };
        let change = self.change_to_rtr_by("modify UD QP to RTR", mtu as u32, [0, 0, 0], &path_line(&path)?);
        Ok(Change { datagram: Some(Datagram { v6: source.sip.is_ipv6() }), ..change })
    }

    pub(crate) fn change_to_rts_ud(&self, sq_psn: u32) -> Result<Change> {
        self.must_be_ud()?;
        Ok(self.change("modify UD QP to RTS", QpState::Rts, &[QpState::Rts as u32, 0, 0, 0, sq_psn & 0xff_ffff, 0xffff, 0]))
    }

    /// RESET -> INIT of a datagram queue pair: receives may be posted. Senders must know `qkey`.
    pub fn to_init_ud(&mut self, qkey: u32) -> Result<()> {
        self.make(self.change_to_init_ud(qkey)?)
    }

    /// INIT -> RTR of a datagram queue pair: datagrams of up to `mtu` bytes are received; those it sends will come from `source`.
    pub fn to_rtr_ud(&mut self, mtu: Mtu, source: &Source) -> Result<()> {
        self.make(self.change_to_rtr_ud(mtu, source)?)
    }

    /// RTR -> RTS of a datagram queue pair: ready to send, first PSN `sq_psn`.
    pub fn to_rts_ud(&mut self, sq_psn: u32) -> Result<()> {
        self.make(self.change_to_rts_ud(sq_psn)?)
    }

    /// From now on a datagram queue pair gets a copy of each datagram to `group` that comes to the card and carries its Q_Key. Joining twice is joining once.
    /// Errors: `group` is no multicast address; the card is without multicast, or its table or the group is full (`AdminStatus::NoRoom`).
    pub fn attach_multicast(&self, group: IpAddr) -> Result<()> {
        self.modify_groups("attach to a multicast group", AdminOpcode::AttachMulticast, group)
    }

    /// No more copies. Errors: it is not attached.
    pub fn detach_multicast(&self, group: IpAddr) -> Result<()> {
        self.modify_groups("detach from a multicast group", AdminOpcode::DetachMulticast, group)
    }

    fn modify_groups(&self, what: &'static str, opcode: AdminOpcode, group: IpAddr) -> Result<()> {
        self.must_be_ud()?;
        if !group.is_multicast() {
            return Err(Error::Invalid("this is no multicast address"));
        }
        if self.ctx().caps.features >> FEATURE_MULTICAST & 1 == 0 {
            return Err(Error::Invalid("the card does not receive multicast"));
        }
        let number = match group {
            IpAddr::V4(a) => u128::from(u32::from(a)) << 96,
            IpAddr::V6(a) => u128::from(a),
        };
        let word = |n: u32| (number >> (32 * n)) as u32;
        self.ctx().admin(what, opcode, self.qpn, &[group.is_ipv6() as u32, word(0), word(1), word(2), word(3)])?;
        Ok(())
    }

    /// Posts a datagram. It completes when it has left; whether it arrives nobody tells.
    pub fn post_send_ud(&mut self, wr: &DatagramRequest) -> Result<()> {
        self.stage_send_ud(wr)?;
        self.ring();
        Ok(())
    }

    /// The same, but the card does not hear of it before [`QueuePair::ring`].
    pub fn stage_send_ud(&mut self, wr: &DatagramRequest) -> Result<()> {
        let Some(own) = self.datagram else { return Err(Error::State) };
        if own.v6 != wr.to.dip.is_ipv6() {
            return Err(Error::Invalid("source and destination address are of different families"));
        }
        if wr.dest_qpn >> 24 != 0 {
            return Err(Error::Invalid("a queue pair number has 24 bits"));
        }
        let (address, dip) = wr.to.words();
        let request = SendRequest {
            wr_id: wr.wr_id,
            opcode: if wr.imm.is_some() { WrOpcode::SendImm } else { WrOpcode::Send },
            payload: wr.payload,
            remote_addr: address,
            rkey: wr.qkey,
            imm: wr.imm.unwrap_or(0),
            signaled: wr.signaled,
            solicited: wr.solicited,
        };
        self.stage(&request, Some(dip), false, Some(wr.dest_qpn))
    }
}
