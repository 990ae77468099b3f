//! Numbers in the messages of [`crate::msg`] and in context lines that several blocks write or read. What software sees is in `ferric_abi`.

/// `PlaceOp` and `DoneOp`: what is done with a packet.
pub mod place_kind {
    /// Nothing to place.
    pub const NOTHING: u64 = 0;
    /// RDMA WRITE.
    pub const WRITE: u64 = 1;
    /// SEND, datagram or raw frame.
    pub const SEND: u64 = 2;
    /// A receive is flushed.
    pub const FLUSH: u64 = 3;
    /// Barrier, or the beginning of a life.
    pub const BARRIER: u64 = 4;
    /// READ request.
    pub const READ: u64 = 5;
    /// Atomic request.
    pub const ATOMIC: u64 = 6;
    /// Answer to a READ or an atomic: a bit of its own.
    pub const ANSWER: u64 = 1 << ANSWER_BIT;
    /// The same, and its bytes come with the order.
    pub const VALUE: u64 = ANSWER + 1;
    /// Set in the kinds of what goes to send work requests' lists.
    pub const ANSWER_BIT: usize = 3;
}

/// `DoneOp`: outcome of a placement. From [`KEY_CHECK`](place_status::KEY_CHECK) on it is a status of the key unit.
pub mod place_status {
    /// The receive is too small.
    pub const TOO_SMALL: u64 = 1;
    /// The receive request is malformed.
    pub const BAD_RECEIVE: u64 = 2;
    /// An answer does not fit its request.
    pub const BAD_ANSWER: u64 = 3;
    /// The key may not be invalidated.
    pub const NOT_INVALIDATED: u64 = 4;
    /// Added to what the key unit says.
    pub const KEY_CHECK: u64 = 8;
    /// The key unit knows no such key.
    pub const KEY: u64 = KEY_CHECK + super::key_status::KEY;
    /// The key unit could not read a table.
    pub const FETCH: u64 = KEY_CHECK + super::key_status::FETCH;
}

/// `MrResp` and `MrChanged`.
pub mod key_status {
    /// No such key.
    pub const KEY: u64 = 1;
    /// Another protection domain or function.
    pub const DOMAIN: u64 = 2;
    /// Beyond the bounds.
    pub const BOUNDS: u64 = 3;
    /// No right to it, or not of a kind that work requests change.
    pub const PERMISSION: u64 = 4;
    /// Page absent.
    pub const PAGE: u64 = 5;
    /// The table could not be read.
    pub const FETCH: u64 = 6;
}

/// `MrReq`: rights that are asked for.
pub mod access {
    /// Local read.
    pub const LOCAL_READ: u64 = 1;
    /// Local write.
    pub const LOCAL_WRITE: u64 = 2;
    /// Remote write.
    pub const REMOTE_WRITE: u64 = 4;
    /// Remote read.
    pub const REMOTE_READ: u64 = 8;
    /// Remote atomic.
    pub const REMOTE_ATOMIC: u64 = 16;
    /// FLUSH.
    pub const REMOTE_FLUSH: u64 = 32;
}

/// `ReplyOp`: what became of an order, in the words of no transport.
pub mod outcome {
    /// Nothing went wrong.
    pub const FINE: u64 = 0;
    /// The request does not fit what it meets.
    pub const INVALID: u64 = 1;
    /// The peer has no right to what it asks for.
    pub const ACCESS: u64 = 2;
    /// It failed for a reason of this side.
    pub const LOCAL: u64 = 3;
}

/// `ReplyOp`: what is to be answered.
pub mod ack_kind {
    /// Acknowledge.
    pub const ACKNOWLEDGE: u64 = 0;
    /// READ.
    pub const READ: u64 = 1;
    /// Atomic.
    pub const ATOMIC: u64 = 2;
    /// None: a new life begins.
    pub const LIFE: u64 = 3;
}

/// `DoorbellMsg`: whose doorbell it is.
pub mod doorbell_kind {
    /// Send queue.
    pub const SQ: u64 = 0;
    /// Receive queue.
    pub const RQ: u64 = 1;
    /// Completion queue.
    pub const CQ: u64 = 2;
    /// Event queue.
    pub const EQ: u64 = 3;
}

/// `SqCmd`: what the send queue is to do.
pub mod send_command {
    /// Goes back to an index and runs.
    pub const RUN: u64 = 0;
    /// Goes back to an index and waits.
    pub const PARK: u64 = 1;
    /// Goes on.
    pub const RESUME: u64 = 2;
    /// Flushes from an index on.
    pub const FLUSH: u64 = 3;
}

/// Statuses of `TxDone` and `ReadDone` besides those of `CqeStatus`.
pub mod done_status {
    /// A local operation has been executed.
    pub const WORKED: u64 = 0xfe;
    /// Nothing was sent: look whether something can be retired. Of placed answers: all that had been accepted are in host memory.
    pub const QUIET: u64 = 0xff;
}

/// Opcode in `TxOp` of an order that only frees its work request buffer.
pub const ONLY_FREE: u64 = 0xff;

/// `QpError` from the admin engine to the requester, besides the causes of `CqeStatus`.
pub mod admin_cause {
    /// Out of SQD.
    pub const RESUME: u64 = 0x80;
    /// Into SQD.
    pub const DRAIN: u64 = 0x81;
    /// Out of SQ error.
    pub const SQ_RECOVERED: u64 = 0x82;
}

/// `RspCtx::in_msg`.
pub mod message {
    /// SEND in progress.
    pub const SEND: u64 = 1;
    /// WRITE in progress.
    pub const WRITE: u64 = 2;
}

/// `ReqCtx::local`.
pub mod local {
    /// Under way in the key unit.
    pub const UNDER_WAY: u64 = 1;
    /// Executed.
    pub const EXECUTED: u64 = 2;
}

/// `CcEvent`.
pub mod congestion {
    /// A congestion notification packet came.
    pub const NOTIFICATION: u64 = 1;
}

/// Bytes of a page of host memory, the bound that no DMA command crosses.
pub const PAGE: u64 = 4096;

/// Bytes of headers.
pub mod header {
    use ferric_abi::wire::{Bth, Eth, Ipv4, Ipv6, Udp, Vlan};
    /// 802.1Q tag.
    pub const VLAN: u64 = Vlan::BYTES as u64;
    /// Up to the BTH's end, over IPv4.
    pub const ROCE4: u64 = (Eth::BYTES + Ipv4::BYTES + Udp::BYTES + Bth::BYTES) as u64;
    /// Up to the BTH's end, over IPv6.
    pub const ROCE6: u64 = (Eth::BYTES + Ipv6::BYTES + Udp::BYTES + Bth::BYTES) as u64;
}

/// Fields of ARP packets (RFC 826).
pub mod arp {
    /// Operation: request.
    pub const REQUEST: u64 = 1;
    /// Operation: reply.
    pub const REPLY: u64 = 2;
    /// Hardware type.
    pub const ETHERNET: u64 = 1;
    /// Bytes of a hardware address.
    pub const MAC_BYTES: u64 = 6;
    /// Bytes of an IPv4 address.
    pub const IP_BYTES: u64 = 4;
}

/// Type of an ICMP message: echo request (RFC 792).
pub const ECHO_REQUEST: u64 = 8;

/// Types, flags and options of ICMPv6 messages (RFC 4443, RFC 4861).
pub mod icmp6 {
    /// Echo request.
    pub const ECHO_REQUEST: u64 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u64 = 129;
    /// Neighbour solicitation.
    pub const SOLICITATION: u64 = 135;
    /// Neighbour advertisement.
    pub const ADVERTISEMENT: u64 = 136;
    /// Flags of an advertisement: it answers a solicitation.
    pub const SOLICITED: u64 = 0x40;
    /// And it overrides what is known.
    pub const OVERRIDE: u64 = 0x20;
    /// Option: link-layer address of the sender.
    pub const SOURCE: u64 = 1;
    /// Option: link-layer address of the target.
    pub const TARGET: u64 = 2;
    /// Hop limit of neighbour discovery: what came through a router has less.
    pub const HOPS: u64 = 255;
}

/// Fields of IP headers.
pub mod ip {
    /// IPv4.
    pub const VERSION_4: u64 = 4;
    /// IPv6.
    pub const VERSION_6: u64 = 6;
    /// Words of an IPv4 header without options.
    pub const WORDS: u64 = ferric_abi::wire::Ipv4::BYTES as u64 / 4;
    /// Flags of IPv4: not to be fragmented.
    pub const DONT_FRAGMENT: u64 = 2;
    /// Hop limit of what the card sends by itself.
    pub const HOPS: u64 = 64;
    /// What the words of a header or message with a right checksum add up to.
    pub const RIGHT_SUM: u64 = 0xffff;
}

/// `VsVerdict`, `VsDropped`: why a received frame goes to no virtio queue.
pub mod steer_cause {
    /// It goes to one.
    pub const NONE: u64 = 0;
    /// Shorter than an Ethernet header.
    pub const RUNT: u64 = 1;
    /// Its VLAN is none of the function's.
    pub const VLAN: u64 = 2;
    /// Broadcasts are not wanted.
    pub const BROADCAST: u64 = 3;
    /// The group is not wanted.
    pub const MULTICAST: u64 = 4;
    /// It is for another station.
    pub const UNICAST: u64 = 5;
    /// The function has no such pair of queues in use, or none at all.
    pub const NO_QUEUE: u64 = 6;
    /// The causes above `NONE`.
    pub const COUNT: usize = 6;
}
