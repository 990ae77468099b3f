//! A raw queue pair of a function: Ethernet frames to and from the wire, each in a buffer of the card's own.
use ferric_abi::codes::{AdminStatus, WrOpcode};
use ferric_driver::eq::EventQueue;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mac, Mtu, QpType, RtrAttr, RtsAttr};
use ferric_driver::{Access, Completion, CompletionQueue, Context, CqeStatus, Error, MemoryRegion, QpConfig, QueuePair, RecvRequest, SendRequest};
use ferric_model::net::parse::MAX_FRAME;

/// The interrupt vector that says that something has come, or has left.
pub const VECTOR: u16 = 0;
/// Bytes of a buffer: the longest frame that a card carries, without its checksum.
const SLOT: usize = MAX_FRAME.next_power_of_two();
/// What goes out is filled up with zeroes to this length (IEEE 802.3, without the checksum).
const SHORTEST: usize = 60;

/// Why a port cannot be, or does not work any more.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The driver or the card.
    #[error(transparent)]
    Driver(#[from] Error),
    /// The function may have no raw queue pair.
    #[error("function {0} may have no raw queue pair: take function 0, or give the function a tunnel with `raw` (ferric switch tunnel, docs/switch.md)")]
    Denied(u32),
    /// Another has the address.
    #[error("another function of the card has the MAC address {0}: take another one, here and in the guest")]
    Taken(Mac),
    /// Only function 0 may be promiscuous.
    #[error("only function 0 gets frames to every address; another function has to name its addresses (ferric vhost-user: --mac with that of the guest's card)")]
    NeedsMac,
    /// A work request failed, which raw frames of a length that fits do not.
    #[error("a frame ended with {0:?}: open the card again; if that repeats, see `ferric stat`")]
    Failed(CqeStatus),
}

/// The raw queue pair, its queues and buffers. Fields are dropped in this order.
pub struct Port {
    qp: QueuePair,
    sent: CompletionQueue,
    came: CompletionQueue,
    memory: MemoryRegion,
    eq: EventQueue,
    ctx: Context,
    /// Send buffers that nobody uses.
    free: Vec<u64>,
    slots: usize,
    /// Addresses of the function's that are this port's: numbers from 0 on.
    macs: u32,
}

impl Port {
    /// From now on `ctx`'s function sends and receives frames, up to `slots` of each at once. It receives those to `macs` (4 at most) and to groups; without any `macs` all that the card hears.
    pub fn open(ctx: &Context, slots: usize, macs: &[Mac]) -> Result<Self, Trouble> {
        let function = ctx.capabilities().function;
        if macs.is_empty() && function != 0 {
            return Err(Trouble::NeedsMac);
        }
        let pd = ctx.alloc_pd()?;
        let eq = ctx.create_eq(8, VECTOR)?;
        let [sent, came] = [ctx.create_cq(slots, &eq)?, ctx.create_cq(slots, &eq)?];
        let memory = pd.register(vec![0; 2 * slots * SLOT].into_boxed_slice(), Access::LOCAL_WRITE)?;
        let config = QpConfig { qp_type: QpType::Raw, max_send: slots, max_recv: slots, max_send_sge: 1, max_recv_sge: 1, ..Default::default() };
        let denied = |e| match e {
            Error::Admin { status: AdminStatus::Denied, .. } => Trouble::Denied(function),
            e => e.into(),
        };
        let mut qp = pd.create_qp(&config, &sent, &came).map_err(denied)?;
        qp.to_init(Access::ALL)?;
        qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M4096, dest_qpn: 0, rq_psn: 0, min_rnr_timer: 0, repeat_nak: false, max_dest_rd_atomic: 0, path: None })?;
        qp.to_rts(&RtsAttr { sq_psn: 0, timeout: 0, retry_cnt: 0, rnr_retry: 0, max_rd_atomic: 0 })?;
        let mut port = Self { qp, sent, came, memory, eq, ctx: ctx.clone(), free: (0..slots as u64).collect(), slots, macs: 0 };
        (0..slots as u64).try_for_each(|i| port.offer(i))?;
        port.flush();
        for (number, mac) in (0..).zip(macs) {
            ctx.set_station(number, *mac).map_err(|e| match e {
                Error::Admin { status: AdminStatus::InUse, .. } => Trouble::Taken(*mac),
                e => e.into(),
            })?;
            port.macs = number + 1;
        }
        match macs {
            [] => ctx.set_promiscuous_queue(&port.qp),
            _ => ctx.set_raw_queue(Some(&port.qp)),
        }
        .map_err(denied)?;
        port.came.arm(false);
        Ok(port)
    }

    /// Receive buffer `i` takes a frame; the card hears of it with [`Port::flush`].
    fn offer(&mut self, i: u64) -> Result<(), Error> {
        let into = [sge(self.memory.addr() + i * SLOT as u64, SLOT as u32, self.memory.lkey())];
        self.qp.stage_recv(&RecvRequest { wr_id: i, sges: &into })
    }

    /// Whether a frame can be sent; takes back the buffers of those that have left.
    pub fn has_room(&mut self) -> Result<bool, Trouble> {
        while let Some(c) = self.sent.poll() {
            self.free.push(good(c)?.wr_id);
        }
        Ok(!self.free.is_empty())
    }

    /// Sends a frame of 14 to [`MAX_FRAME`] bytes, of which the card hears with [`Port::flush`]. False: every buffer is in use.
    pub fn send(&mut self, frame: &[u8]) -> Result<bool, Trouble> {
        if self.free.is_empty() && !self.has_room()? {
            return Ok(false);
        }
        let Some(i) = self.free.pop() else { return Ok(false) };
        let at = (self.slots + i as usize) * SLOT;
        let length = frame.len().max(SHORTEST);
        self.memory.write(at, frame);
        self.memory.write(at + frame.len(), &[0; SHORTEST][..length - frame.len()]);
        let from = [sge(self.memory.addr() + at as u64, length as u32, self.memory.lkey())];
        self.qp.stage_send(&SendRequest { wr_id: i, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false }, false)?;
        Ok(true)
    }

    /// The next frame that has come, if there is one, in place of what is in `frame`. Its buffer takes another one after [`Port::flush`].
    pub fn receive(&mut self, frame: &mut Vec<u8>) -> Result<Option<Completion>, Trouble> {
        let Some(c) = self.came.poll() else { return Ok(None) };
        let c = good(c)?;
        frame.resize((c.byte_len as usize).min(SLOT), 0);
        self.memory.read(c.wr_id as usize * SLOT, frame);
        self.offer(c.wr_id)?;
        Ok(Some(c))
    }

    /// The card hears of all that was sent and of all buffers that are free again.
    pub fn flush(&mut self) {
        self.qp.ring();
        self.qp.ring_recv();
    }

    /// Takes notice of interrupts: the next comes when a frame comes, or one is there already.
    pub fn listen(&mut self) {
        let mut any = false;
        while self.eq.poll().is_some() {
            any = true;
        }
        if any {
            self.came.arm(false);
        }
    }

    /// Asks for one interrupt when a frame has left, too.
    pub fn await_room(&mut self) {
        self.sent.arm(false);
    }

    /// The function whose port this is.
    pub fn context(&self) -> &Context {
        &self.ctx
    }
}

fn good(c: Completion) -> Result<Completion, Trouble> {
    match c.status {
        CqeStatus::Success => Ok(c),
        status => Err(Trouble::Failed(status)),
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // The queue pair goes behind this, and a card that does not answer keeps nobody.
        _ = self.ctx.set_raw_queue(None);
        (0..self.macs).for_each(|number| _ = self.ctx.clear_station(number));
    }
}
