//! Attachments of datagram queue pairs to multicast groups (IBTA volume 1, 10.5 and 11.3): lines of one table for the whole card.

use super::queue_pair::req;
use super::*;
use ferric_abi::codes::QpType;
use ferric_abi::context::{McastCtx, ReqCtx};
use ferric_abi::csr::{MULTICAST_ATTACHMENTS as LINES, MULTICAST_MEMBERS as MEMBERS};

fn attached(name: &str) -> F {
    field(&McastCtx::LAYOUT, name)
}

impl Program {
    /// Lines one by one: I and the line. The caller binds `each`, and ends with [`Program::next_line`].
    fn first_line(&mut self) -> Label {
        self.asm.li(I, 0);
        let each = self.asm.here();
        self.line(I);
        each
    }

    fn next_line(&mut self, each: Label) {
        self.asm.op(Op::Add, I, I, 1);
        self.asm.branch(Op::Bne, I, LINES, each);
    }

    /// W = the word of queue pair ID in group p(0).. if it is attached; goes to `other` unless line I is of that group, T being its word.
    fn same_group(&mut self, other: Label) {
        for n in 0..4 {
            self.read(U, MCAST, u32::from(n));
            self.asm.branch(Op::Bne, U, p(1 + n), other);
        }
        self.get(U, T, attached("ipv6"));
        self.asm.branch(Op::Bne, U, p(0), other);
    }

    /// ID must be a datagram queue pair of the function; W = the word its attachment has.
    fn member(&mut self) {
        self.own(self.qp, ID);
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(0), 2);
        self.line(ID);
        self.read(T, REQ, req("qp_type").word);
        self.get(T, T, req("qp_type"));
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, QpType::Ud as u32);
        self.asm.mov(W, ID);
        self.set(W, W, p(0), attached("ipv6"));
        self.set(W, W, FN, attached("function"));
        self.set_to(W, attached("valid"), 1);
    }

    /// Joining twice is joining once. N: a free line, V: members so far; LO, HI: attachments and members of the group that are the function's own.
    pub fn attach_multicast(&mut self) {
        self.member();
        let ok = self.fails(AdminStatus::Ok);
        self.asm.li(N, LINES);
        for count in [V, LO, HI] {
            self.asm.li(count, 0);
        }
        let each = self.first_line();
        let [used, other, next, room] = std::array::from_fn(|_| self.asm.label());
        self.read(T, MCAST, attached("qpn").word);
        self.get(U, T, attached("valid"));
        self.asm.branch(Op::Bne, U, 0, used);
        self.asm.mov(N, I);
        self.asm.jump(next);
        self.asm.bind(used);
        self.get(U, T, attached("qpn"));
        self.owner(OBJ, U);
        self.asm.branch(Op::Bne, OBJ, FN, other);
        self.asm.op(Op::Add, LO, LO, 1);
        self.asm.bind(other);
        self.same_group(next);
        self.asm.branch(Op::Beq, T, W, ok);
        self.asm.op(Op::Add, V, V, 1);
        self.asm.branch(Op::Bne, OBJ, FN, next);
        self.asm.op(Op::Add, HI, HI, 1);
        self.asm.bind(next);
        self.next_line(each);
        self.refuse(AdminStatus::NoRoom, Op::Bge, N, LINES);
        self.refuse(AdminStatus::NoRoom, Op::Bge, V, MEMBERS);
        // Nobody but the physical function may take what the others need.
        self.asm.branch(Op::Beq, FN, 0, room);
        self.refuse(AdminStatus::NoRoom, Op::Bge, LO, (LINES >> self.share).max(1));
        self.refuse(AdminStatus::NoRoom, Op::Bge, HI, (MEMBERS >> self.share).max(1));
        self.asm.bind(room);
        self.line(N);
        for n in 0..4 {
            self.write(MCAST, u32::from(n), p(1 + n));
        }
        self.write(MCAST, attached("qpn").word, W);
        self.done();
    }

    pub fn detach_multicast(&mut self) {
        self.member();
        let each = self.first_line();
        let next = self.asm.label();
        self.read(T, MCAST, attached("qpn").word);
        self.asm.branch(Op::Bne, T, W, next);
        self.same_group(next);
        self.write(MCAST, attached("qpn").word, ZERO);
        self.done();
        self.asm.bind(next);
        self.next_line(each);
        self.asm.jump(self.fails(AdminStatus::BadState));
    }

    /// All queue pairs of the function leave all groups.
    pub fn no_groups(&mut self) {
        let next = self.asm.label();
        let each = self.first_line();
        self.read(T, MCAST, attached("qpn").word);
        self.get(U, T, attached("valid"));
        self.asm.branch(Op::Beq, U, 0, next);
        self.get(U, T, attached("qpn"));
        self.owner(U, U);
        self.asm.branch(Op::Bne, U, FN, next);
        self.write(MCAST, attached("qpn").word, ZERO);
        self.asm.bind(next);
        self.next_line(each);
    }

    /// Queue pair ID leaves all groups.
    pub(super) fn leave_groups(&mut self) {
        let [next, none] = std::array::from_fn(|_| self.asm.label());
        self.line(ID);
        self.read(T, REQ, field(&ReqCtx::LAYOUT, "qp_type").word);
        self.get(T, T, req("qp_type"));
        self.asm.branch(Op::Bne, T, QpType::Ud as u32, none);
        let each = self.first_line();
        self.read(T, MCAST, attached("qpn").word);
        self.get(U, T, attached("valid"));
        self.asm.branch(Op::Beq, U, 0, next);
        self.get(U, T, attached("qpn"));
        self.asm.branch(Op::Bne, U, ID, next);
        self.write(MCAST, attached("qpn").word, ZERO);
        self.asm.bind(next);
        self.next_line(each);
        self.asm.bind(none);
    }
}
