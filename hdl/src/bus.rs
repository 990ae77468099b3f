//! The two stream interfaces every block boundary uses, each as a source and a sink half.
//!
//! Both follow the AXI4-Stream handshake (Arm IHI 0051A, section 2.2): a transfer happens in a cycle where `valid` and
//! `ready` are both high; `valid` once raised stays, with its payload unchanged, until that cycle; `valid` never waits
//! for `ready`. A block has no combinational path from `ready` to `valid` nor from one of its ports to another.
//!
//! A block's input port is the `Sink` half, its output port the `Src` half. `MsgSrc::join(&mut a.m, &mut b.s)` wires a
//! child's output to another child's input, `link` wires a child's port to the parent's port of the same half.

use rust_hdl::prelude::*;

/// Producer half of a stream of whole records: one `T` per transfer.
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "MsgSink"]
pub struct MsgSrc<T: Synth> {
    /// The record, meaningful while `valid`.
    pub data: Signal<Out, T>,
    /// A record is offered.
    pub valid: Signal<Out, Bit>,
    /// The consumer takes it in this cycle.
    pub ready: Signal<In, Bit>,
}

/// Consumer half of [`MsgSrc`].
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "MsgSrc"]
pub struct MsgSink<T: Synth> {
    /// The record, meaningful while `valid`.
    pub data: Signal<In, T>,
    /// A record is offered.
    pub valid: Signal<In, Bit>,
    /// The block takes it in this cycle.
    pub ready: Signal<Out, Bit>,
}

/// Producer half of a packet stream of `W` bits per beat with `K` = `W` / 8 byte enables.
///
/// Byte `i` of a beat is `data[8i+7:8i]` and comes before byte `i+1` on the wire. `keep` is all ones on every beat but
/// the last, and contiguous from bit 0 on that one (no null bytes, no empty beats).
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "AxisSink"]
pub struct AxisSrc<const W: usize, const K: usize> {
    /// Payload bytes, lowest byte first on the wire.
    pub data: Signal<Out, Bits<W>>,
    /// One bit per valid byte.
    pub keep: Signal<Out, Bits<K>>,
    /// Last beat of a packet.
    pub last: Signal<Out, Bit>,
    /// A beat is offered.
    pub valid: Signal<Out, Bit>,
    /// The consumer takes it in this cycle.
    pub ready: Signal<In, Bit>,
}

/// Consumer half of [`AxisSrc`].
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "AxisSrc"]
pub struct AxisSink<const W: usize, const K: usize> {
    /// Payload bytes, lowest byte first on the wire.
    pub data: Signal<In, Bits<W>>,
    /// One bit per valid byte.
    pub keep: Signal<In, Bits<K>>,
    /// Last beat of a packet.
    pub last: Signal<In, Bit>,
    /// A beat is offered.
    pub valid: Signal<In, Bit>,
    /// The block takes it in this cycle.
    pub ready: Signal<Out, Bit>,
}

/// An engine's port to the context store (`context/store`): acquire a line by id, get it, give it back.
///
/// Three valid/ready channels. `acq`: `acq_id` is wanted, `acq_tag` comes back with it. `line`: the context, or
/// `line_fault` when the id does not exist (no release follows). `rel`: the owner gives the line back, with new
/// contents if `rel_dirty`. Latency is variable; a client holds at most one line at a time.
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "CtxServer"]
pub struct CtxClient<T: Synth> {
    pub acq_valid: Signal<Out, Bit>,
    pub acq_ready: Signal<In, Bit>,
    pub acq_id: Signal<Out, Bits<24>>,
    pub acq_tag: Signal<Out, Bits<4>>,
    pub line_valid: Signal<In, Bit>,
    pub line_ready: Signal<Out, Bit>,
    pub line_data: Signal<In, T>,
    pub line_tag: Signal<In, Bits<4>>,
    pub line_fault: Signal<In, Bit>,
    pub rel_valid: Signal<Out, Bit>,
    pub rel_ready: Signal<In, Bit>,
    pub rel_id: Signal<Out, Bits<24>>,
    pub rel_dirty: Signal<Out, Bit>,
    pub rel_data: Signal<Out, T>,
}

/// The context store's half of [`CtxClient`].
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "CtxClient"]
pub struct CtxServer<T: Synth> {
    pub acq_valid: Signal<In, Bit>,
    pub acq_ready: Signal<Out, Bit>,
    pub acq_id: Signal<In, Bits<24>>,
    pub acq_tag: Signal<In, Bits<4>>,
    pub line_valid: Signal<Out, Bit>,
    pub line_ready: Signal<In, Bit>,
    pub line_data: Signal<Out, T>,
    pub line_tag: Signal<Out, Bits<4>>,
    pub line_fault: Signal<Out, Bit>,
    pub rel_valid: Signal<In, Bit>,
    pub rel_ready: Signal<Out, Bit>,
    pub rel_id: Signal<In, Bits<24>>,
    pub rel_dirty: Signal<In, Bit>,
    pub rel_data: Signal<In, T>,
}

/// Producer half of a stream of wide byte records with their length, too wide for a `LogicStruct` generic in `N`.
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "WideSink"]
pub struct WideSrc<const N: usize> {
    /// The record, byte 0 in the low bits.
    pub data: Signal<Out, Bits<N>>,
    /// Its length in bytes.
    pub len: Signal<Out, Bits<16>>,
    /// A record is offered.
    pub valid: Signal<Out, Bit>,
    /// The consumer takes it in this cycle.
    pub ready: Signal<In, Bit>,
}

/// Consumer half of [`WideSrc`].
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "WideSrc"]
pub struct WideSink<const N: usize> {
    /// The record, byte 0 in the low bits.
    pub data: Signal<In, Bits<N>>,
    /// Its length in bytes.
    pub len: Signal<In, Bits<16>>,
    /// A record is offered.
    pub valid: Signal<In, Bit>,
    /// The block takes it in this cycle.
    pub ready: Signal<Out, Bit>,
}

/// Producer half of a stream of header rows to the egress: each names its slot and its place in the slot's header. It is taken in the cycle in which it is offered.
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "HdrSink"]
pub struct HdrSrc<const W: usize> {
    /// Slot of the frame.
    pub slot: Signal<Out, Bits<8>>,
    /// Number of the row: its first byte is byte `row` * `W` / 8 of the header.
    pub row: Signal<Out, Bits<5>>,
    /// Header bytes, lowest byte first on the wire.
    pub data: Signal<Out, Bits<W>>,
    /// A row is offered.
    pub valid: Signal<Out, Bit>,
}

/// Consumer half of [`HdrSrc`].
#[derive(LogicInterface, Clone, Debug, Default)]
#[join = "HdrSrc"]
pub struct HdrSink<const W: usize> {
    /// Slot of the frame.
    pub slot: Signal<In, Bits<8>>,
    /// Number of the row: its first byte is byte `row` * `W` / 8 of the header.
    pub row: Signal<In, Bits<5>>,
    /// Header bytes, lowest byte first on the wire.
    pub data: Signal<In, Bits<W>>,
    /// A row is offered.
    pub valid: Signal<In, Bit>,
}
