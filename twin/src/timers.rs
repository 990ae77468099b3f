//! One timer per queue pair: retransmission, or the wait that an RNR NAK asks for.
use crate::host::Host;
use crate::Twin;
use std::cmp::Reverse;

impl Twin {
    /// Sets or stops the timer of `qpn`. `rnr` in the second place.
    pub(crate) fn set_deadline(&mut self, qpn: u32, deadline: Option<(u64, bool)>) {
        let r = &mut self.requesters[qpn as usize];
        r.deadline = deadline;
        // An entry that is too early looks again when it comes up.
        if let Some((at, _)) = deadline.filter(|(at, _)| r.listed.is_none_or(|listed| listed > *at)) {
            r.listed = Some(at);
            self.timers.push(Reverse((at, qpn)));
        }
    }

    /// Lets the timers fire whose time has come. Whether one did.
    pub(crate) fn run_timers(&mut self, host: &mut dyn Host) -> bool {
        let mut fired = false;
        while let Some(Reverse((at, qpn))) = self.timers.peek().copied().filter(|Reverse((at, _))| *at <= self.ticks) {
            self.timers.pop();
            let r = &mut self.requesters[qpn as usize];
            if r.listed == Some(at) {
                r.listed = None;
            }
            match r.deadline {
                Some((deadline, rnr)) if deadline <= self.ticks => {
                    r.deadline = None;
                    fired = true;
                    self.timed_out(host, qpn, rnr);
                }
                later => self.set_deadline(qpn, later),
            }
        }
        fired
    }

    /// The tick at which something may happen by itself, at the earliest.
    pub fn next_deadline(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }
}
