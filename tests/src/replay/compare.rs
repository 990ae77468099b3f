//! Which fields of a frame count, and which are excused (rule 4).
use super::frame::{Frame, Ip, Kind, Syndrome};
use ferric_abi::wire::{Eth, Vlan};

/// Compares a frame of the machine under test with the captured one. Not compared, by name: IP identification, flags, TTL or hop limit,
/// ToS or traffic class, IPv6 flow label, UDP source port and checksum, AckReq, MigReq, FECN, BECN, credit count, ICRC value.
pub fn same(own: &Frame, captured: &Frame) -> Result<(), String> {
    let differs = |field: &str, a: String, b: String| Err(format!("{}: {field} is {a}, captured {b}", own.brief()));
    macro_rules! field {
        ($name:literal, $a:expr, $b:expr) => {
            if $a != $b {
                return differs($name, format!("{:?}", $a), format!("{:?}", $b));
            }
        };
        (hex $name:literal, $a:expr, $b:expr) => {
            if $a != $b {
                return differs($name, format!("{:#x}", $a), format!("{:#x}", $b));
            }
        };
    }
    let mac = |e: &Eth| (e.src(), e.dst());
    field!(hex "source MAC", mac(&own.eth).0, mac(&captured.eth).0);
    field!(hex "destination MAC", mac(&own.eth).1, mac(&captured.eth).1);
    field!("VLAN id", own.vlan.map(|v: Vlan| v.vid()), captured.vlan.map(|v| v.vid()));
    field!("source address", own.ip.src(), captured.ip.src());
    field!("destination address", own.ip.dst(), captured.ip.dst());
    field!("IP version", matches!(own.ip, Ip::V4(_)), matches!(captured.ip, Ip::V4(_)));
    field!(hex "opcode", own.bth.opcode(), captured.bth.opcode());
    field!(hex "destination queue pair", own.bth.dest_qpn(), captured.bth.dest_qpn());
    field!(hex "PSN", own.psn(), captured.psn());
    field!(hex "partition key", own.bth.pkey(), captured.bth.pkey());
    field!("solicited event", own.bth.solicited(), captured.bth.solicited());
    field!("pad count", own.bth.pad(), captured.bth.pad());
    field!("FETH", own.feth, captured.feth);
    field!(hex "RETH address", own.reth.map_or(0, |r| r.va()), captured.reth.map_or(0, |r| r.va()));
    field!(hex "RETH key", own.reth.map_or(0, |r| r.rkey()), captured.reth.map_or(0, |r| r.rkey()));
    field!("RETH length", own.reth.map(|r| r.length()), captured.reth.map(|r| r.length()));
    field!("AtomicETH", own.atomic, captured.atomic);
    field!("atomic result", own.atomic_ack, captured.atomic_ack);
    field!("immediate data", own.imm, captured.imm);
    field!("invalidated key", own.ieth, captured.ieth);
    field!("DETH", own.deth, captured.deth);
    if let (Some(a), Some(b)) = (own.aeth, captured.aeth) {
        let (a_says, b_says) = (Syndrome::of(a.syndrome()), Syndrome::of(b.syndrome()));
        field!("AETH", a_says.name(), b_says.name());
        field!("MSN", a.msn(), b.msn());
    }
    field!("payload length", own.payload.len(), captured.payload.len());
    match own.payload.iter().zip(&captured.payload).position(|(a, b)| a != b) {
        Some(i) => differs(&format!("payload byte {i}"), format!("{:#04x}", own.payload[i]), format!("{:#04x}", captured.payload[i])),
        None => Ok(()),
    }
}

/// A positive acknowledge.
pub fn is_ack(f: &Frame) -> bool {
    f.op.kind == Kind::Ack && f.aeth.is_some_and(|a| Syndrome::of(a.syndrome()) == Syndrome::Ack)
}
