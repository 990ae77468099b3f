//! Random walks over the packets of some PDCs against a list of them.
use super::Records;
use crate::tb::{Fields, Sink, Tb};
use crate::uet::testing::Asked;
use crate::uet::types::{Answered, Tell, TxFound, TxRecord, TxWalk};
use std::collections::BTreeMap;

const LP: usize = 2;
const LW: usize = 7;
const WINDOW: u32 = 1 << LW;
/// Paths in use.
const SLOTS: u64 = 5;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Packet {
    record: [u32; 8],
    sacked: bool,
    resend: bool,
    wait: bool,
}

const RECORD: [&str; 8] = ["content", "message", "offset", "bytes", "slot", "order", "time", "again"];
const WIDTHS: [u32; 8] = [2, 16, 32, 14, 0, 32, 32, 1];

#[derive(Default)]
struct Line {
    packets: BTreeMap<u32, Packet>,
    orders: BTreeMap<u32, u32>,
    first: u32,
    next: u32,
}

struct Bench {
    tb: Tb,
    block: Asked,
    tells: Sink,
    answers: Sink,
    lines: Vec<Line>,
    order: u32,
    walks: [u32; 6],
}

/// What a walk does, by name and value.
type Flags = BTreeMap<&'static str, u128>;

impl Bench {
    fn new() -> Self {
        let mut tb = Tb::new("uet_records_test", Records::<LP, LW, { LP + LW - 6 }, { LP + LW }, { LP + 6 }>::default());
        let block = Asked::new::<TxWalk, TxFound>(&mut tb);
        let (tells, answers) = (tb.sink("m_tell", 30), tb.sink("m_answer", 30));
        let mut bench = Self { tb, block, tells, answers, lines: Vec::new(), order: 0, walks: [0; 6] };
        for line in 0..1 << LP {
            bench.init(line);
        }
        bench
    }

    fn init(&mut self, line: usize) {
        let told = self.block.ask(&mut self.tb, &[("line", line as u128), ("init", 1)]);
        assert_eq!((told.word("outs"), told.word("resends"), told.word("waits")), (0, 0, 0));
        let new = Line { first: 3, next: 3, ..Line::default() };
        if line < self.lines.len() {
            self.lines[line] = new;
        } else {
            self.lines.push(new);
        }
    }

    fn counts(&self, line: usize) -> (u32, u32, u32) {
        let packets = &self.lines[line].packets;
        let count = |f: fn(&Packet) -> bool| packets.values().filter(|p| f(p)).count() as u32;
        (packets.len() as u32, count(|p| p.resend), count(|p| p.wait))
    }

    /// A packet goes out, for the first time or again.
    fn put(&mut self, line: usize) {
        let (first, next) = (self.lines[line].first, self.lines[line].next);
        let again = next > first && (next - first == WINDOW || self.tb.rng().percent(30));
        let place = if again { first + self.tb.rng().below((next - first).into()) as u32 } else { next };
        let there = self.lines[line].packets.get(&place).copied();
        if again && there.is_none() {
            return;
        }
        self.order += 1;
        let mut record: [u32; 8] = std::array::from_fn(|n| self.tb.rng().next_u32() & (1u64 << WIDTHS[n]).wrapping_sub(1) as u32);
        (record[4], record[5]) = (self.tb.rng().below(SLOTS) as u32, self.order);
        let words = Fields::of::<TxRecord>().pack(&RECORD.iter().zip(record).map(|(name, v)| (*name, u128::from(v))).collect::<Vec<_>>());
        let names: Vec<String> = RECORD.iter().map(|name| format!("record.{name}")).collect();
        let mut order: Vec<(&str, u128)> = names.iter().zip(record).map(|(name, v)| (&**name, v.into())).collect();
        assert!(!words.is_empty());
        order.extend([("line", line as u128), ("put", 1), ("from", place.into())]);
        let told = self.block.ask(&mut self.tb, &order);
        let packet = Packet { record, wait: there.is_some_and(|p| p.wait), ..Packet::default() };
        self.lines[line].packets.insert(place, packet);
        self.lines[line].next = next.max(place + 1);
        assert_eq!((told.word("outs"), told.word("resends"), told.word("waits")), self.counts(line));
    }

    fn walk(&mut self, line: usize, from: u32, upto: u32, flags: &Flags) {
        let get = |name: &str| flags.get(name).copied().unwrap_or(0);
        let on = |name: &str| get(name) == 1;
        let mut order: Vec<(&str, u128)> = flags.iter().map(|(name, value)| (*name, *value)).collect();
        order.extend([("line", line as u128), ("from", from.into()), ("upto", upto.into())]);
        let told = self.block.ask(&mut self.tb, &order);
        let (mut tells, mut answers) = (Vec::new(), Vec::new());
        let (mut visited, mut done, mut first, mut last) = (0, 0, None, 0);
        let Line { packets, orders, .. } = &mut self.lines[line];
        let mut gone = Vec::new();
        for (place, packet) in packets.range_mut(from..upto) {
            let picked = !on("picks") || *place - from < 64 && get("bitmap") >> (place - from) & 1 == 1;
            let wanted = !(on("not_sacked") && packet.sacked || on("not_resend") && packet.resend || on("not_wait") && packet.wait);
            let only = (!on("only_resend") || packet.resend) && (!on("only_wait") || packet.wait);
            if !picked || !wanted || !only || get("limit") > 0 && visited == get("limit") {
                continue;
            }
            visited += 1;
            last = place + 1;
            first.get_or_insert((*place, *packet));
            let (slot, number, time) = (packet.record[4], packet.record[5], packet.record[6]);
            let newest = orders.get(&slot).copied().unwrap_or(0);
            if on("overtaken") && newest <= number || on("aged") && (get("now") as u32).wrapping_sub(time) < get("age") as u32 {
                continue;
            }
            done += 1;
            if on("arrived") {
                orders.insert(slot, newest.max(number));
            }
            if get("told") > 0 {
                tells.push((line as u128, slot.into(), get("told")));
            }
            packet.sacked = (packet.sacked || on("set_sacked")) && !on("clear_sacked");
            packet.resend = (packet.resend || on("set_resend")) && !on("clear_resend");
            packet.wait = (packet.wait || on("set_wait")) && !on("clear_wait");
            if on("remove") {
                answers.push((packet.record[0], packet.record[1], packet.record[2], packet.record[3], on("response")));
                gone.push(*place);
            }
        }
        for place in &gone {
            packets.remove(place);
        }
        assert_eq!((told.is("found"), told.word("done")), (first.is_some(), done), "{flags:?} {from}..{upto}");
        if let Some((place, packet)) = first {
            assert_eq!((told.word("place"), told.is("sacked"), told.word("last")), (place, packet.sacked, last));
            assert_eq!(RECORD.map(|name| told.word(&format!("record.{name}"))), packet.record);
        }
        assert_eq!((told.word("outs"), told.word("resends"), told.word("waits")), self.counts(line), "{flags:?}");
        // What is told and answered goes its own way, and comes a little later.
        let (tell, answer) = (Fields::of::<Tell>(), Fields::of::<Answered>());
        self.tb.run_until(1000, |_| self.tells.len() == tells.len() && self.answers.len() == answers.len());
        for expected in tells {
            let words = self.tells.pop().unwrap();
            assert_eq!((tell.get(&words, "line"), tell.get(&words, "slot"), tell.get(&words, "what")), expected);
        }
        for expected in answers {
            let words = self.answers.pop().unwrap();
            let get = |name| answer.get(&words, name) as u32;
            assert_eq!((get("content"), get("message"), get("offset"), get("bytes"), get("response") == 1), expected);
            assert_eq!(get("line"), line as u32);
        }
        // What is in front of everything that is out is free again.
        self.lines[line].first = self.lines[line].packets.keys().next().copied().unwrap_or(self.lines[line].next);
    }

    /// A walk as the rules of loss have it.
    fn any(&mut self, line: usize) {
        let (first, next) = (self.lines[line].first, self.lines[line].next);
        let from = first + self.tb.rng().below(u64::from(next - first) + 1) as u32;
        let mut upto = from + self.tb.rng().below(u64::from(next - from) + 1) as u32;
        let kind = self.tb.rng().below(6) as usize;
        self.walks[kind] += 1;
        let bitmap = u128::from(self.tb.rng().next_u64() & self.tb.rng().next_u64());
        let now = self.tb.rng().next_u32();
        let flags: &[(&'static str, u128)] = match kind {
            0 => &[("picks", 1), ("bitmap", bitmap), ("not_sacked", 1), ("set_sacked", 1), ("clear_resend", 1), ("arrived", 1), ("told", 1)],
            1 => &[("remove", 1), ("arrived", 1), ("told", 2), ("response", bitmap & 1)],
            2 => &[("not_sacked", 1), ("not_resend", 1), ("not_wait", 1), ("limit", 4), ("overtaken", 1), ("set_resend", 1), ("told", 4)],
            3 => &[("not_sacked", 1), ("not_wait", 1), ("not_resend", 1), ("aged", 1), ("now", now as u128), ("age", 1 << 31), ("set_resend", 1), ("told", 4)],
            4 => &[("set_wait", bitmap & 1), ("clear_wait", 1 - (bitmap & 1)), ("clear_resend", bitmap & 1), ("set_resend", 1 - (bitmap & 1)), ("only_wait", 1 - (bitmap & 1))],
            _ => &[("only_resend", 1), ("limit", 1), ("clear_sacked", 1)],
        };
        if kind == 1 {
            upto = upto.min(from + self.tb.rng().below(5) as u32);
        }
        self.walk(line, from, upto, &flags.iter().copied().collect());
    }
}

#[test]
fn walks_find_and_change_what_they_should() {
    let mut bench = Bench::new();
    for round in 0..4000u32 {
        let line = bench.tb.rng().below(1 << LP) as usize;
        match bench.tb.rng().below(3) {
            0 => bench.any(line),
            _ => bench.put(line),
        }
        if round % 700 == 699 {
            bench.init(line);
        }
    }
    assert!(bench.walks.iter().all(|n| *n > 100), "{:?}", bench.walks);
}
