//! `ferric capture`: frames that no RDMA block of a card wants, as a pcapng.
use ferric_driver::device::Device;
use ferric_driver::eq::EventQueue;
use ferric_driver::qp::sge;
use ferric_driver::types::{Mtu, QpType, RtrAttr, RtsAttr};
use ferric_driver::{Access, CompletionQueue, Config, Context, CqeStatus, MemoryRegion, QpConfig, QueuePair, RecvRequest};
use ferric_sim::capture::Capture;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Receive buffers, and bytes of each: a jumbo frame.
const BUFFERS: usize = 64;
const BYTES: usize = 9216;

/// A promiscuous raw queue pair and the file that its frames go to.
pub struct Taker {
    file: Capture,
    start: Instant,
    // What comes first goes first.
    qp: QueuePair,
    cq: CompletionQueue,
    memory: MemoryRegion,
    _eq: EventQueue,
    ctx: Context,
}

impl Taker {
    /// From now on `ctx`'s function gets what no RDMA block wants, and it goes to `out`.
    pub fn new(ctx: &Context, out: &Path) -> Result<Self, Box<dyn Error>> {
        let file = Capture::create(out)?;
        let pd = ctx.alloc_pd()?;
        let eq = ctx.create_eq(8, 0)?;
        let cq = ctx.create_cq(2 * BUFFERS, &eq)?;
        let memory = pd.register(vec![0; BUFFERS * BYTES].into_boxed_slice(), Access::LOCAL_WRITE)?;
        let mut qp = pd.create_qp(&QpConfig { qp_type: QpType::Raw, max_recv: BUFFERS, ..Default::default() }, &cq, &cq)?;
        qp.to_init(Access::ALL)?;
        qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M4096, dest_qpn: 0, rq_psn: 0, min_rnr_timer: 0, repeat_nak: false, max_dest_rd_atomic: 0, path: None })?;
        qp.to_rts(&RtsAttr { sq_psn: 0, timeout: 0, retry_cnt: 0, rnr_retry: 0, max_rd_atomic: 0 })?;
        let mut taker = Self { file, start: Instant::now(), qp, cq, memory, _eq: eq, ctx: ctx.clone() };
        (0..BUFFERS as u64).try_for_each(|i| taker.post(i))?;
        taker.ctx.set_promiscuous_queue(&taker.qp)?;
        Ok(taker)
    }

    fn post(&mut self, i: u64) -> Result<(), ferric_driver::Error> {
        let into = [sge(self.memory.addr() + i * BYTES as u64, BYTES as u32, self.memory.lkey())];
        self.qp.post_recv(&RecvRequest { wr_id: i, sges: &into })
    }

    /// Takes all frames that there are; how many, and they are in the file.
    pub fn take_all(&mut self) -> Result<u64, Box<dyn Error>> {
        let mut taken = 0;
        while self.take()? {
            taken += 1;
        }
        if taken > 0 {
            self.file.flush()?;
        }
        Ok(taken)
    }

    /// Takes a frame, if there is one; whether there was.
    pub fn take(&mut self) -> Result<bool, Box<dyn Error>> {
        let Some(c) = self.cq.poll() else { return Ok(false) };
        if c.status != CqeStatus::Success {
            return Err(format!("a receive ended with {:?}", c.status).into());
        }
        let frame = self.memory.to_vec(c.wr_id as usize * BYTES, (c.byte_len as usize).min(BYTES));
        self.file.frame_at(self.start.elapsed().as_nanos() as u64, 2, &frame)?;
        self.post(c.wr_id)?;
        Ok(true)
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        // The queue pair goes behind this, and a card that does not answer keeps nobody.
        _ = self.ctx.set_raw_queue(None);
    }
}

/// Writes up to `count` frames, or for `limit`; gives how many.
pub fn run(device: Arc<dyn Device>, out: &Path, count: u64, limit: Duration) -> Result<u64, Box<dyn Error>> {
    let ctx = Context::open(device, Config::default())?;
    let mut taker = Taker::new(&ctx, out)?;
    let start = Instant::now();
    let mut taken = 0;
    while taken < count && start.elapsed() < limit {
        match taker.take()? {
            true => taken += 1,
            false => ctx.device().relax(),
        }
    }
    Ok(taken)
}
