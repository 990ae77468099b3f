//! What the policies of `ferric_driver::registration` cost: messages from a program's buffers, one at a time.
use super::scenario::{pair, PATIENCE};
use crate::pair::{Error, Linked, Wire};
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, LocalSge, Payload};
use ferric_driver::registration::{Bounce, Pool, Registered};
use ferric_driver::{Access, CqeStatus, QpConfig, SendRequest};

/// Bytes of a message.
const BYTES: usize = 16_384;
/// Messages measured, after two to warm up.
const MESSAGES: usize = 16;

/// Mean cycles from the wish to send a message, its bytes in the program's memory, until the buffer is the program's again. The copy
/// of `bounce` is the host's and takes no simulated time.
pub struct Costs {
    /// Registered for each message.
    pub each: f64,
    /// From a piece of a [`Pool`].
    pub pool: f64,
    /// By way of a [`Bounce`] block.
    pub bounce: f64,
    /// From a buffer that is [`Registered`] once.
    pub once: f64,
}

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
                start = self.link.pair.world().cycle();
            }
            self.next += 1;
            buffer.copy_from_slice(&Self::bytes(self.next));
            send(self, buffer)?;
            if self.link.dst.to_vec(0, BYTES) != buffer {
                return Err(Error::Stuck(format!("message {} is not what was sent", self.next)));
            }
        }
        Ok((self.link.pair.world().cycle() - start) as f64 / MESSAGES as f64)
    }
}

/// All four.
pub fn costs() -> Result<Costs, Error> {
    // Before everything that registers it, so that it ends last.
    let mut buffer = vec![0; BYTES];
    let link = Linked::on(pair(512)?, &QpConfig::default(), &Wire::default(), &[0; BYTES])?;
    let pd = link.pair.hosts[0].pd.clone();
    let (pool, bounce) = (Pool::new(&pd, 4 * BYTES, Access::LOCAL_WRITE)?, Bounce::new(&pd, BYTES, 4, Access::LOCAL_WRITE)?);
    let registered = Registered::new(pd.clone(), Access::LOCAL_WRITE);
    let mut sender = Sender { link, next: 0 };
    let full = || Error::Stuck("a pool of four buffers has none".into());
    Ok(Costs {
        each: sender.measure(&mut buffer, |s, buffer| {
            // SAFETY: the region ends before the buffer does.
            let region = unsafe { pd.register_raw(buffer.as_mut_ptr(), BYTES, buffer.as_ptr() as u64, Access::LOCAL_WRITE) }?;
            s.write(sge(region.addr(), BYTES as u32, region.lkey()))
        })?,
        pool: sender.measure(&mut buffer, |s, buffer| {
            let piece = pool.take(BYTES).ok_or_else(full)?;
            // A program with a pool makes its bytes there; these stand for it.
            piece.write(0, buffer);
            s.write(piece.sge(BYTES))
        })?,
        bounce: sender.measure(&mut buffer, |s, buffer| {
            let piece = bounce.copy(buffer).ok_or_else(full)?;
            s.write(piece.sge(BYTES))
        })?,
        once: sender.measure(&mut buffer, |s, buffer| {
            // SAFETY: the buffer outlives `registered`, and nothing reads or writes it behind a completion.
            let region = unsafe { registered.region(buffer.as_mut_ptr(), BYTES) }?;
            s.write(sge(buffer.as_ptr() as u64, BYTES as u32, region.lkey()))
        })?,
    })
}
