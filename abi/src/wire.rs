//! Wire headers in network byte order: Ethernet, 802.1Q, ARP (RFC 826), IPv4 (RFC 791), IPv6 (RFC 8200), UDP (RFC 768), ICMP echo (RFC 792), neighbour discovery (RFC 4861) and the
//! InfiniBand transport headers (IBTA volume 1, chapter 9; RoCEv2 annex A17).

/// Expands `$callback!` with the declarations of every wire header; see [`crate::define_codecs`].
#[macro_export]
macro_rules! wire_records {
    ($callback:ident) => { $callback! { Big;
        #[doc = "Ethernet II header."]
        Eth [14] { dst: u64[48] "Destination MAC."; src: u64[48] "Source MAC."; ethertype: u16[16] "EtherType."; }
        #[doc = "802.1Q tag (follows the MAC addresses' EtherType 0x8100)."]
        Vlan [4] { pcp: u8[3] "Priority."; dei: bool[1] "Drop eligible."; vid: u16[12] "VLAN id."; ethertype: u16[16] "Inner EtherType."; }
        #[doc = "ARP packet for IPv4 over Ethernet (RFC 826)."]
        Arp [28] { htype: u16[16] "Hardware type: 1 is Ethernet."; ptype: u16[16] "Protocol type: 0x0800."; hlen: u8[8] "Bytes of a hardware address: 6."; plen: u8[8] "Bytes of a protocol address: 4.";
            oper: u16[16] "1: request, 2: reply."; sha: u64[48] "Sender's hardware address, first byte in the most significant one."; spa: u32[32] "Sender's IPv4 address."; tha: u64[48] "Target's hardware address."; tpa: u32[32] "Target's IPv4 address."; }
        #[doc = "IPv4 header without options (RFC 791)."]
        Ipv4 [20] { version: u8[4] "4."; ihl: u8[4] "Header length in 32-bit words."; dscp: u8[6] "DSCP."; ecn: u8[2] "ECN."; total_length: u16[16] "Header and payload bytes.";
            ident: u16[16] "Identification."; flags: u8[3] "Flags: bit 1 is DF."; fragment: u16[13] "Fragment offset."; ttl: u8[8] "Time to live."; protocol: u8[8] "17 is UDP.";
            checksum: u16[16] "Header checksum."; src: u32[32] "Source address."; dst: u32[32] "Destination address."; }
        #[doc = "IPv6 header (RFC 8200)."]
        Ipv6 [40] { version: u8[4] "6."; dscp: u8[6] "DSCP."; ecn: u8[2] "ECN."; flow_label: u32[20] "Flow label."; payload_length: u16[16] "Bytes after this header.";
            next_header: u8[8] "17 is UDP."; hop_limit: u8[8] "Hop limit."; src: u128[128] "Source address."; dst: u128[128] "Destination address."; }
        #[doc = "UDP header; RoCEv2 uses destination port 4791."]
        Udp [8] { src_port: u16[16] "Source port."; dst_port: u16[16] "Destination port."; length: u16[16] "Header and payload bytes."; checksum: u16[16] "Checksum, zero in RoCEv2 as sent here."; }
        #[doc = "VXLAN header (RFC 7348, section 5)."]
        Vxlan [8] { flags: u8[8] "`VXLAN_FLAGS`: the VNI counts."; rsvd0: u32[24] "Zero."; vni: u32[24] "VXLAN network identifier."; rsvd1: u8[8] "Zero."; }
        #[doc = "ICMP echo request and reply (RFC 792)."]
        IcmpEcho [8] { kind: u8[8] "8: request, 0: reply."; code: u8[8] "0."; checksum: u16[16] "Of the message."; ident: u16[16] "Identifier."; seq: u16[16] "Sequence number."; }
        #[doc = "Neighbour solicitation or advertisement with one link-layer address (RFC 4861, 4.3, 4.4 and 4.6.1)."]
        NeighbourMessage [32] { kind: u8[8] "135: solicitation, 136: advertisement."; code: u8[8] "0."; checksum: u16[16] "Of the message and its pseudo-header."; flags: u8[8] "Advertisement: router, solicited, override from the highest bit down.";
            rsvd0: u32[24] "Zero."; target: u128[128] "Address that is sought or told of."; option: u8[8] "1: link-layer address of the sender, 2: of the target."; option_len: u8[8] "Of the option, in 8 bytes: 1."; mac: u64[48] "Its MAC address."; }
        #[doc = "PAUSE (IEEE 802.3 annex 31B) and priority-based pause (annex 31D, 802.1Q clause 36), both; the rest of a frame of 60 bytes is zero."]
        PauseFrame [34] { dst: u64[48] "`PAUSE_ADDRESS`."; src: u64[48] "Source MAC."; ethertype: u16[16] "0x8808."; opcode: u16[16] "0x0001: PAUSE, 0x0101: of priorities.";
            first: u16[16] "PAUSE: its time. Of priorities: bit n says that the time of priority n counts."; time0: u16[16] "Of priority 0, in quanta of 512 bit times; 0: go on."; time1: u16[16] "Of 1."; time2: u16[16] "Of 2."; time3: u16[16] "Of 3.";
            time4: u16[16] "Of 4."; time5: u16[16] "Of 5."; time6: u16[16] "Of 6."; time7: u16[16] "Of 7."; }
        #[doc = "Base transport header (IBTA 9.2)."]
        Bth [12] { opcode: u8[8] "Transport (3 bits) and operation (5 bits)."; solicited: bool[1] "Solicited event."; migreq: bool[1] "Migration state."; pad: u8[2] "Pad bytes after the payload.";
            tver: u8[4] "Transport version, 0."; pkey: u16[16] "Partition key."; fecn: bool[1] "FECN."; becn: bool[1] "BECN."; rsvd0: u8[6] "Zero."; dest_qpn: u32[24] "Destination queue pair.";
            ack_req: bool[1] "Acknowledge requested."; rsvd1: u8[7] "Zero."; psn: u32[24] "Packet sequence number."; }
        #[doc = "RDMA extended transport header (IBTA 9.2.3)."]
        Reth [16] { va: u64[64] "Virtual address."; rkey: u32[32] "Remote key."; length: u32[32] "DMA length."; }
        #[doc = "FLUSH extended transport header (IBTA annex A19), in front of the RETH."]
        Feth [4] { rsvd0: u32[26] "Zero."; selectivity: u8[2] "0: the bytes that the RETH names, 1: the whole region."; placement: u8[4] "Bit 0: visible to all (global), bit 1: persistent."; }
        #[doc = "ACK extended transport header (IBTA 9.2.5)."]
        Aeth [4] { syndrome: u8[8] "ACK, RNR NAK or NAK with its code."; msn: u32[24] "Message sequence number."; }
        #[doc = "Immediate data (IBTA 9.2.6)."]
        ImmDt [4] { imm: u32[32] "Immediate data."; }
        #[doc = "Invalidate extended transport header (IBTA 9.2.7)."]
        Ieth [4] { rkey: u32[32] "Key to invalidate."; }
        #[doc = "Datagram extended transport header (IBTA 9.2.2)."]
        Deth [8] { qkey: u32[32] "Queue key."; rsvd0: u8[8] "Zero."; src_qpn: u32[24] "Source queue pair."; }
        #[doc = "Atomic extended transport header (IBTA 9.2.4)."]
        AtomicEth [28] { va: u64[64] "Virtual address."; rkey: u32[32] "Remote key."; swap_add: u64[64] "Swap value or addend."; compare: u64[64] "Compare value."; }
        #[doc = "Atomic ACK extended transport header (IBTA 9.2.5.2)."]
        AtomicAckEth [8] { original: u64[64] "Value found at the address before the operation."; }
    } };
}

wire_records!(define_codecs);
use crate::define_codecs;

/// UDP port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;
/// UDP port of VXLAN (RFC 7348, section 5).
pub const VXLAN_PORT: u16 = 4789;
/// Flags of a VXLAN header: the I flag alone (RFC 7348, section 5).
pub const VXLAN_FLAGS: u8 = 8;
/// Bytes of the invariant CRC behind a RoCE packet.
pub const ICRC_BYTES: usize = 4;
/// Bytes in front of a received datagram's payload: the GRH, or an IPv4 header in its last 20 bytes (annex A17).
pub const GRH_BYTES: usize = 40;

/// Destination of MAC control frames (IEEE 802.3 annex 31B.1): no bridge hands them on.
pub const PAUSE_ADDRESS: u64 = 0x0180_c200_0001;
/// Opcode of PAUSE (IEEE 802.3 annex 31A).
pub const PAUSE_LINK: u16 = 0x0001;
/// Opcode of priority-based flow control.
pub const PAUSE_PRIORITY: u16 = 0x0101;

/// EtherTypes.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// MAC control (IEEE 802.3 clause 31).
    pub const MAC_CONTROL: u16 = 0x8808;
    /// 802.1Q tag.
    pub const VLAN: u16 = 0x8100;
    /// Service tag (IEEE 802.1Q, "802.1ad").
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
}

/// Protocols above IP.
pub mod protocol {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
}

/// BTH opcodes (IBTA table 38): a class in the three high bits, an operation in the others.
pub mod opcode {
    /// Class of the reliable connection.
    pub const CLASS_RC: u8 = 0;
    /// Class of the unreliable connection.
    pub const CLASS_UC: u8 = 1;
    /// Class of the unreliable datagram.
    pub const CLASS_UD: u8 = 3;
    /// Bits of the operation.
    pub const OPERATION_BITS: u32 = 5;
    /// SEND First.
    pub const SEND_FIRST: u8 = 0;
    /// SEND Middle.
    pub const SEND_MIDDLE: u8 = 1;
    /// SEND Last.
    pub const SEND_LAST: u8 = 2;
    /// SEND Last with immediate.
    pub const SEND_LAST_IMM: u8 = 3;
    /// SEND Only.
    pub const SEND_ONLY: u8 = 4;
    /// SEND Only with immediate.
    pub const SEND_ONLY_IMM: u8 = 5;
    /// RDMA WRITE First.
    pub const WRITE_FIRST: u8 = 6;
    /// RDMA WRITE Middle.
    pub const WRITE_MIDDLE: u8 = 7;
    /// RDMA WRITE Last.
    pub const WRITE_LAST: u8 = 8;
    /// RDMA WRITE Last with immediate.
    pub const WRITE_LAST_IMM: u8 = 9;
    /// RDMA WRITE Only.
    pub const WRITE_ONLY: u8 = 10;
    /// RDMA WRITE Only with immediate.
    pub const WRITE_ONLY_IMM: u8 = 11;
    /// RDMA READ Request.
    pub const READ_REQUEST: u8 = 12;
    /// RDMA READ Response First.
    pub const READ_RESPONSE_FIRST: u8 = 13;
    /// RDMA READ Response Middle.
    pub const READ_RESPONSE_MIDDLE: u8 = 14;
    /// RDMA READ Response Last.
    pub const READ_RESPONSE_LAST: u8 = 15;
    /// RDMA READ Response Only.
    pub const READ_RESPONSE_ONLY: u8 = 16;
    /// Acknowledge.
    pub const ACKNOWLEDGE: u8 = 17;
    /// Atomic Acknowledge.
    pub const ATOMIC_ACKNOWLEDGE: u8 = 18;
    /// Compare and swap.
    pub const COMPARE_SWAP: u8 = 19;
    /// Fetch and add.
    pub const FETCH_ADD: u8 = 20;
    /// SEND Last with invalidate.
    pub const SEND_LAST_INVALIDATE: u8 = 22;
    /// SEND Only with invalidate.
    pub const SEND_ONLY_INVALIDATE: u8 = 23;
    /// FLUSH (annex A19).
    pub const FLUSH: u8 = 28;
    /// ATOMIC WRITE (annex A19).
    pub const ATOMIC_WRITE: u8 = 29;
    /// Congestion notification packet, class and operation (annex A17).
    pub const CNP: u8 = 0x81;
}

/// FETH of a FLUSH (IBTA annex A19).
pub mod feth {
    /// Placement type: visible to all.
    pub const GLOBAL: u32 = 1;
    /// Placement type: persistent.
    pub const PERSISTENT: u32 = 2;
    /// Bits of the placement type.
    pub const PLACEMENT: u32 = 15;
    /// Selectivity level: the whole region.
    pub const WHOLE: u32 = 16;
    /// Selectivity level that means nothing yet.
    pub const RESERVED: u32 = 32;
}

/// AETH syndromes (IBTA 9.7.5.2.8).
pub mod syndrome {
    /// Acknowledge without end-to-end flow control: credit count 31.
    pub const ACK: u8 = 0x1f;
    /// RNR NAK; the timer code stands in the low five bits.
    pub const RNR_NAK: u8 = 0x20;
    /// NAK: PSN sequence error.
    pub const NAK_SEQUENCE: u8 = 0x60;
    /// NAK: invalid request.
    pub const NAK_INVALID: u8 = 0x61;
    /// NAK: remote access error.
    pub const NAK_ACCESS: u8 = 0x62;
    /// NAK: remote operational error.
    pub const NAK_OPERATION: u8 = 0x63;
    /// Kind of a syndrome, its bits 6 and 5: acknowledge.
    pub const KIND_ACK: u8 = 0;
    /// RNR NAK.
    pub const KIND_RNR: u8 = 1;
    /// NAK.
    pub const KIND_NAK: u8 = 3;
}

/// ECN bits: congestion experienced (RFC 3168).
pub const ECN_CE: u8 = 3;

/// Path MTU as contexts hold it (IBTA encoding).
pub mod pmtu {
    /// 256 bytes.
    pub const MTU_256: u8 = 1;
    /// 512 bytes.
    pub const MTU_512: u8 = 2;
    /// 1024 bytes.
    pub const MTU_1024: u8 = 3;
    /// 2048 bytes.
    pub const MTU_2048: u8 = 4;
    /// 4096 bytes.
    pub const MTU_4096: u8 = 5;
    /// Bytes of a code.
    pub const fn bytes(code: u8) -> u64 {
        128 << code
    }
}
