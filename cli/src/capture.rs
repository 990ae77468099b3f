//! `ferric capture`: frames that no RDMA block of a card wants, as a pcapng.
use crate::raw::Port;
use ferric_abi::codes::SwitchCause;
use ferric_abi::csr::{FUNCTION_PORTS, WIRE_PORT};
use ferric_abi::switch::Exception;
use ferric_driver::device::Device;
use ferric_driver::switch::exception;
use ferric_driver::{Config, Context};
use ferric_sim::capture::Capture;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Receive buffers.
const BUFFERS: usize = 64;

/// A promiscuous raw queue pair and the file that its frames go to.
pub struct Taker {
    file: Capture,
    start: Instant,
    port: Port,
    frame: Vec<u8>,
}

impl Taker {
    /// From now on `ctx`'s function gets what no RDMA block wants, and it goes to `out`.
    pub fn new(ctx: &Context, out: &Path) -> Result<Self, Box<dyn Error>> {
        let file = Capture::create(out)?;
        Ok(Self { file, start: Instant::now(), port: Port::open(ctx, BUFFERS, &[])?, frame: Vec::new() })
    }

    /// Takes all frames that there are; how many, and they are in the file.
    pub fn take_all(&mut self) -> Result<u64, Box<dyn Error>> {
        let mut taken = 0;
        while self.take()? {
            taken += 1;
        }
        if taken > 0 {
            self.file.flush()?;
        }
        Ok(taken)
    }

    /// Takes a frame, if there is one; whether there was.
    pub fn take(&mut self) -> Result<bool, Box<dyn Error>> {
        let Some(completion) = self.port.receive(&mut self.frame)? else { return Ok(false) };
        let comment = exception(&completion).map(|exception| comment(&exception));
        self.file.frame_at(self.start.elapsed().as_nanos() as u64, 2, &self.frame, comment.as_deref())?;
        self.port.flush();
        Ok(true)
    }
}

/// Why software has got a frame, as the capture says it.
fn comment(exception: &Exception) -> String {
    let port = match u32::from(exception.port()) {
        WIRE_PORT if exception.remote() != 0 => format!("through the tunnel of function {}", exception.remote() - 1),
        WIRE_PORT => "off the wire".into(),
        port => format!("from function {}", port.saturating_sub(FUNCTION_PORTS)),
    };
    let cause = match SwitchCause::from_u8(exception.cause()) {
        _ if exception.unable() => "the card does not do what the actions say".into(),
        Some(SwitchCause::None) | None => "by a flow, or because none knows it".into(),
        Some(cause) => format!("{cause:?}"),
    };
    format!("to software, {port}: {cause}")
}

/// Writes up to `count` frames, or for `limit`; gives how many.
pub fn run(device: Arc<dyn Device>, out: &Path, count: u64, limit: Duration) -> Result<u64, Box<dyn Error>> {
    let ctx = Context::open(device, Config::default())?;
    let mut taker = Taker::new(&ctx, out)?;
    let start = Instant::now();
    let mut taken = 0;
    while taken < count && start.elapsed() < limit {
        match taker.take()? {
            true => taken += 1,
            false => ctx.device().relax(),
        }
    }
    Ok(taken)
}
