//! The flow switch's model: flows of any text, and frames of any bytes through whatever could be installed of them. What was read is written so that it reads the same again, what the tables refuse leaves
//! them as they were, and every frame comes to an end that counts.
use arbitrary::{Arbitrary, Unstructured};
use ferric_model::switch::flow::parse;
use ferric_model::switch::install::{Room, TunnelPort};
use ferric_model::switch::tables::{Endpoint, EndpointKind, InnerTag, Member, Port, PortKind, Station};
use ferric_model::switch::Switch;

/// Ports: an uplink, functions, and one that there is not.
const PORTS: [u8; 5] = [1, 8, 9, 10, 77];
/// The number of the tunnel in the texts.
const TUNNEL: u32 = 4789;
/// Where it ends, and whose it is.
const LOCAL: u128 = 0x0a01_0001;
const VNI: u32 = 100;
const DOMAIN: u16 = 5;
/// Parts of flows, so that not every text is refused at its first character.
const MATCHES: [&str; 20] = [
    "in_port(8)",
    "in_port(1)",
    "in_port(4789)",
    "eth(dst=02:00:00:00:01:09)",
    "eth(src=02:00:00:00:01:08/ff:ff:00:00:00:00,dst=02:00:00:00:01:09)",
    "eth_type(0x0800)",
    "eth_type(0x86dd)",
    "eth_type(0x0806)",
    "eth_type(0x8100),vlan(vid=5,pcp=0),encap(",
    ")",
    "ipv4(src=10.0.0.0/255.0.0.0,frag=no)",
    "ipv4(dst=10.0.0.9,proto=17,tos=0x2/0x3,ttl=64,frag=later)",
    "ipv6(src=fd00::1/ffff::,proto=6)",
    "tcp(dst=80),tcp_flags(+syn-ack)",
    "udp(src=1/0xff,dst=4791)",
    "icmp(type=8,code=0)",
    "arp(sip=10.0.0.1,tip=10.0.0.2,op=1)",
    "tunnel(tun_id=0x64,src=10.1.0.2,dst=10.1.0.1,tos=0/0,ttl=0,flags(-df-csum+key))",
    "ct_state(+est)",
    "recirc_id(0)",
];
/// The first of them say where frames come from.
const ORIGINS: usize = 3;
const STEPS: [&str; 18] = [
    "drop",
    "8",
    "9",
    "10",
    "1",
    "push_vlan(vid=7,pcp=3)",
    "pop_vlan",
    "set(eth(src=02:00:00:00:01:08,dst=02:00:00:00:01:09))",
    "set(ipv4(ttl=63))",
    "set(ipv4(tos=0x2/0x3))",
    "set(ipv4(tos=0x28))",
    "trunc(64)",
    "meter(1)",
    "sample(sample=25.0%,actions(userspace(pid=0)))",
    "clone(9)",
    "userspace(pid=1,controller)",
    "ct(commit)",
    "tnl_push(tnl_port(4789),header(size=50,type=4,eth(dst=06:00:00:00:00:02,src=06:00:00:00:00:01,dl_type=0x0800),ipv4(src=10.1.0.1,dst=10.1.0.2,proto=17,tos=0,ttl=64,frag=0x4000),udp(src=0,dst=4789,csum=0x0),vxlan(flags=0x8000000,vni=0x64)),out_port(1))",
];

#[derive(Arbitrary, Debug)]
enum Step {
    /// Any text.
    Text { matches: String, steps: String },
    /// A line of a dump, with any text in it.
    Line(String),
    /// Parts in any order, and one character that is another one.
    Parts { matches: Vec<u8>, steps: Vec<u8>, spoil: Option<(u8, u8)>, rule: bool },
    /// Any frame.
    Frame { port: u8, bytes: Vec<u8> },
    /// A frame that has a meaning as far as the bytes let it.
    Made { port: u8, nest: bool, tags: u8, v6: bool, proto: u8, ports: [u16; 2], spoil: Option<(u8, u8)>, more: Vec<u8> },
    /// The next generation's tables count.
    Turn(u8),
}

/// A switch with an uplink, three functions, a tunnel and a group.
fn switch() -> Switch {
    let mut s = Switch::default();
    for number in [1, 8, 9, 10] {
        let kind = if number < 8 { PortKind::Uplink } else { PortKind::Function };
        let port = Port {
            kind,
            macs: vec![0x0200_0000_0100 | u64::from(number)],
            function: u16::from(number).saturating_sub(8),
            domain: DOMAIN,
            bridge: number == 10,
            verify: number == 9,
            ..Default::default()
        };
        s.tables.ports.insert(number, port);
    }
    s.tables.endpoints.push(Endpoint {
        v6: false,
        ip: LOCAL,
        udp_port: 4789,
        kind: EndpointKind::Vxlan,
        lenient: false,
        zero_csum6: false,
        any_remote: true,
        unknown_to_software: false,
        option: None,
    });
    s.tables.vnis.insert((0, VNI), (DOMAIN, InnerTag::default()));
    s.tables.outbound.fdb.insert((DOMAIN, 0x0200_0000_0109, 0), Station::Port(9));
    s.tables.outbound.floods.insert(DOMAIN, 0);
    s.tables.groups.push(vec![Member { port: 8, encap: 0 }, Member { port: 1, encap: 0 }]);
    s
}

fn flow(s: &mut Switch, met: &mut Met, matches: &str, steps: &str, room: Room) {
    let Ok(flow) = parse::flow(matches, steps, &Default::default()) else { return };
    met.read += 1;
    let written = flow.to_string();
    let again = parse::dump_line(&written, &Default::default());
    assert_eq!(again.as_ref(), Ok(&flow), "what was read is written as it was: {written}");
    let entries = |s: &Switch| [&s.tables.inbound, &s.tables.outbound].map(|d| (d.exact.len(), d.tcam.len()));
    let before = entries(s);
    match s.install(&flow, room, &[TunnelPort { number: TUNNEL, endpoint: 0 }]) {
        Ok(_) => met.installed += 1,
        Err(_) => assert_eq!(entries(s), before, "what is refused is nowhere"),
    }
}

fn receive(s: &mut Switch, met: &mut Met, port: u8, frame: &[u8]) {
    let number = PORTS[usize::from(port) % PORTS.len()];
    let before = s.counters.get(&number).map_or(0, |c| c.received);
    let out = s.receive(number, frame);
    met.frames += 1;
    met.sent += out.sent.len();
    let c = &s.counters[&number];
    assert_eq!(c.received, before + 1);
    assert!(!out.sent.is_empty() || !out.software.is_empty() || !out.dropped.is_empty(), "a frame comes to an end");
    let ends = c.delivered + c.software + c.drops.values().sum::<u64>();
    assert_eq!(c.received + c.copies, ends, "frames and copies end once each");
}

fn spoiled(mut bytes: Vec<u8>, spoil: Option<(u8, u8)>) -> Vec<u8> {
    if let Some((at, value)) = spoil.filter(|_| !bytes.is_empty()) {
        let at = usize::from(at) % bytes.len();
        bytes[at] = value;
    }
    bytes
}

fn made(nest: bool, tags: u8, v6: bool, proto: u8, ports: [u16; 2], more: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 1, 9, 2, 0, 0, 0, 1, 8];
    (0..tags % 4).for_each(|n| frame.extend([if n == 0 { 0x81 } else { 0x88 }, if n == 0 { 0 } else { 0xa8 }, 0, 5]));
    let length = (more.len() + 8) as u16;
    let mut l4 = [ports[0].to_be_bytes(), ports[1].to_be_bytes(), length.to_be_bytes(), [0; 2]].concat();
    l4.extend(more);
    if v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((l4.len() as u16).to_be_bytes());
        frame.extend([proto, 64]);
        frame.extend([0xfd; 32]);
    } else {
        frame.extend([8, 0, 0x45, 2]);
        frame.extend((20 + l4.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, proto, 0, 0, 10, 0, 0, 8, 10, 0, 0, 9]);
    }
    frame.extend(l4);
    if !nest {
        return frame;
    }
    let mut outer = vec![2, 0, 0, 0, 1, 1, 6, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    outer.extend((36 + frame.len() as u16).to_be_bytes());
    outer.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 1, 0, 1, 0xc0, 0, 0x12, 0xb5]);
    outer.extend((16 + frame.len() as u16).to_be_bytes());
    outer.extend([0, 0, 8, 0, 0, 0, 0, 0, VNI as u8, 0]);
    outer.extend(frame);
    outer
}

/// One input.
pub fn run(data: &[u8]) {
    _ = play(data);
}

/// How far inputs come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Flows that could be read.
    pub read: usize,
    /// Those of them that could be installed.
    pub installed: usize,
    /// Frames.
    pub frames: usize,
    /// Copies of frames that left by a port.
    pub sent: usize,
}

/// One input, and how far it came.
pub fn play(data: &[u8]) -> Met {
    let mut met = Met::default();
    let Ok(all) = Vec::<Step>::arbitrary_take_rest(Unstructured::new(data)) else { return met };
    let mut s = switch();
    for step in all.iter().take(64) {
        match step {
            Step::Text { matches, steps } => flow(&mut s, &mut met, matches, steps, Room::Any),
            Step::Line(line) => {
                if let Ok(flow) = parse::dump_line(line, &Default::default()) {
                    assert_eq!(parse::dump_line(&flow.to_string(), &Default::default()), Ok(flow));
                }
            }
            Step::Parts { matches, steps, spoil, rule } => {
                let join = |parts: &[u8], of: &[&str]| parts.iter().map(|n| of[usize::from(*n) % of.len()]).collect::<Vec<_>>().join(",");
                // A flow without a port it comes from goes nowhere.
                let origin = MATCHES[matches.len() % ORIGINS];
                let matches = spoiled([origin, &join(matches, &MATCHES)].join(",").into_bytes(), *spoil);
                flow(&mut s, &mut met, &String::from_utf8_lossy(&matches), &join(steps, &STEPS), if *rule { Room::Rule } else { Room::Any });
            }
            Step::Frame { port, bytes } => receive(&mut s, &mut met, *port, bytes),
            Step::Made { port, nest, tags, v6, proto, ports, spoil, more } => {
                let proto = [17, 6, 1, 58, *proto][usize::from(*proto) % 5];
                let frame = made(*nest, *tags, *v6, proto, *ports, &more[..more.len().min(1400)]);
                receive(&mut s, &mut met, *port, &spoiled(frame, *spoil));
            }
            Step::Turn(generation) => s.tables.generation = generation & 3,
        }
    }
    met
}
