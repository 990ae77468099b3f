//! What the environment says.
//!
//! * `FERRIC_DEVICES`: the cards, separated by commas: the socket of a served card (anything with a slash) or a PCI address, each followed by
//!   `@` and its IP address on the wire. With `+` behind it, this is that of function 0, and function f has one that is 256 times f further (10.0.0.1, 10.0.1.1): for
//!   cards that give each process a function (`ferric card serve --shared`). Without an address it has one of 10.0.0.0/8 that is made from its name.
//! * `FERRIC_NEIGHBOURS`: `IP=MAC` pairs, separated by commas. For other addresses the card asks (ARP, neighbour discovery); without an answer, or on a card that cannot ask,
//!   they have the MAC address that a Ferric card makes from its own (see [`crate::neighbour`]).
//! * `FERRIC_NEIGHBOUR_WAIT`: how long an answer is waited for, in milliseconds, 3000 if not given; in this time the card asks three times.
//! * `FERRIC_MTU`: active path MTU of the ports, 1024 if not given.
//! * `FERRIC_ACK_TIMEOUT`: smallest local ACK timeout (exponent) of a queue pair; 18, a second, for served cards, which are slow.
//! * `FERRIC_LOG`: `error`, `warn`, `info` or `debug`, to standard error.
//!
//! None of them counts in a program that runs with more rights than its caller's (set-uid).
use crate::abi::attr::GidWords;
use ferric_driver::types::{Mac, Mtu};
use ferric_driver::Search;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;
use std::time::Duration;

/// A card as the environment names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Socket or PCI address.
    pub target: String,
    /// Its address on the wire.
    pub ip: IpAddr,
    /// The address is that of function 0, those of the others follow from it.
    pub counts: bool,
}

/// From a function's address to the next one's.
const NETWORK: u32 = 256;
/// More functions than any card has.
const FUNCTIONS: u32 = 1 << 12;

impl Named {
    /// The same card when function `function` of it has been opened.
    pub fn on(&self, function: u32) -> Self {
        let further = if self.counts { function.wrapping_mul(NETWORK) } else { 0 };
        let ip = match self.ip {
            IpAddr::V4(ip) => IpAddr::V4(u32::from(ip).wrapping_add(further).into()),
            IpAddr::V6(ip) => IpAddr::V6(u128::from(ip).wrapping_add(further.into()).into()),
        };
        Self { ip, ..self.clone() }
    }
}

impl Named {
    /// The address may be that of one of its functions.
    pub fn may_have(&self, ip: IpAddr) -> bool {
        let further = match (self.ip, ip) {
            (IpAddr::V4(first), IpAddr::V4(ip)) => u128::from(u32::from(ip).wrapping_sub(first.into())),
            (IpAddr::V6(first), IpAddr::V6(ip)) => u128::from(ip).wrapping_sub(first.into()),
            _ => return false,
        };
        further == 0 || self.counts && further % u128::from(NETWORK) == 0 && further / u128::from(NETWORK) < u128::from(FUNCTIONS)
    }
}

/// Everything the environment says.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Cards in order.
    pub cards: Vec<Named>,
    /// MAC addresses of neighbours for whom the card need not ask.
    pub neighbours: HashMap<IpAddr, Mac>,
    /// How a neighbour is sought.
    pub search: Search,
    /// Active MTU.
    pub mtu: Mtu,
    /// Smallest ACK timeout, if it was said.
    pub ack_timeout: Option<u8>,
}

impl Config {
    /// Reads the variables through `get`. What cannot be understood is left out, with a line on the log.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let list = |name: &str| -> Vec<String> { get(name).unwrap_or_default().split(',').map(str::trim).filter(|s| !s.is_empty()).map(String::from).collect() };
        let cards = list("FERRIC_DEVICES").into_iter().filter_map(|text| {
            let (text, counts) = text.strip_suffix('+').map_or((text.as_str(), false), |text| (text, true));
            let (target, ip) = match text.rsplit_once('@') {
                None => (text, default_ip(text)),
                Some((target, ip)) => (target, ip.parse().inspect_err(|_| log::error!("FERRIC_DEVICES: `{ip}` is no IP address; {target} is left out")).ok()?),
            };
            Some(Named { target: target.to_string(), ip, counts })
        });
        let neighbours = list("FERRIC_NEIGHBOURS")
            .iter()
            .filter_map(|text| {
                let pair = text.split_once('=').and_then(|(ip, mac)| Some((ip.parse().ok()?, mac.parse().ok()?)));
                if pair.is_none() {
                    log::error!("FERRIC_NEIGHBOURS: `{text}` is not IP=MAC");
                }
                pair
            })
            .collect();
        let mtu = get("FERRIC_MTU").and_then(|m| Mtu::from_bytes(m.parse().ok()?)).unwrap_or(Mtu::M1024);
        let ack_timeout = get("FERRIC_ACK_TIMEOUT").and_then(|t| t.parse().ok()).filter(|t| *t < 32);
        let wait = get("FERRIC_NEIGHBOUR_WAIT").and_then(|ms| ms.parse().ok()).map(|ms: u32| Duration::from_millis(ms.into()));
        Self { cards: cards.collect(), neighbours, search: wait.map_or_else(Search::default, search_within), mtu, ack_timeout }
    }

    /// Of this process, read once.
    pub fn of_process() -> &'static Self {
        static CONFIG: OnceLock<Config> = OnceLock::new();
        CONFIG.get_or_init(|| {
            start_log();
            Self::read(variable)
        })
    }

    /// Smallest ACK timeout on a card.
    pub fn least_ack_timeout(&self, served: bool) -> u8 {
        self.ack_timeout.unwrap_or(if served { 18 } else { 0 })
    }
}

/// A variable of the environment, as `secure_getenv(3)` gives it: a program that runs with rights that its caller does not have (set-uid, set-gid,
/// capabilities) takes nothing from the caller, who could give it a card of his own that reads the program's memory.
fn variable(name: &str) -> Option<String> {
    // SAFETY: no memory involved.
    let trusted = unsafe { libc::getauxval(libc::AT_SECURE) } == 0;
    trusted.then(|| std::env::var(name).ok()).flatten()
}

/// Asks as often as usual, but waits no longer than this in all.
pub fn search_within(all: Duration) -> Search {
    let usual = Search::default();
    Search { wait: all / usual.asks, ..usual }
}

fn default_ip(target: &str) -> IpAddr {
    // FNV-1a; 0 and 255 stay out of the last place.
    let h = target.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    IpAddr::V4(Ipv4Addr::new(10, (h >> 16) as u8, (h >> 8) as u8, (h as u8).clamp(1, 254)))
}

/// The locally administered MAC address that a Ferric card has with an IP address.
pub fn mac_of(ip: IpAddr) -> Mac {
    let o = match ip {
        IpAddr::V4(a) => a.octets(),
        IpAddr::V6(a) => a.octets()[12..].try_into().unwrap_or_default(),
    };
    Mac([2, 0xfe, o[0], o[1], o[2], o[3]])
}

/// GID of an address (RoCEv2: the IPv6 address, or the IPv4 address mapped into one).
pub fn gid_of(ip: IpAddr) -> GidWords {
    GidWords(match ip {
        IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
        IpAddr::V6(a) => a.octets(),
    })
}

/// The address behind a GID.
pub fn ip_of(gid: &GidWords) -> IpAddr {
    Ipv6Addr::from(gid.0).to_canonical()
}

/// EUI-64 of a MAC address, as it stands in memory.
pub fn guid_of(mac: Mac) -> u64 {
    let m = mac.0;
    u64::from_ne_bytes([m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]])
}

struct Stderr;

impl log::Log for Stderr {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }
    fn log(&self, r: &log::Record) {
        eprintln!("ferric: {}: {}", r.level(), r.args());
    }
    fn flush(&self) {}
}

fn start_log() {
    let level = variable("FERRIC_LOG").and_then(|l| l.parse().ok()).unwrap_or(log::LevelFilter::Error);
    // A program in Rust may have a logger of its own.
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Config {
        Config::read(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string()))
    }

    #[test]
    fn cards_have_addresses() {
        let c = read(&[("FERRIC_DEVICES", "/tmp/a.sock@10.0.0.1, 0000:01:00.0@fd00::2,/tmp/b.sock,/tmp/c@nonsense,"), ("FERRIC_MTU", "4096")]);
        let name = |t: &str, ip: &str| Named { target: t.into(), ip: ip.parse().unwrap(), counts: false };
        assert_eq!(c.cards[..2], [name("/tmp/a.sock", "10.0.0.1"), name("0000:01:00.0", "fd00::2")]);
        assert_eq!((c.cards.len(), c.cards[2].target.as_str(), c.mtu), (3, "/tmp/b.sock", Mtu::M4096));
        assert_eq!(c.cards[2].ip, default_ip("/tmp/b.sock"));
        assert_ne!(default_ip("/tmp/a.sock"), default_ip("/tmp/b.sock"));
        assert_eq!(read(&[]).cards, []);
    }

    #[test]
    fn functions_have_addresses_one_after_another() {
        let c = read(&[("FERRIC_DEVICES", "/tmp/a.sock@10.0.0.1+,/tmp/b.sock@fd00::2+,/tmp/c.sock@10.0.0.3")]);
        let ip = |n: usize, function| c.cards[n].on(function).ip.to_string();
        assert_eq!([ip(0, 0), ip(0, 3), ip(1, 2), ip(2, 2)], ["10.0.0.1", "10.0.3.1", "fd00::202", "10.0.0.3"]);
        let may = |n: usize, ip: &str| c.cards[n].may_have(ip.parse().unwrap());
        assert_eq!([may(0, "10.0.0.1"), may(0, "10.0.63.1"), may(1, "fd00::3f02"), may(2, "10.0.0.3")], [true; 4]);
        assert_eq!([may(0, "10.0.0.2"), may(0, "9.255.255.1"), may(0, "fd00::2"), may(1, "fd00::1:0:2"), may(1, "10.0.0.2"), may(2, "10.0.1.3")], [false; 6]);
    }

    #[test]
    fn neighbours() {
        let c = read(&[("FERRIC_NEIGHBOURS", "10.0.0.9=52:54:00:00:00:01,nonsense,1.2.3.4=5")]);
        assert_eq!(c.neighbours.get(&"10.0.0.9".parse().unwrap()), Some(&Mac([0x52, 0x54, 0, 0, 0, 1])));
        assert_eq!(mac_of("10.0.0.8".parse().unwrap()), Mac([2, 0xfe, 10, 0, 0, 8]));
        assert_eq!(c.search, Search::default());
        assert_eq!(read(&[("FERRIC_NEIGHBOUR_WAIT", "300")]).search, Search { asks: 3, wait: Duration::from_millis(100) });
        assert_eq!(read(&[("FERRIC_NEIGHBOUR_WAIT", "soon")]).search, Search::default());
        assert_eq!((c.neighbours.len(), c.least_ack_timeout(true), c.least_ack_timeout(false)), (1, 18, 0));
        assert_eq!(read(&[("FERRIC_ACK_TIMEOUT", "20")]).least_ack_timeout(false), 20);
    }

    #[test]
    fn gids() {
        for ip in ["10.0.0.1", "fd00::7"] {
            let ip: IpAddr = ip.parse().unwrap();
            assert_eq!(ip_of(&gid_of(ip)), ip);
        }
        assert_eq!(guid_of(Mac([2, 0xfe, 10, 0, 0, 1])).to_ne_bytes(), [0, 0xfe, 10, 0xff, 0xfe, 0, 0, 1]);
    }
}
