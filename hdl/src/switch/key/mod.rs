//! A frame's first bytes to the key that tables are asked with. See README.md.

pub(super) mod ether;
pub(super) mod layers;
#[cfg(test)]
pub(super) mod tests;

use self::ether::L3;
use crate::net::rx::window::WINDOW_BITS;
use crate::records::FlowKey;
use ferric_hdl_derive::{kernel, BlockDefault};
pub use ferric_model::switch::layers as model;
use rust_hdl::prelude::*;

/// Cycles from the window to the key.
pub const LATENCY: u64 = 3;

/// Where a frame came from, as far as the key knows it: `ferric_model::switch::key::Origin`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Origin {
    pub port: Bits<8>,
    pub domain: Bits<12>,
    pub remote: Bits<12>,
    pub option: Bit,
}

/// Fields of a frame's headers that actions change, and where they are. Of frames that are no IP `tos` and `ttl` are zero.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Old {
    /// Tags behind the MAC addresses: none, one (bit 0) or two (bit 1).
    pub tags: Bits<2>,
    pub v4: Bit,
    pub v6: Bit,
    /// DSCP and ECN.
    pub tos: Bits<8>,
    /// Time to live or hop limit.
    pub ttl: Bits<8>,
    /// Of IPv4: the header's checksum; of others anything.
    pub checksum: Bits<16>,
}

/// What is known of a frame beside its key.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Facts {
    /// The parser does not understand it: its key means nothing, software gets it whole.
    pub deep: Bit,
    /// Packet class: 0 others, 1 ARP, 2 IPv4, 3 IPv6.
    pub class: Bits<2>,
    /// UDP to RoCE's port, with its UDP header.
    pub roce: Bit,
    /// TCP with SYN, FIN or RST.
    pub ends: Bit,
    /// Of IP: byte of the frame behind the packet. A frame that has fewer is cut, and deep: of frames that end with the window `deep` says so, of others whoever knows their length.
    pub stop: Bits<17>,
    /// Of ARP: the sender's hardware address.
    pub hardware: Bits<48>,
    pub old: Old,
}

/// One frame a cycle, never stalled.
#[derive(LogicBlock, BlockDefault)]
pub struct Key {
    pub clock: Signal<In, Clock>,
    /// Synchronous; what is under way is forgotten.
    pub reset: Signal<In, Bit>,
    /// The first 128 bytes of a frame, zeros behind its end.
    pub window: Signal<In, Bits<WINDOW_BITS>>,
    pub window_valid: Signal<In, Bit>,
    /// The frame ends with the window, and how many bytes it has then.
    pub ended: Signal<In, Bit>,
    pub len: Signal<In, Bits<8>>,
    pub origin: Signal<In, Origin>,
    /// [`LATENCY`] cycles later.
    pub valid: Signal<Out, Bit>,
    pub key: Signal<Out, FlowKey>,
    pub facts: Signal<Out, Facts>,
    /// Two cycles earlier than these: the window from the byte behind the Ethernet header on, for whoever looks into more than the key has.
    pub l3: Signal<Out, Bits<L3>>,
    ether: ether::EtherLayer,
    layers: layers::Layers,
}

#[kernel]
impl Logic for Key {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ether, layers);
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
        self.l3.next = self.ether.l3.val();
        self.valid.next = self.layers.key_valid.val();
        self.key.next = self.layers.key.val();
        self.facts.next = self.layers.facts.val();
    }
}
