//! The simulated card's datagram queue pair, driven through the driver's verbs.
use super::card::CardWorld;
use super::error::Result;
use super::ud::{Datagrams, Event, Outgoing, UdSetup, FILL};
use ferric_driver::eq::EventQueue;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::QpType;
use ferric_driver::{Access, CompletionQueue, Config, Context, DatagramRequest, MemoryRegion, Pd, QpConfig, QueuePair, RecvRequest};
use ferric_sim::{CardConfig, SimDevice};
use std::collections::VecDeque;

/// One card with one datagram queue pair. Fields drop in order: objects before their context, the world last.
pub struct CardDatagrams {
    qp: QueuePair,
    /// Of sends, for as long as the run lasts, and of receives.
    sources: Vec<MemoryRegion>,
    buffers: VecDeque<MemoryRegion>,
    cq: CompletionQueue,
    _eq: EventQueue,
    pd: Pd,
    world: CardWorld,
}

impl CardDatagrams {
    /// A queue pair that is ready to send.
    pub fn new(card: &CardConfig, setup: &UdSetup) -> Result<Self> {
        let world = CardWorld::new(card)?;
        let ctx = Context::open(SimDevice::new(&world.world, 0, 0), Config::default())?;
        let pd = ctx.alloc_pd()?;
        let eq = ctx.create_eq(6, 0)?;
        let cq = ctx.create_cq(64, &eq)?;
        let mut qp = pd.create_qp(&QpConfig { qp_type: QpType::Ud, max_inline: 128, ..Default::default() }, &cq, &cq)?;
        qp.to_init_ud(setup.qkey)?;
        qp.to_rtr_ud(setup.mtu, &setup.source)?;
        qp.to_rts_ud(setup.sq_psn)?;
        Ok(Self { qp, sources: Vec::new(), buffers: VecDeque::new(), cq, _eq: eq, pd, world })
    }
}

impl Datagrams for CardDatagrams {
    fn qpn(&self) -> u32 {
        self.qp.qpn()
    }
    fn send(&mut self, d: &Outgoing) -> Result<()> {
        let request = DatagramRequest { wr_id: d.id, payload: Payload::Inline(&d.data), to: &d.to, dest_qpn: d.dest_qpn, qkey: d.qkey, imm: d.imm, signaled: true, solicited: d.solicited };
        if d.data.is_empty() {
            return Ok(self.qp.post_send_ud(&DatagramRequest { payload: Payload::Sges(&[]), ..request })?);
        }
        // Every other short one goes inline, so that both ways are used.
        if d.data.len() <= 128 && d.id % 2 == 0 {
            return Ok(self.qp.post_send_ud(&request)?);
        }
        let region = self.pd.register(d.data.clone().into_boxed_slice(), Access::ALL)?;
        let cut = d.data.len() / 3;
        let from = [sge(region.addr(), cut as u32, region.lkey()), sge(region.addr() + cut as u64, (d.data.len() - cut) as u32, region.lkey())];
        self.qp.post_send_ud(&DatagramRequest { payload: Payload::Sges(&from), ..request })?;
        self.sources.push(region);
        Ok(())
    }
    fn post_recv(&mut self, id: u64, len: usize) -> Result<()> {
        let region = self.pd.register(vec![FILL; len].into_boxed_slice(), Access::ALL)?;
        // Cut where the area ends, or somewhere within.
        let cut = if id % 2 == 0 { 40 } else { 33 + id as usize % 20 }.min(len);
        let into = [sge(region.addr(), cut as u32, region.lkey()), sge(region.addr() + cut as u64, (len - cut) as u32, region.lkey())];
        self.qp.post_recv(&RecvRequest { wr_id: id, sges: &into })?;
        self.buffers.push_back(region);
        self.settle();
        Ok(())
    }
    fn receive(&mut self, frame: &[u8]) {
        self.world.receive(frame);
    }
    fn settle(&mut self) {
        self.world.settle();
    }
    fn take_frames(&mut self) -> Vec<Vec<u8>> {
        self.world.take_frames().into_iter().map(|(_, bytes)| bytes).collect()
    }
    fn poll(&mut self) -> Option<Event> {
        let c = self.cq.poll()?;
        let buffer = if c.is_recv { self.buffers.pop_front().map(|r| r.to_vec(0, r.len())) } else { None };
        Some(Event { id: c.wr_id, recv: c.is_recv, status: c.status, len: c.byte_len, imm: c.imm, solicited: c.solicited, src_qp: c.src_qp, grh: c.grh, buffer: buffer.unwrap_or_default() })
    }
}

/// For [`super::endpoint::Factory`].
pub fn build(card: &CardConfig, setup: &UdSetup) -> Result<Box<dyn Datagrams>> {
    Ok(Box::new(CardDatagrams::new(card, setup)?))
}
