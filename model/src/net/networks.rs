//! Which functions a received frame may be for. A function has a tunnel, and gets what comes through that and nothing else, or none, and gets what came through none (docs/switch.md, "Functions"). Functions
//! whose tunnels are of one VNI are in one network.

use ferric_abi::context::TunnelCtx;

/// A function's number in the 12 bits that go with a frame of a tunnel ([`Through::read`]).
pub const FUNCTION: u16 = 0x3f;
/// The bit beside it: the frame is for all functions of that one's network, else for that one alone.
pub const WHOLE: u16 = 0x40;
/// The bit beside that: that function has sent it, and its raw queue pair does not get it.
pub const LOOPED: u16 = 0x80;
/// The bit beside that: it is for that function's raw queue pair, and of another network. Nothing of the card but that queue pair looks at it.
pub const SHOWN: u16 = 0x100;
/// What stands there with a frame through no tunnel if no raw queue pair is to get it.
pub const NOBODY: u16 = 0xfff;

/// Where a frame comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Through {
    /// Through no tunnel.
    #[default]
    None,
    /// Through a tunnel, and it is for this function alone.
    Only(u16),
    /// From another network, and the raw queue pair of this function is shown it.
    Shown(u16),
    /// Through the tunnel of this function's network.
    Whole(u16),
    /// This function has sent it to its network.
    Looped(u16),
}

impl Through {
    /// From what goes with the frame.
    pub fn read(tunnel: bool, function: u16) -> Self {
        let f = function & FUNCTION;
        match (tunnel, function & WHOLE != 0, function & LOOPED != 0) {
            (false, ..) => Through::None,
            _ if function & SHOWN != 0 => Through::Shown(f),
            (_, false, _) => Through::Only(f),
            (_, _, false) => Through::Whole(f),
            _ => Through::Looped(f),
        }
    }

    /// The bits that go with a frame of a tunnel.
    pub fn bits(self) -> u16 {
        match self {
            Through::None => 0,
            Through::Only(f) => f,
            Through::Shown(f) => f | SHOWN,
            Through::Whole(f) => f | WHOLE,
            Through::Looped(f) => f | WHOLE | LOOPED,
        }
    }
}

/// The networks of the functions: of each whether it has a tunnel, and the function by whose number its network is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Networks([Option<u8>; 64]);

impl Default for Networks {
    fn default() -> Self {
        Self([None; 64])
    }
}

impl Networks {
    /// Function 0 may be shown frames of every network: this one, by its bridge domain ([`crate::switch::key::Origin`]), is not its own.
    pub fn foreign(&self, domain: u16) -> bool {
        domain != self.get(0).map_or(0, |own| u16::from(own) + 1)
    }

    /// By the functions' lines.
    pub fn of(lines: &[TunnelCtx]) -> Self {
        let mut all = Self::default();
        for (f, line) in lines.iter().enumerate().filter(|(_, line)| line.valid() || line.bound()) {
            all.0[f] = Some(if line.joined() { line.leader() } else { f as u8 });
        }
        all
    }

    /// Functions with tunnels, a bit each, of which each is in a network of its own.
    pub fn apart(tunnels: u64) -> Self {
        let mut all = Self::default();
        (0..64).filter(|f| tunnels >> f & 1 == 1).for_each(|f| all.0[f] = Some(f as u8));
        all
    }

    /// Function `f` is in the network of function `leader`.
    pub fn join(mut self, f: u16, leader: u16) -> Self {
        self.0[usize::from(f)] = Some(leader as u8);
        self
    }

    /// The network of a function that has a tunnel.
    pub fn get(&self, function: u16) -> Option<u8> {
        self.0.get(usize::from(function)).copied().flatten()
    }

    /// As the gateware has them: a byte for each function, the network in the low bits, and bit 7 if there is a tunnel.
    pub fn bytes(&self) -> [u8; 64] {
        self.0.map(|number| number.map_or(0, |n| n | 0x80))
    }
}

/// Where a frame comes from, and which functions are in which network.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Network {
    pub through: Through,
    pub networks: Networks,
}

impl Network {
    /// The frame may be for this function.
    pub fn has(&self, function: u16) -> bool {
        let own = self.networks.get(function);
        match self.through {
            Through::None => own.is_none(),
            Through::Only(f) | Through::Shown(f) => f == function,
            Through::Whole(f) | Through::Looped(f) => own.is_some() && own == self.networks.get(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Function 1 leads, 2 has joined it, 3 is alone, and 0 has no tunnel.
    #[test]
    fn whoever_has_joined_is_reached_and_nobody_else() {
        let networks = Networks::apart(0b1010).join(2, 1);
        let reached = |through| (0..5).filter(|f| Network { through, networks }.has(*f)).collect::<Vec<u16>>();
        assert_eq!(reached(Through::None), [0, 4]);
        assert_eq!(reached(Through::Only(2)), [2]);
        assert_eq!(reached(Through::Whole(1)), [1, 2]);
        assert_eq!(reached(Through::Whole(2)), [1, 2], "by whichever it is called");
        assert_eq!(reached(Through::Looped(3)), [3]);
        assert_eq!(reached(Through::Whole(4)), [], "the tunnel has gone meanwhile");
    }

    #[test]
    fn what_goes_with_a_frame_says_it() {
        for through in [Through::Only(63), Through::Shown(0), Through::Whole(0), Through::Looped(5)] {
            assert_eq!(Through::read(true, through.bits()), through);
        }
        assert_eq!(Through::read(false, NOBODY), Through::None);
    }
}
