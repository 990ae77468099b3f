//! Lookups against what the lines hold, while the driver's placement fills, moves, replaces and clears them.
use super::{HashBank, LATENCY};
use crate::switch::testing::words;
use crate::tb::{Rng, Tb};
use ferric_driver::switch::place::{Entry, Place, Table, Write};
use std::collections::{HashMap, VecDeque};

/// Bits and bytes of a key, and bits of a result.
const KEY: usize = 488;
const BYTES: usize = KEY / 8;
const RESULT: usize = 16;
/// The `small` table: 256 lines.
const LG: usize = 6;
const LINE: usize = KEY + RESULT + 3;
/// Cycles after its key in which a lookup reads its lines; a write in that cycle comes too late for it.
const READS: usize = 2;

type Key = Box<[u8]>;

struct Bench {
    tb: Tb,
    /// Where the driver has what.
    table: Table<KEY, 64>,
    /// What the card's lines hold.
    card: HashMap<Place, Entry>,
    /// Writes that are still to be done, one in a cycle.
    writes: VecDeque<Write>,
    /// Keys of the last cycles, the newest first; then what they found.
    asked: VecDeque<Option<(Key, u8)>>,
    due: VecDeque<Option<Option<u32>>>,
    /// The line that is being read, and what it has held in the last cycles.
    reading: Option<(Place, VecDeque<Option<Entry>>)>,
    hits: usize,
    misses: usize,
    reads: usize,
}

/// A flow's key: few networks, any ports.
fn any_key(rng: &mut Rng) -> Key {
    let mut key = vec![0; BYTES];
    key[0] = rng.below(4) as u8;
    key[20..24].copy_from_slice(&(0x0a00_0000 | rng.below(64) as u32).to_le_bytes());
    key[36..40].copy_from_slice(&(0x0a01_0000 | rng.below(64) as u32).to_le_bytes());
    key[52..56].copy_from_slice(&rng.next_u32().to_le_bytes());
    key[BYTES - 1] = rng.next_u32() as u8;
    key.into()
}

impl Bench {
    fn new() -> Bench {
        Bench {
            tb: Tb::new("bank", HashBank::<KEY, BYTES, 64, RESULT, LINE, LG>::default()),
            table: Table::new(LG as u32),
            card: HashMap::new(),
            writes: VecDeque::new(),
            asked: vec![None; READS].into(),
            due: vec![None; LATENCY as usize - READS - 1].into(),
            reading: None,
            hits: 0,
            misses: 0,
            reads: 0,
        }
    }

    /// What a lookup finds in the lines as they are.
    fn find(&self, key: &Key, generation: u8) -> Option<u32> {
        let places = self.table.candidates(key);
        places.iter().filter_map(|place| self.card.get(place)).find(|e| e.key == *key && e.generation == generation).map(|e| e.result)
    }

    fn cycle(&mut self, lookup: Option<(Key, u8)>) {
        self.tb.set("valid", lookup.is_some().into());
        // What is not valid is noise.
        let (key, generation) = lookup.clone().unwrap_or_else(|| (any_key(self.tb.rng()), self.tb.rng().below(4) as u8));
        self.tb.set_wide("key", &words(&key)[..]);
        self.tb.set("generation", generation.into());
        self.asked.push_front(lookup);
        let ready = self.asked.pop_back().expect("a cycle").map(|(key, generation)| self.find(&key, generation));
        self.due.push_front(ready);
        let due = self.due.pop_back().expect("a cycle");
        if let Some((place, held)) = &mut self.reading {
            held.push_front(self.card.get(place).cloned());
        }
        let write = self.writes.pop_front();
        self.tb.set("write", write.is_some().into());
        if let Some(Write { place, entry, .. }) = write {
            self.tb.set("write_way", place.way.into());
            self.tb.set("write_line", place.line.into());
            let line = entry.as_ref().map_or_else(|| vec![0; LINE.div_ceil(8)], |entry| entry.line(KEY, RESULT));
            self.tb.set_wide("write_data", &words(&line)[..]);
            match entry {
                Some(entry) => self.card.insert(place, entry),
                None => self.card.remove(&place),
            };
        }
        self.tb.cycle();
        assert_eq!(self.tb.get("found_valid"), u64::from(due.is_some()));
        if let Some(due) = due {
            assert_eq!(self.tb.get("hit"), u64::from(due.is_some()), "{due:?}");
            if let Some(result) = due {
                assert_eq!(self.tb.get("result"), u64::from(result));
            }
            *(if due.is_some() { &mut self.hits } else { &mut self.misses }) += 1;
        }
        if self.tb.get("read_done") == 1 {
            let (_, held) = self.reading.take().expect("a read");
            // It was read two cycles before this one.
            let line = held[2].as_ref().map_or_else(|| vec![0; LINE.div_ceil(8)], |entry| entry.line(KEY, RESULT));
            assert_eq!(self.tb.get_wide("read_data"), words(&line));
            self.tb.set("read", 0);
            self.reads += 1;
        }
    }

    fn read(&mut self, place: Place) {
        self.tb.set("read", 1);
        self.tb.set("read_way", place.way.into());
        self.tb.set("read_line", place.line.into());
        self.reading = Some((place, VecDeque::new()));
    }

    fn insert(&mut self, entry: Entry) -> bool {
        let writes = self.table.insert(entry);
        writes.map(|writes| self.writes.extend(writes)).is_ok()
    }

    /// Anything is looked up: what is there, in either generation, what is not, and what is nearly there.
    fn any_lookup(&mut self, known: &[Key]) -> (Key, u8) {
        let rng = self.tb.rng();
        let mut key = if rng.percent(80) { known[rng.below(known.len() as u64) as usize].clone() } else { any_key(rng) };
        if rng.percent(10) {
            key[rng.below(BYTES as u64) as usize] ^= 1 << rng.below(8);
        }
        let generations = if rng.percent(80) { 2 } else { 4 };
        (key, rng.below(generations) as u8)
    }
}

#[test]
fn filled_to_95_percent_and_changed_under_lookups() {
    let mut b = Bench::new();
    let mut known: Vec<Key> = Vec::new();
    let most = b.table.lines() * 95 / 100;
    for round in 0..8000 {
        let full = b.table.len() >= most;
        if b.writes.is_empty() && b.tb.rng().percent(40) {
            let some = (!known.is_empty()).then(|| b.tb.rng().below(known.len() as u64) as usize);
            match (b.tb.rng().below(10), some) {
                // A key anew in another generation, or another result for it.
                (0..2, Some(n)) if !full && round > 3000 => {
                    let (key, generation, result) = (known[n].clone(), b.tb.rng().below(4) as u8, b.tb.rng().below(1 << 16) as u32);
                    b.insert(Entry { key, generation, result });
                }
                (2..4, Some(n)) if round > 3000 => {
                    let generation = b.tb.rng().below(4) as u8;
                    b.writes.extend(b.table.remove(&known[n], generation));
                }
                _ if !full => {
                    let entry = Entry { key: any_key(b.tb.rng()), generation: b.tb.rng().below(2) as u8, result: b.tb.rng().below(1 << 16) as u32 };
                    let key = entry.key.clone();
                    // Near the end a key may find no room; another one does.
                    if b.insert(entry) {
                        known.push(key);
                    }
                }
                _ => {}
            }
        }
        let lookup = (!known.is_empty() && b.tb.rng().percent(80)).then(|| b.any_lookup(&known));
        b.cycle(lookup);
        if b.reading.is_none() && b.tb.rng().percent(10) {
            let place = Place { way: b.tb.rng().below(4) as u8, line: b.tb.rng().below(1 << LG) as u16 };
            b.read(place);
        }
        if round == 3000 {
            assert_eq!(b.table.len(), most, "it was not filled");
        }
    }
    assert!(b.hits > 1000 && b.misses > 1000 && b.reads > 100, "{} {} {}", b.hits, b.misses, b.reads);
}

/// Where its hash leads, a line has another key, which differs in one bit: no hit. And a key that moves is in two lines for a while.
#[test]
fn every_bit_of_the_key_counts() {
    let mut b = Bench::new();
    let key = any_key(b.tb.rng());
    let place = b.table.candidates(&key)[2];
    for bit in 0..KEY {
        let mut other = key.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        b.writes.push_back(Write { place, entry: Some(Entry { key: other, generation: 1, result: 5 }), was: None });
        b.cycle(Some((key.clone(), 1)));
    }
    assert_eq!(b.hits, 0);
    for way in [3, 1, 0] {
        let place = b.table.candidates(&key)[way];
        b.writes.push_back(Write { place, entry: Some(Entry { key: key.clone(), generation: 1, result: 100 + way as u32 }), was: None });
        (0..3).for_each(|_| b.cycle(Some((key.clone(), 1))));
    }
    (0..10).for_each(|_| b.cycle(None));
    assert!(b.hits >= 6);
}

/// Found every cycle, the sixth cycle after it was asked for; who reads lines waits.
#[test]
fn one_lookup_a_cycle() {
    let mut b = Bench::new();
    let key = any_key(b.tb.rng());
    assert!(b.insert(Entry { key: key.clone(), generation: 3, result: 77 }));
    (0..3).for_each(|_| b.cycle(None));
    let place = b.table.find(&key, 3).expect("it is in");
    b.read(place);
    let first = (1..).find(|_| {
        b.cycle(Some((key.clone(), 3)));
        b.tb.get("found_valid") == 1
    });
    assert_eq!(first, Some(LATENCY));
    let before = b.reads;
    for _ in 0..100 {
        b.cycle(Some((key.clone(), 3)));
        assert_eq!((b.tb.get("found_valid"), b.tb.get("hit")), (1, 1));
    }
    b.read(place);
    for _ in 0..50 {
        b.cycle(Some((key.clone(), 3)));
    }
    assert_eq!(b.reads, before, "a read took a lookup's cycle");
    (0..10).for_each(|_| b.cycle(None));
    assert_eq!(b.reads, before + 1);
}
