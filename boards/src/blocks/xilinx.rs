//! AMD primitives and IP.

use super::{module, number, one_of};
use crate::netlist::{Module, Origin};

/// Differential clock input of a transceiver quad. UG578, chapter 2.
pub fn ibufds_gte4() -> Module {
    let params = vec![one_of("REFCLK_HROW_CK_SEL", &["2'b00", "2'b01"]), one_of("REFCLK_EN_TX_PATH", &["1'b0", "1'b1"])];
    module("IBUFDS_GTE4", Origin::Primitive, "UG578: reference clock buffer; O to the quad, ODIV2 to logic.", params, "in I IB CEB\nout O ODIV2")
}

/// Differential input buffer. UG974.
pub fn ibufds() -> Module {
    let params = vec![one_of("DIFF_TERM", &["\"TRUE\"", "\"FALSE\""]), one_of("IBUF_LOW_PWR", &["\"TRUE\"", "\"FALSE\""])];
    module("IBUFDS", Origin::Primitive, "UG974: differential input buffer.", params, "in I IB\nout O")
}

/// Input buffer. UG974.
pub fn ibuf() -> Module {
    module("IBUF", Origin::Primitive, "UG974: input buffer.", vec![], "in I\nout O")
}

/// Global clock buffer that divides. UG974.
pub fn bufgce_div() -> Module {
    module("BUFGCE_DIV", Origin::Primitive, "UG974: clock buffer with divider 1 to 8.", vec![number("BUFGCE_DIVIDE", 1.0, 8.0)], "in I CE CLR\nout O")
}

/// AXI signals of one side of the XDMA bridge. `id`: bits of the ids.
fn axi(prefix: &str, id: u32, w: u32, master: bool) -> String {
    let (there, back) = if master { ("out", "in") } else { ("in", "out") };
    // The master side has prot, lock and cache, the slave side region instead.
    let more = |c: &str| if master { format!("{prefix}a{c}prot:3 {prefix}a{c}lock {prefix}a{c}cache:4") } else { format!("{prefix}a{c}region:4") };
    let p = prefix;
    let k = w / 8;
    format!(
        "{there} {p}awid:{id} {p}awaddr:64 {p}awlen:8 {p}awsize:3 {p}awburst:2 {p}awvalid {} {p}wdata:{w} {p}wstrb:{k} {p}wlast {p}wvalid {p}bready
         {there} {p}arid:{id} {p}araddr:64 {p}arlen:8 {p}arsize:3 {p}arburst:2 {p}arvalid {} {p}rready
         {back} {p}awready {p}wready {p}bid:{id} {p}bresp:2 {p}bvalid {p}arready {p}rid:{id} {p}rdata:{w} {p}rresp:2 {p}rlast {p}rvalid\n",
        more("w"),
        more("r")
    )
}

/// Ids of the bridge's slave side, as the core has them.
pub const BRIDGE_ID: u32 = 16;

/// PCIe Gen3 x16 hard block through the XDMA IP in AXI bridge mode (PG194, PG195).
///
/// Ports: those of the same IP in aws/aws-fpga (branch f2), `hdk/common/ip/cl_ip`, `pcie_bridge_ep.veo` and
/// `pcie_bridge_rc.veo` (slave side), widened to 16 lanes and [`BRIDGE_ID`]; the MSI-X ones by their names in
/// esa-tu-darmstadt/tapasco (`create_msixusptrans`), their widths as in the hard block's own interface (PG213).
/// Properties: names and values of the same two repositories. The build compares all of it with what Vivado generates.
pub fn xdma() -> Module {
    let mut table = String::from(
        "in sys_clk sys_clk_gt sys_rst_n pci_exp_rxp:16 pci_exp_rxn:16 usr_irq_req:1v
         out cfg_ltssm_state:6 user_lnk_up pci_exp_txp:16 pci_exp_txn:16 axi_aclk axi_aresetn axi_ctl_aresetn usr_irq_ack:1v interrupt_out
         in cfg_interrupt_msix_address:64 cfg_interrupt_msix_data:32 cfg_interrupt_msix_int
         out cfg_interrupt_msix_enable:4 cfg_interrupt_msix_mask:4 cfg_interrupt_msi_sent cfg_interrupt_msi_fail
         in s_axil_awaddr:32 s_axil_awprot:3 s_axil_awvalid s_axil_wdata:32 s_axil_wstrb:4 s_axil_wvalid s_axil_bready
         in s_axil_araddr:32 s_axil_arprot:3 s_axil_arvalid s_axil_rready
         out s_axil_awready s_axil_wready s_axil_bvalid s_axil_bresp:2 s_axil_arready s_axil_rdata:32 s_axil_rresp:2 s_axil_rvalid\n",
    );
    table += &axi("m_axib_", 4, 512, true);
    table += &axi("s_axib_", BRIDGE_ID, 512, false);
    let yes_no = |n| one_of(n, &["true", "false"]);
    let word = |n| number(n, 0.0, u64::MAX as f64);
    let hex = |n, list: &'static [&'static str]| one_of(n, list);
    let size = |n| one_of(n, &["1", "2", "4", "8", "16", "32", "64", "128", "256", "512"]);
    let scale = |n| one_of(n, &["Kilobytes", "Megabytes", "Gigabytes"]);
    let bar = |n| one_of(n, &["BAR_1:0", "BAR_3:2", "BAR_5:4"]);
    let params = vec![
        one_of("functional_mode", &["AXI_Bridge", "DMA"]),
        one_of("mode_selection", &["Basic", "Advanced"]),
        one_of("device_port_type", &["PCI_Express_Endpoint_device", "Root_Port_of_PCI_Express_Root_Complex"]),
        // The blocks of the two parts that reach lanes of one x16 slot.
        one_of("pcie_blk_locn", &["X0Y1", "X0Y2", "PCIE4C_X1Y0", "PCIE4C_X1Y1"]),
        one_of("pl_link_cap_max_link_width", &["X1", "X2", "X4", "X8", "X16"]),
        one_of("pl_link_cap_max_link_speed", &["2.5_GT/s", "5.0_GT/s", "8.0_GT/s", "16.0_GT/s"]),
        one_of("axi_data_width", &["64_bit", "128_bit", "256_bit", "512_bit"]),
        one_of("axi_addr_width", &["32", "48", "49", "64"]),
        one_of("axisten_freq", &["62.5", "125", "250"]),
        one_of("coreclk_freq", &["250", "500"]),
        one_of("plltype", &["QPLL0", "QPLL1", "CPLL"]),
        one_of("ref_clk_freq", &["100_MHz", "125_MHz", "250_MHz"]),
        yes_no("en_axi_slave_if"),
        yes_no("xdma_axilite_slave"),
        yes_no("dedicate_perst"),
        yes_no("pcie_extended_tag"),
        one_of("s_axi_id_width", &["4", "8", "16"]),
        one_of("c_m_axi_num_write", &["8", "16", "32"]),
        one_of("c_s_axi_num_read", &["8", "16", "32"]),
        number("axibar_num", 1.0, 6.0),
        word("axibar_0"),
        word("axibar_highaddr_0"),
        word("axibar2pciebar_0"),
        word("pciebar2axibar_0"),
        word("pciebar2axibar_2"),
        hex("vendor_id", &["FE11"]),
        hex("pf0_device_id", &["0C01"]),
        hex("pf0_revision_id", &["01"]),
        yes_no("pf0_Use_Class_Code_Lookup_Assistant"),
        hex("pf0_class_code_base", &["02"]),
        hex("pf0_class_code_sub", &["00"]),
        hex("pf0_class_code_interface", &["00"]),
        one_of("pf0_interrupt_pin", &["NONE", "INTA"]),
        yes_no("pf0_msi_enabled"),
        yes_no("pf0_msix_enabled"),
        one_of("pf0_msix_impl_locn", &["Internal", "External"]),
        // One less than the vectors, hexadecimal.
        hex("pf0_msix_cap_table_size", &["01F"]),
        hex("pf0_msix_cap_table_offset", &["00000000"]),
        hex("pf0_msix_cap_pba_offset", &["00001000"]),
        bar("pf0_msix_cap_table_bir"),
        bar("pf0_msix_cap_pba_bir"),
        yes_no("pf0_bar0_64bit"),
        yes_no("pf0_bar0_prefetchable"),
        size("pf0_bar0_size"),
        scale("pf0_bar0_scale"),
        yes_no("pf0_bar2_enabled"),
        yes_no("pf0_bar2_64bit"),
        yes_no("pf0_bar2_prefetchable"),
        size("pf0_bar2_size"),
        scale("pf0_bar2_scale"),
    ];
    module("xdma_bridge", Origin::Ip, "PG194, PG195: PCIe Gen3 x16 as AXI bridge.", params, &table)
}

/// 100G MAC with RS-FEC and its four transceivers (PG203), AXI4-Stream side. Outputs that we do not use are not listed.
///
/// Ports: instances of the IP with embedded transceivers, RS-FEC and time stamps in two public designs (one a generated
/// component declaration, with lane ports of an older version). The build compares them with what Vivado generates.
/// Properties: corundum/corundum `fpga/mqnic/Alveo/fpga_100g/ip/cmac_usplus.tcl`, Xilinx/open-nic-shell
/// `src/cmac_subsystem/vivado_ip/cmac_usplus_0_au50.tcl`.
pub fn cmac() -> Module {
    let table = "in gt_rxp_in:4 gt_rxn_in:4 gt_loopback_in:12 gtwiz_reset_tx_datapath gtwiz_reset_rx_datapath sys_reset gt_ref_clk_p gt_ref_clk_n init_clk
        out gt_txp_out:4 gt_txn_out:4 gt_txusrclk2 usr_rx_reset usr_tx_reset
        in rx_clk core_rx_reset ctl_rx_enable ctl_rx_force_resync ctl_rx_test_pattern ctl_rx_systemtimerin:80
        in ctl_rsfec_ieee_error_indication_mode ctl_rx_rsfec_enable ctl_rx_rsfec_enable_correction ctl_rx_rsfec_enable_indication
        out rx_axis_tvalid rx_axis_tdata:512 rx_axis_tlast rx_axis_tkeep:64 rx_axis_tuser stat_rx_aligned
        in core_tx_reset ctl_tx_enable ctl_tx_test_pattern ctl_tx_rsfec_enable ctl_tx_send_idle ctl_tx_send_rfi ctl_tx_send_lfi ctl_tx_systemtimerin:80
        in tx_ptp_1588op_in:2 tx_ptp_tag_field_in:16 tx_preamblein:56
        in tx_axis_tvalid tx_axis_tdata:512 tx_axis_tlast tx_axis_tkeep:64 tx_axis_tuser
        out tx_axis_tready
        in core_drp_reset drp_clk drp_addr:10 drp_di:16 drp_en drp_we";
    let flag = |n| one_of(n, &["0", "1"]);
    let params = vec![
        flag("CMAC_CAUI4_MODE"),
        one_of("NUM_LANES", &["4x25", "10x10"]),
        one_of("USER_INTERFACE", &["AXIS", "LBUS"]),
        one_of("GT_REF_CLK_FREQ", &["156.25", "161.1328125", "322.265625"]),
        number("GT_DRP_CLK", 10.0, 250.0),
        // CMAC sites next to the QSFP quads of the two parts.
        one_of("CMAC_CORE_SELECT", &["CMACE4_X0Y4", "CMACE4_X0Y7", "CMACE4_X0Y8"]),
        one_of("GT_GROUP_SELECT", &["X0Y28~X0Y31", "X1Y44~X1Y47", "X1Y48~X1Y51"]),
        flag("INCLUDE_RS_FEC"),
        flag("ENABLE_TIME_STAMPING"),
        flag("ENABLE_PIPELINE_REG"),
        flag("TX_FLOW_CONTROL"),
        flag("RX_FLOW_CONTROL"),
        number("RX_MIN_PACKET_LEN", 64.0, 255.0),
        number("RX_MAX_PACKET_LEN", 64.0, 16383.0),
    ];
    module("cmac_usplus_0", Origin::Ip, "PG203: 100G Ethernet MAC.", params, table)
}
