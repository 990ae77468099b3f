//! Putting an image into a card: everything is checked before anything is touched, and the golden image stays.

use crate::image::{self, ImageError, Kind};
use crate::{tool, Board, Flow};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Why nothing was touched.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("{}: {source}", .file.display())]
    Unreadable { file: PathBuf, source: std::io::Error },
    #[error("{} is no image: {source}", .file.display())]
    NoImage { file: PathBuf, source: ImageError },
    #[error("{board} does not take this kind of image ({found}); it takes {wanted}")]
    WrongKind { board: &'static str, found: &'static str, wanted: &'static str },
    #[error("the image is for {found}, the board has {wanted}")]
    WrongPart { found: String, wanted: &'static str },
    #[error("the image is for a part with IDCODE {found:#010x}, the board's has {wanted:#010x}")]
    WrongIdcode { found: u32, wanted: u32 },
    #[error("the image does not say which IDCODE it is for")]
    NoIdcode,
    #[error("the image would write {low:#010x}; the golden image lies below {user:#010x} and must stay")]
    Golden { low: u32, user: u32 },
    #[error("the image would reach {high:#x}, the flash ends at {flash:#x}")]
    TooLarge { high: u64, flash: u32 },
    #[error("{0} is not the name of a global AFI: agfi- and 17 hexadecimal digits")]
    NoAfi(String),
    #[error("an .mcs goes to flash only; --volatile takes the .bit")]
    VolatileMcs,
    #[error("F2 has no flash of ours: an AFI is always volatile, leave out --volatile")]
    VolatileAfi,
    #[error("{tool} is not installed (not in PATH): {hint}")]
    NoTool { tool: &'static str, hint: &'static str },
}

/// What will be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In words.
    pub says: Vec<String>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// A script for the program: its file, its text.
    pub script: Option<(PathBuf, String)>,
}

/// Checks `file` (for F2: the name of an AFI) against the board and says what to do. Nothing is touched.
/// `volatile`: into the configuration memory only, lost at power-off. `work`: folder for scripts.
pub fn plan(board: &Board, file: &Path, volatile: bool, work: &Path) -> Result<Plan, Refusal> {
    if board.flow == Flow::AwsHdk {
        return afi(board, &file.to_string_lossy(), volatile);
    }
    let bytes = std::fs::read(file).map_err(|source| Refusal::Unreadable { file: file.into(), source })?;
    let found = image::read(&bytes).map_err(|source| Refusal::NoImage { file: file.into(), source })?;
    let wrong = |found, wanted| Refusal::WrongKind { board: board.name, found, wanted };
    match (&found.kind, board.flow) {
        (Kind::XilinxBit { part }, Flow::Vivado) if !part.starts_with(board.image.part) => return Err(Refusal::WrongPart { found: part.clone(), wanted: board.image.part }),
        (Kind::XilinxBit { .. } | Kind::Mcs { .. }, Flow::Vivado) | (Kind::Ecp5, Flow::Ecp5) => {}
        (Kind::Ecp5, _) => return Err(wrong("ECP5 .bit", ".bit or .mcs of Vivado")),
        (Kind::XilinxBit { .. }, _) => return Err(wrong("Xilinx .bit", ".bit of ecppack")),
        (Kind::Mcs { .. }, _) => return Err(wrong(".mcs", ".bit of ecppack")),
    }
    let idcode = found.idcode.ok_or(Refusal::NoIdcode)?;
    if (idcode ^ board.image.idcode) & board.image.idcode_mask != 0 {
        return Err(Refusal::WrongIdcode { found: idcode, wanted: board.image.idcode });
    }
    let (low, high) = match found.kind {
        Kind::Mcs { .. } if volatile => return Err(Refusal::VolatileMcs),
        Kind::Mcs { low, high } => (low, u64::from(high)),
        _ => (board.image.user, u64::from(board.image.user) + u64::from(found.size)),
    };
    if low < board.image.user {
        return Err(Refusal::Golden { low, user: board.image.user });
    }
    if high > u64::from(board.image.flash) {
        return Err(Refusal::TooLarge { high, flash: board.image.flash });
    }
    let mut says = vec![format!("{}: {} bytes for {} (IDCODE {idcode:#010x})", file.display(), found.size, board.name)];
    says.push(if volatile {
        "into the configuration memory; the flash is not touched".into()
    } else {
        format!("into flash {low:#010x} to {high:#010x}; the golden image below {:#010x} stays", board.image.user)
    });
    let file = file.to_string_lossy();
    Ok(match board.flow {
        Flow::Ecp5 => {
            let mut command = vec!["openFPGALoader".to_string(), "-b".into(), board.image.programmer.into()];
            if volatile {
                command.push("-m".into());
            } else {
                command.extend(["-f".into(), "-o".into(), format!("{low:#x}"), "--verify".into()]);
            }
            command.push(file.into_owned());
            Plan { says, command, script: None }
        }
        _ => {
            let script = work.join("flash.tcl");
            let command = ["vivado", "-nojournal", "-nolog", "-mode", "batch", "-source"].iter().map(|w| w.to_string()).chain([script.to_string_lossy().into_owned()]).collect();
            let text = vivado(board, &file, matches!(found.kind, Kind::Mcs { .. }), volatile, work);
            Plan { says, command, script: Some((script, text)) }
        }
    })
}

fn afi(board: &Board, name: &str, volatile: bool) -> Result<Plan, Refusal> {
    let digits = name.strip_prefix("agfi-").unwrap_or_default();
    if digits.len() != 17 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Refusal::NoAfi(name.into()));
    }
    if volatile {
        return Err(Refusal::VolatileAfi);
    }
    let command = [board.image.programmer, "-S", "0", "-I", name].map(String::from).to_vec();
    Ok(Plan { says: vec![format!("{name} into slot 0; Amazon's shell checks that the image is for it, and stays")], command, script: None })
}

/// A script for Vivado's hardware manager. The device found is compared once more before anything is written.
fn vivado(board: &Board, file: &str, mcs: bool, volatile: bool, work: &Path) -> String {
    let device = board.image.part.split('-').next().unwrap_or(board.image.part);
    let mut text = format!(
        "open_hw_manager\nconnect_hw_server\nopen_hw_target\nset device [lindex [get_hw_devices {device}*] 0]\n\
         if {{$device eq \"\"}} {{ error \"no {device} on this cable: nothing was touched\" }}\ncurrent_hw_device $device\nrefresh_hw_device -update_hw_probes false $device\n"
    );
    if volatile {
        return text + &format!("set_property PROGRAM.FILE {{{file}}} $device\nprogram_hw_devices $device\n");
    }
    let mut name = file.to_string();
    if !mcs {
        name = work.join("flash.mcs").to_string_lossy().into_owned();
        text += &format!("write_cfgmem -force -format mcs -size {} -interface SPIx4 -loadbit [list up {:#010x} {{{file}}}] -file {{{name}}}\n", board.image.flash >> 20, board.image.user);
    }
    // Only the addresses in the file are erased and written.
    text + &format!(
        "create_hw_cfgmem -hw_device $device [lindex [get_cfgmem_parts {{{}}}] 0]\nset flash [get_property PROGRAM.HW_CFGMEM $device]\n\
         set_property PROGRAM.FILES [list {{{name}}}] $flash\nset_property PROGRAM.ADDRESS_RANGE {{use_file}} $flash\nset_property PROGRAM.UNUSED_PIN_TERMINATION {{pull-none}} $flash\n\
         set_property PROGRAM.BLANK_CHECK 0 $flash\nset_property PROGRAM.ERASE 1 $flash\nset_property PROGRAM.CFG_PROGRAM 1 $flash\nset_property PROGRAM.VERIFY 1 $flash\n\
         create_hw_bitstream -hw_device $device [get_property PROGRAM.HW_CFGMEM_BITFILE $device]\nprogram_hw_devices $device\nprogram_hw_cfgmem -hw_cfgmem $flash\nboot_hw_device $device\n",
        board.image.programmer
    )
}

/// Whether the program of a plan is there. `path` as in the environment.
pub fn tool_of(board: &Board, path: Option<&OsStr>) -> Result<PathBuf, Refusal> {
    let (name, hint) = match board.flow {
        Flow::Vivado => ("vivado", "source settings64.sh of Vivado or of its Lab edition"),
        Flow::AwsHdk => ("fpga-load-local-image", "run this on an F2 instance, after sdk_setup.sh of aws-fpga"),
        Flow::Ecp5 => ("openFPGALoader", "apt-get install openfpgaloader"),
    };
    tool::find(&[name], path).ok_or(Refusal::NoTool { tool: name, hint })
}
