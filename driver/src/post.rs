//! How work requests are posted: built where the card will read them, without locks, allocation or register reads.
//!
//! Posting is staging (the request is written into the ring) and ringing (the card hears of all that is staged). The `post_` methods do both;
//! a list of requests is staged one by one and rung once ([`QueuePair::ring`]), or given up as a whole ([`QueuePair::unstage`]).
use crate::barrier;
use crate::error::{Error, Result};
use crate::qp::QueuePair;
use crate::request::{AtomicOp, AtomicRequest, AtomicWriteRequest, FlushRequest, Flushed, LocalSge, Payload, Placed, ReadRequest, RecvRequest, SendRequest};
use crate::ring::put_entries;
use crate::types::{QpState, QpType};
use ferric_abi::codes::WrOpcode;
use ferric_abi::csr;
use ferric_abi::host::{Doorbell, WqeHead};
use ferric_abi::wire::feth;
use std::sync::atomic::Ordering;

impl QueuePair {
    /// Writes a send request into the ring and rings the doorbell. A request of one 64-byte slot travels with the doorbell where the device has lines.
    #[inline]
    pub fn post_send(&mut self, wr: &SendRequest) -> Result<()> {
        self.post(wr, None, false, None)
    }

    /// The same, but the request waits until all READs and atomics posted before it are done.
    pub fn post_send_fenced(&mut self, wr: &SendRequest) -> Result<()> {
        self.post(wr, None, true, None)
    }

    /// Posts an RDMA READ.
    pub fn post_read(&mut self, wr: &ReadRequest) -> Result<()> {
        self.stage_read(wr)?;
        self.ring();
        Ok(())
    }

    /// Posts an atomic operation.
    pub fn post_atomic(&mut self, wr: &AtomicRequest) -> Result<()> {
        self.stage_atomic(wr)?;
        self.ring();
        Ok(())
    }

    /// Posts a FLUSH.
    pub fn post_flush(&mut self, wr: &FlushRequest) -> Result<()> {
        self.stage_flush(wr)?;
        self.ring();
        Ok(())
    }

    /// Posts an ATOMIC WRITE.
    pub fn post_atomic_write(&mut self, wr: &AtomicWriteRequest) -> Result<()> {
        self.stage_atomic_write(wr)?;
        self.ring();
        Ok(())
    }

    /// As [`QueuePair::post_send`] (`fence`: as [`QueuePair::post_send_fenced`]), but the card does not hear of it before [`QueuePair::ring`].
    #[inline]
    pub fn stage_send(&mut self, wr: &SendRequest, fence: bool) -> Result<()> {
        self.stage(wr, None, fence, None)
    }

    /// As [`QueuePair::post_read`], but the card does not hear of it before [`QueuePair::ring`].
    pub fn stage_read(&mut self, wr: &ReadRequest) -> Result<()> {
        self.stage_read_into(wr, Payload::Sges(wr.sges))
    }

    /// The same with a payload of its own instead of `wr.sges`: entries that are placed already.
    pub fn stage_read_into(&mut self, wr: &ReadRequest, payload: Payload) -> Result<()> {
        let request = SendRequest { wr_id: wr.wr_id, opcode: WrOpcode::Read, payload, remote_addr: wr.remote_addr, rkey: wr.rkey, imm: 0, signaled: wr.signaled, solicited: false };
        self.stage(&request, None, wr.fence, None)
    }

    /// As [`QueuePair::post_atomic`], but the card does not hear of it before [`QueuePair::ring`].
    pub fn stage_atomic(&mut self, wr: &AtomicRequest) -> Result<()> {
        self.stage_atomic_into(wr, Payload::Sges(wr.sges))
    }

    /// The same with a payload of its own instead of `wr.sges`: entries that are placed already.
    pub fn stage_atomic_into(&mut self, wr: &AtomicRequest, payload: Payload) -> Result<()> {
        let (opcode, operands) = match wr.op {
            AtomicOp::CompareSwap { compare, swap } => (WrOpcode::CompareSwap, [compare, swap]),
            AtomicOp::FetchAdd(addend) => (WrOpcode::FetchAdd, [addend, 0]),
        };
        let request = SendRequest { wr_id: wr.wr_id, opcode, payload, remote_addr: wr.remote_addr, rkey: wr.rkey, imm: 0, signaled: wr.signaled, solicited: false };
        self.stage(&request, Some(operands), wr.fence, None)
    }

    /// As [`QueuePair::post_flush`], but the card does not hear of it before [`QueuePair::ring`].
    pub fn stage_flush(&mut self, wr: &FlushRequest) -> Result<()> {
        let (length, level) = match wr.what {
            Flushed::Range(bytes) => (bytes, 0),
            Flushed::Region => (0, feth::WHOLE),
        };
        let placement = if wr.global { feth::GLOBAL } else { 0 } | if wr.persistent { feth::PERSISTENT } else { 0 };
        let (opcode, payload, imm) = (WrOpcode::Flush, Payload::Sges(&[]), level | placement);
        let request = SendRequest { wr_id: wr.wr_id, opcode, payload, remote_addr: wr.remote_addr, rkey: wr.rkey, imm, signaled: wr.signaled, solicited: false };
        self.stage_placement(&request, length.into(), wr.fence)
    }

    /// As [`QueuePair::post_atomic_write`], but the card does not hear of it before [`QueuePair::ring`].
    pub fn stage_atomic_write(&mut self, wr: &AtomicWriteRequest) -> Result<()> {
        let (opcode, payload) = (WrOpcode::AtomicWrite, Payload::Sges(&[]));
        let request = SendRequest { wr_id: wr.wr_id, opcode, payload, remote_addr: wr.remote_addr, rkey: wr.rkey, imm: 0, signaled: wr.signaled, solicited: false };
        self.stage_placement(&request, u64::from_le_bytes(wr.value), wr.fence)
    }

    /// Stages a FLUSH or an ATOMIC WRITE with its operand; a card that has them not would refuse it only when its turn comes.
    fn stage_placement(&mut self, wr: &SendRequest, operand: u64, fence: bool) -> Result<()> {
        if !self.ctx().has(csr::FEATURE_PLACEMENT) {
            return Err(Error::Unsupported("FLUSH and ATOMIC WRITE"));
        }
        self.stage(wr, Some([operand, 0]), fence, None)
    }

    /// Stages a request and rings: what was staged before goes with it.
    // Inlined into each kind of posting, where most of its questions have answers.
    #[inline(always)]
    pub(crate) fn post(&mut self, wr: &SendRequest, operands: Option<[u64; 2]>, fence: bool, dest: Option<u32>) -> Result<()> {
        self.stage(wr, operands, fence, dest)?;
        self.tell();
        Ok(())
    }

    /// A slot is free for the next request.
    #[inline(always)]
    fn check_room(&self) -> Result<()> {
        self.send.check_room(&self.shared().send)
    }

    /// Bytes between the head of a request and its entries or inline bytes: operands of an atomic, or the address of a datagram.
    #[inline(always)]
    fn front(&self, atomic: bool) -> usize {
        if atomic || self.config.qp_type == QpType::Ud {
            16
        } else {
            0
        }
    }

    /// Puts entries into the next slot; the request that is staged next has them as [`Payload::Placed`]. `atomic`: it will be an atomic.
    pub fn place_entries(&mut self, atomic: bool, sges: &[LocalSge]) -> Result<Placed> {
        self.check_room()?;
        let at = WqeHead::BYTES + self.front(atomic);
        let length = put_entries(&mut self.send.next()[at..], sges)?;
        Ok(Placed { length, num_sge: sges.len() as u8, inline: false })
    }

    /// Copies bytes from `buffers` (address and length each) into the next slot; the request that is staged next has them as [`Payload::Placed`].
    ///
    /// # Safety
    /// The buffers are readable memory of this process.
    pub unsafe fn place_inline(&mut self, buffers: impl Iterator<Item = (*const u8, usize)>) -> Result<Placed> {
        self.check_room()?;
        let at = WqeHead::BYTES + self.front(false);
        let room = &mut self.send.next()[at..];
        let mut n = 0;
        for (from, len) in buffers {
            if len > room.len() - n {
                return Err(Error::Invalid("more inline bytes than the queue pair was made for"));
            }
            // SAFETY: `len` more bytes of room by the line above; readable by the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(from, room.as_mut_ptr().add(n), len) };
            n += len;
        }
        Ok(Placed { length: n as u64, num_sge: 0, inline: true })
    }

    /// Writes a request into the next slot. `operands`: those of an atomic, in front of the entries; there the address of a datagram, which goes to queue pair `dest`.
    #[inline(always)]
    pub(crate) fn stage(&mut self, wr: &SendRequest, operands: Option<[u64; 2]>, fence: bool, dest: Option<u32>) -> Result<()> {
        // RESET, INIT and RTR (IBTA 10.3.1).
        if (self.state as u8) < QpState::Rts as u8 {
            return Err(Error::State);
        }
        if dest.is_some() != (self.config.qp_type == QpType::Ud) {
            return Err(Error::Invalid("datagrams are posted with post_send_ud, and nothing else is"));
        }
        let exchange = matches!(wr.opcode, WrOpcode::CompareSwap | WrOpcode::FetchAdd);
        let asks = exchange || matches!(wr.opcode, WrOpcode::Read | WrOpcode::Flush | WrOpcode::AtomicWrite);
        if asks && matches!(wr.payload, Payload::Inline(_) | Payload::Placed(Placed { inline: true, .. })) {
            return Err(Error::Invalid("what is read goes to registered memory"));
        }
        if operands.is_none() && asks && wr.opcode != WrOpcode::Read {
            return Err(Error::Invalid("atomics are posted with post_atomic, FLUSH and ATOMIC WRITE with their own calls"));
        }
        self.check_room()?;
        let index = self.send.producer;
        // Built in the ring itself. What an earlier request has left behind the entries the card does not look at.
        let Some((front, mut list)) = self.send.next().split_first_chunk_mut::<{ WqeHead::BYTES }>() else { return Err(Error::QueueFull) };
        if let Some(operands) = operands {
            let (at, rest) = list.split_at_mut(16);
            at.chunks_exact_mut(8).zip(operands).for_each(|(to, value)| to.copy_from_slice(&value.to_le_bytes()));
            list = rest;
        }
        let Placed { length, num_sge, inline } = match wr.payload {
            Payload::Sges(sges) => Placed { length: put_entries(list, sges)?, num_sge: sges.len() as u8, inline: false },
            Payload::Inline(bytes) => {
                let room = list.get_mut(..bytes.len()).ok_or(Error::Invalid("more inline bytes than the queue pair was made for"))?;
                room.copy_from_slice(bytes);
                Placed { length: bytes.len() as u64, num_sge: 0, inline: true }
            }
            Payload::Placed(placed) => placed,
        };
        if length > i32::MAX as u64 {
            return Err(Error::Invalid("a message has at most 2^31 - 1 bytes"));
        }
        if exchange && length != 8 {
            return Err(Error::Invalid("an atomic gives back 8 bytes"));
        }
        let mut head = WqeHead::default();
        head.set_opcode(wr.opcode as u8)
            .set_signaled(wr.signaled || self.config.signal_all)
            .set_solicited(wr.solicited)
            .set_fence(fence)
            .set_inline_data(inline)
            .set_num_sge(num_sge)
            .set_index(index)
            .set_qpn(self.qpn)
            .set_dest_low(dest.unwrap_or(0) as u16)
            .set_dest_high((dest.unwrap_or(0) >> 16) as u8)
            .set_imm(wr.imm)
            .set_raddr(wr.remote_addr)
            .set_rkey(wr.rkey)
            .set_length(length as u32);
        *front = head.0;
        self.shared().send.wr_id(index).store(wr.wr_id, Ordering::Relaxed);
        self.send.producer = index.wrapping_add(1);
        Ok(())
    }

    /// Tells the card of all requests that are staged, by one doorbell. A single one of 64 bytes travels with it.
    #[inline(always)]
    pub fn ring(&mut self) {
        if self.rung != self.send.producer {
            self.tell();
        }
    }

    /// The same, when something is staged.
    #[inline(always)]
    fn tell(&mut self) {
        let (rung, producer) = (self.rung, self.send.producer);
        self.rung = producer;
        self.shared().send.posted.store(producer, Ordering::Release);
        barrier::to_device();
        if self.by_line && producer.wrapping_sub(rung) == 1 {
            if let Some(line) = self.send.slot(rung).first_chunk() {
                return self.device.write_line(csr::DB_WQE, line);
            }
        }
        let bell = Doorbell::default().with_id(self.qpn).with_index(producer);
        self.device.write64(csr::DB_SQ, u64::from_le_bytes(bell.0));
    }

    /// Forgets all requests that are staged and not rung.
    pub fn unstage(&mut self) {
        self.send.producer = self.rung;
    }

    /// Puts raw bytes into the next send slot and rings the doorbell: for tests of what the card does with nonsense.
    #[doc(hidden)]
    pub fn post_raw_slot(&mut self, wr_id: u64, slot: &[u8]) {
        self.send.next()[..slot.len()].copy_from_slice(slot);
        self.shared().send.wr_id(self.send.producer).store(wr_id, Ordering::Relaxed);
        self.send.producer = self.send.producer.wrapping_add(1);
        let by_line = self.by_line;
        self.by_line = by_line && slot.len() == 64;
        self.ring();
        self.by_line = by_line;
    }

    /// Writes a receive request into the ring and rings the doorbell.
    pub fn post_recv(&mut self, wr: &RecvRequest) -> Result<()> {
        self.stage_recv(wr)?;
        self.ring_recv();
        Ok(())
    }

    /// As [`QueuePair::post_recv`], but the card does not hear of it before [`QueuePair::ring_recv`].
    pub fn stage_recv(&mut self, wr: &RecvRequest) -> Result<()> {
        if self.state == QpState::Reset {
            return Err(Error::State);
        }
        if self.srq.is_some() {
            return Err(Error::Invalid("receives of this queue pair are posted to its shared receive queue"));
        }
        let half = &self.shared().recv;
        self.recv.check_room(half)?;
        self.recv.write_receive(wr.sges)?;
        half.wr_id(self.recv.producer).store(wr.wr_id, Ordering::Relaxed);
        self.recv.producer = self.recv.producer.wrapping_add(1);
        Ok(())
    }

    /// Tells the card of all receives that are staged, by one doorbell.
    pub fn ring_recv(&mut self) {
        if self.recv_rung == self.recv.producer {
            return;
        }
        self.recv_rung = self.recv.producer;
        // In INIT nothing completes: a completion that is found now belongs to an earlier life.
        if self.state != QpState::Init {
            self.shared().recv.posted.store(self.recv.producer, Ordering::Release);
        }
        self.recv.ring_receive_bell(self.ctx(), self.qpn);
    }
}
