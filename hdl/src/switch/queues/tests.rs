//! Frames and packets of all functions against the model while the admin engine writes the table.
use super::RawQueues;
use crate::msg::{CtlReq, CtlResp, RxRequest};
use crate::net::within::testing::{anywhere, origin, some, words};
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use ferric_abi::context::RawCtx;
use ferric_abi::csr::PORT_RAW;
use ferric_model::net::networks::{Network, Networks, Through};
use ferric_model::switch::functions::raw_queues;
use std::collections::VecDeque;

const QPN: u32 = 0xff_ffff;
/// Cycles in which what is written has come to the frame at hand.
const SETTLED: usize = 3;

/// What the table and the admin engine say.
#[derive(Clone, PartialEq)]
struct Says {
    physical: Option<u32>,
    lines: Vec<RawCtx>,
    networks: Networks,
}

impl Says {
    /// `raw`: of a frame through no tunnel, the physical function's queue pair may get it.
    fn queues(&self, through: Through, raw: bool) -> Vec<u32> {
        let networks = if through == Through::None { Networks::apart(u64::from(!raw)) } else { self.networks };
        raw_queues(self.physical, &self.lines, Network { through, networks })
    }
}

struct Bench {
    tb: Tb,
    rng: Rng,
    s: Source,
    m: Sink,
    retain: Sink,
    requests: Source,
    answers: Sink,
    /// Before and after the write that is under way.
    now: Says,
    then: Says,
    /// What is to come.
    want: VecDeque<Vec<u32>>,
    /// Of the frame at hand the queue pairs that it went to, and what the tables have said since the one before went.
    copies: Vec<Option<u32>>,
    said: Vec<Says>,
    /// Owners that frames have got beyond the first, and copies beyond the first.
    owners: [usize; 2],
    /// Frames by who got them while nothing was written: nobody, the physical function, another, several. Then packets.
    got: [u32; 5],
}

/// A frame or a packet with these fields, and anything in the others.
fn frame(rng: &mut Rng, raw: bool, origin: [(&'static str, u128); 2]) -> Vec<u32> {
    let layout = Fields::of::<RxRequest>();
    let mut words = rng.words(layout.width());
    [("raw", raw.into())].into_iter().chain(origin).for_each(|(name, value)| layout.set(&mut words, name, value));
    words
}

impl Bench {
    fn new<const LF: usize>(name: &str, seed: u64, stalls: [u32; 2]) -> Self {
        let mut tb = Tb::with_seed(name, RawQueues::<LF>::default(), seed);
        let (s, m) = (tb.source("s", stalls[0]), tb.sink("m", stalls[1]));
        let retain = tb.sink("m_retain", stalls[1]);
        let (requests, answers) = (tb.source("s_ctl", 20), tb.sink("m_ctl", 20));
        let now = Says { physical: None, lines: vec![RawCtx::default(); 1 << LF], networks: Networks::default() };
        let (want, copies, said, owners, got) = Default::default();
        Self { rng: Rng::new(tb.seed() ^ 0x9a3), tb, s, m, retain, requests, answers, then: now.clone(), now, want, copies, said, owners, got }
    }

    fn function(&mut self) -> u32 {
        self.rng.below(self.now.lines.len() as u64) as u32
    }

    /// Through a function's tunnel, or through none; a frame, or a packet that must not change.
    fn push(&mut self) {
        let functions = self.now.lines.len() as u16;
        let several = self.rng.percent(40).then(|| Through::Whole(self.rng.below(functions.into()) as u16));
        let (through, raw, physical) = (several.unwrap_or_else(|| anywhere(&mut self.rng, functions)), self.rng.percent(80), self.rng.percent(50));
        let words = frame(&mut self.rng, raw, origin(through, physical));
        self.want.push_back(words.clone());
        self.s.push(words);
    }

    /// One cycle, with a look at what goes in it.
    fn step(&mut self) {
        if self.rng.percent(60) {
            self.push();
        }
        self.quiet_step();
    }

    fn quiet_step(&mut self) {
        for says in [&self.now, &self.then] {
            if !self.said.contains(says) {
                self.said.push(says.clone());
            }
        }
        self.tb.begin();
        let goes = self.tb.get("m$valid") & self.tb.get("m$ready") == 1;
        let word = self.tb.get("raw_qpn") as u32;
        self.tb.end();
        if !goes {
            return;
        }
        let layout = Fields::of::<RxRequest>();
        let mut want = self.want.front().expect("nothing comes that was not sent").clone();
        let [raw, tunnel, function] = ["raw", "tunnel", "function"].map(|name| layout.get(&want, name) as u16);
        if raw == 0 {
            self.got[4] += 1;
            self.want.pop_front();
            return assert_eq!(self.m.pop().expect("it goes"), want);
        }
        let handle = layout.get(&want, "handle") & 511;
        layout.set(&mut want, "function", 0);
        assert_eq!(self.m.pop().expect("it goes"), want);
        let through = Through::read(tunnel == 1, function);
        let physical = function == 0;
        self.copies.push((word & PORT_RAW != 0).then_some(word & QPN));
        // An owner more than it had copies: there is another one.
        if self.owners[0] + self.retain.len() > self.owners[1] + self.copies.len() - 1 {
            return;
        }
        let says: Vec<Vec<u32>> = self.said.iter().chain([&self.now, &self.then]).map(|says| says.queues(through, physical)).collect();
        let got: Vec<u32> = self.copies.iter().flatten().copied().collect();
        let seed = self.tb.seed();
        if says.iter().all(|queues| *queues == says[0]) {
            assert!(got == says[0] && self.copies.len() == got.len().max(1), "{through:?}: {:?}, not {:?}, seed {seed}", self.copies, says[0]);
            self.got[match (got.len(), through) {
                (0, _) => 0,
                (2.., _) => 3,
                (_, Through::None | Through::Only(0) | Through::Whole(0)) => 1,
                _ => 2,
            }] += 1;
        }
        // While lines change a frame may be for those of before or of afterwards, but for nobody else.
        assert!(got.iter().all(|queue| says.iter().any(|queues| queues.contains(queue))), "{through:?}: {got:?}, not {says:?}, seed {seed}");
        self.said.clear();
        self.owners[1] += self.copies.len() - 1;
        while let Some(owner) = self.retain.pop() {
            self.owners[0] += 1;
            assert_eq!(u128::from(owner[0]), handle, "whose owner it is");
        }
        assert_eq!(self.owners[0], self.owners[1], "an owner for each copy");
        self.copies.clear();
        self.want.pop_front();
    }

    fn settle(&mut self) {
        (0..SETTLED).for_each(|_| self.step());
        self.now = self.then.clone();
    }

    fn access(&mut self, line: u32, write: Option<u32>) -> u32 {
        let request = [("line", line.into()), ("word", 0), ("write", write.is_some().into()), ("data", write.unwrap_or(0).into())];
        self.requests.push(Fields::of::<CtlReq>().pack(&request));
        for _ in 0..600 {
            self.step();
            if let Some(answer) = self.answers.pop() {
                return Fields::of::<CtlResp>().get(&answer, "data") as u32;
            }
        }
        panic!("no answer of the table");
    }

    fn set_line(&mut self, line: u32, word: u32) {
        self.then.lines[line as usize] = RawCtx(word.to_le_bytes());
        self.access(line, Some(word));
        self.settle();
        assert_eq!(self.access(line, None), word);
    }

    /// Others are in other networks, once nothing is here.
    fn set_networks(&mut self) {
        while !self.want.is_empty() {
            self.quiet_step();
        }
        let functions = self.now.lines.len() as u16;
        let tunnels = [u64::MAX, self.rng.next_u64() | 2][self.rng.below(2) as usize];
        self.now.networks = some(&mut self.rng, functions, tunnels);
        if self.rng.percent(60) {
            // Most of them in one.
            self.now.networks = (2..functions).filter(|f| f % 8 != 3 || functions < 8).fold(Networks::apart(tunnels | 2), |all, f| all.join(f, 1));
        }
        self.then.networks = self.now.networks;
        self.tb.set_wide("networks", words(&self.now.networks));
    }

    fn set_port(&mut self, word: u32) {
        self.then.physical = (word & PORT_RAW != 0).then_some(word & QPN);
        self.tb.set("port", word.into());
        self.settle();
    }
}

fn random<const LF: usize>(name: &str, stalls: [u32; 2]) {
    for seed in [1, 2] {
        let mut b = Bench::new::<LF>(name, seed, stalls);
        for _ in 0..200 {
            let word = if b.rng.percent(70) { PORT_RAW } else { 0 } | b.rng.next_u32() & QPN;
            let line = b.function();
            if b.rng.percent(20) {
                b.set_port(word);
            } else if b.rng.percent(20) {
                b.set_networks();
            } else {
                b.set_line(line, word);
            }
            (0..b.rng.below(20)).for_each(|_| b.step());
        }
        assert!(b.got.iter().zip([60, 60, 60, 20, 60]).all(|(n, least)| *n > least), "{:?}", b.got);
        // A reset takes all lines; frames that were here are gone.
        (0..1 << LF).for_each(|line| b.set_line(line, PORT_RAW | 5));
        b.tb.reset();
        b.want.clear();
        b.copies.clear();
        b.now.lines.fill(RawCtx::default());
        b.then = b.now.clone();
        (0..1 << LF).for_each(|line| assert_eq!(Bench::access_quietly(&mut b, line), 0, "line {line} after a reset"));
    }
}

impl Bench {
    /// A read while no frame comes.
    fn access_quietly(&mut self, line: u32) -> u32 {
        self.requests.push(Fields::of::<CtlReq>().pack(&[("line", line.into())]));
        self.tb.run_until(600, |_| !self.answers.is_empty());
        Fields::of::<CtlResp>().get(&self.answers.pop().expect("it is there"), "data") as u32
    }
}

#[test]
fn each_frame_has_the_queue_pair_of_its_function() {
    random::<2>("queues", [20, 30]);
    random::<2>("queues", [0, 66]);
    random::<6>("queues_64", [0, 0]);
}

/// A frame that waits is not for a queue pair that has gone meanwhile.
#[test]
fn what_waits_is_not_decided() {
    let mut tb = Tb::new("queues", RawQueues::<2>::default());
    let (s, requests, answers) = (tb.source("s", 0), tb.source("s_ctl", 0), tb.sink("m_ctl", 0));
    let write = |tb: &mut Tb, word: u32| {
        requests.push(Fields::of::<CtlReq>().pack(&[("line", 3), ("write", 1), ("data", word.into())]));
        tb.run_until(100, |_| answers.pop().is_some());
        tb.run(2);
    };
    tb.set("m$ready", 0);
    write(&mut tb, PORT_RAW | 9);
    let rng = &mut Rng::new(1);
    s.push(frame(rng, true, origin(Through::Only(3), true)));
    tb.run(5);
    for word in [PORT_RAW | 9, 0, PORT_RAW | 77, PORT_RAW] {
        write(&mut tb, word);
        assert_eq!((tb.get("m$valid"), tb.get("raw_qpn") as u32), (1, if word & PORT_RAW == 0 { 0 } else { word }));
    }
}

/// A frame every second cycle, which is more than the responder takes.
#[test]
fn frames_pass_every_second_cycle() {
    let mut tb = Tb::new("queues", RawQueues::<2>::default());
    let (s, m) = (tb.source("s", 0), tb.sink("m", 0));
    let rng = &mut Rng::new(2);
    (0..100).for_each(|n| s.push(frame(rng, n % 2 == 1, origin(Through::Only(n % 4), true))));
    let start = tb.cycles();
    tb.run_until(400, |_| m.len() == 100);
    assert!(tb.cycles() - start <= 205, "{} cycles", tb.cycles() - start);
}
