//! Memory that a vfio-user client has mapped for a function: the page tables of that function's IOMMU domain.
//!
//! Every access is a `pread` or `pwrite` of the file that came with the mapping, never a memory mapping of it: a client
//! that truncates its file makes reads fail, it does not make this process fault. (Hugetlbfs files cannot be written
//! that way, so memory backed by them is refused to the card's writes.)
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Most mappings of one function: more than the kernel's VFIO allows.
const MAX_MAPS: usize = 1 << 17;

/// One mapping.
#[derive(Debug)]
pub struct Mapping {
    /// Bytes.
    pub size: u64,
    /// The memory and where in the file it starts; `None`: the client named a range but gave nothing to reach it by.
    pub backing: Option<(File, u64)>,
    /// The card may read.
    pub readable: bool,
    /// The card may write.
    pub writable: bool,
}

/// The domain of one function.
#[derive(Debug, Default)]
pub struct ClientMap {
    /// Bus master enable: without it nothing is mapped.
    pub enabled: bool,
    maps: BTreeMap<u64, Mapping>,
    /// Reads and writes that were let through.
    passed: [u64; 2],
    /// Accesses that came while bus mastering was off.
    off: u64,
}

/// errno of a refused request.
pub type Errno = i32;

impl ClientMap {
    /// Adds a mapping at `iova`.
    pub fn map(&mut self, iova: u64, mapping: Mapping) -> Result<(), Errno> {
        let end = iova.checked_add(mapping.size).filter(|_| mapping.size > 0).ok_or(libc::EINVAL)?;
        if iova % crate::iommu::PAGE != 0 || mapping.size % crate::iommu::PAGE != 0 {
            return Err(libc::EINVAL);
        }
        if let Some((_, offset)) = &mapping.backing {
            // File offsets are signed.
            offset.checked_add(mapping.size).filter(|e| *e <= i64::MAX as u64).ok_or(libc::EINVAL)?;
        }
        if self.maps.range(..end).next_back().is_some_and(|(s, m)| s + m.size > iova) {
            return Err(libc::EEXIST);
        }
        if self.maps.len() >= MAX_MAPS {
            return Err(libc::ENOSPC);
        }
        self.maps.insert(iova, mapping);
        Ok(())
    }

    /// Removes the mappings that lie inside `iova..iova + size`; one that is cut is refused. Nothing there: nothing to do
    /// (QEMU unmaps ranges that it never mapped).
    pub fn unmap(&mut self, iova: u64, size: u64) -> Result<(), Errno> {
        // The last address, not the end: QEMU unmaps ranges that reach to 2^64.
        let last = size.checked_sub(1).and_then(|n| iova.checked_add(n)).ok_or(libc::EINVAL)?;
        let touched: Vec<u64> = self.maps.range(..=last).rev().take_while(|(s, m)| *s + m.size > iova).map(|(s, _)| *s).collect();
        if touched.iter().any(|s| *s < iova || s + (self.maps[s].size - 1) > last) {
            return Err(libc::EINVAL);
        }
        touched.iter().for_each(|s| {
            self.maps.remove(s);
        });
        Ok(())
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.maps.clear();
    }

    /// Mappings.
    pub fn len(&self) -> usize {
        self.maps.len()
    }

    /// No mapping.
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    fn find(&self, iova: u64, len: usize, write: bool) -> Option<(&File, u64)> {
        if !self.enabled {
            return None;
        }
        let (start, m) = self.maps.range(..=iova).next_back()?;
        let at = iova - start;
        if at.checked_add(len as u64)? > m.size || !(if write { m.writable } else { m.readable }) {
            return None;
        }
        let (file, offset) = m.backing.as_ref()?;
        Some((file, offset + at))
    }

    /// The whole range lies in one mapping.
    pub fn spans(&self, iova: u64, len: usize) -> bool {
        let inside = |(start, m): (&u64, &Mapping)| (iova - start).checked_add(len as u64).is_some_and(|end| end <= m.size);
        self.maps.range(..=iova).next_back().is_some_and(inside)
    }

    /// The whole range may be read.
    pub fn is_mapped(&self, iova: u64, len: usize) -> bool {
        self.find(iova, len, false).is_some()
    }

    /// Reads and writes that were let through so far, whatever has been mapped meanwhile.
    pub fn passed(&self) -> [u64; 2] {
        self.passed
    }

    /// Accesses so far that came while bus mastering was off, and were refused for that.
    pub fn off(&self) -> u64 {
        self.off
    }

    /// Reads bytes; false: the range is not mapped for that, or its memory has gone.
    pub fn read(&mut self, iova: u64, out: &mut [u8]) -> bool {
        let done = self.find(iova, out.len(), false).is_some_and(|(file, at)| file.read_exact_at(out, at).is_ok());
        self.passed[0] += done as u64;
        self.off += !self.enabled as u64;
        done
    }

    /// Writes bytes; `ordered`: the last eight of them behind the others.
    pub fn store(&mut self, iova: u64, data: &[u8], ordered: bool) -> bool {
        self.off += !self.enabled as u64;
        let Some((file, at)) = self.find(iova, data.len(), true) else { return false };
        let (body, tail) = data.split_at(if ordered { data.len().saturating_sub(8) } else { 0 });
        let done = (body.is_empty() || file.write_all_at(body, at).is_ok()) && file.write_all_at(tail, at + body.len() as u64).is_ok();
        self.passed[1] += done as u64;
        done
    }

    /// Writes the bytes that `strobe` selects.
    pub fn write(&mut self, iova: u64, data: &[u8], strobe: u64) -> bool {
        self.off += !self.enabled as u64;
        let Some((file, at)) = self.find(iova, data.len(), true) else { return false };
        let mut i = 0;
        while i < data.len() {
            let run = (strobe >> i).trailing_ones() as usize;
            if run == 0 {
                i += 1;
                continue;
            }
            let bytes = &data[i..(i + run).min(data.len())];
            // The kernel may copy in any order, and drivers poll the last byte of a record: it goes out after the rest.
            let split = if bytes.len() > 8 { bytes.len() - 8 } else { 0 };
            let (body, tail) = bytes.split_at(split);
            if !(body.is_empty() || file.write_all_at(body, at + i as u64).is_ok()) || file.write_all_at(tail, at + (i + split) as u64).is_err() {
                return false;
            }
            i += run;
        }
        self.passed[1] += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, SeekFrom};

    fn memory(name: &str, len: u64) -> File {
        let path = std::env::temp_dir().join(format!("ferric-dma-{}-{name}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.set_len(len).unwrap();
        file
    }

    fn mapping(file: &File, offset: u64, size: u64, writable: bool) -> Mapping {
        Mapping { size, backing: Some((file.try_clone().unwrap(), offset)), readable: true, writable }
    }

    #[test]
    fn accesses_stay_inside_what_is_mapped() {
        let mut file = memory("inside", 0x4000);
        let mut m = ClientMap { enabled: true, ..Default::default() };
        m.map(0x10_0000, mapping(&file, 0x1000, 0x1000, true)).unwrap();
        m.map(0x20_0000, mapping(&file, 0x2000, 0x1000, false)).unwrap();
        let data: Vec<u8> = (1..=64).collect();
        assert!(m.write(0x10_0fc0, &data, u64::MAX));
        assert!(m.write(0x10_0000, &data, 0b1111_1111_1011_0110));
        for (iova, len) in [(0x10_0fc1, 64), (0xf_ffff, 64), (0, 64), (u64::MAX - 10, 64), (0x20_0000, 64)] {
            assert!(!m.write(iova, &data[..len], u64::MAX), "{iova:#x}");
        }
        let mut all = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut all).unwrap();
        let mut want = vec![0; 0x4000];
        want[0x1fc0..0x2000].copy_from_slice(&data);
        (0..16).filter(|i| 0b1111_1111_1011_0110 >> i & 1 == 1).for_each(|i| want[0x1000 + i] = data[i]);
        assert!(all == want, "other bytes than those were written");
        let mut out = [0; 64];
        assert!(m.read(0x10_0fc0, &mut out) && out[..] == data[..]);
        assert!(m.read(0x20_0000, &mut out));
        assert_eq!(m.passed(), [2, 2], "what was refused does not count");
        m.enabled = false;
        assert!(!m.read(0x20_0000, &mut out), "bus master off");
        assert_eq!((m.off(), m.passed()), (1, [2, 2]));
    }

    #[test]
    fn mappings_neither_overlap_nor_are_cut() {
        let file = memory("overlap", 0x1000);
        let mut m = ClientMap { enabled: true, ..Default::default() };
        m.map(0x4000, mapping(&file, 0, 0x2000, true)).unwrap();
        for (iova, size, errno) in [
            (0x5000, 0x1000, libc::EEXIST),
            (0x3000, 0x2000, libc::EEXIST),
            (0, 0x1_0000, libc::EEXIST),
            (0x6000, 0, libc::EINVAL),
            (0x6010, 0x1000, libc::EINVAL),
            (u64::MAX - 0xfff, 0x2000, libc::EINVAL),
        ] {
            assert_eq!(m.map(iova, mapping(&file, 0, size, true)), Err(errno), "{iova:#x}+{size:#x}");
        }
        assert_eq!(m.map(0x1_0000, mapping(&file, i64::MAX as u64, 0x1000, true)), Err(libc::EINVAL));
        m.map(0x3000, mapping(&file, 0, 0x1000, true)).unwrap();
        assert_eq!(m.unmap(0x4000, 0x1000), Err(libc::EINVAL));
        assert_eq!(m.unmap(0x5000, 0x1000), Err(libc::EINVAL));
        assert_eq!(m.unmap(0x8000, 0x1000), Ok(()));
        assert_eq!((m.unmap(u64::MAX, 0x1000), m.unmap(0x3000, 0)), (Err(libc::EINVAL), Err(libc::EINVAL)));
        assert_eq!((m.unmap(0x3000, 0x3000), m.len()), (Ok(()), 0));
        m.map(0x3000, mapping(&file, 0, 0x1000, true)).unwrap();
        assert_eq!((m.unmap(1 << 63, 1 << 63), m.len()), (Ok(()), 1));
        assert_eq!((m.unmap(0, 1 << 63), m.len()), (Ok(()), 0));
    }

    #[test]
    fn memory_that_the_client_took_away_is_a_fault() {
        let file = memory("gone", 0x1000);
        let mut m = ClientMap { enabled: true, ..Default::default() };
        m.map(0x1000, mapping(&file, 0, 0x1000, true)).unwrap();
        m.map(0x8000, Mapping { size: 0x1000, backing: None, readable: true, writable: true }).unwrap();
        assert!(m.is_mapped(0x1000, 8) && !m.is_mapped(0x8000, 8));
        file.set_len(0).unwrap();
        assert!(!m.read(0x1000, &mut [0; 8]));
    }
}
