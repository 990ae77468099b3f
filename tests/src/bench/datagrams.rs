//! 64-byte datagrams, every one received and verified.
use super::scenario::traced;
use crate::pair::{Error, Pair};
use crate::traffic::pattern;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::{Mtu, QpType};
use ferric_driver::ud::GRH_BYTES;
use ferric_driver::{
    Access, AddressHandle, CompletionQueue, CqeStatus, DatagramRequest, MemoryRegion, QpConfig, QueuePair, RecvRequest, Source,
};
use std::path::Path;

/// Bytes of a datagram, and of a slot for one with its GRH area.
const SIZE: usize = 64;
const SLOT: usize = 128;
const QKEY: u32 = 0x0bad_cafe;

/// One sender and one receiver; datagrams have no acknowledges, so no more are on their way than there are receives.
struct Stream {
    qps: [QueuePair; 2],
    cqs: [CompletionQueue; 2],
    src: MemoryRegion,
    dst: MemoryRegion,
    to: AddressHandle,
    window: u64,
    posted: u64,
    receives: u64,
    sent: u64,
    received: u64,
}

impl Stream {
    fn new(pair: &Pair, window: usize) -> Result<Self, Error> {
        let cqs = [pair.hosts[0].cq(4 * window)?, pair.hosts[1].cq(4 * window)?];
        let config = QpConfig { qp_type: QpType::Ud, max_send: window, max_recv: window, max_send_sge: 1, max_recv_sge: 1, max_inline: 0, ..Default::default() };
        let make = |h: usize| -> Result<QueuePair, Error> {
            let host = &pair.hosts[h];
            let mut qp = host.pd.create_qp(&config, &cqs[h], &cqs[h])?;
            qp.to_init_ud(QKEY)?;
            qp.to_rtr_ud(Mtu::M4096, &Source { smac: host.mac(), sip: host.ip(false), vlan: None, udp_sport: 0xc000, flow_label: 0 })?;
            qp.to_rts_ud(0)?;
            Ok(qp)
        };
        let qps = [make(0)?, make(1)?];
        let src = pair.hosts[0].region(SLOT * window, Access::ALL)?;
        let dst = pair.hosts[1].region(SLOT * window, Access::ALL)?;
        let to = AddressHandle::new(pair.hosts[1].mac(), pair.hosts[1].ip(false));
        Ok(Self { qps, cqs, src, dst, to, window: window as u64, posted: 0, receives: 0, sent: 0, received: 0 })
    }

    /// One round; true when `count` datagrams have arrived.
    fn advance(&mut self, count: u64) -> Result<bool, Error> {
        while self.receives < count && self.receives - self.received < self.window {
            let at = (self.receives % self.window) * SLOT as u64;
            let into = [sge(self.dst.addr() + at, (SIZE + GRH_BYTES) as u32, self.dst.lkey())];
            self.qps[1].post_recv(&RecvRequest { wr_id: self.receives, sges: &into })?;
            self.receives += 1;
        }
        while self.posted < self.receives && self.posted - self.sent < self.window {
            let at = (self.posted % self.window) as usize * SLOT;
            let bytes: Vec<u8> = (0..SIZE).map(|i| pattern(self.posted, i)).collect();
            self.src.write(at, &bytes);
            let from = [sge(self.src.addr() + at as u64, SIZE as u32, self.src.lkey())];
            self.qps[0].post_send_ud(&DatagramRequest {
                wr_id: self.posted, payload: Payload::Sges(&from), to: &self.to, dest_qpn: self.qps[1].qpn(), qkey: QKEY, imm: None, signaled: true,
                solicited: false,
            })?;
            self.posted += 1;
        }
        while let Some(c) = self.cqs[0].poll() {
            if c.status != CqeStatus::Success {
                return Err(Error::Stuck(format!("datagram {}: {c:?}", c.wr_id)));
            }
            self.sent += 1;
        }
        while let Some(c) = self.cqs[1].poll() {
            let at = (c.wr_id % self.window) as usize * SLOT + GRH_BYTES;
            let right = self.dst.to_vec(at, SIZE).iter().enumerate().all(|(i, b)| *b == pattern(c.wr_id, i));
            if c.status != CqeStatus::Success || c.wr_id != self.received || !right {
                return Err(Error::Stuck(format!("datagram {} arrived as {c:?}, its bytes are {}", self.received, if right { "right" } else { "wrong" })));
            }
            self.received += 1;
        }
        Ok(self.received == count && self.sent == count)
    }
}

fn run(pair: &Pair, streams: &mut [Stream], count: u64) -> Result<(), Error> {
    let end = pair.world().cycle() + 4_000 * count;
    loop {
        let mut all = true;
        for s in streams.iter_mut() {
            all &= s.advance(count)?;
        }
        if all {
            return Ok(());
        }
        if pair.world().cycle() > end {
            return Err(Error::Stuck("datagrams are missing".into()));
        }
        pair.world().run(16);
    }
}

/// Datagrams of 64 bytes on `qps` queue pairs, one direction. Returns how many were traced.
pub fn datagrams(pair: &Pair, qps: usize, path: &Path) -> Result<u64, Error> {
    let (warm, count) = (32, 160);
    let mut streams = (0..qps).map(|_| Stream::new(pair, 32)).collect::<Result<Vec<_>, _>>()?;
    run(pair, &mut streams, warm)?;
    traced(pair, path, || run(pair, &mut streams, count))?;
    Ok(qps as u64 * (count - warm))
}
