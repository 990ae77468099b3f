//! Entries of completion and event queues, and interrupts.
use crate::counters::count;
use crate::host::Host;
use crate::Twin;
use ferric_abi::codes::EventKind;
use ferric_abi::context::CqCtx;
use ferric_abi::host::{Cqe, Eqe};
use ferric_model::rings::completion::{CqModel, Outcome};

fn model(c: &CqCtx) -> CqModel {
    CqModel {
        valid: c.valid(),
        function: c.function(),
        log_size: c.log_size(),
        eqn: c.eqn(),
        producer: c.producer(),
        consumer: c.consumer(),
        armed: c.armed(),
        armed_solicited: c.armed_solicited(),
        overflow: c.overflow(),
    }
}

fn keep(c: &mut CqCtx, m: &CqModel) {
    c.set_producer(m.producer).set_consumer(m.consumer).set_armed(m.armed).set_armed_solicited(m.armed_solicited).set_overflow(m.overflow);
}

impl Twin {
    /// Writes an entry to completion queue `cqn` on behalf of `function`, and tells of it if somebody wants to know.
    pub(crate) fn complete(&mut self, host: &mut dyn Host, cqn: u32, function: u16, entry: Cqe) {
        let Some(line) = self.tables.cq.get_mut(cqn as usize) else { return count!(self, 0, "cq.cq_bad") };
        let urgent = entry.status() != 0 || entry.is_recv() && entry.solicited();
        let mut m = model(line);
        let outcome = m.complete(function, urgent);
        let (base, eqn) = (line.base(), m.eqn);
        match outcome {
            Outcome::Bad => count!(self, function, "cq.cq_bad"),
            Outcome::Lost { first } => {
                keep(line, &m);
                count!(self, function, "cq.cq_overflow");
                if first {
                    self.event(host, eqn, EventKind::CqError, cqn, 0);
                }
            }
            Outcome::Written { slot, phase, event } => {
                keep(line, &m);
                count!(self, function, "cq.cqe_written");
                let entry = entry.with_timestamp(self.ticks & u64::from(u32::MAX)).with_phase(phase);
                let iova = base.wrapping_add(u64::from(slot) * Cqe::BYTES as u64);
                if !self.dma_write(host, function, iova, &entry.0) {
                    count!(self, function, "cq.cq_write_errors");
                    self.event(host, eqn, EventKind::CqError, cqn, 0);
                } else if event {
                    count!(self, function, "cq.cq_events");
                    self.event(host, eqn, EventKind::Completion, cqn, 0);
                }
            }
        }
    }

    /// A completion queue's doorbell.
    pub(crate) fn ring_cq(&mut self, host: &mut dyn Host, function: u16, cqn: u32, index: u16, arm: bool, arm_solicited: bool) {
        let Some(line) = self.tables.cq.get_mut(cqn as usize).filter(|c| c.valid() && c.function() == function) else { return count!(self, function, "cq.cq_db_bad") };
        let mut m = model(line);
        let event = m.doorbell(function, index, arm, arm_solicited);
        keep(line, &m);
        match event {
            None => count!(self, function, "cq.cq_db_overrun"),
            Some(true) => {
                count!(self, function, "cq.cq_events");
                self.event(host, m.eqn, EventKind::Completion, cqn, 0);
            }
            Some(false) => {}
        }
    }

    /// Writes an event, and requests its interrupt when it is in host memory.
    pub(crate) fn event(&mut self, host: &mut dyn Host, eqn: u8, kind: EventKind, id: u32, cause: u16) {
        let Some(line) = self.tables.eq.get_mut(usize::from(eqn)).filter(|e| e.valid()) else { return count!(self, 0, "eq.eq_bad") };
        let (function, size, at) = (line.function(), 1u32 << line.log_size(), line.producer());
        if u32::from(at.wrapping_sub(line.consumer())) >= size {
            line.set_overflow(true);
            return count!(self, function, "eq.eq_overflow");
        }
        line.set_producer(at.wrapping_add(1));
        let (vector, iova) = (line.vector(), line.base().wrapping_add(u64::from(at & (size - 1) as u16) * Eqe::BYTES as u64));
        let entry = Eqe::default().with_kind(kind as u8).with_cause(cause).with_id(id).with_phase(u32::from(at) / size % 2 == 0);
        count!(self, function, "eq.eqe_written");
        if self.dma_write(host, function, iova, &entry.0) {
            count!(self, function, "eq.eq_msix");
            self.interrupts.push_back((function, vector));
        } else {
            count!(self, function, "eq.eq_write_errors");
        }
    }

    /// An event queue's doorbell.
    pub(crate) fn ring_eq(&mut self, function: u16, eqn: u32, index: u16) {
        let Some(line) = self.tables.eq.get_mut(eqn as usize).filter(|e| e.valid() && e.function() == function) else { return count!(self, function, "eq.eq_db_bad") };
        if line.producer().wrapping_sub(index) > line.producer().wrapping_sub(line.consumer()) {
            return count!(self, function, "eq.eq_db_overrun");
        }
        line.set_consumer(index);
    }
}
