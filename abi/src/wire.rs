//! Wire headers in network byte order: Ethernet, 802.1Q, ARP (RFC 826), IPv4 (RFC 791), IPv6 (RFC 8200), UDP (RFC 768), ICMP echo (RFC 792) and the
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
        #[doc = "ICMP echo request and reply (RFC 792)."]
        IcmpEcho [8] { kind: u8[8] "8: request, 0: reply."; code: u8[8] "0."; checksum: u16[16] "Of the message."; ident: u16[16] "Identifier."; seq: u16[16] "Sequence number."; }
        #[doc = "Base transport header (IBTA 9.2)."]
        Bth [12] { opcode: u8[8] "Transport (3 bits) and operation (5 bits)."; solicited: bool[1] "Solicited event."; migreq: bool[1] "Migration state."; pad: u8[2] "Pad bytes after the payload.";
            tver: u8[4] "Transport version, 0."; pkey: u16[16] "Partition key."; fecn: bool[1] "FECN."; becn: bool[1] "BECN."; rsvd0: u8[6] "Zero."; dest_qpn: u32[24] "Destination queue pair.";
            ack_req: bool[1] "Acknowledge requested."; rsvd1: u8[7] "Zero."; psn: u32[24] "Packet sequence number."; }
        #[doc = "RDMA extended transport header (IBTA 9.2.3)."]
        Reth [16] { va: u64[64] "Virtual address."; rkey: u32[32] "Remote key."; length: u32[32] "DMA length."; }
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
