//! Gateware between the card core and a board's own blocks: clock crossings, resets, MACs, buses. `boards/` describes the tops
//! that instantiate it (`boards/src/blocks/gateware.rs` declares the same ports).

pub mod async_fifo;
pub mod ecpix5;
pub mod host;
pub mod irq;
pub mod link;
pub mod lite;
pub mod mac;
pub mod msix;
pub mod ocl;
pub mod reset;
pub mod rgmii;
pub mod tick;
pub mod tops;
