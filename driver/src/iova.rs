//! I/O virtual addresses: which are free, out of the ranges the IOMMU takes.
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Buffers of this size and more are aligned to it, so that the IOMMU can use large pages for them.
const LARGE: u64 = 2 << 20;

/// First-fit allocator of page runs. A page stays free behind every run, so that an overrun faults.
#[derive(Debug)]
pub struct IovaAllocator {
    /// Start and end of every free range; neighbours are always joined.
    free: BTreeMap<u64, u64>,
}

impl IovaAllocator {
    /// All of `ranges` is free. Page 0 is never given out: a zeroed descriptor must fault.
    pub fn new(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut allocator = Self { free: BTreeMap::new() };
        for r in ranges {
            let (start, end) = (r.start.max(PAGE).next_multiple_of(PAGE), r.end / PAGE * PAGE);
            if start < end {
                allocator.insert(start, end);
            }
        }
        allocator
    }

    fn padded(len: u64) -> Option<u64> {
        len.max(1).checked_next_multiple_of(PAGE)?.checked_add(PAGE)
    }

    /// Takes a run for `len` bytes.
    pub fn take(&mut self, len: u64) -> Option<u64> {
        let size = Self::padded(len)?;
        let align = if len >= LARGE { LARGE } else { PAGE };
        let (range, at) = self.free.iter().find_map(|(start, end)| {
            let at = start.checked_next_multiple_of(align)?;
            (at.checked_add(size)? <= *end).then_some(((*start, *end), at))
        })?;
        self.free.remove(&range.0);
        if range.0 < at {
            self.free.insert(range.0, at);
        }
        if at + size < range.1 {
            self.free.insert(at + size, range.1);
        }
        Some(at)
    }

    /// Gives back what [`IovaAllocator::take`] gave for `len` bytes.
    pub fn give(&mut self, start: u64, len: u64) {
        if let Some(size) = Self::padded(len) {
            self.insert(start, start + size);
        }
    }

    fn insert(&mut self, mut start: u64, mut end: u64) {
        if let Some((s, e)) = self.free.range(..start).next_back().map(|(s, e)| (*s, *e)) {
            debug_assert!(e <= start, "{start:#x} is free already");
            if e == start {
                self.free.remove(&s);
                start = s;
            }
        }
        if let Some(e) = self.free.remove(&end) {
            end = e;
        }
        self.free.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_do_not_touch_and_come_back() {
        let mut a = IovaAllocator::new(std::iter::once(0..0x10_0000));
        let before = format!("{a:?}");
        let mut x = 12345u64;
        for _ in 0..50 {
            let mut held: Vec<(u64, u64)> = Vec::new();
            loop {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let len = x >> 40 & 0x7fff;
                let Some(at) = a.take(len) else { break };
                assert!(at >= PAGE && at % PAGE == 0 && at + len <= 0x10_0000);
                assert!(held.iter().all(|(s, l)| at + len + PAGE <= *s || s + l + PAGE <= at), "{at:#x}+{len:#x} touches another");
                held.push((at, len));
                if x >> 20 & 3 == 0 {
                    let (s, l) = held.swap_remove((x >> 24) as usize % held.len());
                    a.give(s, l);
                }
            }
            held.drain(..).for_each(|(s, l)| a.give(s, l));
            assert_eq!(format!("{a:?}"), before, "something was lost");
        }
    }

    #[test]
    fn large_buffers_are_aligned_and_impossible_ones_refused() {
        let mut a = IovaAllocator::new([0x1000..0x80_0000, 0x100_0000..0x200_0000]);
        assert_eq!(a.take(LARGE).unwrap() % LARGE, 0);
        assert_eq!(a.take(14 << 20), Some(0x100_0000));
        assert_eq!(a.take(16 << 20), None);
        assert_eq!(a.take(u64::MAX), None);
    }
}
