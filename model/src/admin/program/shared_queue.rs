//! Shared receive queues (IBTA 10.2.9, 11.2.3): rings behind those of the queue pairs, decisions/0013.

use super::queue_pair::ring;
use super::*;

impl Program {
    /// `d` = ring of shared receive queue `id`, and the line for what follows.
    pub(super) fn shared_line(&mut self, d: R, id: R) {
        self.asm.op(Op::Add, d, id, self.qp.count);
        self.line(d);
    }

    pub fn create_srq(&mut self) {
        self.fresh(self.srq);
        self.own(self.pd, p(0));
        self.own(self.eq, p(1));
        self.ring_attributes(W, 2);
        self.set_to(W, ring("shared"), 1);
        self.set_to(W, ring("valid"), 1);
        self.shared_line(I, ID);
        for word in [3, 4, 5] {
            self.write(RQ, word, ZERO);
        }
        self.asm.mov(T, p(0));
        self.set(T, T, p(1), ring("eqn"));
        self.write(RQ, ring("pd").word, T);
        self.write(RQ, 0, p(2));
        self.write(RQ, 1, p(3));
        self.write(RQ, 2, W);
        self.users(self.pd, p(0), Op::Add);
        self.users(self.eq, p(1), Op::Add);
        self.make(self.srq);
        self.done();
    }

    /// The limit is one word of its own: the ring goes on working while it is written.
    pub fn modify_srq(&mut self) {
        self.own(self.srq, ID);
        self.shared_line(I, ID);
        self.read(U, RQ, ring("log_size").word);
        self.get(U, U, ring("log_size"));
        self.asm.li(T, 1);
        self.asm.op(Op::Shl, T, T, U);
        self.refuse(AdminStatus::BadParameter, Op::Blt, T, p(0));
        self.write(RQ, ring("limit").word, p(0));
        self.done();
    }

    pub fn query_srq(&mut self) {
        self.own(self.srq, ID);
        self.shared_line(I, ID);
        for (n, word) in [2, 4, 5, 6].into_iter().enumerate() {
            self.read(R(RES + n as u8), RQ, word);
        }
        self.done();
    }

    /// No queue pair uses it: nothing is asked of it any more, but work requests may still be on their way.
    pub(super) fn remove_shared_queue(&mut self) {
        self.asm.bind(self.remove_srq);
        self.shared_line(I, ID);
        self.write(RQ, 2, ZERO);
        self.drain();
        self.read(W, RQ, ring("pd").word);
        self.get(U, W, ring("pd"));
        self.users(self.pd, U, Op::Sub);
        self.get(U, W, ring("eqn"));
        self.users(self.eq, U, Op::Sub);
        self.unmake(self.srq);
        self.asm.ret(LINK3);
    }
}
