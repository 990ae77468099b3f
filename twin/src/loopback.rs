//! Loopback: what a card sends to itself. A frame for one of the card's own stations does not reach the wire but the card's own receive path, from the parser on.
//! A frame for a multicast group does both if queue pairs of the card are members of any. A function's search for a neighbour is answered if another function has the
//! address. Frames of raw queue pairs go to the wire, whomever they are for: who composes frames is a station beside the card's own.
use crate::counters::count;
use crate::host::Host;
use crate::Twin;
use ferric_abi::csr::STATIONS;
use ferric_model::net::echo::Outcome;

/// Bytes of a MAC address; the destination stands first in a frame, the source behind it.
const MAC: usize = 6;

impl Twin {
    /// A frame of the card's own making leaves, of `function`. Only those in its network hear it.
    pub(crate) fn emit(&mut self, function: u16, frame: Vec<u8>) {
        let (to, from) = (&frame[..MAC], &frame[MAC..2 * MAC]);
        let group = to[0] & 1 == 1;
        let network = self.network_of(function);
        let holds = |(line, mac): (usize, &Option<[u8; MAC]>)| mac.as_ref().is_some_and(|mac| mac == to) && network.has((line / STATIONS as usize) as u16);
        if to == from || self.listening.own.iter().enumerate().any(holds) {
            count!(self, 0, "egress.tx_frames");
            return self.looped.push_back((network.through, frame));
        }
        if group && self.tables.mcast.iter().any(|m| m.valid()) {
            self.looped.push_back((network.through, frame.clone()));
        }
        self.emit_raw(function, frame);
    }

    /// A search of `function` for a neighbour leaves. The card's own functions in its network are asked at once, and nobody but them: raw queue pairs need not see what their card asks.
    pub(crate) fn emit_search(&mut self, function: u16, frame: Vec<u8>) {
        let network = self.network_of(function);
        if let Some(Outcome::Answered(name, answer, owner)) = self.station.receive(&frame, self.ticks as u32, network) {
            self.count_answer(name);
            self.emit(owner as u16, answer);
        }
        self.emit_raw(function, frame);
    }

    /// A frame of `function` leaves for the wire.
    pub(crate) fn emit_raw(&mut self, function: u16, frame: Vec<u8>) {
        count!(self, 0, "egress.tx_frames");
        let frame = self.outside(function, frame);
        self.sent.push_back(frame);
    }

    /// Receives what has been looped back so far; what that leads to comes in the next round, so that queue pairs that talk to each other keep nobody waiting.
    pub(crate) fn receive_looped(&mut self, host: &mut dyn Host) -> bool {
        let round = self.looped.len();
        for _ in 0..round {
            if let Some((through, frame)) = self.looped.pop_front() {
                self.receive_from(host, &frame, through);
            }
        }
        round > 0
    }
}
