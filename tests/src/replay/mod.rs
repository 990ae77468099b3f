//! Replay of captured RoCEv2 exchanges: a machine under test (the simulated card, or the golden model) takes the place of one captured
//! machine; what it sends, completes and holds in memory is compared with the capture. See README.md for the rules.
#![warn(missing_docs)]

pub mod analyse;
mod answering;
mod asking;
pub mod capture;
pub mod card;
mod card_ud;
pub mod compare;
pub mod deviations;
pub mod endpoint;
pub mod error;
pub mod frame;
pub mod golden;
mod infer;
pub mod learn;
pub mod memory;
mod op;
pub mod run;
pub mod scenarios;
pub mod synth;
pub mod uc;
pub mod ud;

use analyse::Connection;
use capture::Capture;
use endpoint::Factory;
pub use error::{Error, Result};
use memory::Cause;
use run::{Expected, Outcome};

/// Which machine is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that sends the first request.
    Requester,
    /// The other one.
    Responder,
    /// Each in turn, two independent runs.
    Both,
}

impl Role {
    /// The sides to run.
    pub fn sides(self) -> &'static [usize] {
        match self {
            Self::Requester => &[0],
            Self::Responder => &[1],
            Self::Both => &[0, 1],
        }
    }
}

/// Replays a capture.
pub fn replay(bytes: &[u8], role: Role, factory: &dyn Factory) -> Result<Outcome> {
    let mut capture = Capture::parse(bytes)?;
    let mut total = Outcome { messages: ud::replay(&capture, role, factory)? + uc::replay(&capture, role, factory)?, ..Outcome::default() };
    if analyse::none_reliable(&capture) {
        return Ok(total);
    }
    if !capture.annotated {
        capture = infer::resolve(&capture)?;
    }
    for c in analyse::connections(&capture)? {
        for side in role.sides() {
            let one = replay_side(&c, *side, factory, &run::sent_view(&c, *side))?;
            total.messages = total.messages.max(one.messages);
            total.deviations.extend(one.deviations);
        }
    }
    Ok(total)
}

/// Replays one side of a connection: once, or once for every cause a refused request can have had.
pub fn replay_side(c: &Connection, side: usize, factory: &dyn Factory, expected: &[Expected]) -> Result<Outcome> {
    let name = ["requester", "responder"][side];
    let messages = &c.requests[1 - side].messages;
    let Some((refused, code)) = messages.iter().find_map(|m| m.nak.map(|(_, code)| (m, code))) else {
        return run::run(c, side, factory, expected, None).map_err(|e| prefixed(e, name));
    };
    let causes = Cause::of(messages, refused, code);
    if causes.is_empty() {
        return Err(Error::Exchange(format!("NAK code {code} for a {} of {} bytes: no cause is known", refused.kind.name(), refused.len)));
    }
    let mut outcome = Outcome::default();
    for cause in causes {
        outcome = run::run(c, side, factory, expected, Some(cause)).map_err(|e| prefixed(e, &format!("{name} ({cause:?})")))?;
    }
    Ok(outcome)
}

fn prefixed(e: Error, name: &str) -> Error {
    match e {
        Error::Differs(s) => Error::Differs(format!("{name}: {s}")),
        e => e,
    }
}
