//! Queue pairs: creation, state changes, removal.

use super::*;
use ferric_abi::codes::{QpState, QpType};
use ferric_abi::context::{AddressCtx, CqCtx, MrCtx, PathCtx, ReqCtx, RingCtx, RspCtx};
use ferric_abi::csr::space::ADDRESS;
use ferric_abi::csr::{ADDRESSES, PORT_PROMISCUOUS, PORT_RAW, SPECIAL};

/// Polls of both states before ModifyQp to ERROR answers anyway: far more than an idle pipeline needs.
const ERROR_POLLS: u32 = 256;

pub(super) fn req(name: &str) -> F {
    field(&ReqCtx::LAYOUT, name)
}
fn rsp(name: &str) -> F {
    field(&RspCtx::LAYOUT, name)
}
pub(super) fn ring(name: &str) -> F {
    field(&RingCtx::LAYOUT, name)
}
fn path(name: &str) -> F {
    field(&PathCtx::LAYOUT, name)
}

/// The word of a path in which a field begins that fills several.
fn first_word(name: &str) -> u8 {
    let field = PathCtx::LAYOUT.field(name).unwrap_or_else(|| panic!("a path has no field {name}"));
    (field.offset / 32) as u8
}

/// The parameter of MODIFY_QP that is the first word of the path.
const PATH_AT: u8 = 8;
/// Parameter word 1 of MODIFY_QP.
const PMTU: F = F { word: 1, shift: 0, mask: 7 };
const TIMEOUT: F = F { word: 1, shift: 3, mask: 31 };
const RETRY: F = F { word: 1, shift: 8, mask: 7 };
const RNR_RETRY: F = F { word: 1, shift: 11, mask: 7 };
const MIN_RNR: F = F { word: 1, shift: 14, mask: 31 };
const ACCESS: F = F { word: 1, shift: 19, mask: 7 };
const FLUSH: F = F { word: 1, shift: 24, mask: 1 };
const IPV6: F = F { word: 1, shift: 22, mask: 1 };
const VLAN: F = F { word: 1, shift: 23, mask: 1 };
const REPEAT_NAK: F = F { word: 1, shift: 25, mask: 1 };
/// Parameter word 6: READs and atomics outstanding, own and the peer's.
const MAX_RD: F = F { word: 6, shift: 0, mask: 31 };
const MAX_DEST_RD: F = F { word: 6, shift: 8, mask: 31 };
/// Most of either.
const MOST_RD: u32 = 16;

impl Program {
    /// `d` = word 2 of a ring from parameters `n`.. (base, base, word 2), not valid. The base is checked against the slot size.
    pub(super) fn ring_attributes(&mut self, d: R, n: u8) {
        self.get(T, p(n + 2), ring("log_size"));
        self.refuse(AdminStatus::BadParameter, Op::Beq, T, 0);
        self.get(U, p(n + 2), ring("stride"));
        self.asm.li(d, 0);
        self.set(d, d, T, ring("log_size"));
        self.set(d, d, U, ring("stride"));
        self.set(d, d, FN, ring("function"));
        self.asm.li(T, 64);
        self.asm.op(Op::Shl, T, T, U);
        self.asm.op(Op::Sub, T, T, 1);
        self.asm.op(Op::And, T, T, p(n));
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
    }

    /// log2 of the numbers of queue pairs in a function's share.
    fn log_share(&self) -> u32 {
        self.qp.log - self.share
    }

    /// Number ID must be free and one that the function may use for a queue pair. One in each share is that function's special queue pair's (`ferric_abi::special::special_queue_pair`), whatever ranges say;
    /// number 0 is the physical function's. Changes what `may_use` does.
    fn fresh_queue_pair(&mut self) {
        let [ordinary, own] = std::array::from_fn(|_| self.asm.label());
        let log = self.log_share();
        assert!(log > 1, "a function has no numbers but that of its special queue pair");
        self.refuse(AdminStatus::BadId, Op::Bge, ID, self.qp.count);
        self.asm.ext(T, ID, 0, (1 << log) - 1);
        self.asm.branch(Op::Bne, T, SPECIAL, ordinary);
        self.asm.op(Op::Shr, T, ID, log);
        self.refuse(AdminStatus::BadId, Op::Bne, T, FN);
        self.is_free(self.qp);
        self.asm.jump(own);
        self.asm.bind(ordinary);
        self.fresh(self.qp);
        self.asm.branch(Op::Beq, FN, 0, own);
        self.refuse(AdminStatus::BadId, Op::Beq, ID, 0);
        self.asm.bind(own);
    }

    /// Nobody's special queue pair speaks as another function: what it says it comes from must be one of the function's own addresses (SET_ADDRESS), which no other function in the network has.
    /// The physical function is believed, as it is with its raw queue pair. The line stays ID's. Changes T, U, I, N, LO.
    fn own_source(&mut self) {
        let [each, next, untagged, found, fine] = std::array::from_fn(|_| self.asm.label());
        let address = |name| field(&AddressCtx::LAYOUT, name);
        let (tci, mac, ip) = (path("vlan_tci"), first_word("smac"), first_word("sip"));
        self.asm.branch(Op::Beq, FN, 0, fine);
        self.asm.ext(T, ID, 0, (1 << self.log_share()) - 1);
        self.asm.branch(Op::Bne, T, SPECIAL, fine);
        // LO: what the last word of the address must be.
        self.asm.op(Op::And, LO, p(PATH_AT + mac + 1), addresses::MAC_HIGH);
        self.get(U, p(1), IPV6);
        self.set(LO, LO, U, address("ipv6"));
        self.get(U, p(1), VLAN);
        self.asm.branch(Op::Beq, U, 0, untagged);
        self.set(LO, LO, U, address("vlan"));
        self.get(U, p(PATH_AT + tci.word as u8), tci);
        self.set(LO, LO, U, address("vid"));
        self.asm.bind(untagged);
        self.set_to(LO, address("valid"), 1);
        self.asm.op(Op::Shl, I, FN, ADDRESSES.ilog2());
        self.asm.op(Op::Add, N, I, ADDRESSES);
        self.asm.bind(each);
        self.line(I);
        self.read(T, ADDRESS, addresses::LAST);
        self.asm.branch(Op::Bne, T, LO, next);
        self.read(T, ADDRESS, addresses::MAC_LOW);
        self.asm.branch(Op::Bne, T, p(PATH_AT + mac), next);
        for n in 0..addresses::IP_WORDS {
            self.read(T, ADDRESS, n.into());
            self.asm.branch(Op::Bne, T, p(PATH_AT + ip + n), next);
        }
        self.asm.jump(found);
        self.asm.bind(next);
        self.asm.op(Op::Add, I, I, 1);
        self.refuse(AdminStatus::Denied, Op::Beq, I, N);
        self.asm.jump(each);
        self.asm.bind(found);
        self.line(ID);
        self.asm.bind(fine);
    }

    /// The address in line N may go: InUse if the function's special queue pair speaks from it. The physical function's may have any. Changes T, U, V; the line is N's.
    pub(super) fn not_spoken_from(&mut self) {
        let free = self.asm.label();
        self.asm.branch(Op::Beq, FN, 0, free);
        self.asm.op(Op::Shl, T, FN, self.log_share());
        self.asm.op(Op::Or, T, T, SPECIAL);
        // A reset leaves the paths of queue pairs that are no more as they were.
        self.asm.op(Op::Ld, U, T, self.qp.base);
        self.asm.branch(Op::Beq, U, 0, free);
        self.line(T);
        self.read(U, PATH, path("valid").word);
        self.get(U, U, path("valid"));
        self.asm.branch(Op::Beq, U, 0, free);
        for n in 0..addresses::IP_WORDS {
            self.line(T);
            self.read(U, PATH, u32::from(first_word("sip") + n));
            self.line(N);
            self.read(V, ADDRESS, n.into());
            self.asm.branch(Op::Bne, U, V, free);
        }
        self.refuse(AdminStatus::InUse, Op::Beq, ZERO, 0);
        self.asm.bind(free);
        self.line(N);
    }

    pub fn create_qp(&mut self) {
        self.fresh_queue_pair();
        self.asm.ext(T, p(0), 0, 7);
        self.refuse(AdminStatus::BadParameter, Op::Bge, T, 4);
        // Raw frames carry any source address: they are the physical function's, and those of functions that may send into their tunnel what they like.
        let no_raw = self.asm.label();
        self.asm.branch(Op::Beq, FN, 0, no_raw);
        self.may_have_raw(no_raw);
        self.refuse(AdminStatus::Denied, Op::Beq, T, QpType::Raw as u32);
        self.asm.bind(no_raw);
        self.own(self.pd, p(1));
        self.own(self.cq, p(2));
        self.own(self.cq, p(3));
        // LO: protection domain, and event queue of the send completion queue, which belongs to the function as that does.
        self.line(p(2));
        self.read(LO, CQ, 3);
        self.get(LO, LO, field(&CqCtx::LAYOUT, "eqn"));
        self.set(LO, p(1), LO, req("eqn"));
        self.ring_attributes(V, 4);
        // I: its receive ring, N: the protection domain of that.
        let (shared, rings) = (self.asm.label(), self.asm.label());
        self.asm.ext(T, p(0), 4, 1);
        self.asm.branch(Op::Bne, T, 0, shared);
        self.ring_attributes(W, 7);
        self.asm.mov(I, ID);
        self.asm.mov(N, p(1));
        self.asm.jump(rings);
        self.asm.bind(shared);
        self.asm.ext(T, p(0), 0, 7);
        self.refuse(AdminStatus::BadParameter, Op::Beq, T, QpType::Raw as u32);
        self.own(self.srq, p(10));
        self.shared_line(I, p(10));
        self.read(N, RQ, ring("pd").word);
        self.get(N, N, ring("pd"));
        self.asm.op(Op::Or, I, I, 1 << rsp("srq").shift);
        self.asm.mov(W, ZERO);
        self.asm.bind(rings);
        self.line(ID);
        self.write(RSP, rsp("rq").word, I);
        self.write(RSP, rsp("rq_pd").word, N);
        for (space, attributes, n) in [(SQ, V, 4), (RQ, W, 7)] {
            self.write(space, 2, attributes);
            self.write(space, 0, p(n));
            self.write(space, 1, p(n + 1));
            self.write(space, 4, ZERO);
        }
        // The epochs go on from the number's former life.
        self.read(T, REQ, 0);
        self.asm.op(Op::And, T, T, req("epoch").mask << req("epoch").shift);
        self.asm.ext(U, p(0), 0, 7);
        self.set(T, T, U, req("qp_type"));
        self.asm.ext(V, p(0), 3, 1);
        self.set(T, T, V, req("sig_all"));
        self.write(REQ, 0, T);
        self.get(T, T, req("epoch"));
        self.write(SQ, 3, T);
        self.read(T, RSP, 0);
        self.asm.op(Op::And, T, T, rsp("epoch").mask << rsp("epoch").shift);
        self.set(T, T, U, rsp("qp_type"));
        self.write(RSP, 0, T);
        self.get(T, T, rsp("epoch"));
        self.write(RQ, 3, T);
        self.write(REQ, 1, p(2));
        self.write(RSP, 1, p(3));
        self.asm.mov(T, ZERO);
        self.set(T, T, FN, req("function"));
        for (space, domain) in [(REQ, LO), (RSP, p(1))] {
            self.write(space, 2, domain);
            self.write(space, 3, T);
            self.write(space, 4, ZERO);
        }
        self.clear_state();
        self.users(self.pd, p(1), Op::Add);
        self.users(self.cq, p(2), Op::Add);
        self.users(self.cq, p(3), Op::Add);
        let own_ring = self.asm.label();
        self.asm.ext(T, p(0), 4, 1);
        self.asm.branch(Op::Beq, T, 0, own_ring);
        self.users(self.srq, p(10), Op::Add);
        self.asm.bind(own_ring);
        self.make(self.qp);
        self.done();
    }

    /// Zeroes the state words of line ID; its path is void.
    fn clear_state(&mut self) {
        for word in 5..13 {
            self.write(REQ, word, ZERO);
        }
        for word in 5..13 {
            self.write(RSP, word, ZERO);
        }
        self.write(SQ, 4, ZERO);
        self.write(RQ, 4, ZERO);
        self.write(PATH, path("valid").word, ZERO);
    }

    /// Rings as they were made: not valid, no flags (the queue units keep `active` to themselves).
    fn rings_invalid(&mut self) {
        let [size, stride, function] = ["log_size", "stride", "function"].map(|name| {
            let f = ring(name);
            f.mask << f.shift
        });
        for space in [SQ, RQ] {
            self.read(T, space, 2);
            self.asm.op(Op::And, T, T, size | stride | function);
            self.write(space, 2, T);
        }
    }

    /// Responder word 0 to T: RESET and no message in progress.
    fn responder_reset(&mut self) {
        self.read(T, RSP, 0);
        for name in ["state", "nak_sent", "in_msg", "rnr_sent"] {
            self.set_to(T, rsp(name), 0);
        }
    }

    /// Waits until the key unit has answered what it was asked for.
    fn local_done(&mut self) {
        let executing = self.asm.here();
        self.read(T, REQ, req("local").word);
        self.get(T, T, req("local"));
        self.asm.branch(Op::Beq, T, 1, executing);
    }

    pub(super) fn queue_pair_down(&mut self) {
        self.asm.bind(self.qp_stop);
        self.line(ID);
        self.rings_invalid();
        self.requester_reset();
        self.responder_reset();
        self.get(U, T, rsp("epoch"));
        self.asm.op(Op::Add, U, U, 1);
        self.set(T, T, U, rsp("epoch"));
        self.write(RSP, 0, T);
        // The key unit may be at work on a local operation: it is awaited, the next life would take the answer for its own.
        self.local_done();
        // The receive of a message in progress: the responder gives the buffer back, behind the orders that use it.
        let (none, held) = (self.asm.label(), F { shift: rsp("rq_handle").shift + 7, mask: 1, ..rsp("rq_handle") });
        self.read(T, RSP, held.word);
        self.get(T, T, held);
        self.asm.branch(Op::Beq, T, 0, none);
        self.asm.act(Op::Error, ID, U, notice::LIFE);
        let waiting = self.asm.here();
        self.read(T, RSP, held.word);
        self.get(T, T, held);
        self.asm.branch(Op::Bne, T, 0, waiting);
        self.asm.bind(none);
        self.asm.ret(LINK);

        self.asm.bind(self.qp_down);
        self.asm.call(LINK, self.qp_stop);
        self.drain_queue_pair();
        // Now nothing of the queue pair is on its way any more. An engine may have rewound between the reads and the
        // writes above: once more, so that the epoch is one that nothing carries.
        self.rings_invalid();
        self.requester_reset();
        self.get(T, T, req("epoch"));
        self.write(SQ, 3, T);
        self.responder_reset();
        self.write(RSP, 0, T);
        self.get(T, T, rsp("epoch"));
        self.write(RQ, 3, T);
        self.clear_state();
        self.asm.ret(LINK2);
    }

    pub(super) fn remove_queue_pair(&mut self) {
        self.asm.bind(self.remove_qp);
        let not_raw = self.asm.label();
        self.asm.op(Op::Or, T, ID, PORT_RAW);
        self.asm.op(Op::And, U, RAW, !PORT_PROMISCUOUS);
        self.asm.branch(Op::Bne, T, U, not_raw);
        self.asm.li(RAW, 0);
        self.asm.act(Op::Out, RAW, ZERO, output::RAW_QUEUE);
        self.asm.bind(not_raw);
        self.no_raw_queue_pair(T);
        self.leave_groups();
        self.asm.call(LINK2, self.qp_down);
        self.free_windows();
        self.line(ID);
        self.read(W, REQ, 2);
        self.get(W, W, req("pd"));
        self.users(self.pd, W, Op::Sub);
        self.read(W, REQ, 1);
        self.get(W, W, req("scqn"));
        self.users(self.cq, W, Op::Sub);
        self.read(W, RSP, 1);
        self.get(W, W, rsp("rcqn"));
        self.users(self.cq, W, Op::Sub);
        let own_ring = self.asm.label();
        self.read(W, RSP, rsp("rq").word);
        self.get(T, W, rsp("srq"));
        self.asm.branch(Op::Beq, T, 0, own_ring);
        self.get(W, W, rsp("rq"));
        self.asm.op(Op::Sub, W, W, self.qp.count);
        self.users(self.srq, W, Op::Sub);
        self.asm.bind(own_ring);
        self.unmake(self.qp);
        self.asm.ret(LINK3);
    }

    /// Windows of type 2 that were bound through queue pair ID become free (IBTA 10.6.7.2.2): they do not serve the next one of its number.
    /// A look at each region takes thousands of cycles: a card without windows is spared them.
    fn free_windows(&mut self) {
        let none = self.asm.label();
        self.asm.op(Op::Ld, T, ZERO, self.windows);
        self.asm.branch(Op::Beq, T, 0, none);
        let mr = |name: &str| field(&MrCtx::LAYOUT, name);
        let bound = [mr("valid"), mr("window"), mr("fast")].iter().fold(0, |bits, f| bits | f.mask << f.shift);
        self.each_object(self.mr, (I, N), |p| {
            let stays = p.asm.label();
            p.read(T, MR, 0);
            p.asm.op(Op::And, U, T, bound);
            p.asm.branch(Op::Bne, U, bound, stays);
            p.read(U, MR, mr("qpn").word);
            p.get(U, U, mr("qpn"));
            p.asm.branch(Op::Bne, U, ID, stays);
            p.set_to(T, mr("valid"), 0);
            p.write(MR, 0, T);
            p.asm.bind(stays);
        });
        self.asm.bind(none);
    }

    pub fn modify_qp(&mut self) {
        let [to_init, to_rtr, to_rts, to_sqd, to_error, to_reset] = std::array::from_fn(|_| self.asm.label());
        self.own(self.qp, ID);
        self.line(ID);
        self.read(W, REQ, 0);
        self.get(V, W, req("state"));
        self.read(U, RSP, 0);
        self.get(U, U, rsp("state"));
        // W: requester word 0, V, U: the two states
        for (state, label) in [(QpState::Reset, to_reset), (QpState::Init, to_init), (QpState::Rtr, to_rtr), (QpState::Rts, to_rts), (QpState::Sqd, to_sqd), (QpState::Error, to_error)] {
            self.asm.branch(Op::Beq, p(0), state as u32, label);
        }
        self.asm.jump(self.fails(AdminStatus::BadParameter));

        self.asm.bind(to_reset);
        self.asm.call(LINK2, self.qp_down);
        self.done();

        self.asm.bind(to_init);
        self.must_be_in(QpState::Reset);
        self.init();
        self.done();

        self.asm.bind(to_rtr);
        self.must_be_in(QpState::Init);
        self.ready_to_receive();
        self.done();

        self.asm.bind(to_sqd);
        self.refuse(AdminStatus::BadState, Op::Bne, V, QpState::Rts as u32);
        self.told(notice::DRAIN, QpState::Rts);
        self.done();

        self.asm.bind(to_rts);
        let [drained, failed] = std::array::from_fn(|_| self.asm.label());
        self.asm.branch(Op::Beq, V, QpState::Sqd as u32, drained);
        self.asm.branch(Op::Beq, V, QpState::SqError as u32, failed);
        self.must_be_in(QpState::Rtr);
        self.ready_to_send();
        self.done();

        self.asm.bind(drained);
        self.told(notice::RESUME, QpState::Sqd);
        self.done();

        self.asm.bind(failed);
        self.start_again();
        self.done();

        self.asm.bind(to_error);
        self.error();
    }

    /// The requester is told to leave `state` (`how`: of [`Op::Error`]), and has.
    fn told(&mut self, how: u32, state: QpState) {
        self.asm.act(Op::Error, ID, ZERO, how);
        let waiting = self.asm.here();
        self.read(T, REQ, req("state").word);
        self.get(T, T, req("state"));
        self.asm.branch(Op::Beq, T, state as u32, waiting);
    }

    /// From SQ error to RTS (IBTA 10.3.1): when all that was posted has been flushed, the requester begins anew behind it. PSNs go on where they were.
    fn start_again(&mut self) {
        self.local_done();
        let flushing = self.asm.here();
        self.read(T, SQ, ring("fetch").word);
        self.get(N, T, ring("fetch"));
        self.get(U, T, ring("producer"));
        self.asm.branch(Op::Bne, U, N, flushing);
        // What is posted from here on waits: flushed, or parked, but not both. The last one flushed may have come meanwhile.
        self.read(T, SQ, ring("flush").word);
        self.set_to(T, ring("flush"), 0);
        self.set_to(T, ring("parked"), 1);
        self.write(SQ, ring("flush").word, T);
        self.read(T, SQ, ring("fetch").word);
        self.get(N, T, ring("fetch"));
        self.read(T, REQ, req("max_psn").word);
        self.get(T, T, req("max_psn"));
        self.read(U, REQ, req("next_psn").word);
        self.asm.op(Op::And, U, U, 0x3f00_0000);
        self.asm.op(Op::Or, U, U, T);
        // The requester lets the queue go on when it sends again.
        self.set_to(U, req("parked"), 1);
        self.write(REQ, req("next_psn").word, U);
        for name in ["una_psn", "max_psn", "una_wqe_psn"] {
            self.write(REQ, req(name).word, T);
        }
        self.write(REQ, req("msg_offset").word, ZERO);
        self.asm.mov(U, N);
        self.set(U, U, N, req("next_index"));
        self.write(REQ, req("next_index").word, U);
        for name in ["sent_index", "done_index"] {
            self.write(REQ, req(name).word, N);
        }
        self.told(notice::SQ_RECOVERED, QpState::SqError);
    }

    /// Both halves must be in `state`.
    fn must_be_in(&mut self, state: QpState) {
        self.refuse(AdminStatus::BadState, Op::Bne, V, state as u32);
        self.refuse(AdminStatus::BadState, Op::Bne, U, state as u32);
    }

    fn init(&mut self) {
        // A new life: what the blocks keep of an earlier one whose epoch was the same must not count. The responder sends the word through
        // all of them and then says that no message is in progress.
        let unwiped = rsp("in_msg");
        self.read(T, RSP, 0);
        self.set_to(T, unwiped, 3);
        self.write(RSP, 0, T);
        self.get(U, T, rsp("epoch"));
        self.asm.act(Op::Error, ID, U, notice::LIFE);
        let waiting = self.asm.here();
        self.read(T, RSP, 0);
        self.get(T, T, unwiped);
        self.asm.branch(Op::Bne, T, 0, waiting);
        for space in [REQ, RSP] {
            self.read(T, space, 3);
            self.set(T, T, p(5), req("pkey"));
            self.write(space, 3, T);
        }
        self.write(RSP, rsp("qkey").word, p(7));
        self.write(PATH, path("qkey").word, p(7));
        self.set_to(W, req("state"), QpState::Init as u32);
        self.write(REQ, 0, W);
        self.read(T, RSP, 0);
        self.set_access(T);
        self.set_to(T, rsp("state"), QpState::Init as u32);
        self.write(RSP, 0, T);
        let shared = self.asm.label();
        self.read(T, RSP, rsp("srq").word);
        self.get(T, T, rsp("srq"));
        self.asm.branch(Op::Bne, T, 0, shared);
        self.ring_valid(RQ);
        self.asm.bind(shared);
    }

    /// Permission bits of the responder's word 0 in `d`; the three older ones lie side by side.
    fn set_access(&mut self, d: R) {
        self.get(U, p(1), ACCESS);
        self.asm.ins(d, d, U, rsp("remote_write").shift, 7);
        self.get(U, p(1), FLUSH);
        self.set(d, d, U, rsp("remote_flush"));
    }

    fn ring_valid(&mut self, space: u8) {
        let valid = ring("valid");
        self.read(T, space, 2);
        self.set_to(T, valid, 1);
        self.write(space, 2, T);
    }

    fn ready_to_receive(&mut self) {
        self.get(T, p(6), MAX_DEST_RD);
        self.refuse(AdminStatus::BadParameter, Op::Bge, T, MOST_RD + 1);
        let pathless = self.asm.label();
        self.get(T, W, req("qp_type"));
        self.asm.branch(Op::Beq, T, QpType::Raw as u32, pathless);
        self.get(T, p(1), PMTU);
        self.refuse(AdminStatus::BadParameter, Op::Beq, T, 0);
        self.refuse(AdminStatus::BadParameter, Op::Bge, T, 6);
        self.fits_tunnel(T);
        self.own_source();
        let (flags, qkey, function) = (path("valid").word, path("qkey").word, path("function").word);
        for word in (0..16).filter(|word| ![flags, qkey, function].contains(word)) {
            self.write(PATH, word, p(PATH_AT + word as u8));
        }
        // Not what the command says: whose it is.
        self.write(PATH, function, FN);
        self.asm.mov(T, p(PATH_AT + flags as u8));
        for (from, to) in [(IPV6, "ipv6"), (VLAN, "vlan")] {
            self.get(U, p(1), from);
            self.set(T, T, U, path(to));
        }
        self.set_to(T, path("valid"), 1);
        self.write(PATH, flags, T);
        self.asm.bind(pathless);
        self.asm.op(Op::And, T, p(2), 0xff_ffff);
        self.write(REQ, 4, T);
        self.write(RSP, 4, T);
        self.asm.op(Op::And, T, p(3), 0xff_ffff);
        self.write(RSP, 5, T);
        for (from, to) in [(PMTU, "pmtu"), (IPV6, "ipv6"), (VLAN, "vlan")] {
            self.get(U, p(1), from);
            self.set(W, W, U, req(to));
        }
        self.set_to(W, req("state"), QpState::Rtr as u32);
        self.write(REQ, 0, W);
        self.read(T, RSP, 0);
        for (from, to) in [(PMTU, "pmtu"), (MIN_RNR, "min_rnr_timer"), (IPV6, "ipv6"), (VLAN, "vlan")] {
            self.get(U, p(1), from);
            self.set(T, T, U, rsp(to));
        }
        self.set_access(T);
        self.set_to(T, rsp("state"), QpState::Rtr as u32);
        self.read(V, RSP, 1);
        self.get(U, p(6), MAX_DEST_RD);
        self.set(V, V, U, rsp("max_dest_rd_atomic"));
        self.get(U, p(1), REPEAT_NAK);
        self.set(V, V, U, rsp("repeat_nak"));
        self.write(RSP, 1, V);
        self.write(RSP, 0, T);
    }

    /// Only the requester changes: the responder is at work in RTR already, and a word of its line cannot be replaced
    /// from here without losing what it does between the read and the write.
    fn ready_to_send(&mut self) {
        self.get(T, p(6), MAX_RD);
        self.refuse(AdminStatus::BadParameter, Op::Bge, T, MOST_RD + 1);
        self.read(V, REQ, 1);
        self.set(V, V, T, req("max_rd_atomic"));
        self.write(REQ, 1, V);
        self.asm.op(Op::And, T, p(4), 0xff_ffff);
        self.get(U, p(1), RETRY);
        self.set(V, T, U, req("retries_left"));
        self.get(U, p(1), RNR_RETRY);
        self.set(V, V, U, req("rnr_left"));
        self.write(REQ, 5, V);
        for word in [6, 7, 9] {
            self.write(REQ, word, T);
        }
        for word in [8, 10, 11, 12] {
            self.write(REQ, word, ZERO);
        }
        for (from, to) in [(TIMEOUT, "timeout"), (RETRY, "retry_cnt"), (RNR_RETRY, "rnr_retry")] {
            self.get(U, p(1), from);
            self.set(W, W, U, req(to));
        }
        self.set_to(W, req("state"), QpState::Rts as u32);
        self.get(T, W, req("epoch"));
        self.write(SQ, 3, T);
        self.ring_valid(SQ);
        self.write(REQ, 0, W);
        // The responder may have failed before it was written, and the requester have heard of it in vain: it is told again.
        let fine = self.asm.label();
        self.read(T, RSP, 0);
        self.get(T, T, rsp("state"));
        self.asm.branch(Op::Bne, T, QpState::Error as u32, fine);
        self.told(0, QpState::Rts);
        self.asm.bind(fine);
    }

    /// V: requester's state, W: its word 0.
    fn error(&mut self) {
        let active = self.asm.label();
        let ok = self.fails(AdminStatus::Ok);
        let error = QpState::Error as u32;
        self.asm.branch(Op::Beq, V, error, ok);
        self.asm.branch(Op::Bne, V, QpState::Reset as u32, active);
        // Nothing was posted, nothing is on its way: no engine is needed.
        self.set_to(W, req("state"), error);
        self.write(REQ, 0, W);
        self.read(T, RSP, 0);
        self.set_to(T, rsp("state"), error);
        self.write(RSP, 0, T);
        self.done();
        self.asm.bind(active);
        self.get(T, W, req("epoch"));
        self.asm.act(Op::Error, ID, T, 0);
        self.read(T, RSP, 0);
        self.get(T, T, rsp("epoch"));
        self.asm.act(Op::Error, ID, T, 1);
        self.asm.li(I, ERROR_POLLS);
        let again = self.asm.label();
        let poll = self.asm.here();
        self.read(T, REQ, 0);
        self.get(T, T, req("state"));
        self.asm.branch(Op::Bne, T, error, again);
        self.read(T, RSP, 0);
        self.get(T, T, rsp("state"));
        self.asm.branch(Op::Beq, T, error, ok);
        self.asm.bind(again);
        self.asm.op(Op::Sub, I, I, 1);
        self.asm.branch(Op::Bne, I, 0, poll);
        self.done();
    }
}
