//! The gateware's engine in a virtio function's place. The rings of the data queues are its own, from the available index to the interrupt, and so is which received frame goes to which of them;
//! registers and the control queue are those of the golden model, which stands for the software that owns the engine and writes its tables.
use super::rtl::{Access, Output, Rtl, Table};
use super::{Front, FunctionConfig, GuestMemory, Seat, SeatEdge};
use crate::card::CardConfig;
use crate::error::Error;
use ferric_abi::codes::VirtioCause;
use ferric_abi::context::{VqAvail, VqUsed};
use ferric_abi::virtio::feature;
use ferric_hdl::codes::steer_cause;
use ferric_hdl::virtio::engine;
use ferric_hdl::virtio::steer::choose::tables;
use ferric_hdl::virtio::steer::load::{line, Wants, Write};
use ferric_model::virtio::ring::Format;
use ferric_model::virtio::{Lent, Step};
use std::collections::{BTreeMap, VecDeque};

/// The function's number in the engine, which is its own.
const NUMBER: u16 = 0;
/// Frames in front of the engine at most.
const AHEAD: usize = 2;
/// Commands that are carried out in one cycle at most.
const STEPS: usize = 64;
/// The words of a line in which `enabled` stands, and which is written last.
const AVAIL_ENABLED: u32 = 7;
const USED_ENABLED: u32 = 6;

/// Whether the word of `VqAvail` in which `enabled` stands says so.
fn given_up(word: u32) -> bool {
    let mut line = VqAvail::default();
    line.0[4 * AVAIL_ENABLED as usize..][..4].copy_from_slice(&word.to_le_bytes());
    line.given_up()
}

/// What is done with a line of the engine's tables, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// It begins.
    Begin,
    /// It ends: nothing more is taken or given back.
    End,
    /// Whether all that it had in hand has come back.
    Drain,
    /// How far it has come.
    Look,
    /// No line: what steering is to know is written.
    Steer,
}

/// A data queue.
#[derive(Default)]
struct Queue {
    lent: Option<Lent>,
    /// Its line has been written.
    begun: bool,
    /// Its line ends, or has ended.
    ends: bool,
    /// Chains made available, given back, in stock or in hand, when it was last looked at; heads that were none.
    available: u64,
    used: u64,
    held: u64,
    skipped: u64,
}

/// A virtio function whose rings are run by gateware.
pub struct GatewareSeat {
    front: Front,
    rtl: Rtl,
    queues: Vec<Queue>,
    tasks: VecDeque<(Task, u16)>,
    /// The task that is under way: its accesses that are still to come, and what the others have found.
    current: Option<(Task, u16)>,
    accesses: VecDeque<Access>,
    found: Vec<u32>,
    /// What the tables of steering hold, by line and word, and what is to be written there.
    steering: BTreeMap<(u32, u32), u32>,
    unwritten: Vec<Write>,
    /// The engine has worked since its lines were last looked at.
    worked: bool,
}

impl GatewareSeat {
    /// The function after power-on, number `function` of its card. Errors: the engine cannot be built, or has not as many queues.
    pub fn new(function: u16, config: &FunctionConfig, card: &CardConfig) -> Result<Self, Error> {
        let (queues, most) = (2 * config.offer().pairs, engine::queues(card.width));
        if queues > most {
            return Err(Error::Gateware(format!("the virtio engine of {} bits has {most} queues: a function with {} pairs wants more", card.width, queues / 2)));
        }
        Ok(Self {
            front: Front::new(function, config),
            rtl: Rtl::new(card)?,
            queues: (0..queues).map(|_| Queue::default()).collect(),
            tasks: VecDeque::new(),
            current: None,
            accesses: VecDeque::new(),
            found: Vec::new(),
            steering: BTreeMap::new(),
            unwritten: Vec::new(),
            worked: false,
        }
        .with_tables())
    }

    /// The tables of steering are to be written before the first frame is looked at.
    fn with_tables(mut self) -> Self {
        self.steer();
        self
    }

    /// What the driver has asked for is written to the tables of steering, as far as it is new.
    fn steer(&mut self) {
        let device = &self.front.device;
        let (rules, pairs) = (device.rules(), device.receiving());
        let multiqueue = rules.has(feature::MQ);
        let wants = Wants { rules, pairs: pairs as u8, first: 0, multiqueue, rss: device.rss() }.writes(NUMBER.into());
        let number = u32::from(NUMBER);
        // Lines of two words are written whole.
        let whole = |at: u32| at >> 16 <= tables::STATIONS as u32;
        let renewed: Vec<u32> = wants.iter().filter(|(at, word, data)| whole(*at) && self.steering.get(&(*at, *word)) != Some(data)).map(|(at, _, _)| *at).collect();
        // A function that does not receive has forgotten its flows.
        let ends = pairs == 0 && self.steering.get(&(line(tables::FLOWS, number), 0)) != Some(&0);
        self.unwritten.extend(ends.then_some((line(tables::FLOWS, number), 0, 0)));
        let old = &self.steering;
        self.unwritten.extend(wants.iter().filter(|(at, word, data)| if whole(*at) { renewed.contains(at) } else { old.get(&(*at, *word)) != Some(data) }));
        self.steering.extend(wants.into_iter().map(|(at, word, data)| ((at, word), data)));
        self.steering.insert((line(tables::FLOWS, number), 0), u32::from(pairs > 0));
        if !self.unwritten.is_empty() && !self.tasks.contains(&(Task::Steer, 0)) {
            self.tasks.push_front((Task::Steer, 0));
        }
    }

    /// Rings that begin and end, notifications, commands, and what they change of steering.
    fn follow_registers(&mut self, edge: &mut SeatEdge) {
        for (n, queue) in (0..).zip(&mut self.queues) {
            match &queue.lent {
                None => {
                    if let Some(lent) = self.front.device.lend(n) {
                        *queue = Queue { lent: Some(lent), ..Queue::default() };
                        self.tasks.push_back((Task::Begin, n));
                    }
                }
                Some(lent) if !queue.ends && !self.front.device.may_run(lent.ticket) => {
                    queue.ends = true;
                    self.tasks.push_back((Task::End, n));
                }
                _ => {}
            }
        }
        let control = self.front.device.queues() - 1;
        for step in 0..STEPS {
            if self.front.device.step(&mut GuestMemory { iommu: edge.iommu, function: self.front.function }, control) == Step::Idle {
                break;
            }
            self.front.busy |= step + 1 == STEPS;
        }
        self.steer();
    }

    /// A line that begins is notified when it has been written.
    fn pass_notifications(&mut self) {
        for n in (0..).take(self.queues.len()) {
            let begun = self.queues[usize::from(n)].begun;
            if begun && self.front.device.take_notification(n) {
                self.rtl.notify(n);
                self.worked = true;
            }
        }
    }

    /// A line, word by word, that with `enabled` last.
    fn row(table: Table, n: u16, bytes: &[u8], last: u32) -> impl Iterator<Item = Access> {
        let words: Vec<u32> = bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        let order = (0..words.len() as u32).filter(move |word| *word != last).chain([last]);
        order.map(move |word| Access { table, line: n.into(), word, write: Some(words[word as usize]) })
    }

    /// The accesses that a task is made of.
    fn accesses(&mut self, task: Task, n: u16) -> VecDeque<Access> {
        if task == Task::Steer {
            return self.unwritten.drain(..).map(|(line, word, data)| Access { table: Table::Steer, line, word, write: Some(data) }).collect();
        }
        let Some(lent) = self.queues[usize::from(n)].lent else { return VecDeque::new() };
        let (ring, features) = (lent.ring, self.front.device.ring_features());
        let read = |table, word| Access { table, line: n.into(), word, write: None };
        let (events, packed) = (features & feature::EVENT_IDX != 0, ring.format() == Format::Packed);
        let used = if packed { ring.descriptor(0) } else { ring.device() };
        let used = VqUsed::default().with_driver(ring.driver()).with_device(used).with_size(ring.size() as u16).with_vector(n).with_function(self.front.function).with_events(events);
        let used = used.with_packed(packed).with_wrap(packed);
        let avail = VqAvail::default().with_desc(ring.descriptor(0)).with_driver(ring.driver()).with_device(ring.device()).with_size(ring.size() as u16).with_function(self.front.function);
        let avail = avail
            .with_packed(packed)
            .with_wrap(packed)
            .with_receive(lent.receive)
            .with_events(events)
            .with_indirect(features & feature::INDIRECT_DESC != 0)
            .with_merged(features & feature::MRG_RXBUF != 0)
            .with_sums(features & if lent.receive { feature::GUEST_CSUM } else { feature::CSUM } != 0);
        match task {
            Task::Begin => Self::row(Table::Used, n, &used.with_enabled(true).0, USED_ENABLED).chain(Self::row(Table::Avail, n, &avail.with_enabled(true).0, AVAIL_ENABLED)).collect(),
            // The last word of each.
            Task::End => Self::row(Table::Used, n, &used.0, USED_ENABLED).last().into_iter().chain(Self::row(Table::Avail, n, &avail.0, AVAIL_ENABLED).last()).collect(),
            Task::Drain => [read(Table::Avail, AVAIL_ENABLED), read(Table::Avail, 8), read(Table::Used, 7)].into(),
            Task::Steer => VecDeque::new(),
            Task::Look => [read(Table::Avail, 6), read(Table::Avail, 8), read(Table::Used, 4), read(Table::Used, 7)].into(),
        }
    }

    /// A task has been done.
    fn done(&mut self, task: Task, n: u16) {
        let found = std::mem::take(&mut self.found);
        let low: Vec<u16> = found.iter().map(|word| *word as u16).collect();
        let queue = &mut self.queues[usize::from(n)];
        match task {
            Task::Begin => (queue.begun, self.front.busy) = (true, true),
            Task::End => {
                // What is in stock is given up.
                self.rtl.notify(n);
                self.tasks.push_back((Task::Drain, n));
            }
            // A receive queue's stock is given up once it has been notified: until then there may be nothing in hand, and still be somebody who takes chains of a later life.
            Task::Drain if low[1] == low[2] && (given_up(found[0]) || queue.lent.is_none_or(|lent| !lent.receive)) => {
                if let Some(lent) = std::mem::take(queue).lent {
                    self.front.device.take_back(lent.ticket);
                }
                self.front.busy = true;
            }
            Task::Drain => self.tasks.push_back((Task::Drain, n)),
            Task::Steer => {}
            Task::Look => {
                let more = |sum: u64, now: u16| sum + u64::from(now.wrapping_sub(sum as u16));
                // In a packed ring they are places: there each chain that is available is taken, or nobody knows how many it is.
                let packed = queue.lent.is_some_and(|lent| lent.ring.format() == Format::Packed);
                queue.available = more(queue.available, if packed { low[1] } else { low[0] });
                queue.used = more(queue.used, if packed { low[3] } else { low[2] });
                queue.held = low[1].wrapping_sub(low[3]).into();
            }
        }
    }

    /// One step of the tasks.
    fn work(&mut self, answer: Option<u32>) {
        self.found.extend(answer);
        if self.current.is_none() {
            let Some((task, n)) = self.tasks.pop_front() else { return };
            self.accesses = self.accesses(task, n);
            if self.accesses.is_empty() {
                return;
            }
            self.current = Some((task, n));
        } else if answer.is_none() {
            return;
        }
        if let Some(access) = self.accesses.pop_front() {
            self.rtl.access(access);
        } else if let Some((task, n)) = self.current.take() {
            self.done(task, n);
        }
    }

    /// What the engine has put out.
    fn take(&mut self, output: &mut Output, edge: &mut SeatEdge) {
        for (_, frame) in output.frames.drain(..) {
            self.front.device.leaves();
            self.front.leaves(frame, edge);
        }
        for cause in output.dropped.drain(..) {
            if cause == steer_cause::NO_QUEUE {
                self.front.device.admitted();
                self.front.device.rejected(0, VirtioCause::RxDown);
            } else {
                self.front.device.filtered();
            }
        }
        for (n, cause, lost) in output.told.drain(..) {
            if matches!(cause, VirtioCause::RxSmall | VirtioCause::RxNoBuffer | VirtioCause::RxDma | VirtioCause::RxDown) {
                self.front.device.admitted();
            }
            if lost {
                self.front.device.lost(n, cause);
            } else {
                self.front.device.rejected(n, cause);
            }
            self.front.busy = true;
            if let Some(queue) = self.queues.get_mut(usize::from(n)).filter(|_| cause == VirtioCause::BadHead) {
                queue.skipped += 1;
            }
        }
        for _ in 0..std::mem::take(&mut output.delivered) {
            self.front.device.admitted();
            self.front.device.delivered();
        }
        output.interrupts.drain(..).for_each(|n| self.front.device.chains_used(n));
    }
}

impl Seat for GatewareSeat {
    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    fn cycle(&mut self, edge: &mut SeatEdge) -> bool {
        if self.idle() {
            return false;
        }
        if std::mem::take(&mut self.front.busy) {
            self.follow_registers(edge);
            self.pass_notifications();
        }
        // Chains may be there before the line is written: until then the engine would find none, and drop what has come. Nor is a frame looked at by tables that are being written.
        let begins = self.queues.iter().any(|queue| queue.lent.is_some() && !queue.begun);
        let steers = self.tasks.iter().chain(&self.current).any(|(task, _)| *task == Task::Steer);
        while !begins && !steers && self.rtl.backlog() < AHEAD {
            let Some(frame) = self.front.arrives() else { break };
            self.rtl.receive(NUMBER, frame);
            self.worked = true;
        }
        if self.worked && self.rtl.is_silent() && self.tasks.is_empty() && self.current.is_none() {
            self.worked = false;
            let begun = (0..).zip(&self.queues).filter(|(_, queue)| queue.begun && !queue.ends);
            self.tasks.extend(begun.map(|(n, _)| (Task::Look, n)));
        }
        let mut output = Output::default();
        self.rtl.cycle(edge.iommu, &mut output);
        self.work(output.answer);
        self.take(&mut output, edge);
        self.front.interrupt(edge);
        true
    }

    fn idle(&self) -> bool {
        !self.front.busy && !self.worked && self.front.backlog() == 0 && self.tasks.is_empty() && self.current.is_none() && self.rtl.is_silent()
    }

    fn chains(&self) -> [u64; 5] {
        let mut chains = [0; 5];
        let mut add = |more: [u64; 5]| chains.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        for queue in &self.queues {
            if let Some(lent) = queue.lent.filter(|_| queue.begun && !queue.ends) {
                let [stock, hand] = if lent.receive { [queue.held, 0] } else { [0, queue.held] };
                add([queue.available, queue.skipped, queue.used, stock, hand]);
            }
        }
        if let Some(balance) = self.front.device.balance(self.front.device.queues() - 1) {
            add([balance.available, balance.skipped, balance.used, 0, balance.held]);
        }
        chains
    }
}
