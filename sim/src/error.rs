//! Errors of the simulation.

/// What can go wrong around the simulated card.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Verilated card could not be built or loaded.
    #[cfg(feature = "cards")]
    #[error(transparent)]
    Verilator(#[from] verilator_sys::Error),
    /// The generated card failed a check.
    #[error("generated card is not well formed: {0}")]
    Gateware(String),
    /// A capture could not be written.
    #[error("capture: {0}")]
    Capture(String),
    /// Cards could not be served.
    #[error("{0}")]
    Serve(String),
}
