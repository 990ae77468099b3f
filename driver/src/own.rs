//! What this process may do with its own memory: the kernel answers that when VFIO pins it, a served or simulated card does not.
use crate::device::DmaAccess;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// All of `len` bytes from `start` on is mapped, and the process may read it, and write it where the card is to. [`Error::Fault`]: not so.
pub(crate) fn check(start: usize, len: usize, access: DmaAccess) -> Result<()> {
    let Ok(file) = File::open("/proc/self/maps") else {
        log::debug!("/proc/self/maps cannot be opened: memory is registered unseen");
        return Ok(());
    };
    if covers(BufReader::new(file), start, start.saturating_add(len), access == DmaAccess::ReadWrite) {
        Ok(())
    } else {
        Err(Error::Fault { start, len })
    }
}

/// `maps` is as in proc(5): mappings in order of their addresses, one a line, which begins `start-end rwxp`.
fn covers(mut maps: impl BufRead, start: usize, end: usize, write: bool) -> bool {
    let (mut seen, mut line) = (start, Vec::new());
    while seen < end {
        line.clear();
        if !maps.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            return false;
        }
        let Some((first, last, rights)) = parse(&line) else { return false };
        if last <= seen {
            continue;
        }
        if first > seen || rights[0] != b'r' || write && rights[1] != b'w' {
            return false;
        }
        seen = last;
    }
    true
}

fn parse(line: &[u8]) -> Option<(usize, usize, [u8; 2])> {
    let text = std::str::from_utf8(line.get(..line.iter().position(|b| *b == b' ')? + 3)?).ok()?;
    let (range, rights) = text.split_once(' ')?;
    let (first, last) = range.split_once('-')?;
    let hex = |s| usize::from_str_radix(s, 16).ok();
    Some((hex(first)?, hex(last)?, rights.as_bytes().try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_compared_with_mappings() {
        let maps = b"1000-3000 rw-p 00000000 00:00 0   [heap]\n3000-4000 r--p 0 0:0 0 /a b\n6000-7000 rw-p 0\n7000-8000 ---p 0\n";
        let may = |start, end, write| covers(&maps[..], start, end, write);
        assert!(may(0x1000, 0x3000, true) && may(0x1001, 0x3fff, false) && may(0x6000, 0x7000, true));
        assert!(!may(0x2fff, 0x3001, true), "read-only");
        assert!(!may(0xfff, 0x1001, false) && !may(0x3000, 0x6001, false) && !may(0x5000, 0x5001, false), "holes");
        assert!(!may(0x6000, 0x7001, false), "no right at all");
        assert!(!may(0x6000, 0x8001, false) && !may(0x9000, 0x9001, false), "behind the last");
        assert!(!covers(&b"nonsense\n"[..], 1, 2, false));
    }

    #[test]
    fn own_memory() {
        let here = [0u8; 64];
        assert!(check(here.as_ptr() as usize, 64, DmaAccess::ReadWrite).is_ok());
        let text = "a constant";
        assert!(check(text.as_ptr() as usize, text.len(), DmaAccess::Read).is_ok());
        assert!(matches!(check(text.as_ptr() as usize, text.len(), DmaAccess::ReadWrite), Err(Error::Fault { .. })));
        assert!(matches!(check(4096, 64, DmaAccess::Read), Err(Error::Fault { start: 4096, len: 64 })));
        assert!(check(usize::MAX - 10, 64, DmaAccess::Read).is_err());
    }
}
