//! Raw queue pairs of functions with tunnels: who may have one, which one gets frames, and that nothing of it outlives the queue pair, the function or the tunnel.

use super::card::Event;
use super::commands::{line, qp_params};
use super::functions::{make, own, reset};
use super::tunnel::{on, set};
use super::Bench;
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::*;
use ferric_abi::context::{RawCtx, TunnelCtx};
use ferric_abi::csr::space::RAW;
use ferric_abi::csr::{PORT_PROMISCUOUS, PORT_RAW};

const RAW_TYPE: u32 = 3;

/// Function `f`'s raw queue pair, behind the one that `make` makes.
fn raw(f: u32) -> u32 {
    own(f).qp + 1
}

fn lines(b: &Bench) -> [Option<u32>; 4] {
    [0, 1, 2, 3].map(|f| Some(RawCtx(line(&b.card, RAW, f))).filter(RawCtx::valid).map(|line| line.qpn()))
}

fn create(b: &mut Bench, status: ferric_abi::codes::AdminStatus, f: u32) {
    let o = own(f);
    b.expect(status, f as usize, CreateQp, raw(f), &qp_params(RAW_TYPE, o.pd, o.cq, o.cq));
}

pub fn all(b: &mut Bench) {
    let tunnel = |f: u32| on(false).with_vni(f).with_raw(f != 2);
    (1..3).for_each(|f| set(b, Ok, 0, f, tunnel(f)));
    (0..4).for_each(|f| make(b, f, 0));
    // Function 2's tunnel does not say that it may, function 3 has none.
    for f in 2..4 {
        create(b, Denied, f);
        for word in [0, PORT_RAW | own(f).qp] {
            b.expect(Denied, f as usize, SetPort, 0, &[word]);
        }
    }
    create(b, Ok, 1);
    assert_eq!(lines(b), [None; 4], "nobody has named it yet");
    let set_port = |b: &mut Bench, status, word: u32| b.expect(status, 1, SetPort, 0, &[word]);
    for (status, word) in [(BadParameter, PORT_PROMISCUOUS | raw(1)), (BadId, own(2).qp), (BadId, 99), (BadId, 1 << 29 | raw(1)), (BadState, own(1).qp - 1)] {
        set_port(b, status, PORT_RAW | word);
        assert_eq!(lines(b), [None; 4]);
    }
    let card = b.card.raw_qpn;
    set_port(b, Ok, PORT_RAW | raw(1));
    assert_eq!((lines(b), b.card.raw_qpn), ([None, Some(raw(1)), None, None], card), "the card's is another one");
    assert_eq!(b.card.word(RAW, 1, 0), PORT_RAW | raw(1), "as the blocks have it");
    // What it sends would leave without a tunnel.
    for without in [TunnelCtx::default(), TunnelCtx::default().with_raw(true), tunnel(1).with_raw(false)] {
        let from = b.card.log.len();
        set(b, InUse, 0, 1, without);
        assert!(b.card.log[from..].iter().all(|e| !matches!(e, Event::Control { write: Some(_), .. })), "what is refused changes nothing");
    }
    set(b, Ok, 0, 1, tunnel(1).with_vni(77));
    for f in [2, 3] {
        set(b, Ok, 0, f, tunnel(9));
        set(b, Ok, 0, f, tunnel(9).with_raw(false));
        set(b, Ok, 0, f, TunnelCtx::default());
    }
    // None; another queue pair goes; the queue pair goes; and that its number is another's does not matter.
    set_port(b, Ok, 0);
    assert_eq!(lines(b), [None; 4]);
    set_port(b, Ok, PORT_RAW | raw(1));
    b.expect(Ok, 1, DestroyQp, own(1).qp, &[]);
    b.expect(Ok, 0, DestroyQp, own(0).qp, &[]);
    assert_eq!(lines(b)[1], Some(raw(1)));
    let from = b.card.log.len();
    b.expect(Ok, 1, DestroyQp, raw(1), &[]);
    assert_eq!(lines(b), [None; 4]);
    let at = |what: &dyn Fn(&Event) -> bool| b.card.log[from..].iter().position(what).expect("it is there");
    assert!(at(&|e| matches!(e, Event::Control { space: RAW, line: 1, write: Some(0), .. })) < at(&|e| *e == Event::Barrier), "nothing more comes to it while it goes");
    // Without one the tunnel may change, and without leave there is none.
    set(b, Ok, 0, 1, tunnel(1).with_raw(false));
    create(b, Denied, 1);
    set(b, Ok, 0, 1, tunnel(1));
    create(b, Ok, 1);
    set_port(b, Ok, PORT_RAW | raw(1));
    // With the function goes its queue pair, but not the leave; with the physical one nothing of it.
    reset(b, 0);
    assert_eq!(lines(b)[1], Some(raw(1)));
    set(b, InUse, 0, 1, TunnelCtx::default());
    reset(b, 1);
    assert_eq!(lines(b), [None; 4]);
    make(b, 1, 0);
    create(b, Ok, 1);
    reset(b, 1);
    (1..4).for_each(|f| reset(b, f));
    // The physical function is believed.
    set(b, Ok, 0, 0, tunnel(5));
    make(b, 0, RAW_TYPE);
    b.expect(Ok, 0, SetPort, 0, &[PORT_RAW | own(0).qp]);
    assert_eq!((lines(b), b.card.raw_qpn), ([None; 4], PORT_RAW | own(0).qp));
    set(b, Ok, 0, 0, TunnelCtx::default());
    set(b, Ok, 0, 1, TunnelCtx::default());
    (0..4).for_each(|f| reset(b, f));
}
