//! What the boards' register buses share: an AXI4-Lite slave, and the two channels of a write behind it. See README.md.

mod ask;
mod slave;
#[cfg(test)]
mod tests;

pub use ask::LiteAsk;
pub use slave::LiteSlave;

use rust_hdl::prelude::*;

/// Writes as [`LiteSlave`] shows them: `held` with the rest unchanged until `done`.
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "WriteSink"]
pub struct WriteSrc<const A: usize> {
    /// There is a write.
    pub held: Signal<Out, Bit>,
    /// In bytes.
    pub addr: Signal<Out, Bits<A>>,
    pub data: Signal<Out, Bits<32>>,
    /// One bit a byte of `data`.
    pub strb: Signal<Out, Bits<4>>,
    /// The write is answered with `resp` (only while `held`).
    pub done: Signal<In, Bit>,
    pub resp: Signal<In, Bits<2>>,
}

/// The other half of [`WriteSrc`].
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "WriteSrc"]
pub struct WriteSink<const A: usize> {
    pub held: Signal<In, Bit>,
    pub addr: Signal<In, Bits<A>>,
    pub data: Signal<In, Bits<32>>,
    pub strb: Signal<In, Bits<4>>,
    pub done: Signal<Out, Bit>,
    pub resp: Signal<Out, Bits<2>>,
}

/// Reads as [`LiteSlave`] shows them: `held` and `addr` unchanged until `done`.
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "ReadSink"]
pub struct ReadSrc<const A: usize> {
    /// There is a read.
    pub held: Signal<Out, Bit>,
    /// In bytes.
    pub addr: Signal<Out, Bits<A>>,
    /// The read is answered with `data` and `resp` (only while `held`).
    pub done: Signal<In, Bit>,
    pub data: Signal<In, Bits<32>>,
    pub resp: Signal<In, Bits<2>>,
}

/// The other half of [`ReadSrc`].
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "ReadSrc"]
pub struct ReadSink<const A: usize> {
    pub held: Signal<In, Bit>,
    pub addr: Signal<In, Bits<A>>,
    pub done: Signal<Out, Bit>,
    pub data: Signal<Out, Bits<32>>,
    pub resp: Signal<Out, Bits<2>>,
}
