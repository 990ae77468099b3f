//! Adds up what an IPv4 header's checksum covers.
use crate::codes::ip;
use crate::records::PathCtx;
use ferric_abi::wire::Ipv4;
use ferric_hdl_derive::kernel;
use ferric_hdl_derive::BlockNew;
use rust_hdl::prelude::*;

/// Words that are the same in every header: version and its length, DF, and what `total_length` is longer than what stands behind.
const FIXED: u64 = (ip::VERSION_4 << 12) + (ip::WORDS << 8) + (ip::DONT_FRAGMENT << 13) + Ipv4::BYTES as u64;

/// `total` is of what was there with `load`, from the second cycle behind it on until the next.
#[derive(LogicBlock, BlockNew)]
#[given(protocol: u8)]
pub struct Ip4Sum {
    pub clock: Signal<In, Clock>,
    pub load: Signal<In, Bit>,
    pub path: Signal<In, PathCtx>,
    /// Bytes behind the IP header.
    pub length: Signal<In, Bits<16>>,
    pub total: Signal<Out, Bits<20>>,
    source: DFF<Bits<20>>,
    target: DFF<Bits<20>>,
    rest: DFF<Bits<20>>,
    sum: DFF<Bits<20>>,
    src: Signal<Local, Bits<128>>,
    dst: Signal<Local, Bits<128>>,
    class_ttl: Signal<Local, Bits<20>>,
    others: Signal<Local, Bits<20>>,
    #[init(Constant::new((FIXED + u64::from(protocol)).to_bits()))]
    fixed: Constant<Bits<20>>,
}

#[kernel]
impl Logic for Ip4Sum {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, source, target, rest, sum);
        self.src.next = self.path.val().sip;
        self.dst.next = self.path.val().dip;
        self.others.next = bit_cast::<20, 16>(self.length.val()) + self.fixed.val();
        self.class_ttl.next = bit_cast::<20, 8>(self.path.val().tclass) | (bit_cast::<20, 8>(self.path.val().hop_limit) << 8);
        if self.load.val() {
            self.source.d.next = bit_cast::<20, 16>(self.src.val().get_bits::<16>(0)) + bit_cast::<20, 16>(self.src.val().get_bits::<16>(16));
            self.target.d.next = bit_cast::<20, 16>(self.dst.val().get_bits::<16>(0)) + bit_cast::<20, 16>(self.dst.val().get_bits::<16>(16));
            self.rest.d.next = self.others.val() + self.class_ttl.val();
        }
        self.sum.d.next = self.source.q.val() + self.target.q.val() + self.rest.q.val();
        self.total.next = self.sum.q.val();
    }
}
