//! Reads boundary traces and recomputes figures from them; it knows nothing of the code under test. Payload counts when it reaches the
//! receiver, and once: what is sent again costs time and gains nothing. Cycles are the card's own, skipped idle time included.
use super::packet::{Class, Packet};
use ferric_sim::trace::{Event, Kind};
use std::collections::{BTreeMap, HashSet};

/// A frame on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Cycle of the first beat.
    pub first: u64,
    /// Cycle of the last beat.
    pub last: u64,
    /// Length without FCS.
    pub bytes: u64,
    /// What it is, if it is RoCEv2.
    pub packet: Option<Packet>,
}

/// Frames that passed `card` as `kind` ([`Kind::TxBeat`] or [`Kind::RxBeat`]).
pub fn frames(trace: &[Event], card: u16, kind: Kind) -> Vec<Frame> {
    let mut out = Vec::new();
    let mut open: Option<Frame> = None;
    for e in trace.iter().filter(|e| e.card == card && e.kind == kind) {
        let f = open.get_or_insert(Frame { first: e.cycle, last: e.cycle, bytes: 0, packet: None });
        f.bytes += u64::from(e.bytes);
        f.last = e.cycle;
        if e.last {
            f.packet = Packet::parse(&e.head);
            out.extend(open.take());
        }
    }
    out
}

/// Frames that say the same: from the same queue pair to the same, the same part of the same request or answer.
type Identity = (u32, u32, bool, u32);

fn identity(p: &Packet) -> Option<Identity> {
    // Acknowledges are cumulative: two may say the same.
    (!matches!(p.class, Class::Ack | Class::Refusal)).then_some((p.qp, p.source, p.class == Class::Answer, p.psn))
}

/// What of one direction reached the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delivered {
    /// Bytes of payload, each counted once.
    pub payload: u64,
    /// Messages or answers whose last packet came, each counted once.
    pub messages: u64,
    /// Cycle of the first beat.
    pub first: u64,
    /// Cycle of the first beat of the last frame, were it one that came again: the wire does not say which copy was taken.
    pub started: u64,
    /// Cycle of its last beat.
    pub last: u64,
}

/// What reached `card`: payload of SENDs, WRITEs and datagrams, or (`answers`) of READs and atomics. None if nothing did.
pub fn delivered(trace: &[Event], card: u16, answers: bool) -> Option<Delivered> {
    let mut seen = HashSet::new();
    let mut sum: Option<Delivered> = None;
    for f in frames(trace, card, Kind::RxBeat) {
        let Some(p) = f.packet.filter(|p| p.class == if answers { Class::Answer } else { Class::Push }) else { continue };
        let d = sum.get_or_insert(Delivered { first: f.first, ..Default::default() });
        if identity(&p).is_some_and(|i| seen.insert(i)) {
            d.payload += p.payload;
            d.messages += u64::from(p.ends);
        }
        (d.started, d.last) = (f.first, f.last);
    }
    sum
}

/// What must not be on a wire that loses nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waste {
    /// Frames sent.
    pub frames: u64,
    /// Those that say what an earlier one has said.
    pub repeats: u64,
    /// Negative acknowledges, also those for want of a receive.
    pub refusals: u64,
}

/// Over what `card` sent.
pub fn waste(trace: &[Event], card: u16) -> Waste {
    let mut seen = HashSet::new();
    let mut waste = Waste::default();
    for f in frames(trace, card, Kind::TxBeat) {
        waste.frames += 1;
        waste.refusals += u64::from(f.packet.is_some_and(|p| p.class == Class::Refusal));
        waste.repeats += u64::from(f.packet.as_ref().and_then(identity).is_some_and(|i| !seen.insert(i)));
    }
    waste
}

/// Bytes around the payload of a packet without extension headers over IPv4: Ethernet, IPv4, UDP, BTH, ICRC.
pub const AROUND: u64 = 14 + 20 + 8 + 12 + 4;
/// Bytes that a VXLAN tunnel over IPv4 adds: Ethernet, IPv4, UDP, VXLAN.
pub const TUNNEL: u64 = 14 + 20 + 8 + 8;

impl Delivered {
    fn span(&self) -> u64 {
        self.last - self.first + 1
    }

    /// Cycles that the best frame sequence needs for the payload, of those that passed, in percent. `mtu`: path MTU; `around`: bytes around each packet's payload; `beat`: bytes per beat.
    pub fn efficiency(&self, mtu: u64, around: u64, beat: u64) -> f64 {
        let rest = self.payload % mtu;
        let best = self.payload / mtu * (mtu + around).div_ceil(beat) + if rest > 0 { (rest + around).div_ceil(beat) } else { 0 };
        100.0 * best as f64 / self.span() as f64
    }

    /// Bytes of payload per cycle.
    pub fn goodput(&self) -> f64 {
        self.payload as f64 / self.span() as f64
    }

    /// Cycles per message, from the first beat of the first to the first beat of the last. None of fewer than two.
    pub fn cycles_per_message(&self) -> Option<f64> {
        (self.messages > 1).then(|| (self.started - self.first) as f64 / (self.messages - 1) as f64)
    }
}

/// Doorbell to first beat on the wire, less the time the card waited for its serial host reads (address to last beat of each).
/// Mean over the doorbells of `card`; each must be followed by one frame before the next.
pub fn doorbell_to_wire(trace: &[Event], card: u16) -> Option<f64> {
    let (mut sum, mut n) = (0u64, 0u64);
    let mut bell: Option<(u64, u64, u64)> = None; // doorbell cycle, cycles spent in reads, open read's start
    let mut in_frame = false;
    for l in trace.iter().filter(|l| l.card == card) {
        match (l.kind, &mut bell) {
            (Kind::Doorbell, _) => bell = Some((l.cycle, 0, 0)),
            (Kind::ReadAddress, Some((_, _, start))) => *start = l.cycle,
            (Kind::ReadLast, Some((_, spent, start))) => *spent += l.cycle - *start,
            (Kind::TxBeat, Some((at, spent, _))) if !in_frame => {
                sum += l.cycle - *at - *spent;
                n += 1;
                bell = None;
            }
            _ => {}
        }
        if l.kind == Kind::TxBeat {
            in_frame = !l.last;
        }
    }
    (n > 0).then(|| sum as f64 / n as f64)
}

/// Last beat of a received frame with payload to the first write address after it, mean, at `card`.
pub fn wire_to_dma(trace: &[Event], card: u16) -> Option<f64> {
    let (mut sum, mut n) = (0u64, 0u64);
    let mut arrived = None;
    for l in trace.iter().filter(|l| l.card == card) {
        match l.kind {
            Kind::RxBeat if l.last && Packet::parse(&l.head).is_some_and(|p| p.class == Class::Push) => arrived = Some(l.cycle),
            Kind::WriteAddress => {
                if let Some(at) = arrived.take() {
                    sum += l.cycle - at;
                    n += 1;
                }
            }
            _ => {}
        }
    }
    (n > 0).then(|| sum as f64 / n as f64)
}

/// Counters that move while a card does what it was asked to. Every other one tells of a frame, request or completion that was dropped,
/// refused, repeated or failed; a counter that is not known here is taken for one of those.
pub const WORK: [&str; 35] = [
    "dma_rd.reads",
    "dma_wr.writes",
    "doorbell.db_rung",
    "doorbell.db_wqe",
    "sq.sq_fetches",
    "sq.sq_wqe_direct",
    "sq.sq_offered",
    "rq.rq_fetches",
    "rq.rq_fetched_ahead",
    "rq.srq_limits",
    "cq.cqe_written",
    "cq.cq_events",
    "eq.eqe_written",
    "eq.eq_msix",
    "mr.mr_checks",
    "mr.mtt_misses",
    "mr.mtt_ahead",
    "mr.invalidated",
    "mr.registered",
    "mr.bound",
    "req_tx.tx_packets",
    "resp.rx_requests",
    "ackgen.ack_sent",
    "ackgen.ack_coalesced",
    "egress.tx_frames",
    "rx.rx_frames",
    "rx.rx_roce",
    "reply.reads",
    "reply.atomics",
    "mcast.mcast_delivered",
    "rq.rq_empty",
    // Requests fetched once more by a queue pair that had no room for them: that costs time, which counts, and no frame.
    "req_tx.stale_wqe",
    // A full receive buffer that costs time, which counts, and no frame.
    "pause.pause_sent",
    "pause.pause_received",
    "pause.pause_held",
];

/// Counter of frames that are not for the card, and of those that are for no card: pause frames end there, too.
const STRANGE: [&str; 2] = ["rx.rx_other_station", "pause.pause_received"];

/// What the peer of a card that dropped or repeated something counts, and the card itself. Not said again when the cause has been.
const FOLLOW: [&str; 6] = ["ackgen.nak_sent", "resp.nak_seq_sent", "resp.out_of_order", "resp.dup_requests", "req_rx.nak_seq_received", "req_rx.retransmits"];

/// A card's counters by name.
pub type Counters = BTreeMap<String, u64>;

/// What must not happen without loss. `before` and `after`: counters of each card when what passed is `trace`. What had happened before is a
/// fault, too: caches were cold then, which is no excuse for a drop.
pub fn faults(trace: &[Event], before: &[Counters], after: &[Counters]) -> Vec<String> {
    let mut found = Vec::new();
    let but_pauses = |c: &Counters, name: &str, n: u64| n - if name == STRANGE[0] { c.get(STRANGE[1]).copied().unwrap_or(0).min(n) } else { 0 };
    let moved: Vec<(usize, &String, u64)> =
        after.iter().enumerate().flat_map(|(card, c)| c.iter().map(move |(name, n)| (card, name, but_pauses(c, name, *n)))).filter(|(_, name, n)| *n > 0 && !WORK.contains(&name.as_str())).collect();
    let cause = moved.iter().any(|(_, name, _)| !FOLLOW.contains(&name.as_str()));
    for card in 0..after.len() {
        let w = waste(trace, card as u16);
        if w.repeats > 0 {
            found.push(format!("card {card} sent {} of {} frames again", w.repeats, w.frames));
        }
        if w.refusals > 0 {
            found.push(format!("card {card} sent {} negative acknowledges", w.refusals));
        }
    }
    for (card, name, n) in moved.into_iter().filter(|(_, name, _)| !cause || !FOLLOW.contains(&name.as_str())) {
        let early = before.get(card).and_then(|c| Some(but_pauses(c, name, *c.get(name)?))).unwrap_or(0);
        found.push(format!("card {card}: {name} {n}{}", if early == n { " while warming up" } else { "" }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::frame;
    use super::*;

    /// Beats of a frame from `cycle` on, as they leave card 0 and, 50 cycles later, reach card 1.
    fn passes(trace: &mut Vec<Event>, cycle: u64, head: &[u8], bytes: u64) -> u64 {
        let beats = bytes.div_ceil(64);
        for (card, kind, delay) in [(0, Kind::TxBeat, 0), (1, Kind::RxBeat, 50)] {
            for beat in 0..beats {
                let last = beat + 1 == beats;
                let n = if last { bytes - 64 * beat } else { 64 } as u32;
                trace.push(Event { cycle: cycle + delay + beat, card, kind, bytes: n, last, addr: 0, head: if last { head.to_vec() } else { vec![] } });
            }
        }
        cycle + beats
    }

    /// `psns` as Middle packets of 4096 bytes, one behind the other from cycle 0; before the packet `gap.0` nothing for `gap.1` cycles.
    fn middles(psns: &[u32], gap: (usize, u64)) -> Vec<Event> {
        let mut trace = Vec::new();
        let mut cycle = 0;
        for (n, psn) in psns.iter().enumerate() {
            cycle += if n == gap.0 { gap.1 } else { 0 };
            cycle = passes(&mut trace, cycle, &frame(7, 5, *psn, &[], 4096), 4096 + AROUND);
        }
        trace
    }

    fn quiet() -> Vec<Counters> {
        vec![BTreeMap::from([("egress.tx_frames".to_string(), 4), ("rx.rx_no_buffer".to_string(), 0)]); 2]
    }

    /// Must show 4 of the mending issue: repeats lower the efficiency and fail the run.
    #[test]
    fn repeats_lower_the_efficiency_and_are_faults() {
        let clean = middles(&[1, 2, 3, 4], (0, 0));
        let e = delivered(&clean, 1, false).unwrap();
        assert_eq!((e.payload, e.efficiency(4096, AROUND, 64)), (4 * 4096, 100.0));
        assert_eq!(faults(&clean, &quiet(), &quiet()), Vec::<String>::new());

        // The third is lost in the receiver: it and what followed are sent again.
        let again = middles(&[1, 2, 3, 4, 3, 4], (0, 0));
        let e = delivered(&again, 1, false).unwrap();
        assert_eq!(e.payload, 4 * 4096, "counted once");
        assert!((e.efficiency(4096, AROUND, 64) - 100.0 * 4.0 / 6.0).abs() < 1e-9);
        let again = middles(&[1, 2, 3, 3, 4], (0, 0));
        let e = delivered(&again, 1, false).unwrap();
        assert!((e.efficiency(4096, AROUND, 64) - 80.0).abs() < 1e-9);
        assert_eq!(faults(&again, &quiet(), &quiet()), ["card 0 sent 1 of 5 frames again"]);
    }

    #[test]
    fn a_drop_without_a_repeat_is_a_fault() {
        let clean = middles(&[1, 2], (0, 0));
        let mut counters = quiet();
        counters[1].insert("rx.rx_no_buffer".into(), 3);
        assert_eq!(faults(&clean, &quiet(), &counters), ["card 1: rx.rx_no_buffer 3"]);
        assert_eq!(faults(&clean, &counters, &counters), ["card 1: rx.rx_no_buffer 3 while warming up"]);
        counters[0].insert("req_rx.retransmits".into(), 2);
        assert_eq!(faults(&clean, &quiet(), &counters), ["card 1: rx.rx_no_buffer 3"]);
        counters[1].insert("rx.rx_no_buffer".into(), 0);
        // A pause frame is one for no station, and no fault; another such frame is.
        counters[0].insert("rx.rx_other_station".into(), 2);
        counters[0].insert("pause.pause_received".into(), 2);
        assert_eq!(faults(&clean, &quiet(), &counters), ["card 0: req_rx.retransmits 2"]);
        counters[0].insert("pause.pause_received".into(), 1);
        assert_eq!(faults(&clean, &quiet(), &counters), ["card 0: rx.rx_other_station 1"]);
        counters[0].insert("rx.rx_other_station".into(), 1);
        counters[0].insert("rx.some_new_drop".into(), 1);
        assert_eq!(faults(&clean, &quiet(), &counters), ["card 0: rx.some_new_drop 1"]);
        counters[0].insert("rx.some_new_drop".into(), 0);
        assert_eq!(faults(&clean, &quiet(), &counters), ["card 0: req_rx.retransmits 2"]);
        let mut refused = clean;
        passes(&mut refused, 500, &frame(17, 5, 2, &[0x60, 0, 0, 1], 0), 62);
        assert_eq!(faults(&refused, &quiet(), &quiet()), ["card 0 sent 1 negative acknowledges"]);
    }

    #[test]
    fn idle_time_is_time() {
        let e = delivered(&middles(&[1, 2, 3, 4], (2, 260)), 1, false).unwrap();
        assert!((e.efficiency(4096, AROUND, 64) - 50.0).abs() < 1e-9);
        assert!((e.cycles_per_message().unwrap_or(0.0)).abs() < 1e-9, "no message has ended");
        let mut trace = Vec::new();
        for n in 0..3 {
            passes(&mut trace, 4 * n + if n == 2 { 16_777_216 } else { 0 }, &frame(10, 5, n as u32, &[0; 16], 64), 138);
        }
        let e = delivered(&trace, 1, false).unwrap();
        assert_eq!((e.messages, e.cycles_per_message()), (3, Some((16_777_216 + 8) as f64 / 2.0)));
    }

    /// A message cut into small packets gains nothing by it.
    #[test]
    fn small_packets_are_not_ideal_ones() {
        let mut trace = Vec::new();
        let mut cycle = 0;
        for psn in 0..4 {
            cycle = passes(&mut trace, cycle, &frame(7, 5, psn, &[], 1024), 1024 + AROUND);
        }
        assert!((delivered(&trace, 1, false).unwrap().efficiency(4096, AROUND, 64) - 100.0 * 65.0 / 68.0).abs() < 1e-9);
    }

    #[test]
    fn answers_and_messages_are_told_apart() {
        let mut trace = Vec::new();
        passes(&mut trace, 0, &frame(12, 5, 9, &[0; 16], 0), 74);
        passes(&mut trace, 2, &frame(16, 5, 9, &[0; 4], 64), 126);
        passes(&mut trace, 4, &frame(10, 5, 9, &[0; 16], 64), 138);
        // The same PSN to another queue pair, and datagrams of two senders, are no repeats; nor is a second acknowledge.
        passes(&mut trace, 8, &frame(10, 6, 9, &[0; 16], 64), 138);
        for source in [1, 2] {
            passes(&mut trace, 8 + 4 * u64::from(source), &frame(0x64, 7, 9, &[0, 0, 0, 1, 0, 0, 0, source], 64), 130);
        }
        passes(&mut trace, 30, &frame(17, 5, 9, &[0x1f, 0, 0, 1], 0), 62);
        passes(&mut trace, 31, &frame(17, 5, 9, &[0x1f, 0, 0, 1], 0), 62);
        let d = |answers| delivered(&trace, 1, answers).map(|d| (d.payload, d.messages));
        assert_eq!((d(true), d(false)), (Some((64, 1)), Some((256, 4))));
        // The request of the READ and the WRITE to queue pair 5 have one PSN, which never happens on one connection.
        assert_eq!(waste(&trace, 0), Waste { frames: 8, repeats: 1, refusals: 0 });
        assert_eq!(delivered(&trace, 0, false), None);
    }

    #[test]
    fn latencies() {
        let event = |cycle, card, kind, last, head: &[u8]| Event { cycle, card, kind, bytes: 64, last, addr: 0, head: head.to_vec() };
        let head = frame(10, 5, 1, &[0; 16], 64);
        let t = [
            event(10, 0, Kind::Doorbell, true, &[]),
            event(15, 0, Kind::ReadAddress, true, &[]),
            event(265, 0, Kind::ReadLast, true, &[]),
            event(290, 0, Kind::TxBeat, false, &[]),
            event(292, 0, Kind::TxBeat, true, &head),
            event(300, 1, Kind::RxBeat, false, &[]),
            event(302, 1, Kind::RxBeat, true, &head),
            event(320, 1, Kind::WriteAddress, true, &[]),
        ];
        assert_eq!((doorbell_to_wire(&t, 0), wire_to_dma(&t, 1)), (Some(30.0), Some(18.0)));
    }

    #[test]
    fn counters_of_work_exist() {
        let names = ferric_hdl::card::counters::names();
        for name in WORK {
            assert!(names.iter().any(|n| n == name), "{name} is no counter");
        }
    }
}
