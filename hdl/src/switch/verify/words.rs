//! A frame's first bytes to its key, and to what neighbour discovery says.

use super::discovery::{Discovery, Message};
use crate::net::rx::window::WINDOW_BITS;
use crate::records::FlowKey;
use crate::switch::key::{Facts, Key, Origin};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// [`Key`] with one more ear, in as many cycles.
#[derive(LogicBlock, BlockDefault)]
pub(in crate::switch) struct Words {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub window: Signal<In, Bits<WINDOW_BITS>>,
    pub window_valid: Signal<In, Bit>,
    pub ended: Signal<In, Bit>,
    pub len: Signal<In, Bits<8>>,
    pub origin: Signal<In, Origin>,
    pub valid: Signal<Out, Bit>,
    pub key: Signal<Out, FlowKey>,
    pub facts: Signal<Out, Facts>,
    pub message: Signal<Out, Message>,
    parse: Key,
    discovery: Discovery,
}

#[kernel]
impl Logic for Words {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, parse, discovery);
        self.parse.reset.next = self.reset.val();
        self.parse.window.next = self.window.val();
        self.parse.window_valid.next = self.window_valid.val();
        self.parse.ended.next = self.ended.val();
        self.parse.len.next = self.len.val();
        self.parse.origin.next = self.origin.val();
        self.discovery.l3.next = self.parse.l3.val();
        self.valid.next = self.parse.valid.val();
        self.key.next = self.parse.key.val();
        self.facts.next = self.parse.facts.val();
        self.message.next = self.discovery.message.val();
    }
}
