//! Other numbers of clients than those of a RoCE card.

use super::*;
use crate::assembly::{FEWEST_PORTS, MOST_CLIENTS};

fn others<const W: usize, const K: usize, const LK: usize>(clients: usize, name: &str, seed: u64) {
    let temper = Temper { latency: (1, 600), bad: 20, shuffle: 1 };
    exercise(&mut Bench::<W, K, LK>::of(clients, name, seed, temper, 30));
}

/// Every client hears of its own writes, in its order, and of nobody else's.
#[test]
fn random_writes_arrive_whoever_asks() {
    others::<64, 8, 3>(MOST_CLIENTS, "dma_wr64_many", 21);
    others::<512, 64, 6>(3, "dma_wr512_three", 22);
    others::<64, 8, 3>(FEWEST_PORTS, "dma_wr64_few", 23);
}

/// While everybody asks for all that he can, everybody gets the same: writes go out in turns.
#[test]
fn clients_take_turns() {
    let mut bench = Bench::<64, 8, 3>::of(MOST_CLIENTS, "dma_wr64_many", 24, Temper { latency: (10, 10), bad: 0, shuffle: 1 }, 0);
    const WRITES: usize = 50;
    for n in 0..WRITES {
        for port in 0..MOST_CLIENTS {
            bench.write(port, ((n * MOST_CLIENTS + port) as u64) << 6, 64);
        }
    }
    bench.settle(20_000);
    let port_of = |function: &u64| bench.all.iter().position(|port| port.iter().any(|write| write.function == *function)).expect("somebody's");
    let ports: Vec<usize> = bench.host.order.iter().map(port_of).collect();
    for (n, turn) in ports.chunks(MOST_CLIENTS).enumerate() {
        (0..MOST_CLIENTS).for_each(|port| assert!(turn.contains(&port), "turn {n}: {turn:?}"));
    }
    assert_eq!(ports.len(), WRITES * MOST_CLIENTS);
}
