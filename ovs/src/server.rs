//! An Open vSwitch of its own: `ovsdb-server` and `ovs-vswitchd` with the dummy datapath in a temporary folder, with their own database and sockets. Nothing outside the folder
//! is touched, and no kernel module is used.
use serde_json::{json, Value};
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// Why there is no Open vSwitch, or what it said.
#[derive(thiserror::Error)]
pub enum Error {
    /// The programs are not installed.
    #[error("Open vSwitch is missing: ./scripts/setup installs it (Debian: openvswitch-switch)")]
    Missing,
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// A program or a command did not do what it should.
    #[error("{0}")]
    Said(String),
}

/// As a sentence, which is what a test that ends with it prints.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// Milliseconds: revalidators and idle timeouts have nothing to do while flows are compared.
const NEVER: &str = "2000000000";
/// How long the programs may take until they listen.
const START: Duration = Duration::from_secs(20);
/// How long a command may take.
const ANSWER: Duration = Duration::from_secs(20);

/// The running programs; ended when this is dropped.
pub struct Server {
    folder: PathBuf,
    programs: Vec<Child>,
    control: Control,
}

/// A connection that takes commands as `ovs-appctl` gives them: JSON-RPC, one at a time.
struct Control {
    to: UnixStream,
    from: serde_json::StreamDeserializer<'static, serde_json::de::IoRead<BufReader<UnixStream>>, Value>,
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    move |e| Error::Io(what.into(), e)
}

/// Where Debian has the daemons; users' paths leave the folder out.
fn program(name: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file()).ok_or(Error::Missing)
}

/// Whether the programs are there.
fn installed() -> bool {
    ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"].into_iter().all(|name| program(name).is_ok())
}

impl Server {
    /// Starts the programs in `folder`, which has to be new. No bridge is there yet.
    pub fn start(folder: &Path) -> Result<Self, Error> {
        if !installed() {
            return Err(Error::Missing);
        }
        fs::create_dir(folder).map_err(io_error(folder.display().to_string()))?;
        let file = |name: &str| folder.join(name).display().to_string();
        run(folder, "ovsdb-tool", &["create", &file("conf.db"), "/usr/share/openvswitch/vswitch.ovsschema"])?;
        let mut programs = vec![spawn(folder, "ovsdb-server", &[&format!("--remote=punix:{}", file("db.sock")), &format!("--unixctl={}", file("db.ctl")), &file("conf.db")])?];
        // From here on a failure ends what was started.
        let started = (|| {
            await_socket(&folder.join("db.sock"))?;
            run(folder, "ovs-vsctl", &["--no-wait", "init"])?;
            run(folder, "ovs-vsctl", &["--no-wait", "set", "Open_vSwitch", ".", &format!("other_config:max-revalidator={NEVER}"), &format!("other_config:max-idle={NEVER}")])?;
            programs.push(spawn(folder, "ovs-vswitchd", &["--enable-dummy", "--disable-system", &format!("--unixctl={}", file("vs.ctl")), &format!("unix:{}", file("db.sock"))])?);
            await_socket(&folder.join("vs.ctl"))
        })();
        match started.and_then(|to| Ok((to.try_clone().map_err(io_error("vs.ctl"))?, to))) {
            Ok((from, to)) => Ok(Self { folder: folder.to_owned(), programs, control: Control { to, from: serde_json::Deserializer::from_reader(BufReader::new(from)).into_iter() } }),
            Err(e) => {
                end(&mut programs);
                Err(e)
            }
        }
    }

    /// The folder of the database, sockets, logs and captures.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Changes the configuration, as `ovs-vsctl` does.
    pub fn configure(&self, words: &[&str]) -> Result<String, Error> {
        run(&self.folder, "ovs-vsctl", words)
    }

    /// `ovs-ofctl` for a bridge: `words` with `{}` for the bridge's socket.
    pub fn openflow(&self, bridge: &str, words: &[&str]) -> Result<String, Error> {
        let socket = format!("unix:{}", self.folder.join(format!("{bridge}.mgmt")).display());
        let words: Vec<&str> = words.iter().map(|w| if *w == "{}" { socket.as_str() } else { w }).collect();
        run(&self.folder, "ovs-ofctl", &words)
    }

    /// A command of `ovs-appctl`; what it prints.
    pub fn control(&mut self, method: &str, words: &[&str]) -> Result<String, Error> {
        let request = json!({ "id": 0, "method": method, "params": words });
        self.control.to.write_all(request.to_string().as_bytes()).map_err(io_error(method))?;
        let reply = self.control.from.next().ok_or_else(|| Error::Said(format!("{method}: ovs-vswitchd has ended")))?.map_err(|e| Error::Said(format!("{method}: {e}")))?;
        match &reply["error"] {
            Value::Null => Ok(reply["result"].as_str().unwrap_or_default().to_owned()),
            error => Err(Error::Said(format!("{method} {}: {}", words.join(" "), error.as_str().unwrap_or_default().trim()))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.programs);
    }
}

fn end(programs: &mut [Child]) {
    for program in programs.iter_mut().rev() {
        // One that has ended already cannot be ended: nothing to do then.
        let _ = program.kill();
        let _ = program.wait();
    }
}

fn command(folder: &Path, name: &str) -> Result<Command, Error> {
    let mut command = Command::new(program(name)?);
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, folder);
    }
    command.current_dir(folder).stdin(Stdio::null());
    Ok(command)
}

fn spawn(folder: &Path, name: &str, words: &[&str]) -> Result<Child, Error> {
    let log = fs::File::create(folder.join(format!("{name}.log"))).map_err(io_error(name))?;
    let mut command = command(folder, name)?;
    command.args(words).args(["--no-chdir", "-vconsole:warn", "-vsyslog:off", "-vfile:off"]);
    command.stdout(Stdio::null()).stderr(log).spawn().map_err(io_error(name))
}

fn run(folder: &Path, name: &str, words: &[&str]) -> Result<String, Error> {
    let mut command = command(folder, name)?;
    if name == "ovs-vsctl" {
        command.arg(format!("--db=unix:{}", folder.join("db.sock").display()));
    }
    let output = command.args(words).output().map_err(io_error(name))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Error::Said(format!("{name} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim())))
    }
}

fn await_socket(path: &Path) -> Result<UnixStream, Error> {
    let begin = Instant::now();
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => {
                stream.set_read_timeout(Some(ANSWER)).map_err(io_error(path.display().to_string()))?;
                return Ok(stream);
            }
            Err(e) if begin.elapsed() > START => return Err(Error::Io(path.display().to_string(), e)),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}
