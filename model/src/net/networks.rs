//! Which functions a received frame may be for. A function has a tunnel, and gets what comes through that and nothing else, or none, and gets what came through none (docs/switch.md, "Functions").

/// Where a frame comes from, and which functions have a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Network {
    /// Whose tunnel it came through.
    pub through: Option<u16>,
    /// A bit for each function that has one.
    pub tunnels: u64,
}

impl Network {
    /// The function is in the frame's network.
    pub fn has(&self, function: u16) -> bool {
        self.through.map_or(self.tunnels >> function & 1 == 0, |f| f == function)
    }
}
