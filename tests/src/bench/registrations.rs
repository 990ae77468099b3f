//! What the policies of `ferric_driver::registration` cost: messages from a program's buffers, one at a time.
use super::scenarios::Policy;
use crate::pair::{Error, Linked, Pair, Wire};
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, LocalSge, Payload};
use ferric_driver::registration::{Bounce, Pool, Registered};
use ferric_driver::{Access, CqeStatus, QpConfig, SendRequest};

/// Bytes of a message.
const BYTES: usize = 16_384;
/// Messages measured, after two to warm up.
const MESSAGES: usize = 16;
/// Cycles within which one of them ends.
const PATIENCE: u64 = 400_000;
/// Where the program's buffer lies.
const BUFFER: usize = 0x20_0000_0000;

struct Sender {
    link: Linked,
    /// A number for the next message, from which its bytes follow.
    next: usize,
}

impl Sender {
    fn bytes(n: usize) -> Vec<u8> {
        (0..BYTES).map(|i| (i * 3 + (i >> 8) + n) as u8).collect()
    }

    /// WRITEs what `entry` names and waits for it.
    fn write(&mut self, entry: LocalSge) -> Result<(), Error> {
        let (remote_addr, rkey) = (self.link.dst.addr(), self.link.dst.rkey());
        let entries = [entry];
        let request = SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&entries), remote_addr, rkey, imm: 0, signaled: true, solicited: false };
        self.link.qps[0].post_send(&request)?;
        match self.link.wait(0, PATIENCE)?.status {
            CqeStatus::Success => Ok(()),
            status => Err(Error::Stuck(format!("a registered message ends with {status:?}"))),
        }
    }

    /// `send` for each message, which stands in `buffer`; the bytes that arrive verified.
    fn measure(&mut self, buffer: &mut [u8], mut send: impl FnMut(&mut Self, &mut [u8]) -> Result<(), Error>) -> Result<f64, Error> {
        let mut start = 0;
        for n in 0..MESSAGES + 2 {
            if n == 2 {
                start = self.link.pair.world().elapsed();
            }
            self.next += 1;
            buffer.copy_from_slice(&Self::bytes(self.next));
            send(self, buffer)?;
            if self.link.dst.to_vec(0, BYTES) != buffer {
                return Err(Error::Stuck(format!("message {} is not what was sent", self.next)));
            }
        }
        Ok((self.link.pair.world().elapsed() - start) as f64 / MESSAGES as f64)
    }
}

/// A buffer of the program at an address that is the same in every run, `offset` bytes behind its beginning.
struct Buffer {
    at: *mut u8,
    room: usize,
}

impl Buffer {
    fn new() -> Result<Self, Error> {
        let room = 2 * BYTES;
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE);
        // SAFETY: new memory, only where nothing is.
        let at = unsafe { libc::mmap(BUFFER as *mut _, room, rights, flags, -1, 0) };
        if at as usize != BUFFER {
            return Err(Error::Stuck(format!("no memory at {BUFFER:#x}: {}", std::io::Error::last_os_error())));
        }
        Ok(Self { at: at.cast(), room })
    }

    /// One message's bytes.
    fn bytes(&mut self, offset: usize) -> &mut [u8] {
        assert!(offset + BYTES <= self.room);
        // SAFETY: in bounds of memory that is this value's alone.
        unsafe { std::slice::from_raw_parts_mut(self.at.add(offset), BYTES) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: from `new`.
        unsafe { libc::munmap(self.at.cast(), self.room) };
    }
}

/// Mean cycles on `pair` from the wish to send a message, its bytes in the program's memory, until the buffer is the program's again. The copy
/// into a bounce block is the host's and takes no simulated time. `offset`: where the program's buffer begins behind a page.
pub fn cost(pair: Pair, policy: Policy, offset: usize) -> Result<f64, Error> {
    // Before everything that registers it, so that it ends last.
    let mut memory = Buffer::new()?;
    let buffer = memory.bytes(offset);
    let link = Linked::on(pair, &QpConfig::default(), &Wire::default(), &[0; BYTES])?;
    let pd = link.pair.hosts[0].pd.clone();
    let mut sender = Sender { link, next: 0 };
    let full = || Error::Stuck("a pool of four buffers has none".into());
    match policy {
        Policy::Each => sender.measure(buffer, |s, buffer| {
            // SAFETY: the region ends before the buffer does.
            let region = unsafe { pd.register_raw(buffer.as_mut_ptr(), BYTES, buffer.as_ptr() as u64, Access::LOCAL_WRITE) }?;
            s.write(sge(region.addr(), BYTES as u32, region.lkey()))
        }),
        Policy::Pool => {
            let pool = Pool::new(&pd, 4 * BYTES, Access::LOCAL_WRITE)?;
            sender.measure(buffer, |s, buffer| {
                let piece = pool.take(BYTES).ok_or_else(full)?;
                // A program with a pool makes its bytes there; these stand for it.
                piece.write(0, buffer);
                s.write(piece.sge(BYTES))
            })
        }
        Policy::Bounce => {
            let bounce = Bounce::new(&pd, BYTES, 4, Access::LOCAL_WRITE)?;
            sender.measure(buffer, |s, buffer| {
                let piece = bounce.copy(buffer).ok_or_else(full)?;
                s.write(piece.sge(BYTES))
            })
        }
        Policy::Once => {
            let registered = Registered::new(pd.clone(), Access::LOCAL_WRITE);
            sender.measure(buffer, |s, buffer| {
                // SAFETY: the buffer outlives `registered`, and nothing reads or writes it behind a completion.
                let region = unsafe { registered.region(buffer.as_mut_ptr(), BYTES) }?;
                s.write(sge(buffer.as_ptr() as u64, BYTES as u32, region.lkey()))
            })
        }
    }
}
