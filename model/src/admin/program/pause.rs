//! What the card does with pause frames (docs/admin.md, SET_PAUSE): the only line of `space::PAUSE`. The block works meanwhile: the first word, which switches it on, is the first that is
//! cleared and the last that is written.

use super::*;
use ferric_abi::context::PauseCtx;
use ferric_abi::csr::space::PAUSE;

/// Words of the line and of the parameters.
const FIRST: u32 = 0;
const THRESHOLDS: u32 = 1;
const QUANTUM: u32 = 2;
const LIMITS: u32 = 3;
const WORDS: u32 = (PauseCtx::BYTES / 4) as u32;
/// The data path carries at most 512 bits in a cycle: a quantum has one cycle or more.
const LEAST_QUANTUM: u32 = 1 << 8;
/// Codes of `PauseCtx::send` are below this.
const KINDS_OF_PAUSE: u32 = 3;

fn of(name: &str) -> F {
    field(&PauseCtx::LAYOUT, name)
}

/// Where field `f` has its bits.
fn bits(f: F) -> u32 {
    f.mask << f.shift
}

impl Program {
    /// W: the first word, as it is to become.
    pub fn set_pause(&mut self) {
        let [ordered, writes, off] = std::array::from_fn(|_| self.asm.label());
        let obeys = bits(of("obey_link")) | bits(of("obey_priority"));
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadId, Op::Bne, ID, 0);
        self.asm.op(Op::And, W, p(FIRST as u8), !(bits(of("rsvd0")) | bits(of("rsvd1"))));
        self.get(V, W, of("send"));
        self.refuse(AdminStatus::BadParameter, Op::Bge, V, KINDS_OF_PAUSE);
        self.asm.op(Op::And, T, W, obeys);
        self.asm.op(Op::Or, U, T, V);
        self.asm.branch(Op::Beq, U, 0, off);
        self.get(U, p(QUANTUM as u8), of("quantum"));
        self.refuse(AdminStatus::BadParameter, Op::Blt, U, LEAST_QUANTUM);
        self.asm.branch(Op::Beq, T, 0, ordered);
        // Who has no priority would obey nothing, and nobody is held for ever.
        self.get(U, W, of("data"));
        self.refuse(AdminStatus::BadParameter, Op::Beq, U, 0);
        self.get(U, p(LIMITS as u8), of("obey_limit"));
        self.refuse(AdminStatus::BadParameter, Op::Beq, U, 0);
        self.asm.bind(ordered);
        self.asm.branch(Op::Beq, V, 0, writes);
        self.get(U, p(LIMITS as u8), of("send_limit"));
        self.refuse(AdminStatus::BadParameter, Op::Beq, U, 0);
        // Both at once would be on and off in turn.
        self.get(T, p(THRESHOLDS as u8), of("xoff"));
        self.get(U, p(THRESHOLDS as u8), of("xon"));
        self.refuse(AdminStatus::BadParameter, Op::Bge, T, U);
        self.asm.bind(writes);
        self.line(ZERO);
        self.write(PAUSE, FIRST, ZERO);
        for n in 1..WORDS {
            self.write(PAUSE, n, p(n as u8));
        }
        self.write(PAUSE, FIRST, W);
        self.done();
        self.asm.bind(off);
        self.line(ZERO);
        self.write(PAUSE, FIRST, ZERO);
        self.done();
    }

    /// With the physical function goes what it has set.
    pub fn no_pause(&mut self) {
        let stays = self.asm.label();
        self.asm.branch(Op::Bne, FN, 0, stays);
        self.line(ZERO);
        self.write(PAUSE, FIRST, ZERO);
        self.asm.bind(stays);
    }
}
