//! Packet delivery of Ultra Ethernet (docs/uet.md): peers, WRITEs, and their ends. A first, thin interface: no endpoints, no addresses but IP's, one ring for all ends, the physical function only.

use crate::admin::words;
use crate::barrier;
use crate::dma::DmaBuffer;
use crate::error::{Error, Result};
use crate::function::Inner;
use crate::types::Path;
use crate::{Context, Pd};
use ferric_abi::codes::AdminOpcode;
use ferric_abi::context::RingCtx;
use ferric_abi::csr;
use ferric_abi::host::{self, UetPost};
use std::sync::Arc;

/// A WRITE: `length` bytes of a region of ours to a region of a peer's.
#[derive(Clone, Copy, Debug)]
pub struct UetWrite {
    /// Number of the peer (`Context::set_uet_peer`).
    pub peer: u16,
    /// Packets are delivered in order, else in any.
    pub ordered: bool,
    /// Bytes.
    pub length: u32,
    /// Where they are: address and key of the region.
    pub addr: u64,
    /// See `addr`.
    pub lkey: u32,
    /// Where they go: address and key of the peer's region.
    pub raddr: u64,
    /// See `raddr`.
    pub rkey: u64,
    /// Comes back with its end.
    pub tag: u32,
}

/// How a WRITE has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UetEnd {
    /// As in its [`UetWrite`].
    pub tag: u32,
    /// `ferric_abi::host::UetEnd::why`: 0 if the peer has answered, with the `ReturnCode` in `code`.
    pub why: u8,
    /// See `why`.
    pub code: u8,
}

/// The ring for the ends of WRITEs.
pub struct UetEnds {
    ctx: Arc<Inner>,
    ring: DmaBuffer,
    log_size: u8,
    taken: u32,
}

impl UetEnds {
    /// The next end, if there is one.
    pub fn poll(&mut self) -> Option<UetEnd> {
        let slot = self.taken as usize & ((1 << self.log_size) - 1);
        let phase = self.taken >> self.log_size & 1 == 0;
        // SAFETY: the ring has `2^log_size` entries.
        let end = host::UetEnd(unsafe { self.ring.record(slot * host::UetEnd::BYTES, phase) }?);
        self.taken = self.taken.wrapping_add(1);
        Some(UetEnd { tag: end.tag(), why: end.why(), code: end.code() })
    }
}

impl Drop for UetEnds {
    fn drop(&mut self) {
        if let Err(e) = self.ctx.admin("clear UET ends", AdminOpcode::SetUetEnds, 0, &[0; 3]) {
            log::warn!("the ring for ends stays: {e}");
        }
    }
}

impl Context {
    /// Whether the card delivers packets of Ultra Ethernet.
    pub fn has_uet(&self) -> bool {
        self.inner.caps.features >> csr::FEATURE_UET & 1 == 1
    }

    /// Peer `number` is reached by `path`, and may write to regions of `pd` that allow it. Of the path neither a VLAN nor the source port is used. `pd` has to stay as long as the peer: the card refuses to end it before, and then it stays for good. Errors: those of the card (a number above 15, a function that is not the physical one).
    pub fn set_uet_peer(&self, number: u16, path: &Path, pd: &Pd) -> Result<()> {
        let line = crate::qp::path_line(path)?.with_pkey(u16::try_from(pd.inner.id).map_err(|_| Error::Invalid("a domain of a UET peer has a number below 65536"))?);
        self.inner.admin("set UET peer", AdminOpcode::SetUetPeer, number.into(), &words::<14>(&line.0)).map(drop)
    }

    /// Nobody is peer `number` any more. What is under way to it has ended, with `why` 4, when this returns; a WRITE that the card has not looked at yet is dropped, and counted.
    pub fn clear_uet_peer(&self, number: u16) -> Result<()> {
        self.inner.admin("clear UET peer", AdminOpcode::SetUetPeer, number.into(), &[0; 14]).map(drop)
    }

    /// The ring for the ends of all WRITEs, with `2^log_size` places. No more WRITEs may be posted and not have been taken out of it than it has places.
    pub fn uet_ends(&self, log_size: u8) -> Result<UetEnds> {
        if !(1..=15).contains(&log_size) {
            return Err(Error::Invalid("a ring for ends has 2 to 32768 places"));
        }
        let ring = DmaBuffer::new(&self.inner.device, host::UetEnd::BYTES << log_size)?;
        let line = RingCtx::default().with_base(ring.iova());
        let [low, high, ..] = words::<8>(&line.0);
        self.inner.admin("set UET ends", AdminOpcode::SetUetEnds, 0, &[low, high, log_size.into()])?;
        Ok(UetEnds { ctx: self.inner.clone(), ring, log_size, taken: 0 })
    }

    /// Posts a WRITE. The card drops it, and counts that, if too many wait, or if the peer or the ring for ends is not there: it has no end then.
    pub fn uet_write(&self, write: &UetWrite) {
        let post = UetPost::default().with_peer(write.peer).with_rod(write.ordered).with_length(write.length).with_tag(write.tag).with_lkey(write.lkey).with_va(write.addr);
        let post = post.with_rkey(write.rkey).with_offset(write.raddr);
        barrier::to_device();
        self.inner.device.write_line(csr::DB_WQE, &post.0);
    }
}
