//! Out: an entry of a ring that the card writes, on its way to the DMA writer.

use super::ROOM_OF_16;
use crate::bus::MsgSrc;
use crate::msg::WrSmall;
use crate::prim::pack::Concat2;
use crate::prim::sum::Sum;
use crate::stream::{Fence, MsgFifo};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Entries of `N` bits; `P` = `N` + 76 with their address and function. Act to `m_wr`: 2 cycles.
#[derive(LogicBlock, BlockDefault)]
#[demand(P == N + 76 && N.is_power_of_two() && (64..=512).contains(&N), "an entry has 8 to 64 bytes, P the address, too")]
pub struct EntryOut<const N: usize, const P: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Act writes this entry.
    pub valid: Signal<In, Bit>,
    /// IOVA of the ring, the number of the entry in it, and the function that owns the ring.
    pub base: Signal<In, Bits<64>>,
    pub slot: Signal<In, Bits<16>>,
    pub owner: Signal<In, Bits<12>>,
    pub data: Signal<In, Bits<N>>,
    /// Select may start an operation: there is a place for its entry behind those of three others.
    pub room: Signal<Out, Bit>,
    pub m_wr: MsgSrc<WrSmall>,
    /// Pulse in; pulse out when every entry of before has left `m_wr`.
    pub fence: Signal<In, Bit>,
    pub passed: Signal<Out, Bit>,
    leaves: Fence<5>,
    on: DFF<Bit>,
    start: DFF<Bits<64>>,
    offset: DFF<Bits<24>>,
    whose: DFF<Bits<12>>,
    bytes: DFF<Bits<N>>,
    place: Sum<64>,
    target: Concat2<64, 12, 76>,
    entry: Concat2<76, N, P>,
    entries: MsgFifo<Bits<P>, 4>,
    #[init(Constant::new((N as u64 / 8).to_bits()))]
    len: Constant<Bits<7>>,
    #[init(Constant::new(u64::from((N / 8).trailing_zeros()).to_bits()))]
    lg_len: Constant<Bits<3>>,
    leaving: Signal<Local, Bits<P>>,
    leaving_data: Signal<Local, Bits<N>>,
}

#[kernel]
impl<const N: usize, const P: usize> Logic for EntryOut<N, P> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, on, start, offset, whose, bytes);
        clock!(self, clock, entries, leaves);
        self.leaves.reset.next = self.reset.val();
        self.leaves.start.next = self.fence.val();
        self.leaves.came.next = self.valid.val();
        self.leaves.went.next = self.m_wr.valid.val() & self.m_wr.ready.val();
        self.passed.next = self.leaves.passed.val();
        self.entries.reset.next = self.reset.val();
        self.on.d.next = self.valid.val();
        self.start.d.next = self.base.val();
        self.offset.d.next = bit_cast::<24, 16>(self.slot.val()) << self.lg_len.val();
        self.whose.d.next = self.owner.val();
        self.bytes.d.next = self.data.val();

        self.place.a.next = self.start.q.val();
        self.place.b.next = bit_cast::<64, 24>(self.offset.q.val());
        self.target.a.next = self.place.y.val();
        self.target.b.next = self.whose.q.val();
        self.entry.a.next = self.target.y.val();
        self.entry.b.next = self.bytes.q.val();
        self.entries.s.data.next = self.entry.y.val();
        self.entries.s.valid.next = self.on.q.val();
        self.room.next = self.entries.level.val() < ROOM_OF_16;

        self.leaving.next = self.entries.m.data.val();
        self.leaving_data.next = self.leaving.val().get_bits::<N>(76);
        self.m_wr.data.next.iova = self.leaving.val().get_bits::<64>(0);
        self.m_wr.data.next.function = self.leaving.val().get_bits::<12>(64);
        self.m_wr.data.next.len = self.len.val();
        self.m_wr.data.next.tag = bits::<8>(0);
        self.m_wr.data.next.data = bit_cast::<512, N>(self.leaving_data.val());
        self.m_wr.valid.next = self.entries.m.valid.val();
        self.entries.m.ready.next = self.m_wr.ready.val();
        if self.reset.val() {
            self.on.d.next = false;
        }
    }
}
