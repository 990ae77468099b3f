//! Fast regions (IBTA 10.6.5, 11.2.8; Linux: `IB_WR_REG_MR`, `IB_WR_LOCAL_INV`): memory that is mapped once and whose key, bounds and rights
//! work requests give and take away.
use crate::context::Pd;
use crate::dma::DmaBuffer;
use crate::error::{Error, Result};
use crate::function::PdInner;
use crate::mr::{entry, Access, MemoryRegion, Start};
use crate::qp::{Payload, QueuePair, SendRequest};
use ferric_abi::codes::WrOpcode;
use ferric_abi::host::Pte;
use std::ops::Range;
use std::sync::Arc;

/// Mapped memory without a working key, until a registration has been posted. Its pages are listed by the card's address in one of two page
/// tables in turn, so that the next registration may be posted while the region still works by the one before.
pub struct FastRegion {
    memory: MemoryRegion,
    tables: [DmaBuffer; 2],
    /// The table of the registration posted last, and its key.
    turn: usize,
    key: u32,
}

impl Pd {
    /// Maps `memory` and allocates a region for it, which is free: its key works when a registration has been posted and is complete.
    pub fn alloc_fast(&self, memory: Box<[u8]>) -> Result<FastRegion> {
        FastRegion::new(&self.inner, memory)
    }
}

impl FastRegion {
    fn new(pd: &Arc<PdInner>, memory: Box<[u8]>) -> Result<Self> {
        let memory = MemoryRegion::register(pd, memory, Access::ALL, Start::Free)?;
        let bytes = memory.pages(memory.addr()..memory.addr() + memory.len() as u64).count() * Pte::BYTES;
        let table = || DmaBuffer::new(&pd.ctx.device, bytes);
        Ok(Self { tables: [table()?, table()?], turn: 0, key: memory.rkey(), memory })
    }

    /// The memory, whatever of it is registered.
    pub fn memory(&self) -> &MemoryRegion {
        &self.memory
    }

    /// Key of the registration posted last.
    pub fn key(&self) -> u32 {
        self.key
    }

    /// Lists the pages of `range` in the table that is not in use, and takes the next key. Start address, length, table.
    fn list(&mut self, range: &Range<usize>) -> Result<(u64, u64, u64)> {
        if range.is_empty() || range.end > self.memory.len() {
            return Err(Error::Invalid("a registration is a part of its region, of one byte at least"));
        }
        self.turn ^= 1;
        let table = &self.tables[self.turn];
        let start = self.memory.addr() + range.start as u64;
        for (n, iova) in self.memory.pages(start..start + range.len() as u64).enumerate() {
            table.write(n * Pte::BYTES, &entry(iova).0);
        }
        self.key = self.key & !0xff | self.key.wrapping_add(1) & 0xff;
        Ok((start, range.len() as u64, table.iova()))
    }
}

impl QueuePair {
    /// Posts the registration of `range` of a free region; requests posted later may use the key that comes back.
    pub fn post_register(&mut self, wr_id: u64, region: &mut FastRegion, range: Range<usize>, access: Access, signaled: bool) -> Result<u32> {
        let before = (region.turn, region.key);
        let (start, length, table) = region.list(&range)?;
        let request = SendRequest { opcode: WrOpcode::RegMr, imm: rights(access) | (region.memory.page_size() as u32) << 5, remote_addr: start, rkey: region.key, ..local(wr_id, signaled) };
        // What was not posted has taken neither the key nor the table's turn.
        self.post(&request, Some([table, length]), false, None).inspect_err(|_| (region.turn, region.key) = before)?;
        Ok(region.key)
    }

    /// Posts the invalidation of a key of our own: when it is complete the key works for nobody, and the region is free.
    pub fn post_local_invalidate(&mut self, wr_id: u64, key: u32, signaled: bool) -> Result<()> {
        self.stage_local_invalidate(wr_id, key, signaled, false)?;
        self.ring();
        Ok(())
    }

    /// The same (`fence`: after READs and atomics), but the card does not hear of it before [`QueuePair::ring`].
    pub fn stage_local_invalidate(&mut self, wr_id: u64, key: u32, signaled: bool, fence: bool) -> Result<()> {
        self.stage(&SendRequest { opcode: WrOpcode::LocalInv, imm: key, ..local(wr_id, signaled) }, None, fence, None)
    }
}

/// As a work request says them: bits 1 to 4 as in `MrCtx`.
pub(crate) fn rights(access: Access) -> u32 {
    let rights = [access.local_write, access.remote_write, access.remote_read, access.remote_atomic];
    rights.iter().enumerate().map(|(n, &on)| u32::from(on) << (n + 1)).sum()
}

/// A request that sends nothing.
pub(crate) fn local(wr_id: u64, signaled: bool) -> SendRequest<'static> {
    SendRequest { wr_id, opcode: WrOpcode::Nop, payload: Payload::Sges(&[]), remote_addr: 0, rkey: 0, imm: 0, signaled, solicited: false }
}
