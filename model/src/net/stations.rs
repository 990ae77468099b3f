//! Whose frame it is. Written from IEEE 802.3, 3.2.3 (the first bit of a destination says whether it is a group's) and 4.2.9 (a station recognises its own address, groups, and in
//! promiscuous mode everything).

use super::networks::{Network, Through};
use ferric_abi::csr::STATIONS;

/// Where MAC control frames go (annex 31B.1).
const PAUSE: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];

/// What a card listens to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listening {
    /// Addresses of functions by line.
    pub own: Vec<Option<[u8; 6]>>,
    pub promiscuous: bool,
}

impl Listening {
    /// Whose address it is, in the frame's network.
    pub fn holder(&self, destination: [u8; 6], network: Network) -> Option<u16> {
        let mut functions = self.own.iter().enumerate().filter(|(_, mac)| **mac == Some(destination)).map(|(line, _)| (line / STATIONS as usize) as u16);
        functions.find(|f| network.has(*f))
    }

    /// The same; the physical function if it is nobody's.
    pub fn owner(&self, destination: [u8; 6], network: Network) -> u16 {
        self.holder(destination, network).unwrap_or(0)
    }

    /// A frame that came through the tunnel of a network to the address of one of its functions is for that one alone.
    pub fn addressed(&self, destination: [u8; 6], network: Network) -> Network {
        match (network.through, self.holder(destination, network)) {
            (Through::Whole(_), Some(function)) => Network { through: Through::Only(function), ..network },
            _ => network,
        }
    }

    /// The frame is for another station. The raw queue pair is the physical function's.
    pub fn other(&self, destination: [u8; 6], network: Network) -> bool {
        let group = destination[0] & 1 == 1;
        // MAC control frames end in the MAC (clause 31): they are nobody's, not even a promiscuous queue pair's.
        let own = || self.own.iter().enumerate().any(|(line, mac)| *mac == Some(destination) && network.has((line / STATIONS as usize) as u16));
        destination == PAUSE || !(group || (self.promiscuous && network.has(0)) || own())
    }
}
