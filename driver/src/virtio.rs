//! Rings of virtio network functions (docs/virtio.md): what the physical function writes for them. A first, thin interface: lines and tables as the card has them; who has what is the caller's business.

use crate::admin::words;
use crate::error::Result;
use crate::Context;
use ferric_abi::codes::AdminOpcode;
use ferric_abi::context::VqAvail;
use ferric_abi::csr;

/// Words of steering tables in one command.
const WORDS: usize = 16;
/// Words of a queue's available side that begin a ring.
const LINE: usize = 8;

/// A queue's place: what QUERY_VQ reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VqPlace {
    /// Its ring runs; it has been lost.
    pub enabled: bool,
    /// See `enabled`.
    pub broken: bool,
    /// Available index of the next chain to be taken, and the used index (of a packed ring: descriptors).
    pub fetch: u16,
    /// See `fetch`.
    pub used: u16,
    /// Chains that have been taken since the ring began, and those that have come back, modulo 65,536.
    pub taken: u16,
    /// See `taken`.
    pub back: u16,
}

impl Context {
    /// Whether the card runs rings of virtio functions.
    pub fn has_virtio(&self) -> bool {
        self.inner.caps.features >> csr::FEATURE_VIRTIO & 1 == 1
    }

    /// The ring of queue `queue` begins: areas, size, function and features as in `line`; its interrupts go to `vector`. Its function notifies by [`csr::DB_VQ`]. Errors: those of the card (a queue that there is not, that runs, a ring that cannot be, a function that is not the physical one).
    pub fn begin_vq(&self, queue: u16, line: &VqAvail, vector: u16) -> Result<()> {
        let words: [u32; LINE] = words(&line.with_enabled(true).0);
        let params: Vec<u32> = words.into_iter().chain([vector.into()]).collect();
        self.inner.admin("begin virtio queue", AdminOpcode::SetVq, queue.into(), &params).map(drop)
    }

    /// It ends: when this returns, nothing of it is in hand. Frames that its function had made available and that have been taken have left. Errors: those of the card.
    pub fn end_vq(&self, queue: u16) -> Result<()> {
        self.inner.admin("end virtio queue", AdminOpcode::SetVq, queue.into(), &[0; LINE + 1]).map(drop)
    }

    /// How far a queue has come. Errors: those of the card.
    pub fn query_vq(&self, queue: u16) -> Result<VqPlace> {
        let r = self.inner.admin("query virtio queue", AdminOpcode::QueryVq, queue.into(), &[])?;
        let mut line = VqAvail::default();
        line.0[24..36].copy_from_slice(&r[..3].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
        Ok(VqPlace { enabled: line.enabled(), broken: line.broken(), fetch: line.fetch(), used: r[3] as u16, taken: line.taken(), back: r[5] as u16 })
    }

    /// Words of the tables by which frames are steered (`hdl/src/virtio/steer`): each a line, a word in it, and what. Errors: those of the card, for a line that there is not.
    pub fn steer_vqs(&self, writes: &[(u32, u32, u32)]) -> Result<()> {
        let mut left = writes;
        while let Some((line, word, _)) = left.first().copied() {
            let count = left.iter().zip(word..).take(WORDS).take_while(|((l, w, _), next)| *l == line && w == next).count();
            let (now, later) = left.split_at(count);
            let params: Vec<u32> = [line, word, count as u32].into_iter().chain(now.iter().map(|(_, _, data)| *data)).collect();
            self.inner.admin("steer virtio queues", AdminOpcode::SetVqSteer, 0, &params)?;
            left = later;
        }
        Ok(())
    }

    /// Whether `function` gets frames by its queues (`live`): those for its MAC addresses and for groups, or all that the card takes (`promiscuous`), as far as steering lets them through. Errors: those of the card.
    pub fn set_vq_function(&self, function: u16, live: bool, promiscuous: bool) -> Result<()> {
        self.inner.admin("set virtio function", AdminOpcode::SetVqFunction, function.into(), &[u32::from(live) | u32::from(promiscuous) << 1]).map(drop)
    }

    /// Tells the card of new chains in a queue of this function.
    pub fn notify_vq(&self, queue: u16) {
        crate::barrier::to_device();
        self.inner.device.write64(csr::DB_VQ, queue.into());
    }
}
