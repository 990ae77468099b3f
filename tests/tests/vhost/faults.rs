//! What a guest, or its front end, does wrong.
use super::*;
use ferric_tests::served::Ferric;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;

const FERRIC: &str = env!("CARGO_BIN_EXE_ferric-under-test");

/// A good frame passes, whatever has been before.
fn passes(bench: &mut Bench, front: &mut Front, what: &str) {
    let out = frame(PEER, OURS, 77, 90);
    front.send(15, &[0; HEADER], &out);
    front.kick(TX);
    assert_eq!(front.used(TX), (15, 0), "{what}");
    assert!(bench.heard() == out, "{what}");
}

/// Chains of the send ring with a fault go back, each is counted by its cause, and the ring goes on.
#[test]
fn chains_with_a_fault_go_back() {
    let mut bench = Bench::twins();
    let mut front = Front::start(&bench.socket, PLAIN | TABLES, 16);
    let good = Front::buffer(0);
    let outside = GUEST + BYTES as u64;
    let mut bad = |what: &str, list: &[(u64, u32, u16, u16)]| {
        for (n, (at, length, flags, next)) in list.iter().enumerate() {
            front.describe(TX, n as u16, *at, *length, *flags, *next);
        }
        front.offer(TX, 0);
        front.kick(TX);
        assert_eq!(front.used(TX), (0, 0), "{what}");
        passes(&mut bench, &mut front, what);
    };
    bad("outside of memory", &[(outside, 100, 0, 0)]);
    bad("over the end of memory", &[(outside - 50, 100, 0, 0)]);
    bad("over the end of all addresses", &[(u64::MAX - 50, 100, 0, 0)]);
    bad("at nothing", &[(0, 100, 0, 0)]);
    bad("to be written", &[(good, 100, WRITE, 0)]);
    bad("to be written, behind one to be read", &[(good, 100, NEXT, 1), (good, 100, WRITE, 0)]);
    bad("in a loop", &[(good, 100, NEXT, 0)]);
    bad("next beyond the ring", &[(good, 100, NEXT, 16)]);
    bad("a table outside of memory", &[(outside, 32, INDIRECT, 0)]);
    bad("a table of a crooked length", &[(good, 33, INDIRECT, 0)]);
    bad("a table of nothing", &[(good, 0, INDIRECT, 0)]);
    bad("more than all bytes", &[(good, u32::MAX, NEXT, 1), (good, u32::MAX, 0, 0)]);
    front.put(BUFFERS, &Front::descriptor(good, 32, INDIRECT, 0));
    let mut bad = |what: &str, at: u64, length: u32, flags: u16| {
        front.describe(TX, 0, at, length, flags, 0);
        front.offer(TX, 0);
        front.kick(TX);
        assert_eq!(front.used(TX), (0, 0), "{what}");
        passes(&mut bench, &mut front, what);
    };
    bad("a table in a table", good, 32, INDIRECT);
    bad("no bytes", good, 0, 0);
    bad("a header alone", good, 12, 0);
    bad("less than an Ethernet header", good, 25, 0);
    bad("more than the card carries", good, 12 + 8192, 0);
    bad("more than that by far", good, 1 << 20, 0);
    for (n, (flags, gso)) in [(1, 0), (0, 1), (1, 3), (0, 0x84)].into_iter().enumerate() {
        front.send(n as u16, &[flags, gso, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &frame(PEER, OURS, n, 100));
        front.kick(TX);
        assert_eq!(front.used(TX).0, n as u32);
        passes(&mut bench, &mut front, "what was not offered");
    }
    let counts = bench.end();
    assert_eq!(counts, Counts { sent: 22, sent_bad: 14, sent_short: 3, sent_long: 1, sent_offload: 4, connections: 1, ..Default::default() });
}

/// A head beyond the ring is skipped. An index that jumps breaks its ring, which the front end can start again.
#[test]
fn rings_that_say_what_cannot_be() {
    let mut bench = Bench::twins();
    let mut front = Front::start(&bench.socket, PLAIN, 16);
    front.offer(TX, 16);
    front.offer(TX, u16::MAX);
    passes(&mut bench, &mut front, "heads beyond the ring");
    let there = front.available(TX);
    front.index(TX, there.wrapping_add(17));
    front.kick(TX);
    // The receive ring does not care.
    front.receive_into(0, 2000);
    bench.say(&frame(OURS, PEER, 1, 64));
    assert_eq!(front.used(RX), (0, 76));
    front.send(3, &[0; HEADER], &frame(PEER, OURS, 2, 64));
    front.kick(TX);
    bench.counted("an index that jumps", |c| c.broken_rings == 1);
    assert_eq!(front.used_now(TX), None);
    front.stop(TX);
    front.forget(TX);
    front.begin(TX, 16);
    passes(&mut bench, &mut front, "a ring that was started again");
    // The same for the receive ring.
    front.index(RX, 999);
    bench.say(&frame(OURS, PEER, 3, 64));
    bench.counted("an index that jumps, of the receive ring", |c| c.broken_rings == 2);
    passes(&mut bench, &mut front, "beside a broken receive ring");
    front.stop(RX);
    front.forget(RX);
    front.begin(RX, 16);
    front.receive_into(5, 2000);
    bench.say(&frame(OURS, PEER, 4, 64));
    assert_eq!(front.used(RX), (5, 76));
    let counts = bench.end();
    assert_eq!((counts.sent, counts.sent_bad, counts.received, counts.dropped_no_driver, counts.broken_rings), (3, 2, 2, 1, 2), "{counts:?}");
}

/// Receive buffers with a fault go back empty. A frame that meets one outside of memory is dropped; chains that are none are passed over.
#[test]
fn receive_buffers_with_a_fault_go_back() {
    let mut bench = Bench::twins();
    let mut front = Front::start(&bench.socket, PLAIN, 16);
    let outside = GUEST + BYTES as u64;
    let good = Front::buffer(9);
    for (n, (at, length, flags)) in [(outside, 2000, WRITE), (outside - 40, 2000, WRITE), (good, 2000, 0), (good, 2000, WRITE | NEXT)].into_iter().enumerate() {
        front.describe(RX, 0, at, length, flags, 16);
        front.offer(RX, 0);
        bench.say(&frame(OURS, PEER, n, 64));
        assert_eq!(front.used(RX), (0, 0));
    }
    // Too small, and no merging: it stays, and takes what fits.
    front.receive_into(1, 100);
    bench.say(&frame(OURS, PEER, 8, 89));
    bench.say(&frame(OURS, PEER, 9, 88));
    assert_eq!(front.used(RX), (1, 100));
    assert!(front.at(Front::buffer(1), 100)[HEADER..] == frame(OURS, PEER, 9, 88));
    assert_eq!(bench.end(), Counts { received: 1, received_bad: 2, dropped_bad: 2, dropped_no_buffer: 2, dropped_small: 1, connections: 1, ..Default::default() });
}

/// A front end that asks for what is not offered, or talks nonsense, is sent away, and the next one is served.
#[test]
fn front_ends_are_sent_away() {
    let mut bench = Bench::twins();
    let gone = |front: &mut Front| assert!(front.wire.get_features().is_err());
    let fresh = || {
        let mut front = Front::connect(&bench.socket);
        front.greet(PLAIN);
        front
    };
    for bit in [7, 10, 14, 22, 26, 40, 60] {
        let mut front = Front::connect(&bench.socket);
        front.wire.set_owner().unwrap();
        let offered = front.wire.get_features().unwrap();
        assert_eq!(offered >> bit & 1, 0, "feature {bit}");
        _ = front.wire.set_features(offered | 1 << bit);
        gone(&mut front);
    }
    for size in [0, 100, 2048, u16::MAX] {
        let mut front = fresh();
        assert!(front.wire.set_vring_num(TX, size).is_err(), "{size}");
        gone(&mut front);
    }
    for descriptors in [0, 0x7000_0000_0008, 0x7000_0000_0000 + BYTES as u64, u64::MAX] {
        let mut front = fresh();
        let config =
            VringConfigData { queue_max_size: 16, queue_size: 16, flags: 0, desc_table_addr: descriptors, used_ring_addr: 0x7000_0000_1000, avail_ring_addr: 0x7000_0000_2000, log_addr: None };
        assert!(front.wire.set_vring_addr(TX, &config).is_err(), "{descriptors:#x}");
        gone(&mut front);
    }
    // Bytes of anything.
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..50 {
        let mut stream = UnixStream::connect(&bench.socket).unwrap();
        let mut bytes = vec![0; random.gen_range(1..300)];
        random.fill(&mut bytes[..]);
        if random.gen() {
            // A message as far as its head says.
            let n = bytes.len().min(200) as u32;
            bytes.splice(..0, [random.gen_range(1u32..45), 1, n].into_iter().flat_map(u32::to_le_bytes));
        }
        _ = stream.write_all(&bytes);
    }
    let mut front = Front::start(&bench.socket, PLAIN, 16);
    passes(&mut bench, &mut front, "after all those");
    // Half of a message keeps nobody from ending.
    drop(front);
    let mut stream = UnixStream::connect(&bench.socket).unwrap();
    stream.write_all(&[1, 0, 0]).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let begun = Instant::now();
    let counts = bench.end();
    assert!(begun.elapsed() < PATIENCE / 4, "{:?}", begun.elapsed());
    assert!(counts.rejected_connections >= 14, "{counts:?}");
    assert_eq!(counts.sent, 1);
}

/// Memory of anything as rings, both ways: nothing panics, nothing stands, and the bridge is as good as new for the next guest.
#[test]
fn rings_of_anything() {
    let mut bench = Bench::twins();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for round in 0..60 {
        let features = [PLAIN, PLAIN | MERGES, PLAIN | TABLES | CSUM | TSO, PLAIN | MERGES | TABLES | EVENTS][round % 4] | if round % 8 < 4 { 0 } else { PACKED };
        let mut front = Front::start(&bench.socket, features, 16);
        for _ in 0..random.gen_range(1..20) {
            let ring = random.gen_range(0..2);
            for n in 0..16 {
                let at = [GUEST, Front::buffer(n), GUEST + BYTES as u64 - 100, random.gen()][random.gen_range(0..4)] + random.gen_range(0..64);
                front.describe(ring, n, at, [64, 1500, 16, 48, random.gen()][random.gen_range(0..5)], random.gen_range(0..8), random.gen_range(0..18));
            }
            for _ in 0..random.gen_range(0..16) {
                front.offer(ring, random.gen_range(0..17));
            }
            if front.features & PACKED != 0 && random.gen_range(0..3) == 0 {
                let mut bytes = [0; 256];
                random.fill(&mut bytes[..]);
                front.put(front.areas(ring)[0], &bytes);
            }
            if random.gen_range(0..20) == 0 {
                front.index(ring, random.gen());
            }
            front.kick(ring);
            _ = bench.peer.send(&frame(OURS, PEER, round, random.gen_range(60..3000)));
            bench.peer.flush();
            // Between two answers is a turn.
            (0..2).for_each(|_| _ = front.wire.get_features().unwrap());
        }
    }
    let mut front = Front::start(&bench.socket, PLAIN, 16);
    let out = frame(PEER, OURS, 77, 91);
    front.send(15, &[0; HEADER], &out);
    front.kick(TX);
    while bench.heard() != out {}
    let counts = bench.end();
    assert_eq!((counts.connections, counts.rejected_connections), (61, 0), "{counts:?}");
    assert!(counts.sent_bad > 50 && counts.broken_rings > 5, "{counts:?}");
}

/// The command says what to do where it cannot; it ends at a signal, with its counts.
#[test]
fn the_command_says_what_to_do() {
    let _alone = alone();
    let dir = scratch();
    let [card, vf, socket] = ["card.sock", "vf.sock", "vhost.sock"].map(|name| dir.join(name).to_str().unwrap().to_string());
    let mut server = Ferric::start(FERRIC, &["card", "serve", "--twin", "--socket", &card, "--vf-socket", &vf]);
    server.line("ready");
    let refusal = |args: &[&str]| {
        let o = Command::new(FERRIC).arg("vhost-user").args(args).output().unwrap();
        assert!(!o.status.success(), "{args:?} should fail");
        String::from_utf8_lossy(&o.stderr).into_owned()
    };
    for (args, say) in [
        (&[&vf, "--socket", &socket][..], "vhost-user: --mac"),
        (&[&vf, "--socket", &socket, "--mac", "52:54:00:00:00:01"], "take function 0"),
        (&[&card, "--socket", &socket, "--mac", "01:00:5e:00:00:01"], "address of a group"),
        (&[&card, "--socket", &socket, "--mac", "52:54"], "not a MAC address"),
        (&["/nowhere/card.sock", "--socket", &socket], "start a server"),
        (&[&card, "--socket", &card], "another process serves there"),
        (&[&card, "--socket", &socket, "--frames", "0"], "0 is not in 1..=4096"),
    ] {
        let said = refusal(args);
        assert!(said.contains(say), "{args:?}: {said}");
    }
    let mut bridge = Ferric::start(FERRIC, &["vhost-user", &card, "--socket", &socket, "--mac", "52:54:00:00:00:01", "--json"]);
    bridge.line("ready");
    drop(Front::start(std::path::Path::new(&socket), PLAIN, 16));
    let mut front = Front::start(std::path::Path::new(&socket), PLAIN, 16);
    front.send(0, &[0; HEADER], &frame(PEER, OURS, 0, 100));
    front.kick(TX);
    assert_eq!(front.used(TX), (0, 0));
    bridge.signal(libc::SIGTERM);
    let counts: serde_json::Value = serde_json::from_str(&bridge.line("{")).unwrap();
    assert_eq!((&counts["sent"], &counts["connections"]), (&1.into(), &2.into()), "{counts}");
    assert!(bridge.finish());
    assert!(!std::path::Path::new(&socket).exists());
}
