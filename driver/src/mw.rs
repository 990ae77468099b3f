//! Memory windows (IBTA 10.6.6.2.6, 10.6.7.2): a peer's rights to part of a region, given and taken away by work requests.
use crate::admin::words;
use crate::context::Pd;
use crate::error::{Error, Result};
use crate::fast::{local, rights};
use crate::function::PdInner;
use crate::mr::{next_variant, Access, MemoryRegion};
use crate::qp::{QueuePair, SendRequest};
use ferric_abi::codes::{AdminOpcode, WrOpcode};
use ferric_abi::context::MrCtx;
use std::ops::Range;
use std::sync::Arc;

/// How a window is bound (IBTA 10.6.7.2; `ibv_mw_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowType {
    /// May be bound anew while it is bound, and to nothing; its key works on every queue pair of its protection domain.
    One,
    /// Bound when it is free, and freed by an invalidation; its key works on the queue pair through which it was bound.
    Two,
}

/// A window: no memory of its own, a key that works from a bind on.
pub struct MemoryWindow {
    pd: Arc<PdInner>,
    index: u32,
    key: u32,
    kind: WindowType,
}

impl Pd {
    /// Allocates a window, which is bound to nothing.
    pub fn alloc_mw(&self, kind: WindowType) -> Result<MemoryWindow> {
        let ctx = &self.inner.ctx;
        let variant = next_variant();
        let line = MrCtx::default().with_window(true).with_fast(kind == WindowType::Two).with_variant(variant).with_pd(self.inner.id).with_length(1);
        let index = ctx.create("create MW", AdminOpcode::CreateMr, &ctx.mr_ids, &words::<8>(&line.0))?;
        Ok(MemoryWindow { pd: self.inner.clone(), index, key: index << 8 | u32::from(variant), kind })
    }
}

impl MemoryWindow {
    /// Key of the bind posted last.
    pub fn key(&self) -> u32 {
        self.key
    }

    /// Its type.
    pub fn kind(&self) -> WindowType {
        self.kind
    }

    fn next_key(&mut self) -> u32 {
        self.key = self.key & !0xff | self.key.wrapping_add(1) & 0xff;
        self.key
    }
}

impl Drop for MemoryWindow {
    fn drop(&mut self) {
        let ctx = &self.pd.ctx;
        ctx.destroy("destroy MW", AdminOpcode::DestroyMr, self.index, &ctx.mr_ids);
    }
}

/// The bind of a window, by keys: for programs that keep their windows' keys themselves.
#[derive(Clone, Copy, Debug)]
pub struct BindRequest {
    /// The program's number.
    pub wr_id: u64,
    /// Key that the window gets: its number, and a new variant.
    pub rkey: u32,
    /// Key of the region.
    pub lkey: u32,
    /// First byte of the part that the window opens.
    pub addr: u64,
    /// Its bytes; none binds a window of type 1 to nothing.
    pub len: u64,
    /// Rights of a peer.
    pub access: Access,
    /// Ask for a completion on success.
    pub signaled: bool,
    /// Not before the READs and atomics posted earlier are done.
    pub fence: bool,
}

impl QueuePair {
    /// Stages a bind: the card hears of it with [`QueuePair::ring`], and checks it.
    pub fn stage_bind(&mut self, wr: &BindRequest) -> Result<()> {
        let (rights, addr, part) = if wr.len == 0 { (0, 0, [0, 0]) } else { (rights(wr.access), wr.addr, [wr.lkey.into(), wr.len]) };
        let request = SendRequest { opcode: WrOpcode::BindMw, imm: rights, remote_addr: addr, rkey: wr.rkey, ..local(wr.wr_id, wr.signaled) };
        self.stage(&request, Some(part), wr.fence, None)
    }

    /// Posts the bind of a window to `range` of a region made with [`Pd::register_bindable`]; requests posted later, and the peer when it is told,
    /// may use the key that comes back, with the rights of a peer in `access`. The region cannot be dropped while windows are bound to it: the
    /// card refuses.
    pub fn post_bind(&mut self, wr_id: u64, window: &mut MemoryWindow, region: &MemoryRegion, range: Range<usize>, access: Access, signaled: bool) -> Result<u32> {
        if range.is_empty() || range.end > region.len() {
            return Err(Error::Invalid("a window is a part of its region, of one byte at least"));
        }
        let before = window.key;
        let rkey = window.next_key();
        let request = SendRequest { opcode: WrOpcode::BindMw, imm: rights(access), remote_addr: region.addr() + range.start as u64, rkey, ..local(wr_id, signaled) };
        // What was not posted has not taken the key.
        self.post(&request, Some([region.lkey().into(), range.len() as u64]), false, None).inspect_err(|_| window.key = before)?;
        Ok(rkey)
    }

    /// Posts the bind of a window of type 1 to nothing.
    pub fn post_unbind(&mut self, wr_id: u64, window: &mut MemoryWindow, signaled: bool) -> Result<()> {
        let request = SendRequest { opcode: WrOpcode::BindMw, rkey: window.key, ..local(wr_id, signaled) };
        self.post(&request, Some([0, 0]), false, None)
    }
}
