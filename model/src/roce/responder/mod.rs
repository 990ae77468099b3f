//! A software responder, written from the rules of IBTA volume 1, 9.7.4 (inbound requests), 9.8.2.2 (UC) and 9.8.3 (UD), as go-back-N
//! with one message in flight. Packets in, placement orders and side effects out.
mod golden;
mod judge;

pub use golden::Responder;
pub use judge::{nothing, Judge};

macro_rules! order {
    ($( $name:ident: $kind:ident, )*) => {
        /// A placement order: the fields that matter for it, named as in the gateware's `PlaceOp`; the others may be anything.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Order { $( pub $name: Option<$kind>, )* }

        impl Order {
            /// The fields that matter, by name.
            pub fn fields(&self) -> Vec<(&'static str, u128)> {
                [$( (stringify!($name), self.$name.map(u128::from)) ),*].into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
            }
        }
    };
}

order! {
    kind: u8, has_frame: bool, handle: u32, qpn: u32, epoch: u8, function: u16, pd: u32, own_pd: u32,
    pay_off: u32, pay_len: u32, msg_off: u32, first: bool, soft: bool, grh: bool,
    va: u64, key: u32, chk_len: u32, operand: u64, compare: u64, pmtu: u8, again: bool, flush: bool,
    rq_handle: u32, rq_index: u32, free_rq: bool, inv: bool,
    done: bool, cqe: bool, rcqn: u32, byte_len: u32, opcode: u8, has_imm: bool, imm: u32, solicited: bool, src_qpn: u32,
    ack: bool, replies: bool, syndrome: u8, psn: u32, msn: u32, dest_qpn: u32, ipv6: bool, vlan: bool,
}

/// Values of `Order::kind`.
pub mod kind {
    /// Nothing to place.
    pub const NOTHING: u8 = 0;
    /// RDMA WRITE.
    pub const WRITE: u8 = 1;
    /// SEND, datagram or raw frame.
    pub const SEND: u8 = 2;
    /// A receive is flushed.
    pub const FLUSH: u8 = 3;
    /// A new life of the queue pair begins.
    pub const LIFE: u8 = 4;
    /// READ request, or FLUSH.
    pub const READ: u8 = 5;
    /// Atomic request.
    pub const ATOMIC: u8 = 6;
}

/// Where receive requests come from.
pub trait Receives {
    /// The answer of the queue pair's receive ring, which is asked for the next request.
    fn grant(&mut self, qp: &Qp) -> Grant;
}

/// A received request, or a raw frame.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    pub raw: bool,
    pub handle: u32,
    pub frame_len: u32,
    pub pay_off: u32,
    pub pay_len: u32,
    pub pad: u32,
    pub opcode: u8,
    pub ack_req: bool,
    pub solicited: bool,
    pub pkey: u16,
    pub qpn: u32,
    pub psn: u32,
    pub va: u64,
    pub rkey: u32,
    pub dma_len: u32,
    pub imm: u32,
    pub operand: u64,
    pub compare: u64,
    pub qkey: u32,
    pub src_qpn: u32,
    /// Of the frame: IPv6, 802.1Q tag.
    pub v6: bool,
    pub tag: bool,
}

/// A queue pair's responder half.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Qp {
    pub state: u8,
    pub qp_type: u8,
    pub pmtu: u8,
    pub min_rnr_timer: u8,
    pub remote_write: bool,
    pub remote_read: bool,
    pub remote_atomic: bool,
    pub remote_flush: bool,
    pub epoch: u8,
    pub rcqn: u32,
    pub pd: u32,
    pub function: u16,
    pub pkey: u16,
    pub qkey: u32,
    pub dest_qpn: u32,
    pub ipv6: bool,
    pub vlan: bool,
    pub epsn: u32,
    pub msn: u32,
    pub nak_sent: bool,
    /// A NAK for a gap is repeated while packets behind it come.
    pub repeat_nak: bool,
    pub rnr_sent: bool,
    /// How far ahead the last packet was while the peer knew of the gap, at most 255.
    pub ahead: u32,
    /// Receive ring, whether it is a shared one, and the protection domain of what is posted to it.
    pub rq: u32,
    pub srq: bool,
    pub rq_pd: u32,
    /// READs and atomics that the peer may have open, and those that it has.
    pub max_dest_rd_atomic: u32,
    pub open: u32,
    pub message: Option<Message>,
    /// Receive request taken and not yet completed: (buffer, index).
    pub receive: Option<(u32, u32)>,
}

/// The message under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub write: bool,
    pub va: u64,
    pub rkey: u32,
    pub remaining: u32,
    pub bytes: u32,
}

/// What the responder does about something.
// Almost all of them are orders.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A placement order.
    Place(Order),
    /// The receive queue is to be flushed.
    FlushQueue(u32),
    /// The requester is told.
    Error { qpn: u32, epoch: u8, cause: u8 },
}

/// Answer of a receive ring. `dead`: a shared one in error.
#[derive(Clone, Copy, Debug, Default)]
pub enum Grant {
    #[default]
    None,
    Dead,
    Some(u32, u32),
}
