//! Records that driver and card exchange through host memory and doorbells. Little-endian.
//!
//! Rings are arrays of power-of-two many slots; indices are free-running 16-bit counters, `slot = index % size`.
//! Completion-type rings (CQ, EQ, admin completions) carry a phase bit that starts at 1 and flips on each wrap, so the
//! host never reads a card register to learn what is new.

/// Expands `$callback!` with the declarations of every host record; see [`crate::define_codecs`].
#[macro_export]
macro_rules! host_records {
    ($callback:ident) => { $callback! { Little;
        #[doc = "Head of a send work request (first 32 of `64 << stride` bytes). SGEs, or inline data, follow at byte 32; those of an atomic and of a UD request at byte 48, behind its operands or its destination IP address (16 bytes, little-endian, IPv4 in the low 4)."]
        WqeHead [32] {
            opcode: u8[8] "Work request opcode, see `WrOpcode`.";
            signaled: bool[1] "Write a CQE on success; errors always write one.";
            solicited: bool[1] "Set the solicited-event bit in the last packet of the message.";
            fence: bool[1] "Wait for earlier READs and atomics of this queue.";
            inline_data: bool[1] "Payload follows the head in the work request itself; num_sge is ignored.";
            rsvd0: u8[4] "Zero.";
            num_sge: u8[8] "Scatter/gather entries that follow.";
            rsvd1: u8[8] "Zero.";
            index: u16[16] "Producer index of this slot; lets a WQE-carrying doorbell stand for an ordinary one.";
            dest_low: u16[16] "UD: low 16 bits of the remote queue pair, else zero.";
            qpn: u32[24] "Queue pair this request belongs to (used by the WQE-carrying doorbell).";
            dest_high: u8[8] "UD: high 8 bits of the remote queue pair, else zero.";
            imm: u32[32] "Immediate data (host order; big-endian on the wire) or rkey to invalidate.";
            raddr: u64[64] "Remote virtual address (WRITE, READ, atomics). UD: destination MAC (bits 47:0), traffic class (bits 55:48), hop limit (bits 63:56).";
            rkey: u32[32] "Remote key. UD: Q_Key; with its highest bit set the queue pair's own is sent.";
            length: u32[32] "Message length in bytes, 0 to 2^31 - 1; must equal the sum of the SGE lengths.";
        }
        #[doc = "Scatter/gather entry."]
        Sge [16] {
            addr: u64[64] "Virtual address inside the region named by `lkey`.";
            length: u32[32] "Bytes.";
            lkey: u32[32] "Local key.";
        }
        #[doc = "WRITE of Ultra Ethernet, written as a whole line to the doorbell page for work requests of a card with the engine `uet`."]
        UetPost [64] {
            peer: u16[16] "Line of the table of peers (SET_UET_PEER).";
            rod: bool[1] "Packets are delivered in order (ROD), else in any (RUD).";
            rsvd0: u8[7] "Zero.";
            generation: u8[8] "Resource generation, as the peer's semantics want it.";
            length: u32[32] "Bytes.";
            tag: u32[32] "Comes back in `UetEnd`.";
            lkey: u32[32] "Local key.";
            va: u64[64] "Virtual address of the first byte inside the region named by `lkey`.";
            rkey: u64[64] "The peer's memory key.";
            offset: u64[64] "Where the first byte goes in the peer's region: its virtual address, if the peer is a card of this kind.";
            initiator: u32[32] "Initiator's id.";
            job: u32[24] "JobID.";
            rsvd1: u8[8] "Zero.";
            pid: u16[12] "PIDonFEP.";
            rsvd2: u8[4] "Zero.";
            index: u16[12] "Resource index.";
            rsvd3: u8[4] "Zero.";
            rsvd4: u32[32] "Zero."; rsvd5: u64[64] "Zero.";
        }
        #[doc = "End of such a WRITE, in the ring of SET_UET_ENDS."]
        UetEnd [64] {
            tag: u32[32] "As in its `UetPost`.";
            why: u8[8] "0: answered by the peer, `code` is a `ReturnCode`; 1: no answer after all time-outs; 2: the peer had no room after all refusals; 3: refused with the `NackCode` in `code`; 4: its peer was taken away here while it was under way.";
            code: u8[8] "See `why`.";
            rsvd0: u16[16] "Zero.";
            rsvd1: u64[64] "Zero."; rsvd2: u64[64] "Zero."; rsvd3: u64[64] "Zero."; rsvd4: u64[64] "Zero."; rsvd5: u64[64] "Zero."; rsvd6: u64[64] "Zero.";
            rsvd7: u32[32] "Zero.";
            number: u32[31] "Ends written before this one.";
            phase: bool[1] "1 in the ring's first pass, 0 in its second, and so on: by it the host knows that an entry is there.";
        }
        #[doc = "Head of a receive work request (first 16 of `64 << stride` bytes); SGEs follow at byte 16."]
        RecvHead [16] {
            num_sge: u8[8] "Scatter/gather entries that follow.";
            rsvd0: u8[8] "Zero.";
            index: u16[16] "Producer index of this slot.";
            copy: u16[16] "Of a shared receive queue: number of this request's copy. Copies stand behind the ring, each as large as a slot; one stays as it is until its request has completed.";
            rsvd1: u16[16] "Zero.";
            rsvd2: u64[64] "Zero.";
        }
        #[doc = "Completion queue entry."]
        Cqe [32] {
            wqe_index: u16[16] "Index of the completed work request; earlier unsignalled ones of the same send queue are done too.";
            status: u8[8] "Completion status, see `CqeStatus`.";
            opcode: u8[8] "What completed, see `CqeOpcode`.";
            qpn: u32[24] "Local queue pair.";
            is_recv: bool[1] "1: receive queue, 0: send queue.";
            imm_valid: bool[1] "`imm` holds immediate data.";
            solicited: bool[1] "The message asked for a solicited event.";
            grh: bool[1] "The first 40 bytes of the buffer hold a GRH (UD).";
            inv_valid: bool[1] "The message invalidated the key in `imm`.";
            rsvd0: u8[3] "Zero.";
            byte_len: u32[32] "Bytes received.";
            imm: u32[32] "Immediate data, host order, or the key invalidated.";
            src_qp: u32[24] "Source queue pair (UD); with a raw frame that the flow tables have sent to software why (`Exception`), else 0.";
            rsvd1: u8[8] "Zero.";
            timestamp: u64[64] "Card time in ticks when the completion was made.";
            syndrome: u8[8] "AETH syndrome or card-specific cause behind an error status.";
            rsvd2: u16[16] "Zero.";
            rsvd3: u8[7] "Zero.";
            phase: bool[1] "Phase bit.";
        }
        #[doc = "Event queue entry."]
        Eqe [16] {
            kind: u8[8] "Event type, see `EventKind`.";
            rsvd0: u8[8] "Zero.";
            cause: u16[16] "Cause code of an asynchronous event.";
            id: u32[24] "CQ or QP number.";
            rsvd1: u8[8] "Zero.";
            rsvd2: u32[32] "Zero.";
            rsvd3: u32[31] "Zero.";
            phase: bool[1] "Phase bit.";
        }
        #[doc = "Doorbell: one 64-bit posted write to a doorbell register of the function's BAR."]
        Doorbell [8] {
            id: u32[24] "Queue number.";
            arm: bool[1] "CQ: raise an event for the next completion.";
            arm_solicited: bool[1] "CQ: only for a solicited one or an error.";
            rsvd0: u8[6] "Zero.";
            index: u16[16] "Producer index (SQ, RQ) or consumer index (CQ, EQ).";
            rsvd1: u16[16] "Zero.";
        }
        #[doc = "Admin command: one 128-byte slot of the function's admin ring. The parameter words depend on the opcode."]
        AdminCommand [128] {
            opcode: u8[8] "See `AdminOpcode`.";
            rsvd0: u8[8] "Zero.";
            command_id: u16[16] "Echoed in the completion.";
            id: u32[32] "Object number the command is about.";
            p0: u32[32] "Parameter word 0."; p1: u32[32] "Parameter word 1."; p2: u32[32] "Parameter word 2."; p3: u32[32] "Parameter word 3.";
            p4: u32[32] "Parameter word 4."; p5: u32[32] "Parameter word 5."; p6: u32[32] "Parameter word 6."; p7: u32[32] "Parameter word 7.";
            p8: u32[32] "Parameter word 8."; p9: u32[32] "Parameter word 9."; p10: u32[32] "Parameter word 10."; p11: u32[32] "Parameter word 11.";
            p12: u32[32] "Parameter word 12."; p13: u32[32] "Parameter word 13."; p14: u32[32] "Parameter word 14."; p15: u32[32] "Parameter word 15.";
            p16: u32[32] "Parameter word 16."; p17: u32[32] "Parameter word 17."; p18: u32[32] "Parameter word 18."; p19: u32[32] "Parameter word 19.";
            p20: u32[32] "Parameter word 20."; p21: u32[32] "Parameter word 21."; p22: u32[32] "Parameter word 22."; p23: u32[32] "Parameter word 23.";
            p24: u32[32] "Parameter word 24."; p25: u32[32] "Parameter word 25."; p26: u32[32] "Parameter word 26."; p27: u32[32] "Parameter word 27.";
            p28: u32[32] "Parameter word 28."; p29: u32[32] "Parameter word 29.";
        }
        #[doc = "Admin completion: one 64-byte slot of the function's admin completion ring."]
        AdminCompletion [64] {
            sq_head: u32[32] "Admin commands consumed so far.";
            r0: u32[32] "Result word 0."; r1: u32[32] "Result word 1."; r2: u32[32] "Result word 2."; r3: u32[32] "Result word 3.";
            r4: u32[32] "Result word 4."; r5: u32[32] "Result word 5."; r6: u32[32] "Result word 6."; r7: u32[32] "Result word 7.";
            r8: u32[32] "Result word 8."; r9: u32[32] "Result word 9."; r10: u32[32] "Result word 10."; r11: u32[32] "Result word 11.";
            r12: u32[32] "Result word 12."; r13: u32[32] "Result word 13.";
            command_id: u16[16] "From the command.";
            status: u8[8] "See `AdminStatus`.";
            rsvd0: u8[7] "Zero.";
            phase: bool[1] "Phase bit, in the byte that is written last.";
        }
        #[doc = "Page-table entry: element `n` translates page `n` of the region, counted from the page that holds the start address."]
        Pte [8] {
            valid: bool[1] "Entry may be used.";
            rsvd0: u16[11] "Zero.";
            page: u64[52] "IOVA of the page, divided by 4096; of larger pages the low 9 (2 MiB) or 18 bits (1 GiB) do not count.";
        }
    } };
}

host_records!(define_codecs);
use crate::define_codecs;

/// Receive work requests whose fetch may be under way at the same time: when a request has completed, every one of its ring that is
/// this many before it or older has been read, and its slot may be written anew whether it has completed or not.
pub const RECV_FETCHES: usize = 64;
