//! Pause frames (IEEE 802.3 annex 31B, 802.1Q clause 36; docs/admin.md, SET_PAUSE): whoever's receive buffer fills asks the other end of the link to send nothing for a while. A card does
//! nothing of the kind until it is told to, and only by the physical function, for it stops the link of all of them.
use crate::context::Context;
use crate::error::{Error, Result};
use crate::types::Mac;
use ferric_abi::codes::AdminOpcode;
use ferric_abi::context::PauseCtx;
use ferric_abi::csr;
use std::time::Duration;

/// Nanoseconds of a tick, and ticks of a unit of the card's limits.
const TICK: u128 = 1024;
const UNIT: u128 = 16;
/// Bits of a quantum (IEEE 802.3 annex 31B.2), and parts of a cycle that the card counts in.
const QUANTUM: u32 = 512;
const PARTS: u32 = 256;

/// What is asked of the peer when the receive buffer fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pausing {
    /// Nothing: frames that find no room are dropped.
    #[default]
    Off,
    /// That it sends nothing at all (802.3x).
    Link,
    /// That it sends nothing of these priorities, bit n for priority n (802.1Qbb).
    Priorities(u8),
}

/// What a card does with pause frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseConfig {
    /// What is asked of the peer.
    pub send: Pausing,
    /// A pause of the whole link holds data frames. Acknowledges go on.
    pub obey_link: bool,
    /// A pause of a priority of `data` holds data frames. Acknowledges go on.
    pub obey_priorities: bool,
    /// Priorities of this card's data frames, bit n for priority n: all data frames wait for any of them.
    pub data: u8,
    /// Free cells (256 bytes) of the receive buffer at which the peer is asked to stop: enough for all that comes until it does. See [`PauseConfig::headroom`].
    pub stop_at: u16,
    /// Free cells at which it may go on; more than `stop_at`.
    pub go_on_at: u16,
    /// Clock cycles in which the port carries 512 bits, in 1/256. `None`: it carries a beat of the data path in each.
    pub quantum: Option<u16>,
    /// Data is held for this long without a break at most; then the pause counts no more until it ends. In steps of 16.4 us, up to a second.
    pub obey_limit: Duration,
    /// The peer is kept waiting for this long without a break at most; then frames are dropped until there is room again.
    pub send_limit: Duration,
    /// Source address of the pause frames.
    pub mac: Mac,
}

impl PauseConfig {
    /// Both ways, for a link of `metres` between two cards of this kind with frames of any size: everything stops when no more fits than what comes until the peer has stopped,
    /// and goes on as soon as there is some more room, for a longer pause costs throughput. A link of more than some 250 metres holds more small frames than the buffer has cells for: then it
    /// stops at the most that leaves room to work, and frames can be lost.
    pub fn between_cards(mac: Mac, metres: usize) -> Self {
        /// Bytes that a metre of cable holds both ways: light takes 5 ns, and 512 bits go out every 4 ns.
        const METRE: usize = 2 * 5 * 64 / 4;
        /// Of the largest RoCE frame: 4 KiB and all headers, a WRITE's with immediate data over IPv6 with a VLAN tag.
        const LARGEST: usize = 4096 + 102;
        /// Cells of the receive buffer are 512.
        const MOST: u16 = 448;
        /// 4 KiB: a frame.
        const MORE: u16 = 16;
        let stop_at = (64..=LARGEST).map(|frame| Self::headroom(metres.min(1 << 20) * METRE, frame, LARGEST)).fold(0, u16::max).min(MOST);
        let all = u8::MAX;
        let (obey_limit, send_limit) = (Self::LIMIT, Self::LIMIT);
        Self { send: Pausing::Link, obey_link: true, obey_priorities: true, data: all, stop_at, go_on_at: stop_at + MORE, quantum: None, obey_limit, send_limit, mac }
    }

    /// As long as a pause lasts without doubt: 200 ms.
    pub const LIMIT: Duration = Duration::from_millis(200);

    /// Cells that what comes behind a request to stop takes, at most: bytes that the cable holds both ways, a frame of ours that is under way when the request is to leave, four of the
    /// peer's that it has chosen already, and 4 KiB for queues and decisions on both sides; `frame`: bytes of the peer's data frames, `largest`: of the largest of ours, both with headers.
    /// A frame takes as many cells as it begins.
    pub fn headroom(cable: usize, frame: usize, largest: usize) -> u16 {
        const CELL: usize = 256;
        /// Bytes of a frame on the wire that are none of its own: preamble, check sequence, gap.
        const AROUND: usize = 24;
        let frames = (cable + largest + 4096).div_ceil(frame + AROUND) + 4;
        (frames * frame.div_ceil(CELL)).min(u16::MAX.into()) as u16
    }

    fn line(&self, width: u32) -> Result<PauseCtx> {
        let limit = |limit: Duration| u16::try_from(limit.as_nanos().div_ceil(TICK * UNIT)).map_err(|_| Error::Invalid("a pause is limited to a second at most"));
        let (kind, sent) = match self.send {
            Pausing::Off => (0, 0),
            Pausing::Link => (1, 0),
            Pausing::Priorities(which) => (2, which),
        };
        let quantum = self.quantum.unwrap_or((QUANTUM * PARTS / (8 * width.max(1))) as u16);
        let on = PauseCtx::default().with_send(kind).with_obey_link(self.obey_link).with_obey_priority(self.obey_priorities).with_data(self.data).with_sent(sent);
        let line = on.with_xoff(self.stop_at).with_xon(self.go_on_at).with_quantum(quantum).with_obey_limit(limit(self.obey_limit)?).with_send_limit(limit(self.send_limit)?);
        Ok(line.with_mac(self.mac.number()))
    }
}

impl Context {
    /// Whether the card knows pause frames.
    pub fn has_pause(&self) -> bool {
        self.inner.caps.features >> csr::FEATURE_PAUSE & 1 == 1
    }

    /// What the card does with pause frames from now on; for the physical function only. Errors: a limit of zero or more than a second, `stop_at` not below `go_on_at`, no priority of its own to obey for.
    pub fn set_pause(&self, config: &PauseConfig) -> Result<()> {
        self.tell_pause(config.line(self.inner.caps.width)?)
    }

    /// Pause frames are neither sent nor obeyed any more.
    pub fn clear_pause(&self) -> Result<()> {
        self.tell_pause(PauseCtx::default())
    }

    fn tell_pause(&self, line: PauseCtx) -> Result<()> {
        if !self.has_pause() {
            return Err(Error::Unsupported("send or obey pause frames"));
        }
        self.inner.admin("set pause", AdminOpcode::SetPause, 0, &crate::admin::words::<6>(&line.0)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_cables_stop_earlier_and_never_for_good() {
        let at = |metres| PauseConfig::between_cards(Mac([2, 0, 0, 0, 0, 1]), metres);
        assert_eq!((at(1).stop_at, at(1).go_on_at), (119, 135));
        assert!((1..300).all(|metres| at(metres).stop_at <= at(metres + 1).stop_at));
        // What fits is stopped for; the whole buffer free is more than what lets the peer go on.
        assert!(at(100).stop_at >= PauseConfig::headroom(16_000, 88, 4198) && at(100).stop_at < 448);
        assert_eq!([300, usize::MAX].map(|metres| at(metres).go_on_at), [464; 2]);
    }
}
