//! Registering memory anew under the same key (IBTA 11.2.8.6): other rights, another protection domain, other memory.
use crate::admin::words;
use crate::context::Pd;
use crate::error::{Error, Result};
use crate::function::PdInner;
use crate::mr::{check, map, Access, Laid, Memory, MemoryRegion, Region, Start};
use crate::own;
use ferric_abi::codes::AdminOpcode;
use std::sync::Arc;

impl MemoryRegion {
    /// Registers `ptr..ptr + len` under the key that this region has, in `pd` (which is on the same card), with `access`, its first byte named `start`; `bindable`: windows may be bound to it.
    /// Meanwhile the key works for nobody. When it fails the region is as it was, unless [`MemoryRegion::is_closed`]. The card refuses while windows are bound to the region.
    ///
    /// # Safety
    /// As [`Pd::register_raw`].
    pub unsafe fn reregister(&mut self, pd: &Pd, (ptr, len, start): (*mut u8, usize, u64), access: Access, bindable: bool) -> Result<()> {
        check(ptr as u64, len, start)?;
        own::check(ptr as usize, len, access.dma())?;
        let region = &mut self.region;
        if region.closed || self.memory.owned || !Arc::ptr_eq(&pd.inner.ctx, &region.pd.ctx) {
            return Err(Error::State);
        }
        // SAFETY: by the caller's promise; the region unmaps it in the end.
        let mapping = unsafe { map(&pd.inner, ptr, len, access) }?;
        let mode = if bindable { Start::Bindable } else { Start::Ordinary };
        let laid = Laid::new(&pd.inner, &mapping, start, len, access, mode, region.rkey() as u8);
        let changed = laid.and_then(|laid| {
            region.replace(&pd.inner, &laid)?;
            Ok(laid)
        });
        let device = &pd.inner.ctx.device;
        match changed {
            Ok(laid) => {
                device.unmap(&std::mem::replace(&mut region.mapping, mapping));
                (region.pd, region.start, region.len, region.laid) = (pd.inner.clone(), start, len, laid);
                self.memory = Memory { ptr, len, owned: false };
                Ok(())
            }
            Err(e) => {
                device.unmap(&mapping);
                Err(e)
            }
        }
    }

    /// The card has no line for it any more.
    pub fn is_closed(&self) -> bool {
        self.region.closed
    }
}

impl Region {
    /// Gives the region's number another line, or the one it had if that cannot be.
    fn replace(&mut self, pd: &PdInner, laid: &Laid) -> Result<()> {
        let ctx = &pd.ctx;
        ctx.admin("destroy MR to register it anew", AdminOpcode::DestroyMr, self.index, &[])?;
        let create = |laid: &Laid| ctx.admin("register MR anew", AdminOpcode::CreateMr, self.index, &words::<8>(&laid.line.0)).map(drop);
        create(laid).inspect_err(|e| {
            if create(&self.laid).is_err() {
                log::error!("MR {} is lost: {e}", self.index);
                self.closed = true;
                ctx.device.unmap(&self.mapping);
            }
        })
    }
}
