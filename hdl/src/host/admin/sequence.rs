//! The order of the program: which instruction is next.
use super::isa::{Inst, Op, Step};
use super::program::{self, Plan};
use crate::prim::rom::Rom;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// The program and the place in it.
#[derive(LogicBlock, Default)]
pub(super) struct Sequence {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Of the engine: the next instruction is read (behind a branch that is taken), it has been read, the present one ends.
    pub fetch: Signal<In, Bit>,
    pub decode: Signal<In, Bit>,
    pub ends: Signal<In, Bit>,
    /// What branches depend on: register `a`; it is `c`, it is less; the last access failed; the last word looked at by `Find` is an object.
    pub register: Signal<In, Bits<32>>,
    pub equal: Signal<In, Bit>,
    pub less: Signal<In, Bit>,
    pub failed: Signal<In, Bit>,
    pub hit: Signal<In, Bit>,
    /// The present instruction, and the place behind it.
    pub inst: Signal<Out, Inst>,
    pub step: Signal<Out, Bits<11>>,
    /// The next one has to be read: it is not the one behind.
    pub jumps: Signal<Out, Bit>,
    rom: Rom<Inst, 11>,
    pc: DFF<Bits<11>>,
    present: DFF<Inst>,
    op: Signal<Local, Bits<5>>,
    behind: Signal<Local, Bits<11>>,
    taken: Signal<Local, Bit>,
    returns: Signal<Local, Bit>,
}

impl Sequence {
    pub fn new(plan: &Plan) -> Self {
        Self { rom: microcode(plan), ..Self::default() }
    }
}

fn microcode(plan: &Plan) -> Rom<Inst, 11> {
    Rom::new(program::assemble(plan).iter().map(Step::encode).collect())
}

impl Default for Rom<Inst, 11> {
    fn default() -> Self {
        microcode(&Plan::new(program::Sizes::default(), [], []))
    }
}

#[kernel]
impl Logic for Sequence {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pc, present);
        clock!(self, clock, rom);
        self.inst.next = self.present.q.val();
        self.behind.next = self.pc.q.val() + 1;
        self.step.next = self.behind.val();
        // The next instruction in order is there when this one is done; only a branch that is taken fetches.
        self.rom.read_addr.next = self.behind.val();
        if self.fetch.val() {
            self.rom.read_addr.next = self.pc.q.val();
        }
        self.op.next = self.present.q.val().op;
        self.taken.next = false;
        match self.op.val().index() {
            Op::Beq => {
                self.taken.next = self.equal.val();
            }
            Op::Bne => {
                self.taken.next = !self.equal.val();
            }
            Op::Blt => {
                self.taken.next = self.less.val();
            }
            Op::Bge => {
                self.taken.next = !self.less.val();
            }
            Op::Berr => {
                self.taken.next = self.failed.val();
            }
            Op::Jal => {
                self.taken.next = true;
            }
            Op::Find => {
                self.taken.next = self.hit.val();
            }
            _ => {}
        }
        self.returns.next = self.op.val() == Op::Jr as u64;
        self.jumps.next = self.taken.val() | self.returns.val();
        if self.ends.val() {
            self.pc.d.next = self.behind.val();
            if self.taken.val() {
                self.pc.d.next = self.present.q.val().target;
            }
            if self.returns.val() {
                self.pc.d.next = self.register.val().get_bits::<11>(0);
            }
        }
        if self.decode.val() | self.ends.val() {
            self.present.d.next = self.rom.read_data.val();
        }
        if self.reset.val() {
            self.pc.d.next = bits::<11>(0);
        }
    }
}
