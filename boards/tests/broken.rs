//! A description with one mistake is refused, and for that mistake.

use ferric_boards::check::{check, Problem};
use ferric_boards::netlist::{net, Expr, Instance};
use ferric_boards::{boards, Board};

/// The board after one change; what the check says.
fn after(key: &str, change: impl FnOnce(&mut Board)) -> Vec<Problem> {
    let mut board = boards::find(key).expect("a board");
    change(&mut board);
    check(&board)
}

fn instance<'a>(board: &'a mut Board, name: &str) -> &'a mut Instance {
    board.top.instances.iter_mut().find(|i| i.name == name).expect("an instance")
}

/// Replaces what a port is connected to.
fn reconnect(board: &mut Board, name: &str, port: &str, to: Expr) {
    instance(board, name).conns.iter_mut().find(|(p, _)| p == port).expect("a connection").1 = to;
}

/// The only complaint, or one of them, is this.
fn complains(problems: &[Problem], wanted: &Problem) {
    assert!(problems.contains(wanted), "{wanted:?} is missing in {problems:?}");
}

#[test]
fn a_port_that_the_block_does_not_have() {
    let p = after("u50", |b| instance(b, "cmac").conns[0].0 = "gt_rxp".into());
    complains(&p, &Problem::NoPort { instance: "cmac".into(), module: "cmac_usplus_0".into(), port: "gt_rxp".into() });
    complains(&p, &Problem::Undriven { place: "cmac.gt_rxp_in".into() });
}

#[test]
fn a_module_that_does_not_exist() {
    let p = after("f2", |b| instance(b, "irq").module = "ferric_irq61".into());
    complains(&p, &Problem::NoModule { instance: "irq".into(), module: "ferric_irq61".into() });
}

#[test]
fn an_unknown_parameter_and_a_value_out_of_range() {
    let p = after("ecpix5", |b| instance(b, "pll").params.push(("CLKOP_DIVIDER", "5".into())));
    assert_eq!(p, [Problem::NoParam { instance: "pll".into(), module: "EHXPLLL".into(), param: "CLKOP_DIVIDER".into() }]);
    let p = after("ecpix5", |b| instance(b, "tx_clock_delay").params[1].1 = "128".into());
    assert_eq!(p, [Problem::BadValue { instance: "tx_clock_delay".into(), param: "DEL_VALUE".into(), value: "128".into() }]);
}

#[test]
fn an_ip_property_that_does_not_exist_or_has_a_wrong_value() {
    let p = after("u250", |b| b.ips[0].properties[0].0 = "function_mode");
    assert_eq!(p, [Problem::NoParam { instance: "IP xdma_bridge".into(), module: "xdma_bridge".into(), param: "function_mode".into() }]);
    let p = after("u250", |b| b.ips[0].properties[0].1 = "AXI_Brigde".into());
    assert_eq!(p, [Problem::BadValue { instance: "IP xdma_bridge".into(), param: "functional_mode".into(), value: "AXI_Brigde".into() }]);
    let p = after("u250", |b| b.ips.truncate(1));
    assert_eq!(p, [Problem::Ip("cmac_usplus_0".into())]);
}

#[test]
fn a_net_that_nothing_drives_and_one_that_nothing_reads() {
    let p = after("u50", |b| reconnect(b, "core", "now", net("tick_now")));
    assert_eq!(p.len(), 2, "{p:?}");
    complains(&p, &Problem::Undriven { place: "core.now (net tick_now)".into() });
    complains(&p, &Problem::Unread { net: "ticks_now".into(), driver: "ticks.now".into() });
}

#[test]
fn a_port_without_a_connection() {
    for port in ["r_valid", "ar_valid"] {
        let p = after("u50", |b| instance(b, "core").conns.retain(|(p, _)| p != port));
        complains(&p, &Problem::Undriven { place: format!("core.{port}") });
    }
    let p = after("u50", |b| reconnect(b, "core", "rx_err", Expr::Open));
    complains(&p, &Problem::Undriven { place: "core.rx_err".into() });
}

#[test]
fn two_drivers_of_one_net() {
    let p = after("u50", |b| reconnect(b, "link", "up", net("tx_enable")));
    complains(&p, &Problem::TwoDrivers { net: "tx_enable".into(), first: "link.up".into(), second: "link.tx_enable".into() });
    // An output pin that two drive.
    let p = after("u50", |b| reconnect(b, "link", "send_rfi", net("hbm_cattrip")));
    complains(&p, &Problem::TwoDrivers { net: "hbm_cattrip".into(), first: "link.send_rfi".into(), second: "assign hbm_cattrip".into() });
    // An input pin is driven by the board.
    let p = after("u50", |b| reconnect(b, "link", "send_rfi", net("pcie_reset_n")));
    complains(&p, &Problem::TwoDrivers { net: "pcie_reset_n".into(), first: "pin pcie_reset_n".into(), second: "link.send_rfi".into() });
}

#[test]
fn a_port_connected_twice() {
    let p = after("ecpix5", |b| instance(b, "target").conns.push(("rx_err".into(), net("rx_err"))));
    assert_eq!(p, [Problem::ConnectedTwice { place: "target.rx_err".into() }]);
}

#[test]
fn widths_that_differ() {
    let p = after("f2", |b| reconnect(b, "core", "r_id", net("sh_cl_pcim_rid")));
    assert_eq!(p, [Problem::Width { place: "core.r_id".into(), has: 9, gets: 16 }]);
    let p = after("f2", |b| reconnect(b, "core", "r_id", Expr::Slice("sh_cl_pcim_rid".into(), 16, 8)));
    assert_eq!(p, [Problem::Slice { place: "core.r_id".into(), net: "sh_cl_pcim_rid".into(), high: 16, low: 8 }]);
    let p = after("u50", |b| reconnect(b, "msix", "mask", Expr::Const(2, 0)));
    complains(&p, &Problem::Width { place: "msix.mask".into(), has: 1, gets: 2 });
}

#[test]
fn an_output_into_a_constant() {
    let p = after("f2", |b| reconnect(b, "irq", "req", Expr::Const(16, 0)));
    assert!(p.iter().any(|p| matches!(p, Problem::NotDrivable { place, .. } if place == "irq.req")), "{p:?}");
    complains(&p, &Problem::Undriven { place: "pin cl_sh_apppf_irq_req (net cl_sh_apppf_irq_req)".into() });
}

#[test]
fn two_instances_of_one_name() {
    let p = after("ecpix5", |b| instance(b, "rx_ddr1").name = "rx_ddr0".into());
    assert_eq!(p, [Problem::SameName { name: "rx_ddr0".into() }]);
}

#[test]
fn pins() {
    let p = after("u50", |b| b.pins[1].ball = "BB18".into());
    assert_eq!(p, [Problem::PinTwice { pin: "BB18".into(), first: "clk_100mhz_p[0]".into(), second: "clk_100mhz_n[0]".into() }]);
    // I is no row letter, BG is below the last row, 47 is right of the last column.
    for ball in ["BI18", "BG18", "BB47", "BB0", "18", "BB"] {
        let p = after("u50", |b| b.pins[0].ball = ball.into());
        assert_eq!(p, [Problem::BadPin { pin: ball.into() }]);
    }
    let p = after("u250", |b| b.pins[0].port = "clk_300mhz".into());
    complains(&p, &Problem::NoSuchPortBit { port: "clk_300mhz".into(), bit: 0 });
    complains(&p, &Problem::NoPin { port: "clk_300mhz_p".into(), bit: 0 });
    let p = after("ecpix5", |b| b.pins.last_mut().expect("a pin").bit = 4);
    complains(&p, &Problem::NoSuchPortBit { port: "led_b".into(), bit: 4 });
    complains(&p, &Problem::NoPin { port: "led_b".into(), bit: 3 });
    let p = after("ecpix5", |b| b.pins.last_mut().expect("a pin").bit = 0);
    complains(&p, &Problem::PortPinnedTwice { port: "led_b".into(), bit: 0 });
    let p = after("u250", |b| b.pins[0].standard = Some("LVCMOS33"));
    assert_eq!(p, [Problem::BadStandard { port: "clk_300mhz_p".into(), standard: "LVCMOS33".into() }]);
}

#[test]
fn clocks_crossings_and_false_paths() {
    let p = after("u50", |b| b.clocks[3].object = "pcie.axi_clk");
    assert_eq!(p, [Problem::BadClock { clock: "core".into(), object: "pcie.axi_clk".into() }]);
    let p = after("u50", |b| b.clocks[0].object = "pcie_tx_p");
    assert_eq!(p, [Problem::BadClock { clock: "pcie_refclk".into(), object: "pcie_tx_p".into() }]);
    let p = after("u50", |b| b.crossings[0].to = "macs");
    assert_eq!(p, [Problem::BadCrossing { clock: "macs".into() }]);
    let p = after("u50", |b| b.false_paths[1].0[0] = "pcie_rst_n");
    assert_eq!(p, [Problem::NoSuchPortBit { port: "pcie_rst_n".into(), bit: 0 }]);
}

#[test]
fn an_input_said_to_be_unused_that_is_used() {
    let p = after("f2", |b| b.top.unused.push(("rst_main_n", "")));
    assert_eq!(p, [Problem::BadUnused("rst_main_n".into())]);
    let p = after("f2", |b| b.top.unused.retain(|(u, _)| *u != "tck"));
    assert_eq!(p, [Problem::Unread { net: "tck".into(), driver: "pin tck".into() }]);
}
