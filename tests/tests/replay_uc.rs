//! The replay of unreliable connections over the golden model: what Linux sent passes, and every difference is noticed.
use ferric_tests::replay::capture::{packets, write, Capture, Packet};
use ferric_tests::replay::endpoint::{Endpoint, Factory, Setup};
use ferric_tests::replay::frame::{psn_add, Frame};
use ferric_tests::replay::golden::uc::{GoldenUc, UcDefect};
use ferric_tests::replay::golden::GoldenFactory;
use ferric_tests::replay::run::{sent_view, Expected};
use ferric_tests::replay::synth::transcode;
use ferric_tests::replay::uc::{directions, sender};
use ferric_tests::replay::ud::{Datagrams, UdSetup};
use ferric_tests::replay::{replay, Error, Role};
use std::path::PathBuf;

fn captures() -> Vec<(String, Vec<u8>)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("captures/unreliable");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "pcapng")).collect();
    files.sort();
    assert!(files.len() >= 4);
    files.into_iter().map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap())).collect()
}

fn good() -> GoldenFactory {
    GoldenFactory::default()
}

/// A capture with one packet changed on its way, its ICRC right or not.
fn damaged(all: &[Packet], at: usize, icrc: bool, change: fn(&mut Frame)) -> Vec<u8> {
    let mut all = all.to_vec();
    let mut delivered = all[at].clone();
    let mut frame = Frame::decode(&delivered.bytes).unwrap().unwrap();
    change(&mut frame);
    frame.icrc_error = u32::from(!icrc);
    delivered.bytes = frame.encode();
    delivered.comment = "as delivered".into();
    all[at].comment = "as sent".into();
    all.insert(at + 1, delivered);
    write(&all).unwrap()
}

/// What happened on the way to some packet of a capture, each packet in turn.
fn faults(bytes: &[u8]) -> Vec<Vec<u8>> {
    let all = packets(bytes).unwrap();
    let mut out = Vec::new();
    for i in (0..all.len()).filter(|i| all[*i].comment.is_empty()) {
        out.push(damaged(&all, i, false, |_| {}));
        for comment in ["DROPPED", "duplicated"] {
            let mut other = all.clone();
            other[i].comment = comment.into();
            out.push(write(&other).unwrap());
        }
    }
    out
}

#[test]
fn captures_and_faults_on_their_way_pass() {
    for (name, bytes) in captures() {
        for (v6, vlan) in [(false, None), (true, None), (true, Some(0x6123))] {
            let other = write(&transcode(&packets(&bytes).unwrap(), v6, vlan).unwrap()).unwrap();
            let outcome = replay(&other, Role::Both, &good()).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(outcome.messages >= 2, "{name}");
        }
        for (n, bytes) in faults(&bytes).iter().enumerate() {
            replay(bytes, Role::Both, &good()).unwrap_or_else(|e| panic!("{name}, fault {n}: {e}"));
        }
    }
}

/// There is no SEND with invalidate of an unreliable connection.
#[test]
fn what_unreliable_connections_do_not_have_is_refused() {
    let mut all = packets(&captures()[0].1).unwrap();
    let mut frame = Frame::decode(&all[0].bytes).unwrap().unwrap();
    frame.bth.set_opcode(0x37);
    all[0].bytes = frame.encode();
    match replay(&write(&all).unwrap(), Role::Both, &good()) {
        Err(Error::Exchange(why)) => assert!(why.contains("packet 1: malformed") && why.contains("reserved opcode 0x37"), "{why}"),
        other => panic!("{other:?}"),
    }
}

struct Defective(UcDefect);

impl Factory for Defective {
    fn build(&self, setup: &Setup) -> ferric_tests::replay::error::Result<Box<dyn Endpoint>> {
        Ok(Box::new(GoldenUc::new(setup, Some(self.0))))
    }
    fn datagrams(&self, _: &UdSetup) -> ferric_tests::replay::error::Result<Box<dyn Datagrams>> {
        Err(Error::Endpoint("unreliable connections only".into()))
    }
}

#[test]
fn defects_are_reported() {
    let files: Vec<Vec<u8>> = captures().into_iter().flat_map(|(_, b)| [vec![b.clone()], faults(&b)].concat()).collect();
    for defect in UcDefect::ALL {
        let noticed = files.iter().any(|b| matches!(replay(b, Role::Both, &Defective(defect)), Err(Error::Differs(_))));
        assert!(noticed, "{defect:?} is not noticed");
    }
}

type Change = (&'static str, fn(&mut Frame) -> bool);

const CHANGES: &[Change] = &[
    ("opcode", |f| {
        let o = f.bth.opcode() ^ 1;
        f.bth.set_opcode(o);
        true
    }),
    ("transport", |f| {
        let o = f.bth.opcode() ^ 0x20;
        f.bth.set_opcode(o);
        true
    }),
    ("destination queue pair", |f| {
        let q = f.bth.dest_qpn() ^ 0x10;
        f.bth.set_dest_qpn(q);
        true
    }),
    ("PSN", |f| {
        let p = psn_add(f.psn(), 1);
        f.bth.set_psn(p);
        true
    }),
    ("partition key", |f| {
        f.bth.set_pkey(0x7ffe);
        true
    }),
    ("solicited event", |f| {
        let s = !f.bth.solicited();
        f.bth.set_solicited(s);
        true
    }),
    ("pad count", |f| {
        let p = (f.bth.pad() + 1) & 3;
        f.bth.set_pad(p);
        true
    }),
    ("RETH address", |f| {
        f.reth
            .as_mut()
            .map(|r| {
                let v = r.va() ^ 1 << 40;
                r.set_va(v);
            })
            .is_some()
    }),
    ("RETH key", |f| {
        f.reth
            .as_mut()
            .map(|r| {
                let k = r.rkey() ^ 1;
                r.set_rkey(k);
            })
            .is_some()
    }),
    ("RETH length", |f| {
        f.reth
            .as_mut()
            .map(|r| {
                let l = r.length() + 1;
                r.set_length(l);
            })
            .is_some()
    }),
    ("immediate data", |f| {
        f.imm
            .as_mut()
            .map(|i| {
                let v = i.imm() ^ 0x100;
                i.set_imm(v);
            })
            .is_some()
    }),
    ("first payload byte", |f| f.payload.first_mut().map(|b| *b ^= 0x80).is_some()),
    ("payload length", |f| f.payload.pop().is_some()),
    ("source MAC", |f| {
        let m = f.eth.src() ^ 1;
        f.eth.set_src(m);
        true
    }),
];

#[test]
fn every_compared_field_is_compared() {
    for (name, bytes) in captures() {
        for c in directions(&Capture::parse(&bytes).unwrap()).unwrap() {
            let expected = sent_view(&c, 0);
            let passes = |expected: &[Expected]| sender(&c, &good(), expected).is_ok();
            assert!(passes(&expected), "{name}");
            for i in 0..expected.len() {
                for (what, change) in CHANGES {
                    let mut other = expected.clone();
                    if change(&mut other[i].frame) {
                        assert!(!passes(&other), "{name}: {what} of packet {i} changed unnoticed");
                    }
                }
                let (mut fewer, mut more) = (expected.clone(), expected.clone());
                fewer.remove(i);
                more.insert(i, expected[i].clone());
                assert!(!passes(&fewer) && !passes(&more), "{name}: packet {i} deleted or doubled unnoticed");
            }
        }
    }
}

/// Files that no sender following the rules can have made: the tool says so instead of passing them.
#[test]
fn broken_captures_fail() {
    let (_, bytes) = captures().into_iter().find(|(n, _)| n == "v4_uc_send_write_mtu1024.pcapng").unwrap();
    let all = packets(&bytes).unwrap();
    let frames: Vec<Frame> = all.iter().map(|p| Frame::decode(&p.bytes).unwrap().unwrap()).collect();
    let first = frames.iter().position(|f| !f.op.last && f.reth.is_some()).unwrap();
    let with = |at: usize, change: fn(&mut Frame)| {
        let (mut other, mut f) = (all.clone(), frames[at].clone());
        change(&mut f);
        other[at].bytes = f.encode();
        other
    };
    let mut cut = all.clone();
    cut.remove(first + 1);
    let broken: [(&str, Vec<Packet>); 6] = [
        ("the Last packet of a message is missing", cut),
        (
            "a PSN is left out",
            with(first + 1, |f| {
                let p = psn_add(f.psn(), 1);
                f.bth.set_psn(p);
            }),
        ),
        (
            "the RETH says one byte less than is sent",
            with(first, |f| {
                let r = f.reth.as_mut().unwrap();
                let l = r.length() - 1;
                r.set_length(l);
            }),
        ),
        ("a message goes on as another operation", with(first + 1, |f| _ = f.bth.set_opcode(0x22))),
        (
            "a READ request",
            with(0, |f| {
                f.bth.set_opcode(0x2c);
                f.reth = Some(Default::default());
            }),
        ),
        ("an acknowledge comes back", {
            let mut other = all.clone();
            let mut f = frames[0].clone();
            f.bth.set_opcode(0x31);
            f.aeth = Some(Default::default());
            other[1].bytes = f.encode();
            other
        }),
    ];
    for (what, packets) in broken {
        let outcome = replay(&write(&packets).unwrap(), Role::Both, &good());
        assert!(matches!(outcome, Err(Error::Exchange(_) | Error::Differs(_))), "{what}: {outcome:?}");
    }
}
