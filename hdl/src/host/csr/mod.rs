//! Register window of the functions: AXI4-Lite slave, decode from `ferric_abi::csr`. See README.md.

#[cfg(test)]
mod tests;
mod turn;

use crate::prim::arb::BinToOneHot;
use crate::prim::ram::RamAsync2;
use crate::stream::MsgSlice;
use ferric_abi::csr;
use ferric_hdl_derive::{kernel, BlockNew};
pub use ferric_model::admin::word;
use rust_hdl::prelude::*;
use turn::Turns;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("aw_valid", &["b_valid"]), // one write answered before the next takes effect
    ("w_valid", &["b_valid"]),
    ("ar_valid", &["r_valid"]),
    // The admin engine looks and says what it has done: it is never held up here.
    ("look_function", &[]),
    ("look_word", &[]),
    ("served", &[]),
    ("again", &[]),
    ("reset_done", &[]),
];

/// Registers of the row begin here; the word is the offset from it in words.
const ROW: u32 = csr::ADMIN_SQ_LO;
/// Bits that are kept of ADMIN_SIZE and of ADMIN_DOORBELL.
const SIZE_BITS: u64 = 0xf;
const PRODUCER_BITS: u64 = 0xffff;
/// `ROW` without the bits that say which word.
const ROW_PAGE: u64 = ROW as u64 >> 5;
const _: () = assert!(ROW % 32 == 0 && csr::ADMIN_SIZE == ROW + 4 * word::SIZE && csr::ADMIN_DOORBELL == ROW + 4 * word::PRODUCER);
const _: () = assert!(csr::ADMIN_SQ_HI == ROW + 4 && csr::ADMIN_CQ_LO == ROW + 4 * word::CQ && csr::ADMIN_CQ_HI == csr::ADMIN_CQ_LO + 4);

/// A register write.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct WriteData {
    data: Bits<32>,
    strb: Bits<4>,
}

/// AXI4-Lite slave of 32 data bits; address = function << 16 | offset. `NF` functions = 2^`LF`, 2^`LG` words of registers, 8 for each.
///
/// `caps`: the capability words CAPS0 to CAPS3.
#[derive(LogicBlock, BlockNew)]
#[given(caps: [u32; 4])]
#[demand(NF == 1 << LF && LG == LF + 3 && LF > 0 && LF <= 12, "2^LF functions of 8 words")]
pub struct Csr<const NF: usize, const LF: usize, const LG: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; all registers to zero. Nothing is taken until that is done (2^`LG` cycles).
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
    /// The admin engine's view: `look` is word `look_word` (see [`word`]) of function `look_function` in the cycle before.
    pub look_function: Signal<In, Bits<LF>>,
    pub look_word: Signal<In, Bits<3>>,
    pub look: Signal<Out, Bits<32>>,
    /// Pulses: the engine has taken up the function whose turn it is; `look_function` is to have another turn; its soft reset is done.
    pub served: Signal<In, Bit>,
    pub again: Signal<In, Bit>,
    pub reset_done: Signal<In, Bit>,
    aw: MsgSlice<Bits<32>>,
    w: MsgSlice<WriteData>,
    ar: MsgSlice<Bits<32>>,
    /// What is kept of the functions: 8 words each.
    rows: RamAsync2<Bits<32>, LG>,
    clearing: DFF<Bit>,
    sweep: DFF<Bits<LG>>,
    on: DFF<Bits<NF>>,
    resetting: DFF<Bits<NF>>,
    written: BinToOneHot<NF, LF>,
    renewed: BinToOneHot<NF, LF>,
    turns: Turns<NF, LF>,
    // A write between its decode and its effect.
    wr_go: DFF<Bit>,
    wr_offset: DFF<Bits<16>>,
    wr_function: DFF<Bits<LF>>,
    wr_data: DFF<Bits<32>>,
    b_pending: DFF<Bit>,
    // A read: the function's word and state, then the answer.
    rd_pick: DFF<Bit>,
    rd_choose: DFF<Bit>,
    rd_valid: DFF<Bit>,
    rd_offset: DFF<Bits<16>>,
    rd_function: DFF<Bits<LF>>,
    rd_known: DFF<Bit>,
    rd_data: DFF<Bits<32>>,
    rd_word: DFF<Bits<32>>,
    rd_on: DFF<Bit>,
    rd_busy: DFF<Bit>,
    seen: DFF<Bits<32>>,
    #[init(Constant::new(u64::from(csr::MAGIC_VALUE).to_bits()))]
    magic: Constant<Bits<32>>,
    #[init(Constant::new(u64::from(csr::VERSION_VALUE).to_bits()))]
    version: Constant<Bits<32>>,
    #[init(caps.map(|word| Constant::new(u64::from(word).to_bits())))]
    caps: [Constant<Bits<32>>; 4],
    #[init(Constant::new(NF.to_bits()))]
    functions: Constant<Bits<16>>,
    aw_number: Signal<Local, Bits<16>>,
    ar_number: Signal<Local, Bits<16>>,
    w_word: Signal<Local, WriteData>,
    accept: Signal<Local, Bit>,
    place: Signal<Local, Bits<3>>,
    goes_to: Signal<Local, Bits<3>>,
    in_row: Signal<Local, Bit>,
    control: Signal<Local, Bit>,
    resets: Signal<Local, Bit>,
    rd_idle: Signal<Local, Bit>,
    state_bits: Signal<Local, Bits<32>>,
    look_bits: Signal<Local, Bits<32>>,
    offset: Signal<Local, Bits<16>>,
}

const _: () = assert!(csr::REGISTERS.len() == 15, "a register of the abi has no place here");

#[kernel]
impl<const NF: usize, const LF: usize, const LG: usize> Logic for Csr<NF, LF, LG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, clearing, sweep, on, resetting, wr_go, wr_offset, wr_function, wr_data, b_pending, seen);
        dff_setup!(self, clock, rd_pick, rd_choose, rd_valid, rd_offset, rd_function, rd_known, rd_data, rd_word, rd_on, rd_busy);
        clock!(self, clock, aw, w, ar, rows, turns);
        self.aw.reset.next = self.reset.val();
        self.w.reset.next = self.reset.val();
        self.ar.reset.next = self.reset.val();
        self.turns.reset.next = self.reset.val();
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
        self.accept.next = self.aw.m.valid.val() & self.w.m.valid.val() & (!self.b_pending.q.val() | self.b_ready.val()) & !self.clearing.q.val();
        self.aw.m.ready.next = self.accept.val();
        self.w.m.ready.next = self.accept.val();
        self.w_word.next = self.w.m.data.val();
        self.aw_number.next = self.aw.m.data.val().get_bits::<16>(16);
        // Whole words of functions that have a window; the rest is answered and forgotten.
        self.wr_go.d.next = self.accept.val() & (self.aw_number.val() < self.functions.val()) & self.w_word.val().strb.all();
        self.wr_offset.d.next = self.aw.m.data.val().get_bits::<16>(0);
        self.wr_function.d.next = self.aw_number.val().get_bits::<LF>(0);
        self.wr_data.d.next = self.w_word.val().data;
        if self.accept.val() {
            self.b_pending.d.next = true;
        } else if self.b_ready.val() {
            self.b_pending.d.next = false;
        }
        self.b_valid.next = self.b_pending.q.val();
        self.b_resp.next = bits::<2>(0);
        self.offset.next = self.wr_offset.q.val();
        self.place.next = self.offset.val().get_bits::<3>(2);
        self.in_row.next = self.wr_go.q.val() & (self.offset.val().get_bits::<11>(5) == ROW_PAGE) & (self.offset.val().get_bits::<2>(0) == 0) & (self.place.val() <= word::PRODUCER as u64);
        self.control.next = self.wr_go.q.val() & (self.offset.val() == csr::CONTROL as u64);
        self.resets.next = self.control.val() & self.wr_data.q.val().get_bit(1);
        self.rows.write_en.next = self.in_row.val() | self.resets.val() | self.clearing.q.val();
        self.rows.write_data.next = self.wr_data.q.val();
        if self.place.val() == word::SIZE as u64 {
            self.rows.write_data.next = self.wr_data.q.val() & SIZE_BITS;
        }
        if self.place.val() == word::PRODUCER as u64 {
            self.rows.write_data.next = self.wr_data.q.val() & PRODUCER_BITS;
        }
        // The function's ring begins anew.
        self.goes_to.next = self.place.val();
        if self.resets.val() {
            self.goes_to.next = bits::<3>(word::PRODUCER as u64);
            self.rows.write_data.next = bits::<32>(0);
        }
        self.rows.write_addr.next = (bit_cast::<LG, LF>(self.wr_function.q.val()) << 3) | bit_cast::<LG, 3>(self.goes_to.val());
        if self.clearing.q.val() {
            self.rows.write_addr.next = self.sweep.q.val();
            self.rows.write_data.next = bits::<32>(0);
            self.sweep.d.next = self.sweep.q.val() + 1;
            self.clearing.d.next = !self.sweep.q.val().all();
        }
        self.written.x.next = self.wr_function.q.val();
        self.written.en.next = self.control.val();
        self.renewed.x.next = self.look_function.val();
        self.renewed.en.next = self.reset_done.val();
        self.on.d.next = self.on.q.val() & !self.written.y.val();
        self.resetting.d.next = self.resetting.q.val() & !self.renewed.y.val();
        // A reset that is asked for while one ends is one more.
        if self.wr_data.q.val().get_bit(1) {
            self.resetting.d.next = (self.resetting.q.val() & !self.renewed.y.val()) | self.written.y.val();
        } else if self.wr_data.q.val().get_bit(0) {
            self.on.d.next = self.on.q.val() | self.written.y.val();
        }

        // ---- The admin engine ----
        self.turns.told.next = self.control.val() | (self.in_row.val() & (self.place.val() == word::PRODUCER as u64));
        self.turns.told_by.next = self.wr_function.q.val();
        self.turns.served.next = self.served.val();
        self.turns.again.next = self.again.val();
        self.turns.again_by.next = self.look_function.val();
        self.rows.read_addr1.next = (bit_cast::<LG, LF>(self.look_function.val()) << 3) | bit_cast::<LG, 3>(self.look_word.val());
        self.look_bits.next =
            bit_cast::<32, 1>(self.on.q.val().get_bit(self.look_function.val().index()).into()) | (bit_cast::<32, 1>(self.resetting.q.val().get_bit(self.look_function.val().index()).into()) << 1);
        self.seen.d.next = self.rows.read_data1.val();
        if self.look_word.val() == word::STATE as u64 {
            self.seen.d.next = self.look_bits.val();
        }
        if self.look_word.val() == word::TURN as u64 {
            self.seen.d.next = bit_cast::<32, LF>(self.turns.turn.val()) | (bit_cast::<32, 1>(self.turns.due.val().into()) << 31);
        }
        self.look.next = self.seen.q.val();

        // ---- Reads: select the function's word, then the register; one at a time ----
        self.rd_idle.next = !self.rd_pick.q.val() & !self.rd_choose.q.val() & !self.rd_valid.q.val() & !self.clearing.q.val();
        self.ar.m.ready.next = self.rd_idle.val();
        self.ar_number.next = self.ar.m.data.val().get_bits::<16>(16);
        self.rd_pick.d.next = self.rd_idle.val() & self.ar.m.valid.val();
        if self.rd_idle.val() {
            self.rd_offset.d.next = self.ar.m.data.val().get_bits::<16>(0);
            self.rd_function.d.next = self.ar_number.val().get_bits::<LF>(0);
            self.rd_known.d.next = self.ar_number.val() < self.functions.val();
        }
        self.rd_choose.d.next = self.rd_pick.q.val();
        self.rows.read_addr0.next = (bit_cast::<LG, LF>(self.rd_function.q.val()) << 3) | bit_cast::<LG, 3>(self.rd_offset.q.val().get_bits::<3>(2));
        self.rd_word.d.next = self.rows.read_data0.val();
        self.rd_on.d.next = self.on.q.val().get_bit(self.rd_function.q.val().index());
        self.rd_busy.d.next = self.resetting.q.val().get_bit(self.rd_function.q.val().index());
        self.state_bits.next = bit_cast::<32, 1>(self.rd_on.q.val().into()) | (bit_cast::<32, 1>(self.rd_busy.q.val().into()) << 1);
        if self.rd_choose.q.val() {
            self.rd_valid.d.next = true;
            match self.rd_offset.q.val().index() {
                csr::MAGIC => self.rd_data.d.next = self.magic.val(),
                csr::VERSION => self.rd_data.d.next = self.version.val(),
                csr::CAPS0 => self.rd_data.d.next = self.caps[0].val(),
                csr::CAPS1 => self.rd_data.d.next = self.caps[1].val(),
                csr::CAPS2 => self.rd_data.d.next = self.caps[2].val(),
                csr::CAPS3 => self.rd_data.d.next = self.caps[3].val(),
                csr::CONTROL => self.rd_data.d.next = self.state_bits.val(),
                csr::STATUS => self.rd_data.d.next = self.state_bits.val(),
                csr::ADMIN_SQ_LO => self.rd_data.d.next = self.rd_word.q.val(),
                csr::ADMIN_SQ_HI => self.rd_data.d.next = self.rd_word.q.val(),
                csr::ADMIN_CQ_LO => self.rd_data.d.next = self.rd_word.q.val(),
                csr::ADMIN_CQ_HI => self.rd_data.d.next = self.rd_word.q.val(),
                csr::ADMIN_SIZE => self.rd_data.d.next = self.rd_word.q.val(),
                csr::TICK => self.rd_data.d.next = self.tick.val(),
                _ => self.rd_data.d.next = bits::<32>(0),
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
            self.clearing.d.next = true;
            self.sweep.d.next = bits::<LG>(0);
            self.on.d.next = bits::<NF>(0);
            self.resetting.d.next = bits::<NF>(0);
            self.wr_go.d.next = false;
            self.b_pending.d.next = false;
            self.rd_pick.d.next = false;
            self.rd_choose.d.next = false;
            self.rd_valid.d.next = false;
        }
    }
}
