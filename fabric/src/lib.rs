//! A fabric of Ethernet switches for N nodes, in software: frames go from node to node by one of several paths, chosen by a hash of the five-tuple, each with a latency, a rate and queues that mark,
//! trim and drop. Nothing here knows what a node is, so hundreds of model ends run without a card. All that is random comes from the seed: equal seeds and equal calls give equal runs.
//!
//! ```
//! use ferric_fabric::{Config, Fabric};
//! let mut fabric = Fabric::new(Config { nodes: 2, ..Config::default() }, 1);
//! fabric.attach(0x0200_0000_0001, 1);
//! let mut frame = vec![0; 60];
//! frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
//! fabric.send(0, 0, frame.clone());
//! let arrived = fabric.advance(10_000);
//! assert_eq!((arrived[0].node, &arrived[0].frame), (1, &frame));
//! ```
mod frame;
mod link;
#[cfg(test)]
mod tests;

pub use frame::{flow, Trimming};
pub use link::Limits;

use frame::{corrupt, mark, read, trim, Read};
use link::{Link, Queued};
use std::collections::{BTreeMap, HashMap};

/// Classes of traffic, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Acknowledges, refusals, control packets.
    Control,
    /// What was trimmed.
    Trimmed,
    /// All else.
    Data,
}

/// Frames in a million that a fault hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Lost.
    pub loss: u32,
    /// Delivered twice.
    pub duplicate: u32,
    /// Delivered with a bit wrong.
    pub corrupt: u32,
}

/// A fabric. Times in ticks of whoever calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Ports.
    pub nodes: usize,
    /// Ticks that each path takes, without queues; there are as many paths.
    pub latencies: Vec<u64>,
    /// Bytes per tick of a path.
    pub path_rate: u64,
    /// Bytes per tick of the last link to a node.
    pub port_rate: u64,
    /// Queues in front of a path.
    pub path_queue: Limits,
    /// Queues in front of a node.
    pub port_queue: Limits,
    /// What is done with frames for which there is no room; none: they are dropped.
    pub trimming: Option<Trimming>,
    /// DSCP of the urgent class.
    pub control_dscp: u8,
    /// Faults of the paths.
    pub faults: Faults,
}

impl Default for Config {
    /// One path, and room for everything.
    fn default() -> Self {
        let room = Limits { mark: usize::MAX, trim: usize::MAX, drop: usize::MAX };
        Self { nodes: 2, latencies: vec![100], path_rate: 64, port_rate: 64, path_queue: room, port_queue: room, trimming: None, control_dscp: 46, faults: Faults::default() }
    }
}

/// What became of the frames. Every frame that is sent, and every copy, is in exactly one of `delivered`, `lost`, `cut`, `dropped`, `unknown`, or still on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Taken from nodes.
    pub sent: u64,
    /// Made by a fault.
    pub copied: u64,
    /// Given to nodes.
    pub delivered: u64,
    /// Lost by a fault.
    pub lost: u64,
    /// Lost on a path that was cut.
    pub cut: u64,
    /// No room.
    pub dropped: u64,
    /// Destination MAC of nobody.
    pub unknown: u64,
    /// Bits made wrong.
    pub corrupted: u64,
    /// Marked.
    pub marked: u64,
    /// Trimmed on a path.
    pub trimmed: u64,
    /// Trimmed in front of a node.
    pub trimmed_last: u64,
}

/// A frame that reaches a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When.
    pub time: u64,
    /// Where.
    pub node: usize,
    /// Without its FCS.
    pub frame: Vec<u8>,
}

/// What happens at a time.
enum Event {
    Enter(usize, Queued),
    Sent(usize),
    Deliver(usize, Vec<u8>),
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    /// Frames still take it, and are lost.
    Cut,
    /// Frames take others.
    Withdrawn,
}

/// The switches and what is on its way.
pub struct Fabric {
    config: Config,
    seed: u64,
    random: u64,
    now: u64,
    serial: u64,
    events: BTreeMap<(u64, u64), Event>,
    /// Paths, behind them the links to the nodes.
    links: Vec<Link>,
    paths: Vec<State>,
    stations: HashMap<u64, usize>,
    /// What happened so far.
    pub counters: Counters,
}

impl Fabric {
    /// Switches without stations. Panics without a path or a node.
    pub fn new(config: Config, seed: u64) -> Self {
        assert!(!config.latencies.is_empty() && config.nodes > 0, "a fabric has paths and nodes");
        let paths = config.latencies.len();
        let links = (0..paths).map(|_| Link::new(config.path_rate, config.path_queue)).chain((0..config.nodes).map(|_| Link::new(config.port_rate, config.port_queue))).collect();
        Self { seed, random: seed, now: 0, serial: 0, events: BTreeMap::new(), links, paths: vec![State::Up; paths], stations: HashMap::new(), counters: Counters::default(), config }
    }

    /// Frames to `mac` go to `node`.
    pub fn attach(&mut self, mac: u64, node: usize) {
        assert!(node < self.config.nodes, "node {node} of {}", self.config.nodes);
        self.stations.insert(mac, node);
    }

    /// A path fails, and no switch has noticed: what takes it is lost, and what is on it.
    pub fn cut(&mut self, path: usize) {
        self.paths[path] = State::Cut;
    }

    /// The switches have noticed: frames take the other paths.
    pub fn withdraw(&mut self, path: usize) {
        self.paths[path] = State::Withdrawn;
    }

    /// The path is there again.
    pub fn restore(&mut self, path: usize) {
        self.paths[path] = State::Up;
    }

    /// Changes what faults happen from now on.
    pub fn set_faults(&mut self, faults: Faults) {
        self.config.faults = faults;
    }

    /// Frames on their way.
    pub fn on_the_way(&self) -> usize {
        self.events.values().filter(|event| !matches!(event, Event::Sent(_))).count() + self.links.iter().map(Link::waiting).sum::<usize>()
    }

    /// When something happens next.
    pub fn next(&self) -> Option<u64> {
        self.events.keys().next().map(|(time, _)| *time)
    }

    /// The path that a frame takes now. None: no path is left.
    pub fn path_of(&self, frame: &[u8]) -> Option<usize> {
        let open: Vec<usize> = (0..self.paths.len()).filter(|path| self.paths[*path] != State::Withdrawn).collect();
        let hash = flow(frame).iter().fold(self.seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
        let mixed = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        open.get(mixed as usize % open.len().max(1)).copied()
    }

    /// A node sends a frame, without its FCS. Time does not go back.
    pub fn send(&mut self, now: u64, node: usize, frame: Vec<u8>) {
        assert!(node < self.config.nodes && now >= self.now, "node {node} sends at {now}, and it is {}", self.now);
        self.counters.sent += 1;
        let Some(to) = read(&frame).dst.and_then(|mac| self.stations.get(&mac)).copied() else {
            self.counters.unknown += 1;
            return;
        };
        let Some(path) = self.path_of(&frame) else {
            self.counters.cut += 1;
            return;
        };
        let faults = self.config.faults;
        if self.chance(faults.loss) {
            self.counters.lost += 1;
            return;
        }
        let mut bytes = frame;
        if self.chance(faults.duplicate) {
            self.counters.copied += 1;
            let queued = self.queued(to, bytes.clone());
            // The copy has been somewhere else meanwhile.
            let late = self.draw() % (4 * self.config.latencies[path] + 1);
            self.schedule(now + late, Event::Enter(path, queued));
        }
        if self.chance(faults.corrupt) {
            self.counters.corrupted += 1;
            let at = self.draw();
            corrupt(&mut bytes, at);
        }
        let queued = self.queued(to, bytes);
        self.schedule(now, Event::Enter(path, queued));
    }

    fn queued(&self, to: usize, bytes: Vec<u8>) -> Queued {
        let Read { dscp, .. } = read(&bytes);
        let trimmed = self.config.trimming.is_some_and(|t| dscp == Some(t.trimmed) || dscp == Some(t.trimmed_last));
        let class = match dscp {
            Some(dscp) if dscp == self.config.control_dscp => Class::Control,
            _ if trimmed => Class::Trimmed,
            _ => Class::Data,
        };
        Queued { to, class, bytes }
    }

    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn chance(&mut self, million: u32) -> bool {
        million > 0 && self.draw() % 1_000_000 < u64::from(million)
    }

    fn schedule(&mut self, time: u64, event: Event) {
        self.serial += 1;
        self.events.insert((time, self.serial), event);
    }

    /// Lets time pass; gives what nodes receive until then, in the order of time.
    pub fn advance(&mut self, to: u64) -> Vec<Delivery> {
        let mut out = Vec::new();
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= to) {
            let ((time, _), event) = entry.remove_entry();
            self.now = time;
            match event {
                Event::Enter(link, queued) => self.enter(link, queued),
                Event::Sent(link) => self.sent(link),
                Event::Deliver(node, frame) => {
                    self.counters.delivered += 1;
                    out.push(Delivery { time, node, frame });
                }
            }
        }
        self.now = self.now.max(to);
        out
    }

    fn enter(&mut self, link: usize, mut queued: Queued) {
        let last = link >= self.paths.len();
        let limits = self.links[link].limits;
        let waiting = self.links[link].bytes(queued.class);
        let size = queued.bytes.len();
        if queued.class == Class::Data {
            if waiting >= limits.mark && mark(&mut queued.bytes) {
                self.counters.marked += 1;
            }
            if let Some(trimming) = self.config.trimming.filter(|_| waiting + size > limits.trim) {
                if trim(&mut queued.bytes, &trimming, last) {
                    queued.class = Class::Trimmed;
                    *if last { &mut self.counters.trimmed_last } else { &mut self.counters.trimmed } += 1;
                }
            }
        }
        if self.links[link].bytes(queued.class) + queued.bytes.len() > limits.drop {
            self.counters.dropped += 1;
            return;
        }
        self.links[link].push(queued);
        self.start(link);
    }

    /// Begins to send, if the link is free.
    fn start(&mut self, link: usize) {
        if let Some(time) = self.links[link].start() {
            self.schedule(self.now + time, Event::Sent(link));
        }
    }

    fn sent(&mut self, link: usize) {
        let Some(queued) = self.links[link].finish() else { return };
        if link < self.paths.len() {
            if self.paths[link] == State::Cut {
                self.counters.cut += 1;
            } else {
                let (time, port) = (self.now + self.config.latencies[link], self.paths.len() + queued.to);
                self.schedule(time, Event::Enter(port, queued));
            }
        } else {
            self.schedule(self.now, Event::Deliver(queued.to, queued.bytes));
        }
        self.start(link);
    }
}
