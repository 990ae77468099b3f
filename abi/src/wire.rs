//! Wire headers in network byte order: Ethernet, 802.1Q, IPv4 (RFC 791), IPv6 (RFC 8200), UDP (RFC 768) and the
//! InfiniBand transport headers (IBTA volume 1, chapter 9; RoCEv2 annex A17).

/// Expands `$callback!` with the declarations of every wire header; see [`crate::define_codecs`].
#[macro_export]
macro_rules! wire_records {
    ($callback:ident) => { $callback! { Big;
        #[doc = "Ethernet II header."]
        Eth [14] { dst: u64[48] "Destination MAC."; src: u64[48] "Source MAC."; ethertype: u16[16] "EtherType."; }
        #[doc = "802.1Q tag (follows the MAC addresses' EtherType 0x8100)."]
        Vlan [4] { pcp: u8[3] "Priority."; dei: bool[1] "Drop eligible."; vid: u16[12] "VLAN id."; ethertype: u16[16] "Inner EtherType."; }
        #[doc = "IPv4 header without options (RFC 791)."]
        Ipv4 [20] { version: u8[4] "4."; ihl: u8[4] "Header length in 32-bit words."; dscp: u8[6] "DSCP."; ecn: u8[2] "ECN."; total_length: u16[16] "Header and payload bytes.";
            ident: u16[16] "Identification."; flags: u8[3] "Flags: bit 1 is DF."; fragment: u16[13] "Fragment offset."; ttl: u8[8] "Time to live."; protocol: u8[8] "17 is UDP.";
            checksum: u16[16] "Header checksum."; src: u32[32] "Source address."; dst: u32[32] "Destination address."; }
        #[doc = "IPv6 header (RFC 8200)."]
        Ipv6 [40] { version: u8[4] "6."; dscp: u8[6] "DSCP."; ecn: u8[2] "ECN."; flow_label: u32[20] "Flow label."; payload_length: u16[16] "Bytes after this header.";
            next_header: u8[8] "17 is UDP."; hop_limit: u8[8] "Hop limit."; src: u128[128] "Source address."; dst: u128[128] "Destination address."; }
        #[doc = "UDP header; RoCEv2 uses destination port 4791."]
        Udp [8] { src_port: u16[16] "Source port."; dst_port: u16[16] "Destination port."; length: u16[16] "Header and payload bytes."; checksum: u16[16] "Checksum, zero in RoCEv2 as sent here."; }
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
        #[doc = "Set-up request of the memory target: a UDP datagram of 64 bytes to port `target::PORT` (hdl/src/target/setup/README.md)."]
        SetupRequest [64] { magic: u32[32] "`target::MAGIC`."; version: u8[8] "`target::VERSION`."; op: u8[8] "See `TargetOp`."; rsvd0: u16[16] "Zero.";
            seq: u32[32] "The client's number for this request; a repetition bears the same one."; object: u32[32] "Queue pair or key that the operation is about.";
            rsvd1: u8[8] "Zero."; peer_qpn: u32[24] "The peer's queue pair."; rsvd2: u8[8] "Zero."; first_psn: u32[24] "PSN of the peer's first request.";
            rsvd3: u8[8] "Zero."; pd: u32[24] "Protection domain: keys work for queue pairs of the same one."; pkey: u16[16] "Partition key.";
            pmtu: u8[8] "Path MTU, IBTA encoding."; rights: u8[8] "Bit 0: the peer may WRITE, 1: READ, 2: use atomics."; rnr_timer: u8[8] "RNR NAK timer code (IBTA table 46).";
            log_slot: u8[8] "Receive ring: log2 of the bytes of a slot, 6 to 12."; log_count: u8[8] "Receive ring: log2 of the slots, at most 6."; rsvd4: u8[8] "Zero.";
            start: u32[32] "First byte of the RAM, of a key or of the receive ring."; length: u32[32] "Bytes of a key."; consumer: u16[16] "Receive ring: slots given back so far.";
            rsvd5: u16[16] "Zero."; rsvd6: u128[128] "Zero."; }
        #[doc = "Answer to a `SetupRequest`."]
        SetupReply [64] { magic: u32[32] "`target::MAGIC`."; version: u8[8] "`target::VERSION`."; op: u8[8] "As asked."; status: u8[8] "See `TargetStatus`."; rsvd0: u8[8] "Zero.";
            seq: u32[32] "As asked."; object: u32[32] "The queue pair or the key."; ram_bytes: u32[32] "Bytes of RAM.";
            state: u8[8] "Of the queue pair `object`: see `QpState`."; rsvd1: u8[8] "Zero."; rsvd2: u16[16] "Zero.";
            rsvd3: u8[8] "Zero."; epsn: u32[24] "Of the queue pair: the PSN expected next."; rsvd4: u8[8] "Zero."; msn: u32[24] "Of the queue pair: messages completed.";
            ring_base: u32[32] "Receive ring: first byte."; ring_log_slot: u8[8] "0: there is none."; ring_log_count: u8[8] "log2 of its slots.";
            ring_head: u16[16] "Slots handed out so far."; ring_consumer: u16[16] "Slots given back so far."; rsvd5: u16[16] "Zero.";
            frames: u32[32] "RoCE frames received."; requests: u32[32] "Requests judged."; errors: u32[32] "Queue pairs that went to error."; refused: u32[32] "Set-up requests that were refused.";
            now: u32[32] "Ticks of 1.024 us since the reset."; }
    } };
}

wire_records!(define_codecs);
use crate::define_codecs;
