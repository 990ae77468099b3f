//! Random traffic under random faults, every byte and every completion checked.
mod doomed;

use crate::pair::{Error, Pair, Wire};
use doomed::Doomed;
use ferric_abi::codes::{AdminOpcode, WrOpcode};
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::Mtu;
use ferric_driver::{Access, AtomicOp, AtomicRequest, Completion, CompletionQueue, CqeOpcode, CqeStatus, MemoryRegion, QpConfig, QueuePair, ReadRequest, RecvRequest, SendRequest};
use ferric_sim::axi::HostTiming;
use ferric_sim::{Body, CardConfig, Faults, LinkConfig, Rng, WorldConfig};
use rand::{Rng as _, SeedableRng};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::rc::Rc;

/// Shape of a soak.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seed of everything.
    pub seed: u64,
    /// Queue pairs per card.
    pub qps: usize,
    /// Messages in all, both directions.
    pub messages: u64,
    /// Largest message.
    pub max_bytes: usize,
    /// Data path width.
    pub width: usize,
    /// Pairs of queue pairs that fail on purpose.
    pub doomed: usize,
    /// Functions of each card, a driver each, 1 to 4.
    pub functions: u8,
    /// What the two cards are made of.
    pub bodies: [Body; 2],
}

/// So often counters are read until no frame leaves meanwhile.
const QUIET_TRIES: u32 = 20;
/// Queue pairs that share a completion queue.
const PER_CQ: usize = 8;
/// Messages outstanding per queue pair and direction.
const WINDOW: usize = 3;
/// Cycles without a completion after which a run counts as hung: several retransmission time-outs.
const PATIENCE: u64 = 1_000_000;
/// Slots of each work request ring.
const RING: usize = 4;
/// Bytes around every buffer that nothing may touch.
const GUARD: usize = 64;

/// This queue pair has small completion queues of its own, wants an entry for everything, and its completions lie there for long:
/// the queue fills up.
const FILLS_UP: usize = 0;

/// Completion queue of queue pair `q`, the same number on both hosts.
fn cq_of(q: usize) -> usize {
    if q == FILLS_UP {
        0
    } else {
        1 + (q - 1) / PER_CQ
    }
}

/// As many entries as can be outstanding on completion queue `c`: a slow poller may fill it, but never beyond.
fn entries(c: usize) -> usize {
    2 * WINDOW * if c == cq_of(FILLS_UP) { 1 } else { PER_CQ }
}

/// What a work request does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    /// SEND or WRITE.
    Out(WrOpcode),
    Read,
    /// On a word of the stream's own: what it answers is known.
    Atomic(AtomicOp),
    /// Adds one to a word that all streams of a direction share.
    Ticket,
}

/// Cycles of the simulated cards' timer tick.
const TICK: u32 = 64;

/// ACK time-out of all queue pairs, as an exponent: twice the time in which each of them sends a packet of the largest size, at least 2^8 ticks. One that is
/// shorter than a round of all queue pairs expires while acknowledges wait behind other queue pairs' packets, again and again, until the retries are used up.
fn timeout(plan: &Plan) -> u8 {
    let round = plan.qps * Mtu::M4096.bytes() / (plan.width / 8);
    let ticks = (2 * round).div_ceil(TICK as usize);
    ticks.next_power_of_two().trailing_zeros().max(8) as u8
}

/// The function that queue pair `q` belongs to: those that share a completion queue are of the same.
fn function_of(plan: &Plan, q: usize) -> usize {
    cq_of(q) % usize::from(plan.functions)
}

/// A message under way. `bytes`: what it carries, or what it brings.
struct Message {
    number: u64,
    op: Op,
    bytes: Vec<u8>,
    slot: usize,
    imm: u32,
    signaled: bool,
}

/// One direction of one queue pair.
struct Stream {
    function: usize,
    from: usize,
    src: MemoryRegion,
    dst: MemoryRegion,
    /// What `dst` and `src` must hold when all is done.
    shadow: Vec<u8>,
    own: Vec<u8>,
    /// The word for atomics, and what it must hold.
    word: MemoryRegion,
    value: u64,
    slot_bytes: usize,
    /// Not yet completed at the sender, oldest first.
    sends: VecDeque<Rc<Message>>,
    /// Consume a receive and have not completed at the receiver, oldest first.
    receives: VecDeque<Rc<Message>>,
    next: u64,
    /// Messages whose slots nothing may write any more, until they are used again.
    sealed: u64,
    posted_receives: u64,
    seen_receives: u64,
}

/// A word to which all streams of a function and a direction add.
struct Dispenser {
    word: MemoryRegion,
    /// How many tickets were asked for, and those that came.
    asked: u64,
    tickets: BTreeSet<u64>,
}

/// What the soak saw, by name; the caller checks that nothing it cares for is zero.
pub type Coverage = BTreeMap<String, u64>;

/// The state of one run.
pub struct Soak {
    plan: Plan,
    rng: Rng,
    pair: Pair,
    qps: Vec<[QueuePair; 2]>,
    streams: Vec<[Stream; 2]>,
    cqs: [Vec<CompletionQueue>; 2],
    /// First PSN each end of each queue pair sends.
    first_psn: Vec<[u32; 2]>,
    /// Queue pairs that fail on purpose, beside those of the plan.
    doomed: Vec<Doomed>,
    /// Completion queues that nobody polls before that cycle.
    neglected: [Vec<u64>; 2],
    /// Of each function the shared words of both directions.
    dispensers: Vec<[Dispenser; 2]>,
    coverage: Coverage,
    left: u64,
    completions: u64,
}

impl Soak {
    /// Builds cards, queue pairs and buffers.
    pub fn new(plan: Plan) -> Result<Self, Error> {
        let mut rng = Rng::seed_from_u64(plan.seed);
        let low = rng.gen_range(1..=300);
        let host = HostTiming {
            read_latency: low,
            read_jitter: rng.gen_range(20..=700),
            write_latency: rng.gen_range(1..=700),
            interleave: rng.gen_bool(0.5),
            stall_percent: rng.gen_range(0..=30),
            ..Default::default()
        };
        let card = CardConfig { width: plan.width, chaos: true, host, mac_stall_percent: rng.gen_range(0..=30), seed: plan.seed, ..Default::default() };
        let faults = Faults { loss: 20_000, duplicate: 5_000, reorder: 5_000, corrupt: 5_000, reorder_cycles: 300 };
        let link = LinkConfig { delay: rng.gen_range(10..=200), rate: 0, faults };
        let pair = Pair::with_functions(
            &WorldConfig { cards: plan.bodies.map(|body| CardConfig { body, ..card.clone() }).to_vec(), link, seed: plan.seed, tick_cycles: TICK.into(), ..Default::default() },
            plan.functions,
        )?;
        let n_cqs = cq_of(plan.qps - 1) + 1;
        let cqs = [0, 1].map(|h| (0..n_cqs).map(|c| pair.of(c % usize::from(plan.functions))[h].cq(entries(c))).collect::<Result<Vec<_>, _>>());
        let [c0, c1] = cqs;
        let cqs = [c0?, c1?];
        let (mut qps, mut streams) = (Vec::new(), Vec::new());
        let mut first_psn = Vec::new();
        for i in 0..plan.qps {
            let mtus = [Mtu::M256, Mtu::M512, Mtu::M1024, Mtu::M2048, Mtu::M4096];
            let near = i % 4 == 0;
            let psn = [0, 1].map(|_| if near { 0xff_fff0 + rng.gen_range(0..16) } else { rng.gen_range(0..1 << 24) });
            first_psn.push(psn);
            let wire = Wire {
                mtu: mtus[rng.gen_range(0..5)],
                v6: rng.gen_bool(0.3),
                vlan: rng.gen_bool(0.2).then_some(0x6123),
                psn,
                timeout: timeout(&plan),
                rnr_retry: 7,
                min_rnr_timer: 1,
                repeat_nak: rng.gen_bool(0.3),
                ..Default::default()
            };
            let config = QpConfig { max_send: RING, max_recv: RING, max_send_sge: rng.gen_range(1..=6), max_recv_sge: 3, ..Default::default() };
            let function = function_of(&plan, i);
            let hosts = pair.of(function);
            qps.push(pair.connected_of(function, &config, &wire, [&cqs[0][cq_of(i)], &cqs[1][cq_of(i)]])?);
            let stream = |from: usize, rng: &mut Rng| -> Result<Stream, Error> {
                let slot_bytes = plan.max_bytes + 2 * GUARD;
                let mut shadow = vec![0u8; slot_bytes * WINDOW];
                rng.fill(&mut shadow[..]);
                let dst = hosts[1 - from].region(shadow.len(), Access::ALL)?;
                dst.write(0, &shadow);
                let src = hosts[from].region(slot_bytes * WINDOW, Access::LOCAL_WRITE)?;
                let own = vec![0u8; slot_bytes * WINDOW];
                let word = hosts[1 - from].region(64, Access::ALL)?;
                Ok(Stream {
                    function,
                    from,
                    src,
                    dst,
                    own,
                    word,
                    value: 0,
                    shadow,
                    slot_bytes,
                    sends: VecDeque::new(),
                    receives: VecDeque::new(),
                    next: 0,
                    sealed: 0,
                    posted_receives: 0,
                    seen_receives: 0,
                })
            };
            streams.push([stream(0, &mut rng)?, stream(1, &mut rng)?]);
        }
        let wire = Wire { timeout: 7, retry_cnt: 4, ..Default::default() };
        let doomed = (0..plan.doomed).map(|_| Doomed::new(&pair, &wire)).collect::<Result<_, _>>()?;
        let dispenser = |f: usize, host: usize| -> Result<_, Error> { Ok(Dispenser { word: pair.of(f)[host].region(64, Access::ALL)?, asked: 0, tickets: BTreeSet::new() }) };
        let dispensers = (0..plan.functions.into()).map(|f| Ok([dispenser(f, 1)?, dispenser(f, 0)?])).collect::<Result<_, Error>>()?;
        let neglected = [vec![0; n_cqs], vec![0; n_cqs]];
        Ok(Self { plan, rng, pair, qps, streams, cqs, doomed, neglected, first_psn, dispensers, coverage: Coverage::new(), left: plan.messages, completions: 0 })
    }

    fn count(&mut self, what: &str, n: u64) {
        *self.coverage.entry(what.to_string()).or_default() += n;
    }

    /// Sizes: log-uniform, most up to 16 KiB and some up to the largest, with the borders of packets favoured.
    fn size(&mut self) -> usize {
        let max = self.plan.max_bytes;
        let limit = match self.rng.gen_range(0..20) {
            0 => return 0,
            1 | 2 => return ((256usize << self.rng.gen_range(0..5)) + self.rng.gen_range(0..3) - 1).min(max),
            3 | 4 => max,
            _ => max.min(16_384),
        };
        let log = (limit as f64).log2() * self.rng.gen::<f64>();
        (log.exp2() as usize).min(max)
    }

    /// What has completed is the program's: its slots, guards and all, are watched until they are used again.
    fn seal(&mut self, q: usize, d: usize) {
        let s = &mut self.streams[q][d];
        while s.sealed < s.next - s.busy() as u64 {
            let bytes = s.slot(s.sealed);
            self.pair.seal_of(s.function, s.from, &s.src, bytes.clone(), false);
            self.pair.seal_of(s.function, 1 - s.from, &s.dst, bytes, false);
            s.sealed += 1;
        }
    }

    fn post(&mut self, q: usize, d: usize) -> Result<(), Error> {
        self.seal(q, d);
        // A stream that ends unsignalled gets a signalled, empty WRITE behind it, so that its end shows.
        let closing = self.left == 0 && self.streams[q][d].sends.back().is_some_and(|m| !m.signaled);
        if (self.left == 0 && !closing) || self.streams[q][d].busy() >= WINDOW {
            return Ok(());
        }
        let choice = match closing {
            true => 3,
            false => self.rng.gen_range(0..if q == FILLS_UP { 3 } else { 10 }),
        };
        let out = [WrOpcode::Send, WrOpcode::SendImm, WrOpcode::WriteImm, WrOpcode::Write, WrOpcode::Write];
        let op = match choice {
            0..=4 => Op::Out(out[choice]),
            5 | 6 => Op::Read,
            7 => Op::Atomic(AtomicOp::FetchAdd(self.rng.gen())),
            8 => {
                let value = self.streams[q][d].value;
                Op::Atomic(AtomicOp::CompareSwap { compare: if self.rng.gen_bool(0.5) { value } else { !value }, swap: self.rng.gen() })
            }
            _ => Op::Ticket,
        };
        let size = match op {
            Op::Atomic(_) | Op::Ticket => 8,
            // Answers of all queue pairs share a wire, and who asked waits no longer than its time-outs.
            Op::Read => self.size().min(16_384),
            _ if closing => 0,
            _ if q == FILLS_UP => self.size().min(2048),
            _ => self.size(),
        };
        let mut bytes = vec![0; size];
        self.rng.fill(&mut bytes[..]);
        let (imm, signaled, solicited) = (self.rng.gen(), closing || (q == FILLS_UP) || self.rng.gen_bool(0.8), self.rng.gen_bool(0.2));
        let inline = size <= 32 && self.rng.gen_bool(0.5);
        let cuts = self.rng.gen_range(1..=3usize);
        let s = &mut self.streams[q][d];
        // A window of unsignalled requests would never show its end.
        let signaled = signaled || (s.busy() + 1 >= WINDOW && !s.sends.iter().any(|m| m.signaled));
        let n = s.next;
        let slot = (n % WINDOW as u64) as usize;
        let at = slot * s.slot_bytes + GUARD;
        self.pair.unseal_of(s.function, s.from, &s.src, s.slot(n));
        self.pair.unseal_of(s.function, 1 - s.from, &s.dst, s.slot(n));
        let consumes = matches!(op, Op::Out(o) if o != WrOpcode::Write);
        match op {
            Op::Out(_) => s.src.write(at, &bytes),
            Op::Read => s.dst.write(at, &bytes),
            Op::Atomic(_) => bytes = s.value.to_le_bytes().to_vec(),
            Op::Ticket => {}
        }
        let mut parts = [sge(s.src.addr() + at as u64, size as u32, s.src.lkey()); 3];
        let mut used = 1;
        let atomic = matches!(op, Op::Atomic(_) | Op::Ticket);
        if cuts > 1 && size >= cuts && !atomic {
            // At most what every queue pair was made for: two entries fit the smallest slot.
            let first = size / 2;
            parts[0] = sge(s.src.addr() + at as u64, first as u32, s.src.lkey());
            parts[1] = sge(s.src.addr() + (at + first) as u64, (size - first) as u32, s.src.lkey());
            used = 2;
        }
        let payload = if inline { Payload::Inline(&bytes) } else { Payload::Sges(&parts[..used]) };
        let (wr_id, sges) = (n, &parts[..used]);
        let (remote_addr, rkey) = (s.dst.addr() + at as u64, s.dst.rkey());
        let posted = match op {
            Op::Out(opcode) => self.qps[q][d].post_send(&SendRequest { wr_id, opcode, payload, remote_addr, rkey, imm, signaled, solicited }),
            Op::Read => self.qps[q][d].post_read(&ReadRequest { wr_id, sges, remote_addr, rkey, signaled, fence: solicited }),
            Op::Atomic(op) => self.qps[q][d].post_atomic(&AtomicRequest { wr_id, op, sges, remote_addr: word_in(&s.word), rkey: s.word.rkey(), signaled, fence: solicited }),
            Op::Ticket => {
                let to = &self.dispensers[s.function][d].word;
                self.qps[q][d].post_atomic(&AtomicRequest { wr_id, op: AtomicOp::FetchAdd(1), sges, remote_addr: word_in(to), rkey: to.rkey(), signaled, fence: solicited })
            }
        };
        match posted {
            Ok(()) => {}
            Err(ferric_driver::Error::QueueFull) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        s.next += 1;
        s.own[at..at + size].copy_from_slice(&bytes);
        match op {
            Op::Out(_) | Op::Read => s.shadow[at..at + size].copy_from_slice(&bytes),
            Op::Atomic(AtomicOp::FetchAdd(more)) => s.value = s.value.wrapping_add(more),
            Op::Atomic(AtomicOp::CompareSwap { compare, swap }) => s.value = if s.value == compare { swap } else { s.value },
            Op::Ticket => self.dispensers[s.function][d].asked += 1,
        }
        let name = match op {
            Op::Out(o) => format!("{o:?}"),
            Op::Read => "Read".into(),
            Op::Atomic(AtomicOp::FetchAdd(_)) | Op::Ticket => "FetchAdd".into(),
            Op::Atomic(_) => "CompareSwap".into(),
        };
        *self.coverage.entry(format!("posted {name}")).or_default() += 1;
        let message = Rc::new(Message { number: n, op, bytes, slot, imm, signaled });
        if consumes {
            s.receives.push_back(message.clone());
        }
        s.sends.push_back(message);
        self.left = self.left.saturating_sub(1);
        Ok(())
    }

    /// Posts the next receive of direction `d` of queue `q`, sometimes late.
    fn post_receive(&mut self, q: usize, d: usize) -> Result<(), Error> {
        let s = &mut self.streams[q][d];
        let pending = (s.posted_receives - s.seen_receives) as usize;
        if pending >= s.receives.len() || self.rng.gen_bool(0.9) {
            return Ok(());
        }
        // Receives are used in order: the next one belongs to the message at this place in the queue.
        let n = s.receives[pending].number;
        let at = (n % WINDOW as u64) as usize * s.slot_bytes + GUARD;
        let room = s.slot_bytes - 2 * GUARD;
        let first = self.rng.gen_range(0..=room.min(700));
        let into = [sge(s.dst.addr() + at as u64, first as u32, s.dst.lkey()), sge(s.dst.addr() + (at + first) as u64, (room - first) as u32, s.dst.lkey())];
        self.qps[q][1 - d].post_recv(&RecvRequest { wr_id: n, sges: &into })?;
        s.posted_receives += 1;
        Ok(())
    }

    fn bad(&self, text: String) -> Error {
        let Plan { seed, qps, messages, max_bytes, width, doomed, functions, bodies } = self.plan;
        let bodies = bodies.map(|body| if body == Body::Twin { "twin" } else { "gateware" }).join(",");
        Error::Stuck(format!(
            "seed {seed}: {text}; replay with FERRIC_BODY={bodies} ./scripts/soak random --seed {seed} --qps {qps} --messages {messages} --max-bytes {max_bytes} --width {width} --doomed {doomed} --functions {functions}"
        ))
    }

    fn poll(&mut self, host: usize, c: usize) -> Result<(), Error> {
        let mut burst = 0;
        while let Some(e) = self.cqs[host][c].poll() {
            burst += 1;
            self.completions += 1;
            let Some(q) = self.qps.iter().position(|p| p[host].qpn() == e.qpn) else { return Err(self.bad(format!("completion of unknown queue {e:?}"))) };
            if e.status != CqeStatus::Success {
                return Err(self.bad(format!("queue {q} host {host}: {e:?}\n{}", self.diagnose())));
            }
            let wrong = if e.is_recv { self.streams[q][1 - host].received(&e) } else { self.streams[q][host].sent(&e, &mut self.dispensers[function_of(&self.plan, q)][host].tickets) };
            if let Some(what) = wrong {
                return Err(self.bad(format!("queue {q} host {host}: {what}: {e:?}")));
            }
        }
        if 4 * burst >= 3 * entries(c) {
            self.count("cq_nearly_full", 1);
        }
        if self.rng.gen_bool(0.2) {
            let long = if c == cq_of(FILLS_UP) { 300_000 } else { 30_000 };
            self.neglected[host][c] = self.pair.world().cycle() + long;
        }
        Ok(())
    }

    /// Runs to the end and returns what was covered.
    pub fn run(mut self) -> Result<Coverage, Error> {
        let (mut progress, mut since) = (0, self.pair.world().cycle());
        loop {
            for q in 0..self.qps.len() {
                for d in 0..2 {
                    if self.rng.gen_bool(0.5) {
                        self.post(q, d)?;
                    }
                    self.post_receive(q, d)?;
                }
            }
            for host in 0..2 {
                for c in 0..self.cqs[host].len() {
                    let cycle = self.pair.world().cycle();
                    if self.rng.gen_bool(0.05) && cycle >= self.neglected[host][c] {
                        self.poll(host, c)?;
                    }
                }
            }
            for i in 0..self.doomed.len() {
                if let Some(wrong) = self.doomed[i].advance(&self.pair, &mut self.rng, &mut self.coverage)? {
                    return Err(self.bad(wrong));
                }
            }
            if self.left == 0 && self.streams.iter().flatten().all(|s| s.busy() == 0) {
                break;
            }
            let cycle = self.pair.world().cycle();
            if self.completions != progress {
                (progress, since) = (self.completions, cycle);
            } else if cycle - since > PATIENCE {
                return Err(self.bad(format!("hang: no completion for {PATIENCE} cycles after {progress}\n{}", self.diagnose())));
            }
            self.pair.world().run(100);
        }
        self.finish()
    }

    /// What a hang looks like from outside: the messages that wait, their queue pairs as the cards see them, every counter.
    fn diagnose(&self) -> String {
        let mut out = String::new();
        for (q, streams) in self.streams.iter().enumerate() {
            for (d, s) in streams.iter().enumerate().filter(|(_, s)| s.busy() > 0) {
                if out.len() > 4000 {
                    continue;
                }
                let waiting = |m: Option<&Rc<Message>>| m.map_or("-".into(), |m| format!("#{} {:?} {} B", m.number, m.op, m.bytes.len()));
                out += &format!("queue {q} from host {d}: send {}, receive {}, {} receives posted of {}\n", waiting(s.sends.front()), waiting(s.receives.front()), s.posted_receives, s.seen_receives);
                for host in [d, 1 - d] {
                    let words = self.pair.of(s.function)[host].ctx.admin(AdminOpcode::QueryQp, self.qps[q][host].qpn(), &[]);
                    out += &match words {
                        Ok(w) => format!("  host {host}: {:08x?}\n", &w[..8]),
                        Err(e) => format!("  host {host}: {e}\n"),
                    };
                }
            }
        }
        let names = ferric_hdl::card::counters::names();
        for host in 0..2 {
            let counters = self.pair.hosts[host].ctx.counters(0, names.len() as u32).unwrap_or_default();
            let shown = names.iter().zip(counters).filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name}={n}")).collect::<Vec<_>>();
            out += &format!("host {host}: {}\n", shown.join(" "));
        }
        out
    }

    /// Nothing may be left over, nothing outside the messages may have changed, and what went in must have come out.
    fn finish(mut self) -> Result<Coverage, Error> {
        self.pair.world().run(20_000);
        for host in 0..2 {
            for c in 0..self.cqs[host].len() {
                if let Some(e) = self.cqs[host][c].poll() {
                    return Err(self.bad(format!("host {host}: a completion too many {e:?}")));
                }
            }
        }
        for (q, streams) in self.streams.iter().enumerate() {
            for s in streams {
                if s.dst.to_vec(0, s.shadow.len()) != s.shadow || s.src.to_vec(0, s.own.len()) != s.own {
                    return Err(self.bad(format!("queue {q} from host {}: memory outside the messages changed", s.from)));
                }
                if word(&s.word) != s.value {
                    return Err(self.bad(format!("queue {q} from host {}: atomics left {:#x}, not {:#x}", s.from, word(&s.word), s.value)));
                }
            }
        }
        for (function, d, dispenser) in self.dispensers.iter().enumerate().flat_map(|(f, pair)| pair.iter().enumerate().map(move |(d, one)| (f, d, one))) {
            // Each addition was made once and told once.
            let (asked, given) = (dispenser.asked, word(&dispenser.word));
            if given != asked || !dispenser.tickets.iter().copied().eq(0..asked) {
                return Err(self.bad(format!("function {function}, direction {d}: {asked} tickets asked for, {given} given out, {} came", dispenser.tickets.len())));
            }
        }
        // The doomed requests are meant to run into memory the host took away from card 1, never into anything else.
        let outside: Vec<_> = {
            let w = self.pair.world();
            let refused = |card: usize| w.cards[card].iommu.faults().to_vec();
            refused(0).into_iter().chain(refused(1).into_iter().filter(|f| !f.write)).collect()
        };
        if !outside.is_empty() {
            return Err(self.bad(format!("accesses outside mapped memory: {outside:x?}")));
        }
        let late: Vec<_> = {
            let w = self.pair.world();
            let late = |card: usize| w.cards[card].iommu.watch.trespasses().to_vec();
            late(0).into_iter().chain(late(1).into_iter().filter(|t| !t.write || !t.unmapped)).collect()
        };
        if !late.is_empty() {
            return Err(self.bad(format!("accesses to what was the program's again: {late:x?}")));
        }
        let refused = self.pair.world().cards[1].iommu.fault_count();
        self.count("refused_by_iommu", refused);
        let names = ferric_hdl::card::counters::names();
        let sent = || self.pair.world().links.iter().map(|l| l.counters.sent).collect::<Vec<_>>();
        // A late acknowledge may leave while they are read: then they are read again.
        let mut tries = 0..QUIET_TRIES;
        let counters = loop {
            let before = sent();
            let [a, b] = [0, 1].map(|h| self.pair.hosts[h].ctx.counters(0, names.len() as u32));
            let counters = [a?, b?];
            if sent() == before || tries.next().is_none() {
                break counters;
            }
        };
        let (links, out_of_order, cycles) = {
            let w = self.pair.world();
            (w.links.iter().map(|l| l.counters).collect::<Vec<_>>(), w.cards.iter().map(|c| c.bus.out_of_order).sum::<u64>(), w.cycle())
        };
        for host in 0..2 {
            let get = |name: &str| names.iter().position(|n| n == name).map_or(0, |i| counters[host][i]);
            let l = links[1 - host];
            let delivered = l.sent - l.dropped + l.duplicated;
            let dropped = get("rx.rx_malformed") + get("rx.rx_bad_icrc") + get("rx.rx_no_buffer") + get("rx.rx_oversize") + get("rx.rx_mac_error") + get("rx.rx_stranger") + get("rx.rx_other_station");
            if get("rx.rx_frames") != delivered || get("rx.rx_roce") + get("rx.rx_raw") + dropped != delivered {
                return Err(self.bad(format!(
                    "host {host}: {delivered} frames delivered, counters say {} in, {} RoCE, {} raw, {dropped} dropped",
                    get("rx.rx_frames"),
                    get("rx.rx_roce"),
                    get("rx.rx_raw")
                )));
            }
            if get("egress.tx_frames") != links[host].sent {
                return Err(self.bad(format!("host {host}: {} frames on the wire, counter says {}", links[host].sent, get("egress.tx_frames"))));
            }
        }
        for (i, name) in names.iter().enumerate() {
            self.count(name, counters[0][i] + counters[1][i]);
        }
        self.count("dma_out_of_order", out_of_order);
        self.count("completions", self.completions);
        let rounds = self.doomed.iter().map(Doomed::rounds).sum();
        self.count("failed_on_purpose", rounds);
        self.count("cycles", cycles);
        let mut wraps = 0;
        for (qps, first) in self.qps.iter().zip(&self.first_psn) {
            for (qp, first) in qps.iter().zip(first) {
                wraps += (qp.query()?.next_psn < *first) as u64;
            }
        }
        self.count("psn_wraps", wraps);
        let ring_wraps = self.streams.iter().flatten().map(|s| s.next / RING as u64).sum();
        self.count("ring_wraps", ring_wraps);
        Ok(self.coverage)
    }
}

/// Address of the aligned word in a region for atomics.
fn word_in(region: &MemoryRegion) -> u64 {
    region.addr().next_multiple_of(8)
}

/// What that word holds.
fn word(region: &MemoryRegion) -> u64 {
    u64::from_le_bytes(region.to_vec((word_in(region) - region.addr()) as usize, 8).try_into().expect("8 bytes"))
}

impl Stream {
    /// Message numbers that may still touch their slots.
    fn busy(&self) -> usize {
        let oldest = [self.sends.front(), self.receives.front()].into_iter().flatten().map(|m| m.number).min();
        oldest.map_or(0, |o| (self.next - o) as usize)
    }

    /// Bytes of the slot of message `n`.
    fn slot(&self, n: u64) -> Range<usize> {
        let at = (n % WINDOW as u64) as usize * self.slot_bytes;
        at..at + self.slot_bytes
    }

    fn arrived(&self, m: &Message) -> bool {
        self.dst.to_vec(m.slot * self.slot_bytes + GUARD, m.bytes.len()) == m.bytes
    }

    /// Takes a receive completion; tells what is wrong with it.
    fn received(&mut self, e: &Completion) -> Option<String> {
        let Some(m) = self.receives.pop_front() else { return Some("a receive nobody sent to".into()) };
        self.seen_receives += 1;
        let with_imm = matches!(m.op, Op::Out(WrOpcode::SendImm | WrOpcode::WriteImm));
        if e.wr_id != m.number || e.byte_len as usize != m.bytes.len() || e.imm != with_imm.then_some(m.imm) {
            return Some(format!("receive of message {} ({} bytes)", m.number, m.bytes.len()));
        }
        if (e.opcode == CqeOpcode::RecvWriteImm) != (m.op == Op::Out(WrOpcode::WriteImm)) {
            return Some("receive opcode".into());
        }
        (!self.arrived(&m)).then(|| format!("message {} arrived wrong", m.number))
    }

    /// What a READ or an atomic has brought.
    fn brought(&self, m: &Message) -> Vec<u8> {
        self.src.to_vec(m.slot * self.slot_bytes + GUARD, m.bytes.len())
    }

    /// Takes a send completion, with the unsignalled ones in front of it.
    fn sent(&mut self, e: &Completion, tickets: &mut BTreeSet<u64>) -> Option<String> {
        loop {
            let Some(m) = self.sends.pop_front() else { return Some("completion twice".into()) };
            let wrong = match m.op {
                Op::Out(WrOpcode::Write) => !self.arrived(&m),
                Op::Out(_) => false,
                Op::Read | Op::Atomic(_) => self.brought(&m) != m.bytes,
                Op::Ticket => {
                    let bytes = self.brought(&m);
                    let at = m.slot * self.slot_bytes + GUARD;
                    self.own[at..at + 8].copy_from_slice(&bytes);
                    !tickets.insert(u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
                }
            };
            if wrong {
                return Some(format!("message {} ({:?}) arrived wrong", m.number, m.op));
            }
            if m.number == e.wr_id {
                return None;
            }
            if m.signaled {
                return Some(format!("completion of message {} is missing", m.number));
            }
        }
    }
}
