//! What the Alveo cards share: PCIe, one 100G port, the core between them.
//!
//! Clocks: the core and everything towards the host run on the bridge's 250 MHz; the MAC side on the CMAC's 322.27 MHz;
//! a free running 100 MHz starts the transceivers. Data crosses only in `mac_tx` and `mac_rx`.

use super::{axi, READS, WRITES};
use crate::blocks::{gateware, xilinx};
use crate::netlist::{net, ports, Expr, Netlist};
use crate::{Clock, Crossing, Ip, Waiver};
use ferric_abi::pci;

/// Names of a card's pins and sites.
pub struct Card {
    pub name: &'static str,
    /// Ports of the card besides PCIe and the transceivers.
    pub ports: &'static str,
    /// Differential clock for `init_clk` and what divides it to 100 MHz.
    pub free_clock: (&'static str, u32),
    /// Prefix of the QSFP cage's pins and of its reference clock's.
    pub qsfp: &'static str,
    pub qsfp_clock: &'static str,
    pub pcie_clock: &'static str,
    /// Net of the pin that shows the link, and constants of other outputs.
    pub link_led: (&'static str, u32),
    pub constants: &'static [(&'static str, u32, u64)],
    pub cmac: &'static str,
    pub quads: &'static str,
    pub pcie_block: &'static str,
}

/// 512-bit core: bits of the data path.
const W: u32 = 512;
/// Address of the MSI-X table in the bridge's address space, beside the function windows of BAR 0.
const MSIX_WINDOW: u64 = 1 << 20;

/// The top.
pub fn top(c: &Card) -> Netlist {
    let mut n = Netlist { name: c.name.into(), ..Netlist::default() };
    let (free, divide) = c.free_clock;
    n.ports = ports(&format!(
        "in pcie_rx_p:16 pcie_rx_n:16 {pc}_p {pc}_n pcie_reset_n {free}_p {free}_n {q}_rx_p:4 {q}_rx_n:4 {qc}_p {qc}_n
         out pcie_tx_p:16 pcie_tx_n:16 {q}_tx_p:4 {q}_tx_n:4
         {}",
        c.ports,
        pc = c.pcie_clock,
        q = c.qsfp,
        qc = c.qsfp_clock
    ));
    clocks(&mut n, c, free, divide);
    host(&mut n);
    mac(&mut n, c);
    n.assigns.push((c.link_led.0.into(), if c.link_led.1 == 1 { net("link_up") } else { Expr::Concat(vec![Expr::Const(c.link_led.1 - 1, 0), net("link_up")]) }));
    n.assigns.extend(c.constants.iter().map(|(name, width, value)| (name.to_string(), Expr::Const(*width, *value))));
    n
}

fn clocks(n: &mut Netlist, c: &Card, free: &str, divide: u32) {
    let pc = c.pcie_clock;
    n.instance("pcie_refclk_buf", &xilinx::ibufds_gte4()).param("REFCLK_HROW_CK_SEL", "2'b00").wire(&format!("I={pc}_p IB={pc}_n O=pcie_refclk_gt ODIV2=pcie_refclk")).tie("CEB");
    n.instance("pcie_reset_buf", &xilinx::ibuf()).wire("I=pcie_reset_n O=perst_n");
    n.instance("free_clock_in", &xilinx::ibufds()).wire(&format!("I={free}_p IB={free}_n O=free_clock"));
    n.instance("free_clock_buf", &xilinx::bufgce_div()).param("BUFGCE_DIVIDE", &divide.to_string()).wire("I=free_clock O=init_clk").to("CE", Expr::Const(1, 1)).tie("CLR");
    n.instance("init_reset_sync", &gateware::reset()).wire("clock=init_clk reset_n=perst_n reset=init_reset").to("ready", Expr::Const(1, 1));
    n.instance("core_reset_sync", &gateware::reset()).wire("clock=axi_aclk reset_n=axi_aresetn ready=user_lnk_up reset=core_reset");
    n.instance("ticks", &gateware::tick(256)).wire("clock=axi_aclk reset=core_reset now=ticks_now");
}

/// PCIe bridge, BAR decoder, MSI-X and the core's host side.
fn host(n: &mut Netlist) {
    // Whole beats, incrementing, id 0 for writes: what the core's DMA always does.
    let beat = |c: &str| [(format!("s_axib_a{c}size"), Expr::Const(3, 6)), (format!("s_axib_a{c}burst"), Expr::Const(2, 1)), (format!("s_axib_a{c}region"), Expr::Const(4, 0))];
    let mut bridge = n
        .instance("pcie", &xilinx::xdma())
        .wire("sys_clk=pcie_refclk sys_clk_gt=pcie_refclk_gt sys_rst_n=perst_n pci_exp_rxp=pcie_rx_p pci_exp_rxn=pcie_rx_n pci_exp_txp=pcie_tx_p pci_exp_txn=pcie_tx_n")
        .wire("axi_aclk axi_aresetn user_lnk_up cfg_interrupt_msix_enable=msix_enable cfg_interrupt_msix_mask=msix_mask");
    for (port, expr) in beat("w").into_iter().chain(beat("r")) {
        bridge = bridge.to(&port, expr);
    }
    bridge
        .to("s_axib_awid", Expr::Const(xilinx::BRIDGE_ID, 0))
        // The card's id in the bridge's wider one.
        .to("s_axib_arid", Expr::Concat(vec![Expr::Const(xilinx::BRIDGE_ID - gateware::READ_ID_BITS, 0), Expr::Net("dma_ar_id".into())]))
        .tie("axi_ctl_aresetn cfg_ltssm_state usr_irq_req usr_irq_ack interrupt_out s_axib_bid")
        .tie_rest("cfg_interrupt_")
        .tie_rest("s_axil_")
        .tie("m_axib_awprot m_axib_awlock m_axib_awcache m_axib_arprot m_axib_arlock m_axib_arcache")
        .bundle("m_axib_", "m_axib_")
        .bundle("s_axib_", "s_axib_");
    let all = "aw_id aw_addr aw_len aw_size aw_burst aw_valid aw_ready w_data w_strb w_last w_valid w_ready b_id b_resp b_valid b_ready \
               ar_id ar_addr ar_len ar_size ar_burst ar_valid ar_ready r_id r_data r_resp r_last r_valid r_ready";
    axi(n.instance("host", &gateware::host(W)).wire("clock=axi_aclk reset=core_reset"), "s_", "m_axib_", all).bundle("", "");
    let msix = n.instance("msix", &gateware::msix(W)).wire("clock=axi_aclk reset=core_reset");
    let msix = msix.to("enable", Expr::Slice("msix_enable".into(), 0, 0)).to("mask", Expr::Slice("msix_mask".into(), 0, 0));
    axi(msix.bundle("s_", "dma_").bundle("tbl_", "tbl_").bundle("msix$", "msix$"), "m_", "s_axib_", WRITES);
    let core = n.instance("core", &gateware::core(W)).wire("clock=axi_aclk reset=core_reset now=ticks_now ar_id=dma_ar_id");
    // One function: its number selects nothing in this bridge.
    let core = axi(core.tie("aw_user ar_user"), "", "s_axib_", READS);
    let core = core.to("r_id", Expr::Slice("s_axib_rid".into(), gateware::READ_ID_BITS - 1, 0));
    core.bundle("aw_", "dma_aw_").bundle("w_", "dma_w_").bundle("b_", "dma_b_").bundle("", "");
}

fn mac(n: &mut Netlist, c: &Card) {
    let q = c.qsfp;
    n.instance("cmac", &xilinx::cmac())
        .wire(&format!("gt_rxp_in={q}_rx_p gt_rxn_in={q}_rx_n gt_txp_out={q}_tx_p gt_txn_out={q}_tx_n gt_ref_clk_p={qc}_p gt_ref_clk_n={qc}_n", qc = c.qsfp_clock))
        .wire("init_clk sys_reset=init_reset gt_txusrclk2=mac_clock rx_clk=mac_clock usr_rx_reset=mac_rx_reset usr_tx_reset=mac_tx_reset stat_rx_aligned=rx_aligned")
        .wire("ctl_rx_enable=rx_enable ctl_tx_enable=tx_enable ctl_tx_send_rfi=send_rfi")
        // RS-FEC on, correcting: 100GBASE-CR4 and SR4 (IEEE 802.3 clause 91) want it.
        .to("ctl_rx_rsfec_enable", Expr::Const(1, 1))
        .to("ctl_rx_rsfec_enable_correction", Expr::Const(1, 1))
        .to("ctl_rx_rsfec_enable_indication", Expr::Const(1, 1))
        .to("ctl_tx_rsfec_enable", Expr::Const(1, 1))
        .wire("rx_axis_tdata=mac_rx_data rx_axis_tkeep=mac_rx_keep rx_axis_tlast=mac_rx_last rx_axis_tvalid=mac_rx_valid rx_axis_tuser=mac_rx_err")
        .wire("tx_axis_tdata=mac_tx_data tx_axis_tkeep=mac_tx_keep tx_axis_tlast=mac_tx_last tx_axis_tvalid=mac_tx_valid tx_axis_tready=mac_tx_ready")
        .tie("tx_axis_tuser")
        .tie_rest("");
    n.instance("link", &gateware::cmac_link()).wire("clock=mac_clock reset=mac_rx_reset aligned=rx_aligned up=link_up rx_enable tx_enable send_rfi");
    n.instance("mac_tx", &gateware::mac_tx(W)).wire("clock=axi_aclk reset=core_reset mac_clock mac_reset=mac_tx_reset").bundle("s$", "tx$").bundle("m$", "mac_tx_");
    n.instance("mac_rx", &gateware::mac_rx(W))
        .wire("clock=axi_aclk reset=core_reset mac_clock mac_reset=mac_rx_reset s_err=mac_rx_err m_err=rx_err")
        .tie("s$ready dropped")
        .bundle("m$", "rx$")
        .bundle("s$", "mac_rx_");
}

/// Clocks: those of the pins are declared here, those of the IP by its own constraints.
pub fn clock_list(pcie: &'static str, free: &'static str, free_period: f64, qsfp: &'static str) -> Vec<Clock> {
    let clock = |name, object, period, derived| Clock { name, object, period, derived };
    vec![
        clock("pcie_refclk", pcie, 10.0, false),
        clock("free_clock", free, free_period, false),
        // 161.1328125 MHz.
        clock("qsfp_refclk", qsfp, 6.206, false),
        clock("core", "pcie.axi_aclk", 4.0, true),
        clock("init", "free_clock_buf.O", 10.0, true),
        // 322.265625 MHz.
        clock("mac", "cmac.gt_txusrclk2", 3.103, true),
    ]
}

/// Gray pointers and reset synchronisers. One period of the faster clock, so that two bits of a pointer never differ by more.
pub const CROSSINGS: [Crossing; 4] = [
    Crossing { from: "core", to: "mac", max_delay: 3.103 },
    Crossing { from: "mac", to: "core", max_delay: 3.103 },
    Crossing { from: "init", to: "core", max_delay: 4.0 },
    Crossing { from: "core", to: "init", max_delay: 4.0 },
];

/// The two IP blocks.
pub fn ips(c: &Card) -> Vec<Ip> {
    let owned = |list: &[(&'static str, &str)]| list.iter().map(|(k, v)| (*k, v.to_string())).collect::<Vec<_>>();
    let mut bridge = owned(&[
        ("functional_mode", "AXI_Bridge"),
        ("mode_selection", "Advanced"),
        ("device_port_type", "PCI_Express_Endpoint_device"),
        ("pcie_blk_locn", c.pcie_block),
        ("pl_link_cap_max_link_width", "X16"),
        ("pl_link_cap_max_link_speed", "8.0_GT/s"),
        ("axi_data_width", "512_bit"),
        ("axi_addr_width", "64"),
        ("axisten_freq", "250"),
        ("coreclk_freq", "500"),
        ("plltype", "QPLL1"),
        ("ref_clk_freq", "100_MHz"),
        ("en_axi_slave_if", "true"),
        ("xdma_axilite_slave", "true"),
        ("dedicate_perst", "false"),
        ("pcie_extended_tag", "true"),
        ("s_axi_id_width", "16"),
        ("c_m_axi_num_write", "32"),
        ("c_s_axi_num_read", "32"),
        // All of the slave side's addresses are host addresses, unchanged.
        ("axibar_num", "1"),
        ("axibar_0", "0x0000000000000000"),
        ("axibar_highaddr_0", "0xFFFFFFFFFFFFFFFF"),
        ("axibar2pciebar_0", "0x0000000000000000"),
        ("pciebar2axibar_0", "0x0000000000000000"),
        ("pf0_Use_Class_Code_Lookup_Assistant", "false"),
        ("pf0_interrupt_pin", "NONE"),
        ("pf0_msi_enabled", "false"),
        ("pf0_msix_enabled", "true"),
        ("pf0_msix_impl_locn", "External"),
        ("pf0_msix_cap_table_offset", "00000000"),
        ("pf0_msix_cap_table_bir", "BAR_3:2"),
        ("pf0_msix_cap_pba_bir", "BAR_3:2"),
        ("pf0_bar0_64bit", "true"),
        ("pf0_bar0_prefetchable", "false"),
        ("pf0_bar0_scale", "Kilobytes"),
        ("pf0_bar2_enabled", "true"),
        ("pf0_bar2_64bit", "true"),
        ("pf0_bar2_prefetchable", "false"),
        ("pf0_bar2_scale", "Kilobytes"),
    ]);
    let kib = |bytes: u32| (bytes / 1024).to_string();
    bridge.extend([
        ("pciebar2axibar_2", format!("0x{MSIX_WINDOW:016X}")),
        ("vendor_id", format!("{:04X}", pci::VENDOR_ID)),
        ("pf0_device_id", format!("{:04X}", pci::DEVICE_ID)),
        ("pf0_revision_id", format!("{:02X}", pci::REVISION)),
        ("pf0_class_code_base", format!("{:02X}", pci::CLASS >> 16)),
        ("pf0_class_code_sub", format!("{:02X}", pci::CLASS >> 8 & 0xff)),
        ("pf0_class_code_interface", format!("{:02X}", pci::CLASS & 0xff)),
        ("pf0_msix_cap_table_size", format!("{:03X}", pci::MSIX_VECTORS - 1)),
        ("pf0_msix_cap_pba_offset", format!("{:08X}", pci::MSIX_PBA)),
        ("pf0_bar0_size", kib(pci::BAR_WINDOW_SIZE)),
        ("pf0_bar2_size", kib(pci::BAR_MSIX_SIZE)),
    ]);
    let mac = owned(&[
        ("CMAC_CAUI4_MODE", "1"),
        ("NUM_LANES", "4x25"),
        ("USER_INTERFACE", "AXIS"),
        ("GT_REF_CLK_FREQ", "161.1328125"),
        ("GT_DRP_CLK", "100.00"),
        ("CMAC_CORE_SELECT", c.cmac),
        ("GT_GROUP_SELECT", c.quads),
        ("INCLUDE_RS_FEC", "1"),
        ("ENABLE_TIME_STAMPING", "1"),
        ("ENABLE_PIPELINE_REG", "1"),
        ("TX_FLOW_CONTROL", "0"),
        ("RX_FLOW_CONTROL", "0"),
        ("RX_MIN_PACKET_LEN", "64"),
        ("RX_MAX_PACKET_LEN", "9600"),
    ]);
    vec![Ip { module: "xdma_bridge".into(), catalogue: "xdma", properties: bridge }, Ip { module: "cmac_usplus_0".into(), catalogue: "cmac_usplus", properties: mac }]
}

/// What Verilator says of every top.
pub const WAIVERS: [Waiver; 5] = [
    Waiver { rule: "UNUSED", file: "*_stub.v", matching: "", reason: "A stub has ports and no body: its inputs go nowhere." },
    Waiver { rule: "UNDRIVEN", file: "*_stub.v", matching: "", reason: "A stub has ports and no body: its outputs come from nowhere." },
    Waiver { rule: "DECLFILENAME", file: "*_stub.v", matching: "", reason: "NAME_stub.v holds module NAME, so that it is not taken for the module itself." },
    Waiver { rule: "DECLFILENAME", file: "*top.v", matching: "", reason: "The top of every board is in top.v; the module's name says the board." },
    Waiver { rule: "PINCONNECTEMPTY", file: "*top.v", matching: "", reason: "Outputs left open are left open by name: the description's check refuses a port that is not mentioned." },
];

/// The same, and what a bridge with one function and wider ids leaves over.
pub fn waivers() -> Vec<Waiver> {
    let function = |matching| Waiver { rule: "UNUSED", file: "*top.v", matching, reason: "One bit for each of four functions; this bridge has one, number 0." };
    let ids = Waiver { rule: "UNUSED", file: "*top.v", matching: "*'s_axib_rid'*", reason: "The bridge's ids have more bits than the card's, and the upper ones are zero." };
    WAIVERS.into_iter().chain([function("*'msix_enable'*"), function("*'msix_mask'*"), ids]).collect()
}
