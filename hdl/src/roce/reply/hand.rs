//! The seats of the queue pairs, and the one that the machine has at hand.
use super::seat::{Addressee, Seat};
use super::told::Told;
use super::turn::{After, TurnJob};
use crate::codes::ack_kind;
use crate::msg::AckOp;
use crate::prim::ram::{Ram, RamAsync};
use ferric_abi::wire::syndrome;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Takes a seat to hand, changes it as the machine says, and stores it. The one at hand is newer than the memory until it has gone back.
#[derive(LogicBlock, BlockDefault)]
pub struct Hand<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The seats are cleared, one a cycle; this is the last one.
    pub clear: Signal<In, Bit>,
    pub cleared: Signal<Out, Bit>,
    /// The seat that can be taken to hand in the next cycle.
    pub read: Signal<In, Bits<24>>,
    /// Pulse: the seat of `id` is taken to hand, and if a reply brought it (`replies`) it is made that of the reply's life.
    pub load: Signal<In, Bit>,
    pub id: Signal<In, Bits<24>>,
    pub replies: Signal<In, Bit>,
    /// The reply at the head of the queue; something of its queue pair is in the ring, on its way out or wrong, or the queue pair is in the list: its acknowledges have to wait.
    pub ack: Signal<In, Told>,
    pub occupied: Signal<Out, Bit>,
    /// The seat at hand and whose it is; pulse in: it has to go back; out: it does.
    pub seat: Signal<Out, Seat>,
    pub qpn: Signal<Out, Bits<24>>,
    pub store: Signal<In, Bit>,
    pub stores: Signal<Out, Bit>,
    /// Of the seat at hand, from the cycle in which it came: its ring holds something; packets with `notify` are on their way;
    /// none of both, nor an acknowledge or a turn; it has a NAK that the acknowledge `ack` is older than.
    pub pending: Signal<Out, Bit>,
    /// The turn that is over was not of this life; it left something of the ring.
    pub stale: Signal<Out, Bit>,
    pub remains: Signal<Out, Bit>,
    pub marked: Signal<Out, Bit>,
    pub quiet: Signal<Out, Bit>,
    pub late: Signal<Out, Bit>,
    /// The acknowledge for `ackgen`: `ack`, or, of a queue pair that is `called`, the one that its seat keeps.
    pub out: Signal<Out, AckOp>,
    // Changes: pulses
    /// Replies go where `ack` does; the acknowledge `ack` is kept.
    pub address: Signal<In, Bit>,
    pub keep: Signal<In, Bit>,
    /// `ack` goes into the ring; its result has a place.
    pub push: Signal<In, Bit>,
    pub execute: Signal<In, Bit>,
    /// The acknowledge has gone, or need not go.
    pub sent: Signal<In, Bit>,
    /// A packet with `notify` has left.
    pub departed: Signal<In, Bit>,
    /// A turn begins; is over; came as far as `after`.
    pub begins: Signal<In, Bit>,
    pub ended: Signal<In, Bit>,
    pub goes_on: Signal<In, Bit>,
    pub after: Signal<In, After>,
    /// The queue pair is taken from the list; is put into it.
    pub called: Signal<In, Bit>,
    pub listed: Signal<In, Bit>,
    /// An atomic is over.
    pub settles: Signal<In, Bit>,
    /// What is to be answered is forgotten, since the life is over.
    pub forget: Signal<In, Bit>,
    /// A READ or atomic has failed, the one with `fail_psn`.
    pub fails: Signal<In, Bit>,
    pub fail_psn: Signal<In, Bits<24>>,
    pub fail_msn: Signal<In, Bits<24>>,
    seats: Ram<Seat, LQ>,
    waits: RamAsync<Bits<1>, LQ>,
    at_hand: DFF<Seat>,
    whose: DFF<Bits<24>>,
    known: DFF<Bit>,
    storing: DFF<Bit>,
    init: DFF<Bits<LQ>>,
    r_pending: DFF<Bit>,
    r_stale: DFF<Bit>,
    r_remains: DFF<Bit>,
    r_marked: DFF<Bit>,
    r_quiet: DFF<Bit>,
    r_late: DFF<Bit>,
    #[init(Constant::new(Seat::default()))]
    nothing: Constant<Seat>,
    last_job: Signal<Local, TurnJob>,
    ack_qpn: Signal<Local, Bits<24>>,
    asker: Signal<Local, Addressee>,
    to: Signal<Local, Addressee>,
    resting: Signal<Local, Bit>,
    /// The seat at hand is that of `id`.
    same: Signal<Local, Bit>,
    loaded: Signal<Local, Seat>,
    fresh: Signal<Local, Bit>,
    holds: Signal<Local, Bit>,
    departs: Signal<Local, Bit>,
    used: Signal<Local, Bits<6>>,
    held_class: Signal<Local, Bits<8>>,
    ack_class: Signal<Local, Bits<8>>,
    before: Signal<Local, Bits<24>>,
    before_held: Signal<Local, Bits<24>>,
    earlier: Signal<Local, Bit>,
}

#[kernel]
impl<const LQ: usize> Logic for Hand<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, at_hand, whose, known, storing, init, r_pending, r_stale, r_remains, r_marked, r_quiet, r_late);
        clock!(self, clock, seats, waits);
        self.seat.next = self.at_hand.q.val();
        self.qpn.next = self.whose.q.val();
        self.stores.next = self.storing.q.val();
        self.pending.next = self.r_pending.q.val();
        self.stale.next = self.r_stale.q.val();
        self.remains.next = self.r_remains.q.val();
        self.marked.next = self.r_marked.q.val();
        self.quiet.next = self.r_quiet.q.val();
        self.late.next = self.r_late.q.val();

        // Memories
        self.ack_qpn.next = self.ack.val().qpn;
        self.waits.read_addr.next = self.ack_qpn.val().get_bits::<LQ>(0);
        self.occupied.next = self.waits.read_data.val().any();
        self.seats.read_addr.next = self.read.val().get_bits::<LQ>(0);
        self.seats.write_addr.next = self.whose.q.val().get_bits::<LQ>(0);
        self.seats.write_data.next = self.at_hand.q.val();
        self.seats.write_en.next = self.storing.q.val();
        self.resting.next =
            !self.at_hand.q.val().count.any() & !self.at_hand.q.val().marks.any() & !self.at_hand.q.val().ack & !self.at_hand.q.val().busy & !self.at_hand.q.val().listed & !self.at_hand.q.val().dead;
        self.waits.write_addr.next = self.whose.q.val().get_bits::<LQ>(0);
        self.waits.write_data.next = bit_cast::<1, 1>((!self.resting.val()).into());
        self.waits.write_en.next = self.storing.q.val();
        self.storing.d.next = self.store.val();
        self.cleared.next = self.init.q.val().all();
        if self.clear.val() {
            self.init.d.next = self.init.q.val() + 1;
            self.seats.write_en.next = true;
            self.seats.write_addr.next = self.init.q.val();
            self.waits.write_en.next = true;
            self.waits.write_addr.next = self.init.q.val();
            self.waits.write_data.next = bits::<1>(0);
        }

        // Of the seat that comes.
        self.last_job.next = self.after.val().job;
        self.loaded.next = self.seats.read_data.val();
        self.same.next = self.known.q.val() & (self.whose.q.val() == self.id.val());
        if self.same.val() {
            self.loaded.next = self.at_hand.q.val();
        }
        // A reply that is mute says nothing but that an atomic is over, maybe one of an earlier life.
        self.fresh.next = self.replies.val() & ((self.ack.val().kind == ack_kind::LIFE) | (self.loaded.val().epoch != self.ack.val().epoch)) & !self.ack.val().mute;
        self.holds.next = self.loaded.val().count.any() & !self.fresh.val();
        self.departs.next = self.loaded.val().marks.any();
        // An acknowledge of a duplicate must not push out a NAK of what comes behind it.
        self.held_class.next = self.loaded.val().ack_syndrome;
        self.ack_class.next = self.ack.val().syndrome;
        // Both differences run beside the choice between the seats. The choice is written in gates: of a multiplexer synthesis makes one difference behind it.
        self.before.next = self.ack.val().psn - self.seats.read_data.val().ack_psn;
        self.before_held.next = self.ack.val().psn - self.at_hand.q.val().ack_psn;
        self.earlier.next = (self.same.val() & self.before_held.val().get_bit(23)) | (!self.same.val() & self.before.val().get_bit(23));
        if self.load.val() {
            self.at_hand.d.next = self.loaded.val();
            self.whose.d.next = self.id.val();
            self.known.d.next = true;
            self.r_pending.d.next = self.holds.val();
            self.r_stale.d.next = self.loaded.val().epoch != self.last_job.val().epoch;
            self.r_remains.d.next = !self.after.val().all | (self.loaded.val().count != bit_cast::<6, 5>(self.after.val().gone));
            self.r_marked.d.next = self.departs.val();
            self.r_late.d.next = self.loaded.val().ack & !self.fresh.val() & self.held_class.val().get_bits::<2>(5).any() & !self.ack_class.val().get_bits::<2>(5).any() & self.earlier.val();
            self.r_quiet.d.next = !self.holds.val() & !self.departs.val() & !(self.loaded.val().ack & !self.fresh.val()) & !self.loaded.val().busy;
            if self.fresh.val() {
                // A new life of the queue pair. What is on its way out, and the list, stay facts.
                self.at_hand.d.next.epoch = self.ack.val().epoch;
                self.at_hand.d.next.count = bits::<6>(0);
                self.at_hand.d.next.off = bits::<32>(0);
                self.at_hand.d.next.psn_off = bits::<24>(0);
                self.at_hand.d.next.used = bits::<6>(0);
                self.at_hand.d.next.answered = bits::<5>(0);
                self.at_hand.d.next.dead = false;
                self.at_hand.d.next.ack = false;
            }
        }

        // Changes of the one at hand
        self.asker.next.function = self.ack.val().function;
        self.asker.next.pd = self.ack.val().pd;
        self.asker.next.dest_qpn = self.ack.val().dest_qpn;
        self.asker.next.pmtu = self.ack.val().pmtu;
        self.asker.next.ipv6 = self.ack.val().ipv6;
        self.asker.next.vlan = self.ack.val().vlan;
        if self.address.val() {
            self.at_hand.d.next.to = self.asker.val();
        }
        if self.keep.val() {
            self.at_hand.d.next.ack = true;
            self.at_hand.d.next.ack_psn = self.ack.val().psn;
            self.at_hand.d.next.ack_msn = self.ack.val().msn;
            self.at_hand.d.next.ack_syndrome = self.ack.val().syndrome;
        }
        self.used.next = self.at_hand.q.val().used;
        if self.execute.val() {
            self.at_hand.d.next.slot = self.at_hand.q.val().slot + 1;
            if !self.used.val().get_bit(5) {
                self.at_hand.d.next.used = self.at_hand.q.val().used + 1;
            }
        }
        if self.sent.val() {
            self.at_hand.d.next.ack = false;
        }
        if self.departed.val() {
            self.at_hand.d.next.marks = self.at_hand.q.val().marks - 1;
        }
        if self.begins.val() {
            self.at_hand.d.next.busy = true;
            self.at_hand.d.next.marks = self.at_hand.q.val().marks + 1;
        }
        if self.ended.val() {
            self.at_hand.d.next.busy = false;
        }
        if self.goes_on.val() {
            self.at_hand.d.next.head = self.at_hand.q.val().head + self.after.val().gone;
            self.at_hand.d.next.count = self.at_hand.q.val().count - bit_cast::<6, 5>(self.after.val().gone);
            self.at_hand.d.next.answered = self.after.val().answered;
            self.at_hand.d.next.off = self.last_job.val().off;
            self.at_hand.d.next.psn_off = self.last_job.val().psn_off;
            if self.after.val().all {
                self.at_hand.d.next.off = bits::<32>(0);
                self.at_hand.d.next.psn_off = bits::<24>(0);
            }
        }
        if self.forget.val() {
            self.at_hand.d.next.count = bits::<6>(0);
            self.at_hand.d.next.off = bits::<32>(0);
            self.at_hand.d.next.psn_off = bits::<24>(0);
            self.at_hand.d.next.ack = false;
        }
        if self.fails.val() {
            self.at_hand.d.next.dead = true;
            self.at_hand.d.next.count = bits::<6>(0);
            // NAK remote operational error.
            self.at_hand.d.next.ack = true;
            self.at_hand.d.next.ack_syndrome = bits::<8>(syndrome::NAK_OPERATION);
            self.at_hand.d.next.ack_psn = self.fail_psn.val();
            self.at_hand.d.next.ack_msn = self.fail_msn.val();
        }
        if self.push.val() {
            self.at_hand.d.next.count = self.at_hand.q.val().count + 1;
            self.at_hand.d.next.ack_msn = self.ack.val().msn;
        }
        if self.called.val() {
            self.at_hand.d.next.listed = false;
        }
        if self.listed.val() {
            self.at_hand.d.next.listed = true;
        }
        if self.settles.val() {
            self.at_hand.d.next.ended = self.at_hand.q.val().ended + 1;
        }
        self.to.next = self.at_hand.q.val().to;
        self.out.next.qpn = self.ack.val().qpn;
        self.out.next.function = self.ack.val().function;
        self.out.next.dest_qpn = self.ack.val().dest_qpn;
        self.out.next.psn = self.ack.val().psn;
        self.out.next.msn = self.ack.val().msn;
        self.out.next.syndrome = self.ack.val().syndrome;
        self.out.next.ipv6 = self.ack.val().ipv6;
        self.out.next.vlan = self.ack.val().vlan;
        if self.called.val() {
            self.out.next.qpn = self.id.val();
            self.out.next.function = self.to.val().function;
            self.out.next.dest_qpn = self.to.val().dest_qpn;
            self.out.next.psn = self.at_hand.q.val().ack_psn;
            self.out.next.msn = self.at_hand.q.val().ack_msn;
            self.out.next.syndrome = self.at_hand.q.val().ack_syndrome;
            self.out.next.ipv6 = self.to.val().ipv6;
            self.out.next.vlan = self.to.val().vlan;
        }

        if self.reset.val() {
            self.init.d.next = bits::<LQ>(0);
            self.at_hand.d.next = self.nothing.val();
            self.known.d.next = false;
            self.storing.d.next = false;
        }
    }
}
