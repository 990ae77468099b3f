//! Who waits for whom, from the wires of a list and what its blocks say of their ports.
pub struct WaitGraph;
