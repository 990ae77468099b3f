//! The block test benches' ports: random stalls and noise, protocol checks, frames. `ferric_hdl::tb` makes benches of them.
//!
//! They are a crate of their own because they run in every simulated cycle and the gateware's crate is compiled without optimisation.
mod axis;
mod rng;
mod stream;

pub use axis::{AxisBeat, AxisSink, AxisSource, AXIS_FIELDS};
pub use rng::Rng;
pub use stream::{port_name, Beat, IntoWords, Lane, Port, Sink, Source};
