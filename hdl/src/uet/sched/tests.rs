//! Random lists against two queues of Rust: who is next, for how long, and who comes back where.
use super::Sched;
use crate::tb::{Fields, Tb};
use crate::uet::pds::types::Listed;
use std::collections::VecDeque;

const LP: usize = 3;
/// Packets of a turn.
const TURN: u32 = 16;

/// Lists of those with new packets and of those with packets to be sent again; whose turn it is, and how many packets of it are over.
#[derive(Default)]
struct Model {
    lists: [VecDeque<u16>; 2],
    now: Option<(u16, bool)>,
    turn: u32,
    /// The last turn was for packets to be sent again.
    lost: bool,
}

impl Model {
    fn listed(&self, line: u16, again: bool) -> bool {
        self.now == Some((line, again)) || self.lists[usize::from(again)].contains(&line)
    }

    fn served(&mut self, more: bool) {
        let Some((line, again)) = self.now else { return };
        self.turn += 1;
        let over = self.turn == TURN || !again && !self.lists[1].is_empty();
        if more && !over {
            return;
        }
        if more {
            self.lists[usize::from(again)].push_back(line);
        }
        self.now = None;
        self.pick();
    }

    fn pick(&mut self) {
        self.turn = 0;
        let first = !self.lost || self.lists[0].is_empty();
        self.now = [first, !first].into_iter().find_map(|again| Some((self.lists[usize::from(again)].pop_front()?, again)));
        self.lost = self.now.map_or(self.lost, |(_, again)| again);
    }
}

#[test]
fn turns_go_round_and_what_was_lost_goes_first() {
    let mut tb = Tb::new("uet_sched_test", Sched::<LP>::default());
    let (adds, offers) = (tb.source("s", 30), tb.sink("m", 30));
    let fields = Fields::of::<Listed>();
    let mut model = Model::default();
    let (mut whole, mut cut, mut back) = (0, 0, 0);
    for _ in 0..4000 {
        // Now and then nobody has anything to send; whoever is first then is offered at once.
        let count = if model.now.is_none() { 1 } else { tb.rng().below(3) };
        for _ in 0..count {
            let (line, again) = (tb.rng().below(1 << LP) as u16, tb.rng().percent(6));
            if !model.listed(line, again) {
                adds.push(fields.pack(&[("line", line.into()), ("again", again.into())]));
                model.lists[usize::from(again)].push_back(line);
            }
        }
        if model.now.is_none() {
            model.pick();
        }
        tb.run_until(500, |_| !offers.is_empty() && adds.pending() == 0);
        tb.run(6);
        let words = offers.pop().unwrap();
        let (line, again) = model.now.unwrap();
        assert_eq!((fields.get(&words, "line"), fields.get(&words, "again")), (line.into(), again.into()));
        // Packets to be sent again are few.
        let more = tb.rng().percent(if again { 40 } else { 97 });
        let (before, turn) = (model.now, model.turn);
        model.served(more);
        whole += u32::from(more && turn + 1 == TURN);
        cut += u32::from(more && turn + 1 < TURN && before != model.now);
        back += u32::from(more && turn + 1 == TURN && before == model.now);
        tb.set("more", more.into());
        tb.set("served", 1);
        tb.cycle();
        tb.set("served", 0);
        if model.now.is_none() {
            tb.run(8);
            assert!(offers.is_empty(), "nobody has anything to send");
        }
    }
    assert!(whole > 20 && cut > 20, "turns that were whole {whole}, cut short {cut}, given to the same again {back}");
}

/// A PDC whose packets are lost again and again does not keep another from sending.
#[test]
fn what_is_lost_for_ever_leaves_turns_to_others() {
    let mut tb = Tb::new("uet_sched_test", Sched::<LP>::default());
    let (adds, offers) = (tb.source("s", 0), tb.sink("m", 0));
    let fields = Fields::of::<Listed>();
    adds.push(fields.pack(&[("line", 1), ("again", 1)]));
    adds.push(fields.pack(&[("line", 2), ("again", 0)]));
    tb.set("more", 1);
    let mut packets = [0; 2];
    for _ in 0..10 * TURN {
        tb.run_until(500, |_| !offers.is_empty());
        let words = offers.pop().unwrap();
        packets[usize::from(fields.get(&words, "again") == 1)] += 1;
        tb.run(2);
        tb.set("served", 1);
        tb.cycle();
        tb.set("served", 0);
    }
    assert!(packets[0] >= 8 && packets[1] > 8 * packets[0], "new packets and lost ones: {packets:?}");
}
