//! Random destinations against the model while the admin engine writes the table.
use super::model::Listening;
use super::Stations;
use crate::msg::{CtlReq, CtlResp};
use crate::net::within::testing::{anywhere, packed, some, words};
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use ferric_abi::context::StationCtx;
use ferric_abi::csr::{PORT_PROMISCUOUS, PORT_RAW};
use ferric_model::net::networks::{Network, Networks, Through};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Cycles from a destination to the answer.
const LATENCY: usize = 3;
/// The word that makes a line count.
const LAST: u32 = 1;

fn number(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

fn one_machine(rng: &mut Rng) -> [u8; 6] {
    std::array::from_fn(|i| rng.next_u32() as u8 & if i == 0 { 0xfe } else { 0xff })
}

struct Bench {
    tb: Tb,
    rng: Rng,
    requests: Source,
    answers: Sink,
    /// What the card listens to, before and after the write that is under way.
    now: Listening,
    then: Listening,
    networks: Networks,
    /// Destinations of the last cycles, what they were meant to be, and what either says of them.
    asked: VecDeque<([u8; 6], &'static str, [bool; 2])>,
    counts: BTreeMap<(&'static str, bool), u32>,
    /// Functions that destinations were found to be of.
    owners: BTreeSet<u16>,
}

impl Bench {
    fn new<const N: usize, const LN: usize>(name: &str, seed: u64) -> Self {
        let mut tb = Tb::with_seed(name, Stations::<N, LN>::default(), seed);
        let (requests, answers) = (tb.source("s_ctl", 20), tb.sink("m_ctl", 20));
        let now = Listening { own: vec![None; N], promiscuous: false };
        Self {
            rng: Rng::new(tb.seed() ^ 0x57a7),
            tb,
            requests,
            answers,
            then: now.clone(),
            now,
            networks: Networks::default(),
            asked: VecDeque::new(),
            counts: BTreeMap::new(),
            owners: BTreeSet::new(),
        }
    }

    /// Whom a frame may be for.
    fn destination(&mut self) -> ([u8; 6], &'static str) {
        let rng = &mut self.rng;
        let known: Vec<[u8; 6]> = self.now.own.iter().chain(&self.then.own).flatten().copied().collect();
        let own = if known.is_empty() { one_machine(rng) } else { known[rng.below(known.len() as u64) as usize] };
        let mut near = own;
        match rng.below(7) {
            0 => ([0xff; 6], "broadcast"),
            6 => {
                let mut mac = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
                if rng.percent(50) {
                    return (mac, "control");
                }
                // Its neighbours are groups like any other.
                mac[rng.range(1, 5) as usize] ^= 1 << rng.below(8);
                (mac, "multicast")
            }
            1 => {
                near = one_machine(rng);
                near[0] |= 1;
                (near, "multicast")
            }
            2 => (one_machine(rng), "stranger"),
            3 => {
                near[rng.range(1, 5) as usize] ^= 1 << rng.below(8);
                (near, "one bit beside")
            }
            4 => {
                near[0] ^= 1 << rng.range(1, 7);
                (near, "one bit beside")
            }
            _ => (own, "own"),
        }
    }

    /// One cycle: a destination, and the answer of that before the last one.
    fn step(&mut self) {
        let (mac, what) = self.destination();
        self.tb.set("dmac", number(mac));
        // Through the tunnel of a function that has the address, of any other, or through none.
        let functions = self.now.own.len() as u16 / 4;
        let holder = self.now.own.iter().position(|own| *own == Some(mac)).map_or(0, |line| line as u16 / 4);
        let through = match (self.rng.below(6), self.networks.get(holder)) {
            (0, _) => anywhere(&mut self.rng, functions),
            (1, _) | (_, None) => Through::None,
            (2, Some(leader)) => Through::Looped(leader.into()),
            (3, _) => Through::Only(holder),
            (_, Some(leader)) => Through::Whole(leader.into()),
        };
        // What came through none is the physical function's if that has no tunnel.
        self.tb.set_wide("network", packed(through, self.networks.get(0).is_none()));
        let network = Network { through, networks: self.networks };
        let held = [&self.now, &self.then].map(|listening| listening.holder(mac, network).is_some());
        let owners = [&self.now, &self.then].map(|listening| listening.owner(mac, network));
        self.asked.push_back((mac, what, [self.now.other(mac, network), self.then.other(mac, network)]));
        self.tb.cycle();
        let owner = self.tb.get("owner") as u16;
        assert!(owners.contains(&owner), "{mac:02x?}, {what}: {owner}, not {owners:?}, seed {}", self.tb.seed());
        self.owners.insert(owner);
        assert!(held.contains(&(self.tb.get("owned") == 1)), "{mac:02x?}, {what}, seed {}", self.tb.seed());
        if self.asked.len() == LATENCY {
            let (mac, what, says) = self.asked.pop_front().expect("they are there");
            let other = self.tb.get("other") == 1;
            assert!(says.contains(&other), "{mac:02x?}, {what}: {other}, {:x?}, seed {}", self.now, self.tb.seed());
            if says[0] == says[1] {
                *self.counts.entry((what, other)).or_default() += 1;
            }
        }
    }

    /// Until what was decided before has been answered.
    fn settle(&mut self) {
        self.now = self.then.clone();
        (0..LATENCY + 1).for_each(|_| self.step());
    }

    fn access(&mut self, line: u32, word: u32, write: Option<u32>) -> (u32, bool) {
        let request = [("line", line.into()), ("word", word.into()), ("write", write.is_some().into()), ("data", write.unwrap_or(0).into())];
        self.requests.push(Fields::of::<CtlReq>().pack(&request));
        for _ in 0..600 {
            self.step();
            if let Some(answer) = self.answers.pop() {
                let layout = Fields::of::<CtlResp>();
                return (layout.get(&answer, "data") as u32, layout.get(&answer, "err") == 1);
            }
        }
        panic!("no answer of the table");
    }

    /// As the admin engine does it: the last word first cleared, then written last.
    fn set(&mut self, line: u32, mac: Option<[u8; 6]>) {
        self.then.own[line as usize] = None;
        self.access(line, LAST, Some(0));
        self.settle();
        let Some(mac) = mac else { return };
        let record = StationCtx::default().with_mac(number(mac)).with_valid(true);
        let words: Vec<u32> = record.0.chunks(4).map(|w| u32::from_le_bytes(w.try_into().expect("four bytes"))).collect();
        self.access(line, 0, Some(words[0]));
        self.then.own[line as usize] = Some(mac);
        self.access(line, LAST, Some(words[1]));
        self.settle();
        assert_eq!([self.access(line, 0, None), self.access(line, LAST, None)], [(words[0], false), (words[1], false)]);
    }

    fn set_tunnels(&mut self, tunnels: u64) {
        self.asked.clear();
        let functions = self.now.own.len() as u16 / 4;
        self.networks = some(&mut self.rng, functions, tunnels);
        self.tb.set_wide("networks", words(&self.networks));
    }

    fn listen(&mut self, port: u32) {
        self.then.promiscuous = port & PORT_RAW != 0 && port & PORT_PROMISCUOUS != 0;
        self.tb.set("port", port.into());
        self.step();
        self.settle();
        (0..20).for_each(|_| self.step());
    }
}

fn random<const N: usize, const LN: usize>(name: &str, rounds: usize) {
    for seed in [1, 2] {
        let mut b = Bench::new::<N, LN>(name, seed);
        (0..40).for_each(|_| b.step());
        for round in 0..rounds {
            let line = b.rng.below(N as u64) as u32;
            // Now and then an address that is there already, as when a tunnel has ended.
            let known: Vec<[u8; 6]> = b.now.own.iter().flatten().copied().collect();
            let again = !known.is_empty() && b.rng.percent(20);
            let mac = b.rng.percent(70).then(|| if again { known[b.rng.below(known.len() as u64) as usize] } else { one_machine(&mut b.rng) });
            b.set(line, mac);
            if round % 8 == 3 {
                let other = b.rng.next_u32() & !(PORT_RAW | PORT_PROMISCUOUS);
                let flags = [PORT_RAW | PORT_PROMISCUOUS, PORT_RAW, PORT_PROMISCUOUS, 0];
                flags.iter().for_each(|flags| b.listen(flags | other));
            }
            (0..20).for_each(|_| b.step());
            if round % 10 == 9 {
                let tunnels = [0, 1, u64::MAX, b.rng.next_u64()][b.rng.below(4) as usize];
                b.set_tunnels(tunnels);
            }
        }
        b.set_tunnels(0);
        assert!(b.owners.len() > N / 12, "{:?}", b.owners);
        // Lines that do not exist, and what is there after a reset.
        assert!(b.access(N as u32, LAST, Some(u32::MAX)).1);
        let own: Vec<[u8; 6]> = b.now.own.iter().flatten().copied().collect();
        assert!(!own.is_empty());
        b.tb.reset();
        b.asked.clear();
        b.tb.set("port", 0);
        b.tb.set_wide("network", vec![0]);
        for mac in own {
            b.tb.set("dmac", number(mac));
            (0..LATENCY).for_each(|_| b.tb.cycle());
            assert_eq!(b.tb.get("other"), 1, "{mac:02x?} outlives a reset");
        }
        b.now = Listening { own: vec![None; N], promiscuous: false };
        b.then = b.now.clone();
        // The first access waits until the table is clear.
        let last = N as u32 - 1;
        b.access(last, 0, Some(0x1234));
        assert_eq!(b.access(last, 0, Some(0)), (0x1234, false));
        (0..4).for_each(|_| b.step());
        for line in 0..N as u32 {
            assert_eq!([b.access(line, 0, None), b.access(line, LAST, None)], [(0, false); 2], "line {line} after a reset");
        }
        for expected in [("own", false), ("one bit beside", true), ("stranger", true), ("stranger", false), ("broadcast", false), ("multicast", false), ("control", true)] {
            assert!(b.counts.get(&expected).is_some_and(|n| *n > 10), "{expected:?}: {:?}", b.counts);
        }
    }
}

#[test]
fn a_card_of_four_functions_hears_its_own() {
    random::<16, 4>("stations16", 150);
}

#[test]
fn a_card_of_64_functions_hears_its_own() {
    random::<256, 8>("stations256", 60);
}

/// Every row is looked at, and a function's frames are not those of the rows beside.
#[test]
fn each_row_counts() {
    const N: u32 = 16;
    let mut b = Bench::new::<16, 4>("stations16", 3);
    for line in 0..N {
        let mac = [2, 0, 0, 0, 0, line as u8];
        b.set(line, Some(mac));
        let heard: Vec<u8> = (0..=N as u8).filter(|last| !b.now.other([2, 0, 0, 0, 0, *last], Network::default())).collect();
        assert_eq!(heard, (0..=line as u8).collect::<Vec<_>>(), "the model");
        b.tb.set_wide("network", vec![0]);
        for last in 0..=N as u8 {
            b.tb.set("dmac", number([2, 0, 0, 0, 0, last]));
            (0..LATENCY).for_each(|_| b.tb.cycle());
            assert_eq!(b.tb.get("other") == 1, !heard.contains(&last), "row {line}, address {last}");
        }
        b.asked.clear();
    }
}
