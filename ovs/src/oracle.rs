//! The bridge, its ports and what leaves by them.
use crate::server::{Error, Server};
use ferric_model::switch::flow::mac_text;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Uplinks: the underlay's, in a bridge of its own as Open vSwitch wants it for tunnels, and one without tunnels.
pub const UNDERLAY: u8 = 1;
pub const UPLINK: u8 = 2;
/// Ports of functions.
pub const FUNCTIONS: [u8; 5] = [8, 9, 10, 11, 12];
/// Numbers of the tunnels in the datapath.
pub const VXLAN: u32 = 4789;
pub const GENEVE: u32 = 6081;
/// Numbers of the tunnels in OpenFlow.
pub const OF_VXLAN: u16 = 20;
pub const OF_GENEVE: u16 = 21;
/// MAC address of the underlay's bridge, which is that of the tunnel endpoint.
pub const LOCAL_MAC: u64 = 0xaa55_aa55_0001;
/// Addresses of the endpoint and its peers.
pub const LOCAL_IP: [u8; 4] = [10, 0, 0, 1];
pub const PEERS: [([u8; 4], u64); 2] = [([10, 0, 0, 2], 0x0200_0000_00aa), ([10, 0, 0, 3], 0x0200_0000_00ab)];
/// A port whose frames may be this long only, bytes behind the Ethernet header; the others take 1,500.
pub const NARROW: (u8, u16) = (12, 600);
/// How long a frame may take before it counts as not sent.
const PATIENCE: Duration = Duration::from_secs(5);

/// What leaves: the frames of each port, in order.
pub type Sent = BTreeMap<u8, Vec<Vec<u8>>>;

/// The running switch with its ports.
pub struct Oracle {
    server: Server,
    captures: Vec<(u8, Capture)>,
    /// There are OpenFlow rules in `br0`.
    ruled: bool,
    /// MAC addresses in `br0`'s forwarding table that were put there.
    stations: Vec<u64>,
    /// The port that is down.
    down: Option<u8>,
}

/// A file that a dummy port writes.
struct Capture {
    file: File,
    read: u64,
    rest: Vec<u8>,
}

impl Capture {
    fn open(path: &Path) -> std::io::Result<Self> {
        // The first 24 bytes are the file's header.
        Ok(Self { file: File::open(path)?, read: 24, rest: Vec::new() })
    }

    /// Frames that have been written since the last time.
    fn frames(&mut self) -> std::io::Result<Vec<Vec<u8>>> {
        if self.file.metadata()?.len() > self.read {
            self.file.seek(SeekFrom::Start(self.read))?;
            self.read += self.file.read_to_end(&mut self.rest)? as u64;
        }
        let mut frames = Vec::new();
        while let Some(head) = self.rest.get(8..12) {
            let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
            if self.rest.len() < 16 + length {
                break;
            }
            frames.push(self.rest[16..16 + length].to_vec());
            self.rest.drain(..16 + length);
        }
        Ok(frames)
    }
}

/// Every port that frames go in and out by.
pub fn ports() -> impl Iterator<Item = u8> {
    [UNDERLAY, UPLINK].into_iter().chain(FUNCTIONS)
}

impl Oracle {
    /// Starts Open vSwitch in `folder`, which has to be new, with the bridges and ports.
    pub fn start(folder: &Path) -> Result<Self, Error> {
        let mut server = Server::start(folder)?;
        let capture = |port: u8| folder.join(format!("p{port}.pcap"));
        let mut words: Vec<String> =
            "add-br br0 -- set bridge br0 datapath_type=dummy fail-mode=secure -- add-br br1 -- set bridge br1 datapath_type=dummy fail-mode=secure".split(' ').map(str::to_owned).collect();
        words.push(format!("other_config:hwaddr={}", mac_text(LOCAL_MAC)));
        for port in ports() {
            let bridge = if port == UNDERLAY { "br1" } else { "br0" };
            let mtu = if port == NARROW.0 { NARROW.1 } else { 1500 };
            let line = format!("-- add-port {bridge} p{port} -- set interface p{port} type=dummy ofport_request={port} mtu_request={mtu} options:tx_pcap={}", capture(port).display());
            words.extend(line.split(' ').map(str::to_owned));
        }
        for (name, kind, number) in [("vx", "vxlan", OF_VXLAN), ("gn", "geneve", OF_GENEVE)] {
            let line = format!("-- add-port br0 {name} -- set interface {name} type={kind} options:remote_ip=flow options:key=flow ofport_request={number}");
            words.extend(line.split(' ').map(str::to_owned));
        }
        server.configure(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        // The first fragment's ports count, as in the datapath.
        server.openflow("br0", &["set-frags", "{}", "nx-match"])?;
        server.control("netdev-dummy/ip4addr", &["br1", "10.0.0.1/24"])?;
        server.control("netdev-dummy/ip6addr", &["br1", "fd10::1"])?;
        server.control("ovs/route/add", &["10.0.0.0/24", "br1"])?;
        // What has changed makes revalidators look at flows once more; those that no OpenFlow rule asks for would go. [`Oracle::flows`] finds out if some went.
        thread::sleep(Duration::from_millis(100));
        let captures = ports().map(|port| Ok((port, Capture::open(&capture(port))?))).collect::<std::io::Result<_>>().map_err(|e| Error::Io("capture".into(), e))?;
        Ok(Self { server, captures, ruled: false, stations: Vec::new(), down: None })
    }

    /// The programs.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// Replaces the datapath's flows; its text of them. Misses make none.
    pub fn flows(&mut self, flows: &[(String, String)]) -> Result<String, Error> {
        self.down(None)?;
        if std::mem::take(&mut self.ruled) {
            self.server.openflow("br0", &["del-flows", "{}"])?;
            // Revalidators change flows to what OpenFlow says now: they have to be through before there are some.
            thread::sleep(Duration::from_millis(50));
        }
        for _ in 0..50 {
            // No room beside these flows, so that misses add none; far fewer would make revalidators delete them.
            self.server.control("upcall/set-flow-limit", &[&flows.len().to_string()])?;
            self.server.control("dpctl/del-flows", &[])?;
            for (key, actions) in flows {
                self.server.control("dpctl/add-flow", &[key, actions])?;
            }
            let dump = self.server.control("dpctl/dump-flows", &["-m"])?;
            if dump.matches("actions:").count() == flows.len() {
                return Ok(dump);
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err(Error::Said("dpctl/add-flow: flows do not stay".into()))
    }

    /// Replaces what the bridge `br0` does: OpenFlow groups and rules, and its forwarding table (port, MAC address). Each frame is translated anew: the datapath caches nothing.
    pub fn rules(&mut self, groups: &[String], rules: &[String], stations: &[(u8, u64)]) -> Result<(), Error> {
        self.server.control("upcall/set-flow-limit", &["0"])?;
        let version = "-OOpenFlow13";
        self.ruled = true;
        self.server.openflow("br0", &[version, "del-flows", "{}"])?;
        self.server.openflow("br0", &[version, "del-groups", "{}"])?;
        for (file, command, lines) in [("groups", "add-groups", groups), ("rules", "add-flows", rules)] {
            let path = self.server.folder().join(file);
            std::fs::write(&path, lines.join("\n")).map_err(|e| Error::Io(file.into(), e))?;
            self.server.openflow("br0", &[version, command, "{}", &path.display().to_string()])?;
        }
        self.server.openflow("br1", &[version, "add-flow", "{}", "actions=NORMAL"])?;
        // Neighbours are forgotten when bridges change.
        for (ip, peer) in PEERS {
            self.server.control("tnl/neigh/set", &["br1", &ip.map(|b| b.to_string()).join("."), &mac_text(peer)])?;
        }
        self.server.control("fdb/flush", &["br0"])?;
        // What was added by hand stays when the rest is forgotten.
        for address in std::mem::take(&mut self.stations) {
            self.server.control("fdb/del", &["br0", "0", &mac_text(address)])?;
        }
        self.stations = stations.iter().map(|(_, address)| *address).collect();
        for (port, address) in stations {
            self.server.control("fdb/add", &["br0", &format!("p{port}"), "0", &mac_text(*address)])?;
        }
        self.server.control("dpctl/del-flows", &[])?;
        Ok(())
    }

    /// Takes a port of `br0` down, and the one that was down up. A dummy port that is down for OpenFlow goes on sending, so that receiving and forwarding are switched off.
    pub fn down(&mut self, port: Option<u8>) -> Result<(), Error> {
        if self.down != port {
            for (port, states) in [(self.down, ["receive", "forward"]), (port, ["no-receive", "no-forward"])] {
                for state in states {
                    if let Some(port) = port {
                        self.server.openflow("br0", &["mod-port", "{}", &format!("p{port}"), state])?;
                    }
                }
            }
            self.down = port;
        }
        Ok(())
    }

    /// Hands a frame in; what left because of it. The files are read until there is as much as `expected` or time is up.
    pub fn receive(&mut self, port: u8, frame: &[u8], expected: &Sent) -> Result<Sent, Error> {
        let hex: String = frame.iter().map(|b| format!("{b:02x}")).collect();
        self.server.control("netdev-dummy/receive", &[&format!("p{port}"), &hex])?;
        // The main loop handles packets before commands: when the second command is answered, the frame has been handled.
        self.server.control("version", &[])?;
        self.server.control("version", &[])?;
        let (begin, mut sent) = (Instant::now(), Sent::new());
        loop {
            for (port, capture) in &mut self.captures {
                let frames = capture.frames().map_err(|e| Error::Io("capture".into(), e))?;
                if !frames.is_empty() {
                    sent.entry(*port).or_default().extend(frames);
                }
            }
            let enough = expected.iter().all(|(port, frames)| sent.get(port).is_some_and(|s| s.len() >= frames.len()));
            if enough || begin.elapsed() > PATIENCE {
                return Ok(sent);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Where the captures and logs are.
    pub fn folder(&self) -> PathBuf {
        self.server.folder().to_owned()
    }
}
