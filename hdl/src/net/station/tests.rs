//! Random destinations against the model while the admin engine writes the table.
use super::model::{counting, Listening};
use super::Stations;
use crate::msg::{CtlReq, CtlResp};
use crate::net::within::testing::{anywhere, packed, some, words};
use crate::switch::testing::words as record;
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use ferric_abi::context::{SenderCtx, StationCtx};
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

fn bytes(mac: u64) -> [u8; 6] {
    mac.to_be_bytes()[2..].try_into().expect("six bytes")
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
    /// What the table says, and what each function may send.
    said: Vec<StationCtx>,
    senders: Vec<SenderCtx>,
    /// Of these addresses lines may begin or cease to count, one by one.
    unsure: BTreeSet<[u8; 6]>,
    networks: Networks,
    /// Destinations of the last cycles, what they were meant to be, and what either says of them.
    asked: VecDeque<([u8; 6], &'static str, [bool; 2])>,
    counts: BTreeMap<(&'static str, bool), u32>,
    /// Functions that destinations were found to be of.
    owners: BTreeSet<u16>,
}

impl Bench {
    fn new<const N: usize, const LN: usize, const NF: usize>(name: &str, seed: u64) -> Self {
        let mut tb = Tb::with_seed(name, Stations::<N, LN, NF>::default(), seed);
        let (requests, answers) = (tb.source("s_ctl", 20), tb.sink("m_ctl", 20));
        let now = Listening { own: vec![None; N], promiscuous: false };
        Self {
            rng: Rng::new(tb.seed() ^ 0x57a7),
            tb,
            requests,
            answers,
            then: now.clone(),
            now,
            said: vec![StationCtx::default(); N],
            senders: vec![SenderCtx::default(); NF],
            unsure: BTreeSet::new(),
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
        let sure = !self.unsure.contains(&mac);
        assert!(!sure || owners.contains(&owner), "{mac:02x?}, {what}: {owner}, not {owners:?}, seed {}", self.tb.seed());
        self.owners.insert(owner);
        assert!(!sure || held.contains(&(self.tb.get("owned") == 1)), "{mac:02x?}, {what}, seed {}", self.tb.seed());
        if self.asked.len() == LATENCY {
            let (mac, what, says) = self.asked.pop_front().expect("they are there");
            let other = self.tb.get("other") == 1;
            assert!(self.unsure.contains(&mac) || says.contains(&other), "{mac:02x?}, {what}: {other}, {:x?}, seed {}", self.now, self.tb.seed());
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

    /// Until every line has been looked at once more: what counts then counts from here on.
    fn look(&mut self) {
        self.then.own = counting(&self.said, &self.senders).iter().map(|line| line.valid().then(|| bytes(line.mac()))).collect();
        (0..self.said.len() + 3).for_each(|_| self.step());
        self.settle();
    }

    /// As the admin engine does it: the last word first cleared, then written last.
    fn set(&mut self, line: u32, mac: Option<[u8; 6]>) {
        let place = line as usize;
        self.said[place] = StationCtx::default();
        self.then.own[place] = None;
        self.access(line, LAST, Some(0));
        self.settle();
        let Some(mac) = mac else { return };
        let words = |station: StationCtx| -> Vec<u32> { station.0.chunks(4).map(|w| u32::from_le_bytes(w.try_into().expect("four bytes"))).collect() };
        self.said[place] = StationCtx::default().with_mac(number(mac)).with_valid(true);
        let written = words(self.said[place]);
        self.access(line, 0, Some(written[0]));
        let counts = counting(&self.said, &self.senders)[place];
        self.then.own[place] = counts.valid().then_some(mac);
        self.access(line, LAST, Some(written[1]));
        self.look();
        let shown = words(counts);
        assert_eq!([self.access(line, 0, None), self.access(line, LAST, None)], [(shown[0], false), (shown[1], false)]);
    }

    /// Another function is verified, or not any more: it may have some of the addresses that it says it has, and such as others say.
    fn set_sender(&mut self) {
        let rng = &mut self.rng;
        let f = rng.below(self.senders.len() as u64) as usize;
        let mut mac = || self.said[if rng.percent(60) { f * 4 + rng.below(4) as usize } else { rng.below(self.said.len() as u64) as usize }].mac();
        let line = SenderCtx::default().with_mac0(mac()).with_mac1(mac()).with_mac2(mac()).with_mac3(mac());
        let own = self.said[f * 4..][..4].iter().filter(|line| line.valid());
        self.unsure = own.map(|line| bytes(line.mac())).collect();
        self.senders[f] = line.with_have(rng.below(16) as u8).with_on(rng.percent(70));
        self.tb.set_wide(&format!("senders${f}"), &record(&self.senders[f].0)[..]);
        self.look();
        self.unsure.clear();
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

fn random<const N: usize, const LN: usize, const NF: usize>(name: &str, rounds: usize) {
    for seed in [1, 2] {
        let mut b = Bench::new::<N, LN, NF>(name, seed);
        (0..40).for_each(|_| b.step());
        let mut barred = 0;
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
            if round % 2 == 1 {
                b.set_sender();
                barred = barred.max(b.said.iter().zip(&b.now.own).filter(|(said, counts)| said.valid() && counts.is_none()).count());
            }
            (0..20).for_each(|_| b.step());
            if round % 10 == 9 {
                let tunnels = [0, 1, u64::MAX, b.rng.next_u64()][b.rng.below(4) as usize];
                b.set_tunnels(tunnels);
            }
        }
        b.set_tunnels(0);
        assert!(barred > 2, "{barred} of {N} addresses did not count, at most");
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
        b.said = vec![StationCtx::default(); N];
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
    random::<16, 4, 4>("stations16", 150);
}

#[test]
fn a_card_of_64_functions_hears_its_own() {
    random::<256, 8, 64>("stations256", 60);
}

/// Every row is looked at, and a function's frames are not those of the rows beside.
#[test]
fn each_row_counts() {
    const N: u32 = 16;
    let mut b = Bench::new::<16, 4, 4>("stations16", 3);
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

/// An address of which a verified function says that it has it is free for whom it belongs to, and counts as soon as the function may have it.
#[test]
fn an_address_that_does_not_count_is_free() {
    let mut b = Bench::new::<16, 4, 4>("stations16", 4);
    b.set_tunnels(0);
    let mac = [2, 0, 0, 0, 0, 9];
    let owner = |b: &mut Bench| {
        b.tb.set("dmac", number(mac));
        b.tb.set_wide("network", packed(Through::None, true));
        b.tb.cycle();
        b.asked.clear();
        (b.tb.get("owned") == 1).then(|| b.tb.get("owner"))
    };
    let sender = |b: &mut Bench, f: usize, sender: SenderCtx| {
        b.senders[f] = sender;
        b.tb.set_wide(&format!("senders${f}"), &record(&sender.0)[..]);
        b.look();
    };
    b.set(4, Some(mac));
    assert_eq!(owner(&mut b), Some(1), "nobody is verified");
    sender(&mut b, 1, SenderCtx::default().with_on(true).with_mac0(number([2, 0, 0, 0, 0, 8])).with_mac2(number(mac)).with_have(1));
    assert_eq!((owner(&mut b), b.access(4, LAST, None)), (None, (u32::from(mac[0]) << 8, false)), "it may have another, and the control bus hears that there is none");
    sender(&mut b, 2, SenderCtx::default().with_on(true).with_mac3(number(mac)).with_have(8));
    b.set(9, Some(mac));
    assert_eq!(owner(&mut b), Some(2));
    let both = b.senders[1].with_have(4);
    sender(&mut b, 1, both);
    assert_eq!(owner(&mut b), Some(1), "both may: the lower line counts");
}

/// An address that is written in another's place does not count for a cycle because that one did, whichever line is looked at meanwhile.
#[test]
fn an_address_counts_when_it_has_been_looked_at() {
    let mut b = Bench::new::<16, 4, 4>("stations16", 5);
    b.set_tunnels(0);
    b.tb.set_wide("network", packed(Through::None, true));
    let [own, other] = [1u64, 2].map(|last| 0x0200_0000_0000 | last);
    b.tb.set_wide("senders$1", &record(&SenderCtx::default().with_on(true).with_mac0(own).with_have(1).0)[..]);
    let requests = Fields::of::<CtlReq>();
    let write = |b: &mut Bench, word: u32, data: u64| {
        b.requests.push(requests.pack(&[("line", 4), ("word", word.into()), ("write", 1), ("data", (data as u32).into())]));
        let (mut counted, mut done) = (0, false);
        let after = 24 + b.rng.below(16);
        let mut left = after;
        while left > 0 {
            b.tb.cycle();
            counted += b.tb.get("owned");
            done |= b.answers.pop().is_some();
            left = if done { left - 1 } else { after };
        }
        counted
    };
    for round in 0..60 {
        write(&mut b, LAST, 0);
        write(&mut b, 0, own);
        b.tb.set("dmac", own);
        assert!(write(&mut b, LAST, 0x1_0200) > 0, "round {round}");
        b.tb.set("dmac", other);
        b.tb.cycle();
        assert_eq!(write(&mut b, 0, other), 0, "round {round}");
    }
}
