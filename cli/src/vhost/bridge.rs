//! Frames between a guest's rings and the port of a card.
use super::guest::{Guest, RX, TX};
use super::ring::{Bad, Broken, Buffers, Memory, Ring};
use crate::raw::{Port, Trouble};
use ferric_abi::virtio::NetHeader;
use ferric_driver::types::Mac;
use ferric_model::net::parse::MAX_FRAME;
use serde::Serialize;
use std::sync::{Arc, Mutex};
use vm_memory::{Bytes, GuestAddress};

/// Frames that are carried before anything else is looked at.
const TURN: usize = 64;
/// Bytes of the longest header.
const HEADER: usize = NetHeader::BYTES;
/// Bytes of a MAC address, and of the header of an Ethernet frame.
const MAC: usize = 6;
const ETHERNET: usize = 14;
/// Where a header says how many chains its frame takes.
const CHAINS_AT: usize = 10;

/// What has become of frames. Each chain of the send ring and each frame of the card is counted once in its half; `waits`, `connections`, `rejected_connections` and `broken_rings` are no frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Frames of the guest that the card has got.
    pub sent: u64,
    /// Chains of the send ring that were given back unsent: no end, a wrong direction, outside of the guest's memory.
    pub sent_bad: u64,
    /// Shorter than its headers.
    pub sent_short: u64,
    /// Longer than the card can carry.
    pub sent_long: u64,
    /// Asked for a checksum or for segments, which was not offered.
    pub sent_offload: u64,
    /// From another address than those of `--mac`.
    pub sent_foreign: u64,
    /// Frames of the card that the guest has got.
    pub received: u64,
    /// No guest, or one whose receive ring does not run.
    pub dropped_no_driver: u64,
    /// No buffer in the receive ring.
    pub dropped_no_buffer: u64,
    /// More bytes than the buffers that there are.
    pub dropped_small: u64,
    /// Met a chain that is as above, which was given back.
    pub dropped_bad: u64,
    /// Times that the card had no room, and frames waited in the guest's ring.
    pub waits: u64,
    /// Front ends that have come.
    pub connections: u64,
    /// Those that were sent away for what they said.
    pub rejected_connections: u64,
    /// Rings that said what cannot be.
    pub broken_rings: u64,
}

/// Carries frames.
pub struct Bridge {
    port: Port,
    /// The addresses that a guest may send from; none: any.
    macs: Vec<Mac>,
    /// What has been.
    pub counts: Counts,
    /// The frame in hand, behind its header.
    frame: Vec<u8>,
    blocked: bool,
    live: Arc<Mutex<Counts>>,
}

impl Bridge {
    /// Over `port`, which was opened for `macs`.
    pub fn new(port: Port, macs: &[Mac]) -> Self {
        Self { port, macs: macs.to_vec(), counts: Counts::default(), frame: Vec::with_capacity(HEADER + MAX_FRAME), blocked: false, live: Arc::default() }
    }

    /// The counts as they were at the end of the last turn, for other threads.
    pub fn live(&self) -> Arc<Mutex<Counts>> {
        self.live.clone()
    }

    /// The card does not answer any more.
    pub fn is_gone(&self) -> bool {
        self.port.context().device().is_gone()
    }

    /// Carries what waits, both ways, a bounded number of frames; without a `guest` frames of the card are dropped. True: there is more.
    pub fn carry(&mut self, guest: Option<&mut Guest>) -> Result<bool, Trouble> {
        let more = self.turn(guest)?;
        *self.live.lock().unwrap_or_else(|e| e.into_inner()) = self.counts;
        Ok(more)
    }

    fn turn(&mut self, guest: Option<&mut Guest>) -> Result<bool, Trouble> {
        self.port.listen();
        let Some(guest) = guest else {
            let more = self.receive(|_, _| false)?;
            self.port.flush();
            return Ok(more);
        };
        let (header, merges) = (guest.header(), guest.merges());
        let (memory, [rx, tx]) = guest.parts();
        let mut more = false;
        if tx.is_running() {
            match self.send(memory, tx, header)? {
                Ok(there_is) => more |= there_is,
                Err(Broken) => self.broken(tx, TX),
            }
        }
        let mut fault = Ok(());
        more |= self.receive(|counts, frame| {
            if !rx.is_running() || fault.is_err() {
                return false;
            }
            fault = deliver(memory, rx, header, merges, frame, counts);
            fault.is_ok()
        })?;
        self.port.flush();
        if rx.is_running() && fault.and_then(|()| rx.hush(memory)).and_then(|()| rx.tell(memory)).is_err() {
            self.broken(rx, RX);
        }
        Ok(more)
    }

    fn broken(&mut self, ring: &mut Ring, index: usize) {
        ring.give_up();
        self.counts.broken_rings += 1;
        log::warn!("ring {index} says what cannot be; it stands until the front end starts it again");
    }

    /// From the guest. True: there is more, which the card has room for.
    fn send(&mut self, memory: &Memory, ring: &mut Ring, header: usize) -> Result<Result<bool, Broken>, Trouble> {
        let mut used = Vec::with_capacity(TURN);
        let mut more = true;
        let mut fault = ring.hush(memory);
        while fault.is_ok() && used.len() < TURN {
            if !self.port.has_room()? {
                // An interrupt when there is room; there may be by now.
                self.port.flush();
                self.port.await_room();
                if !self.port.has_room()? {
                    self.counts.waits += u64::from(!self.blocked);
                    (self.blocked, more) = (true, false);
                    break;
                }
            }
            self.blocked = false;
            match ring.take(memory, false) {
                Ok(Some(chain)) => {
                    *self.outcome(memory, &chain.buffers, header)? += 1;
                    used.push((chain.head, 0));
                }
                Ok(None) => match ring.listen(memory) {
                    Ok(true) => continue,
                    Ok(false) => {
                        more = false;
                        break;
                    }
                    Err(e) => fault = Err(e),
                },
                Err(e) => fault = Err(e),
            }
        }
        // Their bytes are the card's: the guest may have its buffers back.
        Ok(ring.give(memory, &used).and(ring.tell(memory)).and(fault).map(|()| more))
    }

    /// Sends one frame, if it may be: what counts it.
    fn outcome(&mut self, memory: &Memory, buffers: &Result<Buffers, Bad>, header: usize) -> Result<&mut u64, Trouble> {
        let c = &mut self.counts;
        let Ok(buffers) = buffers else { return Ok(&mut c.sent_bad) };
        let length = buffers.iter().map(|(_, n)| n).sum::<usize>();
        if length < header + ETHERNET {
            return Ok(&mut c.sent_short);
        }
        if length > header + MAX_FRAME {
            return Ok(&mut c.sent_long);
        }
        self.frame.resize(length, 0);
        let mut rest = &mut self.frame[..];
        for (at, n) in buffers {
            let part;
            (part, rest) = rest.split_at_mut(*n);
            if memory.read_slice(part, *at).is_err() {
                return Ok(&mut c.sent_bad);
            }
        }
        let mut head = NetHeader::default();
        head.0[..header].copy_from_slice(&self.frame[..header]);
        if head.needs_csum() || head.gso() != 0 {
            return Ok(&mut c.sent_offload);
        }
        let frame = &self.frame[header..];
        if !self.macs.is_empty() && self.macs.iter().all(|mac| mac.0 != frame[MAC..2 * MAC]) {
            return Ok(&mut c.sent_foreign);
        }
        // There is room: the caller has looked.
        self.port.send(frame)?;
        Ok(&mut c.sent)
    }

    /// From the card; `deliver` says when there is no driver (false). True: there may be more.
    fn receive(&mut self, mut deliver: impl FnMut(&mut Counts, &[u8]) -> bool) -> Result<bool, Trouble> {
        for _ in 0..TURN {
            if !self.port.receive(&mut self.frame)? {
                return Ok(false);
            }
            if !deliver(&mut self.counts, &self.frame) {
                self.counts.dropped_no_driver += 1;
            }
        }
        Ok(true)
    }
}

/// Puts a frame into the receive ring, and counts what has become of it.
fn deliver(memory: &Memory, ring: &mut Ring, header: usize, merges: bool, frame: &[u8], counts: &mut Counts) -> Result<(), Broken> {
    let wanted = header + frame.len();
    let start = ring.place();
    let (mut chains, mut room) = (Vec::new(), 0);
    while room < wanted {
        let Some(chain) = ring.take(memory, true)? else {
            // What is there stays there.
            ring.set_base(start);
            let cause = if chains.is_empty() { &mut counts.dropped_no_buffer } else { &mut counts.dropped_small };
            *cause += 1;
            return Ok(());
        };
        let Ok(buffers) = chain.buffers else {
            chains.push((chain.head, Buffers::new()));
            return give_up(memory, ring, &chains, counts);
        };
        let bytes = buffers.iter().map(|(_, n)| n).sum::<usize>();
        room += bytes;
        let first = chains.is_empty();
        chains.push((chain.head, buffers));
        // The header does not go over several chains.
        if first && (bytes < header || (!merges && bytes < wanted)) {
            ring.set_base(start);
            counts.dropped_small += 1;
            return Ok(());
        }
    }
    let mut head = [0; HEADER];
    head[CHAINS_AT..].copy_from_slice(&(chains.len() as u16).to_le_bytes());
    let mut used = Vec::with_capacity(chains.len());
    let mut parts = [&head[..header], frame];
    for (number, buffers) in &chains {
        let mut written = 0;
        for (at, n) in buffers {
            match write(memory, *at, *n, &mut parts) {
                Some(n) => written += n,
                None => return give_up(memory, ring, &chains, counts),
            }
        }
        used.push((*number, written as u32));
    }
    ring.give(memory, &used)?;
    counts.received += 1;
    Ok(())
}

/// Fills a buffer of `n` bytes with what is left of `parts`: how many bytes that were. `None`: it is not in the guest's memory.
fn write(memory: &Memory, at: GuestAddress, n: usize, parts: &mut [&[u8]; 2]) -> Option<usize> {
    let mut written = 0;
    for part in parts {
        let (now, later) = part.split_at(part.len().min(n - written));
        if !now.is_empty() {
            memory.write_slice(now, at.0.checked_add(written as u64).map(GuestAddress)?).ok()?;
        }
        *part = later;
        written += now.len();
    }
    Some(written)
}

/// A frame met a chain that cannot be used: all in hand goes back with nothing in it.
fn give_up(memory: &Memory, ring: &mut Ring, chains: &[(u16, Buffers)], counts: &mut Counts) -> Result<(), Broken> {
    ring.give(memory, &chains.iter().map(|(head, _)| (*head, 0)).collect::<Vec<_>>())?;
    counts.dropped_bad += 1;
    Ok(())
}
