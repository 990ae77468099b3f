//! Frames that functions send: who on the card itself gets them.

use crate::net::networks::{Networks, Through, NOBODY};
use ferric_abi::context::StationCtx;

/// Of which network a frame is that goes to functions of the card: what goes with it there ([`Through::read`]), of a frame through no tunnel 0 or [`NOBODY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    pub tunnel: bool,
    pub function: u16,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Out of the card.
    Wire,
    /// Out of the card, and a copy to the functions of this network.
    Both(Network),
    /// To the function of this network that has the address.
    Local(Network),
}

/// Where a frame to the MAC address `to` (first byte highest) goes that `function` sends. `stations`: the addresses that count (see [`crate::net::stations::counting`]), as many of each function as of any other. `networks`: who is in which network. Of an address that two have the lower line counts.
pub fn way(to: u64, function: u16, stations: &[StationCtx], networks: &Networks) -> Way {
    let each = ferric_abi::csr::STATIONS as usize;
    let within = |f: usize| networks.get(f as u16) == networks.get(function);
    let group = to >> 40 & 1 == 1;
    let found = stations.iter().enumerate().find(|(n, station)| station.valid() && station.mac() == to && within(n / each)).map(|(n, _)| (n / each) as u16);
    let through = match (networks.get(function), found) {
        (None, _) => Through::None,
        (_, Some(f)) => Through::Only(f),
        (_, None) => Through::Looped(function),
    };
    let network = if through == Through::None {
        // The physical function has the raw queue pair of functions without a tunnel, and does not get what it has sent to a group.
        let no_raw = networks.get(0).is_some() || group && function == 0;
        Network { tunnel: false, function: if no_raw { NOBODY } else { 0 } }
    } else {
        Network { tunnel: true, function: through.bits() }
    };
    match found {
        Some(_) => Way::Local(network),
        None if group => Way::Both(network),
        None => Way::Wire,
    }
}

/// What goes with a frame of this function that would leave by the wire, and comes in again because the flow tables want that. While they decide nothing depends on it but the network's bridge domain; if they are switched off
/// meanwhile no raw queue pair of that network gets the frame.
pub fn returned(function: u16, networks: &Networks) -> Network {
    match networks.get(function) {
        None => Network { tunnel: false, function: NOBODY },
        Some(_) => Network { tunnel: true, function: Through::Looped(function).bits() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stations() -> Vec<StationCtx> {
        (0..16u64).map(|n| StationCtx::default().with_mac(0x0200_0000_0000 | n).with_valid(n != 7)).collect()
    }

    #[test]
    fn networks_are_kept_apart() {
        let plain = Network { tunnel: false, function: 0 };
        let way = |to: u64, function, tunnels| way(to, function, &stations(), &Networks::apart(tunnels));
        assert_eq!(way(0x0200_0000_0004, 0, 0), Way::Local(plain), "function 1's");
        assert_eq!(way(0x0200_0000_0000, 0, 0), Way::Local(plain), "its own");
        assert_eq!(way(0x0200_0000_0007, 0, 0), Way::Wire, "nobody's");
        assert_eq!(way(0x0200_0000_0004, 0, 0b10), Way::Wire, "function 1 is in a tunnel");
        assert_eq!(way(0x0200_0000_0000, 1, 0b10), Way::Wire, "and reaches nobody outside");
        assert_eq!(way(0x0200_0000_0005, 1, 0b10), Way::Local(Network { tunnel: true, function: 1 }));
        assert_eq!(way(0x0200_0000_0008, 1, 1), Way::Local(Network { tunnel: false, function: NOBODY }), "function 0 is in a tunnel, and its raw queue pair");
    }

    #[test]
    fn groups_get_copies() {
        let broadcast = |function, tunnels| way(0xffff_ffff_ffff, function, &stations(), &Networks::apart(tunnels));
        assert_eq!(broadcast(1, 0), Way::Both(Network { tunnel: false, function: 0 }));
        assert_eq!(broadcast(0, 0), Way::Both(Network { tunnel: false, function: NOBODY }), "not to the sender's raw queue pair");
        assert_eq!(broadcast(1, 0b10), Way::Both(Network { tunnel: true, function: Through::Looped(1).bits() }));
        assert_eq!(broadcast(2, 1), Way::Both(Network { tunnel: false, function: NOBODY }));
    }

    /// Functions 1 and 2 are in one network.
    #[test]
    fn whoever_is_in_one_network_reaches_the_other() {
        let networks = Networks::apart(0b10).join(2, 1);
        let way = |to: u64, function| way(to, function, &stations(), &networks);
        let only = |f: u16| Way::Local(Network { tunnel: true, function: f });
        assert_eq!([way(0x0200_0000_0008, 1), way(0x0200_0000_0004, 2), way(0x0200_0000_0009, 2)], [only(2), only(1), only(2)]);
        assert_eq!([way(0x0200_0000_0000, 1), way(0x0200_0000_000c, 2), way(0x0200_0000_0004, 0), way(0x0200_0000_0008, 3)], [Way::Wire; 4]);
        assert_eq!(way(0x3333_0000_0001, 2), Way::Both(Network { tunnel: true, function: Through::Looped(2).bits() }));
    }
}
