//! Payload that is read ahead: the packets of a message that leave in one turn come out of host memory in one access.
use crate::counters::id;
use crate::memory::Fault;
use crate::Twin;

/// What an attempt to read counts. One that comes to nothing has not been made.
const COUNTED: [usize; 4] = [id("mr.mr_checks"), id("mr.mr_refused"), id("dma_rd.reads"), id("dma_rd.read_errors")];

/// Bytes of the message whose packets leave, from `begin` on. Forgotten at the end of the turn, and of the message.
#[derive(Default)]
pub(crate) struct Ahead {
    /// Kept for its room.
    bytes: Vec<u8>,
    begin: u64,
    len: usize,
    /// Packets that this turn may still send.
    packets: usize,
    /// What is read now need not be there.
    tries: bool,
}

impl Ahead {
    /// Nothing is known any more.
    pub(crate) fn forget(&mut self) {
        self.len = 0;
    }

    /// So many packets may leave, the one at hand among them.
    pub(crate) fn may_send(&mut self, packets: usize) {
        self.packets = packets;
    }

    /// What is read now is read ahead: the host is not to take a refusal for an error.
    pub(crate) fn tries(&self) -> bool {
        self.tries
    }

    fn get(&self, from: u64, len: usize) -> Option<&[u8]> {
        let at = usize::try_from(from.checked_sub(self.begin)?).ok()?;
        self.bytes[..self.len].get(at..at + len)
    }
}

impl Twin {
    /// Puts bytes `from..from + len` of a message behind `frame`. `left`: bytes of the message from there on, of which the turn's packets, with `len` bytes each, are read at once.
    /// `read` reads from there on. Where not all of it can be read, what this packet needs decides.
    pub(crate) fn append(&mut self, frame: &mut Vec<u8>, from: u64, len: usize, left: usize, mut read: impl FnMut(&mut Self, &mut [u8]) -> Result<(), Fault>) -> Result<(), Fault> {
        if let Some(bytes) = self.ahead.get(from, len) {
            frame.extend_from_slice(bytes);
            return Ok(());
        }
        let many = left.min(self.ahead.packets * len);
        if many > len {
            let mut bytes = std::mem::take(&mut self.ahead.bytes);
            if bytes.len() < many {
                bytes.resize(many, 0);
            }
            let counted = COUNTED.map(|id| self.counters.of(0, id).unwrap_or(0));
            self.ahead.tries = true;
            let done = read(self, &mut bytes[..many]);
            self.ahead.tries = false;
            if done.is_err() {
                COUNTED.iter().zip(counted).for_each(|(id, n)| self.counters.set(*id, n));
            }
            (self.ahead.bytes, self.ahead.begin, self.ahead.len) = (bytes, from, if done.is_ok() { many } else { 0 });
            if let Some(bytes) = self.ahead.get(from, len) {
                frame.extend_from_slice(bytes);
                return Ok(());
            }
        }
        let begin = frame.len();
        frame.resize(begin + len, 0);
        read(self, &mut frame[begin..])
    }
}
