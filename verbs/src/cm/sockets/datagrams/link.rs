//! The verbs objects of a datagram socket: a queue pair of one card, a completion queue with a channel, and buffers, one for each request and receive.
use super::super::endpoint::{Sizes, LEAST};
use super::super::last_errno;
use super::super::memory::Memory;
use crate::abi::attr::{AhAttr, GlobalRoute, QpCap, QpInitAttr};
use crate::abi::cma::CmId;
use crate::abi::consts::*;
use crate::abi::objects::{Ah, CompChannel, Cq};
use crate::abi::wr::{RecvWr, SendWr, Sge, Wc, WrBind, WrKind, WrUd};
use crate::ah::{ibv_create_ah, ibv_destroy_ah};
use crate::channel::{ibv_ack_cq_events, ibv_create_comp_channel, ibv_destroy_comp_channel, ibv_get_cq_event};
use crate::cm::address::sockaddr;
use crate::cm::connect::UDP_QKEY;
use crate::cm::id::{ferric_rdma_create_id, ferric_rdma_destroy_id, IdObject};
use crate::cm::queues::{ferric_rdma_create_qp, ferric_rdma_destroy_qp};
use crate::cm::resolve::ferric_rdma_bind_addr;
use crate::config::{gid_of, Config};
use crate::cq::{ibv_create_cq, ibv_destroy_cq, poll_cq, req_notify_cq};
use crate::post::{post_recv, post_send};
use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};
use std::ptr::null_mut;

/// In front of what a datagram queue pair receives stands its route.
const ROUTE: usize = 40;
const RECEIVE: u64 = 1 << 63;

/// The way to another machine.
pub struct Way(*mut Ah);

impl Drop for Way {
    fn drop(&mut self) {
        // SAFETY: of `Link::way`, and nobody else's; requests that were posted with it have it no more.
        unsafe { ibv_destroy_ah(self.0) };
    }
}

/// The objects.
pub struct Link {
    id: *mut CmId,
    channel: *mut CompChannel,
    cq: *mut Cq,
    send: Option<Memory>,
    receive: Option<Memory>,
    slot: usize,
    requests: usize,
    free: Vec<u64>,
    armed: bool,
}

// SAFETY: the handles are the socket's alone, and used by one thread at a time.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Send for Way {}

impl Link {
    /// On the card that has this address. EADDRNOTAVAIL: none has; EMFILE, ENOMEM.
    pub fn new(ip: IpAddr, sizes: Sizes) -> Result<Self, c_int> {
        let (requests, receives) = (sizes.requests.max(LEAST), sizes.receives.max(LEAST));
        let slot = ROUTE + Config::of_process().mtu.bytes();
        let mut link = Self { id: null_mut(), channel: null_mut(), cq: null_mut(), send: None, receive: None, slot, requests: requests.into(), free: (0..requests.into()).collect(), armed: false };
        let (mut own, _) = sockaddr(SocketAddr::new(ip, 0));
        // SAFETY: handles that are made here one after another; what has been made goes when `link` is dropped.
        unsafe {
            if ferric_rdma_create_id(null_mut(), &mut link.id, null_mut(), RDMA_PS_UDP) != 0 || ferric_rdma_bind_addr(link.id, (&raw mut own).cast()) != 0 {
                return Err(last_errno());
            }
            let (verbs, pd) = ((*link.id).verbs, (*link.id).pd);
            link.send = Some(Memory::new(pd, slot * usize::from(requests), 0)?);
            link.receive = Some(Memory::new(pd, slot * usize::from(receives), IBV_ACCESS_LOCAL_WRITE)?);
            link.channel = ibv_create_comp_channel(verbs);
            if link.channel.is_null() || libc::fcntl((*link.channel).fd, libc::F_SETFL, libc::O_NONBLOCK) != 0 {
                return Err(last_errno());
            }
            link.cq = ibv_create_cq(verbs, c_int::from(requests) + c_int::from(receives), null_mut(), link.channel, 0);
            if link.cq.is_null() {
                return Err(last_errno());
            }
            let cap = QpCap { max_send_wr: requests.into(), max_recv_wr: receives.into(), max_send_sge: 1, max_recv_sge: 1, max_inline_data: 0 };
            let mut init = QpInitAttr { qp_context: null_mut(), send_cq: link.cq, recv_cq: link.cq, srq: null_mut(), cap, qp_type: IBV_QPT_UD, sq_sig_all: 1 };
            if ferric_rdma_create_qp(link.id, null_mut(), &mut init) != 0 {
                return Err(last_errno());
            }
        }
        (0..receives.into()).try_for_each(|n| link.post_receive(n))?;
        Ok(link)
    }

    /// The card's address.
    pub fn ip(&self) -> Option<IpAddr> {
        // SAFETY: an identifier in use.
        unsafe { IdObject::of(self.id) }.own().map(|a| a.ip())
    }

    /// The queue pair's number.
    pub fn qpn(&self) -> u32 {
        // SAFETY: an identifier with a queue pair.
        unsafe { (*(*self.id).qp).qp_num }
    }

    /// Bytes of a datagram at most, its header among them.
    pub fn most(&self) -> usize {
        self.slot - ROUTE
    }

    /// The descriptor that is readable when something has completed after [`Link::arm`].
    pub fn fd(&self) -> c_int {
        // SAFETY: a channel in use.
        unsafe { (*self.channel).fd }
    }

    /// Everything that was posted has been done.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.requests
    }

    /// There is room for a datagram.
    pub fn can_send(&self) -> bool {
        !self.free.is_empty()
    }

    /// The way to a machine, whose MAC address is sought if need be.
    pub fn way(&self, to: IpAddr) -> Result<Way, c_int> {
        let grh = GlobalRoute { dgid: gid_of(to), hop_limit: 64, ..Default::default() };
        let mut attr = AhAttr { grh, is_global: 1, port_num: 1, ..Default::default() };
        // SAFETY: the identifier's domain, which is never destroyed.
        let ah = unsafe { ibv_create_ah((*self.id).pd, &mut attr) };
        if ah.is_null() {
            Err(last_errno())
        } else {
            Ok(Way(ah))
        }
    }

    fn post_receive(&self, n: u64) -> Result<(), c_int> {
        let Some(memory) = &self.receive else { return Err(libc::EIO) };
        let mut sge = Sge { addr: memory.addr() + n * self.slot as u64, length: self.slot as u32, lkey: memory.lkey() };
        let mut wr = RecvWr { wr_id: RECEIVE | n, next: null_mut(), sg_list: &mut sge, num_sge: 1 };
        // SAFETY: a queue pair in use, and a list of one.
        match unsafe { post_recv((*self.id).qp, &mut wr, &mut null_mut()) } {
            0 => Ok(()),
            n => Err(n),
        }
    }

    /// Sends a header and data, [`Link::most`] bytes together. There has to be room.
    pub fn send(&mut self, to: (&Way, u32), header: &[u8], data: &[u8]) -> Result<(), c_int> {
        let (Some(memory), Some(n)) = (&self.send, self.free.pop()) else { return Err(libc::EAGAIN) };
        let at = n as usize * self.slot;
        // SAFETY: inside the slot, by the caller's promise; the slices are as long as they say.
        unsafe {
            memory.write(at, header.as_ptr(), header.len());
            memory.write(at + header.len(), data.as_ptr(), data.len());
        }
        let mut sge = Sge { addr: memory.addr() + at as u64, length: (header.len() + data.len()) as u32, lkey: memory.lkey() };
        let ud = WrUd { ah: to.0 .0, remote_qpn: to.1, remote_qkey: UDP_QKEY };
        let mut wr = SendWr { wr_id: n, next: null_mut(), sg_list: &mut sge, num_sge: 1, opcode: IBV_WR_SEND, send_flags: 0, imm_data: 0, wr: WrKind { ud }, qp_type: 0, bind_mw: WrBind::NONE };
        // SAFETY: a queue pair in use, and a list of one.
        match unsafe { post_send((*self.id).qp, &mut wr, &mut null_mut()) } {
            0 => Ok(()),
            error => {
                self.free.push(n);
                Err(error)
            }
        }
    }

    /// The next datagram, with its header, behind the requests that have been done. EIO: the card is gone.
    pub fn poll(&mut self) -> Result<Option<Vec<u8>>, c_int> {
        loop {
            let mut wc = Wc::default();
            // SAFETY: a queue in use, and room for one.
            match unsafe { poll_cq(self.cq, 1, &mut wc) } {
                0 => return Ok(None),
                1 if wc.status != IBV_WC_SUCCESS => return Err(libc::EIO),
                1 => {}
                _ => return Err(libc::EIO),
            }
            if wc.wr_id & RECEIVE == 0 {
                self.free.push(wc.wr_id);
                continue;
            }
            let n = wc.wr_id & !RECEIVE;
            let mut data = vec![0; (wc.byte_len as usize).saturating_sub(ROUTE).min(self.most())];
            if let Some(memory) = &self.receive {
                // SAFETY: room for so many.
                unsafe { memory.read(n as usize * self.slot + ROUTE, data.as_mut_ptr(), data.len()) };
            }
            self.post_receive(n)?;
            return Ok(Some(data));
        }
    }

    /// The next completion makes the descriptor readable. `false`: so it was before.
    pub fn arm(&mut self) -> bool {
        let was = std::mem::replace(&mut self.armed, true);
        if !was {
            // SAFETY: a queue in use.
            unsafe { req_notify_cq(self.cq, 0) };
        }
        !was
    }

    /// Takes out what makes the descriptor readable.
    pub fn disarm(&mut self) {
        let (mut cq, mut context) = (null_mut(), null_mut());
        // SAFETY: a channel in use, whose only queue is ours.
        while unsafe { ibv_get_cq_event(self.channel, &mut cq, &mut context) } == 0 {
            self.armed = false;
            // SAFETY: as above.
            unsafe { ibv_ack_cq_events(cq, 1) };
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: made in `new`, as far as they are there; the buffers go after the queue pair.
        unsafe {
            if !self.id.is_null() {
                ferric_rdma_destroy_qp(self.id);
            }
            if !self.cq.is_null() {
                ibv_destroy_cq(self.cq);
            }
            if !self.channel.is_null() {
                ibv_destroy_comp_channel(self.channel);
            }
            (self.send, self.receive) = (None, None);
            if !self.id.is_null() {
                ferric_rdma_destroy_id(self.id);
            }
        }
    }
}
