//! AMD Alveo U50.

use super::{alveo, pins};
use crate::{Board, Flow, Image};

const CARD: alveo::Card = alveo::Card {
    name: "ferric_u50",
    ports: "out qsfp_led_act qsfp_led_stat_g qsfp_led_stat_y hbm_cattrip",
    free_clock: ("clk_100mhz", 1),
    qsfp: "qsfp",
    qsfp_clock: "qsfp_refclk",
    pcie_clock: "pcie_refclk",
    link_led: ("qsfp_led_stat_g", 1),
    // A high HBM over-temperature pin makes the satellite controller cut the power.
    constants: &[("qsfp_led_act", 1, 0), ("qsfp_led_stat_y", 1, 0), ("hbm_cattrip", 1, 0)],
    cmac: "CMACE4_X0Y4",
    quads: "X0Y28~X0Y31",
    pcie_block: "PCIE4C_X1Y0",
};

/// The board.
pub fn board() -> Board {
    Board {
        key: "u50",
        name: "AMD Alveo U50",
        flow: Flow::Vivado,
        part: "xcu50-fsvh2104-2-e",
        package: Some((46, 46)),
        standards: &["LVCMOS18", "LVDS"],
        top: alveo::top(&CARD),
        pins: pins(PINS),
        clocks: alveo::clock_list("pcie_refclk_p", "clk_100mhz_p", 10.0, "qsfp_refclk_p"),
        crossings: alveo::CROSSINGS.to_vec(),
        false_paths: vec![
            (vec!["qsfp_led_act", "qsfp_led_stat_g", "qsfp_led_stat_y", "hbm_cattrip"], "status lines, looked at by people and the satellite controller"),
            (vec!["pcie_reset_n"], "asynchronous; synchronised in every clock that uses it"),
        ],
        config: vec![
            ("CONFIG_VOLTAGE", "1.8"),
            ("CONFIG_MODE", "SPIx4"),
            ("BITSTREAM.CONFIG.CONFIGFALLBACK", "ENABLE"),
            ("BITSTREAM.GENERAL.COMPRESS", "TRUE"),
            ("BITSTREAM.CONFIG.SPI_BUSWIDTH", "4"),
            ("BITSTREAM.CONFIG.CONFIGRATE", "85.0"),
            ("BITSTREAM.CONFIG.EXTMASTERCCLK_EN", "DISABLE"),
            ("BITSTREAM.CONFIG.SPI_FALL_EDGE", "YES"),
            ("BITSTREAM.CONFIG.SPI_32BIT_ADDR", "YES"),
            ("BITSTREAM.CONFIG.UNUSEDPIN", "PULLUP"),
            ("BITSTREAM.CONFIG.OVERTEMPSHUTDOWN", "ENABLE"),
        ],
        extra: vec![("set_operating_conditions -design_power_budget 63", "W: what the card's supply allows the FPGA")],
        ips: alveo::ips(&CARD),
        image: Image { part: "xcu50-fsvh2104", idcode: 0x04b7_7093, idcode_mask: 0x0fff_ffff, flash: 128 << 20, user: 0x0100_2000, programmer: "mt25qu01g-spi-x1_x2_x4" },
        waivers: alveo::waivers(),
        sources: &[
            "pins, I/O standards, clocks, configuration: corundum/corundum fpga/mqnic/Alveo/fpga_100g/fpga_au50.xdc",
            "flash part, user address 0x01002000: corundum/corundum fpga/mqnic/Alveo/fpga_100g/fpga_AU50/Makefile",
            "CMAC and transceiver sites: Xilinx/open-nic-shell src/cmac_subsystem/vivado_ip/cmac_usplus_0_au50.tcl",
            "PCIe block of the x16 edge: esa-tu-darmstadt/tapasco, AU50 platform (PCIE4C_X1Y0 or X1Y1 are the part's two)",
            "IDCODE: lists of JTAG programmers (xcu50)",
        ],
    }
}

const PINS: &str = "
    clk_100mhz_p BB18 LVDS
    clk_100mhz_n BC18 LVDS
    qsfp_led_act E18 LVCMOS18 SLEW=SLOW DRIVE=8
    qsfp_led_stat_g E16 LVCMOS18 SLEW=SLOW DRIVE=8
    qsfp_led_stat_y F17 LVCMOS18 SLEW=SLOW DRIVE=8
    hbm_cattrip J18 LVCMOS18 PULLDOWN=TRUE
    qsfp_rx_p J45+G45+F43+E45 -
    qsfp_rx_n J46+G46+F44+E46 -
    qsfp_tx_p D42+C40+B42+A40 -
    qsfp_tx_n D43+C41+B43+A41 -
    qsfp_refclk_p N36 -
    qsfp_refclk_n N37 -
    pcie_rx_p AL2+AM4+AK4+AN2+AP4+AR2+AT4+AU2+AV4+AW2+BA2+BC2+AY4+BB4+BD4+BE6 -
    pcie_rx_n AL1+AM3+AK3+AN1+AP3+AR1+AT3+AU1+AV3+AW1+BA1+BC1+AY3+BB3+BD3+BE5 -
    pcie_tx_p Y5+AA7+AB5+AC7+AD5+AF5+AE7+AH5+AG7+AJ7+AL7+AM9+AN7+AP9+AR7+AT9 -
    pcie_tx_n Y4+AA6+AB4+AC6+AD4+AF4+AE6+AH4+AG6+AJ6+AL6+AM8+AN6+AP8+AR6+AT8 -
    pcie_refclk_p AF9 -
    pcie_refclk_n AF8 -
    pcie_reset_n AW27 LVCMOS18 PULLUP=true
";
