use super::{AckGen, STATS};
use crate::msg::{AckOp, HdrOp, SlotGrant, SlotReq, SlotSeal};
use crate::roce::header::{ext_len, header_len};
use crate::tb::{Counted, Events, Fields, Sink, Source, Tb};
use std::collections::VecDeque;

#[derive(Clone, Debug, PartialEq)]
struct Ack {
    qpn: u32,
    psn: u32,
    msn: u32,
    syndrome: u32,
    ipv6: bool,
    vlan: bool,
}

impl Ack {
    fn positive(&self) -> bool {
        self.syndrome >> 5 & 3 == 0
    }
}

/// Whose queue pair it is.
fn function_of(qpn: u32) -> u64 {
    u64::from(qpn % 3) + 5
}

struct Bench {
    tb: Tb,
    ack: Source,
    slot: Sink,
    grant: Source,
    hdr: Sink,
    seal: Sink,
    /// Pushed and neither seen leaving nor known to be left out.
    open: VecDeque<Ack>,
    requests: VecDeque<(usize, usize)>,
    granted: VecDeque<u32>,
    /// Waiting slot requests are granted.
    grants: bool,
    stats: Counted,
    wanted: Events,
}

impl Bench {
    fn new(seed: u64, stall: u32) -> Bench {
        let mut tb = Tb::with_seed("ackgen", AckGen::<7>::default(), seed);
        Bench {
            ack: tb.source("s_ack", stall),
            slot: tb.sink("m_slot", stall),
            grant: tb.source("s_slot", stall),
            hdr: tb.sink("m_hdr", stall),
            seal: tb.sink("m_seal", stall),
            tb,
            open: VecDeque::new(),
            requests: VecDeque::new(),
            granted: VecDeque::new(),
            grants: true,
            stats: Counted::new("stat", "stat_function", STATS),
            wanted: Events::new(),
        }
    }

    fn push(&mut self, ack: Ack) {
        self.ack.push(Fields::of::<AckOp>().pack(&[
            ("qpn", ack.qpn.into()),
            ("dest_qpn", (ack.qpn + 0x1000).into()),
            ("psn", ack.psn.into()),
            ("msn", ack.msn.into()),
            ("syndrome", ack.syndrome.into()),
            ("ipv6", ack.ipv6.into()),
            ("vlan", ack.vlan.into()),
            ("function", function_of(ack.qpn).into()),
        ]));
        self.open.push_back(ack);
    }

    fn count(&mut self, qpn: u32, bit: usize) {
        *self.wanted.entry((function_of(qpn), STATS[bit])).or_default() += 1;
    }

    fn step(&mut self) {
        self.tb.begin();
        self.stats.see(&self.tb);
        self.tb.end();
        let layout = Fields::of::<SlotReq>();
        while let Some(message) = self.slot.pop() {
            assert_eq!((layout.get(&message, "bypass"), layout.get(&message, "raw"), layout.get(&message, "pay_len")), (1, 0, 0));
            self.requests.push_back((layout.get(&message, "hdr_len") as usize, layout.get(&message, "frame_len") as usize));
        }
        if self.grants && self.granted.len() < self.requests.len() && self.tb.rng().percent(50) {
            let slot = self.tb.rng().below(64) as u32;
            self.granted.push_back(slot);
            self.grant.push(Fields::of::<SlotGrant>().pack(&[("slot", slot.into())]));
        }
        while !self.hdr.is_empty() && !self.seal.is_empty() {
            let (hdr, seal) = (self.hdr.pop().expect("there"), self.seal.pop().expect("there"));
            self.leaves(&hdr, &seal);
        }
    }

    fn leaves(&mut self, hdr: &[u32], seal: &[u32]) {
        let (h, s) = (Fields::of::<HdrOp>(), Fields::of::<SlotSeal>());
        let slot = self.granted.pop_front().expect("a header without slot");
        assert_eq!((h.get(hdr, "slot") as u32, s.get(seal, "slot") as u32), (slot, slot));
        assert_eq!((s.get(seal, "reads"), s.get(seal, "abort"), s.get(seal, "notify")), (0, 0, 0));
        assert_eq!(s.get(seal, "function"), function_of(h.get(hdr, "qpn") as u32).into());
        let (qpn, aeth) = (h.get(hdr, "qpn") as u32, h.get(hdr, "aeth") as u32);
        assert_eq!((h.get(hdr, "kind"), h.get(hdr, "opcode"), h.get(hdr, "has_aeth"), h.get(hdr, "pay_len")), (1, 0x11, 1, 0));
        assert_eq!(h.get(hdr, "dest_qpn") as u32, qpn + 0x1000);
        // Whatever is older in the queue was left out, which only a positive one with a younger one behind it may be.
        loop {
            let ack = self.open.pop_front().expect("a header nobody asked for");
            let syndrome = if ack.positive() { 0x1f } else { ack.syndrome };
            if ack.qpn == qpn && h.get(hdr, "psn") as u32 == ack.psn {
                assert_eq!(aeth, syndrome << 24 | ack.msn, "{ack:?}");
                let want = header_len(ack.ipv6, ack.vlan, ext_len(false, false, true));
                assert_eq!(self.requests.pop_front(), Some((want, want + 4)));
                let bit = match ack.syndrome >> 5 & 3 {
                    0 => 0,
                    1 => 3,
                    _ => 2,
                };
                self.count(qpn, bit);
                break;
            }
            assert!(ack.positive(), "lost: {ack:?}");
            assert!(self.open.iter().any(|later| later.qpn == ack.qpn && later.positive()), "nothing acknowledges {ack:?}");
            self.count(ack.qpn, 1);
        }
    }
}

#[test]
fn naks_are_kept_and_the_last_ack_of_every_queue_pair_leaves() {
    for (seed, stall, eager) in [(1, 0, 90), (2, 30, 50), (3, 60, 20), (4, 0, 10)] {
        let mut bench = Bench::new(seed, stall);
        let mut left = 600;
        let mut cycles = 0;
        while left > 0 || !bench.open.is_empty() {
            cycles += 1;
            assert!(cycles < 60_000, "stuck with {:?}", bench.open);
            // Long pauses of the grants fill the queue.
            bench.grants = cycles % 700 > 300;
            if left > 0 && bench.ack.pending() < 3 && bench.tb.rng().percent(eager) {
                let rng = bench.tb.rng();
                let syndrome = match rng.below(8) {
                    0 => 0x60 | rng.below(5) as u32,
                    1 => 0x20 | rng.below(32) as u32,
                    _ => rng.below(32) as u32,
                };
                let ack = Ack { qpn: rng.below(5) as u32, psn: left, msn: rng.next_u32() >> 8, syndrome, ipv6: rng.percent(50), vlan: rng.percent(50) };
                bench.push(ack);
                left -= 1;
            }
            bench.step();
        }
        (0..20).for_each(|_| bench.step());
        assert_eq!(bench.stats.events, bench.wanted, "seed {seed}");
        assert!(bench.stats.all(STATS[1]) > 50, "nothing was coalesced: {:?}", bench.wanted);
        assert!(bench.requests.is_empty() && bench.granted.is_empty());
    }
}

#[test]
fn a_backlog_of_one_queue_pair_becomes_few_acknowledges() {
    let mut bench = Bench::new(9, 0);
    bench.grants = false;
    for psn in 0..60 {
        bench.push(Ack { qpn: 3, psn, msn: psn, syndrome: 0, ipv6: false, vlan: false });
    }
    (0..200).for_each(|_| bench.step());
    bench.grants = true;
    (0..400).for_each(|_| bench.step());
    assert!(bench.open.is_empty());
    // The first ones left before the others came; what stood behind a blocked slot port was coalesced.
    assert_eq!(bench.stats.all(STATS[0]) + bench.stats.all(STATS[1]), 60);
    assert!(bench.stats.all(STATS[0]) < 20, "{:?}", bench.stats.events);
}

/// Positive acknowledges leave one in six cycles, whosever they are; one that comes to rest goes at once, and NAKs always do.
#[test]
fn positive_acknowledges_keep_their_pace() {
    let mut bench = Bench::new(10, 0);
    (0..200).for_each(|_| bench.step());
    for (syndrome, least, most) in [(0, 6, 6), (0x60, 1, 3)] {
        let asked = bench.slot.taken();
        let mut times = Vec::new();
        for qpn in 0..12 {
            bench.push(Ack { qpn, psn: qpn, msn: qpn, syndrome, ipv6: false, vlan: false });
        }
        for _ in 0..200 {
            let before = bench.slot.taken();
            bench.step();
            times.extend((before..bench.slot.taken()).map(|_| bench.tb.cycles()));
        }
        assert_eq!(bench.slot.taken() - asked, 12);
        let apart: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The pool of slots grants at random in this bench: behind the first few, NAKs wait for it.
        assert!(apart[..4].iter().all(|cycles| (least..=most).contains(cycles)), "{apart:?}");
        assert!(bench.open.is_empty());
    }
    // A NAK behind a positive one.
    let mut times = Vec::new();
    for (qpn, syndrome) in [(1, 0), (2, 0x60)] {
        bench.push(Ack { qpn, psn: 50, msn: 50, syndrome, ipv6: false, vlan: false });
    }
    for _ in 0..40 {
        let before = bench.slot.taken();
        bench.step();
        times.extend((before..bench.slot.taken()).map(|_| bench.tb.cycles()));
    }
    assert!(times[1] - times[0] <= 3, "{times:?}");
    // Of more queue pairs than come again while they wait: one in two cycles, until few are left.
    let start = bench.slot.taken();
    for qpn in 0..120 {
        bench.push(Ack { qpn, psn: 60, msn: 60, syndrome: 0, ipv6: false, vlan: false });
    }
    let (mut early, mut late) = (0, 0);
    for _ in 0..1200 {
        let before = bench.slot.taken();
        bench.step();
        let now = bench.tb.cycles();
        match bench.slot.taken() - before {
            0 => {}
            _ if bench.slot.taken() - start == 20 => early = now,
            _ if bench.slot.taken() - start == 50 => late = now,
            _ => {}
        }
    }
    assert_eq!(bench.slot.taken() - start, 120);
    assert!(late - early <= 30 * 4, "{} cycles for 30 of many", late - early);
}
