//! A card with 64 functions, each with a driver: the first and the last have traffic with their like on another card, those between try what is not theirs.
use super::*;
use ferric_driver::types::{Mtu, Path, RtrAttr, RtsAttr};
use ferric_sim::axi::HostTiming;
use ferric_tests::pair::Host;
use std::time::Duration;

const FUNCTIONS: u8 = 64;
const LAST: u8 = FUNCTIONS - 1;

/// Numbers that a function has on card 0, and where its memory is.
#[derive(Clone, Copy)]
struct Numbers {
    function: u8,
    qp: u32,
    cq: u32,
    eq: u32,
    at: u64,
    key: u32,
}

/// A function of card 0 with one object of each kind. The queue pair's peer does not answer.
struct Guest {
    host: Host,
    cq: CompletionQueue,
    qp: QueuePair,
    region: MemoryRegion,
}

impl Guest {
    fn new(pair: &Pair, function: u8) -> Self {
        let host = pair.guest(0, function).unwrap();
        let caps = host.ctx.capabilities();
        assert_eq!((caps.function, caps.functions, caps.qps), (function.into(), FUNCTIONS.into(), 4));
        let cq = host.cq(16).unwrap();
        let mut qp = host.pd.create_qp(&QpConfig { max_send: 4, max_recv: 4, ..Default::default() }, &cq, &cq).unwrap();
        let region = host.region(4096, Access::ALL).unwrap();
        let path = Path { dmac: host.mac(), smac: host.mac(), dip: host.ip(false), sip: host.ip(false), vlan: None, udp_sport: 0xc000, tclass: 0, hop_limit: 64, flow_label: 0 };
        qp.to_init(Access::ALL).unwrap();
        qp.to_rtr(Access::ALL, &RtrAttr { mtu: Mtu::M1024, dest_qpn: 2, rq_psn: 0, min_rnr_timer: 1, repeat_nak: false, max_dest_rd_atomic: 1, path: Some(path) }).unwrap();
        qp.to_rts(&RtsAttr { sq_psn: 0, timeout: 20, retry_cnt: 7, rnr_retry: 7, max_rd_atomic: 1 }).unwrap();
        Self { host, cq, qp, region }
    }

    fn numbers(&self) -> Numbers {
        let function = self.host.ctx.capabilities().function as u8;
        Numbers { function, qp: self.qp.qpn(), cq: self.cq.id(), eq: self.host.eq.id(), at: self.region.addr(), key: self.region.lkey() }
    }

    /// Sends what is in the memory of `other`, by its key.
    fn takes(&mut self, pair: &Pair, other: &Numbers) {
        let sges = [sge(other.at, 64, other.key)];
        let write = SendRequest { wr_id: 9, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
        self.qp.post_send(&write).unwrap();
        assert_eq!(pair.wait(&mut self.cq, CYCLES).unwrap().status, CqeStatus::LocalProtection, "function {} with a key of {}", self.numbers().function, other.function);
        let event = self.host.eq.wait(Duration::from_millis(50)).unwrap().expect("its own function is told");
        assert_eq!((event.kind, event.id), (EventKind::QpError, self.qp.qpn()));
    }
}

/// The driver `ctx` of function `me` tries what `other` has; how many commands that are. `all`: of every kind.
fn tries(ctx: &ferric_driver::Context, me: u8, other: &Numbers, all: bool) -> u64 {
    let (qp, mr) = (other.qp, other.key >> 8);
    let mut commands = vec![(AdminOpcode::DestroyQp, qp), (AdminOpcode::DestroyMr, mr), (AdminOpcode::DestroyCq, other.cq)];
    if all {
        commands.extend([(AdminOpcode::QueryQp, qp), (AdminOpcode::ModifyQp, qp), (AdminOpcode::AttachMulticast, qp), (AdminOpcode::DetachMulticast, qp), (AdminOpcode::DestroyEq, other.eq)]);
    }
    for (opcode, id) in &commands {
        refused(AdminStatus::BadId, ctx.admin(*opcode, *id, &[0; 5]));
    }
    for (offset, id) in [(csr::DB_SQ, qp), (csr::DB_RQ, qp), (csr::DB_CQ, other.cq), (csr::DB_EQ, other.eq)] {
        ctx.device().write64(offset, u64::from_le_bytes(Doorbell::default().with_id(id).with_index(3).0));
    }
    if me == 0 || !all {
        return commands.len() as u64;
    }
    // A queue upon another's, a look into another's lines, and at what is counted of all.
    let own = u32::from(me) * 4 + 3;
    refused(AdminStatus::BadId, ctx.admin(AdminOpcode::CreateCq, own, &[0, 0, 4 << 16, other.eq]));
    refused(AdminStatus::BadId, ctx.admin(AdminOpcode::QueryObject, qp, &[csr::space::REQ.into(), 0]));
    refused(AdminStatus::Denied, ctx.counters_of(other.function.into(), 0, 8).map(|_| [0; 14]));
    commands.len() as u64 + 3
}

fn of_tenant(pair: &Pair, t: &Tenant, function: u8) -> Numbers {
    let eq = pair.of(t.function.into())[0].eq.id();
    Numbers { function, qp: t.qps[0].qpn(), cq: t.cqs[0].id(), eq, at: t.regions[0].addr(), key: t.regions[0].lkey() }
}

/// Every function tries what its neighbour has, and what the first and the last have: all is refused and counted.
fn cross(pair: &Pair, tenants: &[Tenant], guests: &[Guest]) {
    let mut all = vec![of_tenant(pair, &tenants[0], 0)];
    all.extend(guests.iter().map(Guest::numbers));
    all.push(of_tenant(pair, &tenants[1], LAST));
    let bells = ["sq.sq_db_bad", "rq.rq_db_bad", "cq.cq_db_bad", "eq.eq_db_bad"];
    let (refusals, rung) = (count(pair, "admin.refused"), bells.map(|name| count(pair, name)));
    let (mut tried, mut rings) = (0, 0);
    for me in 0..FUNCTIONS {
        let ctx = match me {
            0 => &pair.hosts[0].ctx,
            LAST => &pair.of(1)[0].ctx,
            _ => &guests[usize::from(me) - 1].host.ctx,
        };
        let neighbour = (me + 1) % FUNCTIONS;
        for other in [neighbour, 0, LAST].into_iter().filter(|other| *other != me) {
            if other == neighbour || ![0, LAST].contains(&neighbour) {
                tried += tries(ctx, me, &all[usize::from(other)], other == neighbour);
                rings += 1;
            }
        }
    }
    assert_eq!(count(pair, "admin.refused") - refusals, tried, "refused commands are counted");
    for (name, before) in bells.into_iter().zip(rung) {
        assert_eq!(count(pair, name) - before, rings, "{name}");
    }
}

#[test]
fn sixty_four_functions_side_by_side() {
    // What is at stake is the admin engine's and the tables', not how far away the host is.
    let host = HostTiming { read_latency: 20, read_jitter: 10, write_latency: 10, ..Default::default() };
    let card = CardConfig { width: 64, functions: FUNCTIONS.into(), host, ..Default::default() };
    let mut pair = Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() }).unwrap();
    pair.open_function(LAST).unwrap();
    assert_eq!(pair.of(1)[0].ctx.capabilities().function, u32::from(LAST));
    let mut tenants: Vec<Tenant> = (0..2).map(|t| Tenant::new(&pair, t)).collect();
    let mut guests: Vec<Guest> = (1..LAST).map(|f| Guest::new(&pair, f)).collect();
    round(&pair, &mut tenants);
    let some = [0, guests.len() / 2, guests.len() - 1].map(|n| (n as u32 + 1, &guests[n].host.ctx));
    let contexts: Vec<_> = [(LAST.into(), &pair.of(1)[0].ctx), (0, &pair.hosts[0].ctx)].into_iter().chain(some).collect();
    counted_apart(&pair, &mut tenants[1..], &contexts);
    cross(&pair, &tenants, &guests);
    round(&pair, &mut tenants);
    // Keys of the next function, of the first and of the last.
    let numbers: Vec<Numbers> = guests.iter().map(Guest::numbers).collect();
    let ends = [of_tenant(&pair, &tenants[0], 0), of_tenant(&pair, &tenants[1], LAST)];
    for (n, guest) in guests.iter_mut().enumerate() {
        let neighbour = numbers.get(n + 1).unwrap_or(&ends[1]);
        guest.takes(&pair, [neighbour, &ends[0], &ends[1]][n % 3]);
    }
    keys(&mut pair, &mut tenants);
    // The first and the last function get new drivers: the others have what they had.
    for t in [1, 0] {
        reset(&mut pair, &mut tenants, t);
    }
    for guest in &guests {
        assert!(guest.host.ctx.admin(AdminOpcode::QueryQp, guest.qp.qpn(), &[]).is_ok());
    }
    assert_eq!(pair.iommu_faults(), 0);
}
