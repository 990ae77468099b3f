//! Tunnels of functions, a line each (`TunnelCtx`): what the gateware has of the switch so far, by the golden models of the whole (`outer`, `wrap`).
use super::layers::{parse, Deep, Layers, Upper};
use super::outer::{strip, Stripped};
use super::tables::{Endpoint, EndpointKind, InnerTag, Tables};
use super::wrap::{line, wrap};
use crate::net::networks::{Network, Through};
use ferric_abi::codes::SwitchCause;
use ferric_abi::context::{RawCtx, TunnelCtx};
use ferric_abi::switch::Encap;
use ferric_abi::wire::VXLAN_PORT;

/// Bytes that a parser sees in any case.
const WINDOW: usize = 128;
/// More than any packet is long.
const LONGEST: usize = 70_000;

/// What becomes of a frame off the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// It came through no tunnel.
    Plain,
    /// It came through the tunnel of a function, and of those that have joined it: the frame inside.
    Through(u16, Vec<u8>),
    /// It is dropped.
    Drop(SwitchCause),
}

/// The function has a tunnel.
pub fn has(line: &TunnelCtx) -> bool {
    line.valid() || line.bound()
}

/// The model's tables for one tunnel.
pub fn tables(ctx: &TunnelCtx) -> Tables {
    let mut tables = Tables::default();
    if ctx.valid() {
        let flags = (ctx.lenient(), ctx.zero_csum6(), ctx.any_remote());
        tables.endpoints.push(Endpoint {
            v6: ctx.ipv6(),
            ip: ctx.local(),
            udp_port: VXLAN_PORT,
            kind: EndpointKind::Vxlan,
            lenient: flags.0,
            zero_csum6: flags.1,
            any_remote: flags.2,
            unknown_to_software: false,
            option: None,
        });
        tables.vnis.insert((0, ctx.vni()), (1, InnerTag::Keep));
        tables.remotes.insert((ctx.ipv6(), ctx.remote()), 1);
    }
    tables
}

/// Whose rules a frame is judged by: the function whose VNI it has at its address, and that line; of functions in one network the one that the others have joined. Where there is none of this VNI, but tunnels at this address, by the strictest. `None`: it is for no tunnel.
pub fn judge(lines: &[TunnelCtx], frame: &[u8]) -> Option<(Option<u16>, TunnelCtx)> {
    let view = if parse(frame) == Err(Deep::Truncated) && frame.len() > WINDOW { [frame, &[0; LONGEST]].concat() } else { frame.to_vec() };
    let ours: Vec<usize> = (0..lines.len()).filter(|f| lines[*f].valid() && !lines[*f].joined() && strip(&tables(&lines[*f]), &view, Some(lines[*f].smac())) != Stripped::Plain).collect();
    let at = parse(&view).ok().and_then(|l| if let Upper::Ip(ip) = l.upper { Some(ip.l4 + 12) } else { None });
    let vni = at.and_then(|at| view.get(at..at + 3)).map(|b| u32::from_be_bytes([0, b[0], b[1], b[2]]));
    let first = ours.first()?;
    Some(match ours.iter().find(|f| Some(lines[**f].vni()) == vni) {
        Some(f) => (Some(*f as u16), lines[*f]),
        None => (None, lines[*first].with_lenient(false).with_zero_csum6(false)),
    })
}

/// A frame off the wire. `Miss`: every function has a tunnel, and it came through none.
pub fn receive(lines: &[TunnelCtx], frame: &[u8]) -> Came {
    let plain = || if lines.iter().all(has) { Came::Drop(SwitchCause::Miss) } else { Came::Plain };
    let Some((function, ctx)) = judge(lines, frame) else { return plain() };
    match (strip(&tables(&ctx), frame, Some(ctx.smac())), function) {
        (Stripped::Inner(inner), Some(function)) => Came::Through(function, inner.frame),
        (Stripped::Drop(cause), _) => Came::Drop(cause),
        _ => plain(),
    }
}

/// Which queue pairs get a frame that is not RoCE: `physical` is the physical function's, `lines` say those of functions with tunnels. A frame for a whole network reaches all of its functions but the one that has sent it.
pub fn raw_queues(physical: Option<u32>, lines: &[RawCtx], network: Network) -> Vec<u32> {
    let own = |f: usize| lines.get(f).filter(|line| line.valid()).map(RawCtx::qpn);
    let sender = if let Through::Looped(f) = network.through { Some(f) } else { None };
    match network.through {
        Through::None => physical.filter(|_| network.has(0)).into_iter().collect(),
        Through::Only(0) | Through::Shown(0) | Through::Whole(0) => physical.into_iter().collect(),
        Through::Only(f) | Through::Shown(f) => own(f.into()).into_iter().collect(),
        _ => (1..lines.len()).filter(|f| network.has(*f as u16) && sender != Some(*f as u16)).filter_map(own).collect(),
    }
}

/// The line of the model's table of outer headers for this tunnel.
pub fn encap(ctx: &TunnelCtx) -> Encap {
    let mac = |n: u64| n.to_be_bytes()[2..].to_vec();
    let mut header = [mac(ctx.dmac()), mac(ctx.smac())].concat();
    if ctx.vlan() {
        header.extend([0x81, 0x00]);
        header.extend(ctx.tci().to_be_bytes());
    }
    let (src, dst) = (ctx.local().to_be_bytes(), ctx.remote().to_be_bytes());
    if ctx.ipv6() {
        header.extend([0x86, 0xdd, 0x60 | ctx.dscp() >> 2, ctx.dscp() << 6, 0, 0, 0, 0, 17, ctx.hop_limit()]);
        header.extend([src, dst].concat());
    } else {
        header.extend([0x08, 0x00, 0x45, ctx.dscp() << 2, 0, 0, 0, 0, 0x40, 0, ctx.hop_limit(), 17, 0, 0]);
        header.extend([&src[12..], &dst[12..]].concat());
    }
    header.extend([0, 0, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0]);
    header.extend(&ctx.vni().to_be_bytes()[1..]);
    header.push(0);
    line(&header, 0).unwrap_or_default().with_copy_dscp(ctx.copy_dscp()).with_copy_ttl(ctx.copy_ttl())
}

/// A frame of a function with this tunnel, as it leaves. Of what the parser does not understand the flow is nobody's. `None`: its lengths do not fit into 16 bits.
pub fn send(ctx: &TunnelCtx, frame: &[u8]) -> Option<Vec<u8>> {
    let layers = parse(frame).unwrap_or_else(|_| Layers::default());
    wrap(&encap(ctx), frame, &layers)
}
