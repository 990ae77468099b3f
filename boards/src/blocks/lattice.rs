//! ECP5 primitives: Lattice FPGA-TN-02200 (PLL) and FPGA-TN-02035 (high-speed I/O); port and parameter names as yosys has
//! them in `share/ecp5/cells_bb.v` (a test compares PLL and I/O cells with the installed yosys; register and look-up table are in
//! `cells_sim.v`).

use super::{module, number, one_of};
use crate::netlist::{Module, Origin};

/// PLL.
pub fn ehxplll() -> Module {
    let on_off = |n| one_of(n, &["\"ENABLED\"", "\"DISABLED\""]);
    let divider = |n| number(n, 1.0, 128.0);
    let phase = |n| number(n, 0.0, 127.0);
    let params = vec![
        divider("CLKI_DIV"),
        divider("CLKFB_DIV"),
        divider("CLKOP_DIV"),
        divider("CLKOS_DIV"),
        phase("CLKOP_CPHASE"),
        phase("CLKOS_CPHASE"),
        number("CLKOP_FPHASE", 0.0, 7.0),
        number("CLKOS_FPHASE", 0.0, 7.0),
        on_off("CLKOP_ENABLE"),
        on_off("CLKOS_ENABLE"),
        on_off("CLKOS2_ENABLE"),
        on_off("CLKOS3_ENABLE"),
        on_off("PLLRST_ENA"),
        on_off("INTFB_WAKE"),
        on_off("STDBY_ENABLE"),
        on_off("DPHASE_SOURCE"),
        one_of("OUTDIVIDER_MUXA", &["\"DIVA\"", "\"REFCLK\""]),
        one_of("OUTDIVIDER_MUXB", &["\"DIVB\"", "\"REFCLK\""]),
        one_of("FEEDBK_PATH", &["\"CLKOP\"", "\"CLKOS\"", "\"INT_OP\"", "\"INT_OS\""]),
    ];
    let table = "in CLKI CLKFB PHASESEL1 PHASESEL0 PHASEDIR PHASESTEP PHASELOADREG STDBY PLLWAKESYNC RST ENCLKOP ENCLKOS ENCLKOS2 ENCLKOS3
        out CLKOP CLKOS CLKOS2 CLKOS3 LOCK INTLOCK REFCLK CLKINTFB";
    module("EHXPLLL", Origin::Primitive, "FPGA-TN-02200: PLL.", params, table)
}

/// Output register, both edges: `D0` while the clock is high, then `D1`.
pub fn oddrx1f() -> Module {
    module("ODDRX1F", Origin::Primitive, "FPGA-TN-02035: output DDR register.", vec![], "in SCLK RST D0 D1\nout Q")
}

/// Input register, both edges: `Q0` of the rising one, `Q1` of the falling one.
pub fn iddrx1f() -> Module {
    module("IDDRX1F", Origin::Primitive, "FPGA-TN-02035: input DDR register.", vec![], "in D SCLK RST\nout Q0 Q1")
}

/// Static delay, 25 ps a step.
pub fn delayg() -> Module {
    let params = vec![one_of("DEL_MODE", &["\"USER_DEFINED\"", "\"SCLK_ZEROHOLD\""]), number("DEL_VALUE", 0.0, 127.0)];
    module("DELAYG", Origin::Primitive, "FPGA-TN-02035: static delay of a pin.", params, "in A\nout Z")
}

/// A register.
pub fn trellis_ff() -> Module {
    let params = vec![one_of("GSR", &["\"ENABLED\"", "\"DISABLED\""]), one_of("CEMUX", &["\"1\"", "\"0\"", "\"CE\"", "\"INV\""])];
    module("TRELLIS_FF", Origin::Primitive, "A register of a slice.", params, "in CLK LSR CE DI M\nout Q")
}

/// A function of four inputs: bit n of INIT is its value at inputs DCBA = n.
pub fn lut4() -> Module {
    module("LUT4", Origin::Primitive, "A four-input look-up table.", vec![number("INIT", 0.0, 65535.0)], "in A B C D\nout Z")
}
