//! Captures that do not say what became of their frames: the fewest faults with which the golden model explains the exchange (rule 1).
use super::analyse::connections;
use super::capture::{Capture, Record};
use super::error::{Error, Result};
use super::frame::Frame;
use super::golden::GoldenFactory;
use super::{replay_side, run};
use std::collections::HashSet;

/// Explanations tried before the search is given up.
const BUDGET: usize = 400;
/// Faults in one explanation.
const DEEPEST: usize = 3;

/// Something that happened to a frame between its sender and its receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Lost behind the capture point.
    Lost(usize),
    /// A copy the network made.
    Copied(usize),
    /// The second record was sent first and overtaken by the first.
    Overtaken(usize, usize),
}

/// The capture with the views that explain it; as it is when nothing needs explaining.
pub fn resolve(capture: &Capture) -> Result<Capture> {
    // A frame with a wrong ICRC was damaged on its way: nobody sent it like that, nobody accepted it.
    let mut base = capture.clone();
    let frames: Vec<Option<Frame>> = base.records.iter().map(|r| Frame::decode(&r.bytes).ok().flatten()).collect();
    for (r, f) in base.records.iter_mut().zip(&frames) {
        r.sent &= f.as_ref().is_none_or(|f| f.icrc_error == 0);
    }
    // What the replay cannot use at all, no loss makes usable.
    connections(&base)?;
    let Err(why) = explains(&base) else { return Ok(base) };
    let faults = candidates(&base, &frames);
    let mut tried = 0;
    for depth in 1..=DEEPEST.min(faults.len()) {
        let mut found: Option<(Capture, Vec<usize>)> = None;
        for set in choices(faults.len(), depth) {
            tried += 1;
            if tried > BUDGET {
                return Err(Error::Exchange(format!("ambiguous losses: more than {BUDGET} explanations; without faults: {why}")));
            }
            let Some(other) = apply(&base, set.iter().map(|i| faults[*i])) else { continue };
            if explains(&other).is_err() {
                continue;
            }
            match &found {
                Some((first, _)) if delivered(first) != delivered(&other) => {
                    return Err(Error::Exchange("ambiguous losses: two different explanations fit, and the capture does not say which is true".into()));
                }
                Some(_) => {}
                None => found = Some((other, set)),
            }
        }
        if let Some((capture, set)) = found {
            log::info!("explained by {:?}", set.iter().map(|i| faults[*i]).collect::<Vec<_>>());
            return Ok(capture);
        }
    }
    Err(Error::Exchange(format!("no loss explains the exchange; without any: {why}")))
}

fn explains(capture: &Capture) -> Result<()> {
    for c in connections(capture)? {
        for side in 0..2 {
            replay_side(&c, side, &GoldenFactory::default(), &run::sent_view(&c, side))?;
        }
    }
    Ok(())
}

/// Faults that could have happened. A request that is neither sent again nor left unanswered was not lost.
fn candidates(capture: &Capture, frames: &[Option<Frame>]) -> Vec<Fault> {
    let known: Vec<(usize, &Frame)> = frames.iter().enumerate().filter_map(|(i, f)| f.as_ref().filter(|f| f.icrc_error == 0).map(|f| (i, f))).collect();
    let same_way = |a: &Frame, b: &Frame| a.ip.src() == b.ip.src() && a.bth.dest_qpn() == b.bth.dest_qpn() && a.op.kind.is_request() == b.op.kind.is_request();
    let mut out = Vec::new();
    for (n, (i, f)) in known.iter().enumerate() {
        let later = &known[n + 1..];
        let again = later.iter().any(|(_, g)| same_way(f, g) && g.psn() == f.psn());
        let answered = later.iter().any(|(_, g)| g.ip.dst() == f.ip.src() && !g.op.kind.is_request());
        if !f.op.kind.is_request() || again || !answered {
            out.push(Fault::Lost(*i));
        }
        if known[..n].iter().any(|(j, _)| capture.records[*j].bytes == capture.records[*i].bytes) {
            out.push(Fault::Copied(*i));
        }
        if let Some((j, g)) = later.iter().find(|(_, g)| same_way(f, g)) {
            if super::frame::psn_distance(g.psn(), f.psn()) < 0 {
                out.push(Fault::Overtaken(*i, *j));
            }
        }
    }
    out
}

/// All sets of `k` out of `n`.
fn choices(n: usize, k: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut next: Option<Vec<usize>> = (k <= n).then(|| (0..k).collect());
    std::iter::from_fn(move || {
        let now = next.take()?;
        let mut then = now.clone();
        if let Some(i) = (0..k).rev().find(|i| then[*i] < n - k + i) {
            then[i] += 1;
            for j in i + 1..k {
                then[j] = then[j - 1] + 1;
            }
            next = Some(then);
        }
        Some(now)
    })
}

/// The capture with these faults; `None` when they contradict each other.
fn apply(base: &Capture, faults: impl Iterator<Item = Fault>) -> Option<Capture> {
    let mut out = base.clone();
    let mut touched = HashSet::new();
    let mut inserts: Vec<(usize, Record)> = Vec::new();
    for f in faults {
        match f {
            Fault::Lost(i) => {
                touched.insert(i).then_some(())?;
                out.records[i].delivered = false;
            }
            Fault::Copied(i) => {
                touched.insert(i).then_some(())?;
                out.records[i].sent = false;
            }
            Fault::Overtaken(i, j) => {
                (touched.insert(i) && touched.insert(j)).then_some(())?;
                inserts.push((i, Record { sent: true, delivered: false, ..out.records[j].clone() }));
                out.records[j].sent = false;
            }
        }
    }
    inserts.sort_by_key(|(i, _)| std::cmp::Reverse(*i));
    for (i, r) in inserts {
        out.records.insert(i, r);
    }
    Some(out)
}

/// What was received, in order.
fn delivered(capture: &Capture) -> Vec<&[u8]> {
    capture.records.iter().filter(|r| r.delivered).map(|r| r.bytes.as_slice()).collect()
}
