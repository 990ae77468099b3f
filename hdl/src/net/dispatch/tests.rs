use super::Dispatch;
use crate::msg::{CcEvent, RxAnswer, RxDesc, RxRequest};
use crate::tb::{Fields, Tb};

/// The fields of a descriptor that a consumer gets.
fn part(of: &Fields, words: &[u32], for_whom: &Fields) -> Vec<u32> {
    let fields: Vec<_> = for_whom.names().map(|name| (name, of.get(words, name))).collect();
    for_whom.pack(&fields)
}

#[test]
fn every_descriptor_goes_its_way_in_order() {
    for (seed, stalls) in [(1, [0, 0, 0, 0]), (2, [40, 70, 30, 60]), (3, [0, 0, 80, 10]), (4, [90, 0, 0, 0])] {
        let mut tb = Tb::with_seed("dispatch", Dispatch::default(), seed);
        let (s, s_raw) = (tb.source("s", stalls[0]), tb.source("s_raw", stalls[1]));
        let (resp, req) = (tb.sink("m_resp", stalls[2]), tb.sink("m_req", stalls[3]));
        let (layout, request, answer) = (Fields::of::<RxDesc>(), Fields::of::<RxRequest>(), Fields::of::<RxAnswer>());
        let (mut to_resp, mut to_req, mut raws) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..600u32 {
            let mut words = tb.rng().words(layout.width());
            layout.set(&mut words, "opcode", u128::from(n % 256));
            let raw = n >= 512 || tb.rng().percent(20);
            layout.set(&mut words, "raw", raw.into());
            let answers = !raw && [0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12].contains(&(n % 256));
            if raw {
                raws.push(part(&layout, &words, &request));
                s_raw.push(words);
            } else {
                if answers {
                    to_req.push(part(&layout, &words, &answer));
                } else {
                    to_resp.push(part(&layout, &words, &request));
                }
                s.push(words);
            }
        }
        let start = tb.cycles();
        tb.run_until(20_000, |_| resp.len() == to_resp.len() + raws.len() && req.len() == to_req.len());
        assert!(seed > 1 || tb.cycles() - start <= 605, "not one per cycle");
        tb.run(10);
        let (raw, requests): (Vec<_>, Vec<_>) = std::iter::from_fn(|| resp.pop()).partition(|words| request.get(words, "raw") == 1);
        assert_eq!(requests, to_resp);
        assert_eq!(raw, raws);
        assert_eq!(std::iter::from_fn(|| req.pop()).collect::<Vec<_>>(), to_req);
    }
}

/// A descriptor is shown in the cycle after it was offered.
#[test]
fn one_cycle() {
    let mut tb = Tb::new("dispatch", Dispatch::default());
    let (s, s_raw, resp, req) = (tb.source("s", 0), tb.source("s_raw", 0), tb.sink("m_resp", 0), tb.sink("m_req", 0));
    let layout = Fields::of::<RxDesc>();
    for (opcode, [first, second]) in [(0x0a, [1, 0]), (0x11, [1, 1])] {
        s.push(layout.pack(&[("opcode", opcode)]));
        tb.run(2);
        assert_eq!([resp.len(), req.len()], [first, second]);
    }
    s_raw.push(layout.pack(&[("raw", 1)]));
    tb.run(2);
    assert_eq!(resp.len(), 1);
    tb.run(1);
    assert_eq!(resp.len(), 2);
}

/// While packets come without pause raw frames get every second cycle, and the packets the others.
#[test]
fn neither_starves() {
    const EACH: usize = 400;
    let mut tb = Tb::new("dispatch", Dispatch::default());
    let (s, s_raw, resp, _req) = (tb.source("s", 0), tb.source("s_raw", 0), tb.sink("m_resp", 0), tb.sink("m_req", 0));
    let layout = Fields::of::<RxDesc>();
    for _ in 0..EACH {
        s.push(layout.pack(&[("opcode", 0x0a)]));
        s_raw.push(layout.pack(&[("raw", 1)]));
    }
    tb.run_until(2_000, |_| resp.len() == 2 * EACH);
    let order: Vec<_> = std::iter::from_fn(|| resp.pop()).map(|words| Fields::of::<RxRequest>().get(&words, "raw")).collect();
    assert!(order[4..].chunks(2).take(EACH - 4).all(|pair| pair[0] != pair[1]), "{order:?}");
    assert!(tb.cycles() <= 2 * EACH as u64 + 10, "{} cycles", tb.cycles());
}

/// Congestion control hears of each frame with CE and of each CNP, once, and of nothing else.
#[test]
fn congestion_is_noticed() {
    let mut tb = Tb::new("dispatch", Dispatch::default());
    let (s, s_raw) = (tb.source("s", 30), tb.source("s_raw", 30));
    let (_resp, _req) = (tb.sink("m_resp", 20), tb.sink("m_req", 20));
    let (layout, event) = (Fields::of::<RxDesc>(), Fields::of::<CcEvent>());
    let (mut want, mut got) = (Vec::new(), Vec::new());
    for n in 0..600u32 {
        let mut words = tb.rng().words(layout.width());
        let (raw, ecn, opcode) = (tb.rng().percent(10), tb.rng().below(4), [0x81, 0x80, 0x01, 0x0a, 0x11][tb.rng().below(5) as usize]);
        for (name, value) in [("raw", u128::from(raw)), ("ecn", ecn.into()), ("opcode", opcode), ("dest_qpn", n.into())] {
            layout.set(&mut words, name, value);
        }
        if !raw && (ecn == 3 || opcode == 0x81) {
            want.push([n.into(), u128::from(opcode == 0x81), ecn.into(), layout.get(&words, "frame_len"), 77]);
        }
        if raw { &s_raw } else { &s }.push(words);
    }
    tb.set("now", 77);
    while s.pending() + s_raw.pending() > 0 || got.len() < want.len() {
        tb.cycle();
        if tb.get("notice_valid") == 1 {
            let words = tb.get_wide("notice");
            got.push(["context", "kind", "ecn", "bytes", "time"].map(|name| event.get(&words, name)));
        }
        assert!(tb.cycles() < 20_000, "{} of {}", got.len(), want.len());
    }
    assert_eq!(got, want);
}
