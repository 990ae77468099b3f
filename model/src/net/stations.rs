//! Whose frame it is. Written from IEEE 802.3, 3.2.3 (the first bit of a destination says whether it is a group's) and 4.2.9 (a station recognises its own address, groups, and in
//! promiscuous mode everything).

use super::networks::{Network, Through};
use ferric_abi::context::{SenderCtx, StationCtx};
use ferric_abi::csr::STATIONS;

/// Where MAC control frames go (annex 31B.1).
const PAUSE: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];

/// Which of the functions' addresses count, by line, as many of each function as of any other. `senders`: what each function may send, as far as anybody has said so: one that is verified has no other addresses than those that it may send from.
pub fn counting(said: &[StationCtx], senders: &[SenderCtx]) -> Vec<StationCtx> {
    let may = |line: usize, mac: u64| {
        let counts = |may: &SenderCtx| [may.mac0(), may.mac1(), may.mac2(), may.mac3()].iter().enumerate().any(|(n, own)| may.have() >> n & 1 == 1 && *own == mac);
        senders.get(line / STATIONS as usize).is_none_or(|may| !may.on() || counts(may))
    };
    said.iter().enumerate().map(|(line, station)| station.with_valid(station.valid() && may(line, station.mac()))).collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_verified_has_what_he_may_have() {
        let said: Vec<_> = (0..12u64).map(|n| StationCtx::default().with_mac(0x0200_0000_0000 | n).with_valid(n != 7)).collect();
        let may = |on, have| SenderCtx::default().with_on(on).with_mac1(0x0200_0000_0005).with_mac3(0x0200_0000_0008).with_have(have);
        let lines = |senders: &[SenderCtx]| counting(&said, senders).iter().enumerate().filter(|(_, station)| station.valid()).map(|(n, _)| n).collect::<Vec<_>>();
        let all = [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11];
        assert_eq!(lines(&[]), all);
        assert_eq!(lines(&[may(false, 15); 3]), all, "nobody is verified");
        assert_eq!(lines(&[may(false, 0), may(true, 15)]), [0, 1, 2, 3, 5, 8, 9, 10, 11], "of function 1 one address; the last is another's");
        assert_eq!(lines(&[may(false, 0), may(true, 2), may(true, 2)]), [0, 1, 2, 3, 5]);
        assert_eq!(lines(&[may(true, 15), may(true, 13), may(true, 8)]), [8]);
    }
}
