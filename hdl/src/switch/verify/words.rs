//! A frame's first bytes to its key, and to what neighbour discovery says: [`Key`](crate::switch::key::Key) with one more ear.

use super::discovery::{Discovery, Message};
use crate::net::rx::window::WINDOW_BITS;
use crate::records::FlowKey;
use crate::switch::key::ether::EtherLayer;
use crate::switch::key::layers::Layers;
use crate::switch::key::{Facts, Origin};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// As `Key`, in as many cycles.
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
    ether: EtherLayer,
    layers: Layers,
    discovery: Discovery,
}

#[kernel]
impl Logic for Words {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ether, layers, discovery);
        self.ether.reset.next = self.reset.val();
        self.layers.reset.next = self.reset.val();
        self.ether.window.next = self.window.val();
        self.ether.window_valid.next = self.window_valid.val();
        self.ether.ended.next = self.ended.val();
        self.ether.len.next = self.len.val();
        self.ether.origin.next = self.origin.val();
        self.layers.valid.next = self.ether.valid.val();
        self.layers.ether.next = self.ether.ether.val();
        self.layers.from.next = self.ether.from.val();
        self.layers.l3.next = self.ether.l3.val();
        self.discovery.l3.next = self.ether.l3.val();
        self.valid.next = self.layers.key_valid.val();
        self.key.next = self.layers.key.val();
        self.facts.next = self.layers.facts.val();
        self.message.next = self.discovery.message.val();
    }
}
