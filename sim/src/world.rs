//! Several cards, the fabric between them, and time.
use crate::capture::{Capture, CYCLE_NS};
use crate::card::{Card, CardConfig};
use crate::error::Error;
use crate::fabric::{Link, LinkConfig};
use crate::pace::Pace;
use crate::partner::Partner;
use crate::peer::PeerMemory;
use crate::trace::Event;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The variable of the environment that says on how many threads a world of two cards runs whose configuration leaves it open: 1 or 2.
pub const THREADS: &str = "FERRIC_SIM_THREADS";

/// On which threads two cards run.
enum Threads {
    One,
    Two(Partner),
    Measured(Partner, Pace),
}

impl Threads {
    /// For these cards. Error: [`THREADS`] says something else than 1 and 2.
    fn of(cards: &[Card], configured: Option<usize>) -> Result<Self, Error> {
        let wanted = match std::env::var(THREADS).as_deref() {
            Err(_) => configured,
            Ok("1") => configured.or(Some(1)),
            Ok("2") => configured.or(Some(2)),
            Ok(other) => return Err(Error::Gateware(format!("{THREADS} is 1 or 2, not `{other}`"))),
        };
        // A twin's cycles are too short to be given to somebody else.
        let one = cards.len() != 2 || cards.iter().any(Card::instant) || wanted == Some(1);
        if one || (wanted.is_none() && std::thread::available_parallelism().is_ok_and(|n| n.get() == 1)) {
            return Ok(Self::One);
        }
        Ok(match (Partner::start(), wanted) {
            (Err(_), _) => Self::One,
            (Ok(partner), Some(_)) => Self::Two(partner),
            (Ok(partner), None) => Self::Measured(partner, Pace::default()),
        })
    }
}

/// Cycles of one tick (1.024 us) on hardware.
pub const TICK_CYCLES: u64 = 256;

/// Cycles that a card's clock stands at most, which is longer than a command takes, and those that it makes then: more than what is under way inside can need.
const STOOD: u64 = 65_536;
const CATCH_UP: u64 = 4096;

/// The simulated set-up.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// The cards.
    pub cards: Vec<CardConfig>,
    /// Each direction of the wire (two cards: 0 -> 1 and 1 -> 0).
    pub link: LinkConfig,
    /// Seed.
    pub seed: u64,
    /// Cycles per tick: [`TICK_CYCLES`] on hardware, fewer to make protocol time run faster than the pipeline.
    pub tick_cycles: u64,
    /// Skip idle time: when nothing moves at any boundary, ticks pass without cycles.
    pub skip_idle: bool,
    /// While a driver waits for its own card's answer to a command ([`World::run_for`]), the clocks of cards that rest stand. Most cycles of a set-up are such; a bench counts them all.
    pub rest: bool,
    /// Threads on which two cards of gateware run: 1 or 2; `None`: as [`THREADS`] says, or what is faster, measured now and then, if the machine has two processors. No result depends on it, but for bytes of one memory mapped at both
    /// cards that both touch in the same cycle, one of them writing: as on two cards of hardware nothing says who is first. With 1 that is the first card, always.
    pub threads: Option<usize>,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self { cards: vec![CardConfig::default(), CardConfig::default()], link: LinkConfig::default(), seed: 1, tick_cycles: TICK_CYCLES, skip_idle: true, rest: true, threads: None }
    }
}

/// Everything that exists in a simulation.
pub struct World {
    /// The cards.
    pub cards: Vec<Card>,
    /// `links[i]` carries what card `i` sends; to the other card when there are two, to nobody when there is one.
    pub links: Vec<Link>,
    /// Other devices on the bus, whose memory the cards may be given.
    pub peers: Vec<Arc<PeerMemory>>,
    cycle: u64,
    ticks: u64,
    /// Ticks that passed without cycles.
    skipped: u64,
    tick_cycles: u64,
    skip_idle: bool,
    rest: bool,
    /// Cards that have been given a command ([`World::asks`]) for whose answer nobody has waited yet; the card whose answer is awaited; cycles that another's clock has stood for it.
    asked: Vec<bool>,
    awaited: Option<usize>,
    stood: u64,
    /// All such cycles.
    rested: u64,
    skip_run: u64,
    capture: Option<Capture>,
    /// Boundary events, when switched on; their cycles are of [`World::elapsed`].
    pub trace: Option<Vec<Event>>,
    /// Frames a lone card sent (no peer): taken by the test.
    pub outbox: Vec<Vec<u8>>,
    /// Cycle at which [`World::step`] panics: for tests of what might never end, where a driver's own time-out is hours of simulation.
    pub deadline: Option<u64>,
    threads: Threads,
}

impl World {
    /// Builds the cards (those of gateware, or takes them from the cache) and starts them. The environment may say of what they are made ([`crate::card::BODIES`]).
    pub fn new(config: &WorldConfig) -> Result<Self, Error> {
        let mut cards = Vec::new();
        for (i, c) in config.cards.iter().enumerate() {
            let c = CardConfig { seed: c.seed ^ config.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i as u64) << 32, ..c.clone() };
            cards.push(Card::new(&c, i as u16)?);
        }
        let threads = Threads::of(&cards, config.threads)?;
        let links = (0..cards.len()).map(|i| Link::new(config.link, config.seed.wrapping_add(0x1000 + i as u64))).collect();
        Ok(Self {
            cards,
            links,
            peers: Vec::new(),
            cycle: 0,
            ticks: 0,
            skipped: 0,
            tick_cycles: config.tick_cycles.max(1),
            skip_idle: config.skip_idle,
            rest: config.rest,
            asked: vec![false; config.cards.len()],
            awaited: None,
            stood: 0,
            rested: 0,
            skip_run: 0,
            capture: None,
            trace: None,
            outbox: Vec::new(),
            deadline: None,
            threads,
        })
    }

    /// Cycles simulated so far.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }
    /// Cycles that the cards' clocks have made so far: those simulated, and those of the idle time that was skipped.
    pub fn elapsed(&self) -> u64 {
        self.cycle + self.skipped * TICK_CYCLES
    }
    /// Cycles in which a card's clock stood, see [`WorldConfig::rest`].
    pub fn rested(&self) -> u64 {
        self.rested
    }
    /// Ticks passed so far (idle time included).
    pub fn ticks(&self) -> u64 {
        self.ticks
    }
    /// Device time in nanoseconds: ticks, at least the simulated cycles.
    pub fn nanos(&self) -> u64 {
        (self.ticks * TICK_CYCLES).max(self.cycle) * CYCLE_NS
    }
    /// Lets `ticks` pass at once: for directed timer tests.
    pub fn advance_ticks(&mut self, ticks: u64) {
        self.ticks += ticks;
        self.skipped += ticks;
    }
    /// Writes a pcapng of the wire from now on.
    pub fn start_capture(&mut self, path: &Path) -> Result<(), Error> {
        self.capture = Some(Capture::create(path)?);
        Ok(())
    }
    /// Ends the capture.
    pub fn stop_capture(&mut self) {
        self.capture = None;
    }
    /// Nothing moves anywhere and nothing has for a while.
    pub fn quiet(&self) -> bool {
        self.links.iter().all(Link::idle) && self.cards.iter().all(|c| c.quiet(self.cycle))
    }
    /// All cards do at once what they are asked for.
    pub fn instant(&self) -> bool {
        self.cards.iter().all(Card::instant)
    }
    /// Nothing is under way and nothing is due: said of a world whose cards are instant.
    pub fn settled(&self) -> bool {
        self.links.iter().all(Link::idle) && self.cards.iter().all(|c| c.idle() && c.next_deadline().is_none_or(|at| at > self.ticks))
    }

    /// One clock cycle of everything.
    pub fn step(&mut self) {
        let n = self.cards.len();
        let traced = self.trace.as_ref().map_or(0, Vec::len);
        self.cycle_cards();
        for i in 0..n {
            while let Some(frame) = self.cards[i].sent.pop_front() {
                if n == 1 {
                    self.outbox.push(frame);
                    continue;
                }
                let copy = self.capture.is_some().then(|| frame.clone());
                let (fate, delivered) = self.links[i].send(self.cycle, frame);
                if let (Some(capture), Some(frame)) = (&mut self.capture, copy) {
                    if let Err(e) = capture.frame(self.cycle, i as u32 + 1, &frame, fate, delivered.as_deref()) {
                        log::error!("{e}");
                        self.capture = None;
                    }
                }
            }
        }
        if n == 2 {
            for i in 0..2 {
                while let Some(frame) = self.links[i].receive(self.cycle) {
                    self.cards[1 - i].receive(frame);
                }
            }
        }
        let skipped = self.skipped * TICK_CYCLES;
        for event in self.trace.iter_mut().flat_map(|t| &mut t[traced..]) {
            event.cycle += skipped;
        }
        self.cycle += 1;
        assert!(self.deadline.is_none_or(|end| self.cycle < end), "not done in cycle {}, the test's deadline", self.cycle);
        if self.cycle % self.tick_cycles == 0 {
            self.ticks += 1;
        }
        if self.skip_idle && self.quiet() {
            // Time runs ever faster while nothing happens; a timer that fires stops it.
            self.skip_run += 1;
            self.advance_ticks(1 + (self.skip_run / 64).min(256));
        } else {
            self.skip_run = 0;
        }
    }

    /// The card whose clock stands in this cycle. The answer that is awaited depends on it by the wire at most, and what comes by the wire wakes it.
    fn standing(&mut self) -> Option<usize> {
        let awaited = self.awaited.filter(|_| self.cards.len() == 2)?;
        let other = 1 - awaited;
        if self.asked[other] || self.cards[other].instant() || !self.cards[other].rests(self.cycle) {
            self.stood = 0;
            return None;
        }
        // Whatever it has to do by itself, it does that in the end.
        self.stood = (self.stood + 1) % (STOOD + CATCH_UP);
        (self.stood < STOOD).then_some(other)
    }

    /// One clock cycle of the cards.
    fn cycle_cards(&mut self) {
        if let Some(other) = self.standing() {
            self.rested += 1;
            self.cards[1 - other].cycle(self.cycle, self.ticks, &mut self.trace);
            return;
        }
        if let Threads::Two(partner) | Threads::Measured(partner, _) = &mut self.threads {
            if partner.lost() {
                match Partner::start() {
                    Ok(started) => *partner = started,
                    Err(_) => self.threads = Threads::One,
                }
            }
        }
        // Memory of other devices may be that of both cards.
        let alone = !self.peers.is_empty();
        let partner = match &self.threads {
            Threads::Two(partner) if !alone => Some(partner),
            Threads::Measured(partner, pace) if !alone && pace.together() => Some(partner),
            _ => None,
        };
        let measures = matches!(&self.threads, Threads::Measured(_, pace) if pace.measures());
        let begun = measures.then(Instant::now);
        let lent = partner.and_then(|partner| match partner.begin(self.cards.pop()?, self.cycle, self.ticks, self.trace.is_some()) {
            None => Some(partner),
            Some(card) => {
                self.cards.push(card);
                None
            }
        });
        for card in &mut self.cards {
            card.cycle(self.cycle, self.ticks, &mut self.trace);
        }
        if let Some(partner) = lent {
            let (card, events) = partner.finish();
            self.cards.push(card);
            if let Some(trace) = &mut self.trace {
                trace.extend(events.into_iter().flatten());
            }
        }
        if let Threads::Measured(_, pace) = &mut self.threads {
            pace.cycle(begun.map_or(Duration::ZERO, |at| at.elapsed()));
        }
    }

    /// Card `card` is given a command: it does not rest before somebody has waited for the answer.
    pub fn asks(&mut self, card: usize) {
        self.asked[card] = true;
    }

    /// `n` cycles, or fewer of cards that rest while card `card` prepares an answer.
    pub fn run_for(&mut self, card: usize, n: u64) {
        self.asked[card] = false;
        self.awaited = self.rest.then_some(card);
        self.run(n);
        self.awaited = None;
    }

    /// `n` cycles.
    pub fn run(&mut self, n: u64) {
        for _ in 0..n {
            self.step();
        }
    }
}
