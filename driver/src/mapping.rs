//! Where mapped memory lies in the card's address space, and which pages describe it.
use std::ops::Range;

/// Memory that lies in one piece in the card's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Bytes of the mapping in front of it.
    pub offset: u64,
    /// Address of its first byte for the card.
    pub iova: u64,
    /// Bytes.
    pub len: u64,
}

/// Mapped memory, first byte to last, as runs of addresses that are as long as they can be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    runs: Vec<Run>,
}

/// Sizes of the pages that a region's table may have (`MrCtx::page_size`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageSize {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Large,
    /// 1 GiB.
    Huge,
}

impl PageSize {
    /// log2 of its bytes.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Small => 12,
            Self::Large => 21,
            Self::Huge => 30,
        }
    }

    /// Its bytes.
    pub const fn bytes(self) -> u64 {
        1 << self.bits()
    }
}

impl Mapping {
    /// Of pieces given by IOVA and bytes, in the memory's order; neighbours are joined, empty ones are left out.
    pub fn new(pieces: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        let mut offset = 0;
        for (iova, len) in pieces.into_iter().filter(|(_, len)| *len > 0) {
            match runs.last_mut() {
                Some(last) if last.iova.checked_add(last.len) == Some(iova) => last.len += len,
                _ => runs.push(Run { offset, iova, len }),
            }
            offset += len;
        }
        Self { runs }
    }

    /// The runs.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Address of the first byte for the card; 0 of an empty mapping.
    pub fn iova(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.iova)
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.offset + run.len)
    }

    /// Nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// All of it lies in one piece.
    pub fn is_contiguous(&self) -> bool {
        self.runs.len() == 1
    }

    /// Address of a byte for the card.
    pub fn at(&self, offset: u64) -> Option<u64> {
        let run = self.runs[..self.runs.partition_point(|run| run.offset <= offset)].last()?;
        (offset - run.offset < run.len).then(|| run.iova + (offset - run.offset))
    }

    /// The largest pages that can describe the memory when its first byte has the address `start` for peers: every page lies in one run,
    /// and in its place there as the address says.
    pub fn page_size(&self, start: u64) -> PageSize {
        let fits = |size: &PageSize| {
            let low = |address: u64| address & (size.bytes() - 1);
            self.runs.iter().enumerate().all(|(n, run)| {
                let address = start.wrapping_add(run.offset);
                low(address) == low(run.iova) && (n == 0 || low(address) == 0)
            })
        };
        [PageSize::Huge, PageSize::Large].into_iter().find(fits).unwrap_or(PageSize::Small)
    }

    /// What a page table says of `part` (not empty, of the mapping, by addresses that begin with `start`): the IOVA of each page, first to last. `size`: no larger
    /// than [`Mapping::page_size`] of `start`. The first page may begin in front of the mapping; nothing there is reached.
    pub fn pages(&self, start: u64, part: Range<u64>, size: PageSize) -> impl Iterator<Item = u64> + Clone + '_ {
        let first = part.start >> size.bits();
        let last = part.end.saturating_sub(1) >> size.bits();
        (first..=last).map(move |page| {
            let offset = (page << size.bits()).saturating_sub(start);
            self.at(offset).unwrap_or_default() & !(size.bytes() - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    #[test]
    fn neighbours_are_one_run() {
        let m = Mapping::new([(0x1000, 0x1000), (0x2000, 0x3000), (0x9000, 0), (0x8000, 0x1000)]);
        assert_eq!(m.runs(), [Run { offset: 0, iova: 0x1000, len: 0x4000 }, Run { offset: 0x4000, iova: 0x8000, len: 0x1000 }]);
        assert_eq!((m.iova(), m.len(), m.is_contiguous(), m.is_empty()), (0x1000, 0x5000, false, false));
        assert_eq!([0, 0x3fff, 0x4000, 0x4fff, 0x5000].map(|at| m.at(at)), [Some(0x1000), Some(0x4fff), Some(0x8000), Some(0x8fff), None]);
        let none = Mapping::default();
        assert_eq!((none.iova(), none.len(), none.at(0), none.is_empty()), (0, 0, None, true));
    }

    #[test]
    fn pages_are_as_large_as_the_runs_allow() {
        let start = 7 * GIB + 5 * 4096;
        let size = |pieces: &[(u64, u64)]| Mapping::new(pieces.iter().copied()).page_size(start);
        let (large, huge) = (2 * MIB - 5 * 4096, GIB - 5 * 4096);
        assert_eq!(size(&[(40 * GIB + 5 * 4096, 4096)]), PageSize::Huge);
        assert_eq!(size(&[(40 * GIB + 5 * 4096, huge), (9 * GIB, 3 * GIB), (2 * GIB, 4096)]), PageSize::Huge);
        assert_eq!(size(&[(40 * GIB + 2 * MIB + 5 * 4096, huge), (9 * GIB, GIB)]), PageSize::Large, "the first is not where the address is");
        assert_eq!(size(&[(40 * GIB + 5 * 4096, large), (9 * GIB, GIB)]), PageSize::Large, "the second begins within a page");
        assert_eq!(size(&[(40 * GIB + 5 * 4096, large), (9 * GIB + MIB, GIB)]), PageSize::Small);
        assert_eq!(size(&[(40 * GIB + 5 * 4096, 4096), (9 * GIB + 6 * 4096, GIB)]), PageSize::Small);
    }

    /// Every byte of a part is found by its page, whatever the page's size.
    #[test]
    fn a_table_finds_every_byte() {
        let start = 7 * GIB + 5 * 4096;
        let m = Mapping::new([(40 * GIB + 5 * 4096, GIB - 5 * 4096), (9 * GIB, 3 * GIB), (2 * GIB, 9 * MIB)]);
        let parts = [start..start + m.len(), start + 3..start + 4, start + 3 * GIB - 1..start + 3 * GIB + 70 * MIB];
        for size in [PageSize::Small, PageSize::Large, PageSize::Huge] {
            for part in parts.clone() {
                let first = part.start >> size.bits();
                let table: Vec<u64> = m.pages(start, part.clone(), size).collect();
                let middle = part.start + (part.end - part.start) / 2;
                for address in [part.start, middle, part.end - 1] {
                    let page = table[((address >> size.bits()) - first) as usize];
                    assert_eq!(Some(page + (address & (size.bytes() - 1))), m.at(address - start), "{size:?} {address:#x}");
                }
            }
        }
    }
}
