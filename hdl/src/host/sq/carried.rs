//! Requests that travel with doorbells: kept from the doorbell until their buffer is written, or until it is known that the ring will be fetched from.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::WqeDoorbell;
use crate::prim::arb::{BinToOneHot, FirstSet, OneHotToBin};
use crate::prim::pack::Cast;
use crate::prim::ram::RamAsync;
use crate::records::WqeHead;
use crate::stream::MsgFifo;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// What the scheduler has to know of such a doorbell. `index`: the new producer. `place`: where the request is.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct CarriedDoorbell {
    pub qpn: Bits<24>,
    pub function: Bits<12>,
    pub index: Bits<16>,
    pub place: Bits<4>,
}

/// 16 places for requests of 64 bytes. The scheduler has at most 14 of them kept: in the queue of jobs, on the way there, and with the fetcher. So doorbells pass
/// whatever the fetcher does.
#[derive(LogicBlock, Default)]
pub(super) struct Carried {
    pub clock: Signal<In, Clock>,
    /// Synchronous; all places are free.
    pub reset: Signal<In, Bit>,
    pub s: MsgSink<WqeDoorbell>,
    /// In the order in which they came.
    pub m: MsgSrc<CarriedDoorbell>,
    /// With `m` taken: its request is kept.
    pub keep: Signal<In, Bit>,
    /// Pulses: a request that was kept is not needed; the fetcher has written that of `read`.
    pub drop: Signal<In, Bit>,
    pub drop_place: Signal<In, Bits<4>>,
    pub written: Signal<In, Bit>,
    pub read: Signal<In, Bits<4>>,
    pub data: Signal<Out, Bits<512>>,
    requests: RamAsync<Bits<512>, 4>,
    head: Cast<Bits<256>, WqeHead>,
    doorbells: MsgFifo<CarriedDoorbell, 4>,
    busy: DFF<Bits<16>>,
    /// The place of the next request, if one is free.
    next: DFF<Bits<4>>,
    open: DFF<Bit>,
    first: FirstSet<16>,
    number: OneHotToBin<16, 4>,
    set: BinToOneHot<16, 4>,
    passed: BinToOneHot<16, 4>,
    dropped: BinToOneHot<16, 4>,
    used: BinToOneHot<16, 4>,
    take: Signal<Local, Bit>,
    came: Signal<Local, Bits<512>>,
    index: Signal<Local, Bits<16>>,
    left: Signal<Local, Bits<16>>,
}

#[kernel]
impl Logic for Carried {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, busy, next, open);
        clock!(self, clock, requests, doorbells);
        self.doorbells.reset.next = self.reset.val();
        MsgSrc::<CarriedDoorbell>::link(&mut self.m, &mut self.doorbells.m);

        // A doorbell comes with its request; there is a place among `doorbells` for each place of a request.
        self.s.ready.next = self.open.q.val();
        self.take.next = self.s.valid.val() & self.open.q.val();
        self.came.next = self.s.data.val().data;
        self.requests.write_addr.next = self.next.q.val();
        self.requests.write_data.next = self.came.val();
        self.requests.write_en.next = self.take.val();
        self.requests.read_addr.next = self.read.val();
        self.data.next = self.requests.read_data.val();
        self.head.x.next = self.came.val().get_bits::<256>(0);
        self.index.next = self.head.y.val().index;
        self.doorbells.s.valid.next = self.take.val();
        self.doorbells.s.data.next.qpn = self.head.y.val().qpn;
        self.doorbells.s.data.next.function = self.s.data.val().function;
        self.doorbells.s.data.next.index = self.index.val() + 1;
        self.doorbells.s.data.next.place = self.next.q.val();

        // A place is free again when the doorbell goes on without its request, or the request is dropped or written.
        self.set.en.next = self.take.val();
        self.set.x.next = self.next.q.val();
        self.passed.en.next = self.m.valid.val() & self.m.ready.val() & !self.keep.val();
        self.passed.x.next = self.m.data.val().place;
        self.dropped.en.next = self.drop.val();
        self.dropped.x.next = self.drop_place.val();
        self.used.en.next = self.written.val();
        self.used.x.next = self.read.val();
        self.left.next = (self.busy.q.val() & !self.passed.y.val() & !self.dropped.y.val() & !self.used.y.val()) | self.set.y.val();
        self.busy.d.next = self.left.val();
        // Free for a cycle at least: nothing is written where something is being read.
        self.first.x.next = !(self.busy.q.val() | self.set.y.val());
        self.number.x.next = self.first.y.val();
        self.next.d.next = self.number.y.val();
        self.open.d.next = self.first.y.val().any();
        if self.reset.val() {
            self.busy.d.next = bits::<16>(0);
            self.open.d.next = false;
        }
    }
}
