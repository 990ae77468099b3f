//! Soft reset of a function: everything it has goes at once. The pipelines are drained for the function, not for each object, so that the time
//! grows with the number of objects by their table accesses only.

use super::queue_pair::req;
use super::*;

impl Program {
    /// Does `body` for each object of the function, its number in `at` and as the line. `body` leaves `at` as it is; `end` is the loop's.
    pub(super) fn each_object(&mut self, kind: Kind, (at, end): (R, R), body: impl FnOnce(&mut Self)) {
        let [each, next] = std::array::from_fn(|_| self.asm.label());
        self.asm.li(at, 0);
        self.asm.li(end, kind.count);
        self.asm.jump(next);
        self.asm.bind(each);
        body(self);
        self.asm.op(Op::Add, at, at, 1);
        self.asm.bind(next);
        self.asm.find(at, end, kind.base, each);
    }

    /// Removes everything the function has, and rewinds its ring.
    pub(super) fn soft_reset(&mut self, first: &[fn(&mut Program)]) {
        first.iter().for_each(|steps| steps(self));
        self.no_stations();
        self.each_object(self.qp, (ID, PROD), |p| {
            p.asm.call(LINK, p.qp_stop);
        });
        self.drain();
        // Nothing of them is on its way any more. What an engine wrote meanwhile does not matter, for CreateQp writes everything anew but the epoch:
        // that becomes one that nothing carries. A barrier of each ends its life: what it has to answer is forgotten. It is short, for the pipelines are empty of
        // the function's work.
        self.each_object(self.qp, (ID, PROD), |p| {
            p.asm.op(Op::Barrier, ZERO, ZERO, 1);
            p.requester_reset();
            p.unmake(p.qp);
        });
        self.each_object(self.srq, (ID, PROD), |p| {
            p.shared_line(I, ID);
            p.write(RQ, 2, ZERO);
            p.unmake(p.srq);
        });
        // A window is counted, which takes a look at each region: a card without windows is spared them.
        let [plain, closed] = std::array::from_fn(|_| self.asm.label());
        self.asm.op(Op::Ld, T, ZERO, self.windows);
        self.asm.branch(Op::Beq, T, 0, plain);
        self.each_object(self.mr, (ID, PROD), |p| {
            p.close_region();
            p.unmake(p.mr);
        });
        self.asm.jump(closed);
        self.asm.bind(plain);
        self.each_object(self.mr, (ID, PROD), |p| {
            p.write(MR, 0, ZERO);
            p.unmake(p.mr);
        });
        self.asm.bind(closed);
        self.each_object(self.cq, (ID, PROD), |p| {
            p.write(CQ, 2, ZERO);
            p.unmake(p.cq);
        });
        self.each_object(self.eq, (ID, PROD), |p| {
            p.write(EQ, 2, ZERO);
            p.unmake(p.eq);
        });
        self.drain();
        // Nothing asks for a page table of the function any more: its translations go.
        self.asm.act(Op::Out, ZERO, ZERO, output::TRANSLATIONS);
        self.each_object(self.pd, (ID, PROD), |p| p.unmake(p.pd));
        self.give_back_ranges();
        self.asm.store(FN, 0, ZERO);
        self.asm.act(Op::Out, ZERO, ZERO, output::RESET_DONE);
        self.asm.jump(self.idle);
    }

    /// The raw queue pair, if it is the function's, is none any more.
    pub fn no_raw_queue(&mut self) {
        self.raw_line(ZERO);
        let stays = self.asm.label();
        self.asm.branch(Op::Beq, RAW, 0, stays);
        self.asm.ext(T, RAW, 0, 0xff_ffff);
        self.owner(T, T);
        self.asm.branch(Op::Bne, T, FN, stays);
        self.asm.li(RAW, 0);
        self.asm.act(Op::Out, RAW, ZERO, output::RAW_QUEUE);
        self.asm.bind(stays);
    }
}

impl Program {
    /// `d` = the function whose queue pair `qpn` is.
    pub(super) fn owner(&mut self, d: R, qpn: R) {
        self.asm.op(Op::Ld, d, qpn, self.qp.base);
        self.asm.ext(d, d, FUNCTION_AT, FUNCTION);
    }

    /// Requester of line ID to RESET, next epoch; T keeps its word 0.
    pub(super) fn requester_reset(&mut self) {
        self.read(T, REQ, 0);
        self.set_to(T, req("state"), ferric_abi::codes::QpState::Reset as u32);
        self.get(U, T, req("epoch"));
        self.asm.op(Op::Add, U, U, 1);
        self.set(T, T, U, req("epoch"));
        self.write(REQ, 0, T);
    }
}
