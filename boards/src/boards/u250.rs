//! AMD Alveo U250, first QSFP cage.

use super::{alveo, pins};
use crate::{Board, Flow, Image};

const CARD: alveo::Card = alveo::Card {
    name: "ferric_u250",
    ports: "out led:3 qsfp0_modsell qsfp0_resetl qsfp0_lpmode qsfp0_refclk_reset qsfp0_fs:2",
    free_clock: ("clk_300mhz", 3),
    qsfp: "qsfp0",
    qsfp_clock: "qsfp0_refclk",
    pcie_clock: "pcie_refclk",
    link_led: ("led", 3),
    // Module out of reset at full power, its I2C not selected; frequency select 0b10 is 161.1328125 MHz.
    constants: &[("qsfp0_modsell", 1, 1), ("qsfp0_resetl", 1, 1), ("qsfp0_lpmode", 1, 0), ("qsfp0_refclk_reset", 1, 0), ("qsfp0_fs", 2, 0b10)],
    cmac: "CMACE4_X0Y8",
    quads: "X1Y48~X1Y51",
    pcie_block: "X0Y1",
};

/// The board.
pub fn board() -> Board {
    Board {
        key: "u250",
        name: "AMD Alveo U250",
        flow: Flow::Vivado,
        part: "xcu250-figd2104-2-e",
        package: Some((46, 46)),
        standards: &["LVCMOS12", "LVDS"],
        top: alveo::top(&CARD),
        pins: pins(PINS),
        clocks: alveo::clock_list("pcie_refclk_p", "clk_300mhz_p", 3.333, "qsfp0_refclk_p"),
        crossings: alveo::CROSSINGS.to_vec(),
        false_paths: vec![
            (vec!["led", "qsfp0_modsell", "qsfp0_resetl", "qsfp0_lpmode", "qsfp0_refclk_reset", "qsfp0_fs"], "status and static control lines"),
            (vec!["pcie_reset_n"], "asynchronous; synchronised in every clock that uses it"),
        ],
        config: vec![
            ("CONFIG_VOLTAGE", "1.8"),
            ("CONFIG_MODE", "SPIx4"),
            ("BITSTREAM.CONFIG.CONFIGFALLBACK", "ENABLE"),
            ("BITSTREAM.GENERAL.COMPRESS", "TRUE"),
            ("BITSTREAM.CONFIG.SPI_BUSWIDTH", "4"),
            ("BITSTREAM.CONFIG.CONFIGRATE", "63.8"),
            ("BITSTREAM.CONFIG.EXTMASTERCCLK_EN", "DISABLE"),
            ("BITSTREAM.CONFIG.SPI_FALL_EDGE", "YES"),
            ("BITSTREAM.CONFIG.SPI_32BIT_ADDR", "YES"),
            ("BITSTREAM.CONFIG.UNUSEDPIN", "PULLUP"),
            ("BITSTREAM.CONFIG.OVERTEMPSHUTDOWN", "ENABLE"),
        ],
        extra: vec![("set_operating_conditions -design_power_budget 160", "W: what the card's supply allows the FPGA")],
        ips: alveo::ips(&CARD),
        image: Image { part: "xcu250-figd2104", idcode: 0x04b5_7093, idcode_mask: 0x0fff_ffff, flash: 128 << 20, user: 0x0100_2000, programmer: "mt25qu01g-spi-x1_x2_x4" },
        waivers: alveo::waivers(),
        sources: &[
            "pins, I/O standards, clocks, configuration: corundum/corundum fpga/mqnic/Alveo/fpga_100g/fpga_au200.xdc (one file for AU200, AU250 and VCU1525)",
            "part, flash part, user address 0x01002000: corundum/corundum fpga/mqnic/Alveo/fpga_100g/fpga_AU250/Makefile",
            "CMAC site of the first cage: corundum/corundum fpga/mqnic/Alveo/fpga_100g/placement_au250.xdc; its quad: the comments of fpga_au200.xdc (bank 231)",
            "PCIe block: the part's two are X0Y1 and X0Y2 in the range list of a public IP configuration script; X0Y1 is used with XDMA x16 in public designs for this card",
            "IDCODE: what xbutil prints for this card",
        ],
    }
}

const PINS: &str = "
    clk_300mhz_p AY37 LVDS
    clk_300mhz_n AY38 LVDS
    led BC21+BB21+BA20 LVCMOS12 SLEW=SLOW DRIVE=8
    qsfp0_rx_p N4+M2+L4+K2 -
    qsfp0_rx_n N3+M1+L3+K1 -
    qsfp0_tx_p N9+M7+L9+K7 -
    qsfp0_tx_n N8+M6+L8+K6 -
    qsfp0_refclk_p K11 -
    qsfp0_refclk_n K10 -
    qsfp0_modsell BE16 LVCMOS12 SLEW=SLOW DRIVE=8
    qsfp0_resetl BE17 LVCMOS12 SLEW=SLOW DRIVE=8
    qsfp0_lpmode BD18 LVCMOS12 SLEW=SLOW DRIVE=8
    qsfp0_refclk_reset AT22 LVCMOS12 SLEW=SLOW DRIVE=8
    qsfp0_fs AT20+AU22 LVCMOS12 SLEW=SLOW DRIVE=8
    pcie_rx_p AF2+AG4+AH2+AJ4+AK2+AL4+AM2+AN4+AP2+AR4+AT2+AU4+AV2+AW4+BA2+BC2 -
    pcie_rx_n AF1+AG3+AH1+AJ3+AK1+AL3+AM1+AN3+AP1+AR3+AT1+AU3+AV1+AW3+BA1+BC1 -
    pcie_tx_p AF7+AG9+AH7+AJ9+AK7+AL9+AM7+AN9+AP7+AR9+AT7+AU9+AV7+BB5+BD5+BF5 -
    pcie_tx_n AF6+AG8+AH6+AJ8+AK6+AL8+AM6+AN8+AP6+AR8+AT6+AU8+AV6+BB4+BD4+BF4 -
    pcie_refclk_p AM11 -
    pcie_refclk_n AM10 -
    pcie_reset_n BD21 LVCMOS12 PULLUP=true
";
