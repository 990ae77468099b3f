//! The set-up protocol's frames and codes, declared once: software codecs and hardware structs from the same list (README.md).

use ferric_abi::layout::{get, offset_of, Field, Layout, Order};

/// UDP port of the target.
pub const PORT: u16 = 47910;
/// First word of requests and answers.
pub const MAGIC: u32 = 0xfe44_5e70;
/// Version of the protocol.
pub const VERSION: u8 = 1;

/// Operation of a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TargetOp {
    /// Counters, the receive ring, the state of queue pair `object`.
    Query = 0,
    /// Queue pair for the sender: `peer_qpn`, `first_psn`, `pd`, `pkey`, `pmtu`, `rights`, `rnr_timer`. One that the sender has for that `peer_qpn` is made anew.
    CreateQp = 1,
    /// The sender's queue pair `object` ends; what it was doing is done.
    DestroyQp = 2,
    /// Key over `length` bytes from `start` on, for queue pairs of `pd`, with `rights`.
    CreateKey = 3,
    /// The sender's key `object` ends.
    DestroyKey = 4,
    /// Receive ring: `start`, `log_slot`, `log_count`. Only while there is no queue pair.
    SetRing = 5,
    /// Slots of the receive ring are given back: `consumer`.
    Release = 6,
}

/// Outcome of a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TargetStatus {
    /// Done, or had been done before.
    Done = 0,
    /// Length, magic or version is wrong.
    Malformed = 1,
    /// No such operation.
    UnknownOp = 2,
    /// All queue pairs or keys are taken.
    Full = 3,
    /// The sender has no such object.
    NotFound = 4,
    /// A parameter is out of range, or the moment is wrong.
    Refused = 5,
}

impl TargetStatus {
    /// The status with number `n`.
    pub fn from_u8(n: u8) -> Option<Self> {
        [Self::Done, Self::Malformed, Self::UnknownOp, Self::Full, Self::NotFound, Self::Refused].get(usize::from(n)).copied()
    }
}

macro_rules! setup_records {
    ($callback:ident) => { $callback! {
    #[doc = "Set-up request of the memory target: a UDP datagram of 64 bytes to port [`PORT`] (hdl/src/target/setup/README.md)."]
    SetupRequest [64] { magic: u32[32] "[`MAGIC`]."; version: u8[8] "[`VERSION`]."; op: u8[8] "See [`TargetOp`]."; rsvd0: u16[16] "Zero.";
        seq: u32[32] "The client's number for this request; a repetition bears the same one."; object: u32[32] "Queue pair or key that the operation is about.";
        rsvd1: u8[8] "Zero."; peer_qpn: u32[24] "The peer's queue pair."; rsvd2: u8[8] "Zero."; first_psn: u32[24] "PSN of the peer's first request.";
        rsvd3: u8[8] "Zero."; pd: u32[24] "Protection domain: keys work for queue pairs of the same one."; pkey: u16[16] "Partition key.";
        pmtu: u8[8] "Path MTU, IBTA encoding."; rights: u8[8] "Bit 0: the peer may WRITE, 1: READ, 2: use atomics."; rnr_timer: u8[8] "RNR NAK timer code (IBTA table 46).";
        log_slot: u8[8] "Receive ring: log2 of the bytes of a slot, 6 to 12."; log_count: u8[8] "Receive ring: log2 of the slots, at most 6."; rsvd4: u8[8] "Zero.";
        start: u32[32] "First byte of the RAM, of a key or of the receive ring."; length: u32[32] "Bytes of a key."; consumer: u16[16] "Receive ring: slots given back so far.";
        rsvd5: u16[16] "Zero."; rsvd6: u128[128] "Zero."; }
    #[doc = "Answer to a `SetupRequest`."]
    SetupReply [64] { magic: u32[32] "[`MAGIC`]."; version: u8[8] "[`VERSION`]."; op: u8[8] "As asked."; status: u8[8] "See [`TargetStatus`]."; rsvd0: u8[8] "Zero.";
        seq: u32[32] "As asked."; object: u32[32] "The queue pair or the key."; ram_bytes: u32[32] "Bytes of RAM.";
        state: u8[8] "Of the queue pair `object`: see `QpState`."; rsvd1: u8[8] "Zero."; echoes: u16[16] "ARP and ICMP echo requests answered, modulo 65536.";
        rsvd3: u8[8] "Zero."; epsn: u32[24] "Of the queue pair: the PSN expected next."; rsvd4: u8[8] "Zero."; msn: u32[24] "Of the queue pair: messages completed.";
        ring_base: u32[32] "Receive ring: first byte."; ring_log_slot: u8[8] "0: there is none."; ring_log_count: u8[8] "log2 of its slots.";
        ring_head: u16[16] "Slots handed out so far."; ring_consumer: u16[16] "Slots given back so far."; malformed: u16[16] "Malformed ARP and ICMP echo requests, modulo 65536.";
        frames: u32[32] "RoCE frames received."; requests: u32[32] "Requests judged."; errors: u32[32] "Queue pairs that went to error."; refused: u32[32] "Set-up requests that were refused.";
        now: u32[32] "Ticks of 1.024 us since the reset."; }
    } };
}

/// As `ferric_abi::define_codecs`, big endian.
macro_rules! codecs {
    ($( #[doc = $doc:literal] $name:ident [$bytes:literal] { $( $field:ident : $ty:ident [$width:literal] $fdoc:literal; )* } )*) => { $(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub [u8; $bytes]);

        impl Default for $name {
            fn default() -> Self {
                Self([0; $bytes])
            }
        }

        const _: () = {
            #[allow(non_camel_case_types, dead_code)]
            enum Index { $( $field ),* }
            const WIDTHS: &[usize] = &[ $( $width ),* ];
            const ORDER: Order = Order::Big;
            assert!(offset_of(WIDTHS, WIDTHS.len()) == $bytes * 8);

            impl $name {
                /// Bit layout of the record.
                pub const LAYOUT: Layout = Layout {
                    name: stringify!($name), doc: $doc, order: ORDER, bytes: $bytes,
                    fields: &[ $( Field { name: stringify!($field), width: $width, offset: offset_of(WIDTHS, Index::$field as usize), doc: $fdoc } ),* ],
                };
                $(
                    #[doc = $fdoc]
                    pub fn $field(&self) -> $ty {
                        ferric_abi::codec_out!($ty, get(&self.0, ORDER, offset_of(WIDTHS, Index::$field as usize), $width))
                    }
                )*
                ferric_abi::define_setters! { ORDER WIDTHS Index $( $field : $ty [$width] )* }
            }
        };
    )* };
}
setup_records!(codecs);

/// The same records as hardware structs.
pub mod hw {
    #![allow(missing_docs)]
    use rust_hdl::prelude::*;

    macro_rules! logic_structs {
        ($( #[doc = $doc:literal] $name:ident [$bytes:literal] { $( $field:ident : $ty:ident [$width:tt] $fdoc:literal; )* } )*) => { $(
            #[doc = $doc]
            #[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
            pub struct $name { $( #[doc = $fdoc] pub $field: Bits<$width> ),* }
        )* };
    }
    setup_records!(logic_structs);
}
