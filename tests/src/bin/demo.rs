//! The main job as a demonstration: two simulated cards, two drivers, one wire. See `./scripts/demo --help`.
use clap::Parser;
use ferric_abi::codes::WrOpcode;
use ferric_driver::types::Mtu;
use ferric_sim::{CardConfig, Faults, LinkConfig, WorldConfig};
use ferric_tests::pair::{Error, Pair, Wire};
use ferric_tests::traffic::Flow;
use ferric_tests::uet::{plot, street};
use indicatif::{ProgressBar, ProgressStyle};
use plotters::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Moves RDMA messages between two simulated Ferric cards and shows what it cost.
#[derive(Parser)]
struct Options {
    /// Data path width in bits; 512 without it, with --uet 64.
    #[arg(long)]
    width: Option<usize>,
    /// Path MTU in bytes.
    #[arg(long, default_value_t = 4096)]
    mtu: usize,
    /// Where captures and plots go.
    #[arg(long, default_value = "target/demo")]
    out: PathBuf,
    /// Seed of the lossy run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Three cards of Ultra Ethernet at switches with several paths, instead: 1 % loss, and a path that fails and comes back.
    #[arg(long)]
    uet: bool,
    /// With --uet: cycles in which messages are posted.
    #[arg(long, default_value_t = 400_000, value_parser = clap::value_parser!(u64).range(100_000..))]
    cycles: u64,
}

/// One row of the table.
struct Row {
    name: &'static str,
    size: usize,
    bytes_per_cycle: f64,
    p50: u64,
    p99: u64,
}

const SIZES: [usize; 8] = [64, 256, 1024, 4096, 16384, 65536, 262_144, 1_048_576];
const CYCLE_NS: f64 = 4.0;
const MHZ: f64 = 250.0;

fn main() {
    env_logger::init();
    let options = Options::parse();
    if let Err(e) = if options.uet { run_uet(&options) } else { run(&options) } {
        eprintln!("demo: {e}");
        std::process::exit(1);
    }
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let width = width(options, 512)?;
    let mtu = Mtu::from_bytes(options.mtu).ok_or("--mtu must be 256, 512, 1024, 2048 or 4096")?;
    std::fs::create_dir_all(&options.out)?;
    let bar = ProgressBar::new(2 + 2 * SIZES.len() as u64 + 1).with_style(ProgressStyle::with_template("{elapsed_precise} {bar:30} {pos}/{len} {msg}").unwrap_or(ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.set_message("building the simulated card (minutes the first time, cached afterwards)");
    let card = CardConfig { width, ..Default::default() };
    let config = WorldConfig { cards: vec![card.clone(), card], seed: options.seed, ..Default::default() };
    let mut pair = Pair::new(&config)?;
    bar.inc(1);
    let started = std::time::Instant::now();
    let pcap = options.out.join("demo.pcapng");
    pair.world().start_capture(&pcap)?;
    let wire = Wire { mtu, ..Default::default() };
    let mut rows = Vec::new();
    for (name, opcode) in [("WRITE", WrOpcode::Write), ("SEND", WrOpcode::Send)] {
        for size in SIZES {
            bar.set_message(format!("{name} {size} B"));
            rows.push(measure(&pair, &wire, name, opcode, size)?);
            bar.inc(1);
        }
    }
    pair.world().stop_capture();
    bar.set_message("1 % loss");
    let lossy_pcap = options.out.join("lossy.pcapng");
    let lossy = lossy_run(&mut pair, &wire, &lossy_pcap)?;
    bar.inc(2);
    bar.finish_and_clear();
    let (cycles, seconds) = (pair.world().cycle(), started.elapsed().as_secs_f64());

    println!("Two simulated Ferric cards, {} bit, path MTU {}, host read latency 250 to 310 cycles; every byte verified.\n", width, options.mtu);
    println!("{:6} {:>8} {:>12} {:>12} {:>10} {:>10} {:>10} {:>10}", "", "bytes", "B/cycle", "Gb/s@250MHz", "p50 cyc", "p99 cyc", "p50 ns", "p99 ns");
    for r in &rows {
        println!(
            "{:6} {:>8} {:>12.2} {:>12.2} {:>10} {:>10} {:>10.0} {:>10.0}",
            r.name,
            r.size,
            r.bytes_per_cycle,
            r.bytes_per_cycle * 8.0 * MHZ / 1000.0,
            r.p50,
            r.p99,
            r.p50 as f64 * CYCLE_NS,
            r.p99 as f64 * CYCLE_NS
        );
    }
    println!("\n1 % loss: {lossy}");
    let plot = options.out.join("goodput.svg");
    draw(&plot, &rows)?;
    println!("{cycles} cycles of two cards in {seconds:.1} s: {:.0} cycles/s", cycles as f64 / seconds);
    println!("\nCaptures (open in Wireshark): {} and {}\nPlot: {}", pcap.display(), lossy_pcap.display(), plot.display());
    Ok(())
}

fn width(options: &Options, usual: usize) -> Result<usize, Box<dyn std::error::Error>> {
    match options.width.unwrap_or(usual) {
        width @ (64 | 512) => Ok(width),
        _ => Err("--width must be 64 or 512".into()),
    }
}

/// Frames of a capture as tshark reads them. None: it is not installed.
fn tshark(pcap: &Path) -> Result<Option<u64>, String> {
    let filter = format!("udp.dstport == {}", ferric_abi::uet::UET_PORT);
    match std::process::Command::new("tshark").arg("-r").arg(pcap).args(["-Y", &filter, "-T", "fields", "-e", "frame.number"]).output() {
        Err(_) => Ok(None),
        Ok(out) if out.status.success() => Ok(Some(out.stdout.iter().filter(|byte| **byte == b'\n').count() as u64)),
        Ok(out) => Err(format!("tshark cannot read {}: {}", pcap.display(), String::from_utf8_lossy(&out.stderr))),
    }
}

fn run_uet(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(&options.out)?;
    let (pcap, picture) = (options.out.join("uet.pcapng"), options.out.join("uet-goodput.svg"));
    let plan = street::Plan { width: width(options, 64)?, seed: options.seed, cycles: options.cycles, bin: 10_000, loss: 10_000, capture: Some(pcap.clone()) };
    println!(
        "Three simulated cards `uet`, {} bit, and a switch between them with {} paths of {:?} cycles; packets are sprayed over 16 entropy values, 1 % of the frames is lost.\n",
        plan.width,
        street::PATHS.len(),
        street::PATHS
    );
    let started = std::time::Instant::now();
    let outcome = street::run(&plan)?;
    println!("{}", plot::bars(&plan, &outcome));
    let f = outcome.fabric;
    println!("{} messages of {} bytes, every byte verified, each ended once and well; {} cycles in {:.1} s", outcome.messages, street::BYTES, outcome.cycles, started.elapsed().as_secs_f64());
    println!(
        "frames: {} sent, {} delivered, {} lost, {} on the path that was cut; {} were sent again or refused; packets by path: {:?}",
        f.sent, f.delivered, f.lost, f.cut, outcome.again, outcome.paths
    );
    plot::draw(&picture, &plan, &outcome)?;
    match tshark(&pcap)? {
        Some(read) if read != outcome.captured => return Err(format!("tshark reads {read} of the {} frames in {}", outcome.captured, pcap.display()).into()),
        Some(read) => println!("tshark reads {read} frames of Ultra Ethernet's port in the capture, which are all"),
        None => println!("tshark is not installed: the capture's {} frames are as written", outcome.captured),
    }
    println!("\nCapture (open in Wireshark): {}\nPlot: {}", pcap.display(), picture.display());
    Ok(())
}

/// Goodput with a full window, then latency of single messages (post to completion at the sender).
fn measure(pair: &Pair, wire: &Wire, name: &'static str, opcode: WrOpcode, size: usize) -> Result<Row, Error> {
    let count = (1_048_576 / size).clamp(3, 64) as u64;
    let window = (262_144 / size).clamp(2, 32);
    let mut flow = Flow::new(pair, wire, size, window, false)?;
    flow.run(pair, opcode, 2, 200_000)?;
    let start = pair.world().cycle();
    flow.run(pair, opcode, 2 + count, 400_000)?;
    let cycles = pair.world().cycle() - start;
    let mut single = Flow::new(pair, wire, size, 2, false)?;
    single.run(pair, opcode, 1, 200_000)?;
    let mut latencies = Vec::new();
    for n in 0..if size > 65536 { 3 } else { 16 } {
        let start = pair.world().cycle();
        while !single.advance(opcode, n + 2)? {
            pair.world().step();
            if pair.world().cycle() - start > 400_000 {
                return Err(Error::Stuck(format!("{name} of {size} bytes does not complete")));
            }
        }
        latencies.push(pair.world().cycle() - start);
    }
    latencies.sort_unstable();
    let at = |p: usize| latencies[(latencies.len() * p / 100).min(latencies.len() - 1)];
    Ok(Row { name, size, bytes_per_cycle: (count as usize * size) as f64 / cycles as f64, p50: at(50), p99: at(99) })
}

fn lossy_run(pair: &mut Pair, wire: &Wire, pcap: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let faults = Faults { loss: 10_000, ..Default::default() };
    for link in &mut pair.world().links {
        link.set_config(LinkConfig { faults, ..Default::default() });
    }
    pair.world().start_capture(pcap)?;
    let before: u64 = pair.world().links.iter().map(|l| l.counters.dropped).sum();
    let mut flow = Flow::new(pair, wire, 65536, 8, false)?;
    flow.run(pair, WrOpcode::Write, 48, 4_000_000)?;
    let mut world = pair.world();
    let after: u64 = world.links.iter().map(|l| l.counters.dropped).sum();
    world.stop_capture();
    for link in &mut world.links {
        link.set_config(LinkConfig::default());
    }
    Ok(format!("{} messages of 65536 B, {} frames lost in the wire, every byte delivered", flow.done(), after - before))
}

fn draw(path: &Path, rows: &[Row]) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (900, 540)).into_drawing_area();
    root.fill(&WHITE)?;
    let top = rows.iter().map(|r| r.bytes_per_cycle).fold(1.0, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(&root)
        .caption("Goodput of one queue pair, one direction", ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d((64f64..1_048_576f64).log_scale(), 0f64..top)?;
    chart.configure_mesh().x_desc("message size in bytes").y_desc("bytes per cycle").draw()?;
    for (name, color) in [("WRITE", &RED), ("SEND", &BLUE)] {
        let points = rows.iter().filter(|r| r.name == name).map(|r| (r.size as f64, r.bytes_per_cycle));
        chart.draw_series(LineSeries::new(points, color))?.label(name).legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color));
    }
    chart.configure_series_labels().border_style(BLACK).draw()?;
    root.present()?;
    Ok(())
}
