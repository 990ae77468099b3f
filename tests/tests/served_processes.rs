//! Two driver processes on two served cards, which are processes too and joined by UDP: no virtual machine, no shared
//! address space, nothing but the protocol between them.
use ferric_tests::served::{alone, scratch, Ferric};
use serde_json::Value;
use std::net::UdpSocket;
use std::time::Duration;

const FERRIC: &str = env!("CARGO_BIN_EXE_ferric-under-test");

struct Cards {
    servers: [Ferric; 2],
    sockets: [String; 2],
    captures: [std::path::PathBuf; 2],
}

fn cards() -> Cards {
    let dir = scratch();
    // Two free ports: bound, looked at, released.
    let ports: Vec<u16> = (0..2).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect::<Vec<_>>().iter().map(|s| s.local_addr().unwrap().port()).collect();
    let name = |i: usize, what: &str| dir.join(format!("{i}.{what}"));
    let servers = [0, 1].map(|i| {
        let wire = format!("udp:127.0.0.1:{},127.0.0.1:{}", ports[i], ports[1 - i]);
        let (socket, pcap) = (name(i, "sock"), name(i, "pcapng"));
        Ferric::start(FERRIC, &["card", "serve", "--socket", socket.to_str().unwrap(), "--wire", &wire, "--pcap", pcap.to_str().unwrap(), "--json"])
    });
    let mut cards = Cards { servers, sockets: [0, 1].map(|i| name(i, "sock").to_str().unwrap().to_string()), captures: [0, 1].map(|i| name(i, "pcapng")) };
    cards.servers.iter_mut().for_each(|s| drop(s.line("ready")));
    cards
}

impl Cards {
    /// A responder and an initiator; the responder's and the initiator's processes.
    fn perf(&self, options: &[&str]) -> [Ferric; 2] {
        let mut listen = Ferric::start(FERRIC, &["perf", &self.sockets[0], "--listen", "127.0.0.1:0", "--json"]);
        let at = listen.line("listening at ").split_off("listening at ".len());
        let connect = Ferric::start(FERRIC, &[&["perf", &self.sockets[1], "--connect", &at, "--json"], options].concat());
        [listen, connect]
    }

    fn exchange(&self, options: &[&str]) -> u64 {
        let [mut listen, mut connect] = self.perf(options);
        let reports = [&mut listen, &mut connect].map(|p| serde_json::from_str::<Value>(&p.line("{")).unwrap());
        assert!(listen.finish() && connect.finish());
        assert_eq!(reports[0]["verified"], reports[1]["verified"]);
        reports[0]["verified"].as_u64().unwrap()
    }

    /// Ends the servers and gives their counters.
    fn end(self) -> [Value; 2] {
        self.servers.map(|mut s| {
            s.signal(libc::SIGTERM);
            let counters = serde_json::from_str(&s.line("{")).unwrap();
            assert!(s.finish());
            counters
        })
    }
}

/// RoCE frames in a capture, to and from the card.
fn roce_frames(path: &std::path::Path) -> usize {
    let file = std::fs::read(path).unwrap();
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&file[..]).unwrap();
    let mut n = 0;
    while let Some(block) = reader.next_block() {
        if let pcap_file::pcapng::Block::EnhancedPacket(p) = block.unwrap() {
            // IPv4, UDP destination port 4791.
            n += (p.data.get(12..14) == Some(&[8, 0]) && p.data.get(36..38) == Some(&4791u16.to_be_bytes())) as usize;
        }
    }
    n
}

#[test]
fn two_processes_exchange_verified_messages() {
    let _alone = alone();
    let cards = cards();
    assert_eq!(cards.exchange(&["--op", "write", "--count", "12", "--size", "5000", "--window", "4"]), 12);
    assert_eq!(cards.exchange(&["--op", "send", "--count", "12", "--size", "5000", "--window", "4", "--mtu", "4096"]), 12);
    let captures = cards.captures.clone();
    let counters = cards.end();
    // 12 messages of 5 packets, then of 2, and their acknowledgements.
    let frames = captures.map(|c| roce_frames(&c));
    assert!(frames.iter().all(|n| *n >= 12 * 7 + 2), "{frames:?} RoCE frames crossed the wire");
    for c in counters {
        assert_eq!((&c["functions"][0]["dma_refused"], &c["functions"][0]["clients"], &c["functions"][0]["bad_messages"]), (&0.into(), &2.into(), &0.into()), "{c}");
    }
}

/// The end that talks to `ibv_rc_pingpong` in a virtual machine, here with itself.
#[test]
fn ping_pong_over_both_transports() {
    let _alone = alone();
    let cards = cards();
    for transport in ["rc", "uc"] {
        let at = format!("127.0.0.1:{}", std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        let common = ["--transport", transport, "--count", "5", "--size", "3001", "--json"];
        let listen = Ferric::start(FERRIC, &[&["pingpong", &cards.sockets[0], "--listen", &at, "--ip", "10.0.0.1"], &common[..]].concat());
        let (connect, line) = loop {
            let mut p = Ferric::start(FERRIC, &[&["pingpong", &cards.sockets[1], "--connect", &at, "--ip", "10.0.0.2"], &common[..]].concat());
            match p.try_line("{") {
                Some(line) => break (p, line),
                // The listener is not there yet.
                None => std::thread::sleep(Duration::from_millis(300)),
            }
        };
        let report: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(report["verified"], 5, "{transport}");
        assert!(listen.finish() && connect.finish(), "{transport}");
    }
}

#[test]
fn a_killed_driver_leaves_a_card_that_works() {
    let _alone = alone();
    let cards = cards();
    for victim in [1, 0] {
        let processes = cards.perf(&["--op", "write", "--count", "100000", "--size", "9000", "--window", "16"]);
        // In the middle of it: frames have been crossing the wire for a while.
        let before = std::fs::metadata(&cards.captures[0]).unwrap().len();
        let start = std::time::Instant::now();
        while std::fs::metadata(&cards.captures[0]).unwrap().len() < before + 100_000 {
            assert!(start.elapsed() < Duration::from_secs(60), "no traffic to interrupt");
            std::thread::sleep(Duration::from_millis(20));
        }
        processes[victim].signal(libc::SIGKILL);
        let [listen, connect] = processes;
        assert!(!listen.finish() && !connect.finish(), "both sides end with an error: one was killed, the other is told");
        assert_eq!(cards.exchange(&["--op", "send", "--count", "4", "--size", "3000", "--window", "2"]), 4);
    }
    // What the card did for the dead was kept from memory, not from working: it was counted, if there was any.
    for c in cards.end() {
        assert_eq!(c["functions"][0]["clients"], 4);
    }
}

#[test]
fn a_second_process_cannot_open_the_card() {
    let _alone = alone();
    let cards = cards();
    let mut holder = Ferric::start(FERRIC, &["perf", &cards.sockets[0], "--listen", "127.0.0.1:0"]);
    let _ = holder.line("listening");
    let output = std::process::Command::new(FERRIC).args(["perf", &cards.sockets[0], "--listen", "127.0.0.1:0"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(!output.status.success() && message.contains("in use by another process"), "{message}");
}
