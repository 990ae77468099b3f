//! What software writes into the tables of a function, made from what the golden model's control queue has been told.

use super::choose::{tables, Function};
use super::stations::{Station, GROUPS, LG_STATIONS};
use crate::tb::Fields;
use ferric_abi::virtio::feature;
use ferric_abi::virtio::net::{control, hash_type};
use ferric_model::virtio::filter::Rules;
use ferric_model::virtio::rss::Rss;

/// log2 of the words of a line of the control bus.
const LG_WORD: u32 = 6;

/// A write at the control port: line, word, what.
pub type Write = (u32, u32, u32);

/// What a function wants.
#[derive(Clone, Copy, Debug)]
pub struct Wants<'a> {
    /// Its filter.
    pub rules: Rules<'a>,
    /// Pairs of queues in use; none: nothing is received.
    pub pairs: u8,
    /// The engine's pair that is its first.
    pub first: u8,
    /// Frames are spread by their flow.
    pub multiqueue: bool,
    /// They are spread by their hash.
    pub rss: Option<&'a Rss>,
}

/// The line of table `table` with this index.
pub fn line(table: u64, index: u32) -> u32 {
    (table as u32) << 16 | index
}

impl Wants<'_> {
    /// All writes, for function `function` of the engine. Flows stay as they are.
    pub fn writes(&self, function: u32) -> Vec<Write> {
        let mut all = self.stations(function);
        let vlans = self.rules.filter.vlans().iter().flat_map(|bits| [*bits as u32, (*bits >> 32) as u32]);
        let long = |table: u64, n: u32, value: u32| (line(table, function << 1 | n >> LG_WORD), n % (1 << LG_WORD), value);
        all.extend((0..).zip(vlans).map(|(n, bits)| long(tables::VLANS, n, bits)));
        if let Some(rss) = self.rss {
            all.extend((0..).zip(&rss.pairs).map(|(n, pair)| long(tables::PAIRS, n, (*pair).into())));
            let words = rss.key.chunks_exact(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
            all.extend((0..).zip(words).map(|(n, word)| (line(tables::KEYS, function), n, word)));
        }
        // The function's own line comes last: what it asks for is there by then.
        let [low, high] = self.function();
        all.extend([(line(tables::FUNCTIONS, function), 0, low), (line(tables::FUNCTIONS, function), 1, high)]);
        all
    }

    /// Both lists of addresses, each with one behind it that is none.
    fn stations(&self, function: u32) -> Vec<Write> {
        let filter = self.rules.filter;
        let unicasts = [self.rules.own].into_iter().chain(filter.unicasts().unwrap_or_default().iter().copied());
        let groups = filter.multicasts().unwrap_or_default().iter().copied();
        let listed = |from: u64, list: Vec<[u8; 6]>| {
            let end = (list.len() < GROUPS as usize).then_some(None);
            (from as u32..).zip(list.into_iter().map(Some).chain(end)).flat_map(move |(place, mac)| {
                let number = mac.map(|mac| mac.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)));
                let words = Fields::of::<Station>().pack(&[("mac", number.unwrap_or(0).into()), ("valid", number.is_some().into())]);
                let at = line(tables::STATIONS, function << LG_STATIONS | place);
                [(at, 0, words[0]), (at, 1, words[1])]
            })
        };
        listed(0, unicasts.collect()).chain(listed(GROUPS, groups.collect())).collect()
    }

    /// Its line: modes, and how its frames are spread.
    fn function(&self) -> [u32; 2] {
        let (rules, on) = (&self.rules, |mode: u8| u128::from(self.rules.is_on(mode)));
        let types = self.rss.map_or(0, |rss| rss.types);
        let kind = |bit: u32| u128::from(types & bit != 0);
        let all_groups = !rules.has(feature::CTRL_RX) || rules.is_on(control::RX_ALLMULTI) || rules.filter.multicasts().is_none();
        let all_stations = rules.is_on(control::RX_ALLUNI) || rules.filter.unicasts().is_none();
        let words = Fields::of::<Function>().pack(&[
            ("promiscuous", on(control::RX_PROMISC)),
            ("all_multicast", all_groups.into()),
            ("all_unicast", all_stations.into()),
            ("no_multicast", on(control::RX_NOMULTI)),
            ("no_unicast", on(control::RX_NOUNI)),
            ("no_broadcast", on(control::RX_NOBCAST)),
            ("vlans", rules.has(feature::CTRL_VLAN).into()),
            ("multiqueue", self.multiqueue.into()),
            ("rss", self.rss.is_some().into()),
            ("ipv4", kind(hash_type::IPV4)),
            ("tcpv4", kind(hash_type::TCPV4)),
            ("udpv4", kind(hash_type::UDPV4)),
            ("ipv6", kind(hash_type::IPV6)),
            ("tcpv6", kind(hash_type::TCPV6)),
            ("udpv6", kind(hash_type::UDPV6)),
            ("mask", self.rss.map_or(0, |rss| rss.pairs.len() as u128 - 1)),
            ("pairs", self.pairs.into()),
            ("unclassified", self.rss.map_or(0, |rss| rss.unclassified.into())),
            ("first", self.first.into()),
        ]);
        [words[0], words[1]]
    }
}
