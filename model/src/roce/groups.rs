//! Who gets a datagram to a group: written from IBTA volume 1, 10.5 (multicast), every attached queue pair one copy, of those in the VLAN it came from.

use crate::net::networks::Network;

/// An attachment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Attached {
    pub group: u128,
    pub ipv6: bool,
    pub qpn: u32,
    /// VLAN of the queue pair's path.
    pub vlan: Option<u16>,
    /// Whose queue pair it is.
    pub function: u16,
}

/// The table, line by line.
#[derive(Default)]
pub struct Groups(pub Vec<Option<Attached>>);

impl Groups {
    /// Queue pairs that get a copy, in the order of the lines.
    pub fn members(&self, group: u128, ipv6: bool, vlan: Option<u16>, network: Network) -> Vec<u32> {
        self.0.iter().flatten().filter(|a| a.group == group && a.ipv6 == ipv6 && a.vlan == vlan && network.has(a.function)).map(|a| a.qpn).collect()
    }
}
