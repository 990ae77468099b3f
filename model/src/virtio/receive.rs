//! Receive: a frame goes into the buffers of a receive queue behind its header, or is dropped with a cause. The card never waits for a guest: what is not in stock or in the ring at the first
//! look is not there.
use super::device::Device;
use super::engine::{Engine, Taken, Took};
use super::memory::{Memory, Unmapped};
use super::queue::Role;
use super::walk::{total, Segment};
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{feature, NetHeader};

/// Bytes of a frame beyond the MTU: Ethernet header and one tag.
const BEYOND_MTU: usize = 18;
/// Frames in a row whose buffers cannot be written, after which the function needs a reset.
const MAX_FAULTS: u32 = 16;

impl Device {
    /// A frame for the receive queue of a pair, from its Ethernet header on and without check sequence. `verified`: its checksum is good. Returns why it is dropped, if it is.
    pub fn receive(&mut self, memory: &mut dyn Memory, pair: u16, frame: &[u8], verified: bool) -> Result<(), VirtioCause> {
        self.counters.frames += 1;
        let outcome = self.deliver(memory, pair, frame, verified);
        match outcome {
            Ok(()) => self.counters.delivered += 1,
            Err(cause) => self.counters.count(cause),
        }
        outcome
    }

    fn deliver(&mut self, memory: &mut dyn Memory, pair: u16, frame: &[u8], verified: bool) -> Result<(), VirtioCause> {
        let n = self.admits(pair, frame)?;
        let mergeable = self.features & feature::MRG_RXBUF != 0;
        let needed = (NetHeader::BYTES + frame.len()) as u64;
        let chains = match self.collect(memory, n, needed, mergeable) {
            Ok(chains) => chains,
            Err(Missing::Buffers(cause)) => return Err(cause),
            // The ring is broken: the frame finds a queue that does not run any more.
            Err(Missing::Ring(cause)) => {
                self.fail(cause);
                return Err(VirtioCause::RxDown);
            }
        };
        // DATA_VALID is the device's word that the checksum is good (spec 5.1.6.4).
        let valid = verified && self.features & feature::GUEST_CSUM != 0;
        let header = NetHeader::default().with_data_valid(valid).with_num_buffers(chains.len() as u16);
        let written = scatter(memory, &chains, &[&header.0[..], frame].concat());
        let queue = &mut self.queues[usize::from(n)];
        let engine = queue.engine.as_mut().ok_or(VirtioCause::RxDown)?;
        for (chain, bytes) in chains.iter().zip(written.as_deref().unwrap_or(&vec![0; chains.len()])) {
            engine.finish(chain.number, *bytes);
        }
        queue.untold.count(self.now);
        queue.faults = if written.is_ok() { 0 } else { queue.faults + 1 };
        if queue.faults >= MAX_FAULTS {
            self.need_reset();
        }
        written.map(|_| ()).map_err(|_| VirtioCause::RxDma)
    }

    /// The receive queue of a frame of this pair, if the function takes it.
    pub(super) fn admits(&self, pair: u16, frame: &[u8]) -> Result<u16, VirtioCause> {
        let n = pair.saturating_mul(2);
        if !self.runs() || self.role(n) != Some(Role::Receive) || pair >= self.pairs_in_use() {
            return Err(VirtioCause::RxDown);
        }
        if self.features & feature::MTU != 0 && frame.len() > usize::from(self.config.mtu()) + BEYOND_MTU {
            return Err(VirtioCause::RxSmall);
        }
        Ok(n)
    }

    /// Chains with room for `needed` bytes: one, or with mergeable buffers as many as it takes. Those that do not suffice stay in stock.
    fn collect(&mut self, memory: &mut dyn Memory, n: u16, needed: u64, mergeable: bool) -> Result<Vec<Taken>, Missing> {
        let counters = &mut self.counters;
        let queue = &mut self.queues[usize::from(n)];
        let engine = queue.engine.as_mut().ok_or(Missing::Buffers(VirtioCause::RxDown))?;
        let room = |stock: &std::collections::VecDeque<Taken>, chains: usize| stock.iter().take(chains).map(|taken| total(&taken.chain.writable)).sum::<u64>();
        let mut chains = 1;
        loop {
            if queue.stock.len() < chains {
                let more = look(engine, memory, counters).map_err(Missing::Ring)?;
                let Some(more) = more else { break };
                queue.stock.push_back(more);
            }
            let first = room(&queue.stock, 1);
            if room(&queue.stock, chains) >= needed {
                return Ok(queue.stock.drain(..chains).collect());
            }
            if !mergeable || first < NetHeader::BYTES as u64 {
                break;
            }
            chains += 1;
        }
        Err(Missing::Buffers(if queue.stock.is_empty() { VirtioCause::RxNoBuffer } else { VirtioCause::RxSmall }))
    }
}

/// Why there are no chains for a frame.
enum Missing {
    /// The ring has none, or none that suffice.
    Buffers(VirtioCause),
    /// The ring cannot be used any more.
    Ring(VirtioCause),
}

/// The next good chain of a ring. As many bad ones are passed over as the ring has places, no more: each of them is on its way back.
fn look(engine: &mut Engine, memory: &mut dyn Memory, counters: &mut super::counters::Counters) -> Result<Option<Taken>, VirtioCause> {
    for _ in 0..engine.ring.size() {
        match engine.take(memory)? {
            Took::Chain(taken) => return Ok(Some(taken)),
            Took::Rejected(cause) => counters.count(cause),
            Took::Nothing => break,
        }
    }
    Ok(None)
}

/// Writes bytes to the chains, each filled before the next begins; how many went into each.
pub fn scatter(memory: &mut dyn Memory, chains: &[Taken], bytes: &[u8]) -> Result<Vec<u32>, Unmapped> {
    let mut rest = bytes;
    let mut fill = |segments: &[Segment]| {
        let before = rest.len();
        for segment in segments {
            let (now, later) = rest.split_at(rest.len().min(segment.length as usize));
            if !now.is_empty() {
                memory.write(segment.addr, now)?;
            }
            rest = later;
        }
        Ok((before - rest.len()) as u32)
    };
    chains.iter().map(|taken| fill(&taken.chain.writable)).collect()
}
