//! Several queue pairs set up and taken down in one go.
//!
//! A command of the admin queue takes the card some thousand cycles, and a driver that waits for each before it posts the next adds its own way to and fro. The steps of a [`Batch`] are told
//! to the card together, and its answers are collected afterwards. Batches of several cards, or functions, work at the same time: post all of them, then wait for each.
//!
//! ```text
//! let mut batch = context.batch();
//! batch.start(&mut qp, &Start::Connected { access, rtr, rts })?;      // RESET -> INIT -> RTR -> RTS, three commands
//! batch.destroy(old)?;
//! let done = batch.post().wait();                                     // one result a step
//! ```
use crate::admin::{Command, Ticket};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::function::Inner;
use crate::mr::Access;
use crate::qp::{Change, QueuePair};
use crate::types::{Mtu, QpState, RtrAttr, RtsAttr};
use crate::ud::Source;
use ferric_abi::codes::AdminOpcode;
use std::sync::Arc;

/// What a queue pair gets on its way from RESET to RTS.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// Of a connection, or raw.
    Connected {
        /// Rights of the peer.
        access: Access,
        /// As in [`QueuePair::to_rtr`].
        rtr: RtrAttr,
        /// As in [`QueuePair::to_rts`].
        rts: RtsAttr,
    },
    /// Of datagrams.
    Datagrams {
        /// Senders must know it.
        qkey: u32,
        /// Largest datagram.
        mtu: Mtu,
        /// Where those that it sends come from.
        source: Source,
        /// First PSN sent.
        sq_psn: u32,
    },
}

/// What is done with a queue pair.
enum Step<'a> {
    Change(&'a mut QueuePair, Vec<Change>),
    Destroy(Box<QueuePair>, Vec<Command>),
}

/// Steps that are to be told to a card together. Those of one that is dropped do not happen, but that its queue pairs to be destroyed are destroyed one by one.
pub struct Batch<'a> {
    ctx: Arc<Inner>,
    steps: Vec<Step<'a>>,
}

impl Context {
    /// An empty batch of this function's queue pairs.
    pub fn batch<'a>(&self) -> Batch<'a> {
        Batch { ctx: self.inner.clone(), steps: Vec::new() }
    }
}

impl<'a> Batch<'a> {
    fn must_be_ours(&self, qp: &QueuePair) -> Result<()> {
        if Arc::ptr_eq(&self.ctx, &qp.pd.ctx) {
            return Ok(());
        }
        Err(Error::Invalid("a batch has queue pairs of one function"))
    }

    /// RESET -> INIT -> RTR -> RTS. If the card refuses a change, those behind it are refused, too: the step's error is that of the first, and
    /// [`QueuePair::state`] is the state that has been reached, from which the single changes go on, or [`QueuePair::to_reset`] back. Errors of this call:
    /// the queue pair is not in RESET, is another function's, or the attributes do not fit it; it is not part of the batch then.
    pub fn start(&mut self, qp: &'a mut QueuePair, how: &Start) -> Result<()> {
        self.must_be_ours(qp)?;
        if qp.state() != QpState::Reset {
            return Err(Error::State);
        }
        let changes = match how {
            Start::Connected { access, rtr, rts } => vec![qp.change_to_init(*access), qp.change_to_rtr(*access, rtr)?, qp.change_to_rts(rts)],
            Start::Datagrams { qkey, mtu, source, sq_psn } => vec![qp.change_to_init_ud(*qkey)?, qp.change_to_rtr_ud(*mtu, source)?, qp.change_to_rts_ud(*sq_psn)?],
        };
        self.steps.push(Step::Change(qp, changes));
        Ok(())
    }

    /// Any state but RESET -> ERROR, as [`QueuePair::to_error`]. Errors: as of [`Batch::start`].
    pub fn fail(&mut self, qp: &'a mut QueuePair) -> Result<()> {
        self.must_be_ours(qp)?;
        if qp.state() == QpState::Reset {
            return Err(Error::State);
        }
        let change = qp.change_to_error();
        self.steps.push(Step::Change(qp, vec![change]));
        Ok(())
    }

    /// Destroys a queue pair, as dropping it does, but tells whether the card agreed. If it did not, the number stays in use. Errors of this call: the queue
    /// pair is another function's; it is destroyed at once.
    pub fn destroy(&mut self, qp: QueuePair) -> Result<()> {
        self.must_be_ours(&qp)?;
        let destroy = Command { what: "destroy QP", opcode: AdminOpcode::DestroyQp, id: qp.qpn(), params: Vec::new() };
        let first = qp.holds_receives().then(|| qp.change_to_error().command);
        self.steps.push(Step::Destroy(Box::new(qp), first.into_iter().chain([destroy]).collect()));
        Ok(())
    }

    /// Tells the card. What does not fit into the admin queue's ring (32 commands) follows while this waits for those before it.
    pub fn post(mut self) -> Posted<'a> {
        let mut steps = Vec::with_capacity(self.steps.len());
        for mut step in self.steps.drain(..) {
            let commands: Vec<Command> = match &mut step {
                Step::Change(qp, changes) => {
                    let mut from = qp.state();
                    for change in changes.iter() {
                        qp.open(from, change.to);
                        from = change.to;
                    }
                    changes.iter().map(|change| change.command.clone()).collect()
                }
                Step::Destroy(_, commands) => std::mem::take(commands),
            };
            steps.push((step, commands));
        }
        let mut tickets = self.ctx.post(steps.iter().flat_map(|(_, commands)| commands)).into_iter();
        let steps = steps.into_iter().map(|(step, commands)| (step, tickets.by_ref().take(commands.len()).collect())).collect();
        Posted { ctx: self.ctx.clone(), steps }
    }
}

/// A batch of which the card has been told. Dropping it waits; refusals are logged.
#[must_use = "wait says what became of it"]
pub struct Posted<'a> {
    ctx: Arc<Inner>,
    steps: Vec<(Step<'a>, Vec<Result<Ticket>>)>,
}

impl Posted<'_> {
    /// Waits for the card. One result a step, in the order in which they were added: a step that fails does not keep those behind it from happening.
    pub fn wait(mut self) -> Vec<Result<()>> {
        self.finish()
    }

    fn finish(&mut self) -> Vec<Result<()>> {
        let ctx = &self.ctx;
        let steps = self.steps.drain(..);
        steps
            .map(|(step, tickets)| {
                let answers: Vec<Result<()>> = tickets.into_iter().map(|ticket| ctx.answer(ticket).map(drop)).collect();
                match step {
                    Step::Change(qp, changes) => changes.iter().zip(answers).try_for_each(|(change, answer)| change.answered(answer).map(|()| qp.changed(change))),
                    Step::Destroy(qp, _) => destroyed(ctx, *qp, answers),
                }
            })
            .collect()
    }
}

/// The card has answered `answers` to the commands that destroy a queue pair; the last of them counts.
fn destroyed(ctx: &Inner, mut qp: QueuePair, answers: Vec<Result<()>>) -> Result<()> {
    qp.destroyed = true;
    let last = answers.into_iter().last().unwrap_or(Ok(()));
    if last.is_ok() {
        qp.forget();
        ctx.qp_ids.give(qp.qpn());
    }
    last
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        for error in self.finish().into_iter().filter_map(Result::err) {
            log::warn!("batch of queue pairs: {error}");
        }
    }
}
