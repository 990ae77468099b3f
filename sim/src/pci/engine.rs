//! The thread that runs the simulation of served cards. Everybody else talks to it through channels, so that no answer to
//! a client ever waits for more than the bounded time the caller chooses.
use super::command::{Command, Handle, Inbox};
use super::function::Function;
use super::hands::Hands;
use crate::capture::Capture;
use crate::virtio::Seat;
use crate::wire::Wire;
use crate::world::World;
use ferric_abi::csr;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Nanoseconds of one tick.
const TICK_NS: u128 = 1024;
/// Cycles between looks at the channels while something moves.
const BURST: u64 = 16;
/// Sleep between looks while nothing does, and the cycles run then, in which timers come to fire.
const IDLE: Duration = Duration::from_millis(8);
const IDLE_CYCLES: u64 = 64;
/// Commands that are taken before it is looked whether something moves.
const COMMANDS: usize = 256;
/// Accesses that may wait in front of a card before the channel is left to fill.
const BACKLOG: usize = 64;
/// Longest a function's reset may take before its accesses are let through again.
const RESET_TIMEOUT: Duration = Duration::from_secs(35);
/// CONTROL: soft reset; STATUS: reset in progress.
const RESET: u32 = 2;

/// What waits for the value of a register read.
enum Reader {
    Host(SyncSender<u32>),
    ResetPoll(usize),
}

/// What waits for the value of a read of a virtio function's window.
type WindowReader = SyncSender<[u8; 4]>;

/// A function's side of the engine.
struct Served {
    function: Arc<Function>,
    /// Since when it resets, what came meanwhile, and who waits for the end.
    resetting: Option<Instant>,
    deferred: VecDeque<Command>,
    waiting: Vec<SyncSender<()>>,
    /// Of a virtio function: who reads its window, in order.
    window: VecDeque<WindowReader>,
}

/// The engine.
pub struct Engine {
    world: World,
    served: Vec<Served>,
    readers: Vec<VecDeque<Reader>>,
    wire: Option<Arc<dyn Wire>>,
    capture: Option<Capture>,
    commands: Receiver<Command>,
    frames: Receiver<Vec<u8>>,
    started: Instant,
    /// Its cards do at once what they are asked for.
    instant: bool,
    /// It has been told to stop, or every handle is gone.
    ended: bool,
    /// The tick until which its keeper sleeps ([`Hands`]).
    sleeps_until: u64,
}

/// What runs an engine.
pub enum Runner {
    /// A thread of its own.
    Own(Box<Engine>),
    /// Whoever asks something of it, and a keeper.
    Hands(Arc<Hands>),
}

impl Runner {
    /// Runs it until it ends.
    pub fn run(self) {
        match self {
            Self::Own(engine) => engine.run(),
            Self::Hands(hands) => hands.keep(),
        }
    }
}

impl Engine {
    /// An engine over `world`, whose ticks it drives by the wall clock, and the way to it.
    pub fn over(world: World, functions: &[Arc<Function>], wire: Option<Arc<dyn Wire>>, capture: Option<Capture>) -> (Runner, Handle) {
        let (mut handle, Inbox { commands, frames }) = Handle::running();
        let served = functions.iter().map(|f| Served { function: f.clone(), resetting: None, deferred: VecDeque::new(), waiting: Vec::new(), window: VecDeque::new() }).collect();
        let readers = world.cards.iter().map(|_| VecDeque::new()).collect();
        let instant = world.instant();
        let mut engine = Self { world, served, readers, wire, capture, commands, frames, started: Instant::now(), instant, ended: false, sleeps_until: 0 };
        for s in &engine.served {
            // From now on the function reaches nothing that a client has not mapped.
            engine.world.cards[s.function.card].iommu.client(s.function.number);
        }
        if !instant {
            return (Runner::Own(Box::new(engine)), handle);
        }
        let hands = Arc::new(Hands::new(engine));
        if let Handle::Running { helps, .. } = &mut handle {
            *helps = Some(hands.clone());
        }
        (Runner::Hands(hands), handle)
    }

    /// Runs until told to stop, or until every handle is gone.
    fn run(mut self) {
        loop {
            self.take_commands();
            if self.ended {
                return;
            }
            self.receive_frames();
            self.follow_the_clock();
            if self.is_waiting() || !self.world.quiet() {
                self.burst(BURST);
                continue;
            }
            match self.commands.recv_timeout(self.rest()) {
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(c) => self.handle(c),
                Err(RecvTimeoutError::Timeout) => self.burst(IDLE_CYCLES),
            }
        }
    }

    /// Of an instant world: does what it has been asked for, in `bursts` bursts at most. `None`: there is more to do; else how long nothing happens by itself.
    pub(crate) fn turn(&mut self, bursts: usize) -> Option<Duration> {
        for _ in 0..bursts {
            self.take_commands();
            self.receive_frames();
            self.follow_the_clock();
            if self.ended || !self.is_busy() {
                return Some(self.rest());
            }
            self.burst(BURST);
        }
        (!self.is_busy()).then(|| self.rest())
    }

    /// It has been told to stop.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Its keeper sleeps for `rest` from now on.
    pub(crate) fn sleeps(&mut self, rest: Duration) {
        self.sleeps_until = self.world.ticks() + (rest.as_nanos() / TICK_NS) as u64;
    }

    /// The keeper sleeps beyond `rest` from now on.
    pub(crate) fn ends_sleep(&self, rest: Duration) -> bool {
        self.ended || rest < IDLE && self.world.ticks() + ((rest.as_nanos() / TICK_NS) as u64) < self.sleeps_until
    }

    fn take_commands(&mut self) {
        for _ in 0..COMMANDS {
            if self.world.cards.iter().any(|c| c.mmio_backlog() >= BACKLOG) {
                break;
            }
            match self.commands.try_recv() {
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    return;
                }
                Ok(c) => self.handle(c),
                Err(TryRecvError::Empty) => break,
            }
        }
    }

    /// Somebody waits for the card's answer.
    fn is_waiting(&self) -> bool {
        self.readers.iter().any(|r| !r.is_empty()) || self.served.iter().any(|s| s.resetting.is_some() || !s.window.is_empty())
    }

    /// The same, of an instant world, or something is under way.
    fn is_busy(&self) -> bool {
        self.is_waiting() || !self.world.settled()
    }

    fn follow_the_clock(&mut self) {
        let ticks = (self.started.elapsed().as_nanos() / TICK_NS) as u64;
        self.world.advance_ticks(ticks.saturating_sub(self.world.ticks()));
    }

    /// How long nothing happens by itself, as far as is known.
    fn rest(&self) -> Duration {
        let next = self.world.cards.iter().filter_map(|c| c.next_deadline()).min();
        let ticks = next.map(|at| at.saturating_sub(self.world.ticks()));
        ticks.map_or(IDLE, |ticks| IDLE.min(Duration::from_nanos(ticks.max(1).saturating_mul(TICK_NS as u64))))
    }

    fn receive_frames(&mut self) {
        while self.world.cards[0].receive_backlog() < BACKLOG {
            let Ok(frame) = self.frames.try_recv() else { break };
            self.record(2, &frame);
            self.world.cards[0].receive(frame);
        }
    }

    /// Writes a frame to the capture: direction 1 is from the card, 2 to it.
    fn record(&mut self, direction: u32, frame: &[u8]) {
        let nanos = self.started.elapsed().as_nanos() as u64;
        if let Some(Err(e)) = self.capture.as_mut().map(|c| c.frame_at(nanos, direction, frame, None)) {
            log::error!("{e}");
            self.capture = None;
        }
    }

    fn address(&self, function: usize, offset: u32) -> (usize, u32) {
        let f = &self.served[function].function;
        (f.card, (f.number as u32) << csr::WINDOW_BITS | offset)
    }

    fn handle(&mut self, command: Command) {
        let number = match &command {
            Command::Write32 { function, .. } | Command::Doorbell { function, .. } | Command::Read32 { function, .. } => Some(*function),
            Command::WindowWrite { function, .. } | Command::WindowRead { function, .. } => Some(*function),
            _ => None,
        };
        if let Some(s) = number.map(|n| &mut self.served[n]).filter(|s| s.resetting.is_some()) {
            s.deferred.push_back(command);
            return;
        }
        match command {
            Command::Write32 { function, offset, value } => {
                let (card, addr) = self.address(function, offset);
                self.world.cards[card].write32(addr, value);
            }
            Command::Doorbell { function, offset, bytes } => {
                let (card, addr) = self.address(function, offset);
                self.world.cards[card].doorbell(addr, &bytes);
            }
            Command::Read32 { function, offset, reply } => self.read(function, offset, Reader::Host(reply)),
            Command::WindowWrite { function, offset, bytes } => {
                if let Some(seat) = self.seat(function) {
                    seat.write(offset, &bytes);
                }
            }
            Command::WindowRead { function, offset, bytes, reply } => {
                if let Some(seat) = self.seat(function) {
                    seat.start_read(offset, bytes);
                    self.served[function].window.push_back(reply);
                }
            }
            Command::Map { function, change } => {
                let f = &self.served[function].function;
                change(self.world.cards[f.card].iommu.client(f.number));
            }
            Command::Reset { function, done } => {
                let (card, addr) = self.address(function, csr::CONTROL);
                let s = &mut self.served[function];
                s.waiting.extend(done);
                if s.resetting.is_some() {
                    return;
                }
                s.resetting = Some(Instant::now());
                if let Some(seat) = self.seat(function) {
                    seat.start_reset();
                } else {
                    self.world.cards[card].write32(addr, RESET);
                    self.read(function, csr::STATUS, Reader::ResetPoll(function));
                }
            }
            Command::Wake | Command::Stop => {}
        }
    }

    /// What a served function is made of, if it is a virtio function.
    fn seat(&mut self, function: usize) -> Option<&mut dyn Seat> {
        let f = &self.served[function].function;
        Some(self.world.cards[f.card].virtio.get_mut(f.virtio?)?.as_mut())
    }

    fn read(&mut self, function: usize, offset: u32, reader: Reader) {
        let (card, addr) = self.address(function, offset);
        self.world.cards[card].start_read32(addr);
        self.readers[card].push_back(reader);
    }

    fn burst(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.world.step();
            for card in 0..self.world.cards.len() {
                let Some(value) = self.world.cards[card].take_read() else { continue };
                match self.readers[card].pop_front() {
                    // Nobody listens any more when the client's time is up.
                    Some(Reader::Host(reply)) => {
                        let _ = reply.try_send(value);
                    }
                    Some(Reader::ResetPoll(function)) => self.reset_polled(function, value),
                    None => log::error!("card {card}: a register read nobody asked for"),
                }
            }
            self.poll_windows();
            if self.instant && !self.is_busy() {
                break;
            }
        }
        self.deliver();
    }

    /// What virtio functions have found for whoever reads them, and their resets that have ended.
    fn poll_windows(&mut self) {
        for function in 0..self.served.len() {
            let Some(seat) = self.seat(function) else { continue };
            let (value, resets) = (seat.take_read(), seat.is_resetting());
            let s = &mut self.served[function];
            if let Some((value, reply)) = value.and_then(|value| Some((value, s.window.pop_front()?))) {
                let _ = reply.try_send(value);
            }
            if s.resetting.is_some() && (!resets || self.is_late(function)) {
                self.reset_ended(function);
            }
        }
    }

    /// The function's reset has taken longer than it may.
    fn is_late(&self, function: usize) -> bool {
        self.served[function].resetting.is_some_and(|since| since.elapsed() > RESET_TIMEOUT)
    }

    fn reset_polled(&mut self, function: usize, status: u32) {
        if status & RESET != 0 && !self.is_late(function) {
            self.read(function, csr::STATUS, Reader::ResetPoll(function));
            return;
        }
        self.reset_ended(function);
    }

    /// The function's accesses are let through again.
    fn reset_ended(&mut self, function: usize) {
        let late = self.is_late(function);
        let s = &mut self.served[function];
        if late {
            log::error!("function {}: reset has not ended after {RESET_TIMEOUT:?}", s.function.number);
        }
        s.resetting = None;
        s.waiting.drain(..).for_each(|w| {
            // A client whose patience has ended does not listen.
            let _ = w.try_send(());
        });
        let deferred = std::mem::take(&mut s.deferred);
        deferred.into_iter().for_each(|c| self.handle(c));
    }

    /// Passes on what the cards have put out. Counters come first: who has seen a frame or an interrupt finds it counted.
    fn deliver(&mut self) {
        self.publish();
        for frame in std::mem::take(&mut self.world.outbox) {
            self.record(1, &frame);
            if let Some(Err(e)) = self.wire.as_ref().map(|w| w.send(&frame)) {
                log::debug!("a frame of {} bytes was not sent: {e}", frame.len());
            }
        }
        for (i, card) in self.world.cards.iter_mut().enumerate() {
            let of = |number: u16| self.served.iter().find(|s| s.function.card == i && s.function.number == number).map(|s| &s.function);
            for (number, vector) in card.interrupts.drain(..) {
                if let Some(f) = of(number) {
                    f.interrupt(vector);
                }
            }
            for fault in card.iommu.take_fresh() {
                if let Some(f) = of(fault.function) {
                    f.dma_fault(fault);
                }
            }
        }
    }

    /// Sets the counters that a program reads.
    fn publish(&mut self) {
        for f in self.served.iter().map(|s| &s.function) {
            let card = &mut self.world.cards[f.card];
            let map = card.iommu.client(f.number);
            let (passed, off) = (map.passed(), map.off());
            let mut state = f.state();
            (state.counters.dma_passed, state.counters.dma_master_off) = (passed, off);
            if let Some(seat) = f.virtio.and_then(|index| card.virtio.get(index)) {
                state.network = seat.counters();
            }
        }
    }
}
