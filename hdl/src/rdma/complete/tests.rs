//! Completion against the rules, write answers at random moments.
use super::*;
use crate::tb::{Counted, Events, Fields, Rng, Sink, Tb};
use std::collections::BTreeMap;

type Msg = BTreeMap<&'static str, u128>;

/// Marks and outputs of the golden model.
#[derive(Default)]
struct Golden {
    /// Failed life of a queue pair, and the receive request that was told.
    marks: BTreeMap<u128, (u128, Option<u128>)>,
    cqes: Vec<Msg>,
    acks: Vec<Msg>,
    errors: Vec<Msg>,
    reads: Vec<Msg>,
    barriers: u32,
    events: Events,
}

/// What the transport is told, and the cause (`CqeStatus`).
fn verdict(status: u128, local: bool) -> (u128, u128) {
    match (status, local) {
        (1, _) => (1, 1),
        (3, _) => (3, 7),
        (4, _) => (2, 10),
        (0 | 2, _) => (3, 19),
        (14, true) => (3, 19),
        (14, false) => (3, 11),
        (_, true) => (3, 4),
        (_, false) => (2, 10),
    }
}

impl Golden {
    fn count(&mut self, op: &Msg, name: &'static str) {
        *self.events.entry((op["function"] as u64, name)).or_default() += 1;
    }

    fn done(&mut self, op: &Msg, broken: bool) {
        let kind = op["kind"];
        let mark = self.marks.get(&op["qpn"]).filter(|(epoch, _)| *epoch == op["epoch"]).copied();
        if kind == 4 && op["again"] == 0 {
            self.barriers += 1;
            return;
        }
        if kind == 4 {
            // A new life: what was kept of any other is forgotten.
            self.marks.remove(&op["qpn"]);
            self.acks.push([("qpn", op["qpn"]), ("epoch", op["epoch"]), ("kind", 3)].into());
            return;
        }
        if kind == 8 || kind == 9 {
            if broken {
                self.count(op, "writes_failed");
            }
            let failing = op["status"] != 0 || broken;
            if failing || op["done"] == 1 || op["again"] == 1 {
                // Of a queue pair that has failed: all before it is in host memory.
                let status = if op["again"] == 1 {
                    0xff
                } else if failing {
                    verdict(op["status"], true).1
                } else {
                    0
                };
                self.reads.push([("qpn", op["qpn"]), ("transport", op["transport"] & 0xff_ffff), ("status", status)].into());
            }
            return;
        }
        if kind == 3 && op["cqe"] == 0 {
            // Behind the last receive: no completion, but what the event is made of.
            self.cqes.push([("cqn", op["rcqn"]), ("function", op["function"]), ("qpn", op["qpn"]), ("last", 1)].into());
            return;
        }
        let reads = kind == 5 || kind == 6;
        let poisoned = mark.is_some() && (kind < 3 || reads);
        if mark.is_none() && (kind == 1 || kind == 2 || reads) {
            self.marks.remove(&op["qpn"]);
        }
        let told = mark.is_some_and(|(_, told)| told == Some(op["rq_index"]));
        // A message of an unreliable queue pair that is too long or not allowed: an error of its receive and of nothing else.
        let spared = op["soft"] == 1 && (op["status"] == 1 || kind == 1 && op["status"] != 0) && !broken && !poisoned;
        let failing = !poisoned && !spared && (op["status"] != 0 || broken);
        let (code, cause) = verdict(op["status"], op["access_local"] == 1);
        if failing {
            let by_code = ["nak_inv_sent", "nak_access_sent", "nak_op_sent"][code as usize - 1];
            self.count(op, if broken { "nak_op_sent" } else { by_code });
            if broken {
                self.count(op, "writes_failed");
            }
        } else if spared && op["done"] == 1 && kind == 2 {
            self.count(op, "recv_too_small");
        } else if poisoned {
            self.count(op, "poisoned");
        }
        let ends = op["done"] == 1 && op["cqe"] == 1 && !told;
        if ends || failing && kind == 2 {
            let status = match (failing, kind) {
                // A key that may not be invalidated.
                (true, 2) if op["status"] == 4 => 9,
                (true, 2) => cause,
                (true, _) | (_, 3) => 5,
                _ if poisoned => 5,
                _ if spared => {
                    if kind == 1 {
                        8
                    } else {
                        1
                    }
                }
                _ => 0,
            };
            let mut cqe: Msg = ["function", "qpn", "opcode", "solicited", "byte_len", "imm", "grh"].map(|name| (name, op[name])).into();
            cqe.extend([("cqn", op["rcqn"]), ("wqe_index", op["rq_index"]), ("status", status), ("is_recv", 1), ("last", 0), ("src_qp", op["src_qpn"])]);
            cqe.insert("imm_valid", if status == 0 { op["has_imm"] } else { 0 });
            let spoilt = failing || poisoned || kind == 3;
            cqe.insert("inv", if spoilt { 0 } else { op["inv"] });
            self.cqes.push(cqe);
        }
        let names = ["qpn", "transport", "done", "again", "epoch", "function", "pd", "va", "key", "operand", "compare", "atomic", "keyed", "phase"];
        let mut ack: Msg = names.map(|name| (name, op[name])).into();
        ack.extend([
            ("len", op["byte_len"]),
            ("add", u128::from(op["opcode"] == 6)),
            ("kind", if kind == 1 && op["opcode"] == 12 { 1 } else { [0, 0, 0, 0, 0, 1, 2][kind as usize] }),
            ("outcome", 0),
            ("mute", 0),
        ]);
        if failing {
            ack.insert("outcome", code);
            ack.insert("kind", 0);
            if op["replies"] == 1 {
                self.acks.push(ack.clone());
            }
            self.errors.push([("qpn", op["qpn"]), ("epoch", op["epoch"]), ("side", 1), ("cause", cause)].into());
            self.marks.insert(op["qpn"], (op["epoch"], (kind == 2).then_some(op["rq_index"])));
        } else if op["ack"] == 1 && !poisoned {
            self.acks.push(ack.clone());
        }
        // An atomic that comes to nothing is told of.
        let mute = poisoned || if failing { op["replies"] == 0 } else { op["ack"] == 0 };
        if op["atomic"] == 1 && mute {
            ack.insert("mute", 1);
            self.acks.push(ack);
        }
    }
}

fn same(what: &str, layout: &Fields, got: &Sink, want: &[Msg]) {
    for (n, want) in want.iter().enumerate() {
        let words = got.pop().unwrap_or_else(|| panic!("{what} {n} is missing: {want:?}"));
        for (name, value) in want {
            assert_eq!(layout.get(&words, name), *value, "{what} {n} `{name}`: {:?}\n{want:?}", layout.unpack(&words));
        }
    }
    assert!(got.is_empty(), "more {what} than expected");
}

fn random_done(rng: &mut Rng, layout: &Fields, n: u64) -> Vec<u32> {
    let mut words = rng.words(layout.width());
    let kind = [0, 1, 1, 2, 2, 2, 3, 4, 5, 6, 8, 9][rng.below(12) as usize];
    let reads = kind == 5 || kind == 6;
    let answer = kind == 8 || kind == 9;
    let data = kind == 1 || kind == 2 || answer || reads;
    let failed = data && rng.percent(5);
    let local = kind == 2 || answer;
    let status = match (failed, local) {
        (false, _) => 0,
        (true, true) => [1, 2, if answer { 3 } else { 4 }, 9, 12, 14][rng.below(6) as usize],
        (true, false) => rng.range(9, 14),
    };
    let begins = kind == 4 && layout.get(&words, "again") == 1;
    let fields = [
        ("kind", kind),
        ("qpn", rng.below(16)),
        ("epoch", (n / 50) & 0xff),
        ("writes", if data && !reads && !rng.percent(20) { rng.below(5) } else { 0 }),
        ("status", status),
        ("access_local", local.into()),
        ("done", u64::from(kind == 3 || rng.percent(50) && data)),
        ("cqe", u64::from(kind > 1 && kind < 5 && (kind != 3 || rng.percent(60)) || kind == 1 && rng.percent(30))),
        ("opcode", if kind == 1 && rng.percent(40) { 12 } else { rng.range(5, 6) }),
        ("soft", u64::from((kind == 1 || kind == 2) && rng.percent(40))),
        // Few indices, so that failed receives come up again.
        ("rq_index", rng.below(4)),
        ("replies", u64::from(rng.percent(70))),
        ("atomic", u64::from(kind == 6 || kind == 0 && rng.percent(40))),
        ("ack", u64::from(reads || begins || kind < 3 && rng.percent(50))),
        ("again", u64::from(begins || (reads || answer) && rng.percent(30))),
    ];
    for (name, value) in fields {
        layout.set(&mut words, name, value.into());
    }
    words
}

fn stream(name: &str, stall: u32, count: u64, errors: u32) -> u64 {
    let mut tb = Tb::new(name, Complete::<4>::default());
    let (s_done, s_wr) = (tb.source("s_done", stall), tb.source("s_wr", stall));
    let (m_cqe, m_ack, m_error, m_read) = (tb.sink("m_cqe", stall), tb.sink("m_ack", stall), tb.sink("m_error", stall), tb.sink("m_read", stall));
    let (layout, reply) = (Fields::of::<DoneOp>(), Fields::of::<WrDone>());
    let (mut golden, mut replies, mut writes) = (Golden::default(), Vec::new(), 0);
    // Messages sent so far when an acknowledge with this count may go: the order between the two ports.
    for n in 0..count {
        let words = random_done(tb.rng(), &layout, n);
        let op: Msg = DoneOp::FIELDS.iter().map(|(name, _)| (*name, layout.get(&words, name))).collect();
        let flags: Vec<bool> = (0..op["writes"]).map(|_| tb.rng().percent(errors)).collect();
        golden.done(&op, flags.contains(&true));
        writes += flags.len();
        replies.extend(flags);
        s_done.push(words);
    }
    let start = tb.cycles();
    let (mut sent, mut barriers, mut stats) = (0, 0, Counted::new("stat", "stat_function", STATS));
    tb.run_until(100_000, |tb| {
        if sent < writes && tb.rng().percent(if stall == 0 { 100 } else { 40 }) {
            s_wr.push(reply.pack(&[("err", replies[sent].into())]));
            sent += 1;
        }
        barriers += tb.get("barrier_done") as u32;
        stats.see(tb);
        m_cqe.len() == golden.cqes.len() && m_ack.len() == golden.acks.len() && barriers == golden.barriers && m_read.len() == golden.reads.len()
    });
    let spent = tb.cycles() - start;
    for _ in 0..50 {
        tb.cycle();
        stats.see(&tb);
    }
    assert_eq!(stats.events, golden.events);
    same("completion", &Fields::of::<CqeReq>(), &m_cqe, &golden.cqes);
    same("acknowledge", &Fields::of::<ReplyOp>(), &m_ack, &golden.acks);
    same("error", &Fields::of::<QpError>(), &m_error, &golden.errors);
    same("placed answer", &Fields::of::<ReadDone>(), &m_read, &golden.reads);
    assert_eq!(s_wr.pending(), 0);
    spent
}

#[test]
fn outcomes_follow_the_rules() {
    stream("complete", 30, 3000, 3);
}

#[test]
fn answers_come_before_anything_is_told() {
    let mut tb = Tb::new("complete", Complete::<4>::default());
    let (s_done, s_wr) = (tb.source("s_done", 0), tb.source("s_wr", 0));
    let (m_cqe, m_ack) = (tb.sink("m_cqe", 0), tb.sink("m_ack", 0));
    let layout = Fields::of::<DoneOp>();
    s_done.push(layout.pack(&[("kind", 2), ("writes", 2), ("done", 1), ("cqe", 1), ("ack", 1), ("replies", 1)]));
    s_wr.push(0u32);
    tb.run(100);
    assert!(m_cqe.is_empty() && m_ack.is_empty());
    // The completion must be taken before the acknowledge shows.
    m_cqe.set_stall(90);
    s_wr.push(0u32);
    for _ in 0..1000 {
        tb.cycle();
        assert!(m_ack.is_empty() || m_cqe.taken() == 1);
    }
    assert_eq!((m_cqe.taken(), m_ack.taken()), (1, 1));
}

#[test]
fn an_order_takes_few_cycles() {
    let cycles = stream("complete", 0, 500, 0);
    println!("complete: {cycles} cycles for 500 orders");
    assert!(cycles <= 500 * 8, "{cycles} cycles for 500 orders");
}
