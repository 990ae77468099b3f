//! The simulated card in the place of each machine of captured exchanges.
use ferric_driver::types::Mtu;
use ferric_tests::replay::capture::{packets, write};
use ferric_tests::replay::card::{role_of_gateware, CardFactory};
use ferric_tests::replay::scenarios::scenarios;
use ferric_tests::replay::synth::{transcode, Scenario};
use ferric_tests::replay::{replay, Role};
use std::path::PathBuf;

fn captures() -> Vec<(String, Vec<u8>)> {
    let all = captures_in("captures");
    assert!(all.len() >= 50);
    all
}

fn captures_in(dir: &str) -> Vec<(String, Vec<u8>)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(dir);
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "pcapng")).collect();
    files.sort();
    files.into_iter().map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap())).collect()
}

/// The `n`th of some captures, on the gateware and on the twin.
fn passes(n: usize, name: &str, bytes: &[u8]) {
    for (role, card) in [(role_of_gateware(n), CardFactory::default()), (Role::Both, CardFactory::twin())] {
        let outcome = replay(bytes, role, &card).unwrap_or_else(|e| panic!("{name}: {:?} {role:?}: {e}", card.card.body));
        assert!(outcome.messages > 0, "{name}");
    }
}

#[test]
fn every_recorded_capture_passes() {
    for (n, (name, bytes)) in captures().iter().enumerate() {
        passes(n, name, bytes);
    }
}

#[test]
fn captures_over_ipv6_and_a_vlan_pass() {
    for (n, (name, bytes)) in captures().iter().enumerate().filter(|(_, (name, _))| name.contains("1024")) {
        let vlan = (n % 2 == 1).then_some(0x6123);
        let other = write(&transcode(&packets(bytes).unwrap(), true, vlan).unwrap()).unwrap();
        passes(n / 2, &format!("{name} over IPv6, vlan {vlan:?}"), &other);
    }
}

#[test]
fn made_captures_of_other_mtus_pass() {
    for (n, mtu) in [Mtu::M256, Mtu::M512, Mtu::M2048].into_iter().enumerate() {
        // Each scenario once, at one of the MTUs.
        for (i, (name, scenario)) in scenarios(mtu).into_iter().skip(n).step_by(3).enumerate() {
            let made = Scenario { v6: n == 1, ..scenario }.record().unwrap_or_else(|e| panic!("{name}: {e}"));
            passes(i, &format!("{name} {mtu:?}"), &write(&made).unwrap());
        }
    }
}

#[test]
fn datagrams_are_sent_and_received() {
    for (n, (name, bytes)) in captures_in("captures/datagrams").iter().enumerate() {
        let other = write(&transcode(&packets(bytes).unwrap(), true, (n % 2 == 1).then_some(0x6123)).unwrap()).unwrap();
        for (i, bytes) in [bytes, &other].into_iter().enumerate() {
            passes(n + i, name, bytes);
        }
    }
}

#[test]
fn unreliable_connections_are_sent_and_received() {
    for (n, (name, bytes)) in captures_in("captures/unreliable").iter().enumerate() {
        let other = write(&transcode(&packets(bytes).unwrap(), true, (n % 2 == 1).then_some(0x6123)).unwrap()).unwrap();
        for (i, bytes) in [bytes, &other].into_iter().enumerate() {
            passes(n + i, name, bytes);
        }
    }
}
