//! See `docs/microarchitecture.md`.
pub mod admin;
pub mod cq;
pub mod csr;
pub mod ctl;
pub mod dma;
pub mod dma_rd;
pub mod dma_wr;
pub mod doorbell;
pub mod eq;
pub mod masters;
pub mod row_share;
pub mod rq;
pub mod sq;
pub mod table;
#[cfg(test)]
pub(crate) mod testing;
pub mod wqe_store;
