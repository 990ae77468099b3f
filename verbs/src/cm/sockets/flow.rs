//! What may be sent on a connection, and what is granted to the peer: credits, the peer's receive buffer, and our own, which is handed out in two halves. No verbs are called here.
use super::wire::{Opening, Place};
use std::collections::VecDeque;

/// Places of our table: one for each half of the peer's buffer.
pub const PLACES: usize = 2;
/// Control messages that may be on their way; each has a request of the send queue of its own.
pub const CONTROLS: u16 = 4;

/// Grants to the peer, which are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Messages of data granted since the connection was made, modulo 65,536.
    pub credits: u16,
    /// A half of our buffer that is free again: the offset of its first byte, and the entry of the peer's table that shall name it.
    pub half: Option<(u32, u32)>,
}

/// The peer did what its protocol does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation(pub &'static str);

/// State of one connection.
#[derive(Debug)]
pub struct Flow {
    /// Messages of data sent, and granted by the peer, modulo 65,536.
    sent: u16,
    granted: u16,
    /// What is left of the peer's halves; empty when it is used up and no other has been named.
    places: [Place; PLACES],
    /// The one that is written to, and the one that the peer names next.
    current: usize,
    named: usize,
    /// Bytes in half of our buffer.
    half: u32,
    /// Receives that are posted.
    receives: u16,
    /// Lengths of messages that have come and have not been read to the end.
    messages: VecDeque<u32>,
    /// Bytes that have come and have not been read.
    unread: u32,
    /// Bytes of our buffer that the peer may still write to.
    open: u32,
    /// Where the next byte is read.
    at: u32,
    /// Bytes that have been read and not been handed out again.
    free: u32,
    /// Where the half begins that is handed out next, and the entry that names it.
    next_half: u32,
    next_entry: u32,
    /// Entries of the peer's table.
    entries: u32,
    /// Messages that have been read to the end, and how many of them the peer knows of.
    taken: u16,
    told: u16,
}

impl Flow {
    /// A connection whose peer has said `peer`; our buffer has two halves of `half` bytes, and `receives` are posted. The peer has been told of the first half.
    pub fn new(half: u32, receives: u16, peer: &Opening) -> Self {
        let mut places = [Place::default(); PLACES];
        places[0] = peer.buffer;
        Self {
            sent: 0,
            granted: peer.credits,
            places,
            current: 0,
            named: 1,
            half,
            receives,
            messages: VecDeque::new(),
            unread: 0,
            open: half,
            at: 0,
            free: half,
            next_half: half,
            next_entry: if peer.table.length > 1 { 1 } else { 0 },
            entries: peer.table.length,
            taken: 0,
            told: 0,
        }
    }

    /// The peer has a receive for another message.
    pub fn may_tell(&self) -> bool {
        self.sent != self.granted
    }

    /// Bytes that one message may have now; 0 if none may be sent.
    pub fn room(&self) -> u32 {
        if self.may_tell() {
            self.places[self.current].length
        } else {
            0
        }
    }

    /// A message of `n` bytes, at most [`Flow::room`], is sent: where it is to be written.
    pub fn send(&mut self, n: u32) -> Place {
        let place = &mut self.places[self.current];
        let to = Place { length: n, ..*place };
        (place.addr, place.length) = (place.addr.wrapping_add(n.into()), place.length - n);
        if place.length == 0 {
            self.current = (self.current + 1) % PLACES;
        }
        self.tell();
        to
    }

    /// A message without data is sent for which the peer counts a credit.
    pub fn tell(&mut self) {
        self.sent = self.sent.wrapping_add(1);
    }

    /// The entry of our table that the peer writes next.
    pub fn named(&self) -> usize {
        self.named
    }

    /// The peer has granted credits, and has perhaps named a half.
    pub fn granted(&mut self, credits: u16, half: Option<Place>) -> Result<(), Violation> {
        self.granted = credits;
        if let Some(half) = half.filter(|h| h.length > 0) {
            let place = &mut self.places[self.named];
            if place.length > 0 {
                return Err(Violation("a buffer is named in place of one that is not full"));
            }
            *place = half;
            self.named = (self.named + 1) % PLACES;
        }
        Ok(())
    }

    /// A message of `n` bytes has come.
    pub fn arrived(&mut self, n: u32) -> Result<(), Violation> {
        if n > self.open {
            return Err(Violation("more data than there was room for"));
        }
        if n == 0 {
            self.told_of();
            return Ok(());
        }
        if self.messages.len() >= self.receives.into() {
            return Err(Violation("more messages than were granted"));
        }
        (self.open, self.unread) = (self.open - n, self.unread + n);
        self.messages.push_back(n);
        Ok(())
    }

    /// A message that holds no data has come, for which the peer counts a credit.
    pub fn told_of(&mut self) {
        self.taken = self.taken.wrapping_add(1);
    }

    /// Bytes that can be read.
    pub fn unread(&self) -> u32 {
        self.unread
    }

    /// Where the next `n` bytes are, at most [`Flow::unread`]: offset and length, twice, since the buffer is a ring.
    pub fn pieces(&self, n: u32) -> [(u32, u32); 2] {
        let first = n.min(2 * self.half - self.at);
        [(self.at, first), (0, n - first)]
    }

    /// `n` bytes have been read, at most [`Flow::unread`].
    pub fn read(&mut self, n: u32) {
        let mut left = n;
        while let Some(front) = self.messages.front_mut().filter(|front| **front <= left) {
            left -= *front;
            self.messages.pop_front();
            self.told_of();
        }
        if let Some(front) = self.messages.front_mut() {
            *front -= left;
        }
        self.unread -= n;
        self.free += n;
        self.at = (self.at + n) % (2 * self.half);
    }

    /// What the peer is to be told now, if anything: the caller sends it. A half that is free is handed out; credits alone when half of them have been used.
    pub fn grant(&mut self) -> Option<Grant> {
        let half = self.free >= self.half;
        if !half && self.taken.wrapping_sub(self.told) < self.receives / 2 {
            return None;
        }
        self.told = self.taken;
        let credits = self.taken.wrapping_add(self.receives);
        let half = half.then(|| {
            let named = (self.next_half, self.next_entry);
            (self.free, self.open) = (self.free - self.half, self.open + self.half);
            (self.next_half, self.next_entry) = (self.half - self.next_half, (self.next_entry + 1) % self.entries);
            named
        });
        Some(Grant { credits, half })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(half: u32, credits: u16) -> Opening {
        let place = |length| Place { addr: 0, key: 7, length };
        Opening { big_endian: false, credits, mappings: 0, table: place(2), buffer: place(half) }
    }

    /// One side sends, the other reads, in steps of random sizes; what is in the receive buffer is what was sent, and both never stop.
    #[test]
    fn a_stream_goes_through_small_buffers() {
        let mut seed = 1u64;
        let mut random = move |below: u32| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as u32 % below
        };
        // A few receives, so that credits run out; many, so that the buffer does; more than 65,536 messages.
        for (half, receives, total) in [(64u32, 4u16, 200_000u32), (5, 64, 30_000), (1000, 16, 1_000_000)] {
            let (mut a, mut b) = (Flow::new(8, 8, &opening(half, receives)), Flow::new(half, receives, &opening(8, 8)));
            let mut buffer = vec![0u8; 2 * half as usize];
            let byte = |n: u32| (n ^ n >> 8) as u8;
            let (mut sent, mut read, mut idle) = (0u32, 0u32, 0);
            while read < total {
                idle += 1;
                assert!(idle < 100, "it stands still at {read} of {total}");
                let n = (1 + random(40)).min(a.room()).min(total - sent);
                if n > 0 {
                    let to = a.send(n);
                    (0..n).for_each(|i| buffer[(to.addr as u32 + i) as usize] = byte(sent + i));
                    b.arrived(n).unwrap();
                    sent += n;
                }
                if random(2) == 0 {
                    let n = random(60).min(b.unread());
                    for (at, len) in b.pieces(n) {
                        for i in at..at + len {
                            assert_eq!(buffer[i as usize], byte(read), "{read}");
                            read += 1;
                        }
                    }
                    b.read(n);
                    if n > 0 {
                        idle = 0;
                    }
                }
                while let Some(g) = b.grant() {
                    let place = g.half.map(|(at, entry)| {
                        assert_eq!(entry as usize, a.named());
                        Place { addr: at.into(), key: 7, length: half }
                    });
                    a.granted(g.credits, place).unwrap();
                }
            }
            assert_eq!((sent, b.unread()), (total, 0));
        }
    }

    #[test]
    fn a_peer_that_breaks_the_rules_is_found_out() {
        let peer = opening(100, 2);
        let mut f = Flow::new(10, 2, &peer);
        assert_eq!(f.arrived(11), Err(Violation("more data than there was room for")));
        assert_eq!(f.grant(), Some(Grant { credits: 2, half: Some((10, 1)) }));
        assert_eq!([f.arrived(11), f.arrived(1), f.arrived(1)], [Ok(()), Ok(()), Err(Violation("more messages than were granted"))]);
        // One half may be named beside the first, no more.
        let half = Some(Place { addr: 0, key: 7, length: 100 });
        assert_eq!(f.granted(2, half), Ok(()));
        assert!(f.granted(2, half).is_err());
        // Credits alone do not name one.
        assert_eq!((f.granted(9, None), f.granted(9, Some(Place::default()))), (Ok(()), Ok(())));
    }

    #[test]
    fn without_credits_nothing_is_sent() {
        let mut f = Flow::new(10, 2, &opening(100, 2));
        assert_eq!((f.room(), f.send(30), f.room()), (100, Place { addr: 0, key: 7, length: 30 }, 70));
        f.tell();
        assert_eq!((f.room(), f.may_tell()), (0, false));
        f.granted(3, None).unwrap();
        assert_eq!((f.room(), f.send(70).addr, f.room()), (70, 30, 0));
        // A credit, but no room.
        f.granted(4, None).unwrap();
        assert_eq!((f.room(), f.may_tell()), (0, true));
    }
}
