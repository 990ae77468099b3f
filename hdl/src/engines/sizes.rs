//! The sizes of a card. They stand here once: as a value, and as constants for the types of blocks ([`with_sizes`](crate::with_sizes)).

/// How large a card is. Tables are given by the log2 of their entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bits of the data path.
    pub width: usize,
    /// Queue pairs, and as many shared receive queues.
    pub queue_pairs: u32,
    pub completion_queues: u32,
    pub memory_regions: u32,
    /// Slots of each of the two ways of the translation cache, a page-table line of 64 bytes in each.
    pub translations: u32,
    /// Page-table lines that are fetched at once.
    pub translation_reads: u32,
    /// Requests on their way to the wire: buffers of send work requests, egress slots and reads of payload, as many of each.
    pub requests: u32,
    /// Blocks of eight rows for receive work requests that are fetched ahead of their packets.
    pub receive_blocks: u32,
    pub event_queues: u32,
    pub protection_domains: u32,
    /// PCI functions, each with a window; function 0 is the physical one.
    pub functions: u32,
}

/// One module of constants for each size.
macro_rules! sizes {
    ($( $(#[$doc:meta])* $name:ident: $($number:ident = $value:literal),*; )*) => {
        $(
            $(#[$doc])*
            pub mod $name {
                $( pub const $number: usize = $value; )*
                /// Bytes of the data path, and their log2.
                pub const K: usize = W / 8;
                pub const LK: usize = K.trailing_zeros() as usize;
                /// One bit more than `LK`: a number of bytes up to all of the data path's.
                pub const LB: usize = LK + 1;
                /// log2 of the functions' own addresses: 16 of each.
                pub const LT: usize = LF + ferric_abi::csr::ADDRESSES.ilog2() as usize;
                /// log2 of the functions' MAC addresses, 4 of each, and how many they are.
                pub const LD: usize = LF + ferric_abi::csr::STATIONS.ilog2() as usize;
                pub const ND: usize = 1 << LD;
                /// Buffers of send work requests, and log2 of their rows.
                pub const NH: usize = 1 << LH;
                pub const LI: usize = LH + 3;
                /// log2 of the tracker's entries: 256 work requests under way of each queue pair.
                pub const LA: usize = LQ + 8;
                /// log2 of the answers kept: 32 of each queue pair.
                pub const LR: usize = LQ + 5;
                /// log2 of the receive rings: queue pairs and shared receive queues.
                pub const LN: usize = LQ + 1;
                /// log2 of the rows of all blocks of receive work requests.
                pub const LV: usize = LW + 3;
                /// log2 of the protection domains.
                pub const LP: usize = 8;
                /// Functions, and log2 of the words of their registers: 8 for each.
                pub const NF: usize = 1 << LF;
                pub const LG: usize = LF + 3;
                /// log2 of the queue pairs in a function's share.
                pub const LJ: usize = LQ - LF;
                /// log2 of the counters' sums: 128 of each function. Bits of a small counter, which goes round more slowly than all sums are visited, and the others of a sum.
                pub const LS: usize = LF + 7;
                pub const CB: usize = LS + 1;
                pub const CH: usize = 64 - CB;
                /// log2 of the lines of a way of the flow tables, and of their actions; the same, two bits for a way and four for a table; groups of wildcard rules.
                pub const LY: usize = if W == 64 { 6 } else { 12 };
                pub const SY: usize = LY + 6;
                pub const GY: usize = if W == 64 { 2 } else { 19 };
                /// log2 of the lines of a way of the table of addresses that functions may send from.
                pub const LZ: usize = if W == 64 { 3 } else { 8 };
                pub const SIZES: super::Sizes = super::Sizes {
                    width: W,
                    queue_pairs: LQ as u32,
                    completion_queues: LC as u32,
                    memory_regions: LM as u32,
                    translations: LX as u32,
                    translation_reads: LO as u32,
                    requests: LH as u32,
                    receive_blocks: LW as u32,
                    event_queues: LE as u32,
                    protection_domains: LP as u32,
                    functions: LF as u32,
                };
            }
        )*
        /// Every size that there are cards of.
        pub const ALL: &[Sizes] = &[$($name::SIZES),*];
    };
}

sizes! {
    /// 256 queue pairs and completion queues, 1024 memory regions, translations of 32 MiB in 4 KiB pages, 128 requests on their way to the wire, 32 event queues, 4 functions.
    w64: W = 64, LQ = 8, LC = 8, LM = 10, LX = 9, LO = 4, LH = 7, LW = 6, LE = 5, LF = 2;
    /// 1024 queue pairs and completion queues, 4096 memory regions, translations of 256 MiB in 4 KiB pages, 256 requests on their way to the wire, 32 event queues, 4 functions.
    w512: W = 512, LQ = 10, LC = 10, LM = 12, LX = 12, LO = 5, LH = 8, LW = 7, LE = 5, LF = 2;
    /// For tests: 64 functions, two event queues for each.
    w64_functions64: W = 64, LQ = 8, LC = 8, LM = 10, LX = 9, LO = 4, LH = 7, LW = 6, LE = 7, LF = 6;
}

/// Calls `lines::<A, B, ..>(..)` with the constants of these names for the sizes `$sizes`, one of [`ALL`]: `W` bits and `K` bytes of the data path, `LK` their log2; `LQ` log2 of queue pairs, `LC` of
/// completion queues, `LM` of memory regions, `LX` of the slots of a way of the translation cache, `LO` of the page-table lines that are fetched at once, `LH` of the requests on their way to the wire, `LW` of the blocks of receive work requests, `LE` of event queues, `LF` of functions, and what follows from them (`LA`, `LB`, `LR`, `LN`, `LJ`, `LT`, `LD`, `ND`, `NF`, `LG`, `LI`, `LS`, `LV`, `LY`, `GY`, `SY`, `LZ`, `NH`, `CB`, `CH`).
#[macro_export]
macro_rules! with_sizes {
    ($sizes:expr, $lines:ident::<$($number:ident),*>($($argument:expr),*)) => {
        if $sizes == $crate::engines::sizes::w64::SIZES {
            $lines::<$({ $crate::engines::sizes::w64::$number }),*>($($argument),*)
        } else if $sizes == $crate::engines::sizes::w64_functions64::SIZES {
            $lines::<$({ $crate::engines::sizes::w64_functions64::$number }),*>($($argument),*)
        } else {
            $lines::<$({ $crate::engines::sizes::w512::$number }),*>($($argument),*)
        }
    };
}
