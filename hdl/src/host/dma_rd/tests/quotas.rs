//! Other numbers of clients and other quotas than those of a RoCE card.

use super::*;

/// Most clients, every size of share, and some tags that nobody has.
const MANY: &[usize] = &[4, 16, 4, 8, 32, 8, 4, 4];
/// All tags, the largest shares.
const TWO: &[usize] = &[64, 64];
/// 300 together, more than ids of 8 bits tell apart; and all that ids of 9 bits do.
const WIDE: &[usize] = &[64, 4, 64, 32, 64, 8, 64];
const ALL: &[usize] = &[64; 6];
/// The card without engines: its admin engine.
const ONE: &[usize] = &[8];

fn others<const W: usize, const K: usize, const LK: usize>(quotas: &[usize], name: &str, seed: u64) {
    let temper = Temper { latency: (1, 600), bad: 20, shuffle: 256 };
    exercise(&mut Bench::<W, K, LK>::of(quotas, name, seed, temper, 30));
}

#[test]
fn random_reads_arrive_whoever_asks() {
    others::<64, 8, 3>(MANY, "dma_rd64_many", 21);
    others::<512, 64, 6>(TWO, "dma_rd512_two", 22);
    others::<64, 8, 3>(ONE, "dma_rd64_one", 23);
}

/// Ids of 9 bits, each of them in use several times: every port goes round its ring of ids.
#[test]
fn random_reads_arrive_under_wide_ids() {
    assert_eq!(WIDE.iter().sum::<usize>(), 300);
    let temper = Temper { latency: (1, 1000), bad: 20, shuffle: 512 };
    let mut bench = Bench::<64, 8, 3>::of(WIDE, "dma_rd64_wide", 26, temper, 10);
    assert_eq!((bench.tb.width("ar_id"), bench.tb.width("r_id")), (9, 9));
    exercise_with(&mut bench, 250, 1500);
    exercise_with(&mut Bench::<512, 64, 6>::of(WIDE, "dma_rd512_wide", 27, temper, 10), 250, 1500);
    for (quotas, name, bits) in [(TWO, "dma_rd64_two", 8), (ROCE, "dma_rd64", 9)] {
        assert_eq!(Bench::<64, 8, 3>::of(quotas, name, 28, temper, 0).tb.width("ar_id"), bits);
    }
    // With 256 reads of payload.
    assert_eq!(Bench::<512, 64, 6>::of(TWO, "dma_rd512_two", 28, temper, 0).tb.width("ar_id"), 9);
}

/// However much a client asks for, its reads in flight are as many as its quota allows, and no fewer. `roomy`: the port with eight rows behind each tag. `lean`: those with two.
fn fills_its_quota<const W: usize, const K: usize, const LK: usize>(quotas: &[usize], name: &str, rows: u64, roomy: usize, lean: &[usize]) {
    let mut bench = Bench::<W, K, LK>::of(quotas, name, 24, Temper { latency: (900, 900), bad: 0, shuffle: 1 }, 0);
    let mut client = HashMap::new();
    for (port, quota) in quotas.iter().enumerate() {
        for n in 0..3 * *quota as u64 {
            bench.read_small(port, n << 9, rows);
            client.insert(bench.next_function, port);
        }
    }
    let mut most = vec![0; quotas.len()];
    while !bench.idle() {
        bench.cycle();
        let mut flying = vec![0; quotas.len()];
        bench.host.functions().for_each(|function| flying[client[&function]] += 1);
        most.iter_mut().zip(&flying).for_each(|(most, now)| *most = *now.max(most));
        assert!(bench.tb.cycles() < 60_000, "reads are missing");
    }
    // Four rows stand behind a tag, eight behind those of the largest share if there is room: of reads with eight, half as many, or all; a quarter where two rows do.
    let fits = |port: usize| match rows > 4 && port != roomy {
        true if lean.contains(&port) => quotas[port] / 4,
        true => quotas[port] / 2,
        false => quotas[port],
    };
    let want: Vec<usize> = (0..quotas.len()).map(fits).collect();
    assert_eq!(most, want, "reads of {rows} rows");
}

#[test]
fn nobody_exceeds_its_quota() {
    fills_its_quota::<64, 8, 3>(MANY, "dma_rd64_many", 1, 4, &[]);
    fills_its_quota::<64, 8, 3>(MANY, "dma_rd64_many", 8, 4, &[]);
    fills_its_quota::<512, 64, 6>(ROCE, "dma_rd512", 1, 1, &[3, 4]);
    fills_its_quota::<512, 64, 6>(ROCE, "dma_rd512", 8, 1, &[3, 4]);
    fills_its_quota::<512, 64, 6>(TWO, "dma_rd512_two", 8, 0, &[]);
    fills_its_quota::<64, 8, 3>(WIDE, "dma_rd64_wide", 1, 0, &[]);
    fills_its_quota::<512, 64, 6>(ALL, "dma_rd512_all", 1, 0, &[]);
}

/// A client that takes no rows, however many it asked for, stops itself and nobody else.
#[test]
fn a_client_that_takes_no_rows_stops_only_itself() {
    let mut bench = Bench::<64, 8, 3>::of(MANY, "dma_rd64_many", 25, Temper { latency: (50, 200), bad: 10, shuffle: 64 }, 0);
    for stuck in 0..MANY.len() {
        bench.small[stuck].1.refuse();
        for port in 0..MANY.len() {
            (0..40).for_each(|n| bench.read_small(port, (stuck as u64) << 20 | n << 9, 1 + n % 8));
        }
        let end = bench.tb.cycles() + 40_000;
        while (0..MANY.len()).any(|port| port != stuck && !bench.rows[port].is_empty()) {
            assert!(bench.tb.cycles() < end, "port {stuck} stops others");
            bench.cycle();
        }
        assert_eq!(bench.rows[stuck].len(), 40, "port {stuck} took a row");
        bench.small[stuck].1.set_stall(0);
        bench.settle(20_000);
    }
}
