//! The set-up protocol of the memory target, a card without a host (hdl/src/memory_target/setup/README.md): requests and answers in UDP datagrams,
//! big endian. Operations and outcomes: [`crate::codes::TargetOp`], [`crate::codes::TargetStatus`].

/// UDP port of the target.
pub const PORT: u16 = 47910;
/// First word of requests and answers.
pub const MAGIC: u32 = 0xfe44_5e70;
/// Version of the protocol.
pub const VERSION: u8 = 1;

/// Expands `$callback!` with the declarations of the protocol's records; see [`crate::define_codecs`].
#[macro_export]
macro_rules! target_records {
    ($callback:ident) => {
        $callback! { Big;
            #[doc = "Set-up request: the datagram's payload, to the target's port."]
            SetupRequest [64] { magic: u32[32] "The protocol's first word."; version: u8[8] "The protocol's version."; op: u8[8] "See `TargetOp`."; rsvd0: u16[16] "Zero.";
                seq: u32[32] "The client's number for this request; a repetition bears the same one."; object: u32[32] "Queue pair or key that the operation is about.";
                rsvd1: u8[8] "Zero."; peer_qpn: u32[24] "The peer's queue pair."; rsvd2: u8[8] "Zero."; first_psn: u32[24] "PSN of the peer's first request.";
                rsvd3: u8[8] "Zero."; pd: u32[24] "Protection domain: keys work for queue pairs of the same one."; pkey: u16[16] "Partition key.";
                pmtu: u8[8] "Path MTU, IBTA encoding."; rights: u8[8] "Bit 0: the peer may WRITE, 1: READ, 2: use atomics."; rnr_timer: u8[8] "RNR NAK timer code (IBTA table 46).";
                log_slot: u8[8] "Receive ring: log2 of the bytes of a slot, 6 to 12."; log_count: u8[8] "Receive ring: log2 of the slots, at most 6."; rsvd4: u8[8] "Zero.";
                start: u32[32] "First byte of the RAM, of a key or of the receive ring."; length: u32[32] "Bytes of a key."; consumer: u16[16] "Receive ring: slots given back so far.";
                rsvd5: u16[16] "Zero."; rsvd6: u128[128] "Zero."; }
            #[doc = "Answer to a `SetupRequest`."]
            SetupReply [64] { magic: u32[32] "The protocol's first word."; version: u8[8] "The protocol's version."; op: u8[8] "As asked."; status: u8[8] "See `TargetStatus`."; rsvd0: u8[8] "Zero.";
                seq: u32[32] "As asked."; object: u32[32] "The queue pair or the key."; ram_bytes: u32[32] "Bytes of RAM.";
                state: u8[8] "Of the queue pair `object`: see `QpState`."; rsvd1: u8[8] "Zero."; echoes: u16[16] "ARP and ICMP echo requests answered, modulo 65536.";
                rsvd3: u8[8] "Zero."; epsn: u32[24] "Of the queue pair: the PSN expected next."; rsvd4: u8[8] "Zero."; msn: u32[24] "Of the queue pair: messages completed.";
                ring_base: u32[32] "Receive ring: first byte."; ring_log_slot: u8[8] "0: there is none."; ring_log_count: u8[8] "log2 of its slots.";
                ring_head: u16[16] "Slots handed out so far."; ring_consumer: u16[16] "Slots given back so far."; malformed: u16[16] "Malformed ARP and ICMP echo requests, modulo 65536.";
                frames: u32[32] "RoCE frames received."; requests: u32[32] "Requests judged."; errors: u32[32] "Queue pairs that went to error."; refused: u32[32] "Set-up requests that were refused.";
                now: u32[32] "Ticks of 1.024 us since the reset."; }
        }
    };
}

target_records!(define_codecs);
use crate::define_codecs;
