//! Memory that is watched: what the card may no longer touch is the program's again, and whoever touches it is written down.
use ferric_driver::mapping::Mapping;
use std::collections::BTreeMap;
use std::ops::Range;

/// An access of the card that came too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trespass {
    /// PCI function of the access.
    pub function: u16,
    /// Its first address that is watched.
    pub iova: u64,
    /// Write access.
    pub write: bool,
    /// Cycle of the access, and the one from which on it was not allowed.
    pub cycle: u64,
    /// See `cycle`.
    pub since: u64,
    /// The pages had been unmapped; otherwise they were sealed ([`Watch::seal`]).
    pub unmapped: bool,
}

/// A range that is watched.
#[derive(Clone, Copy)]
struct Range64 {
    end: u64,
    since: u64,
    reads: bool,
    unmapped: bool,
}

/// The watched ranges of one card's address space, by function and first address; they do not overlap. Addresses that have been unmapped are never given out again.
#[derive(Default)]
pub struct Watch {
    ranges: BTreeMap<(u16, u64), Range64>,
    /// Cycle of the accesses that are looked at.
    pub(crate) now: u64,
    trespasses: Vec<Trespass>,
}

/// Trespasses that are kept.
const KEPT: usize = 1000;

/// Addresses of `bytes` of what `mapping` maps.
fn places(mapping: &Mapping, bytes: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
    mapping.runs().iter().filter_map(move |run| {
        let (from, to) = (bytes.start.max(run.offset), bytes.end.min(run.offset + run.len));
        (from < to).then(|| run.iova + (from - run.offset)..run.iova + (to - run.offset))
    })
}

impl Watch {
    /// From now on a write of `function` to `bytes` of the mapping is a trespass, with `reads` a read, too. A seal of a range that overlaps an earlier one takes its place only if both begin at the same byte.
    pub fn seal(&mut self, function: u16, mapping: &Mapping, bytes: Range<u64>, reads: bool) {
        for place in places(mapping, bytes) {
            let seal = Range64 { end: place.end, since: self.now, reads, unmapped: false };
            self.ranges.insert((function, place.start), seal);
        }
    }

    /// Ends all seals that begin inside `bytes`.
    pub fn open(&mut self, function: u16, mapping: &Mapping, bytes: Range<u64>) {
        places(mapping, bytes).for_each(|place| self.forget(function, place));
    }

    fn forget(&mut self, function: u16, place: Range<u64>) {
        let inside: Vec<_> = self.ranges.range((function, place.start)..(function, place.end)).map(|(key, _)| *key).collect();
        for key in inside {
            self.ranges.remove(&key);
        }
    }

    /// Pages that are no longer mapped, sealed or not.
    pub(crate) fn retire(&mut self, function: u16, place: Range<u64>) {
        self.forget(function, place.clone());
        self.ranges.insert((function, place.start), Range64 { end: place.end, since: self.now, reads: true, unmapped: true });
    }

    /// Looks at an access.
    pub(crate) fn look(&mut self, function: u16, place: Range<u64>, write: bool) {
        let Some((&(_, start), found)) = self.ranges.range(..(function, place.end)).next_back().filter(|((f, _), _)| *f == function) else { return };
        if found.end > place.start && (write || found.reads) && self.trespasses.len() < KEPT {
            let iova = place.start.max(start);
            self.trespasses.push(Trespass { function, iova, write, cycle: self.now, since: found.since, unmapped: found.unmapped });
        }
    }

    /// What came too late, the first 1000.
    pub fn trespasses(&self) -> &[Trespass] {
        &self.trespasses
    }

    /// The same, and forgets them.
    pub fn take(&mut self) -> Vec<Trespass> {
        std::mem::take(&mut self.trespasses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_or_unmapped_is_watched() {
        let mapping = Mapping::new([(0x5000, 0x1000), (0x9000, 0x1000)]);
        let mut watch = Watch { now: 7, ..Default::default() };
        // The last 16 bytes of one page and the first 16 of the other.
        watch.seal(1, &mapping, 0xff0..0x1010, false);
        watch.now = 9;
        watch.look(1, 0x5fe8..0x5ff0, true);
        watch.look(1, 0x9010..0x9018, true);
        watch.look(2, 0x5ff0..0x6000, true);
        watch.look(1, 0x5ff0..0x6000, false);
        assert!(watch.trespasses().is_empty());
        watch.look(1, 0x5fc0..0x6000, true);
        watch.look(1, 0x9008..0x9010, true);
        let late = |iova, write, cycle, since, unmapped| Trespass { function: 1, iova, write, cycle, since, unmapped };
        assert_eq!(watch.take(), [late(0x5ff0, true, 9, 7, false), late(0x9008, true, 9, 7, false)]);
        watch.open(1, &mapping, 0xff0..0x1010);
        watch.look(1, 0x5ff0..0x6000, true);
        assert!(watch.trespasses().is_empty());
        // Unmapped pages may not even be read, and their seals are no matter any more.
        watch.seal(1, &mapping, 0..0x10, true);
        watch.retire(1, 0x5000..0x6000);
        watch.now = 12;
        watch.look(1, 0x5800..0x5840, false);
        watch.look(1, 0x9000..0x9008, false);
        assert_eq!(watch.take(), [late(0x5800, false, 12, 9, true)]);
    }
}
