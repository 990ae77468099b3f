//! A whole card `switch`, and its peer, a functional twin: what the driver writes into the flow tables decides about received frames, RoCE and others, with tunnels and without, while they come.
#[path = "switch_flows/frames.rs"]
mod frames;
#[path = "switch_flows/senders.rs"]
mod senders;
#[path = "switch_flows/sets.rs"]
mod sets;
#[path = "switch_flows/stations.rs"]
mod stations;

use ferric_abi::codes::{AdminStatus, WrOpcode};
use ferric_abi::context::FlowCounts;
use ferric_abi::csr;
use ferric_abi::switch::station::ALL_DOMAIN_BITS;
use ferric_abi::switch::{destination, table, Action, FlowKey};
use ferric_driver::qp::{sge, Payload};
use ferric_driver::switch::place::Table;
use ferric_driver::switch::{FlowPort, FlowTables, Packets, Station};
use ferric_driver::types::{Mac, Mtu, QpType, RtrAttr, RtsAttr};
use ferric_driver::{Access, CompletionQueue, CqeStatus, Error, MemoryRegion, QpConfig, QueuePair, RecvRequest, SendRequest, TunnelConfig};
use ferric_hdl::card::counters;
use ferric_sim::timing::HostTiming;
use ferric_sim::{Body, CardConfig, WorldConfig};
use ferric_tests::pair::{Pair, Wire};
use ferric_tests::widths::widths;
use std::net::IpAddr;

/// Functions that talk.
const FUNCTIONS: usize = 2;
const PATIENCE: u64 = 400_000;
/// Cycles in which what was sent has come, or will not.
const SETTLED: u64 = 6_000;
/// Bytes of a message: several packets.
const LEN: usize = 3000;
/// Frames that the raw queue can hold, and bytes of one: a command of the driver takes less time than fifty of them. Those that were read may be filled again.
const BUFFERS: usize = 400;
const FRAME: usize = 512;
/// A host that answers soon. What tables decide does not depend on it, and a command, of which there are thousands here, waits for the host for a third of its time.
const NEAR: HostTiming = HostTiming { read_latency: 40, read_jitter: 20, write_latency: 10, interleave: false, stall_percent: 0, max_reads: 512, bytes_per_cycle: 0 };
/// A type that nobody knows.
const TYPE: u16 = 0x88b5;
const IPV4: u16 = 0x0800;
/// Packet classes: neither ARP nor IP, and IPv4.
const OTHERS: u8 = 0;
const V4: u8 = 2;
/// Port number of function 0.
const PORT_0: u16 = 8;
const ACL: u8 = destination::DROP;

/// A connection of each function, from card 0 to card 1, with its memory at both ends.
struct Talker {
    cqs: [CompletionQueue; 2],
    qps: [QueuePair; 2],
    from: MemoryRegion,
    to: MemoryRegion,
    /// Messages posted, and those of them that have come.
    said: u8,
    heard: u8,
}

struct Bench {
    pair: Pair,
    talkers: Vec<Talker>,
    tables: FlowTables,
    /// Functions whose talker was made with a driver that has left.
    void: Vec<usize>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What is void is not destroyed: a driver whose function has another one would wait for each answer until it gives up.
        for (f, talker) in self.talkers.drain(..).enumerate() {
            match self.void.contains(&f) {
                true => std::mem::forget(talker),
                false => drop(talker),
            }
        }
    }
}

impl Bench {
    /// Card 1, which receives, has the flow tables.
    fn new(width: usize) -> Self {
        Self::of(width, 1)
    }

    /// Card `card` has the flow tables that are looked at.
    fn of(width: usize, card: usize) -> Self {
        let cards = [0, 1].map(|at| match at == card {
            true => CardConfig { width, engines: "switch", host: NEAR, ..Default::default() },
            false => CardConfig { body: Body::Twin, width, engines: "vxlan", ..Default::default() },
        });
        let pair = Pair::with_functions(&WorldConfig { cards: cards.to_vec(), ..Default::default() }, FUNCTIONS as u8).unwrap();
        let talkers = (0..FUNCTIONS).map(|f| talker(&pair, f)).collect();
        let tables = FlowTables::open(&pair.hosts[card].ctx).unwrap();
        Self { pair, talkers, tables, void: Vec::new() }
    }

    /// A new driver on function `f` of card `card`.
    fn reopen(&mut self, card: usize, f: usize) {
        self.pair.reopen(card, f as u8).unwrap();
        self.void.push(f);
    }

    /// The action of a line of card 1, and the class's mask: type, domain, IP destination and source MAC address.
    fn actions(&mut self) {
        let ctx = &self.pair.hosts[1].ctx;
        let actions = [(destination::PORT, PORT_0), (destination::PORT, PORT_0 + 1), (ACL, 0), (destination::EXCEPTION, 0), (destination::GROUP, 1), (destination::PORT, PORT_0 + 60)];
        for (line, (kind, number)) in actions.into_iter().enumerate() {
            self.tables.set_action(ctx, line as u16, Some(&Action::default().with_kind(kind).with_number(number))).unwrap();
        }
        for generation in 0..4 {
            let mask = FlowKey::default().with_ethertype(u16::MAX).with_domain(ALL_DOMAIN_BITS).with_dst(u32::MAX.into()).with_smac(0xffff_ffff_ffff);
            self.tables.set_mask(ctx, generation, 0, OTHERS, Some(&mask)).unwrap();
            self.tables.set_mask(ctx, generation, 0, V4, Some(&mask.with_smac(0))).unwrap();
        }
    }

    fn insert(&mut self, generation: u8, packet: u8, key: &FlowKey, line: u16) {
        self.tables.insert(&self.pair.hosts[1].ctx, generation, [0, packet], key, line).unwrap();
    }

    /// What function `f` gets leads to an action.
    fn packets_of(&mut self, generation: u8, f: usize, domain: u16, line: u16) {
        let IpAddr::V4(ip) = self.pair.of(f)[1].ip(false) else { unreachable!("IPv4 was asked for") };
        self.insert(generation, V4, &FlowKey::default().with_ethertype(IPV4).with_dst(u32::from(ip).into()).with_domain(domain), line);
    }

    fn decide(&self, generation: u8, drop_miss: bool) {
        self.tables.decide(&self.pair.hosts[1].ctx, &FlowPort { drop_miss, generation, ..Default::default() }).unwrap();
    }

    /// Posts a WRITE of function `f`.
    fn say(&mut self, f: usize) {
        let t = &mut self.talkers[f];
        t.said += 1;
        t.from.write(0, &[t.said; LEN]);
        let sges = [sge(t.from.addr(), LEN as u32, t.from.lkey())];
        let (remote_addr, rkey) = (t.to.addr(), t.to.rkey());
        let request = SendRequest { wr_id: t.said.into(), opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr, rkey, imm: 0, signaled: true, solicited: false };
        t.qps[0].post_send(&request).unwrap();
    }

    /// A WRITE of function `f` arrives, and with it all that was lost before: the peer asks for that.
    fn heard(&mut self, f: usize) {
        self.say(f);
        let t = &mut self.talkers[f];
        while t.heard < t.said {
            let done = self.pair.wait(&mut t.cqs[0], PATIENCE).unwrap();
            t.heard += 1;
            assert_eq!((done.status, done.wr_id), (CqeStatus::Success, t.heard.into()));
        }
        assert_eq!(t.to.to_vec(0, LEN), vec![t.said; LEN]);
    }

    /// Nothing of it arrives. What is lost is not sent again by itself.
    fn not_heard(&mut self, f: usize) {
        self.say(f);
        self.pair.world().run(SETTLED);
        let t = &mut self.talkers[f];
        assert!(t.cqs[0].poll().is_none());
        assert_eq!(t.to.to_vec(0, LEN), vec![t.heard; LEN]);
    }

    /// What waits on card 1's wire has come in, and what becomes of it has happened.
    fn settle(&self) {
        settle(&self.pair);
    }

    fn counts(&self) -> FlowCounts {
        self.pair.hosts[1].ctx.flow_counts().unwrap()
    }

    fn counter(&self, name: &str) -> u64 {
        self.pair.hosts[1].ctx.counters(counters::index(name).expect(name) as u32, 1).unwrap()[0]
    }
}

fn settle(pair: &Pair) {
    while pair.world().cards[1].receive_backlog() > 0 {
        pair.world().run(SETTLED / 4);
    }
    pair.world().run(SETTLED);
}

fn talker(pair: &Pair, f: usize) -> Talker {
    let hosts = pair.of(f);
    let cqs = [0, 1].map(|card: usize| hosts[card].cq(64).unwrap());
    // What is lost is sent again only when the peer asks for it.
    let wire = Wire { timeout: 0, mtu: Mtu::M1024, ..Wire::default() };
    let qps = pair.connected_of(f, &QpConfig::default(), &wire, [&cqs[0], &cqs[1]]).unwrap();
    let [from, to] = [0, 1].map(|card: usize| hosts[card].region(LEN, Access::ALL).unwrap());
    Talker { cqs, qps, from, to, said: 0, heard: 0 }
}

/// Nothing but these is above zero.
fn moved(counts: &FlowCounts, names: &[&str]) {
    for (n, field) in FlowCounts::LAYOUT.fields.iter().enumerate() {
        let value = u64::from_le_bytes(counts.0[8 * n..8 * n + 8].try_into().expect("eight"));
        assert_eq!(value > 0, names.contains(&field.name), "{}: {value}", field.name);
    }
}

fn flows_are_told_apart_at(width: usize) {
    let mut b = Bench::new(width);
    // Nobody has decided anything: frames pass.
    (0..FUNCTIONS).for_each(|f| b.heard(f));
    moved(&b.counts(), &[]);
    // Function 0's packets pass, function 1's do not.
    b.actions();
    b.packets_of(1, 0, 0, 0);
    b.packets_of(1, 1, 0, 2);
    b.decide(1, true);
    b.heard(0);
    b.not_heard(1);
    moved(&b.counts(), &["port", "acl"]);
    // Changed on their way they are the same packets: nothing that changes is under their checksums, but IPv4's own. To another MAC address than its path's they are strangers to the queue pair.
    let ctx = b.pair.hosts[1].ctx.clone();
    let changed = Action::default().with_kind(destination::PORT).with_number(PORT_0).with_dec_ttl(true).with_write_dscp(true).with_dscp(46).with_count(true);
    b.packets_of(1, 0, 0, 31);
    for (to, is_heard) in [(Mac([2, 0, 0, 0, 0, 7]), false), (b.pair.of(0)[1].mac(), true)] {
        let macs = b.tables.rewrite(&ctx, [to, Mac([2, 0, 0, 0, 0, 8])]).unwrap();
        b.tables.set_action(&ctx, 31, Some(&changed.with_rewrite(macs))).unwrap();
        if is_heard {
            b.heard(0);
        } else {
            b.not_heard(0);
        }
    }
    assert!(b.tables.used(&ctx, 31).unwrap().packets() > 2);
    moved(&b.counts(), &["port", "acl"]);
    // The other way round. What function 1 has lost comes now.
    b.packets_of(2, 0, 0, 2);
    b.packets_of(2, 1, 0, 1);
    b.decide(2, true);
    b.heard(1);
    b.not_heard(0);
    moved(&b.counts(), &["port", "acl"]);
    // To the wrong function: its queue pair is not there.
    let foreign = b.pair.hosts[1].ctx.tunnel_counts().unwrap().wrong_function();
    b.packets_of(3, 0, 0, 1);
    b.decide(3, true);
    b.not_heard(0);
    assert!(b.pair.hosts[1].ctx.tunnel_counts().unwrap().wrong_function() > foreign);
    // To a function that there is not; to a group, which nobody can carry out, and to software, which has no queue for RoCE.
    b.packets_of(3, 0, 0, 5);
    b.not_heard(0);
    moved(&b.counts(), &["port", "acl", "port_down"]);
    b.packets_of(3, 0, 0, 4);
    b.not_heard(0);
    moved(&b.counts(), &["port", "acl", "port_down", "exception_no_queue"]);
    // An entry that leads nowhere.
    b.packets_of(3, 0, 0, 30);
    b.not_heard(0);
    moved(&b.counts(), &["port", "acl", "port_down", "exception_no_queue", "no_rule_room"]);
    // An action that refuses RoCE, then a wildcard rule for what has no entry.
    b.tables.set_action(&b.pair.hosts[1].ctx, 30, Some(&Action::default().with_kind(destination::PORT).with_number(PORT_0).with_no_roce(true))).unwrap();
    b.not_heard(0);
    moved(&b.counts(), &["port", "acl", "port_down", "exception_no_queue", "no_rule_room", "roce_denied"]);
    let all = [&FlowKey::default().with_ethertype(IPV4), &FlowKey::default().with_ethertype(u16::MAX)];
    let ctx = &b.pair.hosts[1].ctx;
    b.tables.set_rule(ctx, 3, Packets::Others, all, 0, 3).unwrap();
    let IpAddr::V4(ip) = b.pair.of(0)[1].ip(false) else { unreachable!("IPv4 was asked for") };
    assert!(b.tables.remove(ctx, 3, [0, V4], &FlowKey::default().with_ethertype(IPV4).with_dst(u32::from(ip).into())).unwrap());
    b.heard(0);
    assert_eq!(b.pair.iommu_faults(), 0);
}

#[test]
fn flows_are_told_apart() {
    widths(64).into_iter().for_each(flows_are_told_apart_at);
}

/// Without rules the miss action decides about everything; without a decision frames pass; a reset of function 0 forgets all of it.
#[test]
fn a_card_without_rules() {
    let mut b = Bench::new(64);
    b.decide(0, true);
    b.not_heard(0);
    moved(&b.counts(), &["miss"]);
    b.decide(0, false);
    b.not_heard(0);
    moved(&b.counts(), &["miss", "exception_no_queue"]);
    b.pair.hosts[1].ctx.set_flow_port(None).unwrap();
    b.heard(0);
    // What a driver leaves behind counts for nobody.
    b.actions();
    b.packets_of(1, 1, 0, 1);
    b.decide(1, true);
    b.heard(1);
    b.reopen(1, 0);
    b.heard(1);
    b.tables = FlowTables::open(&b.pair.hosts[1].ctx).unwrap();
    let before = b.counts();
    b.decide(1, true);
    // The tables are emptied while commands wait.
    b.tables.set_action(&b.pair.hosts[1].ctx, 9, None).unwrap();
    b.not_heard(1);
    assert_eq!(b.counts().port(), before.port());
    assert!(b.counts().miss() > before.miss());
}

/// Nobody but function 0 writes the tables, and what names nothing writes nothing.
#[test]
fn who_may_write() {
    let mut b = Bench::new(64);
    b.actions();
    b.packets_of(1, 0, 0, 0);
    b.decide(1, true);
    let status = |result: Result<(), Error>| match result {
        Err(Error::Admin { status, .. }) => status,
        other => panic!("{other:?}"),
    };
    let refused = b.counter("admin.refused");
    let tenant = &b.pair.of(1)[1].ctx;
    let command = table::action(0, None);
    assert_eq!(status(tenant.write_flow(&command)), AdminStatus::Denied);
    assert_eq!(status(tenant.set_flow_port(None)), AdminStatus::Denied);
    assert!(tenant.flow_counts().is_err());
    assert!(FlowTables::open(tenant).is_err());
    assert_eq!(status(tenant.read_flow(&table::count(0, true)).map(drop)), AdminStatus::Denied);
    let own = &b.pair.hosts[1].ctx;
    for bad in [
        command.with_table(11),
        command.with_opcode(4),
        table::read(table::ROW, 0, 0),
        table::action(1 << 20, None),
        table::exact(5, 0, None),
        table::rule(table::rule_line(40, 0), None),
        table::flood(64, Some(1)),
        table::station(4, 0, None),
        table::station(0, 0, Some((&[0; 8], 3 << 12, 0))),
    ] {
        assert_eq!(status(own.write_flow(&bad)), AdminStatus::BadParameter);
    }
    // What is told together is refused one by one: the other three parts of the counters, and the answer to the command that reads.
    assert_eq!(b.counter("admin.refused"), refused + 5 + 3 + 1 + 9);
    // The driver says what is wrong before the card is asked.
    let invalid = |result: Result<(), Error>| assert!(matches!(&result, Err(Error::Invalid(_))), "{result:?}");
    invalid(b.tables.set_action(own, 64, None));
    invalid(b.tables.set_action(own, 0, Some(&Action::default().with_kind(destination::PORT).with_meter(3))));
    invalid(b.tables.used(own, 64).map(drop));
    let mac = Mac([2, 0, 0, 0, 0, 1]);
    invalid(b.tables.set_station(own, 4, 0, mac, Station::Port(8)));
    invalid(b.tables.set_station(own, 0, 0x1000, mac, Station::Port(8)));
    invalid(b.tables.set_station(own, 0, 0, mac, Station::Group(0x1000)));
    invalid(b.tables.set_station(own, 0, 0, mac, Station::Remote(1, 4)));
    invalid(b.tables.set_flood(own, 64, None));
    invalid(b.tables.set_flood(own, 0, Some(0x1000)));
    invalid(own.set_flow_port(Some(&FlowPort { generation: 4, ..Default::default() })));
    invalid(b.tables.set_mask(own, 0, 4, 0, None));
    invalid(b.tables.insert(own, 0, [1, 1], &FlowKey::default(), 0));
    let key = FlowKey::default().with_ethertype(IPV4);
    invalid(b.tables.set_rule(own, 10_000, Packets::Others, [&key, &key], 0, 0));
    // And everything stands as it was.
    b.heard(0);
    let plain = WorldConfig { cards: vec![CardConfig { width: 64, ..Default::default() }; 2], ..Default::default() };
    let pair = Pair::new(&plain).unwrap();
    assert!(matches!(FlowTables::open(&pair.hosts[0].ctx), Err(Error::Unsupported(_))));
    assert!(matches!(pair.hosts[0].ctx.set_flow_port(None), Err(Error::Unsupported(_))));
}

/// What comes through a tunnel is of its function's domain; an action leads it to a function, or nowhere.
#[test]
fn rules_see_whose_tunnel_it_was() {
    let mut b = Bench::new(64);
    for card in 0..2usize {
        let end = |card: usize| (Mac([6, 0, 0, 0, 0, card as u8 + 1]), IpAddr::from([192, 0, 2, card as u8 + 1]));
        let [(own, local), (next_hop, remote)] = [end(card), end(1 - card)];
        b.pair.hosts[card].ctx.set_tunnel(1, &TunnelConfig::new(77, own, local, next_hop, remote)).unwrap();
    }
    b.actions();
    b.packets_of(0, 0, 0, 0);
    b.packets_of(0, 1, 2, 1);
    // The same packets of another domain.
    b.packets_of(0, 1, 0, 2);
    b.decide(0, true);
    (0..FUNCTIONS).for_each(|f| b.heard(f));
    moved(&b.counts(), &["port"]);
    b.packets_of(0, 1, 2, 2);
    b.not_heard(1);
    moved(&b.counts(), &["port", "acl"]);
}
