//! Frames of functions through the block.
