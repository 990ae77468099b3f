//! What the replaced machine must have been configured with.
use super::analyse::Connection;
use super::endpoint::Setup;
use super::error::{Error, Result};
use super::frame::{Kind, Syndrome};
use ferric_driver::{Access, CqeStatus};

/// The configuration and how the exchange ends.
#[derive(Clone, Debug)]
pub struct Learned {
    /// Connection parameters.
    pub setup: Setup,
    /// The requester gives up at the end, with this status.
    pub gives_up: Option<CqeStatus>,
    /// Nanoseconds of the shortest wait that ended with a retransmission by time-out.
    pub shortest_timeout: Option<u64>,
}

/// A retransmission sooner than this after the packet was last sent is none by time-out (4.096 us * 2^1, IBTA 9.9.2.1).
const SHORTEST_TIMEOUT_NS: u64 = 8192;

/// Learns the configuration of machine `side`.
pub fn learn(c: &Connection, side: usize) -> Result<Learned> {
    let (own, peers) = (&c.requests[side], &c.requests[1 - side]);
    let (mut una, mut next, mut max) = (0i64, 0i64, 0i64);
    let (mut timeouts, mut rnrs, mut shortest) = (0u8, 0u8, None::<u64>);
    // Causes for going back that are not the clock: sequence NAKs, and the RNR NAK waited for.
    let (mut naks, mut rnr_open) = (Vec::new(), false);
    let (mut last_sent, mut waiting_since, mut longest) = (0, None::<u64>, 0u64);
    for i in c.items.iter().filter(|i| i.frame.icrc_error == 0) {
        if i.side == side && i.sent && i.frame.op.kind.is_request() {
            let at = own.position(i.frame.psn());
            if at < max && at != next {
                let told = naks.iter().position(|n| *n == at);
                if let Some(n) = told {
                    naks.drain(..=n);
                } else if !rnr_open {
                    timeouts = timeouts.saturating_add(1);
                    let waited = i.time.saturating_sub(last_sent);
                    shortest = Some(shortest.unwrap_or(u64::MAX).min(waited));
                }
                (rnr_open, waiting_since) = (false, None);
            }
            waiting_since.get_or_insert(i.time);
            let m = own.at(at.max(0) as u32).map(|(_, m)| m);
            next = if i.frame.op.kind == Kind::ReadRequest { m.map_or(at + 1, |m| m.end() as i64) } else { at + 1 };
            max = max.max(next);
            last_sent = i.time;
        }
        if i.side != side && i.delivered && !i.frame.op.kind.is_request() {
            let at = own.position(i.frame.psn());
            let (to, nak) = match i.frame.aeth.map(|a| Syndrome::of(a.syndrome())) {
                Some(Syndrome::Rnr(_)) => {
                    if at > una {
                        rnrs = 0;
                    }
                    rnrs = rnrs.saturating_add(1);
                    rnr_open = true;
                    (at, true)
                }
                Some(s @ (Syndrome::Sequence | Syndrome::Fatal(_))) => {
                    if s == Syndrome::Sequence && !rnr_open && at >= una {
                        naks.push(at);
                    }
                    (at, true)
                }
                _ => (at + 1, false),
            };
            if let Some(since) = waiting_since.filter(|_| to > una && !rnr_open) {
                longest = longest.max(i.time.saturating_sub(since));
                waiting_since = (to < max && !nak).then_some(i.time);
            }
            if to > una {
                una = to;
                timeouts = 0;
                if !rnr_open {
                    rnrs = 0;
                }
            }
        }
    }
    if let Some(s) = shortest.filter(|s| *s < SHORTEST_TIMEOUT_NS || longest > s.saturating_mul(4)) {
        return Err(Error::Exchange(format!("a packet is sent again after {s} ns without a NAK, yet an acknowledge was waited for {longest} ns: no one time-out explains both")));
    }
    let exhausted = una < max && timeouts > 0;
    let gives_up = if rnr_open { Some(CqeStatus::RnrRetryExceeded) } else { exhausted.then_some(CqeStatus::RetryExceeded) };
    let timeout = shortest.map_or(14, |ns| ((ns.max(1) as f64 / 4096.0).log2().round() as i32).clamp(8, 20) as u8);
    let refused = |kind: Kind| peers.messages.iter().any(|m| m.kind == kind && matches!(m.nak, Some((_, 1))));
    let most = own.messages.len().max(peers.messages.len()) + 8;
    if most > 1 << 15 {
        return Err(Error::Exchange(format!("{most} messages are more than a queue holds")));
    }
    Ok(Learned {
        setup: Setup {
            path: c.path(side),
            mtu: c.mtu,
            // Never seen: arbitrary, but not a number the other side would plausibly use.
            peer_qpn: c.hosts[1 - side].qpn.unwrap_or(0x00ab_cdef),
            sq_psn: own.base,
            rq_psn: peers.base,
            timeout,
            retry_cnt: if exhausted && !rnr_open { timeouts } else { 7 },
            rnr_retry: if rnr_open { (rnrs - 1).min(6) } else { 7 },
            min_rnr_timer: peers.rnr_timer.unwrap_or(12),
            access: Access {
                remote_read: !refused(Kind::ReadRequest),
                remote_write: !refused(Kind::Write),
                remote_atomic: !refused(Kind::CompareSwap) && !refused(Kind::FetchAdd),
                remote_flush: !refused(Kind::Flush),
                ..Access::ALL
            },
            depth: most,
            unreliable: false,
        },
        gives_up,
        shortest_timeout: shortest,
    })
}
