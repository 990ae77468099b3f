//! Register window of the functions: AXI4-Lite slave, decode from `ferric_abi::csr`. See README.md.

#[cfg(test)]
mod tests;

use crate::stream::MsgSlice;
use ferric_abi::csr;
use ferric_hdl_derive::BlockNew;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("aw_valid", &["b_valid"]), // one write answered before the next takes effect
    ("w_valid", &["b_valid"]),
    ("ar_valid", &["r_valid"]),
    ("reset_busy", &[]), // shown to who reads it, awaited by nobody here
];

/// Functions with a window.
pub const FUNCTIONS: usize = 4;

/// A register write.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct WriteData {
    data: Bits<32>,
    strb: Bits<4>,
}

/// AXI4-Lite slave of 32 data bits; address = function << 16 | offset.
///
/// `caps`: the capability words CAPS0 to CAPS3.
#[derive(LogicBlock, BlockNew)]
#[given(caps: [u32; 4])]
pub struct Csr {
    pub clock: Signal<In, Clock>,
    /// Synchronous; all registers to zero.
    pub reset: Signal<In, Bit>,
    pub aw_valid: Signal<In, Bit>,
    pub aw_ready: Signal<Out, Bit>,
    pub aw_addr: Signal<In, Bits<32>>,
    pub w_valid: Signal<In, Bit>,
    pub w_ready: Signal<Out, Bit>,
    pub w_data: Signal<In, Bits<32>>,
    pub w_strb: Signal<In, Bits<4>>,
    pub b_valid: Signal<Out, Bit>,
    pub b_ready: Signal<In, Bit>,
    pub b_resp: Signal<Out, Bits<2>>,
    pub ar_valid: Signal<In, Bit>,
    pub ar_ready: Signal<Out, Bit>,
    pub ar_addr: Signal<In, Bits<32>>,
    pub r_valid: Signal<Out, Bit>,
    pub r_ready: Signal<In, Bit>,
    pub r_data: Signal<Out, Bits<32>>,
    pub r_resp: Signal<Out, Bits<2>>,
    /// Card time in ticks.
    pub tick: Signal<In, Bits<32>>,
    /// Functions whose soft reset is in progress (from the admin engine, at most 2 cycles after `reset_req`).
    pub reset_busy: Signal<In, Bits<4>>,
    /// IOVA of the admin ring, per function.
    pub admin_sq: [Signal<Out, Bits<64>>; 4],
    /// IOVA of the admin completion ring.
    pub admin_cq: [Signal<Out, Bits<64>>; 4],
    /// log2 of the slots of both.
    pub admin_log_size: [Signal<Out, Bits<4>>; 4],
    /// Producer index of the admin ring.
    pub admin_producer: [Signal<Out, Bits<16>>; 4],
    pub enable: Signal<Out, Bits<4>>,
    /// Pulse: soft reset of that function. Clears its `enable` and `admin_producer` here.
    pub reset_req: Signal<Out, Bits<4>>,
    aw: MsgSlice<Bits<32>>,
    w: MsgSlice<WriteData>,
    ar: MsgSlice<Bits<32>>,
    sq_lo: [DFF<Bits<32>>; 4],
    sq_hi: [DFF<Bits<32>>; 4],
    cq_lo: [DFF<Bits<32>>; 4],
    cq_hi: [DFF<Bits<32>>; 4],
    log_size: [DFF<Bits<4>>; 4],
    producer: [DFF<Bits<16>>; 4],
    on: DFF<Bits<4>>,
    pulse: DFF<Bits<4>>,
    // A write between its decode and its effect.
    wr_go: DFF<Bit>,
    wr_offset: DFF<Bits<16>>,
    wr_function: DFF<Bits<4>>,
    wr_data: DFF<Bits<32>>,
    b_pending: DFF<Bit>,
    // A read: selected function's registers, then the answer.
    rd_pick: DFF<Bit>,
    rd_choose: DFF<Bit>,
    rd_valid: DFF<Bit>,
    rd_offset: DFF<Bits<16>>,
    rd_function: DFF<Bits<4>>,
    rd_known: DFF<Bit>,
    rd_data: DFF<Bits<32>>,
    p_sq_lo: DFF<Bits<32>>,
    p_sq_hi: DFF<Bits<32>>,
    p_cq_lo: DFF<Bits<32>>,
    p_cq_hi: DFF<Bits<32>>,
    p_log_size: DFF<Bits<4>>,
    p_on: DFF<Bit>,
    p_busy: DFF<Bit>,
    #[init(Constant::new(u64::from(csr::MAGIC_VALUE).to_bits()))]
    magic: Constant<Bits<32>>,
    #[init(Constant::new(u64::from(csr::VERSION_VALUE).to_bits()))]
    version: Constant<Bits<32>>,
    #[init(caps.map(|word| Constant::new(u64::from(word).to_bits())))]
    caps: [Constant<Bits<32>>; 4],
    #[init(OFFSETS.map(|offset| Constant::new(u64::from(offset).to_bits())))]
    at: [Constant<Bits<16>>; 15],
    aw_top: Signal<Local, Bits<14>>,
    ar_top: Signal<Local, Bits<14>>,
    aw_function: Signal<Local, Bits<2>>,
    ar_function: Signal<Local, Bits<2>>,
    w_word: Signal<Local, WriteData>,
    accept: Signal<Local, Bit>,
    hit: Signal<Local, Bit>,
    low: Signal<Local, Bits<32>>,
    high: Signal<Local, Bits<32>>,
    low16: Signal<Local, Bits<16>>,
    rd_idle: Signal<Local, Bit>,
    state_bits: Signal<Local, Bits<32>>,
}

/// Registers in the order of `Csr::at`.
const OFFSETS: [u32; 15] = [
    csr::MAGIC,
    csr::VERSION,
    csr::CAPS0,
    csr::CAPS1,
    csr::CAPS2,
    csr::CAPS3,
    csr::CONTROL,
    csr::STATUS,
    csr::ADMIN_SQ_LO,
    csr::ADMIN_SQ_HI,
    csr::ADMIN_CQ_LO,
    csr::ADMIN_CQ_HI,
    csr::ADMIN_SIZE,
    csr::ADMIN_DOORBELL,
    csr::TICK,
];
const _: () = assert!(OFFSETS.len() == csr::REGISTERS.len(), "a register of the abi has no place here");

impl Logic for Csr {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, on, pulse, wr_go, wr_offset, wr_function, wr_data, b_pending);
        dff_setup!(self, clock, rd_pick, rd_choose, rd_valid, rd_offset, rd_function, rd_known, rd_data);
        dff_setup!(self, clock, p_sq_lo, p_sq_hi, p_cq_lo, p_cq_hi, p_log_size, p_on, p_busy);
        clock!(self, clock, aw, w, ar);
        self.aw.reset.next = self.reset.val();
        self.w.reset.next = self.reset.val();
        self.ar.reset.next = self.reset.val();
        self.aw.s.data.next = self.aw_addr.val();
        self.aw.s.valid.next = self.aw_valid.val();
        self.aw_ready.next = self.aw.s.ready.val();
        self.w.s.data.next.data = self.w_data.val();
        self.w.s.data.next.strb = self.w_strb.val();
        self.w.s.valid.next = self.w_valid.val();
        self.w_ready.next = self.w.s.ready.val();
        self.ar.s.data.next = self.ar_addr.val();
        self.ar.s.valid.next = self.ar_valid.val();
        self.ar_ready.next = self.ar.s.ready.val();

        // ---- Writes: pair address and data, then one cycle later the effect ----
        self.accept.next = self.aw.m.valid.val() & self.w.m.valid.val() & (!self.b_pending.q.val() | self.b_ready.val());
        self.aw.m.ready.next = self.accept.val();
        self.w.m.ready.next = self.accept.val();
        self.w_word.next = self.w.m.data.val();
        self.aw_top.next = self.aw.m.data.val().get_bits::<14>(18);
        self.aw_function.next = self.aw.m.data.val().get_bits::<2>(16);
        // Whole words of functions that have a window; the rest is answered and forgotten.
        self.wr_go.d.next = self.accept.val() & !self.aw_top.val().any() & self.w_word.val().strb.all();
        self.wr_offset.d.next = self.aw.m.data.val().get_bits::<16>(0);
        self.wr_function.d.next = bits::<4>(1) << self.aw_function.val();
        self.wr_data.d.next = self.w_word.val().data;
        if self.accept.val() {
            self.b_pending.d.next = true;
        } else if self.b_ready.val() {
            self.b_pending.d.next = false;
        }
        self.b_valid.next = self.b_pending.q.val();
        self.b_resp.next = bits::<2>(0);
        self.low16.next = self.wr_data.q.val().get_bits::<16>(0);
        for i in 0..4 {
            self.sq_lo[i].clock.next = self.clock.val();
            self.sq_hi[i].clock.next = self.clock.val();
            self.cq_lo[i].clock.next = self.clock.val();
            self.cq_hi[i].clock.next = self.clock.val();
            self.log_size[i].clock.next = self.clock.val();
            self.producer[i].clock.next = self.clock.val();
            self.sq_lo[i].d.next = self.sq_lo[i].q.val();
            self.sq_hi[i].d.next = self.sq_hi[i].q.val();
            self.cq_lo[i].d.next = self.cq_lo[i].q.val();
            self.cq_hi[i].d.next = self.cq_hi[i].q.val();
            self.log_size[i].d.next = self.log_size[i].q.val();
            self.producer[i].d.next = self.producer[i].q.val();
            self.hit.next = self.wr_go.q.val() & self.wr_function.q.val().get_bit(i);
            if self.hit.val() & (self.wr_offset.q.val() == self.at[6].val()) {
                if self.wr_data.q.val().get_bit(1) {
                    self.producer[i].d.next = bits::<16>(0);
                }
            }
            if self.hit.val() & (self.wr_offset.q.val() == self.at[8].val()) {
                self.sq_lo[i].d.next = self.wr_data.q.val();
            }
            if self.hit.val() & (self.wr_offset.q.val() == self.at[9].val()) {
                self.sq_hi[i].d.next = self.wr_data.q.val();
            }
            if self.hit.val() & (self.wr_offset.q.val() == self.at[10].val()) {
                self.cq_lo[i].d.next = self.wr_data.q.val();
            }
            if self.hit.val() & (self.wr_offset.q.val() == self.at[11].val()) {
                self.cq_hi[i].d.next = self.wr_data.q.val();
            }
            if self.hit.val() & (self.wr_offset.q.val() == self.at[12].val()) {
                self.log_size[i].d.next = self.low16.val().get_bits::<4>(0);
            }
            if self.hit.val() & (self.wr_offset.q.val() == self.at[13].val()) {
                self.producer[i].d.next = self.low16.val();
            }
            if self.reset.val() {
                self.sq_lo[i].d.next = bits::<32>(0);
                self.sq_hi[i].d.next = bits::<32>(0);
                self.cq_lo[i].d.next = bits::<32>(0);
                self.cq_hi[i].d.next = bits::<32>(0);
                self.log_size[i].d.next = bits::<4>(0);
                self.producer[i].d.next = bits::<16>(0);
            }
            self.low.next = self.sq_lo[i].q.val();
            self.high.next = self.sq_hi[i].q.val();
            self.admin_sq[i].next = (bit_cast::<64, 32>(self.high.val()) << 32) | bit_cast::<64, 32>(self.low.val());
            self.low.next = self.cq_lo[i].q.val();
            self.high.next = self.cq_hi[i].q.val();
            self.admin_cq[i].next = (bit_cast::<64, 32>(self.high.val()) << 32) | bit_cast::<64, 32>(self.low.val());
            self.admin_log_size[i].next = self.log_size[i].q.val();
            self.admin_producer[i].next = self.producer[i].q.val();
        }
        self.pulse.d.next = bits::<4>(0);
        if self.wr_go.q.val() & (self.wr_offset.q.val() == self.at[6].val()) {
            self.on.d.next = self.on.q.val() & !self.wr_function.q.val();
            if self.wr_data.q.val().get_bit(1) {
                self.pulse.d.next = self.wr_function.q.val();
            } else if self.wr_data.q.val().get_bit(0) {
                self.on.d.next = self.on.q.val() | self.wr_function.q.val();
            }
        }
        self.enable.next = self.on.q.val();
        self.reset_req.next = self.pulse.q.val();

        // ---- Reads: select the function, then the register; one at a time ----
        self.rd_idle.next = !self.rd_pick.q.val() & !self.rd_choose.q.val() & !self.rd_valid.q.val();
        self.ar.m.ready.next = self.rd_idle.val();
        self.ar_top.next = self.ar.m.data.val().get_bits::<14>(18);
        self.ar_function.next = self.ar.m.data.val().get_bits::<2>(16);
        self.rd_pick.d.next = self.rd_idle.val() & self.ar.m.valid.val();
        if self.rd_idle.val() {
            self.rd_offset.d.next = self.ar.m.data.val().get_bits::<16>(0);
            self.rd_function.d.next = bits::<4>(1) << self.ar_function.val();
            self.rd_known.d.next = !self.ar_top.val().any();
        }
        self.rd_choose.d.next = self.rd_pick.q.val();
        for i in 0..4 {
            if self.rd_function.q.val().get_bit(i) {
                self.p_sq_lo.d.next = self.sq_lo[i].q.val();
                self.p_sq_hi.d.next = self.sq_hi[i].q.val();
                self.p_cq_lo.d.next = self.cq_lo[i].q.val();
                self.p_cq_hi.d.next = self.cq_hi[i].q.val();
                self.p_log_size.d.next = self.log_size[i].q.val();
                self.p_on.d.next = self.on.q.val().get_bit(i);
                self.p_busy.d.next = self.reset_busy.val().get_bit(i);
            }
        }
        self.state_bits.next = bit_cast::<32, 1>(self.p_on.q.val().into()) | (bit_cast::<32, 1>(self.p_busy.q.val().into()) << 1);
        if self.rd_choose.q.val() {
            self.rd_valid.d.next = true;
            self.rd_data.d.next = bits::<32>(0);
            if self.rd_offset.q.val() == self.at[0].val() {
                self.rd_data.d.next = self.magic.val();
            }
            if self.rd_offset.q.val() == self.at[1].val() {
                self.rd_data.d.next = self.version.val();
            }
            for i in 0..4 {
                if self.rd_offset.q.val() == self.at[2 + i].val() {
                    self.rd_data.d.next = self.caps[i].val();
                }
            }
            if (self.rd_offset.q.val() == self.at[6].val()) | (self.rd_offset.q.val() == self.at[7].val()) {
                self.rd_data.d.next = self.state_bits.val();
            }
            if self.rd_offset.q.val() == self.at[8].val() {
                self.rd_data.d.next = self.p_sq_lo.q.val();
            }
            if self.rd_offset.q.val() == self.at[9].val() {
                self.rd_data.d.next = self.p_sq_hi.q.val();
            }
            if self.rd_offset.q.val() == self.at[10].val() {
                self.rd_data.d.next = self.p_cq_lo.q.val();
            }
            if self.rd_offset.q.val() == self.at[11].val() {
                self.rd_data.d.next = self.p_cq_hi.q.val();
            }
            if self.rd_offset.q.val() == self.at[12].val() {
                self.rd_data.d.next = bit_cast::<32, 4>(self.p_log_size.q.val());
            }
            if self.rd_offset.q.val() == self.at[14].val() {
                self.rd_data.d.next = self.tick.val();
            }
            if !self.rd_known.q.val() {
                self.rd_data.d.next = bits::<32>(0);
            }
        }
        if self.rd_valid.q.val() & self.r_ready.val() {
            self.rd_valid.d.next = false;
        }
        self.r_valid.next = self.rd_valid.q.val();
        self.r_data.next = self.rd_data.q.val();
        self.r_resp.next = bits::<2>(0);
        if self.reset.val() {
            self.on.d.next = bits::<4>(0);
            self.pulse.d.next = bits::<4>(0);
            self.wr_go.d.next = false;
            self.b_pending.d.next = false;
            self.rd_pick.d.next = false;
            self.rd_choose.d.next = false;
            self.rd_valid.d.next = false;
        }
    }
}
