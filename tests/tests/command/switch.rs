//! `ferric switch` on a served card `switch`: what is said decides about frames off the wire, and what cannot be is refused with a reason.
use super::*;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer than the card needs for a frame, and for a reset.
const PATIENCE: Duration = Duration::from_secs(60);
/// A type that nobody knows.
const TYPE: [u8; 2] = [0x88, 0xb5];

/// A served card, who holds its switch, and the far end of its wire.
struct Bench {
    _card: Ferric,
    holder: Option<Ferric>,
    card: PathBuf,
    socket: PathBuf,
    software: PathBuf,
    peer: UdpSocket,
    port: u16,
}

impl Bench {
    fn new(options: &[&str]) -> Self {
        let dir = scratch();
        let (card, socket, software) = (dir.join("a.sock"), dir.join("switch.sock"), dir.join("software.pcapng"));
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let wire = format!("udp:127.0.0.1:{port},{}", peer.local_addr().unwrap());
        let mut served = Ferric::start(FERRIC, &[&["card", "serve", "--socket", path(&card), "--wire", &wire], options].concat());
        served.line("ready");
        let mut bench = Self { _card: served, holder: None, card, socket, software, peer, port };
        bench.hold();
        bench
    }

    /// A new holder, which begins with nothing.
    fn hold(&mut self) {
        if let Some(holder) = self.holder.take() {
            holder.signal(libc::SIGINT);
            assert!(holder.finish(), "a holder ends in order");
        }
        let mut holder = Ferric::start(FERRIC, &["switch", "hold", path(&self.card), "--socket", path(&self.socket), "--software", path(&self.software)]);
        holder.line("ready");
        self.holder = Some(holder);
    }

    /// What a command prints.
    fn says(&self, words: &[&str]) -> String {
        let o = ferric(&self.command(words));
        assert!(o.status.success(), "{words:?}: {}", String::from_utf8_lossy(&o.stderr));
        String::from_utf8(o.stdout).unwrap()
    }

    fn refuses(&self, words: &[&str], why: &str) {
        let error = refusal(&self.command(words));
        assert!(error.contains(why), "{words:?}: `{error}` does not say `{why}`");
    }

    /// The socket stands behind the names of the command.
    fn command<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        let names = if ["flow", "port", "tunnel", "station"].contains(&words[0]) { 2 } else { 1 };
        [&["switch"], &words[..names], &[path(&self.socket)], &words[names..]].concat()
    }

    fn stat(&self, name: &str) -> u64 {
        let all = self.says(&["stats", "--all"]);
        let line = all.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap_or_else(|| panic!("no {name}: {all}"));
        line.split_whitespace().last().unwrap().parse().unwrap()
    }

    /// Sends a frame from a station, which moves this counter by one.
    fn counts(&self, from: u8, name: &str) {
        let before = self.stat(name);
        self.peer.send_to(&frame(from), ("127.0.0.1", self.port)).unwrap();
        self.until(|| self.stat(name) == before + 1, name);
    }

    fn until(&self, done: impl Fn() -> bool, what: &str) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < PATIENCE, "{what}: {}", self.says(&["stats"]));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Senders of the frames that software has got.
    fn software(&self) -> Vec<u8> {
        let file = std::fs::read(&self.software).unwrap();
        let mut reader = pcap_file::pcapng::PcapNgReader::new(&file[..]).unwrap();
        let mut from = Vec::new();
        while let Some(Ok(block)) = reader.next_block() {
            if let pcap_file::pcapng::Block::EnhancedPacket(p) = block {
                assert_eq!(p.data[..], frame(p.data[11]));
                let says = p.options.iter().any(|o| matches!(o, EnhancedPacketOption::Comment(words) if words == "to software, off the wire: by a flow, or because none knows it"));
                assert!(says, "{:?}", p.options);
                from.push(p.data[11]);
            }
        }
        from
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A frame that is for nobody.
fn frame(from: u8) -> Vec<u8> {
    [&[2, 0, 0, 0, 99, 99, 2, 0, 0, 0, 88, from][..], &TYPE, &[0x5a; 60]].concat()
}

/// What matches it.
fn matches(from: u8) -> String {
    format!("in_port(uplink),eth(src=02:00:00:00:58:{from:02x}),eth_type(0x88b5)")
}

#[test]
fn a_switch_is_told_what_to_do() {
    let _alone = alone();
    let mut b = Bench::new(&["--engines", "switch"]);
    assert!(b.says(&["show"]).contains("frames pass"));
    // Before the tables decide a flow is in the book only.
    b.says(&["flow", "add", &matches(1), "userspace(pid=0)"]);
    b.says(&["tables"]);
    b.counts(1, "flows.software");
    b.counts(2, "flows.miss");
    // Beside it, under traffic: an entry of the same mask, and a rule with another one.
    let second = b.says(&["flow", "add", &matches(2), "drop"]);
    b.says(&["flow", "add", "in_port(uplink),eth_type(0x88b5)", "userspace(pid=0)"]);
    b.counts(2, "flows.acl");
    b.counts(3, "flows.software");
    b.until(|| b.software() == [1, 3], "frames for software");
    let dump = b.says(&["flow", "dump", "-m"]);
    let line = |words: &str| dump.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {dump}"));
    assert!(line(":58:02").contains("packets:1, bytes:74, actions:drop") && line(":58:02").contains("an exact entry of packet class 0"), "{dump}");
    assert!(line("in_port(1),eth(),eth_type(0x88b5)").contains("wildcard rule"), "{dump}");
    let hex = frame(2).iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert!(b.says(&["trace", &hex]).contains("dropped: Acl"));
    assert!(b.says(&["trace", "--from", "1", &hex]).contains("dropped: Miss"));
    // One goes: its frames meet the rule.
    b.says(&["flow", "del", second.trim()]);
    b.counts(2, "flows.software");
    b.refuses(&["flow", "del", second.trim()], "there is no flow");
    // All others take the place of these, as the dump of before says; what cannot be taken is named, and nothing changes.
    let file = scratch().join("flows");
    let more =
        format!("# of yesterday\n{dump}in_port(vnet0),eth_type(0x0800), packets:0, bytes:0, used:never, actions:f2,uplink\nin_port(uplink),eth_type(0x0800), actions:push_vlan(vid=5,pcp=0),f1\n");
    std::fs::write(&file, more).unwrap();
    let load = ["flow", "load", path(&file), "--port", "vnet0=9"];
    b.refuses(&load, "line 5: the card does not do what the actions say: it neither copies frames");
    let check = b.says(&[&load[..], &["--check"]].concat());
    assert!(check.contains("line 6: the card does not do what the actions say") && check.contains("3 flows taken, 2 not"), "{check}");
    assert_eq!(b.says(&["flow", "dump"]).lines().count(), 2);
    // Twice: the second set stands where the flows of before stood.
    (0..2).for_each(|_| assert!(b.says(&[&load[..], &["--partial"]].concat()).contains("3 flows taken, 2 not")));
    b.counts(2, "flows.acl");
    b.counts(1, "flows.software");
    // Lines that other flows had before count from zero.
    let packets = |dump: &str| dump.matches("packets:1,").count() + 10 * dump.matches("packets:0,").count();
    assert_eq!(packets(&b.says(&["flow", "dump"])), 12);
    b.says(&["flow", "flush"]);
    b.counts(1, "flows.miss");
    // One that changes its frames, added and then written with all others.
    let changing = b.says(&["flow", "add", &matches(2), "set(eth(src=02:00:00:00:00:0a,dst=02:00:00:00:00:0b)),f0"]);
    b.counts(2, "flows.port");
    assert!(b.says(&["trace", &hex]).contains("to function 0, with what the actions set"));
    b.says(&["tables"]);
    b.counts(2, "flows.port");
    b.says(&["flow", "del", changing.trim()]);
    b.counts(2, "flows.miss");
    b.says(&["tables", "--miss", "software", "--egress"]);
    b.counts(1, "flows.software");
    assert!(b.says(&["show"]).contains("what leaves by the wire is asked about") && b.stat("egress.f3.left") == 0);
    b.says(&["pass"]);
    // A flow that stood in the card before is written anew.
    b.says(&["flow", "add", &matches(1), "drop"]);
    b.says(&["tables"]);
    b.counts(1, "flows.acl");
    // The next holder begins with nothing.
    b.hold();
    let shown = b.says(&["show"]);
    assert!(shown.contains("frames pass") && shown.contains("0 flows"), "{shown}");
}

#[test]
fn tunnels_and_rights_are_told_and_shown() {
    let _alone = alone();
    let b = Bench::new(&["--engines", "switch"]);
    const ENDS: &str = "100,02:00:00:00:00:01,10.1.0.1,02:00:00:00:00:02,10.1.0.2";
    b.says(&["tunnel", "set", "1", ENDS, "--raw"]);
    b.refuses(&["tunnel", "set", "2", "100,02:00:00:00:00:01,10.1.0.1,02:00:00:00:00:02,10.1.0.9"], "InUse");
    // The same VNI and rules: one network, called by its first function.
    b.says(&["tunnel", "set", "2", ENDS]);
    b.refuses(&["tunnel", "clear", "1"], "InUse");
    b.says(&["station", "set", "02:00:00:00:09:0a", "2", "--network", "2"]);
    let shown = b.says(&["show"]);
    assert!(shown.contains("in the network of function 1") && shown.contains("station 02:00:00:00:09:0a through the tunnel of function 1: function 2"), "{shown}");
    b.says(&["station", "clear", "02:00:00:00:09:0a", "--network", "2"]);
    b.says(&["tunnel", "clear", "2"]);
    b.refuses(&["tunnel", "set", "9", ENDS], "the card has the functions 0 to 3");
    b.refuses(&["tunnel", "set", "2", "100,02:00"], "a tunnel is VNI,MAC,IP,PEER-MAC,PEER-IP");
    b.says(&["port", "set", "1", "--mac", "02:00:00:00:07:07", "--ip", "192.168.7.7", "--roce"]);
    b.refuses(&["port", "set", "1", "--mac", "02:00"], "is not a MAC address");
    b.says(&["port", "set", "3"]);
    b.says(&["station", "set", "02:00:00:00:09:09", "1", "--network", "1"]);
    b.refuses(&["station", "set", "02:00:00:00:09:09", "1", "--network", "2"], "function 2 has no tunnel");
    let shown = b.says(&["show"]);
    for words in [
        "tunnel: VNI 100, 10.1.0.1 at 02:00:00:00:00:01, from 10.1.0.2",
        "may send: 02:00:00:00:07:07, 192.168.7.7, RoCE",
        "may send: nothing",
        "station 02:00:00:00:09:09 through the tunnel of function 1: function 1",
    ] {
        assert!(shown.contains(words), "`{words}`: {shown}");
    }
    // A network's stations do not become the next network's.
    b.refuses(&["tunnel", "clear", "1"], "speaks of this function's network");
    b.says(&["station", "clear", "02:00:00:00:09:09", "--network", "1"]);
    b.says(&["tunnel", "clear", "1"]);
    b.says(&["port", "free", "3"]);
    let shown = b.says(&["show"]);
    assert!(!shown.contains("tunnel:") && !shown.contains("nothing"), "{shown}");
    // Whoever talks nonsense to the socket costs nobody anything.
    use std::io::{Read, Write};
    for words in ["nonsense\n", "{\"Add\":1}\n", "without an end"] {
        let mut stream = std::os::unix::net::UnixStream::connect(&b.socket).unwrap();
        stream.write_all(words.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        _ = stream.read_to_string(&mut answer);
        assert!(answer.is_empty() != words.ends_with('\n') && (answer.is_empty() || answer.contains("no such command")), "{words}: {answer}");
    }
    // Nor does one who says nothing and stays.
    let _silent = std::os::unix::net::UnixStream::connect(&b.socket).unwrap();
    let asked = Instant::now();
    assert!(b.says(&["show"]).contains("function 0"));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(refusal(&["switch", "show", "/nowhere/x.sock"]).contains("who holds the switch?"));
}

/// A twin is the end of tunnels and has no flow tables; a card without either has no switch.
#[test]
fn cards_have_what_they_have() {
    let _alone = alone();
    let b = Bench::new(&["--twin", "--engines", "vxlan"]);
    b.says(&["tunnel", "set", "1", "100,02:00:00:00:00:01,10.1.0.1,02:00:00:00:00:02,10.1.0.2"]);
    b.refuses(&["flow", "add", &matches(1), "drop"], "serve one with --engines switch");
    b.refuses(&["tables"], "flow tables");
    assert!(refusal(&["card", "serve", "--socket", "/tmp/x", "--twin", "--engines", "switch"]).contains("twins have no flow tables"));
    let plain = scratch().join("b.sock");
    let mut served = Ferric::start(FERRIC, &["card", "serve", "--socket", path(&plain), "--twin"]);
    served.line("ready");
    assert!(refusal(&["switch", "hold", path(&plain), "--socket", "/tmp/y"]).contains("--engines vxlan or switch"));
}
