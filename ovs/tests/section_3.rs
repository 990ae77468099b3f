//! The frames of SWITCH.md section 3: what the model does with each is that table's last column, what Open vSwitch does its first one.
use ferric_abi::codes::SwitchCause;
use ferric_abi::switch::{destination, Action, FlowKey};
use ferric_model::switch::edit::set_tos;
use ferric_model::switch::layers::parse;
use ferric_model::switch::tables::{InnerTag, Rule};
use ferric_model::switch::Switch;
use ferric_ovs::frames::Spec;
use ferric_ovs::oracle::{Oracle, Sent, UNDERLAY};
use ferric_ovs::rules::tunnel_switch;
use ferric_ovs::server::Error;
use ferric_ovs::tunnels::{Csum, Tunnel};
use rand::SeedableRng;

/// What becomes of a frame.
#[derive(Clone, Debug, PartialEq)]
enum End {
    /// It is delivered like this.
    Delivered(Vec<u8>),
    Dropped(SwitchCause),
    Software,
}

/// A row: its name, the frame, what the model does, whether Open vSwitch delivers and if so what.
type Row = (&'static str, Vec<u8>, End, Option<Vec<u8>>);

/// An inner frame of UDP with this ECN.
fn inner(ecn: u8) -> Vec<u8> {
    let text = "5254000000015254000000020800450000200001000040110000c0a80701c0a8070200350035000c000061626364";
    let mut frame: Vec<u8> = (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("it is hexadecimal")).collect();
    let ip = *parse(&frame).expect("it is UDP").ip().expect("it is IP");
    set_tos(&mut frame, 14, &ip, ecn);
    frame
}

fn rows() -> Vec<Row> {
    let right = || Tunnel::right(false, 100);
    let with = |change: fn(&mut Tunnel)| {
        let mut t = right();
        change(&mut t);
        t
    };
    let plain = inner(0);
    let same = |name, t: Tunnel| (name, t.around(&inner(0)), End::Delivered(inner(0)), Some(inner(0)));
    let dropped = |name, t: Tunnel, cause| (name, t.around(&inner(0)), End::Dropped(cause), None);
    let ecn = |name, outer: u8, before: u8, ours: Option<u8>, theirs: Option<u8>| {
        let mut t = right();
        t.tos = outer;
        let end = ours.map_or(End::Dropped(SwitchCause::Ecn), |e| End::Delivered(inner(e)));
        (name, t.around(&inner(before)), end, theirs.map(inner))
    };
    let tagged = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat();
    let short = plain[..14].to_vec();
    vec![
        same("UDP checksum 0", right()),
        same("UDP checksum right", with(|t| t.csum = Csum::Right)),
        dropped("UDP checksum wrong", with(|t| t.csum = Csum::Wrong), SwitchCause::OuterCsum),
        dropped("I flag clear", with(|t| t.flags[0] = 0), SwitchCause::VxlanFlags),
        dropped("other flag bits", with(|t| t.flags[0] = 0x0c), SwitchCause::VxlanFlags),
        dropped("byte behind the VNI", with(|t| t.last = 1), SwitchCause::VxlanFlags),
        ecn("outer CE, inner ECT(0)", 3, 2, Some(3), Some(3)),
        ecn("outer CE, inner Not-ECT", 3, 0, None, None),
        ecn("outer ECT(1), inner ECT(0)", 1, 2, Some(1), Some(2)),
        ecn("outer ECT(0), inner Not-ECT", 2, 0, Some(0), Some(0)),
        ("inner tag", right().around(&tagged), End::Delivered(tagged.clone()), Some(tagged)),
        ("outer IPv4 options", with(|t| t.words = 1).around(&plain), End::Software, None),
        dropped("outer fragment", with(|t| t.part = 0x2000), SwitchCause::OuterFragment),
        dropped("outer IPv4 checksum wrong", with(|t| t.bad_header = true), SwitchCause::OuterMalformed),
        dropped("unknown VNI", with(|t| t.vni = 999), SwitchCause::VniUnknown),
        same("outer TTL 1", with(|t| t.ttl = 1)),
        // Type 0x0800 with nothing behind it: the parser does not understand that, so that software has it, as it came out of the tunnel.
        ("inner of 14 bytes", right().around(&[&short[..12], &[0x88, 0xb5]].concat()), End::Delivered([&short[..12], &[0x88, 0xb5]].concat()), Some([&short[..12], &[0x88, 0xb5]].concat())),
        ("inner of 10 bytes", right().around(&plain[..10]), End::Dropped(SwitchCause::InnerShort), None),
    ]
}

/// Everything from VNI 100 goes to port 8.
fn model() -> Switch {
    let mut s = tunnel_switch();
    s.tables.vnis.insert((0, 100), (1, InnerTag::Keep));
    s.tables.inbound.actions.push(Some(Action::default().with_kind(destination::PORT).with_number(8)));
    let (key, mask) = (FlowKey::default().with_domain(1), FlowKey::default().with_domain(0xfff));
    s.tables.inbound.tcam.push(Rule { key, mask, action: 0, generation: 0 });
    s
}

#[test]
fn the_model_does_as_the_last_column_says() {
    let rows = rows();
    assert_eq!(rows.len(), 18);
    for (name, frame, wanted, _) in rows {
        let out = model().receive(UNDERLAY, &frame);
        let got = match (out.sent.first(), out.dropped.first(), out.software.first()) {
            (Some(s), None, None) => End::Delivered(s.frame.clone()),
            (None, Some(cause), None) => End::Dropped(*cause),
            (None, None, Some(s)) => {
                assert_eq!(s.frame, frame, "{name}: software has to get it as it came");
                End::Software
            }
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(got, wanted, "{name}");
    }
}

#[test]
fn open_vswitch_does_as_the_first_column_says() -> Result<(), Error> {
    let folder = ferric_ovs::Folder::new("section-3");
    let mut oracle = Oracle::start(folder.path())?;
    oracle.rules(&[], &["priority=1,in_port=20,tun_id=100,actions=output:8".to_owned()], &[])?;
    for (name, frame, _, wanted) in rows() {
        let wanted: Sent = wanted.into_iter().map(|frame| (8, vec![frame])).collect();
        assert_eq!(oracle.receive(UNDERLAY, &frame, &wanted)?, wanted, "{name}");
    }
    Ok(())
}

/// What [`Spec`] calls a fragment is one for the parser: the comparison sends fragments of both kinds.
#[test]
fn random_frames_are_of_every_kind() {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let layers: Vec<_> = (0..2000).filter_map(|_| parse(&Spec::random(&mut rng).bytes()).ok()).collect();
    let count = |is: &dyn Fn(&ferric_model::switch::layers::Layers) -> bool| layers.iter().filter(|l| is(l)).count();
    let ip = |l: &ferric_model::switch::layers::Layers, v6: bool, part: u8| l.ip().is_some_and(|ip| ip.v6 == v6 && ip.fragment as u8 == part);
    for v6 in [false, true] {
        for part in 0..3 {
            assert!(count(&|l| ip(l, v6, part)) > 10, "IPv6 {v6}, fragment class {part}");
        }
    }
    assert!(count(&|l| l.ethertype == 0x0806) > 100);
}
