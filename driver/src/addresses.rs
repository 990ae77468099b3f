//! Addresses that the card answers for by itself, and the MAC addresses of neighbours, for which it asks (docs/admin.md, SET_ADDRESS and RESOLVE).
use crate::admin::words;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::network::{Address, Network, Search};
use crate::types::Mac;
use ferric_abi::codes::AdminOpcode;
use ferric_abi::context::AddressCtx;
use ferric_abi::csr;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// RESOLVE's fifth parameter: only look, or ask, also for a neighbour who is known already. This driver asks only for those it does not remember, so it always
/// wants to hear it anew.
const LOOK: u32 = 0;
const ASK_AGAIN: u32 = 1 | 2;
/// States of a search: it may also be under way, or not begun, because the address it went out from was set anew.
const KNOWN: u32 = 2;
const ASKED: u32 = 1;
/// Between two looks: the first answers come after some microseconds; each look is a command, which a simulated card takes milliseconds for.
const FIRST_PAUSE: Duration = Duration::from_micros(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// An IP address as the card's tables have it.
fn number_of(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(a) => u32::from(a).into(),
        IpAddr::V6(a) => a.into(),
    }
}

/// A MAC address as the card's tables have it.
fn mac_from(number: u64) -> Mac {
    let [_, _, mac @ ..] = number.to_be_bytes();
    Mac(mac)
}

/// When a search ends: whichever clock is first.
struct End<'a> {
    device: &'a dyn Device,
    begun: (Instant, Duration),
    wait: Duration,
}

impl End<'_> {
    fn is_here(&self) -> bool {
        self.begun.0.elapsed() >= self.wait || self.device.now().saturating_sub(self.begun.1) >= self.wait
    }
}

impl Context {
    /// Whether the card answers for addresses and finds neighbours. Without it both are the host's business.
    pub fn has_addresses(&self) -> bool {
        self.inner.caps.features >> csr::FEATURE_ADDRESSES & 1 == 1
    }

    fn network(&self) -> Result<&Network> {
        if self.has_addresses() {
            Ok(&self.inner.network)
        } else {
            Err(Error::Unsupported("answer for addresses or find neighbours"))
        }
    }

    /// Address `number` of this function, 0 to 15, is this one from now on. Saying the same again changes nothing. Errors: an address that is no single machine's, or
    /// that another function or another number has in this VLAN (`InUse`).
    pub fn set_address(&self, number: u32, address: Address) -> Result<()> {
        let network = self.network()?;
        if number >= csr::ADDRESSES {
            return Err(Error::Invalid("a function has 16 addresses, numbers 0 to 15"));
        }
        if address.vlan.is_some_and(|vid| vid >= 0xfff) {
            return Err(Error::Invalid("a VLAN identifier is 0 to 4094"));
        }
        if network.own(number) == Some(address) {
            return Ok(());
        }
        let line = AddressCtx::default().with_ip(number_of(address.ip)).with_ipv6(address.ip.is_ipv6()).with_mac(address.mac.number());
        let line = line.with_vlan(address.vlan.is_some()).with_vid(address.vlan.unwrap_or(0)).with_valid(true);
        // A search that is under way goes out from the address as it was.
        let _turn = network.turn();
        // The card has the MAC address before it tells anybody of it.
        self.hear(address.mac)?;
        let set = self.inner.admin("set address", AdminOpcode::SetAddress, number, &words::<6>(&line.0));
        if set.is_ok() {
            network.note(number, Some(address));
        }
        self.leave()?;
        set.map(drop)
    }

    /// Address `number` is none any more.
    pub fn clear_address(&self, number: u32) -> Result<()> {
        let network = self.network()?;
        let _turn = network.turn();
        self.inner.admin("clear address", AdminOpcode::SetAddress, number, &[0; 6])?;
        network.note(number, None);
        self.leave()
    }

    /// The function's addresses by number, as this context has set them.
    pub fn addresses(&self) -> Vec<(u32, Address)> {
        self.inner.network.all()
    }

    /// The addresses of every function, as the card has them: function, number, address. For the physical function only.
    pub fn all_addresses(&self) -> Result<Vec<(u32, u32, Address)>> {
        self.network()?;
        let mut all = Vec::new();
        for line in 0..self.inner.caps.functions * csr::ADDRESSES {
            let words = self.inner.admin("query address", AdminOpcode::QueryObject, line, &[csr::space::ADDRESS.into(), 0])?;
            let mut entry = AddressCtx::default();
            entry.0.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
            if entry.valid() {
                let ip = if entry.ipv6() { IpAddr::V6(entry.ip().into()) } else { IpAddr::V4((entry.ip() as u32).into()) };
                all.push((line / csr::ADDRESSES, line % csr::ADDRESSES, Address { ip, mac: mac_from(entry.mac()), vlan: entry.vlan().then_some(entry.vid()) }));
            }
        }
        Ok(all)
    }

    /// MAC address of a neighbour, for which the card asks from own address `source` (ARP, neighbour discovery). It is remembered for a minute.
    pub fn resolve(&self, source: u32, ip: IpAddr) -> Result<Mac> {
        self.resolve_within(source, ip, &Search::default())
    }

    /// The same with another patience. [`Error::NoNeighbour`]: nobody has answered, now or some seconds ago.
    pub fn resolve_within(&self, source: u32, ip: IpAddr, search: &Search) -> Result<Mac> {
        let network = self.network()?;
        let own = network.own(source).ok_or(Error::Invalid("the function has no address of that number to ask from; set it first"))?;
        if own.ip.is_ipv4() != ip.is_ipv4() {
            return Err(Error::Invalid("an address is asked for from an own address of its family"));
        }
        // Nobody else would answer: frames do not come back to who sent them.
        if let Some((_, own)) = network.all().into_iter().find(|(_, own)| own.ip == ip) {
            return Ok(own.mac);
        }
        let remembered = || network.remembered(source, ip, self.inner.device.now());
        if let Some(found) = remembered() {
            return found.ok_or(Error::NoNeighbour(ip));
        }
        let _turn = network.turn();
        // Whoever was first may have sought the same.
        if let Some(found) = remembered() {
            return found.ok_or(Error::NoNeighbour(ip));
        }
        let found = self.seek(source, ip, search)?;
        network.remember(source, ip, found, self.inner.device.now());
        found.ok_or(Error::NoNeighbour(ip))
    }

    fn seek(&self, source: u32, ip: IpAddr, search: &Search) -> Result<Option<Mac>> {
        let device = &*self.inner.device;
        for _ in 0..search.asks.max(1) {
            let end = End { device, begun: (Instant::now(), device.now()), wait: search.wait };
            let mut pause = FIRST_PAUSE;
            let mut ask = ASK_AGAIN;
            loop {
                let [state, low, high, ..] = self.inner.admin("resolve", AdminOpcode::Resolve, source, &ask_for(ip, ask))?;
                if state == KNOWN {
                    return Ok(Some(mac_from(u64::from(high) << 32 | u64::from(low))));
                }
                if state != ASKED || end.is_here() {
                    break;
                }
                ask = LOOK;
                let resumed = device.now() + pause;
                while device.now() < resumed && !end.is_here() {
                    device.relax();
                }
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        }
        log::info!("nobody answers for {ip}");
        Ok(None)
    }
}

/// Parameters of RESOLVE.
fn ask_for(ip: IpAddr, ask: u32) -> [u32; 5] {
    let [a, b, c, d] = words(&number_of(ip).to_le_bytes());
    [a, b, c, d, ask]
}
