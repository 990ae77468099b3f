//! Places for the entries of a table of exact keys (the gateware's `switch/bank`): cuckoo hashing (Pagh and Rodler, 2004) with four ways. The driver knows what stands in every line;
//! the card only writes lines. An entry that moves is written to its new line before the old one gets another, so that a lookup finds it at any time.

use ferric_abi::switch::hash::{Hash, LINE_BITS, SEED, WAYS};
use std::collections::{HashMap, VecDeque};

/// Entries that are moved at most to make room for one.
const DEPTH: usize = 5;

/// A line of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Way.
    pub way: u8,
    /// Line of it.
    pub line: u16,
}

/// What a line holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key under its mask.
    pub key: Box<[u8]>,
    /// Generation, 0 to 3.
    pub generation: u8,
    /// What it leads to.
    pub result: u32,
}

impl Entry {
    /// The line as the card has it: `bits` bits of key, `result` bits of result, generation, and that it counts.
    pub fn line(&self, bits: usize, result: usize) -> Vec<u8> {
        let mut bytes = vec![0; (bits + result + 3).div_ceil(8)];
        bytes[..bits / 8].copy_from_slice(&self.key);
        let tail = u64::from(self.result) | (u64::from(self.generation) | 4) << result;
        (0..result + 3).filter(|bit| tail >> bit & 1 == 1).for_each(|bit| bytes[(bits + bit) / 8] |= 1 << ((bits + bit) % 8));
        bytes
    }
}

/// A line that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Where.
    pub place: Place,
    /// What; `None`: the line is cleared.
    pub entry: Option<Entry>,
    /// What stands there before.
    pub was: Option<Entry>,
}

/// There is no room for an entry where its key may stand, nor for those that stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for the entry in the lines of its hash: it stays in software")]
pub struct NoRoom;

/// What a table holds: keys of `N` bits, hashed by way of `M` bits.
#[derive(Clone, Debug)]
pub struct Table<const N: usize, const M: usize> {
    hash: Hash<N, M>,
    lg: u32,
    lines: Vec<Option<Entry>>,
    places: HashMap<(Box<[u8]>, u8), Place>,
}

impl<const N: usize, const M: usize> Table<N, M> {
    /// An empty table of 2^`lg` lines in each way.
    ///
    /// # Panics
    /// A line's number has more bits than the hash has.
    pub fn new(lg: u32) -> Self {
        assert!(lg as usize <= LINE_BITS, "2^{lg} lines in a way");
        Self { hash: Hash::new(SEED), lg, lines: vec![None; WAYS << lg], places: HashMap::new() }
    }

    /// Entries in it, of all generations.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Lines.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Where the entry of this key stands.
    pub fn find(&self, key: &[u8], generation: u8) -> Option<Place> {
        self.places.get(&(key.into(), generation)).copied()
    }

    /// What stands there.
    pub fn at(&self, place: Place) -> Option<&Entry> {
        self.lines[self.index(place)].as_ref()
    }

    /// Puts an entry in, or gives that of the same key and generation another result. The writes are in the order in which the card has to do them.
    pub fn insert(&mut self, entry: Entry) -> Result<Vec<Write>, NoRoom> {
        if let Some(place) = self.find(&entry.key, entry.generation) {
            return Ok(vec![self.write(place, Some(entry))]);
        }
        let way = self.way_to_room(&entry.key).ok_or(NoRoom)?;
        // From the free line back: each entry goes where the one before it was.
        let mut writes = Vec::new();
        for pair in way.windows(2).rev() {
            let moved = self.at(pair[0]).cloned();
            writes.push(self.write(pair[1], moved));
        }
        writes.push(self.write(way[0], Some(entry)));
        Ok(writes)
    }

    /// Takes the entry of this key out.
    pub fn remove(&mut self, key: &[u8], generation: u8) -> Option<Write> {
        let place = self.places.remove(&(key.into(), generation))?;
        Some(self.write(place, None))
    }

    /// Keys of the entries of a generation, in no order that means anything.
    pub fn of(&self, generation: u8) -> Vec<Box<[u8]>> {
        self.places.keys().filter(|(_, of)| *of == generation).map(|(key, _)| key.clone()).collect()
    }

    fn index(&self, place: Place) -> usize {
        usize::from(place.way) << self.lg | usize::from(place.line)
    }

    /// Where the entry of a key may stand.
    pub fn candidates(&self, key: &[u8]) -> [Place; WAYS] {
        let middle = self.hash.middle(key);
        std::array::from_fn(|way| Place { way: way as u8, line: self.hash.line(way, middle, self.lg) as u16 })
    }

    fn write(&mut self, place: Place, entry: Option<Entry>) -> Write {
        if let Some(entry) = &entry {
            self.places.insert((entry.key.clone(), entry.generation), place);
        }
        let index = self.index(place);
        let was = std::mem::replace(&mut self.lines[index], entry.clone());
        Write { place, entry, was }
    }

    /// Takes the last writes back: the table is as it was before them.
    pub fn take_back(&mut self, writes: &[Write]) {
        for Write { place, entry, was } in writes.iter().rev() {
            let index = self.index(*place);
            if let Some(entry) = entry {
                let key = (entry.key.clone(), entry.generation);
                // One that has moved stands where it came from already.
                if self.places.get(&key) == Some(place) {
                    self.places.remove(&key);
                }
            }
            if let Some(was) = was {
                self.places.insert((was.key.clone(), was.generation), *place);
            }
            self.lines[index].clone_from(was);
        }
    }

    /// The shortest way from a line of this key to a free one: every entry on it moves to the next line.
    fn way_to_room(&self, key: &[u8]) -> Option<Vec<Place>> {
        let mut from: HashMap<Place, Option<Place>> = HashMap::new();
        let mut next: VecDeque<(Place, usize)> = VecDeque::new();
        for place in self.candidates(key) {
            from.insert(place, None);
            next.push_back((place, 0));
        }
        while let Some((place, depth)) = next.pop_front() {
            let Some(entry) = self.at(place) else {
                let mut way = vec![place];
                while let Some(Some(before)) = from.get(&way[way.len() - 1]) {
                    way.push(*before);
                }
                way.reverse();
                return Some(way);
            };
            if depth < DEPTH {
                for other in self.candidates(&entry.key) {
                    if let std::collections::hash_map::Entry::Vacant(vacant) = from.entry(other) {
                        vacant.insert(Some(place));
                        next.push_back((other, depth + 1));
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys as flows have them: two addresses out of few networks, ports.
    fn key(n: u64) -> Box<[u8]> {
        let mut key = vec![0; 61];
        key[20..24].copy_from_slice(&(0x0a00_0000 | (n % 251) as u32).to_le_bytes());
        key[40..44].copy_from_slice(&(0x0a01_0000 | (n / 251 % 241) as u32).to_le_bytes());
        key[56..58].copy_from_slice(&(n as u16).to_le_bytes());
        key.into()
    }

    /// Does the writes and says what the card has, and looks whether every entry can be found after each of them.
    fn follow(card: &mut HashMap<Place, Entry>, writes: &[Write]) {
        for write in writes {
            let gone = match &write.entry {
                Some(entry) => card.insert(write.place, entry.clone()),
                None => card.remove(&write.place),
            };
            if let (Some(gone), Some(entry)) = (gone, &write.entry) {
                let moved = card.values().any(|e| e.key == gone.key && e.generation == gone.generation);
                assert!(moved || gone.key == entry.key, "an entry is nowhere");
            }
        }
    }

    #[test]
    fn a_table_is_filled_to_95_percent() {
        let mut table = Table::<488, 64>::new(10);
        let mut card = HashMap::new();
        let most = table.lines() * 95 / 100;
        let mut moves = 0;
        for n in 0..most as u64 {
            let writes = table.insert(Entry { key: key(n), generation: 1, result: n as u32 }).unwrap();
            moves += writes.len() - 1;
            follow(&mut card, &writes);
        }
        assert_eq!((table.len(), card.len()), (most, most));
        assert!(moves < 2 * most, "{moves} moves");
        for n in 0..most as u64 {
            let place = table.find(&key(n), 1).unwrap();
            assert!(table.candidates(&key(n)).contains(&place));
            assert_eq!((card[&place].result, table.at(place).unwrap()), (n as u32, &card[&place]));
        }
        // Beyond that somebody finds no room, and nothing has changed then.
        let refused = (most as u64..2 * most as u64).find(|n| table.insert(Entry { key: key(*n), generation: 1, result: 0 }).is_err());
        let refused = refused.unwrap();
        assert_eq!(table.len() as u64, refused);
        assert_eq!(table.find(&key(refused), 1), None);
        // Removed, and in again; the same key of another generation is another entry.
        for n in 0..100 {
            let write = table.remove(&key(n), 1).unwrap();
            assert_eq!((table.remove(&key(n), 1), table.at(write.place), write.entry), (None, None, None));
        }
        let entry = Entry { key: key(7), generation: 2, result: 9 };
        table.insert(entry.clone()).unwrap();
        let again = table.insert(Entry { result: 10, ..entry }).unwrap();
        assert_eq!((again.len(), table.find(&key(7), 1)), (1, None));
    }

    /// What stands where, and where it is looked for.
    fn whole(table: &Table<488, 64>) -> (Vec<Option<Entry>>, HashMap<(Box<[u8]>, u8), Place>) {
        (table.lines.clone(), table.places.clone())
    }

    #[test]
    fn writes_are_taken_back() {
        let mut table = Table::<488, 64>::new(6);
        let mut moves = 0;
        for n in 0..240 {
            let before = whole(&table);
            let entry = Entry { key: key(n), generation: 1, result: n as u32 };
            let Ok(mut writes) = table.insert(entry.clone()) else { continue };
            moves += writes.len() - 1;
            writes.extend(table.insert(Entry { result: 7, ..entry }).unwrap());
            writes.extend(table.remove(&key(n / 2), 1));
            table.take_back(&writes);
            assert!(whole(&table) == before, "entry {n}");
            table.insert(Entry { key: key(n), generation: 1, result: n as u32 }).unwrap();
        }
        assert!(moves > 20, "{moves}");
    }

    #[test]
    fn a_line_has_its_tail_behind_the_key() {
        let entry = Entry { key: vec![0xab; 61].into(), generation: 2, result: 0x8001 };
        let line = entry.line(488, 16);
        assert_eq!(line.len(), 64);
        assert_eq!(line[61..], [0x01, 0x80, 0b110]);
    }
}
