//! What the driver knows of an open function's network: its own addresses, and neighbours that it remembers.
use crate::types::Mac;
use ferric_abi::csr;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// How long a neighbour is remembered, and how long it is remembered that nobody answered: a program may want the same address many times in a row.
const KNOWN_FOR: Duration = Duration::from_secs(60);
const SILENT_FOR: Duration = Duration::from_secs(10);

/// An address of this function, for which the card answers ARP, neighbour discovery and pings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// IP address, one machine's.
    pub ip: IpAddr,
    /// The MAC address that belongs to it.
    pub mac: Mac,
    /// 802.1Q VLAN identifier of its network, if that is tagged.
    pub vlan: Option<u16>,
}

/// A MAC address whose frames the function receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Station {
    pub(crate) mac: Mac,
    /// Somebody asked for it, not only an address that has it: it stays without one.
    pub(crate) kept: bool,
}

/// How long a search for a neighbour may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// How often the card asks, at least once.
    pub asks: u32,
    /// How long it waits for an answer each time, on the device's clock and on this machine's: where a card is simulated in this process, its second may take hours.
    pub wait: Duration,
}

impl Default for Search {
    /// As Linux does it: three times, a second each.
    fn default() -> Self {
        Self { asks: 3, wait: Duration::from_secs(1) }
    }
}

/// See above.
#[derive(Default)]
pub(crate) struct Network {
    book: Mutex<Book>,
    /// The card has one search for a function: one thread has it at a time.
    search: Mutex<()>,
}

#[derive(Default)]
struct Book {
    own: HashMap<u32, Address>,
    /// MAC addresses by number.
    stations: [Option<Station>; csr::STATIONS as usize],
    /// By own address and neighbour: its MAC address, or that nobody answered; and until when that counts.
    known: HashMap<(u32, IpAddr), (Option<Mac>, Duration)>,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

impl Network {
    /// Nobody else seeks or changes an address while this is held.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.search)
    }

    /// Own address `number`.
    pub(crate) fn own(&self, number: u32) -> Option<Address> {
        lock(&self.book).own.get(&number).copied()
    }

    /// All own addresses by number.
    pub(crate) fn all(&self) -> Vec<(u32, Address)> {
        let mut all: Vec<_> = lock(&self.book).own.iter().map(|(n, a)| (*n, *a)).collect();
        all.sort_by_key(|(n, _)| *n);
        all
    }

    /// Address `number` is this one from now on, or none; what was found from it has gone.
    pub(crate) fn note(&self, number: u32, address: Option<Address>) {
        let mut book = lock(&self.book);
        book.own.remove(&number);
        book.own.extend(address.map(|a| (number, a)));
        book.known.retain(|(source, _), _| *source != number);
    }

    /// The function's MAC addresses by number.
    pub(crate) fn stations(&self) -> [Option<Station>; csr::STATIONS as usize] {
        lock(&self.book).stations
    }

    /// MAC address `number` is this one from now on, or none.
    pub(crate) fn note_station(&self, number: u32, station: Option<Station>) {
        lock(&self.book).stations[number as usize] = station;
    }

    /// What is remembered of a neighbour; `Some(None)`: nobody answered lately.
    pub(crate) fn remembered(&self, source: u32, ip: IpAddr, now: Duration) -> Option<Option<Mac>> {
        lock(&self.book).known.get(&(source, ip)).filter(|(_, until)| *until > now).map(|(mac, _)| *mac)
    }

    /// Remembers the outcome of a search.
    pub(crate) fn remember(&self, source: u32, ip: IpAddr, found: Option<Mac>, now: Duration) {
        let mut book = lock(&self.book);
        book.known.retain(|_, (_, until)| *until > now);
        book.known.insert((source, ip), (found, now + if found.is_some() { KNOWN_FOR } else { SILENT_FOR }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_grows_old() {
        let (network, ip, mac) = (Network::default(), IpAddr::from([10, 0, 0, 2]), Mac([2; 6]));
        let other = IpAddr::from([10, 0, 0, 3]);
        let at = Duration::from_secs;
        network.remember(0, ip, Some(mac), at(5));
        network.remember(0, other, None, at(5));
        network.remember(1, ip, None, at(5));
        let look = |source, ip, now| network.remembered(source, ip, at(now));
        assert_eq!([look(0, ip, 64), look(0, other, 14), look(1, ip, 14), look(1, other, 5)], [Some(Some(mac)), Some(None), Some(None), None]);
        assert_eq!([look(0, ip, 65), look(0, other, 15), look(1, ip, 15)], [None; 3]);
        network.note(0, None);
        assert_eq!([look(0, ip, 6), look(1, ip, 6)], [None, Some(None)]);
        network.remember(0, ip, Some(mac), at(100));
        assert_eq!(lock(&network.book).known.len(), 1, "what is old is thrown away");
    }
}
