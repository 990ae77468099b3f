//! The pool of PDCs: who is opened, who has to go (UE 3.5.8).
use super::pdc::{Cx, Pdc, Shared, Stage};
use super::spray::random;
use super::types::{Action, Config, Counter, Defect, Event, Failure, Message, Mode, Peer, Timer};
use ferric_abi::uet::codes::NackCode;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A place of the pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Which life the next or present PDC lives.
    pub(super) life: u16,
    /// Start of the PSNs used last, and how many.
    pub(super) used: Option<(u32, u32)>,
    /// Until when it may not be used: packets for its last PDC, which was to this peer, may be on their way.
    pub(super) quarantine: Option<(u64, Peer)>,
    /// The PDC.
    pub(super) pdc: Option<Pdc>,
}

/// What changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    pub(super) now: u64,
    pub(super) slots: Vec<Slot>,
    /// Initiators by peer and mode.
    pub(super) opened: BTreeMap<(Peer, Mode), u16>,
    /// Targets by peer and the peer's id.
    pub(super) accepted: BTreeMap<(Peer, u16), u16>,
    /// Messages that no PDC takes yet.
    pub(super) waiting: VecDeque<(Peer, Mode, Message)>,
    pub(super) turn: u16,
    pub(super) order: u64,
    pub(super) shared: Shared,
}

/// Packet delivery of an endpoint.
#[derive(Clone, Debug)]
pub struct Pds {
    pub(super) config: Arc<Config>,
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
            timers.extend(slot.quarantine.map(|(time, _)| (self.id(index as u16), Timer::Safety, time)));
            timers.extend(slot.pdc.iter().flat_map(|pdc| pdc.timers.iter().map(|(timer, time)| (pdc.id, *timer, *time))));
        }
        timers
    }

    /// When the next timer expires.
    pub fn deadline(&self) -> Option<u64> {
        let slots = self.pool.slots.iter();
        slots.filter_map(|slot| slot.quarantine.map(|(time, _)| time).into_iter().chain(slot.pdc.iter().flat_map(|pdc| pdc.timers.values().copied())).min()).min()
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
            Event::Abort { pdc } => self.with(pdc, &mut out, |pdc, cx| pdc.fail(Failure::Reset, cx)),
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

    pub(super) fn id(&self, index: u16) -> u16 {
        self.pool.slots[usize::from(index)].life << self.config.pool_bits | index
    }

    fn index(&self, id: u16) -> usize {
        usize::from(id) & ((1 << self.config.pool_bits) - 1)
    }

    /// The PDC with an id; one of an earlier life is another.
    pub(super) fn pdc_mut(&mut self, id: u16) -> Option<&mut Pdc> {
        let index = self.index(id);
        self.pool.slots[index].pdc.as_mut().filter(|pdc| pdc.id == id)
    }

    pub(super) fn pdc(&self, id: u16) -> Option<&Pdc> {
        self.pool.slots[self.index(id)].pdc.as_ref().filter(|pdc| pdc.id == id)
    }

    /// Lets a PDC act, and takes it away when it is over.
    pub(super) fn with(&mut self, id: u16, out: &mut Vec<Action>, act: impl FnOnce(&mut Pdc, &mut Cx)) {
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
        slot.quarantine = (pdc.initiator && lives).then_some((now + safety, pdc.peer));
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
    pub(super) fn used(&self, initiators: bool) -> usize {
        self.pdcs().filter(|pdc| pdc.initiator == initiators).count() + self.pool.slots.iter().filter(|slot| initiators && slot.quarantine.is_some()).count()
    }

    /// PDCs to this peer have all places that they may, those among them that rest.
    pub fn has_all(&self, peer: Peer) -> bool {
        let rest = self.pool.slots.iter().filter(|slot| slot.quarantine.is_some_and(|(_, last)| last == peer)).count();
        self.pdcs().filter(|pdc| pdc.initiator && pdc.peer == peer).count() + rest >= self.config.peer_initiators
    }

    /// A new PDC. None: no place, or its side or its peer has its share.
    pub(super) fn open(&mut self, peer: Peer, peer_id: u16, mode: Mode, start: Option<u32>, out: &mut Vec<Action>) -> Option<u16> {
        if peer_id == 0 && self.has_all(peer) || self.used(peer_id == 0) >= self.config.share || self.used(true) + self.used(false) >= self.config.places {
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
                let there = self.pool.opened.get(&key).copied().filter(|index| !self.gives_way(*index));
                let index = there.or_else(|| {
                    let index = if full { None } else { self.open(peer, 0, mode, None, out) };
                    // If its peer has its share it waits alone.
                    full |= index.is_none() && !self.has_all(peer);
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

    /// An initiator that takes no more messages, beside which another one may be opened: behind its last message, if they have an order, since all are answered when its close goes out.
    fn gives_way(&self, index: u16) -> bool {
        let pdc = self.pool.slots[usize::from(index)].pdc.as_ref();
        pdc.is_some_and(|pdc| !pdc.takes() && (pdc.mode == Mode::Rud || pdc.stage == Stage::CloseWait))
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
    pub(super) fn cut_linger(&mut self, out: &mut Vec<Action>) -> bool {
        let lingering = self.pdcs().filter(|pdc| matches!(pdc.stage, Stage::Linger(_))).min_by_key(|pdc| pdc.opened).map(|pdc| pdc.id);
        let Some(id) = lingering.filter(|_| self.config.linger_cut) else { return false };
        out.push(Action::Count(Counter::LingerCut));
        self.with(id, out, |pdc, cx| pdc.end(cx));
        true
    }
}
