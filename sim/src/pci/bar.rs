//! BAR 0 as the PCIe hard IP passes it on: reads as 32-bit registers, writes as registers, doorbells and 64-byte lines,
//! with the write combining that a processor does before its stores reach the bus.
use super::command::{Command, Handle};
use ferric_abi::{csr, pci};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a read may wait for the simulation before it is given up: far below what clients wait (QEMU: 5 s).
const READ_LIMIT: Duration = Duration::from_secs(1);
/// How long a write may. A bus does not lose posted writes: a card that takes none for so long has failed, and its client is told.
const WRITE_LIMIT: Duration = Duration::from_secs(30);
const LINE: u32 = 64;

/// Where the doorbells start.
const DOORBELLS: u32 = csr::DB_SQ;

/// A line of the WQE page that is being written in pieces.
struct Partial {
    line: u32,
    bytes: [u8; LINE as usize],
    /// One bit per byte.
    filled: u64,
}

/// One client's access to one function's BAR 0.
pub struct Bar {
    engine: Handle,
    function: usize,
    /// Of a virtio function: each access goes to the window as it is.
    virtio: bool,
    partial: Option<Partial>,
    write_limit: Duration,
    closing: Arc<AtomicBool>,
    /// Accesses given up.
    pub late: u64,
    /// A write was given up: no later one may pass it.
    pub failed: bool,
}

impl Bar {
    /// Access to function number `function` of the engine.
    pub fn new(engine: Handle, function: usize) -> Self {
        Self { engine, function, virtio: false, partial: None, write_limit: WRITE_LIMIT, closing: Arc::default(), late: 0, failed: false }
    }

    /// The same; it is a virtio function's, or not.
    pub fn of_virtio(self, virtio: bool) -> Self {
        Self { virtio, ..self }
    }

    /// The same; nothing waits any more once `closing` is true.
    pub fn until(self, closing: Arc<AtomicBool>) -> Self {
        Self { closing, ..self }
    }

    fn send(&mut self, command: Command) {
        if !self.failed && !self.engine.send_unless(command, self.write_limit, &self.closing) {
            self.failed = true;
            self.late += 1;
        }
    }

    /// Reads bytes. What does not come in time is all ones, as from a root port whose completion timer has run out.
    pub fn read(&mut self, offset: u32, out: &mut [u8]) {
        // A read pushes writes before it.
        self.flush();
        out.fill(0xff);
        let end = Instant::now() + READ_LIMIT;
        if self.virtio {
            return self.read_window(offset, out, end);
        }
        let last = offset + out.len() as u32;
        for word in (offset & !3..last).step_by(4) {
            let (reply, value) = sync_channel(1);
            let left = end.saturating_duration_since(Instant::now());
            let sent = self.engine.send(Command::Read32 { function: self.function, offset: word, reply }, left);
            let Some(value) = sent.then(|| value.recv_timeout(end.saturating_duration_since(Instant::now())).ok()).flatten() else {
                self.late += 1;
                return;
            };
            for (i, b) in value.to_le_bytes().into_iter().enumerate() {
                let at = word + i as u32;
                if (offset..last).contains(&at) {
                    out[(at - offset) as usize] = b;
                }
            }
        }
    }

    /// The same of a virtio function, whose registers have 1, 2 and 4 bytes: one read on the bus for each piece that is aligned to its length.
    fn read_window(&mut self, mut offset: u32, mut out: &mut [u8], end: Instant) {
        while !out.is_empty() {
            let (piece, rest) = out.split_at_mut(piece_of(offset, out.len(), &[4, 2]));
            let (reply, value) = sync_channel(1);
            let left = |end: Instant| end.saturating_duration_since(Instant::now());
            let sent = self.engine.send(Command::WindowRead { function: self.function, offset, bytes: piece.len(), reply }, left(end));
            let Some(value) = sent.then(|| value.recv_timeout(left(end)).ok()).flatten() else {
                self.late += 1;
                return;
            };
            piece.copy_from_slice(&value[..piece.len()]);
            (offset, out) = (offset + piece.len() as u32, rest);
        }
    }

    /// Writes bytes: cut into naturally aligned pieces of at most 64 bytes, each one write on the bus. Waits until the simulation has room for them;
    /// see `failed`.
    pub fn write(&mut self, mut offset: u32, mut data: &[u8]) {
        while !data.is_empty() {
            let (piece, rest) = data.split_at(piece_of(offset, data.len(), if self.virtio { &[4, 2] } else { &[64, 8, 4, 2] }));
            if self.virtio {
                self.send(Command::WindowWrite { function: self.function, offset, bytes: piece.to_vec() });
            } else {
                self.piece(offset, piece);
            }
            (offset, data) = (offset + piece.len() as u32, rest);
        }
    }

    fn piece(&mut self, offset: u32, piece: &[u8]) {
        if piece.len() < LINE as usize && (csr::DB_WQE..csr::DB_WQE + csr::DB_WQE_SIZE).contains(&offset) {
            self.combine(offset, piece);
            return;
        }
        self.flush();
        if offset >= DOORBELLS {
            self.send(Command::Doorbell { function: self.function, offset, bytes: piece.to_vec() });
            return;
        }
        for (i, word) in piece.chunks_exact(4).enumerate() {
            let value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            self.send(Command::Write32 { function: self.function, offset: offset + 4 * i as u32, value });
        }
        // Less than a register: the card ignores it, and so does this.
    }

    fn combine(&mut self, offset: u32, piece: &[u8]) {
        let (line, at) = (offset & !(LINE - 1), (offset % LINE) as usize);
        if self.partial.as_ref().is_some_and(|p| p.line != line) {
            self.flush();
        }
        let p = self.partial.get_or_insert(Partial { line, bytes: [0; 64], filled: 0 });
        p.bytes[at..at + piece.len()].copy_from_slice(piece);
        p.filled |= ((1u64 << piece.len()) - 1) << at;
        if p.filled == u64::MAX {
            self.flush();
        }
    }

    /// Sends what was combined: as a line if it is whole, in 8-byte pieces (which the card refuses and counts) if not.
    fn flush(&mut self) {
        let Some(p) = self.partial.take() else { return };
        if p.filled == u64::MAX {
            self.send(Command::Doorbell { function: self.function, offset: p.line, bytes: p.bytes.to_vec() });
            return;
        }
        for i in (0..8).filter(|i| p.filled >> (8 * i) & 0xff == 0xff) {
            self.send(Command::Doorbell { function: self.function, offset: p.line + 8 * i, bytes: p.bytes[8 * i as usize..][..8].to_vec() });
        }
    }
}

/// Bytes of the next access, of `left`: the first of `sizes` that fits there, or one.
fn piece_of(offset: u32, left: usize, sizes: &[usize]) -> usize {
    sizes.iter().copied().find(|n| offset as usize % n == 0 && left >= *n).unwrap_or(1)
}

/// Bytes of the BAR.
pub const SIZE: u64 = pci::BAR_WINDOW_SIZE as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::command::Inbox;
    use std::sync::atomic::Ordering;

    /// An engine that takes nothing, and has no room left.
    fn busy() -> (Handle, Inbox) {
        let (engine, inbox) = Handle::running();
        while engine.send(Command::Wake, Duration::ZERO) {}
        (engine, inbox)
    }

    #[test]
    fn a_write_waits_for_a_busy_card() {
        let (engine, inbox) = busy();
        let mut bar = Bar::new(engine, 3);
        let writer = std::thread::spawn(move || {
            bar.write(csr::DB_SQ + 8, &[7; 8]);
            (bar.late, bar.failed)
        });
        // Longer than a read would wait.
        std::thread::sleep(READ_LIMIT + Duration::from_millis(300));
        let all = std::iter::from_fn(|| inbox.commands.recv_timeout(Duration::from_secs(10)).ok().filter(|c| matches!(c, Command::Wake)));
        assert!(all.count() > 100);
        assert_eq!(writer.join().unwrap(), (0, false));
    }

    #[test]
    fn a_card_that_takes_no_writes_has_failed() {
        let (engine, inbox) = busy();
        let closing = Arc::new(AtomicBool::new(false));
        let mut bar = Bar { write_limit: Duration::from_millis(50), ..Bar::new(engine.clone(), 3).until(closing.clone()) };
        bar.write(csr::CONTROL, &[1; 4]);
        assert_eq!((bar.late, bar.failed), (1, true));
        // What comes behind it must not pass it.
        drop(inbox.commands.recv());
        bar.write(csr::DB_SQ, &[1; 8]);
        assert!(engine.send(Command::Wake, Duration::ZERO) && bar.late == 1);
        // A server that ends waits for nobody.
        closing.store(true, Ordering::Relaxed);
        let mut bar = Bar::new(engine, 3).until(closing);
        bar.write(csr::DB_SQ, &[1; 8]);
        assert!(bar.failed);
    }
}
