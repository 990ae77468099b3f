//! The egress's data slots for several clients. See ../README.md.

mod place;
#[cfg(test)]
mod tests;

use super::turn::Turn;
use crate::assembly::AnyBlock;
use crate::bus::{MsgSink, MsgSrc};
use crate::for_clients;
use crate::msg::{InlineWrite, SlotGrant, SlotReq, SlotSeal};
use crate::prim::pack::Gather;
use crate::stream::MsgFifo;
use ferric_hdl_derive::{kernel, BlockNew};
use place::Place;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // The egress, and a client that leaves its own grants: no other's.
    ("s_slot[*]", &["m_slot", "m_grant[*]"]),
    ("m_grant[*]", &["s_grant"]),
    ("s_grant", &[]), // there is a place for every grant that was asked for
    ("s_inline[*]", &["m_inline"]),
    ("s_seal[*]", &["m_seal"]),
    // The egress gives rows back in grant order: every client that has a slot has to seal it.
    ("m_seal", &["s_seal[0]", "s_seal[1]", "s_seal[2]", "s_seal[3]"]),
];

/// The share for clients of which each has headers of this number at the egress.
pub fn for_clients(headers: &[usize]) -> AnyBlock {
    for_clients!(headers.len(), <N> AnyBlock::new(SlotShare::<N>::new(headers)))
}

/// `N` clients, each with the ports that the egress has for one. `headers`: of each client, its number at the egress among those that make headers.
#[derive(LogicBlock, BlockNew)]
#[given(headers: &[usize])]
pub struct SlotShare<const N: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous, together with the egress's.
    pub reset: Signal<In, Bit>,
    pub s_slot: [MsgSink<SlotReq>; N],
    pub m_grant: [MsgSrc<SlotGrant>; N],
    pub s_inline: [MsgSink<InlineWrite>; N],
    pub s_seal: [MsgSink<SlotSeal>; N],
    /// To the egress's port of data frames.
    pub m_slot: MsgSrc<SlotReq>,
    pub s_grant: MsgSink<SlotGrant>,
    pub m_inline: MsgSrc<InlineWrite>,
    pub m_seal: MsgSrc<SlotSeal>,
    ask: Turn<SlotReq, N>,
    write: Turn<InlineWrite, N>,
    seal: Turn<SlotSeal, N>,
    /// Whose grants come, in the order of the requests.
    owners: MsgFifo<Bits<N>, 2>,
    place: [Place; N],
    rooms: Gather<N>,
    readys: Gather<N>,
    owner: Signal<Local, Bits<N>>,
    ready: Signal<Local, Bits<N>>,
    goes: Signal<Local, Bit>,
    #[init(Constant::new(((1u64 << N) - 1).to_bits()))]
    everyone: Constant<Bits<N>>,
    #[init(std::array::from_fn(|client| Constant::new(headers.get(client).map_or(0, |n| *n as u64).to_bits())))]
    headers: [Constant<Bits<3>>; N],
    request: Signal<Local, SlotReq>,
}

#[kernel]
impl<const N: usize> Logic for SlotShare<N> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ask, write, seal, owners);
        self.ask.reset.next = self.reset.val();
        self.write.reset.next = self.reset.val();
        self.seal.reset.next = self.reset.val();
        self.owners.reset.next = self.reset.val();
        MsgSrc::<SlotReq>::link(&mut self.m_slot, &mut self.ask.m);
        MsgSrc::<InlineWrite>::link(&mut self.m_inline, &mut self.write.m);
        MsgSrc::<SlotSeal>::link(&mut self.m_seal, &mut self.seal.m);
        self.owner.next = self.owners.m.data.val();
        for i in 0..N {
            self.place[i].clock.next = self.clock.val();
            self.place[i].reset.next = self.reset.val();
            // What a client says of whose header it has does not count.
            self.request.next = self.s_slot[i].data.val();
            self.request.next.client = self.headers[i].val();
            self.ask.s[i].data.next = self.request.val();
            self.ask.s[i].valid.next = self.s_slot[i].valid.val();
            self.s_slot[i].ready.next = self.ask.s[i].ready.val();
            MsgSink::<InlineWrite>::link(&mut self.s_inline[i], &mut self.write.s[i]);
            MsgSink::<SlotSeal>::link(&mut self.s_seal[i], &mut self.seal.s[i]);
            MsgSrc::<SlotGrant>::link(&mut self.m_grant[i], &mut self.place[i].m);
            self.rooms.x[i].next = self.place[i].room.val() & self.owners.s.ready.val();
            self.place[i].asked.next = self.ask.turn.val().get_bit(i) & self.ask.took.val();
            self.place[i].s.data.next = self.s_grant.data.val();
            self.place[i].s.valid.next = self.s_grant.valid.val() & self.owners.m.valid.val() & self.owner.val().get_bit(i);
            self.readys.x[i].next = self.place[i].s.ready.val();
        }
        self.ask.may.next = self.rooms.y.val();
        self.owners.s.valid.next = self.ask.took.val();
        self.owners.s.data.next = self.ask.turn.val();
        self.ready.next = self.readys.y.val() & self.owner.val();
        self.goes.next = self.owners.m.valid.val() & self.ready.val().any();
        self.s_grant.ready.next = self.goes.val();
        self.owners.m.ready.next = self.goes.val() & self.s_grant.valid.val();
        self.seal.may.next = self.everyone.val();
        self.write.may.next = self.everyone.val();
    }
}
