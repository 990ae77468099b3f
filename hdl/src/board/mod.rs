//! Gateware between the card core and a board's own blocks: clock crossings, resets, MACs, buses. `boards/` describes the tops
//! that instantiate it (`boards/src/blocks/gateware.rs` declares the same ports).

pub mod async_fifo;
