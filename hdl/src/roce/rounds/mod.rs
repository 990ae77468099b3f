//! How often each queue pair has gone back to send again. See README.md.

use crate::prim::ram::{RamAsync, RamAsync2};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[cfg(test)]
mod tests;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("rewound", &[]),
    ("look[*]", &[]),
    ("round[*]", &[]), // in the same cycle
];

/// Those that ask: `req_tx`, which stamps its packet orders, `gather` and `egress`, which compare.
pub const READERS: usize = 3;

/// The round of each of `2^LQ` queue pairs, modulo 4.
#[derive(LogicBlock, BlockDefault)]
pub struct Rounds<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    /// Pulse: queue pair `rewound_qpn` sends again from its oldest packet without acknowledge, since its peer asks for it. What is asked sees it from the next cycle on.
    pub rewound: Signal<In, Bit>,
    pub rewound_qpn: Signal<In, Bits<24>>,
    /// Queue pair numbers, and their rounds in the same cycle.
    pub look: [Signal<In, Bits<24>>; READERS],
    pub round: [Signal<Out, Bits<2>>; READERS],
    /// Counted up, and read for `req_tx`.
    kept: RamAsync2<Bits<2>, LQ>,
    /// The same, for the others.
    gather: RamAsync<Bits<2>, LQ>,
    egress: RamAsync<Bits<2>, LQ>,
    qpn: Signal<Local, Bits<24>>,
    asked: [Signal<Local, Bits<24>>; READERS],
    next: Signal<Local, Bits<2>>,
}

#[kernel]
impl<const LQ: usize> Logic for Rounds<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, kept, gather, egress);
        self.qpn.next = self.rewound_qpn.val();
        for n in 0..READERS {
            self.asked[n].next = self.look[n].val();
        }
        self.kept.read_addr0.next = self.qpn.val().get_bits::<LQ>(0);
        self.next.next = self.kept.read_data0.val() + 1;
        self.kept.write_en.next = self.rewound.val();
        self.kept.write_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.kept.write_data.next = self.next.val();
        self.kept.read_addr1.next = self.asked[0].val().get_bits::<LQ>(0);
        self.round[0].next = self.kept.read_data1.val();
        self.gather.write_en.next = self.rewound.val();
        self.gather.write_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.gather.write_data.next = self.next.val();
        self.gather.read_addr.next = self.asked[1].val().get_bits::<LQ>(0);
        self.round[1].next = self.gather.read_data.val();
        self.egress.write_en.next = self.rewound.val();
        self.egress.write_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.egress.write_data.next = self.next.val();
        self.egress.read_addr.next = self.asked[2].val().get_bits::<LQ>(0);
        self.round[2].next = self.egress.read_data.val();
    }
}
