//! The card's side of `ferric interop`.
use super::case::{is_atomic, name, peer_error, receives, remote, transport, Case, Lines, Remote};
use crate::party::{introduce, mac_of, pattern, Trouble};
use ferric_abi::codes::WrOpcode;
use ferric_driver::device::Device;
use ferric_driver::qp::{sge, LocalSge, Payload};
use ferric_driver::types::{Mac, Path, QpType, RtrAttr, RtsAttr};
use ferric_driver::ud::GRH_BYTES;
use ferric_driver::{
    Access, AddressHandle, AtomicOp, AtomicRequest, AtomicWriteRequest, Completion, CompletionQueue, Config, Context, CqeStatus, DatagramRequest, Error, FlushRequest, Flushed, MemoryRegion, Pd,
    QpConfig, QueuePair, ReadRequest, RecvRequest, SendRequest, Source, TunnelConfig,
};
use ferric_twin::counters;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// As in peer.c: slots of each area and bytes of a slot. Outgoing messages lie in the first area, what comes in the second.
pub(super) const SLOTS: u64 = 32;
const STRIDE: usize = 16384;
const AREA: usize = SLOTS as usize * STRIDE;
const QKEY: u32 = 0x1111_1111;
/// The peer's messages are numbered from here.
const THEIRS: u64 = 1000;
/// What atomics find first.
const START: u64 = 0x1000;

/// The card's side. Fields are dropped in this order.
pub(super) struct Bench {
    cq: CompletionQueue,
    memory: MemoryRegion,
    pd: Pd,
    _eq: ferric_driver::eq::EventQueue,
    ctx: Context,
    peer_mac: Option<Mac>,
    own: Vec<IpAddr>,
    patience: Duration,
}

impl Bench {
    /// Opens `device` and makes what all cases share. `own`: its addresses, for which it answers if it can.
    pub(super) fn open(device: Arc<dyn Device>, peer_mac: Option<Mac>, own: &[IpAddr], tunnel: Option<&TunnelConfig>, patience: Duration) -> Result<Self, Trouble> {
        let ctx = Context::open(device, Config::default())?;
        if let Some(tunnel) = tunnel {
            ctx.set_tunnel(0, tunnel)?;
        }
        for (ip, number) in own.iter().zip(0..) {
            introduce(&ctx, number, *ip)?;
        }
        let pd = ctx.alloc_pd()?;
        let eq = ctx.create_eq(8, 0)?;
        let cq = ctx.create_cq(4 * SLOTS as usize, &eq)?;
        let memory = pd.register(vec![0; 2 * AREA].into_boxed_slice(), Access::ALL)?;
        Ok(Self { cq, memory, pd, _eq: eq, ctx, peer_mac, own: own.to_vec(), patience })
    }

    /// The peer's MAC address: what was said, or what answers the card. The peer is no Ferric card, whose could be known.
    fn find(&self, c: &Case, ip: IpAddr) -> Result<Mac, Trouble> {
        if let Some(mac) = self.peer_mac {
            return Ok(mac);
        }
        let number = self.own.iter().position(|own| *own == c.ip).unwrap_or_default();
        self.ctx.resolve(number as u32, ip).map_err(|e| match e {
            Error::Unsupported(_) => peer_error(format!("{e}: say --peer-mac")),
            e => e.into(),
        })
    }

    fn piece(&self, offset: usize, len: usize) -> [LocalSge; 1] {
        [sge(self.memory.addr() + offset as u64, len as u32, self.memory.lkey())]
    }

    fn word(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.memory.to_vec(offset, 8).try_into().unwrap_or_default())
    }

    /// Whether message `n` lies at `offset`.
    fn holds(&self, offset: usize, n: u64, len: usize) -> bool {
        self.memory.to_vec(offset, len).iter().enumerate().all(|(i, b)| *b == pattern(n, i))
    }

    /// The next completion, `None` when none comes in time.
    fn completion(&mut self, patience: Duration) -> Option<Completion> {
        let start = self.ctx.device().now();
        loop {
            if let Some(c) = self.cq.poll() {
                return Some(c);
            }
            if self.ctx.device().is_gone() || self.ctx.device().now() - start > patience {
                return None;
            }
            self.cq.relax();
        }
    }

    fn prepare(&self, c: &Case) -> Result<QueuePair, Trouble> {
        for n in 0..c.count {
            let bytes: Vec<u8> = (0..c.size).map(|i| pattern(n, i)).collect();
            self.memory.write(n as usize * STRIDE, &bytes);
        }
        self.memory.write(AREA, &vec![0xee; AREA]);
        if is_atomic(c.op) {
            self.memory.write(AREA, &START.to_le_bytes());
        }
        let depth = SLOTS as usize;
        Ok(self.pd.create_qp(&QpConfig { qp_type: c.transport, max_send: depth, max_recv: depth, ..Default::default() }, &self.cq, &self.cq)?)
    }

    fn connect(&self, qp: &mut QueuePair, c: &Case, psn: u32, to: &Remote) -> Result<(), Trouble> {
        let smac = mac_of(c.ip);
        if c.transport == QpType::Ud {
            qp.to_init_ud(QKEY)?;
            qp.to_rtr_ud(c.mtu, &Source { smac, sip: c.ip, vlan: None, udp_sport: 0xc123, flow_label: 0 })?;
            qp.to_rts_ud(psn)?;
        } else {
            qp.to_init(Access::ALL)?;
            let path = Path { dmac: to.mac, smac, dip: to.ip, sip: c.ip, vlan: None, udp_sport: 0xc123, tclass: 0, hop_limit: 64, flow_label: 0 };
            qp.to_rtr(Access::ALL, &RtrAttr { mtu: c.mtu, dest_qpn: to.qpn, rq_psn: to.psn, min_rnr_timer: 18, repeat_nak: false, max_dest_rd_atomic: 8, path: Some(path) })?;
            // 1.1 s: an emulated Linux is slow, too.
            qp.to_rts(&RtsAttr { sq_psn: psn, timeout: 18, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 4 })?;
        }
        for n in 0..c.count {
            qp.post_recv(&RecvRequest { wr_id: n, sges: &self.piece(AREA + n as usize * STRIDE, STRIDE) })?;
        }
        Ok(())
    }

    fn post(&self, qp: &mut QueuePair, c: &Case, to: &Remote, n: u64) -> Result<(), Trouble> {
        let at = n as usize * STRIDE;
        let (target, rkey) = (to.addr + AREA as u64, to.rkey);
        let imm = n as u32;
        match c.op {
            _ if c.transport == QpType::Ud => {
                let (handle, from) = (AddressHandle::new(to.mac, to.ip), self.piece(at, c.size));
                qp.post_send_ud(&DatagramRequest { wr_id: n, payload: Payload::Sges(&from), to: &handle, dest_qpn: to.qpn, qkey: QKEY, imm: Some(imm), signaled: true, solicited: false })?;
            }
            WrOpcode::Read => {
                let sges = self.piece(AREA + at, c.size);
                qp.post_read(&ReadRequest { wr_id: n, sges: &sges, remote_addr: to.addr + at as u64, rkey, signaled: true, fence: false })?;
            }
            WrOpcode::FetchAdd | WrOpcode::CompareSwap => {
                let op = if c.op == WrOpcode::FetchAdd { AtomicOp::FetchAdd(n + 1) } else { AtomicOp::CompareSwap { compare: START + n, swap: START + n + 1 } };
                qp.post_atomic(&AtomicRequest { wr_id: n, op, sges: &self.piece(AREA + at, 8), remote_addr: target, rkey, signaled: true, fence: false })?;
            }
            WrOpcode::AtomicWrite => {
                let value = std::array::from_fn(|i| pattern(n, i));
                qp.post_atomic_write(&AtomicWriteRequest { wr_id: n, value, remote_addr: target + at as u64, rkey, signaled: true, fence: false })?;
            }
            WrOpcode::Flush => {
                // What is flushed is written before, and not asked for in any other way. Odd ones are of the whole region.
                let from = self.piece(at, c.size);
                qp.post_send(&SendRequest { wr_id: n, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr: target + at as u64, rkey, imm, signaled: false, solicited: false })?;
                let what = if n % 2 == 0 { Flushed::Range(c.size as u32) } else { Flushed::Region };
                qp.post_flush(&FlushRequest { wr_id: n, what, global: true, persistent: false, remote_addr: target + at as u64, rkey, signaled: true, fence: false })?;
            }
            _ => {
                let from = self.piece(at, c.size);
                qp.post_send(&SendRequest { wr_id: n, opcode: c.op, payload: Payload::Sges(&from), remote_addr: target + at as u64, rkey, imm, signaled: true, solicited: false })?;
            }
        }
        Ok(())
    }

    /// The card asks: everything posted, everything completed, answers checked.
    fn ask(&mut self, qp: &mut QueuePair, c: &Case, to: &Remote) -> Result<(), Trouble> {
        for n in 0..c.count {
            self.post(qp, c, to, n)?;
        }
        let mut before = START;
        for n in 0..c.count {
            let done = self.completion(self.patience).ok_or(Trouble::Silent(self.patience))?;
            if done.status != CqeStatus::Success || done.wr_id != n || done.is_recv {
                return Err(Trouble::Failed(done));
            }
            let at = AREA + n as usize * STRIDE;
            if c.op == WrOpcode::Read && !self.holds(at, THEIRS + n, c.size) {
                return Err(peer_error(format!("READ {n} brought other bytes")));
            }
            if is_atomic(c.op) {
                if self.word(at) != before {
                    return Err(peer_error(format!("atomic {n} found {:#x}, must be {before:#x}", self.word(at))));
                }
                before += if c.op == WrOpcode::FetchAdd { n + 1 } else { 1 };
            }
        }
        Ok(())
    }

    /// The peer has asked: how many messages are here, whole.
    fn arrived(&mut self, c: &Case) -> Result<u64, Trouble> {
        let reliable = c.transport == QpType::Rc;
        let mut got = 0;
        match c.op {
            _ if receives(c.op) => {
                let head = if c.transport == QpType::Ud { GRH_BYTES } else { 0 };
                let patience = if reliable { self.patience } else { Duration::from_secs(1) };
                while got < c.count {
                    let Some(done) = self.completion(patience) else { break };
                    let n = done.imm.map_or(got, u64::from);
                    if done.status != CqeStatus::Success || !done.is_recv {
                        return Err(Trouble::Failed(done));
                    }
                    let slot = if c.op == WrOpcode::WriteImm { n } else { done.wr_id };
                    if n >= c.count || done.byte_len as usize != c.size + head || !self.holds(AREA + slot as usize * STRIDE + head, THEIRS + n, c.size) {
                        return Err(peer_error(format!("message {n} of {} bytes is not what was sent", done.byte_len)));
                    }
                    got += 1;
                }
            }
            WrOpcode::Write | WrOpcode::Flush | WrOpcode::AtomicWrite => got = (0..c.count).filter(|n| self.holds(AREA + *n as usize * STRIDE, THEIRS + n, c.size)).count() as u64,
            WrOpcode::FetchAdd | WrOpcode::CompareSwap => {
                let want = START + if c.op == WrOpcode::FetchAdd { c.count * (c.count + 1) / 2 } else { c.count };
                if self.word(AREA) != want {
                    return Err(peer_error(format!("the value is {:#x} after all atomics, must be {want:#x}", self.word(AREA))));
                }
                got = c.count;
            }
            _ => got = c.count,
        }
        if reliable && got != c.count {
            return Err(peer_error(format!("{got} of {} messages are here", c.count)));
        }
        Ok(got)
    }

    /// Plays a case; how many messages arrived.
    pub(super) fn play(&mut self, c: &Case, lines: &mut Lines) -> Result<u64, Trouble> {
        let mut qp = self.prepare(c)?;
        let psn = 0xff_fff8 ^ qp.qpn() & 7;
        let gid = match c.ip {
            IpAddr::V4(a) => a.to_ipv6_mapped(),
            IpAddr::V6(a) => a,
        };
        let (me, family) = (u8::from(!c.card_asks), if c.ip.is_ipv4() { 4 } else { 6 });
        let mine = format!("{:x} {psn:x} {:032x} {:x} {:x}", qp.qpn(), u128::from(gid), self.memory.addr(), self.memory.rkey());
        lines.say(&format!("case {} {} {me} {} {family} {} {} {mine}", transport(c.transport), name(c.op), c.mtu.bytes(), c.count, c.size))?;
        let to = remote(&lines.hear("ready")?, |ip| self.find(c, ip))?;
        self.connect(&mut qp, c, psn, &to)?;
        if c.card_asks {
            self.ask(&mut qp, c, &to)?;
            lines.say(&format!("check {}", c.count))?;
            let words = lines.hear("ok")?;
            return words.first().and_then(|w| w.parse().ok()).ok_or_else(|| peer_error("the peer does not say how many messages arrived"));
        }
        lines.say("go")?;
        lines.hear("done")?;
        self.arrived(c)
    }

    /// Frames received and sent so far.
    pub(super) fn frames(&self) -> Result<[u64; 2], Trouble> {
        let names = counters::NAMES;
        let values = self.ctx.counters(0, names.len() as u32)?;
        let of = |name: &str| names.iter().position(|n| *n == name).map_or(0, |i| values[i]);
        Ok([of(RECEIVED), of(SENT)])
    }
}

const RECEIVED: &str = "rx.rx_roce";
const SENT: &str = "egress.tx_frames";
