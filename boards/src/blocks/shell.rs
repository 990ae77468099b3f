//! The port list of the AWS F2 shell, towards custom logic: aws/aws-fpga, branch f2,
//! `hdk/common/shell_stable/design/interfaces/cl_ports.vh`; and `sh_ddr`, which owns the DIMM pins
//! (`hdk/cl/examples/CL_TEMPLATE/design/CL_TEMPLATE.sv`; only its pins are listed, the rest stays open as there).

use super::{module, number};
use crate::netlist::{ports, Module, Origin, Port};

/// DIMM pins.
const DIMM: &str = "out M_ACT_N M_MA:18 M_BA:2 M_BG:2 M_CKE:2 M_ODT:2 M_CS_N:2 M_CLK_DN:2 M_CLK_DP:2 M_PAR
    inout M_DQ:64 M_ECC:8 M_DQS_DP:18 M_DQS_DN:18
    in CLK_DIMM_DP CLK_DIMM_DN\n";

/// One AXI4 interface of the shell: custom logic asks (`cl_sh_pcim_`) or answers.
fn axi(ours: &str, theirs: &str, asks: bool) -> String {
    let (there, back) = if asks { ("out", "in") } else { ("in", "out") };
    let (a, b) = if asks { (ours, theirs) } else { (theirs, ours) };
    let address = |c: &str| {
        format!(
            "{there} {a}a{c}id:16 {a}a{c}addr:64 {a}a{c}len:8 {a}a{c}size:3 {a}a{c}burst:2 {a}a{c}cache:4 {a}a{c}lock {a}a{c}prot:3 {a}a{c}qos:4 {a}a{c}user:55 {a}a{c}valid\n{back} {b}a{c}ready\n"
        )
    };
    format!(
        "{}{there} {a}wid:16 {a}wdata:512 {a}wstrb:64 {a}wlast {a}wuser:64 {a}wvalid {a}bready
        {back} {b}wready {b}bid:16 {b}bresp:2 {b}bvalid
        {}{back} {b}rid:16 {b}rdata:512 {b}rresp:2 {b}rlast {b}ruser:64 {b}rvalid
        {there} {a}rready\n",
        address("w"),
        address("r")
    )
}

/// One AXI4-Lite interface that custom logic answers.
fn lite(ours: &str, theirs: &str, user: &str) -> String {
    format!(
        "in {theirs}awaddr:32 {theirs}awvalid {theirs}wdata:32 {theirs}wstrb:4 {theirs}wvalid {theirs}bready {theirs}araddr:32 {theirs}arvalid {theirs}rready {user}
        out {ours}awready {ours}wready {ours}bresp:2 {ours}bvalid {ours}arready {ours}rdata:32 {ours}rresp:2 {ours}rvalid\n"
    )
}

/// Ports of a module that the shell instantiates as custom logic.
pub fn cl_ports() -> Vec<Port> {
    let mut table = String::from(
        "in clk_main_a0 rst_main_n clk_hbm_ref sh_cl_flr_assert sh_cl_ctl0:32 sh_cl_ctl1:32 sh_cl_ctl2:32 sh_cl_status_vdip:16 sh_cl_pwr_state:2
         out cl_sh_flr_done cl_sh_status0:32 cl_sh_status1:32 cl_sh_status2:32 cl_sh_id0:32 cl_sh_id1:32 cl_sh_status_vled:16 cl_sh_dma_wr_full cl_sh_dma_rd_full
         in cfg_max_payload:2 cfg_max_read_req:3 sh_cl_apppf_irq_ack:16 sh_cl_glcount0:64 sh_cl_glcount1:64
         out cl_sh_apppf_irq_req:16
         in sh_cl_ddr_stat_addr:8 sh_cl_ddr_stat_wdata:32 sh_cl_ddr_stat_wr sh_cl_ddr_stat_rd sh_cl_ddr_stat_user:3
         out cl_sh_ddr_stat_ack cl_sh_ddr_stat_rdata:32 cl_sh_ddr_stat_int:8 RST_DIMM_N
         in drck shift tdi update sel tms tck runtest reset capture bscanid_en
         out tdo\n",
    );
    table += DIMM;
    table += &axi("cl_sh_pcim_", "sh_cl_pcim_", true);
    table += &axi("cl_sh_dma_pcis_", "sh_cl_dma_pcis_", false);
    table += &lite("cl_ocl_", "ocl_cl_", "ocl_cl_awuser:55 ocl_cl_aruser:55");
    table += &lite("cl_sda_", "sda_cl_", "");
    for rack in 0..2 {
        table += &format!(
            "in hbm_apb_preset_n_{rack}
             out hbm_apb_paddr_{rack}:22 hbm_apb_pprot_{rack}:3 hbm_apb_psel_{rack} hbm_apb_penable_{rack} hbm_apb_pwrite_{rack} hbm_apb_pwdata_{rack}:32
             out hbm_apb_pstrb_{rack}:4 hbm_apb_pready_{rack} hbm_apb_prdata_{rack}:32 hbm_apb_pslverr_{rack}\n"
        );
    }
    table += "in PCIE_EP_PERSTN PCIE_EP_REF_CLK_P PCIE_EP_REF_CLK_N PCIE_EP_RXP:8 PCIE_EP_RXN:8 PCIE_RP_REF_CLK_P PCIE_RP_REF_CLK_N PCIE_RP_RXP:8 PCIE_RP_RXN:8
        out PCIE_EP_TXP:8 PCIE_EP_TXN:8 PCIE_RP_PERSTN PCIE_RP_TXP:8 PCIE_RP_TXN:8";
    ports(&table)
}

/// The shell's DDR controller, here without a controller: it only holds the DIMM pins.
pub fn sh_ddr() -> Module {
    let table = format!("in clk stat_clk\nout cl_RST_DIMM_N\n{DIMM}");
    module("sh_ddr", Origin::Primitive, "AWS HDK: DDR controller; DDR_PRESENT 0 leaves only the pins' buffers.", vec![number("DDR_PRESENT", 0.0, 1.0)], &table)
}
