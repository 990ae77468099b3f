//! Which function is served: they take turns (`host/csr`).

use super::*;

impl Program {
    /// How many functions there are.
    pub(super) fn functions(&self) -> u32 {
        1 << self.share
    }

    /// Takes up the function whose turn it is: FN. Goes on with the first command of its ring, HEAD, or at `soft_reset`, and comes back to `idle` when that is
    /// done. Scratch word FN is the consumer index.
    pub(super) fn turns(&mut self, soft_reset: Label) {
        let look = self.asm.label();
        self.asm.jump(look);
        self.asm.bind(self.idle);
        // There may be more in its ring, and nothing more is told of it.
        self.asm.act(Op::Out, ZERO, ZERO, output::AGAIN);
        self.asm.bind(look);
        self.asm.act_csr(FN, word::TURN);
        self.asm.ext(T, FN, word::DUE, 1);
        self.asm.branch(Op::Beq, T, 0, look);
        self.asm.ext(FN, FN, 0, FUNCTION);
        self.asm.op(Op::Function, ZERO, FN, 0);
        // Before its registers are read: a change behind that is told anew.
        self.asm.act(Op::Out, ZERO, ZERO, output::SERVED);
        // Before the state: a reset takes the producer index back at the same time, and an index of the next life beside the head of this one would be a
        // command that nobody has posted.
        self.asm.act_csr(PROD, word::PRODUCER);
        self.asm.act_csr(W, word::STATE);
        self.asm.ext(T, W, word::RESETTING, 1);
        self.asm.branch(Op::Bne, T, 0, soft_reset);
        self.asm.ext(T, W, word::ENABLED, 1);
        self.asm.branch(Op::Beq, T, 0, look);
        self.asm.op(Op::Ld, HEAD, FN, 0);
        self.asm.branch(Op::Beq, HEAD, PROD, look);
    }
}

impl Asm {
    /// `d` = word `number` of the function's registers.
    pub(super) fn act_csr(&mut self, d: R, number: u32) {
        self.op(Op::Csr, d, ZERO, number);
    }
}
