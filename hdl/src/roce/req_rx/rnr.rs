//! RNR NAK timer codes.

use crate::prim::lookup::Lookup;
use ferric_hdl_derive::BlockDefault;
use rust_hdl::prelude::*;

/// Waiting times in units of 10 us by code: IBTA volume 1, table 46.
pub const RNR_10US: [u32; 32] = [65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152];

/// Ticks of 1.024 us for a code, rounded up.
pub fn rnr_ticks(code: usize) -> u32 {
    (RNR_10US[code & 31] * 10_000).div_ceil(1024)
}

/// Code to ticks, combinational.
#[derive(LogicBlock, BlockDefault)]
pub struct RnrTicks {
    pub code: Signal<In, Bits<5>>,
    pub ticks: Signal<Out, Bits<20>>,
    #[init(Lookup::of(|code| rnr_ticks(code).into()))]
    lut: Lookup<5, 20>,
}

impl Logic for RnrTicks {
    #[hdl_gen]
    fn update(&mut self) {
        self.lut.x.next = self.code.val();
        self.ticks.next = self.lut.y.val();
    }
}
