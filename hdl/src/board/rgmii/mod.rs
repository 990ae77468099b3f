//! Gigabit MAC on RGMII. See README.md.

pub mod model;
mod receive;
mod send;
#[cfg(test)]
mod tests;

pub use receive::GigReceive;
pub use send::GigSend;

use super::async_fifo::{FrameCross, PulseCross};
use crate::bus::{AxisSink, AxisSrc};
use crate::prim::xor_matrix::XorMatrix;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// State of the FCS (low 32 bits) and a byte (high 8 bits) to the next state.
fn fcs_step() -> XorMatrix<40, 32> {
    XorMatrix::of(|j| {
        let unit = 1u64 << j;
        u128::from(model::step(unit as u32, (unit >> 32) as u8))
    })
}

/// Frames from `clock` to the pins' output registers, in `mac_clock` (125 MHz).
#[derive(LogicBlock, BlockDefault)]
pub struct RgmiiTx {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub s: AxisSink<64, 8>,
    pub mac_clock: Signal<In, Clock>,
    pub mac_reset: Signal<In, Bit>,
    /// What the pins carry after the rising and after the falling edge: TXD 3:0, TX_CTL.
    pub rise: Signal<Out, Bits<5>>,
    pub fall: Signal<Out, Bits<5>>,
    #[init(FrameCross::new(10, false))]
    cross: FrameCross<64, 8>,
    send: GigSend,
}

#[kernel]
impl Logic for RgmiiTx {
    #[hdl_gen]
    fn update(&mut self) {
        self.cross.s_clock.next = self.clock.val();
        self.cross.s_reset.next = self.reset.val();
        self.cross.m_clock.next = self.mac_clock.val();
        self.cross.m_reset.next = self.mac_reset.val();
        self.cross.s_err.next = false;
        AxisSink::<64, 8>::link(&mut self.s, &mut self.cross.s);
        self.send.clock.next = self.mac_clock.val();
        self.send.reset.next = self.mac_reset.val();
        AxisSrc::<64, 8>::join(&mut self.cross.m, &mut self.send.s);
        self.send.s_err.next = self.cross.m_err.val();
        self.rise.next = self.send.rise.val();
        self.fall.next = self.send.fall.val();
    }
}

/// Frames from the pins' input registers, in `mac_clock` (the PHY's), to `clock`.
#[derive(LogicBlock, BlockDefault)]
pub struct RgmiiRx {
    pub mac_clock: Signal<In, Clock>,
    pub mac_reset: Signal<In, Bit>,
    /// What the pins carried after the rising and after the falling edge: RXD 3:0, RX_CTL.
    pub rise: Signal<In, Bits<5>>,
    pub fall: Signal<In, Bits<5>>,
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub m: AxisSrc<64, 8>,
    /// With the last beat: wrong FCS, RX_ER, fewer than 64 bytes or more than [`model::LONGEST`].
    pub m_err: Signal<Out, Bit>,
    /// A frame was dropped: no room, or it was too short to hold an FCS and a byte.
    pub dropped: Signal<Out, Bit>,
    #[init(FrameCross::new(11, true))]
    cross: FrameCross<64, 8>,
    pulse: PulseCross,
    receive: GigReceive,
}

#[kernel]
impl Logic for RgmiiRx {
    #[hdl_gen]
    fn update(&mut self) {
        self.receive.clock.next = self.mac_clock.val();
        self.receive.reset.next = self.mac_reset.val();
        self.receive.rise.next = self.rise.val();
        self.receive.fall.next = self.fall.val();
        self.cross.s_clock.next = self.mac_clock.val();
        self.cross.s_reset.next = self.mac_reset.val();
        self.cross.m_clock.next = self.clock.val();
        self.cross.m_reset.next = self.reset.val();
        AxisSrc::<64, 8>::join(&mut self.receive.m, &mut self.cross.s);
        self.cross.s_err.next = self.receive.m_err.val();
        AxisSrc::<64, 8>::link(&mut self.m, &mut self.cross.m);
        self.m_err.next = self.cross.m_err.val();
        self.pulse.s_clock.next = self.mac_clock.val();
        self.pulse.s_reset.next = self.mac_reset.val();
        self.pulse.m_clock.next = self.clock.val();
        self.pulse.m_reset.next = self.reset.val();
        self.pulse.s.next = self.cross.dropped.val() | self.receive.scrap.val();
        self.dropped.next = self.pulse.m.val();
    }
}
