//! The `ferric` command as a library, so that tests can run it from a program of their own.
pub mod address;
pub mod args;
pub mod capture;
pub mod device;
pub mod dump;
mod generate;
pub mod inspect;
pub mod interop;
pub mod party;
pub mod perf;
pub mod pingpong;
pub mod raw;
pub mod run;
pub mod selftest;
pub mod serve;
pub mod switch;
pub mod target;
pub mod vf;
pub mod vhost;

use args::{CardCommand, Cli, Command, Perf};
use clap::Parser;
use ferric_driver::vfio::sysfs::Sysfs;
use perf::Plan;
use std::error::Error;
use std::io::Write;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    match run(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ferric: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<(), Box<dyn Error>> {
    let sysfs = Sysfs::system();
    match command {
        Command::List { json } => inspect::list(&sysfs, *json),
        Command::Info { device, json } => inspect::info(device, *json),
        Command::Stat { device, filter, function, all, json } => inspect::stat(device, filter.as_deref(), *function, *all, *json),
        Command::Bind { address } => inspect::bind(&sysfs, address, true),
        Command::Unbind { address } => inspect::bind(&sysfs, address, false),
        Command::Selftest { device, plugged, stray, json } => run_selftest(device, *plugged, *stray, *json),
        Command::Capture { device, out, count, seconds } => {
            let taken = capture::run(device::open(device)?, out, *count, Duration::from_secs(*seconds))?;
            println!("{taken} frames in {}", out.display());
            Ok(())
        }
        Command::Generate { folder } => generate::run(folder),
        Command::Perf(options) => run_perf(options),
        Command::Address(options) => run_address(options),
        Command::Pingpong(options) => run_pingpong(options),
        Command::Interop(options) => run_interop(options),
        Command::Switch { command } => switch::run(command),
        Command::Vf { command } => vf::run(&sysfs, command),
        Command::VhostUser(options) => vhost::run(options),
        Command::Card { command: CardCommand::Serve(options) } => Ok(serve::run(options)?),
        Command::Card { command: CardCommand::Dump(options) } => dump::run(options),
        Command::Target { command } => target::run(command),
        Command::Run(options) => std::process::exit(run::status(options).into()),
    }
}

fn run_selftest(name: &str, plugged: bool, stray: bool, json: bool) -> Result<(), Box<dyn Error>> {
    let card = device::open(name)?;
    let outcomes = selftest::run(card.clone(), plugged, stray)?;
    if json {
        println!("{}", serde_json::to_string(&outcomes)?);
    } else {
        outcomes.iter().for_each(|o| println!("{:12} {}", o.name, o.error.as_deref().unwrap_or("ok")));
    }
    if stray {
        std::io::stdout().flush()?;
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    }
    drop(card);
    match outcomes.iter().filter(|o| o.error.is_some()).count() {
        0 => Ok(()),
        n => Err(format!("{n} of {} tests failed", outcomes.len()).into()),
    }
}

fn run_address(o: &address::Options) -> Result<(), Box<dyn Error>> {
    let held = address::run(device::open(&o.device)?, o, &mut std::io::stdout())?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    drop(held);
    Ok(())
}

fn run_pingpong(o: &pingpong::Options) -> Result<(), Box<dyn Error>> {
    let r = pingpong::run(device::open(&o.device)?, o)?;
    if o.json {
        println!("{}", serde_json::to_string(&r)?);
    } else {
        println!("{} messages of {} bytes verified in {:.2} s, {:.0} us per round trip", r.verified, r.size, r.seconds, r.round_trip_us);
    }
    Ok(())
}

fn run_interop(o: &interop::Options) -> Result<(), Box<dyn Error>> {
    let rows = interop::run(device::open(&o.device)?, o, |r| {
        if !o.json {
            println!(
                "{:16} {}  MTU {:4}  IPv{}  {:2} of {:2} messages  frames in {:3} out {:3}  {}",
                r.case,
                if r.card_asks { "card asks" } else { "peer asks" },
                r.mtu,
                r.ip,
                r.messages[1],
                r.messages[0],
                r.frames[0],
                r.frames[1],
                r.error.as_deref().unwrap_or("ok")
            );
        }
    })?;
    if o.json {
        println!("{}", serde_json::to_string(&rows)?);
    }
    match rows.iter().filter(|r| r.error.is_some()).count() {
        0 => {
            println!("{} cases passed, 0 failed", rows.len());
            Ok(())
        }
        n => Err(format!("{} cases passed, {n} failed", rows.len() - n).into()),
    }
}

fn run_perf(o: &Perf) -> Result<(), Box<dyn Error>> {
    let device = device::open(&o.device)?;
    let patience = Duration::from_secs(o.patience.max(1));
    let plan = Plan { op: o.op, size: o.size, count: o.count, window: o.window, mtu: o.mtu };
    let report = match (o.listen, o.connect) {
        (Some(listen), _) => perf::respond(device, o.ip.unwrap_or(IpAddr::from([10, 0, 0, 1])), listen, patience, |at| {
            println!("listening at {at}");
            let _ = std::io::stdout().flush();
        })?,
        (None, Some(connect)) => perf::initiate(device, o.ip.unwrap_or(IpAddr::from([10, 0, 0, 2])), connect, plan, patience)?,
        (None, None) => return Err("say --listen or --connect".into()),
    };
    if o.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        let [low, mid, high] = report.window_us;
        println!(
            "{} messages of {} bytes verified, {:.2} s, {:.3} MB/s; window of {}: {low:.0} / {mid:.0} / {high:.0} us (least, middle, most)",
            report.verified,
            report.plan.size,
            report.seconds,
            report.bytes_per_second / 1e6,
            report.plan.window
        );
    }
    Ok(())
}
