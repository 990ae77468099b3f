//! Random keys, random accesses on both ports, against the rule itself.
use super::{Key, KeyWrite, RamKeys};
use crate::msg::{MrChange, MrChanged, MrReq, MrResp};
use crate::tb::{Fields, Tb};
use std::collections::VecDeque;

#[derive(Clone, Copy, Default)]
struct Entry {
    valid: bool,
    variant: u8,
    rights: u8,
    pd: u32,
    start: u32,
    length: u32,
}

/// Status of an access.
fn judge(e: &Entry, key: u32, pd: u32, va: u64, chk: u32, access: u8) -> u128 {
    if !e.valid || e.variant != key as u8 || key >> 12 != 0 {
        1
    } else if e.pd != pd {
        2
    } else if access & !(e.rights << 1 | 1) != 0 {
        4
    } else if va < u64::from(e.start) || va + u64::from(chk) > u64::from(e.start) + u64::from(e.length) {
        3
    } else {
        0
    }
}

#[test]
fn every_access_is_judged() {
    for stall in [0, 40] {
        let mut tb = Tb::new("target_keys", RamKeys::<4>::default());
        let (req, resp) = (Fields::of::<MrReq>(), Fields::of::<MrResp>());
        let ports = [tb.source("s_req$0", stall), tb.source("s_req$1", stall)];
        let answers = [tb.sink("m_resp$0", stall), tb.sink("m_resp$1", stall)];
        let mut table = [Entry::default(); 16];
        let mut seen = [0; 5];
        for _ in 0..60 {
            // A change, while nothing is asked.
            let n = tb.rng().below(16) as usize;
            let r = tb.rng().next_u64();
            let e = Entry { valid: r & 7 != 0, variant: (r >> 8) as u8 & 3, rights: (r >> 16) as u8 & 15, pd: (r >> 24) as u32 & 1, start: (r >> 32) as u32 & 0xff, length: (r >> 40) as u32 & 0xffff };
            table[n] = e;
            let key = Fields::of::<Key>().pack(&[
                ("valid", e.valid.into()),
                ("variant", e.variant.into()),
                ("rights", e.rights.into()),
                ("pd", e.pd.into()),
                ("start", e.start.into()),
                ("length", e.length.into()),
            ]);
            let mut write = Fields::new(&[("index", 8), ("key", KEY_BITS)]).pack(&[("index", n as u128)]);
            Fields::new(&[("index", 8), ("key", KEY_BITS)]).set_words(&mut write, "key", &key);
            tb.set_wide("write", write);
            tb.set("write_en", 1);
            tb.cycle();
            tb.set("write_en", 0);
            let mut wanted = [VecDeque::new(), VecDeque::new()];
            for _ in 0..40 {
                let port = tb.rng().below(2) as usize;
                let r = tb.rng().next_u64();
                let key = (r as u32 & 0xf) << 8 | (r >> 8) as u32 & 3 | if r >> 60 == 0 { 0x1000 } else { 0 };
                let (pd, access) = ((r >> 16) as u32 & 1, 1 << (r >> 20 & 7).min(4));
                let e = table[key as usize >> 8 & 15];
                let va = match r >> 56 & 7 {
                    0 => u64::from(e.start).wrapping_sub(1) & 0xffff_ffff,
                    1 => u64::from(e.start) + u64::from(e.length),
                    2 => 1 << 32 | u64::from(e.start),
                    _ => u64::from(e.start) + (r >> 24 & 0xfff),
                };
                let chk = (u64::from(e.start) + u64::from(e.length)).saturating_sub(va).wrapping_add((r >> 40 & 3).wrapping_sub(2)) as u32;
                let chk = if r >> 50 & 1 == 0 { chk } else { (r >> 30) as u32 & 0x1fff };
                let status = judge(&e, key, pd, va, chk, access);
                seen[status as usize] += 1;
                wanted[port].push_back((status, va));
                ports[port].push(req.pack(&[("key", key.into()), ("pd", pd.into()), ("va", va.into()), ("chk_len", chk.into()), ("access", access.into())]));
            }
            tb.run_until(5_000, |_| (0..2).all(|n| answers[n].len() == wanted[n].len()));
            for (answers, wanted) in answers.iter().zip(wanted) {
                for (status, va) in wanted {
                    let got = answers.pop().unwrap();
                    assert_eq!(resp.get(&got, "status"), status);
                    assert!(status != 0 || resp.get(&got, "iova") == u128::from(va));
                }
            }
        }
        assert!(seen.iter().all(|n| *n > 5), "{seen:?}");
    }
}

const KEY_BITS: u32 = 1 + 8 + 4 + 24 + 32 + 32;

#[test]
fn the_write_has_the_layout_assumed_here() {
    assert_eq!(Fields::of::<Key>().width(), KEY_BITS);
    assert_eq!(Fields::of::<KeyWrite>().width(), 8 + KEY_BITS);
}

/// No key may be invalidated by a peer.
#[test]
fn invalidations_are_refused() {
    let mut tb = Tb::new("target_keys", RamKeys::<4>::default());
    let (ask, told) = (tb.source("s_change", 30), tb.sink("m_changed", 30));
    for _ in 0..10 {
        ask.push(Fields::of::<MrChange>().pack(&[("key", 0x100)]));
    }
    tb.run_until(300, |_| told.len() == 10);
    assert!((0..10).all(|_| Fields::of::<MrChanged>().get(&told.pop().unwrap(), "status") == 4));
}
