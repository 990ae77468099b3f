//! The receive half of a PDC: what has come, what is done, what is kept (UE 3.5.11, 3.5.12).
//!
//! Places are counted from Start_PSN, so a wrap of PSNs at 2^32 is nowhere but in the conversion: a PDC is closed before its count can come round (`Config::limit`).
use super::types::{Mode, Response};
use std::collections::VecDeque;

/// How a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    /// An ACK is asked for, or the peer still says SYN.
    pub ask: bool,
    /// With ECN CE.
    pub marked: bool,
    /// Sent again.
    pub retx: bool,
    /// Its entropy value, which goes back with the answer.
    pub ev: u16,
    /// When.
    pub at: u64,
    /// Bytes.
    pub bytes: u32,
}

/// What is known of a PSN beyond CACK: the bitmaps `seen`, `done` and `held` of the gateware in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Not there.
    Empty,
    /// With semantics.
    Seen(Seen),
    /// Done, with nothing to remember.
    Done,
    /// Done; the answer is kept until it is cleared.
    Held(Response),
}

/// What a packet is to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is given to semantics.
    New,
    /// It has been, and is done or acknowledged.
    Old,
    /// It has been, and is not done.
    Pending,
    /// It has been; its answer is kept.
    Kept(Response),
    /// Outside the window.
    Outside,
    /// ROD, and one in front of it is missing; whether to say so.
    Gap(bool),
}

/// What became true when a packet was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How it came.
    pub seen: Seen,
    /// A hole in front of others is filled.
    pub filled: bool,
    /// It is the first behind a hole.
    pub beyond: bool,
}

/// Receive half.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rx {
    /// Start_PSN.
    pub start: u32,
    /// Packets that CACK covers.
    pub base: u32,
    /// What is known behind them.
    pub marks: VecDeque<Mark>,
    /// Place behind the newest packet that is done.
    pub newest: u32,
    /// Bytes received, each packet once.
    pub bytes: u64,
    /// Bytes since the last ACK.
    pub unacked: u32,
    /// ROD: the gap has been told.
    pub told: bool,
    /// One was refused while others were there: as long as there are any, ROD expects the oldest that is missing.
    pub holed: bool,
    /// Which end of the window the next SACK shows.
    flip: bool,
}

impl Rx {
    /// Nothing received.
    pub fn new(start: u32) -> Self {
        Self { start, base: 0, marks: VecDeque::new(), newest: 0, bytes: 0, unacked: 0, told: false, holed: false, flip: false }
    }

    /// Place of a PSN.
    pub fn place(&self, psn: u32) -> u32 {
        psn.wrapping_sub(self.start)
    }

    /// PSN of a place.
    pub fn psn(&self, place: u32) -> u32 {
        self.start.wrapping_add(place)
    }

    /// CACK_PSN.
    pub fn cack(&self) -> u32 {
        self.psn(self.base).wrapping_sub(1)
    }

    /// ROD: the place that has to come next.
    pub fn expected(&self) -> u32 {
        self.base + if self.holed { 0 } else { self.marks.len() as u32 }
    }

    /// Answers that are kept.
    pub fn held(&self) -> usize {
        self.marks.iter().filter(|mark| matches!(mark, Mark::Held(_))).count()
    }

    /// Packets that semantics have.
    pub fn pending(&self) -> usize {
        self.marks.iter().filter(|mark| matches!(mark, Mark::Seen(_))).count()
    }

    /// What the packet at `place` is; nothing changes.
    pub fn look(&self, place: u32, mode: Mode, window: u32, retx: bool) -> Arrival {
        let ahead = place.wrapping_sub(self.base);
        if (ahead as i32) < 0 {
            return Arrival::Old;
        }
        if ahead >= window {
            return Arrival::Outside;
        }
        match self.marks.get(ahead as usize).unwrap_or(&Mark::Empty) {
            Mark::Done => Arrival::Old,
            Mark::Seen(_) => Arrival::Pending,
            Mark::Held(response) => Arrival::Kept(*response),
            Mark::Empty if mode == Mode::Rod && place != self.expected() => Arrival::Gap(!self.told || retx),
            Mark::Empty => Arrival::New,
        }
    }

    /// Takes a new packet.
    pub fn take(&mut self, place: u32, seen: Seen) {
        let ahead = place.wrapping_sub(self.base) as usize;
        self.holed &= !self.marks.is_empty();
        while self.marks.len() <= ahead {
            self.marks.push_back(Mark::Empty);
        }
        self.marks[ahead] = Mark::Seen(seen);
        self.told = false;
    }

    /// Semantics have no room: as if it had never come.
    pub fn refuse(&mut self, place: u32) -> Option<Seen> {
        let mark = self.marks.get_mut(place.wrapping_sub(self.base) as usize)?;
        let Mark::Seen(seen) = *mark else { return None };
        *mark = Mark::Empty;
        while self.marks.back() == Some(&Mark::Empty) {
            self.marks.pop_back();
        }
        self.holed = !self.marks.is_empty();
        Some(seen)
    }

    /// Semantics are done with it; `kept` is the answer, if it has to be kept.
    pub fn done(&mut self, place: u32, kept: Option<Response>, past_kept: bool) -> Option<Finished> {
        let ahead = place.wrapping_sub(self.base) as usize;
        let mark = self.marks.get_mut(ahead)?;
        let Mark::Seen(seen) = *mark else { return None };
        *mark = kept.map_or(Mark::Done, Mark::Held);
        let beyond = place > self.newest;
        self.newest = self.newest.max(place + 1);
        self.bytes += u64::from(seen.bytes);
        self.advance(past_kept);
        Some(Finished { seen, filled: self.base > place + 1, beyond })
    }

    /// Frees kept answers in front of `place`. Gives how many.
    pub fn clear(&mut self, place: u32) -> usize {
        let ahead = place.wrapping_sub(self.base);
        // A clear behind CACK says nothing; one beyond the newest packet is no clear.
        if (ahead as i32) <= 0 || place > self.newest {
            return 0;
        }
        let mut freed = 0;
        for mark in self.marks.iter_mut().take(ahead as usize) {
            if matches!(mark, Mark::Held(_)) {
                *mark = Mark::Done;
                freed += 1;
            }
        }
        self.advance(false);
        freed
    }

    /// CACK goes as far as it may. `past_kept` is a defect.
    fn advance(&mut self, past_kept: bool) {
        while matches!(self.marks.front(), Some(Mark::Done)) || past_kept && matches!(self.marks.front(), Some(Mark::Held(_))) {
            self.marks.pop_front();
            self.base += 1;
        }
    }

    /// Base and bitmap of the next SACK: both ends of the window in turn.
    pub fn sack(&mut self) -> (u32, u64) {
        let far = self.newest.saturating_sub(64).max(self.base);
        self.flip = !self.flip && far > self.base;
        let from = if self.flip { far } else { self.base };
        let marks = self.marks.iter().skip((from - self.base) as usize).take(64).enumerate();
        let bitmap = marks.filter(|(_, mark)| matches!(mark, Mark::Done | Mark::Held(_))).fold(0, |map, (bit, _)| map | 1 << bit);
        (self.psn(from), bitmap)
    }

    /// Newest packet received less the oldest one missing.
    pub fn out_of_order(&self) -> u16 {
        self.newest.saturating_sub(self.base).min(u32::from(u16::MAX - 1)) as u16
    }
}
