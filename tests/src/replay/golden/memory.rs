//! Registered memory: keys, bounds, rights and protection domains (IBTA 10.6).
use super::Defect;
use crate::replay::endpoint::{Domain, Region, RegionSpec};
use ferric_driver::Access;

/// What a peer wants to do with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// COMPARE_SWAP, FETCH_ADD.
    Atomic,
    /// FLUSH.
    Flush,
}

struct Entry {
    addr: u64,
    key: u32,
    len: usize,
    /// Guard bytes follow the region, so that a defect can reach them.
    bytes: Vec<u8>,
    access: Access,
    domain: Domain,
    /// A peer may invalidate the key.
    fast: bool,
    /// The key works.
    valid: bool,
}

impl Entry {
    /// The peer gave this key, and the queue pair may use it.
    fn answers_to(&self, key: u32, defect: Option<Defect>) -> bool {
        let fits = self.key == key || defect == Some(Defect::KeyUnchecked) && self.domain == Domain::Own && self.access.remote_write;
        fits && self.valid && (self.domain == Domain::Own || defect == Some(Defect::DomainUnchecked))
    }
}

/// All regions of a machine.
pub struct Memory {
    entries: Vec<Entry>,
    defect: Option<Defect>,
}

const GUARD: usize = 64;

impl Memory {
    pub fn new(defect: Option<Defect>) -> Self {
        Self { entries: Vec::new(), defect }
    }

    pub fn register(&mut self, spec: &RegionSpec) -> Region {
        let index = self.entries.len();
        let addr = 0x5500_0000_0000 + ((index as u64) << 32) + (spec.page_offset & 0xfff);
        let key = (index as u32 + 1) << 8 | (0xa0 + (index as u32 & 0xf));
        self.entries.push(Entry { addr, key, len: spec.len, bytes: vec![0; spec.len + GUARD], access: spec.access, domain: spec.domain, fast: spec.fast, valid: true });
        Region { index, addr, key, len: spec.len }
    }

    pub fn bytes(&self, index: usize) -> &[u8] {
        &self.entries[index].bytes
    }

    pub fn bytes_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.entries[index].bytes
    }

    /// The region of this key may be flushed whole.
    pub fn flushes(&self, key: u32) -> bool {
        self.entries.iter().any(|e| e.key == key && e.valid && e.access.remote_flush && e.domain == Domain::Own)
    }

    /// A peer invalidates a key (10.6.5): `false` unless it is that of a region made for it which gives the peer some right.
    pub fn invalidate(&mut self, key: u32) -> bool {
        let defect = self.defect;
        let may = |a: &Access| a.remote_write || a.remote_read || a.remote_atomic || a.remote_flush || defect == Some(Defect::PermissionUnchecked);
        let Some(e) = self.entries.iter_mut().find(|e| e.answers_to(key, defect) && e.fast && may(&e.access)) else { return false };
        e.valid = defect == Some(Defect::InvalidatedKeyWorks);
        true
    }

    /// The region and offset a remote access reaches; `None` is a remote access error.
    pub fn remote(&self, va: u64, key: u32, len: usize, want: Want) -> Option<(usize, usize)> {
        let has = |d| self.defect == Some(d);
        let end = va.checked_add(len as u64)?;
        self.entries.iter().enumerate().find_map(|(i, e)| {
            let slack = u64::from(has(Defect::BoundOffByOne));
            let inside = va >= e.addr && end <= e.addr + e.len as u64 + slack;
            let right = match want {
                Want::Write => e.access.remote_write,
                Want::Read => e.access.remote_read,
                Want::Atomic => e.access.remote_atomic,
                Want::Flush => e.access.remote_flush,
            } || has(Defect::PermissionUnchecked);
            (e.answers_to(key, self.defect) && inside && right).then(|| (i, (va - e.addr) as usize))
        })
    }
}
