//! Pause frames between two whole cards: a receive buffer that fills loses nothing, and nobody stops anybody for good.
use ferric_abi::codes::AdminStatus;
use ferric_driver::types::Mtu;
use ferric_driver::{Error, PauseConfig, Pausing};
use ferric_hdl::engines::pause::model::{build, Pause};
use ferric_sim::axi::HostTiming;
use ferric_sim::WorldConfig;
use ferric_tests::bench::load::{run, Line, Shape, Stream};
use ferric_tests::bench::rig::counters;
use ferric_tests::bench::scenarios::Op;
use ferric_tests::pair::Pair;
use std::collections::BTreeMap;
use std::time::Duration;

/// Cycles without any completion that are too many.
const PATIENCE: u64 = 600_000;
const WINDOW: usize = 64;

/// `lines` queue pairs of host 0 send `count` messages of 64 bytes each to a host that is far too slow for them. What either card has counted meanwhile.
fn overload(pair: &Pair, op: Op, lines: usize, count: u64) -> [BTreeMap<String, u64>; 2] {
    overload_from(pair, op, lines, count, || ())
}

/// The same; `begin` is done just before the first message is posted.
fn overload_from(pair: &Pair, op: Op, lines: usize, count: u64, begin: impl Fn()) -> [BTreeMap<String, u64>; 2] {
    // A host that takes two reads at a time and answers each late: receives and page tables come late, and its card's receive buffer fills.
    pair.world().cards[1].set_timing(HostTiming { read_latency: 800, max_reads: 2, ..Default::default() });
    let mut lines: Vec<Line> = (0..lines).map(|_| Line::connected(pair, Mtu::M4096, 1, 0, WINDOW * 64 + 64).unwrap()).collect();
    let shape = Shape { op, size: 64, window: WINDOW, offset: 0, strewn: 0, from: 0 };
    let mut streams: Vec<Stream> = lines.iter_mut().map(|line| Stream::new(pair, line, shape).unwrap()).collect();
    let read = || [0, 1].map(|card| counters(pair, card).unwrap());
    let before = read();
    begin();
    run(pair, &mut streams, count, PATIENCE).unwrap();
    let mut after = read();
    after.iter_mut().zip(&before).for_each(|(now, then)| now.iter_mut().for_each(|(name, n)| *n -= then[name]));
    after
}

fn pair(pause: bool) -> Pair {
    let pair = Pair::new(&WorldConfig::default()).unwrap();
    if pause {
        pair.with_pause().unwrap()
    } else {
        pair
    }
}

const LOST: &str = "rx.rx_no_buffer";

#[test]
fn an_overload_loses_frames_without_pause_and_none_with_it() {
    let without = overload(&pair(false), Op::Send, 16, 70);
    assert!(without[1][LOST] > 50 && without[0]["pause.pause_held"] == 0 && without[1]["pause.pause_sent"] == 0, "{}", without[1][LOST]);
    let with = overload(&pair(true), Op::Send, 16, 70);
    let of = |card: usize, name: &str| with[card][name];
    println!("lost without {}, sent again {}; with pause: {} pause frames, held {} times", without[1][LOST], without[0]["req_rx.retransmits"], of(1, "pause.pause_sent"), of(0, "pause.pause_held"));
    assert_eq!((of(1, LOST), of(0, LOST)), (0, 0));
    assert_eq!((of(0, "req_rx.retransmits"), of(0, "req_rx.nak_seq_received")), (0, 0), "nothing is sent again");
    assert!(of(1, "pause.pause_sent") > 1 && of(0, "pause.pause_held") > 0);
    assert_eq!(of(1, "pause.pause_sent"), of(0, "pause.pause_received"));
    // They end at the card: no engine and no queue pair has seen one.
    assert_eq!(of(0, "rx.rx_other_station"), of(0, "pause.pause_received"));
    assert_eq!([0, 1].map(|card| of(card, "pause.pause_malformed") + of(card, "pause.pause_ignored") + of(card, "pause.pause_given_up")), [0, 0]);
}

/// The same by priorities, and of priorities that are not the sender's: these stop nobody.
#[test]
fn priorities_that_are_not_ours_stop_nobody() {
    for (named, stops) in [(0b1000, true), (0b0100, false)] {
        let pair = pair(false);
        for host in &pair.hosts {
            let rules = PauseConfig { send: Pausing::Priorities(named), obey_link: false, data: 0b1000, ..PauseConfig::between_cards(host.mac(), 1) };
            host.ctx.set_pause(&rules).unwrap();
        }
        let counted = overload(&pair, Op::Send, 16, 70);
        assert!(counted[1]["pause.pause_sent"] > 0);
        assert_eq!((counted[1][LOST] == 0, counted[0]["pause.pause_held"] > 0), (stops, stops), "{named:#b}");
    }
}

/// Cards that stop each other for good, and a peer that dies after it has asked for silence: the watchdogs end it, and everything gets there.
#[test]
fn nobody_waits_for_good() {
    let pair = pair(false);
    let limit = Duration::from_micros(100);
    for host in &pair.hosts {
        host.ctx.set_pause(&PauseConfig { obey_limit: limit, send_limit: limit, ..PauseConfig::between_cards(host.mac(), 1) }).unwrap();
    }
    // A stranger on the link says it to both.
    let stop = build([2; 6], Pause::Link(0xffff));
    let begun = std::cell::Cell::new(0);
    let counted = overload_from(&pair, Op::Write, 2, 60, || {
        let mut world = pair.world();
        world.cards.iter_mut().for_each(|card| card.receive(stop.clone()));
        world.run(50);
        begun.set(world.cycle());
    });
    let cycles = pair.world().cycle() - begun.get();
    assert_eq!(["pause_held", "pause_ignored"].map(|name| [0, 1].map(|card| counted[card][&format!("pause.{name}")])), [[1; 2]; 2]);
    // 100 us are 98 ticks of 256 cycles, and the pause that they asked for 65,535 quanta of 8.
    assert!((98 * 256..0xffff * 8).contains(&cycles), "{cycles} cycles");
}

/// A host that is too slow for longer than its card may stop others: frames are dropped and sent again as if there was no pause.
#[test]
fn a_card_gives_up_stopping_its_peer() {
    let pair = pair(false);
    for host in &pair.hosts {
        host.ctx.set_pause(&PauseConfig { send_limit: Duration::from_micros(20), ..PauseConfig::between_cards(host.mac(), 1) }).unwrap();
    }
    let counted = overload(&pair, Op::Send, 16, 70);
    assert!(counted[1]["pause.pause_given_up"] > 0 && counted[1][LOST] > 0 && counted[0]["pause.pause_ignored"] == 0, "{}", counted[1][LOST]);
}

#[test]
fn only_the_physical_function_sets_it() {
    let mut pair = pair(false);
    pair.open_next().unwrap();
    let tenant = &pair.tenants[0][0];
    let rules = PauseConfig::between_cards(tenant.mac(), 1);
    assert!(tenant.ctx.has_pause());
    for result in [tenant.ctx.set_pause(&rules), tenant.ctx.clear_pause()] {
        assert!(matches!(result, Err(Error::Admin { status: AdminStatus::Denied, .. })), "{result:?}");
    }
    let ctx = &pair.hosts[0].ctx;
    ctx.set_pause(&rules).unwrap();
    for bad in [PauseConfig { go_on_at: rules.stop_at, ..rules.clone() }, PauseConfig { data: 0, ..rules.clone() }, PauseConfig { send_limit: Duration::ZERO, ..rules.clone() }] {
        assert!(matches!(ctx.set_pause(&bad), Err(Error::Admin { status: AdminStatus::BadParameter, .. })), "{bad:?}");
    }
    assert!(matches!(ctx.set_pause(&PauseConfig { obey_limit: Duration::from_secs(2), ..rules }), Err(Error::Invalid(_))));
    ctx.clear_pause().unwrap();
}

/// What a stranger says and does not mean, or may not say.
#[test]
fn malformed_frames_are_counted_and_stop_nobody() {
    let pair = pair(true);
    let fine = build([2; 6], Pause::Link(0xffff));
    let mut frames = Vec::new();
    for (at, bit) in [(0, 1), (5, 0), (14, 1), (15, 1)] {
        let mut frame = fine.clone();
        frame[at] ^= 1 << bit;
        frames.push(frame);
    }
    // To this very card: there is no such pause.
    let mut own = fine.clone();
    own[..6].copy_from_slice(&pair.hosts[0].mac().0);
    frames.push(own);
    for frame in &frames {
        pair.world().cards[0].receive(frame.clone());
        pair.world().run(50);
    }
    let counted = overload(&pair, Op::Write, 2, 30);
    assert_eq!(counted[0]["pause.pause_held"], 0);
    let all = counters(&pair, 0).unwrap();
    assert_eq!((all["pause.pause_malformed"], all["pause.pause_received"]), (frames.len() as u64, 0));
}

/// The longest time without a completion, of all queue pairs together and of the one that waited longest, in cycles.
fn longest_waits(pair: &Pair, senders: usize, count: u64) -> [u64; 2] {
    pair.world().cards[1].set_timing(HostTiming { read_latency: 800, max_reads: 2, ..Default::default() });
    let mut lines: Vec<Line> = (0..senders).map(|_| Line::connected(pair, Mtu::M4096, 1, 0, WINDOW * 64 + 64).unwrap()).collect();
    let shape = Shape { op: Op::Send, size: 64, window: WINDOW, offset: 0, strewn: 0, from: 0 };
    let mut streams: Vec<Stream> = lines.iter_mut().map(|line| Stream::new(pair, line, shape).unwrap()).collect();
    // Receives are posted, and told to the card, before the first message is sent.
    run(pair, &mut streams, 0, PATIENCE).unwrap();
    let begun = pair.world().cycle();
    let mut seen: Vec<(u64, u64)> = vec![(0, begun); senders];
    let (mut last, mut waits) = (begun, [0; 2]);
    loop {
        let now = pair.world().cycle();
        let mut all = true;
        for (stream, (progress, since)) in streams.iter_mut().zip(&mut seen) {
            let done = stream.advance(count).unwrap();
            if stream.progress() != *progress {
                (*progress, *since, last) = (stream.progress(), now, now);
            }
            if !done {
                waits[1] = waits[1].max(now - *since);
            }
            all &= done;
        }
        if all {
            return waits;
        }
        waits[0] = waits[0].max(now - last);
        assert!(now - begun < 100 * PATIENCE, "{} of {} are done", seen.iter().map(|s| s.0).sum::<u64>(), 2 * senders as u64 * count);
        pair.world().run(16);
    }
}

/// 32 queue pairs with 64 SENDs outstanding each, and a receiver whose host takes two reads at a time: without pause frames much is lost and sent again, but nothing stands for a
/// millisecond; with them nothing is lost.
#[test]
fn many_senders_and_a_slow_receiver_never_stand_still() {
    const MILLISECOND: u64 = 250_000;
    for pause in [false, true] {
        let pair = pair(pause);
        let before = counters(&pair, 1).unwrap()[LOST];
        let waits = longest_waits(&pair, 32, WINDOW as u64);
        let lost = counters(&pair, 1).unwrap()[LOST] - before;
        println!("pause {pause}: {lost} frames lost, {} cycles without any completion, {} without one of a queue pair", waits[0], waits[1]);
        assert_eq!(lost == 0, pause);
        assert!(waits[0] < MILLISECOND, "{} cycles", waits[0]);
    }
}
