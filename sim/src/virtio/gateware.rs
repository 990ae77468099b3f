//! The gateware's engine in a virtio function's place. The rings of the data queues are its own, from the available index to the interrupt; registers, the control queue and the filter are those
//! of the golden model, which stands for the software that owns the engine.
use super::rtl::{Access, Output, Rtl, Table};
use super::{Front, FunctionConfig, GuestMemory, Seat, SeatEdge};
use crate::card::CardConfig;
use crate::error::Error;
use ferric_abi::codes::VirtioCause;
use ferric_abi::context::{VqAvail, VqUsed};
use ferric_abi::virtio::feature;
use ferric_hdl::virtio::engine;
use ferric_model::virtio::ring::Format;
use ferric_model::virtio::{Lent, Step};
use std::collections::VecDeque;

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
            worked: false,
        })
    }

    /// Rings that begin and end, notifications, commands.
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
    fn line(table: Table, line: u16, bytes: &[u8], last: u32) -> impl Iterator<Item = Access> {
        let words: Vec<u32> = bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        let order = (0..words.len() as u32).filter(move |word| *word != last).chain([last]);
        order.map(move |word| Access { table, line, word, write: Some(words[word as usize]) })
    }

    /// The accesses that a task is made of.
    fn accesses(&self, task: Task, n: u16) -> VecDeque<Access> {
        let Some(lent) = self.queues[usize::from(n)].lent else { return VecDeque::new() };
        let (ring, features) = (lent.ring, self.front.device.ring_features());
        let read = |table, word| Access { table, line: n, word, write: None };
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
            .with_merged(features & feature::MRG_RXBUF != 0);
        match task {
            Task::Begin => Self::line(Table::Used, n, &used.with_enabled(true).0, USED_ENABLED).chain(Self::line(Table::Avail, n, &avail.with_enabled(true).0, AVAIL_ENABLED)).collect(),
            // The last word of each.
            Task::End => Self::line(Table::Used, n, &used.0, USED_ENABLED).last().into_iter().chain(Self::line(Table::Avail, n, &avail.0, AVAIL_ENABLED).last()).collect(),
            Task::Drain => [read(Table::Avail, AVAIL_ENABLED), read(Table::Avail, 8), read(Table::Used, 7)].into(),
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
        for (queue, frame) in output.frames.drain(..) {
            self.front.device.leaves(&frame, queue / 2);
            self.front.leaves(frame, edge);
        }
        for (n, cause, lost) in output.told.drain(..) {
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
        (0..std::mem::take(&mut output.delivered)).for_each(|_| self.front.device.delivered());
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
        // Chains may be there before the line is written: until then the engine would find none, and drop what has come.
        let begins = self.queues.iter().any(|queue| queue.lent.is_some() && !queue.begun);
        while !begins && self.rtl.backlog() < AHEAD {
            let Some(frame) = self.front.arrives() else { break };
            if let Some(queue) = self.front.device.place(&frame) {
                self.rtl.receive(queue, frame);
                self.worked = true;
            }
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
