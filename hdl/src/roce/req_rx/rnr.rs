//! RNR NAK timer codes.

use crate::prim::lookup::Lookup;
use ferric_hdl_derive::{kernel, BlockDefault};
pub use ferric_model::roce::requester::{rnr_ticks, RNR_10US};
use rust_hdl::prelude::*;

/// Code to ticks, combinational.
#[derive(LogicBlock, BlockDefault)]
pub struct RnrTicks {
    pub code: Signal<In, Bits<5>>,
    pub ticks: Signal<Out, Bits<20>>,
    #[init(Lookup::of(|code| rnr_ticks(code).into()))]
    lut: Lookup<5, 20>,
}

#[kernel]
impl Logic for RnrTicks {
    #[hdl_gen]
    fn update(&mut self) {
        self.lut.x.next = self.code.val();
        self.ticks.next = self.lut.y.val();
    }
}
