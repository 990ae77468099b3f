//! Whom a packet is for, and what becomes of one that is for nobody (UE 3.5.8).
use super::pdc::{Pdc, Stage};
use super::pool::Pds;
use super::rx::Seen;
use super::types::{Action, Counter, Failure, Mode, Packet, Peer, To};
use crate::wire::Trim;
use ferric_abi::uet::codes::{ControlType, NackCode};
use std::cmp::Reverse;

impl Pds {
    pub(super) fn received(&mut self, from: Peer, packet: Packet, trim: Option<Trim>, ce: bool, ev: u16, out: &mut Vec<Action>) {
        let seen = |ask, retx, bytes| Seen { ask, marked: ce, retx, ev, at: self.pool.now, bytes };
        match packet {
            Packet::Request { mode, psn, clear, spdcid, to, retx, ar, body } => {
                let seen = seen(ar || matches!(to, To::Syn(_)), retx, body.bytes);
                if let Some(id) = self.find(from, spdcid, to, psn, mode, true, trim.is_some(), seen, out) {
                    self.with(id, out, |pdc, cx| pdc.request((psn, clear), to, body, trim, seen, cx));
                }
            }
            _ if trim.is_some() => out.push(Action::Count(Counter::TrimmedDropped)),
            Packet::Control { kind, mode, psn, payload, spdcid, to, retx, ar } => {
                let seen = seen(ar, retx, 0);
                let own = !matches!(kind, ControlType::AckRequest | ControlType::ClearCommand | ControlType::ClearRequest);
                if let Some(id) = self.find(from, spdcid, to, psn, mode, false, false, seen, out) {
                    let lingers = self.pdc(id).is_some_and(|pdc| matches!(pdc.stage, Stage::Linger(_))) && !own;
                    if lingers {
                        return out.push(Action::Count(Counter::DuplicateDropped));
                    }
                    self.with(id, out, |pdc, cx| pdc.ordered(kind, psn, payload, seen, cx));
                }
            }
            Packet::Ack { dpdcid, .. } => match self.pdc(dpdcid).filter(|pdc| pdc.peer == from) {
                Some(_) => self.with(dpdcid, out, |pdc, cx| pdc.acknowledged(&packet, cx)),
                None => out.push(Action::Count(Counter::Stray)),
            },
            Packet::Nack { code, psn, spdcid, dpdcid, payload, .. } => match self.pdc(dpdcid).filter(|pdc| pdc.peer == from) {
                Some(_) => self.with(dpdcid, out, |pdc, cx| pdc.refused(code, psn, spdcid, payload, cx)),
                None => out.push(Action::Count(Counter::Stray)),
            },
        }
    }

    /// The PDC that a request or control packet is for; it may be opened by it. None: it is refused or dropped.
    #[allow(clippy::too_many_arguments)]
    fn find(&mut self, from: Peer, spdcid: u16, to: To, psn: u32, mode: Mode, request: bool, trimmed: bool, seen: Seen, out: &mut Vec<Action>) -> Option<u16> {
        let nack = |code: NackCode, own: u16, out: &mut Vec<Action>| {
            // Of a trimmed frame no check is left, so it ends nothing.
            if trimmed {
                out.push(Action::Count(Counter::TrimmedDropped));
                return None;
            }
            out.push(Action::Count(Counter::NackSent(code as u8)));
            let packet = Packet::Nack { code, psn, spdcid: own, dpdcid: spdcid, payload: 0, marked: seen.marked, retx: seen.retx };
            out.push(Action::Transmit { to: from, packet, ev: seen.ev, control: true });
            None
        };
        match to {
            To::Syn(offset) => {
                let start = psn.wrapping_sub(offset.into());
                let there = self.pool.accepted.get(&(from, spdcid)).and_then(|index| self.pool.slots[usize::from(*index)].pdc.as_ref());
                let Some(pdc) = there else { return self.accept(from, spdcid, start, offset, mode, request, trimmed, out, nack) };
                if pdc.rx.start != start {
                    return nack(NackCode::InvalidSyn, pdc.id, out);
                }
                if pdc.mode != mode {
                    return nack(NackCode::ModeMismatch, pdc.id, out);
                }
                Some(pdc.id)
            }
            To::Id(id) => {
                let Some(pdc) = self.pdc(id) else { return nack(NackCode::InvalidPdc, 0, out) };
                if pdc.peer_id == 0 {
                    // The peer's id comes with an answer of it; this packet will come again.
                    out.push(Action::Count(Counter::Early));
                    return None;
                }
                if pdc.peer != from || pdc.peer_id != spdcid {
                    return nack(NackCode::HeaderMismatch, 0, out);
                }
                if pdc.mode != mode && request {
                    return nack(NackCode::ModeMismatch, pdc.id, out);
                }
                Some(pdc.id)
            }
        }
    }

    /// A SYN of a PDC that is not there.
    #[allow(clippy::too_many_arguments)]
    fn accept(
        &mut self,
        from: Peer,
        spdcid: u16,
        start: u32,
        offset: u16,
        mode: Mode,
        request: bool,
        trimmed: bool,
        out: &mut Vec<Action>,
        nack: impl Fn(NackCode, u16, &mut Vec<Action>) -> Option<u16>,
    ) -> Option<u16> {
        if trimmed {
            out.push(Action::Count(Counter::TrimmedDropped));
            return None;
        }
        if !request || spdcid == 0 {
            return nack(NackCode::HeaderMismatch, 0, out);
        }
        if u32::from(offset) >= self.config.window {
            return nack(NackCode::InvalidSyn, 0, out);
        }
        if !self.oust(from, out) {
            return nack(NackCode::NoPdc, 0, out);
        }
        let mut index = self.open(from, spdcid, mode, Some(start), out);
        if index.is_none() && self.cut_linger(out) {
            index = self.open(from, spdcid, mode, Some(start), out);
        }
        let Some(index) = index else {
            self.ask_to_close(from, out);
            return nack(NackCode::NoPdc, 0, out);
        };
        out.push(Action::Count(Counter::Accepted));
        self.pool.accepted.insert((from, spdcid), index);
        let left = self.config.share - self.used(false);
        if left < self.config.low {
            self.ask_to_close(from, out);
        }
        Some(self.id(index))
    }

    /// A peer that has its share of targets gets one more in the place of the one that it opened longest ago, the idle ones first, which ends in error: whatever it opens it takes from nobody else. Whether it may
    /// have one; not if all that it has linger.
    fn oust(&mut self, from: Peer, out: &mut Vec<Action>) -> bool {
        let own: Vec<&Pdc> = self.pdcs().filter(|pdc| !pdc.initiator && pdc.peer == from).collect();
        if own.len() < self.config.peer_share {
            return true;
        }
        let Some(oldest) = own.into_iter().filter(|pdc| pdc.stage == Stage::Open).min_by_key(|pdc| (!pdc.idle(), pdc.opened)).map(|pdc| pdc.id) else { return false };
        out.push(Action::Count(Counter::Ousted));
        self.with(oldest, out, |pdc, cx| pdc.fail(Failure::Timeout, cx));
        true
    }

    /// A target of the peer that has most is asked to go, so that nobody is who has less than others; if several have as many, one of those for which `from` wants a place. Of a peer's the one opened longest ago, the idle
    /// ones first. One at a time.
    fn ask_to_close(&mut self, from: Peer, out: &mut Vec<Action>) {
        if self.pdcs().any(|pdc| pdc.wants_close) {
            return;
        }
        let many = |peer: Peer| self.pdcs().filter(|pdc| !pdc.initiator && pdc.peer == peer).count();
        let open = self.pdcs().filter(|pdc| !pdc.initiator && pdc.stage == Stage::Open);
        let oldest = open.min_by_key(|pdc| (Reverse(many(pdc.peer)), pdc.peer != from, !pdc.idle(), pdc.opened)).map(|pdc| pdc.id);
        if let Some(pdc) = oldest.and_then(|id| self.pdc_mut(id)) {
            pdc.wants_close = true;
            out.push(Action::Count(Counter::TargetWantsClose));
        }
    }
}
