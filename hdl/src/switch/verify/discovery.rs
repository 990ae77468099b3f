//! What neighbour discovery (RFC 4861) says about whom, beside the second and third stage of the key.

use crate::prim::pack::BePick;
use crate::records::Ipv6;
use crate::switch::be16;
use crate::switch::key::ether::L3;
use ferric_abi::wire;
use ferric_abi::wire::protocol;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bytes of a message without options, and with one of eight bytes; that option's length as it says it.
const PLAIN: u64 = 24;
const ONE_OPTION: u64 = 32;
const EIGHT_BYTES: u64 = 1;
/// Options that name a hardware address: the sender's, and the target's.
const SOURCE_ADDRESS: u64 = 1;
const TARGET_ADDRESS: u64 = 2;
/// Places of the message's parts behind the beginning of the IPv6 header.
const MESSAGE: usize = wire::Ipv6::BYTES;
const TARGET: usize = MESSAGE + 8;
const OPTION: usize = MESSAGE + 24;

/// Of a message right behind its IPv6 header; of anything else noise.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Message {
    /// It stands there, and has no option or one of eight bytes.
    pub plain: Bit,
    pub target: Bits<128>,
    /// The option names a hardware address: which.
    pub names: Bit,
    pub hardware: Bits<48>,
}

/// `bytes` bytes in network order at byte `at` behind the tags.
fn number<T: Synth>(at: usize) -> BePick<L3, T> {
    let bytes = T::BITS / 8;
    BePick::new((0..T::BITS).map(|bit| 8 * (at + bytes - 1 - bit / 8) + bit % 8).collect())
}

/// One packet a cycle.
#[derive(LogicBlock, BlockDefault)]
#[demand(8 * (OPTION + 8) <= L3)]
pub(super) struct Discovery {
    pub clock: Signal<In, Clock>,
    /// What is behind the tags.
    pub l3: Signal<In, Bits<L3>>,
    /// Two cycles later.
    pub message: Signal<Out, Message>,
    #[init(BePick::of(&wire::Ipv6::LAYOUT, 0))]
    ip6: BePick<L3, Ipv6>,
    #[init(number(TARGET))]
    target: BePick<L3, Bits<128>>,
    #[init(be16(OPTION))]
    option: BePick<L3, Bits<16>>,
    #[init(number(OPTION + 2))]
    hardware: BePick<L3, Bits<48>>,
    length: Signal<Local, Bits<16>>,
    kind: Signal<Local, Bits<8>>,
    units: Signal<Local, Bits<8>>,
    direct2: DFF<Bit>,
    short2: DFF<Bit>,
    long2: DFF<Bit>,
    names2: DFF<Bit>,
    target2: DFF<Bits<128>>,
    hardware2: DFF<Bits<48>>,
    message3: DFF<Message>,
}

#[kernel]
impl Logic for Discovery {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, direct2, short2, long2, names2, target2, hardware2, message3);
        self.ip6.x.next = self.l3.val();
        self.target.x.next = self.l3.val();
        self.option.x.next = self.l3.val();
        self.hardware.x.next = self.l3.val();
        self.length.next = self.ip6.y.val().payload_length;
        self.kind.next = self.option.y.val().get_bits::<8>(8);
        self.units.next = self.option.y.val().get_bits::<8>(0);
        self.direct2.d.next = self.ip6.y.val().next_header == protocol::ICMPV6;
        self.short2.d.next = self.length.val() == PLAIN;
        self.long2.d.next = (self.length.val() == ONE_OPTION) & (self.units.val() == EIGHT_BYTES);
        self.names2.d.next = (self.kind.val() == SOURCE_ADDRESS) | (self.kind.val() == TARGET_ADDRESS);
        self.target2.d.next = self.target.y.val();
        self.hardware2.d.next = self.hardware.y.val();
        self.message3.d.next.plain = self.direct2.q.val() & (self.short2.q.val() | self.long2.q.val());
        self.message3.d.next.target = self.target2.q.val();
        self.message3.d.next.names = self.names2.q.val() & self.long2.q.val();
        self.message3.d.next.hardware = self.hardware2.q.val();
        self.message.next = self.message3.q.val();
    }
}
