//! Functions of one card `switch` talk to each other, and to a function's own other queue pair: what they send does not leave the card, while others of the wire go on beside it.
#[path = "local/decided.rs"]
mod decided;
#[path = "local/networks.rs"]
mod networks;
#[path = "local/one_vni.rs"]
mod one_vni;

use ferric_abi::codes::{AdminStatus, WrOpcode};
use ferric_abi::context::TunnelCounts;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::switch::{FlowTables, Sender};
use ferric_driver::types::{Mac, Mtu, Path, QpType, RtrAttr, RtsAttr};
use ferric_driver::ud::{GRH_BYTES, MULTICAST_QPN};
use ferric_driver::{Access, Address, AddressHandle, CompletionQueue, CqeStatus, DatagramRequest, Error, MemoryRegion, QpConfig, QueuePair, RecvRequest, SendRequest, Source, Start, TunnelConfig};
use ferric_hdl::card::counters;
use ferric_sim::{Body, CardConfig, WorldConfig};
use ferric_tests::pair::{together, Host, Pair};
use ferric_tests::raw::raw;
use ferric_tests::traffic::pattern;
use std::net::IpAddr;

/// Functions of the card.
const FUNCTIONS: usize = 3;
const PATIENCE: u64 = 400_000;
/// Cycles in which what was sent has come, or will not.
const SETTLED: u64 = 6_000;
/// Bytes of a message: packets of 1,024 bytes, and one that is not full.
const LEN: usize = 5_000;
const QKEY: u32 = 0x1122_3344;

/// Card 0 is gateware, card 1, of which one function talks too, a twin. Each function has its MAC and its IP address.
fn pair(width: usize) -> Pair {
    pair_of(width, FUNCTIONS)
}

fn pair_of(width: usize, functions: usize) -> Pair {
    named([CardConfig { width, engines: "switch", ..Default::default() }, CardConfig { body: Body::Twin, width, engines: "vxlan", ..Default::default() }], functions)
}

/// Functions of two cards, each with its addresses.
fn named(cards: [CardConfig; 2], functions: usize) -> Pair {
    let cards = cards.into();
    let pair = Pair::with_functions(&WorldConfig { cards, ..Default::default() }, functions as u8).unwrap();
    for host in (0..functions).flat_map(|f| pair.of(f)) {
        host.ctx.set_station(0, host.mac()).unwrap();
        host.ctx.set_address(0, Address { ip: host.ip(false), mac: host.mac(), vlan: None }).unwrap();
    }
    pair
}

fn counts(pair: &Pair) -> TunnelCounts {
    pair.hosts[0].ctx.tunnel_counts().unwrap()
}

fn count(pair: &Pair, name: &str) -> u64 {
    pair.hosts[0].ctx.counters(counters::index(name).expect(name) as u32, 1).unwrap()[0]
}

/// Frames that card 0 has sent to the wire.
fn left(pair: &Pair) -> u64 {
    pair.world().links[0].counters.sent
}

/// Two queue pairs that are connected, each with its completion queue and memory.
struct Talk<'a> {
    hosts: [&'a Host; 2],
    cqs: [CompletionQueue; 2],
    qps: [QueuePair; 2],
    memory: [MemoryRegion; 2],
    said: u64,
}

impl<'a> Talk<'a> {
    fn new(hosts: [&'a Host; 2]) -> Self {
        Self::called(hosts, hosts.map(|host| (host.mac(), host.ip(false))))
    }

    /// Between these addresses.
    fn called(hosts: [&'a Host; 2], names: [(Mac, IpAddr); 2]) -> Self {
        let cqs = hosts.map(|host| host.cq(64).unwrap());
        let mut qps = [0, 1].map(|side: usize| hosts[side].pd.create_qp(&QpConfig::default(), &cqs[side], &cqs[side]).unwrap());
        let qpns = [qps[0].qpn(), qps[1].qpn()];
        // One function's two queue pairs would be told at once by two batches.
        for (side, qp) in qps.iter_mut().enumerate() {
            let ((smac, sip), (dmac, dip)) = (names[side], names[1 - side]);
            let path = Path { dmac, smac, dip, sip, vlan: None, udp_sport: 0xc123, tclass: 0, hop_limit: 64, flow_label: 0 };
            let rtr = RtrAttr { mtu: Mtu::M1024, dest_qpn: qpns[1 - side], rq_psn: 7, min_rnr_timer: 1, repeat_nak: false, max_dest_rd_atomic: 16, path: Some(path) };
            let rts = RtsAttr { sq_psn: 7, timeout: 10, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 16 };
            let mut batch = hosts[side].ctx.batch();
            batch.start(qp, &Start::Connected { access: Access::ALL, rtr, rts }).unwrap();
            together([batch]).unwrap();
        }
        let memory = hosts.map(|host| host.region(3 * LEN, Access::ALL).unwrap());
        Self { hosts, cqs, qps, memory, said: 0 }
    }

    /// From either side: a WRITE into the second part of the other's memory, a SEND into its third, then a READ of the second into the own first, and an atomic.
    fn say(&mut self) {
        self.said += 1;
        for side in 0..2 {
            let bytes: Vec<u8> = (0..LEN).map(|i| pattern(self.said * 2 + side as u64, i)).collect();
            self.memory[side].write(0, &bytes);
        }
        for side in 0..2 {
            let (own, to) = (&self.memory[side], &self.memory[1 - side]);
            let into = [sge(to.addr() + 2 * LEN as u64, LEN as u32, to.lkey())];
            self.qps[1 - side].post_recv(&RecvRequest { wr_id: 9, sges: &into }).unwrap();
            let from = [sge(own.addr(), LEN as u32, own.lkey())];
            let write =
                SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr: to.addr() + LEN as u64, rkey: to.rkey(), imm: 0, signaled: true, solicited: false };
            self.qps[side].post_send(&write).unwrap();
            self.qps[side].post_send(&SendRequest { wr_id: 2, opcode: WrOpcode::Send, ..write }).unwrap();
        }
    }

    /// What was said has come, whole.
    fn heard(&mut self, pair: &Pair) {
        for side in 0..2 {
            let mut seen: Vec<_> = (0..3).map(|_| pair.wait(&mut self.cqs[side], PATIENCE).unwrap()).map(|c| (c.wr_id, c.status)).collect();
            seen.sort_by_key(|c| c.0);
            assert_eq!(seen, [1, 2, 9].map(|id| (id, CqeStatus::Success)), "{}", self.hosts[side].mac());
        }
        for side in 0..2 {
            let byte = |i: usize| pattern(self.said * 2 + 1 - side as u64, i % LEN);
            let got = self.memory[side].to_vec(LEN, 2 * LEN);
            assert_eq!(got.iter().enumerate().find(|(i, b)| **b != byte(*i)), None, "what {} has got", self.hosts[side].mac());
            // Back again, by a READ; and eight bytes of it are counted up.
            let (own, to) = (&self.memory[side], &self.memory[1 - side]);
            let into = [sge(own.addr(), LEN as u32, own.lkey())];
            let read = SendRequest { wr_id: 3, opcode: WrOpcode::Read, payload: Payload::Sges(&into), remote_addr: to.addr() + LEN as u64, rkey: to.rkey(), imm: 0, signaled: true, solicited: false };
            own.write(0, &[0; LEN]);
            self.qps[side].post_send(&read).unwrap();
            let done = pair.wait(&mut self.cqs[side], PATIENCE).unwrap();
            assert_eq!((done.wr_id, done.status), (3, CqeStatus::Success));
            assert!(own.to_vec(0, LEN).iter().enumerate().all(|(i, b)| *b == pattern(self.said * 2 + side as u64, i)));
        }
    }

    /// Nothing of what was said has come to either side, nor will it.
    fn is_unheard(&mut self, pair: &Pair) {
        pair.world().run(SETTLED);
        assert!(self.cqs.iter_mut().all(|cq| cq.poll().is_none()));
    }

    fn talk(&mut self, pair: &Pair) {
        self.say();
        self.heard(pair);
    }
}

/// Every function with every other, with itself, and with one behind the wire, all at once.
fn functions_reach_each_other_at(width: usize) {
    let pair = pair(width);
    let host = |f: usize| &pair.of(f)[0];
    let mut inside: Vec<Talk> = [(0, 1), (1, 2), (2, 0), (1, 1)].into_iter().map(|(a, b)| Talk::new([host(a), host(b)])).collect();
    let (sent, before) = (left(&pair), counts(&pair));
    inside.iter_mut().for_each(|talk| talk.talk(&pair));
    assert_eq!(left(&pair), sent, "nothing has left the card");
    let local = counts(&pair).local() - before.local();
    // Ten packets of a WRITE and a SEND each way and their acknowledges, and five of a READ's answer.
    assert!(local >= 4 * 2 * (10 + 2 + 1 + 5), "{local} frames");
    // With one behind the wire.
    let mut outside = Talk::new([host(1), &pair.of(1)[1]]);
    for _ in 0..3 {
        outside.say();
        inside.iter_mut().for_each(Talk::say);
        outside.heard(&pair);
        inside.iter_mut().for_each(|talk| talk.heard(&pair));
    }
    assert!(left(&pair) > sent);
    let after = counts(&pair);
    assert_eq!([after.local_late(), after.local_wire_lost(), count(&pair, "rx.rx_no_buffer"), count(&pair, "req_rx.retransmits")], [0; 4]);
    // An address that goes is the wire's, where nobody has it; when it is back the packets are sent again.
    host(2).ctx.clear_address(0).unwrap();
    host(2).ctx.clear_station(0).unwrap();
    let (sent, before) = (left(&pair), counts(&pair).local());
    inside[1].say();
    pair.world().run(SETTLED);
    assert!(left(&pair) > sent);
    host(2).ctx.set_station(0, host(2).mac()).unwrap();
    inside[1].heard(&pair);
    assert!(counts(&pair).local() > before);
    assert_eq!(pair.iommu_faults(), 0);
}

#[test]
fn functions_reach_each_other() {
    functions_reach_each_other_at(512);
}

#[test]
fn functions_reach_each_other_w64() {
    functions_reach_each_other_at(64);
}

/// A datagram queue pair of a function, for the group; and memory for one datagram.
struct Member {
    cq: CompletionQueue,
    qp: QueuePair,
    memory: MemoryRegion,
}

impl Member {
    fn new(host: &Host, group: Option<IpAddr>) -> Self {
        Self::named(host, (host.mac(), host.ip(false)), group)
    }

    fn named(host: &Host, (smac, sip): (Mac, IpAddr), group: Option<IpAddr>) -> Self {
        let cq = host.cq(16).unwrap();
        let mut qp = host.pd.create_qp(&QpConfig { qp_type: QpType::Ud, ..Default::default() }, &cq, &cq).unwrap();
        qp.to_init_ud(QKEY).unwrap();
        qp.to_rtr_ud(Mtu::M1024, &Source { smac, sip, vlan: None, udp_sport: 0xd123, flow_label: 0 }).unwrap();
        qp.to_rts_ud(5).unwrap();
        group.into_iter().for_each(|group| qp.attach_multicast(group).unwrap());
        Self { cq, qp, memory: host.region(2048, Access::ALL).unwrap() }
    }

    fn listen(&mut self) {
        let into = [sge(self.memory.addr(), 1024, self.memory.lkey())];
        self.qp.post_recv(&RecvRequest { wr_id: 1, sges: &into }).unwrap();
    }

    fn send(&mut self, pair: &Pair, to: IpAddr, byte: u8) {
        self.memory.write(1024, &[byte; 300]);
        let from = [sge(self.memory.addr() + 1024, 300, self.memory.lkey())];
        let to = AddressHandle::multicast(to).unwrap();
        self.qp.post_send_ud(&DatagramRequest { wr_id: 2, payload: Payload::Sges(&from), to: &to, dest_qpn: MULTICAST_QPN, qkey: QKEY, imm: None, signaled: true, solicited: false }).unwrap();
        assert_eq!(pair.wait(&mut self.cq, PATIENCE).unwrap().status, CqeStatus::Success);
    }

    /// Whether a datagram of this byte has come.
    fn got(&mut self, byte: u8) -> bool {
        self.cq.poll().is_some_and(|done| {
            assert_eq!((done.wr_id, done.status, done.byte_len as usize), (1, CqeStatus::Success, GRH_BYTES + 300));
            self.memory.to_vec(GRH_BYTES, 300) == [byte; 300]
        })
    }
}

/// Groups: members on the card and behind the wire get a copy each; searches for neighbours are answered by the card itself; the raw queue pair hears the other functions, but not itself.
#[test]
fn groups_are_reached_on_both_sides() {
    let pair = pair(64);
    let host = |f: usize| &pair.of(f)[0];
    let group: IpAddr = "239.129.3.4".parse().unwrap();
    let mut members = [Member::new(host(0), Some(group)), Member::new(host(2), Some(group)), Member::new(&pair.of(1)[1], Some(group))];
    let mut sender = Member::new(host(1), None);
    members.iter_mut().for_each(Member::listen);
    let before = counts(&pair);
    sender.send(&pair, group, 0x5a);
    pair.world().run(SETTLED);
    assert_eq!(members.each_mut().map(|member| member.got(0x5a)), [true; 3]);
    let after = counts(&pair);
    assert_eq!([after.local_copies() - before.local_copies(), after.local() - before.local()], [1, 0]);
    // A member hears itself, too.
    members.iter_mut().for_each(Member::listen);
    members[1].send(&pair, group, 0xa5);
    pair.world().run(SETTLED);
    assert_eq!(members.each_mut().map(|member| member.got(0xa5)), [true; 3]);
    // Neighbours: the card answers a function's search for another's address, and for one behind the wire as before.
    for to in [host(2), host(0), &pair.of(1)[1]] {
        assert_eq!(host(1).ctx.resolve(0, to.ip(false)).unwrap(), to.mac());
    }
    // Raw frames to all: the raw queue pair is function 0's. What it sends goes to the wire alone; what function 1 searches comes to it.
    let mut own = raw(host(0)).unwrap().listening();
    let mut other = raw(&pair.hosts[1]).unwrap().listening();
    let broadcast = [&[0xff; 6][..], &host(0).mac().0, &[0x88, 0xb5], &[7; 50]].concat();
    own.send(&pair, &broadcast);
    pair.world().run(SETTLED);
    assert_eq!((own.heard(), other.heard()), (vec![], vec![broadcast]));
    assert!(host(1).ctx.resolve_within(0, "10.0.1.77".parse().unwrap(), &ferric_driver::Search { wait: std::time::Duration::from_micros(50), ..Default::default() }).is_err());
    pair.world().run(SETTLED);
    let searches = own.heard();
    assert!(!searches.is_empty() && searches.iter().all(|frame| frame[..6] == [0xff; 6] && frame[6..12] == host(1).mac().0));
    // To a function's address: it is the card's, and the raw queue pair of function 0 gets it as it would off the wire.
    let sent = left(&pair);
    let to_itself = [&host(0).mac().0[..], &host(0).mac().0, &[0x88, 0xb5], &[8; 100]].concat();
    own.send(&pair, &to_itself);
    pair.world().run(SETTLED);
    assert_eq!((own.heard(), left(&pair)), (vec![to_itself], sent));
}

/// A function that is verified draws no frames to itself by saying that it has an address that is not its own; one of which nobody has said anything does.
#[test]
fn a_neighbour_says_that_it_is_the_router() {
    let pair = pair(64);
    let router = &pair.of(1)[1];
    let mut talk = Talk::new([&pair.of(1)[0], router]);
    talk.talk(&pair);
    // Function 2 says that it has the address of the station behind the wire.
    let thief = &pair.of(2)[0].ctx;
    let mut tables = FlowTables::open(&pair.hosts[0].ctx).unwrap();
    tables.set_sender(&pair.hosts[0].ctx, 2, Some(&Sender { macs: vec![pair.of(2)[0].mac()], roce: true, any_ip: true, ..Default::default() })).unwrap();
    thief.set_station(3, router.mac()).unwrap();
    let before = counts(&pair);
    talk.talk(&pair);
    assert_eq!(counts(&pair).local(), before.local());
    // What is its own reaches it.
    Talk::new([&pair.of(1)[0], &pair.of(2)[0]]).talk(&pair);
    // Not verified: the card believes it, and the packets go nowhere.
    tables.set_sender(&pair.hosts[0].ctx, 2, None).unwrap();
    let before = counts(&pair);
    talk.say();
    pair.world().run(SETTLED);
    assert!(counts(&pair).local() > before.local() && talk.cqs[1].poll().is_none());
    thief.clear_station(3).unwrap();
    talk.heard(&pair);
}

/// Off the wire it is the same: a verified function neither draws the frames of an address that it may not have, nor does it keep the address from the function whose it is.
#[test]
fn a_neighbour_has_taken_an_address_first() {
    let pair = pair(64);
    let ctx = |f: usize| &pair.of(f)[0].ctx;
    let mine = Mac([2, 0, 0, 0, 0xaa, 1]);
    let [mut raw_queue, mut peer] = [raw(&pair.hosts[0]).unwrap().listening(), raw(&pair.hosts[1]).unwrap()];
    let frame = [&mine.0[..], &pair.of(1)[1].mac().0, &[0x88, 0xb5], &[3; 60]].concat();
    let mut heard = || {
        let strangers = count(&pair, "rx.rx_other_station");
        peer.send(&pair, &frame);
        pair.world().run(SETTLED);
        (raw_queue.heard().len(), count(&pair, "rx.rx_other_station") - strangers)
    };
    let in_use = |refused| matches!(refused, Err(Error::Admin { status: AdminStatus::InUse, .. }));
    assert_eq!(heard(), (0, 1), "nobody has the address");
    ctx(2).set_station(3, mine).unwrap();
    assert_eq!(heard(), (1, 0), "function 2 is not verified");
    assert!(in_use(ctx(1).set_station(3, mine)));
    let mut tables = FlowTables::open(ctx(0)).unwrap();
    let only = |mac: Mac| Sender { macs: vec![mac], roce: true, any_ip: true, ..Default::default() };
    tables.set_sender(ctx(0), 2, Some(&only(pair.of(2)[0].mac()))).unwrap();
    assert_eq!(heard(), (0, 1), "it may not have it");
    // Whose it is takes it, and answers for it.
    let both = Sender { macs: vec![pair.of(1)[0].mac(), mine], roce: true, any_ip: true, ..Default::default() };
    tables.set_sender(ctx(0), 1, Some(&both)).unwrap();
    ctx(1).set_station(3, mine).unwrap();
    ctx(1).set_address(3, Address { ip: "10.7.7.7".parse().unwrap(), mac: mine, vlan: None }).unwrap();
    assert_eq!(heard(), (1, 0));
    assert_eq!(pair.of(1)[1].ctx.resolve(0, "10.7.7.7".parse().unwrap()).unwrap(), mine);
    // It counts: nobody else takes it now, not even who may have it.
    tables.set_sender(ctx(0), 2, Some(&only(mine))).unwrap();
    assert!(in_use(ctx(2).set_station(2, mine)));
}

/// A function in a tunnel reaches itself in its network, and nobody of the card outside of it, nor do they reach it: what they send goes to the wire.
#[test]
fn tunnels_are_kept_apart() {
    let pair = pair(64);
    let host = |f: usize| &pair.of(f)[0];
    let end = |n: u8| (Mac([6, 0, 0, 0, 0, n]), IpAddr::from([192, 0, 2, n]));
    let [(own, local), (next_hop, remote)] = [end(1), end(2)];
    pair.hosts[0].ctx.set_tunnel(2, &TunnelConfig::new(77, own, local, next_hop, remote)).unwrap();
    let mut own = Talk::new([host(2), host(2)]);
    let (sent, before) = (left(&pair), counts(&pair));
    own.talk(&pair);
    let after = counts(&pair);
    assert!(left(&pair) == sent && after.local() > before.local() && after.wrapped() == before.wrapped());
    // Function 1 knows the tenant's addresses and queue pair number, and the tenant those of function 1.
    let mut across = Talk::new([host(1), host(2)]);
    let before = counts(&pair);
    across.say();
    pair.world().run(SETTLED);
    let after = counts(&pair);
    assert!(across.cqs.iter_mut().all(|cq| cq.poll().is_none()));
    assert_eq!(after.local(), before.local());
    assert!(after.wrapped() > before.wrapped() && left(&pair) > sent);
    assert!((0..2).all(|side| across.memory[side].to_vec(LEN, 2 * LEN) == vec![0; 2 * LEN]));
    // The others go on.
    own.talk(&pair);
    Talk::new([host(0), host(1)]).talk(&pair);
}
