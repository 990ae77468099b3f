//! Verification of what a function sends (SWITCH.md section 11): it may only speak for itself, and not to the underlay.
use super::layers::{Fragment, Ip, Layers, Upper};
use super::tables::{Port, RocePolicy, Tables};
use crate::net::parse::ROCE_PORT;
use ferric_abi::codes::SwitchCause;
use ferric_abi::wire::protocol;

const DHCP_SERVER: u16 = 67;
const DHCPV6_SERVER: u16 = 547;
const ROUTER_ADVERTISEMENT: u16 = 134;
const NEIGHBOUR_SOLICITATION: u16 = 135;
const NEIGHBOUR_ADVERTISEMENT: u16 = 136;
/// Bytes of an IPv6 header, and of either message without options and with one of eight bytes.
const IPV6_BYTES: usize = 40;
const PLAIN: usize = 24;
const ONE_OPTION: usize = 32;

/// What stands against a frame from the port `number`, in order of precedence.
pub fn verify(tables: &Tables, number: u8, port: &Port, frame: &[u8], layers: &Layers) -> Result<(), SwitchCause> {
    judge(tables, number, port, frame, layers, |_, _| true)
}

/// The same as the card does it, which looks into the plainest neighbour discovery only: right behind the IPv6 header, with one option of eight bytes or none, and an advertisement is of the address that
/// it is sent from. Any other is `SpoofArp`.
pub fn verify_on_card(tables: &Tables, number: u8, port: &Port, frame: &[u8], layers: &Layers) -> Result<(), SwitchCause> {
    judge(tables, number, port, frame, layers, |ip, message| {
        let own = port.any_ip || ip.src != 0 && message[8..].starts_with(&ip.src.to_be_bytes());
        ip.l4 == layers.l3 + IPV6_BYTES && matches!(message.len(), PLAIN | ONE_OPTION) && (layers.ports.0 == NEIGHBOUR_SOLICITATION || own)
    })
}

/// `plain`: whether neighbour discovery that is right otherwise is of a form that is let through.
fn judge(tables: &Tables, number: u8, port: &Port, frame: &[u8], layers: &Layers, plain: impl Fn(&Ip, &[u8]) -> bool) -> Result<(), SwitchCause> {
    let bound = |v6: bool, address: u128| port.any_ip || tables.bind.contains(&(number, v6, address));
    if !port.macs.contains(&layers.smac) {
        return Err(SwitchCause::SpoofMac);
    }
    if layers.tag.is_some() && !port.trunk {
        return Err(SwitchCause::TagDenied);
    }
    match layers.upper {
        Upper::Arp(arp) => {
            // A probe for an address that is about to be used has no sender address yet (RFC 5227).
            if !port.macs.contains(&arp.hardware) || arp.sender != 0 && !bound(false, arp.sender.into()) {
                return Err(SwitchCause::SpoofArp);
            }
        }
        Upper::Ip(ip) => {
            // The unspecified address is that of a host which has none yet (DHCP, duplicate address detection).
            if ip.src != 0 && !bound(ip.v6, ip.src) {
                return Err(SwitchCause::SpoofIp);
            }
            if ip.v6 && ip.proto == protocol::ICMPV6 && ip.fragment != Fragment::Later {
                let kind = layers.ports.0;
                if kind == ROUTER_ADVERTISEMENT && !port.server {
                    return Err(SwitchCause::SpoofArp);
                }
                let message = &frame[ip.l4..ip.end];
                if matches!(kind, NEIGHBOUR_SOLICITATION | NEIGHBOUR_ADVERTISEMENT) && !(neighbour(port, message, kind, bound) && plain(&ip, message)) {
                    return Err(SwitchCause::SpoofArp);
                }
            }
            if !port.underlay && tables.endpoints.iter().any(|e| e.v6 == ip.v6 && e.ip == ip.dst || layers.udp_to() == Some(e.udp_port)) {
                return Err(SwitchCause::UnderlayDenied);
            }
            if layers.udp_to() == Some(ROCE_PORT) && port.roce == RocePolicy::Off {
                return Err(SwitchCause::RoceDenied);
            }
            let serves = ip.proto == protocol::UDP && ip.fragment != Fragment::Later && layers.ports.0 == if ip.v6 { DHCPV6_SERVER } else { DHCP_SERVER };
            if serves && !port.server {
                return Err(SwitchCause::SpoofIp);
            }
        }
        Upper::Other => {}
    }
    Ok(())
}

/// RFC 4861: an advertisement's target and the link-layer address of either message are the port's.
fn neighbour(port: &Port, message: &[u8], kind: u16, bound: impl Fn(bool, u128) -> bool) -> bool {
    let Some(target) = message.get(8..24).and_then(|b| b.try_into().ok()).map(u128::from_be_bytes) else {
        return false;
    };
    if kind == NEIGHBOUR_ADVERTISEMENT && !bound(true, target) {
        return false;
    }
    let mut options = &message[24..];
    while let Some((&[option, length], _)) = options.split_first_chunk::<2>() {
        let bytes = usize::from(length) * 8;
        if bytes == 0 || bytes > options.len() {
            return false;
        }
        let mac = options[2..8].iter().fold(0, |v, b| v << 8 | u64::from(*b));
        if matches!(option, 1 | 2) && !port.macs.contains(&mac) {
            return false;
        }
        options = &options[bytes..];
    }
    options.is_empty()
}
