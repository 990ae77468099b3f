//! What a run came to: the figures with their bars, and whether it has failed.
use super::rig::Outcome;
use super::scenarios::{points, Point};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Stable.
    pub name: String,
    /// None if it could not be had.
    pub value: Option<f64>,
    /// Of the value.
    pub unit: String,
    /// What it has to reach.
    pub bar: Option<f64>,
    /// It does; none without a bar.
    pub met: Option<bool>,
    /// What it is to reach later.
    pub aim: Option<f64>,
    /// It does already; none without an aim.
    pub aim_met: Option<bool>,
    /// Everything it depends on.
    pub conditions: String,
    /// What happened that must not: a figure with faults does not count.
    pub faults: Vec<String>,
    /// Why there is no value.
    pub error: Option<String>,
}

/// A figure that is made of no trace.
pub struct Extra {
    /// Stable.
    pub name: &'static str,
    /// Unit and conditions.
    pub unit: &'static str,
    /// What it is.
    pub what: &'static str,
    /// At most this.
    pub bar: Option<f64>,
}

/// All of these, in order.
pub const EXTRAS: &[Extra] = &[
    Extra {
        name: "post_poll_instructions",
        unit: "instructions",
        what: "host instructions to post an 8-byte WRITE and poll its completion through the driver, counted by callgrind",
        bar: Some(150.0),
    },
    Extra { name: "post_allocations", unit: "allocations", what: "calls of the allocator for the same", bar: Some(0.0) },
    Extra {
        name: "cosim_cycles_per_second",
        unit: "cycles per second",
        what: "two simulated cards and their drivers, one process, as busy as the machine was; verification included, set-up not",
        bar: None,
    },
    Extra { name: "cosim_messages_per_second", unit: "messages per second", what: "WRITEs of 64 B per second of the wall clock, 32 queue pairs, 128 outstanding on each", bar: None },
];

/// The point from which `cosim_messages_per_second` is taken.
const SPEED: &str = "write_64_32qp.w128.a64.l250";

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Commit of the gateware, `+` behind it if there was more than that.
    pub gateware: String,
    /// Commit of the tree.
    pub commit: String,
    /// What was called.
    pub command: String,
    /// In the order of the scenarios.
    pub figures: Vec<Figure>,
}

/// Names of all figures of a full run, in order.
pub fn names() -> Vec<String> {
    points().iter().map(Point::name).chain(EXTRAS.iter().map(|e| e.name.to_string())).collect()
}

/// The figure of a point.
pub fn of_point(point: &Point, outcome: &Outcome) -> Figure {
    let sound = outcome.faults.is_empty() && outcome.error.is_none();
    let judged = |limit: Option<f64>| limit.map(|l| sound && outcome.value.is_some_and(|v| point.reaches(v, l)));
    let lossy = if point.scenario.loss > 0 { format!("; {} frames sent again", outcome.repeats) } else { String::new() };
    Figure {
        name: point.name(),
        value: outcome.value,
        unit: point.scenario.measure.unit().into(),
        bar: point.bar(),
        met: judged(point.bar()),
        aim: point.aim(),
        aim_met: judged(point.aim()),
        conditions: point.conditions() + &lossy,
        faults: outcome.faults.clone(),
        error: outcome.error.clone(),
    }
}

/// The figure of an extra.
pub fn of_extra(extra: &Extra, value: Result<f64, String>) -> Figure {
    let met = extra.bar.map(|bar| value.as_ref().is_ok_and(|v| *v <= bar));
    Figure {
        name: extra.name.into(),
        value: value.as_ref().ok().copied(),
        unit: extra.unit.into(),
        bar: extra.bar,
        met,
        aim: None,
        aim_met: None,
        conditions: extra.what.into(),
        faults: Vec::new(),
        error: value.err(),
    }
}

/// Simulated cycles per wall second over all points, and messages of one of them.
pub fn speed(outcomes: &BTreeMap<String, Outcome>) -> [Result<f64, String>; 2] {
    let seconds: f64 = outcomes.values().map(|o| o.seconds).sum();
    let cycles: u64 = outcomes.values().map(|o| o.cycles).sum();
    let rate = |n: u64, seconds: f64| if seconds > 0.0 { Ok((n as f64 / seconds).round()) } else { Err("nothing was simulated".to_string()) };
    [rate(cycles, seconds), outcomes.get(SPEED).map_or(Err(format!("{SPEED} has not run")), |o| rate(o.messages, o.seconds))]
}

impl Report {
    /// What makes the run fail, a line each, naming the figure.
    pub fn failures(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for f in &self.figures {
            if let Some(e) = &f.error {
                lines.push(format!("NO FIGURE {}: {e}", f.name));
            }
            if !f.faults.is_empty() {
                lines.push(format!("FAULT {}: {}", f.name, f.faults.join(", ")));
            }
            if let (Some(value), Some(bar), Some(false)) = (f.value, f.bar, f.met) {
                lines.push(format!("MISSED {}: {} {}, bar {}", f.name, number(value), f.unit, number(bar)));
            }
        }
        lines
    }
}

/// As the tables print a value.
pub fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(change: impl Fn(&mut Outcome)) -> Report {
        let figures = points()
            .iter()
            .filter(|p| p.name() == "write_256k_mtu4096.w8.a64.l250")
            .map(|p| {
                let mut outcome = Outcome { value: Some(99.0), ..Default::default() };
                change(&mut outcome);
                of_point(p, &outcome)
            })
            .collect();
        Report { gateware: String::new(), commit: String::new(), command: String::new(), figures }
    }

    #[test]
    fn a_run_fails_for_missed_bars_faults_and_missing_values() {
        assert_eq!(report(|_| ()).failures(), Vec::<String>::new());
        assert_eq!(report(|o| o.value = Some(97.98)).failures(), ["MISSED write_256k_mtu4096.w8.a64.l250: 97.98 % of the beats, bar 98"]);
        // A fault takes the figure's bar with it, however good the value.
        let faulty = report(|o| o.faults.push("card 0 sent 3 of 9 frames again".into()));
        assert_eq!(faulty.failures(), ["FAULT write_256k_mtu4096.w8.a64.l250: card 0 sent 3 of 9 frames again", "MISSED write_256k_mtu4096.w8.a64.l250: 99 % of the beats, bar 98"]);
        assert_eq!((faulty.figures[0].met, faulty.figures[0].aim_met), (Some(false), Some(false)));
        let none = report(|o| *o = Outcome { error: Some("stuck".into()), ..Default::default() });
        assert_eq!(none.failures(), ["NO FIGURE write_256k_mtu4096.w8.a64.l250: stuck"]);
    }

    #[test]
    fn speed_is_of_a_point_that_exists() {
        assert!(names().iter().any(|n| n == SPEED));
    }
}
