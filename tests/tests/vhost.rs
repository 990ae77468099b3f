//! `ferric vhost-user`: a front end of our own in QEMU's place, a card that is served, and another card at the other end of its wire. With QEMU: `./scripts/vm-test vhost`.
#[path = "vhost/faults.rs"]
mod faults;
#[path = "vhost/front.rs"]
mod front;
#[path = "vhost/life.rs"]
mod life;
#[path = "vhost/offload.rs"]
mod offload;
#[path = "vhost/packed.rs"]
mod packed;

use ferric_cli::raw::Port;
use ferric_cli::vhost::bridge::{Bridge, Counts};
use ferric_driver::types::Mac;
use ferric_driver::{Config, Context};
use ferric_sim::pci::{listen, Endpoint, ServeConfig, Server};
use ferric_sim::wire::WireConfig;
use ferric_sim::{Body, CardConfig, LinkConfig};
use ferric_tests::served::{alone, open, scratch};
use front::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;

const OURS: Mac = Mac([0x52, 0x54, 0, 0, 0, 1]);
const PEER: Mac = Mac([0x52, 0x54, 0, 0, 0, 2]);

/// Two served cards on a wire: a bridge on one, a port on the other.
struct Bench {
    peer: Port,
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    live: Arc<Mutex<Counts>>,
    bridge: Option<JoinHandle<Counts>>,
    _server: Server,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    /// `frames` in each direction, with `macs`.
    fn new(body: Body, frames: usize, macs: &[Mac]) -> Self {
        let alone = alone();
        let dir = scratch();
        let cards = vec![CardConfig { body, ..ServeConfig::card(64) }; 2];
        let sockets: Vec<PathBuf> = (0..2).map(|n| dir.join(format!("card{n}.sock"))).collect();
        let endpoints = sockets.iter().zip(0..).map(|(s, card)| Endpoint { card, function: 0, socket: s.clone() }).collect();
        let config = ServeConfig { cards, endpoints, wire: WireConfig::Peer, link: LinkConfig::default(), shared: false, sriov: false, capture: None, seed: 1 };
        let server = Server::start(&config).unwrap();
        let context = |n: usize| Context::open(open(&sockets[n]), Config::default()).unwrap();
        let peer = Port::open(&context(1), 256, &[]).unwrap();
        let (socket, stop, macs, ctx) = (dir.join("vhost.sock"), Arc::new(AtomicBool::new(false)), macs.to_vec(), context(0));
        let (listener, over) = (listen(&socket).unwrap(), stop.clone());
        let mut bridge = Bridge::new(Port::open(&ctx, frames, &macs).unwrap(), &macs);
        let live = bridge.live();
        let bridge = std::thread::spawn(move || {
            ferric_cli::vhost::serve(&mut bridge, &ctx, &listener, &|| over.load(Ordering::Relaxed)).unwrap();
            bridge.counts
        });
        Self { peer, socket, stop, live, bridge: Some(bridge), _server: server, _alone: alone }
    }

    fn twins() -> Self {
        Self::new(Body::Twin, 64, &[])
    }

    /// The next frame that the other card gets.
    fn heard(&mut self) -> Vec<u8> {
        let (until, mut frame) = (Instant::now() + PATIENCE, Vec::new());
        while self.peer.receive(&mut frame).unwrap().is_none() {
            assert!(Instant::now() < until, "no frame has come: {:?}", self.live.lock().unwrap());
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        self.peer.flush();
        // The card has the buffer again: a register's answer comes behind doorbells.
        self.peer.context().device().read32(ferric_abi::csr::TICK);
        frame
    }

    /// Waits until the bridge has counted something.
    fn counted(&self, what: &str, is: impl Fn(&Counts) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is(&self.live.lock().unwrap()) {
            assert!(Instant::now() < until, "{what}: {:?}", self.live.lock().unwrap());
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// The other card sends.
    fn say(&mut self, frame: &[u8]) {
        assert!(self.peer.send(frame).unwrap());
        self.peer.flush();
    }

    /// Ends the bridge: what it has counted.
    fn end(mut self) -> Counts {
        self.stop.store(true, Ordering::Relaxed);
        self.bridge.take().unwrap().join().unwrap()
    }
}

/// Frame number `n` of `length` bytes.
fn frame(to: Mac, from: Mac, n: usize, length: usize) -> Vec<u8> {
    let head = [&to.0[..], &from.0, &[0x88, 0xb5]].concat();
    head.into_iter().chain((0..).map(|i: usize| (i * 7 + n * 13 + i / 256) as u8)).take(length).collect()
}

/// As it leaves the card: filled up to 60 bytes.
fn filled(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Frames of these lengths, both ways, over rings with these features.
fn both_ways(bench: &mut Bench, features: u64, lengths: &[usize]) {
    let mut front = Front::start(&bench.socket, features, 16);
    for (n, length) in lengths.iter().enumerate() {
        let out = frame(PEER, OURS, n, *length);
        front.send(n as u16 % 16, &[0; HEADER], &out);
        front.kick(TX);
        assert_eq!(front.used(TX), (n as u32 % 16, 0));
        assert!(bench.heard() == filled(out), "{length} bytes out, features {features:#x}");
        let back = filled(frame(OURS, PEER, n + 100, *length));
        front.receive_into(n as u16 % 16, 0x3000);
        bench.say(&back);
        let (head, written) = front.used(RX);
        assert_eq!((head, written), (n as u32 % 16, (HEADER + back.len()) as u32));
        let came = front.at(Front::buffer(head as u16), written as usize);
        assert_eq!(came[..HEADER], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert!(came[HEADER..] == back, "{length} bytes in, features {features:#x}");
    }
}

#[test]
fn frames_go_both_ways() {
    let mut bench = Bench::twins();
    let lengths = [14, 42, 59, 60, 61, 1514, 4096, 8190, 8191];
    let kinds = [PLAIN, PLAIN | MERGES, PLAIN | MERGES | TABLES | EVENTS, PLAIN | EVENTS, PLAIN | PACKED, PLAIN | PACKED | MERGES | EVENTS | IN_ORDER];
    kinds.iter().for_each(|features| both_ways(&mut bench, *features, &lengths));
    let counts = bench.end();
    let n = (lengths.len() * kinds.len()) as u64;
    assert_eq!(counts, Counts { sent: n, received: n, connections: kinds.len() as u64, ..Default::default() });
}

/// With room for one frame at a time, so that those of a burst wait in the guest's ring: none is lost or overtaken.
#[test]
fn frames_go_through_gateware() {
    let mut bench = Bench::new(Body::Gateware, 1, &[OURS]);
    both_ways(&mut bench, PLAIN | MERGES | TABLES | EVENTS, &[60, 1514]);
    let mut front = Front::start(&bench.socket, PLAIN | EVENTS, 32);
    burst(&mut bench, &mut front, 32);
    let counts = bench.end();
    assert!(counts.waits > 0, "{counts:?}");
    assert_eq!(Counts { waits: 0, ..counts }, Counts { sent: 34, received: 2, connections: 2, ..Default::default() });
}

/// Frames that are made available at once, each of its own length and in its own place.
fn burst(bench: &mut Bench, front: &mut Front, frames: usize) {
    for n in 0..frames {
        front.put(BUFFERS + n * 256, &[&[0; HEADER][..], &frame(PEER, OURS, n, 100 + n)].concat());
        front.describe(TX, n as u16, GUEST + (BUFFERS + n * 256) as u64, (HEADER + 100 + n) as u32, 0, 0);
        front.offer(TX, n as u16);
    }
    front.kick(TX);
    for n in 0..frames {
        assert!(bench.heard() == frame(PEER, OURS, n, 100 + n), "frame {n}");
        assert_eq!(front.used(TX), (n as u32, 0));
    }
}

/// A driver of the time before VERSION_1 has 10 bytes in front of its frames.
#[test]
fn an_old_driver_has_a_short_header() {
    let mut bench = Bench::twins();
    let mut front = Front::start(&bench.socket, PROTOCOL, 16);
    let out = frame(PEER, OURS, 1, 100);
    front.send(0, &[0; 10], &out);
    front.kick(TX);
    assert!(bench.heard() == out);
    front.receive_into(3, 200);
    bench.say(&out);
    assert_eq!(front.used(RX), (3, 110));
    assert!(front.at(Front::buffer(3), 110)[10..] == out);
    assert_eq!(bench.end(), Counts { sent: 1, received: 1, connections: 1, ..Default::default() });
}

/// Only what is for the guest reaches it, and it sends as nobody else.
#[test]
fn addresses_are_kept() {
    let mut bench = Bench::new(Body::Twin, 64, &[OURS]);
    let mut front = Front::start(&bench.socket, PLAIN, 16);
    (0..4).for_each(|n| front.receive_into(n, 2000));
    let group = frame(Mac([0xff; 6]), PEER, 2, 64);
    bench.say(&frame(Mac([2, 0, 0, 0, 0, 9]), PEER, 1, 64));
    bench.say(&group);
    assert_eq!(front.used(RX).0, 0);
    assert!(front.at(Front::buffer(0), 76)[HEADER..] == group);
    front.send(0, &[0; HEADER], &frame(PEER, Mac([2, 0, 0, 0, 0, 9]), 3, 64));
    front.send(1, &[0; HEADER], &frame(PEER, OURS, 4, 64));
    front.kick(TX);
    assert!(bench.heard() == frame(PEER, OURS, 4, 64));
    assert_eq!(bench.end(), Counts { sent: 1, sent_foreign: 1, received: 1, connections: 1, ..Default::default() });
}

/// A frame takes as many buffers as it needs, which come all at once.
#[test]
fn buffers_are_merged() {
    [0, PACKED].into_iter().for_each(merged_into_buffers);
}

fn merged_into_buffers(kind: u64) {
    let mut bench = Bench::twins();
    let mut front = Front::start(&bench.socket, PLAIN | MERGES | kind, 16);
    for (n, bytes) in [1500, 12, 3000, 1, 4000, 500].into_iter().enumerate() {
        front.receive_into(n as u16, bytes);
    }
    let big = frame(OURS, PEER, 1, 8191);
    bench.say(&big);
    let used: Vec<(u32, u32)> = (0..5).map(|_| front.used(RX)).collect();
    assert_eq!(used, [(0, 1500), (1, 12), (2, 3000), (3, 1), (4, 3690)]);
    assert_eq!(front.used_now(RX), None);
    let came: Vec<u8> = used.iter().flat_map(|(head, n)| front.at(Front::buffer(*head as u16), *n as usize)).collect();
    assert_eq!(came[..HEADER], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0]);
    assert!(came[HEADER..] == big);
    // The one that is left is too small, and stays for a frame that fits.
    bench.say(&big);
    bench.say(&big[..400]);
    assert_eq!(front.used(RX), (5, 412));
    assert!(front.at(Front::buffer(5), 412)[HEADER..] == big[..400]);
    assert_eq!(bench.end(), Counts { received: 2, dropped_small: 1, connections: 1, ..Default::default() });
}

/// A chain of many parts, directly and in a table, behind a descriptor of the ring, too.
#[test]
fn chains_of_any_shape_are_sent() {
    let mut bench = Bench::twins();
    let mut front = Front::start(&bench.socket, PLAIN | TABLES, 16);
    let out = frame(PEER, OURS, 1, 700);
    let bytes = [&[0; HEADER][..], &out].concat();
    let at = BUFFERS + 5;
    front.put(at, &bytes);
    let parts = [(0, 7), (7, 0), (7, 6), (13, 600), (613, bytes.len() as u32 - 613)];
    let part = |n: usize| (GUEST + at as u64 + parts[n].0, parts[n].1, if n + 1 < parts.len() { NEXT } else { 0 });
    for n in 0..parts.len() {
        let (address, length, flags) = part(n);
        front.describe(TX, 9 - n as u16, address, length, flags, 8 - n as u16);
    }
    front.offer(TX, 9);
    // In a table, which is not aligned.
    let table = BUFFERS + 0x9001;
    for n in 0..parts.len() {
        let (address, length, flags) = part(n);
        front.put(table + 16 * n, &Front::descriptor(address, length, flags, n as u16 + 1));
    }
    front.describe(TX, 1, GUEST + table as u64, 16 * parts.len() as u32, INDIRECT, 0);
    front.offer(TX, 1);
    // The first part in the ring, the others in the table.
    let (address, length, flags) = part(0);
    front.describe(TX, 2, address, length, flags, 3);
    for n in 1..parts.len() {
        let (address, length, flags) = part(n);
        front.put(table + 0x1000 + 16 * (n - 1), &Front::descriptor(address, length, flags, n as u16));
    }
    front.describe(TX, 3, GUEST + table as u64 + 0x1000, 16 * (parts.len() as u32 - 1), INDIRECT, 0);
    front.offer(TX, 2);
    front.kick(TX);
    for head in [9, 1, 2] {
        assert_eq!(front.used(TX), (head, 0));
        assert!(bench.heard() == out, "chain {head}");
    }
    assert_eq!(bench.end(), Counts { sent: 3, connections: 1, ..Default::default() });
}
