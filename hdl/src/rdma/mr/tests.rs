use super::model::{invalidate, page_bits, register, translate, Access, Asker};
use super::MemoryKeys;
use crate::msg::{CtlReq, MrChange, MrChanged, MrReq, MrResp, MrWork, RdCmd, RdRow, TxDone};
use crate::tb::{Fields, Tb};
use ferric_abi::context::MrCtx;
use ferric_abi::host::Pte;
use std::collections::{BTreeMap, HashMap, VecDeque};

const REGIONS: usize = 16;
/// Page-table lines that accesses to large regions go to: neighbours, and lines that share a place of the cache with another
/// region's or with each other.
const LINES: [u64; 12] = [0, 1, 2, 3, 4, 5, 32, 33, 64, 1024, 1025, 2048];
/// Bytes mapped by one line.
fn line_bytes(mr: &MrCtx) -> u64 {
    8 << page_bits(mr.page_size())
}

/// Of a region's page table, as far as it has pages.
fn table_bytes(mr: &MrCtx) -> u64 {
    (mr.start() % (line_bytes(mr) / 8) + mr.length()).div_ceil(line_bytes(mr)) * 64
}

/// A line of entries, some of them invalid; `None`: its read fails.
fn table_line(tb: &mut Tb) -> Option<[u8; 64]> {
    let mut bytes = [0u8; 64];
    for e in bytes.chunks_exact_mut(8) {
        let pte = Pte::default().with_valid(tb.rng().below(16) != 0).with_page(tb.rng().next_u64() & 0xff_ffff_ffff);
        e.copy_from_slice(&pte.0);
    }
    (tb.rng().below(12) != 0).then_some(bytes)
}

/// Random regions, random accesses on both ports, a host that answers page-table reads late; every answer against the model.
/// Now and then all page tables change, and the cache is told.
#[test]
fn matches_the_model() {
    let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
    let (req, resp, cmd, row, ctl) = (Fields::of::<MrReq>(), Fields::of::<MrResp>(), Fields::of::<RdCmd>(), Fields::of::<RdRow>(), Fields::of::<CtlReq>());
    let ports = [tb.source("s_req$0", 20), tb.source("s_req$1", 20)];
    let answers = [tb.sink("m_resp$0", 30), tb.sink("m_resp$1", 30)];
    let (rd, rows) = (tb.sink("m_rd", 20), tb.source("s_rd", 20));
    let (ctl_req, ctl_resp) = (tb.source("s_ctl", 10), tb.sink("m_ctl", 10));

    let mut regions = vec![MrCtx::default(); REGIONS];
    let mut tables: HashMap<u64, [u8; 64]> = HashMap::new();
    for (i, mr) in regions.iter_mut().enumerate().skip(1) {
        // Large ones reach beyond the cache, to 16 TiB with the largest pages; some direct ones wrap around the end of the address space.
        let pages = if i % 5 == 1 { 8 * 2049 } else { 1 + tb.rng().below(40) };
        let page_size = i as u8 / 5 % 3;
        let page = 1 << page_bits(page_size);
        // Two lines in front of a border of 4 GiB: the two halves of an address are added apart.
        let table = ((7 + i as u64) << 32) - 128;
        let start = 0x55_0000_0000_0000 + ((i as u64) << 30) + tb.rng().below(page);
        let rights = tb.rng().next_u32();
        *mr = MrCtx::default()
            .with_valid(i != 7)
            .with_local_write(rights & 1 != 0)
            .with_remote_write(rights & 2 != 0)
            .with_remote_read(rights & 4 != 0)
            .with_remote_atomic(rights & 8 != 0)
            .with_remote_flush(rights & 16 != 0)
            .with_direct(i % 5 == 0)
            .with_page_size(page_size)
            .with_variant(tb.rng().next_u32() as u8)
            .with_function((rights >> 8 & 1) as u16)
            .with_pd(rights >> 9 & 1)
            .with_start(start)
            .with_length(if i == 10 { u64::MAX } else { (pages * page).saturating_sub(tb.rng().below(page)).max(1) })
            .with_table(table);
        for line in LINES {
            if let Some(bytes) = table_line(&mut tb) {
                tables.insert(table + line * 64, bytes);
            }
        }
        for (word, bytes) in mr.0.chunks_exact(4).enumerate() {
            let data = u32::from_le_bytes(bytes.try_into().unwrap());
            ctl_req.push(ctl.pack(&[("line", i as u128), ("word", word as u128), ("write", 1), ("data", data as u128)]));
        }
    }
    let writes = (REGIONS - 1) * 12;
    tb.run_until(100_000, |_| ctl_resp.len() == writes);

    let mut expected: [VecDeque<Result<u64, u8>>; 2] = Default::default();
    let mut due: VecDeque<(u64, Vec<u32>)> = VecDeque::new();
    let (mut done, mut seen) = (0, [0u32; 8]);
    let (mut sent, mut changes) = (0, 1);
    while done < 3000 {
        // Answers to what was asked before the tables change are not at issue.
        let drain = sent >= changes * 600;
        if sent < 3000 && !drain && tb.rng().percent(60) {
            let port = tb.rng().below(2) as usize;
            let i = tb.rng().below(REGIONS as u64 + 1) as usize;
            let mr = regions.get(i).copied().unwrap_or_default();
            let wild = tb.rng().below(8);
            let mut off = tb.rng().below(mr.length().saturating_add(4));
            let line = line_bytes(&mr);
            if off >= 6 * line && mr.length() < u64::MAX {
                off = LINES[tb.rng().below(12) as usize] * line + tb.rng().below(line);
            }
            if mr.length() == u64::MAX && tb.rng().percent(50) {
                off %= 20_000;
            }
            // Up to the last byte, one less and one more.
            let edge = mr.length().wrapping_sub(off).wrapping_add(tb.rng().below(3)).wrapping_sub(1);
            let a = Access {
                key: (i as u32) << 8 | (mr.variant() ^ (wild == 1) as u8) as u32,
                pd: mr.pd() ^ (wild == 2) as u32,
                function: mr.function() ^ (wild == 3) as u16,
                qpn: 0,
                va: mr.start().wrapping_add(off).wrapping_sub((wild == 4) as u64 * 9000),
                chk_len: match wild {
                    5 => tb.rng().next_u32(),
                    7 if edge < 1 << 32 => edge as u32,
                    _ => tb.rng().below(2000) as u32,
                },
                access: match wild {
                    6 => 1 | tb.rng().next_u32() as u8 & 63,
                    // A FLUSH, of so many bytes or of the whole region.
                    0 => 32,
                    _ => 1,
                },
                whole: false,
            };
            let a = if a.access & 32 != 0 && tb.rng().percent(50) { Access { whole: true, chk_len: 0, va: tb.rng().next_u64(), ..a } } else { a };
            expected[port].push_back(translate(&regions, &a, |at| tables.get(&(at & !63)).map(|l| Pte(l[(at & 63) as usize..][..8].try_into().unwrap()))));
            ports[port].push(req.pack(&[
                ("key", a.key as u128),
                ("pd", a.pd as u128),
                ("function", a.function as u128),
                ("va", a.va as u128),
                ("chk_len", a.chk_len as u128),
                ("access", a.access as u128),
                ("whole", a.whole as u128),
            ]));
            sent += 1;
        }
        tb.cycle();
        let now = tb.cycles();
        while let Some(c) = rd.pop() {
            let late = tb.rng().below(300);
            let at = cmd.get(&c, "iova") as u64;
            let has = |mr: &MrCtx| !mr.direct() && (mr.table()..mr.table() + table_bytes(mr)).contains(&at);
            assert!(regions.iter().any(has), "{at:#x} is no region's, seed {}", tb.seed());
            let mut answer = row.pack(&[("tag", cmd.get(&c, "tag")), ("last", 1), ("err", !tables.contains_key(&at) as u128)]);
            if let Some(bytes) = tables.get(&at) {
                let words: Vec<u32> = bytes.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
                row.set_words(&mut answer, "data", &words);
            }
            due.push_back((now + late, answer));
        }
        // In the order of the reads, as a port of small reads has it.
        while due.front().is_some_and(|d| d.0 <= now) {
            rows.push(due.pop_front().expect("just seen").1);
        }
        for port in 0..2 {
            while let Some(r) = answers[port].pop() {
                let want = expected[port].pop_front().expect("an answer nobody asked for");
                let got = match resp.get(&r, "status") {
                    0 => Ok(resp.get(&r, "iova") as u64),
                    s => Err(s as u8),
                };
                assert_eq!(got, want, "answer {done} on port {port}");
                seen[got.map_or_else(|e| e as usize, |_| 0)] += 1;
                done += 1;
            }
        }
        if sent == done && sent >= changes * 600 {
            changes += 1;
            for line in tables.values_mut() {
                *line = table_line(&mut tb).unwrap_or(*line);
            }
            tb.set("invalidate", 1);
            tb.cycle();
            tb.set("invalidate", 0);
        } else if tb.rng().below(500) == 0 {
            tb.set("invalidate", 1);
            tb.cycle();
            tb.set("invalidate", 0);
        }
        assert!(tb.cycles() < 2_000_000, "stuck after {done} answers");
    }
    for (status, n) in seen.iter().enumerate().take(7) {
        assert!(*n > 0, "status {status} never seen: {seen:?}");
    }
}

/// A request in cycle 0, its answer shown in cycle 4, also where the page table is looked up and its line is there; one a cycle.
#[test]
fn an_answer_takes_four_cycles() {
    let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
    let (req, resp, row, ctl) = (Fields::of::<MrReq>(), Fields::of::<MrResp>(), Fields::of::<RdRow>(), Fields::of::<CtlReq>());
    let (s, m) = (tb.source("s_req$1", 0), tb.sink("m_resp$1", 0));
    let (rd, rows) = (tb.sink("m_rd", 0), tb.source("s_rd", 0));
    let (ctl_req, ctl_resp) = (tb.source("s_ctl", 0), tb.sink("m_ctl", 0));
    let mr = MrCtx::default().with_valid(true).with_remote_write(true).with_start(0x10_0000).with_length(0x8000).with_table(0x7000);
    for (word, bytes) in mr.0.chunks_exact(4).enumerate() {
        let data = u32::from_le_bytes(bytes.try_into().unwrap());
        ctl_req.push(ctl.pack(&[("line", 2), ("word", word as u128), ("write", 1), ("data", data.into())]));
    }
    tb.run_until(5000, |_| ctl_resp.len() == mr.0.len() / 4);
    tb.run(1100);
    let ask = |page: u128| req.pack(&[("key", 2 << 8), ("va", 0x10_0000 + page * 4096 + 5), ("chk_len", 64), ("access", 4)]);
    s.push(ask(0));
    tb.run_until(50, |_| !rd.is_empty());
    let entries: Vec<u32> = (0..8).flat_map(|n| [0xa000_0001 + (n << 12), 0]).collect();
    let mut answer = row.pack(&[("last", 1)]);
    row.set_words(&mut answer, "data", &entries);
    rows.push(answer);
    tb.run_until(50, |_| m.taken() == 1);
    tb.run(10);
    (1..4).for_each(|page| s.push(ask(page)));
    tb.run(4);
    assert_eq!((s.taken(), m.taken()), (4, 1));
    for n in 2..=4 {
        tb.run(1);
        assert_eq!(m.taken(), n, "one a cycle");
    }
    m.pop();
    for page in 1..4 {
        let got = m.pop().expect("counted");
        assert_eq!((resp.get(&got, "status"), resp.get(&got, "iova")), (0, 0xa000_0005 + (page << 12)));
    }
}

/// Writes a region's line over the control bus.
pub(super) fn line_writes(ctl: &Fields, index: u128, mr: &MrCtx) -> Vec<Vec<u32>> {
    let words = mr.0.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
    words.enumerate().map(|(word, data)| ctl.pack(&[("line", index), ("word", word as u128), ("write", 1), ("data", data.into())])).collect()
}

/// Random invalidations among random accesses, with the control bus writing lines at the same time: a change that has been answered is what
/// every later request sees, and a refused one changes nothing.
#[test]
fn what_is_invalidated_is_refused_from_then_on() {
    let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
    let (req, resp, ctl) = (Fields::of::<MrReq>(), Fields::of::<MrResp>(), Fields::of::<CtlReq>());
    let (change, changed) = (Fields::of::<MrChange>(), Fields::of::<MrChanged>());
    let (ports, answers) = ([tb.source("s_req$0", 20), tb.source("s_req$1", 20)], [tb.sink("m_resp$0", 20), tb.sink("m_resp$1", 20)]);
    let (rd, _rows) = (tb.sink("m_rd", 20), tb.source("s_rd", 20));
    let (ctl_req, ctl_resp) = (tb.source("s_ctl", 20), tb.sink("m_ctl", 20));
    let (s_change, m_changed) = (tb.source("s_change", 20), tb.sink("m_changed", 20));
    let mut regions = vec![MrCtx::default(); REGIONS];
    let (mut seen, mut lines) = ([0u32; 5], 0);
    for round in 0..600 {
        // Regions come anew now and then, another one while a change is under way.
        let i = tb.rng().range(1, REGIONS as u64 - 2) as usize;
        let rights = tb.rng().next_u32();
        let mr = MrCtx::default()
            .with_valid(rights & 15 != 0)
            .with_fast(rights >> 4 & 7 != 0)
            .with_remote_write(rights >> 7 & 1 != 0)
            .with_remote_read(rights >> 8 & 3 != 0)
            .with_variant((rights >> 10) as u8)
            .with_function((rights >> 18 & 1) as u16)
            .with_pd(7)
            .with_direct(true)
            .with_start(0x1000)
            .with_length(0x1000)
            .with_table(0x9000);
        regions[i] = mr;
        line_writes(&ctl, i as u128, &mr).into_iter().for_each(|w| ctl_req.push(w));
        lines += 12;
        tb.run_until(2000, |_| ctl_resp.len() == lines);
        let at = if tb.rng().percent(95) { i as u32 } else { REGIONS as u32 + tb.rng().below(1 << 20) as u32 };
        let wild = tb.rng().below(12);
        let key = at << 8 | (mr.variant() ^ u8::from(wild == 1)) as u32;
        let (pd, function) = (7 ^ u32::from(wild == 2), mr.function() ^ u16::from(wild == 3));
        let want = invalidate(&mut regions, key, Asker { pd, function, qpn: 0 }, true);
        seen[want as usize] += 1;
        s_change.push(change.pack(&[("key", key.into()), ("pd", pd.into()), ("function", function.into())]));
        // The last region has no part in it; its line is read and written meanwhile.
        let other = MrCtx::default().with_table(round);
        line_writes(&ctl, REGIONS as u128 - 1, &other).into_iter().for_each(|w| ctl_req.push(w));
        lines += 12;
        tb.run_until(500, |_| !m_changed.is_empty());
        let got = m_changed.pop().expect("just seen");
        assert_eq!(changed.get(&got, "status"), u128::from(want), "round {round}, seed {}", tb.seed());
        // The very next request, on either port.
        let port = tb.rng().below(2) as usize;
        let access = Access { key: (i as u32) << 8 | mr.variant() as u32, pd: 7, function: mr.function(), qpn: 0, va: 0x1010, chk_len: 64, access: 1, whole: false };
        let want = translate(&regions, &access, |_| None);
        ports[port].push(req.pack(&[("key", access.key.into()), ("pd", 7), ("function", access.function.into()), ("va", 0x1010), ("chk_len", 64), ("access", 1)]));
        tb.run_until(500, |_| !answers[port].is_empty());
        let got = answers[port].pop().expect("just seen");
        let got = match resp.get(&got, "status") {
            0 => Ok(resp.get(&got, "iova") as u64),
            s => Err(s as u8),
        };
        assert_eq!(got, want, "round {round}, seed {}", tb.seed());
    }
    assert!(seen[0] > 50 && seen[1] > 5 && seen[2] > 5 && seen[4] > 5, "too tame: {seen:?}");
    assert!(rd.is_empty(), "nothing to fetch");
}

/// The translation stays in the cache, the key does not work.
#[test]
fn a_cached_translation_does_not_outlive_its_key() {
    let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
    let (req, resp, row, ctl) = (Fields::of::<MrReq>(), Fields::of::<MrResp>(), Fields::of::<RdRow>(), Fields::of::<CtlReq>());
    let change = Fields::of::<MrChange>();
    let (s, m) = (tb.source("s_req$1", 0), tb.sink("m_resp$1", 0));
    let (rd, rows) = (tb.sink("m_rd", 0), tb.source("s_rd", 0));
    let (ctl_req, ctl_resp) = (tb.source("s_ctl", 0), tb.sink("m_ctl", 0));
    let (s_change, m_changed) = (tb.source("s_change", 0), tb.sink("m_changed", 0));
    let mr = MrCtx::default().with_valid(true).with_fast(true).with_remote_write(true).with_start(0x10_0000).with_length(0x8000).with_table(0x7000);
    line_writes(&ctl, 2, &mr).into_iter().for_each(|w| ctl_req.push(w));
    tb.run_until(5000, |_| ctl_resp.len() == 12);
    tb.run(1100);
    let ask = req.pack(&[("key", 2 << 8), ("va", 0x10_0000), ("chk_len", 64), ("access", 4)]);
    s.push(ask.clone());
    tb.run_until(50, |_| !rd.is_empty());
    let mut answer = row.pack(&[("last", 1)]);
    row.set_words(&mut answer, "data", &[0xa000_0001, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    rows.push(answer);
    s.push(ask.clone());
    tb.run_until(50, |_| m.len() == 2);
    s_change.push(change.pack(&[("key", 2 << 8)]));
    tb.run_until(50, |_| m_changed.len() == 1);
    s.push(ask);
    tb.run_until(50, |_| m.len() == 3);
    let statuses: Vec<u128> = (0..3).map(|_| resp.get(&m.pop().expect("counted"), "status")).collect();
    assert_eq!((statuses, rd.len()), (vec![0, 0, 1], 1));
}

/// A count of registrations that wraps comes back to what translations in the cache are marked with.
#[test]
fn a_wrapped_count_empties_the_cache() {
    let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
    let (req, resp, cmd, row, ctl, work) = (Fields::of::<MrReq>(), Fields::of::<MrResp>(), Fields::of::<RdCmd>(), Fields::of::<RdRow>(), Fields::of::<CtlReq>(), Fields::of::<MrWork>());
    let (s, m) = (tb.source("s_req$1", 0), tb.sink("m_resp$1", 0));
    let (rd, rows) = (tb.sink("m_rd", 0), tb.source("s_rd", 0));
    let (ctl_req, ctl_resp) = (tb.source("s_ctl", 0), tb.sink("m_ctl", 0));
    let (s_work, m_worked) = (tb.source("s_work", 0), tb.sink("m_worked", 0));
    let mr = MrCtx::default().with_valid(true).with_fast(true).with_remote_write(true).with_start(0x10_0000).with_length(0x8000).with_table(0x7000);
    let mut got = Vec::new();
    for (life, page) in [(0u128, 0xa000u32), (255, 0xb000)] {
        let line = if life == 0 { mr } else { mr.with_valid(false).with_life(life as u8) };
        line_writes(&ctl, 2, &line).into_iter().for_each(|w| ctl_req.push(w));
        tb.run_until(5000, |_| ctl_resp.len() == 12);
        while ctl_resp.pop().is_some() {}
        if life != 0 {
            s_work.push(work.pack(&[("register", 1), ("key", 2 << 8), ("access", 2), ("start", 0x10_0000), ("length", 0x8000), ("table", 0x9000)]));
            tb.run_until(50, |_| m_worked.len() == 1);
        }
        s.push(req.pack(&[("key", 2 << 8), ("va", 0x10_0000), ("chk_len", 64), ("access", 4)]));
        tb.run_until(3000, |_| !rd.is_empty() || !m.is_empty());
        if let Some(c) = rd.pop() {
            let mut answer = row.pack(&[("tag", cmd.get(&c, "tag")), ("last", 1)]);
            row.set_words(&mut answer, "data", &[page | 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            rows.push(answer);
            tb.run_until(50, |_| !m.is_empty());
        }
        got.push(resp.get(&m.pop().expect("an answer"), "iova"));
    }
    assert_eq!(got, [0xa000, 0xb000]);
}

/// Local invalidations and registrations in any order, with the regions' translations in the cache: what is registered is translated by its
/// new page table, also when the count of registrations wraps; what is refused stays as it was.
#[test]
fn registrations_bring_their_own_pages() {
    let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
    let (req, resp, cmd, row, ctl) = (Fields::of::<MrReq>(), Fields::of::<MrResp>(), Fields::of::<RdCmd>(), Fields::of::<RdRow>(), Fields::of::<CtlReq>());
    let (work, worked) = (Fields::of::<MrWork>(), Fields::of::<TxDone>());
    let (port, answers) = (tb.source("s_req$1", 20), tb.sink("m_resp$1", 20));
    let (rd, rows) = (tb.sink("m_rd", 20), tb.source("s_rd", 20));
    let (ctl_req, ctl_resp) = (tb.source("s_ctl", 20), tb.sink("m_ctl", 20));
    let (s_work, m_worked) = (tb.source("s_work", 20), tb.sink("m_worked", 20));
    let mut regions = vec![MrCtx::default(); REGIONS];
    for (i, mr) in regions.iter_mut().enumerate().take(6).skip(1) {
        *mr = MrCtx::default().with_fast(i != 5).with_valid(i == 5).with_pd(7).with_start(1).with_length(1).with_life(if i < 3 { 250 } else { 0 });
        line_writes(&ctl, i as u128, mr).into_iter().for_each(|w| ctl_req.push(w));
    }
    tb.run_until(5000, |_| ctl_resp.len() == 60);
    // A page table's entries name pages by the table's own address.
    let entry = |table: u64, n: u64| table << 24 | n << 50 | n << 12 | 1;
    const START: u64 = 0x40_0000_0000;
    let mut seen = BTreeMap::<(bool, u8), u32>::new();
    for round in 0..900u64 {
        let i = tb.rng().range(1, 6) as u32;
        let (wild, registers) = (tb.rng().below(20), tb.rng().percent(60));
        let low = if tb.rng().percent(50) { regions[i as usize].variant() as u32 } else { tb.rng().below(3) as u32 };
        let (pd, key) = (7 ^ u32::from(wild == 0), i << 8 | low | u32::from(wild == 1) << 30);
        let size = if tb.rng().percent(60) { 0 } else { tb.rng().below(4) as u8 };
        let new = MrCtx::default()
            .with_remote_write(tb.rng().percent(80))
            .with_local_write(round % 2 == 0)
            .with_start(START + round % 5)
            .with_length((3 << page_bits(size)) + round)
            .with_page_size(size)
            .with_table(0x10_0000 + (tb.rng().below(64) << 6) + round % 64);
        let access = u128::from(new.local_write()) | u128::from(new.remote_write()) << 1;
        let by = Asker { pd, function: 0, qpn: 0 };
        let want = if registers { register(&mut regions, key, by, &new) } else { invalidate(&mut regions, key, by, false) };
        *seen.entry((registers, want)).or_default() += 1;
        s_work.push(work.pack(&[
            ("register", registers.into()),
            ("page_size", new.page_size().into()),
            ("key", key.into()),
            ("pd", pd.into()),
            ("qpn", round.into()),
            ("index", (round + 5).into()),
            ("access", access),
            ("start", new.start().into()),
            ("length", new.length().into()),
            ("table", new.table().into()),
        ]));
        tb.run_until(500, |_| !m_worked.is_empty());
        let got = m_worked.pop().expect("just seen");
        let status = if want == 0 { 0xfe } else { 6 };
        assert_eq!((worked.get(&got, "status"), worked.get(&got, "qpn"), worked.get(&got, "wqe_index")), (status, round.into(), (round + 5).into()), "round {round}, seed {}", tb.seed());
        let access = Access {
            key: regions[i as usize].variant() as u32 | i << 8,
            pd: 7,
            function: 0,
            qpn: 0,
            va: START + tb.rng().below(regions[i as usize].length() + 0x400),
            chk_len: 8,
            access: 4,
            whole: false,
        };
        let want = translate(&regions, &access, |at| Some(Pte(entry(at & !63, (at & 63) / 8).to_le_bytes())));
        port.push(req.pack(&[("key", access.key.into()), ("pd", 7), ("va", access.va.into()), ("chk_len", 8), ("access", 4)]));
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
        assert_eq!(got, want, "round {round}, seed {}", tb.seed());
    }
    for case in [(true, 0), (true, 1), (true, 2), (true, 4), (false, 0), (false, 1), (false, 2), (false, 4)] {
        assert!(seen.get(&case).is_some_and(|n| *n > 2), "{case:?} never seen: {seen:?}");
    }
}
