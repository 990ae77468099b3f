//! Host memory as work requests name it: keys, scatter/gather lists, DMA.
use crate::counters::count;
use crate::host::{Host, PAGE};
use crate::Twin;
use ferric_abi::codes::CqeStatus;
use ferric_abi::host::{Pte, Sge};
use ferric_model::keys::{translate, Access};
use std::ops::Range;

/// Rights that are asked for, as bits of `Access::access`.
pub(crate) mod right {
    pub const LOCAL_READ: u8 = 1;
    pub const LOCAL_WRITE: u8 = 2;
    pub const REMOTE_WRITE: u8 = 4;
    pub const REMOTE_READ: u8 = 8;
    pub const REMOTE_ATOMIC: u8 = 16;
    pub const REMOTE_FLUSH: u8 = 32;
}

/// Status of the key check whose page table could not be read.
const TABLE_UNREADABLE: u8 = 6;

/// Why bytes could not be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The list ends before the bytes do.
    Short,
    /// The list or the request could not be read, or has too many entries.
    List,
    /// Key, domain, bounds, right or page.
    Key,
    /// The page table could not be read.
    Table,
    /// The host refused the access itself.
    Dma,
}

impl Fault {
    /// What a send request ends with that has it.
    pub(crate) fn of_request(self) -> CqeStatus {
        match self {
            Self::Short | Self::List => CqeStatus::LocalLength,
            Self::Key => CqeStatus::LocalProtection,
            Self::Table | Self::Dma => CqeStatus::Fatal,
        }
    }
}

/// Whose access it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub function: u16,
    pub pd: u32,
    pub qpn: u32,
}

/// Largest slot of a ring.
pub(crate) const SLOT: usize = 512;

/// A slot of a send or receive ring, fetched, and where its list begins.
#[derive(Clone)]
pub(crate) struct Slot {
    pub bytes: [u8; SLOT],
    /// Bytes of the slot.
    pub len: usize,
    /// The host refused to give it.
    pub failed: bool,
}

impl Slot {
    pub(crate) fn empty() -> Self {
        Self { bytes: [0; SLOT], len: 64, failed: false }
    }
}

/// Entries of a slot.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    pub slot: &'a Slot,
    /// Byte of the first entry.
    pub at: usize,
    pub entries: usize,
}

impl List<'_> {
    fn entry(&self, n: usize) -> Option<Sge> {
        let at = self.at + n * Sge::BYTES;
        if n >= self.entries || at + Sge::BYTES > self.slot.len {
            return None;
        }
        let mut sge = Sge::default();
        sge.0.copy_from_slice(&self.slot.bytes[at..at + Sge::BYTES]);
        Some(sge)
    }

    /// Calls `piece` with address, key and range of the bytes `from..from + len` of the message, cut at entry ends.
    fn walk(&self, from: u64, len: usize, mut piece: impl FnMut(u64, u32, Range<usize>) -> Result<(), Fault>) -> Result<(), Fault> {
        let (mut skip, mut done, mut n) = (from, 0, 0);
        while done < len {
            let entry = self.entry(n).ok_or(Fault::Short)?;
            let room = u64::from(entry.length());
            if skip >= room {
                skip -= room;
            } else {
                let take = ((room - skip) as usize).min(len - done);
                piece(entry.addr().wrapping_add(skip), entry.lkey(), done..done + take)?;
                done += take;
                skip = 0;
            }
            n += 1;
        }
        Ok(())
    }
}

impl Twin {
    /// A DMA read.
    pub(crate) fn dma_read(&mut self, host: &mut dyn Host, function: u16, iova: u64, out: &mut [u8]) -> bool {
        count!(self, 0, "dma_rd.reads");
        let fine = if self.ahead.tries() { host.try_read(function, iova, out) } else { host.read(function, iova, out) };
        if !fine {
            count!(self, 0, "dma_rd.read_errors");
        }
        fine
    }

    /// A DMA write of a record, or of what ends a message.
    pub(crate) fn dma_write(&mut self, host: &mut dyn Host, function: u16, iova: u64, data: &[u8]) -> bool {
        count!(self, 0, "dma_wr.writes");
        let fine = host.write(function, iova, data);
        if !fine {
            count!(self, 0, "dma_wr.write_errors");
        }
        fine
    }

    /// A DMA write of payload behind which more follows.
    fn dma_place(&mut self, host: &mut dyn Host, function: u16, iova: u64, data: &[u8]) -> bool {
        count!(self, 0, "dma_wr.writes");
        let fine = host.place(function, iova, data);
        if !fine {
            count!(self, 0, "dma_wr.write_errors");
        }
        fine
    }

    /// IOVA of `va`, if `len` bytes from there on may be reached so.
    pub(crate) fn reach(&mut self, host: &mut dyn Host, owner: Owner, key: u32, va: u64, len: u32, rights: u8) -> Result<u64, Fault> {
        self.reach_part(host, owner, key, va, len, rights, false)
    }

    /// The same; of a region that is meant as a `whole` the bounds do not count.
    #[allow(clippy::too_many_arguments)] // whose access, to what
    pub(crate) fn reach_part(&mut self, host: &mut dyn Host, owner: Owner, key: u32, va: u64, len: u32, rights: u8, whole: bool) -> Result<u64, Fault> {
        count!(self, 0, "mr.mr_checks");
        let access = Access { key, pd: owner.pd, function: owner.function, qpn: owner.qpn, va, chk_len: len, access: rights, whole };
        let tries = self.ahead.tries();
        let fetch = |iova| {
            let mut pte = Pte::default();
            let fine = if tries { host.try_read(owner.function, iova, &mut pte.0) } else { host.read(owner.function, iova, &mut pte.0) };
            fine.then_some(pte)
        };
        translate(&self.tables.mr, &access, fetch).map_err(|status| {
            count!(self, 0, "mr.mr_refused");
            if status == TABLE_UNREADABLE {
                Fault::Table
            } else {
                Fault::Key
            }
        })
    }

    /// Calls `access` with address and range of what lies one behind the other for the card of the `len` bytes from `va` on. Keys are checked page by page,
    /// the first time of `bounds` bytes at least.
    #[allow(clippy::too_many_arguments)] // whose access, to what
    fn runs(
        &mut self,
        host: &mut dyn Host,
        owner: Owner,
        key: u32,
        va: u64,
        len: usize,
        bounds: u32,
        rights: u8,
        mut access: impl FnMut(&mut Self, &mut dyn Host, u64, Range<usize>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (mut first, mut from, mut at) = (0u64, 0, 0);
        while at < len {
            let here = va.wrapping_add(at as u64);
            let n = ((PAGE - here % PAGE) as usize).min(len - at);
            let reached = self.reach(host, owner, key, here, if at == 0 { bounds.max(n as u32) } else { n as u32 }, rights);
            if from < at && reached != Ok(first.wrapping_add((at - from) as u64)) {
                access(self, host, first, from..at)?;
                from = at;
            }
            let iova = reached?;
            if from == at {
                first = iova;
            }
            at += n;
        }
        if from < at {
            access(self, host, first, from..at)?;
        }
        Ok(())
    }

    /// Reads the bytes of the region of `key` from `va` on.
    pub(crate) fn load(&mut self, host: &mut dyn Host, owner: Owner, key: u32, va: u64, rights: u8, out: &mut [u8]) -> Result<(), Fault> {
        self.runs(host, owner, key, va, out.len(), 0, rights, |twin, host, iova, range| if twin.dma_read(host, owner.function, iova, &mut out[range]) { Ok(()) } else { Err(Fault::Dma) })
    }

    /// Writes bytes to the region of `key` from `va` on. The first access checks `bounds` bytes, so that nothing is written of what does not fit. `ends`: they end a message,
    /// of which a program may look for the last byte.
    #[allow(clippy::too_many_arguments)] // whose access, to what, and the bytes
    pub(crate) fn store(&mut self, host: &mut dyn Host, owner: Owner, key: u32, va: u64, bounds: u32, ends: bool, data: &[u8]) -> Result<(), Fault> {
        let walked = self.put(host, owner, key, va, bounds, (right::REMOTE_WRITE, ends), data);
        self.landed(walked)
    }

    /// What the host refuses counts only where nothing else is wrong: the walk does not wait for its answers.
    fn landed(&mut self, walked: Result<(), Fault>) -> Result<(), Fault> {
        let broken = std::mem::take(&mut self.broken);
        walked.and(if broken { Err(Fault::Dma) } else { Ok(()) })
    }

    #[allow(clippy::too_many_arguments)] // as above
    fn put(&mut self, host: &mut dyn Host, owner: Owner, key: u32, va: u64, bounds: u32, (rights, ends): (u8, bool), data: &[u8]) -> Result<(), Fault> {
        self.runs(host, owner, key, va, data.len(), bounds, rights, |twin, host, iova, range| {
            let last = ends && range.end == data.len();
            twin.broken |= !if last { twin.dma_write(host, owner.function, iova, &data[range]) } else { twin.dma_place(host, owner.function, iova, &data[range]) };
            Ok(())
        })
    }

    /// Reads bytes `from..` of a message from where a send request's list has them.
    pub(crate) fn gather(&mut self, host: &mut dyn Host, owner: Owner, list: List, from: u64, out: &mut [u8]) -> Result<(), Fault> {
        let len = out.len();
        list.walk(from, len, |va, key, range| self.load(host, owner, key, va, right::LOCAL_READ, &mut out[range]))
    }

    /// Writes bytes `from..` of a message to where a list wants them.
    pub(crate) fn scatter(&mut self, host: &mut dyn Host, owner: Owner, list: List, from: u64, data: &[u8]) -> Result<(), Fault> {
        let walked = list.walk(from, data.len(), |va, key, range| self.put(host, owner, key, va, 0, (right::LOCAL_WRITE, false), &data[range]));
        self.landed(walked)
    }
}
