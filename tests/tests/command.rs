//! The `ferric` command as a user runs it, on served cards.
#[path = "command/switch.rs"]
mod switch;

use ferric_tests::served::{alone, looped, scratch, Ferric};
use serde_json::Value;
use std::net::UdpSocket;
use std::process::{Command, Output};

const FERRIC: &str = env!("CARGO_BIN_EXE_ferric-under-test");

fn ferric(args: &[&str]) -> Output {
    Command::new(FERRIC).args(args).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let o = ferric(args);
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    serde_json::from_slice(&o.stdout).unwrap()
}

fn refusal(args: &[&str]) -> String {
    let o = ferric(args);
    assert!(!o.status.success(), "{args:?} should fail");
    String::from_utf8_lossy(&o.stderr).into_owned()
}

#[test]
fn a_plugged_card_passes_its_self_test() {
    let (_alone, server, sockets) = looped(1);
    let card = sockets[0].to_str().unwrap();
    let outcomes = json(&["selftest", card, "--plugged", "--json"]);
    let names: Vec<&str> = outcomes.as_array().unwrap().iter().map(|o| o["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["registers", "objects", "dma", "write", "send", "interrupt"]);
    assert!(outcomes.as_array().unwrap().iter().all(|o| o["error"].is_null()), "{outcomes}");
    assert_eq!(server.counters(0).dma_refused, 0);
    let info = json(&["info", card, "--json"]);
    assert_eq!((&info["functions"], &info["width_bits"], &info["interface"]), (&4.into(), &64.into(), &"0.1".into()), "{info}");
    assert!(info["features"].as_array().unwrap().contains(&"rc".into()));
    let stat = json(&["stat", card, "--all", "--json"]);
    assert!(stat["req_tx.packets"].is_u64() || stat.as_object().unwrap().len() > 50, "{stat}");
    let some = json(&["stat", card, "db_", "--all", "--json"]);
    assert_eq!(some["doorbell.db_bad"], 0);
    assert!(some.as_object().unwrap().keys().all(|k| k.contains("db_")));
}

#[test]
fn an_unplugged_card_fails_the_plugged_test() {
    let _alone = alone();
    let socket = scratch().join("a.sock");
    let socket = socket.to_str().unwrap();
    let mut server = Ferric::start(FERRIC, &["card", "serve", "--socket", socket]);
    server.line("ready");
    let outcomes = json(&["selftest", socket, "--json"]);
    assert_eq!(outcomes.as_array().unwrap().len(), 3);
    // A second server does not take the socket away from the first.
    let error = refusal(&["card", "serve", "--socket", socket]);
    assert!(error.contains("another process serves there"), "{error}");
}

#[test]
fn frames_from_the_wire_are_captured() {
    let _alone = alone();
    let dir = scratch();
    let (socket, out) = (dir.join("a.sock"), dir.join("out.pcapng"));
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let wire = format!("udp:127.0.0.1:{port},{}", peer.local_addr().unwrap());
    let mut server = Ferric::start(FERRIC, &["card", "serve", "--socket", socket.to_str().unwrap(), "--wire", &wire]);
    server.line("ready");
    let capture = Command::new(FERRIC).args(["capture", socket.to_str().unwrap(), "--out", out.to_str().unwrap(), "--count", "3", "--seconds", "40"]).spawn().unwrap();
    // To a station that is not here; sent until three of them have been taken, for the capture starts when it starts.
    let frame: Vec<u8> = [vec![2, 0, 0, 0, 0, 7], vec![2, 0, 0, 0, 0, 9, 8, 6], (0..50).collect()].concat();
    let mut capture = capture;
    let status = loop {
        peer.send_to(&frame, ("127.0.0.1", port)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        if let Some(s) = capture.try_wait().unwrap() {
            break s;
        }
    };
    assert!(status.success());
    let file = std::fs::read(&out).unwrap();
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&file[..]).unwrap();
    let mut n = 0;
    while let Some(block) = reader.next_block() {
        if let pcap_file::pcapng::Block::EnhancedPacket(p) = block.unwrap() {
            assert_eq!(p.data[..], frame[..]);
            n += 1;
        }
    }
    assert_eq!(n, 3);
}

#[test]
fn mistakes_are_explained() {
    let cases: [(&[&str], &str); 8] = [
        (&["info", "/nowhere/a.sock"], "no such socket; start a server: ferric card serve --socket /nowhere/a.sock"),
        (&["info", "0000:ff:1f.7"], "no such PCI function; see which there are: ferric list"),
        (&["selftest", "card0"], "not a PCI address"),
        (&["bind", "0000:ff:1f.7"], "no such PCI function"),
        (&["card", "serve", "--socket", "/tmp/x", "--wire", "pigeon"], "is no wire"),
        (&["card", "serve", "--socket", "/nowhere/x"], "/nowhere/x"),
        (&["card", "serve", "--socket", "/tmp/x", "--width", "65"], "64 or 512"),
        (&["perf", "/nowhere/a.sock"], "--listen"),
    ];
    for (args, words) in cases {
        let error = refusal(args);
        assert!(error.contains(words), "{args:?}: `{error}` does not say `{words}`");
    }
    assert!(json(&["list", "--json"]).is_array());
    let file = scratch().join("file");
    std::fs::write(&file, "no socket").unwrap();
    assert!(refusal(&["card", "serve", "--socket", file.to_str().unwrap()]).contains("no socket to replace"));
}
