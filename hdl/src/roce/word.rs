//! What RoCE writes into the `transport` of an order, and finds again in what comes of it.
use crate::msg::TRANSPORT;
use rust_hdl::prelude::*;

/// The order's packet and who gets the answer. `syndrome`: of the acknowledge, if nothing goes wrong.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct RoceWord {
    /// Lowest: what `ReadDone` gives back.
    pub psn: Bits<24>,
    pub msn: Bits<24>,
    pub dest_qpn: Bits<24>,
    pub syndrome: Bits<8>,
    pub ipv6: Bit,
    pub vlan: Bit,
    pub pmtu: Bits<3>,
}

const _: () = assert!(RoceWord::BITS == TRANSPORT, "an order's word is as wide as RoCE's, which needs most");

/// The layout of an order with RoCE's word laid open.
#[cfg(test)]
pub fn opened<T: Synth + 'static>() -> crate::tb::Fields {
    crate::tb::Fields::opened::<T, RoceWord>("transport")
}
