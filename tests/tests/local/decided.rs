//! Flow tables decide about what functions of the card send each other, too: the key names the port of the function that has sent a frame, and the bridge domain of its network.
use super::one_vni::{Bench, TYPE};
use super::*;
use ferric_abi::codes::SwitchCause;
use ferric_abi::context::EgressCounts;
use ferric_abi::csr::{FUNCTION_PORTS, WIRE_PORT};
use ferric_abi::switch::station::ALL_DOMAIN_BITS;
use ferric_abi::switch::{destination, tag_op, Action, Exception, FlowKey};
use ferric_driver::switch::{FlowPort, Packets, Station};
use ferric_tests::raw::Raw;

const WIRE: u8 = WIRE_PORT as u8;
/// The bridge domain of functions 1 and 2, which is called by the one that the other has joined.
const DOMAIN: u16 = 1 + 1;

fn port_of(function: u8) -> u8 {
    FUNCTION_PORTS as u8 + function
}

/// Tables in which a rule and its action have the same number.
struct Rules<'a> {
    host: &'a Host,
    tables: FlowTables,
    count: u16,
}

impl<'a> Rules<'a> {
    /// Nothing passes.
    fn closed(host: &'a Host) -> Self {
        let tables = FlowTables::open(&host.ctx).unwrap();
        tables.decide(&host.ctx, &FlowPort { drop_miss: true, ..Default::default() }).unwrap();
        Self { host, tables, count: 0 }
    }

    /// The rule of this number leads to that from now on.
    fn leads(&mut self, number: u16, action: Action) {
        self.tables.set_action(&self.host.ctx, number, Some(&action)).unwrap();
    }

    /// What comes from that port, in that domain if one is given, goes to the function, or is dropped.
    fn rule(&mut self, from: u8, domain: Option<u16>, to: Option<u8>) {
        let key = FlowKey::default().with_in_port(from).with_domain(domain.unwrap_or(0));
        let mask = FlowKey::default().with_in_port(0xff).with_domain(domain.map_or(0, |_| ALL_DOMAIN_BITS));
        let action = match to {
            Some(function) => Action::default().with_kind(destination::PORT).with_number(port_of(function).into()),
            None => Action::default().with_kind(destination::DROP),
        };
        self.leads(self.count, action);
        self.tables.set_rule(&self.host.ctx, self.count.into(), Packets::Others, [&key, &mask], self.count, 0).unwrap();
        self.count += 1;
    }
}

fn functions_at(width: usize) {
    let b = Bench::of(pair_of(width, 4));
    let host = &b.pair.hosts[0];
    let mut inside = b.talk([(0, 1), (0, 2)]);
    let mut alone = b.talk([(0, 3), (0, 3)]);
    let mut outside = b.talk([(0, 1), (1, 1)]);
    [&mut inside, &mut alone, &mut outside].into_iter().for_each(|talk| talk.talk(&b.pair));
    // A miss is a miss, wherever it comes from.
    let mut rules = Rules::closed(host);
    let before = (host.ctx.flow_counts().unwrap().miss(), left(&b.pair));
    inside.say();
    inside.is_unheard(&b.pair);
    assert!(host.ctx.flow_counts().unwrap().miss() > before.0);
    assert_eq!(left(&b.pair), before.1, "what is for a function of the card does not leave it");
    // One way is not enough, the other way too is; what comes by the tunnel has another port, and function 3 another domain.
    rules.rule(port_of(1), Some(DOMAIN), Some(2));
    b.pair.world().run(SETTLED);
    assert!(inside.cqs[0].poll().is_none(), "what function 2 answers does not come");
    rules.rule(port_of(2), Some(DOMAIN), Some(1));
    inside.heard(&b.pair);
    inside.talk(&b.pair);
    [&mut alone, &mut outside].into_iter().for_each(|talk| talk.say());
    alone.is_unheard(&b.pair);
    assert!(outside.cqs[0].poll().is_none(), "the other card has got what function 1 has sent");
    rules.rule(port_of(3), Some(DOMAIN), Some(3));
    alone.is_unheard(&b.pair);
    rules.rule(port_of(3), Some(3 + 1), Some(3));
    rules.rule(WIRE, Some(DOMAIN), Some(1));
    alone.heard(&b.pair);
    outside.heard(&b.pair);
    // Whoever has no tunnel is of domain 0, and the rule that is about the port alone is about it, too.
    let mut plain = Talk::new([host, host]);
    plain.say();
    plain.is_unheard(&b.pair);
    rules.rule(port_of(0), None, Some(0));
    plain.heard(&b.pair);
    // As before when the tables do not decide any more.
    host.ctx.set_flow_port(None).unwrap();
    [&mut inside, &mut alone, &mut outside, &mut plain].into_iter().for_each(|talk| talk.talk(&b.pair));
    assert_eq!(b.pair.iommu_faults(), 0);
}

#[test]
fn tables_decide_between_functions() {
    functions_at(512);
}

#[test]
fn tables_decide_between_functions_w64() {
    functions_at(64);
}

/// Frames to all of a network: the wire gets its own whatever the tables say, a function of the card the one that they give it, and its sender not if it is for nobody.
#[test]
fn tables_decide_about_copies() {
    let b = Bench::of(pair_of(64, 4));
    let host = &b.pair.hosts[0];
    let ends = [(0, 1), (0, 2), (0, 3), (1, 1)];
    let mut raws: Vec<Raw> = ends.iter().map(|(card, f)| raw(b.host(*card, *f)).unwrap().listening()).collect();
    let mut hears = |n: u8| {
        raws[0].send(&b.pair, &[&[0xff; 6][..], &Bench::name_of(&b.pair, 0, 1).0 .0, &TYPE, &[n; 200]].concat());
        b.pair.world().run(SETTLED);
        let heard: Vec<usize> = raws.iter_mut().map(|raw| raw.heard().iter().filter(|got| got[12..14] == TYPE).count()).collect();
        heard
    };
    assert_eq!(hears(1), [0, 1, 0, 1]);
    let mut rules = Rules::closed(host);
    assert_eq!(hears(2), [0, 0, 0, 1]);
    rules.rule(port_of(2), None, Some(1));
    rules.rule(WIRE, None, Some(1));
    assert_eq!(hears(3), [0, 0, 0, 1], "rules about others");
    rules.rule(port_of(1), Some(DOMAIN), Some(2));
    assert_eq!(hears(4), [0, 1, 0, 1]);
    host.ctx.set_flow_port(None).unwrap();
    assert_eq!(hears(5), [0, 1, 0, 1]);
}

/// What leaves by the wire is asked about if function 0's software says so, raw frames, RoCE and acknowledges: it leaves only if its action is the wire.
#[test]
fn tables_decide_about_what_leaves() {
    let b = Bench::of(pair_of(64, 4));
    let host = &b.pair.hosts[0];
    let ends = [(0, 1), (0, 2), (1, 1)];
    let mut raws: Vec<Raw> = ends.iter().map(|(card, f)| raw(b.host(*card, *f)).unwrap().listening()).collect();
    let [own, near, far] = [(0, 1), (0, 2), (1, 1)].map(|(card, f)| Bench::name_of(&b.pair, card, f).0 .0);
    let mut hears = |to: [u8; 6], n: u8| {
        raws[0].send(&b.pair, &[&to[..], &own, &TYPE, &[n; 200]].concat());
        b.pair.world().run(SETTLED);
        raws[1..].iter_mut().map(|raw| raw.heard().iter().filter(|got| got[12..15] == [TYPE[0], TYPE[1], n]).count()).collect::<Vec<_>>()
    };
    let counts = || host.ctx.egress_counts(1).unwrap();
    let mut rules = Rules::closed(host);
    assert_eq!(hears(far, 1), [0, 1], "nobody is asked");
    let egress = FlowPort { drop_miss: true, egress: true, ..Default::default() };
    rules.tables.decide(&host.ctx, &egress).unwrap();
    assert_eq!((hears(far, 2), counts().miss(), counts().left()), (vec![0, 0], 1, 0));
    // To a function of the card the same rules lead as before.
    rules.rule(port_of(1), Some(DOMAIN), Some(2));
    assert_eq!((hears(near, 3), hears(far, 4), counts().elsewhere()), (vec![1, 0], vec![0, 0], 1));
    assert_eq!(hears([0xff; 6], 5), [1, 0]);
    // One action for the wire and the copies on the card, for the key is one.
    let wire = Action::default().with_kind(destination::UPLINK).with_number(WIRE.into()).with_count(true);
    rules.leads(0, wire);
    let software = || host.ctx.flow_counts().unwrap().unable();
    assert_eq!((hears(far, 6), hears(near, 7), software()), (vec![0, 1], vec![0, 0], 1));
    assert_eq!((hears([0xff; 6], 8), software(), counts().left()), (vec![0, 1], 2, 2));
    let used = rules.tables.used(&host.ctx, 0).unwrap();
    assert_eq!((used.packets(), used.bytes()), (4, 4 * 214));
    rules.leads(0, wire.with_tag_op(tag_op::PUSH));
    assert_eq!((hears(far, 9), counts().elsewhere()), (vec![0, 0], 3));
    // RoCE and its acknowledges are what the function sends, too.
    rules.leads(0, wire);
    rules.rule(WIRE, Some(DOMAIN), Some(1));
    let mut talk = b.talk([(0, 1), (1, 1)]);
    talk.talk(&b.pair);
    rules.leads(0, wire.with_no_roce(true));
    let (left, denied) = (counts().left(), counts().roce_denied());
    talk.say();
    b.pair.world().run(SETTLED);
    assert!(talk.cqs[1].poll().is_none(), "the other side gets neither messages nor acknowledges");
    assert!(counts().left() == left && counts().roce_denied() > denied && denied == 0);
    rules.leads(0, wire);
    talk.heard(&b.pair);
    // What other functions send is asked about under their own ports.
    assert!(host.ctx.egress_counts(2).unwrap() == EgressCounts::default());
    host.ctx.set_flow_port(None).unwrap();
    let before = counts();
    assert_eq!((hears(far, 10), hears([0xff; 6], 11)), (vec![0, 1], vec![1, 1]));
    talk.talk(&b.pair);
    assert_eq!((counts(), b.pair.iommu_faults()), (before, 0));
}

/// What is to leave, and is neither for the wire as it is nor dropped, comes in again: for a function of the card, or for software, which hears where from and why. Each action counts each frame once.
#[test]
fn what_does_not_leave_comes_in_again() {
    let b = Bench::of(pair_of(64, 4));
    let host = &b.pair.hosts[0];
    let ends = [(0, 1), (0, 2), (1, 1), (0, 0)];
    let mut raws: Vec<Raw> = ends.iter().map(|(card, f)| raw(b.host(*card, *f)).unwrap().listening()).collect();
    host.ctx.set_promiscuous_queue(&raws[3].qp).unwrap();
    let [own, near, far] = [(0, 1), (0, 2), (1, 1)].map(|(card, f)| Bench::name_of(&b.pair, card, f).0 .0);
    // A frame that one of the functions sends: whether function 2 and the other card hear it, and what software is told with it.
    let mut hears = |from: usize, to: [u8; 6], n: u8| {
        raws[from].send(&b.pair, &[&to[..], if from == 0 { &own } else { &far }, &TYPE, &[n; 200]].concat());
        b.pair.world().run(SETTLED);
        let is = |frame: &[u8]| frame[12..15] == [TYPE[0], TYPE[1], n];
        let heard = [1, 2].map(|r: usize| raws[r].heard().iter().filter(|frame| is(frame)).count());
        let told: Vec<_> = raws[3].told().into_iter().filter(|(frame, _)| is(frame)).map(|(frame, why)| (frame[..6] == to && frame.len() == 214, why)).collect();
        (heard, told)
    };
    let told = |port: u8, cause: SwitchCause, unable: bool, remote: u16| vec![(true, Some(Exception::default().with_port(port).with_cause(cause as u8).with_unable(unable).with_remote(remote)))];
    let counts = || host.ctx.egress_counts(1).unwrap();
    let mut rules = Rules::closed(host);
    // Without `egress` nobody is asked.
    assert_eq!(hears(0, far, 1), ([0, 1], vec![]));
    rules.tables.decide(&host.ctx, &FlowPort { egress: true, ..Default::default() }).unwrap();
    assert_eq!(hears(0, far, 2), ([0, 0], told(port_of(1), SwitchCause::None, false, 0)));
    // Off the wire, through the tunnel of the network that is called 1.
    assert_eq!(hears(2, own, 3), ([0, 0], told(WIRE, SwitchCause::None, false, DOMAIN)));
    assert_eq!((counts().software(), host.ctx.flow_counts().unwrap().software()), (1, 2));
    // For software by the action, or because the card cannot do what it says.
    rules.rule(port_of(1), Some(DOMAIN), None);
    let of = |kind, number: u8| Action::default().with_kind(kind).with_number(number.into()).with_count(true);
    assert_eq!(hears(0, far, 4), ([0, 0], vec![]), "dropped");
    rules.leads(0, of(destination::EXCEPTION, 0));
    assert_eq!(hears(0, far, 5), ([0, 0], told(port_of(1), SwitchCause::None, false, 0)));
    // To a group it is one frame for software, whose copy for functions of the card it is.
    assert_eq!(hears(0, [0xff; 6], 6), ([0, 0], told(port_of(1), SwitchCause::None, false, 0)));
    rules.leads(0, of(destination::UPLINK, WIRE).with_tag_op(tag_op::PUSH));
    assert_eq!(hears(0, far, 7), ([0, 0], told(port_of(1), SwitchCause::None, true, 0)));
    // For a function of the card, at its address.
    let line = rules.tables.rewrite(&host.ctx, [Mac(near), Mac(own)]).unwrap();
    rules.leads(0, of(destination::PORT, port_of(2)).with_rewrite(line));
    assert_eq!(hears(0, far, 8), ([1, 0], vec![]));
    rules.leads(0, of(destination::UPLINK, WIRE));
    assert_eq!(hears(0, far, 9), ([0, 1], vec![]));
    let used = rules.tables.used(&host.ctx, 0).unwrap();
    assert_eq!((used.packets(), used.bytes()), (6, 6 * 214), "that to a group is two: the wire's, and the copy");
    assert_eq!((counts().left(), counts().software(), counts().elsewhere(), counts().acl(), counts().miss()), (1, 3, 2, 1, 0));
    // RoCE is for no raw queue pair: what software would get is dropped.
    rules.rule(WIRE, Some(DOMAIN), Some(1));
    let before = host.ctx.flow_counts().unwrap().exception_no_queue();
    rules.leads(0, of(destination::EXCEPTION, 0));
    let mut talk = b.talk([(0, 1), (1, 1)]);
    talk.say();
    b.pair.world().run(SETTLED);
    assert!(talk.cqs[1].poll().is_none() && counts().software() > 3);
    assert_eq!(host.ctx.flow_counts().unwrap().exception_no_queue(), before);
    assert_eq!(b.pair.iommu_faults(), 0);
}

/// What software is shown of a tenant's network is for function 0's raw queue pair alone: its IP address answers nobody there, and its searches believe nobody there. Its own network it answers as ever.
#[test]
fn function_0_answers_nobody_whose_frames_it_is_shown() {
    let b = Bench::of(pair_of(64, 4));
    let host = &b.pair.hosts[0];
    let ends = [(0, 1), (1, 1), (1, 0), (0, 0)];
    let mut raws: Vec<Raw> = ends.iter().map(|(card, f)| raw(b.host(*card, *f)).unwrap().listening()).collect();
    host.ctx.set_promiscuous_queue(&raws[3].qp).unwrap();
    let rules = Rules::closed(host);
    rules.tables.decide(&host.ctx, &FlowPort { egress: true, ..Default::default() }).unwrap();
    let IpAddr::V4(ip) = host.ip(false) else { panic!("it is IPv4") };
    let own = ip.octets();
    // Who asks, whom, for which address: how many answers function 0 gave, and what it was shown.
    let mut asks = |who: usize, to: [u8; 6], ip: [u8; 4]| {
        let (card, f) = ends[who];
        let mac = b.host(card, f).mac().0;
        let frame = [&to[..], &mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &mac, &[10, 0, 9, 9], &[0; 6], &ip, &[0; 18]].concat();
        let answers = count(&b.pair, "echo.echo_arp");
        raws[who].send(&b.pair, &frame);
        b.pair.world().run(SETTLED);
        let told: Vec<_> = raws[3].told().into_iter().filter(|(got, _)| *got == frame).map(|(_, why)| why.map(|why| (why.port(), why.remote()))).collect();
        (count(&b.pair, "echo.echo_arp") - answers, told)
    };
    let everybody = [0xff; 6];
    for to in [host.mac().0, everybody] {
        assert_eq!(asks(0, to, own), (0, vec![Some((port_of(1), 0))]), "a function, {to:x?}");
        assert_eq!(asks(1, to, own), (0, vec![Some((WIRE, DOMAIN))]), "through its tunnel, {to:x?}");
        assert_eq!(asks(2, to, own), (1, vec![]), "function 0 of the other card, {to:x?}");
    }
    assert_eq!(asks(2, everybody, [10, 0, 7, 7]), (0, vec![Some((WIRE, 0))]), "an address that is nobody's");
    assert_eq!(b.pair.iommu_faults(), 0);
}

/// Exact entries and stations lead from function to function as rules do, and to none of another network that has not the address there; what is for software, function 0's promiscuous raw queue pair gets.
#[test]
fn every_table_decides_between_functions() {
    /// Port class and packet class of the frames.
    const CLASSES: [u8; 2] = [0, 0];
    let b = Bench::of(pair_of(64, 4));
    let ctx = &b.pair.hosts[0].ctx;
    let mut raws = [0, 1, 2, 3].map(|f| raw(b.host(0, f)).unwrap().listening());
    ctx.set_promiscuous_queue(&raws[0].qp).unwrap();
    let [from, to] = [1, 2].map(|f| Bench::name_of(&b.pair, 0, f).0);
    let mut hears = |n: u8| {
        raws[1].send(&b.pair, &[&to.0[..], &from.0, &TYPE, &[n; 200]].concat());
        b.pair.world().run(SETTLED);
        raws.each_mut().map(|raw| raw.heard().iter().filter(|got| got[12..15] == [TYPE[0], TYPE[1], n]).count())
    };
    let [nobody, software, second] = [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]];
    assert_eq!(hears(1), second);
    let mut tables = Rules::closed(&b.pair.hosts[0]).tables;
    let kinds = [(destination::PORT, port_of(2)), (destination::PORT, port_of(3)), (destination::EXCEPTION, 0), (destination::DROP, 0)];
    for (line, (kind, number)) in kinds.into_iter().enumerate() {
        tables.set_action(ctx, line as u16, Some(&Action::default().with_kind(kind).with_number(number.into()))).unwrap();
    }
    let key = |port: u8| FlowKey::default().with_in_port(port).with_domain(DOMAIN).with_dmac(u64::from_be_bytes(std::array::from_fn(|i| if i < 2 { 0 } else { to.0[i - 2] })));
    tables.set_mask(ctx, 0, CLASSES[0], CLASSES[1], Some(&FlowKey::default().with_in_port(u8::MAX).with_domain(ALL_DOMAIN_BITS).with_dmac((1 << 48) - 1))).unwrap();
    [WIRE, port_of(2), port_of(0)].into_iter().for_each(|port| tables.insert(ctx, 0, CLASSES, &key(port), 0).unwrap());
    assert_eq!(hears(2), nobody, "entries of other ports");
    // Function 3, in another network, has no such address there.
    let strangers = count(&b.pair, "rx.rx_other_station");
    for (action, hear) in [(0, second), (1, nobody), (2, software), (3, nobody)] {
        tables.insert(ctx, 0, CLASSES, &key(port_of(1)), action).unwrap();
        assert_eq!(hears(3 + action as u8), hear);
    }
    assert_eq!(count(&b.pair, "rx.rx_other_station"), strangers + 1);
    assert!(tables.remove(ctx, 0, CLASSES, &key(port_of(1))).unwrap());
    // Stations of the sender's domain.
    tables.decide(ctx, &FlowPort { drop_miss: true, bridge: true, ..Default::default() }).unwrap();
    tables.set_station(ctx, 0, DOMAIN + 2, to, Station::Port(port_of(2))).unwrap();
    assert_eq!(hears(7), nobody, "a station of another domain");
    tables.set_station(ctx, 0, DOMAIN, to, Station::Port(port_of(2))).unwrap();
    assert_eq!(hears(8), second);
    tables.set_station(ctx, 0, DOMAIN, to, Station::Remote(0, WIRE)).unwrap();
    assert_eq!(hears(9), software, "behind a tunnel the card cannot go");
    // A miss for software.
    assert!(tables.remove_station(ctx, 0, DOMAIN, to).unwrap());
    tables.decide(ctx, &FlowPort::default()).unwrap();
    assert_eq!(hears(10), software);
}
