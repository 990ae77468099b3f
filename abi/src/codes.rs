//! Code points: opcodes, states, statuses and causes.

macro_rules! codes {
    ($( #[doc = $doc:literal] $name:ident { $( $v:ident = $n:literal $d:literal; )* } )*) => { $(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $( #[doc = $d] $v = $n ),* }
        impl $name {
            /// Every code with its number and meaning, for the reference page.
            pub const ALL: &'static [($name, &'static str, u8, &'static str)] = &[ $( ($name::$v, stringify!($v), $n, $d) ),* ];
            /// The code with number `n`.
            pub fn from_u8(n: u8) -> Option<Self> { match n { $( $n => Some(Self::$v), )* _ => None } }
        }
    )* };
}
pub(crate) use codes;

codes! {
    #[doc = "Operation of a send work request."]
    WrOpcode {
        Send = 0 "SEND."; SendImm = 1 "SEND with immediate."; Write = 2 "RDMA WRITE."; WriteImm = 3 "RDMA WRITE with immediate.";
        Read = 4 "RDMA READ: the entries name where the bytes go."; CompareSwap = 5 "Atomic compare and swap: operands in front of the entries, 8 bytes back."; FetchAdd = 6 "Atomic fetch and add: likewise.";
        Flush = 7 "FLUSH (IBTA annex A19): what earlier requests have written is made visible at the peer. `length` is 0 and there are no entries; `imm` is the FETH, and the first 4 of the 16 bytes behind the head are the bytes from `raddr` on that are meant.";
        SendInv = 8 "SEND with invalidate: the peer's key in `imm` stops working before the message is completed there.";
        LocalInv = 9 "The own key in `imm` stops working. Local: nothing is sent; begins when all requests before it are complete.";
        RegMr = 10 "The region of `rkey`, allocated and free, gets that key, start address `raddr`, rights and page size (`imm`: bits 1 to 4 as in `MrCtx`; 5 and 6: `page_size`), and, in the 16 bytes behind the head, page table and length. Local.";
        BindMw = 11 "The window of `rkey`, free or of type 1, gets that key and, of the region whose key is in the first 4 of the 16 bytes behind the head, `raddr` and so many bytes as the last 8 say, with rights as of a registration. No bytes: bound to nothing (type 1). Local.";
        AtomicWrite = 12 "ATOMIC WRITE (IBTA annex A19): the first 8 of the 16 bytes behind the head go to `raddr`, which is aligned to 8, at once. `length` is 0 and there are no entries.";
        Nop = 15 "Nothing is sent; completes in order.";
    }
    #[doc = "What a CQE reports."]
    CqeOpcode { Send = 0 "SEND."; SendImm = 1 "SEND with immediate."; Write = 2 "WRITE."; WriteImm = 3 "WRITE with immediate."; Read = 4 "READ."; CompareSwap = 5 "Compare and swap."; FetchAdd = 6 "Fetch and add."; Flush = 7 "FLUSH."; SendInv = 8 "SEND with invalidate."; LocalInv = 9 "Local invalidation."; RegMr = 10 "Fast registration."; BindMw = 11 "Memory window bound."; AtomicWrite = 12 "ATOMIC WRITE."; Nop = 15 "NOP.";
        Recv = 16 "Received SEND."; RecvImm = 17 "Received SEND with immediate."; RecvWriteImm = 18 "Received WRITE with immediate."; }
    #[doc = "Completion status; names follow verbs' `ibv_wc_status`."]
    CqeStatus { Success = 0 "Done."; LocalLength = 1 "Message does not fit: SGE sum differs from length, or length above 2^31 - 1."; LocalQpOperation = 2 "Malformed work request.";
        LocalProtection = 4 "Local key, bounds or permission."; WrFlush = 5 "Queue pair went into error before this request was executed."; MwBind = 6 "A local operation was refused (IBTA: memory management operation error)."; BadResponse = 7 "The peer's answer to a READ or an atomic does not fit the request.";
        LocalAccess = 8 "The WRITE with immediate that took this receive may not go where it wanted to (unreliable connection)."; RemoteInvalidRequest = 9 "Peer answered NAK invalid request. Of a receive: the peer named a key that it may not invalidate."; RemoteAccess = 10 "Peer answered NAK remote access error."; RemoteOperation = 11 "Peer answered NAK remote operational error.";
        RetryExceeded = 12 "No answer after all retries."; RnrRetryExceeded = 13 "Peer kept answering RNR NAK."; Fatal = 19 "DMA of the work request or payload failed."; }
    #[doc = "Queue pair state; numbers follow `ibv_qp_state`."]
    QpState { Reset = 0 "Nothing works."; Init = 1 "Receives may be posted."; Rtr = 2 "Ready to receive."; Rts = 3 "Ready to send."; Sqd = 4 "As Rts, but no further send request begins (IBTA: SQ drain)."; SqError = 5 "A send request of an unreliable queue pair has failed: send requests are flushed, receives go on (IBTA: SQ error)."; Error = 6 "All requests are flushed."; }
    #[doc = "Transport of a queue pair."]
    QpType { Rc = 0 "Reliable connection."; Uc = 1 "Unreliable connection."; Ud = 2 "Unreliable datagram."; Raw = 3 "Raw Ethernet frames."; }
    #[doc = "Event type."]
    EventKind { Completion = 1 "An armed CQ got a completion."; CqError = 2 "CQ overflow or access error."; QpError = 3 "QP entered the error state by itself."; QpAccessError = 4 "Peer violated protection.";
        SrqLimit = 5 "SRQ: fewer receives left than its limit; the limit is disarmed."; LastWqe = 6 "A QP on an SRQ is in error and has completed its last receive."; SrqError = 7 "SRQ: a receive could not be fetched; QPs that want one go to error."; SqDrained = 8 "A QP in SQD has completed all send requests it had begun."; }
    #[doc = "Admin opcode. Parameter words are described in docs/admin.md."]
    AdminOpcode { Nop = 0 "No operation."; CreatePd = 1 "Make protection domain `id`."; DestroyPd = 2 "Remove it; fails while in use.";
        CreateEq = 3 "Make event queue `id`."; DestroyEq = 4 "Remove event queue `id`."; CreateCq = 5 "Make completion queue `id`."; DestroyCq = 6 "Remove completion queue `id`.";
        CreateMr = 7 "Register memory region `id`."; DestroyMr = 8 "Invalidate memory region `id` and wait for its DMA."; CreateQp = 9 "Make queue pair `id` (state RESET).";
        ModifyQp = 10 "Change state and attributes."; QueryQp = 11 "Read both context halves."; DestroyQp = 12 "Remove queue pair `id` and wait for its DMA.";
        QueryCounters = 13 "Write counters to host memory: this function's, of function 0 those of all functions together or of any one."; SetPort = 14 "Port-wide attributes: raw queue pair, and whether it gets frames to any MAC address."; QueryObject = 15 "Read words of any table line of this function.";
        SetRange = 16 "Numbers that function `id` may give its objects of a kind; physical function only."; QueryRanges = 17 "The numbers a function may use, of every kind.";
        CreateSrq = 20 "Make shared receive queue `id`."; ModifySrq = 21 "Arm or disarm its limit."; QuerySrq = 22 "Read its ring context."; DestroySrq = 23 "Remove it; fails while queue pairs use it.";
        AttachMulticast = 24 "Datagram queue pair `id` joins a multicast group."; DetachMulticast = 25 "It leaves the group.";
        SetAddress = 26 "Address `id` of the function, for which the card answers."; Resolve = 27 "Find a neighbour's MAC address, asking from address `id`.";
        SetStation = 28 "MAC address `id` of the function, whose frames it receives.";
        SetPause = 29 "What the card does with pause frames; physical function only.";
        SetTunnel = 30 "The tunnel that all the card's frames go through; physical function only.";
        SetFlow = 31 "Write or clear a line of the flow tables; physical function only."; SetFlowPort = 32 "Whether the flow tables decide about received frames, and which generation of them; physical function only.";
        SetUetPeer = 33 "Peer `id` of Ultra Ethernet; physical function only."; SetUetEnds = 34 "The ring for ends of WRITEs by Ultra Ethernet; physical function only.";
        SetVq = 35 "Virtio queue `id` begins, or ends; physical function only."; QueryVq = 36 "The lines of virtio queue `id`; physical function only.";
        SetVqSteer = 37 "Words of the tables by which frames for virtio functions are steered; physical function only."; SetVqFunction = 38 "Whether function `id` gets frames by its virtio queues; physical function only."; }
    #[doc = "Kind of object with numbers of its own."]
    ObjectKind { Qp = 0 "Queue pair."; Cq = 1 "Completion queue."; Mr = 2 "Memory region or window."; Pd = 3 "Protection domain."; Eq = 4 "Event queue."; Srq = 5 "Shared receive queue."; }
    #[doc = "Admin completion status."]
    AdminStatus { Ok = 0 "Done."; BadOpcode = 1 "Unknown opcode."; BadId = 2 "Object number out of range or not this function's."; BadState = 3 "Object exists, does not exist, or transition not allowed.";
        BadParameter = 4 "A parameter is out of range."; InUse = 5 "Other objects depend on it."; DmaError = 6 "The command could not be read."; NoRoom = 7 "A table of the card, or the function's share of it, is full."; Denied = 8 "For the physical function only."; }
    #[doc = "Why a received frame or packet was dropped."]
    DropCause { None = 0 "Not dropped."; Malformed = 1 "Truncated or inconsistent header."; BadIcrc = 2 "ICRC wrong."; NoBuffer = 3 "Cell buffer full."; NoQp = 4 "Queue pair absent or not ready.";
        BadTransport = 5 "Opcode does not belong to the QP's transport."; BadPkey = 6 "Partition key mismatch."; Duplicate = 7 "Duplicate request, acknowledged again."; OutOfOrder = 8 "PSN ahead of the expected one.";
        NoReceive = 9 "No receive request posted."; StaleEpoch = 10 "Belongs to an earlier life of the queue."; BadAck = 11 "Acknowledge outside the window."; NoRawQueue = 12 "No raw queue configured."; }
    #[doc = "Operation of a set-up request to the memory target."]
    TargetOp { Query = 0 "Counters, the receive ring, the state of queue pair `object`.";
        CreateQp = 1 "Queue pair for the sender: `peer_qpn`, `first_psn`, `pd`, `pkey`, `pmtu`, `rights`, `rnr_timer`. One that the sender has for that `peer_qpn` is made anew.";
        DestroyQp = 2 "The sender's queue pair `object` ends; what it was doing is done."; CreateKey = 3 "Key over `length` bytes from `start` on, for queue pairs of `pd`, with `rights`.";
        DestroyKey = 4 "The sender's key `object` ends."; SetRing = 5 "Receive ring: `start`, `log_slot`, `log_count`. Only while there is no queue pair.";
        Release = 6 "Slots of the receive ring are given back: `consumer`."; }
    #[doc = "Outcome of a set-up request."]
    TargetStatus { Done = 0 "Done, or had been done before."; Malformed = 1 "Length, magic or version is wrong."; UnknownOp = 2 "No such operation."; Full = 3 "All queue pairs or keys are taken.";
        NotFound = 4 "The sender has no such object."; Refused = 5 "A parameter is out of range, or the moment is wrong."; }
    #[doc = "Why the flow switch drops a frame or hands it to software; one counter each per port. Gateware counts those of the tunnel's end (`TunnelCounts`) and of the flow tables (`FlowCounts`), for the card, and what functions may not send (`SenderCounts`), for each."]
    SwitchCause { None = 0 "Not dropped."; OuterMalformed = 1 "The outer header is truncated or inconsistent, or its IPv4 checksum is wrong.";
        OuterFragment = 2 "The outer datagram is a fragment."; OuterCsum = 3 "The outer UDP checksum is wrong."; VxlanFlags = 4 "VXLAN header without the I flag, or with other bits set.";
        GeneveVersion = 5 "Geneve version other than 0."; GeneveCritical = 6 "Geneve with a critical option that is not the configured one.";
        VniUnknown = 7 "No bridge domain has this VNI."; RemoteUnknown = 8 "The outer source address is no known tunnel endpoint.";
        Ecn = 9 "Congestion was experienced outside, and the inner packet does not speak ECN (RFC 6040)."; InnerShort = 10 "The inner frame has less than an Ethernet header.";
        InnerTag = 11 "The bridge domain takes no inner frame with a tag."; Deep = 12 "The parser does not understand the frame; it goes to software.";
        Acl = 13 "The flow's action is to drop."; Miss = 14 "No entry, and the port's miss action is to drop."; Meter = 15 "A meter is out of tokens.";
        Mtu = 16 "Longer than the port it should leave by allows."; Ttl = 17 "The time to live is used up; it goes to software."; PortDown = 18 "The port it should leave by is down.";
        SamePort = 19 "It would leave by the port that it came from."; GroupEmpty = 20 "The group has no members.";
        NoRuleRoom = 21 "The table has no room for a rule that the frame asks for."; SpoofMac = 22 "The source MAC address is not the port's.";
        SpoofIp = 23 "The source IP address is not the port's."; SpoofArp = 24 "The sender of ARP or neighbour discovery is not the port's.";
        TagDenied = 25 "The port may not send tagged frames."; RoceDenied = 26 "The port may not send RoCE, or the flow refuses it.";
        UnderlayDenied = 27 "A frame to a tunnel endpoint, or a tunnel packet of a port that may send none."; InjectBad = 28 "An injected frame names a port that there is not.";
        LoopNoCells = 29 "From port to port: no buffer."; LoopLate = 30 "From port to port: the wire left no gap."; CopyNoOwner = 31 "More copies than owners.";
        ExceptionRate = 32 "More frames to software than the port may cause."; ExceptionNoQueue = 33 "Software has no queue for it.";
        WrongFunction = 34 "A RoCE packet to another function's queue pair."; }
    #[doc = "Why a virtio function rejects what a guest gives it; one counter each for every function. The names of the counters are those of the causes behind `vio_`."]
    VirtioCause { None = 0 "Not rejected."; AvailJump = 1 "The available index is further ahead than the ring is long; the device needs a reset."; BadHead = 2 "A head is beyond the ring; the entry is skipped.";
        BadNext = 3 "A next descriptor is beyond its table; the chain is returned."; LongChain = 4 "A loop, or a chain with too many descriptors or bytes; it is returned, or, if a packed ring does not say where it ends, the device needs a reset.";
        BadIndirect = 5 "An indirect table where none may be, of a bad size, or one that cannot be read; the chain is returned."; BadDirection = 6 "A buffer of the wrong direction, or one to read behind one to write; the chain is returned.";
        Short = 7 "A chain without bytes, or shorter than a header and a frame; it is returned."; Oversize = 8 "Longer than the longest frame to be segmented; the chain is returned."; BadOffload = 9 "What the header asks for fits neither the frame nor the features; the frame is not sent.";
        RxSmall = 10 "A received frame is larger than its buffers or than the MTU; it is dropped and the buffer kept."; RxNoBuffer = 11 "There is no buffer for a received frame."; RxDown = 12 "The receive queue does not run."; BadEnable = 13 "A ring's addresses or size cannot be; it is not enabled.";
        BadFeatures = 14 "Features that were not offered, or some without others that they need; FEATURES_OK stays clear."; BadState = 15 "A register was written out of order, or in a width that it does not have; the write is ignored.";
        BadNotify = 16 "A notification for a queue that does not run, or of the wrong width; it is ignored."; RingDma = 17 "The ring cannot be read or written; the device needs a reset."; TxDma = 18 "The frame cannot be read; it is not sent.";
        RxDma = 19 "The buffers cannot be written; the frame is dropped, and after 16 in a row the device needs a reset."; BadCommand = 20 "A control command is short, unknown or refused."; }
}
