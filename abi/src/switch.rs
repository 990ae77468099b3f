//! The flow switch and the tunnel endpoint: what its tables hold, and what the driver and the card say to each other about them. The golden model (`ferric_model::switch`) reads these
//! records. The gateware's match stage has keys, actions, counters, commands and verdicts: the engine `flows`, for received frames; what functions send is verified by it. Causes of a drop: [`crate::codes::SwitchCause`].

pub mod bind;
pub mod hash;
pub mod station;
pub mod table;
pub mod ternary;

/// Expands `$callback!` with the declarations of the switch's records; see [`crate::define_codecs`].
#[macro_export]
macro_rules! switch_records {
    ($callback:ident) => {
        $callback! { Little;
            #[doc = "What a frame is looked up by, the same for every class of frame. Fields that a frame does not have are zero. Made by `switch/key`."]
            FlowKey [61] { in_port: u8[8] "Virtual port it came from."; domain: u16[12] "Bridge domain."; remote: u16[12] "Remote tunnel endpoint; 0 if it came through no tunnel.";
                dmac: u64[48] "Destination MAC address; the first byte on the wire is the highest."; smac: u64[48] "Source MAC address."; ethertype: u16[16] "Type behind all tags.";
                tag_vid: u16[12] "VLAN of the first tag."; tag_present: bool[1] "There is a tag."; tag_pcp: u8[3] "Priority of the first tag."; second_tag: bool[1] "There is a second tag.";
                proto: u8[8] "IP protocol behind the extension headers; of ARP the operation."; dscp: u8[6] "IP DSCP."; ecn: u8[2] "IP ECN."; fragment: u8[2] "0: whole datagram; 1: first fragment; 2: later fragment.";
                ttl_class: u8[2] "Time to live or hop limit: 0 (no IP has it, too), 1, or 2 for more."; tcp_flags: u8[8] "Lower eight TCP flags.";
                src: u128[128] "Source address; an IPv4 address stands in the lower 32 bits; of ARP the sender."; dst: u128[128] "Destination address; of ARP the target.";
                src_port: u16[16] "Source port; of ICMP the type."; dst_port: u16[16] "Destination port; of ICMP the code."; geneve_option: bool[1] "The configured Geneve option was there.";
                service_tag: bool[1] "The first tag is of type 0x88A8."; rsvd0: u16[9] "Zero."; }
            #[doc = "Line of the encapsulation table: an outer header as it goes out, and what is filled in for each frame. No gateware reads it yet."]
            Encap [112] { header0: u128[128] "Bytes 0 to 15 of the header; byte 0 in the lowest bits."; header1: u128[128] "Bytes 16 to 31."; header2: u128[128] "Bytes 32 to 47.";
                header3: u128[128] "Bytes 48 to 63."; header4: u128[128] "Bytes 64 to 79."; header5: u128[128] "Bytes 80 to 95."; length: u8[7] "Bytes of the header, at most 96.";
                l3_offset: u8[5] "Byte where the IP header begins: 14, or 18 behind a tag."; ipv6: bool[1] "IPv6, else IPv4.";
                checksum: u16[16] "IPv4: ones' complement sum of the header with length, ECN and checksum zero."; copy_dscp: bool[1] "DSCP is the inner one."; copy_ttl: bool[1] "TTL is the inner one.";
                source_port: u8[2] "UDP source port: see `source_port` of this module."; uplink: u8[2] "Uplink that it leaves by."; valid: bool[1] "The line counts."; generation: u8[2] "Generation of the line."; rsvd0: u128[90] "Zero."; }
            #[doc = "Line of the action table: what becomes of a frame. Read by `switch/act`; `switch/flows` carries out what of it concerns received frames."]
            Action [16] { kind: u8[3] "Kind of destination: see `destination` of this module."; number: u16[12] "Port, uplink or group."; encap: u16[12] "Line of the encapsulation table; 0: none.";
                rewrite: u16[10] "Line of the rewrite table (two MAC addresses); 0: none."; tag_op: u8[2] "See `tag_op` of this module."; tag: u16[16] "Tag control information to push or set.";
                dec_ttl: bool[1] "Time to live less one; at 0 or 1 the frame goes to software."; write_dscp: bool[1] "The DSCP becomes `dscp`."; dscp: u8[6] "That DSCP."; class: u8[3] "Priority class.";
                meter: u16[10] "Meter; 0: none."; mirror: u8[4] "Mirror session; 0: none."; sample: u8[4] "One in 2^n frames goes to software, too; 0: none."; count: bool[1] "Frames and bytes are counted.";
                trap_tcp: bool[1] "TCP with SYN, FIN or RST goes to software."; no_roce: bool[1] "RoCE is refused."; keep_inner_tag: bool[1] "The inner tag of a stripped frame stays."; rsvd0: u64[40] "Zero."; }
            #[doc = "Command of the flow ring, made by `ferric_abi::switch::table`. SET_FLOW brings its parts; there is no ring yet."]
            FlowCommand [128] { opcode: u8[5] "What is to be done."; table: u8[6] "Table."; way: u8[3] "Way of the table."; generation: u8[2] "Generation of the line."; line: u32[24] "Line.";
                action: u16[16] "Line of the action table that the entry leads to."; signal: bool[1] "A `FlowDone` is wanted."; seq: u32[32] "The driver's number."; rsvd0: u64[39] "Zero.";
                record0: u128[128] "Key or record, bytes 0 to 15."; record1: u128[128] "Bytes 16 to 31."; record2: u128[128] "Bytes 32 to 47."; record3: u128[128] "Bytes 48 to 63.";
                record4: u128[128] "Bytes 64 to 79."; record5: u128[128] "Bytes 80 to 95."; record6: u128[128] "Bytes 96 to 111."; }
            #[doc = "Completion of flow commands. No gateware writes it yet."]
            FlowDone [16] { seq: u32[32] "Number of the last command that is done."; count: u32[32] "Records that a dump wrote."; status: u8[8] "0: done."; rsvd0: u64[55] "Zero."; phase: bool[1] "Turns with each round of the ring."; }
            #[doc = "What is counted of a flow: SET_FLOW reads it, as `ferric_abi::switch::table::count` says. There are no dumps by DMA yet. Frames and bytes begin anew behind their last number."]
            FlowRecord [16] { line: u16[16] "Line of the action."; packets: u64[40] "Frames."; bytes: u64[48] "Bytes without FCS."; last_use: u32[24] "Tick of the last use (`FLOW_TICK`), which a frame's end is."; }
            #[doc = "What the match pipeline decided about a frame; it travels beside the frame's descriptor. Made by `switch/act`, carried out by `switch/flows`."]
            Verdict [13] { kind: u8[3] "Kind of destination: see `destination` of this module."; number: u16[12] "Port, uplink or group."; encap: u16[12] "Line of the encapsulation table; 0: none.";
                rewrite: u16[10] "Line of the rewrite table; 0: none."; cause: u8[6] "Why it is dropped or goes to software: see `SwitchCause`."; tag_op: u8[2] "See `tag_op` of this module."; tag: u16[16] "Tag control information to push or set.";
                flow: u16[15] "Line of the action table, which counters go by; 0 if none was asked for."; class: u8[3] "Priority class."; mirror: u8[4] "Mirror session; 0: none."; generation: bool[1] "Generation of the lookup, lowest bit.";
                dec_ttl: bool[1] "Time to live less one."; write_dscp: bool[1] "The DSCP becomes `dscp`."; dscp: u8[6] "That DSCP."; sample: u8[4] "One in 2^n frames goes to software, too; 0: none.";
                count: bool[1] "Frames and bytes are counted, under `flow`."; rsvd0: u8[7] "Zero."; }
            #[doc = "Why software gets a frame that the flow tables send it: `src_qp` of its completion at the raw queue pair, which is zero with all other frames. Made by `switch/flows`."]
            Exception [3] { port: u8[8] "Virtual port it came from, never 0: `FlowKey::in_port`."; cause: u8[6] "See `SwitchCause`; 0 if an action or the miss action sends it."; unable: bool[1] "The action orders what the card cannot do.";
                remote: u16[9] "Remote tunnel endpoint; 0 if it came through no tunnel."; }
        }
    };
}

/// Kinds of destination in [`Action`] and [`Verdict`].
pub mod destination {
    /// Nowhere.
    pub const DROP: u8 = 0;
    /// A local port: that of a function.
    pub const PORT: u8 = 1;
    /// An uplink.
    pub const UPLINK: u8 = 2;
    /// Every member of a group.
    pub const GROUP: u8 = 3;
    /// Software, by the exception port.
    pub const EXCEPTION: u8 = 4;
}

/// Operations on the first VLAN tag in [`Action`] and [`Verdict`].
pub mod tag_op {
    /// The tag stays.
    pub const NONE: u8 = 0;
    /// A tag is put in front.
    pub const PUSH: u8 = 1;
    /// The first tag goes.
    pub const POP: u8 = 2;
    /// The first tag gets this tag control information.
    pub const SET: u8 = 3;
}

/// Where [`Encap`] takes the outer UDP source port from.
pub mod source_port {
    /// 0xC000 and 14 bits of the inner flow hash.
    pub const ENTROPY: u8 = 0;
    /// The one that stands in the header.
    pub const FIXED: u8 = 1;
}

switch_records!(define_codecs);
use crate::define_codecs;
