//! An AXI4-Lite slave that holds one write and one read.

use super::{ReadSrc, WriteSrc};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// AXI4-Lite slave of 32 data bits and `A` address bits; what it takes is shown at `write` and `read`.
#[derive(LogicBlock, BlockDefault)]
pub struct LiteSlave<const A: usize> {
    pub clock: Signal<In, Clock>,
    /// Forgets what is held.
    pub reset: Signal<In, Bit>,
    pub aw_valid: Signal<In, Bit>,
    pub aw_ready: Signal<Out, Bit>,
    pub aw_addr: Signal<In, Bits<A>>,
    pub w_valid: Signal<In, Bit>,
    pub w_ready: Signal<Out, Bit>,
    pub w_data: Signal<In, Bits<32>>,
    pub w_strb: Signal<In, Bits<4>>,
    pub b_valid: Signal<Out, Bit>,
    pub b_ready: Signal<In, Bit>,
    pub b_resp: Signal<Out, Bits<2>>,
    pub ar_valid: Signal<In, Bit>,
    pub ar_ready: Signal<Out, Bit>,
    pub ar_addr: Signal<In, Bits<A>>,
    pub r_valid: Signal<Out, Bit>,
    pub r_ready: Signal<In, Bit>,
    pub r_data: Signal<Out, Bits<32>>,
    pub r_resp: Signal<Out, Bits<2>>,
    pub write: WriteSrc<A>,
    pub read: ReadSrc<A>,
    /// Address and data are taken each when it comes, and kept until their answer is.
    have_addr: DFF<Bit>,
    have_data: DFF<Bit>,
    addr: DFF<Bits<A>>,
    data: DFF<Bits<32>>,
    strb: DFF<Bits<4>>,
    written: DFF<Bit>,
    write_resp: DFF<Bits<2>>,
    have_read: DFF<Bit>,
    read_addr: DFF<Bits<A>>,
    found: DFF<Bit>,
    read_data: DFF<Bits<32>>,
    read_resp: DFF<Bits<2>>,
}

#[kernel]
impl<const A: usize> Logic for LiteSlave<A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, have_addr, have_data, addr, data, strb, written, write_resp);
        dff_setup!(self, clock, have_read, read_addr, found, read_data, read_resp);
        self.aw_ready.next = !self.have_addr.q.val();
        self.w_ready.next = !self.have_data.q.val();
        self.write.held.next = self.have_addr.q.val() & self.have_data.q.val() & !self.written.q.val();
        self.write.addr.next = self.addr.q.val();
        self.write.data.next = self.data.q.val();
        self.write.strb.next = self.strb.q.val();
        self.b_valid.next = self.written.q.val();
        self.b_resp.next = self.write_resp.q.val();
        if self.aw_valid.val() & !self.have_addr.q.val() {
            self.addr.d.next = self.aw_addr.val();
            self.have_addr.d.next = true;
        }
        if self.w_valid.val() & !self.have_data.q.val() {
            self.data.d.next = self.w_data.val();
            self.strb.d.next = self.w_strb.val();
            self.have_data.d.next = true;
        }
        if self.write.done.val() {
            self.write_resp.d.next = self.write.resp.val();
            self.written.d.next = true;
        }
        if self.written.q.val() & self.b_ready.val() {
            self.written.d.next = false;
            self.have_addr.d.next = false;
            self.have_data.d.next = false;
        }
        self.ar_ready.next = !self.have_read.q.val();
        self.read.held.next = self.have_read.q.val() & !self.found.q.val();
        self.read.addr.next = self.read_addr.q.val();
        self.r_valid.next = self.found.q.val();
        self.r_data.next = self.read_data.q.val();
        self.r_resp.next = self.read_resp.q.val();
        if self.ar_valid.val() & !self.have_read.q.val() {
            self.read_addr.d.next = self.ar_addr.val();
            self.have_read.d.next = true;
        }
        if self.read.done.val() {
            self.read_data.d.next = self.read.data.val();
            self.read_resp.d.next = self.read.resp.val();
            self.found.d.next = true;
        }
        if self.found.q.val() & self.r_ready.val() {
            self.found.d.next = false;
            self.have_read.d.next = false;
        }
        if self.reset.val() {
            self.have_addr.d.next = false;
            self.have_data.d.next = false;
            self.written.d.next = false;
            self.have_read.d.next = false;
            self.found.d.next = false;
        }
    }
}
