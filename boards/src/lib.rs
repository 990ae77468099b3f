//! The boards Ferric runs on, described once: part, clocks, pins, vendor blocks, the wiring of the top, constraints, image
//! and flash. Everything in `constraints/` is generated from here, and what a description names is checked ([`check`]).

pub mod bitstream;
pub mod blocks;
pub mod boards;
pub mod check;
pub mod ecp5;
pub mod emit;
pub mod flash;
pub mod image;
pub mod netlist;
pub mod tool;

use netlist::Netlist;

/// Which tools build an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Vivado in batch mode, to a `.bit` and an `.mcs`.
    Vivado,
    /// Amazon's HDK around Vivado, to a checkpoint that Amazon makes an AFI of.
    AwsHdk,
    /// yosys, nextpnr-ecp5, ecppack.
    Ecp5,
}

/// A package pin.
#[derive(Clone, Debug)]
pub struct Pin {
    pub port: String,
    pub bit: u32,
    /// Ball of the package.
    pub ball: String,
    /// I/O standard; `None` on transceiver pins.
    pub standard: Option<&'static str>,
    /// Further settings: `SLEW`, `DRIVE`, `PULLUP` (XDC); `SLEWRATE`, `DRIVE`, `PULLMODE` (LPF).
    pub settings: Vec<(&'static str, &'static str)>,
}

/// A clock.
#[derive(Clone, Debug)]
pub struct Clock {
    pub name: &'static str,
    /// Port of the top, or `instance.port` of the vendor block that makes it.
    pub object: &'static str,
    /// ns.
    pub period: f64,
    /// A vendor's own constraints (or the tool, from a PLL's parameters) declare it; here it is only named.
    pub derived: bool,
}

/// Two clocks between which only synchronisers and Gray pointers pass.
#[derive(Clone, Copy, Debug)]
pub struct Crossing {
    pub from: &'static str,
    pub to: &'static str,
    /// ns: largest delay of a path without its clock skew, one period of the faster clock.
    pub max_delay: f64,
}

/// A vendor's IP: what its generator is asked for.
#[derive(Clone, Debug)]
pub struct Ip {
    /// Name of the generated module.
    pub module: String,
    /// Name in the vendor's catalogue.
    pub catalogue: &'static str,
    /// `CONFIG.` properties.
    pub properties: Vec<(&'static str, String)>,
}

/// The image and where it may be written.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// Start of the part's name in the header of a Xilinx `.bit`.
    pub part: &'static str,
    /// JTAG IDCODE, version bits (the upper four) zero where they vary.
    pub idcode: u32,
    /// Bits of the IDCODE that count.
    pub idcode_mask: u32,
    /// Bytes of configuration flash. 0: none that we write.
    pub flash: u32,
    /// Lowest address an image of ours may touch; the golden image lies below.
    pub user: u32,
    /// What programs it, as its own tool calls it: flash part (Vivado) or board (openFPGALoader).
    pub programmer: &'static str,
}

/// A warning of `verilator --lint-only -Wall` on the top that is no fault.
#[derive(Clone, Copy, Debug)]
pub struct Waiver {
    pub rule: &'static str,
    pub file: &'static str,
    /// Part of the message that it must have; empty: any.
    pub matching: &'static str,
    pub reason: &'static str,
}

/// A board.
#[derive(Clone, Debug)]
pub struct Board {
    /// Name on the command line, folder in `constraints/`.
    pub key: &'static str,
    pub name: &'static str,
    pub flow: Flow,
    /// As the tools want it.
    pub part: &'static str,
    /// Rows and columns of the ball grid; `None` when a shell owns all pins.
    pub package: Option<(u32, u32)>,
    pub standards: &'static [&'static str],
    pub top: Netlist,
    pub pins: Vec<Pin>,
    pub clocks: Vec<Clock>,
    pub crossings: Vec<Crossing>,
    /// Ports whose paths are not timed, and why.
    pub false_paths: Vec<(Vec<&'static str>, &'static str)>,
    /// Properties of the design (XDC `set_property`, LPF `SYSCONFIG`).
    pub config: Vec<(&'static str, &'static str)>,
    /// Lines of XDC that are not of any other kind here, each with its reason.
    pub extra: Vec<(&'static str, &'static str)>,
    pub ips: Vec<Ip>,
    pub image: Image,
    pub waivers: Vec<Waiver>,
    /// Where the facts come from.
    pub sources: &'static [&'static str],
}
