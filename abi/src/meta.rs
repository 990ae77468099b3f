//! Per-frame metadata: what `net` finds out about a received frame once, and every block behind it reads. Only `net`
//! parses; nobody looks into the frame again for a header field.
//!
//! Not carried yet, because nothing makes or reads it: virtual port (the switch), inner offsets,
//! ingress time, destination and drop cause. They join this list with the block that fills them.

/// Expands `$callback!` with the fields of the received-frame record, lowest bits first: `name: width "doc";`.
#[macro_export]
macro_rules! frame_metadata {
    ($callback:ident) => {
        $callback! {
            handle: 12 "First cell of the frame in the cell buffer: the buffer handle; exactly one owner frees it.";
            frame_len: 14 "Bytes of the frame without FCS.";
            port: 2 "Port it came in by.";
            class: 3 "Priority class (802.1Q PCP, 0 without a tag).";
            ecn: 2 "ECN bits of the IP header.";
            ipv6: 1 "IPv6, else IPv4.";
            has_vlan: 1 "One 802.1Q tag.";
            vlan_tci: 16 "Its tag control information.";
            raw: 1 "Not RoCE: for the raw queue; the transport fields mean nothing.";
            pay_off: 8 "Byte of the frame where the transport payload begins.";
            pay_len: 13 "Bytes of payload without pad.";
            pad: 2 "Pad bytes behind it.";
            opcode: 8 "BTH opcode.";
            solicited: 1 "BTH solicited event.";
            ack_req: 1 "BTH acknowledge request.";
            becn: 1 "BTH BECN.";
            fecn: 1 "BTH FECN.";
            pkey: 16 "BTH partition key.";
            dest_qpn: 24 "BTH destination queue pair.";
            psn: 24 "BTH packet sequence number.";
            va: 64 "RETH or AtomicETH virtual address.";
            rkey: 32 "RETH or AtomicETH remote key.";
            dma_len: 32 "RETH length.";
            imm: 32 "Immediate data or key to invalidate.";
            aeth: 32 "AETH: syndrome in the top byte, MSN below.";
            qkey: 32 "DETH queue key.";
            src_qpn: 24 "DETH source queue pair.";
            flow_hash: 32 "Hash of addresses and ports.";
            operand: 64 "AtomicETH swap or addend; original value of an AtomicAckETH; of a datagram low half of the destination IP address (`McastCtx`).";
            compare: 64 "AtomicETH compare value; of a datagram high half of the destination IP address.";
            multicast: 1 "Datagram to queue pair 0xFFFFFF: to the group in `compare` and `operand`.";
            kind: 2 "What a raw frame is, see `frame_kind`; 0 in a RoCE packet.";
            tunnel: 1 "It came through the tunnel of `function`: nobody else is to see it. Else a function with a tunnel is not to.";
            function: 12 "Whose tunnel it came through. Of another frame 0, or, if the physical function has a tunnel, 0xFFF: the raw queue pair gets what is 0.";
        }
    };
}

/// `kind` of a raw frame, with one 802.1Q tag or none. What has IPv4 options, is a fragment, or has IPv6 extension headers is `OTHER`.
pub mod frame_kind {
    /// None of those below.
    pub const OTHER: u8 = 0;
    /// ARP, whatever its hardware and protocol.
    pub const ARP: u8 = 1;
    /// ICMP in IPv4.
    pub const ICMP: u8 = 2;
    /// ICMPv6.
    pub const ICMPV6: u8 = 3;
}

macro_rules! list {
    ($( $name:ident : $width:literal $doc:literal; )*) => {
        /// Name, width in bits and meaning of every field, lowest bits first.
        pub const FRAME_METADATA: &[(&str, usize, &str)] = &[ $( (stringify!($name), $width, $doc) ),* ];
    };
}
frame_metadata!(list);
