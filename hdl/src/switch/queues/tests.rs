//! Frames and packets of all functions against the model while the admin engine writes the table.
use super::RawQueues;
use crate::msg::{CtlReq, CtlResp, RxRequest};
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use ferric_abi::context::RawCtx;
use ferric_abi::csr::PORT_RAW;
use ferric_model::net::networks::Network;
use ferric_model::switch::functions::raw_queue;
use std::collections::VecDeque;

/// Whose is what came through no tunnel, if the physical function has one.
const NOBODY: u16 = 0xfff;
const QPN: u32 = 0xff_ffff;
/// Cycles in which what is written has come to the frame at hand.
const SETTLED: usize = 3;

/// What the table and the admin engine say.
#[derive(Clone)]
struct Says {
    physical: Option<u32>,
    lines: Vec<RawCtx>,
}

impl Says {
    fn queue(&self, tunnel: bool, function: u16) -> Option<u32> {
        raw_queue(self.physical, &self.lines, Network { through: tunnel.then_some(function), tunnels: u64::from(function == NOBODY) })
    }
}

struct Bench {
    tb: Tb,
    rng: Rng,
    s: Source,
    m: Sink,
    requests: Source,
    answers: Sink,
    /// Before and after the write that is under way.
    now: Says,
    then: Says,
    /// What is to come.
    want: VecDeque<Vec<u32>>,
    /// Frames by who got them while nothing was written: nobody, the physical function, another. Then packets.
    got: [u32; 4],
}

/// A frame or a packet with these fields, and anything in the others.
fn frame(rng: &mut Rng, fields: [(&str, u128); 3]) -> Vec<u32> {
    let layout = Fields::of::<RxRequest>();
    let mut words = rng.words(layout.width());
    fields.into_iter().for_each(|(name, value)| layout.set(&mut words, name, value));
    words
}

impl Bench {
    fn new<const LF: usize>(name: &str, seed: u64, stalls: [u32; 2]) -> Self {
        let mut tb = Tb::with_seed(name, RawQueues::<LF>::default(), seed);
        let (s, m) = (tb.source("s", stalls[0]), tb.sink("m", stalls[1]));
        let (requests, answers) = (tb.source("s_ctl", 20), tb.sink("m_ctl", 20));
        let now = Says { physical: None, lines: vec![RawCtx::default(); 1 << LF] };
        Self { rng: Rng::new(tb.seed() ^ 0x9a3), tb, s, m, requests, answers, then: now.clone(), now, want: VecDeque::new(), got: [0; 4] }
    }

    fn function(&mut self) -> u32 {
        self.rng.below(self.now.lines.len() as u64) as u32
    }

    /// Through a function's tunnel, or through none; a frame, or a packet that must not change.
    fn push(&mut self) {
        let tunnel = self.rng.percent(70);
        let function = match (tunnel, self.rng.percent(50)) {
            (true, _) => self.function() as u16,
            (false, true) => 0,
            (false, false) => NOBODY,
        };
        let raw = self.rng.percent(80);
        let words = frame(&mut self.rng, [("raw", raw.into()), ("tunnel", tunnel.into()), ("function", function.into())]);
        self.want.push_back(words.clone());
        self.s.push(words);
    }

    /// One cycle, with a look at what goes in it.
    fn step(&mut self) {
        if self.rng.percent(60) {
            self.push();
        }
        self.tb.begin();
        let goes = self.tb.get("m$valid") & self.tb.get("m$ready") == 1;
        let word = self.tb.get("raw_qpn") as u32;
        self.tb.end();
        if !goes {
            return;
        }
        let layout = Fields::of::<RxRequest>();
        let mut want = self.want.pop_front().expect("nothing comes that was not sent");
        let [raw, tunnel, function] = ["raw", "tunnel", "function"].map(|name| layout.get(&want, name) as u16);
        if raw == 1 {
            let queue = (word & PORT_RAW != 0).then_some(word & QPN);
            let says = [&self.now, &self.then].map(|says| says.queue(tunnel == 1, function));
            assert!(says.contains(&queue), "function {function}, tunnel {tunnel}: {queue:?}, not {says:?}, seed {}", self.tb.seed());
            if says[0] == says[1] {
                self.got[if queue.is_none() { 0 } else { 1 + usize::from(function != 0) }] += 1;
            }
            layout.set(&mut want, "function", 0);
        } else {
            self.got[3] += 1;
        }
        assert_eq!(self.m.pop().expect("it goes"), want);
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
            } else {
                b.set_line(line, word);
            }
            (0..b.rng.below(20)).for_each(|_| b.step());
        }
        assert!(b.got.iter().all(|n| *n > 100), "{:?}", b.got);
        // A reset takes all lines; frames that were here are gone.
        (0..1 << LF).for_each(|line| b.set_line(line, PORT_RAW | 5));
        b.tb.reset();
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
    s.push(frame(rng, [("raw", 1), ("tunnel", 1), ("function", 3)]));
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
    (0..100).for_each(|n| s.push(frame(rng, [("raw", n % 2), ("tunnel", 1), ("function", n % 4)])));
    let start = tb.cycles();
    tb.run_until(400, |_| m.len() == 100);
    assert!(tb.cycles() - start <= 205, "{} cycles", tb.cycles() - start);
}
