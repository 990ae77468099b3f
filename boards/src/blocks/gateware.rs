//! RustHDL modules, as they come out of `target/verilog/`. The core exists; the others are what board tops expect of it.
//! All are `clock` / `reset` (synchronous, active high) blocks with registered boundaries; a module with two clocks is the
//! only kind of place where data crosses. `x$data` is how the generator writes field `data` of bus `x`.

use super::module;
use crate::netlist::{Module, Origin};

/// AXI4-Lite register bus, from the side that answers (`in`) or asks (`out`), under the core's names.
fn lite(prefix: &str, asks: bool, address: u32) -> String {
    let (there, back) = if asks { ("out", "in") } else { ("in", "out") };
    let p = prefix;
    format!(
        "{there} {p}aw_valid {p}aw_addr:{address} {p}w_valid {p}w_data:32 {p}w_strb:4 {p}b_ready {p}ar_valid {p}ar_addr:{address} {p}r_ready
         {back} {p}aw_ready {p}w_ready {p}b_valid {p}b_resp:2 {p}ar_ready {p}r_valid {p}r_data:32 {p}r_resp:2\n"
    )
}

/// Doorbell bus: AXI4, writes only.
fn doorbells(asks: bool, w: u32) -> String {
    let (there, back) = if asks { ("out", "in") } else { ("in", "out") };
    format!(
        "{there} db_aw_valid db_aw_addr:32 db_aw_len:8 db_w_valid db_w_data:{w} db_w_strb:{} db_w_last db_b_ready
         {back} db_aw_ready db_w_ready db_b_valid db_b_resp:2\n",
        w / 8
    )
}

/// Packet stream `s` (sink) or `m` (source).
fn stream(name: &str, source: bool, w: u32) -> String {
    let (there, back) = if source { ("out", "in") } else { ("in", "out") };
    format!("{there} {name}$data:{w} {name}$keep:{} {name}$last {name}$valid\n{back} {name}$ready\n", w / 8)
}

/// Bits of the ids of DMA reads that the boards' tops hand on to their bridges. A card whose reads need more is refused when its Verilog is written (`ferric-gen --read-ids`).
pub const READ_ID_BITS: u32 = 9;

/// The card core, `hdl/src/card/list.rs`.
pub fn core(w: u32) -> Module {
    let (k, id) = (w / 8, READ_ID_BITS);
    let mut table = String::from("in clock reset now:32\n");
    table += &lite("csr_", false, 32);
    table += &doorbells(false, w);
    table += &format!(
        "out ar_valid ar_id:{id} ar_addr:64 ar_len:8 ar_user:12 r_ready aw_valid aw_addr:64 aw_len:8 aw_user:12 w_valid w_data:{w} w_strb:{k} w_last b_ready
         in ar_ready r_valid r_id:{id} r_data:{w} r_resp:2 r_last aw_ready w_ready b_valid b_resp:2
         out msix$data:28 msix$valid
         in msix$ready rx_err\n"
    );
    table += &stream("rx", false, w);
    table += &stream("tx", true, w);
    module(&format!("ferric_w{w}"), Origin::Gateware, "The card core (docs/microarchitecture.md).", vec![], &table)
}

/// A reset of one clock's own.
pub fn reset() -> Module {
    let doc = "Raises `reset` at once when `reset_n` or `ready` falls, lowers it 16 cycles after both are high (two synchroniser registers each).";
    module("ferric_reset", Origin::Gateware, doc, vec![], "in clock reset_n ready\nout reset")
}

/// Reset with the function-level reset of a shell.
pub fn reset_flr() -> Module {
    let doc = "As `ferric_reset`, all inputs synchronous; a high `flr` also resets, and `flr_done` rises when that reset is over, until `flr` falls.";
    module("ferric_reset_flr", Origin::Gateware, doc, vec![], "in clock reset_n flr\nout reset flr_done")
}

/// The tick counter. `cycles` of the clock are 1.024 us.
pub fn tick(cycles: u32) -> Module {
    let doc = "Counts ticks of 1.024 us; the number in the name is the cycles of one tick.";
    module(&format!("ferric_tick_{cycles}"), Origin::Gateware, doc, vec![], "in clock reset\nout now:32")
}

/// BAR accesses to the core's buses.
pub fn host(w: u32) -> Module {
    let doc = "AXI4 slave (the PCIe bridge's master) to registers (offsets below 0x1000 of each 64 KiB function window, 4-byte accesses), doorbells (0x1000 to 0x2fff: 8 bytes or a \
               64-byte line, as one burst) and the MSI-X table (address bit 20). Answers are in order and carry the request's id; what is none of these reads as 0 and is dropped.";
    let k = w / 8;
    let mut table = format!(
        "in clock reset s_aw_id:4 s_aw_addr:64 s_aw_len:8 s_aw_size:3 s_aw_burst:2 s_aw_valid s_w_data:{w} s_w_strb:{k} s_w_last s_w_valid s_b_ready
         in s_ar_id:4 s_ar_addr:64 s_ar_len:8 s_ar_size:3 s_ar_burst:2 s_ar_valid s_r_ready
         out s_aw_ready s_w_ready s_b_id:4 s_b_resp:2 s_b_valid s_ar_ready s_r_id:4 s_r_data:{w} s_r_resp:2 s_r_last s_r_valid\n"
    );
    table += &lite("csr_", true, 32);
    table += &doorbells(true, w);
    table += &lite("tbl_", true, 13);
    module(&format!("ferric_host_w{w}"), Origin::Gateware, doc, vec![], &table)
}

/// MSI-X table, and messages as memory writes.
pub fn msix(w: u32) -> Module {
    let doc = "MSI-X table of 32 vectors at 0, pending bits at 0x1000 of `tbl`. A request becomes a 4-byte write of the vector's data to its address, behind all writes of `s` accepted \
               before it and on the same AXI channel, so that it passes none of them; masked or disabled ones stay pending. Everything else goes from `s` to `m` unchanged.";
    let k = w / 8;
    let mut table = format!(
        "in clock reset enable mask msix$data:28 msix$valid
         out msix$ready
         in s_aw_valid s_aw_addr:64 s_aw_len:8 s_w_valid s_w_data:{w} s_w_strb:{k} s_w_last s_b_ready
         out s_aw_ready s_w_ready s_b_valid s_b_resp:2
         out m_aw_valid m_aw_addr:64 m_aw_len:8 m_w_valid m_w_data:{w} m_w_strb:{k} m_w_last m_b_ready
         in m_aw_ready m_w_ready m_b_valid m_b_resp:2\n"
    );
    table += &lite("tbl_", false, 13);
    module(&format!("ferric_msix_w{w}"), Origin::Gateware, doc, vec![], &table)
}

/// AXI4-Lite of a shell to the core's buses.
pub fn ocl(w: u32) -> Module {
    let doc = "AXI4-Lite slave to registers and doorbells. The shell cuts an 8-byte doorbell into two 4-byte writes: low word then high word of one offset make one doorbell. \
               Work requests in doorbells cannot pass a 32-bit bus: such writes are dropped, and CAPS3 bit 16 reads as 0.";
    let table = format!("in clock reset\n{}{}{}", lite("s_", false, 32), lite("csr_", true, 32), doorbells(true, w));
    module(&format!("ferric_ocl_w{w}"), Origin::Gateware, doc, vec![], &table)
}

/// Interrupt requests as the wires of a shell.
pub fn irq16() -> Module {
    let doc = "Vector v of function 0 pulses `req[v mod 16]` for one cycle; the next pulse of that bit waits for its `ack`.";
    module("ferric_irq16", Origin::Gateware, doc, vec![], "in clock reset msix$data:28 msix$valid ack:16\nout msix$ready req:16")
}

/// Frames to a MAC.
pub fn mac_tx(w: u32) -> Module {
    let doc = "Frames from `clock` to `mac_clock`: asynchronous FIFO with Gray pointers. A frame starts at the MAC when all of it is here (no gap inside), padded to 60 bytes.";
    let table = format!("in clock reset mac_clock mac_reset\n{}{}", stream("s", false, w), stream("m", true, w));
    module(&format!("ferric_mac_tx_w{w}"), Origin::Gateware, doc, vec![], &table)
}

/// Frames from a MAC.
pub fn mac_rx(w: u32) -> Module {
    let doc =
        "Frames from `mac_clock` to `clock`: asynchronous FIFO with Gray pointers. `s$ready` is always high; a frame for which there is no room is dropped whole and pulses `dropped` (in `clock`). \
               `s_err` with the last beat becomes `m_err` with the last beat.";
    let table = format!("in clock reset mac_clock mac_reset s_err\n{}{}out m_err dropped\n", stream("s", false, w), stream("m", true, w));
    module(&format!("ferric_mac_rx_w{w}"), Origin::Gateware, doc, vec![], &table)
}

/// Bring-up of the 100G MAC.
pub fn cmac_link() -> Module {
    let doc = "Start-up order of PG203: receiver on, remote fault sent until lanes are aligned, then transmitter on. Falls back when alignment is lost. `up`: both ways on.";
    module("ferric_cmac_link", Origin::Gateware, doc, vec![], "in clock reset aligned\nout rx_enable tx_enable send_rfi up")
}

/// RGMII transmitter.
pub fn rgmii_tx() -> Module {
    let doc = "Gigabit MAC, sending: preamble, frame, pad to 60 bytes, FCS, gap of 12 bytes. Asynchronous FIFO from `clock` to `mac_clock` (125 MHz). `rise` and `fall`: what the pins carry in either half, bit 4 is TX_CTL.";
    let table = format!("in clock reset mac_clock mac_reset\nout rise:5 fall:5\n{}", stream("s", false, 64));
    module("ferric_rgmii_tx_w64", Origin::Gateware, doc, vec![], &table)
}

/// RGMII receiver.
pub fn rgmii_rx() -> Module {
    let doc = "Gigabit MAC, receiving: preamble, FCS checked and removed, asynchronous FIFO from `mac_clock` (125 MHz of the PHY) to `clock`. `m_err` with the last beat: bad FCS or RX_ER. A frame without room is dropped whole.";
    let table = format!("in clock reset mac_clock mac_reset rise:5 fall:5\n{}out m_err dropped\n", stream("m", true, 64));
    module("ferric_rgmii_rx_w64", Origin::Gateware, doc, vec![], &table)
}

/// The host-less card.
pub fn target() -> Module {
    let doc = "The memory target: the core at W=64 behind on-card RAM instead of a host, ARP, ICMP and its set-up over UDP. `status`: link seen, set up, active, error.";
    let table = format!("in clock reset now:32 rx_err\n{}{}out status:4\n", stream("rx", false, 64), stream("tx", true, 64));
    module("ferric_target_w64", Origin::Gateware, doc, vec![], &table)
}
