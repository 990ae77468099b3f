//! The host's side of the card's AXI4 DMA master: read latency, out-of-order and interleaved completions, in-order writes,
//! error responses for what the IOMMU refuses.
//!
//! A host's memory is coherent by lines: a read samples each aligned line of 64 bytes in one moment, however many beats the bus needs for it.
use crate::card::{BusCounters, Edge};
use crate::iommu::Iommu;
pub use crate::timing::HostTiming;
use crate::trace::{Event, Kind};
use crate::Rng;
use rand::{Rng as _, SeedableRng};
use std::collections::VecDeque;
use verilator_sys::{Model, PortId};

/// Bytes that a host reads in one moment.
const LINE: usize = 64;

struct Read {
    id: u64,
    addr: u64,
    function: u16,
    beats_left: u32,
    ready_at: u64,
    /// The line of its current beat, sampled with that line's first beat; `false`: refused.
    line: [u8; LINE],
    sampled: Option<(u64, bool)>,
}

impl Read {
    /// The current beat; false: refused.
    fn beat(&mut self, iommu: &mut Iommu, out: &mut [u8]) -> bool {
        let (line, at) = (self.addr & !(LINE as u64 - 1), (self.addr % LINE as u64) as usize);
        let passed = match self.sampled {
            Some((sampled, passed)) if sampled == line => passed,
            _ => {
                // What the burst has of the line, not what it does not ask for.
                let end = LINE.min(at + self.beats_left as usize * out.len());
                let passed = iommu.read(self.function, self.addr, &mut self.line[at..end]).is_ok();
                self.sampled = Some((line, passed));
                passed
            }
        };
        if passed {
            out.copy_from_slice(&self.line[at..at + out.len()]);
        }
        passed
    }
}

struct Write {
    addr: u64,
    function: u16,
    beats_left: u32,
    failed: bool,
}

/// A stream held to a number of bytes per cycle on average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Bytes that may move now.
    credit: u64,
}

impl Pace {
    /// Call once a cycle: whether a beat of at most `beat` bytes may move. `rate`: bytes per cycle, 0 for no limit.
    pub(crate) fn go(&mut self, rate: u32, beat: usize) -> bool {
        // What is not used in its time is lost but for a beat, as on a wire.
        self.credit = (self.credit + u64::from(rate)).min(beat as u64 + u64::from(rate));
        rate == 0 || self.credit >= beat as u64
    }

    /// So many bytes have moved.
    pub(crate) fn moved(&mut self, bytes: usize) {
        self.credit = self.credit.saturating_sub(bytes as u64);
    }
}

/// Ports of the DMA master.
struct Ports {
    ar_valid: PortId,
    ar_ready: PortId,
    ar_id: PortId,
    ar_addr: PortId,
    ar_len: PortId,
    ar_user: PortId,
    r_valid: PortId,
    r_ready: PortId,
    r_id: PortId,
    r_data: PortId,
    r_resp: PortId,
    r_last: PortId,
    aw_valid: PortId,
    aw_ready: PortId,
    aw_addr: PortId,
    aw_len: PortId,
    aw_user: PortId,
    w_valid: PortId,
    w_ready: PortId,
    w_data: PortId,
    w_strb: PortId,
    w_last: PortId,
    b_valid: PortId,
    b_ready: PortId,
    b_resp: PortId,
}

/// The host behind the bus.
pub struct AxiHost {
    ports: Ports,
    bytes: usize,
    timing: HostTiming,
    read_pace: Pace,
    write_pace: Pace,
    rng: Rng,
    reads: Vec<Read>,
    current: Option<usize>,
    /// Beat on the R channel now: index of its read.
    r_shown: bool,
    writes: VecDeque<Write>,
    responses: VecDeque<(u64, bool)>,
}

impl AxiHost {
    /// Finds the ports of `model`.
    pub fn new(model: &mut Model, width_bytes: usize, timing: HostTiming, seed: u64) -> Result<Self, verilator_sys::Error> {
        let ports = Ports {
            ar_valid: model.port("ar_valid")?,
            ar_ready: model.port("ar_ready")?,
            ar_id: model.port("ar_id")?,
            ar_addr: model.port("ar_addr")?,
            ar_len: model.port("ar_len")?,
            ar_user: model.port("ar_user")?,
            r_valid: model.port("r_valid")?,
            r_ready: model.port("r_ready")?,
            r_id: model.port("r_id")?,
            r_data: model.port("r_data")?,
            r_resp: model.port("r_resp")?,
            r_last: model.port("r_last")?,
            aw_valid: model.port("aw_valid")?,
            aw_ready: model.port("aw_ready")?,
            aw_addr: model.port("aw_addr")?,
            aw_len: model.port("aw_len")?,
            aw_user: model.port("aw_user")?,
            w_valid: model.port("w_valid")?,
            w_ready: model.port("w_ready")?,
            w_data: model.port("w_data")?,
            w_strb: model.port("w_strb")?,
            w_last: model.port("w_last")?,
            b_valid: model.port("b_valid")?,
            b_ready: model.port("b_ready")?,
            b_resp: model.port("b_resp")?,
        };
        Ok(Self {
            ports,
            bytes: width_bytes,
            timing,
            read_pace: Pace::default(),
            write_pace: Pace::default(),
            rng: Rng::seed_from_u64(seed),
            reads: Vec::new(),
            current: None,
            r_shown: false,
            writes: VecDeque::new(),
            responses: VecDeque::new(),
        })
    }

    /// Changes the timing from now on.
    pub fn set_timing(&mut self, timing: HostTiming) {
        self.timing = timing;
    }

    /// Nothing is in flight.
    pub fn idle(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.responses.is_empty()
    }

    fn stall(&mut self) -> bool {
        self.timing.stall_percent > 0 && self.rng.gen_range(0..100) < self.timing.stall_percent
    }

    /// Drives this cycle's inputs.
    pub fn drive(&mut self, model: &mut Model, iommu: &mut Iommu, counters: &mut BusCounters, cycle: u64) {
        let p = &self.ports;
        let (ar, aw, w) = (p.ar_ready, p.aw_ready, p.w_ready);
        let go = !self.stall();
        model.set(ar, (go && self.reads.len() < self.timing.max_reads as usize) as u64);
        let go = !self.stall();
        model.set(aw, (go && self.writes.len() < 64) as u64);
        let go = !self.stall();
        // Data may not run ahead of its address in this model.
        let paced = self.write_pace.go(self.timing.bytes_per_cycle, self.bytes);
        model.set(w, (go && paced && !self.writes.is_empty()) as u64);
        let paced = self.read_pace.go(self.timing.bytes_per_cycle, self.bytes);
        if !self.r_shown && !self.stall() && paced {
            self.show_read(model, iommu, counters, cycle);
        }
        model.set(self.ports.r_valid, self.r_shown as u64);
        let b = self.responses.front().is_some_and(|(at, _)| *at <= cycle);
        model.set(self.ports.b_valid, b as u64);
        if b {
            model.set(self.ports.b_resp, if self.responses[0].1 { 2 } else { 0 });
        }
    }

    fn show_read(&mut self, model: &mut Model, iommu: &mut Iommu, counters: &mut BusCounters, cycle: u64) {
        if self.current.is_none() || self.timing.interleave {
            // AXI: reads with the same id are answered in order; others may overtake.
            let mut choices = [0; 4];
            let mut ready = 0;
            for (i, r) in self.reads.iter().enumerate() {
                if ready < choices.len() && r.ready_at <= cycle && !self.reads[..i].iter().any(|o| o.id == r.id) {
                    choices[ready] = i;
                    ready += 1;
                }
            }
            if ready == 0 {
                self.current = None;
                return;
            }
            let pick = if self.timing.interleave || self.timing.read_jitter > 0 { self.rng.gen_range(0..ready) } else { 0 };
            self.current = Some(choices[pick]);
            if self.current.is_some_and(|i| i > 0) {
                counters.out_of_order += 1;
            }
        }
        let Some(i) = self.current else { return };
        let r = &mut self.reads[i];
        let (id, left) = (r.id, r.beats_left);
        let mut data = [0u8; LINE];
        let failed = !r.beat(iommu, &mut data[..self.bytes]);
        counters.errors += failed as u64;
        let p = &self.ports;
        model.set(p.r_id, id);
        model.set_bytes(p.r_data, &data[..self.bytes]);
        model.set(p.r_resp, if failed { 2 } else { 0 });
        model.set(p.r_last, (left == 1) as u64);
        self.r_shown = true;
    }

    /// Takes this cycle's handshakes, after the inputs have settled.
    pub fn sample(&mut self, model: &Model, edge: &mut Edge, cycle: u64, card: u16) {
        let Edge { iommu, bus: counters, trace, .. } = edge;
        let p = &self.ports;
        let mut log = |kind, bytes, last, addr| {
            if let Some(t) = trace {
                t.push(Event { cycle, card, kind, bytes, last, addr, head: Vec::new() });
            }
        };
        if self.r_shown && model.get(p.r_ready) == 1 {
            self.r_shown = false;
            self.read_pace.moved(self.bytes);
            if let Some(i) = self.current {
                let r = &mut self.reads[i];
                r.addr += self.bytes as u64;
                r.beats_left -= 1;
                if r.beats_left == 0 {
                    log(Kind::ReadLast, self.bytes as u32, true, r.addr);
                    self.reads.remove(i);
                    self.current = None;
                }
            }
        }
        if model.get(p.ar_valid) == 1 && model.get(p.ar_ready) == 1 {
            let beats = model.get(p.ar_len) as u32 + 1;
            let addr = model.get(p.ar_addr);
            debug_assert_eq!(addr % self.bytes as u64, 0, "read address not aligned to the bus");
            assert_eq!(addr / 4096, (addr + beats as u64 * self.bytes as u64 - 1) / 4096, "read burst crosses 4 KiB");
            let jitter = if self.timing.read_jitter > 0 { self.rng.gen_range(0..=self.timing.read_jitter) } else { 0 };
            log(Kind::ReadAddress, beats * self.bytes as u32, true, addr);
            self.reads.push(Read {
                id: model.get(p.ar_id),
                addr,
                function: model.get(p.ar_user) as u16,
                beats_left: beats,
                ready_at: cycle + (self.timing.read_latency + jitter).max(1) as u64,
                line: [0; LINE],
                sampled: None,
            });
            counters.max_outstanding = counters.max_outstanding.max(self.reads.len());
        }
        if model.get(p.w_valid) == 1 && model.get(p.w_ready) == 1 {
            self.write_pace.moved(self.bytes);
            let strobe = model.get(p.w_strb);
            let data = &model.bytes(p.w_data)[..self.bytes];
            if let Some(w) = self.writes.front_mut() {
                log(Kind::WriteBeat, strobe.count_ones(), model.get(p.w_last) == 1, w.addr);
                w.failed |= iommu.write(w.function, w.addr, data, strobe).is_err();
                w.addr += self.bytes as u64;
                w.beats_left -= 1;
                assert_eq!(model.get(p.w_last) == 1, w.beats_left == 0, "w_last does not match aw_len");
                if w.beats_left == 0 {
                    counters.errors += w.failed as u64;
                    self.responses.push_back((cycle + self.timing.write_latency.max(1) as u64, w.failed));
                    self.writes.pop_front();
                }
            }
        }
        if model.get(p.aw_valid) == 1 && model.get(p.aw_ready) == 1 {
            let beats = model.get(p.aw_len) as u32 + 1;
            let addr = model.get(p.aw_addr);
            assert_eq!(addr / 4096, (addr + beats as u64 * self.bytes as u64 - 1) / 4096, "write burst crosses 4 KiB");
            log(Kind::WriteAddress, beats * self.bytes as u32, true, addr);
            let addr = addr & !(self.bytes as u64 - 1);
            self.writes.push_back(Write { addr, function: model.get(p.aw_user) as u16, beats_left: beats, failed: false });
        }
        if self.responses.front().is_some_and(|(at, _)| *at <= cycle) && model.get(p.b_ready) == 1 {
            self.responses.pop_front();
        }
    }
}
