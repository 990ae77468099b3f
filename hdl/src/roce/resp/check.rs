//! The checks of one request against its queue pair, spread over two cycles.
use super::decode::OpKind;
use crate::codes::message;
use crate::msg::RxRequest;
use crate::prim::sum::Sum;
use crate::records::RspCtx;
use ferric_abi::codes::{QpState, QpType};
use ferric_abi::wire::{feth, opcode, pmtu, GRH_BYTES};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Bytes that an atomic works on.
const ATOMIC_BYTES: u64 = 8;

// Bits of a FETH that have no meaning, and of its placement types.
const NO_FETH: u64 = (feth::RESERVED | feth::PLACEMENT & !(feth::GLOBAL | feth::PERSISTENT)) as u64;
const PLACED: u64 = (feth::GLOBAL | feth::PERSISTENT) as u64;

/// What is to be done with a packet.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Verdict {
    /// Queue pair absent or not ready.
    NoQp,
    /// A congestion notification: nothing to be done here.
    Notice,
    /// Opcode class or response opcode that does not belong here.
    Transport,
    /// Partition key mismatch.
    Pkey,
    /// Datagram with another queue pair's Q_Key.
    Qkey,
    /// Already executed: acknowledge again.
    Duplicate,
    /// Ahead of a gap that the peer does not know of, or whose repeat has been lost: sequence NAK.
    Gap,
    /// Ahead of a gap that the peer knows of.
    Silent,
    /// NAK invalid request.
    Invalid,
    /// NAK remote access error.
    Access,
    /// In order, but no receive request is posted.
    NoReceive,
    /// The shared receive queue is in error.
    Dead,
    /// Unreliable connection: message lost. Datagram: wrong length.
    Broken,
    /// Raw frame without a raw queue.
    NoRaw,
    /// Needs a receive request, or the one it has fetched once more; then `Accept`.
    Receive,
    /// Execute.
    Accept,
}

/// Sums and selections that go into the placement order and the new context, next to the verdict.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Sums {
    /// Where this packet's WRITE payload goes, and with which key.
    pub va: Bits<64>,
    pub key: Bits<32>,
    /// WRITE bytes to come including this packet, and without it.
    pub chk_len: Bits<32>,
    pub left: Bits<32>,
    /// `va` after this packet.
    pub va_next: Bits<64>,
    /// Bytes of the message before this packet, and with it.
    pub offset: Bits<32>,
    pub bytes: Bits<32>,
    /// PSNs that the request takes (IBTA 9.7.2.1: a READ as many as its response has packets).
    pub step: Bits<24>,
    /// A READ or atomic that may be answered again: well formed, and all its PSNs are behind.
    pub again: Bit,
    /// How far ahead of the expected PSN, at most 255.
    pub ahead: Bits<8>,
    /// Datagram: bytes with the GRH area in front.
    pub datagram: Bits<14>,
}

/// `rx` and `kind` must be stable from one cycle before `ctx` and stay; the result belongs to them two cycles later.
#[derive(LogicBlock, Default)]
pub struct RequestCheck {
    pub clock: Signal<In, Clock>,
    pub rx: Signal<In, RxRequest>,
    pub kind: Signal<In, OpKind>,
    pub ctx: Signal<In, RspCtx>,
    /// One cycle behind `ctx`: the receive buffer of the message in progress has been taken away.
    pub gone: Signal<In, Bit>,
    /// One cycle behind `ctx`: no further READ or atomic is granted.
    pub full: Signal<In, Bit>,
    /// One cycle behind `ctx`: its receive ring has requests enough, whoever asks at the moment.
    pub plenty: Signal<In, Bit>,
    pub verdict: Signal<Out, Verdict>,
    /// Accepted, and the receive request comes while the order is on its way: the message ends here.
    pub late: Signal<Out, Bit>,
    /// `late`, and of a datagram with payload: its header has an order of its own, before.
    pub twice: Signal<Out, Bit>,
    /// The verdict is `Receive`. A bit of its own, as the next one, because much of a cycle follows it.
    pub asks: Signal<Out, Bit>,
    /// The verdict ends the queue pair: it is `Invalid` or `Access`.
    pub fatal: Signal<Out, Bit>,
    pub sums: Signal<Out, Sums>,
    decision: DFF<Verdict>,
    comes: DFF<Bit>,
    double: DFF<Bit>,
    receive: DFF<Bit>,
    ending: DFF<Bit>,
    sum: DFF<Sums>,
    // first cycle
    alive: DFF<Bit>,
    rc: DFF<Bit>,
    transport_ok: DFF<Bit>,
    pkey_ok: DFF<Bit>,
    qkey_bad: DFF<Bit>,
    qkey_diff: Signal<Local, Bits<32>>,
    expected: DFF<Bit>,
    behind: DFF<Bit>,
    repeats: DFF<Bit>,
    reminds: DFF<Bit>,
    sum_bad: DFF<Bit>,
    whole: DFF<Bit>,
    over: DFF<Bit>,
    pad_bad: DFF<Bit>,
    order_bad: DFF<Bit>,
    denied: DFF<Bit>,
    barred: DFF<Bit>,
    stuffed: DFF<Bit>,
    too_long: DFF<Bit>,
    some: DFF<Bit>,
    /// A READ's length rounded up to whole packets, but for the bits below.
    rounded: DFF<Bits<32>>,
    /// PSNs from the packet's to the expected one.
    room: DFF<Bits<24>>,
    wants: DFF<Bit>,
    uses: DFF<Bit>,
    mtu: Signal<Local, Bits<13>>,
    distance: Signal<Local, Bits<24>>,
    far: Signal<Local, Bit>,
    ahead: Signal<Local, Bits<8>>,
    near: Signal<Local, Bits<8>>,
    bad: Signal<Local, Bit>,
    before: Signal<Local, Bits<32>>,
    pay: Signal<Local, Bits<32>>,
    pay_low: Signal<Local, Bits<2>>,
    pay_pad: Signal<Local, Bits<2>>,
    keys: Signal<Local, Bits<16>>,
    key_diff: Signal<Local, Bits<15>>,
    advance: Sum<64>,
    handle: Signal<Local, Bits<8>>,
    held: Signal<Local, Bit>,
    over_2g: Signal<Local, Bit>,
    chk: Signal<Local, Bits<32>>,
    total: Signal<Local, Bits<32>>,
    rest: Signal<Local, Bits<31>>,
    endless: Signal<Local, Bit>,
    len_bad: Signal<Local, Bit>,
    lost: Signal<Local, Bit>,
    mtu_less: Signal<Local, Bits<32>>,
    packets: Signal<Local, Bits<24>>,
    low_va: Signal<Local, Bits<64>>,
    feth: Signal<Local, Bits<32>>,
    /// A FLUSH of the whole region; its FETH has a meaning.
    all: Signal<Local, Bit>,
    meant: Signal<Local, Bit>,
}

#[kernel]
impl Logic for RequestCheck {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, qkey_bad, decision, comes, sum, alive, rc, transport_ok, pkey_ok, whole, over, pad_bad);
        dff_setup!(self, clock, order_bad, sum_bad, expected, behind, repeats, reminds, denied, wants, uses);
        dff_setup!(self, clock, double, receive, ending, barred, stuffed, too_long, some, rounded, room);
        self.verdict.next = self.decision.q.val();
        self.sums.next = self.sum.q.val();

        // First cycle: field against field.
        self.mtu.next = bits::<13>(0);
        match self.ctx.val().pmtu.index() {
            pmtu::MTU_256 => self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_256) as u64),
            pmtu::MTU_512 => self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_512) as u64),
            pmtu::MTU_1024 => self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_1024) as u64),
            pmtu::MTU_2048 => self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_2048) as u64),
            pmtu::MTU_4096 => self.mtu.next = bits::<13>(pmtu::bytes(pmtu::MTU_4096) as u64),
            _ => {}
        }
        self.alive.d.next = (self.ctx.val().state == QpState::Rtr as u64) | (self.ctx.val().state == QpState::Rts as u64);
        self.rc.d.next = self.ctx.val().qp_type == QpType::Rc as u64;
        self.transport_ok.d.next = !self.kind.val().reply
            & (((self.ctx.val().qp_type == QpType::Rc as u64) & (self.kind.val().class == opcode::CLASS_RC))
                | ((self.ctx.val().qp_type == QpType::Uc as u64) & (self.kind.val().class == opcode::CLASS_UC))
                // SEND Only is all that datagrams have (IBTA 9.8.3).
                | ((self.ctx.val().qp_type == QpType::Ud as u64)
                    & (self.kind.val().class == opcode::CLASS_UD)
                    & self.kind.val().send
                    & self.kind.val().start
                    & self.kind.val().end));
        self.qkey_diff.next = self.rx.val().qkey ^ self.ctx.val().qkey;
        self.qkey_bad.d.next = (self.ctx.val().qp_type == QpType::Ud as u64) & self.qkey_diff.val().any();
        self.sum.d.next.datagram = bit_cast::<14, 13>(self.rx.val().pay_len) + GRH_BYTES;
        self.keys.next = self.ctx.val().pkey ^ self.rx.val().pkey;
        self.key_diff.next = self.keys.val().get_bits::<15>(0);
        // Two limited members do not talk to each other (IBTA 10.9.3).
        self.keys.next = self.ctx.val().pkey | self.rx.val().pkey;
        self.pkey_ok.d.next = !self.key_diff.val().any() & self.keys.val().get_bit(15);
        self.distance.next = self.rx.val().psn - self.ctx.val().epsn;
        self.expected.d.next = self.rx.val().psn == self.ctx.val().epsn;
        self.behind.d.next = self.distance.val().get_bit(23);
        // A peer sends upwards, so a packet that is not above the one before it is of a repeat, whose first packets have been lost again.
        self.far.next = self.distance.val().get_bits::<16>(8).any();
        self.near.next = self.distance.val().get_bits::<8>(0);
        self.ahead.next = self.near.val();
        if self.far.val() {
            self.ahead.next = bits::<8>(0xff);
        }
        self.sum.d.next.ahead = self.ahead.val();
        // The low bits are compared beside the carries of the high ones.
        // Of a gap whose NAK may be lost every 64th packet behind it tells again.
        self.reminds.d.next = self.ctx.val().repeat_nak & self.ctx.val().nak_sent & !self.near.val().get_bits::<6>(0).any() & self.near.val().any() & !self.far.val();
        self.repeats.d.next = (self.near.val() <= self.ctx.val().ahead) & !self.near.val().all() & !self.far.val();
        self.whole.d.next = self.rx.val().pay_len == self.mtu.val();
        self.over.d.next = self.rx.val().pay_len > self.mtu.val();
        self.pay.next = bit_cast::<32, 13>(self.rx.val().pay_len);
        self.pay_low.next = self.pay.val().get_bits::<2>(0);
        self.pay_pad.next = self.pay_low.val() + self.rx.val().pad;
        self.pad_bad.d.next = self.pay_pad.val().any();
        self.order_bad.d.next = (self.kind.val().start & (self.ctx.val().in_msg != 0) & (self.ctx.val().qp_type == QpType::Rc as u64))
            | (!self.kind.val().start & self.kind.val().send & (self.ctx.val().in_msg != message::SEND))
            | (!self.kind.val().start & self.kind.val().write & (self.ctx.val().in_msg != message::WRITE));
        self.sum.d.next.va = self.ctx.val().va;
        self.sum.d.next.key = self.ctx.val().rkey;
        self.chk.next = self.ctx.val().remaining;
        self.before.next = self.ctx.val().msg_bytes;
        if self.kind.val().start {
            self.sum.d.next.va = self.rx.val().va;
            self.sum.d.next.key = self.rx.val().rkey;
            self.chk.next = self.rx.val().dma_len;
            self.before.next = bits::<32>(0);
        }
        self.sum.d.next.chk_len = self.chk.val();
        self.sum.d.next.offset = self.before.val();
        self.sum.d.next.left = self.chk.val() - self.pay.val();
        self.sum.d.next.bytes = self.before.val() + self.pay.val();
        self.rest.next = self.chk.val().get_bits::<31>(0);
        self.over_2g.next = self.chk.val().get_bit(31) & self.rest.val().any();
        self.sum_bad.d.next = self.over_2g.val() | (self.kind.val().end & (self.chk.val() != self.pay.val())) | (!self.kind.val().end & (self.chk.val() <= self.pay.val()));
        self.feth.next = self.rx.val().imm;
        self.all.next = self.kind.val().flush & (self.feth.val() & bits::<32>(feth::WHOLE as u64)).any();
        self.too_long.d.next = self.over_2g.val() & !self.all.val();
        self.some.d.next = self.rx.val().dma_len.any();
        // No right to READ, to atomics or to FLUSH is an invalid request (IBTA 9.7.4.1.4), as is an atomic that is not aligned (9.4.5).
        self.low_va.next = self.rx.val().va;
        self.meant.next = (self.feth.val() & bits::<32>(PLACED)).any() & !(self.feth.val() & bits::<32>(NO_FETH)).any();
        self.barred.d.next = (self.kind.val().read & !self.ctx.val().remote_read)
            | (self.kind.val().atomic & !self.ctx.val().remote_atomic)
            | ((self.kind.val().atomic | self.kind.val().store) & self.low_va.val().get_bits::<3>(0).any())
            | (self.kind.val().flush & (!self.ctx.val().remote_flush | !self.meant.val()));
        self.stuffed.d.next = ((self.kind.val().read | self.kind.val().atomic | self.kind.val().flush) & self.pay.val().any()) | (self.kind.val().store & (self.pay.val() != ATOMIC_BYTES));
        self.mtu_less.next = bit_cast::<32, 13>(self.mtu.val()) - 1;
        self.rounded.d.next = self.rx.val().dma_len + self.mtu_less.val();
        self.room.d.next = self.ctx.val().epsn - self.rx.val().psn;
        if self.kind.val().atomic {
            self.sum.d.next.chk_len = bits::<32>(ATOMIC_BYTES);
        }
        if self.all.val() {
            self.sum.d.next.chk_len = bits::<32>(0);
        }
        // No region has the right to be flushed to persistence.
        self.denied.d.next = (self.kind.val().write & !self.ctx.val().remote_write) | (self.kind.val().flush & (self.feth.val() & bits::<32>(feth::PERSISTENT as u64)).any());
        self.handle.next = self.ctx.val().rq_handle;
        self.held.next = self.handle.val().get_bit(7);
        self.wants.d.next = !self.held.val() & ((self.kind.val().send & self.kind.val().start) | (self.kind.val().write & self.kind.val().imm));
        self.uses.d.next = self.kind.val().send | (self.kind.val().write & self.kind.val().imm);

        // Second cycle: the address behind, and the verdict.
        self.advance.a.next = self.sum.q.val().va;
        self.advance.b.next = bit_cast::<64, 32>(self.pay.val());
        self.sum.d.next.va_next = self.advance.y.val();
        self.len_bad.next = self.over.q.val()
            | self.pad_bad.q.val()
            | (!self.kind.val().end & !self.whole.q.val())
            | (self.kind.val().end & !self.kind.val().start & (self.rx.val().pay_len == 0))
            | (self.kind.val().write & self.sum_bad.q.val())
            | ((self.kind.val().read | self.kind.val().flush) & self.too_long.q.val())
            | self.stuffed.q.val();
        self.bad.next = !(self.kind.val().send | self.kind.val().write | self.kind.val().flush | ((self.kind.val().read | self.kind.val().atomic) & self.rc.q.val()))
            | self.order_bad.q.val()
            // Responder resources: more are open than were granted (IBTA 9.7.4.1).
            | (self.kind.val().asks & self.full.val())
            | self.len_bad.val()
            | self.barred.q.val();
        // A duplicate may come in the middle of a later message.
        self.packets.next = bits::<24>(1);
        if self.kind.val().read & self.some.q.val() & self.rc.q.val() {
            match self.ctx.val().pmtu.index() {
                pmtu::MTU_256 => self.packets.next = self.rounded.q.val().get_bits::<24>(8),
                pmtu::MTU_512 => self.packets.next = bit_cast::<24, 23>(self.rounded.q.val().get_bits::<23>(9)),
                pmtu::MTU_1024 => self.packets.next = bit_cast::<24, 22>(self.rounded.q.val().get_bits::<22>(10)),
                pmtu::MTU_2048 => self.packets.next = bit_cast::<24, 21>(self.rounded.q.val().get_bits::<21>(11)),
                pmtu::MTU_4096 => self.packets.next = bit_cast::<24, 20>(self.rounded.q.val().get_bits::<20>(12)),
                _ => {}
            }
        }
        self.sum.d.next.step = self.packets.val();
        self.sum.d.next.again = self.kind.val().asks & !self.len_bad.val() & !self.barred.q.val() & (self.packets.val() <= self.room.q.val());

        // In the order of IBTA 9.7.4.1.
        self.total.next = self.sum.q.val().bytes;
        self.endless.next = self.kind.val().send & self.total.val().get_bit(31);
        self.lost.next = !self.expected.q.val() & !self.kind.val().start;
        self.late.next = self.comes.q.val();
        self.twice.next = self.double.q.val();
        self.asks.next = self.receive.q.val();
        self.fatal.next = self.ending.q.val();
        self.comes.d.next = false;
        self.double.d.next = false;
        self.receive.d.next = false;
        self.ending.d.next = false;
        self.decision.d.next = Verdict::Accept;
        if self.rx.val().raw {
            self.decision.d.next = Verdict::Receive;
            self.receive.d.next = true;
            if !self.alive.q.val() | (self.ctx.val().qp_type != QpType::Raw as u64) {
                self.receive.d.next = false;
                self.decision.d.next = Verdict::NoRaw;
            }
        } else if !self.alive.q.val() {
            self.decision.d.next = Verdict::NoQp;
        } else if self.kind.val().notice {
            self.decision.d.next = Verdict::Notice;
        } else if !self.transport_ok.q.val() {
            self.decision.d.next = Verdict::Transport;
        } else if !self.pkey_ok.q.val() {
            self.decision.d.next = Verdict::Pkey;
        } else if self.qkey_bad.q.val() {
            self.decision.d.next = Verdict::Qkey;
        } else if self.rc.q.val() & self.behind.q.val() {
            self.decision.d.next = Verdict::Duplicate;
        } else if self.rc.q.val() & !self.expected.q.val() {
            self.decision.d.next = Verdict::Gap;
            if (self.ctx.val().nak_sent | self.ctx.val().rnr_sent) & !self.repeats.q.val() & !self.reminds.q.val() {
                self.decision.d.next = Verdict::Silent;
            }
        } else if self.bad.val() | self.endless.val() {
            self.decision.d.next = Verdict::Invalid;
            self.ending.d.next = self.rc.q.val();
            if !self.rc.q.val() {
                self.decision.d.next = Verdict::Broken;
            }
        } else if self.denied.q.val() | self.lost.val() {
            self.decision.d.next = Verdict::Access;
            self.ending.d.next = self.rc.q.val();
            if !self.rc.q.val() {
                self.decision.d.next = Verdict::Broken;
            }
        } else if self.wants.q.val() | (self.uses.q.val() & self.gone.val()) {
            self.decision.d.next = Verdict::Receive;
            self.receive.d.next = true;
            if self.wants.q.val() & self.kind.val().end & self.plenty.val() {
                self.receive.d.next = false;
                self.decision.d.next = Verdict::Accept;
                self.comes.d.next = true;
                self.double.d.next = (self.ctx.val().qp_type == QpType::Ud as u64) & self.rx.val().pay_len.any();
            }
        }
    }
}
