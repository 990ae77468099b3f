//! A connection, as the state machine remembers it.
use super::types::{timeout, Remote};
use super::wire::MAD_BYTES;
use crate::types::Mtu;
use crate::ud::AddressHandle;
use std::time::Duration;

/// Time in which an answer is expected, as exponent: 268 ms.
pub(super) const RESPONSE: u8 = 16;
/// Times a message is sent again.
pub(super) const RETRIES: u8 = 15;
/// How long a program may take to confirm a reply, as exponent: the peer is told to wait 17 seconds when it asks again.
pub(super) const CONFIRM: u8 = 22;
/// The longest that is waited for anything, whatever a peer says.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    ReqSent,
    ReqReceived,
    RepReceived,
    RepSent,
    Established,
    DreqSent,
    TimeWait,
}

/// How long a peer that has asked goes on asking: so long the program's answer is of use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// When it asked last.
    pub at: Duration,
    /// How long it waits for each answer, and how often it asks.
    pub patience: Duration,
    /// What it has been told to wait in addition.
    pub mra: Duration,
}

pub(super) struct Connection {
    pub state: State,
    pub remote_id: u32,
    pub remote_guid: u64,
    pub to: AddressHandle,
    pub tid: u64,
    pub remote: Option<Remote>,
    /// Of the request, for the REP's reader.
    pub sent: Option<(Mtu, u8, u8)>,
    /// Of a request or a reply that the program has not answered yet.
    pub asked: Option<Asked>,
    /// The last message that may have to be sent again, and when, and how often still.
    pub last: Option<[u8; MAD_BYTES]>,
    pub due: Option<Duration>,
    pub left: u8,
    /// The program knows that it has ended.
    pub told: bool,
}

impl Connection {
    pub fn new(state: State, to: AddressHandle, tid: u64) -> Self {
        Self { state, remote_id: 0, remote_guid: 0, to, tid, remote: None, sent: None, asked: None, last: None, due: None, left: 0, told: false }
    }

    /// When something is to be done about it.
    pub fn due(&self) -> Option<Duration> {
        let half_open = self.asked.filter(|_| matches!(self.state, State::ReqReceived | State::RepReceived));
        self.due.or(half_open.map(|a| a.at + bounded(a.patience + a.mra)))
    }

    /// The peer has asked, or has asked again.
    pub fn asked_again(&mut self, now: Duration) {
        if let Some(a) = &mut self.asked {
            a.at = now;
        }
    }

    /// It is a connection with this queue pair of the peer's, or one that is being made: the peer has only one at a time (12.9.8.3.1).
    pub fn holds(&self, guid: u64, at: &AddressHandle, qpn: u32) -> bool {
        let open = matches!(self.state, State::ReqReceived | State::RepSent | State::RepReceived | State::Established);
        open && self.remote_guid == guid && self.to.dip == at.dip && self.remote.is_some_and(|r| r.qpn == qpn)
    }
}

impl Asked {
    /// A peer that waits 4.096 us * 2^`exponent` for an answer and asks `again` times more.
    pub fn now(at: Duration, exponent: u8, again: u8) -> Self {
        Self { at, patience: timeout(exponent) * (u32::from(again) + 1), mra: Duration::ZERO }
    }
}

/// No peer's numbers hold a connection for longer.
pub(super) fn bounded(wait: Duration) -> Duration {
    wait.min(LONGEST)
}
