//! What the walker and the counters know of the library cells of the two families.

/// How a cell takes part in timing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Every output depends on every input at once.
    Lut,
    /// A hard-wired multiplexer behind LUTs.
    Mux,
    /// Output bit n depends on input bits up to n.
    Carry,
    /// Inputs end paths, outputs start them.
    Register,
    /// Block memory: as a register.
    Block,
    /// A multiplier: counted as if it had no register.
    Dsp,
    /// A vendor's block outside the fabric, a pin, a PLL: as a register, and no area.
    Border,
    /// LUT memory: the read address passes through, all other inputs end paths. LUTs it takes.
    LutRam(u32),
    /// Drives a constant, or nothing.
    Constant,
    Latch,
}

/// Stands for every vendor block of a board's top.
pub const BORDER: &str = "vendor block";

/// The kind of a library cell of xcup or ECP5; `None`: unknown, the walk is refused.
pub fn kind(cell: &str) -> Option<Kind> {
    Some(match cell {
        "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" | "INV" => Kind::Lut,
        "MUXF7" | "MUXF8" | "MUXF9" | "PFUMX" | "L6MUX21" => Kind::Mux,
        "CARRY4" | "CARRY8" | "CCU2C" => Kind::Carry,
        "FDRE" | "FDSE" | "FDCE" | "FDPE" | "FDRE_1" | "FDSE_1" | "FDCE_1" | "FDPE_1" | "TRELLIS_FF" => Kind::Register,
        "RAMB18E2" | "RAMB36E2" | "URAM288" | "DP16KD" | "PDPW16KD" => Kind::Block,
        "DSP48E2" | "MULT18X18D" | "ALU54B" => Kind::Dsp,
        BORDER => Kind::Border,
        "SRL16E" | "SRLC32E" | "RAM32X1S" | "RAM64X1S" => Kind::LutRam(1),
        "RAM32X1D" | "RAM64X1D" | "RAM128X1S" => Kind::LutRam(2),
        "RAM128X1D" | "RAM256X1S" | "RAM32M" | "RAM64M" | "TRELLIS_DPR16X4" => Kind::LutRam(4),
        "RAM256X1D" | "RAM512X1S" | "RAM32M16" | "RAM64M8" => Kind::LutRam(8),
        // `$scopeinfo` keeps a name of the hierarchy and is no hardware.
        "VCC" | "GND" | "$scopeinfo" => Kind::Constant,
        "LDCE" | "LDPE" => Kind::Latch,
        _ if cell.contains("DLATCH") => Kind::Latch,
        _ => return None,
    })
}

/// Whether port `input` bit `i` reaches port `output` bit `o` without a clock.
pub fn passes(cell: &str, kind: Kind, input: (&str, usize), output: (&str, usize)) -> bool {
    match kind {
        Kind::Lut | Kind::Mux | Kind::Dsp => true,
        Kind::Carry if cell == "CCU2C" => !(output.0 == "S0" && input.0.ends_with('1')),
        // DI selects what leaves a stage, so it reaches the sum of the next one only.
        Kind::Carry => match input.0 {
            "DI" if output.0 == "O" => input.1 < output.1,
            "DI" | "S" => input.1 <= output.1,
            // CARRY8 can be cut in two halves, each with a carry input.
            "CI_TOP" => output.1 >= 4,
            _ => true,
        },
        Kind::LutRam(_) => match input.0 {
            "DPRA" => output.0 == "DPO",
            "RAD" => true,
            address if address.starts_with("DPRA") => output.0 == "DPO",
            address if address.starts_with("ADDR") => output.0.ends_with(&address[4..]),
            address if cell.ends_with("1D") && address.starts_with('A') => output.0 == "SPO",
            address if address.starts_with('A') => output.0 == "O" || output.0 == "Q",
            _ => false,
        },
        Kind::Register | Kind::Block | Kind::Border | Kind::Constant | Kind::Latch => false,
    }
}

/// Clock pins, which end no path.
pub fn is_clock(port: &str) -> bool {
    matches!(port, "C" | "CLK" | "WCLK" | "WCK" | "CLKARDCLK" | "CLKBWRCLK" | "CLKA" | "CLKB" | "CLKR" | "CLKW")
}

/// What a netlist takes of the chip. LUT memory stands apart from logic LUTs.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Area {
    pub lut: u64,
    pub ff: u64,
    /// LUTs used as memory.
    pub lutram: u64,
    /// Block memories: RAMB36, with a RAMB18 as half; on ECP5 18 Kbit blocks.
    pub bram: f64,
    pub uram: u64,
    pub dsp: u64,
    pub carry: u64,
    pub mux: u64,
    pub latches: u64,
}

impl std::ops::AddAssign for Area {
    fn add_assign(&mut self, other: Self) {
        self.lut += other.lut;
        self.ff += other.ff;
        self.lutram += other.lutram;
        self.bram += other.bram;
        self.uram += other.uram;
        self.dsp += other.dsp;
        self.carry += other.carry;
        self.mux += other.mux;
        self.latches += other.latches;
    }
}

/// Counts cells by type name.
pub fn area<'a>(cells: impl Iterator<Item = &'a str>) -> Result<Area, String> {
    let mut sum = Area::default();
    for cell in cells {
        match kind(cell).ok_or_else(|| format!("unknown cell {cell}"))? {
            Kind::Lut => sum.lut += 1,
            Kind::Mux => sum.mux += 1,
            Kind::Carry => {
                sum.carry += 1;
                // An ECP5 carry cell is two LUTs; the Xilinx one is beside its LUTs.
                sum.lut += if cell == "CCU2C" { 2 } else { 0 };
            }
            Kind::Register => sum.ff += 1,
            Kind::Block => match cell {
                "RAMB18E2" => sum.bram += 0.5,
                "URAM288" => sum.uram += 1,
                _ => sum.bram += 1.0,
            },
            Kind::LutRam(luts) => sum.lutram += luts as u64,
            Kind::Dsp => sum.dsp += 1,
            Kind::Constant | Kind::Border => {}
            Kind::Latch => sum.latches += 1,
        }
    }
    Ok(sum)
}
