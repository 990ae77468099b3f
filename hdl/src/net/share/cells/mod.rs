//! The cell buffer's reads with data for several clients. See ../README.md.

#[cfg(test)]
mod tests;

use super::turn::Turn;
use crate::assembly::AnyBlock;
use crate::bus::{AxisSink, AxisSrc, MsgSink, MsgSrc};
use crate::for_clients;
use crate::msg::CellRead;
use crate::prim::pack::Gather;
use crate::stream::MsgFifo;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md). Beats come in the order of the reads: a client's may stand behind those of any other.
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_read[*]", &["m_read", "m_data[0]", "m_data[1]", "m_data[2]", "m_data[3]"]),
    ("s_data", &["m_data[0]", "m_data[1]", "m_data[2]", "m_data[3]"]),
    ("m_data[0]", &["s_data", "m_data[1]", "m_data[2]", "m_data[3]"]),
    ("m_data[1]", &["s_data", "m_data[0]", "m_data[2]", "m_data[3]"]),
    ("m_data[2]", &["s_data", "m_data[0]", "m_data[1]", "m_data[3]"]),
    ("m_data[3]", &["s_data", "m_data[0]", "m_data[1]", "m_data[2]"]),
];

/// The share for `clients`, 2 to 4.
pub fn for_clients<const W: usize, const K: usize>(clients: usize) -> AnyBlock {
    for_clients!(clients, <N> AnyBlock::new(CellShare::<W, K, N>::default()))
}

/// `N` clients, each with the ports that the cell buffer has for one.
#[derive(LogicBlock, BlockDefault)]
pub struct CellShare<const W: usize, const K: usize, const N: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous, together with the cell buffer's.
    pub reset: Signal<In, Bit>,
    pub s_read: [MsgSink<CellRead>; N],
    pub m_data: [AxisSrc<W, K>; N],
    /// To the cell buffer's port of reads with data.
    pub m_read: MsgSrc<CellRead>,
    pub s_data: AxisSink<W, K>,
    ask: Turn<CellRead, N>,
    /// Whose beats come, in the order of the reads: more than the cell buffer takes ahead.
    owners: MsgFifo<Bits<N>, 5>,
    rooms: Gather<N>,
    readys: Gather<N>,
    owner: Signal<Local, Bits<N>>,
    ready: Signal<Local, Bits<N>>,
    goes: Signal<Local, Bit>,
}

#[kernel]
impl<const W: usize, const K: usize, const N: usize> Logic for CellShare<W, K, N> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ask, owners);
        self.ask.reset.next = self.reset.val();
        self.owners.reset.next = self.reset.val();
        MsgSrc::<CellRead>::link(&mut self.m_read, &mut self.ask.m);
        self.owner.next = self.owners.m.data.val();
        for i in 0..N {
            MsgSink::<CellRead>::link(&mut self.s_read[i], &mut self.ask.s[i]);
            self.rooms.x[i].next = self.owners.s.ready.val();
            self.m_data[i].data.next = self.s_data.data.val();
            self.m_data[i].keep.next = self.s_data.keep.val();
            self.m_data[i].last.next = self.s_data.last.val();
            self.m_data[i].valid.next = self.s_data.valid.val() & self.owners.m.valid.val() & self.owner.val().get_bit(i);
            self.readys.x[i].next = self.m_data[i].ready.val();
        }
        self.ask.may.next = self.rooms.y.val();
        // A read of no bytes only frees: no beat answers it.
        self.owners.s.valid.next = self.ask.took.val() & self.m_read.data.val().len.any();
        self.owners.s.data.next = self.ask.turn.val();
        self.ready.next = self.readys.y.val() & self.owner.val();
        self.goes.next = self.owners.m.valid.val() & self.ready.val().any();
        self.s_data.ready.next = self.goes.val();
        self.owners.m.ready.next = self.goes.val() & self.s_data.valid.val() & self.s_data.last.val();
    }
}
