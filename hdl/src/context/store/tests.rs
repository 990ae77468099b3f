//! Random clients against a model of the lines: exclusive ownership and the newest contents at every acquire.

use super::CtxStore;
use crate::msg::{CtlReq, CtlResp};
use crate::stream::chaos;
use crate::tb::{Fields, Sink, Source, Tb};
use rust_hdl::prelude::*;

const LQ: usize = 4;
const BITS: usize = 200;
const WORDS: usize = 7;
type Line = Vec<u32>;

struct Client {
    acq: Source,
    line: Sink,
    rel: Source,
    /// Id and tag asked for, until the line comes.
    asked: Option<(u64, u64)>,
    /// Id held, its contents, cycles still to hold it.
    held: Option<(u64, Line, u64)>,
    /// Release offered: id, new contents if dirty, releases taken before it.
    releasing: Option<(u64, Option<Line>, u64)>,
    done: u32,
}

/// A control-bus access under way. A client that gets the line meanwhile may see it before or after a write.
struct Access {
    line: u64,
    word: usize,
    write: Option<u32>,
    applied: bool,
    /// What the word was at any time since the request.
    seen: Vec<u32>,
}

impl Access {
    fn note(&mut self, model: &[Line]) {
        if let Some(word) = model.get(self.line as usize).and_then(|line| line.get(self.word)) {
            self.seen.push(*word);
        }
    }
    fn apply(&mut self, model: &mut [Line]) {
        if let (Some(data), false) = (self.write, self.applied) {
            if let Some(word) = model.get_mut(self.line as usize).and_then(|line| line.get_mut(self.word)) {
                *word = if self.word == WORDS - 1 { data & ((1 << (BITS % 32)) - 1) } else { data };
            }
            self.applied = true;
        }
    }
}

fn line_of(words: &[u32]) -> Line {
    let mut line = words[..WORDS].to_vec();
    line[WORDS - 1] &= (1 << (BITS % 32)) - 1;
    line
}

fn exercise<const NC: usize>(name: &str, block: CtxStore<Bits<BITS>, LQ, NC>, rounds: u32, limit: u64) {
    let mut tb = Tb::new(name, block);
    // A release waits for those of higher clients in its cycle (README.md).
    tb.allow_combinational();
    let (req, resp) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
    let (ctl, answers) = (tb.source("s_ctl", 20), tb.sink("m_ctl", 20));
    let mut clients: Vec<Client> = (0..NC)
        .map(|i| Client {
            acq: tb.source_of(&format!("client${i}$acq_"), &["id", "tag"], 20),
            line: tb.sink_of(&format!("client${i}$line_"), &["data", "tag", "fault"], 20),
            rel: tb.source_of(&format!("client${i}$rel_"), &["id", "dirty", "data"], 20),
            asked: None,
            held: None,
            releasing: None,
            done: 0,
        })
        .collect();
    let mut model: Vec<Line> = vec![vec![0; WORDS]; 1 << LQ];
    let mut ctl_pending: Option<Access> = None;
    let (mut ctl_done, mut conflicts, mut faults) = (0u32, 0u32, 0u32);
    tb.run_until(limit, |tb| {
        for i in 0..NC {
            // A release that has been taken is visible to every acquire granted from now on.
            if let Some((id, new, before)) = clients[i].releasing.clone() {
                if clients[i].rel.taken() > before {
                    if let Some(new) = new {
                        model[id as usize] = new;
                    }
                    clients[i].releasing = None;
                    clients[i].done += 1;
                }
            }
        }
        for i in 0..NC {
            if let Some(got) = clients[i].line.pop_fields() {
                let (id, tag) = clients[i].asked.take().expect("a line that was asked for");
                assert_eq!(u64::from(got[1][0]), tag, "tag of client {i}");
                assert_eq!(got[2][0] == 1, id >= 1 << LQ, "fault of id {id}");
                if id >= 1 << LQ {
                    faults += 1;
                } else {
                    let other = clients.iter().any(|c| c.held.as_ref().is_some_and(|h| h.0 == id) || c.releasing.as_ref().is_some_and(|r| r.0 == id));
                    assert!(!other, "line {id} has two owners");
                    if let Some(access) = &mut ctl_pending {
                        if access.line == id && line_of(&got[0]) != model[id as usize] {
                            access.apply(&mut model);
                            access.note(&model);
                        }
                    }
                    assert_eq!(line_of(&got[0]), model[id as usize], "line {id} for client {i}");
                    let hold = if tb.rng().percent(80) { tb.rng().below(4) } else { tb.rng().below(40) };
                    clients[i].held = Some((id, line_of(&got[0]), hold));
                }
            }
            if let Some((id, line, left)) = clients[i].held.take() {
                if left > 0 {
                    clients[i].held = Some((id, line, left - 1));
                } else {
                    let dirty = tb.rng().percent(60);
                    let data = line_of(&tb.rng().words(BITS as u32));
                    let before = clients[i].rel.taken();
                    clients[i].rel.push_fields(&[&[id as u32], &[dirty.into()], &data]);
                    clients[i].releasing = Some((id, dirty.then_some(data), before));
                }
            }
            // Often beside the release, or before it, which has to wait then.
            let free = clients[i].releasing.is_none() || tb.rng().percent(50);
            if clients[i].asked.is_none() && clients[i].held.is_none() && free && clients[i].acq.pending() == 0 {
                let id = match tb.rng().below(100) {
                    0..=4 => (1 << LQ) << tb.rng().below(20),
                    5..=60 => 5,
                    _ => tb.rng().below(1 << LQ),
                };
                conflicts += u32::from(clients.iter().any(|c| c.held.as_ref().is_some_and(|h| h.0 == id)));
                let tag = tb.rng().below(16);
                clients[i].acq.push_fields(&[&[id as u32], &[tag as u32]]);
                clients[i].asked = Some((id, tag));
            }
        }
        if let Some(access) = &mut ctl_pending {
            access.note(&model);
        }
        if let Some(got) = answers.pop() {
            let mut access = ctl_pending.take().expect("an answer to a request");
            assert_eq!(resp.get(&got, "err") == 1, access.line >= 1 << LQ);
            if !access.seen.is_empty() {
                let data = resp.get(&got, "data") as u32;
                assert!(access.seen.contains(&data), "control read of {}.{}: {data:x}", access.line, access.word);
            }
            access.apply(&mut model);
            ctl_done += 1;
        }
        if ctl_pending.is_none() && tb.rng().percent(30) {
            let line = if tb.rng().percent(5) {
                1 << LQ
            } else if tb.rng().percent(50) {
                5
            } else {
                tb.rng().below(1 << LQ)
            };
            let word = tb.rng().below(WORDS as u64 + 1) as usize;
            let (write, data) = (tb.rng().percent(50), tb.rng().next_u32());
            ctl.push(req.pack(&[("line", line.into()), ("word", word as u128), ("write", write.into()), ("data", data.into())]));
            let mut access = Access { line, word, write: write.then_some(data), applied: false, seen: Vec::new() };
            access.note(&model);
            ctl_pending = Some(access);
        }
        clients.iter().all(|c| c.done >= rounds) && ctl_done >= rounds / 4
    });
    assert!(faults > 0, "no fault was seen");
    assert!(NC == 1 || conflicts >= 5, "{conflicts} conflicts are too few to mean anything");
}

#[test]
fn three_clients_share() {
    exercise("ctx_store3", CtxStore::<Bits<BITS>, LQ, 3>::default(), 600, 200_000);
}

/// Exact cycles of an idle store: the line comes in the cycle after the acquire, a dirty release costs the next owner none.
#[test]
fn a_free_line_comes_in_the_next_cycle() {
    let mut tb = Tb::new("ctx_store2", CtxStore::<Bits<BITS>, LQ, 2>::default());
    let ports = |tb: &mut Tb, i: usize| {
        let port = |name: &str| format!("client${i}${name}_");
        let acq = tb.source_of(&port("acq"), &["id", "tag"], 0);
        let line = tb.sink_of(&port("line"), &["data", "tag", "fault"], 0);
        (acq, line, tb.source_of(&port("rel"), &["id", "dirty", "data"], 0))
    };
    let (a, b) = (ports(&mut tb, 0), ports(&mut tb, 1));
    tb.run(20);
    a.0.push_fields(&[&[5], &[1]]);
    tb.run(2);
    assert_eq!((a.0.taken(), a.1.taken()), (1, 1), "acquire, then the line");
    let new: Line = (1..=WORDS as u32).collect();
    a.2.push_fields(&[&[5], &[1], &new]);
    b.0.push_fields(&[&[5], &[2]]);
    tb.run(1);
    assert_eq!((a.2.taken(), b.0.taken(), b.1.taken()), (1, 1, 0), "released and asked for in the same cycle");
    tb.run(2);
    assert_eq!(b.1.taken(), 1, "granted in the next cycle, there in the one after");
    assert_eq!(b.1.pop_fields().map(|got| line_of(&got[0])), Some(line_of(&new)));
    b.2.push_fields(&[&[5], &[0], &new]);
    b.0.push_fields(&[&[6], &[3]]);
    tb.run(2);
    assert_eq!((b.2.taken(), b.1.taken()), (1, 2), "given back for another one, which is there in the next cycle");
    // Its own line is written before it is read.
    let newer: Line = (11..=10 + WORDS as u32).collect();
    b.2.push_fields(&[&[6], &[1], &newer]);
    b.0.push_fields(&[&[6], &[4]]);
    tb.run(2);
    assert_eq!((b.2.taken(), b.1.taken()), (2, 2), "the same line once more waits for its release");
    tb.run(1);
    assert_eq!(b.1.taken(), 3);
    b.1.pop_fields();
    assert_eq!(b.1.pop_fields().map(|got| line_of(&got[0])), Some(line_of(&newer)));
}

#[test]
fn one_client_alone() {
    exercise("ctx_store1", CtxStore::<Bits<BITS>, LQ, 1>::default(), 400, 100_000);
}

#[test]
fn two_clients_under_chaos() {
    exercise("ctx_store2c", chaos::scoped(5, CtxStore::<Bits<BITS>, LQ, 2>::default), 300, 400_000);
}
