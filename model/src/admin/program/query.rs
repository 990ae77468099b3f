//! Queries and port-wide settings.

use super::*;
use crate::admin::stats;
use ferric_abi::codes::QpState;
use ferric_abi::context::{ReqCtx, RspCtx};
use ferric_abi::csr::{PORT_PROMISCUOUS, PORT_RAW};

impl Program {
    pub fn query_qp(&mut self) {
        self.own(self.qp, ID);
        self.line(ID);
        let words = [(REQ, 0), (REQ, 5), (REQ, 6), (REQ, 8), (RSP, 0), (RSP, 5), (RSP, 6), (SQ, 4), (RQ, 4)];
        for (n, (space, word)) in words.into_iter().enumerate() {
            self.read(R(RES + n as u8), space, word);
        }
        // The responder's line stays in RTR while the queue pair is in RTS.
        let (requester, responder) = (R(RES), R(RES + 4));
        let ok = self.fails(AdminStatus::Ok);
        let state = field(&RspCtx::LAYOUT, "state");
        self.get(T, requester, field(&ReqCtx::LAYOUT, "state"));
        self.asm.branch(Op::Bne, T, QpState::Rts as u32, ok);
        self.get(T, responder, state);
        self.asm.branch(Op::Bne, T, QpState::Rtr as u32, ok);
        self.set_to(responder, state, QpState::Rts as u32);
        self.done();
    }

    pub(super) fn query_counters(&mut self) {
        // V = the function in question, in its place in the line; W = the first of the two words: of all functions together (function 0, if it names none), or of one.
        let (own, named, found) = (self.asm.label(), self.asm.label(), self.asm.label());
        let stats_at = self.at(STATS);
        self.asm.li(W, stats_at | stats::OWN);
        self.asm.ext(V, p(4), 31, 1);
        self.asm.branch(Op::Bne, V, 0, named);
        self.refuse(AdminStatus::BadParameter, Op::Bne, p(4), 0);
        self.asm.branch(Op::Bne, FN, 0, own);
        self.asm.li(W, stats_at | stats::TOTAL);
        self.asm.bind(own);
        self.asm.mov(V, FN);
        self.asm.jump(found);
        self.asm.bind(named);
        self.asm.op(Op::And, V, p(4), !(1 << 31));
        self.refuse(AdminStatus::BadParameter, Op::Bge, V, 1 << 12);
        // What another function has is the physical one's to know.
        self.asm.branch(Op::Beq, FN, 0, found);
        self.refuse(AdminStatus::Denied, Op::Bne, V, FN);
        self.asm.bind(found);
        self.asm.op(Op::Shl, V, V, stats::FUNCTION_AT);
        let ok = self.fails(AdminStatus::Ok);
        self.asm.ext(T, p(0), 0, 63);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        self.asm.ext(T, p(3), 0, 7);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        self.asm.branch(Op::Beq, p(3), 0, ok);
        // The last one must exist before anything is written, and so must the function; the sum must not reach into the function's place.
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(2), 1 << (stats::FUNCTION_AT - 1));
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(3), 1 << (stats::FUNCTION_AT - 1));
        self.asm.op(Op::Add, T, p(2), p(3));
        self.asm.op(Op::Sub, T, T, 1);
        self.asm.op(Op::Or, T, T, V);
        self.line(T);
        self.read(U, STATS, stats::OWN + 1);
        let bad = self.fails(AdminStatus::BadParameter);
        self.asm.on_error(bad);
        self.asm.op(Op::Or, I, p(2), V);
        self.asm.mov(N, p(3));
        self.asm.mov(LO, p(0));
        self.asm.mov(HI, p(1));
        let each = self.asm.here();
        self.line(I);
        for word in 0..2 {
            self.asm.op(Op::Add, T, W, word);
            self.asm.op(Op::CtlRead, T, ZERO, T);
            self.asm.act(Op::Push, T, ZERO, 0);
        }
        self.asm.op(Op::Add, I, I, 1);
        self.asm.op(Op::Sub, N, N, 1);
        self.asm.ext(T, N, 0, 7);
        self.asm.branch(Op::Bne, T, 0, each);
        self.asm.act(Op::Write, LO, HI, 0);
        let failed = self.fails(AdminStatus::DmaError);
        self.asm.on_error(failed);
        self.asm.li(T, 64);
        self.asm.call(LINK, self.add_offset);
        self.asm.branch(Op::Bne, N, 0, each);
        self.done();
    }

    pub fn set_port(&mut self) {
        let none = self.asm.label();
        self.may_set_port();
        self.asm.mov(W, ZERO);
        self.asm.ext(T, p(0), PORT_RAW.ilog2() as u8, 1);
        self.asm.branch(Op::Beq, T, 0, none);
        self.asm.op(Op::And, W, p(0), !(PORT_RAW | PORT_PROMISCUOUS));
        self.own(self.qp, W);
        self.asm.mov(W, p(0));
        self.asm.bind(none);
        self.set_own_raw_queue();
        self.asm.mov(RAW, W);
        self.asm.act(Op::Out, RAW, ZERO, output::RAW_QUEUE);
        self.done();
    }

    pub(super) fn query_object(&mut self) {
        let (allowed, scratch) = (self.asm.label(), self.asm.label());
        let bad_id = self.fails(AdminStatus::BadId);
        self.asm.branch(Op::Beq, FN, 0, allowed);
        for (kind, spaces) in [(self.qp, &[SQ, RQ, REQ, RSP, PATH][..]), (self.cq, &[CQ]), (self.eq, &[EQ]), (self.mr, &[MR])] {
            let (check, next) = (self.asm.label(), self.asm.label());
            for space in spaces {
                self.asm.branch(Op::Beq, p(0), u32::from(*space), check);
            }
            self.asm.jump(next);
            self.asm.bind(check);
            self.own(kind, ID);
            self.asm.jump(allowed);
            self.asm.bind(next);
        }
        self.asm.jump(self.fails(AdminStatus::BadParameter));
        self.asm.bind(allowed);
        self.asm.branch(Op::Beq, p(0), u32::from(space::ADMIN), scratch);
        // W = where the table is that hosts know by this number.
        let (found, known) = (self.asm.label(), self.tables.clone());
        for (number, name) in known.into_iter().enumerate() {
            if let TableName::Known(space) = name {
                self.asm.li(W, (number as u32) << TABLE_AT);
                self.asm.branch(Op::Beq, p(0), u32::from(space), found);
            }
        }
        self.asm.jump(self.fails(AdminStatus::BadParameter));
        self.asm.bind(found);
        // Word numbers have 6 bits.
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(1), 64 - 7);
        self.asm.branch(Op::Bge, ID, 1 << 24, bad_id);
        self.line(ID);
        self.asm.op(Op::Or, U, W, p(1));
        // A line may have fewer words than eight: those that it does not have are zero.
        let ok = self.fails(AdminStatus::Ok);
        for n in 0..8 {
            self.asm.op(Op::CtlRead, T, ZERO, U);
            self.asm.on_error(if n == 0 { bad_id } else { ok });
            self.asm.mov(R(RES + n), T);
            self.asm.op(Op::Add, U, U, 1);
        }
        self.done();
        self.asm.bind(scratch);
        self.asm.branch(Op::Bge, ID, 1 << SCRATCH_BITS, bad_id);
        self.asm.op(Op::Ld, R(RES), ID, 0);
        self.done();
    }
}
