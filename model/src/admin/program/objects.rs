//! Protection domains, event queues, completion queues, memory regions: creation and removal.

use super::*;
use ferric_abi::context::{CqCtx, EqCtx, MrCtx};

impl Program {
    pub fn create_pd(&mut self) {
        self.fresh(self.pd);
        self.make(self.pd);
        self.done();
    }

    /// T = word 2 of an EQ or CQ from p2 alone: function, size, valid. The base in p0 and the size are checked.
    fn ring_word(&mut self, layout: &Layout) {
        let size = field(layout, "log_size");
        let valid = field(layout, "valid");
        self.asm.ext(T, p(0), 0, 63);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        self.get(U, p(2), size);
        self.refuse(AdminStatus::BadParameter, Op::Beq, U, 0);
        self.asm.li(T, valid.mask << valid.shift);
        self.set(T, T, U, size);
        self.set(T, T, FN, field(layout, "function"));
    }

    pub(super) fn create_eq(&mut self) {
        self.fresh(self.eq);
        self.ring_word(&EqCtx::LAYOUT);
        self.line(ID);
        self.write(EQ, 4, ZERO);
        self.write(EQ, 0, p(0));
        self.write(EQ, 1, p(1));
        self.get(U, p(3), field(&EqCtx::LAYOUT, "vector"));
        self.write(EQ, 3, U);
        self.write(EQ, 2, T);
        self.make(self.eq);
        self.done();
    }

    pub fn create_cq(&mut self) {
        self.fresh(self.cq);
        self.get(W, p(3), field(&CqCtx::LAYOUT, "eqn"));
        self.own(self.eq, W);
        self.ring_word(&CqCtx::LAYOUT);
        self.line(ID);
        self.write(CQ, 4, ZERO);
        self.write(CQ, 0, p(0));
        self.write(CQ, 1, p(1));
        self.write(CQ, 3, W);
        self.write(CQ, 2, T);
        self.users(self.eq, W, Op::Add);
        self.make(self.cq);
        self.done();
    }

    pub fn create_mr(&mut self) {
        let layout = &MrCtx::LAYOUT;
        self.fresh(self.mr);
        self.get(W, p(1), field(layout, "pd"));
        self.own(self.pd, W);
        self.asm.op(Op::Or, T, p(4), p(5));
        self.refuse(AdminStatus::BadParameter, Op::Beq, T, 0);
        // start + length: carries of both halves
        self.asm.op(Op::Add, T, p(2), p(4));
        self.asm.op(Op::Lt, U, T, p(2));
        self.asm.op(Op::Add, T, p(3), p(5));
        self.refuse(AdminStatus::BadParameter, Op::Blt, T, p(3));
        self.asm.op(Op::Add, V, T, U);
        self.refuse(AdminStatus::BadParameter, Op::Blt, V, T);
        self.get(T, p(0), field(layout, "page_size"));
        self.refuse(AdminStatus::BadParameter, Op::Beq, T, 3);
        let aligned = self.asm.label();
        self.get(T, p(0), field(layout, "direct"));
        self.asm.branch(Op::Bne, T, 0, aligned);
        self.asm.ext(T, p(6), 0, 63);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        self.asm.bind(aligned);
        self.line(ID);
        self.write(MR, 1, W);
        for word in 2..8 {
            self.write(MR, word, p(word as u8));
        }
        // Permissions, direct, fast, variant and page size are the driver's; the rest is the card's.
        self.write(MR, 8, ZERO);
        self.write(MR, 9, ZERO);
        self.asm.op(Op::And, T, p(0), 0xf_ffff);
        let free = self.asm.label();
        let ordinary = self.asm.label();
        // A fast region may begin free, a window does.
        self.get(U, p(0), field(layout, "window"));
        self.asm.branch(Op::Beq, U, 0, ordinary);
        self.set_to(T, field(layout, "valid"), 0);
        self.count_window(Op::Add);
        self.asm.jump(free);
        self.asm.bind(ordinary);
        self.get(U, p(0), field(layout, "fast"));
        self.asm.branch(Op::Bne, U, 0, free);
        self.set_to(T, field(layout, "valid"), 1);
        self.asm.bind(free);
        self.set(T, T, FN, field(layout, "function"));
        self.write(MR, 0, T);
        self.users(self.pd, W, Op::Add);
        self.make(self.mr);
        self.done();
    }

    /// A region stays while windows are bound to it; a window goes, bound or not.
    pub fn destroy_mr(&mut self) {
        let layout = &MrCtx::LAYOUT;
        let goes = self.asm.label();
        self.own_unused(self.mr);
        self.line(ID);
        self.read(T, MR, 0);
        self.get(T, T, field(layout, "window"));
        self.asm.branch(Op::Bne, T, 0, goes);
        self.read(T, MR, 8);
        self.get(T, T, field(layout, "link"));
        self.refuse(AdminStatus::InUse, Op::Bne, T, 0);
        self.asm.bind(goes);
        self.asm.call(LINK3, self.remove_mr);
        self.done();
    }

    pub fn destroy_pd(&mut self) {
        self.destroy(self.pd, self.remove_pd);
    }

    pub fn destroy_cq(&mut self) {
        self.destroy(self.cq, self.remove_cq);
    }

    pub fn destroy_srq(&mut self) {
        self.destroy(self.srq, self.remove_srq);
    }

    pub fn destroy_qp(&mut self) {
        self.destroy(self.qp, self.remove_qp);
    }

    pub(super) fn destroy(&mut self, kind: Kind, remove: Label) {
        self.own_unused(kind);
        self.asm.call(LINK3, remove);
        self.done();
    }

    pub(super) fn subroutines(&mut self) {
        self.number_of();
        self.asm.bind(self.remove_pd);
        self.unmake(self.pd);
        self.asm.ret(LINK3);

        // Queues: invalid, then wait for what is on its way to their rings.
        self.asm.bind(self.remove_eq);
        self.line(ID);
        self.write(EQ, 2, ZERO);
        self.drain();
        self.unmake(self.eq);
        self.asm.ret(LINK3);

        self.asm.bind(self.remove_cq);
        self.line(ID);
        self.write(CQ, 2, ZERO);
        self.drain();
        self.read(W, CQ, 3);
        self.get(W, W, field(&CqCtx::LAYOUT, "eqn"));
        self.users(self.eq, W, Op::Sub);
        self.unmake(self.cq);
        self.asm.ret(LINK3);

        self.asm.bind(self.remove_mr);
        self.line(ID);
        self.close_region();
        self.drain();
        // Now nothing asks for its page table any more but what reads ahead, which this ends. No translation of it is left for the next region of this number.
        self.asm.act(Op::Out, ID, ZERO, output::TRANSLATIONS);
        self.read(W, MR, 1);
        self.get(W, W, field(&MrCtx::LAYOUT, "pd"));
        self.users(self.pd, W, Op::Sub);
        self.unmake(self.mr);
        self.asm.ret(LINK3);

        self.range_subroutine();
        self.remove_shared_queue();
        self.remove_queue_pair();
        self.queue_pair_down();
    }
}
