//! Where an event stands in its queue pair's window, as single bits: all distances modulo their width.
use super::intake::Event;
use super::{kind, LONGEST_TIMEOUT, TIMEOUT_TICKS};
use crate::codes::local;
use crate::records::ReqCtx;
use ferric_abi::codes::QpState;
use ferric_abi::wire::pmtu;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// READs and atomics when there is only the one that is told of.
const ALONE: u64 = 1;

/// Takes `ev` and its line as they come, in cycles with `load`; what depends on `line` follows it a cycle later.
#[derive(LogicBlock, Default)]
pub struct Window {
    pub clock: Signal<In, Clock>,
    pub load: Signal<In, Bit>,
    pub ev: Signal<In, Event>,
    pub seen: Signal<In, ReqCtx>,
    /// There is no such line.
    pub missing: Signal<In, Bit>,
    /// The line in hand.
    pub line: Signal<In, ReqCtx>,
    /// The queue pair sends; it is in error or there is none; it is RC.
    pub live: Signal<Out, Bit>,
    pub dead: Signal<Out, Bit>,
    pub reliable: Signal<Out, Bit>,
    /// READs or atomics are outstanding.
    pub asked: Signal<Out, Bit>,
    /// The event names a packet that has been sent and is not acknowledged (a request that is not retired, if it failed locally);
    /// one before those; the oldest.
    pub inside: Signal<Out, Bit>,
    pub old: Signal<Out, Bit>,
    pub at_una: Signal<Out, Bit>,
    /// The event's request stands before the one that failed locally, if one did.
    pub earlier: Signal<Out, Bit>,
    /// The key unit has answered the local operation whose turn it is, whatever it says.
    pub worked: Signal<Out, Bit>,
    /// Packets are in flight: before the event, and as `line` has it.
    pub moving: Signal<Out, Bit>,
    pub flying: Signal<Out, Bit>,
    /// Acknowledged beyond what was sent again.
    pub behind: Signal<Out, Bit>,
    /// Half of the window and a quarter of the tracker are free: what is still under way outlasts the fetch of what comes behind it.
    pub room: Signal<Out, Bit>,
    /// A READ or atomic may go, and whoever is fenced.
    pub may_ask: Signal<Out, Bit>,
    /// The request in hand is retired in this cycle, and none is left behind it.
    pub retires: Signal<In, Bit>,
    pub empties: Signal<In, Bit>,
    /// In this cycle an answer moves `una_psn` by one; a READ or atomic is wholly answered; one is complete.
    pub accepts: Signal<In, Bit>,
    pub answered: Signal<In, Bit>,
    pub returns: Signal<In, Bit>,
    /// All requests are complete; the same, or the queue pair does not wait for that.
    pub complete: Signal<Out, Bit>,
    pub drained: Signal<Out, Bit>,
    /// Some requests are acknowledged and not completed: a READ among them is not placed yet. As the line was a cycle before: whoever fails has not retired anything in that cycle.
    pub lag: Signal<Out, Bit>,
    /// The oldest request stands before the one that failed locally, as the line was a cycle before.
    pub ahead: Signal<Out, Bit>,
    /// Part of the oldest request is acknowledged: so many bytes.
    pub within: Signal<Out, Bit>,
    pub bytes: Signal<Out, Bits<32>>,
    /// Retransmission time, 4.096 us * 2^timeout in ticks, at most 2^30.
    pub ticks: Signal<Out, Bits<32>>,
    r_live: DFF<Bit>,
    r_dead: DFF<Bit>,
    r_reliable: DFF<Bit>,
    r_asked: DFF<Bit>,
    r_inside: DFF<Bit>,
    r_old: DFF<Bit>,
    r_at_una: DFF<Bit>,
    r_earlier: DFF<Bit>,
    r_worked: DFF<Bit>,
    r_moving: DFF<Bit>,
    r_flying: DFF<Bit>,
    r_behind: DFF<Bit>,
    r_near: DFF<Bit>,
    /// A quarter of the tracker was free before the last cycle's retirement: of several, the last one sees it.
    r_free: DFF<Bit>,
    r_may_ask: DFF<Bit>,
    /// READs and atomics not answered, and a quarter of how many may be.
    asking: Signal<Local, Bits<5>>,
    /// So many are not completed that `rd_out` is nearly full.
    crowded: Signal<Local, Bit>,
    r_complete: DFF<Bit>,
    r_lag: DFF<Bit>,
    r_ahead: DFF<Bit>,
    r_ticks: DFF<Bits<32>>,
    offset: DFF<Bits<24>>,
    from_una: Signal<Local, Bits<24>>,
    from_max: Signal<Local, Bits<24>>,
    index_off: Signal<Local, Bits<16>>,
    index_left: Signal<Local, Bits<16>>,
    before: Signal<Local, Bits<16>>,
    to_error: Signal<Local, Bits<16>>,
    flight: Signal<Local, Bits<24>>,
    tracked: Signal<Local, Bits<16>>,
    exponent: Signal<Local, Bits<5>>,
}

#[kernel]
impl Logic for Window {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, r_live, r_dead, r_reliable, r_asked, r_inside, r_old, r_at_una, r_earlier, r_worked, r_moving, r_flying, r_behind, r_near, r_free, r_may_ask, r_ticks, offset);
        dff_setup!(self, clock, r_complete, r_lag, r_ahead);
        self.from_una.next = self.ev.val().psn - self.seen.val().una_psn;
        self.from_max.next = self.ev.val().psn - self.seen.val().max_psn;
        self.index_off.next = self.ev.val().index - self.seen.val().una_index;
        self.index_left.next = self.seen.val().sent_index - self.ev.val().index;
        self.before.next = self.ev.val().index - self.seen.val().error_index;
        self.exponent.next = self.seen.val().timeout;
        if self.seen.val().timeout > LONGEST_TIMEOUT {
            self.exponent.next = bits::<5>(LONGEST_TIMEOUT);
        }
        if self.load.val() {
            self.r_live.d.next = ((self.seen.val().state == QpState::Rts as u64) | (self.seen.val().state == QpState::Sqd as u64)) & !self.missing.val();
            self.r_asked.d.next = self.seen.val().rd_out.any();
            self.r_moving.d.next = !(self.seen.val().next_psn == self.seen.val().una_psn);
            self.r_dead.d.next = (self.seen.val().state == QpState::Error as u64) | (self.seen.val().state == QpState::Reset as u64);
            self.r_reliable.d.next = self.seen.val().qp_type == 0;
            self.r_at_una.d.next = self.from_una.val() == 0;
            // No window spans more than half of its numbers: signs tell.
            self.r_inside.d.next = !self.from_una.val().get_bit(23) & self.from_max.val().get_bit(23);
            self.r_old.d.next = self.from_una.val().get_bit(23);
            self.r_earlier.d.next = !self.seen.val().error_pending | self.before.val().get_bit(15);
            self.r_worked.d.next =
                (self.seen.val().local == local::UNDER_WAY) & ((self.ev.val().kind == kind::WORKED) | ((self.ev.val().kind == kind::LOCAL) & (self.ev.val().index == self.seen.val().next_index)));
            self.r_ticks.d.next = bits::<32>(TIMEOUT_TICKS) << bit_cast::<32, 5>(self.exponent.val());
            if self.ev.val().kind == kind::LOCAL {
                self.r_inside.d.next = !self.index_off.val().get_bit(15) & !self.index_left.val().get_bit(15);
            }
        }

        self.flight.next = self.line.val().next_psn - self.line.val().una_psn;
        self.tracked.next = self.line.val().sent_index - self.line.val().done_index;
        self.r_flying.d.next = self.flight.val().any();
        self.r_behind.d.next = self.flight.val().get_bit(23);
        // An answer may be the last that is looked at of the event, as a retirement may.
        if self.accepts.val() {
            self.r_flying.d.next = !self.flight.val().get_bit(0) | self.flight.val().get_bits::<23>(1).any();
            self.r_behind.d.next = self.flight.val().get_bit(23) | !self.flight.val().any();
        }
        self.r_near.d.next = !self.flight.val().get_bits::<16>(8).any();
        self.r_free.d.next = !self.tracked.val().get_bits::<8>(8).any() & !self.tracked.val().get_bits::<2>(6).all();
        self.room.next = self.r_near.q.val() & self.r_free.q.val();
        // Only a retirement changes what is complete, and the queue pair may settle in the next cycle.
        self.r_complete.d.next = self.line.val().sent_index == self.line.val().done_index;
        if self.retires.val() {
            self.r_complete.d.next = self.empties.val();
        }
        self.complete.next = self.r_complete.q.val();
        self.drained.next = !self.line.val().drain | self.r_complete.q.val();
        self.r_lag.d.next = !(self.line.val().done_index == self.line.val().una_index);
        self.lag.next = self.r_lag.q.val();
        self.to_error.next = self.line.val().una_index - self.line.val().error_index;
        self.r_ahead.d.next = self.to_error.val().get_bit(15);
        self.ahead.next = self.r_ahead.q.val();
        // A queue that goes on fetches its requests anew, and those that it may not send are thrown away: not for one, but when a quarter of what may be asked for is free, and one more.
        self.asking.next = self.line.val().rd_open + (self.line.val().max_rd_atomic >> 2);
        self.crowded.next = self.line.val().rd_out.get_bits::<2>(4).all();
        self.r_may_ask.d.next = ((self.asking.val() < self.line.val().max_rd_atomic) | !self.line.val().rd_open.any()) & !self.crowded.val();
        // One is under way less.
        if self.answered.val() {
            self.r_may_ask.d.next = (!(self.asking.val() > self.line.val().max_rd_atomic) | (self.line.val().rd_open == ALONE)) & !self.crowded.val();
        }
        if self.line.val().fenced {
            self.r_may_ask.d.next = !self.line.val().rd_out.any();
            if self.returns.val() {
                self.r_may_ask.d.next = self.line.val().rd_out == ALONE;
            }
        }
        self.offset.d.next = self.line.val().una_psn - self.line.val().una_wqe_psn;
        self.within.next = self.offset.q.val().any();
        // Packets times the path MTU.
        self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 12;
        match self.line.val().pmtu.index() {
            pmtu::MTU_256 => self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 8,
            pmtu::MTU_512 => self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 9,
            pmtu::MTU_1024 => self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 10,
            pmtu::MTU_2048 => self.bytes.next = bit_cast::<32, 24>(self.offset.q.val()) << 11,
            _ => {}
        }

        self.live.next = self.r_live.q.val();
        self.dead.next = self.r_dead.q.val();
        self.reliable.next = self.r_reliable.q.val();
        self.asked.next = self.r_asked.q.val();
        self.inside.next = self.r_inside.q.val();
        self.old.next = self.r_old.q.val();
        self.at_una.next = self.r_at_una.q.val();
        self.earlier.next = self.r_earlier.q.val();
        self.worked.next = self.r_worked.q.val();
        self.moving.next = self.r_moving.q.val();
        self.flying.next = self.r_flying.q.val();
        self.behind.next = self.r_behind.q.val();
        self.may_ask.next = self.r_may_ask.q.val();
        self.ticks.next = self.r_ticks.q.val();
    }
}
