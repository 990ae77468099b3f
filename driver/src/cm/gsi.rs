//! The general services queue pair as a transport of MADs, and the communication manager over it.
use super::machine::Cm;
use super::wire::MAD_BYTES;
use crate::context::{Context, Pd};
use crate::cq::CompletionQueue;
use crate::eq::EventQueue;
use crate::error::{Error, Result};
use crate::mr::{Access, MemoryRegion};
use crate::qp::{sge, Payload, QpConfig, QueuePair, RecvRequest};
use crate::types::{CqeStatus, Mac, Mtu};
use crate::ud::{AddressHandle, DatagramRequest, Grh, Source, GRH_BYTES, GSI_QKEY, GSI_QPN, QKEY_OWN};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Receives and sends that may be outstanding.
const DEPTH: usize = 32;
/// A receive: GRH area and MAD.
const SLOT: usize = 512;

/// The function's queue pair 1: sends and receives MADs of 256 bytes.
pub struct Gsi {
    qp: QueuePair,
    cq: CompletionQueue,
    received: MemoryRegion,
    outgoing: MemoryRegion,
    free: Vec<usize>,
    /// More than the queue holds.
    waiting: VecDeque<(AddressHandle, [u8; MAD_BYTES])>,
}

impl Gsi {
    /// Takes the function's queue pair 1; MADs come from `source`, which on a function but the physical one must be an address that [`Context::set_address`] has made its own.
    pub fn open(ctx: &Context, pd: &Pd, eq: &EventQueue, source: &Source) -> Result<Self> {
        let cq = ctx.create_cq(2 * DEPTH, eq)?;
        let config = QpConfig { max_send: DEPTH, max_recv: DEPTH, max_send_sge: 1, max_recv_sge: 1, max_inline: 0, ..Default::default() };
        let mut qp = pd.create_gsi(&config, &cq, &cq)?;
        qp.to_init_ud(GSI_QKEY)?;
        qp.to_rtr_ud(Mtu::M256, source)?;
        qp.to_rts_ud(0)?;
        let received = pd.register(vec![0; DEPTH * SLOT].into_boxed_slice(), Access { local_write: true, ..Access::default() })?;
        let outgoing = pd.register(vec![0; DEPTH * MAD_BYTES].into_boxed_slice(), Access::default())?;
        let mut gsi = Self { qp, cq, received, outgoing, free: (0..DEPTH).collect(), waiting: VecDeque::new() };
        for slot in 0..DEPTH {
            gsi.offer(slot)?;
        }
        Ok(gsi)
    }

    fn offer(&mut self, slot: usize) -> Result<()> {
        let into = [sge(self.received.addr() + (slot * SLOT) as u64, (GRH_BYTES + MAD_BYTES) as u32, self.received.lkey())];
        self.qp.post_recv(&RecvRequest { wr_id: slot as u64, sges: &into })
    }

    /// Sends a MAD to queue pair 1 of a machine, as soon as there is room.
    pub fn send(&mut self, to: &AddressHandle, mad: &[u8; MAD_BYTES]) -> Result<()> {
        self.waiting.push_back((*to, *mad));
        self.push()
    }

    fn push(&mut self) -> Result<()> {
        while let (Some(slot), false) = (self.free.last().copied(), self.waiting.is_empty()) {
            let Some((to, mad)) = self.waiting.pop_front() else { break };
            self.outgoing.write(slot * MAD_BYTES, &mad);
            let from = [sge(self.outgoing.addr() + (slot * MAD_BYTES) as u64, MAD_BYTES as u32, self.outgoing.lkey())];
            self.qp.post_send_ud(&DatagramRequest { wr_id: slot as u64, payload: Payload::Sges(&from), to: &to, dest_qpn: GSI_QPN, qkey: QKEY_OWN, imm: None, signaled: true, solicited: true })?;
            self.free.pop();
        }
        Ok(())
    }

    /// The next MAD that has come, and from where.
    pub fn poll(&mut self) -> Result<Option<(Grh, [u8; MAD_BYTES])>> {
        while let Some(c) = self.cq.poll() {
            let slot = c.wr_id as usize;
            if !c.is_recv {
                if c.status != CqeStatus::Success {
                    return Err(Error::State);
                }
                self.free.push(slot);
                self.push()?;
                continue;
            }
            let bytes = self.received.to_vec(slot * SLOT, GRH_BYTES + MAD_BYTES);
            if c.status == CqeStatus::WrFlush {
                return Err(Error::State);
            }
            self.offer(slot)?;
            let grh = bytes[..GRH_BYTES].try_into().ok().and_then(Grh::parse);
            let mad = bytes[GRH_BYTES..].try_into().ok();
            // Anything but a whole MAD of another machine's queue pair 1 is nobody's business here.
            let whole = c.status == CqeStatus::Success && c.src_qp == GSI_QPN && c.byte_len as usize == GRH_BYTES + MAD_BYTES;
            if let (Some(grh), Some(mad), true) = (grh, mad, whole) {
                return Ok(Some((grh, mad)));
            }
        }
        Ok(None)
    }

    /// Waits a little: for loops around [`CmPort::progress`].
    pub fn relax(&self) {
        self.cq.relax();
    }
}

/// A port's communication manager. `progress` must be called now and then.
pub struct CmPort {
    /// The state machine: connect, listen, accept and so on.
    pub cm: Cm,
    gsi: Gsi,
    /// MAC address of a neighbour: what its user knows, or has the card find ([`Context::resolve`]).
    neighbour: Box<dyn Fn(IpAddr) -> Option<Mac> + Send>,
    device: std::sync::Arc<dyn crate::Device>,
}

impl CmPort {
    /// Runs `cm` over queue pair 1.
    pub fn new(ctx: &Context, gsi: Gsi, cm: Cm, neighbour: Box<dyn Fn(IpAddr) -> Option<Mac> + Send>) -> Self {
        Self { cm, gsi, neighbour, device: ctx.device().clone() }
    }

    /// Time of the device, as [`Cm`] wants it.
    pub fn now(&self) -> std::time::Duration {
        self.device.now()
    }

    /// An address handle for a neighbour.
    pub fn address(&self, ip: IpAddr) -> Result<AddressHandle> {
        let mac = (self.neighbour)(ip).ok_or(Error::Invalid("no MAC address is known for the destination"))?;
        Ok(AddressHandle::new(mac, ip))
    }

    /// Takes what has come, sends what is due.
    pub fn progress(&mut self) -> Result<()> {
        let now = self.now();
        while let Some((grh, mad)) = self.gsi.poll()? {
            match self.address(grh.sip) {
                Ok(from) => self.cm.receive(now, from, &mad),
                Err(e) => log::warn!("MAD from {}: {e}", grh.sip),
            }
        }
        self.cm.tick(now);
        for (to, mad) in self.cm.take_outgoing() {
            self.gsi.send(&to, &mad)?;
        }
        Ok(())
    }

    /// Waits a little.
    pub fn relax(&self) {
        self.gsi.relax();
    }
}
