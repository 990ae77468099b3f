//! Two ends and a channel of frames between them.
use super::card::{Card, TICK};
use ferric_abi::uet::codes::{AckRequest, ReturnCode};
use ferric_uet::end::{Description, End, Outlook};
use ferric_uet::model::{random, Config, Mode};
use ferric_uet::wire::{parse, Pds, Registers, Ses};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Addresses of each end: each of one has a PDC with the same of the other.
pub const OWN: [[u32; 2]; 3] = [[0x0a00_0001, 0x0a00_0101], [0x0a00_0002, 0x0a00_0102], [0x0a00_0003, 0x0a00_0103]];
const MAC: [u64; 2] = [0x0200_0000_0001, 0x0200_0000_0002];
pub const MEMORY: usize = 1 << 20;

pub fn registers() -> Registers {
    Registers::default()
}

pub fn config() -> Config {
    Config {
        mtu: 256,
        window: 128,
        default_mpr: 1,
        first_window: 128,
        low: 0,
        rto: 600,
        rto_max: 8,
        nack_wait: 300,
        nack_max: 31,
        ack_wait: 20,
        ack_bytes: 2048,
        ack_least: 128,
        tail_loss: 500,
        stall_least: 100,
        nack_gap: 0,
        idle: 3000,
        reap: 100_000,
        safety: 2000,
        entropies: 8,
        ..Config::default()
    }
}

/// Who an end is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Engine,
    Model,
}

enum Node {
    Engine(Box<Card>),
    Model(Box<End>),
}

/// What happens to frames: ticks that they take, at least and more; in 100, how many are lost, come twice, are marked.
#[derive(Clone, Copy)]
pub struct Channel {
    pub delay: u64,
    pub jitter: u64,
    pub lose: u64,
    pub repeat: u64,
    pub mark: u64,
}

impl Channel {
    pub fn good() -> Self {
        Self { delay: 2, jitter: 0, lose: 0, repeat: 0, mark: 0 }
    }
}

pub struct World {
    nodes: [Node; 2],
    channel: Channel,
    now: u64,
    random: u64,
    /// Frames on their way: when they come, who is to have them.
    flying: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    count: u64,
    /// Who sent which frames.
    pub seen: Vec<(usize, Vec<u8>)>,
    /// Messages: who wrote where what; those that have ended.
    written: Vec<(usize, u64, Vec<u8>)>,
    /// What their targets say of those that fail, by token.
    codes: BTreeMap<u64, u64>,
    ended: [Vec<u64>; 2],
    arrived: [Vec<u64>; 2],
}

impl World {
    pub fn new<const W: usize, const K: usize, const L: usize>(sides: [Side; 2], config: Config, channel: Channel, seed: u64) -> Self {
        let stall = if seed == 0 { 0 } else { 20 };
        let node = |n: usize| match sides[n] {
            Side::Engine => {
                let mut card = Card::new::<W, K, L>(seed + 100 * n as u64 + 1, &config, stall, MEMORY);
                OWN.iter().for_each(|pair| card.pair(pair[n], pair[1 - n], MAC[1 - n]));
                Node::Engine(Box::new(card))
            }
            Side::Model => {
                let outlook = Outlook { registers: registers(), native: None, data_dscp: 8 };
                let own = OWN.map(|pair| u128::from(pair[n]));
                let mut end = End::new(Arc::new(config.clone()), outlook, MAC[n], &own, MEMORY);
                OWN.iter().for_each(|pair| end.neighbour(pair[1 - n].into(), MAC[1 - n]));
                Node::Model(Box::new(end))
            }
        };
        let (flying, seen, written, codes, ended, arrived) = Default::default();
        Self { nodes: [node(0), node(1)], channel, now: 0, random: seed + 7, flying, count: 0, seen, written, codes, ended, arrived }
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        random(&mut self.random) % limit
    }

    pub fn random(&mut self, bytes: usize) -> Vec<u8> {
        (0..bytes).map(|_| random(&mut self.random) as u8).collect()
    }

    /// Semantics of all ends take up to `slow` ticks for a packet, and refuse some in 100.
    pub fn slow(&mut self, slow: u64, refuses: u32) {
        for node in &mut self.nodes {
            match node {
                Node::Engine(card) => (card.slow, card.refuses) = (slow, refuses),
                Node::Model(end) => end.target.slow = slow,
            }
        }
    }

    /// Posts a WRITE by a pair of addresses.
    pub fn write(&mut self, from: usize, pair: usize, mode: Mode, at: u64, data: &[u8]) {
        let (own, other) = (OWN[pair][from], OWN[pair][1 - from]);
        match &mut self.nodes[from] {
            Node::Engine(card) => card.write(own, other, mode, at, data),
            Node::Model(end) => {
                let description = Description { fetch: false, job: 1, pid: 2, index: 3, offset: at, key: 5, header_data: at + 1 };
                assert!(end.post(own.into(), other.into(), mode, description, data.to_vec()));
            }
        }
        self.written.push((from, at, data.to_vec()));
    }

    /// Posts a WRITE that its target answers with an error: of a model's, all packets are beyond its memory.
    pub fn write_in_vain(&mut self, from: usize, pair: usize, mode: Mode, at: u64, data: &[u8]) {
        const CODES: [ReturnCode; 4] = [ReturnCode::BadAddress, ReturnCode::NoMatch, ReturnCode::PermissionViolation, ReturnCode::HostFailed];
        let mut place = at;
        let code = match &mut self.nodes[1 - from] {
            Node::Engine(card) => {
                let code = CODES[card.codes.len() % CODES.len()] as u64;
                card.codes.insert(at, code);
                code
            }
            Node::Model(_) => {
                place += MEMORY as u64;
                ReturnCode::BadAddress as u64
            }
        };
        self.codes.insert(place + 1, code);
        self.write(from, pair, mode, place, data);
    }

    fn send(&mut self, from: usize, frame: Vec<u8>) {
        let Channel { delay, jitter, lose, repeat, mark } = self.channel;
        self.seen.push((from, frame.clone()));
        let copies = if self.below(100) < repeat { 2 } else { 1 };
        for _ in 0..copies {
            if self.below(100) < lose {
                continue;
            }
            let mut frame = frame.clone();
            // ECN CE, of what may be marked.
            if self.below(100) < mark && frame[15] & 3 == 2 {
                frame[15] |= 1;
                let sum = u16::from_be_bytes([frame[24], frame[25]]);
                frame[24..26].copy_from_slice(&(sum - 1).to_be_bytes());
            }
            let late = if jitter > 0 { self.below(jitter) } else { 0 };
            self.count += 1;
            self.flying.insert((self.now + delay + late, self.count), (1 - from, frame));
        }
    }

    /// A tick of all.
    pub fn tick(&mut self) {
        self.now += 1;
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, frame) = entry.remove();
            match &mut self.nodes[to] {
                Node::Engine(card) => card.receive(&frame),
                Node::Model(end) => end.receive(&frame, self.now),
            }
        }
        for n in 0..2 {
            let mut out = Vec::new();
            match &mut self.nodes[n] {
                Node::Engine(card) => {
                    out = card.tick(self.now);
                    self.arrived[n].append(&mut card.arrived);
                    for (token, why, code) in std::mem::take(&mut card.ended) {
                        assert_eq!((why, code), (0, self.codes.get(&token).copied().unwrap_or(ReturnCode::Ok as u64)), "message {token}");
                        self.ended[n].push(token);
                    }
                }
                Node::Model(end) => {
                    end.tick(self.now);
                    // A link's speed.
                    for _ in 0..2 {
                        out.extend(end.transmit(self.now));
                    }
                    for completion in end.completions() {
                        let code = self.codes.get(&completion.token).map_or(ReturnCode::Ok as u8, |code| *code as u8);
                        assert_eq!(completion.status, Ok(code), "message {}", completion.token);
                        self.ended[n].push(completion.token);
                    }
                    self.arrived[n].extend(end.target.arrived().iter().map(|one| one.header_data));
                }
            }
            out.into_iter().for_each(|frame| self.send(n, frame));
        }
    }

    /// Until all messages have ended.
    pub fn until_ended(&mut self, ticks: u64) {
        for _ in 0..ticks {
            if self.ended.iter().map(Vec::len).sum::<usize>() == self.written.len() {
                return;
            }
            self.tick();
        }
        panic!("{:?} of {} messages have ended, {} frames were sent, {:?}", self.ended.each_ref().map(Vec::len), self.written.len(), self.seen.len(), self.stats());
    }

    fn stats(&self) -> Vec<String> {
        let node = |node: &Node| match node {
            Node::Engine(card) => format!("{:?}", card.stats),
            Node::Model(end) => format!("{:?} {:?} {:?}", end.counters, end.bad, end.unused),
        };
        self.nodes.iter().map(node).collect()
    }

    /// What an end has sent: how many frames of which kind.
    pub fn reached(&self, from: usize) -> BTreeMap<String, u64> {
        let mut reached = BTreeMap::new();
        for (_, frame) in self.seen.iter().filter(|(sender, _)| *sender == from) {
            let parsed = parse(frame, &registers()).expect("a frame that the codecs read");
            let mut say = |what: String| *reached.entry(what).or_insert(0) += 1;
            match (parsed.pds, parsed.ses) {
                (Pds::Request(head, _), _) => {
                    say(format!("request {}", head.kind()));
                    if head.retx() {
                        say(format!("request {} again", head.kind()));
                    }
                    if head.syn() {
                        say("SYN".into());
                    }
                }
                (Pds::Control(head), _) => say(format!("control {}", head.ctl())),
                (Pds::Nack(head), _) => say(format!("NACK {:#04x}", head.code())),
                (Pds::Ack(head, Some(cc)), Ses::Response(response)) => {
                    say(format!("ACK {}", response.code()));
                    if head.req() == AckRequest::Clear as u8 {
                        say("wants CLEAR".into());
                    }
                    if cc.bitmap() != 0 {
                        say("SACK".into());
                    }
                }
                (Pds::Ack(..), Ses::None) => say("plain ACK".into()),
                other => panic!("{other:?}"),
            }
        }
        reached
    }

    /// All messages so far: each has ended once, with its code, has arrived once if that is OK, and then its bytes are where they belong, once.
    pub fn check(&self) {
        for n in 0..2 {
            let mut tokens: Vec<u64> = self.written.iter().filter(|(from, ..)| *from == n).map(|(_, at, _)| at + 1).collect();
            let (mut ended, mut arrived) = (self.ended[n].clone(), self.arrived[1 - n].clone());
            [&mut tokens, &mut ended, &mut arrived].into_iter().for_each(|list| list.sort_unstable());
            assert_eq!(ended, tokens, "ends of messages");
            tokens.retain(|token| !self.codes.contains_key(token));
            assert_eq!(arrived, tokens, "messages that have arrived");
        }
        for (from, at, data) in self.written.iter().filter(|(_, at, _)| !self.codes.contains_key(&(at + 1))) {
            let place = *at as usize..*at as usize + data.len();
            match &self.nodes[1 - from] {
                Node::Engine(card) => {
                    assert!(card.memory[place.clone()] == data[..], "bytes of {at}");
                    assert!(card.written[place].iter().all(|count| *count == 1), "a byte of {at} was written more than once");
                }
                Node::Model(end) => assert!(end.target.memory[place] == data[..], "bytes of {at}"),
            }
        }
    }

    /// Time passes until all PDCs have closed: all places are free again.
    pub fn rest(&mut self) {
        for _ in 0..100 {
            (0..300).for_each(|_| self.tick());
            if self.flying.is_empty() && self.nodes.iter().all(quiet) {
                return;
            }
        }
        panic!("not at rest: {:?}", self.stats());
    }
}

/// It has no PDCs.
fn quiet(node: &Node) -> bool {
    match node {
        Node::Engine(card) => card.at_rest() && card.free(),
        Node::Model(end) => end.pds.at_rest() && end.target.at_rest() && end.under_way() == 0,
    }
}

/// Cycles without stalls: from a message to its first frame, opening its PDC and not; from a request to semantics; from their answer to the ACK.
pub fn figures<const W: usize, const K: usize, const L: usize>() -> [u64; 4] {
    let mut cards = [0, 1].map(|n| {
        let mut card = Card::new::<W, K, L>(n as u64 + 1, &config(), 0, MEMORY);
        card.pair(OWN[0][n], OWN[0][1 - n], MAC[1 - n]);
        card
    });
    let mut figures = [0; 4];
    for figure in 0..2 {
        // The lines are wiped, and nothing is under way.
        cards.iter_mut().for_each(|card| (0..200 * TICK).for_each(|_| drop(card.cycle())));
        cards[0].write(OWN[0][0], OWN[0][1], Mode::Rud, 100 + 100 * figure as u64, &[7; 64]);
        let (cycles, frame) = first(&mut cards[0]);
        figures[figure] = cycles;
        cards[1].receive(&frame);
        let taken = (1..).find(|_| {
            let out = cards[1].cycle();
            assert!(out.is_empty());
            cards[1].arrived.pop().is_some()
        });
        figures[2] = taken.unwrap();
        let (cycles, frame) = first(&mut cards[1]);
        figures[3] = cycles;
        cards[0].receive(&frame);
    }
    figures
}

/// Cycles until the next frame, and the frame.
fn first(card: &mut Card) -> (u64, Vec<u8>) {
    (1..2000).find_map(|n| Some((n, card.cycle().pop()?))).expect("a frame")
}
