//! The declarations of `ferric_abi::virtio` against Linux' own headers.
use crate::linux;
use ferric_abi::layout::Layout;
use ferric_abi::virtio::net::{control, gso, hash_type};
use ferric_abi::virtio::{event, feature, isr, status, NO_VECTOR};
use std::collections::BTreeSet;

macro_rules! layouts {
    ($order:ident; $( #[doc = $doc:literal] $name:ident [$bytes:literal] { $($fields:tt)* } )*) => {
        &[ $( ferric_abi::virtio::$name::LAYOUT ),* ]
    };
}
const LAYOUTS: &[Layout] = ferric_abi::virtio_records!(layouts);

fn record(name: &str) -> &'static Layout {
    LAYOUTS.iter().find(|layout| layout.name == name).unwrap_or_else(|| panic!("no record {name}"))
}

/// What we say that the number is.
fn ours(words: &[&str]) -> u64 {
    match words {
        ["feature", name] => feature::ALL.iter().find(|f| f.name == *name).unwrap_or_else(|| panic!("no feature {name}")).bit.into(),
        ["field", layout, name] => record(layout).field(name).expect(name).offset as u64 / 8,
        // A flag by its weight in the 16-bit word that it lies in.
        ["bit", layout, name] => 1 << (record(layout).field(name).expect(name).offset % 16),
        ["size", layout] => record(layout).bytes as u64,
        ["status", "ACKNOWLEDGE"] => status::ACKNOWLEDGE.into(),
        ["status", "DRIVER"] => status::DRIVER.into(),
        ["status", "DRIVER_OK"] => status::DRIVER_OK.into(),
        ["status", "FEATURES_OK"] => status::FEATURES_OK.into(),
        ["status", "NEEDS_RESET"] => status::NEEDS_RESET.into(),
        ["status", "FAILED"] => status::FAILED.into(),
        ["event", "ENABLE"] => event::ENABLE.into(),
        ["event", "DISABLE"] => event::DISABLE.into(),
        ["event", "DESC"] => event::DESC.into(),
        ["gso", "TCPV4"] => gso::TCPV4.into(),
        ["gso", "TCPV6"] => gso::TCPV6.into(),
        ["gso", "UDP_L4"] => gso::UDP_L4.into(),
        ["control", "RX"] => control::RX.into(),
        ["control", "RX_ALLMULTI"] => control::RX_ALLMULTI.into(),
        ["control", "RX_NOBCAST"] => control::RX_NOBCAST.into(),
        ["control", "MAC"] => control::MAC.into(),
        ["control", "MAC_ADDR_SET"] => control::MAC_ADDR_SET.into(),
        ["control", "MQ"] => control::MQ.into(),
        ["control", "MQ_PAIRS_SET"] => control::MQ_PAIRS_SET.into(),
        ["control", "MQ_RSS_CONFIG"] => control::MQ_RSS_CONFIG.into(),
        ["hash", "IPV4"] => hash_type::IPV4.into(),
        ["hash", "TCPV4"] => hash_type::TCPV4.into(),
        ["hash", "UDPV4"] => hash_type::UDPV4.into(),
        ["hash", "IPV6"] => hash_type::IPV6.into(),
        ["hash", "TCPV6"] => hash_type::TCPV6.into(),
        ["hash", "UDPV6"] => hash_type::UDPV6.into(),
        ["control", "NOTF_COAL"] => control::NOTF_COAL.into(),
        ["control", "NOTF_COAL_TX_SET"] => control::NOTF_COAL_TX_SET.into(),
        ["control", "NOTF_COAL_RX_SET"] => control::NOTF_COAL_RX_SET.into(),
        ["control", "ERR"] => control::ERR.into(),
        ["isr", "CONFIG"] => isr::CONFIG.into(),
        ["vector", "NONE"] => NO_VECTOR.into(),
        other => panic!("numbers.c says {other:?}"),
    }
}

#[test]
fn linux_rings_have_the_same_numbers() {
    let Some(text) = linux::numbers("linux_rings_have_the_same_numbers", "7.3") else { return };
    let mut features = BTreeSet::new();
    for line in text.lines() {
        let mut words: Vec<&str> = line.split(' ').collect();
        let theirs: u64 = words.pop().expect("a number").parse().expect("a number");
        assert_eq!(ours(&words), theirs, "{words:?}");
        features.extend((words[0] == "feature").then(|| words[1].to_owned()));
    }
    let all: BTreeSet<String> = feature::ALL.iter().map(|f| f.name.to_owned()).collect();
    assert_eq!(features, all, "every feature has been compared");
}
