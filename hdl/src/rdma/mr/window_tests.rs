//! Memory windows: bound, used, freed, in any order, with the lines of the table as the model has them.
use super::model::{bind, count, invalidate, translate, Access, Asker};
use super::tests::line_writes;
use super::MemoryKeys;
use crate::msg::{CtlReq, CtlResp, MrChange, MrChanged, MrReq, MrResp, MrWork, RdCmd, RdRow, TxDone};
use crate::tb::{Fields, Tb};
use ferric_abi::context::MrCtx;
use ferric_abi::host::Pte;
use std::collections::BTreeMap;

const START: u64 = 0x40_0123;

/// Bytes of regions with pages of 4 KiB, 2 MiB and 1 GiB; the last has a tebibyte.
const LENGTH: [u64; 3] = [0x2_0000, 0x700_0000, 1 << 40];

/// Regions 1 to 7, windows 8 to 11: type 2, then type 1.
fn lines() -> Vec<MrCtx> {
    let mut lines = vec![MrCtx::default(); 16];
    let region = MrCtx::default().with_valid(true).with_bind(true).with_pd(7).with_local_write(true).with_variant(3).with_start(START).with_length(LENGTH[0]);
    lines[1] = region.with_table(0x10_0000);
    lines[2] = region.with_table(0x23_4567).with_direct(true);
    lines[3] = region.with_table(0x30_0000).with_local_write(false);
    lines[4] = region.with_table(0x40_0000).with_bind(false);
    lines[5] = region.with_table(0x50_0000).with_pd(8);
    lines[6] = region.with_table(0x60_0000).with_page_size(1).with_length(LENGTH[1]);
    lines[7] = region.with_table(0x70_0000).with_page_size(2).with_length(LENGTH[2]);
    for (n, line) in lines[8..12].iter_mut().enumerate() {
        *line = MrCtx::default().with_window(true).with_fast(n < 2).with_pd(7);
    }
    lines
}

#[test]
fn windows_are_what_the_model_says() {
    let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
    let (req, resp, cmd, row) = (Fields::of::<MrReq>(), Fields::of::<MrResp>(), Fields::of::<RdCmd>(), Fields::of::<RdRow>());
    let (ctl, told) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
    let (work, worked) = (Fields::of::<MrWork>(), Fields::of::<TxDone>());
    let (change, changed) = (Fields::of::<MrChange>(), Fields::of::<MrChanged>());
    let (port, answers) = (tb.source("s_req$1", 20), tb.sink("m_resp$1", 20));
    let (rd, rows) = (tb.sink("m_rd", 20), tb.source("s_rd", 20));
    let (ctl_req, ctl_resp) = (tb.source("s_ctl", 20), tb.sink("m_ctl", 20));
    let (s_work, m_worked) = (tb.source("s_work", 20), tb.sink("m_worked", 20));
    let (s_change, m_changed) = (tb.source("s_change", 20), tb.sink("m_changed", 20));
    let mut regions = lines();
    for (i, mr) in regions.iter().enumerate() {
        line_writes(&ctl, i as u128, mr).into_iter().for_each(|w| ctl_req.push(w));
    }
    tb.run_until(20_000, |_| ctl_resp.len() == 16 * 12);
    while ctl_resp.pop().is_some() {}
    let entry = |table: u64, n: u64| table << 24 | n << 50 | n << 12 | 1;
    let mut seen = BTreeMap::<(&str, u8), u32>::new();
    for round in 0..1200u64 {
        let i = tb.rng().range(8, 12) as u32;
        let wild = tb.rng().below(24);
        let by = Asker { pd: 7 ^ u32::from(wild == 0), function: 0, qpn: tb.rng().range(1, 3) as u32 };
        let present = regions[i as usize].variant() as u32;
        let low = if tb.rng().percent(70) { present } else { tb.rng().below(4) as u32 };
        let key = i << 8 | low | u32::from(wild == 1) << 30;
        match tb.rng().below(10) {
            0..=5 => {
                // Mostly of the regions that let it.
                let of = if tb.rng().percent(70) { [1, 2, 6, 7][tb.rng().below(4) as usize] } else { tb.rng().range(1, 9) as u32 };
                let bytes = regions[of as usize].length().max(1);
                let region = of << 8 | if wild == 2 { 4 } else { 3 } | u32::from(wild == 3) << 31;
                let off = tb.rng().below(bytes);
                let length = match wild {
                    4..=6 => 0,
                    7 => bytes - off,
                    8 => bytes + 1 - off,
                    9 => u64::MAX - tb.rng().below(0x1000),
                    _ => tb.rng().range(1, bytes - off + 1),
                };
                let start = if wild == 10 { START - 1 } else { START + off };
                let new = MrCtx::default().with_start(start).with_length(length).with_remote_write(tb.rng().percent(80)).with_remote_read(tb.rng().percent(50));
                let want = bind(&mut regions, key, region, by, &new);
                *seen.entry((if length == 0 { "unbind" } else { "bind" }, want)).or_default() += 1;
                let access = u128::from(new.remote_write()) << 1 | u128::from(new.remote_read()) << 2;
                s_work.push(work.pack(&[
                    ("bind", 1),
                    ("key", key.into()),
                    ("pd", by.pd.into()),
                    ("qpn", by.qpn.into()),
                    ("index", round.into()),
                    ("access", access),
                    ("start", start.into()),
                    ("length", length.into()),
                    ("table", region.into()),
                ]));
                tb.run_until(500, |_| !m_worked.is_empty());
                let got = worked.get(&m_worked.pop().expect("just seen"), "status");
                assert_eq!(got, if want == 0 { 0xfe } else { 6 }, "bind in round {round}, seed {}: {want}", tb.seed());
            }
            6 | 7 => {
                let want = invalidate(&mut regions, key, by, false);
                *seen.entry(("local", want)).or_default() += 1;
                s_work.push(work.pack(&[("key", key.into()), ("pd", by.pd.into()), ("qpn", by.qpn.into())]));
                tb.run_until(500, |_| !m_worked.is_empty());
                let got = worked.get(&m_worked.pop().expect("just seen"), "status");
                assert_eq!(got, if want == 0 { 0xfe } else { 6 }, "round {round}, seed {}", tb.seed());
            }
            8 => {
                let want = invalidate(&mut regions, key, by, true);
                *seen.entry(("remote", want)).or_default() += 1;
                s_change.push(change.pack(&[("key", key.into()), ("pd", by.pd.into()), ("qpn", by.qpn.into())]));
                tb.run_until(500, |_| !m_changed.is_empty());
                let got = changed.get(&m_changed.pop().expect("just seen"), "status");
                assert_eq!(got, want.into(), "round {round}, seed {}", tb.seed());
            }
            _ => {
                // Destroyed over the control bus, two of them in a row in half of the cases, and made anew.
                let mut gone = vec![i];
                if tb.rng().percent(50) {
                    gone.push(8 + (i - 8 + tb.rng().range(1, 3) as u32) % 4);
                }
                let bound = gone.iter().filter(|n| regions[**n as usize].valid()).count();
                *seen.entry(("destroyed", bound as u8)).or_default() += 1;
                for n in &gone {
                    let old = regions[*n as usize];
                    if old.valid() {
                        count(&mut regions, old.link(), -1);
                    }
                    ctl_req.push(ctl.pack(&[("line", u128::from(*n)), ("write", 1)]));
                }
                tb.run_until(500, |_| ctl_resp.len() == gone.len());
                while ctl_resp.pop().is_some() {}
                tb.run(40);
                for n in gone {
                    let line = lines()[n as usize].with_life(regions[n as usize].life());
                    regions[n as usize] = line;
                    line_writes(&ctl, n.into(), &line).into_iter().for_each(|w| ctl_req.push(w));
                    tb.run_until(5000, |_| ctl_resp.len() == 12);
                    while ctl_resp.pop().is_some() {}
                }
            }
        }
        // What the key is good for now.
        let mr = regions[i as usize];
        let a = Access {
            key: mr.variant() as u32 | i << 8,
            pd: 7,
            function: 0,
            qpn: tb.rng().range(1, 3) as u32,
            va: mr.start().wrapping_add(tb.rng().below(mr.length().clamp(1, LENGTH[2]) * 5 / 4 + 4)),
            chk_len: 8,
            access: [4u8, 4, 8, 1][tb.rng().below(4) as usize],
            whole: false,
        };
        let want = translate(&regions, &a, |at| Some(Pte(entry(at & !63, (at & 63) / 8).to_le_bytes())));
        *seen.entry(("access", want.err().unwrap_or(0))).or_default() += 1;
        port.push(req.pack(&[("key", a.key.into()), ("pd", 7), ("qpn", a.qpn.into()), ("va", a.va.into()), ("chk_len", 8), ("access", a.access.into())]));
        for _ in 0..3000 {
            tb.cycle();
            if let Some(c) = rd.pop() {
                let at = cmd.get(&c, "iova") as u64;
                let words: Vec<u32> = (0..8).flat_map(|n| [entry(at, n) as u32, (entry(at, n) >> 32) as u32]).collect();
                let mut answer = row.pack(&[("tag", cmd.get(&c, "tag")), ("last", 1)]);
                row.set_words(&mut answer, "data", &words);
                rows.push(answer);
            }
            if !answers.is_empty() {
                break;
            }
        }
        let got = answers.pop().expect("an answer");
        let got = match resp.get(&got, "status") {
            0 => Ok(resp.get(&got, "iova") as u64),
            s => Err(s as u8),
        };
        assert_eq!(got, want, "round {round}, seed {}: {a:?}", tb.seed());
    }
    // All lines word by word: counts of windows among them.
    tb.run(40);
    for (i, mr) in regions.iter().enumerate() {
        for (word, bytes) in mr.0.chunks_exact(4).enumerate() {
            ctl_req.push(ctl.pack(&[("line", i as u128), ("word", word as u128)]));
            tb.run_until(500, |_| !ctl_resp.is_empty());
            let got = told.get(&ctl_resp.pop().expect("just seen"), "data") as u32;
            assert_eq!(got, u32::from_le_bytes(bytes.try_into().expect("four")), "line {i} word {word}, seed {}", tb.seed());
        }
    }
    for case in [
        ("bind", 0),
        ("bind", 1),
        ("bind", 2),
        ("bind", 3),
        ("bind", 4),
        ("unbind", 0),
        ("unbind", 4),
        ("local", 0),
        ("local", 1),
        ("local", 2),
        ("local", 4),
        ("remote", 0),
        ("remote", 2),
        ("destroyed", 1),
        ("destroyed", 2),
        ("access", 0),
        ("access", 1),
        ("access", 2),
        ("access", 3),
        ("access", 4),
    ] {
        assert!(seen.get(&case).is_some_and(|n| *n > 2), "{case:?} too rare: {seen:?}");
    }
}

/// DestroyQp frees its windows one behind the other, over the control bus. Each is counted off its region, also while a change waits for atomics
/// (the control bus must not) or for its answer to be taken.
#[test]
fn windows_destroyed_while_a_change_waits_are_all_counted() {
    for atomics in [false, true] {
        let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
        let (ctl, told, work) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>(), Fields::of::<MrWork>());
        let (ctl_req, ctl_resp) = (tb.source("s_ctl", 0), tb.sink("m_ctl", 0));
        let s_work = tb.source("s_work", 0);
        let mut regions = lines();
        for window in 8..12 {
            // All of one region but the last.
            let region = if window == 11 { 2 } else { 1 };
            let by = Asker { pd: 7, function: 0, qpn: 1 };
            let new = MrCtx::default().with_start(START).with_length(64).with_remote_read(true);
            assert_eq!(bind(&mut regions, window << 8 | 5, region << 8 | 3, by, &new), 0);
        }
        for (i, mr) in regions.iter().enumerate() {
            line_writes(&ctl, i as u128, mr).into_iter().for_each(|w| ctl_req.push(w));
        }
        tb.run_until(20_000, |_| ctl_resp.len() == 16 * 12);
        while ctl_resp.pop().is_some() {}
        if atomics {
            tb.set("begun", 1);
            tb.set("over_phase", tb.get("phase"));
            tb.cycle();
            tb.set("begun", 0);
        }
        // The first window is freed by its queue pair, and nobody takes the answer.
        tb.set("m_worked$ready", 0);
        s_work.push(work.pack(&[("key", 8 << 8 | 5), ("pd", 7), ("qpn", 1)]));
        tb.run(60);
        assert_eq!(tb.get("m_worked$valid"), u64::from(!atomics));
        (9..12u32).for_each(|i| ctl_req.push(ctl.pack(&[("line", i.into()), ("write", 1)])));
        if atomics {
            tb.run_until(200, |_| ctl_resp.len() == 3);
            tb.set("over", 1);
            tb.cycle();
            tb.set("over", 0);
        }
        tb.run(100);
        assert_eq!(tb.get("m_worked$valid"), 1);
        tb.set("m_worked$ready", 1);
        tb.run_until(200, |_| ctl_resp.len() == 3);
        while ctl_resp.pop().is_some() {}
        tb.run(40);
        for i in [1, 2] {
            (0..12u128).for_each(|word| ctl_req.push(ctl.pack(&[("line", i as u128), ("word", word)])));
            tb.run_until(500, |_| ctl_resp.len() == 12);
            let row: Vec<u8> = (0..12).flat_map(|_| (told.get(&ctl_resp.pop().expect("twelve"), "data") as u32).to_le_bytes()).collect();
            assert_eq!(MrCtx(row.try_into().expect("48 bytes")).link(), 0, "windows left of region {i}, atomics {atomics}");
        }
    }
}
