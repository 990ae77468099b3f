//! Whoever takes a key away waits for the atomics that may have found it, and for no others.
use super::tests::line_writes;
use super::MemoryKeys;
use crate::msg::{CtlReq, MrChange, MrWork, TxDone};
use crate::tb::{Fields, Tb};
use ferric_abi::context::MrCtx;

/// A region that may be registered.
fn region() -> MrCtx {
    MrCtx::default().with_fast(true).with_remote_atomic(true).with_start(0x10_0000).with_length(0x8000).with_table(0x7000)
}

/// The key unit, these lines written.
fn keys(lines: &[(u128, MrCtx)]) -> Tb {
    let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
    let ctl = Fields::of::<CtlReq>();
    let (requests, answers) = (tb.source("s_ctl", 0), tb.sink("m_ctl", 0));
    let writes: Vec<_> = lines.iter().flat_map(|(n, line)| line_writes(&ctl, *n, line)).collect();
    let count = writes.len();
    writes.into_iter().for_each(|words| requests.push(words));
    tb.run_until(9000, |_| answers.len() == count);
    tb
}

/// Atomics that go on and on, one queue of them; invalidations by work requests and by the peer, registrations, windows.
#[test]
fn a_key_goes_behind_the_atomics_that_found_it() {
    let bindable = region().with_fast(false).with_valid(true).with_bind(true).with_local_write(true);
    let mut tb = keys(&[(2, region()), (3, bindable), (4, MrCtx::default().with_window(true))]);
    let (work, worked, change) = (Fields::of::<MrWork>(), Fields::of::<TxDone>(), Fields::of::<MrChange>());
    let (s_work, m_worked) = (tb.source("s_work", 0), tb.sink("m_worked", 0));
    let (s_change, m_changed) = (tb.source("s_change", 0), tb.sink("m_changed", 0));
    // Atomics on their way: number and phase; the first `barred` numbers came before the request at hand was made.
    let mut way: Vec<(u64, u64)> = Vec::new();
    let (mut number, mut waited) = (0, 0);
    for round in 0..400u64 {
        let (window, remote) = (round % 4 == 3, round % 3 == 1);
        // A key is made, then taken away; a window of type 1 goes when it is bound to nothing.
        for takes in [false, true] {
            let order = work.pack(&[
                ("register", (!window && !takes).into()),
                ("bind", window.into()),
                ("key", if window { 4 << 8 } else { 2 << 8 }),
                ("access", 9),
                ("start", 0x10_0000),
                ("length", if window && takes { 0 } else { 0x1000 }),
                ("table", if window { 3 << 8 } else { 0x9000 }),
            ]);
            let peer = remote && takes && !window;
            if peer {
                s_change.push(change.pack(&[("key", 2 << 8)]))
            } else {
                s_work.push(order)
            }
            let barred = number;
            let start = tb.cycles();
            loop {
                // A third of the time nothing but new ones: those need not end.
                let old = way.iter().position(|(n, _)| *n < barred);
                let ends = tb.rng().percent(10) && !way.is_empty();
                let ended = ends.then(|| old.filter(|_| tb.cycles() - start > 40).or_else(|| way.iter().position(|(n, _)| *n >= barred))).flatten();
                tb.set("over", ended.is_some().into());
                if let Some(n) = ended {
                    tb.set("over_phase", way.remove(n).1);
                }
                let begun = way.len() < 40 && tb.rng().percent(10);
                tb.set("begun", begun.into());
                tb.begin();
                if begun {
                    way.push((number, tb.get("phase")));
                    number += 1;
                }
                tb.end();
                let answer = if peer { m_changed.pop() } else { m_worked.pop() };
                if let Some(words) = answer {
                    assert!(peer || worked.get(&words, "status") == 0xfe, "refused");
                    let late = way.iter().filter(|(n, _)| *n < barred).count();
                    if takes {
                        assert_eq!(late, 0, "round {round}: answered before {late} atomics, seed {}", tb.seed());
                    }
                    // A registration makes a key and need not wait.
                    assert!(takes || window || tb.cycles() - start < 30);
                    break;
                }
                waited += 1;
                assert!(tb.cycles() - start < 20_000, "round {round}: no answer, seed {}", tb.seed());
            }
            tb.set("over", 0);
            tb.set("begun", 0);
        }
    }
    assert!(waited > 400 * 40 && number > 1000, "{waited} cycles, {number} atomics");
}

/// One atomic alone, begun in each of the cycles around that in which the phase turns: it is waited for if it began before, and else not.
#[test]
fn an_atomic_of_the_last_cycle_is_waited_for() {
    let mut tb = keys(&[(2, region())]);
    let (work, worked) = (Fields::of::<MrWork>(), Fields::of::<TxDone>());
    let (s_work, m_worked) = (tb.source("s_work", 0), tb.sink("m_worked", 0));
    let order = |register: bool| work.pack(&[("register", register.into()), ("key", 2 << 8), ("access", 9), ("start", 0x10_0000), ("length", 0x1000), ("table", 0x9000)]);
    let (mut before_turn, mut after_turn) = (0, 0);
    // Each twice, for both phases.
    for wait in (0..30).flat_map(|wait| [wait, wait]) {
        s_work.push(order(true));
        tb.run_until(1000, |_| m_worked.len() == 1);
        assert_eq!(worked.get(&m_worked.pop().expect("just seen"), "status"), 0xfe, "refused");
        let phase = tb.get("phase");
        s_work.push(order(false));
        (0..wait).for_each(|_| tb.cycle());
        tb.set("begun", 1);
        tb.begin();
        let begun_in = tb.get("phase");
        tb.end();
        tb.set("begun", 0);
        (0..60).for_each(|_| tb.cycle());
        assert_eq!(m_worked.is_empty(), begun_in == phase, "{wait} cycles behind the request, seed {}", tb.seed());
        *if begun_in == phase { &mut before_turn } else { &mut after_turn } += 1;
        tb.set("over", 1);
        tb.set("over_phase", begun_in);
        tb.cycle();
        tb.set("over", 0);
        tb.run_until(100, |_| m_worked.len() == 1);
        m_worked.pop();
    }
    assert!(before_turn > 2 && after_turn > 2, "{before_turn} before the turn, {after_turn} behind it");
}
