//! Ultra Ethernet (docs/admin.md, SET_UET_PEER and SET_UET_ENDS): lines of the tables of the engine `uet`. Its blocks work meanwhile: the word that makes a line count is the first that is cleared and the last
//! that is written.

use super::*;
use ferric_abi::context::{PathCtx, RingCtx};

/// Tables of the engine: peers, a `PathCtx` each, and in line 0 of the other the ring for ends (`RingCtx`).
pub const PEERS: &str = "uet peers";
pub const ENDS: &str = "uet ends";
/// And whose PDCs and messages end: a word with the number of a peer, or with bit `EVERYBODY`. It is written when the peer's line does not count any more, and is answered when they have.
pub const GONE: &str = "uet gone";
pub const EVERYBODY: u8 = 16;
/// Peers of a card.
pub const UET_PEERS: u32 = 16;
/// Words of a path that a command brings, the one that makes it count, and that of whose it is.
const PATH_WORDS: u8 = 14;
const COUNTS: u8 = 13;
const WHOSE: u32 = 15;
/// Parameters of SET_UET_ENDS: the ring's address in two words, and its size.
const SIZE: u8 = 2;
const RING: u32 = 2;
/// Bytes of an entry, log2.
const LOG_ENTRY: u8 = 6;

fn path(name: &str) -> F {
    field(&PathCtx::LAYOUT, name)
}

fn ring(name: &str) -> F {
    field(&RingCtx::LAYOUT, name)
}

impl Program {
    /// W: a domain. The protection domain is the function's, and has a user more; that of the peer who was there has one less.
    pub fn set_uet_peer(&mut self) {
        let gone = self.asm.label();
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadId, Op::Bge, ID, UET_PEERS);
        self.get(T, p(COUNTS), path("valid"));
        self.asm.branch(Op::Beq, T, 0, gone);
        self.get(W, p(COUNTS), path("vlan"));
        self.refuse(AdminStatus::BadParameter, Op::Bne, W, 0);
        self.get(W, p(COUNTS), path("hop_limit"));
        self.refuse(AdminStatus::BadParameter, Op::Beq, W, 0);
        self.get(W, p(COUNTS), path("pkey"));
        self.own(self.pd, W);
        self.users(self.pd, W, Op::Add);
        self.leave_domain();
        self.write(PEERS, COUNTS.into(), ZERO);
        self.write(GONE, 0, ID);
        self.drain();
        for n in 0..PATH_WORDS - 1 {
            self.write(PEERS, n.into(), p(n));
        }
        self.asm.li(T, 0);
        self.set(T, T, FN, path("function"));
        self.write(PEERS, WHOSE, T);
        self.write(PEERS, COUNTS.into(), p(COUNTS));
        self.done();
        self.asm.bind(gone);
        self.leave_domain();
        self.write(PEERS, COUNTS.into(), ZERO);
        self.write(GONE, 0, ID);
        self.drain();
        self.done();
    }

    /// The domain of peer ID, if there is one, has a user less. The line at hand is the peer's; W changes.
    fn leave_domain(&mut self) {
        let nobody = self.asm.label();
        self.line(ID);
        self.read(T, PEERS, COUNTS.into());
        self.get(W, T, path("valid"));
        self.asm.branch(Op::Beq, W, 0, nobody);
        self.get(W, T, path("pkey"));
        self.users(self.pd, W, Op::Sub);
        self.asm.bind(nobody);
    }

    /// A size of 0: none.
    pub fn set_uet_ends(&mut self) {
        let gone = self.asm.label();
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadId, Op::Bne, ID, 0);
        self.asm.branch(Op::Beq, p(SIZE), 0, gone);
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(SIZE), 1 << 4);
        self.asm.ext(T, p(0), 0, (1 << LOG_ENTRY) - 1);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        self.line(ZERO);
        self.write(ENDS, RING, ZERO);
        self.drain();
        self.write(ENDS, 0, p(0));
        self.write(ENDS, 1, p(1));
        self.asm.li(T, 0);
        self.set(T, T, FN, ring("function"));
        self.set(T, T, p(SIZE), ring("log_size"));
        self.set_to(T, ring("valid"), 1);
        self.write(ENDS, RING, T);
        self.done();
        self.asm.bind(gone);
        self.line(ZERO);
        self.write(ENDS, RING, ZERO);
        self.drain();
        self.done();
    }

    /// With the physical function go its ring, its peers and all that is under way with them: no end is written for it. Their domains go with the function's other objects, behind a drain.
    pub fn no_uet(&mut self) {
        let stays = self.asm.label();
        self.asm.branch(Op::Bne, FN, 0, stays);
        self.line(ZERO);
        self.write(ENDS, RING, ZERO);
        self.asm.li(I, 0);
        let each = self.asm.here();
        self.line(I);
        self.write(PEERS, COUNTS.into(), ZERO);
        self.asm.op(Op::Add, I, I, 1);
        self.asm.branch(Op::Bne, I, UET_PEERS, each);
        self.asm.li(T, 1 << EVERYBODY);
        self.write(GONE, 0, T);
        self.asm.bind(stays);
    }
}
