//! SET_TUNNEL: whose it is, what is refused, and in which order the line is written. The blocks work meanwhile: no frame gets half of a header.

use super::card::Event;
use super::commands::{line, rtr_params, words};
use super::{functions, Bench, SIZES};
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::{self, *};
use ferric_abi::context::{AddressCtx, PathCtx, StationCtx, TunnelCtx};
use ferric_abi::csr::space::{PATH, TUNNEL};

const FUNCTIONS: usize = 1 << SIZES.functions;

pub fn on(ipv6: bool) -> TunnelCtx {
    let ip = if ipv6 { 0xfd00 << 112 } else { 0x0a00_0000 };
    TunnelCtx::default().with_valid(true).with_ipv6(ipv6).with_vni(0xab_cdef).with_hop_limit(64).with_dmac(0x0203_0405_0607).with_smac(0x0e00_0000_0000).with_local(ip | 1).with_remote(ip | 2)
}

pub fn set(b: &mut Bench, status: AdminStatus, f: usize, id: u32, tunnel: TunnelCtx) {
    b.expect(status, f, SetTunnel, id, &words::<14>(&tunnel.0));
}

fn there(b: &Bench, f: usize) -> TunnelCtx {
    TunnelCtx(line(&b.card, TUNNEL, f as u32))
}

pub fn all(b: &mut Bench) {
    let start = b.card.log.len();
    // Another function's is refused, whatever it says.
    for f in 1..FUNCTIONS {
        set(b, Denied, f, f as u32, on(false));
        set(b, Denied, f, 0, TunnelCtx::default());
    }
    set(b, BadId, 0, FUNCTIONS as u32, on(false));
    set(b, BadId, 0, u32::MAX, on(false));
    for v6 in [false, true] {
        let on = on(v6);
        let refused = [
            on.with_hop_limit(0),
            on.with_dmac(0),
            on.with_smac(0),
            on.with_dmac(0x0100_5e00_0001),
            on.with_smac(0xffff_ffff_ffff),
            on.with_local(0),
            on.with_remote(0),
            on.with_local(if v6 { 0xff02 << 112 | 1 } else { 0xe000_0001 }),
            on.with_remote(if v6 { u128::MAX } else { 0xffff_ffff }),
        ];
        refused.into_iter().for_each(|tunnel| set(b, BadParameter, 0, 1, tunnel));
    }
    // An IPv4 address has 32 bits.
    for bit in [32, 64, 96, 127] {
        set(b, BadParameter, 0, 0, on(false).with_local(0x0a00_0001 | 1 << bit));
        set(b, BadParameter, 0, 0, on(false).with_remote(0x0a00_0001 | 1 << bit));
    }
    assert_eq!(b.card.written(TUNNEL, start), [], "what is refused changes nothing");
    let fine = [
        on(false),
        on(true),
        on(false).with_vni(0).with_vlan(true).with_tci(u16::MAX).with_hop_limit(1),
        on(true).with_lenient(true).with_zero_csum6(true).with_any_remote(true).with_copy_dscp(true).with_copy_ttl(true).with_dscp(63).with_raw(true),
        on(false).with_smac(1 << 32).with_dmac(1),
        on(true).with_local(1 << 64).with_remote(0xfeff << 112),
    ];
    let bound = u32::from_le_bytes(TunnelCtx::default().with_bound(true).0[..4].try_into().expect("four"));
    for (n, tunnel) in fine.into_iter().enumerate() {
        let from = b.card.log.len();
        let f = n % FUNCTIONS;
        set(b, Ok, 0, f as u32, tunnel.with_rsvd1(255));
        assert_eq!(there(b, f), tunnel.with_bound(true), "reserved bits stay zero, and the function has one");
        let order: Vec<(u8, Option<u32>)> = b.card.log[from..]
            .iter()
            .filter_map(|e| match e {
                Event::Control { space: TUNNEL, word, write, .. } if write.is_some() => Some((*word, *write)),
                _ => None,
            })
            .collect();
        assert_eq!(order[0], (0, Some(bound)), "off first, and no other network's meanwhile");
        assert_eq!(order.iter().map(|(word, _)| *word).collect::<Vec<_>>(), (0..14).chain([0]).collect::<Vec<u8>>(), "on last");
        // Whoever says that there is one says that it is valid.
        set(b, Ok, 0, f as u32, TunnelCtx::default().with_vni(3).with_bound(true));
        assert!(!there(b, f).valid() && !there(b, f).bound());
    }
    // A VNI at an address is one network. Another VNI, another address, or the other version is nobody's yet.
    set(b, Ok, 0, 1, on(false));
    for other in [0, 2, 3] {
        for differs in [on(false).with_smac(2), on(false).with_remote(0x0a00_0009), on(false).with_lenient(true), on(false).with_zero_csum6(true), on(false).with_any_remote(true)] {
            set(b, InUse, 0, other, differs.with_dmac(6));
        }
    }
    set(b, InUse, 0, 0, on(false).with_rsvd2(true));
    one_network(b);
    set(b, Ok, 0, 1, on(false).with_hop_limit(3));
    set(b, Ok, 0, 0, on(false).with_vni(0xab_cdee));
    set(b, Ok, 0, 2, on(false).with_local(0x0a00_0003));
    set(b, Ok, 0, 3, on(true).with_local(0x0a00_0001).with_remote(2));
    set(b, InUse, 0, 0, on(false).with_local(0x0a00_0003));
    set(b, Ok, 0, 2, TunnelCtx::default());
    set(b, Ok, 0, 0, on(false).with_local(0x0a00_0003));
    // A reset leaves the others', and its own unless it is the physical function's: nobody gets out of a tunnel that way.
    for f in (0..FUNCTIONS).rev() {
        functions::reset(b, f);
        assert_eq!([0, 1, 2, 3].map(|g| there(b, g).valid()), [f != 0, true, false, true]);
    }
    networks(b);
    path_mtus(b);
    (0..FUNCTIONS).for_each(|f| set(b, Ok, 0, f as u32, TunnelCtx::default()));
}

/// A queue pair whose path MTU the underlay of its function's tunnel has no room for is not connected, and nothing has changed; that of another function is.
fn path_mtus(b: &mut Bench) {
    set(b, Ok, 0, 1, on(false).with_pmtu(3));
    set(b, Ok, 0, 2, on(true));
    for f in 1..FUNCTIONS {
        functions::make(b, f as u32, 0);
        let qp = functions::own(f as u32).qp;
        b.expect(Ok, f, ModifyQp, qp, &[1, 0, 0, 0, 0, 0xffff]);
        let from = b.card.log.len();
        for pmtu in if f == 1 { 4..6 } else { 0..0 } {
            b.expect(NoRoom, f, ModifyQp, qp, &rtr_params(pmtu));
        }
        b.expect(BadParameter, f, ModifyQp, qp, &rtr_params(6));
        assert!(b.card.log[from..].iter().all(|e| !matches!(e, Event::Control { write: Some(_), .. })), "what is refused changes nothing");
        b.expect(Ok, f, ModifyQp, qp, &rtr_params(if f == 1 { 3 } else { 5 }));
        assert!(PathCtx(line(&b.card, PATH, qp)).valid(), "the path is that of the queue pair");
    }
    for f in 1..FUNCTIONS {
        functions::reset(b, f);
    }
}

/// Functions 2 and 3 join function 1, on whose tunnel they stand then: it neither changes nor goes. What leaves may be different.
fn one_network(b: &mut Bench) {
    let joined = on(false).with_bound(true).with_joined(true).with_leader(1);
    set(b, Ok, 0, 2, on(false).with_leader(3));
    assert_eq!(there(b, 2), joined);
    // What leaves may look different.
    let own = |line: TunnelCtx| line.with_dmac(9).with_dscp(5).with_hop_limit(2).with_pmtu(2).with_raw(true).with_vlan(true).with_tci(7).with_copy_ttl(true);
    set(b, Ok, 0, 3, own(on(false)));
    assert_eq!(there(b, 3), own(joined), "the one that has a tunnel of its own leads");
    for line in [TunnelCtx::default(), on(true), on(false).with_vni(5), on(false).with_smac(6), on(false).with_any_remote(true)] {
        set(b, InUse, 0, 1, line);
    }
    assert_eq!(there(b, 1), on(false).with_bound(true));
    set(b, Ok, 0, 1, own(on(false)));
    assert_eq!(there(b, 1), own(on(false)).with_bound(true), "what is not looked at may change");
    set(b, Ok, 0, 1, on(false));
    // Addresses are unique within it.
    let mac = StationCtx::default().with_mac(0x0200_0000_0055).with_valid(true);
    let ip = AddressCtx::default().with_ip(0x0a01_0009).with_mac(0x0200_0000_0055).with_valid(true);
    for (f, status) in [(2, Ok), (1, InUse), (3, InUse), (0, Ok)] {
        b.expect(status, f, SetStation, 1, &words::<2>(&mac.0));
        b.expect(status, f, SetAddress, 2, &words::<6>(&ip.0));
    }
    (0..3).for_each(|f| functions::reset(b, f));
    assert_eq!(there(b, 2), joined, "a reset changes nothing");
    // Who goes is alone whatever tunnel he gets next, and the network is the others'.
    set(b, Ok, 0, 2, TunnelCtx::default());
    assert_eq!(there(b, 2).vni() | u32::from(there(b, 2).joined()), 0);
    let from = b.card.log.len();
    set(b, Ok, 0, 2, on(true));
    assert!(b.card.written(TUNNEL, from).iter().all(|w| w.1 != 1 || w.2 >> 24 == 0), "of its own");
    set(b, Ok, 0, 3, on(true));
    assert_eq!((there(b, 3).leader(), there(b, 3).joined()), (2, true));
    set(b, Ok, 0, 1, on(false).with_vni(1));
    set(b, Ok, 0, 3, TunnelCtx::default());
    set(b, Ok, 0, 2, TunnelCtx::default());
    set(b, Ok, 0, 1, on(false));
}

/// Functions 1 and 3 have tunnels: what is one function's in a network is anybody's in another.
fn networks(b: &mut Bench) {
    let mac = StationCtx::default().with_mac(0x0200_0000_0077).with_valid(true);
    let ip = AddressCtx::default().with_ip(0x0a01_0001).with_mac(0x0200_0000_0077).with_valid(true);
    let station = |b: &mut Bench, status, f: usize| b.expect(status, f, SetStation, 1, &words::<2>(&mac.0));
    let address = |b: &mut Bench, status, f: usize| b.expect(status, f, SetAddress, 2, &words::<6>(&ip.0));
    station(b, Ok, 0);
    address(b, Ok, 0);
    // The other of the same network, which has no tunnel.
    station(b, InUse, 2);
    address(b, InUse, 2);
    for f in [1, 3] {
        station(b, Ok, f);
        address(b, Ok, f);
        // Within a function nothing is different.
        b.expect(InUse, f, SetStation, 2, &words::<2>(&mac.0));
        b.expect(InUse, f, SetAddress, 3, &words::<6>(&ip.0));
        station(b, Ok, f);
        address(b, Ok, f);
    }
    for f in 1..FUNCTIONS {
        functions::reset(b, f);
    }
    functions::reset(b, 0);
}
