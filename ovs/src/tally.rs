//! How often each action and each cause came.
use ferric_abi::codes::SwitchCause;
use ferric_abi::switch::{destination, tag_op};
use ferric_model::switch::Outcome;
use std::collections::BTreeMap;

/// Counts by name.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Actions carried out.
    pub actions: BTreeMap<&'static str, u64>,
    /// Causes of drops, and of frames to software (with `to software` behind).
    pub causes: BTreeMap<String, u64>,
    /// Frames compared, and frames that software gets because the parser does not understand them: those are not compared.
    pub compared: u64,
    pub excused: u64,
}

/// Every action that there is a name for.
pub const ACTIONS: [&str; 16] =
    ["drop", "to a port", "to an uplink", "to a group", "to software", "outer header", "strip", "rewrite MAC", "push tag", "pop tag", "set tag", "TTL - 1", "set DSCP", "mirror", "sample", "count"];

impl Tally {
    /// Adds what became of one frame.
    pub fn add(&mut self, outcome: &Outcome) {
        let mut hit = |name: &'static str, is: bool| {
            if is {
                *self.actions.entry(name).or_default() += 1;
            }
        };
        let verdict = &outcome.verdict;
        let done = !outcome.sent.is_empty() || !outcome.dropped.is_empty() || !outcome.software.is_empty();
        hit("drop", outcome.dropped.contains(&SwitchCause::Acl));
        hit("to software", verdict.kind() == destination::EXCEPTION && verdict.cause() == SwitchCause::None as u8 && done);
        hit("to a port", verdict.kind() == destination::PORT);
        hit("to an uplink", verdict.kind() == destination::UPLINK);
        hit("to a group", verdict.kind() == destination::GROUP);
        hit("strip", outcome.stripped);
        let left = !outcome.sent.is_empty();
        hit("outer header", left && (verdict.encap() != 0 || outcome.sent.iter().any(|s| outer_udp(&s.frame).is_some())));
        hit("rewrite MAC", left && verdict.rewrite() != 0);
        hit("push tag", left && verdict.tag_op() == tag_op::PUSH);
        hit("pop tag", left && verdict.tag_op() == tag_op::POP);
        hit("set tag", left && verdict.tag_op() == tag_op::SET);
        hit("TTL - 1", left && verdict.dec_ttl());
        hit("set DSCP", left && verdict.write_dscp());
        hit("mirror", left && verdict.mirror() != 0);
        hit("sample", verdict.sample() != 0 && !outcome.software.is_empty());
        hit("count", verdict.count());
        for cause in &outcome.dropped {
            *self.causes.entry(format!("{cause:?}")).or_default() += 1;
        }
        for software in outcome.software.iter().filter(|s| s.cause != SwitchCause::None) {
            *self.causes.entry(format!("{:?}, to software", software.cause)).or_default() += 1;
        }
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Self) {
        for (name, n) in &other.actions {
            *self.actions.entry(name).or_default() += n;
        }
        for (name, n) in &other.causes {
            *self.causes.entry(name.clone()).or_default() += n;
        }
        self.compared += other.compared;
        self.excused += other.excused;
    }

    /// A table of both.
    pub fn table(&self) -> String {
        let mut text = String::from("| action | frames |\n|---|---|\n");
        for name in ACTIONS {
            text += &format!("| {name} | {} |\n", self.actions.get(name).unwrap_or(&0));
        }
        text += "\n| cause | frames and copies |\n|---|---|\n";
        for (name, n) in &self.causes {
            text += &format!("| {name} | {n} |\n");
        }
        text
    }
}

/// Byte of the UDP header if `frame` has an outer header to a tunnel's port, IPv4 without options or IPv6, without a tag.
pub fn outer_udp(frame: &[u8]) -> Option<usize> {
    let at = match (frame.get(12..15)?, frame.get(23), frame.get(20)) {
        ([0x08, 0x00, 0x45], Some(17), _) => 34,
        ([0x86, 0xdd, _], _, Some(17)) => 54,
        _ => return None,
    };
    let to = u16::from_be_bytes([*frame.get(at + 2)?, *frame.get(at + 3)?]);
    matches!(to, 4789 | 6081).then_some(at)
}
