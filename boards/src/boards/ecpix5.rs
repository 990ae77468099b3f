//! LambdaConcept ECPIX-5 with the 85F: the memory target on its Gigabit port.

use super::{alveo, pins};
use crate::blocks::{gateware, lattice};
use crate::netlist::{net, ports, Expr, Netlist};
use crate::{Board, Clock, Crossing, Flow, Image};

fn bit(name: &str, bit: u32) -> Expr {
    Expr::Slice(name.into(), bit, bit)
}

fn top() -> Netlist {
    let mut n = Netlist { name: "ferric_ecpix5".into(), ..Netlist::default() };
    n.ports = ports(
        "in clk100 rst_n eth_rx_clk eth_rx_ctl eth_rx_data:4
         out eth_tx_clk eth_tx_ctl eth_tx_data:4 eth_rst_n eth_mdc led_r:4 led_g:4 led_b:4",
    );
    pll(&mut n);
    n.instance("core_reset_sync", &gateware::reset()).wire("clock=clk_core reset_n=rst_n ready=locked reset=core_reset");
    n.instance("tx_reset_sync", &gateware::reset()).wire("clock=clk125 reset_n=rst_n ready=locked reset=tx_reset");
    n.instance("rx_reset_sync", &gateware::reset()).wire("clock=eth_rx_clk reset_n=rst_n ready=locked reset=rx_reset");
    n.instance("ticks", &gateware::tick(64)).wire("clock=clk_core reset=core_reset now=ticks_now");
    n.instance("target", &gateware::target()).wire("clock=clk_core reset=core_reset now=ticks_now").bundle("", "");
    n.instance("mac_tx", &gateware::rgmii_tx()).wire("clock=clk_core reset=core_reset mac_clock=clk125 mac_reset=tx_reset rise=tx_rise fall=tx_fall").bundle("s$", "tx$");
    n.instance("mac_rx", &gateware::rgmii_rx())
        .wire("clock=clk_core reset=core_reset mac_clock=eth_rx_clk mac_reset=rx_reset m_err=rx_err")
        .to("rise", pads("rx_rise"))
        .to("fall", pads("rx_fall"))
        .tie("dropped")
        .bundle("m$", "rx$");
    for lane in 0..5 {
        let (rx_pin, rise, fall) = (if lane < 4 { bit("eth_rx_data", lane) } else { net("eth_rx_ctl") }, format!("rx_rise{lane}"), format!("rx_fall{lane}"));
        n.instance(&format!("rx_ddr{lane}"), &lattice::iddrx1f()).to("D", rx_pin).wire(&format!("SCLK=eth_rx_clk RST=rx_reset Q0={rise} Q1={fall}"));
        n.instance(&format!("tx_ddr{lane}"), &lattice::oddrx1f()).to("D0", bit("tx_rise", lane)).to("D1", bit("tx_fall", lane)).wire(&format!("SCLK=clk125 RST=tx_reset Q=tx_pad{lane}"));
    }
    n.assigns.push(("eth_tx_data".into(), Expr::Concat((0..4).rev().map(|i| net(&format!("tx_pad{i}"))).collect())));
    n.assigns.push(("eth_tx_ctl".into(), net("tx_pad4")));
    // The clock leaves 2 ns after the data (80 steps of 25 ps): RGMII 1.3 without delay in the PHY.
    n.instance("tx_clock_ddr", &lattice::oddrx1f()).to("D0", Expr::Const(1, 1)).to("D1", Expr::Const(1, 0)).wire("SCLK=clk125 RST=tx_reset Q=tx_clock");
    n.instance("tx_clock_delay", &lattice::delayg()).param("DEL_MODE", "\"USER_DEFINED\"").param("DEL_VALUE", "80").wire("A=tx_clock Z=eth_tx_clk");
    n.assigns.push(("eth_rst_n".into(), net("locked")));
    n.assigns.push(("eth_mdc".into(), Expr::Const(1, 0)));
    n.assigns.push(("led_g".into(), net("status")));
    n.assigns.push(("led_r".into(), Expr::Const(4, 0)));
    n.assigns.push(("led_b".into(), Expr::Const(4, 0)));
    n
}

/// 125 MHz for the network, 62.5 MHz for the core.
fn pll(n: &mut Netlist) {
    // 100 MHz / 4 x 5 = 125 MHz (feedback from CLKOP), VCO 625 MHz / 10 = 62.5 MHz; numbers of `ecppll -i 100 --clkout0 125 --clkout1 62.5`.
    n.instance("pll", &lattice::ehxplll())
        .attribute("FREQUENCY_PIN_CLKI", "100")
        .attribute("FREQUENCY_PIN_CLKOP", "125")
        .attribute("FREQUENCY_PIN_CLKOS", "62.5")
        .attribute("ICP_CURRENT", "12")
        .attribute("LPF_RESISTOR", "8")
        .attribute("MFG_ENABLE_FILTEROPAMP", "1")
        .attribute("MFG_GMCREF_SEL", "2")
        .param("CLKI_DIV", "4")
        .param("CLKFB_DIV", "5")
        .param("FEEDBK_PATH", "\"CLKOP\"")
        .param("CLKOP_ENABLE", "\"ENABLED\"")
        .param("CLKOP_DIV", "5")
        .param("CLKOP_CPHASE", "2")
        .param("CLKOP_FPHASE", "0")
        .param("CLKOS_ENABLE", "\"ENABLED\"")
        .param("CLKOS_DIV", "10")
        .param("CLKOS_CPHASE", "2")
        .param("CLKOS_FPHASE", "0")
        .wire("CLKI=clk100 CLKFB=clk125 CLKOP=clk125 CLKOS=clk_core LOCK=locked")
        .tie_rest("");
}

/// The smallest top that goes through every tool: the PLL, a register that toggles, two lamps. To try board and tools with.
pub fn lamp() -> Netlist {
    let mut n = Netlist { name: "lamp_ecpix5".into(), ports: ports("in clk100\nout led_g:4"), ..Netlist::default() };
    pll(&mut n);
    n.instance("invert", &lattice::lut4()).param("INIT", "21845").wire("A=lit Z=next").tie("B C D");
    n.instance("toggle", &lattice::trellis_ff()).param("GSR", "\"DISABLED\"").param("CEMUX", "\"1\"").wire("CLK=clk_core DI=next Q=lit").tie("LSR CE M");
    n.assigns.push(("led_g".into(), Expr::Concat(vec![Expr::Const(2, 0), net("lit"), net("locked")])));
    n
}

/// Bits 4 to 0 of what the input registers caught.
fn pads(name: &str) -> Expr {
    Expr::Concat((0..5).rev().map(|i| net(&format!("{name}{i}"))).collect())
}

/// The board.
pub fn board() -> Board {
    let clock = |name, object, period, derived| Clock { name, object, period, derived };
    let crossing = |from, to, max_delay| Crossing { from, to, max_delay };
    Board {
        key: "ecpix5",
        name: "LambdaConcept ECPIX-5 85F",
        flow: Flow::Ecp5,
        part: "LFE5UM5G-85F-8BG554I",
        package: Some((26, 26)),
        standards: &["LVCMOS33", "LVCMOS18D", "SSTL15_I", "SSTL15D_I"],
        top: top(),
        pins: pins(PINS),
        clocks: vec![clock("clk100", "clk100", 10.0, false), clock("rx", "eth_rx_clk", 8.0, false), clock("tx", "pll.CLKOP", 8.0, true), clock("core", "pll.CLKOS", 16.0, true)],
        // nextpnr does not time paths between clocks; the Gray pointers' registers are the only ones (see README.md).
        crossings: vec![crossing("core", "tx", 8.0), crossing("tx", "core", 8.0), crossing("rx", "core", 8.0), crossing("core", "rx", 8.0)],
        false_paths: vec![(vec!["rst_n"], "asynchronous; synchronised in every clock that uses it"), (vec!["led_r", "led_g", "led_b"], "status, looked at by people")],
        config: vec![("CONFIG_IOVOLTAGE", "3.3"), ("COMPRESS_CONFIG", "ON"), ("MASTER_SPI_PORT", "ENABLE")],
        extra: vec![],
        ips: vec![],
        image: Image { part: "LFE5UM5G-85F", idcode: 0x8111_3043, idcode_mask: 0xffff_ffff, flash: 16 << 20, user: 0x40_0000, programmer: "ecpix5" },
        waivers: alveo::WAIVERS.to_vec(),
        sources: &[
            "pins, I/O standards, pull-ups, clocks, part: litex-hub/litex-boards litex_boards/platforms/lambdaconcept_ecpix5.py",
            "delays of RGMII (2 ns on our clock, none on the PHY's): litex_boards/targets/lambdaconcept_ecpix5.py there (rx_delay 0)",
            "PLL: yowasp-ecppll; IDCODE: lists of JTAG programmers (LFE5UM5G-85F)",
            "flash size 16 MiB is what we use of it, not what is fitted; user address 4 MiB: ours (an uncompressed image has less than 2 MiB)",
        ],
    }
}

const PINS: &str = "
    clk100 K23 LVCMOS33
    rst_n N5 LVCMOS33
    eth_rx_clk E11 LVCMOS33
    eth_rx_ctl A11 LVCMOS33
    eth_rx_data B11+A10+B10+A9 LVCMOS33 PULLMODE=UP
    eth_tx_clk A12 LVCMOS33 SLEWRATE=FAST
    eth_tx_ctl C9 LVCMOS33 SLEWRATE=FAST
    eth_tx_data D8+C8+B8+A8 LVCMOS33 SLEWRATE=FAST
    eth_rst_n C13 LVCMOS33
    eth_mdc C11 LVCMOS33
    led_r P21+K21+U21+T23 LVCMOS33
    led_g R23+K24+W21+R21 LVCMOS33
    led_b P22+M21+T24+T22 LVCMOS33
";
