//! See `docs/microarchitecture.md`.
pub mod ctl;
pub mod rq;
pub mod sq;
#[cfg(test)]
mod testing;
pub mod wqe_store;

pub mod dma;
pub mod dma_rd;
pub mod dma_wr;
