//! Which numbers a function may give its objects: a range per function and kind, docs/admin.md.
//!
//! A range word: first number [23:0], log2 of how many [28:24], in use [31]. Those of a kind lie one behind the other, by function.

use super::*;
use ferric_abi::csr::RANGE_IN_USE;

const FIRST: u32 = 0xff_ffff;
const LOG_AT: u8 = 24;
const LOG_MASK: u32 = 31;

impl Program {
    fn kinds(&self) -> [Kind; KINDS as usize] {
        [self.qp, self.cq, self.mr, self.pd, self.eq, self.srq]
    }

    /// Function 0 may use every number, the others have a share each: the card is divided by the number of functions.
    pub(super) fn default_ranges(&mut self) {
        for kind in self.kinds() {
            assert!(kind.log >= self.share, "fewer numbers than functions");
            let log = kind.log - self.share;
            self.asm.li(T, kind.log << LOG_AT);
            self.asm.store(ZERO, kind.ranges, T);
            self.asm.li(I, 1);
            self.asm.li(T, log << LOG_AT | 1 << log);
            let each = self.asm.here();
            self.asm.store(I, kind.ranges, T);
            self.asm.op(Op::Add, T, T, 1 << log);
            self.asm.op(Op::Add, I, I, 1);
            self.asm.branch(Op::Bne, I, self.functions(), each);
        }
    }

    /// Number ID must be one that the function may use. Changes T, U, V, W, OBJ, I, LO.
    pub(super) fn may_use(&mut self, kind: Kind) {
        self.asm.li(U, kind.ranges);
        self.asm.call(LINK, self.in_range);
    }

    /// Goes to `outside` unless ID is in range T.
    fn inside(&mut self, outside: Label) {
        self.asm.ext(V, T, 0, FIRST);
        self.asm.op(Op::Sub, V, ID, V);
        self.asm.ext(W, T, LOG_AT, LOG_MASK);
        self.asm.li(OBJ, 1);
        self.asm.op(Op::Shl, OBJ, OBJ, W);
        self.asm.branch(Op::Bge, V, OBJ, outside);
    }

    /// U: the kind's ranges. The physical function may use all numbers but those in a range that another function makes use of.
    pub(super) fn range_subroutine(&mut self) {
        let [physical, next] = std::array::from_fn(|_| self.asm.label());
        let refused = self.fails(AdminStatus::BadId);
        self.asm.bind(self.in_range);
        self.asm.branch(Op::Beq, FN, 0, physical);
        self.asm.op(Op::Add, U, U, FN);
        self.asm.op(Op::Ld, T, U, 0);
        self.inside(refused);
        self.asm.op(Op::Or, T, T, RANGE_IN_USE);
        self.asm.store(U, 0, T);
        self.asm.ret(LINK);
        self.asm.bind(physical);
        self.asm.li(I, self.functions() - 1);
        let each = self.asm.here();
        self.asm.op(Op::Add, LO, U, I);
        self.asm.op(Op::Ld, T, LO, 0);
        self.asm.branch(Op::Blt, T, RANGE_IN_USE, next);
        self.inside(next);
        self.asm.jump(refused);
        self.asm.bind(next);
        self.asm.op(Op::Sub, I, I, 1);
        self.asm.branch(Op::Bne, I, 0, each);
        self.asm.ret(LINK);
    }

    /// The function has no objects any more: its numbers are at the physical function's disposal.
    pub(super) fn give_back_ranges(&mut self) {
        for kind in self.kinds() {
            self.asm.op(Op::Ld, T, FN, kind.ranges);
            self.asm.op(Op::And, T, T, !RANGE_IN_USE);
            self.asm.store(FN, kind.ranges, T);
        }
    }

    pub(super) fn set_range(&mut self) {
        // Those of the first kind, and the others' behind them.
        let ranges = self.qp.ranges;
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        // Its own range is the whole card.
        self.asm.op(Op::Sub, T, ID, 1);
        self.refuse(AdminStatus::BadId, Op::Bge, T, self.functions() - 1);
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(0), KINDS);
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(1), (LOG_MASK + 1) << LOG_AT);
        self.asm.op(Op::Shl, U, p(0), self.share);
        self.asm.op(Op::Ld, W, U, ranges);
        self.asm.ext(W, W, LOG_AT, LOG_MASK);
        self.asm.ext(V, p(1), LOG_AT, LOG_MASK);
        self.refuse(AdminStatus::BadParameter, Op::Blt, W, V);
        self.asm.li(T, 1);
        self.asm.op(Op::Shl, V, T, V);
        self.asm.op(Op::Shl, W, T, W);
        self.asm.ext(T, p(1), 0, FIRST);
        self.asm.op(Op::Add, T, T, V);
        self.refuse(AdminStatus::BadParameter, Op::Blt, W, T);
        self.asm.op(Op::Add, U, U, ID);
        self.asm.op(Op::Ld, T, U, ranges);
        self.refuse(AdminStatus::InUse, Op::Bge, T, RANGE_IN_USE);
        self.asm.store(U, ranges, p(1));
        self.done();
    }

    pub(super) fn query_ranges(&mut self) {
        let own = self.asm.label();
        self.asm.mov(U, FN);
        self.asm.branch(Op::Beq, p(0), 0, own);
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadId, Op::Bge, ID, self.functions());
        self.asm.mov(U, ID);
        self.asm.bind(own);
        for (n, kind) in self.kinds().into_iter().enumerate() {
            self.asm.op(Op::Ld, R(RES + n as u8), U, kind.ranges);
        }
        self.asm.mov(R(RES + KINDS as u8), U);
        self.done();
    }
}
