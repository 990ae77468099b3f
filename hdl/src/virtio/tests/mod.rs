//! The whole engine between drivers and a host that answers out of order.
mod driver;
mod host;
mod lives;
mod merged;
mod offload;
mod packed;
mod packed_ring;

use super::engine::{engine, steered, TELLERS};
use super::testing::Guest;
use crate::msg::{CtlReq, CtlResp, MsixReq, VqNotify, VqTold};
use crate::tb::{AxisSink, AxisSource, Fields, Sink, Source, Tb};
use driver::{Kind, Ring};
use ferric_abi::codes::VirtioCause;
use ferric_abi::context::{VqAvail, VqUsed};
use ferric_abi::virtio::SplitDesc;
use host::Host;
use std::collections::BTreeMap;

const HEADER: usize = 12;

/// The engine, its host, and who uses it.
struct Bench {
    tb: Tb,
    host: Host,
    guest: Guest,
    notify: Source,
    to: Source,
    frames_in: AxisSource,
    frames_out: AxisSink,
    /// Whose frames leave; the queue of that which leaves next, if it is known.
    from: Sink,
    leaving: Option<u16>,
    interrupts: Sink,
    control: [(Source, Sink); 2],
    /// Rejects by queue and cause.
    told: BTreeMap<(u64, u8), u64>,
    delivered: u64,
    rings: Vec<Ring>,
    /// Frames that left, by queue.
    left: BTreeMap<u16, u64>,
    /// Frames that came for each queue.
    offered: BTreeMap<u16, Vec<Vec<u8>>>,
}

impl Bench {
    fn new(width: usize, seed: u64, stall: u32) -> Self {
        let block = engine(width).assemble().unwrap_or_else(|faults| panic!("{}", faults.join("\n")));
        let mut tb = Tb::with_seed(&format!("virtio_engine_w{width}"), block, seed);
        let host = Host::new(&mut tb, width as u64 / 8, (20, 120), stall);
        let (notify, to) = (tb.source("s_notify", stall), tb.source("s_to", stall));
        let (frames_in, frames_out) = (tb.axis_source("s_frame", stall), tb.axis_sink("m_frame", stall));
        let from = tb.sink("m_from", stall);
        let interrupts = tb.sink("m_msix", stall);
        let control = ["avail", "used"].map(|name| (tb.source(&format!("s_{name}"), stall), tb.sink(&format!("m_{name}"), stall)));
        // Until all tables are clear.
        tb.run(600);
        Self {
            tb,
            host,
            guest: Guest::default(),
            notify,
            to,
            frames_in,
            frames_out,
            from,
            leaving: None,
            interrupts,
            control,
            told: BTreeMap::new(),
            delivered: 0,
            rings: Vec::new(),
            left: BTreeMap::new(),
            offered: BTreeMap::new(),
        }
    }

    fn cycle(&mut self) {
        let now = self.tb.cycles();
        self.host.step(now, &mut self.guest);
        self.tb.begin();
        let layout = Fields::of::<VqTold>();
        for block in TELLERS {
            if self.tb.get(&format!("{block}_told_valid")) == 1 {
                let words = self.tb.get_wide(&format!("{block}_told"));
                *self.told.entry((layout.get(&words, "queue") as u64, layout.get(&words, "cause") as u8)).or_default() += 1;
            }
        }
        self.delivered += self.tb.get("delivered");
        self.tb.end();
    }

    fn told(&self, queue: u16, cause: VirtioCause) -> u64 {
        self.told.get(&(queue.into(), cause as u8)).copied().unwrap_or_default()
    }

    fn access(&mut self, table: usize, line: u16, word: u32, write: Option<u32>) -> u32 {
        let fields = [("line", u128::from(line)), ("word", word.into()), ("write", write.is_some().into()), ("data", write.unwrap_or(0).into())];
        self.control[table].0.push(Fields::of::<CtlReq>().pack(&fields));
        for _ in 0..100_000 {
            self.cycle();
            if let Some(answer) = self.control[table].1.pop() {
                assert_eq!(Fields::of::<CtlResp>().get(&answer, "err"), 0, "line {line} of table {table}");
                return Fields::of::<CtlResp>().get(&answer, "data") as u32;
            }
        }
        panic!("table {table} does not answer");
    }

    /// Writes a line, the word with `enabled` last.
    fn write_line(&mut self, table: usize, line: u16, bytes: &[u8], last: usize) {
        let words = bytes.len() / 4;
        for word in (0..words).filter(|word| *word != last).chain([last]) {
            let value = bytes[4 * word..4 * word + 4].iter().rev().fold(0, |x, b| x << 8 | u32::from(*b));
            self.access(table, line, word as u32, Some(value));
        }
    }

    fn read_line(&mut self, table: usize, line: u16, bytes: usize) -> Vec<u8> {
        (0..bytes as u32 / 4).flat_map(|word| self.access(table, line, word, None).to_le_bytes()).collect()
    }

    fn avail(&mut self, line: u16) -> VqAvail {
        VqAvail(self.read_line(0, line, VqAvail::BYTES).try_into().expect("as long"))
    }

    fn used(&mut self, line: u16) -> VqUsed {
        VqUsed(self.read_line(1, line, VqUsed::BYTES).try_into().expect("as long"))
    }

    /// A queue begins. Its vector is its number.
    fn begin(&mut self, ring: Ring) {
        let [desc, driver, device] = ring.areas;
        let (function, size, receive, packed) = (ring.function, ring.size, ring.kind == Kind::Receive, ring.packed.is_some());
        let used = VqUsed::default()
            .with_driver(driver)
            .with_device(if packed { desc } else { device })
            .with_packed(packed)
            .with_wrap(packed)
            .with_size(size)
            .with_vector(ring.queue)
            .with_function(function)
            .with_events(ring.events)
            .with_enabled(true);
        self.write_line(1, ring.queue, &used.0, 6);
        let avail = VqAvail::default().with_desc(desc).with_driver(driver).with_device(device).with_size(size).with_function(function);
        let avail = avail.with_receive(receive).with_events(ring.events).with_indirect(true).with_merged(ring.merged).with_sums(ring.sums).with_packed(packed).with_wrap(packed).with_enabled(true);
        self.write_line(0, ring.queue, &avail.0, 7);
        self.rings.push(ring);
    }

    /// A queue ends: what it has in hand comes back, what is in stock is given up. Both numbers of chains.
    fn end(&mut self, queue: u16) -> (u16, u16) {
        self.stop(queue);
        for _ in 0..50 {
            for _ in 0..2000 {
                self.cycle();
            }
            if self.is_empty(queue) {
                return (self.avail(queue).taken(), self.used(queue).back());
            }
        }
        panic!("queue {queue}: {} of {} chains have come back", self.used(queue).back(), self.avail(queue).taken());
    }

    /// A queue is to end.
    fn stop(&mut self, queue: u16) {
        let word = self.access(1, queue, 6, None);
        self.access(1, queue, 6, Some(word & !1));
        let word = self.access(0, queue, 7, None);
        self.access(0, queue, 7, Some(word & !1));
        self.notify.push(Fields::of::<VqNotify>().pack(&[("queue", queue.into())]));
    }

    /// A queue that was to end has ended: its stock has been given up if it is a receive queue, and all has come back.
    fn is_empty(&mut self, queue: u16) -> bool {
        let avail = self.avail(queue);
        (avail.given_up() || !avail.receive()) && avail.taken() == self.used(queue).back()
    }

    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle();
            self.turn();
        }
    }

    /// A frame that has left, and its queue.
    fn next_left(&mut self) -> Option<(u16, Vec<u8>)> {
        let queue = self.leaving.or_else(|| self.from.pop().map(|words| Fields::of::<VqNotify>().get(&words, "queue") as u16));
        let frame = queue.and_then(|_| self.frames_out.pop());
        self.leaving = queue.filter(|_| frame.is_none());
        queue.zip(frame)
    }

    /// What drivers, network and driver's interrupts do in a cycle.
    fn turn(&mut self) {
        let layout = Fields::of::<MsixReq>();
        while let Some(words) = self.interrupts.pop() {
            let (function, vector) = (layout.get(&words, "function") as u16, layout.get(&words, "vector") as u16);
            if let Some(ring) = self.rings.iter_mut().find(|ring| ring.queue == vector) {
                assert_eq!(ring.function, function);
                ring.told = true;
            }
        }
        for n in 0..self.rings.len() {
            let ring = &mut self.rings[n];
            if ring.told && self.tb.rng().percent(10) {
                ring.collect(&mut self.guest, self.offered.get(&ring.queue).map_or(&[], |list| &list[..]));
            }
            if self.tb.rng().percent(5) {
                let ring = &mut self.rings[n];
                ring.post(self.tb.rng(), &mut self.guest);
                if ring.wants_notification(&mut self.guest) {
                    self.notify.push(Fields::of::<VqNotify>().pack(&[("queue", ring.queue.into())]));
                }
            }
        }
        while let Some((queue, frame)) = self.next_left() {
            assert_eq!(queue, u16::from_le_bytes([frame[0], frame[1]]), "the queue of a frame");
            let n = self.left.entry(queue).or_default();
            let ring = self.rings.iter_mut().find(|ring| ring.queue == queue).expect("a frame of no queue");
            assert_eq!(Some(&frame), ring.frames.get(*n as usize), "frame {n} of queue {queue}");
            *n += 1;
        }
    }

    /// A frame comes for a queue.
    fn offer(&mut self, queue: u16, length: usize) {
        let frame = self.tb.rng().bytes(length);
        self.offer_frame(queue, frame);
    }

    fn offer_frame(&mut self, queue: u16, frame: Vec<u8>) {
        self.to.push(Fields::of::<VqNotify>().pack(&[("queue", queue.into())]));
        self.frames_in.push(&frame);
        self.offered.entry(queue).or_default().push(frame);
    }

    fn dropped(&self, queue: u16) -> u64 {
        [VirtioCause::RxNoBuffer, VirtioCause::RxSmall, VirtioCause::RxDma].into_iter().map(|cause| self.told(queue, cause)).sum()
    }
}

/// Drivers of two functions send and receive until so many frames have gone each way; then every chain and frame is somewhere.
fn traffic(width: usize, seed: u64, stall: u32, frames: usize) {
    mixed(width, seed, stall, frames, [false; 4]);
}

/// The same with rings some of which are packed: those have other sizes.
fn mixed(width: usize, seed: u64, stall: u32, frames: usize, packed: [bool; 4]) {
    let mut b = Bench::new(width, seed, stall);
    for (queue, size) in [(0, 64), (1, 16), (2, 32), (3, 256)] {
        let size = if packed[usize::from(queue)] { size - 3 } else { size };
        let mut ring = Ring::new(queue, 1 + queue / 2, size, if queue % 2 == 0 { Kind::Receive } else { Kind::Transmit }, queue < 2 || seed % 2 == 0, &mut b.guest);
        ring.merged = queue == 2;
        b.begin(if packed[usize::from(queue)] { ring.packed() } else { ring });
    }
    let limit = b.tb.cycles() + 600_000 + 4000 * frames as u64;
    loop {
        b.cycle();
        b.turn();
        let offered: usize = b.offered.values().map(Vec::len).sum();
        let (queue, length) = (2 * (b.tb.rng().below(2) as u16), [60, 61, 200, 1514, 1000][b.tb.rng().below(5) as usize]);
        if offered < frames && b.tb.rng().below(700) == 0 {
            b.offer(queue, length);
        }
        for ring in &mut b.rings {
            ring.stops = ring.kind == Kind::Transmit && ring.frames.len() >= frames / 2;
        }
        let sent = b.rings.iter().filter(|r| r.kind == Kind::Transmit).all(|r| r.stops && r.returned == r.posted && b.left.get(&r.queue).copied().unwrap_or_default() == r.frames.len() as u64);
        let came = offered >= frames && [0, 2].iter().all(|q| b.rings[usize::from(*q)].received + b.dropped(*q) == b.offered.get(q).map_or(0, Vec::len) as u64);
        if sent && came {
            break;
        }
        assert!(b.tb.cycles() < limit, "{:?}", b.rings.iter().map(|r| (r.queue, r.frames.len(), r.posted, r.returned, r.received)).collect::<Vec<_>>());
    }
    let received: u64 = b.rings.iter().map(|r| r.received).sum();
    assert_eq!(received, b.delivered);
    assert!(received as usize > frames / 2, "{received} of {frames} frames were delivered");
    assert!(b.rings[2].several as usize > frames / 20, "{} frames took several chains", b.rings[2].several);
    // Nothing was rejected but frames for which there was no buffer, or not enough of them.
    let small = |queue: u64, cause: u8| queue == 2 && cause == VirtioCause::RxSmall as u8;
    assert!(b.told.keys().all(|(queue, cause)| *cause == VirtioCause::RxNoBuffer as u8 || small(*queue, *cause)), "{:?}", b.told);
    for queue in 0..4 {
        let (posted, returned) = (b.rings[usize::from(queue)].posted, b.rings[usize::from(queue)].returned);
        let (taken, back) = b.end(queue);
        assert_eq!(taken, back);
        assert!(u64::from(taken) <= posted + u64::from(queue % 2 == 0) && u64::from(back) >= returned, "queue {queue}: {posted} posted, {taken} taken, {back} back, {returned} returned");
    }
}

#[test]
fn frames_pass_both_ways_w64() {
    traffic(64, 2, 25, 300);
}

#[test]
fn frames_pass_both_ways_w512() {
    traffic(512, 3, 25, 300);
}

#[test]
fn frames_pass_without_stalls() {
    traffic(64, 4, 0, 200);
    traffic(512, 5, 0, 200);
}

/// Nobody waits for anybody who waits for him.
#[test]
fn no_circle_of_waits() {
    for list in [engine(64), steered(64)] {
        let list = list.assemble().unwrap_or_else(|faults| panic!("{}", faults.join("\n")));
        assert_eq!(crate::assembly::WaitGraph::of(&list).circle(), None);
    }
}

/// The port takes no frame: what waits to be sent holds up nobody who receives, though all share one walker. With several seeds: how far behind the walker the transmit unit is makes the difference.
#[test]
fn frames_come_while_none_can_leave() {
    [2, 3, 4, 9].into_iter().for_each(|seed| refused_by(seed, false));
}

fn refused_by(seed: u64, packed: bool) {
    let mut b = Bench::new(64, seed, 10);
    for (queue, size) in [(0, 64), (1, 256)] {
        let ring = Ring::new(queue, 1, size, if queue == 0 { Kind::Receive } else { Kind::Transmit }, true, &mut b.guest);
        b.begin(if packed { ring.packed() } else { ring });
    }
    b.frames_out.refuse();
    let limit = b.tb.cycles() + 600_000;
    while b.rings[0].received < 60 {
        b.cycle();
        b.turn();
        let offered = b.offered.values().map(Vec::len).sum::<usize>();
        if b.rings[1].posted > 20 && offered < 80 && b.tb.rng().below(2000) == 0 {
            b.offer(0, 1000);
        }
        assert!(b.tb.cycles() < limit, "{} frames have come, {} chains wait to be sent", b.rings[0].received, b.rings[1].posted);
    }
    assert!(b.left.is_empty());
}

/// Rings of anything beside a function that goes on: no hang, each reject has its cause, and afterwards the queue works.
fn hostile(width: usize, seed: u64, rounds: usize) {
    let mut b = Bench::new(width, seed, 10);
    for (queue, size) in [(0, 64), (1, 16)] {
        let ring = Ring::new(queue, 1, size, if queue == 0 { Kind::Receive } else { Kind::Transmit }, true, &mut b.guest);
        b.begin(ring);
    }
    let mut causes = BTreeMap::<u8, u64>::new();
    for round in 0..rounds {
        let queue = 2 + (round % 2) as u16;
        // Chains to be sent that no slot holds, but for that as good as any.
        let long = round % 4 == 1;
        let size = if long { 64 } else { 1u16 << b.tb.rng().below(7) };
        let mut ring = Ring::new(queue, 2, size, if queue == 2 { Kind::Receive } else { Kind::Transmit }, round % 3 == 0, &mut b.guest);
        ring.stops = true;
        let [desc, driver, device] = ring.areas;
        let before = b.left.get(&1).copied().unwrap_or_default();
        b.begin(ring);
        // Nobody drives it from here on.
        b.rings.truncate(2);
        b.guest.unmapped.clear();
        if round % 5 == 4 {
            // The available ring, the used ring or the buffers cannot be reached.
            let at = [driver, device, 0xdead_0000][round / 5 % 3];
            b.guest.unmapped.insert(at >> 12);
        }
        for i in 0..u64::from(size) {
            let rng = b.tb.rng();
            let d = SplitDesc::default().with_addr(0xdead_0000 + rng.below(9000)).with_length([0, 12, 26, 40, 300, 2000, 1 << 20][rng.below(7) as usize]);
            let d = if long {
                d.with_length(2000).with_has_next(rng.percent(92)).with_next((i + 1) as u16 % size)
            } else {
                d.with_has_next(rng.percent(50)).with_next(rng.below(u64::from(size) + 1) as u16).with_write((queue == 2) ^ rng.percent(10)).with_indirect(rng.percent(8))
            };
            b.guest.put(desc + 16 * i, &d.0);
            let head = if rng.percent(5) { rng.next_u64() as u16 } else { rng.below(size.into()) as u16 };
            b.guest.put(driver + 4 + 2 * i, &head.to_le_bytes());
        }
        let ahead = if b.tb.rng().percent(10) { u64::from(size) + 1 + b.tb.rng().below(100) } else { 1 + b.tb.rng().below(size.into()) };
        b.guest.put(driver + 2, &(ahead as u16).to_le_bytes());
        b.notify.push(Fields::of::<VqNotify>().pack(&[("queue", queue.into())]));
        let (soonest, latest) = (b.tb.cycles() + 4000, b.tb.cycles() + 300_000);
        while b.tb.cycles() < soonest || b.left.get(&1).copied().unwrap_or_default() == before {
            assert!(b.tb.cycles() < latest, "round {round}: the other function's frames do not leave");
            b.cycle();
            b.turn_but(queue);
            if queue == 2 && b.tb.rng().below(400) == 0 {
                b.offer(2, 60);
            }
            if b.tb.rng().below(400) == 0 {
                b.offer(0, 100);
            }
        }
        b.end(queue);
        // What it has sent until then has left.
        b.turn_but(queue);
        b.offered.remove(&2);
    }
    for ((queue, cause), n) in &b.told {
        if *queue > 1 {
            *causes.entry(*cause).or_default() += n;
        }
    }
    b.guest.unmapped.clear();
    for cause in [
        VirtioCause::AvailJump,
        VirtioCause::BadHead,
        VirtioCause::BadNext,
        VirtioCause::LongChain,
        VirtioCause::BadIndirect,
        VirtioCause::BadDirection,
        VirtioCause::Short,
        VirtioCause::Oversize,
        VirtioCause::RingDma,
    ] {
        assert!(causes.contains_key(&(cause as u8)), "never {cause:?}: {causes:?}");
    }
}

impl Bench {
    /// As [`Bench::turn`], while frames of `queue` may be anything.
    fn turn_but(&mut self, queue: u16) {
        while let Some((from, frame)) = self.next_left() {
            let n = self.left.get(&1).copied().unwrap_or_default();
            if from == 1 {
                assert_eq!(self.rings[1].frames.get(n as usize), Some(&frame), "frame {n}");
                *self.left.entry(1).or_default() += 1;
            } else {
                assert_eq!((from, queue), (3, 3), "a frame that nobody has sent");
            }
        }
        self.turn();
    }
}

#[test]
fn hostile_rings_w64() {
    hostile(64, 7, 120);
}

#[test]
fn hostile_rings_w512() {
    hostile(512, 8, 60);
}
