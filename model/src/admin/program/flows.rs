//! The flow tables (docs/admin.md, SET_FLOW and SET_FLOW_PORT): lines of `space::FLOW`. The blocks work meanwhile. A command is put together out of words; its first word is written last, and
//! with it the command goes to the tables, which write the line in one cycle.

use super::*;
use ferric_abi::context::FlowPortCtx;
use ferric_abi::csr::space::FLOW;
use ferric_abi::csr::{FLOW_BUSY, FLOW_CLOSE, FLOW_COMMAND, FLOW_FORGET, FLOW_PORT, FLOW_REFUSED};

/// Words of a command's first 16 bytes that mean something to the tables, and of its record.
const HEAD_WORDS: u32 = 2;
const RECORD_WORDS: u32 = 28;
const FIRST: u32 = 0;

impl Program {
    /// Waits until the tables are not busy, which ends by itself; `T` is their status then. They are while they are emptied, for no line of whoever had the function before may decide about a
    /// frame, and while a line is read.
    fn ready(&mut self) {
        let busy = self.asm.label();
        self.asm.li(I, FLOW_COMMAND);
        self.line(I);
        self.asm.bind(busy);
        self.read(T, FLOW, FIRST);
        self.asm.op(Op::And, W, T, FLOW_BUSY);
        self.asm.branch(Op::Bne, W, 0, busy);
    }

    /// p0 and p1 are the first words of a `FlowCommand`, the others its record.
    pub fn set_flow(&mut self) {
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadId, Op::Bne, ID, 0);
        self.ready();
        for n in 1..HEAD_WORDS + RECORD_WORDS {
            self.write(FLOW, n, p(n as u8));
        }
        self.write(FLOW, FIRST, p(0));
        self.ready();
        self.asm.op(Op::And, T, T, FLOW_REFUSED);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        self.done();
    }

    /// p0 is the line.
    pub fn set_flow_port(&mut self) {
        let reserved = field(&FlowPortCtx::LAYOUT, "rsvd0");
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadId, Op::Bne, ID, 0);
        self.ready();
        self.asm.li(I, FLOW_PORT);
        self.line(I);
        self.asm.op(Op::And, W, p(0), !(reserved.mask << reserved.shift));
        self.write(FLOW, FIRST, W);
        self.done();
    }

    /// With the physical function goes what it has written; with another one what it may send, so that whoever has its number next does not speak for it.
    pub fn no_flows(&mut self) {
        let [tenant, end] = [(); 2].map(|()| self.asm.label());
        self.asm.branch(Op::Bne, FN, 0, tenant);
        self.asm.li(I, FLOW_PORT);
        self.line(I);
        self.write(FLOW, FIRST, ZERO);
        self.asm.li(I, FLOW_COMMAND);
        self.line(I);
        self.write(FLOW, FLOW_FORGET, ZERO);
        self.asm.branch(Op::Beq, FN, 0, end);
        self.asm.bind(tenant);
        self.asm.li(I, FLOW_COMMAND);
        self.line(I);
        self.write(FLOW, FLOW_CLOSE, FN);
        self.asm.bind(end);
    }
}
