use ferric_ovs::oracle::*;
use ferric_model::switch::{flow, install::*, Switch, tables::*};
fn main() {
    let dir = std::env::temp_dir().join(format!("ferric-ovs-{}", std::process::id()));
    let mut o = Oracle::start(&dir).unwrap();
    let key = "in_port(8),eth(dst=52:54:00:00:00:02),eth_type(0x0800),ipv4(src=192.168.7.0/255.255.255.0,frag=no)";
    let act = "push_vlan(vid=5,pcp=3),9";
    let f = flow::parse::flow(key, act, &Default::default()).unwrap();
    println!("{f}");
    let mut s = Switch::default();
    s.tables.ports.insert(8, Port::default());
    s.tables.ports.insert(9, Port::default());
    s.install(&f, Room::Any, &[]).unwrap();
    let hex = "5254000000025254000000010800450000280001400040060000c0a80705c0a80806003000500000000100000002501020000000000000000000";
    let frame: Vec<u8> = (0..hex.len()/2).map(|i| u8::from_str_radix(&hex[2*i..2*i+2], 16).unwrap()).collect();
    o.flows(&[(f.matches.to_string(), act.into())]).unwrap();
    let out = s.receive(8, &frame);
    let mut exp = Sent::new();
    for x in &out.sent { exp.entry(x.port).or_default().push(x.frame.clone()); }
    let t = std::time::Instant::now();
    let got = o.receive(8, &frame, &exp).unwrap();
    println!("{:?} {:?} equal {}", t.elapsed(), out, got == exp);
    println!("{got:?}");
}
