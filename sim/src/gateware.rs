//! The gateware as a card's body: the Verilated core with its buses driven.
use crate::axi::{AxiHost, Pace};
use crate::card::{CardBody, CardConfig, Edge};
use crate::error::Error;
use crate::timing::HostTiming;
use crate::trace::{Event, Kind, HEAD};
use crate::Rng;
use rand::{Rng as _, SeedableRng};
use std::collections::VecDeque;
use verilator_sys::{Library, Model, PortId};

/// Doorbells on their way at most.
const POSTED: usize = 16;

/// A posted or non-posted access to the BAR.
enum Mmio {
    Write32(u32, u32),
    Read32(u32),
    /// Doorbell space: address, bytes (8 or 64).
    Doorbell(u32, Vec<u8>),
}

struct Ports {
    reset: PortId,
    now: PortId,
    csr_aw_valid: PortId,
    csr_aw_ready: PortId,
    csr_aw_addr: PortId,
    csr_w_valid: PortId,
    csr_w_ready: PortId,
    csr_w_data: PortId,
    csr_w_strb: PortId,
    csr_b_valid: PortId,
    csr_b_ready: PortId,
    csr_ar_valid: PortId,
    csr_ar_ready: PortId,
    csr_ar_addr: PortId,
    csr_r_valid: PortId,
    csr_r_ready: PortId,
    csr_r_data: PortId,
    db_aw_valid: PortId,
    db_aw_ready: PortId,
    db_aw_addr: PortId,
    db_aw_len: PortId,
    db_w_valid: PortId,
    db_w_ready: PortId,
    db_w_data: PortId,
    db_w_strb: PortId,
    db_w_last: PortId,
    db_b_valid: PortId,
    db_b_ready: PortId,
    msix_valid: PortId,
    msix_ready: PortId,
    msix_data: PortId,
    rx_data: PortId,
    rx_keep: PortId,
    rx_last: PortId,
    rx_valid: PortId,
    rx_err: PortId,
    tx_data: PortId,
    tx_keep: PortId,
    tx_last: PortId,
    tx_valid: PortId,
    tx_ready: PortId,
}

impl Ports {
    fn find(m: &Model) -> Result<Self, verilator_sys::Error> {
        let p = |name: &str| m.port(name);
        Ok(Self {
            reset: p("reset")?,
            now: p("now")?,
            csr_aw_valid: p("csr_aw_valid")?,
            csr_aw_ready: p("csr_aw_ready")?,
            csr_aw_addr: p("csr_aw_addr")?,
            csr_w_valid: p("csr_w_valid")?,
            csr_w_ready: p("csr_w_ready")?,
            csr_w_data: p("csr_w_data")?,
            csr_w_strb: p("csr_w_strb")?,
            csr_b_valid: p("csr_b_valid")?,
            csr_b_ready: p("csr_b_ready")?,
            csr_ar_valid: p("csr_ar_valid")?,
            csr_ar_ready: p("csr_ar_ready")?,
            csr_ar_addr: p("csr_ar_addr")?,
            csr_r_valid: p("csr_r_valid")?,
            csr_r_ready: p("csr_r_ready")?,
            csr_r_data: p("csr_r_data")?,
            db_aw_valid: p("db_aw_valid")?,
            db_aw_ready: p("db_aw_ready")?,
            db_aw_addr: p("db_aw_addr")?,
            db_aw_len: p("db_aw_len")?,
            db_w_valid: p("db_w_valid")?,
            db_w_ready: p("db_w_ready")?,
            db_w_data: p("db_w_data")?,
            db_w_strb: p("db_w_strb")?,
            db_w_last: p("db_w_last")?,
            db_b_valid: p("db_b_valid")?,
            db_b_ready: p("db_b_ready")?,
            msix_valid: p("msix$valid")?,
            msix_ready: p("msix$ready")?,
            msix_data: p("msix$data")?,
            rx_data: p("rx$data")?,
            rx_keep: p("rx$keep")?,
            rx_last: p("rx$last")?,
            rx_valid: p("rx$valid")?,
            rx_err: p("rx_err")?,
            tx_data: p("tx$data")?,
            tx_keep: p("tx$keep")?,
            tx_last: p("tx$last")?,
            tx_valid: p("tx$valid")?,
            tx_ready: p("tx$ready")?,
        })
    }
}

/// A simulated card of gateware.
pub struct Gateware {
    model: Model,
    ports: Ports,
    bytes: usize,
    axi: AxiHost,
    rng: Rng,
    mac_stall_percent: u32,
    mac_bytes_per_cycle: u32,
    tx_pace: Pace,
    mmio: VecDeque<Mmio>,
    /// Beat of the doorbell burst being written.
    db_beat: usize,
    db_address_done: bool,
    /// Doorbells written whose answer is still out.
    db_unanswered: usize,
    csr_address_done: bool,
    csr_data_done: bool,
    read_result: Option<u32>,
    receive: VecDeque<Vec<u8>>,
    receive_at: usize,
    transmit: Vec<u8>,
    rx_show: bool,
    index: u16,
}

impl Gateware {
    /// Instantiates the card from its library and holds it in reset for some cycles.
    pub fn new(library: &Library, config: &CardConfig, index: u16) -> Result<Self, Error> {
        let mut model = library.instance(config.fst.as_deref())?;
        model.trace_from(config.fst_from);
        let ports = Ports::find(&model)?;
        let axi = AxiHost::new(&mut model, config.width / 8, config.host, config.seed ^ 0xa11)?;
        let mut card = Self {
            ports,
            axi,
            model,
            bytes: config.width / 8,
            rng: Rng::seed_from_u64(config.seed),
            mac_stall_percent: config.mac_stall_percent,
            mac_bytes_per_cycle: config.mac_bytes_per_cycle,
            tx_pace: Pace::default(),
            mmio: VecDeque::new(),
            db_beat: 0,
            db_address_done: false,
            db_unanswered: 0,
            csr_address_done: false,
            csr_data_done: false,
            read_result: None,
            receive: VecDeque::new(),
            receive_at: 0,
            transmit: Vec::new(),
            rx_show: false,
            index,
        };
        card.model.set(card.ports.reset, 1);
        for _ in 0..2000 {
            // Long enough for every table that clears itself under reset.
            card.model.tick();
        }
        card.model.set(card.ports.reset, 0);
        for _ in 0..4 {
            // The core registers its reset: no access in the cycle in which the input falls.
            card.model.tick();
        }
        Ok(card)
    }

    fn stall(&mut self) -> bool {
        self.mac_stall_percent > 0 && self.rng.gen_range(0..100) < self.mac_stall_percent
    }

    fn drive(&mut self, edge: &mut Edge, cycle: u64, now: u32) {
        let tx_go = !self.stall() & self.tx_pace.go(self.mac_bytes_per_cycle, self.bytes);
        let rx_go = self.rx_show || !self.stall();
        let (m, p) = (&mut self.model, &self.ports);
        m.set(p.now, now as u64);
        self.axi.drive(m, edge.iommu, edge.bus, cycle);
        m.set(p.msix_ready, 1);
        m.set(p.tx_ready, tx_go as u64);

        // MAC receive: always accepted by the card.
        m.set(p.rx_err, 0);
        match self.receive.front() {
            Some(frame) if rx_go => {
                let left = &frame[self.receive_at..];
                let n = left.len().min(self.bytes);
                let mut beat = [0u8; 64];
                beat[..n].copy_from_slice(&left[..n]);
                m.set_bytes(p.rx_data, &beat[..self.bytes]);
                m.set(p.rx_keep, if n == 64 { u64::MAX } else { (1 << n) - 1 });
                m.set(p.rx_last, (left.len() <= self.bytes) as u64);
                m.set(p.rx_valid, 1);
                self.rx_show = true;
            }
            _ => {
                m.set(p.rx_valid, 0);
                self.rx_show = false;
            }
        }

        // BAR accesses, in order. Doorbells are posted, as PCIe's memory writes are; a register access waits until they are answered.
        for v in [p.csr_aw_valid, p.csr_w_valid, p.csr_ar_valid, p.db_aw_valid, p.db_w_valid] {
            m.set(v, 0);
        }
        for r in [p.csr_b_ready, p.csr_r_ready, p.db_b_ready] {
            m.set(r, 1);
        }
        let next = self.mmio.front().filter(|access| match access {
            Mmio::Doorbell(..) => self.db_unanswered < POSTED,
            _ => self.db_unanswered == 0,
        });
        match next {
            Some(Mmio::Write32(addr, value)) => {
                m.set(p.csr_aw_valid, !self.csr_address_done as u64);
                m.set(p.csr_aw_addr, *addr as u64);
                m.set(p.csr_w_valid, !self.csr_data_done as u64);
                m.set(p.csr_w_data, *value as u64);
                m.set(p.csr_w_strb, 0xf);
            }
            Some(Mmio::Read32(addr)) => {
                m.set(p.csr_ar_valid, !self.csr_address_done as u64);
                m.set(p.csr_ar_addr, *addr as u64);
            }
            Some(Mmio::Doorbell(addr, bytes)) => {
                let lane = *addr as usize % self.bytes;
                let beats = (lane + bytes.len()).div_ceil(self.bytes);
                m.set(p.db_aw_valid, !self.db_address_done as u64);
                m.set(p.db_aw_addr, *addr as u64);
                m.set(p.db_aw_len, beats as u64 - 1);
                if self.db_beat < beats {
                    let mut data = [0u8; 64];
                    let (from, at) = if self.db_beat == 0 { (0, lane) } else { (self.db_beat * self.bytes - lane, 0) };
                    let n = (bytes.len() - from).min(self.bytes - at);
                    data[at..at + n].copy_from_slice(&bytes[from..from + n]);
                    let ones = if n == 64 { u64::MAX } else { (1u64 << n) - 1 };
                    m.set_bytes(p.db_w_data, &data[..self.bytes]);
                    m.set(p.db_w_strb, ones << at);
                    m.set(p.db_w_last, (self.db_beat + 1 == beats) as u64);
                    m.set(p.db_w_valid, 1);
                }
            }
            None => {}
        }
    }

    /// Whether something moved.
    fn sample(&mut self, edge: &mut Edge, cycle: u64) -> bool {
        self.axi.sample(&self.model, edge, cycle, self.index);
        let Edge { sent, interrupts, trace, .. } = edge;
        let (m, p) = (&self.model, &self.ports);
        let both = |v, r| m.get(v) == 1 && m.get(r) == 1;
        let mut log = |kind, bytes, last, addr, frame: &[u8]| {
            if let Some(t) = &mut **trace {
                let head = if last { frame[..frame.len().min(HEAD)].to_vec() } else { Vec::new() };
                t.push(Event { cycle, card: self.index, kind, bytes, last, addr, head });
            }
        };
        if m.get(p.msix_valid) == 1 {
            let data = m.get(p.msix_data);
            interrupts.push_back(((data & 0xfff) as u16, (data >> 12) as u16));
            log(Kind::Interrupt, 0, true, data >> 12, &[]);
        }
        let mut moved = !self.mmio.is_empty() || self.rx_show;
        if self.rx_show {
            if let Some(frame) = self.receive.front() {
                let n = (frame.len() - self.receive_at).min(self.bytes);
                self.receive_at += n;
                let last = self.receive_at == frame.len();
                log(Kind::RxBeat, n as u32, last, 0, frame);
                self.rx_show = false;
                if last {
                    self.receive.pop_front();
                    self.receive_at = 0;
                }
            }
        }
        if both(p.tx_valid, p.tx_ready) {
            moved = true;
            let n = m.get(p.tx_keep).count_ones() as usize;
            let last = m.get(p.tx_last) == 1;
            self.transmit.extend_from_slice(&m.bytes(p.tx_data)[..n]);
            self.tx_pace.moved(n);
            log(Kind::TxBeat, n as u32, last, 0, &self.transmit);
            if last {
                sent.push_back(std::mem::take(&mut self.transmit));
            }
        }
        if m.get(p.db_b_valid) == 1 {
            self.db_unanswered -= 1;
        }
        match self.mmio.front() {
            Some(Mmio::Write32(..)) => {
                self.csr_address_done |= both(p.csr_aw_valid, p.csr_aw_ready);
                self.csr_data_done |= both(p.csr_w_valid, p.csr_w_ready);
                if m.get(p.csr_b_valid) == 1 {
                    (self.csr_address_done, self.csr_data_done) = (false, false);
                    self.mmio.pop_front();
                }
            }
            Some(Mmio::Read32(_)) => {
                self.csr_address_done |= both(p.csr_ar_valid, p.csr_ar_ready);
                if m.get(p.csr_r_valid) == 1 {
                    self.read_result = Some(m.get(p.csr_r_data) as u32);
                    self.csr_address_done = false;
                    self.mmio.pop_front();
                }
            }
            Some(Mmio::Doorbell(addr, bytes)) => {
                let (addr, beats) = (*addr, (*addr as usize % self.bytes + bytes.len()).div_ceil(self.bytes));
                if both(p.db_aw_valid, p.db_aw_ready) {
                    self.db_address_done = true;
                    log(Kind::Doorbell, 0, true, addr as u64, &[]);
                }
                if both(p.db_w_valid, p.db_w_ready) {
                    self.db_beat += 1;
                }
                if self.db_address_done && self.db_beat == beats {
                    (self.db_address_done, self.db_beat) = (false, 0);
                    self.db_unanswered += 1;
                    self.mmio.pop_front();
                }
            }
            None => {}
        }
        // A beat or an access counts even when it is the only one and nothing waits behind it.
        moved || !self.idle()
    }
}

impl CardBody for Gateware {
    fn cycle(&mut self, edge: &mut Edge, cycle: u64, ticks: u64) -> bool {
        // The card's outputs come from registers (`boundary_outputs_are_registered` holds it to that), so they can be sampled before the edge is evaluated.
        self.drive(edge, cycle, ticks as u32);
        let moved = self.sample(edge, cycle);
        self.model.cycle();
        moved
    }

    fn write32(&mut self, addr: u32, value: u32) {
        self.mmio.push_back(Mmio::Write32(addr, value));
    }

    fn start_read32(&mut self, addr: u32) {
        self.mmio.push_back(Mmio::Read32(addr));
    }

    fn take_read(&mut self) -> Option<u32> {
        self.read_result.take()
    }

    fn doorbell(&mut self, addr: u32, bytes: &[u8]) {
        self.mmio.push_back(Mmio::Doorbell(addr, bytes.to_vec()));
    }

    fn receive(&mut self, frame: Vec<u8>) {
        self.receive.push_back(frame);
    }

    fn mmio_backlog(&self) -> usize {
        self.mmio.len()
    }

    fn receive_backlog(&self) -> usize {
        self.receive.len()
    }

    fn idle(&self) -> bool {
        self.mmio.is_empty() && self.db_unanswered == 0 && self.receive.is_empty() && self.transmit.is_empty() && self.axi.idle()
    }

    fn set_timing(&mut self, timing: HostTiming) {
        self.axi.set_timing(timing);
    }

    fn pace_mac(&mut self, bytes_per_cycle: u32) {
        self.mac_bytes_per_cycle = bytes_per_cycle;
    }
}
