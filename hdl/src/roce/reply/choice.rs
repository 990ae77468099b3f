//! What brings the next seat to hand. Combinational.
use super::seat::Job;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Each source says that it has something, and of which queue pair.
#[derive(LogicBlock, Default)]
pub struct Choice {
    /// A job is at hand: this one. What is begun next is begun behind it.
    pub busy: Signal<In, Bit>,
    pub at_hand: Signal<In, Job>,
    pub left: Signal<In, Bit>,
    pub left_qpn: Signal<In, Bits<24>>,
    pub ended: Signal<In, Bit>,
    pub ended_qpn: Signal<In, Bits<24>>,
    pub executed: Signal<In, Bit>,
    pub executed_qpn: Signal<In, Bits<24>>,
    pub ack: Signal<In, Bit>,
    pub ack_qpn: Signal<In, Bits<24>>,
    pub life: Signal<In, Bit>,
    pub life_qpn: Signal<In, Bits<24>>,
    pub listed: Signal<In, Bit>,
    pub listed_qpn: Signal<In, Bits<24>>,
    /// There is a job: this one.
    pub some: Signal<Out, Bit>,
    pub job: Signal<Out, Job>,
    pub qpn: Signal<Out, Bits<24>>,
    /// The job at hand may take the room that an acknowledge or a turn wants.
    fills: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Choice {
    #[hdl_gen]
    fn update(&mut self) {
        // Whatever makes room goes before what wants it. What the job at hand takes from its queue is still seen there.
        self.fills.next = !(self.at_hand.val() == Job::Left) & !(self.at_hand.val() == Job::Ended);
        self.some.next = true;
        self.job.next = Job::Turn;
        self.qpn.next = self.listed_qpn.val();
        if self.left.val() & !(self.busy.val() & (self.at_hand.val() == Job::Left)) {
            self.job.next = Job::Left;
            self.qpn.next = self.left_qpn.val();
        } else if self.ended.val() & !(self.busy.val() & (self.at_hand.val() == Job::Ended)) {
            self.job.next = Job::Ended;
            self.qpn.next = self.ended_qpn.val();
        } else if self.executed.val() & !(self.busy.val() & (self.at_hand.val() == Job::Executed)) {
            self.job.next = Job::Executed;
            self.qpn.next = self.executed_qpn.val();
        } else if self.ack.val() & !(self.busy.val() & self.fills.val()) {
            self.job.next = Job::Ack;
            self.qpn.next = self.ack_qpn.val();
        } else if self.life.val() & !self.busy.val() {
            self.job.next = Job::Life;
            self.qpn.next = self.life_qpn.val();
        } else {
            self.some.next = self.listed.val() & !(self.busy.val() & self.fills.val());
        }
    }
}
