//! What completion tells of an order, in RoCE's words. Combinational.
use crate::codes::outcome;
use crate::msg::{ReplyOp, TRANSPORT};
use crate::prim::pack::Cast;
use crate::roce::word::RoceWord;
use ferric_abi::wire::syndrome;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// A `ReplyOp` with its `transport` laid open, and the syndrome and MSN that belong to its outcome.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Told {
    pub qpn: Bits<24>,
    pub dest_qpn: Bits<24>,
    pub psn: Bits<24>,
    pub msn: Bits<24>,
    pub syndrome: Bits<8>,
    pub ipv6: Bit,
    pub vlan: Bit,
    pub kind: Bits<2>,
    pub again: Bit,
    pub add: Bit,
    pub epoch: Bits<8>,
    pub function: Bits<12>,
    pub pd: Bits<24>,
    pub pmtu: Bits<3>,
    pub va: Bits<64>,
    pub key: Bits<32>,
    pub len: Bits<32>,
    pub operand: Bits<64>,
    pub compare: Bits<64>,
    pub atomic: Bit,
    pub keyed: Bit,
    pub phase: Bit,
    pub mute: Bit,
}

/// See the module.
#[derive(LogicBlock, Default)]
pub struct Tell {
    pub op: Signal<In, ReplyOp>,
    pub told: Signal<Out, Told>,
    word: Cast<Bits<TRANSPORT>, RoceWord>,
}

#[kernel]
impl Logic for Tell {
    #[hdl_gen]
    fn update(&mut self) {
        self.word.x.next = self.op.val().transport;
        self.told.next.qpn = self.op.val().qpn;
        self.told.next.dest_qpn = self.word.y.val().dest_qpn;
        self.told.next.psn = self.word.y.val().psn;
        self.told.next.msn = self.word.y.val().msn;
        self.told.next.syndrome = self.word.y.val().syndrome;
        self.told.next.ipv6 = self.word.y.val().ipv6;
        self.told.next.vlan = self.word.y.val().vlan;
        self.told.next.kind = self.op.val().kind;
        self.told.next.again = self.op.val().again;
        self.told.next.add = self.op.val().add;
        self.told.next.epoch = self.op.val().epoch;
        self.told.next.function = self.op.val().function;
        self.told.next.pd = self.op.val().pd;
        self.told.next.pmtu = self.word.y.val().pmtu;
        self.told.next.va = self.op.val().va;
        self.told.next.key = self.op.val().key;
        self.told.next.len = self.op.val().len;
        self.told.next.operand = self.op.val().operand;
        self.told.next.compare = self.op.val().compare;
        self.told.next.atomic = self.op.val().atomic;
        self.told.next.keyed = self.op.val().keyed;
        self.told.next.phase = self.op.val().phase;
        self.told.next.mute = self.op.val().mute;
        match self.op.val().outcome.index() {
            outcome::INVALID => self.told.next.syndrome = bits::<8>(syndrome::NAK_INVALID),
            outcome::ACCESS => self.told.next.syndrome = bits::<8>(syndrome::NAK_ACCESS),
            outcome::LOCAL => self.told.next.syndrome = bits::<8>(syndrome::NAK_OPERATION),
            _ => {}
        }
        if (self.op.val().outcome != outcome::FINE) & self.op.val().done {
            // The order counted its message as complete; it is not.
            self.told.next.msn = self.word.y.val().msn - 1;
        }
    }
}
