//! SET_TUNNEL: whose it is, what is refused, and in which order the line is written. The blocks work meanwhile: no frame gets half of a header.

use super::card::Event;
use super::commands::{line, words};
use super::{functions, Bench, SIZES};
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::{self, *};
use ferric_abi::context::TunnelCtx;
use ferric_abi::csr::space::TUNNEL;

const FUNCTIONS: usize = 1 << SIZES.functions;

fn on(ipv6: bool) -> TunnelCtx {
    let ip = if ipv6 { 0xfd00 << 112 } else { 0x0a00_0000 };
    TunnelCtx::default().with_valid(true).with_ipv6(ipv6).with_vni(0xab_cdef).with_hop_limit(64).with_dmac(0x0203_0405_0607).with_smac(0x0e00_0000_0000).with_local(ip | 1).with_remote(ip | 2)
}

fn set(b: &mut Bench, status: AdminStatus, f: usize, id: u32, tunnel: TunnelCtx) {
    b.expect(status, f, SetTunnel, id, &words::<14>(&tunnel.0));
}

fn there(b: &Bench) -> TunnelCtx {
    TunnelCtx(line(&b.card, TUNNEL, 0))
}

pub fn all(b: &mut Bench) {
    let start = b.card.log.len();
    // Another function's is refused, whatever it says.
    for f in 1..FUNCTIONS {
        set(b, Denied, f, 0, on(false));
        set(b, Denied, f, 0, TunnelCtx::default());
    }
    set(b, BadId, 0, 1, on(false));
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
        refused.into_iter().for_each(|tunnel| set(b, BadParameter, 0, 0, tunnel));
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
        on(true).with_lenient(true).with_zero_csum6(true).with_any_remote(true).with_plain(true).with_copy_dscp(true).with_copy_ttl(true).with_dscp(63),
        on(false).with_smac(1 << 32).with_dmac(1),
        on(true).with_local(1 << 64).with_remote(0xfeff << 112),
    ];
    for tunnel in fine {
        let from = b.card.log.len();
        set(b, Ok, 0, 0, tunnel.with_rsvd0(1).with_rsvd1(255));
        assert_eq!(there(b), tunnel, "reserved bits stay zero");
        let order: Vec<(u8, Option<u32>)> = b.card.log[from..]
            .iter()
            .filter_map(|e| match e {
                Event::Control { space: TUNNEL, word, write, .. } if write.is_some() => Some((*word, *write)),
                _ => None,
            })
            .collect();
        assert_eq!(order[0], (0, Some(0)), "off first");
        assert_eq!(order.iter().map(|(word, _)| *word).collect::<Vec<_>>(), (0..14).chain([0]).collect::<Vec<u8>>(), "on last");
    }
    // The others' reset leaves it, the physical function's does not.
    for f in (0..FUNCTIONS).rev() {
        functions::reset(b, f);
        assert_eq!(there(b).valid(), f != 0);
    }
    set(b, Ok, 0, 0, on(false));
    set(b, Ok, 0, 0, TunnelCtx::default().with_vni(3));
    assert!(!there(b).valid());
}
