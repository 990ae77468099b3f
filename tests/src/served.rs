//! Cards served in this process, and driver processes: what the tests of served cards start from.
use ferric_cli::party::{Address, Party, Shape, Trouble};
use ferric_driver::types::{Mtu, QpType};
use ferric_driver::vfio_user::VfioUserDevice;
use ferric_sim::pci::{Endpoint, ServeConfig, Server};
use ferric_sim::wire::WireConfig;
use ferric_sim::LinkConfig;
use std::io::{BufRead, BufReader, Lines};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A fresh directory of this process under the system's temporary one.
pub fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let dir = std::env::temp_dir().join(format!("ferric-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    std::fs::create_dir_all(&dir).expect("a temporary directory");
    dir
}

/// Held while a test serves cards: a simulation per processor is fast enough for its clients' time-outs, one per test is not.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// One card with the wire plugged into itself; `functions` of it are served.
pub fn looped(functions: u16) -> (MutexGuard<'static, ()>, Server, Vec<PathBuf>) {
    let alone = alone();
    let dir = scratch();
    let sockets: Vec<PathBuf> = (0..functions).map(|f| dir.join(format!("f{f}.sock"))).collect();
    let endpoints = sockets.iter().zip(0..).map(|(s, function)| Endpoint { card: 0, function, socket: s.clone() }).collect();
    let config = ServeConfig { cards: vec![ServeConfig::card(64)], endpoints, wire: WireConfig::Loop, link: LinkConfig::default(), shared: false, sriov: false, capture: None, seed: 1 };
    (alone, Server::start(&config).expect("a server"), sockets)
}

/// Opens a served function, concretely.
pub fn open(socket: &Path) -> Arc<VfioUserDevice> {
    Arc::new(VfioUserDevice::connect(socket).expect("the served card"))
}

/// The shape of a small exchange.
pub fn shape(last: u8) -> Shape {
    Shape { ip: IpAddr::from([10, 0, 0, last]), size: 3000, window: 4, mtu: Mtu::M1024, patience: Duration::from_secs(60), transport: QpType::Rc }
}

/// A queue pair connected to itself over a looped wire, on `device`.
pub fn selfish(device: Arc<VfioUserDevice>) -> Result<(Party, Address), Trouble> {
    let mut party = Party::open(device, shape(1))?;
    let address = party.address();
    party.connect(&address)?;
    Ok((party, address))
}

/// A `ferric` process; killed when dropped.
pub struct Ferric {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Ferric {
    /// Starts `ferric` (the binary at `program`) with `args`.
    pub fn start(program: &str, args: &[&str]) -> Self {
        let mut child = Command::new(program).args(args).stdout(Stdio::piped()).spawn().expect("the ferric command");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    /// Reads until a line that starts with `start`, which is given. Panics when the process ends before.
    pub fn line(&mut self, start: &str) -> String {
        self.try_line(start).unwrap_or_else(|| panic!("the process ended without `{start}`"))
    }

    /// As [`Ferric::line`]; `None` when the process ends before.
    pub fn try_line(&mut self, start: &str) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find(|line| line.starts_with(start))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: no memory involved; the child has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// It runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end: whether it succeeded.
    pub fn finish(mut self) -> bool {
        self.child.wait().expect("a child").success()
    }
}

impl Drop for Ferric {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
