use super::Timers;
use crate::msg::{TimerCmd, TimerEvent};
use crate::tb::{Fields, Tb};

/// Cycles from the cycle in which `now` reaches the deadline to the event at the latest: a scan round, commands and
/// events in the way, stalls.
const SLACK: u64 = 200;

/// Every armed timer fires once, not before its deadline and soon after it; stopped and restarted ones do not.
#[test]
fn timers_fire_once_and_in_time() {
    for start in [0u32, u32::MAX - 300] {
        let mut tb = Tb::new("timers4", Timers::<4>::default());
        let (fc, fe) = (Fields::of::<TimerCmd>(), Fields::of::<TimerEvent>());
        let cmds = [tb.source("s_cmd$0", 50), tb.source("s_cmd$1", 50)];
        let events = tb.sink("m_event", 50);
        let mut now = start;
        tb.set("now", now.into());
        tb.run(40);
        // deadline and kind of each queue as the model sees it; a pending command blocks its queue for new ones.
        let mut armed: Vec<Option<(u32, u32, u64)>> = vec![None; 16];
        let (mut fired, mut stopped) = (0, 0);
        for step in 0..20_000u64 {
            if step % 16 == 0 {
                now = now.wrapping_add(1);
                tb.set("now", now.into());
            }
            let port = tb.rng().below(2) as usize;
            if tb.rng().percent(4) && cmds.iter().all(|cmd| cmd.pending() == 0) {
                let (qpn, begin, kind) = (tb.rng().below(16), tb.rng().percent(70), tb.rng().below(2) as u32);
                let ticks = tb.rng().below(60) as u32;
                // Not when it may be expiring: either outcome would be right.
                let near = matches!(armed[qpn as usize], Some((deadline, _, _)) if deadline.wrapping_sub(now) as i32 <= 2);
                if !near {
                    let before = cmds[port].taken();
                    cmds[port].push(fc.pack(&[("qpn", qpn.into()), ("start", begin.into()), ("kind", kind.into()), ("ticks", ticks.into())]));
                    let at = now;
                    tb.run_until(300, |_| cmds[port].taken() > before);
                    stopped += u32::from(armed[qpn as usize].is_some());
                    armed[qpn as usize] = begin.then(|| (at.wrapping_add(ticks), kind, 0));
                }
            }
            tb.cycle();
            while let Some(event) = events.pop() {
                let qpn = fe.get(&event, "qpn") as usize;
                let (deadline, kind, _) = armed[qpn].take().unwrap_or_else(|| panic!("queue {qpn} was not armed"));
                assert_eq!(fe.get(&event, "kind"), kind.into());
                assert!(now.wrapping_sub(deadline) as i32 >= 0, "queue {qpn}: {now} is before {deadline}");
                fired += 1;
            }
            for (qpn, entry) in armed.iter_mut().enumerate() {
                if let Some((deadline, _, late)) = entry {
                    *late += u64::from(now.wrapping_sub(*deadline) as i32 >= 0);
                    assert!(*late < SLACK, "queue {qpn} did not fire");
                }
            }
        }
        assert!(fired > 100 && stopped > 20, "{fired} fired, {stopped} stopped");
    }
}

/// A timer set anew, however close to its expiry, fires at its new deadline.
#[test]
fn a_restart_is_never_lost() {
    let mut tb = Tb::new("timers4", Timers::<4>::default());
    let fc = Fields::of::<TimerCmd>();
    let (cmd, events) = (tb.source("s_cmd$0", 0), tb.sink("m_event", 0));
    let mut now = 0;
    tb.set("now", now);
    tb.run(40);
    for delay in 0..80 {
        let start = |ticks: u128| cmd.push(fc.pack(&[("qpn", 3), ("start", 1), ("kind", 0), ("ticks", ticks)]));
        start(1);
        tb.run(20);
        now += 2;
        tb.set("now", now);
        tb.run(delay);
        start(50);
        tb.run(60);
        let early = events.len();
        assert!(early <= 1, "the first deadline");
        now += 60;
        tb.set("now", now);
        tb.run(60);
        assert_eq!(events.len(), early + 1, "the second deadline, {delay} cycles after the first");
        while events.pop().is_some() {}
    }
}

/// Commands get through while an event waits for its consumer: req_rx may be waiting for the command port itself.
#[test]
fn an_event_nobody_takes_does_not_block_commands() {
    let mut tb = Tb::new("timers4", Timers::<4>::default());
    let fc = Fields::of::<TimerCmd>();
    let cmds = [tb.source("s_cmd$0", 0), tb.source("s_cmd$1", 0)];
    tb.set("now", 5);
    for qpn in 0..16u128 {
        cmds[(qpn % 2) as usize].push(fc.pack(&[("qpn", qpn), ("start", 1), ("ticks", qpn / 4)]));
    }
    tb.run(100);
    tb.set("now", 100);
    tb.run(100);
    assert_eq!(tb.get("m_event$valid"), 1);
    for qpn in 0..16u128 {
        cmds[0].push(fc.pack(&[("qpn", qpn)]));
    }
    tb.run_until(200, |_| cmds.iter().all(|cmd| cmd.pending() == 0));
    let events = tb.sink("m_event", 0);
    tb.run(200);
    assert_eq!(events.taken(), 1, "the one that had fired; all others were stopped");
}
