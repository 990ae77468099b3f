//! What the benches run. Conditions of the architecture page, section 6: host read latency 250 cycles, completions out of order, caches
//! warm, data verified.
use crate::pair::{Error, Pair, Wire};
use crate::traffic::{run_all, Flow};
use ferric_abi::codes::WrOpcode;
use ferric_driver::types::Mtu;
use ferric_sim::axi::HostTiming;
use ferric_sim::{CardConfig, WorldConfig};
use std::io::Write;
use std::path::Path;

/// Cycles within which anything here ends.
pub(super) const PATIENCE: u64 = 400_000;

/// A fresh pair of cards under bench conditions.
pub fn pair(width: usize) -> Result<Pair, Error> {
    let host = HostTiming { read_latency: 250, read_jitter: 60, ..Default::default() };
    let card = CardConfig { width, host, ..Default::default() };
    Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() })
}

/// Runs `work` with the boundary trace on and writes it to `path`.
pub fn traced(pair: &Pair, path: &Path, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    pair.world().trace = Some(Vec::new());
    work()?;
    let events = pair.world().trace.take().unwrap_or_default();
    let fail = |e: std::io::Error| Error::Stuck(format!("{}: {e}", path.display()));
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).map_err(fail)?);
    for e in events {
        writeln!(file, "{},{},{:?},{},{},{:#x}", e.cycle, e.card, e.kind, e.bytes, e.last, e.addr).map_err(fail)?;
    }
    file.flush().map_err(fail)
}

/// Large WRITEs both ways at once.
pub fn bulk(pair: &Pair, mtu: Mtu, path: &Path) -> Result<(), Error> {
    let wire = Wire { mtu, timeout: 14, ..Default::default() };
    let mut there = Flow::new(pair, &wire, 262_144, 4, false)?;
    let mut back = Flow::new(pair, &wire, 262_144, 4, true)?;
    let mut flows = [(&mut there, WrOpcode::Write), (&mut back, WrOpcode::Write)];
    run_all(pair, &mut flows, 4, PATIENCE)?;
    traced(pair, path, || run_all(pair, &mut flows, 32, PATIENCE))
}

/// 64-byte WRITEs on `qps` queue pairs, one direction or both. Returns how many messages each direction carried while traced.
pub fn small(pair: &Pair, qps: usize, both: bool, path: &Path) -> Result<u64, Error> {
    let wire = Wire { timeout: 14, ..Default::default() };
    let mut flows = Vec::new();
    for i in 0..qps * (1 + both as usize) {
        flows.push(Flow::new(pair, &wire, 64, if qps == 1 { 128 } else { 32 }, i >= qps)?);
    }
    let (warm, count) = if qps == 1 { (128, 1024) } else { (32, 128) };
    let mut refs: Vec<_> = flows.iter_mut().map(|f| (f, WrOpcode::Write)).collect();
    run_all(pair, &mut refs, warm, 200_000)?;
    traced(pair, path, || run_all(pair, &mut refs, count, 200_000))?;
    Ok(qps as u64 * (count - warm))
}

/// Single 64-byte WRITEs, one at a time.
pub fn single(pair: &Pair, path: &Path) -> Result<(), Error> {
    let wire = Wire { timeout: 14, ..Default::default() };
    let mut flow = Flow::new(pair, &wire, 64, 2, false)?;
    flow.run(pair, WrOpcode::Write, 4, 200_000)?;
    traced(pair, path, || {
        for n in 5..21 {
            flow.run(pair, WrOpcode::Write, n, 200_000)?;
        }
        Ok(())
    })
}
