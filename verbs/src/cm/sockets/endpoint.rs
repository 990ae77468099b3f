//! The verbs objects of one connection: a queue pair, a completion queue with a channel, and the buffers. It posts requests and says what has been done.
use super::flow::{CONTROLS, PLACES};
use super::memory::Memory;
use super::wire::{Message, Opening, Place};
use crate::abi::attr::{QpCap, QpInitAttr};
use crate::abi::cma::CmId;
use crate::abi::consts::*;
use crate::abi::objects::{CompChannel, Cq};
use crate::abi::wr::{RecvWr, SendWr, Sge, Wc, WrBind, WrKind, WrRdma};
use crate::channel::{ibv_ack_cq_events, ibv_create_comp_channel, ibv_destroy_comp_channel, ibv_get_cq_event};
use crate::cm::queues::{ferric_rdma_create_qp, ferric_rdma_destroy_qp};
use crate::cq::{ibv_create_cq, ibv_destroy_cq, poll_cq, req_notify_cq};
use crate::post::{post_recv, post_send};
use std::ffi::c_int;
use std::ptr::null_mut;

/// Bytes of a mapping in the table: an offset and a place.
pub const MAPPING: usize = 8 + Place::BYTES;
/// Least requests and receives of a queue.
pub const LEAST: u16 = 16;
/// Free bytes of the send buffer below which nothing more is sent, so that messages do not become tiny.
const LOW_WATER: u32 = 2048;

/// Sizes of a connection, as the program has asked for them.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Requests of the send queue.
    pub requests: u16,
    /// Receives, which are credits of the peer.
    pub receives: u16,
    /// Bytes that go into a request itself.
    pub inline: u16,
    /// Bytes of the send buffer.
    pub send: u32,
    /// Bytes of the receive buffer.
    pub receive: u32,
    /// Mappings that the peer may tell us of.
    pub mappings: u16,
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A message has come; `bytes` have been written with it.
    Came { message: Message, bytes: u32 },
    /// A message has been acknowledged.
    Sent(Message),
    /// A request has failed (`ibv_wc_status`).
    Failed(u32),
}

const RECEIVE: u64 = 1 << 63;
/// Requests whose data lie in the send buffer; their bytes are below.
const BUFFERED: u64 = 1 << 62;

/// The objects. Dropped before its identifier is destroyed.
pub struct Endpoint {
    id: *mut CmId,
    channel: *mut CompChannel,
    cq: *mut Cq,
    sizes: Sizes,
    send: Memory,
    receive: Memory,
    table: Memory,
    /// Where the next bytes to be sent are put, and how many bytes there are in use.
    head: u32,
    used: u32,
    /// Requests that may be posted: for data, and for control messages.
    free: u16,
    controls: u16,
    armed: bool,
}

impl Endpoint {
    /// Makes them, and posts the receives.
    ///
    /// # Safety
    /// `id` is tied to a card, has no queue pair, and outlives this.
    pub unsafe fn new(id: *mut CmId, mut sizes: Sizes) -> Result<Self, c_int> {
        sizes.requests = sizes.requests.max(LEAST);
        sizes.receives = sizes.receives.max(LEAST);
        // Places and mappings go into the requests.
        let inline = sizes.inline.max(MAPPING as u16);
        // SAFETY: by the caller's promise.
        unsafe {
            let (verbs, pd) = ((*id).verbs, (*id).pd);
            let memory = |len: usize, access| Memory::new(pd, len, access);
            let remote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
            let (send, receive) = (memory(sizes.send as usize, 0)?, memory(sizes.receive as usize, remote)?);
            let table = memory(PLACES * Place::BYTES + usize::from(sizes.mappings) * MAPPING, remote)?;
            let free = sizes.requests - CONTROLS;
            let mut e = Self { id, channel: null_mut(), cq: null_mut(), sizes, send, receive, table, head: 0, used: 0, free, controls: CONTROLS, armed: false };
            let errno = || std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOMEM);
            e.channel = ibv_create_comp_channel(verbs);
            if e.channel.is_null() || libc::fcntl((*e.channel).fd, libc::F_SETFL, libc::O_NONBLOCK) != 0 {
                return Err(errno());
            }
            e.cq = ibv_create_cq(verbs, c_int::from(sizes.requests) + c_int::from(sizes.receives), null_mut(), e.channel, 0);
            if e.cq.is_null() {
                return Err(errno());
            }
            let cap = QpCap { max_send_wr: sizes.requests.into(), max_recv_wr: sizes.receives.into(), max_send_sge: 2, max_recv_sge: 1, max_inline_data: inline.into() };
            let mut init = QpInitAttr { qp_context: null_mut(), send_cq: e.cq, recv_cq: e.cq, srq: null_mut(), cap, qp_type: IBV_QPT_RC, sq_sig_all: 1 };
            if ferric_rdma_create_qp(id, null_mut(), &mut init) != 0 {
                return Err(errno());
            }
            e.post_receives(sizes.receives.into())?;
            Ok(e)
        }
    }

    /// The descriptor that is readable when something has completed after [`Endpoint::arm`].
    pub fn fd(&self) -> c_int {
        // SAFETY: a channel in use.
        unsafe { (*self.channel).fd }
    }

    /// Its sizes, as they are.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// What the peer is to know.
    pub fn opening(&self) -> Opening {
        Opening {
            big_endian: false,
            credits: self.sizes.receives,
            mappings: self.sizes.mappings,
            table: Place { addr: self.table.addr(), key: self.table.rkey(), length: PLACES as u32 },
            buffer: Place { addr: self.receive.addr(), key: self.receive.rkey(), length: self.half() },
        }
    }

    /// Bytes in half of the receive buffer.
    pub fn half(&self) -> u32 {
        self.sizes.receive / 2
    }

    /// A half of the receive buffer, for the peer.
    pub fn half_at(&self, offset: u32) -> Place {
        Place { addr: self.receive.addr() + u64::from(offset), key: self.receive.rkey(), length: self.half() }
    }

    /// Posts `n` receives.
    pub fn post_receives(&self, n: u32) -> Result<(), c_int> {
        let mut bad = null_mut();
        for _ in 0..n {
            let mut wr = RecvWr { wr_id: RECEIVE, next: null_mut(), sg_list: null_mut(), num_sge: 0 };
            // SAFETY: a queue pair in use, and a list of one.
            match unsafe { post_recv((*self.id).qp, &mut wr, &mut bad) } {
                0 => {}
                n => return Err(n),
            }
        }
        Ok(())
    }

    /// Bytes that one request may have now, 0 if none may be posted.
    pub fn room(&self) -> u32 {
        let left = self.sizes.send - self.used;
        if self.free > 0 && left >= LOW_WATER.min(self.sizes.send) {
            left
        } else {
            0
        }
    }

    /// A control message may be sent.
    pub fn may_control(&self) -> bool {
        self.controls > 0
    }

    /// Everything that was posted has completed.
    pub fn is_idle(&self) -> bool {
        self.free + self.controls == self.sizes.requests
    }

    fn post(&self, wr_id: u64, sges: &mut [Sge], message: Option<Message>, flags: u32, to: Place) -> Result<(), c_int> {
        let opcode = if message.is_some() { IBV_WR_RDMA_WRITE_WITH_IMM } else { IBV_WR_RDMA_WRITE };
        let mut wr = SendWr {
            wr_id,
            next: null_mut(),
            sg_list: sges.as_mut_ptr(),
            num_sge: sges.len() as c_int,
            opcode,
            send_flags: flags,
            imm_data: message.map_or(0, |m| m.to_imm().to_be()),
            wr: WrKind { rdma: WrRdma { remote_addr: to.addr, rkey: to.key } },
            qp_type: 0,
            bind_mw: WrBind::NONE,
        };
        let mut bad = null_mut();
        // SAFETY: a queue pair in use, and a list of one.
        match unsafe { post_send((*self.id).qp, &mut wr, &mut bad) } {
            0 => Ok(()),
            n => Err(n),
        }
    }

    /// Writes `n` bytes, at most [`Endpoint::room`], from `from` to `to`, with a message or without.
    ///
    /// # Safety
    /// `n` bytes can be read at `from`.
    pub unsafe fn write(&mut self, from: *const u8, n: u32, message: Option<Message>, to: Place) -> Result<(), c_int> {
        let imm = u64::from(message.map_or(0, Message::to_imm));
        self.free -= 1;
        if n <= self.sizes.inline.into() {
            return self.post(imm, &mut [Sge { addr: from as u64, length: n, lkey: 0 }], message, IBV_SEND_INLINE, to);
        }
        let first = n.min(self.sizes.send - self.head);
        // SAFETY: by the caller's promise; what is in use is `used` bytes before the head.
        unsafe {
            self.send.write(self.head as usize, from, first as usize);
            self.send.write(0, from.add(first as usize), (n - first) as usize);
        }
        let (addr, lkey) = (self.send.addr(), self.send.lkey());
        let mut sges = [Sge { addr: addr + u64::from(self.head), length: first, lkey }, Sge { addr, length: n - first, lkey }];
        self.used += n;
        self.head = (self.head + n) % self.sizes.send;
        let pieces = if first == n { 1 } else { 2 };
        self.post(BUFFERED | u64::from(n), &mut sges[..pieces], message, 0, to)
    }

    /// Sends a control message, with a place that is written into the peer's table.
    pub fn control(&mut self, message: Message, written: Option<([u8; Place::BYTES], Place)>) -> Result<(), c_int> {
        self.controls -= 1;
        let wr_id = message.to_imm().into();
        match written {
            Some((bytes, to)) => self.post(wr_id, &mut [Sge { addr: bytes.as_ptr() as u64, length: Place::BYTES as u32, lkey: 0 }], Some(message), IBV_SEND_INLINE, to),
            None => self.post(wr_id, &mut [], Some(message), 0, Place::default()),
        }
    }

    /// The next completion.
    pub fn poll(&mut self) -> Option<Done> {
        let mut wc = Wc::default();
        // SAFETY: a queue in use, and room for one.
        if unsafe { poll_cq(self.cq, 1, &mut wc) } != 1 {
            return None;
        }
        if wc.wr_id & RECEIVE != 0 {
            return Some(match wc.status {
                IBV_WC_SUCCESS => Done::Came { message: Message::of_imm(u32::from_be(wc.imm_data)), bytes: wc.byte_len },
                status => Done::Failed(status),
            });
        }
        let message = if wc.wr_id & BUFFERED != 0 {
            let n = wc.wr_id as u32;
            self.used -= n;
            Message::Data(n)
        } else {
            Message::of_imm(wc.wr_id as u32)
        };
        if matches!(message, Message::Data(_) | Message::Mapped(_)) {
            self.free += 1;
        } else {
            self.controls += 1;
        }
        Some(if wc.status == IBV_WC_SUCCESS { Done::Sent(message) } else { Done::Failed(wc.status) })
    }

    /// The next completion makes the descriptor readable. `false`: so it was before.
    pub fn arm(&mut self) -> bool {
        if self.armed {
            return false;
        }
        self.armed = true;
        // SAFETY: a queue in use.
        unsafe { req_notify_cq(self.cq, 0) };
        true
    }

    /// Takes out what makes the descriptor readable. EIO: the card is gone.
    pub fn disarm(&mut self) -> Result<(), c_int> {
        let (mut cq, mut context) = (null_mut(), null_mut());
        // SAFETY: a channel in use, whose only queue is ours.
        while unsafe { ibv_get_cq_event(self.channel, &mut cq, &mut context) } == 0 {
            self.armed = false;
            // SAFETY: as above.
            unsafe { ibv_ack_cq_events(cq, 1) };
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EIO) => Err(libc::EIO),
            _ => Ok(()),
        }
    }

    /// Entry `n` of the table, in which the peer has named a half of its buffer.
    pub fn place(&self, n: usize) -> Place {
        let mut bytes = [0; Place::BYTES];
        // SAFETY: room for so many.
        unsafe { self.table.read(n % PLACES * Place::BYTES, bytes.as_mut_ptr(), Place::BYTES) };
        Place::of_bytes(bytes, false)
    }

    /// Mapping `n` that the peer has written: its offset and its place. `None`: there is no room for such.
    pub fn mapping(&self, n: u32) -> Option<(u64, Place)> {
        let n = usize::try_from(n).ok().filter(|n| *n < self.sizes.mappings.into())?;
        let (mut offset, mut place) = ([0; 8], [0; Place::BYTES]);
        let at = PLACES * Place::BYTES + n * MAPPING;
        // SAFETY: room for so many.
        unsafe {
            self.table.read(at, offset.as_mut_ptr(), offset.len());
            self.table.read(at + offset.len(), place.as_mut_ptr(), Place::BYTES);
        }
        Some((u64::from_le_bytes(offset), Place::of_bytes(place, false)))
    }

    /// Copies from the receive buffer.
    ///
    /// # Safety
    /// Room for `n` bytes at `to`.
    pub unsafe fn copy(&self, offset: u32, to: *mut u8, n: u32) {
        // SAFETY: by the caller's promise.
        unsafe { self.receive.read(offset as usize, to, n as usize) };
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // SAFETY: made in `new`; the identifier outlives this. The buffers go after the queue pair.
        unsafe {
            ferric_rdma_destroy_qp(self.id);
            if !self.cq.is_null() {
                ibv_destroy_cq(self.cq);
            }
            if !self.channel.is_null() {
                ibv_destroy_comp_channel(self.channel);
            }
        }
    }
}
