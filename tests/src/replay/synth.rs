//! Captures made here: two golden models joined by a relay with faults, logged as the relay of the captures in tests/captures does it,
//! and existing captures carried over to IPv6 or a VLAN. For path MTUs and addresses the recorded set does not have.
use super::capture::Packet;
use super::endpoint::{timeout_ticks, Endpoint, Flush, Post, Region, RegionSpec, Setup, Slice};
use super::error::{Error, Result};
use super::frame::{Frame, Ip, Kind};
use super::golden::Golden;
use ferric_abi::wire::{Feth, Ipv6, Vlan};
use ferric_driver::types::{Mac, Mtu, Path};
use ferric_driver::Access;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A message of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// SEND, WRITE, READ request, FLUSH or ATOMIC WRITE.
    pub kind: Kind,
    /// Bytes; of a FLUSH 0 is the whole region.
    pub len: usize,
    /// Immediate data (with solicited event).
    pub imm: Option<u32>,
    /// Offset from the start of the remote region; beyond its end is refused.
    pub offset: u64,
    /// XORed to the remote key.
    pub key: u32,
    /// The remote region: 0, or one that may be invalidated.
    pub region: usize,
    /// A SEND invalidates that region's key.
    pub invalidate: bool,
}

impl Step {
    /// A plain message.
    pub fn new(kind: Kind, len: usize) -> Self {
        Self { kind, len, imm: None, offset: 0, key: 0, region: 0, invalidate: false }
    }
}

/// What the relay does to frame `n` (from 1) of machine `from`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Lost.
    Drop(usize, usize),
    /// Every frame of this machine is lost.
    DropAll(usize),
    /// Delivered twice.
    Duplicate(usize, usize),
    /// Delivered after the next frame.
    Swap(usize, usize),
    /// Delivered with a flipped bit.
    Corrupt(usize, usize),
}

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Path MTU.
    pub mtu: Mtu,
    /// IPv6.
    pub v6: bool,
    /// 802.1Q tag control information.
    pub vlan: Option<u16>,
    /// First PSN of machine 0.
    pub psn: u32,
    /// ACK timeout exponent and retries.
    pub timeout: (u8, u8),
    /// RNR retries.
    pub rnr_retry: u8,
    /// Messages of machine 0.
    pub steps: Vec<Step>,
    /// Post everything at once instead of one after the other.
    pub pipelined: bool,
    /// RNR NAKs before receives are posted.
    pub late: usize,
    /// Fault.
    pub fault: Fault,
}

impl Scenario {
    /// A scenario without faults.
    pub fn new(mtu: Mtu, steps: Vec<Step>) -> Self {
        Self { mtu, v6: false, vlan: None, psn: 0x123456, timeout: (14, 7), rnr_retry: 7, steps, pipelined: false, late: 0, fault: Fault::None }
    }

    fn setup(&self, side: usize) -> Setup {
        let ip = |n: u8| -> IpAddr {
            if self.v6 {
                Ipv6Addr::new(0xfe80, 0, 0, 0, 0x5054, 0xff, 0xfe00, n as u16).into()
            } else {
                Ipv4Addr::new(10, 9, 0, n).into()
            }
        };
        let mac = |n: u8| Mac([0x52, 0x54, 0, 0, 0, n]);
        let (me, peer) = ([1, 2][side], [2, 1][side]);
        let psn = [self.psn, self.psn ^ 0x765];
        Setup {
            path: Path { dmac: mac(peer), smac: mac(me), dip: ip(peer), sip: ip(me), vlan: self.vlan, udp_sport: 0xc123, tclass: 0, hop_limit: 64, flow_label: 0 },
            mtu: self.mtu,
            peer_qpn: super::golden::QPN,
            sq_psn: psn[side],
            rq_psn: psn[1 - side],
            timeout: self.timeout.0,
            retry_cnt: self.timeout.1,
            rnr_retry: self.rnr_retry,
            min_rnr_timer: 12,
            access: Access::ALL,
            depth: self.steps.len() + 1,
            unreliable: false,
        }
    }

    /// Runs the scenario and gives what the relay logged.
    pub fn record(&self) -> Result<Vec<Packet>> {
        Play::new(self)?.run()
    }
}

struct Play<'a> {
    scenario: &'a Scenario,
    ends: [Golden; 2],
    buffers: [Region; 2],
    /// Regions of machine 1: its buffer, and those that may be invalidated.
    remote: Vec<Region>,
    /// Frames on their way, per sender.
    wire: [VecDeque<Vec<u8>>; 2],
    counts: [usize; 2],
    held: Option<Vec<u8>>,
    log: Vec<Packet>,
    /// Ticks passed, and a counter that keeps stamps apart.
    now: u64,
    serial: u64,
    rnr_naks: usize,
}

const BUFFER: usize = 1 << 17;

impl<'a> Play<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self> {
        let mut ends = [0, 1].map(|s| Golden::new(&scenario.setup(s), None));
        let spec = RegionSpec::new(BUFFER, Access::ALL);
        let mut regions = Vec::new();
        for e in &mut ends {
            let r = e.register(&spec)?;
            let fill: Vec<u8> = (0..BUFFER).map(|i| (7 * i + (i >> 8) + scenario.mtu.bytes()) as u8).collect();
            e.write_memory(&r, 0, &fill);
            regions.push(r);
        }
        let buffers = [regions[0], regions[1]];
        let mut remote = vec![buffers[1]];
        for _ in 0..scenario.steps.iter().map(|s| s.region).max().unwrap_or(0) {
            remote.push(ends[1].register(&RegionSpec { fast: true, ..spec })?);
        }
        Ok(Self { scenario, ends, buffers, remote, wire: Default::default(), counts: [0; 2], held: None, log: Vec::new(), now: 0, serial: 0, rnr_naks: 0 })
    }

    fn post(&mut self, n: usize) -> Result<()> {
        let s = self.scenario.steps[n];
        let local = (s.len > 0 && s.kind != Kind::Flush).then_some(Slice { region: self.buffers[0], offset: n, len: s.len });
        // Visible to all.
        let feth = Feth::default().with_placement(1).with_selectivity(u8::from(s.len == 0));
        let flush = (s.kind == Kind::Flush).then_some(Flush { feth, len: s.len as u32 });
        let remote = (self.remote[s.region].addr + s.offset, self.remote[s.region].key ^ s.key);
        let invalidate = s.invalidate.then_some(remote.1);
        self.ends[0].post_send(&Post { id: n as u64, kind: s.kind, operands: (0, 0), imm: s.imm, invalidate, solicited: s.imm.is_some(), local, remote, flush })
    }

    fn receives(&mut self) -> Result<()> {
        for (n, s) in self.scenario.steps.iter().enumerate() {
            if s.kind == Kind::Send || s.imm.is_some() {
                let place = Slice { region: self.buffers[1], offset: BUFFER / 2, len: BUFFER / 2 };
                self.ends[1].post_recv(n as u64, Some(place))?;
            }
        }
        Ok(())
    }

    fn note(&mut self, from: usize, bytes: &[u8], comment: &str) {
        self.serial += 1;
        let comment = if comment.is_empty() { String::new() } else { format!("relay: {comment}") };
        self.log.push(Packet { time: self.now * 1024 + self.serial * 100, bytes: bytes.to_vec(), comment, direction: from as u32 + 1 });
    }

    fn collect(&mut self) {
        for side in 0..2 {
            self.wire[side].extend(self.ends[side].take_frames().into_iter().map(|(_, f)| f));
        }
    }

    /// Carries one frame of machine `from`.
    fn carry(&mut self, from: usize) -> bool {
        let Some(frame) = self.wire[from].pop_front() else { return false };
        self.counts[from] += 1;
        let n = self.counts[from];
        let to = 1 - from;
        if from == 1 && Frame::decode(&frame).ok().flatten().and_then(|f| f.aeth).is_some_and(|a| a.syndrome() >> 5 == 1) {
            self.rnr_naks += 1;
        }
        match self.scenario.fault {
            Fault::Drop(f, k) if (f, k) == (from, n) => self.note(from, &frame, "DROPPED, never delivered"),
            Fault::DropAll(f) if f == from => self.note(from, &frame, "DROPPED, never delivered"),
            Fault::Duplicate(f, k) if (f, k) == (from, n) => {
                self.note(from, &frame, "duplicated (original)");
                self.note(from, &frame, "duplicated (extra copy)");
                self.ends[to].receive(&frame);
                self.ends[to].receive(&frame);
            }
            Fault::Corrupt(f, k) if (f, k) == (from, n) => {
                self.note(from, &frame, "as sent; a corrupted copy was delivered instead of this");
                let mut bad = frame;
                let at = bad.len() - 20;
                bad[at] ^= 1;
                self.note(from, &bad, "delivered with frame byte -20 xor 1 (ICRC now wrong)");
                self.ends[to].receive(&bad);
            }
            Fault::Swap(f, k) if (f, k) == (from, n) => self.held = Some(frame),
            Fault::Swap(f, _) if f == from && self.held.is_some() => {
                self.note(from, &frame, "overtook the next frame");
                self.ends[to].receive(&frame);
                if let Some(late) = self.held.take() {
                    self.note(from, &late, "delayed by one frame (swapped)");
                    self.ends[to].receive(&late);
                }
            }
            _ => {
                self.note(from, &frame, "");
                self.ends[to].receive(&frame);
            }
        }
        self.collect();
        true
    }

    fn run(mut self) -> Result<Vec<Packet>> {
        let total = self.scenario.steps.len();
        let (mut posted, mut done, mut receiving) = (0, 0, false);
        let end = 64 * timeout_ticks(self.scenario.timeout.0) * total.max(1) as u64;
        while done < total {
            if !receiving && self.rnr_naks >= self.scenario.late && self.scenario.late != usize::MAX {
                receiving = true;
                self.receives()?;
            }
            while posted < total && (self.scenario.pipelined || posted == done) {
                self.post(posted)?;
                posted += 1;
            }
            self.collect();
            let moved = self.carry(0) | self.carry(1);
            while let Some(d) = self.ends[0].poll() {
                done += usize::from(!d.recv);
            }
            if !moved && done < total {
                self.now += 64;
                self.ends.iter_mut().for_each(|e| e.advance(64));
                if self.now > end {
                    return Err(Error::Exchange("the scenario does not end".into()));
                }
            }
        }
        while self.carry(0) | self.carry(1) {}
        Ok(self.log)
    }
}

/// Carries a capture over: IPv4 becomes IPv6, a tag is put in, or both. Checksums and ICRC are made new; wrong ICRCs stay as wrong.
pub fn transcode(packets: &[Packet], v6: bool, vlan: Option<u16>) -> Result<Vec<Packet>> {
    let mut out = Vec::new();
    for p in packets {
        let mut q = p.clone();
        if let Some(mut f) = Frame::decode(&p.bytes).map_err(Error::Exchange)? {
            if let (true, Ip::V4(h)) = (v6, f.ip) {
                let map = |a: u32| u128::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, (a >> 16) as u16, a as u16));
                let six = Ipv6::default().with_version(6).with_dscp(h.dscp()).with_ecn(h.ecn()).with_flow_label(0x12345).with_next_header(17);
                f.ip = Ip::V6(six.with_hop_limit(h.ttl()).with_src(map(h.src())).with_dst(map(h.dst())));
                f.eth.set_ethertype(0x86dd);
            }
            if let (Some(tci), None) = (vlan, f.vlan) {
                let mut tag = Vlan::default().with_ethertype(f.eth.ethertype());
                tag.0[..2].copy_from_slice(&tci.to_be_bytes());
                f.vlan = Some(tag);
                f.eth.set_ethertype(0x8100);
            }
            q.bytes = f.encode();
        }
        out.push(q);
    }
    Ok(out)
}
