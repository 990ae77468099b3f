//! Actions.
use super::text::{Place, Text};
use super::{masked, members, one, Error, DEEPEST};
use crate::switch::flow::fields::Form;
use crate::switch::flow::{Field, Header, Masked, Outer, Step, TunnelKind};
use ferric_abi::wire::ethertype;
use std::collections::BTreeMap;

/// Actions of the datapath that this switch has no step for.
const FOREIGN: [&str; 17] =
    ["ct", "recirc", "hash", "push_mpls", "pop_mpls", "push_nsh", "pop_nsh", "push_eth", "pop_eth", "ct_clear", "check_pkt_len", "lb_output", "add_mpls", "dec_ttl", "set_nsh", "nat", "drop_reason"];

/// Actions with commas between them, up to the end or a closing bracket.
pub fn list(t: &mut Text, depth: usize) -> Result<Vec<Step>, Error> {
    let mut out = Vec::new();
    t.space();
    if t.eat("drop") {
        t.space();
        return Ok(out);
    }
    while !t.is_empty() && !t.sees(")") {
        step(t, &mut out, depth)?;
        t.space();
        if !t.eat(",") {
            break;
        }
        t.space();
    }
    Ok(out)
}

fn step(t: &mut Text, out: &mut Vec<Step>, depth: usize) -> Result<(), Error> {
    let place = t.place();
    if depth > DEEPEST {
        return Err(place.error("actions that do not stand that deep in others"));
    }
    let word = t.word_of(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if !t.sees("(") {
        let step = match word.as_str() {
            "pop_vlan" => Step::PopVlan,
            _ if FOREIGN.contains(&word.as_str()) => Step::Foreign(word),
            _ => match t.named(&word) {
                Some(port) => Step::Output(port),
                None => return Err(place.error(&format!("an action or a port, not `{word}`"))),
            },
        };
        out.push(step);
        return Ok(());
    }
    t.expect_open()?;
    let step = match word.as_str() {
        "push_vlan" => push_vlan(t, place)?,
        "set" => return set(t, out),
        "tnl_push" => tnl_push(t)?,
        "tnl_pop" => Step::TnlPop(closed(t, Form::Port, u32::MAX.into())? as u32),
        "meter" => Step::Meter(closed(t, Form::Decimal, u32::MAX.into())? as u32),
        "trunc" => Step::Trunc(closed(t, Form::Decimal, u32::MAX.into())? as u32),
        "clone" => {
            let steps = list(t, depth + 1)?;
            t.expect(")")?;
            Step::Clone(steps)
        }
        "sample" => sample(t, depth)?,
        "userspace" => {
            let inside = t.balanced()?;
            t.expect(")")?;
            Step::Userspace(inside)
        }
        _ if FOREIGN.contains(&word.as_str()) => {
            let inside = t.balanced()?;
            t.expect(")")?;
            Step::Foreign(format!("{word}({inside})"))
        }
        _ => return Err(place.error(&format!("an action, not `{word}`"))),
    };
    out.push(step);
    Ok(())
}

/// One value and the closing bracket.
fn closed(t: &mut Text, form: Form, full: u128) -> Result<u128, Error> {
    let value = one(t, form, full)?;
    t.expect(")")?;
    Ok(value)
}

fn push_vlan(t: &mut Text, place: Place) -> Result<Step, Error> {
    let (mut tpid, mut vid, mut pcp) = (ethertype::VLAN, None, 0);
    members(t, |t, member, place| {
        match member {
            "tpid" => tpid = one(t, Form::Hex, 0xffff)? as u16,
            "vid" => vid = Some(one(t, Form::Decimal, 0xfff)? as u16),
            "pcp" => pcp = one(t, Form::Decimal, 7)? as u16,
            "cfi" => {
                one(t, Form::Decimal, 1)?;
            }
            _ => return Err(place.error("`tpid`, `vid`, `pcp` or `cfi`")),
        }
        Ok(())
    })?;
    let vid = vid.ok_or_else(|| place.error("`push_vlan` with a `vid`"))?;
    Ok(Step::PushVlan { tpid, tci: pcp << 13 | vid })
}

fn set(t: &mut Text, out: &mut Vec<Step>) -> Result<(), Error> {
    let place = t.place();
    let group = t.word();
    t.expect_open()?;
    if !matches!(group.as_str(), "eth" | "ipv4" | "ipv6" | "tcp" | "udp" | "icmp" | "icmpv6" | "arp") {
        let inside = t.balanced()?;
        t.expect(")")?;
        t.expect(")")?;
        if group.is_empty() {
            return Err(place.error("a group of fields"));
        }
        out.push(Step::Foreign(format!("set({group}({inside}))")));
        return Ok(());
    }
    let mut fields: BTreeMap<Field, Masked> = BTreeMap::new();
    members(t, |t, member, place| {
        let field = Field::of(&group, member).ok_or_else(|| place.error(&format!("a field of `{group}(...)`, not `{member}`")))?;
        let value = masked(t, field.form(), field.full())?;
        if value.mask != 0 {
            fields.insert(field, value);
        }
        Ok(())
    })?;
    t.expect(")")?;
    out.push(Step::Set(fields));
    Ok(())
}

fn sample(t: &mut Text, depth: usize) -> Result<Step, Error> {
    t.expect("sample=")?;
    let place = t.place();
    let percent: f64 = t.word_of(|c| c.is_ascii_digit() || c == '.').parse().map_err(|_| place.error("a number of per cent"))?;
    t.expect("%")?;
    if !(0.0..=100.0).contains(&percent) {
        return Err(place.error("at most 100 %"));
    }
    t.expect(",")?;
    t.expect("actions(")?;
    let steps = list(t, depth + 1)?;
    t.expect(")")?;
    t.expect(")")?;
    Ok(Step::Sample { probability: (percent / 100.0 * f64::from(u32::MAX)).round() as u32, steps })
}

fn tnl_push(t: &mut Text) -> Result<Step, Error> {
    t.expect("tnl_port(")?;
    let port = closed(t, Form::Port, u32::MAX.into())? as u32;
    t.expect(",")?;
    t.expect("header(")?;
    let header = header(t)?;
    t.expect(")")?;
    t.expect(",")?;
    t.expect("out_port(")?;
    let out = closed(t, Form::Port, u32::MAX.into())? as u32;
    t.expect(")")?;
    Ok(Step::TnlPush { port, header, out })
}

/// Named values in the order that the text always has.
fn values<const N: usize>(t: &mut Text, names: [(&str, Form, u128); N]) -> Result<[u128; N], Error> {
    let mut out = [0; N];
    for (i, (name, form, full)) in names.into_iter().enumerate() {
        if i > 0 {
            t.expect(",")?;
        }
        t.expect(&format!("{name}="))?;
        out[i] = one(t, form, full)?;
    }
    t.expect(")")?;
    Ok(out)
}

fn header(t: &mut Text) -> Result<Header, Error> {
    let begin = t.place();
    t.expect("size=")?;
    let size = one(t, Form::Decimal, 512)?;
    t.expect(",")?;
    t.expect("type=")?;
    let kind = one(t, Form::Decimal, 255)?;
    t.expect(",")?;
    t.expect("eth(")?;
    let [dmac, smac, ethertype] = values(t, [("dst", Form::Mac, (1 << 48) - 1), ("src", Form::Mac, (1 << 48) - 1), ("dl_type", Form::Hex, 0xffff)])?;
    t.expect(",")?;
    let (place, v6) = (t.place(), ethertype == 0x86dd);
    let (outer, proto) = if v6 {
        t.expect("ipv6(")?;
        let names =
            [("src", Form::Ip6, u128::MAX), ("dst", Form::Ip6, u128::MAX), ("label", Form::Hex, 0xf_ffff), ("proto", Form::Decimal, 255), ("tclass", Form::Hex, 255), ("hlimit", Form::Decimal, 255)];
        let [src, dst, label, proto, tos, ttl] = values(t, names)?;
        (Outer { v6, src, dst, tos: tos as u8, ttl: ttl as u8, extra: label as u32 }, proto)
    } else {
        t.expect("ipv4(")?;
        let (a, b) = (u128::from(u32::MAX), 255);
        let names = [("src", Form::Ip4, a), ("dst", Form::Ip4, a), ("proto", Form::Decimal, b), ("tos", Form::Hex, b), ("ttl", Form::Decimal, b), ("frag", Form::Hex, 0xffff)];
        let [src, dst, proto, tos, ttl, extra] = values(t, names)?;
        (Outer { v6, src, dst, tos: tos as u8, ttl: ttl as u8, extra: extra as u32 }, proto)
    };
    if proto != 17 || !matches!(ethertype, 0x0800 | 0x86dd) {
        return Err(place.error("a tunnel in UDP over IP"));
    }
    t.expect(",")?;
    t.expect("udp(")?;
    let [from, to, sum] = values(t, [("src", Form::Decimal, 0xffff), ("dst", Form::Decimal, 0xffff), ("csum", Form::Hex, 0xffff)])?;
    t.expect(",")?;
    let place = t.place();
    let tunnel = match (t.word().as_str(), kind) {
        ("vxlan", 4) => {
            t.expect_open()?;
            let [flags, vni] = values(t, [("flags", Form::Hex, u32::MAX.into()), ("vni", Form::Hex, 0xff_ffff)])?;
            TunnelKind::Vxlan { flags: flags as u32, vni: vni as u32 }
        }
        ("geneve", 5) => geneve(t)?,
        _ => return Err(place.error("`vxlan(...)` with type 4 or `geneve(...)` with type 5")),
    };
    let header = Header { dmac: dmac as u64, smac: smac as u64, outer, udp: (from as u16, to as u16, sum as u16), kind: tunnel };
    if header.bytes().len() as u128 != size {
        return Err(begin.error(&format!("size={}, the size of this header", header.bytes().len())));
    }
    Ok(header)
}

/// `geneve([oam,][crit,]vni=0x..[,options({class=..,type=..,len=..,0x..}...)])`.
fn geneve(t: &mut Text) -> Result<TunnelKind, Error> {
    t.expect_open()?;
    let oam = t.eat("oam,");
    let critical = t.eat("crit,");
    t.expect("vni=")?;
    let vni = one(t, Form::Hex, 0xff_ffff)? as u32;
    let mut options = Vec::new();
    if t.eat(",options(") {
        while t.eat("{") {
            t.expect("class=")?;
            let class = one(t, Form::Hex, 0xffff)? as u16;
            t.expect(",type=")?;
            let kind = one(t, Form::Hex, 0xff)? as u8;
            t.expect(",len=")?;
            let place = t.place();
            let length = one(t, Form::Decimal, 124)? as usize;
            let mut data = Vec::new();
            if t.eat(",0x") {
                let digits = t.word_of(|c| c.is_ascii_hexdigit());
                let padded = format!("{digits:0>width$}", width = length * 2);
                data = (0..padded.len() / 2).filter_map(|i| u8::from_str_radix(&padded[2 * i..2 * i + 2], 16).ok()).collect();
            }
            if data.len() != length || length % 4 != 0 {
                return Err(place.error("a length in whole words, and so many bytes behind it"));
            }
            t.expect("}")?;
            options.push((class, kind, data));
        }
        t.expect(")")?;
    }
    t.expect(")")?;
    Ok(TunnelKind::Geneve { oam, critical, vni, options })
}
