//! Programs as the distribution ships them, on two served cards that are joined by UDP: what the tests of the verbs library start from.
use crate::served::{scratch, Ferric};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// In front of what a test says that is skipped; `./scripts/test` counts and prints these lines.
pub const SKIPPED: &str = "skipped test ";

/// Says that a test is skipped, and why, past libtest, which keeps to itself what tests print that pass.
pub fn skipped(test: &str, why: &str) {
    let line = format!("{SKIPPED}{test}: {}\n", why.trim().replace('\n', "; "));
    std::io::stderr().write_all(line.as_bytes()).expect("standard error");
}

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The folder with `libibverbs.so.1` and `librdmacm.so.1`, linked from the archive that cargo has built beside this test.
pub fn libraries() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let test = std::env::current_exe().expect("a path");
        let deps = test.parent().expect("a folder");
        let archives = std::fs::read_dir(deps)
            .expect("target")
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.extension() == Some(OsStr::new("a")) && p.file_name().and_then(OsStr::to_str).is_some_and(|n| n.starts_with("libferric_verbs")));
        // Older ones are left from other settings.
        let archive = archives.max_by_key(|p| p.metadata().and_then(|m| m.modified()).ok()).expect("libferric_verbs.a: ferric-verbs is a dependency of this test");
        let dir = scratch();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/verbs");
        let linked = Command::new(script).arg("--link").args([&archive, &dir]).output().expect("scripts/verbs");
        assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
        dir
    })
}

/// Builds one of our C programs (`verbs/tests`) against the installed headers; its path.
pub fn built(name: &str) -> String {
    let program = scratch().join(name);
    let source = format!("{}/../verbs/tests/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let ours = ["librdmacm.so.1", "libibverbs.so.1"].map(|l| libraries().join(l));
    let built = Command::new("cc").args(["-Wall", "-Werror", "-o"]).args([program.as_os_str(), source.as_ref()]).args(ours).output().expect("cc");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a path").to_owned()
}

/// A folder with the programs of Debian 13, each of which is run by the loader and with the C library of its own distribution. `None`: they have not been fetched, and the test says that
/// it is skipped.
pub fn newer(test: &str) -> Option<PathBuf> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/newer");
    let programs = std::fs::read_dir(tree.join("usr/bin")).inspect_err(|_| skipped(test, "there are no programs of Debian 13: ./tests/newer/fetch fetches them")).ok()?;
    let (bin, lib) = (scratch(), tree.join("usr/lib/x86_64-linux-gnu"));
    for program in programs.map(|p| p.expect("a program").path()) {
        let (from, to) = (libraries().display(), bin.join(program.file_name().expect("a name")));
        let text = format!("#!/bin/sh\nexec {0}/ld-linux-x86-64.so.2 --library-path {from}:{0} {1} \"$@\"\n", lib.display(), program.display());
        std::fs::write(&to, text).expect("a file");
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o755)).expect("a file of ours");
    }
    Some(bin)
}

/// Two cards, each served by a process.
pub struct Cards {
    servers: [Ferric; 2],
    sockets: [PathBuf; 2],
    captures: [PathBuf; 2],
}

/// A running program; killed when dropped.
pub struct Program {
    child: Child,
    name: String,
    output: PathBuf,
}

impl Program {
    /// Waits for its end: what it printed if it succeeded. Panics with that otherwise.
    pub fn succeed(self) -> String {
        let (ok, text) = self.end();
        assert!(ok, "it failed:\n{text}");
        text
    }

    /// Waits for its end: whether it succeeded, and what it printed, with its name in front.
    pub fn end(mut self) -> (bool, String) {
        let start = Instant::now();
        let ok = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status.success(),
                None if start.elapsed() > PATIENCE => break false,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        (ok, format!("{} after {:.1} s\n{}", self.name, start.elapsed().as_secs_f32(), self.text()))
    }

    /// Waits until it has printed `text`.
    pub fn says(&mut self, text: &str) {
        let start = Instant::now();
        while !self.text().contains(text) {
            assert!(self.is_alive() && start.elapsed() < PATIENCE, "{} does not say `{text}`:\n{}", self.name, self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it has printed so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// It runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A TCP port that nobody has.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port()
}

/// Somebody listens at this TCP port. Looked up, not tried: the stock programs take the first connection for their peer's.
fn is_listening(port: u16) -> bool {
    let has = |file: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        // Local address, remote address, state 10.
        text.lines().any(|l| l.split_whitespace().nth(1).is_some_and(|a| a.ends_with(&format!(":{port:04X}"))) && l.split_whitespace().nth(3) == Some("0A"))
    };
    has("/proc/net/tcp") || has("/proc/net/tcp6")
}

impl Cards {
    /// Starts them; `ferric` is the path of the command.
    pub fn start(ferric: &str) -> Self {
        let dir = scratch();
        let bound: Vec<UdpSocket> = (0..2).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")).collect();
        let ports: Vec<u16> = bound.iter().map(|s| s.local_addr().expect("an address").port()).collect();
        drop(bound);
        let [sockets, captures] = ["sock", "pcapng"].map(|kind| [0, 1].map(|i| dir.join(format!("{i}.{kind}"))));
        let mut servers = [0, 1].map(|i| {
            let wire = format!("udp:127.0.0.1:{},127.0.0.1:{}", ports[i], ports[1 - i]);
            Ferric::start(ferric, &["card", "serve", "--socket", sockets[i].to_str().expect("a path"), "--wire", &wire, "--pcap", captures[i].to_str().expect("a path")])
        });
        servers.iter_mut().for_each(|s| drop(s.line("ready")));
        Self { servers, sockets, captures }
    }

    /// `FERRIC_DEVICES` of a card.
    pub fn devices(&self, card: usize) -> String {
        format!("{}@10.0.0.{}", self.sockets[card].display(), card + 1)
    }

    /// Starts a program on card `card` (0 or 1), whose address is 10.0.0.1 or 10.0.0.2.
    pub fn program(&self, card: usize, name: &str, args: &[&str]) -> Program {
        let output = scratch().join("output");
        let file = File::create(&output).expect("a file");
        let mut command = Command::new(name);
        command.args(args).env("FERRIC_DEVICES", self.devices(card)).env("LD_LIBRARY_PATH", libraries());
        command.env("FERRIC_LOG", "info").stdout(file.try_clone().expect("a file")).stderr(file);
        let child = command.spawn().unwrap_or_else(|e| panic!("{name}: {e}; ./scripts/setup installs it"));
        Program { child, name: format!("{name} {}", args.join(" ")), output }
    }

    /// Runs a client and a server of a stock program that meet at a TCP port (`-p`); what each printed.
    pub fn pair(&self, name: &str, args: &[&str]) -> [String; 2] {
        let [server, client] = self.begin(name, args);
        let (ok, client) = client.end();
        assert!(ok, "client:\n{client}\nserver:\n{}", server.text());
        [server.succeed(), client]
    }

    /// The same without waiting for their ends.
    pub fn begin(&self, name: &str, args: &[&str]) -> [Program; 2] {
        let port = free_port();
        let text = port.to_string();
        let args = [args, &["-p", &text]].concat();
        let mut server = self.program(0, name, &args);
        let start = Instant::now();
        while !is_listening(port) {
            assert!(server.is_alive() && start.elapsed() < PATIENCE, "{name} does not listen:\n{}", server.text());
            std::thread::sleep(Duration::from_millis(20));
        }
        let client = self.program(1, name, &[&args[..], &["127.0.0.1"]].concat());
        [server, client]
    }

    /// Runs a server and a client of a program that connects by librdmacm, the server once it listens; what each printed.
    pub fn connected(&self, server: (&str, &[&str]), client: (&str, &[&str])) -> [String; 2] {
        let mut one = self.program(0, server.0, server.1);
        one.says("listens at");
        let (ok, printed) = self.program(1, client.0, client.1).end();
        assert!(ok, "client:\n{printed}\nserver:\n{}", one.text());
        [one.succeed(), printed]
    }

    /// Bytes of the capture of a card's wire.
    pub fn captured(&self, card: usize) -> u64 {
        self.captures[card].metadata().map_or(0, |m| m.len())
    }

    /// Takes card `card` away, as if it were pulled.
    pub fn pull(&self, card: usize) {
        self.servers[card].signal(libc::SIGKILL);
    }

    /// The servers run.
    pub fn are_alive(&mut self) -> bool {
        self.servers.iter_mut().all(Ferric::is_alive)
    }
}
