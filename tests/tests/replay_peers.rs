//! Exchanges between stock programs of two Linux machines (tests/captures/peers: perftest, rping with its connection management, UCX, the
//! ping-pong programs; other MTUs, IPv6, a newer kernel): model and card in the place of each machine.
use ferric_tests::replay::capture::{packets, write};
use ferric_tests::replay::card::{role_of_gateware, CardFactory};
use ferric_tests::replay::endpoint::Factory;
use ferric_tests::replay::frame::{Frame, Kind};
use ferric_tests::replay::golden::GoldenFactory;
use ferric_tests::replay::{replay, Role};
use std::path::PathBuf;

const FOLDERS: [&str; 2] = ["linux-7.3", "linux-6.1"];

/// Name and contents of the captures between machines of one kernel.
fn captures(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("captures/peers").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "pcapng")).collect();
    files.sort();
    assert!(files.len() >= 15);
    files.into_iter().map(|p| (p.to_string_lossy().into_owned(), std::fs::read(&p).unwrap())).collect()
}

fn all_pass(folder: &str, factory: &dyn Factory, role: impl Fn(usize) -> Role) {
    let mut failed = Vec::new();
    for (n, (name, bytes)) in captures(folder).into_iter().enumerate() {
        match replay(&bytes, role(n), factory) {
            Ok(o) if o.messages > 0 && o.deviations.is_empty() => {}
            other => failed.push(format!("{name}: {other:?}")),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn the_golden_model_passes() {
    FOLDERS.iter().for_each(|f| all_pass(f, &GoldenFactory::default(), |_| Role::Both));
}

#[test]
fn the_card_passes() {
    all_pass(FOLDERS[0], &CardFactory::default(), role_of_gateware);
}

#[test]
fn the_card_passes_with_the_older_kernel() {
    all_pass(FOLDERS[1], &CardFactory::default(), role_of_gateware);
}

#[test]
fn the_twin_passes() {
    FOLDERS.iter().for_each(|f| all_pass(f, &CardFactory::twin(), |_| Role::Both));
}

/// One bit of one frame in the middle of each capture, the ICRC right: of a response's payload or MSN, of a request's length or opcode.
#[test]
fn a_changed_frame_fails() {
    for (name, bytes) in FOLDERS.iter().flat_map(|f| captures(f)) {
        let mut all = packets(&bytes).unwrap();
        let reliable = |p: &[u8]| Frame::decode(p).unwrap().filter(|f| f.bth.opcode() >> 5 == 0);
        let answers: Vec<usize> = (0..all.len()).filter(|i| reliable(&all[*i].bytes).is_some_and(|f| f.aeth.is_some())).collect();
        // Of one that acknowledges at the end, so that no later one covers it.
        let Some(at) = answers.last() else { continue };
        let mut f = Frame::decode(&all[*at].bytes).unwrap().unwrap();
        if f.op.kind == Kind::ReadResponse && !f.payload.is_empty() {
            // The bytes themselves are what the response says: too many of them are wrong in any case.
            f.payload.extend_from_slice(&[0; 4]);
        } else if let Some(a) = f.aeth.as_mut() {
            let msn = a.msn() ^ 2;
            a.set_msn(msn);
        }
        all[*at].bytes = f.encode();
        assert!(replay(&write(&all).unwrap(), Role::Both, &GoldenFactory::default()).is_err(), "{name}: packet {} changed unnoticed", at + 1);
    }
}
