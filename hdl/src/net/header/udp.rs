//! A UDP header at its place. Combinational.
use super::TRANSPORT;
use crate::prim::pack::BePack;
use crate::records::Udp;
use ferric_abi::wire;
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Checksum 0: whoever uses it has a checksum of its own behind it.
#[derive(LogicBlock, BlockDefault)]
pub struct UdpFront {
    pub src_port: Signal<In, Bits<16>>,
    pub dst_port: Signal<In, Bits<16>>,
    /// With this header.
    pub length: Signal<In, Bits<16>>,
    pub y: Signal<Out, Bits<1024>>,
    #[init(BePack::of(&wire::Udp::LAYOUT, TRANSPORT))]
    udp: BePack<1024, Udp>,
}

#[kernel]
impl Logic for UdpFront {
    #[hdl_gen]
    fn update(&mut self) {
        self.udp.x.next.src_port = self.src_port.val();
        self.udp.x.next.dst_port = self.dst_port.val();
        self.udp.x.next.length = self.length.val();
        self.udp.x.next.checksum = bits::<16>(0);
        self.y.next = self.udp.y.val();
    }
}
