//! Raw queue pairs: frames that are not RoCE, sent and received by tests.

use crate::pair::{Host, Pair};
use ferric_abi::codes::WrOpcode;
use ferric_abi::switch::Exception;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::switch::exception;
use ferric_driver::types::{Mtu, QpType, RtrAttr, RtsAttr};
use ferric_driver::{Access, Completion, CompletionQueue, CqeStatus, Error, MemoryRegion, QpConfig, QueuePair, RecvRequest, SendRequest};

/// Receives of a raw queue pair, and bytes of one.
pub const RECEIVES: usize = 64;
const ROOM: usize = 2048;
/// Cycles in which a frame has been read.
const PATIENCE: u64 = 400_000;

/// A function's raw queue pair.
pub struct Raw {
    sent: CompletionQueue,
    came: CompletionQueue,
    /// The queue pair, for the driver.
    pub qp: QueuePair,
    memory: MemoryRegion,
}

/// The raw queue pair of a function, named as the one that gets its frames. Errors: those of the driver.
pub fn raw(host: &Host) -> Result<Raw, Error> {
    let [sent, came] = [host.cq(16).unwrap(), host.cq(2 * RECEIVES).unwrap()];
    let memory = host.region((RECEIVES + 1) * ROOM, Access::LOCAL_WRITE).unwrap();
    let mut qp = host.pd.create_qp(&QpConfig { qp_type: QpType::Raw, max_recv: RECEIVES, ..Default::default() }, &sent, &came)?;
    qp.to_init(Access::ALL)?;
    qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M4096, dest_qpn: 0, rq_psn: 0, min_rnr_timer: 0, repeat_nak: false, max_dest_rd_atomic: 0, path: None })?;
    qp.to_rts(&RtsAttr { sq_psn: 0, timeout: 0, retry_cnt: 0, rnr_retry: 0, max_rd_atomic: 0 })?;
    host.ctx.set_raw_queue(Some(&qp))?;
    Ok(Raw { sent, came, qp, memory })
}

impl Raw {
    /// Buffer `n` takes a frame.
    fn receive(&mut self, n: usize) {
        let into = [sge(self.memory.addr() + (n * ROOM) as u64, ROOM as u32, self.memory.lkey())];
        self.qp.post_recv(&RecvRequest { wr_id: n as u64, sges: &into }).unwrap();
    }

    /// All its buffers take frames.
    pub fn listening(mut self) -> Self {
        (0..RECEIVES).for_each(|n| self.receive(n));
        self
    }

    /// Sends a frame and waits until the card has read it.
    pub fn send(&mut self, pair: &Pair, frame: &[u8]) {
        let at = RECEIVES * ROOM;
        self.memory.write(at, frame);
        let from = [sge(self.memory.addr() + at as u64, frame.len() as u32, self.memory.lkey())];
        self.qp.post_send(&SendRequest { wr_id: u64::MAX, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false }).unwrap();
        // It has been read. Nobody says whether it has gone.
        let done = pair.wait(&mut self.sent, PATIENCE).unwrap();
        assert_eq!((done.wr_id, done.status), (u64::MAX, CqeStatus::Success));
    }

    /// What has come, in order; its buffers may be filled again.
    pub fn heard(&mut self) -> Vec<Vec<u8>> {
        self.told().into_iter().map(|(frame, _)| frame).collect()
    }

    /// The same, and what the flow tables say of each.
    pub fn told(&mut self) -> Vec<(Vec<u8>, Option<Exception>)> {
        let came: Vec<_> = std::iter::from_fn(|| self.came.poll()).collect();
        let mut frame = |done: &Completion| {
            assert_eq!(done.status, CqeStatus::Success);
            let frame = self.memory.to_vec(done.wr_id as usize * ROOM, done.byte_len as usize);
            self.receive(done.wr_id as usize);
            (frame, exception(done))
        };
        came.iter().map(&mut frame).collect()
    }
}
