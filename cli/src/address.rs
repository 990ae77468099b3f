//! `ferric address`: the card answers ARP, neighbour discovery and pings for addresses as long as the command runs, and finds neighbours.
use crate::party::{mac_of, Trouble};
use ferric_abi::csr::STATIONS;
use ferric_driver::device::Device;
use ferric_driver::{Address, Config, Context, Error};
use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;

/// Options.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Device.
    pub device: String,
    /// IP addresses for which the card answers, 16 at most.
    #[arg(long, required = true)]
    pub ip: Vec<IpAddr>,
    /// The 802.1Q VLAN that they are in.
    #[arg(long)]
    pub vlan: Option<u16>,
    /// Neighbours whose MAC addresses are to be found.
    #[arg(long)]
    pub find: Vec<IpAddr>,
}

/// Sets the addresses and finds the neighbours; the card answers until what is returned is dropped.
pub fn run(device: Arc<dyn Device>, o: &Options, out: &mut impl Write) -> Result<Context, Trouble> {
    let fail = |e: std::io::Error| Trouble::Peer(e.to_string());
    let ctx = Context::open(device, Config::default())?;
    if !ctx.has_addresses() {
        return Err(Error::Unsupported("answer for addresses or find neighbours").into());
    }
    for (ip, number) in o.ip.iter().zip(0..) {
        // A function has a few MAC addresses only: the others share the first.
        let mac = mac_of(if number < STATIONS { *ip } else { o.ip[0] });
        ctx.set_address(number, Address { ip: *ip, mac, vlan: o.vlan })?;
        writeln!(out, "{ip} is here, at {}", mac).map_err(fail)?;
    }
    for ip in &o.find {
        let number = o.ip.iter().position(|own| own.is_ipv4() == ip.is_ipv4()).ok_or_else(|| Trouble::Peer(format!("say an address of our own (--ip) of the family of {ip}, to ask from")))?;
        writeln!(out, "{ip} is at {}", ctx.resolve(number as u32, *ip)?).map_err(fail)?;
    }
    out.flush().map_err(fail)?;
    Ok(ctx)
}

#[cfg(test)]
#[path = "../../driver/tests/card/mod.rs"]
#[allow(dead_code, reason = "these tests want no queues")]
mod card;

#[cfg(test)]
mod tests {
    use super::card::Card;
    use super::*;

    fn options(ip: &[&str], find: &[&str]) -> Options {
        let parse = |all: &[&str]| all.iter().map(|a| a.parse().unwrap()).collect();
        Options { device: String::new(), ip: parse(ip), vlan: None, find: parse(find) }
    }

    #[test]
    fn addresses_are_set_and_neighbours_found() {
        let card = Card::with_network();
        card.network(|n| n.neighbours.insert(0x0a00_0002, (0x5254_0000_0002, 1, 1)));
        let mut said = Vec::new();
        let held = run(card.clone(), &options(&["fd00::1", "10.0.0.1"], &["10.0.0.2"]), &mut said).unwrap();
        assert_eq!(String::from_utf8(said).unwrap(), "fd00::1 is here, at 02:fe:00:00:00:01\n10.0.0.1 is here, at 02:fe:0a:00:00:01\n10.0.0.2 is at 52:54:00:00:00:02\n");
        assert_eq!(held.addresses().len(), 2);
        card.network(|n| assert_eq!(n.asked, [(1, 0x0a00_0002)]));
    }

    #[test]
    fn mistakes_are_explained() {
        let refusal = |card, o: &Options| run(card, o, &mut Vec::new()).map(drop).unwrap_err().to_string();
        let family = refusal(Card::with_network(), &options(&["10.0.0.1"], &["fd00::2"]));
        assert!(family.contains("--ip") && family.contains("fd00::2"), "{family}");
        let engine = refusal(Card::new(false), &options(&["10.0.0.1"], &[]));
        assert!(engine.contains("docs/engines.md"), "{engine}");
        let many: Vec<String> = (1..18).map(|n| format!("10.0.0.{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(refusal(Card::with_network(), &options(&many, &[])).contains("16 addresses"));
        let tag = refusal(Card::with_network(), &Options { vlan: Some(4095), ..options(&["10.0.0.1"], &[]) });
        assert!(tag.contains("4094"), "{tag}");
    }
}
