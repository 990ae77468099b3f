//! AWS F2: custom logic behind Amazon's shell. No network: the wire is a loop, for host-to-host DMA of one machine's memory.

use super::{alveo, axi, LITE, READS, WRITES};
use crate::blocks::{gateware, shell};
use crate::netlist::{net, Dir, Expr, Netlist};
use crate::{Board, Clock, Flow, Image, Waiver};
use ferric_abi::pci;

const W: u32 = 512;

fn top() -> Netlist {
    let mut n = Netlist { name: "ferric_f2".into(), ports: shell::cl_ports(), ..Netlist::default() };
    n.instance("core_reset_sync", &gateware::reset_flr()).wire("clock=clk_main_a0 reset_n=rst_main_n flr=sh_cl_flr_assert flr_done=cl_sh_flr_done reset=core_reset");
    n.instance("ticks", &gateware::tick(256)).wire("clock=clk_main_a0 reset=core_reset now=ticks_now");
    // The shell names a signal by who drives it: ocl_cl_ or cl_ocl_.
    let mut ocl = n.instance("ocl", &gateware::ocl(W)).wire("clock=clk_main_a0 reset=core_reset");
    for field in LITE.split_whitespace() {
        let ours = ["aw_ready", "w_ready", "b_valid", "b_resp", "ar_ready", "r_valid", "r_data", "r_resp"].contains(&field);
        ocl = axi(ocl, "s_", if ours { "cl_ocl_" } else { "ocl_cl_" }, field);
    }
    ocl.bundle("", "");
    n.instance("irq", &gateware::irq16()).wire("clock=clk_main_a0 reset=core_reset req=cl_sh_apppf_irq_req ack=sh_cl_apppf_irq_ack").bundle("msix$", "msix$");
    let mut core = n.instance("core", &gateware::core(W)).wire("clock=clk_main_a0 reset=core_reset now=ticks_now ar_id=dma_ar_id").tie("ar_user aw_user");
    for field in WRITES.split_whitespace().chain(READS.split_whitespace()) {
        let theirs = ["aw_ready", "w_ready", "b_valid", "b_resp", "ar_ready", "r_valid", "r_data", "r_resp", "r_last"].contains(&field);
        core = axi(core, "", if theirs { "sh_cl_pcim_" } else { "cl_sh_pcim_" }, field);
    }
    // The loop: what is sent is received.
    core.to("r_id", Expr::Slice("sh_cl_pcim_rid".into(), gateware::READ_ID_BITS - 1, 0))
        .wire("rx$data=tx$data rx$keep=tx$keep rx$last=tx$last rx$valid=tx$valid rx$ready=tx$ready")
        .tie("rx_err")
        .bundle("", "");
    n.instance("ddr", &shell::sh_ddr()).param("DDR_PRESENT", "0").wire("clk=clk_main_a0 stat_clk=clk_main_a0 cl_RST_DIMM_N=RST_DIMM_N").bundle("", "");
    let vendor = u64::from(pci::VENDOR_ID);
    n.assigns = vec![
        // The card's id in the shell's 16 bits; whole beats, incrementing.
        ("cl_sh_pcim_arid".into(), Expr::Concat(vec![Expr::Const(16 - gateware::READ_ID_BITS, 0), net("dma_ar_id")])),
        ("cl_sh_pcim_arsize".into(), Expr::Const(3, 6)),
        ("cl_sh_pcim_arburst".into(), Expr::Const(2, 1)),
        ("cl_sh_pcim_awsize".into(), Expr::Const(3, 6)),
        ("cl_sh_pcim_awburst".into(), Expr::Const(2, 1)),
        ("cl_sh_id0".into(), Expr::Const(32, u64::from(pci::DEVICE_ID) << 16 | vendor)),
        ("cl_sh_id1".into(), Expr::Const(32, u64::from(pci::DEVICE_ID) << 16 | vendor)),
    ];
    // What this design does not use answers nothing.
    let driven: Vec<String> =
        n.assigns.iter().map(|(a, _)| a.clone()).chain(n.instances.iter().flat_map(|i| i.conns.iter()).filter_map(|(_, e)| if let Expr::Net(x) = e { Some(x.clone()) } else { None })).collect();
    let idle: Vec<_> = n.ports.iter().filter(|p| p.dir == Dir::Out && !driven.contains(&p.name)).map(|p| (p.name.clone(), Expr::Const(p.width, 0))).collect();
    n.assigns.extend(idle);
    n.unused = UNUSED.split_whitespace().map(|u| (u, "the shell's port list is fixed; this design does not use it")).collect();
    n
}

/// The board.
pub fn board() -> Board {
    let mut waivers = alveo::WAIVERS.to_vec();
    waivers.push(Waiver {
        rule: "UNUSED",
        file: "*top.v",
        matching: "",
        reason: "The shell's port list is fixed: inputs that this design does not use (listed and checked in boards/src/boards/f2.rs), upper bits of RID.",
    });
    Board {
        key: "f2",
        name: "AWS F2",
        flow: Flow::AwsHdk,
        part: "xcvu47p-fsvh2892-2-e",
        package: None,
        standards: &[],
        top: top(),
        pins: vec![],
        // The HDK's own constraints declare it (recipe A1: 250 MHz).
        clocks: vec![Clock { name: "core", object: "clk_main_a0", period: 4.0, derived: true }],
        crossings: vec![],
        false_paths: vec![],
        config: vec![],
        extra: vec![],
        ips: vec![],
        image: Image { part: "xcvu47p-fsvh2892", idcode: 0x04b7_b093, idcode_mask: 0x0fff_ffff, flash: 0, user: 0, programmer: "fpga-load-local-image" },
        waivers,
        sources: &[
            "port list: aws/aws-fpga (f2) hdk/common/shell_stable/design/interfaces/cl_ports.vh",
            "clock 250 MHz, reset, PCIM rules (whole beats, contiguous strobes, no 4 KiB crossing), OCL cut to 32 bits, interrupts: AWS_Shell_Interface_Specification in the same repository",
            "build steps: hdk/cl/examples/CL_TEMPLATE/build and hdk/common/shell_stable/build/scripts there",
            "part: hdk/common/ip/cl_ip there; IDCODE: lists of JTAG programmers (xcvu47p)",
        ],
    }
}

/// Inputs of the shell's port list that this design does not read.
const UNUSED: &str = "clk_hbm_ref sh_cl_ctl0 sh_cl_ctl1 sh_cl_ctl2 sh_cl_status_vdip sh_cl_pwr_state cfg_max_payload cfg_max_read_req sh_cl_glcount0 sh_cl_glcount1
    sh_cl_ddr_stat_addr sh_cl_ddr_stat_wdata sh_cl_ddr_stat_wr sh_cl_ddr_stat_rd sh_cl_ddr_stat_user
    drck shift tdi update sel tms tck runtest reset capture bscanid_en
    sh_cl_pcim_bid sh_cl_pcim_ruser
    sh_cl_dma_pcis_awid sh_cl_dma_pcis_awaddr sh_cl_dma_pcis_awlen sh_cl_dma_pcis_awsize sh_cl_dma_pcis_awburst sh_cl_dma_pcis_awcache sh_cl_dma_pcis_awlock sh_cl_dma_pcis_awprot
    sh_cl_dma_pcis_awqos sh_cl_dma_pcis_awuser sh_cl_dma_pcis_awvalid sh_cl_dma_pcis_wid sh_cl_dma_pcis_wdata sh_cl_dma_pcis_wstrb sh_cl_dma_pcis_wlast sh_cl_dma_pcis_wuser
    sh_cl_dma_pcis_wvalid sh_cl_dma_pcis_bready
    sh_cl_dma_pcis_arid sh_cl_dma_pcis_araddr sh_cl_dma_pcis_arlen sh_cl_dma_pcis_arsize sh_cl_dma_pcis_arburst sh_cl_dma_pcis_arcache sh_cl_dma_pcis_arlock sh_cl_dma_pcis_arprot
    sh_cl_dma_pcis_arqos sh_cl_dma_pcis_aruser sh_cl_dma_pcis_arvalid sh_cl_dma_pcis_rready
    ocl_cl_awuser ocl_cl_aruser
    sda_cl_awaddr sda_cl_awvalid sda_cl_wdata sda_cl_wstrb sda_cl_wvalid sda_cl_bready sda_cl_araddr sda_cl_arvalid sda_cl_rready
    hbm_apb_preset_n_0 hbm_apb_preset_n_1
    PCIE_EP_PERSTN PCIE_EP_REF_CLK_P PCIE_EP_REF_CLK_N PCIE_EP_RXP PCIE_EP_RXN PCIE_RP_REF_CLK_P PCIE_RP_REF_CLK_N PCIE_RP_RXP PCIE_RP_RXN";
