//! Writes `target/bench/report.json`. Figures come from boundary traces, read back from disk by `bench::reader`.
use clap::Parser;
use ferric_driver::types::Mtu;
use ferric_tests::bench::{answers, datagrams, host, reader, registrations, scenario};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// Cycle-exact figures of two simulated cards of 512 bits, at a host read latency of 250 cycles
#[derive(Parser)]
#[command(name = "bench")]
struct Options {
    /// Where report and traces go.
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    /// Program whose instructions are counted.
    #[arg(long, default_value = "target/release/examples/host-cost")]
    host_cost: PathBuf,
}

fn main() {
    env_logger::init();
    let options = Options::parse();
    if let Err(e) = run(&options) {
        eprintln!("bench: {e}");
        std::process::exit(1);
    }
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let out = options.out.as_path();
    std::fs::create_dir_all(out)?;
    let mut report: BTreeMap<&str, f64> = BTreeMap::new();
    let file = |name: &str| -> PathBuf { out.join(format!("{name}.trace")) };
    let started = Instant::now();
    let mut cycles = 0;
    let missing = "the trace holds no data frames";

    for (key, mtu) in [("write_4096_efficiency", Mtu::M4096), ("write_1024_efficiency", Mtu::M1024)] {
        let pair = scenario::pair(512)?;
        scenario::bulk(&pair, mtu, &file(key))?;
        cycles += pair.world().cycle();
        let trace = reader::read(&file(key))?;
        let each = [0, 1].map(|c| reader::efficiency(&trace, c, mtu.bytes() as u64, 64));
        let [Some(a), Some(b)] = each else { return Err(missing.into()) };
        report.insert(key, a.min(b));
    }
    let pair = scenario::pair(512)?;
    answers::reads(&pair, Mtu::M4096, &file("read_4096_efficiency"))?;
    cycles += pair.world().cycle();
    let trace = reader::read(&file("read_4096_efficiency"))?;
    let each = [0, 1].map(|c| reader::efficiency(&trace, c, 4096, 64));
    let [Some(a), Some(b)] = each else { return Err(missing.into()) };
    report.insert("read_4096_efficiency", a.min(b));
    let pair = scenario::pair(512)?;
    let messages = answers::atomics(&pair, 16, &file("atomic_cycles_per_op"))?;
    cycles += pair.world().cycle();
    let trace = reader::read(&file("atomic_cycles_per_op"))?;
    report.insert("atomic_cycles_per_op", reader::cycles_per_frame(&trace, 0, messages, reader::ATOMIC).ok_or(missing)?);
    for (key, qps, both) in [("msg64_cycles_per_packet_many_qp", 32, false), ("msg64_cycles_per_packet_both_ways", 16, true), ("msg64_cycles_per_packet_one_qp", 1, false)] {
        let pair = scenario::pair(512)?;
        let messages = scenario::small(&pair, qps, both, &file(key))?;
        cycles += pair.world().cycle();
        let trace = reader::read(&file(key))?;
        let here = reader::cycles_per_message(&trace, 0, messages).ok_or(missing)?;
        let there = if both { reader::cycles_per_message(&trace, 1, messages).ok_or(missing)? } else { 0.0 };
        report.insert(key, here.max(there));
    }
    let pair = scenario::pair(512)?;
    let messages = datagrams::datagrams(&pair, 8, &file("ud"))?;
    cycles += pair.world().cycle();
    report.insert("ud_cycles_per_packet", reader::cycles_per_message(&reader::read(&file("ud"))?, 0, messages).ok_or(missing)?);
    let pair = scenario::pair(512)?;
    scenario::single(&pair, &file("single"))?;
    cycles += pair.world().cycle();
    let trace = reader::read(&file("single"))?;
    report.insert("doorbell_to_wire_cycles", reader::doorbell_to_wire(&trace, 0).ok_or(missing)?);
    report.insert("wire_to_dma_cycles", reader::wire_to_dma(&trace, 1).ok_or(missing)?);
    let costs = registrations::costs()?;
    report.extend([("registration_each_cycles", costs.each), ("registration_pool_cycles", costs.pool), ("registration_bounce_cycles", costs.bounce), ("registration_once_cycles", costs.once)]);
    // Two cards and their drivers, verification included; building the cards is not.
    report.insert("cosim_cycles_per_second", (cycles as f64 / started.elapsed().as_secs_f64()).round());

    let cost = host::measure(&options.host_cost, out)?;
    report.insert("post_poll_instructions", cost.instructions);
    report.insert("post_allocations", cost.allocations);

    let text = serde_json::to_string_pretty(&report)?;
    std::fs::write(out.join("report.json"), &text)?;
    println!("{text}");
    Ok(())
}
