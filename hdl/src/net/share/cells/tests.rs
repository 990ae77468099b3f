//! The bench plays the clients and the cell buffer: it answers every read with bytes that say whose it was.

use super::CellShare;
use crate::msg::CellRead;
use crate::tb::{AxisSink, AxisSource, Fields, Sink, Tb};

/// Bytes that answer read `n` of client `i`.
fn answer(client: usize, n: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (client * 71 + n * 13 + at) as u8).collect()
}

/// The cell buffer.
struct Cells {
    read: Sink,
    data: AxisSource,
    /// Client and length of every read, in the order in which they came.
    reads: Vec<(usize, usize)>,
}

impl Cells {
    fn new(tb: &mut Tb, stall: u32) -> Self {
        Self { read: tb.sink("m_read", stall), data: tb.axis_source("s_data", stall), reads: Vec::new() }
    }

    fn serve(&mut self) {
        let layout = Fields::of::<CellRead>();
        while let Some(got) = self.read.pop() {
            let value = |name| layout.get(&got, name) as usize;
            let (client, n, len) = (value("handle"), value("off"), value("len"));
            self.reads.push((client, len));
            if len > 0 {
                self.data.push(&answer(client, n, len));
            }
        }
    }
}

fn read(client: usize, n: usize, len: usize) -> Vec<u32> {
    Fields::of::<CellRead>().pack(&[("handle", client as u128), ("off", n as u128), ("len", len as u128), ("free", (n as u128) & 1)])
}

fn bench<const W: usize, const K: usize, const N: usize>() -> Tb {
    let mut tb = Tb::new(&format!("cell_share{N}_w{W}"), CellShare::<W, K, N>::default());
    tb.allow_combinational();
    tb
}

fn check(port: &AxisSink, client: usize, lens: &[usize]) {
    for (n, len) in lens.iter().enumerate().filter(|(_, len)| **len > 0) {
        assert_eq!(port.pop(), Some(answer(client, n, *len)), "client {client}, read {n}");
    }
    assert_eq!(port.beats(), 0);
}

fn every_beat_finds_its_reader<const W: usize, const K: usize, const N: usize>() {
    const READS: usize = 200;
    for stalls in [[0, 0, 0], [30, 60, 30], [70, 0, 40], [0, 80, 0]] {
        let mut tb = bench::<W, K, N>();
        let reads: Vec<_> = (0..N).map(|i| tb.source(&format!("s_read${i}"), stalls[0])).collect();
        let data: Vec<_> = (0..N).map(|i| tb.axis_sink(&format!("m_data${i}"), stalls[1])).collect();
        let mut cells = Cells::new(&mut tb, stalls[2]);
        // One in five only frees.
        let lens: Vec<Vec<usize>> = (0..N).map(|_| (0..READS).map(|_| if tb.rng().below(5) == 0 { 0 } else { tb.rng().range(1, 5 * K as u64) as usize }).collect()).collect();
        reads.iter().enumerate().for_each(|(i, port)| lens[i].iter().enumerate().for_each(|(n, len)| port.push(read(i, n, *len))));
        let beats: Vec<usize> = lens.iter().map(|lens| lens.iter().map(|len| len.div_ceil(K)).sum()).collect();
        tb.run_until(60_000, |_| {
            cells.serve();
            reads.iter().all(|port| port.pending() == 0) && data.iter().zip(&beats).all(|(port, beats)| port.beats() == *beats)
        });
        data.iter().enumerate().for_each(|(i, port)| check(port, i, &lens[i]));
        // All ask all the time: each in turn.
        if stalls[0] == 0 {
            let half = &cells.reads[..N * READS / 2];
            (0..N).for_each(|i| assert_eq!(half.iter().filter(|r| r.0 == i).count(), READS / 2, "client {i}"));
        }
    }
}

#[test]
fn every_beat_finds_its_reader_2() {
    every_beat_finds_its_reader::<64, 8, 2>();
    every_beat_finds_its_reader::<512, 64, 2>();
}

#[test]
fn every_beat_finds_its_reader_4() {
    every_beat_finds_its_reader::<64, 8, 4>();
}

/// A client that reads alone loses no cycle: reads are at the cell buffer when they are shown, beats at the client when they come.
#[test]
fn alone_is_as_if_nothing_stood_between() {
    for client in 0..2 {
        let mut tb = bench::<64, 8, 2>();
        let (reads, data) = (tb.source(&format!("s_read${client}"), 0), tb.axis_sink(&format!("m_data${client}"), 0));
        let mut cells = Cells::new(&mut tb, 0);
        (0..100).for_each(|n| reads.push(read(client, n, 8)));
        for cycle in 1..=100 {
            tb.cycle();
            cells.serve();
            assert_eq!((reads.taken(), data.taken()), (cycle, cycle - 1), "client {client}");
        }
    }
}
