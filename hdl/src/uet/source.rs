//! `loss` with its `records`, joined: the transmit half of all PDCs.
use super::loss::Loss;
use super::records::Records;
use super::types::{Answered, LossAsk, LossTold, Tell, TxFound, TxWalk};
use crate::bus::{MsgSink, MsgSrc};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// See [`Loss`] and [`Records`] for ports and parameters.
#[derive(LogicBlock, BlockDefault)]
pub struct Source<const LP: usize, const LW: usize, const LR: usize, const LA: usize, const LO: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub default_range: Signal<In, Bits<16>>,
    pub ack_bytes: Signal<In, Bits<20>>,
    pub tail_loss: Signal<In, Bits<32>>,
    pub stall_least: Signal<In, Bits<32>>,
    pub path_order: Signal<In, Bit>,
    pub s: MsgSink<LossAsk>,
    pub m: MsgSrc<LossTold>,
    pub m_tell: MsgSrc<Tell>,
    pub m_answer: MsgSrc<Answered>,
    loss: Loss<LP, LW>,
    records: Records<LP, LW, LR, LA, LO>,
}

#[kernel]
impl<const LP: usize, const LW: usize, const LR: usize, const LA: usize, const LO: usize> Logic for Source<LP, LW, LR, LA, LO> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, loss, records);
        self.loss.reset.next = self.reset.val();
        self.records.reset.next = self.reset.val();
        self.loss.default_range.next = self.default_range.val();
        self.loss.ack_bytes.next = self.ack_bytes.val();
        self.loss.tail_loss.next = self.tail_loss.val();
        self.loss.stall_least.next = self.stall_least.val();
        self.loss.path_order.next = self.path_order.val();
        MsgSink::<LossAsk>::link(&mut self.s, &mut self.loss.s);
        MsgSrc::<LossTold>::link(&mut self.m, &mut self.loss.m);
        MsgSrc::<Tell>::link(&mut self.m_tell, &mut self.records.m_tell);
        MsgSrc::<Answered>::link(&mut self.m_answer, &mut self.records.m_answer);
        MsgSrc::<TxWalk>::join(&mut self.loss.m_walk, &mut self.records.s);
        MsgSrc::<TxFound>::join(&mut self.records.m, &mut self.loss.s_found);
    }
}
