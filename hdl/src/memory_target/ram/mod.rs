//! The target's memory: RAM of the FPGA behind the message ports of the DMA blocks. See README.md.
#[cfg(test)]
mod tests;

use crate::bus::{AxisSink, MsgSink, MsgSrc};
use crate::msg::{PayCmd, PayDone, RdCmd, RdRow, WrCmd, WrDone, WrSmall};
use crate::prim::arb::RrPick;
use crate::prim::byte_ram::ByteRam;
use crate::prim::pack::Gather;
use crate::prim::rotate::ByteRotate;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// All lanes of a beat.
const LANES: u64 = 0xff;
/// Last word of a row of 64 bytes.
const LAST_WORD: u64 = 7;

/// What the machine does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    Idle,
    /// The command of the chosen port is taken.
    Take,
    Payload,
    Row,
    /// The last word of the row is on its way.
    RowEnd,
    Write,
    Small,
}

/// `2^A` rows of 8 bytes. One command at a time, ports in turn; every answer has a register of its own, so that a client that
/// does not take it stops only itself.
#[derive(LogicBlock, Default)]
pub struct Memory<const A: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; the contents stay.
    pub reset: Signal<In, Bit>,
    /// Payload to the assembly buffer, as of `host/dma_rd`.
    pub s_pay: MsgSink<PayCmd>,
    pub m_pay_done: MsgSrc<PayDone>,
    pub asm_we: Signal<Out, Bits<8>>,
    pub asm_row1: Signal<Out, Bits<8>>,
    pub asm_addr: Signal<Out, Bits<13>>,
    pub asm_data: Signal<Out, Bits<64>>,
    /// One 64-byte row each.
    pub s_rd: MsgSink<RdCmd>,
    pub m_rd: MsgSrc<RdRow>,
    /// Received payload, as of `host/dma_wr`: its beats are those up to `last`.
    pub s_cmd: MsgSink<WrCmd>,
    pub s_data: AxisSink<64, 8>,
    pub m_cmd_done: MsgSrc<WrDone>,
    /// Small writes of 8 to 64 bytes.
    pub s_small: [MsgSink<WrSmall>; 2],
    pub m_small_done: [MsgSrc<WrDone>; 2],
    ram: ByteRam<64, 8, A>,
    /// Requests: payload, rows, writes, small writes.
    pick: RrPick<5>,
    chosen: DFF<Bits<5>>,
    state: DFF<State>,
    addr: DFF<Bits<A>>,
    /// Beats to come behind this one.
    left: DFF<Bits<10>>,
    first: DFF<Bit>,
    slot: DFF<Bits<8>>,
    asm_row: DFF<Bits<13>>,
    shift: DFF<Bits<3>>,
    head: DFF<Bits<8>>,
    tail: DFF<Bits<8>>,
    word: DFF<Bits<3>>,
    tag: DFF<Bits<8>>,
    // A beat read, one cycle behind its address.
    read: DFF<Bit>,
    read_mask: DFF<Bits<8>>,
    read_last: DFF<Bit>,
    turn: ByteRotate<64, 8, 3>,
    // And on the assembly port.
    we: DFF<Bits<8>>,
    row1: DFF<Bits<8>>,
    at: DFF<Bits<13>>,
    data: DFF<Bits<64>>,
    row: DFF<Bits<512>>,
    row_shift: DFF<Bit>,
    rd_tag: DFF<Bits<8>>,
    pay_busy: DFF<Bit>,
    row_busy: DFF<Bit>,
    cmd_busy: DFF<Bit>,
    small_busy: [DFF<Bit>; 2],
    small_told: [DFF<WrDone>; 2],
    told: Signal<Local, WrDone>,
    wanted: Gather<5>,
    from: Signal<Local, Bits<64>>,
    less: Signal<Local, Bits<13>>,
    span: Signal<Local, Bits<13>>,
    base: Signal<Local, Bits<18>>,
    low: Signal<Local, Bits<3>>,
    high: Signal<Local, Bits<3>>,
    behind: Signal<Local, Bits<3>>,
    ones: Signal<Local, Bits<8>>,
    mask: Signal<Local, Bits<8>>,
    twice: Signal<Local, Bits<16>>,
    ends: Signal<Local, Bit>,
    little: Signal<Local, WrSmall>,
    small_word: Signal<Local, Bits<64>>,
    small_less: Signal<Local, Bits<7>>,
}

#[kernel]
impl<const A: usize> Logic for Memory<A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, chosen, state, addr, left, first, slot, asm_row, shift, head, tail, word, tag);
        dff_setup!(self, clock, read, read_mask, read_last, we, row1, at, data, row, row_shift, rd_tag, pay_busy, row_busy, cmd_busy);
        clock!(self, clock, ram);
        // Answers.
        self.m_pay_done.data.next.slot = self.slot.q.val();
        self.m_pay_done.data.next.err = false;
        self.m_pay_done.valid.next = self.pay_busy.q.val();
        if self.m_pay_done.ready.val() {
            self.pay_busy.d.next = false;
        }
        self.m_rd.data.next.tag = self.rd_tag.q.val();
        self.m_rd.data.next.row = bits::<3>(0);
        self.m_rd.data.next.last = true;
        self.m_rd.data.next.err = false;
        self.m_rd.data.next.data = self.row.q.val();
        self.m_rd.valid.next = self.row_busy.q.val();
        if self.m_rd.ready.val() {
            self.row_busy.d.next = false;
        }
        self.m_cmd_done.data.next.tag = self.tag.q.val();
        self.m_cmd_done.data.next.err = false;
        self.m_cmd_done.valid.next = self.cmd_busy.q.val();
        if self.m_cmd_done.ready.val() {
            self.cmd_busy.d.next = false;
        }
        for i in 0..2 {
            self.small_busy[i].clock.next = self.clock.val();
            self.small_told[i].clock.next = self.clock.val();
            self.small_busy[i].d.next = self.small_busy[i].q.val() & !self.m_small_done[i].ready.val();
            self.small_told[i].d.next = self.small_told[i].q.val();
            self.m_small_done[i].data.next = self.small_told[i].q.val();
            self.m_small_done[i].valid.next = self.small_busy[i].q.val();
        }

        // Who is next: chosen in one cycle, taken in the next, so that no port's ready follows another's valid.
        self.wanted.x[0].next = self.s_pay.valid.val() & !self.pay_busy.q.val();
        self.wanted.x[1].next = self.s_rd.valid.val() & !self.row_busy.q.val();
        self.wanted.x[2].next = self.s_cmd.valid.val() & !self.cmd_busy.q.val();
        self.wanted.x[3].next = self.s_small[0].valid.val() & !self.small_busy[0].q.val();
        self.wanted.x[4].next = self.s_small[1].valid.val() & !self.small_busy[1].q.val();
        self.pick.req.next = self.wanted.y.val();
        self.pick.last.next = self.chosen.q.val();
        self.s_pay.ready.next = (self.state.q.val() == State::Take) & self.chosen.q.val().get_bit(0);
        self.s_rd.ready.next = (self.state.q.val() == State::Take) & self.chosen.q.val().get_bit(1);
        self.s_cmd.ready.next = (self.state.q.val() == State::Take) & self.chosen.q.val().get_bit(2);
        self.s_data.ready.next = self.state.q.val() == State::Write;
        // A small write stays at its port until its last word is written.
        self.s_small[0].ready.next = (self.state.q.val() == State::Small) & self.chosen.q.val().get_bit(3) & !self.left.q.val().any();
        self.s_small[1].ready.next = (self.state.q.val() == State::Small) & self.chosen.q.val().get_bit(4) & !self.left.q.val().any();
        self.little.next = self.s_small[0].data.val();
        if self.chosen.q.val().get_bit(4) {
            self.little.next = self.s_small[1].data.val();
        }
        match self.word.q.val().index() {
            0 => self.small_word.next = self.little.val().data.get_bits::<64>(0),
            1 => self.small_word.next = self.little.val().data.get_bits::<64>(64),
            2 => self.small_word.next = self.little.val().data.get_bits::<64>(128),
            3 => self.small_word.next = self.little.val().data.get_bits::<64>(192),
            4 => self.small_word.next = self.little.val().data.get_bits::<64>(256),
            5 => self.small_word.next = self.little.val().data.get_bits::<64>(320),
            6 => self.small_word.next = self.little.val().data.get_bits::<64>(384),
            _ => self.small_word.next = self.little.val().data.get_bits::<64>(448),
        }
        self.told.next.tag = self.little.val().tag;
        self.told.next.err = false;
        self.small_less.next = self.little.val().len - 1;

        // The chosen command's first byte and, of a payload read, its place in the assembly buffer.
        self.from.next = self.s_pay.data.val().iova;
        self.less.next = self.s_pay.data.val().len - 1;
        if self.chosen.q.val().get_bit(1) {
            self.from.next = self.s_rd.data.val().iova;
        } else if self.chosen.q.val().get_bit(2) {
            self.from.next = self.s_cmd.data.val().iova;
        } else if !self.chosen.q.val().get_bit(0) {
            self.from.next = self.little.val().iova;
        }
        self.low.next = self.from.val().get_bits::<3>(0);
        self.span.next = self.less.val() + bit_cast::<13, 3>(self.low.val());
        self.high.next = self.span.val().get_bits::<3>(0);
        self.behind.next = !self.high.val();
        self.base.next = self.s_pay.data.val().dst - bit_cast::<18, 3>(self.low.val());

        // The memory: one row a cycle.
        self.ram.addr.next = self.addr.q.val();
        self.ram.we.next = bits::<8>(0);
        self.ram.write_data.next = self.s_data.data.val();
        if (self.state.q.val() == State::Write) & self.s_data.valid.val() {
            self.ram.we.next = self.s_data.keep.val();
        }
        if self.state.q.val() == State::Small {
            self.ram.write_data.next = self.small_word.val();
            self.ram.we.next = bits::<8>(LANES);
        }
        self.ends.next = !self.left.q.val().any();
        self.ones.next = bits::<8>(LANES);
        self.mask.next = self.ones.val();
        if self.first.q.val() {
            self.mask.next = self.mask.val() & self.head.q.val();
        }
        if self.ends.val() {
            self.mask.next = self.mask.val() & self.tail.q.val();
        }
        self.read.d.next = self.state.q.val() == State::Payload;
        self.read_mask.d.next = self.mask.val();
        self.read_last.d.next = self.ends.val();

        // Lanes turned to those of the assembly buffer; what wraps goes to the next row.
        self.turn.x.next = self.ram.read_data.val();
        self.turn.n.next = self.shift.q.val();
        self.data.d.next = self.turn.y.val();
        self.twice.next = bit_cast::<16, 8>(self.read_mask.q.val()) << self.shift.q.val();
        self.we.d.next = bits::<8>(0);
        self.row1.d.next = self.twice.val().get_bits::<8>(8);
        self.at.d.next = self.asm_row.q.val();
        if self.read.q.val() {
            self.we.d.next = self.twice.val().get_bits::<8>(0) | self.twice.val().get_bits::<8>(8);
            self.asm_row.d.next = self.asm_row.q.val() + 1;
            if self.read_last.q.val() {
                self.pay_busy.d.next = true;
            }
        }
        self.asm_we.next = self.we.q.val();
        self.asm_row1.next = self.row1.q.val();
        self.asm_addr.next = self.at.q.val();
        self.asm_data.next = self.data.q.val();

        // A row is shifted together.
        self.row_shift.d.next = self.state.q.val() == State::Row;
        if self.row_shift.q.val() {
            self.row.d.next = (self.row.q.val() >> 64) | (bit_cast::<512, 64>(self.ram.read_data.val()) << 448);
        }

        match self.state.q.val() {
            State::Idle => {
                if self.wanted.y.val().any() & !self.read.q.val() {
                    self.chosen.d.next = self.pick.grant.val();
                    self.state.d.next = State::Take;
                }
            }
            State::Take => {
                self.addr.d.next = self.from.val().get_bits::<A>(3);
                self.first.d.next = true;
                self.word.d.next = bits::<3>(0);
                if self.chosen.q.val().get_bit(0) {
                    self.left.d.next = self.span.val().get_bits::<10>(3);
                    self.slot.d.next = self.s_pay.data.val().slot;
                    self.shift.d.next = self.base.val().get_bits::<3>(0);
                    self.asm_row.d.next = self.base.val().get_bits::<13>(3);
                    self.head.d.next = self.ones.val() << self.low.val();
                    self.tail.d.next = self.ones.val() >> self.behind.val();
                    self.state.d.next = State::Payload;
                } else if self.chosen.q.val().get_bit(1) {
                    self.left.d.next = bits::<10>(LAST_WORD);
                    self.rd_tag.d.next = self.s_rd.data.val().tag;
                    self.state.d.next = State::Row;
                } else if self.chosen.q.val().get_bit(2) {
                    self.tag.d.next = self.s_cmd.data.val().tag;
                    self.state.d.next = State::Write;
                } else {
                    self.left.d.next = bit_cast::<10, 4>(self.small_less.val().get_bits::<4>(3));
                    self.state.d.next = State::Small;
                }
            }
            State::Payload => {
                self.first.d.next = false;
                self.addr.d.next = self.addr.q.val() + 1;
                self.left.d.next = self.left.q.val() - 1;
                if self.ends.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Row => {
                self.addr.d.next = self.addr.q.val() + 1;
                self.left.d.next = self.left.q.val() - 1;
                if self.ends.val() {
                    self.state.d.next = State::RowEnd;
                }
            }
            State::RowEnd => {
                self.row_busy.d.next = true;
                self.state.d.next = State::Idle;
            }
            State::Write => {
                if self.s_data.valid.val() {
                    self.addr.d.next = self.addr.q.val() + 1;
                    if self.s_data.last.val() {
                        self.cmd_busy.d.next = true;
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Small => {
                self.addr.d.next = self.addr.q.val() + 1;
                self.word.d.next = self.word.q.val() + 1;
                self.left.d.next = self.left.q.val() - 1;
                if self.ends.val() {
                    if self.chosen.q.val().get_bit(3) {
                        self.small_busy[0].d.next = true;
                        self.small_told[0].d.next = self.told.val();
                    } else {
                        self.small_busy[1].d.next = true;
                        self.small_told[1].d.next = self.told.val();
                    }
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.read.d.next = false;
            self.row_shift.d.next = false;
            self.we.d.next = bits::<8>(0);
            self.pay_busy.d.next = false;
            self.row_busy.d.next = false;
            self.cmd_busy.d.next = false;
            for i in 0..2 {
                self.small_busy[i].d.next = false;
            }
        }
    }
}
