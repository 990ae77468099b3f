//! Pause frames: how they are read, built and obeyed. Written from IEEE 802.3 clause 31 and annexes 31A, 31B, 31D, and IEEE 802.1Q clause 36.

/// Destination of MAC control frames (31B.1), their type (31.4.1.3), and the opcodes of both pauses (31A).
const ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
const TYPE: [u8; 2] = [0x88, 0x08];
const LINK: [u8; 2] = [0x00, 0x01];
const PRIORITIES: [u8; 2] = [0x01, 0x01];
/// Bytes of the least frame without its check sequence.
const LEAST: usize = 60;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Everybody is quiet for so many quanta of 512 bit times.
    Link(u16),
    /// Of these priorities (bit n: priority n) each for its time.
    Priorities(u8, [u16; 8]),
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No MAC control frame.
    Other,
    /// A MAC control frame that this card does not know, or that is not as it should be.
    Malformed,
    Pause(Pause),
}

/// Reads a frame without its check sequence; `bad`: the MAC found it bad.
pub fn read(frame: &[u8], bad: bool) -> Seen {
    if frame.get(12..14) != Some(&TYPE) {
        return Seen::Other;
    }
    if bad || frame.len() < LEAST || frame[..6] != ADDRESS {
        return Seen::Malformed;
    }
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    match [frame[14], frame[15]] {
        LINK => Seen::Pause(Pause::Link(word(16))),
        // 36.1.3.2: the high half of the vector is zero when sent and ignored when received.
        PRIORITIES => Seen::Pause(Pause::Priorities(frame[17], std::array::from_fn(|n| word(18 + 2 * n)))),
        _ => Seen::Malformed,
    }
}

/// The frame that says so, without its check sequence. Times of priorities that do not count are zero.
pub fn build(source: [u8; 6], pause: Pause) -> Vec<u8> {
    let mut frame = [&ADDRESS[..], &source, &TYPE].concat();
    match pause {
        Pause::Link(time) => {
            frame.extend(LINK);
            frame.extend(time.to_be_bytes());
        }
        Pause::Priorities(which, times) => {
            frame.extend(PRIORITIES);
            frame.extend([0, which]);
            frame.extend(times.iter().enumerate().flat_map(|(n, time)| if which >> n & 1 == 1 { time.to_be_bytes() } else { [0; 2] }));
        }
    }
    frame.resize(LEAST, 0);
    frame
}

/// How long everybody has to be quiet still, in quanta.
#[derive(Clone, Debug, Default)]
pub struct Timers(pub [u16; 8]);

impl Timers {
    /// A frame has come.
    pub fn take(&mut self, pause: Pause) {
        match pause {
            Pause::Link(time) => self.0 = [time; 8],
            Pause::Priorities(which, times) => (0..8).filter(|n| which >> n & 1 == 1).for_each(|n| self.0[n] = times[n]),
        }
    }

    /// So many quanta have passed.
    pub fn pass(&mut self, quanta: u16) {
        self.0.iter_mut().for_each(|time| *time = time.saturating_sub(quanta));
    }

    /// Somebody of `data` is to be quiet.
    pub fn holds(&self, data: u8) -> bool {
        (0..8).any(|n| data >> n & 1 == 1 && self.0[n] > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: [u8; 6] = [2, 3, 4, 5, 6, 7];

    /// The bytes as table 31B-1 and figure 36-1 have them, written down by hand.
    #[test]
    fn frames_are_those_of_the_standard() {
        let link = [0x01, 0x80, 0xc2, 0, 0, 0x01, 2, 3, 4, 5, 6, 7, 0x88, 0x08, 0, 1, 0xab, 0xcd];
        let mut whole = link.to_vec();
        whole.extend([0; 42]);
        assert_eq!(build(SOURCE, Pause::Link(0xabcd)), whole);
        assert_eq!(read(&whole, false), Seen::Pause(Pause::Link(0xabcd)));
        let priorities = [0x01, 0x80, 0xc2, 0, 0, 0x01, 2, 3, 4, 5, 6, 7, 0x88, 0x08, 1, 1, 0, 0b1000_1010, 0, 0, 0, 1, 0, 0, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        let mut whole = priorities.to_vec();
        whole.extend([0; 26]);
        let said = Pause::Priorities(0b1000_1010, [0, 1, 0, 0x1234, 0, 0, 0, 0xffff]);
        assert_eq!(build(SOURCE, said), whole);
        assert_eq!(read(&whole, false), Seen::Pause(said));
    }

    #[test]
    fn what_is_not_so_is_malformed() {
        let fine = build(SOURCE, Pause::Link(5));
        assert_eq!(read(&fine, true), Seen::Malformed);
        assert_eq!(read(&fine[..59], false), Seen::Malformed);
        for bit in 0..6 * 8 {
            let mut frame = fine.clone();
            frame[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&frame, false), Seen::Malformed, "destination, bit {bit}");
        }
        let mut other = fine;
        other[13] = 0x09;
        assert_eq!(read(&other, false), Seen::Other);
    }
}
