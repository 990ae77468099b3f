//! Bring-up of the 100G MAC. See README.md.

use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Receiver on; remote fault until the lanes are aligned; then transmitter on. Back to remote fault when alignment is lost.
#[derive(LogicBlock, BlockDefault)]
pub struct CmacLink {
    /// The MAC's own clock, of which `aligned` is.
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub aligned: Signal<In, Bit>,
    pub rx_enable: Signal<Out, Bit>,
    pub tx_enable: Signal<Out, Bit>,
    pub send_rfi: Signal<Out, Bit>,
    /// Both ways on.
    pub up: Signal<Out, Bit>,
    rx: DFF<Bit>,
    /// `aligned`, registered.
    seen: DFF<Bit>,
    tx: DFF<Bit>,
    fault: DFF<Bit>,
}

#[kernel]
impl Logic for CmacLink {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, rx, seen, tx, fault);
        self.rx.d.next = !self.reset.val();
        self.seen.d.next = self.aligned.val() & self.rx.q.val();
        self.tx.d.next = self.seen.q.val();
        self.fault.d.next = self.rx.q.val() & !self.seen.q.val();
        if self.reset.val() {
            self.seen.d.next = false;
            self.tx.d.next = false;
            self.fault.d.next = false;
        }
        self.rx_enable.next = self.rx.q.val();
        self.tx_enable.next = self.tx.q.val();
        self.send_rfi.next = self.fault.q.val();
        self.up.next = self.tx.q.val();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    #[test]
    fn the_transmitter_follows_the_alignment() {
        let mut tb = Tb::new("ferric_cmac_link", CmacLink::default());
        let outputs = |tb: &Tb| ["rx_enable", "tx_enable", "send_rfi", "up"].map(|p| tb.get(p));
        assert_eq!(outputs(&tb), [0; 4], "all off in reset");
        // Alignment before the receiver is on counts only after it.
        tb.set("aligned", 1);
        tb.cycle();
        assert_eq!(outputs(&tb), [1, 0, 0, 0]);
        tb.set("aligned", 0);
        for _ in 0..4 {
            tb.cycle();
            assert_eq!(outputs(&tb), [1, 0, 1, 0], "remote fault until aligned");
        }
        for _ in 0..5 {
            tb.set("aligned", 1);
            tb.run(2);
            assert_eq!(outputs(&tb), [1, 1, 0, 1]);
            tb.run(20);
            tb.set("aligned", 0);
            tb.run(2);
            assert_eq!(outputs(&tb), [1, 0, 1, 0]);
            tb.run(20);
        }
        tb.set("aligned", 1);
        tb.set("reset", 1);
        tb.cycle();
        assert_eq!(outputs(&tb), [0; 4]);
    }
}
