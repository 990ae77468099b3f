//! Virtio queues (docs/admin.md, SET_VQ and those behind it): lines of the tables of the engine `virtio`. Its blocks work meanwhile: the word with `enabled` is the last that is written when a queue begins, and
//! the first when it ends; then the queue is notified, which has what it has in stock given up, and what it has in hand is waited for.

use super::*;
use ferric_abi::context::{VqAvail, VqUsed};

/// Tables of the engine: both sides of the queues, steering, whose a queue is, which functions get frames.
pub const AVAIL: &str = "virtio avail";
pub const USED: &str = "virtio used";
pub const STEER: &str = "virtio steer";
pub const BELL: &str = "virtio bell";
pub const INTAKE: &str = "virtio intake";
/// Parameters of SET_VQ: words of `VqAvail`, then the interrupt vector.
const SIZE: u8 = 6;
const FLAGS: u8 = 7;
const VECTOR: u8 = 8;
/// Words with what has been taken and has come back, and the one that is zero behind it.
const TAKEN: u32 = 8;
const BACK: u32 = 7;
const USED_FLAGS: u32 = 6;
const USED_REST: u32 = 8;
/// The largest ring.
const MOST: u32 = 32768;
/// Bits of a bell's line (`hdl/src/virtio/bell`): whose it is, it may notify, it is notified by this write.
const VALID: u32 = 1 << 12;
const RINGS: u32 = 1 << 13;
/// Of a steering line's number the table of owners, and of flows (`hdl/src/virtio/steer`).
const OWNERS: u32 = 5 << 16;
const FLOWS: u32 = 6 << 16;
/// Words that SET_VQ_STEER writes at most.
const WORDS: u8 = 16;
/// Bits of SET_VQ_FUNCTION's word, and the first word of promiscuous functions in the line.
const PROMISCUOUS: u8 = 1;
const SEES: u32 = 2;
/// What QUERY_VQ reads.
const SHOWN: [(&str, u32); 6] = [(AVAIL, 6), (AVAIL, 7), (AVAIL, 8), (USED, 4), (USED, 6), (USED, 7)];
const LOW: u32 = 0xffff;

fn avail(name: &str) -> F {
    field(&VqAvail::LAYOUT, name)
}

fn used(name: &str) -> F {
    field(&VqUsed::LAYOUT, name)
}

impl Program {
    /// `d` = word `word` of line ID, which has to exist.
    fn vq_word(&mut self, d: R, table: &'static str, word: u32) {
        let none = self.fails(AdminStatus::BadId);
        self.read(d, table, word);
        self.asm.on_error(none);
    }

    /// A ring with `enabled` begins, without it ends.
    pub fn set_vq(&mut self) {
        let ends = self.asm.label();
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.line(ID);
        self.vq_word(W, AVAIL, avail("enabled").word);
        self.get(T, p(FLAGS), avail("enabled"));
        self.asm.branch(Op::Beq, T, 0, ends);
        self.get(T, W, avail("enabled"));
        self.refuse(AdminStatus::BadState, Op::Bne, T, 0);
        self.vq_is_sound();
        // Both lines, the word with `enabled` last.
        self.get(W, p(FLAGS), avail("packed"));
        let [split, first] = std::array::from_fn(|_| self.asm.label());
        self.write(USED, 0, p(2));
        self.write(USED, 1, p(3));
        self.asm.branch(Op::Beq, W, 0, split);
        self.write(USED, 2, p(0));
        self.write(USED, 3, p(1));
        self.asm.jump(first);
        self.asm.bind(split);
        self.write(USED, 2, p(4));
        self.write(USED, 3, p(5));
        self.asm.bind(first);
        self.asm.op(Op::And, V, p(SIZE), LOW << 16);
        self.write(USED, used("size").word, V);
        self.asm.op(Op::Shl, T, p(VECTOR), 16);
        self.write(USED, used("vector").word, T);
        self.write(USED, BACK, ZERO);
        self.write(USED, USED_REST, ZERO);
        self.asm.li(T, 0);
        self.set_to(T, used("enabled"), 1);
        for name in ["events", "packed", "function"] {
            self.get(U, p(FLAGS), avail(name));
            self.set(T, T, U, used(name));
        }
        self.set(T, T, W, used("wrap"));
        self.write(USED, USED_FLAGS, T);
        for n in 0..SIZE {
            self.write(AVAIL, n.into(), p(n));
        }
        self.write(AVAIL, SIZE.into(), V);
        self.write(AVAIL, TAKEN, ZERO);
        self.asm.mov(T, p(FLAGS));
        for name in ["broken", "given_up", "rsvd0"] {
            self.set_to(T, avail(name), 0);
        }
        self.set(T, T, W, avail("wrap"));
        self.write(AVAIL, FLAGS.into(), T);
        // Whose it is; there may be something in the ring already.
        self.get(U, p(FLAGS), avail("function"));
        self.asm.op(Op::Or, T, ID, OWNERS);
        self.line(T);
        self.write(STEER, 0, U);
        self.line(ID);
        self.asm.op(Op::Or, U, U, VALID | RINGS);
        self.write(BELL, 0, U);
        self.done();
        self.asm.bind(ends);
        self.end_vq(ID);
        self.done();
    }

    /// What a ring has to be, of SET_VQ's parameters.
    fn vq_is_sound(&mut self) {
        let bad = AdminStatus::BadParameter;
        self.get(T, p(SIZE), avail("size"));
        self.refuse(bad, Op::Beq, T, 0);
        self.refuse(bad, Op::Bge, T, MOST + 1);
        let whole = self.asm.label();
        self.get(U, p(FLAGS), avail("packed"));
        self.asm.branch(Op::Bne, U, 0, whole);
        self.asm.op(Op::Sub, U, T, 1);
        self.asm.op(Op::And, U, U, T);
        self.refuse(bad, Op::Bne, U, 0);
        self.asm.bind(whole);
        for (word, mask) in [(0, 15), (2, 1), (4, 3)] {
            self.asm.ext(T, p(word), 0, mask);
            self.refuse(bad, Op::Bne, T, 0);
        }
        self.get(T, p(FLAGS), avail("function"));
        self.refuse(bad, Op::Bge, T, 1 << self.share);
    }

    /// Queue `at`, whose line that is, ends. Changes T, U, W.
    fn end_vq(&mut self, at: R) {
        let ended = self.asm.label();
        self.read(W, AVAIL, FLAGS.into());
        self.get(T, W, avail("enabled"));
        self.asm.branch(Op::Beq, T, 0, ended);
        self.read(T, USED, USED_FLAGS);
        self.set_to(T, used("enabled"), 0);
        self.write(USED, USED_FLAGS, T);
        self.set_to(W, avail("enabled"), 0);
        self.set_to(W, avail("given_up"), 0);
        self.write(AVAIL, FLAGS.into(), W);
        self.asm.li(T, RINGS);
        self.write(BELL, 0, T);
        self.asm.bind(ended);
        // A receive queue's stock is given up first: until then there may be nothing in hand, and still be somebody who takes chains of a later life.
        let [again, back] = std::array::from_fn(|_| self.asm.label());
        self.asm.bind(again);
        self.line(at);
        self.read(W, AVAIL, FLAGS.into());
        self.read(T, AVAIL, TAKEN);
        self.read(U, USED, BACK);
        self.asm.ext(T, T, 0, LOW);
        self.asm.ext(U, U, 0, LOW);
        self.asm.branch(Op::Bne, T, U, again);
        self.get(T, W, avail("receive"));
        self.asm.branch(Op::Beq, T, 0, back);
        self.get(T, W, avail("given_up"));
        self.asm.branch(Op::Beq, T, 0, again);
        self.asm.bind(back);
    }

    pub fn query_vq(&mut self) {
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.line(ID);
        self.vq_word(T, AVAIL, 0);
        for (n, (table, word)) in SHOWN.into_iter().enumerate() {
            self.read(R(RES + n as u8), table, word);
        }
        self.done();
    }

    /// p0: line; p1: first word; p2: how many; p3 and so on: what.
    pub fn set_vq_steer(&mut self) {
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(2), u32::from(WORDS) + 1);
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(1), 64);
        self.line(p(0));
        let ok = self.fails(AdminStatus::Ok);
        let bad = self.fails(AdminStatus::BadParameter);
        let at = self.at(STEER);
        for n in 0..WORDS {
            self.asm.branch(Op::Beq, p(2), u32::from(n), ok);
            self.asm.op(Op::Add, T, p(1), at + u32::from(n));
            self.asm.op(Op::CtlWrite, ZERO, p(3 + n), T);
            self.asm.on_error(bad);
        }
        self.done();
    }

    /// p0: bit 0 live, bit 1 promiscuous.
    pub fn set_vq_function(&mut self) {
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadId, Op::Bge, ID, 1 << self.share);
        self.asm.ext(U, p(0), 0, 1);
        self.asm.ext(V, p(0), PROMISCUOUS, 1);
        self.vq_bits(ID);
        self.done();
    }

    /// Function `of` is live if U is 1, and promiscuous if V is. Changes T, U, V, W, LO, HI.
    fn vq_bits(&mut self, of: R) {
        self.line(ZERO);
        let [upper, written] = std::array::from_fn(|_| self.asm.label());
        self.asm.ext(LO, of, 0, 31);
        self.asm.li(HI, 1);
        self.asm.op(Op::Shl, HI, HI, LO);
        self.asm.op(Op::Shl, U, U, LO);
        self.asm.op(Op::Shl, V, V, LO);
        // All bits but the function's.
        self.asm.li(T, u32::MAX);
        self.asm.op(Op::Sub, HI, T, HI);
        self.asm.branch(Op::Bge, of, 32, upper);
        for half in 0..2 {
            for (word, bit) in [(half, U), (SEES + half, V)] {
                self.read(T, INTAKE, word);
                self.asm.op(Op::And, T, T, HI);
                self.asm.op(Op::Or, T, T, bit);
                self.write(INTAKE, word, T);
            }
            if half == 0 {
                self.asm.jump(written);
                self.asm.bind(upper);
            }
        }
        self.asm.bind(written);
    }

    /// The function gets no frames any more, and its queues end.
    pub fn no_virtio(&mut self) {
        self.asm.li(U, 0);
        self.asm.li(V, 0);
        self.vq_bits(FN);
        let [each, next, over] = std::array::from_fn(|_| self.asm.label());
        self.asm.li(I, 0);
        self.asm.bind(each);
        self.line(I);
        self.read(T, AVAIL, FLAGS.into());
        self.asm.on_error(over);
        self.get(T, T, avail("function"));
        self.asm.branch(Op::Bne, T, FN, next);
        self.end_vq(I);
        self.asm.bind(next);
        self.asm.op(Op::Add, I, I, 1);
        self.asm.jump(each);
        self.asm.bind(over);
        // Its flows are forgotten.
        self.asm.op(Op::Or, T, FN, FLOWS);
        self.line(T);
        self.write(STEER, 0, ZERO);
    }
}
