//! Interrupt requests as the wires of a shell. See README.md.

use crate::bus::MsgSink;
use crate::msg::MsixReq;
use crate::prim::arb::BinToOneHot;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Vector v of function 0 pulses `req[v mod 16]` for one cycle. The next pulse of that bit waits for its `ack`; requests that come
/// meanwhile are one. Requests of other functions are dropped.
#[derive(LogicBlock, BlockDefault)]
pub struct Irq16 {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub msix: MsgSink<MsixReq>,
    pub req: Signal<Out, Bits<16>>,
    pub ack: Signal<In, Bits<16>>,
    /// Asked for, not yet pulsed.
    owed: DFF<Bits<16>>,
    /// Pulsed, not yet acknowledged.
    waiting: DFF<Bits<16>>,
    pulse: DFF<Bits<16>>,
    acked: DFF<Bits<16>>,
    hot: BinToOneHot<16, 4>,
    fire: Signal<Local, Bits<16>>,
}

#[kernel]
impl Logic for Irq16 {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, owed, waiting, pulse, acked);
        self.msix.ready.next = true;
        self.hot.en.next = self.msix.valid.val() & (self.msix.data.val().function == 0);
        self.hot.x.next = self.msix.data.val().vector.get_bits::<4>(0);
        self.acked.d.next = self.ack.val();
        self.fire.next = self.owed.q.val() & !self.waiting.q.val();
        self.owed.d.next = (self.owed.q.val() & !self.fire.val()) | self.hot.y.val();
        self.waiting.d.next = (self.waiting.q.val() & !self.acked.q.val()) | self.fire.val();
        self.pulse.d.next = self.fire.val();
        self.req.next = self.pulse.q.val();
        if self.reset.val() {
            self.owed.d.next = bits::<16>(0);
            self.waiting.d.next = bits::<16>(0);
            self.pulse.d.next = bits::<16>(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tb::Tb;

    #[test]
    fn every_vector_gets_a_pulse_after_its_request_and_none_before_its_ack() {
        let mut tb = Tb::new("ferric_irq16", Irq16::default());
        let source = tb.source("msix", 50);
        let mut owed = [false; 16];
        let mut out = [0u32; 16];
        let mut asked = Vec::new();
        let mut pulses = 0;
        for n in 0..6000 {
            if n < 5000 && source.pending() == 0 {
                let (function, vector) = (u64::from(tb.rng().percent(10)) * 3, tb.rng().below(64));
                source.push(function | vector << 12);
                asked.push((function, vector as usize));
            }
            let before = source.taken();
            // Acknowledge what has been out for a while.
            let mut ack = 0;
            for (v, cycles) in out.iter_mut().enumerate().filter(|(_, c)| **c > 0) {
                *cycles += 1;
                if *cycles > 4 && tb.rng().percent(10) {
                    ack |= 1 << v;
                    *cycles = 0;
                }
            }
            tb.set("ack", ack);
            tb.cycle();
            let req = tb.get("req");
            for v in (0..16).filter(|v| req >> v & 1 == 1) {
                assert!(owed[v] && out[v] == 0, "a pulse of {v} without a request or before its ack");
                (owed[v], out[v]) = (false, 1);
                pulses += 1;
            }
            if source.taken() > before {
                let (function, vector) = asked.remove(0);
                owed[vector % 16] |= function == 0;
            }
        }
        assert!(owed.iter().all(|o| !o), "a request that was never pulsed");
        assert!(pulses > 500, "{pulses}");
    }
}
