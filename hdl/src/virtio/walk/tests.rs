//! Chains of every shape, good and bad, against the golden model's walk.
use super::Walk;
use crate::msg::{VqHead, VqPiece, VqTold};
use crate::tb::{Fields, Rng, Sink, Source, Tb};
use crate::virtio::testing::{Guest, Rows};
use ferric_abi::virtio::SplitDesc;
use ferric_model::virtio::ring::{Format, Ring};
use ferric_model::virtio::walk::{walk, Direction, Head, Rules, Walked};

pub(super) const FUNCTION: u64 = 5;
/// Where rings and tables lie, and one table at the end of the address space.
pub(super) const RINGS: u64 = 0x7_1234_0000;
pub(super) const TABLES: u64 = 0xa_0000_0000;
pub(super) const END: u64 = u64::MAX - 79;

/// A length as drivers choose them, and as they do not.
pub(super) fn any_length(rng: &mut Rng) -> u32 {
    match rng.below(12) {
        0 => 0,
        1 => rng.next_u32(),
        2 => 1 << 17,
        3 => rng.below(1 << 16) as u32,
        _ => rng.range(1, 2000) as u32,
    }
}

/// A descriptor of a table of `entries`, whose direction is `write` nearly always.
fn any_desc(rng: &mut Rng, entries: u64, n: u64, write: bool) -> SplitDesc {
    let next = match rng.below(40) {
        0 => entries + rng.below(3),
        1 => rng.next_u64() & 0xffff,
        2..10 => rng.below(entries),
        _ => (n + 1) % entries,
    };
    let goes_on = rng.percent(65);
    SplitDesc::default().with_addr(rng.next_u64()).with_length(any_length(rng)).with_has_next(goes_on).with_write(write ^ rng.percent(2)).with_next(next as u16)
}

/// A descriptor that leads to a table, or should not.
fn any_table(rng: &mut Rng, guest: &mut Guest, write: bool, n: u64) -> SplitDesc {
    let entries = [1, 2, 3, 5, 40, 255, 256, 257, 0][rng.below(9) as usize];
    let at = if rng.percent(3) { END } else { TABLES + 0x1_0000 * n + 16 * rng.below(40) };
    let long = rng.percent(20);
    for i in 0..entries.min(if at == END { 5 } else { 300 }) {
        let mut d = any_desc(rng, entries.max(1), i, write);
        if long {
            d = d.with_has_next(i + 1 < entries).with_next((i + 1) as u16).with_write(write).with_length(rng.below(300) as u32);
        }
        guest.put(at + 16 * i, &d.with_indirect(rng.percent(1)).0);
    }
    if rng.percent(5) {
        guest.unmapped.insert((at >> 12) + 1);
    }
    let odd = if rng.percent(5) { rng.below(16) as u32 } else { 0 };
    SplitDesc::default().with_addr(at).with_length(16 * entries as u32 + odd).with_indirect(true).with_has_next(rng.percent(3)).with_write(rng.percent(50)).with_next(rng.below(4) as u16)
}

/// What came of a chain: cause, bytes, buffers.
pub(super) type Outcome = (u8, u64, Vec<(u64, u32)>);

/// The model's. A chain's bytes saturate; what the walk of a bad chain had shown before does not matter.
fn expected(guest: &mut Guest, ring: &Ring, head: u16, receive: bool, indirect: bool) -> Outcome {
    let rules = Rules { indirect, direction: if receive { Direction::Writable } else { Direction::Readable }, free: ring.size() };
    match walk(guest, ring, &rules, Head::Split(head)) {
        Walked::Good(chain) => {
            let buffers: Vec<_> = chain.readable.iter().chain(&chain.writable).map(|s| (s.addr, s.length)).collect();
            (0, buffers.iter().map(|(_, length)| u64::from(*length)).sum::<u64>().min((1 << 18) - 1), buffers)
        }
        Walked::Bad { cause, .. } | Walked::Lost(cause) => (cause as u8, 0, Vec::new()),
    }
}

/// The next whole chain of a port: queue, identifier, outcome.
fn next_chain(port: &Sink, into: &mut Vec<(u64, u32)>) -> Option<(u64, u64, Outcome)> {
    let piece = Fields::of::<VqPiece>();
    while let Some(words) = port.pop() {
        let get = |name| piece.get(&words, name) as u64;
        assert_eq!(get("function"), FUNCTION);
        if get("ends") == 0 {
            into.push((get("addr"), get("len") as u32));
            continue;
        }
        let buffers = std::mem::take(into);
        let cause = get("cause") as u8;
        return Some((get("queue"), get("id"), if cause == 0 { (0, get("total"), buffers) } else { (cause, 0, Vec::new()) }));
    }
    None
}

struct Bench {
    tb: Tb,
    rows: Rows,
    heads: Source,
    ports: [Sink; 2],
    /// Chains so far.
    n: u64,
}

impl Bench {
    fn new(stall: u32, seed: u64) -> Self {
        let mut tb = Tb::with_seed("virtio_walk", Walk::default(), seed);
        let rows = Rows::new(&mut tb, stall, FUNCTION);
        let (heads, ports) = (tb.source("s_head", stall), [tb.sink("m_tx", stall), tb.sink("m_rx", stall)]);
        Self { tb, rows, heads, ports, n: 0 }
    }

    /// Walks a chain, which has to become what `want` says, and to be told of if that is bad.
    fn walk(&mut self, guest: &mut Guest, (desc, size): (u64, u16), head: u16, receive: bool, indirect: bool, want: &Outcome) {
        self.walk_next(guest, (desc, size), head, (receive, indirect, false), want);
    }

    /// The same; `keeps`: no index has been read since the chain before.
    fn walk_next(&mut self, guest: &mut Guest, (desc, size): (u64, u16), head: u16, (receive, indirect, keeps): (bool, bool, bool), want: &Outcome) {
        let news = [1, 2, self.tb.rng().range(1, 32), 32][self.tb.rng().below(4) as usize];
        let (n, told) = (self.n & 0xffff, Fields::of::<VqTold>());
        self.n += 1;
        let fields = [
            ("queue", n),
            ("function", FUNCTION),
            ("receive", receive.into()),
            ("indirect", indirect.into()),
            ("desc", desc),
            ("size", size.into()),
            ("head", head.into()),
            ("keeps", keeps.into()),
            ("news", news),
        ];
        self.heads.push(Fields::of::<VqHead>().pack(&fields.map(|(name, value)| (name, value.into()))));
        let (mut buffers, mut heard, mut got) = (Vec::new(), Vec::new(), None);
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
            got = next_chain(&self.ports[usize::from(receive)], &mut buffers);
            assert!(self.ports[usize::from(!receive)].is_empty(), "chain {n} went elsewhere");
        }
        assert_eq!(got, Some((n, head.into(), want.clone())), "chain {n} of a ring of {size}");
        assert_eq!(heard, if want.0 == 0 { vec![] } else { vec![(n, want.0)] }, "chain {n}");
    }
}

fn run(stall: u32, chains: u64, seed: u64) {
    let mut b = Bench::new(stall, seed);
    let mut causes = [0u64; 32];
    for _ in 0..chains {
        let (mut guest, rng) = (Guest::default(), b.tb.rng());
        let size = 1u16 << rng.below(9);
        let (receive, indirect, fails) = (rng.percent(50), rng.percent(80), rng.percent(4));
        let desc = RINGS + 16 * if rng.percent(50) { rng.below(1024) } else { rng.below(16) };
        let ring = Ring::new(Format::Split, size, 256, [desc, 0x1000, 0x2000]).expect("a ring");
        for i in 0..u64::from(size) {
            let d = if rng.percent(10) { any_table(rng, &mut guest, receive, i) } else { any_desc(rng, size.into(), i, receive) };
            guest.put(desc + 16 * i, &d.0);
        }
        if fails {
            guest.unmapped.insert((desc + 8 * u64::from(size)) >> 12);
        }
        // Several of one index, most of them one behind the other.
        let mut head = rng.below(size.into()) as u16;
        for n in 0..rng.range(1, 6) {
            let want = expected(&mut guest, &ring, head, receive, indirect);
            b.walk_next(&mut guest, (desc, size), head, (receive, indirect, n > 0), &want);
            causes[usize::from(want.0)] += 1;
            let rng = b.tb.rng();
            head = if rng.percent(80) { (head + 1) % size } else { rng.below(size.into()) as u16 };
        }
    }
    // The test is one of all that can become of a chain: fine, next, long, indirect, direction, short, unreadable.
    for cause in [0, 3, 4, 5, 6, 7, 17] {
        assert!(causes[cause] > 0 || chains < 1000, "no chain with cause {cause}: {causes:?}");
    }
}

/// A table of so many buffers of ten bytes, one behind the other.
fn put_table(guest: &mut Guest, at: u64, entries: u16) {
    for i in 0..entries {
        let d = SplitDesc::default().with_addr(0x5000).with_length(10).with_has_next(i + 1 < entries).with_next(i + 1);
        guest.put(at.wrapping_add(16 * u64::from(i)), &d.0);
    }
}

/// What random chains rarely meet: 256 buffers and one more, a table inside of another, one at the end of the address space, which may end there and may not go on at its beginning.
#[test]
fn borders() {
    let mut b = Bench::new(10, 3);
    let ring = Ring::new(Format::Split, 8, 256, [RINGS, 0x1000, 0x2000]).expect("a ring");
    for (case, want) in [(0, 0), (1, 4), (2, 5), (3, 0), (4, 5)] {
        let mut guest = Guest::default();
        let (at, entries) = [(TABLES, 256), (TABLES, 256), (TABLES, 1), (END, 5), (END, 6)][case];
        put_table(&mut guest, at, entries);
        let leads = SplitDesc::default().with_addr(at).with_length(16 * u32::from(entries)).with_indirect(true);
        guest.put(RINGS + 16, &leads.0);
        if case == 1 {
            guest.put(RINGS, &SplitDesc::default().with_addr(0x6000).with_length(1).with_has_next(true).with_next(1).0);
        }
        if case == 2 {
            guest.put(TABLES, &leads.with_addr(TABLES + 64).0);
            put_table(&mut guest, TABLES + 64, 1);
        }
        let head = u16::from(case != 1);
        let outcome = expected(&mut guest, &ring, head, false, true);
        assert_eq!(outcome.0, want, "case {case}");
        b.walk(&mut guest, (RINGS, 8), head, false, true, &outcome);
    }
}

#[test]
fn chains_are_walked_as_the_model_does() {
    run(30, 3000, 1);
}

#[test]
fn chains_are_walked_without_stalls() {
    run(0, 500, 2);
}

/// A driver that has its table back may fill it anew for the next chain.
#[test]
fn tables_are_read_for_each_chain() {
    let mut b = Bench::new(10, 5);
    let mut guest = Guest::default();
    for head in 0..2 {
        guest.put(RINGS + 16 * head, &SplitDesc::default().with_addr(TABLES).with_length(16).with_indirect(true).0);
    }
    for (head, length) in [(0, 100), (1, 200)] {
        guest.put(TABLES, &SplitDesc::default().with_addr(0x5000).with_length(length).0);
        b.walk_next(&mut guest, (RINGS, 8), head, (false, true, head > 0), &(0, length.into(), vec![(0x5000, length)]));
    }
}

/// A table that is not aligned to its entries is refused, which the specification does not ask for (README.md).
#[test]
fn tables_have_to_be_aligned() {
    let mut b = Bench::new(0, 4);
    let mut guest = Guest::default();
    guest.put(RINGS, &SplitDesc::default().with_addr(TABLES + 8).with_length(16).with_indirect(true).0);
    put_table(&mut guest, TABLES + 8, 1);
    b.walk(&mut guest, (RINGS, 8), 0, false, true, &(5, 0, Vec::new()));
}
