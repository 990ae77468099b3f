//! Context lines: the card's tables, one record per object, written over the control bus as 32-bit words.
//! Fields do not straddle words where the admin program writes them.

/// Expands `$callback!` with the declarations of every context record; see [`crate::define_codecs`].
#[macro_export]
macro_rules! context_records {
    ($callback:ident) => { $callback! { Little;
        #[doc = "Requester half of a queue pair. Words 0-3 are attributes, the rest is state of the requester."]
        ReqCtx [52] {
            state: u8[3] "QP state, see `QpState`.";
            qp_type: u8[3] "Transport, see `QpType`.";
            pmtu: u8[3] "Path MTU: 1 = 256 .. 5 = 4096 (IBTA encoding).";
            timeout: u8[5] "Local ACK timeout exponent (4.096 us * 2^timeout, 0 = never).";
            retry_cnt: u8[3] "Transport retries allowed.";
            rnr_retry: u8[3] "RNR retries allowed, 7 = for ever.";
            sig_all: bool[1] "Every work request is signalled.";
            ipv6: bool[1] "Path is IPv6.";
            vlan: bool[1] "Path carries an 802.1Q tag.";
            drained: bool[1] "SQD: it has been told that all that had begun is complete.";
            epoch: u8[8] "Bumped on every rewind or reset; work requests of an older epoch are stale.";
            scqn: u32[24] "Send completion queue.";
            max_rd_atomic: u8[5] "READs and atomics that may be outstanding, at most 16.";
            rsvd1: u8[3] "Zero.";
            pd: u32[24] "Protection domain.";
            eqn: u8[8] "Event queue of the queue pair's own events: that of the send completion queue.";
            function: u16[12] "Owning PCI function.";
            rsvd3: u8[4] "Zero.";
            pkey: u16[16] "Partition key.";
            dest_qpn: u32[24] "Remote queue pair.";
            rsvd4: u8[8] "Zero.";
            next_psn: u32[24] "Next PSN to send.";
            retries_left: u8[3] "Transport retries left.";
            rnr_left: u8[3] "RNR retries left.";
            rnr_wait: bool[1] "Waiting for the RNR timer.";
            parked: bool[1] "Send queue parked: window or tracker full; resume when acknowledged.";
            una_psn: u32[24] "Oldest unacknowledged PSN.";
            timer_on: bool[1] "Retransmission timer is running.";
            in_msg: bool[1] "The current work request has been sent in part.";
            error_pending: bool[1] "A local error waits for older work requests to complete.";
            read_gap: bool[1] "A READ is asked for again from a hole; further answers behind the hole say nothing new.";
            fenced: bool[1] "Parked until no READ or atomic is outstanding.";
            local: u8[2] "Local operation whose turn it is: 0 none, 1 under way in the key unit, 2 executed.";
            drain: bool[1] "Parked until all requests before are complete.";
            max_psn: u32[24] "One past the highest PSN ever sent.";
            error_status: u8[8] "CQE status of the pending local error.";
            una_index: u16[16] "Oldest work request that is not wholly acknowledged.";
            next_index: u16[16] "Work request that is sent next.";
            una_wqe_psn: u32[24] "First PSN of work request `una_index`.";
            rd_open: u8[5] "READs and atomics sent and not wholly answered: what `max_rd_atomic` bounds.";
            rsvd6: u8[3] "Zero.";
            msg_offset: u32[32] "Bytes of work request `next_index` already sent.";
            sent_index: u16[16] "One past the newest work request with a tracker entry.";
            error_index: u16[16] "Work request of the pending local error.";
            done_index: u16[16] "Oldest work request without completion: behind `una_index` while READ data is on its way to host memory.";
            error_syndrome: u8[8] "AETH syndrome of the failure that `dying` is about.";
            dying: bool[1] "In error; nothing of it is completed before the answers that were accepted are in host memory.";
            blamed: bool[1] "The failure that `dying` is about is that of the oldest work request.";
            rd_out: u8[6] "READs and atomics sent and not completed, at most 63: answers may be on their way to host memory.";
        }
        #[doc = "Responder half of a queue pair. Words 0-3 are attributes, the rest is state of the responder."]
        RspCtx [64] {
            state: u8[3] "QP state, see `QpState`.";
            qp_type: u8[3] "Transport, see `QpType`.";
            pmtu: u8[3] "Path MTU, IBTA encoding.";
            min_rnr_timer: u8[5] "RNR NAK timer code sent to the peer (IBTA table 46).";
            remote_write: bool[1] "Peer may WRITE.";
            remote_read: bool[1] "Peer may READ.";
            remote_atomic: bool[1] "Peer may use atomics.";
            ipv6: bool[1] "Path is IPv6.";
            vlan: bool[1] "Path carries an 802.1Q tag.";
            nak_sent: bool[1] "A sequence NAK is out for the present gap.";
            in_msg: u8[2] "Message in progress: 0 none, 1 SEND, 2 WRITE.";
            rnr_sent: bool[1] "An RNR NAK is out for the expected PSN.";
            remote_flush: bool[1] "Peer may FLUSH.";
            epoch: u8[8] "Bumped on reset.";
            rcqn: u32[24] "Receive completion queue.";
            max_dest_rd_atomic: u8[5] "READs and atomics of the peer that may be open, at most 16; one more is an invalid request.";
            repeat_nak: bool[1] "The peer is told of a gap again when a packet 64, 128 or 192 behind the expected one comes.";
            rsvd1: u8[2] "Zero.";
            pd: u32[24] "Protection domain.";
            rsvd2: u8[8] "Zero.";
            function: u16[12] "Owning PCI function.";
            rsvd3: u8[4] "Zero.";
            pkey: u16[16] "Partition key.";
            dest_qpn: u32[24] "Remote queue pair (destination of ACKs).";
            ahead: u8[8] "How far ahead of the expected PSN the last packet behind the gap was, at most 255; 0 behind an RNR NAK.";
            epsn: u32[24] "Expected PSN.";
            rd_in: u8[5] "READs and atomics accepted in this life, modulo 32.";
            rsvd5: u8[3] "Zero.";
            msn: u32[24] "Message sequence number: messages completed.";
            rsvd6: u8[8] "Zero.";
            va: u64[64] "WRITE in progress: where the next byte goes.";
            rkey: u32[32] "WRITE in progress: its key.";
            remaining: u32[32] "WRITE in progress: bytes still to come.";
            msg_bytes: u32[32] "Bytes received of the message in progress.";
            rq_handle: u8[8] "SEND in progress: receive work request buffer.";
            rq_index: u16[16] "SEND in progress: index of its receive work request.";
            rsvd7: u8[8] "Zero.";
            qkey: u32[32] "UD: Q_Key that a packet must carry (IBTA 10.2.4).";
            rq: u32[24] "Receive ring: the queue pair's own number, or log2 QPs' 2^n + number of the shared receive queue.";
            srq: bool[1] "Receives come from a shared receive queue.";
            rsvd9: u8[7] "Zero.";
            rq_pd: u32[24] "Protection domain of receive work requests: the shared receive queue's, or the queue pair's own.";
            rsvd10: u8[8] "Zero.";
        }
        #[doc = "Path (address vector) of a queue pair: what the header builder needs. IPv4 addresses stand in the low 32 bits. Of a UD queue pair it is the source: destination, class and hop limit come with each work request."]
        PathCtx [64] {
            dmac: u64[48] "Destination MAC, first byte on the wire in the most significant byte.";
            vlan_tci: u16[16] "802.1Q tag control information.";
            smac: u64[48] "Source MAC.";
            udp_sport: u16[16] "UDP source port (entropy).";
            dip: u128[128] "Destination IP address, numeric value.";
            sip: u128[128] "Source IP address, numeric value.";
            flow_label: u32[20] "IPv6 flow label.";
            rsvd0: u8[4] "Zero.";
            tclass: u8[8] "IPv4 ToS or IPv6 traffic class.";
            hop_limit: u8[8] "IPv4 TTL or IPv6 hop limit.";
            ipv6: bool[1] "IPv6, else IPv4.";
            vlan: bool[1] "Insert the 802.1Q tag.";
            valid: bool[1] "The path may be used.";
            rsvd1: u8[5] "Zero.";
            pkey: u16[16] "Partition key put in the BTH.";
            qkey: u32[32] "UD: the queue pair's own Q_Key, sent for a work request whose Q_Key has its highest bit set (IBTA 10.2.4).";
            function: u16[12] "Whose queue pair it is: packets of another function's tunnel are refused.";
            rsvd4: u32[20] "Zero.";
        }
        #[doc = "Ring context of a send, receive or shared receive queue. Words 0-3 are attributes, words 5 and 6 those of a shared receive queue."]
        RingCtx [32] {
            base: u64[64] "IOVA of slot 0, aligned to the slot size.";
            function: u16[12] "Owning PCI function.";
            rsvd0: u8[4] "Zero.";
            log_size: u8[4] "log2 of the number of slots, at most 15.";
            stride: u8[2] "Slot size is 64 << stride bytes.";
            valid: bool[1] "Doorbells are accepted.";
            flush: bool[1] "Queue pair is in error: slots are completed with a flush error.";
            parked: bool[1] "Not scheduled until resumed.";
            active: bool[1] "In the scheduler's list.";
            shared: bool[1] "Shared receive queue.";
            error: bool[1] "Shared receive queue: a work request could not be fetched; nothing is handed out any more.";
            rsvd1: u8[4] "Zero.";
            epoch: u8[8] "Stamped on every work request fetched.";
            rsvd2: u32[24] "Zero.";
            producer: u16[16] "Producer index (from the doorbell).";
            fetch: u16[16] "Next slot to fetch or hand out.";
            limit: u16[16] "Shared receive queue: fewer requests left than this raise an event, once; 0 is not armed.";
            rsvd3: u16[16] "Zero.";
            pd: u32[24] "Shared receive queue: protection domain.";
            eqn: u8[8] "Shared receive queue: event queue.";
            ahead: u8[8] "Receive ring: slots from `fetch` on that are fetched ahead. Word 7 is the card's own.";
            first: u8[7] "Block of rows with slot `fetch`.";
            last: u8[7] "Block of rows with the last slot that is fetched ahead.";
            left: u8[4] "Slots that are left of block `first`.";
            blocks: u8[4] "Blocks of the ring.";
            stale: bool[1] "The blocks are of an earlier life and are to be given back.";
            used: bool[1] "A slot of theirs has been handed out since this was last looked at.";
        }
        #[doc = "Completion queue context."]
        CqCtx [32] {
            base: u64[64] "IOVA of entry 0.";
            function: u16[12] "Owning PCI function.";
            rsvd0: u8[4] "Zero.";
            log_size: u8[4] "log2 of the number of entries, at most 15.";
            valid: bool[1] "In use.";
            armed: bool[1] "Next completion raises an event.";
            armed_solicited: bool[1] "Next solicited or error completion raises an event.";
            overflow: bool[1] "Entries were lost; the queue is dead.";
            rsvd1: u8[8] "Zero.";
            eqn: u8[8] "Event queue.";
            rsvd2: u32[24] "Zero.";
            producer: u16[16] "Next entry to write.";
            consumer: u16[16] "Consumer index (from the doorbell).";
            rsvd3: u32[32] "Zero."; rsvd4: u32[32] "Zero."; rsvd5: u32[32] "Zero.";
        }
        #[doc = "Event queue context."]
        EqCtx [32] {
            base: u64[64] "IOVA of entry 0.";
            function: u16[12] "Owning PCI function.";
            rsvd0: u8[4] "Zero.";
            log_size: u8[4] "log2 of the number of entries, at most 15.";
            valid: bool[1] "In use.";
            overflow: bool[1] "Entries were lost.";
            rsvd1: u16[10] "Zero.";
            vector: u16[16] "MSI-X vector.";
            rsvd2: u16[16] "Zero.";
            producer: u16[16] "Next entry to write.";
            consumer: u16[16] "Consumer index (from the doorbell).";
            rsvd3: u32[32] "Zero."; rsvd4: u32[32] "Zero."; rsvd5: u32[32] "Zero.";
        }
        #[doc = "Attachment of a datagram queue pair to a multicast group."]
        McastCtx [32] {
            group: u128[128] "Destination IP address, first byte on the wire in the most significant byte; an IPv4 address stands in the high 32 bits, zeros below.";
            qpn: u32[24] "Queue pair that gets a copy.";
            ipv6: bool[1] "An IPv6 group.";
            valid: bool[1] "In use.";
            function: u8[6] "Whose queue pair it is: datagrams of another function's tunnel are not for it.";
            rsvd1: u32[32] "Zero."; rsvd2: u32[32] "Zero."; rsvd3: u32[32] "Zero.";
        }
        #[doc = "An address that the card answers for by itself: ARP (RFC 826), neighbour discovery (RFC 4861), echo requests (RFC 792, RFC 4443). Line of `space::ADDRESS`: function * `ADDRESSES` + number. The last word makes it count."]
        AddressCtx [24] {
            ip: u128[128] "IP address, numeric value; IPv4 in the low 32 bits.";
            mac: u64[48] "Its MAC address, first byte on the wire in the most significant byte.";
            vid: u16[12] "802.1Q VLAN identifier of its network, if that is tagged.";
            vlan: bool[1] "Frames of its network carry the tag.";
            ipv6: bool[1] "IPv6, else IPv4.";
            valid: bool[1] "In use.";
            rsvd0: u8[1] "Zero.";
        }
        #[doc = "A MAC address of a function: frames to it are taken. Line of `space::STATION`: function * `STATIONS` + number. The last word makes it count."]
        StationCtx [8] {
            mac: u64[48] "MAC address, first byte on the wire in the most significant byte.";
            valid: bool[1] "In use.";
            rsvd0: u16[15] "Zero.";
        }
        #[doc = "What the card does with pause frames (IEEE 802.3 annex 31B, 802.1Q clause 36). The only line of `space::PAUSE`; the first word is the first that is cleared and the last that is written."]
        PauseCtx [24] {
            send: u8[2] "What is sent when the receive buffer fills: 0 nothing, 1 PAUSE of the whole link, 2 priority-based pause.";
            obey_link: bool[1] "A PAUSE of the whole link stops data frames.";
            obey_priority: bool[1] "A priority-based pause of one of `data` stops data frames.";
            rsvd0: u8[4] "Zero.";
            data: u8[8] "Priorities of the card's data frames: paused is who has one that is.";
            sent: u8[8] "Priorities that a priority-based pause of ours names.";
            rsvd1: u8[8] "Zero.";
            xoff: u16[16] "Free cells of the receive buffer (256 bytes each) at which senders are paused, and below.";
            xon: u16[16] "Free cells at which they may go on, and above.";
            quantum: u16[16] "Clock cycles in which the port carries 512 bits, in 1/256.";
            rsvd2: u16[16] "Zero.";
            obey_limit: u16[16] "Data that has been held this long without a break goes out all the same until the pause ends, in 16 ticks of 1.024 us.";
            send_limit: u16[16] "Senders that have been paused this long without a break go on, and frames are dropped as before until there is room, in 16 ticks.";
            mac: u64[48] "Source of the card's pause frames, first byte on the wire in the most significant byte.";
            rsvd3: u16[16] "Zero.";
        }
        #[doc = "A function's tunnel (VXLAN, RFC 7348): all frames that the function sends go into it, and what comes through it is the function's. Line of `space::TUNNEL`: the function; the first word is the first that is cleared, but for `bound`, and the last that is written."]
        TunnelCtx [56] {
            valid: bool[1] "In use.";
            ipv6: bool[1] "The outer packets are IPv6, else IPv4.";
            vlan: bool[1] "The outer frames that leave carry an 802.1Q tag. Received ones may have one in any case.";
            lenient: bool[1] "Reserved bits of a received VXLAN header are ignored; else such a frame is dropped.";
            zero_csum6: bool[1] "Over IPv6 a received UDP checksum of zero is accepted (RFC 6935).";
            any_remote: bool[1] "Packets from any outer source address are taken, else from `remote` only.";
            bound: bool[1] "The function has a tunnel, also while `valid` is clear because the line is being written: frames that it sends wait, and frames that came through no tunnel are not for it.";
            copy_dscp: bool[1] "The outer DSCP is the inner one, else `dscp`.";
            copy_ttl: bool[1] "The outer time to live is the inner one, else `hop_limit`.";
            raw: bool[1] "The function, if it is not the physical one, may have raw queue pairs. As long as it has one, this stays.";
            dscp: u8[6] "Outer DSCP.";
            hop_limit: u8[8] "Outer IPv4 TTL or IPv6 hop limit.";
            pmtu: u8[3] "Largest path MTU of the function's queue pairs, as in `ReqCtx`, that the underlay has room for; 0: any.";
            rsvd1: u8[5] "Zero.";
            vni: u32[24] "VXLAN network identifier, both ways.";
            leader: u8[6] "With `joined`: the function whose network this is, too. It has the same VNI at the same `local`, and what says which packets are taken is the same.";
            joined: bool[1] "The function is in another's network; written by the card. What comes through the tunnel is judged by the other's line.";
            rsvd2: bool[1] "Zero.";
            dmac: u64[48] "Outer destination MAC: of the remote endpoint or of the next hop, first byte on the wire in the most significant byte.";
            tci: u16[16] "802.1Q tag control information of what leaves.";
            smac: u64[48] "Outer MAC address of this card: source of what leaves, destination of what is taken.";
            rsvd3: u16[16] "Zero.";
            local: u128[128] "Outer IP address of this card, numeric value; IPv4 in the low 32 bits.";
            remote: u128[128] "Outer IP address of the remote endpoint.";
        }
        #[doc = "Which raw queue pair gets the frames that come through a function's tunnel, are not RoCE and are taken by no block of the card. Line of `space::RAW`: the function, but for the physical one, whose queue pair SET_PORT names to the card."]
        RawCtx [4] {
            qpn: u32[24] "The queue pair.";
            rsvd0: u8[7] "Zero.";
            valid: bool[1] "There is one.";
        }
        #[doc = "What became of frames at the card's tunnels (`SwitchCause` where it has a cause). Line `TUNNEL_COUNTS` of `space::TUNNEL`; writing it does nothing."]
        TunnelCounts [136] {
            stripped: u64[64] "Received packets of the tunnel that have gone on without their outer header.";
            miss: u64[64] "Received frames that were no tunnel packets, dropped because every function has a tunnel.";
            outer_fragment: u64[64] "Dropped: the outer packet was a fragment.";
            outer_malformed: u64[64] "Dropped: lengths, or the outer IPv4 checksum, or cut.";
            outer_csum: u64[64] "Dropped: outer UDP checksum.";
            vxlan_flags: u64[64] "Dropped: VXLAN header.";
            vni_unknown: u64[64] "Dropped: no function has this VNI at this address.";
            remote_unknown: u64[64] "Dropped: another outer source address.";
            inner_short: u64[64] "Dropped: no Ethernet header inside.";
            ecn: u64[64] "Dropped: congestion experienced, and the inner packet knows no ECN (RFC 6040).";
            wrapped: u64[64] "Frames that have left in an outer header.";
            wrong_function: u64[64] "Received RoCE packets, dropped: their queue pair is of a function that is not the tunnel's, or has a tunnel though the packet came through none.";
            local: u64[64] "Frames for a function of this card, which have not left it.";
            local_copies: u64[64] "Frames to a group that have left, and a copy of which has gone to the functions of this card.";
            local_no_room: u64[64] "The same without that copy, for which there was no room; and frames dropped for that which the flow tables wanted to come in again.";
            local_late: u64[64] "Dropped: frames for a function of this card for which there was no room for 4,096 cycles.";
            local_wire_lost: u64[64] "Received frames, lost or cut because a frame of a function came in and the queue was full.";
        }
        #[doc = "Whether the flow tables decide about frames off the wire, and how. Line `FLOW_PORT` of `space::FLOW`."]
        FlowPortCtx [4] {
            valid: bool[1] "The tables decide; else every frame passes as if there were none.";
            drop_miss: bool[1] "A frame that no table knows is dropped; else software gets it.";
            class: u8[2] "Port class, for the choice of a mask.";
            generation: u8[2] "Lines of this generation count.";
            bridge: bool[1] "A frame that no entry and no rule knows goes where its bridge domain has its destination MAC address.";
            egress: bool[1] "What functions send by the wire is asked about, too: it leaves only if its action is the wire and nothing else.";
            rsvd0: u32[24] "Zero.";
        }
        #[doc = "What the flow tables made of frames off the wire: each counts once, but for those that pass and that the MAC found bad. Line `FLOW_COUNTS` of `space::FLOW`; writing it does nothing."]
        FlowCounts [88] {
            port: u64[64] "Gone on to the function that the action names.";
            software: u64[64] "Gone on to software, which is function 0: because the action or the miss action says so, because of the time to live, or because the parser does not understand the frame.";
            unable: u64[64] "Gone on to software because the card cannot carry the action out.";
            acl: u64[64] "Dropped: an action says so.";
            miss: u64[64] "Dropped: no table knows the frame, and the miss action says so.";
            no_rule_room: u64[64] "Dropped: an entry or a rule leads to no action.";
            roce_denied: u64[64] "Dropped: RoCE, and the action refuses that.";
            port_down: u64[64] "Dropped: the action names a port that is no function's.";
            exception_no_queue: u64[64] "Dropped: RoCE packets that would be for software, which has no queue for them.";
            cut: u64[64] "Dropped by the receive path behind: the frame ends in front of its IP packet's end, which came to light at the end of a frame for a function.";
            bad: u64[64] "Dropped, and the MAC found the frame bad: counts here instead of under its cause.";
        }
        #[doc = "From which addresses a function may send, and what else it may: the record of a line of the table `SENDER` (`ferric_abi::switch::table`), whose IP addresses stand in the table `BIND`. All zeros: nobody looks at what the function sends."]
        SenderCtx [32] {
            mac0: u64[48] "A source MAC address that it may have, first byte on the wire in the most significant byte.";
            mac1: u64[48] "A second one.";
            mac2: u64[48] "A third one.";
            mac3: u64[48] "A fourth one.";
            have: u8[4] "Which of the four count; none: it may send nothing.";
            on: bool[1] "What it sends is verified; what is against it is dropped.";
            trunk: bool[1] "It may send tagged frames.";
            any_ip: bool[1] "It may have any source IP address.";
            underlay: bool[1] "It may send tunnel packets, and to the addresses where tunnels end.";
            server: bool[1] "It may answer DHCP and advertise itself as a router.";
            roce: bool[1] "It may send RoCE.";
            rsvd0: u32[22] "Zero.";
            rsvd1: u32[32] "Zero.";
        }
        #[doc = "What became of the frames that a function has sent while it was verified: each counts once (`SwitchCause` where it was dropped). Line `FLOW_SENDERS` + function of `space::FLOW`; writing it does nothing."]
        SenderCounts [64] {
            verified: u64[64] "Gone on.";
            deep: u64[64] "Dropped: the parser does not understand the frame.";
            spoof_mac: u64[64] "Dropped: a source MAC address that is not the function's.";
            spoof_ip: u64[64] "Dropped: a source IP address that is not the function's, or from the port of a DHCP server.";
            spoof_arp: u64[64] "Dropped: ARP or neighbour discovery that speaks for others, or in more than the plainest form; a router advertisement.";
            tag_denied: u64[64] "Dropped: a tag, and the function is no trunk.";
            roce_denied: u64[64] "Dropped: RoCE, and the function may send none.";
            underlay_denied: u64[64] "Dropped: for an address where a tunnel ends, or for the tunnels' UDP port.";
        }
        #[doc = "What the flow tables made of the frames of a function that were about to leave by the wire, while the tables were asked about these: each counts once (`SwitchCause` where it was dropped). Line `FLOW_EGRESS` + function of `space::FLOW`; writing it does nothing."]
        EgressCounts [64] {
            left: u64[64] "Gone on to the wire.";
            deep: u64[64] "For software: the parser does not understand the frame. It comes in again, as what functions send each other does, and counts there once more, or in `local_no_room`; so do the next two, but RoCE for software, which is dropped.";
            software: u64[64] "For software, by the action, the miss action or the time to live.";
            elsewhere: u64[64] "Neither for the wire as it is nor dropped: for a function of the card, or for software, because the card cannot carry the action out.";
            acl: u64[64] "Dropped: an action says so.";
            miss: u64[64] "Dropped: no table knows the frame, and the miss action says so.";
            no_rule_room: u64[64] "Dropped: an entry or a rule leads to no action.";
            roce_denied: u64[64] "Dropped: RoCE, and the action refuses that.";
        }
        #[doc = "A function's search for a neighbour's MAC address. Line of `space::ADDRESS`: `NEIGHBOUR_LINE` + function."]
        NeighbourCtx [24] {
            ip: u128[128] "IP address that is sought, of the version of `source`.";
            mac: u64[48] "MAC address that answered.";
            source: u8[4] "Number of the function's own address that asks.";
            rsvd0: u8[4] "Zero.";
            state: u8[2] "0 none, 1 asked, 2 known. Written with 1 the card asks once: an ARP request or a neighbour solicitation.";
            rsvd1: u8[6] "Zero.";
        }
        #[doc = "Memory region: key check and translation root."]
        MrCtx [48] {
            valid: bool[1] "In use.";
            local_write: bool[1] "Card may write for local receives and READ responses.";
            remote_write: bool[1] "Peer may WRITE.";
            remote_read: bool[1] "Peer may READ.";
            remote_atomic: bool[1] "Peer may use atomics.";
            direct: bool[1] "IOVA-contiguous: `table` is the IOVA of the start address; no page table.";
            fast: bool[1] "Work requests may change it: invalidations clear `valid`, a registration sets it.";
            window: bool[1] "Memory window: a peer's rights to a part of a region; of type 2 if `fast`. `valid` while it is bound.";
            variant: u8[8] "Low byte of the key.";
            bind: bool[1] "Windows may be bound to the region.";
            page_size: u8[2] "Bytes that an entry of the page table translates: 0 for 4 KiB, 1 for 2 MiB, 2 for 1 GiB.";
            remote_flush: bool[1] "Peer may FLUSH.";
            function: u16[12] "Owning PCI function.";
            pd: u32[24] "Protection domain.";
            life: u8[8] "Registrations by work request so far: part of the translation cache's tag.";
            start: u64[64] "First virtual address.";
            length: u64[64] "Bytes.";
            table: u64[64] "IOVA of the page table (array of `Pte`; 64-byte aligned, of a window that of its first page), or of the region when `direct`.";
            link: u32[24] "Windows that are bound to the region; of a window that was bound the region.";
            rsvd2: u8[8] "Zero.";
            qpn: u32[24] "Queue pair through which a window of type 2 was bound: nobody else's peer may use it.";
            rsvd3: u8[8] "Zero.";
            rsvd4: u32[32] "Zero."; rsvd5: u32[32] "Zero.";
        }
        #[doc = "Available side of a virtio queue (VIRTIO 1.3, 2.7, 2.8). Line of the engine's own table (`hdl/src/virtio/queue`), by queue; a ring begins when `enabled` is written."]
        VqAvail [36] {
            desc: u64[64] "Bus address of the descriptors.";
            driver: u64[64] "Of the driver's area: the available ring. Of a packed ring without meaning.";
            device: u64[64] "Of the device's area: the used ring, behind it `avail_event`; of a packed ring the device's event structure.";
            fetch: u16[16] "Available index of the next chain to be taken, as the driver counts; of a packed ring the number of its first descriptor.";
            size: u16[16] "Descriptors of the ring.";
            enabled: bool[1] "The ring runs. A notification of a receive queue that is not enabled has what is in stock given up.";
            receive: bool[1] "A receive queue: its chains go in stock. Else a transmit queue.";
            events: bool[1] "EVENT_IDX has been negotiated.";
            indirect: bool[1] "INDIRECT_DESC has been negotiated.";
            packed: bool[1] "RING_PACKED has been negotiated.";
            wrap: bool[1] "Of a packed ring the wrap counter of `fetch`: 1 in the beginning.";
            broken: bool[1] "The ring's position is lost, or it cannot be read: nothing more is taken.";
            merged: bool[1] "MRG_RXBUF has been negotiated: a received frame may take several chains.";
            function: u16[12] "Owning PCI function.";
            given_up: bool[1] "What is in stock is being given up, or has been: once, until this word is written again.";
            sums: bool[1] "Checksums are offloaded: of a transmit queue CSUM has been negotiated, of a receive queue GUEST_CSUM.";
            rsvd0: u16[10] "Zero.";
            taken: u16[16] "Chains taken since the line was written, modulo 65,536, and one when what is in stock is given up; heads that were none do not count.";
            rsvd1: u16[16] "Zero.";
        }
        #[doc = "Used side of a virtio queue (VIRTIO 1.3, 2.7.7, 2.7.8, 2.8). Line of the engine's own table (`hdl/src/virtio/used`), by queue."]
        VqUsed [36] {
            driver: u64[64] "Bus address of the driver's area: flags, and behind the available ring `used_event`; of a packed ring the driver's event structure.";
            device: u64[64] "Of the device's area: the used ring. Of a packed ring: of the descriptors, where used ones are written.";
            used: u16[16] "Used index: chains given back, as the driver counts; of a packed ring the descriptor where the next used one is written.";
            size: u16[16] "Descriptors of the ring.";
            signalled: u16[16] "Used index when the driver's event was last looked at; of a packed ring how many descriptors `used` has passed since then.";
            vector: u16[16] "MSI-X vector; `NO_VECTOR`: none.";
            enabled: bool[1] "Chains are given back; else they are only counted.";
            events: bool[1] "EVENT_IDX has been negotiated.";
            packed: bool[1] "RING_PACKED has been negotiated.";
            wrap: bool[1] "Of a packed ring the wrap counter of `used`: 1 in the beginning.";
            broken: bool[1] "The ring cannot be written or read: chains are only counted.";
            held: bool[1] "Chains have been written that the driver does not see yet, since those behind them have to become visible with them: of a split ring the index does not show them, of a packed ring the first one's flags are missing; 0 in the beginning.";
            held_wrap: bool[1] "Packed: wrap counter of the first of them.";
            held_write: bool[1] "Packed: WRITE flag of the first of them: bytes have been written into its chain.";
            function: u16[12] "Owning PCI function.";
            rsvd0: u16[12] "Zero.";
            back: u16[16] "Chains that have come back, given to the driver or only counted, modulo 65,536, and one behind those that were given up. When it is `VqAvail::taken` all are back, of a receive queue not before `VqAvail::given_up` stands.";
            held_id: u16[16] "Packed: buffer ID of the first of them.";
            held_slot: u16[16] "Packed: its number in the ring.";
            rsvd1: u16[16] "Zero.";
        }
    } };
}

context_records!(define_codecs);
use crate::define_codecs;
