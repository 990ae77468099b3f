//! Loopback: what a card sends to itself. A frame for one of the card's own stations does not reach the wire but the card's own receive path, from the parser on.
//! A frame for a multicast group does both if queue pairs of the card are members of any. A function's search for a neighbour is answered if another function has the
//! address. Frames of raw queue pairs go to the wire, whomever they are for: who composes frames is a station beside the card's own.
use crate::counters::count;
use crate::host::Host;
use crate::Twin;
use ferric_model::net::echo::Outcome;

/// Bytes of a MAC address; the destination stands first in a frame, the source behind it.
const MAC: usize = 6;

impl Twin {
    /// A frame of the card's own making leaves.
    pub(crate) fn emit(&mut self, frame: Vec<u8>) {
        let (to, from) = (&frame[..MAC], &frame[MAC..2 * MAC]);
        let group = to[0] & 1 == 1;
        let own = to == from || self.listening.own.iter().flatten().any(|mac| mac == to);
        if own {
            count!(self, 0, "egress.tx_frames");
            return self.looped.push_back(frame);
        }
        if group && self.tables.mcast.iter().any(|m| m.valid()) {
            self.looped.push_back(frame.clone());
        }
        self.emit_raw(frame);
    }

    /// A search for a neighbour leaves. The card's own functions are asked at once, and nobody but them: raw queue pairs need not see what their card asks.
    pub(crate) fn emit_search(&mut self, frame: Vec<u8>) {
        if let Some(Outcome::Answered(name, answer)) = self.station.receive(&frame, self.ticks as u32) {
            self.count_answer(name);
            self.emit(answer);
        }
        self.emit_raw(frame);
    }

    /// A frame leaves for the wire.
    pub(crate) fn emit_raw(&mut self, frame: Vec<u8>) {
        count!(self, 0, "egress.tx_frames");
        self.sent.push_back(frame);
    }

    /// Receives what has been looped back so far; what that leads to comes in the next round, so that queue pairs that talk to each other keep nobody waiting.
    pub(crate) fn receive_looped(&mut self, host: &mut dyn Host) -> bool {
        let round = self.looped.len();
        for _ in 0..round {
            if let Some(frame) = self.looped.pop_front() {
                self.receive(host, &frame);
            }
        }
        round > 0
    }
}
