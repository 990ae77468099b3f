//! VirtIO: what a guest's driver and a virtio function of the card say to each other, by the specification "Virtual I/O Device (VIRTIO) Version 1.3", whose sections are named as `spec`.
//! The golden model (`ferric_model::virtio`) reads these records, and the gateware the descriptors of both kinds of ring (`ferric_hdl::virtio`). Causes of a reject: [`crate::codes::VirtioCause`].

pub mod feature;
pub mod net;

/// Expands `$callback!` with the declarations of the records of VirtIO; see [`crate::define_codecs`].
#[macro_export]
macro_rules! virtio_records {
    ($callback:ident) => {
        $callback! { Little;
            #[doc = "Descriptor of a split ring, and of its indirect tables (spec 2.7.5)."]
            SplitDesc [16] { addr: u64[64] "Address of the buffer, or of the indirect table."; length: u32[32] "Bytes of either."; has_next: bool[1] "NEXT: the chain goes on at `next`."; write: bool[1] "WRITE: the device writes the buffer; else it reads it.";
                indirect: bool[1] "INDIRECT: the buffer is a table of descriptors."; rsvd0: u16[13] "Zero."; next: u16[16] "Number of the next descriptor in the same table."; }
            #[doc = "Head of the available ring; the ring of 16-bit heads follows, behind it `used_event` (spec 2.7.6)."]
            AvailHead [4] { no_interrupt: bool[1] "Used buffers need no interrupt (without EVENT_IDX)."; rsvd0: u16[15] "Zero."; idx: u16[16] "Chains made available so far, modulo 65,536."; }
            #[doc = "Head of the used ring; the ring of `UsedElem` follows, behind it `avail_event` (spec 2.7.8)."]
            UsedHead [4] { no_notify: bool[1] "Available buffers need no notification (without EVENT_IDX)."; rsvd0: u16[15] "Zero."; idx: u16[16] "Chains used so far, modulo 65,536."; }
            #[doc = "Element of the used ring (spec 2.7.8)."]
            UsedElem [8] { id: u32[32] "Head of the chain."; length: u32[32] "Bytes that the device has written into it."; }
            #[doc = "Descriptor of a packed ring, available or used, and of its indirect tables, where only `addr`, `length` and `write` count (spec 2.8.13)."]
            PackedDesc [16] { addr: u64[64] "Address of the buffer, or of the indirect table; of a used one without meaning."; length: u32[32] "Bytes of either; of a used one the bytes written."; id: u16[16] "Buffer ID; of a chain the last descriptor's counts.";
                has_next: bool[1] "NEXT: the chain goes on in the next descriptor of the ring."; write: bool[1] "WRITE: the device writes the buffer; of a used one: `length` counts."; indirect: bool[1] "INDIRECT: the buffer is a table of descriptors.";
                rsvd0: u8[4] "Zero."; avail: bool[1] "The driver's wrap counter, when it made the descriptor available."; rsvd1: u8[7] "Zero."; used: bool[1] "The inverse of `avail` while available, the same when used."; }
            #[doc = "Event suppression structure of a packed ring, one for each direction (spec 2.8.14)."]
            PackedEvent [4] { offset: u16[15] "Descriptor whose event is wanted (flags `EVENT_DESC`)."; wrap: bool[1] "Wrap counter of that descriptor."; flags: u8[2] "See `event` of this module."; rsvd0: u16[14] "Zero."; }
            #[doc = "Value of a notification with NOTIFICATION_DATA; without, the first 16 bits alone are written (spec 4.1.5.2)."]
            Notification [4] { queue: u16[16] "Queue."; offset: u16[15] "Split: `idx` of the available ring, bits 0 to 14; packed: next descriptor that the driver will make available."; wrap: bool[1] "Split: bit 15 of that index; packed: the driver's wrap counter."; }
            #[doc = "Common configuration structure of a function (spec 4.1.4.3). Registers of 64 bits are written as two of 32, either alone."]
            CommonConfig [64] { device_feature_select: u32[32] "Word of features that `device_feature` shows."; device_feature: u32[32] "32 features that the device offers."; driver_feature_select: u32[32] "Word that `driver_feature` means.";
                driver_feature: u32[32] "32 features that the driver takes."; config_msix_vector: u16[16] "Vector of configuration changes; `NO_VECTOR`: none, or refused."; num_queues: u16[16] "Queues, the administration queue not among them.";
                device_status: u8[8] "See `status` of this module; writing 0 resets the device."; config_generation: u8[8] "Another number, when the device configuration has changed since the driver read it.";
                queue_select: u16[16] "Queue that the following registers mean."; queue_size: u16[16] "Descriptors: the most, until the driver writes another number. 0: no such queue."; queue_msix_vector: u16[16] "Vector of the queue.";
                queue_enable: u16[16] "1: the queue runs."; queue_notify_off: u16[16] "Where notifications of the queue go, in units of the multiplier."; queue_desc: u64[64] "Address of the descriptors."; queue_driver: u64[64] "Address of the driver's area.";
                queue_device: u64[64] "Address of the device's area."; queue_notif_config_data: u16[16] "Zero: NOTIF_CONFIG_DATA is not offered."; queue_reset: u16[16] "Writing 1 resets the queue; reads 1 until it is done (RING_RESET).";
                admin_queue_index: u16[16] "Zero: ADMIN_VQ is not offered."; admin_queue_num: u16[16] "Zero."; }
            #[doc = "Device configuration of a network device (spec 5.1.4)."]
            NetConfig [28] { mac: u64[48] "MAC address; the first byte on the wire is the lowest."; status: u16[16] "Bit 0: the link is up; bit 1: the driver should announce itself."; max_pairs: u16[16] "Pairs of queues (MQ)."; mtu: u16[16] "Largest packet behind the Ethernet header (MTU).";
                speed: u32[32] "Mbit/s; all ones: unknown."; duplex: u8[8] "1: full; 0xff: unknown."; rss_max_key_size: u8[8] "Bytes (RSS)."; rss_max_table: u16[16] "Entries of the indirection table (RSS)."; hash_types: u32[32] "Types of hash (RSS)."; tunnel_types: u32[32] "Zero: HASH_TUNNEL is not offered."; }
            #[doc = "Header in front of every frame, both ways (spec 5.1.6)."]
            NetHeader [12] { needs_csum: bool[1] "NEEDS_CSUM: the checksum has to be filled in."; data_valid: bool[1] "DATA_VALID: the checksum has been verified."; other_flags: u8[6] "Flags that the device does not know, and ignores.";
                gso: u8[7] "Kind of segmentation: see `net::gso`."; ecn: bool[1] "The TCP segment has CWR set."; hdr_len: u16[16] "Length of the headers; a hint that is not trusted."; gso_size: u16[16] "Bytes of payload in each segment.";
                csum_start: u16[16] "Byte of the frame where the sum begins."; csum_offset: u16[16] "Where the checksum stands, from there on."; num_buffers: u16[16] "Buffers that a received frame takes; of a sent one without meaning."; }
            #[doc = "Head of a command in the control queue (spec 5.1.6.5); the data of the command follow, behind them one byte of status, which the device writes."]
            ControlHead [2] { class: u8[8] "See `net::control`."; command: u8[8] "Command of the class."; }
            #[doc = "Head of the data of MQ_RSS_CONFIG (spec 5.1.6.5.7.1); `mask` + 1 pairs of 16 bits each follow, behind them `RssTail`."]
            RssHead [8] { hash_types: u32[32] "See `net::hash_type`."; mask: u16[16] "Bits of the hash that say which entry counts: the table's length less one."; unclassified: u16[16] "Pair of what has no hash."; }
            #[doc = "Data of the commands that coalesce notifications (spec 5.1.6.5.9)."]
            NotfCoal [8] { max_packets: u32[32] "Packets before a notification; 0: each has its own."; max_usecs: u32[32] "Microseconds before a notification, from the first packet on; 0: each packet has its own."; }
            #[doc = "What is behind the table of MQ_RSS_CONFIG; the key follows (spec 5.1.6.5.7.1)."]
            RssTail [3] { max_tx_vq: u16[16] "Transmit queues that the driver may use, from the first on."; key_length: u8[8] "Bytes of the key."; }
        }
    };
}

virtio_records!(define_codecs);
use crate::define_codecs;

/// Descriptors of a ring at most, by the format (spec 2.7, 2.8).
pub const MAX_SIZE: u16 = 32768;
/// Entries of an indirect table, and segments of a chain, that a Ferric card takes at most.
pub const MAX_SEGMENTS: usize = 256;
/// Vector register: none, or the vector that was written is none of the function's (spec 4.1.5.1.2).
pub const NO_VECTOR: u16 = 0xffff;

/// Bits of `device_status` (spec 2.1).
pub mod status {
    /// The driver has seen the device.
    pub const ACKNOWLEDGE: u8 = 1;
    /// It knows how to drive it.
    pub const DRIVER: u8 = 2;
    /// It may be used.
    pub const DRIVER_OK: u8 = 4;
    /// The features are settled, and the device takes them.
    pub const FEATURES_OK: u8 = 8;
    /// The device cannot go on; only a reset helps.
    pub const NEEDS_RESET: u8 = 64;
    /// The driver has given up.
    pub const FAILED: u8 = 128;
}

/// Values of `flags` in [`PackedEvent`] (spec 2.8.14).
pub mod event {
    /// Events are wanted.
    pub const ENABLE: u8 = 0;
    /// None is.
    pub const DISABLE: u8 = 1;
    /// That of one descriptor is; with EVENT_IDX only.
    pub const DESC: u8 = 2;
}

/// Bits of the interrupt status register (spec 4.1.4.5).
pub mod isr {
    /// A queue has used buffers.
    pub const QUEUE: u8 = 1;
    /// The device configuration or the status has changed.
    pub const CONFIG: u8 = 2;
}

/// Where the structures of a virtio function lie in its register window (BAR 0).
pub mod window {
    /// Common configuration, [`super::CommonConfig`].
    pub const COMMON: u32 = 0x4000;
    /// Interrupt status: one byte, which reading clears.
    pub const ISR: u32 = 0x5000;
    /// Device configuration, [`super::NetConfig`].
    pub const DEVICE: u32 = 0x6000;
    /// Notifications: the queue's number times [`NOTIFY_MULTIPLIER`] behind it.
    pub const NOTIFY: u32 = 0x8000;
    /// Bytes of the notifications.
    pub const NOTIFY_SIZE: u32 = 0x4000;
    /// Bytes between the notifications of two queues (`notify_off_multiplier`, spec 4.1.4.4).
    pub const NOTIFY_MULTIPLIER: u32 = 4;
}
