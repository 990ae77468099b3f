//! Chains of packed rings, good and bad, against the golden model's walk.
use super::tests::{any_length, Outcome, END, FUNCTION, RINGS, TABLES};
use super::Walk;
use crate::msg::{VqHead, VqPiece, VqTold, VqWalked};
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use crate::virtio::testing::{Guest, Rows};
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::PackedDesc;
use ferric_model::virtio::ring::{Format, Ring};
use ferric_model::virtio::walk::{walk, Direction, Head, Rules, Walked};
use ferric_model::virtio::Memory;

const LARGEST: u16 = 512;

/// What there is at a place of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    None,
    Lost(u8),
    /// Identifier, descriptors of the ring, what came of it.
    Chain(u64, u64, Outcome),
}

fn cause_of(found: &Found) -> u8 {
    match found {
        Found::None => 0,
        Found::Lost(cause) | Found::Chain(_, _, (cause, _, _)) => *cause,
    }
}

/// The model's. A chain's bytes saturate; what the walk of a bad chain had shown before does not matter.
fn expected(guest: &mut Guest, ring: &Ring, place: u32, receive: bool, indirect: bool) -> Found {
    let (slot, wrap) = ring.slot(place);
    let mut raw = [0; 16];
    if guest.read(ring.descriptor(slot), &mut raw).is_err() {
        return Found::Lost(VirtioCause::RingDma as u8);
    }
    let first = PackedDesc(raw);
    if first.avail() != wrap || first.used() == wrap {
        return Found::None;
    }
    let rules = Rules { indirect, direction: if receive { Direction::Writable } else { Direction::Readable }, free: ring.size() };
    match walk(guest, ring, &rules, Head::Packed(place, first)) {
        Walked::Good(chain) => {
            let buffers: Vec<_> = chain.readable.iter().chain(&chain.writable).map(|s| (s.addr, s.length)).collect();
            let total = buffers.iter().map(|(_, length)| u64::from(*length)).sum::<u64>().min((1 << 18) - 1);
            Found::Chain(chain.id.into(), chain.slots.into(), (0, total, buffers))
        }
        Walked::Bad { id, slots, cause } => Found::Chain(id.into(), slots.into(), (cause as u8, 0, Vec::new())),
        Walked::Lost(cause) => Found::Lost(cause as u8),
    }
}

struct Bench {
    tb: Tb,
    rows: Rows,
    heads: Source,
    ports: [Sink; 2],
    answers: Sink,
    n: u64,
}

impl Bench {
    fn new(stall: u32, seed: u64) -> Self {
        let mut tb = Tb::with_seed("virtio_walk", Walk::default(), seed);
        let rows = Rows::new(&mut tb, stall, FUNCTION);
        let (heads, ports) = (tb.source("s_head", stall), [tb.sink("m_tx", stall), tb.sink("m_rx", stall)]);
        let answers = tb.sink("m_walked", stall);
        Self { tb, rows, heads, ports, answers, n: 0 }
    }

    /// Walks from a place, where there has to be what `want` says, and which has to be told of if that is bad.
    fn walk(&mut self, guest: &mut Guest, ring: &Ring, place: u32, receive: bool, indirect: bool, want: &Found) {
        let (n, told, answer, piece) = (self.n & 0xffff, Fields::of::<VqTold>(), Fields::of::<VqWalked>(), Fields::of::<VqPiece>());
        self.n += 1;
        let (slot, wrap) = ring.slot(place);
        let fields = [
            ("queue", n),
            ("function", FUNCTION),
            ("receive", receive.into()),
            ("indirect", indirect.into()),
            ("packed", 1),
            ("wrap", wrap.into()),
            ("desc", ring.descriptor(0)),
            ("size", ring.size().into()),
            ("head", slot.into()),
            ("news", 1),
        ];
        self.heads.push(Fields::of::<VqHead>().pack(&fields.map(|(name, value)| (name, value.into()))));
        let (mut buffers, mut heard, mut said, mut got) = (Vec::new(), Vec::new(), None, None);
        let limit = self.tb.cycles() + 100_000;
        while got.is_none() {
            assert!(self.tb.cycles() < limit, "chain {n} does not end");
            self.rows.step(&mut self.tb, guest);
            self.tb.begin();
            if self.tb.get("told_valid") == 1 {
                let words = self.tb.get_wide("told");
                heard.push((told.get(&words, "queue") as u64, told.get(&words, "cause") as u8));
            }
            self.tb.end();
            if let Some(words) = self.answers.pop() {
                let [none, lost, slots] = ["none", "lost", "slots"].map(|name| answer.get(&words, name) as u64);
                assert_eq!(said.replace((none, lost, slots)), None, "chain {n}: one answer");
                if none == 1 {
                    got = Some(Found::None);
                }
            }
            while let Some(words) = self.ports[usize::from(receive)].pop() {
                let get = |name| piece.get(&words, name) as u64;
                assert_eq!((get("function"), get("queue")), (FUNCTION, n));
                if get("ends") == 0 {
                    buffers.push((get("addr"), get("len") as u32));
                    continue;
                }
                let (cause, buffers) = (get("cause") as u8, std::mem::take(&mut buffers));
                let outcome = if cause == 0 { (0, get("total"), buffers) } else { (cause, 0, Vec::new()) };
                got = Some(match said.expect("the answer comes first") {
                    (0, 1, _) => {
                        assert_eq!(get("slots"), 0);
                        Found::Lost(cause)
                    }
                    (none, lost, slots) => {
                        assert_eq!((none, lost, get("slots")), (0, 0, slots));
                        Found::Chain(get("id"), slots, outcome)
                    }
                });
            }
            assert!(self.ports[usize::from(!receive)].is_empty(), "chain {n} went elsewhere");
        }
        assert_eq!(got.as_ref(), Some(want), "chain {n} at {place} of a ring of {}", ring.size());
        assert_eq!(heard, if cause_of(want) == 0 { vec![] } else { vec![(n, cause_of(want))] }, "chain {n}");
    }
}

/// A descriptor whose direction is `write` nearly always, and whose other flags are anything.
fn any_desc(rng: &mut Rng, write: bool, goes_on: u64) -> PackedDesc {
    let d = PackedDesc::default().with_addr(rng.next_u64()).with_length(any_length(rng)).with_id(rng.next_u64() as u16);
    d.with_has_next(rng.percent(goes_on as u32)).with_write(write ^ rng.percent(2)).with_avail(rng.percent(50)).with_used(rng.percent(50))
}

/// A descriptor that leads to a table, or should not.
fn any_table(rng: &mut Rng, guest: &mut Guest, write: bool, n: u64) -> PackedDesc {
    let entries = [1, 2, 3, 5, 40, 255, 256, 257, 0][rng.below(9) as usize];
    let at = if rng.percent(3) { END } else { TABLES + 0x1_0000 * n + 16 * rng.below(40) };
    let small = rng.percent(30);
    for i in 0..entries.min(if at == END { 5 } else { 300 }) {
        // Flags other than the direction mean nothing in there.
        let mut d = any_desc(rng, write, 50).with_indirect(rng.percent(30));
        if small {
            d = d.with_write(write).with_length(rng.below(300) as u32);
        }
        guest.put(at + 16 * i, &d.0);
    }
    if rng.percent(5) {
        guest.unmapped.insert((at >> 12) + 1);
    }
    let odd = if rng.percent(5) { rng.below(16) as u32 } else { 0 };
    any_desc(rng, write, 3).with_addr(at).with_length(16 * entries as u32 + odd).with_indirect(true).with_write(rng.percent(50))
}

fn run(stall: u32, chains: u64, seed: u64) {
    let mut b = Bench::new(stall, seed);
    let (mut causes, mut absent, mut lost, mut around) = ([0u64; 32], 0, 0, 0);
    for _ in 0..chains {
        let (mut guest, rng) = (Guest::default(), b.tb.rng());
        let most = [3, 20, 300][rng.below(3) as usize];
        let size = rng.range(1, most) as u16;
        let (receive, indirect, fails) = (rng.percent(50), rng.percent(80), rng.percent(4));
        let desc = RINGS + 16 * rng.below(1024);
        let ring = Ring::new(Format::Packed, size, LARGEST, [desc, 0x1000, 0x2000]).expect("a ring");
        for i in 0..u64::from(size) {
            let d = if rng.percent(10) { any_table(rng, &mut guest, receive, i) } else { any_desc(rng, receive, 65) };
            guest.put(desc + 16 * i, &d.0);
        }
        let place = rng.below(2 * u64::from(size)) as u32;
        let (slot, wrap) = ring.slot(place);
        if rng.percent(85) {
            let flags = guest.word(ring.descriptor(slot) + 14) & 0x7f7f | if wrap { 0x80 } else { 0x8000 };
            guest.put(ring.descriptor(slot) + 14, &flags.to_le_bytes());
        }
        if fails {
            guest.unmapped.insert((desc + 8 * u64::from(size)) >> 12);
        }
        let want = expected(&mut guest, &ring, place, receive, indirect);
        b.walk(&mut guest, &ring, place, receive, indirect, &want);
        causes[usize::from(cause_of(&want))] += 1;
        absent += u64::from(want == Found::None);
        lost += u64::from(matches!(want, Found::Lost(_)));
        around += u64::from(matches!(want, Found::Chain(_, slots, _) if slots + u64::from(slot) > u64::from(size)));
    }
    // The test is one of all that can become of a chain: fine, long, indirect, direction, short, unreadable; and of all that can be at a place.
    for cause in [0, 4, 5, 6, 7, 17] {
        assert!(causes[cause] > 0 || chains < 1000, "no chain with cause {cause}: {causes:?}");
    }
    assert!(absent.min(lost).min(around) > 10 || chains < 1000, "{absent} places without a chain, {lost} chains lost, {around} around the end");
}

#[test]
fn packed_chains_are_walked_as_the_model_does() {
    run(30, 3000, 21);
}

#[test]
fn packed_chains_are_walked_without_stalls() {
    run(0, 500, 22);
}

/// What random chains rarely meet: 256 buffers, one more, as many as the ring has and on; a table that ends with the address space, and one that goes on at its beginning.
#[test]
fn packed_borders() {
    let mut b = Bench::new(10, 23);
    let long = VirtioCause::LongChain as u8;
    for (n, (size, buffers, cause, lost)) in [(300, 256, 0, false), (300, 257, long, false), (7, 7, 0, false), (7, 8, long, true), (1, 1, 0, false)].into_iter().enumerate() {
        let mut guest = Guest::default();
        let ring = Ring::new(Format::Packed, size, LARGEST, [RINGS, 0x1000, 0x2000]).expect("a ring");
        // It begins in the second round, and goes around the end.
        let place = 2 * u32::from(size) - 1;
        for i in 0..u32::from(size) {
            let goes_on = i + 1 < buffers;
            let d = PackedDesc::default().with_addr(0x5000).with_length(10).with_id(9000 + i as u16).with_has_next(goes_on).with_used(true);
            guest.put(ring.descriptor(ring.slot(ring.after(place, i)).0), &d.0);
        }
        let want = expected(&mut guest, &ring, place, false, true);
        assert_eq!((cause_of(&want), matches!(want, Found::Lost(_))), (cause, lost), "case {n}");
        b.walk(&mut guest, &ring, place, false, true, &want);
    }
    for (entries, cause) in [(5u64, 0), (6, VirtioCause::BadIndirect as u8)] {
        let mut guest = Guest::default();
        let ring = Ring::new(Format::Packed, 3, LARGEST, [RINGS, 0x1000, 0x2000]).expect("a ring");
        for i in 0..entries {
            guest.put(END.wrapping_add(16 * i), &PackedDesc::default().with_addr(0x5000).with_length(10).0);
        }
        guest.put(RINGS + 16, &PackedDesc::default().with_addr(END).with_length(16 * entries as u32).with_indirect(true).with_avail(true).with_id(7).0);
        let want = expected(&mut guest, &ring, 1, false, true);
        assert_eq!(cause_of(&want), cause);
        b.walk(&mut guest, &ring, 1, false, true, &want);
    }
}
