//! Strangers between two cards `uet`: frames of nobody who is a peer, frames that are wrong, and a peer that reaches for what is another's, beside a good pair that goes on. Each frame moves one counter, and no byte changes that nobody may write.
use ferric_abi::uet::codes::ReturnCode;
use ferric_driver::types::{Mac, Path};
use ferric_driver::{Access, Config, Context, MemoryRegion, Pd, UetEnd, UetEnds, UetWrite};
use ferric_hdl::card::Card;
use ferric_sim::trace::Kind;
use ferric_sim::{CardConfig, SimDevice, World, WorldConfig};
use ferric_tests::uet::hostile::{run, Plan, REJECTS};
use ferric_tests::uet::pools::{first, probe};
use ferric_tests::uet::{Lane, LaneConfig, Way, OPEN};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const TICK: u64 = 32;
const PATIENCE: u64 = 2_000_000;
/// Bytes of a message: its whole frame stands in the trace.
const BYTES: usize = 40;
/// Where headers are in a frame over IPv4: its total length, sum and addresses, UDP's length, PDS, SES, payload.
const IP: usize = 14;
const UDP: usize = 34;
const PDS: usize = 42;
const SES: usize = 54;
/// Frames of each kind, and cycles between two.
const EACH: u64 = 12;
const PACE: u64 = 400;
const DONE: u8 = ReturnCode::Ok as u8;

struct Host {
    ctx: Context,
    pd: Pd,
    ends: UetEnds,
}

struct Street {
    world: Arc<Mutex<World>>,
    hosts: [Host; 2],
}

fn mac(n: usize) -> Mac {
    Mac([2, 0, 0, 0, 7, n as u8 + 1])
}

/// Address of host `n` towards peer `peer`.
fn ip(n: usize, peer: u8) -> [u8; 4] {
    [10, 7, peer, n as u8 + 1]
}

/// Peer 0 is the good one, peer 1 the one that reaches for more than it may.
fn street() -> Street {
    let card = CardConfig { engines: "uet", ..Default::default() };
    let world = Arc::new(Mutex::new(World::new(&WorldConfig { cards: vec![card.clone(), card], tick_cycles: TICK, ..Default::default() }).unwrap()));
    let hosts = [0, 1].map(|n| {
        let ctx = Context::open(SimDevice::new(&world, n, 0), Config::default()).unwrap();
        ctx.set_station(0, mac(n)).unwrap();
        let pd = ctx.alloc_pd().unwrap();
        for peer in 0..2 {
            let path = Path { dmac: mac(1 - n), smac: mac(n), dip: ip(1 - n, peer).into(), sip: ip(n, peer).into(), vlan: None, udp_sport: 0, tclass: 0, hop_limit: 64, flow_label: 0 };
            ctx.set_uet_peer(peer.into(), &path, &pd).unwrap();
        }
        let ends = ctx.uet_ends(4).unwrap();
        Host { ctx, pd, ends }
    });
    Street { world, hosts }
}

impl Street {
    fn counters(&self, n: usize) -> BTreeMap<String, u64> {
        let names = Card::named("uet", 64).unwrap().list().counter_names();
        let values = self.hosts[n].ctx.counters(0, names.len() as u32).unwrap();
        names.into_iter().zip(values).collect()
    }

    fn end(&mut self, n: usize) -> UetEnd {
        let begun = self.world.lock().unwrap().cycle();
        loop {
            if let Some(end) = self.hosts[n].ends.poll() {
                return end;
            }
            let mut world = self.world.lock().unwrap();
            assert!(world.cycle() - begun < PATIENCE, "no end");
            world.run(100);
        }
    }

    fn run(&self, cycles: u64) {
        self.world.lock().unwrap().run(cycles);
    }
}

/// A frame with `bytes` from `at` on.
fn with(frame: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

/// The same with the checksum of IPv4 that it should have.
fn summed(frame: &[u8]) -> Vec<u8> {
    let clear = with(frame, IP + 10, &[0, 0]);
    let words = clear[IP..UDP].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    with(&clear, IP + 10, &(!(folded as u16)).to_be_bytes())
}

/// What is thrown in, and the counter of card 1 that tells of each.
const KINDS: [(&str, &str); 12] = [
    ("an address that is nobody's", "uet.uet_stranger"),
    ("a wrong sum", "uet.uet_bad_ip"),
    ("cut off", "uet.uet_bad_ip"),
    ("a length of UDP beyond the packet", "uet.uet_rx_udp_length"),
    ("a reserved type", "uet.uet_rx_pds_type"),
    ("the secure layer", "uet.uet_rx_tss"),
    ("a reserved acknowledge", "uet.uet_rx_ccx"),
    ("a header that is none", "uet.uet_rx_next"),
    ("a version of later", "uet.uet_rx_version"),
    ("a packet with a part of its header", "uet.uet_rx_pds_short"),
    ("another peer's PDC", "uet.uet_pdc_refused"),
    ("keys that are not its own", "uet.uet_refused"),
];

/// Frame number `n` of kind `kind`, made of a good one. `keys`: of regions that peer 1 may not write to.
fn forged(kind: usize, n: u64, good: &[u8], keys: &[(u64, u32)]) -> Vec<u8> {
    let other = |frame: &[u8]| summed(&with(&with(frame, IP + 12, &ip(0, 1)), IP + 16, &ip(1, 1)));
    let prologue = u16::from_be_bytes([good[PDS], good[PDS + 1]]);
    let of_type = |kind: u16| with(good, PDS, &(prologue & 0x07ff | kind << 11).to_be_bytes());
    match kind {
        0 => summed(&with(good, IP + 12, &[10, 7, 0, 99 + n as u8])),
        1 => with(good, IP + 10, &[good[IP + 10] ^ 0x40, good[IP + 11]]),
        2 => good[..80 + n as usize].to_vec(),
        3 => with(good, UDP + 4, &0x200u16.to_be_bytes()),
        4 => of_type(16 + n as u16),
        5 => of_type(1),
        6 => of_type(if n % 2 == 0 { 9 } else { 12 }),
        7 => with(good, PDS, &(prologue & !(15 << 7) | (8 + n as u16 % 7) << 7).to_be_bytes()),
        8 => with(good, SES + 1, &[good[SES + 1] | 0x40]),
        9 => summed(&with(&with(good, IP + 2, &34u16.to_be_bytes()), UDP + 4, &14u16.to_be_bytes()))[..UDP + 14].to_vec(),
        10 => other(&with(good, PDS + 4, &(0x4000_0000 + n as u32).to_be_bytes())),
        _ => {
            // A PDC of its own, which its first packet opens.
            let (addr, rkey) = keys[n as usize % keys.len()];
            let psn = 0x0100_0000 + n as u32;
            let frame = with(good, PDS, &(prologue & !0x7f | 0x0c).to_be_bytes());
            let frame = with(&with(&frame, PDS + 2, &[0, 0]), PDS + 4, &psn.to_be_bytes());
            let frame = with(&with(&frame, PDS + 8, &[0x77, 0x01]), PDS + 10, &(n as u16).to_be_bytes());
            let frame = with(&with(&frame, SES + 2, &(0x300 + n as u16).to_be_bytes()), SES + 12, &addr.to_be_bytes());
            other(&with(&frame, SES + 24, &u64::from(rkey).to_be_bytes()))
        }
    }
}

/// A short form of `./scripts/soak hostile --uet`. What is mutated are the good pair's frames of the moment, and when they come depends on the host's addresses, too: what one run of a few frames has not reached the next one does.
#[test]
fn mutated_frames_are_each_counted_and_the_good_pair_goes_on() {
    const RUNS: u64 = 6;
    let mut missing: Vec<_> = REJECTS.to_vec();
    for seed in (0..RUNS).map(|n| 2 * n + 3) {
        let outcome = run(Plan { seed, frames: 2000, width: 64, pace: 200 }).unwrap();
        assert!(outcome.messages > 1000, "{} good messages", outcome.messages);
        missing.retain(|name| !outcome.counted.contains_key(*name));
        if missing.is_empty() {
            return;
        }
    }
    panic!("never counted: {missing:?}");
}

/// What the soak's probe says of a card where something is left over: a PDC, and with it a response that is kept.
#[test]
fn a_place_that_is_not_given_back_is_missed() {
    let mut lane = Lane::new(&LaneConfig::default(), mac(0)).unwrap();
    let elsewhere = lane.ctx.alloc_pd().unwrap();
    let region = lane.region(&elsewhere, 0x1000, 0x5a, OPEN).unwrap();
    let whole = probe(&mut lane, &region).unwrap();
    assert_eq!(probe(&mut lane, &region).unwrap(), whole);
    let way = Way { own: ip(0, 5).into(), other: ip(1, 5).into(), mac: mac(1) };
    lane.befriend(5, &way, &lane.pd).unwrap();
    lane.receive(first(&lane, &way, 1, 0, (region.addr(), region.rkey().into())));
    (0..PACE * 5).for_each(|_| drop(lane.step()));
    let less = probe(&mut lane, &region).unwrap();
    assert_eq!((less.targets + 1, less.kept + 1, less.frames), (whole.targets, whole.kept, whole.frames));
    lane.ctx.clear_uet_peer(5).unwrap();
    assert_eq!(probe(&mut lane, &region).unwrap(), whole);
}

#[test]
fn strangers_disturb_nobody_and_are_counted() {
    let mut street = street();
    let open = Access { remote_write: true, ..Access::LOCAL_WRITE };
    let region = |pd: &Pd, access| -> MemoryRegion { pd.register(vec![0x5a; 0x1000].into_boxed_slice(), access).unwrap() };
    let (from, to, closed) = (region(&street.hosts[0].pd, Access::LOCAL_WRITE), region(&street.hosts[1].pd, open), region(&street.hosts[1].pd, Access::LOCAL_WRITE));
    let elsewhere = street.hosts[1].ctx.alloc_pd().unwrap();
    let theirs = region(&elsewhere, open);
    let keys = [(theirs.addr(), theirs.rkey()), (closed.addr(), closed.rkey()), (to.addr(), to.rkey() ^ 0x80), (to.addr() + 0x1000 - 39, to.rkey()), (to.addr() - 1, to.rkey())];
    let text: Vec<u8> = (0..0x1000).map(|i| (i * 7 + i / 251) as u8).collect();
    from.write(0, &text);
    let write = |tag: u32| UetWrite {
        peer: 0,
        ordered: false,
        length: BYTES as u32,
        addr: from.addr() + u64::from(tag) * 41 % 0xf00,
        lkey: from.lkey(),
        raddr: to.addr() + u64::from(tag) % 64 * BYTES as u64,
        rkey: to.rkey().into(),
        tag,
    };
    // Two good messages: the PDC is open, and the second one's frame is known.
    street.world.lock().unwrap().trace = Some(Vec::new());
    for tag in 0..2 {
        street.hosts[0].ctx.uet_write(&write(tag));
        assert_eq!(street.end(0), UetEnd { tag, why: 0, code: DONE });
    }
    let trace = street.world.lock().unwrap().trace.take().unwrap();
    let good = trace.iter().rfind(|e| e.card == 1 && e.kind == Kind::RxBeat && e.last && e.head.len() == SES + 44 + BYTES).unwrap().head.clone();
    assert_eq!((&good[IP + 12..IP + 16], &good[UDP + 2..UDP + 4]), (&ip(0, 0)[..], &4793u16.to_be_bytes()[..]));
    let before = street.counters(1);
    let mut tag = 2;
    for n in 0..EACH {
        for kind in 0..KINDS.len() {
            street.hosts[0].ctx.uet_write(&write(tag));
            street.world.lock().unwrap().cards[1].receive(forged(kind, n, &good, &keys));
            street.run(PACE);
            assert_eq!(street.end(0), UetEnd { tag, why: 0, code: DONE }, "beside {}", KINDS[kind].0);
            let at = (tag as usize * 41) % 0xf00;
            assert!(to.to_vec(tag as usize % 64 * BYTES, BYTES) == text[at..at + BYTES]);
            tag += 1;
        }
    }
    street.run(20_000);
    let after = street.counters(1);
    let moved = |name: &str| after[name] - before[name];
    let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
    KINDS.iter().for_each(|(_, counter)| *expected.entry(counter).or_default() += EACH);
    let found: BTreeMap<&str, u64> = expected.keys().map(|name| (*name, moved(name))).collect();
    assert_eq!(found, expected, "{:?}", after.iter().filter(|(name, value)| **value > before[*name]).collect::<Vec<_>>());
    // Each frame is in one counter of the intake, each of a peer in one of the parser.
    let of_parser = after.keys().filter(|name| name.starts_with("uet.uet_rx") && *name != "uet.uet_rx_reserved");
    assert_eq!(of_parser.map(|name| moved(name)).sum::<u64>(), moved("uet.uet_frames"));
    let good_frames = u64::from(tag) - 2;
    let thrown = EACH * KINDS.len() as u64;
    assert_eq!(moved("uet.uet_frames") + moved("uet.uet_stranger") + moved("uet.uet_bad_ip"), good_frames + thrown);
    assert_eq!(moved("uet.uet_placed"), good_frames);
    // No byte but those of the good messages.
    assert!([&closed, &theirs].iter().all(|region| region.to_vec(0, 0x1000).iter().all(|byte| *byte == 0x5a)));
    assert!(to.to_vec(64 * BYTES, 0x1000 - 64 * BYTES).iter().all(|byte| *byte == 0x5a));
    assert_eq!(["uet.uet_failed", "uet.uet_unsent"].map(|name| street.counters(0)[name]), [0, 0]);
    assert_eq!(street.hosts[0].ends.poll(), None);
}

/// A peer that opens one PDC after another, as many as the pool has and more, never closes one and never clears what is kept for it: it has its share and no more, each new one in the place of its oldest, and the
/// good peer opens what it needs meanwhile.
#[test]
fn a_peer_that_opens_pdcs_without_end_shuts_nobody_out() {
    const FLOOD: u64 = 80;
    const SHARE: u64 = 5;
    let mut street = street();
    let open = Access { remote_write: true, ..Access::LOCAL_WRITE };
    let region = |pd: &Pd, access| -> MemoryRegion { pd.register(vec![0x5a; 0x1000].into_boxed_slice(), access).unwrap() };
    let (from, to) = (region(&street.hosts[0].pd, Access::LOCAL_WRITE), region(&street.hosts[1].pd, open));
    from.write(0, &[0xa5; 0x1000]);
    let write = |tag: u32, ordered: bool| UetWrite {
        peer: 0,
        ordered,
        length: BYTES as u32,
        addr: from.addr(),
        lkey: from.lkey(),
        raddr: to.addr() + u64::from(tag) * BYTES as u64,
        rkey: to.rkey().into(),
        tag,
    };
    street.world.lock().unwrap().trace = Some(Vec::new());
    street.hosts[0].ctx.uet_write(&write(0, false));
    assert_eq!(street.end(0), UetEnd { tag: 0, why: 0, code: DONE });
    let trace = street.world.lock().unwrap().trace.take().unwrap();
    let good = trace.iter().rfind(|e| e.card == 1 && e.kind == Kind::RxBeat && e.last && e.head.len() == SES + 44 + BYTES).unwrap().head.clone();
    let before = street.counters(1);
    // The same packet by another peer, for a PDC of its own each time, and with a key that is none: what is answered has to be kept.
    let flood = |n: u64| {
        let prologue = u16::from_be_bytes([good[PDS], good[PDS + 1]]);
        let frame = with(&good, PDS, &(prologue & !0x7f | 0x0c).to_be_bytes());
        let frame = with(&with(&frame, PDS + 2, &[0, 0]), PDS + 4, &(0x0200_0000 + 0x1000 * n as u32).to_be_bytes());
        let frame = with(&with(&frame, PDS + 8, &(0x7000 + n as u16).to_be_bytes()), PDS + 10, &[0, 0]);
        let frame = with(&frame, SES + 24, &u64::from(to.rkey() ^ 0x80).to_be_bytes());
        summed(&with(&with(&frame, IP + 12, &ip(0, 1)), IP + 16, &ip(1, 1)))
    };
    let mut tag = 1;
    for n in 0..FLOOD {
        street.world.lock().unwrap().cards[1].receive(flood(n));
        street.run(PACE);
        // The first of these by ROD opens a PDC when the other peer would have the pool.
        if n % 10 == 9 && n > 15 {
            for ordered in [true, false] {
                street.hosts[0].ctx.uet_write(&write(tag, ordered));
                assert_eq!(street.end(0), UetEnd { tag, why: 0, code: DONE }, "behind {n} PDCs of another");
                tag += 1;
            }
        }
    }
    street.run(2000);
    let after = street.counters(1);
    let moved = |name: &str| after[&format!("uet.uet_{name}")] - before[&format!("uet.uet_{name}")];
    assert_eq!(["pdc_accepted", "pdc_ousted", "pdc_failed", "pdc_no_room", "refused", "placed"].map(moved), [FLOOD + 1, FLOOD - SHARE, FLOOD - SHARE, 0, FLOOD, u64::from(tag) - 1]);
    assert!(to.to_vec(0, tag as usize * BYTES).iter().all(|byte| *byte == 0xa5) && to.to_vec(tag as usize * BYTES, 0x1000 - tag as usize * BYTES).iter().all(|byte| *byte == 0x5a));
}
