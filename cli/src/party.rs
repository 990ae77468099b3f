//! One side of an RDMA exchange on any device: what `perf` and `selftest` do their work with.
use ferric_abi::codes::WrOpcode;
use ferric_driver::device::Device;
use ferric_driver::eq::{Event, EventQueue};
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mac, Mtu, Path, QpType, RtrAttr, RtsAttr};
use ferric_driver::{Access, Completion, CompletionQueue, Config, Context, CqeStatus, Error, MemoryRegion, Pd, QpConfig, QueuePair, RecvRequest, SendRequest};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What can go wrong in an exchange.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The driver or the card.
    #[error(transparent)]
    Driver(#[from] Error),
    /// A work request failed.
    #[error("work request {} ended with {:?} (syndrome {:#04x})", .0.wr_id, .0.status, .0.syndrome)]
    Failed(Completion),
    /// Nothing completed.
    #[error("nothing has completed for {0:?}; see that the peer runs and the wire carries frames")]
    Silent(Duration),
    /// The data is not what was sent.
    #[error("message {message}: byte {offset} is {got:#04x}, not {want:#04x}")]
    Data {
        /// Number of the message.
        message: u64,
        /// First wrong byte.
        offset: usize,
        /// What was there.
        got: u8,
        /// What should be.
        want: u8,
    },
    /// The other side, or what it said.
    #[error("{0}")]
    Peer(String),
}

/// What the other side must know.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Address {
    /// Queue pair number.
    pub qpn: u32,
    /// First packet sequence number.
    pub psn: u32,
    /// MAC address.
    pub mac: [u8; 6],
    /// IP address.
    pub ip: IpAddr,
    /// Remote key of the memory.
    pub rkey: u32,
    /// Address of the memory.
    pub addr: u64,
    /// Bytes of the memory.
    pub len: u64,
}

/// How a party is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// IP address; the MAC address is made from it.
    pub ip: IpAddr,
    /// Bytes of a message.
    pub size: usize,
    /// Messages that may be outstanding.
    pub window: usize,
    /// Path MTU.
    pub mtu: Mtu,
    /// How long nothing may complete before the exchange is given up.
    pub patience: Duration,
    /// Transport.
    pub transport: QpType,
}

/// Byte `i` of message `n`.
pub fn pattern(n: u64, i: usize) -> u8 {
    let x = (i as u64).wrapping_mul(0x9e37_79b9).wrapping_add(n.wrapping_mul(0x85eb_ca6b)).wrapping_add(0x1234);
    (x >> 13 ^ x >> 5) as u8
}

/// A queue pair with its queues and memory. Fields are dropped in this order.
pub struct Party {
    qp: QueuePair,
    cq: CompletionQueue,
    memory: MemoryRegion,
    eq: EventQueue,
    _pd: Pd,
    ctx: Context,
    shape: Shape,
    stride: usize,
}

/// Locally administered MAC address of an IP address.
pub fn mac_of(ip: IpAddr) -> Mac {
    let o = match ip {
        IpAddr::V4(a) => a.octets(),
        IpAddr::V6(a) => a.octets()[12..].try_into().unwrap_or_default(),
    };
    Mac([2, 0xfe, o[0], o[1], o[2], o[3]])
}

/// Has the card answer for `ip` as the function's address `number`, if it can.
pub fn introduce(ctx: &Context, number: u32, ip: IpAddr) -> Result<(), Trouble> {
    if ctx.has_addresses() {
        ctx.set_address(number, ferric_driver::Address { ip, mac: mac_of(ip), vlan: None })?;
    }
    Ok(())
}

impl Party {
    /// Opens `device` and makes everything.
    pub fn open(device: Arc<dyn Device>, shape: Shape) -> Result<Self, Trouble> {
        Self::on(Context::open(device, Config::default())?, shape)
    }

    /// Makes everything on an open device.
    pub fn on(ctx: Context, shape: Shape) -> Result<Self, Trouble> {
        let pd = ctx.alloc_pd()?;
        let eq = ctx.create_eq(8, 0)?;
        let cq = ctx.create_cq((4 * shape.window).max(64), &eq)?;
        let stride = shape.size.next_multiple_of(64).max(64);
        let memory = pd.register(vec![0; stride * shape.window].into_boxed_slice(), Access::ALL)?;
        let qp = pd.create_qp(&QpConfig { qp_type: shape.transport, max_send: shape.window.max(2), max_recv: shape.window.max(2), ..Default::default() }, &cq, &cq)?;
        Ok(Self { qp, cq, memory, eq, _pd: pd, ctx, shape, stride })
    }

    /// The open device.
    pub fn context(&self) -> &Context {
        &self.ctx
    }

    /// The card answers for the address from now on, if it can.
    pub fn introduce(&self) -> Result<(), Trouble> {
        introduce(&self.ctx, 0, self.shape.ip)
    }

    /// MAC address of a peer that does not say it: the card asks for it. One that cannot ask takes it for another Ferric card.
    pub fn find(&self, ip: IpAddr) -> Result<Mac, Trouble> {
        Ok(if self.ctx.has_addresses() { self.ctx.resolve(0, ip)? } else { mac_of(ip) })
    }

    /// What the peer must know.
    pub fn address(&self) -> Address {
        let psn = (self.qp.qpn().wrapping_mul(0x9e37) ^ self.memory.rkey()) & 0xff_ffff;
        let (addr, len) = (self.memory.addr(), self.memory.len() as u64);
        Address { qpn: self.qp.qpn(), psn, mac: mac_of(self.shape.ip).0, ip: self.shape.ip, rkey: self.memory.rkey(), addr, len }
    }

    /// Connects to the peer.
    pub fn connect(&mut self, peer: &Address) -> Result<(), Trouble> {
        if peer.len < (self.stride * self.shape.window) as u64 || peer.ip.is_ipv4() != self.shape.ip.is_ipv4() {
            return Err(Trouble::Peer(format!("the peer's memory or address does not fit ours: {peer:?}")));
        }
        let psn = self.address().psn;
        self.qp.to_init(Access::ALL)?;
        let path = Path { dmac: Mac(peer.mac), smac: mac_of(self.shape.ip), dip: peer.ip, sip: self.shape.ip, vlan: None, udp_sport: 0xc123, tclass: 0, hop_limit: 64, flow_label: 0 };
        self.qp.to_rtr(Access::ALL, &RtrAttr { mtu: self.shape.mtu, dest_qpn: peer.qpn, rq_psn: peer.psn, min_rnr_timer: 12, repeat_nak: false, max_dest_rd_atomic: 16, path: Some(path) })?;
        // 4.3 s: a served card is slow, and its timers follow the wall clock.
        self.qp.to_rts(&RtsAttr { sq_psn: psn, timeout: 20, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 16 })?;
        Ok(())
    }

    fn slot(&self, n: u64) -> usize {
        (n % self.shape.window as u64) as usize * self.stride
    }

    /// Puts message `n` into its slot.
    pub fn fill(&self, n: u64) {
        let bytes: Vec<u8> = (0..self.shape.size).map(|i| pattern(n, i)).collect();
        self.memory.write(self.slot(n), &bytes);
    }

    /// Forgets what is in the slot of message `n`.
    pub fn wipe(&self, n: u64) {
        self.memory.write(self.slot(n), &vec![!0; self.shape.size]);
    }

    /// Compares slot and message `n`.
    pub fn verify(&self, n: u64) -> Result<(), Trouble> {
        self.verify_as(n, n)
    }

    /// Compares the slot of message `n` and what message `of` is.
    pub fn verify_as(&self, n: u64, of: u64) -> Result<(), Trouble> {
        let got = self.memory.to_vec(self.slot(n), self.shape.size);
        match got.iter().enumerate().find(|(i, b)| **b != pattern(of, *i)) {
            None => Ok(()),
            Some((offset, b)) => Err(Trouble::Data { message: of, offset, got: *b, want: pattern(of, offset) }),
        }
    }

    /// Copies `len` bytes from the slot of message `from` to that of message `to`.
    pub fn copy(&self, from: u64, to: u64, len: usize) -> Result<(), Trouble> {
        if len != self.shape.size {
            return Err(Trouble::Peer(format!("a message of {len} bytes came, not of {}", self.shape.size)));
        }
        self.memory.write(self.slot(to), &self.memory.to_vec(self.slot(from), len));
        Ok(())
    }

    /// Posts message `n` as a WRITE into the peer's slot or as a SEND.
    pub fn post(&mut self, n: u64, opcode: WrOpcode, peer: &Address) -> Result<(), Trouble> {
        let at = self.slot(n) as u64;
        let from = [sge(self.memory.addr() + at, self.shape.size as u32, self.memory.lkey())];
        let request = SendRequest { wr_id: n, opcode, payload: Payload::Sges(&from), remote_addr: peer.addr + at, rkey: peer.rkey, imm: 0, signaled: true, solicited: false };
        Ok(self.qp.post_send(&request)?)
    }

    /// Posts a receive for message `n`.
    pub fn post_receive(&mut self, n: u64) -> Result<(), Trouble> {
        let into = [sge(self.memory.addr() + self.slot(n) as u64, self.shape.size as u32, self.memory.lkey())];
        Ok(self.qp.post_recv(&RecvRequest { wr_id: n, sges: &into })?)
    }

    /// Message `n` from its slot into the same slot of a peer that is this queue pair itself, and looks at what came. A message that is sent
    /// completes twice.
    pub fn exchange(&mut self, n: u64, opcode: WrOpcode, own: &Address) -> Result<(), Trouble> {
        self.fill(n);
        if opcode == WrOpcode::Send {
            self.post_receive(n)?;
            self.post(n, opcode, own)?;
            self.wait()?;
        } else {
            self.post(n, opcode, own)?;
        }
        self.wait()?;
        self.verify(n)
    }

    /// Asks for an event at the next completion.
    pub fn arm(&mut self) {
        self.cq.arm(false);
    }

    /// Waits for an event by interrupt.
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<Event>, Trouble> {
        Ok(self.eq.wait(timeout)?)
    }

    /// Waits for the next completion, which must be a success.
    pub fn wait(&mut self) -> Result<Completion, Trouble> {
        let start = self.ctx.device().now();
        loop {
            match self.cq.poll() {
                Some(c) if c.status == CqeStatus::Success => return Ok(c),
                Some(c) => return Err(Trouble::Failed(c)),
                None if self.ctx.device().is_gone() => return Err(Error::Gone.into()),
                None if self.ctx.device().now() - start > self.shape.patience => return Err(Trouble::Silent(self.shape.patience)),
                None => self.cq.relax(),
            }
        }
    }
}
