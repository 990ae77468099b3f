//! The packet order from context, work request and the place of the packet in its message. Combinational.

use crate::codes::ONLY_FREE;
use crate::msg::{SqWqe, TxOp};
use crate::prim::pack::Cast;
use crate::records::{ReqCtx, WqeHead};
use ferric_abi::codes::QpType;
use ferric_abi::wire::opcode;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

// Opcodes of the first operation of a class.
const UC: u64 = (opcode::CLASS_UC as u64) << opcode::OPERATION_BITS;
const UC_WRITE: u64 = UC + opcode::WRITE_FIRST as u64;
const UD: u64 = (opcode::CLASS_UD as u64) << opcode::OPERATION_BITS;

/// Bytes of an ATOMIC WRITE.
const STORED: u64 = 8;

/// See the module.
#[derive(LogicBlock, Default)]
pub struct Order {
    pub line: Signal<In, ReqCtx>,
    pub wqe: Signal<In, SqWqe>,
    pub first: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    /// The last packet before the queue parks.
    pub filling: Signal<In, Bit>,
    /// Send nothing, give the buffer back.
    pub only_free: Signal<In, Bit>,
    pub pay: Signal<In, Bits<13>>,
    /// Bytes from this packet on.
    pub left: Signal<In, Bits<32>>,
    /// READ or atomic; atomic; remote address of the first byte not transferred.
    pub asks: Signal<In, Bit>,
    pub atomic: Signal<In, Bit>,
    pub raddr: Signal<In, Bits<64>>,
    /// How often the queue pair has gone back, modulo 4.
    pub round: Signal<In, Bits<2>>,
    pub op: Signal<Out, TxOp>,
    head: Cast<Bits<256>, WqeHead>,
    opcode: Signal<Local, Bits<8>>,
    transport: Signal<Local, Bits<3>>,
    psn: Signal<Local, Bits<24>>,
    write: Signal<Local, Bit>,
    imm: Signal<Local, Bit>,
    inv: Signal<Local, Bit>,
    ask: Signal<Local, Bit>,
    flush: Signal<Local, Bit>,
    store: Signal<Local, Bit>,
    datagram: Signal<Local, Bit>,
    operands: Signal<Local, Bits<128>>,
    position: Signal<Local, Bits<8>>,
    family: Signal<Local, Bits<8>>,
}

#[kernel]
impl Logic for Order {
    #[hdl_gen]
    fn update(&mut self) {
        self.head.x.next = self.wqe.val().head;
        self.opcode.next = self.head.y.val().opcode;
        self.transport.next = self.line.val().qp_type;
        self.psn.next = self.line.val().next_psn;
        self.write.next = self.opcode.val().get_bit(1) & !self.asks.val();
        self.imm.next = self.opcode.val().get_bit(0) & self.last.val() & !self.asks.val();
        // Of what has no answer SEND with invalidate is the only operation from 8 on that has packets.
        self.inv.next = self.opcode.val().get_bit(3) & self.last.val() & !self.asks.val();
        // READ 4, FLUSH 7, ATOMIC WRITE 12.
        self.flush.next = self.asks.val() & !self.atomic.val() & self.opcode.val().get_bit(0);
        self.store.next = self.asks.val() & self.opcode.val().get_bit(3);
        self.ask.next = self.last.val() | self.filling.val() | (self.psn.val().get_bits::<4>(0) == 15);
        // IBTA table 38: First 0, Middle 1, Last 2, Last imm. 3, Only 4, Only imm. 5; WRITE from 6 on; Last inv. 0x16, Only inv. 0x17.
        self.position.next = bits::<8>(opcode::SEND_MIDDLE);
        if self.last.val() {
            self.position.next = bits::<8>(opcode::SEND_LAST);
        }
        if self.first.val() {
            self.position.next = bits::<8>(opcode::SEND_FIRST);
            if self.last.val() {
                self.position.next = bits::<8>(opcode::SEND_ONLY);
            }
        }
        if self.inv.val() {
            self.position.next = bits::<8>(opcode::SEND_LAST_INVALIDATE) | bit_cast::<8, 1>(self.first.val().into());
        }
        self.family.next = bits::<8>(0);
        if self.write.val() {
            self.family.next = bits::<8>(opcode::WRITE_FIRST);
        }
        // Transport prefix: RC 0x00, UC 0x20, UD 0x60; RAW has none.
        if self.transport.val() == QpType::Uc as u64 {
            self.family.next = bits::<8>(UC);
            if self.write.val() {
                self.family.next = bits::<8>(UC_WRITE);
            }
        }
        if self.transport.val() == QpType::Ud as u64 {
            self.family.next = bits::<8>(UD);
        }
        self.op.next.opcode = self.family.val() + (self.position.val() | bit_cast::<8, 1>(self.imm.val().into()));
        if self.transport.val() == QpType::Raw as u64 {
            self.op.next.opcode = bits::<8>(0);
        }
        // Operands stand in front of the entries: compare value or addend, swap value. On the wire the addend has the place of the swap value.
        self.operands.next = self.wqe.val().sge;
        self.op.next.operand = self.operands.val().get_bits::<64>(0);
        self.op.next.compare = self.operands.val().get_bits::<64>(64);
        if self.asks.val() {
            self.op.next.opcode = bits::<8>(opcode::READ_REQUEST);
        }
        if self.flush.val() {
            self.op.next.opcode = bits::<8>(opcode::FLUSH);
        }
        if self.store.val() {
            self.op.next.opcode = bits::<8>(opcode::ATOMIC_WRITE);
        }
        if self.atomic.val() {
            self.op.next.opcode = bits::<8>(opcode::FETCH_ADD);
            self.op.next.compare = bits::<64>(0);
            if self.opcode.val().get_bit(0) {
                self.op.next.opcode = bits::<8>(opcode::COMPARE_SWAP);
                self.op.next.operand = self.operands.val().get_bits::<64>(64);
                self.op.next.compare = self.operands.val().get_bits::<64>(0);
            }
        }
        if self.only_free.val() {
            self.op.next.opcode = bits::<8>(ONLY_FREE);
        }
        self.op.next.qpn = self.wqe.val().qpn;
        self.op.next.epoch = self.wqe.val().epoch;
        self.op.next.function = self.line.val().function;
        self.op.next.pd = self.line.val().pd;
        self.op.next.qp_type = self.line.val().qp_type;
        self.op.next.ipv6 = self.line.val().ipv6;
        self.op.next.vlan = self.line.val().vlan;
        self.op.next.dest_qpn = self.line.val().dest_qpn;
        // A datagram says itself where it goes: address behind the head, then the entries.
        self.datagram.next = self.transport.val() == QpType::Ud as u64;
        self.op.next.has_deth = self.datagram.val();
        if self.datagram.val() {
            self.op.next.dest_qpn = (bit_cast::<24, 8>(self.head.y.val().dest_high) << 16) | bit_cast::<24, 16>(self.head.y.val().dest_low);
        }
        self.op.next.psn = self.psn.val();
        self.op.next.ack_req = self.ask.val() & (self.transport.val() == QpType::Rc as u64);
        self.op.next.notify = self.ask.val() & !(self.transport.val() == QpType::Rc as u64);
        // Only what consumes a receive can raise a solicited event at the peer.
        self.op.next.solicited = self.last.val() & self.head.y.val().solicited & !self.asks.val() & (!self.write.val() | self.imm.val());
        self.op.next.pay_off = self.line.val().msg_offset;
        self.op.next.pay_len = self.pay.val();
        if self.asks.val() {
            self.op.next.pay_len = bits::<13>(0);
        }
        if self.store.val() {
            // The operand, as it stands behind the head: as inline data.
            self.op.next.pay_len = bits::<13>(STORED);
        }
        self.op.next.has_reth = (self.write.val() & self.first.val()) | (self.asks.val() & !self.atomic.val());
        self.op.next.raddr = self.raddr.val();
        self.op.next.rkey = self.head.y.val().rkey;
        self.op.next.dma_len = self.head.y.val().length;
        if self.asks.val() {
            // From a hole on, what is missing.
            self.op.next.dma_len = self.left.val();
        }
        if self.flush.val() {
            self.op.next.dma_len = self.operands.val().get_bits::<32>(0);
        }
        if self.store.val() {
            self.op.next.dma_len = bits::<32>(STORED);
        }
        // The key to invalidate (IETH) has the length and the place of immediate data.
        self.op.next.has_imm = self.imm.val() | self.inv.val() | self.flush.val();
        self.op.next.has_feth = self.flush.val();
        self.op.next.imm = self.head.y.val().imm;
        self.op.next.handle = self.wqe.val().handle;
        self.op.next.num_sge = self.head.y.val().num_sge;
        self.op.next.inline_data = self.head.y.val().inline_data | self.store.val();
        self.op.next.free = self.last.val() | self.filling.val() | self.only_free.val();
        self.op.next.wqe_index = self.wqe.val().index;
        self.op.next.sge = self.wqe.val().sge;
        if self.datagram.val() {
            self.op.next.sge = self.wqe.val().more;
        }
        self.op.next.has_aeth = false;
        self.op.next.aeth = bits::<32>(0);
        self.op.next.has_atomic = self.atomic.val();
        self.op.next.has_atomic_ack = false;
        self.op.next.reply = false;
        self.op.next.round = self.round.val();
    }
}
