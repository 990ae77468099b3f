//! The replay over the golden model: every recorded capture passes in both roles, and every difference is noticed.
use ferric_driver::types::Mtu;
use ferric_tests::replay::analyse::{connections, Connection, Item};
use ferric_tests::replay::capture::{packets, write, Capture};
use ferric_tests::replay::endpoint::{Endpoint, Factory, Setup};
use ferric_tests::replay::frame::{psn_add, Frame, Kind};
use ferric_tests::replay::golden::ud::{GoldenDatagrams, UdDefect};
use ferric_tests::replay::golden::{Defect, GoldenFactory};
use ferric_tests::replay::run::{sent_view, Expected};
use ferric_tests::replay::scenarios::{scenarios, MTUS};
use ferric_tests::replay::synth::{transcode, Scenario};
use ferric_tests::replay::ud::{locals, replay_local, Datagrams, UdSetup};
use ferric_tests::replay::{compare, replay, replay_side, Error, Role};
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

fn good() -> GoldenFactory {
    GoldenFactory::default()
}

#[test]
fn every_capture_passes_over_the_golden_model() {
    for (name, bytes) in captures() {
        let outcome = replay(&bytes, Role::Both, &good()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(outcome.messages > 0, "{name}: {outcome:?}");
    }
}

#[test]
fn an_atomic_executed_twice_shows() {
    let twice = GoldenFactory { defect: Some(Defect::DuplicateExecuted) };
    for (name, bytes) in captures().iter().filter(|(name, _)| name.contains("atomic")) {
        assert_eq!(replay(bytes, Role::Responder, &twice).is_err(), name.contains("drop_atomic_ack"), "{name}");
    }
}

/// The made capture of this name.
fn made(name: &str) -> Vec<u8> {
    let (_, scenario) = scenarios(Mtu::M256).into_iter().find(|(n, _)| *n == name).expect(name);
    write(&scenario.record().unwrap()).unwrap()
}

#[test]
fn an_atomic_write_executed_twice_shows() {
    let twice = GoldenFactory { defect: Some(Defect::DuplicateExecuted) };
    for (name, shows) in [("placement_dup_store", true), ("placement_dup_flush", false), ("placement", false)] {
        assert_eq!(replay(&made(name), Role::Responder, &twice).is_err(), shows, "{name}");
    }
}

/// A key that still works when a SEND has invalidated it, and one that is invalidated though the peer may not.
#[test]
fn what_an_invalidation_takes_and_what_it_must_not_shows() {
    let shows = |name: &str, defect| matches!(replay(&made(name), Role::Responder, &GoldenFactory { defect: Some(defect) }), Err(Error::Differs(_)));
    for name in ["invalidated_key", "invalidated_twice"] {
        assert!(shows(name, Defect::InvalidatedKeyWorks), "{name}");
    }
    for defect in [Defect::KeyUnchecked, Defect::DomainUnchecked, Defect::PermissionUnchecked] {
        assert!(shows("invalidate_bad_rkey", defect), "{defect:?}");
    }
    assert!(!shows("invalidate", Defect::InvalidatedKeyWorks));
}

#[test]
fn captures_carried_over_to_ipv6_and_a_vlan_pass() {
    for (name, bytes) in captures() {
        for (v6, vlan) in [(true, None), (false, Some(0x6123)), (true, Some(0x0001))] {
            let other = write(&transcode(&packets(&bytes).unwrap(), v6, vlan).unwrap()).unwrap();
            assert_ne!(other, bytes);
            let outcome = replay(&other, Role::Both, &good()).unwrap_or_else(|e| panic!("{name} v6 {v6} vlan {vlan:?}: {e}"));
            assert!(outcome.messages > 0, "{name}");
        }
    }
}

#[test]
fn made_captures_of_every_mtu_and_address_family_pass() {
    for mtu in MTUS {
        for (name, scenario) in scenarios(mtu) {
            for (v6, vlan) in [(false, None), (true, None), (true, Some(0x2005))] {
                let made = Scenario { v6, vlan, ..scenario.clone() }.record().unwrap_or_else(|e| panic!("{name} {mtu:?}: {e}"));
                let file = write(&made).unwrap();
                let outcome = replay(&file, Role::Both, &good()).unwrap_or_else(|e| panic!("{name} {mtu:?} v6 {v6} vlan {vlan:?}: {e}"));
                assert_eq!(outcome.messages, connections(&Capture::parse(&file).unwrap()).unwrap()[0].requests[0].messages.len(), "{name}");
            }
        }
    }
}

#[test]
fn defects_are_reported() {
    let files = [captures(), captures_in("captures/peers/linux-7.3").into_iter().filter(|(name, _)| name.starts_with("invalidate")).collect()].concat();
    let made: Vec<(String, Vec<u8>)> = scenarios(Mtu::M256).into_iter().map(|(n, s)| (n.to_owned(), write(&s.record().unwrap()).unwrap())).collect();
    for defect in Defect::ALL {
        let factory = GoldenFactory { defect: Some(defect) };
        let noticed: Vec<&str> = files.iter().chain(&made).filter(|(_, b)| matches!(replay(b, Role::Both, &factory), Err(Error::Differs(_)))).map(|(n, _)| n.as_str()).collect();
        assert!(!noticed.is_empty(), "{defect:?} is not noticed by any capture");
        let recorded = files.iter().filter(|(n, _)| noticed.contains(&n.as_str())).count();
        assert!(recorded > 0, "{defect:?} is noticed only by made captures {noticed:?}");
    }
}

fn views() -> Vec<(String, Connection)> {
    captures().into_iter().map(|(name, bytes)| (name, connections(&Capture::parse(&bytes).unwrap()).unwrap().remove(0))).collect()
}

fn passes(c: &Connection, side: usize, expected: &[Expected]) -> bool {
    replay_side(c, side, &good(), expected).is_ok()
}

type Change = (&'static str, fn(&mut Expected) -> bool);

/// Changes of one compared field; false when the frame does not have it.
const CHANGES: &[Change] = &[
    ("opcode", |e| {
        let o = e.frame.bth.opcode() ^ 1;
        e.frame.bth.set_opcode(o);
        true
    }),
    ("destination queue pair", |e| {
        let q = e.frame.bth.dest_qpn() ^ 0x10;
        e.frame.bth.set_dest_qpn(q);
        true
    }),
    ("PSN up", |e| {
        let p = psn_add(e.frame.psn(), 1);
        e.frame.bth.set_psn(p);
        true
    }),
    ("PSN down", |e| {
        let p = psn_add(e.frame.psn(), 0xff_ffff);
        e.frame.bth.set_psn(p);
        true
    }),
    ("PSN high bit", |e| {
        let p = e.frame.psn() ^ 0x80_0000;
        e.frame.bth.set_psn(p);
        true
    }),
    ("partition key", |e| {
        e.frame.bth.set_pkey(0x7ffe);
        true
    }),
    ("solicited event", |e| {
        let s = !e.frame.bth.solicited();
        e.frame.bth.set_solicited(s);
        true
    }),
    ("pad count", |e| {
        let p = (e.frame.bth.pad() + 1) & 3;
        e.frame.bth.set_pad(p);
        true
    }),
    ("MSN", |e| {
        e.frame
            .aeth
            .as_mut()
            .map(|a| {
                let m = psn_add(a.msn(), 1);
                a.set_msn(m);
            })
            .is_some()
    }),
    ("AETH class", |e| {
        e.frame
            .aeth
            .as_mut()
            .map(|a| {
                let s = a.syndrome() ^ 0x60;
                a.set_syndrome(s);
            })
            .is_some()
    }),
    ("NAK code", |e| {
        e.frame
            .aeth
            .as_mut()
            .filter(|a| a.syndrome() >> 5 == 3)
            .map(|a| {
                let s = a.syndrome() ^ 4;
                a.set_syndrome(s);
            })
            .is_some()
    }),
    ("RETH address", |e| {
        e.frame
            .reth
            .as_mut()
            .map(|r| {
                let v = r.va() ^ 1 << 40;
                r.set_va(v);
            })
            .is_some()
    }),
    ("RETH key", |e| {
        e.frame
            .reth
            .as_mut()
            .map(|r| {
                let k = r.rkey() ^ 1;
                r.set_rkey(k);
            })
            .is_some()
    }),
    ("RETH length", |e| {
        e.frame
            .reth
            .as_mut()
            .map(|r| {
                let l = r.length() + 1;
                r.set_length(l);
            })
            .is_some()
    }),
    ("FETH placement", |e| {
        e.frame
            .feth
            .as_mut()
            .map(|f| {
                let p = f.placement() ^ 2;
                f.set_placement(p);
            })
            .is_some()
    }),
    ("FETH selectivity", |e| {
        e.frame
            .feth
            .as_mut()
            .map(|f| {
                let s = f.selectivity() ^ 1;
                f.set_selectivity(s);
            })
            .is_some()
    }),
    ("immediate data", |e| {
        e.frame
            .imm
            .as_mut()
            .map(|i| {
                let v = i.imm() ^ 0x100;
                i.set_imm(v);
            })
            .is_some()
    }),
    ("invalidated key", |e| {
        e.frame
            .ieth
            .as_mut()
            .map(|i| {
                let k = i.rkey() ^ 0x100;
                i.set_rkey(k);
            })
            .is_some()
    }),
    ("first payload byte", |e| e.frame.payload.first_mut().map(|b| *b ^= 0x80).is_some()),
    ("last payload byte", |e| e.frame.payload.last_mut().map(|b| *b ^= 1).is_some()),
    ("payload length", |e| e.frame.payload.pop().is_some()),
    ("source MAC", |e| {
        let m = e.frame.eth.src() ^ 1;
        e.frame.eth.set_src(m);
        true
    }),
    ("destination MAC", |e| {
        let m = e.frame.eth.dst() ^ 1;
        e.frame.eth.set_dst(m);
        true
    }),
];

#[test]
fn every_compared_field_is_compared() {
    let more = ["placement", "invalidate"].map(|name| (name.to_owned(), connections(&Capture::parse(&made(name)).unwrap()).unwrap().remove(0)));
    for (name, c) in views().into_iter().chain(more) {
        for side in 0..2 {
            let expected = sent_view(&c, side);
            assert!(passes(&c, side, &expected), "{name}");
            // Long captures repeat themselves.
            for i in (0..expected.len()).filter(|i| *i < 12 || i + 4 > expected.len()) {
                for (what, change) in CHANGES {
                    let mut other = expected.clone();
                    if change(&mut other[i]) {
                        assert!(!passes(&c, side, &other), "{name} side {side}: {what} of frame {i} ({}) changed unnoticed", expected[i].frame.brief());
                    }
                }
            }
        }
    }
}

#[test]
fn excused_fields_are_not_compared() {
    let changes: &[Change] = &[
        ("UDP source port", |e| {
            e.frame.udp.set_src_port(0xd00d);
            true
        }),
        ("UDP checksum", |e| {
            e.frame.udp.set_checksum(1);
            true
        }),
        ("AckReq", |e| {
            let a = !e.frame.bth.ack_req();
            e.frame.bth.set_ack_req(a);
            true
        }),
        ("MigReq", |e| {
            let a = !e.frame.bth.migreq();
            e.frame.bth.set_migreq(a);
            true
        }),
        ("credits", |e| {
            e.frame
                .aeth
                .as_mut()
                .filter(|a| a.syndrome() >> 5 == 0)
                .map(|a| {
                    a.set_syndrome(7);
                })
                .is_some()
        }),
    ];
    for (name, c) in views() {
        for side in 0..2 {
            let expected = sent_view(&c, side);
            for (what, change) in changes {
                let mut other = expected.clone();
                for e in &mut other {
                    change(e);
                }
                assert!(passes(&c, side, &other), "{name} side {side}: {what} is compared");
            }
        }
    }
}

/// Deletions that leave an exchange the rules allow: an acknowledge that a later one covers (rule 3), the tail of a run of
/// retransmissions (rule 2: identical retransmissions may be extra), the tail of a message that ended in error (rule 6).
fn may_go(c: &Connection, side: usize, expected: &[Expected], i: usize) -> bool {
    let f = &expected[i].frame;
    if f.op.kind.is_request() && !f.op.first && i + 1 == expected.len() && c.requests[side].messages.iter().any(|m| m.nak.is_some()) {
        return true;
    }
    if compare::is_ack(f) {
        // A READ response or an atomic's acknowledges what lies before it.
        return expected[i + 1..].iter().any(|e| compare::is_ack(&e.frame) || matches!(e.frame.op.kind, Kind::ReadResponse | Kind::AtomicAck));
    }
    if !f.op.kind.is_request() {
        // The complaint of Linux rxe after an RNR NAK is excused, so it may be missing too.
        return i > 0 && expected[i - 1].frame.aeth.is_some_and(|a| a.syndrome() >> 5 == 1) && f.aeth.is_some_and(|a| a.syndrome() == 0x60);
    }
    // The rest of a READ asked for again is a retransmission, too.
    let covers = |e: &Expected| e.frame.reth.as_ref().is_some_and(|r| (f.psn().wrapping_sub(e.frame.psn()) & 0xff_ffff) < r.length().div_ceil(256));
    if f.op.kind == Kind::ReadRequest && expected[..i].iter().any(|e| e.frame.op.kind == Kind::ReadRequest && covers(e)) {
        return true;
    }
    let twin = |e: &&Expected| e.frame.psn() == f.psn() && e.frame.op.kind == f.op.kind;
    let told = |e: &Expected| c.items.iter().any(|i| i.side != side && i.frame.psn() == e.frame.psn() && i.frame.aeth.is_some_and(|a| a.syndrome() == 0x60));
    let goes_on = |e: &Expected| e.frame.psn() == psn_add(f.psn(), 1) && !told(e) && expected[..i].iter().any(|p| p.frame.psn() == e.frame.psn());
    let ends_run = expected[i + 1..].iter().find(|e| e.frame.op.kind.is_request()).is_none_or(|e| !goes_on(e));
    ends_run && expected.iter().filter(twin).count() > 1
}

#[test]
fn missing_frames_are_reported() {
    for (name, c) in views() {
        for side in 0..2 {
            let expected = sent_view(&c, side);
            for i in 0..expected.len() {
                let mut other = expected.clone();
                other.remove(i);
                let pass = passes(&c, side, &other);
                assert!(!pass || may_go(&c, side, &expected, i), "{name} side {side}: frame {i} ({}) was deleted unnoticed", expected[i].frame.brief());
            }
        }
    }
}

#[test]
fn added_frames_are_reported() {
    for (name, c) in views() {
        for side in 0..2 {
            let expected = sent_view(&c, side);
            for i in 0..expected.len() {
                let mut other = expected.clone();
                other.insert(i + 1, expected[i].clone());
                // A packet that a NAK asked for may be sent twice: once on its way already, once because of the NAK.
                let nak = |item: &Item| item.side != side && item.frame.psn() == expected[i].frame.psn() && item.frame.aeth.is_some_and(|a| a.syndrome() == 0x60);
                if expected[i].frame.op.kind.is_request() && c.items.iter().any(nak) {
                    continue;
                }
                assert!(!passes(&c, side, &other), "{name} side {side}: frame {i} ({}) was doubled unnoticed", expected[i].frame.brief());
            }
        }
    }
}

#[test]
fn reordered_frames_are_reported() {
    for (name, c) in views() {
        for side in 0..2 {
            let expected = sent_view(&c, side);
            for i in 1..expected.len() {
                let (a, b) = (&expected[i - 1].frame, &expected[i].frame);
                // Requests and responses of one machine are two independent orders.
                if compare::same(a, b).is_ok() || a.op.kind.is_request() != b.op.kind.is_request() {
                    continue;
                }
                let mut other = expected.clone();
                (other[i - 1].frame, other[i].frame) = (b.clone(), a.clone());
                assert!(!passes(&c, side, &other), "{name} side {side}: frames {} and {i} ({}, {}) were exchanged unnoticed", i - 1, a.brief(), b.brief());
            }
        }
    }
}

#[test]
fn damaged_files_are_refused_without_a_panic() {
    for (name, bytes) in captures().iter().filter(|(n, _)| n.contains("1024")).step_by(4) {
        for cut in (0..bytes.len()).step_by(bytes.len() / 20) {
            let _ = replay(&bytes[..cut], Role::Both, &good());
        }
        assert!(matches!(replay(&bytes[..bytes.len() - 5], Role::Both, &good()), Err(Error::Capture(_))), "{name}");
        let mut state = 0x1234_5678u32;
        for _ in 0..20 {
            let mut other = bytes.clone();
            for _ in 0..3 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = state as usize % other.len();
                other[at] ^= (state >> 24) as u8 | 1;
            }
            let _ = replay(&other, Role::Both, &good());
        }
    }
    for junk in [&b""[..], b"abc", b"hello, world, this is no capture at all"] {
        assert!(matches!(replay(junk, Role::Both, &good()), Err(Error::Capture(_))));
    }
}

/// Without comments and directions, as a classic pcap has it.
#[test]
fn losses_are_inferred_where_the_capture_does_not_tell() {
    for (name, bytes) in captures() {
        let mut plain = packets(&bytes).unwrap();
        for p in &mut plain {
            p.comment.clear();
            p.direction = 0;
        }
        let outcome = replay(&write(&plain).unwrap(), Role::Both, &good()).unwrap_or_else(|e| panic!("{name} without comments: {e}"));
        assert!(outcome.messages > 0, "{name}");
    }
}

#[test]
fn what_no_loss_explains_is_refused() {
    let (_, bytes) = captures().into_iter().find(|(n, _)| n == "v4_rc_drop_write_middle_mtu1024.pcapng").unwrap();
    let mut plain = packets(&bytes).unwrap();
    plain.iter_mut().for_each(|p| p.comment.clear());
    // Without the NAK nothing asked for what was sent again.
    plain.remove(4);
    match replay(&write(&plain).unwrap(), Role::Both, &good()) {
        Err(Error::Exchange(why)) => assert!(why.contains("no loss explains") || why.contains("time-out"), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// Three of Linux, and carried over.
fn datagrams() -> Vec<(String, Vec<u8>)> {
    let mut all = captures_in("captures/datagrams");
    for (name, bytes) in all.clone() {
        for (v6, vlan) in [(true, None), (false, Some(0x6123)), (true, Some(0x0001))] {
            all.push((format!("{name} v6 {v6} vlan {vlan:?}"), write(&transcode(&packets(&bytes).unwrap(), v6, vlan).unwrap()).unwrap()));
        }
    }
    all
}

/// The first capture with one frame changed on its way, `change` says how, its ICRC right or not.
fn damaged(icrc: bool, change: fn(&mut Frame)) -> Vec<u8> {
    let mut all = packets(&datagrams()[0].1).unwrap();
    let mut delivered = all[4].clone();
    let mut frame = Frame::decode(&delivered.bytes).unwrap().unwrap();
    change(&mut frame);
    frame.icrc_error = u32::from(!icrc);
    delivered.bytes = frame.encode();
    delivered.comment = "as delivered".into();
    all[4].comment = "as sent".into();
    all.insert(5, delivered);
    write(&all).unwrap()
}

#[test]
fn datagrams_pass_over_the_golden_model() {
    for (name, bytes) in datagrams() {
        let outcome = replay(&bytes, Role::Both, &good()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(outcome.messages >= 10, "{name}");
    }
    for (icrc, change) in DAMAGE {
        replay(&damaged(*icrc, *change), Role::Both, &good()).unwrap();
    }
}

type Damage = (bool, fn(&mut Frame));

const DAMAGE: &[Damage] = &[(true, |f| f.deth.as_mut().unwrap().0[3] ^= 1), (true, |f| f.deth.as_mut().unwrap().0[0] ^= 0x80), (false, |_| {}), (true, |f| _ = f.bth.set_pkey(0x8001))];

struct Defective(UdDefect);

impl Factory for Defective {
    fn build(&self, _: &Setup) -> ferric_tests::replay::error::Result<Box<dyn Endpoint>> {
        Err(Error::Endpoint("datagrams only".into()))
    }
    fn datagrams(&self, setup: &UdSetup) -> ferric_tests::replay::error::Result<Box<dyn Datagrams>> {
        Ok(Box::new(GoldenDatagrams::new(setup, Some(self.0))))
    }
}

#[test]
fn defects_of_datagrams_are_reported() {
    let damaged: Vec<_> = DAMAGE.iter().map(|(icrc, change)| (String::new(), damaged(*icrc, *change))).collect();
    for defect in UdDefect::ALL {
        let noticed = datagrams().iter().chain(&damaged).any(|(_, b)| matches!(replay(b, Role::Both, &Defective(defect)), Err(Error::Differs(_))));
        assert!(noticed, "{defect:?} is not noticed");
    }
}

#[test]
fn every_compared_field_of_a_datagram_is_compared() {
    let more: &[(&str, fn(&mut Frame) -> bool)] = &[
        ("Q_Key", |f| {
            f.deth
                .as_mut()
                .map(|d| {
                    let k = d.qkey() ^ 1;
                    d.set_qkey(k);
                })
                .is_some()
        }),
        ("source queue pair", |f| {
            f.deth
                .as_mut()
                .map(|d| {
                    let q = d.src_qpn() ^ 0x100;
                    d.set_src_qpn(q);
                })
                .is_some()
        }),
    ];
    for (name, bytes) in datagrams() {
        for local in locals(&Capture::parse(&bytes).unwrap()).unwrap() {
            let expected: Vec<Frame> = local.items.iter().filter(|i| i.own).map(|i| i.frame.clone()).collect();
            replay_local(&local, &good(), &expected).unwrap_or_else(|e| panic!("{name}: {e}"));
            for i in 0..expected.len() {
                let changed = |what: &str, frame: Frame| {
                    let mut other = expected.clone();
                    other[i] = frame;
                    assert!(replay_local(&local, &good(), &other).is_err(), "{name}: {what} of datagram {i} changed unnoticed");
                };
                for (what, change) in CHANGES {
                    let mut e = Expected { position: 0, number: 0, time: 0, frame: expected[i].clone() };
                    if change(&mut e) {
                        changed(what, e.frame);
                    }
                }
                for (what, change) in more {
                    let mut frame = expected[i].clone();
                    if change(&mut frame) {
                        changed(what, frame);
                    }
                }
            }
        }
    }
}
