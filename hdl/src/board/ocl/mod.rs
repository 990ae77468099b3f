//! The 32-bit register bus of a shell to the core's registers and doorbells. See README.md.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::OclRead;
pub use write::OclWrite;

use super::lite::{LiteAsk, LiteSlave, ReadSrc, WriteSrc};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// AXI4-Lite slave `s` to AXI4-Lite `csr` and doorbells `db`.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K >= 8, "a doorbell is eight bytes")]
pub struct Ocl<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_aw_valid: Signal<In, Bit>,
    pub s_aw_ready: Signal<Out, Bit>,
    pub s_aw_addr: Signal<In, Bits<32>>,
    pub s_w_valid: Signal<In, Bit>,
    pub s_w_ready: Signal<Out, Bit>,
    pub s_w_data: Signal<In, Bits<32>>,
    pub s_w_strb: Signal<In, Bits<4>>,
    pub s_b_valid: Signal<Out, Bit>,
    pub s_b_ready: Signal<In, Bit>,
    pub s_b_resp: Signal<Out, Bits<2>>,
    pub s_ar_valid: Signal<In, Bit>,
    pub s_ar_ready: Signal<Out, Bit>,
    pub s_ar_addr: Signal<In, Bits<32>>,
    pub s_r_valid: Signal<Out, Bit>,
    pub s_r_ready: Signal<In, Bit>,
    pub s_r_data: Signal<Out, Bits<32>>,
    pub s_r_resp: Signal<Out, Bits<2>>,
    pub csr_aw_valid: Signal<Out, Bit>,
    pub csr_aw_ready: Signal<In, Bit>,
    pub csr_aw_addr: Signal<Out, Bits<32>>,
    pub csr_w_valid: Signal<Out, Bit>,
    pub csr_w_ready: Signal<In, Bit>,
    pub csr_w_data: Signal<Out, Bits<32>>,
    pub csr_w_strb: Signal<Out, Bits<4>>,
    pub csr_b_valid: Signal<In, Bit>,
    pub csr_b_ready: Signal<Out, Bit>,
    pub csr_b_resp: Signal<In, Bits<2>>,
    pub csr_ar_valid: Signal<Out, Bit>,
    pub csr_ar_ready: Signal<In, Bit>,
    pub csr_ar_addr: Signal<Out, Bits<32>>,
    pub csr_r_valid: Signal<In, Bit>,
    pub csr_r_ready: Signal<Out, Bit>,
    pub csr_r_data: Signal<In, Bits<32>>,
    pub csr_r_resp: Signal<In, Bits<2>>,
    pub db_aw_valid: Signal<Out, Bit>,
    pub db_aw_ready: Signal<In, Bit>,
    pub db_aw_addr: Signal<Out, Bits<32>>,
    pub db_aw_len: Signal<Out, Bits<8>>,
    pub db_w_valid: Signal<Out, Bit>,
    pub db_w_ready: Signal<In, Bit>,
    pub db_w_data: Signal<Out, Bits<W>>,
    pub db_w_strb: Signal<Out, Bits<K>>,
    pub db_w_last: Signal<Out, Bit>,
    pub db_b_valid: Signal<In, Bit>,
    pub db_b_ready: Signal<Out, Bit>,
    pub db_b_resp: Signal<In, Bits<2>>,
    bus: LiteSlave<32>,
    write: OclWrite<W, K>,
    read: OclRead,
    csr: LiteAsk,
    db: LiteAsk,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Ocl<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, bus, write, read, csr, db);
        self.bus.reset.next = self.reset.val();
        self.write.reset.next = self.reset.val();
        self.read.reset.next = self.reset.val();
        self.csr.reset.next = self.reset.val();
        self.db.reset.next = self.reset.val();
        self.bus.aw_valid.next = self.s_aw_valid.val();
        self.bus.aw_addr.next = self.s_aw_addr.val();
        self.s_aw_ready.next = self.bus.aw_ready.val();
        self.bus.w_valid.next = self.s_w_valid.val();
        self.bus.w_data.next = self.s_w_data.val();
        self.bus.w_strb.next = self.s_w_strb.val();
        self.s_w_ready.next = self.bus.w_ready.val();
        self.s_b_valid.next = self.bus.b_valid.val();
        self.s_b_resp.next = self.bus.b_resp.val();
        self.bus.b_ready.next = self.s_b_ready.val();
        self.bus.ar_valid.next = self.s_ar_valid.val();
        self.bus.ar_addr.next = self.s_ar_addr.val();
        self.s_ar_ready.next = self.bus.ar_ready.val();
        self.s_r_valid.next = self.bus.r_valid.val();
        self.s_r_data.next = self.bus.r_data.val();
        self.s_r_resp.next = self.bus.r_resp.val();
        self.bus.r_ready.next = self.s_r_ready.val();
        WriteSrc::<32>::join(&mut self.bus.write, &mut self.write.s);
        ReadSrc::<32>::join(&mut self.bus.read, &mut self.read.s);
        self.csr.go.next = self.write.csr_go.val();
        self.csr_aw_valid.next = self.csr.aw_valid.val();
        self.csr_aw_addr.next = self.bus.write.addr.val();
        self.csr.aw_ready.next = self.csr_aw_ready.val();
        self.csr_w_valid.next = self.csr.w_valid.val();
        self.csr_w_data.next = self.bus.write.data.val();
        self.csr_w_strb.next = self.bus.write.strb.val();
        self.csr.w_ready.next = self.csr_w_ready.val();
        self.write.csr_b_valid.next = self.csr_b_valid.val();
        self.csr_b_ready.next = self.write.taking.val();
        self.db.go.next = self.write.db_go.val();
        self.db_aw_valid.next = self.db.aw_valid.val();
        self.db_aw_addr.next = self.write.pair_address.val();
        self.db_aw_len.next = bits::<8>(0);
        self.db.aw_ready.next = self.db_aw_ready.val();
        self.db_w_valid.next = self.db.w_valid.val();
        self.db_w_data.next = self.write.line.val();
        self.db_w_strb.next = self.write.line_strobes.val();
        self.db_w_last.next = true;
        self.db.w_ready.next = self.db_w_ready.val();
        self.write.db_b_valid.next = self.db_b_valid.val();
        self.db_b_ready.next = self.write.taking.val();
        self.csr_ar_valid.next = self.read.csr_ar_valid.val();
        self.csr_ar_addr.next = self.bus.read.addr.val();
        self.read.csr_ar_ready.next = self.csr_ar_ready.val();
        self.read.csr_r_valid.next = self.csr_r_valid.val();
        self.read.csr_r_data.next = self.csr_r_data.val();
        self.csr_r_ready.next = self.read.taking.val();
    }
}
