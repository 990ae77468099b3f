//! The admin engine's arithmetic: combinational, between registers of the engine.

use super::isa::{Inst, Op};
use crate::prim::sum::{Diff, Sum};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// `y` follows `isa::Op` for the operations with a result; for others it is the first operand.
#[derive(LogicBlock, Default)]
pub(super) struct Alu {
    pub inst: Signal<In, Inst>,
    /// Register `a`, register `b`, and `b` or the constant.
    pub a: Signal<In, Bits<32>>,
    pub b: Signal<In, Bits<32>>,
    pub c: Signal<In, Bits<32>>,
    pub y: Signal<Out, Bits<32>>,
    /// `a == c`, `a < c`.
    pub eq: Signal<Out, Bit>,
    pub lt: Signal<Out, Bit>,
    op: Signal<Local, Bits<5>>,
    field: Signal<Local, Bit>,
    by: Signal<Local, Bits<5>>,
    from: Signal<Local, Bits<32>>,
    left: Signal<Local, Bits<32>>,
    right: Signal<Local, Bits<32>>,
    mask: Signal<Local, Bits<32>>,
    rest: Signal<Local, Bits<32>>,
    none: Signal<Local, Bits<32>>,
    adds: Signal<Local, Bits<32>>,
    subtracts: Signal<Local, Bits<32>>,
    other: Signal<Local, Bits<32>>,
    sum: Sum<32>,
    difference: Diff<32>,
}

#[kernel]
impl Logic for Alu {
    #[hdl_gen]
    fn update(&mut self) {
        // Ext and Ins (0, 1) shift by a constant, the others by their second operand.
        self.field.next = self.inst.val().op < Op::Add as u64;
        self.by.next = self.c.val().get_bits::<5>(0);
        self.from.next = self.a.val();
        if self.field.val() {
            self.by.next = self.inst.val().sh;
            self.from.next = self.b.val();
        }
        self.left.next = self.from.val() << self.by.val();
        self.right.next = self.a.val() >> self.by.val();
        self.mask.next = self.inst.val().imm;
        self.rest.next = !self.mask.val();
        self.sum.a.next = self.a.val();
        self.sum.b.next = self.c.val();
        self.difference.a.next = self.a.val();
        self.difference.b.next = self.c.val();
        self.eq.next = self.a.val() == self.c.val();
        self.lt.next = self.difference.below.val();
        self.op.next = self.inst.val().op;
        match self.op.val().index() {
            Op::Ext => {
                self.other.next = self.right.val() & self.mask.val();
            }
            Op::Ins => {
                self.other.next = (self.a.val() & self.rest.val()) | (self.left.val() & self.mask.val());
            }
            Op::Or => {
                self.other.next = self.a.val() | self.c.val();
            }
            Op::Shl => {
                self.other.next = self.left.val();
            }
            Op::Shr => {
                self.other.next = self.right.val();
            }
            Op::Lt => {
                self.other.next = bit_cast::<32, 1>(self.difference.below.val().into());
            }
            Op::And => {
                self.other.next = self.a.val() & self.c.val();
            }
            _ => {
                self.other.next = self.a.val();
            }
        }
        // The sums come late: nothing but a gate stands behind them.
        self.none.next = bits::<32>(0);
        self.adds.next = self.none.val();
        self.subtracts.next = self.none.val();
        if (self.op.val() == Op::Add as u64) | (self.op.val() == Op::Ld as u64) | (self.op.val() == Op::St as u64) | (self.op.val() == Op::Find as u64) {
            self.adds.next = !self.none.val();
            self.other.next = bits::<32>(0);
        }
        if self.op.val() == Op::Sub as u64 {
            self.subtracts.next = !self.none.val();
            self.other.next = bits::<32>(0);
        }
        self.y.next = (self.sum.y.val() & self.adds.val()) | (self.difference.y.val() & self.subtracts.val()) | self.other.val();
    }
}
