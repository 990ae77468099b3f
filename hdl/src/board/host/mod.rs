//! The PCIe bridge's accesses to the core's registers, doorbells and the MSI-X table. See README.md.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::HostRead;
pub use write::HostWrite;

use super::lite::LiteAsk;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// AXI4 slave `s` to AXI4-Lite `csr` and `tbl` and doorbells `db`.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 512 && K == 64, "a line is a beat")]
pub struct Host<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s_aw_id: Signal<In, Bits<4>>,
    pub s_aw_addr: Signal<In, Bits<64>>,
    pub s_aw_len: Signal<In, Bits<8>>,
    pub s_aw_size: Signal<In, Bits<3>>,
    pub s_aw_burst: Signal<In, Bits<2>>,
    pub s_aw_valid: Signal<In, Bit>,
    pub s_aw_ready: Signal<Out, Bit>,
    pub s_w_data: Signal<In, Bits<W>>,
    pub s_w_strb: Signal<In, Bits<K>>,
    pub s_w_last: Signal<In, Bit>,
    pub s_w_valid: Signal<In, Bit>,
    pub s_w_ready: Signal<Out, Bit>,
    pub s_b_id: Signal<Out, Bits<4>>,
    pub s_b_resp: Signal<Out, Bits<2>>,
    pub s_b_valid: Signal<Out, Bit>,
    pub s_b_ready: Signal<In, Bit>,
    pub s_ar_id: Signal<In, Bits<4>>,
    pub s_ar_addr: Signal<In, Bits<64>>,
    pub s_ar_len: Signal<In, Bits<8>>,
    pub s_ar_size: Signal<In, Bits<3>>,
    pub s_ar_burst: Signal<In, Bits<2>>,
    pub s_ar_valid: Signal<In, Bit>,
    pub s_ar_ready: Signal<Out, Bit>,
    pub s_r_id: Signal<Out, Bits<4>>,
    pub s_r_data: Signal<Out, Bits<W>>,
    pub s_r_resp: Signal<Out, Bits<2>>,
    pub s_r_last: Signal<Out, Bit>,
    pub s_r_valid: Signal<Out, Bit>,
    pub s_r_ready: Signal<In, Bit>,
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
    pub tbl_aw_valid: Signal<Out, Bit>,
    pub tbl_aw_ready: Signal<In, Bit>,
    pub tbl_aw_addr: Signal<Out, Bits<13>>,
    pub tbl_w_valid: Signal<Out, Bit>,
    pub tbl_w_ready: Signal<In, Bit>,
    pub tbl_w_data: Signal<Out, Bits<32>>,
    pub tbl_w_strb: Signal<Out, Bits<4>>,
    pub tbl_b_valid: Signal<In, Bit>,
    pub tbl_b_ready: Signal<Out, Bit>,
    pub tbl_b_resp: Signal<In, Bits<2>>,
    pub tbl_ar_valid: Signal<Out, Bit>,
    pub tbl_ar_ready: Signal<In, Bit>,
    pub tbl_ar_addr: Signal<Out, Bits<13>>,
    pub tbl_r_valid: Signal<In, Bit>,
    pub tbl_r_ready: Signal<Out, Bit>,
    pub tbl_r_data: Signal<In, Bits<32>>,
    pub tbl_r_resp: Signal<In, Bits<2>>,
    write: HostWrite<W, K>,
    read: HostRead<W>,
    csr: LiteAsk,
    tbl: LiteAsk,
    db: LiteAsk,
}

#[kernel]
impl<const W: usize, const K: usize> Logic for Host<W, K> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, write, read, csr, tbl, db);
        self.write.reset.next = self.reset.val();
        self.csr.reset.next = self.reset.val();
        self.tbl.reset.next = self.reset.val();
        self.db.reset.next = self.reset.val();
        self.csr.go.next = self.write.csr_go.val();
        self.tbl.go.next = self.write.tbl_go.val();
        self.db.go.next = self.write.db_go.val();
        self.write.db_taken.next = self.db.taken.val();
        self.write.aw_id.next = self.s_aw_id.val();
        self.write.aw_addr.next = self.s_aw_addr.val();
        self.write.aw_valid.next = self.s_aw_valid.val();
        self.s_aw_ready.next = self.write.aw_ready.val();
        self.write.w_data.next = self.s_w_data.val();
        self.write.w_strb.next = self.s_w_strb.val();
        self.write.w_last.next = self.s_w_last.val();
        self.write.w_valid.next = self.s_w_valid.val();
        self.s_w_ready.next = self.write.w_ready.val();
        self.s_b_id.next = self.write.b_id.val();
        self.s_b_resp.next = bits::<2>(0);
        self.s_b_valid.next = self.write.b_valid.val();
        self.write.b_ready.next = self.s_b_ready.val();
        self.csr_aw_valid.next = self.csr.aw_valid.val();
        self.csr_aw_addr.next = self.write.address.val();
        self.csr.aw_ready.next = self.csr_aw_ready.val();
        self.csr_w_valid.next = self.csr.w_valid.val();
        self.csr_w_data.next = self.write.word.val();
        self.csr_w_strb.next = self.write.word_strobes.val();
        self.csr.w_ready.next = self.csr_w_ready.val();
        self.write.csr_b_valid.next = self.csr_b_valid.val();
        self.csr_b_ready.next = self.write.taking.val();
        self.tbl_aw_valid.next = self.tbl.aw_valid.val();
        self.tbl_aw_addr.next = self.write.address.val().get_bits::<13>(0);
        self.tbl.aw_ready.next = self.tbl_aw_ready.val();
        self.tbl_w_valid.next = self.tbl.w_valid.val();
        self.tbl_w_data.next = self.write.word.val();
        self.tbl_w_strb.next = self.write.word_strobes.val();
        self.tbl.w_ready.next = self.tbl_w_ready.val();
        self.write.tbl_b_valid.next = self.tbl_b_valid.val();
        self.tbl_b_ready.next = self.write.taking.val();
        self.db_aw_valid.next = self.db.aw_valid.val();
        self.db_aw_addr.next = self.write.address.val();
        self.db_aw_len.next = bits::<8>(0);
        self.db.aw_ready.next = self.db_aw_ready.val();
        self.db_w_valid.next = self.db.w_valid.val();
        self.db_w_data.next = self.write.line.val();
        self.db_w_strb.next = self.write.line_strobes.val();
        self.db_w_last.next = true;
        self.db.w_ready.next = self.db_w_ready.val();
        // Doorbells are answered when they are handed on: nothing waits for what the core says to one.
        self.db_b_ready.next = true;
        self.read.reset.next = self.reset.val();
        self.read.ar_id.next = self.s_ar_id.val();
        self.read.ar_addr.next = self.s_ar_addr.val();
        self.read.ar_len.next = self.s_ar_len.val();
        self.read.ar_valid.next = self.s_ar_valid.val();
        self.s_ar_ready.next = self.read.ar_ready.val();
        self.s_r_id.next = self.read.r_id.val();
        self.s_r_data.next = self.read.r_data.val();
        self.s_r_resp.next = bits::<2>(0);
        self.s_r_last.next = self.read.r_last.val();
        self.s_r_valid.next = self.read.r_valid.val();
        self.read.r_ready.next = self.s_r_ready.val();
        self.csr_ar_valid.next = self.read.csr_ar_valid.val();
        self.csr_ar_addr.next = self.read.address.val();
        self.read.csr_ar_ready.next = self.csr_ar_ready.val();
        self.read.csr_r_valid.next = self.csr_r_valid.val();
        self.read.csr_r_data.next = self.csr_r_data.val();
        self.csr_r_ready.next = self.read.taking.val();
        self.tbl_ar_valid.next = self.read.tbl_ar_valid.val();
        self.tbl_ar_addr.next = self.read.address.val().get_bits::<13>(0);
        self.read.tbl_ar_ready.next = self.tbl_ar_ready.val();
        self.read.tbl_r_valid.next = self.tbl_r_valid.val();
        self.read.tbl_r_data.next = self.tbl_r_data.val();
        self.tbl_r_ready.next = self.read.taking.val();
    }
}
