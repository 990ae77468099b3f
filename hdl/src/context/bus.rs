//! The acquire/release port of the context store, engine's half and store's half.
//!
//! A client raises `acq_valid` with an id and a tag; some cycles later (2 to 500 in tests) the line arrives on `line_*`
//! and the id belongs to that client until it releases it. `line_fault`: no such line, nothing was locked, do not release.
//! All three handshakes are valid/ready; `rel_data` is written when `rel_dirty`.

use rust_hdl::prelude::*;

/// Engine's half.
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "CtxServer"]
pub struct CtxClient<T: Synth> {
    pub acq_valid: Signal<Out, Bit>,
    pub acq_ready: Signal<In, Bit>,
    pub acq_id: Signal<Out, Bits<24>>,
    pub acq_tag: Signal<Out, Bits<4>>,
    pub line_valid: Signal<In, Bit>,
    pub line_ready: Signal<Out, Bit>,
    pub line_tag: Signal<In, Bits<4>>,
    pub line_fault: Signal<In, Bit>,
    pub line_data: Signal<In, T>,
    pub rel_valid: Signal<Out, Bit>,
    pub rel_ready: Signal<In, Bit>,
    pub rel_id: Signal<Out, Bits<24>>,
    pub rel_dirty: Signal<Out, Bit>,
    pub rel_data: Signal<Out, T>,
}

/// Store's half.
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "CtxClient"]
pub struct CtxServer<T: Synth> {
    pub acq_valid: Signal<In, Bit>,
    pub acq_ready: Signal<Out, Bit>,
    pub acq_id: Signal<In, Bits<24>>,
    pub acq_tag: Signal<In, Bits<4>>,
    pub line_valid: Signal<Out, Bit>,
    pub line_ready: Signal<In, Bit>,
    pub line_tag: Signal<Out, Bits<4>>,
    pub line_fault: Signal<Out, Bit>,
    pub line_data: Signal<Out, T>,
    pub rel_valid: Signal<In, Bit>,
    pub rel_ready: Signal<Out, Bit>,
    pub rel_id: Signal<In, Bits<24>>,
    pub rel_dirty: Signal<In, Bit>,
    pub rel_data: Signal<In, T>,
}
