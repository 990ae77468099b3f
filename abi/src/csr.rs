//! The BAR: one 64 KiB window per PCI function, `address = function << 16 | offset`.
//! Registers are 32 bits wide; queues never use them on the data path.

/// Access type of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Constant or status.
    ReadOnly,
    /// Read and write.
    ReadWrite,
    /// Posted write with a side effect; reads as zero.
    WriteOnly,
}

/// One register.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Name.
    pub name: &'static str,
    /// Byte offset in the function's window.
    pub offset: u32,
    /// Access type.
    pub access: Access,
    /// Meaning.
    pub doc: &'static str,
}

/// Expands `$callback!` with the register list: `NAME offset Access "doc";`. The same list makes the constants, the driver's
/// `volatile-register` block, the gateware's decoder and the reference page.
#[macro_export]
macro_rules! registers {
    ($callback:ident) => { $callback! {
        MAGIC 0x000 ReadOnly "`FRIC` in ASCII, little-endian: 0x43495246.";
        VERSION 0x004 ReadOnly "Interface version: major << 16 | minor.";
        CAPS0 0x008 ReadOnly "log2 QPs (bits 7:0), log2 CQs (bits 15:8), log2 MRs (bits 23:16), log2 PDs (bits 31:24).";
        CAPS1 0x00c ReadOnly "log2 EQs (bits 7:0), log2 functions (bits 15:8), data path bytes (bits 23:16), ports (bits 31:24).";
        CAPS2 0x010 ReadOnly "Largest SGE count (bits 7:0), largest inline bytes (bits 23:8), largest slot stride code (bits 31:24).";
        CAPS3 0x014 ReadOnly "Transport bits: 0 RC, 1 UC, 2 UD, 3 raw Ethernet, 4 UET. Feature bits from 16: 16 WQE doorbell, 17 chaos build, 18 RDMA READ and atomics, 20 shared receive queues (as many as queue pairs), 21 multicast receive (64 attachments, 8 of a group), 22 answers for addresses, 23 functional twin, 24 pause frames, 25 tunnel (VXLAN), 26 FLUSH and ATOMIC WRITE, 27 flow tables for received frames.";
        CONTROL 0x020 ReadWrite "bit 0: enable; bit 1: soft reset of this function (self-clearing).";
        STATUS 0x024 ReadOnly "bit 0: enabled; bit 1: reset in progress.";
        ADMIN_SQ_LO 0x040 ReadWrite "IOVA of the admin ring, low word (128-byte aligned).";
        ADMIN_SQ_HI 0x044 ReadWrite "IOVA of the admin ring, high word.";
        ADMIN_CQ_LO 0x048 ReadWrite "IOVA of the admin completion ring, low word (64-byte aligned).";
        ADMIN_CQ_HI 0x04c ReadWrite "IOVA of the admin completion ring, high word.";
        ADMIN_SIZE 0x050 ReadWrite "log2 of the slots of both admin rings, 1 to 10.";
        ADMIN_DOORBELL 0x054 WriteOnly "Producer index of the admin ring.";
        TICK 0x060 ReadOnly "Low 32 bits of the card's tick counter (1.024 us).";
    } };
}

macro_rules! constants {
    ($( $name:ident $offset:literal $access:ident $doc:literal; )*) => {
        $( #[doc = $doc] pub const $name: u32 = $offset; )*
        /// Every register, in address order.
        pub const REGISTERS: &[Register] = &[ $( Register { name: stringify!($name), offset: $offset, access: Access::$access, doc: $doc } ),* ];
    };
}
registers!(constants);

/// Bit of a range word (docs/admin.md, QUERY_RANGES): the function has made objects of the kind since its last reset.
pub const RANGE_IN_USE: u32 = 1 << 31;
/// Value of [`MAGIC`].
pub const MAGIC_VALUE: u32 = u32::from_le_bytes(*b"FRIC");
/// Value of [`VERSION`].
pub const VERSION_VALUE: u32 = 1;
/// log2 of a function's window in the BAR.
pub const WINDOW_BITS: u32 = 16;
/// Send queue doorbell (8-byte write of [`crate::host::Doorbell`]).
pub const DB_SQ: u32 = 0x1000;
/// Receive queue doorbell.
pub const DB_RQ: u32 = 0x1008;
/// Completion queue doorbell.
pub const DB_CQ: u32 = 0x1010;
/// Event queue doorbell.
pub const DB_EQ: u32 = 0x1018;
/// WQE-carrying doorbell: 64-byte write-combined slots from here to the end of the page; any slot will do.
pub const DB_WQE: u32 = 0x2000;
/// Size of the WQE doorbell page.
pub const DB_WQE_SIZE: u32 = 0x1000;
/// Notification of a virtio queue: an 8-byte write with the queue's number in its low 16 bits, in cards with the engine `virtio`.
pub const DB_VQ: u32 = 0x3000;
/// Size of the page that it has to itself.
pub const DB_VQ_SIZE: u32 = 0x1000;

/// Bits of CAPS3: the transports of `codes::QpType`.
pub const TRANSPORT_RC: u32 = 0;
/// See [`TRANSPORT_RC`].
pub const TRANSPORT_UC: u32 = 1;
/// See [`TRANSPORT_RC`].
pub const TRANSPORT_UD: u32 = 2;
/// See [`TRANSPORT_RC`].
pub const TRANSPORT_RAW: u32 = 3;
/// Feature bit of CAPS3: doorbells that carry the work request.
pub const FEATURE_WQE_DOORBELL: u32 = 16;
/// Feature bit of CAPS3: the gateware stalls at random.
pub const FEATURE_CHAOS: u32 = 17;
/// Feature bit of CAPS3: RDMA READ and atomics.
pub const FEATURE_READ_ATOMIC: u32 = 18;
/// Feature bit of CAPS3: FLUSH (global placement) and ATOMIC WRITE.
pub const FEATURE_PLACEMENT: u32 = 26;
/// Feature bit of CAPS3: shared receive queues, as many as queue pairs.
pub const FEATURE_SRQ: u32 = 20;

/// Feature bit of CAPS3: multicast receive.
pub const FEATURE_MULTICAST: u32 = 21;
/// Feature bit of CAPS3: the card answers for the addresses of its functions, and finds neighbours.
pub const FEATURE_ADDRESSES: u32 = 22;
/// Feature bit of CAPS3: no gateware but its functional twin, a program; nothing that is measured on it says anything of hardware.
pub const FEATURE_TWIN: u32 = 23;
/// Feature bit of CAPS3: the card obeys and sends pause frames (IEEE 802.3 annex 31B, 802.1Q clause 36) when told to.
pub const FEATURE_PAUSE: u32 = 24;
/// Feature bit of CAPS3: the card is a tunnel's end (VXLAN, RFC 7348) for each function that it is told to be one for.
pub const FEATURE_TUNNEL: u32 = 25;
/// Feature bit of CAPS3: received frames are decided by flow tables.
pub const FEATURE_FLOWS: u32 = 27;
/// Feature bit of CAPS3: packet delivery of Ultra Ethernet, with WRITEs posted as `UetPost`.
pub const FEATURE_UET: u32 = 28;
/// Feature bit of CAPS3: rings of virtio network functions, whose lines the physical function writes (SET_VQ).
pub const FEATURE_VIRTIO: u32 = 29;
/// Number in every packet of the special queue pair for management datagrams (QP1, IBTA volume 1, 3.9.1), whosever it is.
pub const SPECIAL: u32 = 1;
/// Addresses of a function.
pub const ADDRESSES: u32 = 16;
/// MAC addresses of a function whose frames it receives.
pub const STATIONS: u32 = 4;
/// Bits of SET_PORT's parameter: there is a raw queue pair; it gets frames to any MAC address.
pub const PORT_RAW: u32 = 1 << 31;
/// See [`PORT_RAW`].
pub const PORT_PROMISCUOUS: u32 = 1 << 30;
/// Line of `space::ADDRESS` where function 0 seeks a neighbour (`NeighbourCtx`).
pub const NEIGHBOUR_LINE: u32 = 1 << 16;
/// Line of `space::TUNNEL` with the counters.
pub const TUNNEL_COUNTS: u32 = 64;
/// Line of `space::FLOW` where a command of the flow tables is put together.
pub const FLOW_COMMAND: u32 = 0;
/// Line of `space::FLOW` with what is done with frames off the wire (`FlowPortCtx`).
pub const FLOW_PORT: u32 = 1;
/// Line of `space::FLOW` with the counters (`FlowCounts`).
pub const FLOW_COUNTS: u32 = 2;
/// Word of the line [`FLOW_COMMAND`] whose writing empties all flow tables.
pub const FLOW_FORGET: u32 = 30;
/// Word of the line [`FLOW_COMMAND`] that says, when it is read, how large the tables are: log2 of the lines of a way of the exact table, which is that of the actions, too.
pub const FLOW_SIZES: u32 = 1;
/// The bit of that word from which on the groups of wildcard rules stand.
pub const FLOW_GROUPS_AT: u32 = 8;
/// Word of the line [`FLOW_COMMAND`] that says, when it is read, which tick it is: what `last_use` of a `FlowRecord` counts in, modulo 2^24.
pub const FLOW_NOW: u32 = 2;
/// log2 of a tick's cycles.
pub const FLOW_TICK: u32 = 14;
/// Word of the line [`FLOW_COMMAND`] whose writing, with a function's number, takes away what that function may send, if it is verified: nothing of it leaves then until it gets a new line.
pub const FLOW_CLOSE: u32 = 31;
/// From this line of `space::FLOW` on, by function: what became of frames that the function has sent (`SenderCounts`).
pub const FLOW_SENDERS: u32 = 64;
/// From this line of `space::FLOW` on, by function: what the flow tables made of what was about to leave by the wire (`EgressCounts`).
pub const FLOW_EGRESS: u32 = 128;
/// From this bit on of the word [`FLOW_SIZES`], 8 bits: log2 of the lines of a way of the table of addresses that functions may send from.
pub const FLOW_BINDS_AT: u32 = 16;
/// Line of `space::FLOW` with the answer to the last command that reads: see `ferric_abi::switch::table::READ`.
pub const FLOW_ANSWER: u32 = 3;
/// Bits of word 0 of the line [`FLOW_COMMAND`] as it is read: the last command named nothing that there is; the tables are being emptied, or read.
pub const FLOW_REFUSED: u32 = 1;
/// See [`FLOW_REFUSED`].
pub const FLOW_BUSY: u32 = 2;
/// Number of the virtual port that is the wire.
pub const WIRE_PORT: u32 = 1;
/// Number of the virtual port of function 0; those of the other functions follow.
pub const FUNCTION_PORTS: u32 = 8;
/// Attachments of queue pairs to multicast groups, on the whole card and of one group.
pub const MULTICAST_ATTACHMENTS: u32 = 64;
/// See [`MULTICAST_ATTACHMENTS`].
pub const MULTICAST_MEMBERS: u32 = 8;

/// Tables by the numbers that hosts know (QUERY_OBJECT), up to 255: they stay. A table's number on the control bus is another one, which the card's list gives it.
pub mod space {
    /// No table.
    pub const GLOBAL: u8 = 0;
    /// Send rings (`RingCtx`).
    pub const SQ: u8 = 1;
    /// Receive rings (`RingCtx`).
    pub const RQ: u8 = 2;
    /// Requester contexts (`ReqCtx`).
    pub const REQ: u8 = 3;
    /// Responder contexts (`RspCtx`).
    pub const RSP: u8 = 4;
    /// Paths (`PathCtx`).
    pub const PATH: u8 = 5;
    /// Completion queues (`CqCtx`).
    pub const CQ: u8 = 6;
    /// Event queues (`EqCtx`).
    pub const EQ: u8 = 7;
    /// Memory regions (`MrCtx`).
    pub const MR: u8 = 8;
    /// Counters: number in bits 11 to 0, function in bits 23 to 12. Words 0 and 1 are what that function has, 2 and 3 all functions together.
    pub const STATS: u8 = 9;
    /// Multicast attachments (`McastCtx`).
    pub const MCAST: u8 = 11;
    /// The functions' own addresses (`AddressCtx`), and the neighbours that they seek (`NeighbourCtx`).
    pub const ADDRESS: u8 = 12;
    /// The functions' MAC addresses (`StationCtx`).
    pub const STATION: u8 = 13;
    /// What the card does with pause frames (`PauseCtx`): one line.
    pub const PAUSE: u8 = 14;
    /// The functions' tunnels (`TunnelCtx`, line by function), and in line `TUNNEL_COUNTS` what became of frames at them (`TunnelCounts`).
    pub const TUNNEL: u8 = 15;
    /// The flow tables: in line `FLOW_COMMAND` a command, word by word; in line `FLOW_PORT` what is done with frames off the wire (`FlowPortCtx`); in line `FLOW_COUNTS` what became of them (`FlowCounts`); in line `FLOW_ANSWER` what a command has read; from line `FLOW_SENDERS` on, by function, what became of frames that were sent (`SenderCounts`); from line `FLOW_EGRESS` on, by function, what became of those that were about to leave (`EgressCounts`).
    pub const FLOW: u8 = 16;
    /// The raw queue pairs of functions with tunnels (`RawCtx`, line by function).
    pub const RAW: u8 = 17;
    /// Scratch memory of the admin engine: PD reference counts and object owners.
    pub const ADMIN: u8 = 10;
}
