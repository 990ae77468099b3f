//! The model that the block tests compare with.
use super::{kind, nothing, Act, Grant, Judge, Order, Packet, Qp, Receives};
use std::collections::{BTreeMap, VecDeque};

/// All queue pairs, with receive rings whose answers are known beforehand: the golden model that the block tests compare with.
#[derive(Default)]
pub struct Responder {
    pub qps: BTreeMap<u32, Qp>,
    pub raw_qpn: Option<u32>,
    /// What the receive queues will answer, in order.
    pub grants: VecDeque<Grant>,
    /// Rings that were asked.
    pub asked: Vec<u32>,
    pub acts: Vec<Act>,
    /// Packets, by whose they are: 0 is nobody's.
    pub requests: BTreeMap<u64, u64>,
}

/// The answers, and who was asked.
struct Script<'a>(&'a mut VecDeque<Grant>, &'a mut Vec<u32>);

impl Receives for Script<'_> {
    fn grant(&mut self, qp: &Qp) -> Grant {
        self.1.push(qp.rq);
        self.0.pop_front().unwrap_or_default()
    }
}

impl Responder {
    fn with(&mut self, id: u32, qp: &mut Qp, act: impl FnOnce(&mut Judge, &mut Qp)) {
        act(&mut Judge { receives: &mut Script(&mut self.grants, &mut self.asked), acts: &mut self.acts }, qp);
        self.qps.insert(id, qp.clone());
    }

    /// Judges one packet.
    pub fn packet(&mut self, p: &Packet) {
        let id = if p.raw { self.raw_qpn } else { Some(p.qpn) };
        let found = id.and_then(|id| self.qps.get(&id).map(|qp| (id, qp.clone())));
        let found = found.filter(|(_, qp)| qp.state == 2 || qp.state == 3);
        // A raw frame for a queue pair of another kind is nobody's, too.
        let whose = found.as_ref().filter(|(_, qp)| !p.raw || qp.qp_type == 3).map_or(0, |(_, qp)| qp.function.into());
        *self.requests.entry(whose).or_default() += 1;
        let Some((id, mut qp)) = found else {
            return self.acts.push(Act::Place(nothing(p)));
        };
        self.with(id, &mut qp, |judge, qp| judge.packet(id, p, qp));
    }

    /// See [`Judge::error`].
    pub fn error(&mut self, id: u32, epoch: Option<u8>, cause: u8) {
        let Some(mut qp) = self.qps.get(&id).cloned() else { return };
        self.with(id, &mut qp, |judge, qp| judge.error(id, qp, epoch, cause));
    }

    /// Queue pair `id` has been reset: the chain forgets its earlier life, and the buffer of a receive it has taken comes back.
    pub fn give_back(&mut self, id: u32, epoch: u8) {
        let Some(qp) = self.qps.get_mut(&id).filter(|qp| qp.epoch == epoch) else { return };
        qp.message = None;
        let no = Some(false);
        let mut order = Order { kind: Some(kind::LIFE), again: Some(true), ack: Some(true), qpn: Some(id), epoch: Some(epoch), has_frame: no, done: no, cqe: no, free_rq: no, ..Order::default() };
        if let Some((handle, _)) = qp.receive.take() {
            (order.free_rq, order.rq_handle) = (Some(true), Some(handle));
        }
        self.acts.push(Act::Place(order));
    }
}
