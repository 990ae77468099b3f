//! Whole sets of rules take each other's place under traffic, and what the card says of its tables is what was written.
use super::frames::{numbered, sender, Raw};
use super::*;
use ferric_abi::switch::FlowCommand;
use ferric_driver::switch::{FlowSet, Sender};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Replacements, and senders that a set knows.
const REPLACEMENTS: usize = 3;
const SENDERS: u8 = 12;
/// Cycles of the cards at a time.
const STRETCH: u64 = 200;

/// Senders of one parity are for software, those of the other are dropped: most by exact entries, some by wildcard rules, which the entries' mask does not let through to them.
fn set(passes: u8) -> FlowSet {
    let mask = FlowKey::default().with_ethertype(u16::MAX).with_smac(0xffff_ffff_ffff);
    let mut set = FlowSet { actions: vec![Action::default().with_kind(destination::EXCEPTION), Action::default().with_kind(ACL)], masks: vec![([0, OTHERS], mask)], ..Default::default() };
    for n in 0..SENDERS {
        let action = usize::from(n % 2 != passes);
        match n % 8 {
            // A rule for the sender, and one behind it that says the opposite and does not count.
            3 => set.rules.extend([(Packets::Others, [sender(n), mask], action), (Packets::Others, [sender(n), mask], 1 - action)]),
            _ => set.entries.push(([0, OTHERS], sender(n), action)),
        }
    }
    set
}

/// Frames of all senders in turn, as fast as the card takes them, until there is nothing more to be done: what was sent, and what software has got. It drives the cards beside whoever waits for them.
fn traffic(pair: &Pair, raw: &mut Raw, done: &AtomicBool) -> [Vec<(u8, u16)>; 2] {
    let [mut sent, mut heard] = [const { Vec::new() }; 2];
    let mut last = false;
    for turn in 0u16.. {
        // One turn more than until it is done: those frames come behind the change.
        last |= done.load(Ordering::SeqCst);
        (0..SENDERS).for_each(|from| pair.world().cards[1].receive(numbered(from, turn)));
        sent.extend((0..SENDERS).map(|from| (from, turn)));
        while pair.world().cards[1].receive_backlog() > 0 {
            pair.world().run(STRETCH);
            std::thread::sleep(Duration::from_micros(50));
        }
        heard.extend(raw.heard());
        if last {
            break;
        }
    }
    settle(pair);
    heard.extend(raw.heard());
    [sent, heard]
}

/// Every frame is treated wholly by the old or the new set, and none is lost: those that came before the change by the old one, all others by the new one.
#[test]
fn sets_take_each_others_place() {
    let mut b = Bench::new(64);
    let ctx = b.pair.hosts[1].ctx.clone();
    let port = FlowPort { drop_miss: true, ..Default::default() };
    b.tables.replace_all(&ctx, &set(0), &port).unwrap();
    let mut raw = Raw::new(&b.pair);
    let mut frames = 0;
    for round in 1..=REPLACEMENTS {
        let (old, new) = ((round as u8 + 1) % 2, round as u8 % 2);
        let before = b.counts();
        let done = AtomicBool::new(false);
        let (pair, tables) = (&b.pair, &mut b.tables);
        let (generation, [sent, heard]) = std::thread::scope(|scope| {
            let traffic = scope.spawn(|| traffic(pair, &mut raw, &done));
            let generation = tables.replace_all(&ctx, &set(new), &port);
            done.store(true, Ordering::SeqCst);
            (generation.unwrap(), traffic.join().unwrap())
        });
        assert_eq!(usize::from(generation), round % 4);
        let by = |parity: u8, frames: &[(u8, u16)]| frames.iter().filter(|(from, _)| from % 2 == parity).copied().collect::<Vec<_>>();
        let change = (0..=sent.len()).find(|at| heard == [by(old, &sent[..*at]), by(new, &sent[*at..])].concat());
        let change = change.unwrap_or_else(|| panic!("round {round}: a frame of neither set: {heard:?}"));
        assert!(change > 0 && change < sent.len(), "frames came before the change and behind it");
        let after = b.counts();
        assert_eq!(after.software() - before.software() + after.acl() - before.acl(), sent.len() as u64);
        frames += sent.len();
    }
    moved(&b.counts(), &["software", "acl"]);
    println!("{REPLACEMENTS} replacements of {SENDERS} rules under {frames} frames: none of neither set, none lost");
    // Of two sets' worth there is one in the card.
    assert_eq!(b.tables.dump(&ctx, table::RULE).unwrap().len(), set(0).rules.len());
    // A set that does not fit leaves the old one as it is, and makes room for the next.
    let many = FlowSet { rules: set(0).rules.into_iter().cycle().take(b.tables.rules()).collect(), ..set(0) };
    assert!(matches!(b.tables.replace_all(&ctx, &many, &port), Err(Error::Exhausted(_))));
    let wrong = FlowSet { entries: vec![([0, OTHERS], sender(1), 2)], ..set(1) };
    assert!(matches!(b.tables.replace_all(&ctx, &wrong, &port), Err(Error::Invalid(_))));
    assert_eq!(b.tables.replace_all(&ctx, &set(1), &port).unwrap(), (REPLACEMENTS as u8 + 1) % 4);
}

/// What the card says of each table is what was written, and no more; an action that nobody uses is idle.
#[test]
fn the_card_says_what_stands() {
    let mut b = Bench::new(64);
    let ctx = b.pair.hosts[1].ctx.clone();
    let key = |n: u16| FlowKey::default().with_ethertype(TYPE).with_dst_port(n);
    let count = |kind: u8| Action::default().with_kind(kind).with_count(true).with_dscp(33);
    let written: Vec<FlowCommand> = [3, 60].iter().map(|line| table::action(*line, Some(&count(destination::EXCEPTION)))).collect();
    [3, 60].iter().for_each(|line| b.tables.set_action(&ctx, *line, Some(&count(destination::EXCEPTION))).unwrap());
    b.tables.set_action(&ctx, 4, Some(&count(ACL))).unwrap();
    b.tables.set_action(&ctx, 4, None).unwrap();
    assert_eq!(b.tables.dump(&ctx, table::ACTION).unwrap(), written);
    let mask = FlowKey([0xff; FlowKey::BYTES]).with_rsvd0(0);
    b.tables.set_mask(&ctx, 1, 2, V4, Some(&mask)).unwrap();
    assert_eq!(b.tables.dump(&ctx, table::PROFILE).unwrap(), [table::profile(table::profile_line(1, 2, V4), Some(&mask))]);
    (0..20).for_each(|n| b.tables.insert(&ctx, 1, [2, V4], &key(n), 3 + n).unwrap());
    let mut entries: Vec<_> = b.tables.dump(&ctx, table::EXACT).unwrap().iter().map(|c| (c.action(), c.generation(), FlowKey(std::array::from_fn(|n| c.0[16 + n])))).collect();
    entries.sort_by_key(|entry| entry.0);
    assert_eq!(entries, (0..20).map(|n| (3 + n, 1, key(n))).collect::<Vec<_>>());
    let all = FlowKey::default().with_ethertype(u16::MAX);
    [5, 27].iter().for_each(|n| b.tables.set_rule(&ctx, *n, Packets::Others, [&key(0), &all], 9, 2).unwrap());
    b.tables.clear_rule(&ctx, 5).unwrap();
    assert_eq!(b.tables.dump(&ctx, table::RULE).unwrap(), [table::rule(table::rule_line(1, 13), Some((9, 2)))]);
    b.tables.set_station(&ctx, 3, 77, Mac([2, 0, 0, 0, 9, 9]), Station::Remote(12, 1)).unwrap();
    let stations = b.tables.dump(&ctx, table::STATION).unwrap();
    assert_eq!(stations.iter().map(|c| (c.action(), c.generation(), c.record0() as u64)).collect::<Vec<_>>(), [(0x5000 | 12, 3, 77 | 0x0200_0000_0909 << 12)]);
    b.tables.set_flood(&ctx, 5, Some(0xabc)).unwrap();
    assert_eq!(b.tables.dump(&ctx, table::FLOOD).unwrap(), [table::flood(5, Some(0xabc))]);
    let tenant = Sender { macs: vec![Mac([2, 0, 0, 0, 7, 7])], addresses: vec![[10, 0, 0, 7].into(), "fd00::7".parse().unwrap()], trunk: true, ..Default::default() };
    b.tables.set_sender(&ctx, 1, Some(&tenant)).unwrap();
    let lines = |b: &Bench| [table::SENDER, table::BIND].map(|table| b.tables.dump(&ctx, table).unwrap());
    let [senders, binds] = lines(&b);
    assert_eq!((senders.len(), senders[0].line(), binds.len()), (1, 1, 2));
    // Its reset takes the addresses' use away, which the driver's own books do not say.
    b.reopen(1, 1);
    let [closed, binds] = lines(&b);
    assert_eq!((closed.len(), binds.len()), (1, 2));
    assert_eq!(ferric_abi::context::SenderCtx(std::array::from_fn(|n| closed[0].0[16 + n])), ferric_abi::context::SenderCtx::default().with_on(true));
    for (table, way, line) in [(table::ROW, 0, 0), (table::COUNT, 0, 0), (99, 0, 0)] {
        assert!(b.tables.standing(&ctx, table, way, line).is_err());
    }
    assert!(matches!(b.tables.standing(&ctx, table::BIND, 4, 0), Err(Error::Admin { status: AdminStatus::BadParameter, .. })));
    // Ages: one action is used all the time, one no more, one never.
    let cycle = Duration::from_nanos(4);
    let tick = cycle * (1 << csr::FLOW_TICK);
    b.tables.set_mask(&ctx, 0, 0, OTHERS, Some(&sender(0).with_smac(0xffff_ffff_ffff).with_ethertype(u16::MAX))).unwrap();
    b.insert(0, OTHERS, &sender(1), 3);
    b.insert(0, OTHERS, &sender(2), 60);
    b.decide(0, true);
    let send = |b: &Bench, from: u8| {
        b.pair.world().cards[1].receive(numbered(from, 0));
        b.settle();
    };
    send(&b, 2);
    (0..5).for_each(|_| send(&b, 1));
    b.pair.world().run(4 << csr::FLOW_TICK);
    send(&b, 1);
    let idle = |time: Duration| b.tables.idle(&ctx, [3, 60, 10], time, cycle);
    assert_eq!(idle(tick * 3).unwrap(), [60, 10]);
    assert_eq!(idle(tick * 1000).unwrap(), [10]);
    assert!(matches!(idle(tick * (1 << 23)), Err(Error::Invalid(_))));
    assert!(idle(Duration::ZERO).unwrap().contains(&60));
}
