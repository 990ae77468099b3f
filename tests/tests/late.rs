//! What is the program's again the card does not touch: regions that are destroyed, queue pairs that are gone, buffers whose request has been completed in any way.
//! The memory's own watch (`ferric_sim::watch`) writes down what comes too late.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::Mtu;
use ferric_driver::{Access, CompletionQueue, CqeStatus, MemoryRegion, QpConfig, QueuePair, ReadRequest, RecvRequest, SendRequest};
use ferric_sim::axi::HostTiming;
use ferric_sim::{CardConfig, Faults, LinkConfig, WorldConfig};
use ferric_tests::pair::{Pair, Wire};
use ferric_tests::traffic::Flow;
use ferric_tests::widths::widths;
use std::thread;

const PATIENCE: u64 = 600_000;
/// Cycles in which whatever was decided too early would have come.
const AFTER: u64 = 4000;

fn world(width: usize, mac_stall_percent: u32, seed: u64) -> WorldConfig {
    let card = CardConfig { width, mac_stall_percent, seed, ..Default::default() };
    WorldConfig { cards: vec![card.clone(), card], seed, tick_cycles: 64, ..Default::default() }
}

/// At one width in the suite ([`widths`]), at both at once otherwise.
fn at(one: usize, run: impl Fn(usize) + Copy + Send + 'static) {
    let runs: Vec<_> = widths(one).into_iter().map(|width| thread::spawn(move || run(width))).collect();
    runs.into_iter().for_each(|run| run.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
}

fn untouched(pair: &Pair, what: &str) {
    pair.world().run(AFTER);
    let late = pair.trespasses();
    assert!(late.is_empty(), "{what}: {} accesses, the first {}", late.len(), late[0]);
    assert_eq!(pair.iommu_faults(), 0, "{what}");
}

fn write(wr_id: u64, from: &MemoryRegion, at: usize, len: usize, to: &MemoryRegion) -> SendRequest<'static> {
    let list = Box::leak(Box::new([sge(from.addr() + at as u64, len as u32, from.lkey())]));
    SendRequest { wr_id, opcode: WrOpcode::Write, payload: Payload::Sges(list), remote_addr: to.addr(), rkey: to.rkey(), imm: 0, signaled: true, solicited: false }
}

fn read(qp: &mut QueuePair, wr_id: u64, to: &MemoryRegion, at: usize, len: usize, from: &MemoryRegion) {
    let sges = [sge(to.addr() + at as u64, len as u32, to.lkey())];
    qp.post_read(&ReadRequest { wr_id, sges: &sges, remote_addr: from.addr(), rkey: from.rkey(), signaled: true, fence: false }).unwrap();
}

fn connected(pair: &Pair, wire: &Wire) -> ([CompletionQueue; 2], [QueuePair; 2]) {
    let cqs = [pair.hosts[0].cq(64).unwrap(), pair.hosts[1].cq(64).unwrap()];
    let qps = pair.connected(&QpConfig { max_send: 16, ..Default::default() }, wire, [&cqs[0], &cqs[1]]).unwrap();
    (cqs, qps)
}

#[test]
fn a_region_that_is_destroyed_while_it_is_sent_is_not_read_again() {
    at(64, |width| {
        let pair = Pair::new(&world(width, 50, 1)).unwrap();
        let dst = pair.hosts[1].region(65_536, Access::ALL).unwrap();
        for wait in [150, 500, 900, 1400, 2500] {
            let (mut cqs, mut qps) = connected(&pair, &Wire { mtu: Mtu::M1024, ..Default::default() });
            let src = pair.hosts[0].region(65_536, Access::ALL).unwrap();
            for n in 0..4 {
                qps[0].post_send(&write(n, &src, 0, 65_536, &dst)).unwrap();
            }
            pair.world().run(wait);
            drop(src);
            untouched(&pair, "source");
            let c = pair.wait(&mut cqs[0], PATIENCE).unwrap();
            assert!(matches!(c.status, CqeStatus::Success | CqeStatus::LocalProtection), "{c:?}");
        }
        // The same of what is written, and of what the peer reads.
        for wait in [300, 700, 1500, 3000] {
            let (_cqs, mut qps) = connected(&pair, &Wire { mtu: Mtu::M1024, ..Default::default() });
            let (own, far) = (pair.hosts[0].region(65_536, Access::ALL).unwrap(), pair.hosts[1].region(65_536, Access::ALL).unwrap());
            qps[0].post_send(&write(0, &own, 0, 65_536, &far)).unwrap();
            read(&mut qps[0], 1, &own, 0, 65_536, &far);
            pair.world().run(wait);
            drop(far);
            untouched(&pair, "target");
            drop(own);
            untouched(&pair, "where a READ goes");
        }
    });
}

/// Nothing is wrong with this program: it takes its memory back when its request has succeeded. Acknowledges that come late have made the card send again.
#[test]
fn late_acknowledges_read_nothing_behind_the_completion_of_a_program() {
    at(512, |width| {
        let link = LinkConfig { faults: Faults { reorder: 800_000, reorder_cycles: 12_000, ..Default::default() }, ..Default::default() };
        let pair = Pair::new(&world(width, 75, 2)).unwrap();
        pair.world().links[1].set_config(link);
        let dst = pair.hosts[1].region(65_536, Access::ALL).unwrap();
        let (mut cqs, mut qps) = connected(&pair, &Wire { mtu: Mtu::M1024, timeout: 5, ..Default::default() });
        let index = ferric_hdl::card::counters::index("req_rx.retransmits").unwrap() as u32;
        let sent_again = || pair.hosts[0].ctx.counters(index, 1).unwrap()[0];
        // How often the card has to send again depends on when the host's threads run: the rounds go on until there was something to get wrong.
        let mut again = 0;
        for round in 0..300 {
            let src = pair.hosts[0].region(8192, Access::ALL).unwrap();
            for n in 0..2 {
                qps[0].post_send(&write(n, &src, 0, 8192, &dst)).unwrap();
            }
            for _ in 0..2 {
                assert_eq!(pair.wait(&mut cqs[0], PATIENCE).unwrap().status, CqeStatus::Success);
            }
            drop(src);
            let late = pair.trespasses();
            assert!(late.is_empty(), "round {round}: {} reads, the first {}", late.len(), late[0]);
            again = sent_again();
            if round >= 29 && again > 5 {
                break;
            }
        }
        untouched(&pair, "source");
        assert!(again > 5, "at {width} bits {again} packets were sent again");
    });
}

/// READs in all states of completion, and the queue pair goes to error: what has been flushed is not written.
#[test]
fn answers_are_not_written_behind_a_flush() {
    at(64, |width| {
        let host = HostTiming { write_latency: 400, stall_percent: 40, ..Default::default() };
        let mut config = world(width, 0, 3);
        config.cards.iter_mut().for_each(|card| card.host = host);
        let pair = Pair::new(&config).unwrap();
        let own = pair.hosts[0].region(8 * 8192, Access::ALL).unwrap();
        let far = pair.hosts[1].region(8192, Access::ALL).unwrap();
        let mut flushed = 0;
        for round in 0..24 {
            let (mut cqs, mut qps) = connected(&pair, &Wire { mtu: Mtu::M1024, ..Default::default() });
            for n in 0..8 {
                read(&mut qps[0], n, &own, n as usize * 8192, 8192, &far);
            }
            pair.world().run(700 + 120 * round);
            // The host takes it down, or the peer sends what it may not.
            match round % 2 {
                0 => qps[0].to_error().unwrap(),
                _ => {
                    let mut bad = write(100, &far, 0, 64, &own);
                    bad.rkey ^= 1;
                    qps[1].post_send(&bad).unwrap();
                }
            }
            for _ in 0..8 {
                let c = pair.wait(&mut cqs[0], PATIENCE).unwrap();
                let at = c.wr_id as usize * 8192;
                pair.seal(0, &own, at..at + 8192, false);
                flushed += u32::from(c.status == CqeStatus::WrFlush);
            }
            untouched(&pair, "READs");
            pair.unseal(0, &own, 0..own.len());
        }
        assert!(flushed > 24, "{flushed} flushed");
    });
}

/// A refusal in the middle of a READ of several packets: its buffer is the program's when it is told.
#[test]
fn answers_are_not_written_behind_an_error() {
    at(512, |width| {
        let host = HostTiming { write_latency: 400, stall_percent: 40, ..Default::default() };
        let mut config = world(width, 0, 4);
        config.cards.iter_mut().for_each(|card| card.host = host);
        let pair = Pair::new(&config).unwrap();
        let own = pair.hosts[0].region(65_536, Access::ALL).unwrap();
        for wait in 0..12 {
            let (mut cqs, mut qps) = connected(&pair, &Wire { mtu: Mtu::M1024, ..Default::default() });
            let far = pair.hosts[1].region(65_536, Access::ALL).unwrap();
            read(&mut qps[0], 0, &own, 0, 65_536, &far);
            pair.world().run(1200 + 150 * wait);
            // Its key goes while the answers are made.
            drop(far);
            let c = pair.wait(&mut cqs[0], PATIENCE).unwrap();
            pair.seal(0, &own, 0..own.len(), false);
            untouched(&pair, &format!("READ that ended with {:?}", c.status));
            pair.unseal(0, &own, 0..own.len());
        }
    });
}

/// A receive that a message is being written into is flushed: behind its completion nothing more comes.
#[test]
fn a_message_is_not_written_behind_the_flush_of_its_receive() {
    at(64, |width| {
        let host = HostTiming { write_latency: 400, stall_percent: 40, ..Default::default() };
        let mut config = world(width, 0, 5);
        config.cards.iter_mut().for_each(|card| card.host = host);
        let pair = Pair::new(&config).unwrap();
        let src = pair.hosts[0].region(16_384, Access::ALL).unwrap();
        let dst = pair.hosts[1].region(2 * 16_384, Access::ALL).unwrap();
        for wait in 0..8 {
            let (mut cqs, mut qps) = connected(&pair, &Wire { mtu: Mtu::M1024, ..Default::default() });
            for n in 0..2 {
                let into = [sge(dst.addr() + n * 16_384, 16_384, dst.lkey())];
                qps[1].post_recv(&RecvRequest { wr_id: n, sges: &into }).unwrap();
                qps[0].post_send(&SendRequest { opcode: WrOpcode::Send, ..write(n, &src, 0, 16_384, &dst) }).unwrap();
            }
            pair.world().run(900 + 250 * wait);
            qps[1].to_error().unwrap();
            for _ in 0..2 {
                let c = pair.wait(&mut cqs[1], PATIENCE).unwrap();
                let at = c.wr_id as usize * 16_384;
                pair.seal(1, &dst, at..at + 16_384, false);
            }
            untouched(&pair, "receives");
            pair.unseal(1, &dst, 0..dst.len());
        }
    });
}

/// Queue pairs go while they send, are sent to, read and are read from; their regions stay, and nobody touches them any more. So do their rings and completion queues.
#[test]
fn a_queue_pair_that_is_gone_touches_nothing() {
    at(512, |width| {
        let pair = Pair::new(&world(width, 50, 6)).unwrap();
        let regions = [0, 1].map(|host| pair.hosts[host].region(65_536, Access::ALL).unwrap());
        for round in 0..12 {
            let (cqs, [mut a, mut b]) = connected(&pair, &Wire { mtu: Mtu::M1024, ..Default::default() });
            for n in 0..6 {
                a.post_send(&write(n, &regions[0], 0, 20_000, &regions[1])).unwrap();
                read(&mut b, n, &regions[1], 30_000, 20_000, &regions[0]);
            }
            pair.world().run(300 + 170 * round);
            // One that reads and is written to, or one that writes and is read from; destroyed or reset.
            let side = round as usize % 2;
            let (mut gone, stays) = if side == 0 { (a, b) } else { (b, a) };
            if round % 4 < 2 {
                drop(gone);
            } else {
                gone.to_reset().unwrap();
                std::mem::forget(gone);
            }
            pair.seal(side, &regions[side], 0..65_536, true);
            untouched(&pair, &format!("round {round}, host {side}"));
            pair.unseal(side, &regions[side], 0..65_536);
            drop((stays, cqs));
            untouched(&pair, &format!("round {round}, rings"));
        }
    });
}

/// A function that has been reset touches nothing of what its driver had.
#[test]
fn a_function_that_was_reset_touches_nothing() {
    at(64, |width| {
        let mut pair = Pair::new(&world(width, 50, 7)).unwrap();
        for round in 0..2 {
            let (cqs, mut qps) = connected(&pair, &Wire { mtu: Mtu::M1024, ..Default::default() });
            let regions = [0, 1].map(|host| pair.hosts[host].region(65_536, Access::ALL).unwrap());
            for n in 0..6 {
                qps[0].post_send(&write(n, &regions[0], 0, 20_000, &regions[1])).unwrap();
                read(&mut qps[1], n, &regions[1], 30_000, 20_000, &regions[0]);
            }
            pair.world().run(900 + 300 * round);
            pair.take_over().unwrap();
            for host in 0..2 {
                pair.seal(host, &regions[host], 0..65_536, true);
            }
            untouched(&pair, "after the reset");
            std::mem::forget((cqs, qps, regions));
        }
    });
}

/// Regions come and go under full traffic of others: each is gone soon, and the others go on.
#[test]
fn the_wait_ends_under_full_traffic_and_holds_nobody_up() {
    at(512, |width| {
        let pair = Pair::new(&world(width, 0, 8)).unwrap();
        let wire = Wire { mtu: Mtu::M1024, ..Default::default() };
        let mut flows: Vec<_> = (0..4).map(|n| Flow::new(&pair, &wire, 8192, 8, n % 2 == 1).unwrap()).collect();
        let count = 40;
        let (mut longest, mut destroyed) = (0, 0);
        let start = pair.world().cycle();
        while !flows.iter_mut().fold(true, |all, flow| flow.advance(WrOpcode::Write, count).unwrap() & all) {
            pair.world().run(50);
            if destroyed < 12 {
                let region = pair.hosts[0].region(4096, Access::ALL).unwrap();
                let before = pair.world().cycle();
                drop(region);
                longest = longest.max(pair.world().cycle() - before);
                destroyed += 1;
            }
            assert!(pair.world().cycle() - start < PATIENCE, "the others stand still");
        }
        assert!(destroyed > 5, "{destroyed} destroyed");
        // What had slots in the egress before has to leave: 64 KiB at 8 bytes a cycle, more than once.
        assert!(longest < 40_000, "{longest} cycles for a region to go");
        untouched(&pair, "regions");
    });
}
