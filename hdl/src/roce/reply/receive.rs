//! What becomes of a reply that has come from completion, its seat being at hand. Combinational.
use super::seat::Seat;
use super::told::Told;
use super::STATS;
use crate::codes::ack_kind;
use crate::stats::flags;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// While `en`: all outputs are low otherwise. With `finish` the reply is done with; until then it waits for room.
#[derive(LogicBlock, Default)]
pub struct Receive {
    pub en: Signal<In, Bit>,
    pub ack: Signal<In, Told>,
    pub seat: Signal<In, Seat>,
    /// Nothing of the queue pair is before an acknowledge; a NAK of what comes behind it is.
    pub quiet: Signal<In, Bit>,
    pub late: Signal<In, Bit>,
    /// There is room: in the list, in front of `ackgen`, with the atomics.
    pub list: Signal<In, Bit>,
    pub out: Signal<In, Bit>,
    pub atomics: Signal<In, Bit>,
    /// The seat's replies go where this one does.
    pub address: Signal<Out, Bit>,
    /// A life begins.
    pub life: Signal<Out, Bit>,
    /// The acknowledge goes to `ackgen` at once; the seat keeps it.
    pub pass: Signal<Out, Bit>,
    pub keep: Signal<Out, Bit>,
    /// A READ or atomic goes into the ring; the atomic is executed; it says all that an acknowledge of older packets would.
    pub push: Signal<Out, Bit>,
    pub execute: Signal<Out, Bit>,
    pub covers: Signal<Out, Bit>,
    /// The result of a duplicate atomic is looked for.
    pub look: Signal<Out, Bit>,
    pub finish: Signal<Out, Bit>,
    /// See [`STATS`].
    pub events: Signal<Out, Bits<5>>,
    kind: Signal<Local, Bits<2>>,
    atomic: Signal<Local, Bit>,
    count: Signal<Local, Bits<6>>,
    full: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Receive {
    #[hdl_gen]
    fn update(&mut self) {
        self.kind.next = self.ack.val().kind;
        self.atomic.next = self.kind.val() == ack_kind::ATOMIC;
        self.count.next = self.seat.val().count;
        // Duplicates leave half of the places to those that are new: a peer has at most 16 of these outstanding.
        self.full.next = self.count.val().get_bit(5) | (self.ack.val().again & self.count.val().get_bit(4));
        self.address.next = self.en.val() & !self.ack.val().mute;
        self.life.next = false;
        self.pass.next = false;
        self.keep.next = false;
        self.push.next = false;
        self.execute.next = false;
        self.covers.next = false;
        self.look.next = false;
        self.finish.next = false;
        self.events.next = bits::<5>(0);
        if self.en.val() {
            if self.kind.val() == ack_kind::LIFE {
                self.life.next = true;
                self.finish.next = true;
            } else if self.seat.val().dead | self.ack.val().mute {
                self.finish.next = true;
            } else if self.kind.val() == ack_kind::ACKNOWLEDGE {
                if self.quiet.val() {
                    self.pass.next = true;
                    self.finish.next = self.out.val();
                } else if self.late.val() {
                    self.finish.next = true;
                } else if self.list.val() {
                    self.keep.next = true;
                    self.finish.next = true;
                }
            } else if self.full.val() {
                self.events.next = bits::<5>(flags(STATS, &["replies_dropped"]) as u64);
                self.finish.next = true;
            } else if self.atomic.val() & self.ack.val().again {
                self.look.next = true;
            } else if self.list.val() & (!self.atomic.val() | self.atomics.val()) {
                self.push.next = true;
                self.execute.next = self.atomic.val();
                self.covers.next = !self.ack.val().again;
                self.finish.next = true;
                self.events.next = bits::<5>(flags(STATS, &["reads"]) as u64);
                if self.ack.val().again {
                    self.events.next = bits::<5>(flags(STATS, &["answered_again"]) as u64);
                }
                if self.atomic.val() {
                    self.events.next = bits::<5>(flags(STATS, &["atomics"]) as u64);
                }
            }
        }
    }
}
