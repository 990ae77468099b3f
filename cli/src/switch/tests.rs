//! What the book says of flows, without a card.
use super::book::{id, ufid, Book, Refusal};
use super::trace;
use ferric_abi::switch::{destination, tag_op};
use ferric_driver::switch::FlowPort;
use ferric_driver::types::Mac;
use ferric_driver::TunnelConfig;
use ferric_model::switch::flow::parse;

fn tunnel(vni: u32, far: u8) -> TunnelConfig {
    TunnelConfig::new(vni, Mac([2, 0, 0, 0, 0, 1]), [10, 1, 0, 1].into(), Mac([2, 0, 0, 0, 0, far]), [10, 1, 0, far].into())
}

/// Four functions; 1 and 2 have tunnels from one address to another one, 3 one from anybody.
fn book() -> Book {
    let open = TunnelConfig { any_remote: true, ..tunnel(300, 3) };
    Book { functions: 4, tunnels: [(1, tunnel(100, 2)), (2, tunnel(200, 2)), (3, open)].into(), ..Default::default() }
}

fn compile(matches: &str, actions: &str) -> Result<super::book::Line, Refusal> {
    let book = book();
    book.compile(&parse::flow(matches, actions, &book.names()).expect("the text is right"))
}

const HOST: &str = "eth_type(0x0800),ipv4(dst=192.168.7.8,frag=no)";

#[test]
fn flows_are_lines_of_the_card() {
    let plain = compile(&format!("in_port(uplink),{HOST}"), "f1").unwrap();
    // Through no tunnel: remote endpoint 0, and that counts.
    assert_eq!((plain.key.in_port(), plain.key.remote(), plain.mask.remote() != 0, plain.mask.domain(), plain.class, plain.v6), (1, 0, true, 0, Some(2), false));
    assert_eq!((plain.action.kind(), plain.action.number(), plain.action.count()), (destination::PORT, 9, true));
    // Two networks behind one address: domain and remote endpoint are the function's.
    for (vni, function) in [(100, 1), (200, 2)] {
        let line = compile(&format!("tunnel(tun_id={vni:#x},src=10.1.0.2,dst=10.1.0.1,ttl=0/0),in_port(vxlan),{HOST}"), "drop").unwrap();
        assert_eq!((line.key.domain(), line.key.remote(), line.action.kind()), (function + 1, function + 1, destination::DROP), "{vni}");
        assert!(line.mask.domain() != 0 && line.mask.remote() != 0);
    }
    // From one function to another: the port and its network, as it is now, and remote endpoint 0, for it did not come through a tunnel, whether or not the function has one.
    let sent = compile("in_port(f1),eth_type(0x0800)", "f2").unwrap();
    assert_eq!((sent.key.in_port(), sent.mask.in_port(), sent.key.remote(), sent.key.domain(), sent.mask.domain(), sent.class, sent.action.number()), (9, 0xff, 0, 2, 0xfff, Some(2), 10));
    let plain = compile("in_port(f0),eth_type(0x0800)", "f2").unwrap();
    assert_eq!((plain.key.domain(), plain.mask.domain()), (0, 0xfff));
    let joined = Book { leaders: [(2, 1)].into(), ..book() };
    let joined = joined.compile(&parse::flow("in_port(f2),eth_type(0x0800)", "f1", &joined.names()).unwrap()).unwrap();
    assert_eq!(joined.key.domain(), 2, "the network is called by the function that it has joined");
    assert!(compile("in_port(1),eth_type(0x86dd),ipv6(proto=6)", "8").unwrap().v6);
}

/// What a flow sets in frames for a function; MAC addresses have no line yet.
#[test]
fn changes_are_part_of_the_action() {
    let routed =
        compile("in_port(f1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),ipv4(ttl=64,frag=no)", "set(eth(src=02:00:00:00:00:0a,dst=02:00:00:00:00:0b)),set(ipv4(ttl=63)),f2");
    let routed = routed.unwrap();
    assert_eq!(routed.macs, Some([[2, 0, 0, 0, 0, 0xb], [2, 0, 0, 0, 0, 0xa]]));
    assert_eq!((routed.action.rewrite(), routed.action.dec_ttl(), routed.action.kind(), routed.action.number()), (0, true, destination::PORT, 10));
    let tagged = compile("in_port(uplink),eth_type(0x8100),vlan(vid=7,pcp=1),encap(eth_type(0x0800))", "pop_vlan,push_vlan(vid=9,pcp=1),f1").unwrap();
    assert_eq!((tagged.macs, tagged.action.tag_op(), tagged.action.tag() & 0xfff), (None, tag_op::SET, 9));
    let marked = compile("in_port(uplink),eth_type(0x0800),ipv4(tos=0/0xfc,frag=no)", "set(ipv4(tos=0x28/0xfc)),f1").unwrap();
    assert_eq!((marked.action.write_dscp(), marked.action.dscp()), (true, 10));
    // Out by the wire nothing changes.
    assert_eq!(compile("in_port(f1),eth_type(0x0800),ipv4(tos=0/0xfc,frag=no)", "set(ipv4(tos=0x28/0xfc)),uplink").unwrap_err(), Refusal::Unable);
}

#[test]
fn what_the_card_cannot_do_is_refused() {
    let refused = |matches: &str, actions: &str| compile(matches, actions).unwrap_err();
    assert!(compile("in_port(f1),eth_type(0x0800)", "uplink").is_ok());
    assert_eq!(refused("in_port(f1),eth_type(0x0800)", "push_vlan(vid=5,pcp=0),uplink"), Refusal::Unable);
    assert_eq!(refused("in_port(f1),eth_type(0x0800)", "f2,uplink"), Refusal::Unable);
    assert_eq!(refused(&format!("in_port(uplink),{HOST}"), "push_vlan(vid=5,pcp=0),f1"), Refusal::Unable);
    assert_eq!(refused(&format!("in_port(uplink),{HOST}"), "f1,f2"), Refusal::Unable);
    assert!(matches!(refused(&format!("in_port(uplink),{HOST}"), "40"), Refusal::Port(40) | Refusal::Tables(_)));
    let through = |rest: &str| format!("tunnel({rest},ttl=0/0),in_port(vxlan),{HOST}");
    assert_eq!(refused(&through("tun_id=0x65,dst=10.1.0.1"), "f1"), Refusal::Tunnel);
    assert_eq!(refused(&through("tun_id=0x64,dst=10.1.0.9"), "f1"), Refusal::Tunnel);
    assert_eq!(refused(&through("tun_id=0x64,src=10.1.0.9"), "f1"), Refusal::Tunnel);
    assert_eq!(refused(&through("tun_id=0x12c,src=10.1.0.3"), "f1"), Refusal::AnyRemote);
    assert!(compile(&through("tun_id=0x12c"), "f1").is_ok());
    assert!(refused("in_port(uplink),eth_type(0x0800),ct_state(+trk)", "f1").to_string().contains("ct_state"));
}

#[test]
fn one_match_is_one_flow() {
    let mut book = book();
    let flow = |text: &str| parse::flow(text, "f1", &book.names()).unwrap();
    let (first, again) = (flow(&format!("in_port(uplink),{HOST}")), flow(&format!("in_port(1),{HOST}")));
    let entry = book.entry(first).unwrap();
    book.flows.insert(7, entry);
    assert_eq!(book.entry(again).unwrap_err(), Refusal::Same(7));
    assert_eq!(book.speaks_of(1), None);
    let inside = parse::flow(&format!("tunnel(tun_id=0x64,ttl=0/0),in_port(vxlan),{HOST}"), "f1", &book.names()).unwrap();
    book.flows.insert(8, book.entry(inside).unwrap());
    assert_eq!(book.speaks_of(1), Some(format!("flow {}", ufid(8))));
    let sent = parse::flow("in_port(f2),eth_type(0x0800)", "f1", &book.names()).unwrap();
    assert_eq!(book.speaks_of(2), None);
    let mut other = book.clone();
    other.flows.insert(9, other.entry(sent).unwrap());
    assert_eq!(other.speaks_of(2), Some(format!("flow {}", ufid(9))), "a rule about what it sends would be the next network's");
    book.stations.insert((3, [2, 0, 0, 0, 9, 9]), 10);
    assert_eq!(book.speaks_of(2), Some("the station 02:00:00:00:09:09".into()));
}

#[test]
fn ufids_are_read_again() {
    for n in [0, 1, 0xabcd, (1 << 48) - 1] {
        assert_eq!((id(&ufid(n)), id(&n.to_string())), (Ok(n), Ok(n)));
    }
    assert!(id("ufid:12345678-0000-0000-0000-000000000001").is_err() && id("x").is_err());
}

#[test]
fn frames_are_traced() {
    let mut book = book();
    let flow = parse::flow(&format!("in_port(uplink),{HOST}"), "f1", &book.names()).unwrap();
    book.flows.insert(5, book.entry(flow).unwrap());
    book.stations.insert((0, [2, 0, 0, 0, 1, 9]), 10);
    // UDP from 192.168.7.9 to 192.168.7.8, to 02:00:00:00:01:09.
    let packet = "020000000109 020000000108 0800 4500001c000000004011 eb7f c0a80709 c0a80708 0001 0007 0008 0000";
    let mut frame = trace::frame(packet).unwrap();
    let port = FlowPort { drop_miss: true, bridge: true, ..Default::default() };
    let says = |port: Option<&FlowPort>, frame: &[u8], words: &[&str]| {
        let text = trace::run(&book, port, None, frame);
        words.iter().for_each(|words| assert!(text.contains(words), "`{words}`: {text}"));
    };
    says(None, &frame, &["through no tunnel", "frames pass"]);
    says(Some(&port), &frame, &["packet class 2 (IPv4)", &ufid(5), "actions:9", "to function 1"]);
    frame[33] = 7;
    says(Some(&port), &frame, &["its station is function 2", "to function 2"]);
    says(Some(&FlowPort { bridge: false, ..port }), &frame, &["no flow knows it", "dropped: Miss"]);
    says(Some(&FlowPort::default()), &frame, &["to software"]);
    // The same from function 0, which has no tunnel, and of which no flow speaks; from function 1, in whose network there is no station.
    let sent = |from: u16| trace::run(&book, Some(&port), Some(from), &frame);
    assert!(sent(0).contains("bridge domain 0") && sent(0).contains("its station is function 2"), "{}", sent(0));
    assert!(sent(1).contains("bridge domain 2") && sent(1).contains("dropped: Miss") && sent(9).contains("there is no function 9"), "{}", sent(1));
    // The same inside a tunnel of function 2, whose network has no station; and one of a network that there is not.
    let inner = trace::frame(packet).unwrap();
    let outer = |vni: u8| {
        let length = (36 + inner.len()) as u16;
        let head = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0][..], &(length).to_be_bytes(), &[0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 1, 0, 1]].concat();
        let udp = [&[0xc0, 0, 0x12, 0xb5][..], &(length - 20).to_be_bytes(), &[0, 0, 8, 0, 0, 0, 0, 0, vni, 0]].concat();
        let mut all = [head, udp, inner.clone()].concat();
        let sum = all[14..34].chunks(2).map(|b| u32::from(u16::from_be_bytes([b[0], b[1]]))).sum::<u32>();
        all[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
        all
    };
    says(Some(&port), &outer(200), &["through the tunnel of function 2, VNI 200: bridge domain 3", "no flow and no station knows it", "dropped: Miss"]);
    says(Some(&port), &outer(77), &["VniUnknown"]);
    // From function 2 in its network.
    let flow = parse::flow(&format!("in_port(f2),{HOST}"), "f0", &book.names()).unwrap();
    book.flows.insert(6, book.entry(flow).unwrap());
    let sent = |port: Option<&FlowPort>| trace::run(&book, port, Some(2), &inner);
    for words in ["bridge domain 3", &ufid(6), "actions:8", "to function 0"] {
        assert!(sent(Some(&port)).contains(words), "`{words}`: {}", sent(Some(&port)));
    }
    assert!(sent(None).contains("frames pass"));
    // What leaves is asked about.
    let egress = FlowPort { egress: true, ..port };
    assert!(sent(Some(&port)).contains("to the wire unasked") && !sent(Some(&port)).contains("by the wire:"));
    assert!(sent(Some(&egress)).contains("by the wire: it does not leave, and comes in again"), "{}", sent(Some(&egress)));
    let flow = parse::flow("in_port(f2),eth_type(0x0800),ipv4(dst=192.168.7.9,frag=no)", "uplink", &book.names()).unwrap();
    book.flows.insert(7, book.entry(flow).unwrap());
    let mut other = inner.clone();
    let of = |frame: &[u8]| trace::run(&book, Some(&egress), Some(2), frame);
    other[33] = 9;
    assert!(of(&other).contains("by the wire: it leaves"), "{}", of(&other));
    other[33] = 10;
    assert!(of(&other).contains("by the wire: dropped: Miss"), "{}", of(&other));
    assert!(trace::run(&book, Some(&egress), None, &frame).lines().all(|line| !line.starts_with("by the wire")));
    assert!(trace::frame("abc").is_err() && trace::frame("zz").is_err());
}
