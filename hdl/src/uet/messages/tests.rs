//! Random messages of some PDCs: packets, answers, ends and failures against queues of Rust.
use super::Messages;
use crate::tb::{Fields, Sink, Source, Tb};
use crate::uet::pds::types::{message_ask, why, MessageAsk, MessageEnd, MessageTold};
use crate::uet::testing::Asked;
use crate::uet::types::{content, Answered};
use ferric_abi::uet::codes::ReturnCode;
use std::collections::{BTreeMap, VecDeque};

const LP: usize = 2;
const LM: usize = 3;
const MTU: u32 = 100;
const PLACES: u16 = (1 << 10) - 1;

#[derive(Clone, Debug)]
struct Sent {
    line: usize,
    token: u32,
    length: u32,
    /// Packets that are out: offset and bytes.
    out: Vec<(u32, u32)>,
    whole: bool,
    code: u8,
}

struct Bench {
    tb: Tb,
    block: Asked,
    answers: Source,
    ends: Sink,
    /// Messages that have packets to be sent, with what was sent of them; their id, when the first was.
    queues: Vec<VecDeque<(u32, u32, u32, Option<u16>)>>,
    live: BTreeMap<u16, Sent>,
    /// The last id of each place.
    last: BTreeMap<u16, u16>,
    token: u32,
    reached: [u32; 7],
}

impl Bench {
    fn messages(&self) -> usize {
        self.live.len() + self.queues.iter().flatten().filter(|(.., id)| id.is_none()).count()
    }

    fn add(&mut self, line: usize) {
        let length = match self.tb.rng().below(4) {
            0 => MTU * (1 + self.tb.rng().below(4) as u32),
            1 => self.tb.rng().below(3) as u32,
            _ => self.tb.rng().below(700) as u32,
        };
        self.token += 1;
        let order =
            [("kind", message_ask::ADD.into()), ("line", line as u128), ("message.token", self.token.into()), ("message.length", length.into()), ("message.says.key", (!u64::from(self.token)).into())];
        assert!(self.block.ask(&mut self.tb, &order).is("more"));
        self.queues[line].push_back((self.token, length, 0, None));
    }

    fn cut(&mut self, line: usize) {
        let Some((token, length, sent, id)) = self.queues[line].pop_front() else { return };
        let told = self.block.ask(&mut self.tb, &[("kind", message_ask::CUT.into()), ("line", line as u128)]);
        let bytes = MTU.min(length - sent);
        let last = sent + bytes == length;
        assert_eq!((told.word("offset"), told.word("bytes"), told.is("last")), (sent, bytes, last), "message {token} of {length}");
        assert_eq!((told.word("message.token"), told.word("message.length"), told.get("message.says.key") as u64), (token, length, !u64::from(token)));
        let number = told.word("id") as u16;
        let more = told.is("more");
        if let Some(id) = id {
            assert_eq!(number, id);
        } else {
            let place = number & PLACES;
            assert!(place != 0 && self.live.keys().all(|other| other & PLACES != place), "{number:x} of {:?}", self.live);
            assert_ne!(self.last.insert(place, number), Some(number), "a place has the same id again");
            self.live.insert(number, Sent { line, token, length, out: Vec::new(), whole: false, code: ReturnCode::Ok as u8 });
        }
        let message = self.live.get_mut(&number).unwrap();
        message.out.push((sent, bytes));
        message.whole = last;
        if !last {
            self.queues[line].push_front((token, length, sent + bytes, Some(number)));
        }
        assert_eq!(more, !self.queues[line].is_empty());
        self.reached[0] += u32::from(!last);
    }

    /// A packet that is out: the message, and which of its packets.
    fn out(&mut self) -> Option<(u16, usize)> {
        let all: Vec<(u16, usize)> = self.live.iter().flat_map(|(id, sent)| (0..sent.out.len()).map(|n| (*id, n))).collect();
        (!all.is_empty()).then(|| all[self.tb.rng().below(all.len() as u64) as usize])
    }

    fn look(&mut self) {
        let Some((id, n)) = self.out() else { return };
        let sent = self.live[&id].clone();
        let (offset, bytes) = sent.out[n];
        let told = self.block.ask(&mut self.tb, &[("kind", message_ask::LOOK.into()), ("line", sent.line as u128), ("id", id.into()), ("offset", offset.into()), ("bytes", bytes.into())]);
        assert_eq!((told.word("message.token"), told.is("last"), told.word("offset"), told.word("id")), (sent.token, offset + bytes == sent.length, offset, id.into()));
        self.reached[1] += 1;
    }

    fn end(&mut self) -> (u32, u64, u64) {
        self.tb.run_until(2000, |_| !self.ends.is_empty());
        let (fields, words) = (Fields::of::<MessageEnd>(), self.ends.pop().unwrap());
        (fields.get(&words, "token") as u32, fields.get(&words, "why") as u64, fields.get(&words, "code") as u64)
    }

    fn answer(&mut self) {
        let Some((id, n)) = self.out() else { return };
        let (response, code) = (self.tb.rng().percent(40), [ReturnCode::Ok, ReturnCode::BadKey, ReturnCode::NoMatch][self.tb.rng().below(3) as usize] as u8);
        self.tb.set("code", code.into());
        self.answers.push(Fields::of::<Answered>().pack(&[("message", id.into()), ("response", response.into())]));
        self.tb.run_until(200, |tb| self.answers.pending() == 0 && (tb.get("quiet") == 1 || !self.ends.is_empty()));
        let sent = self.live.get_mut(&id).unwrap();
        sent.out.swap_remove(n);
        if response && code != ReturnCode::Ok as u8 {
            sent.code = code;
        }
        if sent.whole && sent.out.is_empty() {
            let sent = self.live.remove(&id).unwrap();
            assert_eq!(self.end(), (sent.token, why::NOTHING, sent.code.into()));
            self.reached[2] += 1;
            self.reached[3] += u32::from(sent.code != ReturnCode::Ok as u8);
        }
        self.tb.run(8);
        assert!(self.ends.is_empty(), "an end too many");
    }

    /// A message that is no PDC's: nothing else changes.
    fn away(&mut self, line: usize) {
        self.token += 1;
        let order = [("kind", message_ask::AWAY.into()), ("line", line as u128), ("message.token", self.token.into()), ("why", why::GONE.into())];
        let more = self.block.ask(&mut self.tb, &order).is("more");
        assert_eq!((self.end(), more), ((self.token, why::GONE, 0), !self.queues[line].is_empty()));
        self.reached[6] += 1;
    }

    fn fail(&mut self, line: usize) {
        let mut tokens: Vec<u32> = self.live.values().filter(|sent| sent.line == line).map(|sent| sent.token).collect();
        tokens.extend(self.queues[line].iter().filter(|(.., id)| id.is_none()).map(|(token, ..)| *token));
        self.block.ask(&mut self.tb, &[("kind", message_ask::FAIL.into()), ("line", line as u128), ("why", why::REFUSED.into()), ("code", 0x1a)]);
        let mut got: Vec<u32> = (0..tokens.len())
            .map(|_| {
                let (token, because, code) = self.end();
                assert_eq!((because, code), (why::REFUSED, 0x1a));
                token
            })
            .collect();
        got.sort_unstable();
        tokens.sort_unstable();
        assert_eq!(got, tokens);
        self.live.retain(|_, sent| sent.line != line);
        self.queues[line].clear();
        self.reached[4] += u32::from(tokens.len() > 1);
    }
}

#[test]
fn messages_are_cut_answered_and_ended_once() {
    let mut tb = Tb::new("uet_messages_test", Messages::<LP, LM>::default());
    tb.set("mtu", MTU.into());
    let block = Asked::new::<MessageAsk, MessageTold>(&mut tb);
    let (answers, ends) = (tb.source("s_answer", 30), tb.sink("m_end", 30));
    let queues = vec![VecDeque::new(); 1 << LP];
    let mut bench = Bench { tb, block, answers, ends, queues, live: BTreeMap::new(), last: BTreeMap::new(), token: 0, reached: [0; 7] };
    for line in 0..1 << LP {
        bench.block.ask(&mut bench.tb, &[("kind", message_ask::OPEN.into()), ("line", line)]);
    }
    for _ in 0..6000 {
        let line = bench.tb.rng().below(1 << LP) as usize;
        let room = bench.messages() < (1 << LM) - 1;
        bench.tb.run(2);
        assert_eq!(bench.tb.get("room") == 1, room, "{} messages", bench.messages());
        bench.reached[5] += u32::from(!room);
        match bench.tb.rng().below(100) {
            0..=24 if room => bench.add(line),
            25..=59 => bench.cut(line),
            60..=69 => bench.look(),
            70..=95 => bench.answer(),
            96..=97 => bench.away(line),
            98..=99 => bench.fail(line),
            _ => {}
        }
    }
    // What closes a PDC is no message's.
    bench.answers.push(Fields::of::<Answered>().pack(&[("content", content::CLOSE.into()), ("message", 1)]));
    bench.tb.run(50);
    assert!(bench.ends.is_empty());
    assert!(bench.reached.iter().all(|n| *n > 10), "{:?}", bench.reached);
}
