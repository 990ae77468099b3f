//! Management datagrams of the communication manager (IBTA volume 1, 12.6 and 13.4.2; annex A11 for IP addresses in the private data).
//! Every message is a MAD of 256 bytes: common header, the message's fields, private data to the end.
use crate::types::Mtu;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of a MAD.
pub const MAD_BYTES: usize = 256;
/// Management class of the communication manager.
const CLASS_CM: u8 = 7;
/// Its only method: Send.
const METHOD_SEND: u8 = 3;

ferric_abi::define_codecs! { Big;
    #[doc = "Common MAD header (IBTA 13.4.2)."]
    MadHeader [24] {
        base_version: u8[8] "1."; mgmt_class: u8[8] "7: communication management."; class_version: u8[8] "2."; method: u8[8] "3: Send.";
        status: u16[16] "Zero."; class_specific: u16[16] "Zero."; tid: u64[64] "Transaction: a message and what answers it."; attr_id: u16[16] "Which message.";
        rsvd0: u16[16] "Zero."; attr_mod: u32[32] "Zero.";
    }
    #[doc = "REQ, request for communication (IBTA 12.6.5); 92 bytes of private data follow."]
    CmReq [140] {
        local_id: u32[32] "Local communication ID."; rsvd0: u32[32] "Zero."; service_id: u64[64] "Service asked for."; local_guid: u64[64] "Channel adapter of the sender.";
        rsvd1: u32[32] "Zero."; local_qkey: u32[32] "Datagrams only."; local_qpn: u32[24] "Queue pair of the sender."; responder_resources: u8[8] "READs and atomics it remembers.";
        local_eecn: u32[24] "Zero."; initiator_depth: u8[8] "READs and atomics it will have outstanding.";
        remote_eecn: u32[24] "Zero."; remote_timeout: u8[5] "Time in which the other side must answer, 4.096 us * 2^n."; transport: u8[2] "0 RC, 1 UC, 2 RD."; flow_control: bool[1] "End-to-end flow control.";
        starting_psn: u32[24] "PSN with which the other side begins."; local_timeout: u8[5] "Time in which the sender answers."; retry_count: u8[3] "Transport retries for the other side.";
        pkey: u16[16] "Partition."; mtu: u8[4] "Path MTU, IBTA encoding."; rdc_exists: bool[1] "Zero."; rnr_retry: u8[3] "RNR retries for the other side.";
        max_cm_retries: u8[4] "Retries of each message."; srq: bool[1] "Shared receive queue."; extended: u8[3] "Zero.";
        local_lid: u16[16] "0xffff on Ethernet."; remote_lid: u16[16] "0xffff on Ethernet."; local_gid: u128[128] "GID of the sender."; remote_gid: u128[128] "GID of the receiver.";
        flow_label: u32[20] "Flow label."; rsvd2: u8[6] "Zero."; rate: u8[6] "Packet rate.";
        tclass: u8[8] "Traffic class."; hop_limit: u8[8] "Hop limit."; sl: u8[4] "Service level."; subnet_local: bool[1] "Path stays in the subnet."; rsvd3: u8[3] "Zero.";
        ack_timeout: u8[5] "Local ACK timeout for the other side."; rsvd4: u8[3] "Zero.";
        alt0: u128[128] "No alternate path."; alt1: u128[128] "No alternate path."; alt2: u64[64] "No alternate path."; alt3: u32[32] "No alternate path.";
    }
    #[doc = "MRA, message receipt acknowledgment (IBTA 12.6.6); 222 bytes of private data follow."]
    CmMra [10] {
        local_id: u32[32] "Local communication ID."; remote_id: u32[32] "Remote communication ID."; message: u8[2] "0 REQ, 1 REP."; rsvd0: u8[6] "Zero.";
        service_timeout: u8[5] "How much longer the answer may take, 4.096 us * 2^n."; rsvd1: u8[3] "Zero.";
    }
    #[doc = "REJ, reject (IBTA 12.6.7); 148 bytes of private data follow."]
    CmRej [84] {
        local_id: u32[32] "Local communication ID."; remote_id: u32[32] "Remote communication ID."; message: u8[2] "0 REQ, 1 REP, 2 none."; rsvd0: u8[6] "Zero.";
        info_length: u8[7] "Bytes of additional information."; rsvd1: bool[1] "Zero."; reason: u16[16] "See `RejectReason`.";
        info0: u128[128] "Additional information."; info1: u128[128] "Additional information."; info2: u128[128] "Additional information.";
        info3: u128[128] "Additional information."; info4: u64[64] "Additional information.";
    }
    #[doc = "REP, reply to a request (IBTA 12.6.8); 196 bytes of private data follow."]
    CmRep [36] {
        local_id: u32[32] "Local communication ID."; remote_id: u32[32] "Remote communication ID."; local_qkey: u32[32] "Datagrams only."; local_qpn: u32[24] "Queue pair of the sender."; rsvd0: u8[8] "Zero.";
        local_eecn: u32[24] "Zero."; rsvd1: u8[8] "Zero."; starting_psn: u32[24] "PSN with which the other side begins."; rsvd2: u8[8] "Zero.";
        responder_resources: u8[8] "READs and atomics it remembers."; initiator_depth: u8[8] "READs and atomics it will have outstanding.";
        ack_delay: u8[5] "Target ACK delay."; failover: u8[2] "Zero."; flow_control: bool[1] "End-to-end flow control."; rnr_retry: u8[3] "RNR retries for the other side.";
        srq: bool[1] "Shared receive queue."; rsvd3: u8[4] "Zero."; local_guid: u64[64] "Channel adapter of the sender.";
    }
    #[doc = "RTU, ready to use (IBTA 12.6.9); 224 bytes of private data follow."]
    CmRtu [8] { local_id: u32[32] "Local communication ID."; remote_id: u32[32] "Remote communication ID."; }
    #[doc = "DREQ, request for communication release (IBTA 12.6.10); 220 bytes of private data follow."]
    CmDreq [12] { local_id: u32[32] "Local communication ID."; remote_id: u32[32] "Remote communication ID."; remote_qpn: u32[24] "Queue pair of the receiver."; rsvd0: u8[8] "Zero."; }
    #[doc = "DREP, reply to it (IBTA 12.6.11); 224 bytes of private data follow."]
    CmDrep [8] { local_id: u32[32] "Local communication ID."; remote_id: u32[32] "Remote communication ID."; }
    #[doc = "SIDR_REQ, service ID resolution request (IBTA 12.11.1); 216 bytes of private data follow."]
    CmSidrReq [16] { request_id: u32[32] "The sender's number for it."; pkey: u16[16] "Partition."; rsvd0: u16[16] "Zero."; service_id: u64[64] "Service asked for."; }
    #[doc = "SIDR_REP, service ID resolution response (IBTA 12.11.2); 136 bytes of private data follow."]
    CmSidrRep [96] {
        request_id: u32[32] "Number of the request."; status: u8[8] "See `ServiceStatus`."; info_length: u8[8] "Bytes of additional information."; rsvd0: u16[16] "Zero.";
        qpn: u32[24] "Queue pair that serves."; rsvd1: u8[8] "Zero."; service_id: u64[64] "Service asked for."; qkey: u32[32] "Q_Key of the queue pair.";
        info0: u128[128] "Additional information."; info1: u128[128] "Additional information."; info2: u128[128] "Additional information.";
        info3: u128[128] "Additional information."; info4: u64[64] "Additional information.";
    }
    #[doc = "Addresses of an RDMA-IP connection, at the front of a REQ's or SIDR_REQ's private data (annex A11)."]
    IpHeader [36] {
        version: u8[8] "Zero."; ip_version: u8[4] "4 or 6."; rsvd0: u8[4] "Zero."; src_port: u16[16] "Source port.";
        src: u128[128] "Source address, IPv4 in the last four bytes."; dst: u128[128] "Destination address.";
    }
}

/// Why a request is rejected (IBTA table 108); others keep their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// The other side did not answer.
    Timeout,
    /// Nobody knows this communication ID.
    InvalidCommId,
    /// Nobody listens for this service.
    InvalidServiceId,
    /// A transport that is not served.
    InvalidTransport,
    /// The queue pair belongs to an older connection.
    StaleConnection,
    /// The program refused.
    Consumer,
    /// Another one.
    Other(u16),
}

impl RejectReason {
    /// Number on the wire.
    pub fn code(self) -> u16 {
        match self {
            Self::Timeout => 4,
            Self::InvalidCommId => 6,
            Self::InvalidServiceId => 8,
            Self::InvalidTransport => 9,
            Self::StaleConnection => 10,
            Self::Consumer => 28,
            Self::Other(n) => n,
        }
    }
    /// Of a number.
    pub fn of(n: u16) -> Self {
        let known = [Self::Timeout, Self::InvalidCommId, Self::InvalidServiceId, Self::InvalidTransport, Self::StaleConnection, Self::Consumer];
        known.into_iter().find(|r| r.code() == n).unwrap_or(Self::Other(n))
    }
}

/// What a SIDR_REP says (IBTA 12.11.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceStatus {
    /// The queue pair and its Q_Key are valid.
    Valid,
    /// Nobody serves this service.
    Unsupported,
    /// The program refused.
    Rejected,
    /// Another one.
    Other(u8),
}

impl ServiceStatus {
    /// Number on the wire.
    pub fn code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Unsupported => 1,
            Self::Rejected => 2,
            Self::Other(n) => n,
        }
    }
    /// Of a number.
    pub fn of(n: u8) -> Self {
        [Self::Valid, Self::Unsupported, Self::Rejected].into_iter().find(|s| s.code() == n).unwrap_or(Self::Other(n))
    }
}

/// The fields of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Body {
    Req(CmReq),
    Mra(CmMra),
    Rej(CmRej),
    Rep(CmRep),
    Rtu(CmRtu),
    Dreq(CmDreq),
    Drep(CmDrep),
    SidrReq(CmSidrReq),
    SidrRep(CmSidrRep),
}

impl Body {
    /// Attribute ID and bytes of the fields.
    fn bytes(&self) -> (u16, &[u8]) {
        match self {
            Self::Req(m) => (0x10, &m.0),
            Self::Mra(m) => (0x11, &m.0),
            Self::Rej(m) => (0x12, &m.0),
            Self::Rep(m) => (0x13, &m.0),
            Self::Rtu(m) => (0x14, &m.0),
            Self::Dreq(m) => (0x15, &m.0),
            Self::Drep(m) => (0x16, &m.0),
            Self::SidrReq(m) => (0x17, &m.0),
            Self::SidrRep(m) => (0x18, &m.0),
        }
    }
    fn of(id: u16, b: &[u8]) -> Option<Self> {
        macro_rules! cut {
            ($t:ident) => {
                $t(b.get(..$t::BYTES)?.try_into().ok()?)
            };
        }
        Some(match id {
            0x10 => Self::Req(cut!(CmReq)),
            0x11 => Self::Mra(cut!(CmMra)),
            0x12 => Self::Rej(cut!(CmRej)),
            0x13 => Self::Rep(cut!(CmRep)),
            0x14 => Self::Rtu(cut!(CmRtu)),
            0x15 => Self::Dreq(cut!(CmDreq)),
            0x16 => Self::Drep(cut!(CmDrep)),
            0x17 => Self::SidrReq(cut!(CmSidrReq)),
            0x18 => Self::SidrRep(cut!(CmSidrRep)),
            _ => return None,
        })
    }
    /// Bytes of private data that fit.
    pub fn room(&self) -> usize {
        MAD_BYTES - MadHeader::BYTES - self.bytes().1.len()
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Transaction ID.
    pub tid: u64,
    /// Its fields.
    pub body: Body,
    /// Private data; when received, all of its room.
    pub private: Vec<u8>,
}

impl Message {
    /// The MAD. Private data that does not fit is cut off: whoever takes it from a program checks its length.
    pub fn encode(&self) -> [u8; MAD_BYTES] {
        let (id, fields) = self.body.bytes();
        let header = MadHeader::default().with_base_version(1).with_mgmt_class(CLASS_CM).with_class_version(2).with_method(METHOD_SEND).with_tid(self.tid).with_attr_id(id);
        let mut out = [0; MAD_BYTES];
        let all = header.0.iter().chain(fields).chain(&self.private);
        out.iter_mut().zip(all).for_each(|(o, b)| *o = *b);
        out
    }
    /// Reads a MAD; `None`: not one of the communication manager's.
    pub fn decode(mad: &[u8]) -> Option<Self> {
        if mad.len() < MAD_BYTES {
            return None;
        }
        let header = MadHeader(mad[..MadHeader::BYTES].try_into().ok()?);
        let ours = (header.base_version(), header.mgmt_class(), header.class_version(), header.method()) == (1, CLASS_CM, 2, METHOD_SEND);
        let body = Body::of(header.attr_id(), &mad[MadHeader::BYTES..MAD_BYTES]).filter(|_| ours)?;
        let private = mad[MAD_BYTES - body.room()..MAD_BYTES].to_vec();
        Some(Self { tid: header.tid(), body, private })
    }
}

/// The GID of an IP address (annex A17: IPv4 as an IPv4-mapped IPv6 address).
pub fn gid(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(a) => u128::from(a.to_ipv6_mapped()),
        IpAddr::V6(a) => u128::from(a),
    }
}

/// The path MTU of an IBTA code.
pub fn mtu_of(code: u8) -> Option<Mtu> {
    [Mtu::M256, Mtu::M512, Mtu::M1024, Mtu::M2048, Mtu::M4096].into_iter().find(|m| *m as u8 == code)
}

/// Service ID of a TCP-like port of RDMA-IP (annex A11).
pub fn ip_service_id(port: u16) -> u64 {
    0x0000_0000_0106_0000 | u64::from(port)
}

/// Service ID of a UDP-like port of RDMA-IP: datagrams, found by SIDR.
pub fn ip_datagram_service_id(port: u16) -> u64 {
    0x0000_0000_0111_0000 | u64::from(port)
}

impl IpHeader {
    /// From addresses of one family.
    pub fn between(src: IpAddr, src_port: u16, dst: IpAddr) -> Self {
        let word = |ip| match ip {
            IpAddr::V4(a) => u128::from(u32::from(a)),
            IpAddr::V6(a) => u128::from(a),
        };
        Self::default().with_ip_version(if src.is_ipv4() { 4 } else { 6 }).with_src_port(src_port).with_src(word(src)).with_dst(word(dst))
    }
    /// Source and destination address; `None`: no such IP version.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        let ip = |n: u128| match self.ip_version() {
            4 => Some(IpAddr::V4(Ipv4Addr::from(n as u32))),
            6 => Some(IpAddr::V6(Ipv6Addr::from(n))),
            _ => None,
        };
        Some((ip(self.src())?, ip(self.dst())?))
    }
}
