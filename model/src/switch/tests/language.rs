//! The flow language: what is written is read, what is wrong is named with its place.
use crate::switch::flow::fields::{Field, Form};
use crate::switch::flow::{parse, steps_text, Flow, Header, Masked, Match, Outer, Step, Tag, TunnelKind};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn ports() -> parse::Ports {
    [("up0".to_owned(), 1), ("rep-8".to_owned(), 8)].into()
}

/// A field with any value and mask that its form can say.
fn field() -> impl Strategy<Value = (Field, Masked)> {
    (0..Field::ALL.len(), any::<u128>(), any::<u128>(), any::<bool>()).prop_map(|(n, value, mask, whole)| {
        let field = Field::ALL[n].0;
        let full = field.full();
        match field.form() {
            Form::Fragment => (field, Masked::new(value % 3, full)),
            Form::TunnelFlags => (field, Masked::new(value, mask & 0xf)),
            _ => (field, Masked::new(value, if whole { full } else { mask & full })),
        }
    })
}

fn matches() -> impl Strategy<Value = Match> {
    let tag = (prop::sample::select(vec![0x8100u16, 0x88a8]), any::<u16>(), any::<u16>(), any::<u8>(), any::<u8>()).prop_map(|(tpid, vid, vid_mask, pcp, pcp_mask)| Tag {
        tpid,
        vid: Masked::new(vid.into(), u128::from(vid_mask) & 0xfff),
        pcp: Masked::new(pcp.into(), u128::from(pcp_mask) & 7),
    });
    (prop::collection::vec(field(), 0..12), prop::collection::vec(tag, 0..3)).prop_map(|(fields, tags)| {
        let mut m = Match { tags, ..Default::default() };
        m.fields = fields.into_iter().filter(|(_, v)| v.mask != 0).collect();
        // A tag's type as the innermost one would be a tag.
        if m.exact(Field::EthType).is_some_and(|t| matches!(t, 0x8100 | 0x88a8)) {
            m.fields.remove(&Field::EthType);
        }
        m.tunnel = m.fields.keys().any(|f| f.group() == "tunnel");
        m
    })
}

fn header() -> impl Strategy<Value = Header> {
    let option = (any::<u16>(), any::<u8>(), prop::collection::vec(any::<[u8; 4]>(), 0..4)).prop_map(|(class, kind, data)| (class, kind, data.concat()));
    let vni = 0u32..0x100_0000;
    let kind = prop_oneof![
        (any::<u32>(), vni.clone()).prop_map(|(flags, vni)| TunnelKind::Vxlan { flags, vni }),
        (any::<bool>(), any::<bool>(), vni, prop::collection::vec(option, 0..3)).prop_map(|(oam, critical, vni, options)| TunnelKind::Geneve { oam, critical, vni, options }),
    ];
    (any::<(bool, u128, u128, u8, u8, u32)>(), any::<(u64, u64, u16, u16, u16)>(), kind).prop_map(|((v6, src, dst, tos, ttl, extra), (dmac, smac, from, to, sum), kind)| {
        let (mac, ip) = (u64::MAX >> 16, if v6 { u128::MAX } else { u32::MAX.into() });
        let outer = Outer { v6, src: src & ip, dst: dst & ip, tos, ttl, extra: extra & if v6 { 0xf_ffff } else { 0xffff } };
        Header { dmac: dmac & mac, smac: smac & mac, outer, udp: (from, to, sum), kind }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let set = prop::collection::btree_map(prop::sample::select(vec![Field::EthSrc, Field::EthDst]), any::<(u128, u128)>(), 1..3);
    let leaf = prop_oneof![
        any::<u32>().prop_map(Step::Output),
        (prop::sample::select(vec![0x8100u16, 0x88a8]), any::<u16>()).prop_map(|(tpid, tci)| Step::PushVlan { tpid, tci: tci & 0xefff }),
        Just(Step::PopVlan),
        set.prop_map(|fields| {
            let fields: BTreeMap<Field, Masked> = fields.into_iter().map(|(f, (v, m))| (f, Masked::new(v, m & f.full() | 1))).collect();
            Step::Set(fields)
        }),
        (any::<u32>(), header(), any::<u32>()).prop_map(|(port, header, out)| Step::TnlPush { port, header, out }),
        any::<u32>().prop_map(Step::TnlPop),
        any::<u32>().prop_map(Step::Meter),
        any::<u32>().prop_map(Step::Trunc),
        Just(Step::Userspace("pid=0,slow_path(action)".into())),
        Just(Step::Foreign("ct(zone=1,nat(src=10.0.0.1))".into())),
        Just(Step::Foreign("recirc(0x1)".into())),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Step::Clone),
            (any::<u32>(), prop::collection::vec(inner, 1..4)).prop_map(|(probability, steps)| Step::Sample { probability, steps }),
        ]
    })
}

proptest! {
    #[test]
    fn matches_are_read_as_written(m in matches()) {
        let text = m.to_string();
        prop_assert_eq!(parse::matches(&text, &ports()).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?, m, "{}", text);
    }

    #[test]
    fn actions_are_read_as_written(steps in prop::collection::vec(step(), 0..5)) {
        let text = steps_text(&steps);
        prop_assert_eq!(parse::steps(&text, &ports()).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?, steps, "{}", text);
    }

    /// Any text has an answer, and an error is at a place in the text or behind it.
    #[test]
    fn any_text(text in "[a-z_0-9(),=/:.+|{}é -]{0,80}", written in matches(), cut in any::<prop::sample::Index>()) {
        let mut whole = written.to_string();
        whole.truncate(cut.index(whole.len() + 1));
        for text in [text, whole] {
            for error in [parse::matches(&text, &ports()).err(), parse::steps(&text, &ports()).err(), parse::dump_line(&text, &ports()).err()].into_iter().flatten() {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.at), "{error}: {text}");
            }
        }
    }
}

/// Lines as Open vSwitch 3.1 writes them.
#[test]
fn dumps() {
    let line = "ufid:2b0f97df-868b-4bc7-9fe8-ecc6d2af3d2f, skb_priority(0/0),skb_mark(0/0),ct_state(0/0),ct_zone(0/0),ct_mark(0/0),ct_label(0/0),recirc_id(0),dp_hash(0/0),in_port(up0),packet_type(ns=0/0,id=0/0),eth(src=00:00:00:00:00:00/00:00:00:00:00:00,dst=52:54:00:00:00:02),eth_type(0x0800),ipv4(src=192.168.7.0/255.255.255.0,dst=0.0.0.0/0.0.0.0,proto=0/0,tos=0/0,ttl=0/0,frag=no), packets:0, bytes:0, used:never, dp:ovs, actions:push_vlan(vid=5,pcp=3),rep-8,pop_vlan, dp-extra-info:miniflow_bits(4,2)";
    let flow = parse::dump_line(line, &ports()).expect("it is a line of a dump");
    assert_eq!(flow.to_string(), "in_port(1),eth(dst=52:54:00:00:00:02),eth_type(0x0800),ipv4(src=192.168.7.0/255.255.255.0,frag=no) actions:push_vlan(vid=5,pcp=3),8,pop_vlan");
    let tunnel = "tunnel(tun_id=0x64,src=10.0.0.2,dst=10.0.0.1,flags(-df-csum+key)),recirc_id(0),in_port(2),eth(),eth_type(0x0806), packets:1, bytes:42, used:0.1s, actions:drop";
    let flow = parse::dump_line(tunnel, &ports()).expect("it is a line of a dump");
    assert_eq!(flow, Flow { matches: flow.matches.clone(), steps: vec![] });
    assert_eq!((flow.matches.exact(Field::TunId), flow.matches.fields[&Field::TunFlags]), (Some(100), Masked::new(8, 0xe)));
    let foreign = parse::dump_line("recirc_id(0x1),ct_state(+est-inv),in_port(1),eth_type(0x0800) actions:ct(commit),1", &ports()).expect("the datapath can say it");
    assert_eq!(foreign.matches.foreign, ["recirc_id(0x1)", "ct_state(+est-inv)"]);
}

#[test]
fn errors_name_the_place() {
    let wrong = [
        ("in_port(8),eth(dst=52:54:00:00:00)", 20, "a MAC address"),
        ("in_port(nobody)", 9, "a port"),
        ("in_port(8),colour(1)", 12, "not `colour`"),
        ("ipv4(tos=0x100)", 10, "up to 0xff"),
        ("ipv4(frag=maybe)", 11, "`later`"),
        ("eth(", 5, "`)`"),
        ("vlan(vid=1)", 1, "without `eth_type(0x8100)`"),
        ("udp(src=1,src=2)", 11, "not been named before"),
        ("tcp_flags(+syn+nop)", 16, "a flag"),
    ];
    for (text, at, what) in wrong {
        let error = parse::matches(text, &ports()).expect_err(text);
        assert!(error.at == at && error.what.contains(what), "{text}: {error}");
    }
    for (text, at, what) in [("1,fly(2)", 3, "not `fly`"), ("push_vlan(pcp=1)", 1, "`vid`"), ("clone(1", 8, "`)`"), ("set(eth(ttl=1))", 9, "not `ttl`"), ("1;2", 2, "comma")] {
        let error = parse::steps(text, &ports()).expect_err(text);
        assert!(error.at == at && error.what.contains(what), "{text}: {error}");
    }
    let deep = format!("{}1{}", "clone(".repeat(50), ")".repeat(50));
    assert!(parse::steps(&deep, &ports()).is_err());
}
