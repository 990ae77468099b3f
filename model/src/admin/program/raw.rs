//! Raw queue pairs of functions with tunnels (docs/admin.md, SET_PORT): lines of `space::RAW`. On cards without that table they are the physical function's alone.

use super::queue_pair::req;
use super::tunnel::{bits, of, FIRST};
use super::*;
use ferric_abi::codes::QpType;
use ferric_abi::csr::space::{RAW as LINES, TUNNEL};
use ferric_abi::csr::PORT_PROMISCUOUS;

impl Program {
    /// Whether functions with tunnels can have raw queue pairs.
    pub(super) fn has_raw_lines(&self) -> bool {
        self.tables.contains(&LINES.into())
    }

    /// Goes to `may` if the function whose command it is, which is not the physical one, may have raw queue pairs. Changes U and the line.
    pub(super) fn may_have_raw(&mut self, may: Label) {
        if self.has_raw_lines() {
            self.line(FN);
            self.read(U, TUNNEL, FIRST);
            self.get(U, U, of("raw"));
            self.asm.branch(Op::Bne, U, 0, may);
        }
    }

    /// SET_PORT: refuses it if it is not the physical function's, and the function may have no raw queue pair or wants frames to others. Changes T, U and the line.
    pub(super) fn may_set_port(&mut self) {
        let [may, fine] = std::array::from_fn(|_| self.asm.label());
        if !self.has_raw_lines() {
            return self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        }
        self.asm.branch(Op::Beq, FN, 0, fine);
        self.may_have_raw(may);
        self.asm.jump(self.fails(AdminStatus::Denied));
        self.asm.bind(may);
        self.asm.op(Op::And, T, p(0), PORT_PROMISCUOUS);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        self.asm.bind(fine);
    }

    /// SET_PORT of a function that is not the physical one, with its own queue pair in W or none, ends here. A queue pair of another kind gets nothing: the responder looks.
    pub(super) fn set_own_raw_queue(&mut self) {
        if !self.has_raw_lines() {
            return;
        }
        let physical = self.asm.label();
        self.asm.branch(Op::Beq, FN, 0, physical);
        self.raw_line(W);
        self.done();
        self.asm.bind(physical);
    }

    /// The function's line becomes `word`, a `RawCtx`. Changes the line.
    pub(super) fn raw_line(&mut self, word: R) {
        if self.has_raw_lines() {
            self.line(FN);
            self.write(LINES, 0, word);
        }
    }

    /// The queue pair of `word`, a `RawCtx`, goes: it is not the one in the function's line any more. Changes U and the line.
    pub(super) fn no_raw_queue_pair(&mut self, word: R) {
        if !self.has_raw_lines() {
            return;
        }
        let other = self.asm.label();
        self.line(FN);
        self.read(U, LINES, 0);
        self.asm.branch(Op::Bne, U, word, other);
        self.write(LINES, 0, ZERO);
        self.asm.bind(other);
    }

    /// Refuses a tunnel without `raw` as long as function ID, if it is not the physical one, has raw queue pairs: what they send would leave without a tunnel, or by nobody's leave. W is the first word of the
    /// tunnel's line as it is to become. Changes T, I, and the line.
    pub(super) fn no_raw_left_behind(&mut self) {
        if !self.has_raw_lines() {
            return;
        }
        let [each, next, fine] = std::array::from_fn(|_| self.asm.label());
        let stays = bits(of("valid")) | bits(of("raw"));
        self.asm.branch(Op::Beq, ID, 0, fine);
        self.asm.op(Op::And, T, W, stays);
        self.asm.branch(Op::Beq, T, stays, fine);
        self.line(ID);
        self.read(T, TUNNEL, FIRST);
        self.get(T, T, of("raw"));
        self.asm.branch(Op::Beq, T, 0, fine);
        self.asm.li(I, 0);
        self.asm.bind(each);
        self.asm.op(Op::Ld, T, I, self.qp.base);
        self.asm.branch(Op::Beq, T, 0, next);
        self.asm.ext(T, T, FUNCTION_AT, FUNCTION);
        self.asm.branch(Op::Bne, T, ID, next);
        self.line(I);
        self.read(T, REQ, 0);
        self.get(T, T, req("qp_type"));
        self.refuse(AdminStatus::InUse, Op::Beq, T, QpType::Raw as u32);
        self.asm.bind(next);
        self.asm.op(Op::Add, I, I, 1);
        self.asm.branch(Op::Bne, I, self.qp.count, each);
        self.asm.bind(fine);
    }
}
