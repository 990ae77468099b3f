//! Queues that wait for their turn, each once. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::VqNotify;
use crate::prim::ram::RamAsync;
use crate::stream::{MsgFifo, MsgSlice};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// A list of at most `2^LQ` queues. One that is in it already is not entered again, so that nobody who notifies waits for a turn.
#[derive(LogicBlock, BlockDefault)]
pub struct Turns<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_notify: MsgSink<VqNotify>,
    pub s_refill: MsgSink<VqNotify>,
    /// `queue` has not had enough; nothing else is taken in this cycle.
    pub again: Signal<In, Bit>,
    pub queue: Signal<In, Bits<16>>,
    /// Whose turn it is: it leaves the list when it is taken.
    pub m: MsgSrc<VqNotify>,
    notifies: MsgSlice<VqNotify>,
    refills: MsgSlice<VqNotify>,
    list: MsgFifo<VqNotify, LQ>,
    listed: RamAsync<Bit, LQ>,
    /// After a reset nobody is in it.
    sweeping: DFF<Bit>,
    sweep: DFF<Bits<LQ>>,
    #[init(Constant::new((0xffffu64 >> LQ << LQ).to_bits()))]
    outside: Constant<Bits<16>>,
    who: Signal<Local, Bits<16>>,
    comes: Signal<Local, Bit>,
    leaves: Signal<Local, Bit>,
    enters: Signal<Local, Bit>,
    open: Signal<Local, Bit>,
    gone: Signal<Local, Bits<16>>,
    leaver: Signal<Local, Bits<16>>,
}

#[kernel]
impl<const LQ: usize> Logic for Turns<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, sweeping, sweep);
        clock!(self, clock, notifies, refills, list, listed);
        self.notifies.reset.next = self.reset.val();
        self.refills.reset.next = self.reset.val();
        self.list.reset.next = self.reset.val();
        MsgSink::<VqNotify>::link(&mut self.s_notify, &mut self.notifies.s);
        MsgSink::<VqNotify>::link(&mut self.s_refill, &mut self.refills.s);
        // A queue that leaves the list has the memory to itself, then one that wants another turn, then the stock, then drivers.
        self.m.data.next = self.list.m.data.val();
        self.m.valid.next = self.list.m.valid.val() & !self.sweeping.q.val();
        self.list.m.ready.next = self.m.ready.val() & !self.sweeping.q.val();
        self.leaves.next = self.m.ready.val() & self.list.m.valid.val() & !self.sweeping.q.val();
        self.open.next = !self.leaves.val() & !self.sweeping.q.val();
        self.who.next = self.notifies.m.data.val().queue;
        self.comes.next = self.notifies.m.valid.val();
        self.refills.m.ready.next = false;
        self.notifies.m.ready.next = false;
        if self.again.val() {
            self.who.next = self.queue.val();
            self.comes.next = true;
        } else if self.refills.m.valid.val() {
            self.who.next = self.refills.m.data.val().queue;
            self.comes.next = true;
            self.refills.m.ready.next = self.open.val();
        } else {
            self.notifies.m.ready.next = self.open.val();
        }
        self.listed.read_addr.next = self.who.val().get_bits::<LQ>(0);
        self.gone.next = self.who.val() & self.outside.val();
        self.enters.next = self.open.val() & self.comes.val() & !self.listed.read_data.val() & !self.gone.val().any();
        self.list.s.data.next.queue = self.who.val();
        self.list.s.valid.next = self.enters.val();
        self.leaver.next = self.list.m.data.val().queue;
        self.listed.write_addr.next = self.who.val().get_bits::<LQ>(0);
        self.listed.write_data.next = true;
        self.listed.write_en.next = self.enters.val();
        if self.leaves.val() {
            self.listed.write_addr.next = self.leaver.val().get_bits::<LQ>(0);
            self.listed.write_data.next = false;
            self.listed.write_en.next = true;
        }
        if self.sweeping.q.val() {
            self.listed.write_addr.next = self.sweep.q.val();
            self.listed.write_data.next = false;
            self.listed.write_en.next = true;
            self.sweep.d.next = self.sweep.q.val() + 1;
            if self.sweep.q.val().all() {
                self.sweeping.d.next = false;
            }
        }
        if self.reset.val() {
            self.sweeping.d.next = true;
            self.sweep.d.next = bits::<LQ>(0);
        }
    }
}
