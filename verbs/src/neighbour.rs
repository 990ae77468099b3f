//! The card's own address, and the MAC addresses of its neighbours.
//!
//! A neighbour's is the one that `FERRIC_NEIGHBOURS` says; else the one that answers the card (ARP, neighbour discovery), where the card can ask; else the one that a Ferric card makes of
//! the IP address. The last is right for a Ferric card whose gateware does not answer; towards anybody else the connection fails as it does when a peer is switched off,
//! after the retries of the queue pair or of the connection manager. So nothing waits for ever, and a link between Ferric cards needs nobody to answer.
use crate::config::mac_of;
use ferric_driver::types::Mac;
use ferric_driver::{Address, AddressHandle, Context, Error, Search};
use std::collections::HashMap;
use std::net::IpAddr;

/// The number that the card's address has: a card has one address here.
const OWN: u32 = 0;

/// Has the card answer for its address, if it can.
pub fn introduce(driver: &Context, ip: IpAddr) -> Result<(), Error> {
    if !driver.has_addresses() {
        return Ok(());
    }
    driver.set_address(OWN, Address { ip, mac: mac_of(ip), vlan: None }).inspect_err(|e| log::error!("{ip} cannot be the card's address: {e}; FERRIC_DEVICES gives each function one of its own"))
}

/// MAC address of a neighbour or of a multicast group; `named`: those that the environment says.
pub fn mac(driver: &Context, named: &HashMap<IpAddr, Mac>, ip: IpAddr, search: &Search) -> Mac {
    if let Ok(group) = AddressHandle::multicast(ip) {
        return group.dmac;
    }
    if let Some(mac) = named.get(&ip) {
        return *mac;
    }
    if !driver.has_addresses() {
        return mac_of(ip);
    }
    driver.resolve_within(OWN, ip, search).unwrap_or_else(|e| {
        let made = mac_of(ip);
        log::warn!("{e}; goes on with {:02x?}, which a Ferric card with this address has", made.0);
        made
    })
}
