//! What a request opcode means (IBTA 9.2.1, table 38), registered.
use ferric_abi::wire::opcode;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Properties of a BTH opcode.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct OpKind {
    /// Transport class, opcode bits 7..5: 0 RC, 1 UC.
    pub class: Bits<3>,
    /// SEND (with or without immediate or invalidate).
    pub send: Bit,
    /// RDMA WRITE (with or without immediate).
    pub write: Bit,
    /// RDMA READ request, COMPARE_SWAP or FETCH_ADD; which atomic.
    pub read: Bit,
    pub atomic: Bit,
    pub add: Bit,
    /// FLUSH; ATOMIC WRITE, which is a WRITE, too.
    pub flush: Bit,
    pub store: Bit,
    /// Has an answer of its own: READ, atomic, FLUSH, ATOMIC WRITE.
    pub asks: Bit,
    /// First packet of a message: First or Only.
    pub start: Bit,
    /// Last packet of a message: Last or Only.
    pub end: Bit,
    /// Carries immediate data.
    pub imm: Bit,
    /// Carries a key to invalidate: SEND Last and Only of reliable connections.
    pub inv: Bit,
    /// A congestion notification packet (annex A17): `cc/hook` has been told.
    pub notice: Bit,
    /// A response or acknowledge: no business of a responder.
    pub reply: Bit,
}

/// Decodes `opcode`; `kind` is valid one cycle later. None of `send`, `write`, `read`, `atomic`: a request this card does not serve.
#[derive(LogicBlock, Default)]
pub struct OpDecode {
    pub clock: Signal<In, Clock>,
    pub opcode: Signal<In, Bits<8>>,
    pub kind: Signal<Out, OpKind>,
    found: DFF<OpKind>,
    low: Signal<Local, Bits<5>>,
    inv: Signal<Local, Bit>,
    /// Of reliable connections only, as `inv` is.
    flush: Signal<Local, Bit>,
    store: Signal<Local, Bit>,
}

#[kernel]
impl Logic for OpDecode {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, found);
        self.kind.next = self.found.q.val();
        self.low.next = self.opcode.val().get_bits::<5>(0);
        self.found.d.next.class = self.opcode.val().get_bits::<3>(5);
        self.inv.next = (self.opcode.val() == opcode::SEND_LAST_INVALIDATE) | (self.opcode.val() == opcode::SEND_ONLY_INVALIDATE);
        self.found.d.next.inv = self.inv.val();
        self.flush.next = self.opcode.val() == opcode::FLUSH;
        self.store.next = self.opcode.val() == opcode::ATOMIC_WRITE;
        self.found.d.next.flush = self.flush.val();
        self.found.d.next.store = self.store.val();
        self.found.d.next.asks = (self.low.val() == opcode::READ_REQUEST) | (self.low.val() == opcode::COMPARE_SWAP) | (self.low.val() == opcode::FETCH_ADD) | self.flush.val() | self.store.val();
        self.found.d.next.send = (self.low.val() < opcode::WRITE_FIRST) | self.inv.val();
        self.found.d.next.write = ((self.low.val() >= opcode::WRITE_FIRST) & (self.low.val() < opcode::READ_REQUEST)) | self.store.val();
        self.found.d.next.read = self.low.val() == opcode::READ_REQUEST;
        self.found.d.next.atomic = (self.low.val() == opcode::COMPARE_SWAP) | (self.low.val() == opcode::FETCH_ADD);
        self.found.d.next.add = self.low.val() == opcode::FETCH_ADD;
        self.found.d.next.notice = self.opcode.val() == opcode::CNP;
        self.found.d.next.reply = (self.low.val() >= opcode::READ_RESPONSE_FIRST) & (self.low.val() <= opcode::ATOMIC_ACKNOWLEDGE);
        self.found.d.next.start = (self.low.val() == opcode::SEND_FIRST)
            | (self.low.val() == opcode::SEND_ONLY)
            | (self.low.val() == opcode::SEND_ONLY_IMM)
            | (self.low.val() == opcode::WRITE_FIRST)
            | (self.low.val() == opcode::WRITE_ONLY)
            | (self.low.val() == opcode::WRITE_ONLY_IMM)
            | (self.low.val() == opcode::READ_REQUEST)
            | (self.low.val() == opcode::COMPARE_SWAP)
            | (self.low.val() == opcode::FETCH_ADD)
            | (self.opcode.val() == opcode::SEND_ONLY_INVALIDATE)
            | self.flush.val()
            | self.store.val();
        self.found.d.next.end = (self.low.val() == opcode::SEND_LAST)
            | (self.low.val() == opcode::SEND_LAST_IMM)
            | (self.low.val() == opcode::SEND_ONLY)
            | (self.low.val() == opcode::SEND_ONLY_IMM)
            | ((self.low.val() >= opcode::WRITE_LAST) & (self.low.val() <= opcode::READ_REQUEST))
            | (self.low.val() == opcode::COMPARE_SWAP)
            | (self.low.val() == opcode::FETCH_ADD)
            | self.flush.val()
            | self.store.val()
            | self.inv.val();
        self.found.d.next.imm =
            (self.low.val() == opcode::SEND_LAST_IMM) | (self.low.val() == opcode::SEND_ONLY_IMM) | (self.low.val() == opcode::WRITE_LAST_IMM) | (self.low.val() == opcode::WRITE_ONLY_IMM);
    }
}
