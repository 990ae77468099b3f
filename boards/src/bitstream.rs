//! From Verilog to an image.

use crate::netlist::{Netlist, Origin};
use crate::tool::{self, ToolError};
use crate::{ecp5, emit, Board, Flow};
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
    pub(crate) fn need(&self, board: &Board, names: &[&'static str], hint: &'static str) -> Result<PathBuf, NoImage> {
        tool::find(names, self.path).ok_or(NoImage::NoTool { board: board.name, tool: names[0], hint })
    }

    /// Files of the gateware of a top.
    pub(crate) fn gateware(&self, board: &Board, top: &Netlist) -> Result<Vec<PathBuf>, NoImage> {
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
        Flow::Ecp5 => ecp5::TOOLS.iter().try_for_each(|names| env.need(board, names, ecp5::WHEELS).map(drop)),
    }
}

const VIVADO: &str = "install AMD Vivado with this part and source its settings64.sh";
const AMI: &str = "use Amazon's FPGA developer AMI, or install the Vivado that its HDK names";

/// Builds the image of a board in `out`; answers where it lies. `top`: the board's own, or a part of it for a test of the tools.
pub fn build(board: &Board, top: &Netlist, env: &Environment, out: &Path) -> Result<PathBuf, NoImage> {
    match board.flow {
        Flow::Vivado => vivado(board, env, out),
        Flow::AwsHdk => hdk(board, env, out),
        Flow::Ecp5 => ecp5::image(board, top, env, out),
    }
}

pub(crate) fn create(folder: &Path) -> Result<(), NoImage> {
    std::fs::create_dir_all(folder).map_err(|source| NoImage::File { file: folder.into(), source })
}

pub(crate) fn write(file: PathBuf, text: &str) -> Result<(), NoImage> {
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
