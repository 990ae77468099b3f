//! Answers ARP requests and ICMP echo requests. See README.md.
mod listen;
pub mod model;
mod send;
#[cfg(test)]
mod tests;

use crate::bus::AxisSrc;
use ferric_hdl_derive::kernel;
use listen::Listen;
use rust_hdl::prelude::*;
use send::Send;

/// The MAC's stream, overheard, to answers.
#[derive(LogicBlock, Default)]
pub struct Echo {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub rx_data: Signal<In, Bits<64>>,
    pub rx_keep: Signal<In, Bits<8>>,
    pub rx_last: Signal<In, Bit>,
    pub rx_err: Signal<In, Bit>,
    pub rx_valid: Signal<In, Bit>,
    pub tx: AxisSrc<64, 8>,
    /// Our own addresses.
    pub mac: Signal<In, Bits<48>>,
    pub ip: Signal<In, Bits<32>>,
    /// Pulses: a request was answered; one for us was malformed.
    pub answered: Signal<Out, Bit>,
    pub malformed: Signal<Out, Bit>,
    listen: Listen,
    send: Send,
    took: DFF<Bit>,
    bad: DFF<Bit>,
}

#[kernel]
impl Logic for Echo {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, took, bad);
        clock!(self, clock, listen, send);
        self.listen.reset.next = self.reset.val();
        self.listen.data.next = self.rx_data.val();
        self.listen.keep.next = self.rx_keep.val();
        self.listen.last.next = self.rx_last.val();
        self.listen.err.next = self.rx_err.val();
        self.listen.valid.next = self.rx_valid.val();
        self.listen.mac.next = self.mac.val();
        self.listen.ip.next = self.ip.val();
        self.listen.read_addr.next = self.send.read_addr.val();
        self.listen.take.next = self.send.take.val();
        self.send.reset.next = self.reset.val();
        self.send.mac.next = self.mac.val();
        self.send.ip.next = self.ip.val();
        self.send.some.next = self.listen.some.val();
        self.send.arp.next = self.listen.arp.val();
        self.send.head.next = self.listen.head.val();
        self.send.stop_at.next = self.listen.stop_at.val();
        self.send.read_data.next = self.listen.read_data.val();
        AxisSrc::<64, 8>::link(&mut self.tx, &mut self.send.m);
        self.took.d.next = self.send.take.val();
        self.bad.d.next = self.listen.malformed.val();
        self.answered.next = self.took.q.val();
        self.malformed.next = self.bad.q.val();
    }
}
