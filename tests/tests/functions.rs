//! Several functions of one card, a driver each, between two such cards: traffic side by side, numbers of others, events, what is the physical
//! function's, and resets that are one function's own.
#[path = "functions/many.rs"]
mod many;

use ferric_abi::codes::{AdminOpcode, AdminStatus, EventKind, ObjectKind, WrOpcode};
use ferric_abi::csr;
use ferric_abi::host::Doorbell;
use ferric_driver::qp::{sge, Payload, RecvRequest, SendRequest};
use ferric_driver::types::QpType;
use ferric_driver::{Access, CompletionQueue, CqeStatus, Error, MemoryRegion, QpConfig, QueuePair, WindowType};
use ferric_hdl::card::counters;
use ferric_sim::{CardConfig, WorldConfig};
use ferric_tests::pair::{Pair, Wire};
use ferric_tests::widths::widths;

const BYTES: usize = 16 << 10;
const CYCLES: u64 = 400_000;

fn world(width: usize) -> WorldConfig {
    let card = CardConfig { width, ..Default::default() };
    WorldConfig { cards: vec![card.clone(), card], ..Default::default() }
}

/// One function of either card, connected with its like on the other.
struct Tenant {
    function: u8,
    cqs: [CompletionQueue; 2],
    qps: [QueuePair; 2],
    regions: [MemoryRegion; 2],
    /// Of the bytes sent last.
    fill: u8,
}

impl Tenant {
    fn new(pair: &Pair, function: u8) -> Self {
        let hosts = pair.of(function.into());
        let cqs = [hosts[0].cq(64).unwrap(), hosts[1].cq(64).unwrap()];
        let qps = pair.connected_of(function.into(), &QpConfig::default(), &Wire::default(), [&cqs[0], &cqs[1]]).unwrap();
        let regions = [0, 1].map(|h| hosts[h].region(BYTES, Access::ALL).unwrap());
        Self { function, cqs, qps, regions, fill: function }
    }

    /// A WRITE of everything from either side to the other's upper half, and a SEND behind it.
    fn start(&mut self) {
        self.fill = self.fill.wrapping_add(16);
        for side in 0..2 {
            let bytes: Vec<u8> = (0..BYTES / 2).map(|i| (i * 7) as u8 ^ self.fill ^ side as u8).collect();
            self.regions[side].write(0, &bytes);
        }
        for side in 0..2 {
            let (to, from) = (&self.regions[1 - side], &self.regions[side]);
            let receive = [sge(to.addr() + BYTES as u64 - 64, 64, to.lkey())];
            self.qps[1 - side].post_recv(&RecvRequest { wr_id: 3, sges: &receive }).unwrap();
            let sges = [sge(from.addr(), BYTES as u32 / 2, from.lkey())];
            let write =
                SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: to.addr() + BYTES as u64 / 2, rkey: to.rkey(), imm: 0, signaled: true, solicited: false };
            self.qps[side].post_send(&write).unwrap();
            let short = [sge(from.addr(), 64, from.lkey())];
            self.qps[side].post_send(&SendRequest { wr_id: 2, opcode: WrOpcode::Send, payload: Payload::Sges(&short), ..write }).unwrap();
        }
    }

    /// What was started is done, rightly.
    fn finish(&mut self, pair: &Pair) {
        for side in 0..2 {
            let mut seen: Vec<_> =
                (0..3).map(|_| pair.wait(&mut self.cqs[side], CYCLES).unwrap_or_else(|e| panic!("function {} of card {side}: {e}", self.function))).map(|c| (c.wr_id, c.status)).collect();
            seen.sort_by_key(|s| s.0);
            assert_eq!(seen, [1, 2, 3].map(|id| (id, CqeStatus::Success)), "function {} of card {side}", self.function);
            let mut got = vec![0; BYTES / 2];
            self.regions[side].read(BYTES / 2, &mut got);
            let byte = |i: usize| (i * 7) as u8 ^ self.fill ^ (1 - side) as u8;
            let end = BYTES / 2 - 64;
            assert!(got[..end].iter().enumerate().all(|(i, b)| *b == byte(i)), "function {} of card {side}: bytes of the WRITE", self.function);
            assert!(got[end..].iter().enumerate().all(|(i, b)| *b == byte(i)), "function {} of card {side}: bytes of the SEND", self.function);
        }
    }

    /// One request of card 0 whose status is wanted; the queue pairs are of no use afterwards.
    fn one(&mut self, pair: &Pair, local: (u64, u32), remote: (u64, u32)) -> CqeStatus {
        let sges = [sge(local.0, 64, local.1)];
        let write = SendRequest { wr_id: 9, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: remote.0, rkey: remote.1, imm: 0, signaled: true, solicited: false };
        self.qps[0].post_send(&write).unwrap();
        pair.wait(&mut self.cqs[0], CYCLES).unwrap().status
    }
}

/// A counter of card 0, which function 0 may read.
fn count(pair: &Pair, name: &str) -> u64 {
    pair.hosts[0].ctx.counters(counters::index(name).expect(name) as u32, 1).unwrap()[0]
}

fn refused(status: AdminStatus, result: Result<[u32; 14], Error>) {
    assert!(matches!(&result, Err(Error::Admin { status: s, .. }) if *s == status), "{result:?}, not {status:?}");
}

fn round(pair: &Pair, tenants: &mut [Tenant]) {
    tenants.iter_mut().for_each(Tenant::start);
    tenants.iter_mut().for_each(|t| t.finish(pair));
}

/// What card `card` has counted, by function: each function asks for itself, by number or not, and gets the same as function 0 gets of it; all together are the
/// totals, which function 0 sees, and what nobody in particular has done is function 0's.
fn by_function(pair: &Pair, card: usize, functions: &[(u32, &ferric_driver::Context)]) -> Vec<Vec<u64>> {
    let (by_function, n) = (counters::by_function(), counters::names().len() as u32);
    let physical = &pair.hosts[card].ctx;
    // Commands are no completions, nor are theirs doorbells: to read moves nothing.
    let totals = physical.counters(0, n).unwrap();
    let all: Vec<Vec<u64>> = (0..physical.capabilities().functions).map(|f| physical.counters_of(f, 0, n).unwrap()).collect();
    for (f, ctx) in functions {
        let own = ctx.counters_of(*f, 0, n).unwrap();
        if *f != 0 {
            assert_eq!(ctx.counters(0, n).unwrap(), own, "function {f}");
        }
        for (i, name) in counters::names().iter().enumerate().filter(|(i, _)| by_function[*i] || *f != 0) {
            assert_eq!(own[i], all[*f as usize][i], "{name} of function {f}");
        }
    }
    for (i, name) in counters::names().iter().enumerate() {
        if by_function[i] {
            assert_eq!(all.iter().map(|of| of[i]).sum::<u64>(), totals[i], "{name}");
        } else {
            assert!(all[1..].iter().all(|of| of[i] == 0), "{name} is the card's");
        }
    }
    let absent = physical.capabilities().functions;
    refused(AdminStatus::BadParameter, physical.counters_of(absent, 0, 8).map(|_| [0; 14]));
    all
}

/// Counters that the traffic of a function moves, on the card that it is on.
const TRAFFIC: [&str; 9] = ["cq.cqe_written", "doorbell.db_rung", "req_tx.tx_packets", "resp.rx_requests", "ackgen.ack_sent", "sq.sq_fetches", "rq.rq_fetches", "eq.eqe_written", "cq.cq_events"];

/// The traffic of one function moves its counters, and those of no other. The tenants are the first of `contexts`.
fn counted_apart(pair: &Pair, tenants: &mut [Tenant], contexts: &[(u32, &ferric_driver::Context)]) {
    let (names, tracked) = (counters::names(), counters::by_function());
    let mut before = by_function(pair, 0, contexts);
    for (t, (f, _)) in tenants.iter_mut().zip(contexts) {
        let f = *f as usize;
        t.start();
        t.finish(pair);
        // Acknowledges may still be under way.
        pair.world().run(2000);
        let after = by_function(pair, 0, contexts);
        for (i, name) in names.iter().enumerate().filter(|(i, _)| tracked[*i]) {
            // What the last look itself was refused is the physical function's.
            let others = (0..after.len()).filter(|o| *o != f && after[*o][i] != before[*o][i] && name != "admin.refused");
            assert_eq!(others.collect::<Vec<usize>>(), Vec::<usize>::new(), "{name} has moved with function {f}'s traffic");
        }
        let moved = |name: &str| counters::index(name).map(|i| after[f][i] - before[f][i]).unwrap();
        // A WRITE of 8 KiB and a SEND each way: packets of 4 KiB, completions of both requests and of the receive.
        assert_eq!((moved("req_tx.tx_packets"), moved("resp.rx_requests"), moved("cq.cqe_written")), (3, 3, 3), "function {f}");
        assert!(TRAFFIC[..7].iter().all(|name| moved(name) > 0), "function {f}: {:?}", TRAFFIC.map(moved));
        before = after;
    }
}

/// Each function of card 0 tries the numbers of every other one.
fn trespass(pair: &mut Pair, tenants: &mut [Tenant]) {
    let functions = tenants.len();
    let before = count(pair, "admin.refused");
    let bells = ["sq.sq_db_bad", "rq.rq_db_bad", "cq.cq_db_bad", "eq.eq_db_bad"];
    let rung = bells.map(|name| count(pair, name));
    let (mut tried, mut rings) = (0, 0);
    for f in 0..functions {
        for other in (0..functions).filter(|other| *other != f) {
            let (ctx, them) = (&pair.of(f)[0].ctx, &tenants[other]);
            let (qp, cq, mr, eq) = (them.qps[0].qpn(), them.cqs[0].id(), them.regions[0].lkey() >> 8, pair.of(other)[0].eq.id());
            for (opcode, id) in
                [(AdminOpcode::DestroyQp, qp), (AdminOpcode::QueryQp, qp), (AdminOpcode::ModifyQp, qp), (AdminOpcode::DestroyCq, cq), (AdminOpcode::DestroyMr, mr), (AdminOpcode::DestroyEq, eq)]
            {
                refused(AdminStatus::BadId, ctx.admin(opcode, id, &[0]));
                tried += 1;
            }
            // An object upon another's, and one in its place
            let cq_line = [0, 0, 4 << 16, eq];
            let free = (f as u32 + 1) * if f == 0 { ctx.capabilities().cqs / 4 } else { ctx.capabilities().cqs } - 1;
            refused(AdminStatus::BadId, ctx.admin(AdminOpcode::CreateCq, free, &cq_line));
            refused(AdminStatus::BadId, ctx.admin(AdminOpcode::CreatePd, if other == 0 { 0 } else { 64 * other as u32 + 63 }, &[]));
            tried += 2;
            if f != 0 {
                refused(AdminStatus::BadId, ctx.admin(AdminOpcode::QueryObject, qp, &[csr::space::REQ.into(), 0]));
                tried += 1;
            }
            for (offset, id) in [(csr::DB_SQ, qp), (csr::DB_RQ, qp), (csr::DB_CQ, cq), (csr::DB_EQ, eq)] {
                ctx.device().write64(offset, u64::from_le_bytes(Doorbell::default().with_id(id).with_index(40).0));
            }
            rings += 1;
        }
        if f != 0 {
            let host = &pair.of(f)[0];
            refused(AdminStatus::Denied, host.ctx.admin(AdminOpcode::SetPort, 0, &[1 << 31 | tenants[f].qps[0].qpn()]));
            refused(AdminStatus::Denied, host.ctx.counters_of((f as u32 + 1) % functions as u32, 0, 8).map(|_| [0; 14]));
            refused(AdminStatus::Denied, host.ctx.set_range(f as u32, ObjectKind::Qp, 0, 2).map(|()| [0; 14]));
            let raw = host.pd.create_qp(&QpConfig { qp_type: QpType::Raw, ..Default::default() }, &tenants[f].cqs[0], &tenants[f].cqs[0]);
            assert!(matches!(raw, Err(Error::Admin { status: AdminStatus::Denied, .. })), "a raw queue pair of function {f}");
            tried += 4;
        }
    }
    assert_eq!(count(pair, "admin.refused") - before, tried, "refused commands are counted");
    for (name, rung) in bells.into_iter().zip(rung) {
        assert_eq!(count(pair, name) - rung, rings, "{name}");
    }
    // Nothing of all that has done anything.
    round(pair, tenants);
}

/// Keys of other functions, on the own card and on the peer's; the queue pairs that tried are in error, and their own function is told.
fn keys(pair: &mut Pair, tenants: &mut [Tenant]) {
    for f in 0..tenants.len() {
        let other = (f + 1) % tenants.len();
        let at = |t: &Tenant, side: usize| (t.regions[side].addr(), t.regions[side].lkey());
        let (mine, theirs, peer, their_peer) = (at(&tenants[f], 0), at(&tenants[other], 0), at(&tenants[f], 1), at(&tenants[other], 1));
        while pair.hosts[0].eq.poll().is_some() {}
        for (status, local, remote) in [(CqeStatus::LocalProtection, theirs, peer), (CqeStatus::RemoteAccess, mine, their_peer)] {
            let mut t = Tenant::new(pair, f as u8);
            assert_eq!(t.one(pair, local, remote), status);
            let qpn = t.qps[0].qpn();
            let host = if f == 0 { &mut pair.hosts[0] } else { &mut pair.tenants[f - 1][0] };
            let event = host.eq.wait(std::time::Duration::from_millis(50)).unwrap().expect("its own function is told");
            assert_eq!((event.kind, event.id), (EventKind::QpError, qpn));
            assert_eq!(pair.hosts[0].eq.poll(), None, "and no other");
        }
    }
}

/// The driver of function `f` of card 0 dies in the middle of everybody's traffic, and another takes its place.
fn reset(pair: &mut Pair, tenants: &mut Vec<Tenant>, f: usize) {
    tenants.iter_mut().for_each(Tenant::start);
    pair.world().run(300);
    let counted = |pair: &Pair| pair.of(f)[0].ctx.counters(counters::index("cq.cqe_written").unwrap() as u32, 1).unwrap()[0];
    let before = counted(pair);
    pair.reopen(0, f as u8).unwrap();
    assert!(before > 0 && counted(pair) >= before, "counters outlive a reset");
    for t in tenants.iter_mut().filter(|t| usize::from(t.function) != f) {
        t.finish(pair);
    }
    // Its peer begins anew, too: what that goes on sending would meet the next queue pair of the same number.
    pair.reopen(1, f as u8).unwrap();
    std::mem::forget(tenants.remove(f));
    tenants.insert(f, Tenant::new(pair, f as u8));
    round(pair, tenants);
}

fn counted(pair: &Pair, tenants: &mut [Tenant]) {
    let contexts: Vec<_> = (0..tenants.len()).map(|f| (f as u32, &pair.of(f)[0].ctx)).collect();
    counted_apart(pair, tenants, &contexts);
}

fn side_by_side(width: usize, functions: u8) {
    let mut pair = Pair::with_functions(&world(width), functions).unwrap();
    for f in 0..functions {
        assert_eq!(u8::try_from(pair.of(f.into())[0].ctx.capabilities().function), Ok(f));
    }
    let mut tenants: Vec<Tenant> = (0..functions).map(|f| Tenant::new(&pair, f)).collect();
    round(&pair, &mut tenants);
    counted(&pair, &mut tenants);
    trespass(&mut pair, &mut tenants);
    keys(&mut pair, &mut tenants);
    counted(&pair, &mut tenants);
    for f in [functions as usize - 1, 0] {
        reset(&mut pair, &mut tenants, f);
    }
    trespass(&mut pair, &mut tenants);
    assert_eq!(pair.iommu_faults(), 0);
}

#[test]
fn two_functions_side_by_side() {
    widths(512).into_iter().for_each(|width| side_by_side(width, 2));
}

#[test]
fn four_functions_side_by_side() {
    widths(64).into_iter().for_each(|width| side_by_side(width, 4));
}

/// Numbers that no other function uses are the physical function's; both drivers find their way around each other's.
#[test]
fn the_physical_function_has_what_the_others_do_not_use() {
    let mut pair = Pair::with_functions(&world(64), 1).unwrap();
    // 32 event queues are shared out by eights: function 1's are 8 to 15.
    let mut queues: Vec<_> = (0..12).map(|_| pair.hosts[0].ctx.create_eq(4, 1).unwrap()).collect();
    assert_eq!(queues.last().unwrap().id(), 12);
    pair.open_next().unwrap();
    let own: Vec<_> = (0..2).map(|_| pair.of(1)[0].ctx.create_eq(4, 1).unwrap()).collect();
    assert_eq!(pair.of(1)[0].eq.id(), 13);
    assert_eq!(own.iter().map(|q| q.id()).collect::<Vec<_>>(), [14, 15]);
    assert!(matches!(pair.of(1)[0].ctx.create_eq(4, 1), Err(Error::Exhausted(_))));
    // What function 0 has there it keeps; what it gives back is the other's.
    queues.truncate(8);
    let more = pair.of(1)[0].ctx.create_eq(4, 1).unwrap();
    assert!((8..13).contains(&more.id()));
    let mut rest = Vec::new();
    let exhausted = loop {
        match pair.hosts[0].ctx.create_eq(4, 1) {
            Ok(eq) => rest.push(eq),
            Err(e) => break e,
        }
    };
    assert!(matches!(exhausted, Error::Exhausted(_)), "{exhausted}");
    assert_eq!(rest.iter().map(|q| q.id()).collect::<Vec<_>>(), (16..32).collect::<Vec<_>>());
    // With function 1 gone they are function 0's again, but for what that has kept.
    let device = pair.tenants[0][0].ctx.device().clone();
    device.write32(csr::CONTROL, 2);
    while device.read32(csr::STATUS) & 2 != 0 {}
    let back: Vec<_> = (0..7).map(|_| pair.hosts[0].ctx.create_eq(4, 1).unwrap()).collect();
    assert!(back.iter().all(|q| (9..16).contains(&q.id())));
    drop(back);
    // The old driver's objects are void.
    std::mem::forget((pair.tenants.pop(), own, more));
}

/// A window of type 2 belongs to the queue pair it was bound through: the next one of that number has to bind it anew.
#[test]
fn a_window_ends_with_its_queue_pair() {
    let mut pair = Pair::with_functions(&world(64), 1).unwrap();
    // Two numbers, so that they come up again at once; 65 is that of its special queue pair.
    pair.hosts.iter().for_each(|h| h.ctx.set_range(1, ObjectKind::Qp, 66, 1).unwrap());
    pair.open_next().unwrap();
    let mut t = Tenant::new(&pair, 1);
    let host = &pair.of(1)[1];
    let region = host.pd.register_bindable(vec![0; BYTES].into_boxed_slice(), Access::ALL).unwrap();
    let mut window = host.pd.alloc_mw(WindowType::Two).unwrap();
    let next = |t: &mut Tenant| t.qps = pair.connected_of(1, &QpConfig::default(), &Wire::default(), [&t.cqs[0], &t.cqs[1]]).unwrap();
    let own = (t.regions[0].addr(), t.regions[0].lkey());
    let number = t.qps[1].qpn();
    let key = t.qps[1].post_bind(1, &mut window, &region, 0..4096, Access::ALL, true).unwrap();
    assert_eq!(pair.wait(&mut t.cqs[1], CYCLES).unwrap().status, CqeStatus::Success);
    assert_eq!(t.one(&pair, own, (region.addr(), key)), CqeStatus::Success);
    region.write(0, &[0; 64]);
    next(&mut t);
    // The other's peer never had a right to it.
    assert_ne!(t.qps[1].qpn(), number);
    assert_eq!(t.one(&pair, own, (region.addr(), key)), CqeStatus::RemoteAccess);
    next(&mut t);
    assert_eq!(t.qps[1].qpn(), number);
    assert_eq!(t.one(&pair, own, (region.addr(), key)), CqeStatus::RemoteAccess);
    let mut seen = [1; 64];
    region.read(0, &mut seen);
    assert_eq!(seen, [0; 64]);
    // The window is free: it is bound anew, and its region goes with it and not before.
    next(&mut t);
    let key = t.qps[1].post_bind(1, &mut window, &region, 0..4096, Access::ALL, true).unwrap();
    assert_eq!(pair.wait(&mut t.cqs[1], CYCLES).unwrap().status, CqeStatus::Success);
    assert_eq!(t.one(&pair, own, (region.addr(), key)), CqeStatus::Success);
    let in_use = host.ctx.admin(AdminOpcode::DestroyMr, region.lkey() >> 8, &[]);
    refused(AdminStatus::InUse, in_use);
    drop(window);
    host.ctx.admin(AdminOpcode::DestroyMr, region.lkey() >> 8, &[]).unwrap();
    std::mem::forget(region);
}
