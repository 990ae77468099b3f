//! The model by itself. What it shares with Open vSwitch is compared in the crate `ferric-ovs`.
mod isolation;
mod language;
mod parser;
mod pipeline;
mod ternary;
mod tunnel;

use super::tables::{Port, PortKind};
use super::Switch;

/// MAC address of the uplink.
pub const UPLINK_MAC: u64 = 0x0200_0000_0001;

/// Uplinks 1 and 2, functions 8 to 11.
pub fn switch() -> Switch {
    let mut switch = Switch::default();
    for number in [1, 2, 8, 9, 10, 11] {
        let kind = if number < 8 { PortKind::Uplink } else { PortKind::Function };
        let macs = vec![if number == 1 { UPLINK_MAC } else { mac(number) }];
        switch.tables.ports.insert(number, Port { kind, macs, function: u16::from(number).saturating_sub(8), ..Default::default() });
    }
    switch
}

/// A port's MAC address.
pub fn mac(port: u8) -> u64 {
    0x0200_0000_0100 | u64::from(port)
}

/// A frame of UDP over IPv4.
pub fn udp(dmac: u64, smac: u64, src: [u8; 4], dst: [u8; 4], ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let bytes = |mac: u64| -> [u8; 6] { std::array::from_fn(|i| mac.to_be_bytes()[i + 2]) };
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2(bytes(smac), bytes(dmac)).ipv4(src, dst, 64).udp(ports.0, ports.1).write(&mut frame, payload).expect("a vector takes everything");
    frame
}
