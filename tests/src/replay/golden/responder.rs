//! The responder of a reliable connection (IBTA 9.7.4, 9.7.5).
use super::memory::Want;
use super::{Defect, Port};
use crate::replay::endpoint::{Done, Setup, Slice};
use crate::replay::frame::{psn_add, psn_distance, Frame, Kind, Op, Syndrome};
use ferric_abi::wire::{Aeth, AtomicAckEth};
use ferric_driver::CqeStatus;
use std::collections::VecDeque;

const INVALID_REQUEST: u8 = 1;
const REMOTE_ACCESS: u8 = 2;
/// Results kept for duplicates.
const RESULTS: usize = 16;

struct Receive {
    id: u64,
    place: Option<Slice>,
}

/// A message whose last packet has not come.
enum InProgress {
    None,
    Send { receive: Receive, got: usize },
    Write { va: u64, key: u32, left: usize, total: usize },
}

/// Responder state.
pub struct Responder {
    expected: u32,
    msn: u32,
    /// The present gap has been reported.
    gap_reported: bool,
    /// The expected packet was turned away for want of a receive.
    rnr: bool,
    message: InProgress,
    receives: VecDeque<Receive>,
    /// PSN and result of the last atomics.
    atomics: VecDeque<(u32, u64)>,
}

impl Responder {
    pub fn new(setup: &Setup) -> Self {
        Self { expected: setup.rq_psn, msn: 0, gap_reported: false, rnr: false, message: InProgress::None, receives: VecDeque::new(), atomics: VecDeque::new() }
    }

    pub fn post(&mut self, id: u64, place: Option<Slice>) {
        self.receives.push_back(Receive { id, place });
    }

    /// Completes everything posted, as in the error state.
    pub fn flush(&mut self, port: &mut Port) {
        let open = std::mem::replace(&mut self.message, InProgress::None);
        if let InProgress::Send { receive, .. } = open {
            self.receives.push_front(receive);
        }
        for r in self.receives.drain(..) {
            port.done.push_back(Done::new(r.id, true, CqeStatus::WrFlush));
        }
    }

    pub fn receive(&mut self, port: &mut Port, f: &Frame) {
        let distance = psn_distance(f.psn(), self.expected);
        if distance < 0 {
            return self.duplicate(port, f);
        }
        if distance > 0 {
            if !self.gap_reported && !self.rnr && !port.has(Defect::GapNotReported) {
                self.gap_reported = true;
                port.acknowledge(self.expected, Syndrome::Sequence, self.msn);
            }
            return;
        }
        self.gap_reported = false;
        self.rnr = false;
        match self.execute(port, f) {
            Ok(()) => {}
            Err(Syndrome::Rnr(t)) => {
                self.rnr = true;
                port.acknowledge(self.expected, Syndrome::Rnr(t), self.msn);
            }
            Err(nak) => {
                port.acknowledge(self.expected, nak, self.msn);
                port.error = true;
            }
        }
    }

    /// A request seen before: never executed again (a READ is answered again), always acknowledged with the newest state.
    fn duplicate(&mut self, port: &mut Port, f: &Frame) {
        if f.op.kind == Kind::ReadRequest {
            let msn = self.msn;
            if let Some(reth) = f.reth {
                if let Some((region, offset)) = port.memory.remote(reth.va(), reth.rkey(), reth.length() as usize, Want::Read) {
                    answer_read(port, f.psn(), region, offset, reth.length() as usize, msn);
                }
            }
            return;
        }
        if matches!(f.op.kind, Kind::CompareSwap | Kind::FetchAdd) {
            // From what was stored (9.7.5.1.2), unless the fault is to execute it again.
            if port.has(Defect::DuplicateExecuted) {
                self.change(port, f);
            } else if let Some((psn, value)) = self.atomics.iter().find(|(psn, _)| *psn == f.psn()).copied() {
                answer_atomic(port, psn, value, self.msn);
            }
            return;
        }
        if port.has(Defect::DuplicateExecuted) {
            self.execute_again(port, f);
        }
        if matches!(f.op.kind, Kind::Flush | Kind::AtomicWrite) {
            answer_read(port, f.psn(), 0, 0, 0, self.msn);
            return;
        }
        port.acknowledge(psn_add(self.expected, 0xff_ffff), Syndrome::Ack, self.msn);
    }

    /// The defect: payload of a duplicate is placed again, a duplicate message takes another receive.
    fn execute_again(&mut self, port: &mut Port, f: &Frame) {
        match f.op.kind {
            Kind::Send if f.op.first => match self.receives.pop_front() {
                Some(r) => port.done.push_back(Done { len: f.payload.len() as u32, ..Done::new(r.id, true, CqeStatus::Success) }),
                None => port.acknowledge(self.expected, Syndrome::Rnr(port.setup.min_rnr_timer), self.msn),
            },
            Kind::Write | Kind::AtomicWrite => {
                let at = match (&self.message, f.reth) {
                    (_, Some(reth)) => Some((reth.va(), reth.rkey())),
                    (InProgress::Write { va, key, .. }, None) => {
                        let back = psn_distance(self.expected, f.psn()) as u64 * port.setup.mtu.bytes() as u64;
                        Some((va.wrapping_sub(back), *key))
                    }
                    _ => None,
                };
                if let Some((region, offset)) = at.and_then(|(va, key)| port.memory.remote(va, key, f.payload.len(), Want::Write)) {
                    port.memory.bytes_mut(region)[offset..offset + f.payload.len()].copy_from_slice(&f.payload);
                }
            }
            _ => {}
        }
    }

    /// Executes the expected packet; an error is what to answer instead.
    fn execute(&mut self, port: &mut Port, f: &Frame) -> Result<(), Syndrome> {
        let invalid = Err(Syndrome::Fatal(INVALID_REQUEST));
        let mtu = port.setup.mtu.bytes();
        let (op, len) = (f.op, f.payload.len());
        // Opcode sequence (9.7.4.1.2).
        let continues = match (&self.message, op.kind) {
            (InProgress::Send { .. }, Kind::Send) | (InProgress::Write { .. }, Kind::Write) => true,
            (InProgress::None, _) => false,
            _ => return invalid,
        };
        if op.first == continues {
            return invalid;
        }
        // Packet length (9.7.4.1.6): all but the last packet are full, a last one is not empty.
        let fits = if op.last { len <= mtu && (op.first || len > 0) } else { len == mtu && f.bth.pad() == 0 };
        if op.kind != Kind::ReadRequest && (!fits || f.pad.len() != (len.wrapping_neg() & 3)) {
            return invalid;
        }
        let imm = f.imm.map(|i| if port.has(Defect::ImmediateSwapped) { i.imm().swap_bytes() } else { i.imm() });
        match op.kind {
            Kind::Send => self.send(port, f, imm)?,
            Kind::Write => self.write(port, f, imm)?,
            Kind::ReadRequest => return self.read(port, f),
            Kind::CompareSwap | Kind::FetchAdd => return self.atomic(port, f),
            Kind::Flush => flush(port, f)?,
            Kind::AtomicWrite => atomic_write(port, f)?,
            _ => return invalid,
        }
        if !port.has(Defect::PsnNotAdvanced) {
            self.expected = psn_add(self.expected, 1);
        }
        if op.last || port.has(Defect::MsnWrong) {
            self.msn = psn_add(self.msn, 1);
        }
        if f.op.kind.has_response() {
            answer_read(port, f.psn(), 0, 0, 0, self.msn);
        } else if f.bth.ack_req() {
            port.acknowledge(f.psn(), Syndrome::Ack, self.msn);
        }
        Ok(())
    }

    fn take_receive(&mut self, port: &Port) -> Result<Receive, Syndrome> {
        self.receives.pop_front().ok_or(Syndrome::Rnr(port.setup.min_rnr_timer))
    }

    fn send(&mut self, port: &mut Port, f: &Frame, imm: Option<u32>) -> Result<(), Syndrome> {
        let (receive, got) = match std::mem::replace(&mut self.message, InProgress::None) {
            InProgress::Send { receive, got } => (receive, got),
            _ => (self.take_receive(port)?, 0),
        };
        let room = receive.place.map_or(0, |p| p.len);
        let len = f.payload.len();
        if got + len > room {
            port.done.push_back(Done::new(receive.id, true, CqeStatus::LocalLength));
            return Err(Syndrome::Fatal(INVALID_REQUEST));
        }
        if let Some(p) = receive.place {
            port.memory.bytes_mut(p.region.index)[p.offset + got..p.offset + got + len].copy_from_slice(&f.payload);
        }
        if f.op.last {
            let invalidated = f.ieth.map(|i| i.rkey());
            if invalidated.is_some_and(|key| !port.memory.invalidate(key)) {
                port.done.push_back(Done::new(receive.id, true, CqeStatus::RemoteInvalidRequest));
                return Err(Syndrome::Fatal(REMOTE_ACCESS));
            }
            port.done.push_back(Done { len: (got + len) as u32, imm, invalidated, solicited: f.bth.solicited(), ..Done::new(receive.id, true, CqeStatus::Success) });
        } else {
            self.message = InProgress::Send { receive, got: got + len };
        }
        Ok(())
    }

    fn write(&mut self, port: &mut Port, f: &Frame, imm: Option<u32>) -> Result<(), Syndrome> {
        let len = f.payload.len();
        let (va, key, left, total) = match (&self.message, f.reth) {
            (_, Some(reth)) => {
                if !port.setup.access.remote_write {
                    return Err(Syndrome::Fatal(INVALID_REQUEST));
                }
                let total = reth.length() as usize;
                // A zero-length request checks nothing (9.7.4.1.4).
                if total > 0 && port.memory.remote(reth.va(), reth.rkey(), total, Want::Write).is_none() {
                    return Err(Syndrome::Fatal(REMOTE_ACCESS));
                }
                (reth.va(), reth.rkey(), total, total)
            }
            (InProgress::Write { va, key, left, total }, None) => (*va, *key, *left, *total),
            _ => return Err(Syndrome::Fatal(INVALID_REQUEST)),
        };
        if if f.op.last { len != left } else { len >= left } {
            return Err(Syndrome::Fatal(INVALID_REQUEST));
        }
        let receive = if f.op.imm { Some(self.take_receive(port)?) } else { None };
        if len > 0 {
            let (region, offset) = port.memory.remote(va, key, len, Want::Write).ok_or(Syndrome::Fatal(REMOTE_ACCESS))?;
            port.memory.bytes_mut(region)[offset..offset + len].copy_from_slice(&f.payload);
        }
        if let Some(r) = receive {
            let done = Done { len: total as u32, imm, solicited: f.bth.solicited(), ..Done::new(r.id, true, CqeStatus::Success) };
            port.done.push_back(done);
        }
        self.message = if f.op.last { InProgress::None } else { InProgress::Write { va: va + len as u64, key, left: left - len, total } };
        Ok(())
    }

    fn atomic(&mut self, port: &mut Port, f: &Frame) -> Result<(), Syndrome> {
        let aligned = f.atomic.is_some_and(|a| a.va() % 8 == 0);
        if !aligned || !port.setup.access.remote_atomic {
            return Err(Syndrome::Fatal(INVALID_REQUEST));
        }
        let value = self.change(port, f).ok_or(Syndrome::Fatal(REMOTE_ACCESS))?;
        self.msn = psn_add(self.msn, 1);
        self.expected = psn_add(self.expected, 1);
        self.atomics.push_front((f.psn(), value));
        self.atomics.truncate(RESULTS);
        answer_atomic(port, f.psn(), value, self.msn);
        Ok(())
    }

    /// Executes an atomic and gives the value found, little-endian in memory; `None`: no such memory.
    fn change(&self, port: &mut Port, f: &Frame) -> Option<u64> {
        let a = f.atomic?;
        let (region, offset) = port.memory.remote(a.va(), a.rkey(), 8, Want::Atomic)?;
        let place = &mut port.memory.bytes_mut(region)[offset..offset + 8];
        let old = u64::from_le_bytes(std::array::from_fn(|i| place[i]));
        let new = match f.op.kind {
            Kind::FetchAdd => old.wrapping_add(a.swap_add()),
            _ if old == a.compare() => a.swap_add(),
            _ => old,
        };
        place.copy_from_slice(&new.to_le_bytes());
        Some(old)
    }

    fn read(&mut self, port: &mut Port, f: &Frame) -> Result<(), Syndrome> {
        let Some(reth) = f.reth.filter(|_| port.setup.access.remote_read) else { return Err(Syndrome::Fatal(INVALID_REQUEST)) };
        let len = reth.length() as usize;
        let (region, offset) = match port.memory.remote(reth.va(), reth.rkey(), len, Want::Read) {
            Some(at) => at,
            None if len == 0 => (0, 0),
            None => return Err(Syndrome::Fatal(REMOTE_ACCESS)),
        };
        self.msn = psn_add(self.msn, 1);
        let packets = answer_read(port, f.psn(), region, offset, len, self.msn);
        self.expected = psn_add(self.expected, packets);
        Ok(())
    }
}

/// Looks at what a FLUSH asks for (annex A19); the model's memory is always visible to all, and none of it is persistent.
fn flush(port: &Port, f: &Frame) -> Result<(), Syndrome> {
    const GLOBAL: u8 = 1;
    const PERSISTENT: u8 = 2;
    let (Some(feth), Some(reth)) = (f.feth, f.reth) else { return Err(Syndrome::Fatal(INVALID_REQUEST)) };
    let sound = feth.placement() & (GLOBAL | PERSISTENT) != 0 && feth.placement() & !(GLOBAL | PERSISTENT) == 0 && feth.selectivity() <= 1;
    if !sound || !f.payload.is_empty() || !port.setup.access.remote_flush {
        return Err(Syndrome::Fatal(INVALID_REQUEST));
    }
    let whole = feth.selectivity() == 1;
    let reaches = if whole { port.memory.flushes(reth.rkey()) } else { port.memory.remote(reth.va(), reth.rkey(), reth.length() as usize, Want::Flush).is_some() };
    (reaches && feth.placement() & PERSISTENT == 0).then_some(()).ok_or(Syndrome::Fatal(REMOTE_ACCESS))
}

/// Executes an ATOMIC WRITE.
fn atomic_write(port: &mut Port, f: &Frame) -> Result<(), Syndrome> {
    const LEN: usize = 8;
    let Some(reth) = f.reth.filter(|r| r.va() % LEN as u64 == 0 && r.length() as usize == LEN && f.payload.len() == LEN) else { return Err(Syndrome::Fatal(INVALID_REQUEST)) };
    let place = port.memory.remote(reth.va(), reth.rkey(), LEN, Want::Write).filter(|_| port.setup.access.remote_write);
    let (region, offset) = place.ok_or(Syndrome::Fatal(REMOTE_ACCESS))?;
    port.memory.bytes_mut(region)[offset..offset + LEN].copy_from_slice(&f.payload);
    Ok(())
}

/// Sends an atomic's result.
fn answer_atomic(port: &mut Port, psn: u32, value: u64, msn: u32) {
    let mut frame = port.frame(Op::plain(Kind::AtomicAck, true, true), psn);
    frame.aeth = Some(Aeth::default().with_syndrome(Syndrome::Ack.byte()).with_msn(msn));
    frame.atomic_ack = Some(AtomicAckEth::default().with_original(value));
    port.send(frame);
}

/// Sends the response packets of a READ and says how many PSNs it took.
fn answer_read(port: &mut Port, psn: u32, region: usize, offset: usize, len: usize, msn: u32) -> u32 {
    let mtu = port.setup.mtu.bytes();
    let packets = len.div_ceil(mtu).max(1);
    for i in 0..packets {
        let op = Op::plain(Kind::ReadResponse, i == 0, i + 1 == packets);
        let mut frame = port.frame(op, psn_add(psn, i as u32));
        if op.first || op.last {
            frame.aeth = Some(Aeth::default().with_syndrome(Syndrome::Ack.byte()).with_msn(msn));
        }
        if len > 0 {
            frame.payload = port.memory.bytes(region)[offset + i * mtu..offset + len.min((i + 1) * mtu)].to_vec();
        }
        port.send(frame);
    }
    packets as u32
}
