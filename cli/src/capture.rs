//! `ferric capture`: frames that no RDMA block of a card wants, as a pcapng.
use ferric_driver::device::Device;
use ferric_driver::qp::sge;
use ferric_driver::types::{Mtu, QpType, RtrAttr, RtsAttr};
use ferric_driver::{Access, Config, Context, CqeStatus, QpConfig, RecvRequest};
use ferric_sim::capture::Capture;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Receive buffers, and bytes of each: a jumbo frame.
const BUFFERS: usize = 64;
const BYTES: usize = 9216;

/// Writes up to `count` frames, or for `limit`; gives how many.
pub fn run(device: Arc<dyn Device>, out: &Path, count: u64, limit: Duration) -> Result<u64, Box<dyn Error>> {
    let mut file = Capture::create(out)?;
    let ctx = Context::open(device, Config::default())?;
    let pd = ctx.alloc_pd()?;
    let eq = ctx.create_eq(8, 0)?;
    let mut cq = ctx.create_cq(2 * BUFFERS, &eq)?;
    let memory = pd.register(vec![0; BUFFERS * BYTES].into_boxed_slice(), Access::LOCAL_WRITE)?;
    let mut qp = pd.create_qp(&QpConfig { qp_type: QpType::Raw, max_recv: BUFFERS, ..Default::default() }, &cq, &cq)?;
    qp.to_init(Access::ALL)?;
    qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M4096, dest_qpn: 0, rq_psn: 0, min_rnr_timer: 0, repeat_nak: false, max_dest_rd_atomic: 0, path: None })?;
    qp.to_rts(&RtsAttr { sq_psn: 0, timeout: 0, retry_cnt: 0, rnr_retry: 0, max_rd_atomic: 0 })?;
    let post = |qp: &mut ferric_driver::QueuePair, i: u64| {
        let into = [sge(memory.addr() + i * BYTES as u64, BYTES as u32, memory.lkey())];
        qp.post_recv(&RecvRequest { wr_id: i, sges: &into })
    };
    (0..BUFFERS as u64).try_for_each(|i| post(&mut qp, i))?;
    ctx.set_promiscuous_queue(&qp)?;
    let start = Instant::now();
    let mut taken = 0;
    while taken < count && start.elapsed() < limit {
        let Some(c) = cq.poll() else {
            ctx.device().relax();
            continue;
        };
        if c.status != CqeStatus::Success {
            return Err(format!("a receive ended with {:?}", c.status).into());
        }
        let frame = memory.to_vec(c.wr_id as usize * BYTES, (c.byte_len as usize).min(BYTES));
        file.frame_at(start.elapsed().as_nanos() as u64, 2, &frame)?;
        taken += 1;
        post(&mut qp, c.wr_id)?;
    }
    ctx.set_raw_queue(None)?;
    Ok(taken)
}
