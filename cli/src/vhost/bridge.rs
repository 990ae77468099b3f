//! Frames between a guest's rings and the port of a card.
use super::guest::{Guest, RX, TX};
use super::ring::{Broken, GuestMemory, Next, Ring, Seen};
use crate::raw::{Port, Trouble};
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::{feature, NetHeader};
use ferric_driver::types::Mac;
use ferric_model::net::parse::MAX_FRAME;
use ferric_model::virtio::offload::{judge, Offload};
use ferric_model::virtio::receive::scatter;
use ferric_model::virtio::segment::segments;
use ferric_model::virtio::transmit::{gather, ETHERNET, LONGEST};
use ferric_model::virtio::verdict::is_verified;
use ferric_model::virtio::walk::{total, Segment};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Frames that are carried before anything else is looked at.
const TURN: usize = 64;
/// Bytes of a MAC address.
const MAC: usize = 6;

/// What has become of frames. Each chain of the send ring and each frame of the card is counted once in its half; from `segments` on they are counts of other things.
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
    /// Asked for a checksum or for segments in a way that the frame does not bear out, or that was not offered.
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
    /// Met a buffer that is not in the guest's memory; all in hand was given back with nothing in it.
    pub dropped_bad: u64,
    /// Frames that a frame of the guest has been cut into.
    pub segments: u64,
    /// Chains of the receive ring that were given back unused: no end, a wrong direction, no descriptor.
    pub received_bad: u64,
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
    /// The frame of the card in hand.
    frame: Vec<u8>,
    /// Frames of the guest whose chains have gone back, and for which the card has no room yet.
    waiting: VecDeque<Vec<u8>>,
    blocked: bool,
    live: Arc<Mutex<Counts>>,
}

impl Bridge {
    /// Over `port`, which was opened for `macs`.
    pub fn new(port: Port, macs: &[Mac]) -> Self {
        Self { port, macs: macs.to_vec(), counts: Counts::default(), frame: Vec::with_capacity(MAX_FRAME), waiting: VecDeque::new(), blocked: false, live: Arc::default() }
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
            let mut more = self.receive(|_, _| false)?;
            // Of the guest that has gone.
            for _ in 0..TURN {
                if self.waiting.is_empty() || !self.has_room()? {
                    break;
                }
                self.send_waiting()?;
            }
            more |= !self.waiting.is_empty() && !self.blocked;
            self.port.flush();
            return Ok(more);
        };
        let (header, features) = (guest.header(), guest.features());
        let (memory, [rx, tx]) = guest.parts();
        let mut more = false;
        if tx.is_running() {
            match self.send(memory, tx, header, features)? {
                Ok(there_is) => more |= there_is,
                Err(Broken) => self.broken(tx, TX),
            }
        }
        let mut fault = Ok(());
        more |= self.receive(|counts, frame| {
            if !rx.is_running() || fault.is_err() {
                return false;
            }
            fault = deliver(memory, rx, header, features, frame, counts);
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

    /// Sends the first frame that waits; the caller has looked whether there is room. False: none waits.
    fn send_waiting(&mut self) -> Result<bool, Trouble> {
        let Some(frame) = self.waiting.pop_front() else { return Ok(false) };
        self.port.send(&frame)
    }

    /// The card takes another frame; if not, there will be an interrupt when it does.
    fn has_room(&mut self) -> Result<bool, Trouble> {
        if !self.port.has_room()? {
            self.port.flush();
            self.port.await_room();
            // There may be by now.
            if !self.port.has_room()? {
                self.counts.waits += u64::from(!self.blocked);
                self.blocked = true;
                return Ok(false);
            }
        }
        self.blocked = false;
        Ok(true)
    }

    /// From the guest. True: there is more, which the card has room for.
    fn send(&mut self, memory: &GuestMemory, ring: &mut Ring, header: usize, features: u64) -> Result<Result<bool, Broken>, Trouble> {
        ring.look();
        let (mut sent, mut more, mut fault) = (0, true, Ok(()));
        while fault.is_ok() && sent < TURN {
            if !self.has_room()? {
                more = false;
                break;
            }
            sent += 1;
            if self.send_waiting()? {
                continue;
            }
            match ring.next(memory) {
                Ok(Next::Chain(chain)) => {
                    *self.outcome(memory, &chain.chain.readable, header, features)? += 1;
                    // Its bytes are the card's, or wait: the guest may have its buffers back.
                    ring.finish(&chain, 0);
                }
                Ok(Next::Bad(VirtioCause::Short)) => self.counts.sent_short += 1,
                Ok(Next::Bad(_)) => self.counts.sent_bad += 1,
                Ok(Next::Nothing) => {
                    more = false;
                    break;
                }
                Err(e) => fault = Err(e),
            }
        }
        Ok(ring.give(memory).and(ring.tell(memory)).and(fault).map(|()| more))
    }

    /// Sends one frame, if it may be: what counts it.
    fn outcome(&mut self, memory: &GuestMemory, buffers: &[Segment], header: usize, features: u64) -> Result<&mut u64, Trouble> {
        let c = &mut self.counts;
        let length = total(buffers);
        if length < header as u64 + ETHERNET {
            return Ok(&mut c.sent_short);
        }
        if length > header as u64 + LONGEST {
            return Ok(&mut c.sent_long);
        }
        let Ok(bytes) = gather(&mut Seen(memory), buffers) else { return Ok(&mut c.sent_bad) };
        let mut head = NetHeader::default();
        head.0[..header].copy_from_slice(&bytes[..header]);
        let frame = &bytes[header..];
        if !self.macs.is_empty() && self.macs.iter().all(|mac| mac.0 != frame[MAC..2 * MAC]) {
            return Ok(&mut c.sent_foreign);
        }
        let Ok(offload) = judge(&head, frame, features) else { return Ok(&mut c.sent_offload) };
        let longest = match offload {
            Some(Offload { segments: Some(how), .. }) => frame.len().min(how.headers + usize::from(how.size)),
            _ => frame.len(),
        };
        if longest > MAX_FRAME {
            return Ok(&mut c.sent_long);
        }
        match offload {
            // There is room: the caller has looked.
            None => _ = self.port.send(frame)?,
            Some(offload) => {
                let cut = offload.segments.is_some();
                self.waiting.extend(segments(frame.to_vec(), Some(offload)));
                c.segments += if cut { self.waiting.len() as u64 } else { 0 };
            }
        }
        Ok(&mut c.sent)
    }

    /// From the card; `deliver` says when there is no driver (false). True: there may be more.
    fn receive(&mut self, mut deliver: impl FnMut(&mut Counts, &[u8]) -> bool) -> Result<bool, Trouble> {
        for _ in 0..TURN {
            if self.port.receive(&mut self.frame)?.is_none() {
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
fn deliver(memory: &GuestMemory, ring: &mut Ring, header: usize, features: u64, frame: &[u8], counts: &mut Counts) -> Result<(), Broken> {
    match collect(memory, ring, header, header + frame.len(), features & feature::MRG_RXBUF != 0, counts)? {
        Some(n) => {
            let chains = ring.take(n);
            // DATA_VALID is the device's word that the checksum is good (VIRTIO 1.3, 5.1.6.4).
            let valid = features & feature::GUEST_CSUM != 0 && is_verified(frame);
            let head = NetHeader::default().with_data_valid(valid).with_num_buffers(n as u16);
            let written = scatter(&mut Seen(memory), &chains, &[&head.0[..header], frame].concat());
            *if written.is_ok() { &mut counts.received } else { &mut counts.dropped_bad } += 1;
            let written = written.unwrap_or_else(|_| vec![0; n]);
            chains.iter().zip(written).for_each(|(chain, bytes)| ring.finish(chain, bytes));
        }
        None => *if ring.is_empty() { &mut counts.dropped_no_buffer } else { &mut counts.dropped_small } += 1,
    }
    ring.give(memory)
}

/// How many of the chains that wait have room for `wanted` bytes: one, or if buffers are merged as many as it takes. `None`: those that there are have not.
fn collect(memory: &GuestMemory, ring: &mut Ring, header: usize, wanted: usize, merges: bool, counts: &mut Counts) -> Result<Option<usize>, Broken> {
    let (mut n, mut room) = (0, 0);
    while room < wanted {
        let Some(chains) = ring.wait_for(memory, n + 1, &mut counts.received_bad)? else { return Ok(None) };
        room += total(&chains[n].chain.writable) as usize;
        n += 1;
        // The header does not go over several chains.
        if n == 1 && (room < header || (!merges && room < wanted)) {
            return Ok(None);
        }
    }
    Ok(Some(n))
}
