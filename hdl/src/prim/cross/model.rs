//! Golden models of the crossings, one call a clock edge.

/// Two registers in a row.
#[derive(Default)]
pub struct Sync {
    meta: u64,
    settled: u64,
}

impl Sync {
    /// An edge with `x` at the input; the output after it.
    pub fn edge(&mut self, x: u64) -> u64 {
        self.settled = self.meta;
        self.meta = x;
        self.settled
    }
}

/// Edges since `n` was low, up to two; the output is high before the second.
#[derive(Default)]
pub struct ResetSync {
    edges: u32,
}

impl ResetSync {
    /// `n` low: at once.
    pub fn low(&mut self) -> bool {
        self.edges = 0;
        true
    }

    /// An edge with `n` at the input; the output after it.
    pub fn edge(&mut self, n: bool) -> bool {
        self.edges = if n { (self.edges + 1).min(2) } else { 0 };
        self.edges < 2
    }
}

/// Gray code of `x`.
pub fn gray(x: u64) -> u64 {
    x ^ x >> 1
}

/// The number of which `code` is the Gray code.
pub fn binary(code: u64) -> u64 {
    (0..64).fold(0, |y, shift| y ^ code >> shift)
}
