//! The ECPIX-5's top with models of the FPGA's cells, to be spoken to through its pins. See README.md.
mod pins;
#[cfg(test)]
mod tests;

pub use pins::Pins;
