//! One run: an endpoint takes the place of one machine of a connection and is led through the exchange.
use super::analyse::Connection;
use super::answering::Answering;
use super::asking::Asking;
use super::deviations::Deviation;
use super::endpoint::{Endpoint, Factory, Post};
use super::error::{Error, Result};
use super::frame::{Frame, Kind};
use super::learn::learn;
use super::memory::{Cause, Plan};
use std::collections::BTreeSet;

/// A frame the replaced machine sent, at its place in the exchange.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Stands before the item with this index.
    pub position: usize,
    /// Packet number in the file.
    pub number: usize,
    /// Nanoseconds.
    pub time: u64,
    /// The frame.
    pub frame: Frame,
}

/// The sent view of machine `side`.
pub fn sent_view(c: &Connection, side: usize) -> Vec<Expected> {
    let of_side = c.items.iter().enumerate().filter(|(_, i)| i.side == side && i.sent && i.frame.icrc_error == 0);
    of_side.map(|(position, i)| Expected { position, number: i.number, time: i.time, frame: i.frame.clone() }).collect()
}

/// What a run found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Messages replayed, both directions.
    pub messages: usize,
    /// Deviations of the captured machine that were excused.
    pub deviations: BTreeSet<Deviation>,
}

/// Everything the two halves of a run share.
pub struct Stage<'a> {
    /// The machine under test.
    pub endpoint: Box<dyn Endpoint>,
    /// The connection.
    pub connection: &'a Connection,
    /// Excused so far.
    pub deviations: BTreeSet<Deviation>,
}

/// Replays one side. `expected` is compared with only; it never reaches the endpoint.
pub fn run(c: &Connection, side: usize, factory: &dyn Factory, expected: &[Expected], cause: Option<Cause>) -> Result<Outcome> {
    let learned = learn(c, side)?;
    let mut setup = learned.setup.clone();
    if cause == Some(Cause::QueuePairRight) {
        match c.requests[1 - side].messages.iter().find(|m| m.nak.is_some()).map(|m| m.kind) {
            Some(Kind::ReadRequest) => setup.access.remote_read = false,
            Some(Kind::CompareSwap | Kind::FetchAdd) => setup.access.remote_atomic = false,
            Some(Kind::Flush) => setup.access.remote_flush = false,
            _ => setup.access.remote_write = false,
        }
    }
    let endpoint = factory.build(&setup)?;
    let mut stage = Stage { endpoint, connection: c, deviations: BTreeSet::new() };
    let plan = Plan::new(c, 1 - side, cause, stage.endpoint.as_mut())?;
    let mut asking = Asking::new(&mut stage, side, &learned)?;
    let mut answering = Answering::new(c, 1 - side, plan);
    let mut next = expected.iter().peekable();
    for (i, item) in c.items.iter().enumerate() {
        while let Some(e) = next.next_if(|e| e.position <= i) {
            let at = |err: Error| located(err, e.number);
            if e.frame.op.kind.is_request() {
                asking.expect(&mut stage, &mut answering, e).map_err(at)?;
            } else {
                answering.expect(&mut stage, e).map_err(at)?;
            }
        }
        if item.side == side || !item.delivered {
            continue;
        }
        let at = |err: Error| located(err, item.number);
        let accepted = item.frame.icrc_error == 0;
        let mut frame = item.frame.clone();
        frame.bth.set_dest_qpn(stage.endpoint.qpn());
        if item.frame.op.kind.is_request() {
            answering.before(&mut stage, &item.frame).map_err(at)?;
            answering.translate(&mut frame);
        }
        let before = stage.endpoint.ticks();
        log::debug!("packet {}: to the endpoint: {}", item.number, frame.brief());
        stage.endpoint.receive(&frame.encode());
        if accepted && !item.frame.op.kind.is_request() {
            asking.told(&mut stage, &item.frame, before).map_err(at)?;
        }
        settle(&mut stage, &mut asking, &mut answering).map_err(at)?;
        if accepted && item.frame.op.kind.is_request() {
            answering.after(&mut stage, &item.frame).map_err(at)?;
        } else {
            answering.unchanged(&mut stage).map_err(at)?;
        }
        asking.check_completions().map_err(at)?;
    }
    for e in next {
        let at = |err: Error| located(err, e.number);
        if e.frame.op.kind.is_request() {
            asking.expect(&mut stage, &mut answering, e).map_err(at)?;
        } else {
            answering.expect(&mut stage, e).map_err(at)?;
        }
    }
    asking.finish(&mut stage, &mut answering)?;
    answering.finish(&mut stage)?;
    Ok(Outcome { messages: c.requests.iter().map(|r| r.messages.len()).sum(), deviations: stage.deviations })
}

fn located(e: Error, number: usize) -> Error {
    match e {
        Error::Differs(s) => Error::Differs(format!("at packet {number}: {s}")),
        Error::Exchange(s) => Error::Exchange(format!("at packet {number}: {s}")),
        e => e,
    }
}

/// Lets the endpoint work and takes what it has produced.
pub fn settle(stage: &mut Stage, asking: &mut Asking, answering: &mut Answering) -> Result<()> {
    stage.endpoint.settle();
    for (ticks, bytes) in stage.endpoint.take_frames() {
        let frame = Frame::decode_own(&bytes).map_err(|e| Error::Differs(format!("sent a malformed frame ({} bytes): {e}", bytes.len())))?;
        if frame.op.kind.is_request() {
            asking.sent(frame, ticks)?;
        } else {
            answering.sent(frame)?;
        }
    }
    while let Some(done) = stage.endpoint.poll() {
        log::debug!("endpoint: {done:?}");
        if done.recv {
            answering.completed(done);
        } else {
            asking.completed(done);
        }
    }
    Ok(())
}

impl Stage<'_> {
    /// Posts a send request.
    pub fn post(&mut self, post: &Post) -> Result<()> {
        self.endpoint.post_send(post)
    }
}
