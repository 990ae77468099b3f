//! The pool of PDCs: who a packet is for, who is opened, who has to go (UE 3.5.8).
use super::pdc::{Cx, Pdc, Shared, Stage};
use super::rx::Seen;
use super::spray::random;
use super::types::{Action, Config, Counter, Defect, Event, Failure, Message, Mode, Packet, Peer, Timer, To};
use crate::wire::Trim;
use ferric_abi::uet::codes::{ControlType, NackCode};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A place of the pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Which life the next or present PDC lives.
    life: u16,
    /// Start of the PSNs used last, and how many.
    used: Option<(u32, u32)>,
    /// Until when it may not be used: packets for its last PDC may be on their way.
    quarantine: Option<u64>,
    /// The PDC.
    pdc: Option<Pdc>,
}

/// What changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    now: u64,
    slots: Vec<Slot>,
    /// Initiators by peer and mode.
    opened: BTreeMap<(Peer, Mode), u16>,
    /// Targets by peer and the peer's id.
    accepted: BTreeMap<(Peer, u16), u16>,
    /// Messages that no PDC takes yet.
    waiting: VecDeque<(Peer, Mode, Message)>,
    turn: u16,
    order: u64,
    shared: Shared,
}

/// Packet delivery of an endpoint.
#[derive(Clone, Debug)]
pub struct Pds {
    config: Arc<Config>,
    /// Its state.
    pub pool: Pool,
}

/// Start_PSN is at least so far from the last one that its place used.
const START_DISTANCE: u32 = 1 << 16;

impl Pds {
    /// An endpoint without PDCs.
    pub fn new(config: Arc<Config>) -> Self {
        let slot = Slot { life: 0, used: None, quarantine: None, pdc: None };
        let shared = Shared { records: 0, kept: 0, random: config.seed };
        let slots = vec![slot; 1 << config.pool_bits];
        let pool = Pool { now: 0, slots, opened: BTreeMap::new(), accepted: BTreeMap::new(), waiting: VecDeque::new(), turn: 0, order: 0, shared };
        Self { config, pool }
    }

    /// Registers.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// All PDCs.
    pub fn pdcs(&self) -> impl Iterator<Item = &Pdc> {
        self.pool.slots.iter().filter_map(|slot| slot.pdc.as_ref())
    }

    /// Timers that run, with the id that `Event::Expire` wants and the time.
    pub fn timers(&self) -> Vec<(u16, Timer, u64)> {
        let mut timers = Vec::new();
        for (index, slot) in self.pool.slots.iter().enumerate() {
            timers.extend(slot.quarantine.map(|time| (self.id(index as u16), Timer::Safety, time)));
            timers.extend(slot.pdc.iter().flat_map(|pdc| pdc.timers.iter().map(|(timer, time)| (pdc.id, *timer, *time))));
        }
        timers
    }

    /// When the next timer expires.
    pub fn deadline(&self) -> Option<u64> {
        let slots = self.pool.slots.iter();
        slots.filter_map(|slot| slot.quarantine.into_iter().chain(slot.pdc.iter().flat_map(|pdc| pdc.timers.values().copied())).min()).min()
    }

    /// It is so late; no timer has expired yet.
    pub fn at(&mut self, now: u64) {
        self.pool.now = self.pool.now.max(now);
    }

    /// Whether a grant would send something.
    pub fn ready(&self) -> bool {
        self.pdcs().any(|pdc| pdc.ready(&self.config, &self.pool.shared))
    }

    /// Whether nothing is left of any PDC and all pools are full.
    pub fn at_rest(&self) -> bool {
        let places = self.pool.slots.iter().all(|slot| slot.pdc.is_none() && slot.quarantine.is_none());
        places && self.pool.waiting.is_empty() && self.pool.shared.records == 0 && self.pool.shared.kept == 0
    }

    /// Executes an event.
    pub fn step(&mut self, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        match event {
            Event::Post { peer, mode, message } => {
                self.pool.waiting.push_back((peer, mode, message));
            }
            Event::Return { pdc, message } => {
                if let Some(pdc) = self.pdc_mut(pdc).filter(|pdc| !pdc.initiator && pdc.stage == Stage::Open) {
                    pdc.post(message);
                } else {
                    out.push(Action::Failed { message: message.id, why: Failure::Refused(NackCode::InvalidPdc as u8) });
                }
            }
            Event::Grant => self.grant(&mut out),
            Event::Received { from, packet, trim, ce, ev } => self.received(from, packet, trim, ce, ev, &mut out),
            Event::Done { pdc, psn, response, keep } => self.with(pdc, &mut out, |pdc, cx| pdc.done(psn, response, keep, cx)),
            Event::Refuse { pdc, psn, code } => self.with(pdc, &mut out, |pdc, cx| pdc.no_room(psn, code, cx)),
            Event::Tick(now) => {
                self.pool.now = self.pool.now.max(now);
                for (id, timer, _) in self.timers().into_iter().filter(|(_, _, time)| *time <= now) {
                    self.expire(id, timer, &mut out);
                }
            }
            Event::Expire { pdc, timer } => self.expire(pdc, timer, &mut out),
            Event::Close { pdc } => {
                if let Some(pdc) = self.pdc_mut(pdc) {
                    pdc.closing = pdc.initiator;
                    pdc.wants_close = !pdc.initiator;
                }
            }
            Event::Reset => {
                let ids: Vec<u16> = self.pdcs().map(|pdc| pdc.id).collect();
                for id in ids {
                    self.with(id, &mut out, |pdc, cx| pdc.fail(Failure::Reset, cx));
                }
                let waiting = std::mem::take(&mut self.pool.waiting);
                out.extend(waiting.into_iter().map(|(_, _, message)| Action::Failed { message: message.id, why: Failure::Reset }));
            }
        }
        self.admit(&mut out);
        out
    }

    fn id(&self, index: u16) -> u16 {
        self.pool.slots[usize::from(index)].life << self.config.pool_bits | index
    }

    fn index(&self, id: u16) -> usize {
        usize::from(id) & ((1 << self.config.pool_bits) - 1)
    }

    /// The PDC with an id; one of an earlier life is another.
    fn pdc_mut(&mut self, id: u16) -> Option<&mut Pdc> {
        let index = self.index(id);
        self.pool.slots[index].pdc.as_mut().filter(|pdc| pdc.id == id)
    }

    fn pdc(&self, id: u16) -> Option<&Pdc> {
        self.pool.slots[self.index(id)].pdc.as_ref().filter(|pdc| pdc.id == id)
    }

    /// Lets a PDC act, and takes it away when it is over.
    fn with(&mut self, id: u16, out: &mut Vec<Action>, act: impl FnOnce(&mut Pdc, &mut Cx)) {
        let index = self.index(id);
        let Pool { slots, shared, now, .. } = &mut self.pool;
        let Some(pdc) = slots[index].pdc.as_mut().filter(|pdc| pdc.id == id) else { return out.push(Action::Count(Counter::Ignored)) };
        act(pdc, &mut Cx { config: &self.config, now: *now, out, shared });
        if pdc.stage == Stage::Over {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) {
        let (now, safety) = (self.pool.now, self.config.safety);
        let Some(pdc) = self.pool.slots[index].pdc.take() else { return };
        let lives = self.config.defect != Some(Defect::NoLives);
        let slot = &mut self.pool.slots[index];
        slot.used = Some((pdc.tx.start, pdc.tx.next));
        // A target's has lingered.
        slot.quarantine = (pdc.initiator && lives).then_some(now + safety);
        let keep = |index: &u16, gone: usize| usize::from(*index) != gone;
        self.pool.opened.retain(|_, place| keep(place, index));
        self.pool.accepted.retain(|_, place| keep(place, index));
    }

    fn expire(&mut self, id: u16, timer: Timer, out: &mut Vec<Action>) {
        let index = self.index(id);
        if self.pool.slots[index].pdc.is_none() {
            self.pool.slots[index].quarantine = None;
        } else if self.pdc(id).is_some_and(|pdc| pdc.timers.contains_key(&timer)) {
            self.with(id, out, |pdc, cx| pdc.expire(timer, cx));
        }
    }

    /// Round robin over those that have something to send.
    fn grant(&mut self, out: &mut Vec<Action>) {
        let count = self.pool.slots.len() as u16;
        for step in 1..=count {
            let index = (self.pool.turn + step) % count;
            let Some(pdc) = &self.pool.slots[usize::from(index)].pdc else { continue };
            if pdc.ready(&self.config, &self.pool.shared) {
                self.pool.turn = index;
                let id = pdc.id;
                return self.with(id, out, |pdc, cx| pdc.send(cx));
            }
            out.extend(pdc.blocked(&self.config, &self.pool.shared).map(Action::Count));
        }
    }

    /// PDCs that were opened here, or there; with those that linger.
    fn used(&self, initiators: bool) -> usize {
        self.pdcs().filter(|pdc| pdc.initiator == initiators).count() + self.pool.slots.iter().filter(|slot| initiators && slot.quarantine.is_some()).count()
    }

    /// A new PDC. None: no place, or its side has its share.
    fn open(&mut self, peer: Peer, peer_id: u16, mode: Mode, start: Option<u32>, out: &mut Vec<Action>) -> Option<u16> {
        if self.used(peer_id == 0) >= self.config.share || self.used(true) + self.used(false) >= self.config.places {
            return None;
        }
        let index = (1..self.pool.slots.len()).find(|index| self.pool.slots[*index].pdc.is_none() && self.pool.slots[*index].quarantine.is_none())?;
        let start = start.unwrap_or_else(|| self.first_psn(index));
        let slot = &mut self.pool.slots[index];
        if slot.used.is_some() {
            out.push(Action::Count(Counter::IdReused));
        }
        if self.config.defect != Some(Defect::NoLives) {
            slot.life = (slot.life + 1) % (1 << self.config.life_bits);
        }
        let id = self.id(index as u16);
        self.pool.order += 1;
        let Pool { slots, shared, now, order, .. } = &mut self.pool;
        let mut cx = Cx { config: &self.config, now: *now, out, shared };
        slots[index].pdc = Some(Pdc::new(id, peer, peer_id, mode, start, *order, &mut cx));
        Some(index as u16)
    }

    /// Random, not 0, and far from what the place used last.
    fn first_psn(&mut self, index: usize) -> u32 {
        if let (Some(first), None) = (self.config.first_psn, self.pool.slots[index].used) {
            return first;
        }
        loop {
            let start = random(&mut self.pool.shared.random) as u32;
            let far = self.pool.slots[index].used.is_none_or(|(first, count)| {
                let last = first.wrapping_add(count);
                start.wrapping_sub(last).min(last.wrapping_sub(start)) >= START_DISTANCE
            });
            if start != 0 && far {
                return start;
            }
        }
    }

    /// Gives messages to PDCs, in their order for each peer, and makes room when there is none.
    fn admit(&mut self, out: &mut Vec<Action>) {
        if self.pool.waiting.is_empty() {
            return;
        }
        let (mut blocked, mut full) = (Vec::new(), false);
        for (peer, mode, message) in std::mem::take(&mut self.pool.waiting) {
            let key = (peer, mode);
            if !blocked.contains(&key) {
                let there = self.pool.opened.get(&key).copied();
                let index = there.or_else(|| {
                    let index = if full { None } else { self.open(peer, 0, mode, None, out) };
                    full |= index.is_none();
                    let index = index?;
                    out.push(Action::Count(Counter::Opened));
                    self.pool.opened.insert(key, index);
                    Some(index)
                });
                match index.and_then(|index| self.pool.slots[usize::from(index)].pdc.as_mut()).filter(|pdc| pdc.takes()) {
                    Some(pdc) => {
                        pdc.post(message);
                        continue;
                    }
                    None => blocked.push(key),
                }
            }
            self.pool.waiting.push_back((peer, mode, message));
        }
        if full {
            self.make_room(out);
        }
    }

    /// No place for an initiator: the idle one that is oldest closes, else the one opened longest ago, behind what it has. One at a time is on its way out.
    fn make_room(&mut self, out: &mut Vec<Action>) {
        if self.pdcs().any(|pdc| pdc.initiator && (pdc.closing || pdc.stage == Stage::CloseWait)) || self.pool.slots.iter().any(|slot| slot.quarantine.is_some()) {
            return;
        }
        let leaving = self.pdcs().filter(|pdc| pdc.initiator && pdc.takes()).min_by_key(|pdc| (!pdc.idle(), pdc.opened)).map(|pdc| pdc.id);
        if let Some(pdc) = leaving.and_then(|id| self.pdc_mut(id)) {
            pdc.closing = true;
            out.push(Action::Count(Counter::PoolFull));
        } else {
            self.cut_linger(out);
        }
    }

    /// A target that lingers gives way. Whether one did.
    fn cut_linger(&mut self, out: &mut Vec<Action>) -> bool {
        let lingering = self.pdcs().filter(|pdc| matches!(pdc.stage, Stage::Linger(_))).min_by_key(|pdc| pdc.opened).map(|pdc| pdc.id);
        let Some(id) = lingering.filter(|_| self.config.linger_cut) else { return false };
        out.push(Action::Count(Counter::LingerCut));
        self.with(id, out, |pdc, cx| pdc.end(cx));
        true
    }

    fn received(&mut self, from: Peer, packet: Packet, trim: Option<Trim>, ce: bool, ev: u16, out: &mut Vec<Action>) {
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
        let mut index = self.open(from, spdcid, mode, Some(start), out);
        if index.is_none() && self.cut_linger(out) {
            index = self.open(from, spdcid, mode, Some(start), out);
        }
        let Some(index) = index else {
            self.ask_to_close(out);
            return nack(NackCode::NoPdc, 0, out);
        };
        out.push(Action::Count(Counter::Accepted));
        self.pool.accepted.insert((from, spdcid), index);
        let left = self.config.share - self.used(false);
        if left < self.config.low {
            self.ask_to_close(out);
        }
        Some(self.id(index))
    }

    /// The target opened longest ago is asked to go, the idle ones first; one at a time.
    fn ask_to_close(&mut self, out: &mut Vec<Action>) {
        if self.pdcs().any(|pdc| pdc.wants_close) {
            return;
        }
        let oldest = self.pdcs().filter(|pdc| !pdc.initiator && pdc.stage == Stage::Open).min_by_key(|pdc| (!pdc.idle(), pdc.opened)).map(|pdc| pdc.id);
        if let Some(pdc) = oldest.and_then(|id| self.pdc_mut(id)) {
            pdc.wants_close = true;
            out.push(Action::Count(Counter::TargetWantsClose));
        }
    }
}
