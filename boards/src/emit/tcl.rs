//! Vivado batch scripts.

use super::header;
use crate::netlist::{Dir, Origin};
use crate::Board;
use std::fmt::Write;

/// Verilog modules of ours that a top reads from `target/verilog/`.
fn gateware(board: &Board) -> String {
    board.top.modules.iter().filter(|m| m.origin == Origin::Gateware).map(|m| m.name.as_str()).collect::<Vec<_>>().join(" ")
}

/// Compares an IP's instantiation template with the description: names, directions, widths; and no input that we do not know.
const CHECK_PORTS: &str = r#"# The description of an IP's ports (boards/src/blocks) against what this Vivado generates; a difference ends the build.
proc check_ports {ip described} {
    set template [lindex [get_files -of_objects [get_ips $ip] *.veo] 0]
    if {$template eq ""} { error "$ip: no instantiation template was generated" }
    set file [open $template]
    set text [read $file]
    close $file
    set real [dict create]
    foreach {all port dir high} [regexp -all -inline {\.(\w+)\s*\([^)]*\),?\s*// (input|output|inout) wire (?:\[(\d+) : 0\] )?\w+} $text] {
        dict set real $port [list $dir [expr {$high eq "" ? 1 : $high + 1}]]
    }
    set wrong {}
    foreach {port dir width} $described {
        if {![dict exists $real $port]} {
            lappend wrong "$port: not in the IP"
        } elseif {[dict get $real $port] ne [list $dir $width]} {
            lappend wrong "$port: described as $dir $width, the IP has [dict get $real $port]"
        }
    }
    set known [dict create]
    foreach {port dir width} $described { dict set known $port 1 }
    dict for {port what} $real {
        if {[lindex $what 0] eq "input" && ![dict exists $known $port]} { lappend wrong "$port: an input that the description lacks" }
    }
    if {[llength $wrong]} { error "$ip differs from boards/src/blocks:\n  [join $wrong "\n  "]" }
}
"#;

/// From Verilog to `.bit` and `.mcs`.
pub fn build(board: &Board) -> String {
    let mut text = header("#");
    text += "# vivado -mode batch -source constraints/BOARD/build.tcl -tclargs ROOT OUT   (./scripts/bitstream does it)\n";
    text += "lassign $argv root out\nfile mkdir $out\n";
    text += &format!("set here $root/constraints/{}\n", board.key);
    text += &format!("set part {}\n", board.part);
    text += "proc step {what} { puts \"ferric: [clock format [clock seconds] -format %H:%M:%S] $what\"; flush stdout }\n\n";
    text += CHECK_PORTS;
    text += "\nstep \"project, in memory\"\ncreate_project -in_memory -part $part\nset_property target_language Verilog [current_project]\nset_property XPM_LIBRARIES {XPM_CDC XPM_MEMORY} [current_project]\n";
    for ip in &board.ips {
        writeln!(text, "\nstep \"IP {0}\"\ncreate_ip -name {1} -vendor xilinx.com -library ip -module_name {0} -dir $out", ip.module, ip.catalogue).expect("a String takes all");
        text += "set_property -dict [list \\\n";
        for (key, value) in &ip.properties {
            writeln!(text, "    CONFIG.{key} {{{value}}} \\").expect("a String takes all");
        }
        writeln!(text, "] [get_ips {0}]\ngenerate_target all [get_ips {0}]\ncheck_ports {0} {{", ip.module).expect("a String takes all");
        for port in board.top.module(&ip.module).map(|m| m.ports.as_slice()).unwrap_or_default() {
            let dir = match port.dir {
                Dir::In => "input",
                Dir::Out => "output",
                Dir::InOut => "inout",
            };
            writeln!(text, "    {} {dir} {}", port.name, port.width).expect("a String takes all");
        }
        writeln!(text, "}}\nsynth_ip [get_ips {}]", ip.module).expect("a String takes all");
    }
    text += "\nstep \"reading Verilog\"\n";
    writeln!(text, "foreach module {{{}}} {{ read_verilog $root/target/verilog/$module.v }}", gateware(board)).expect("a String takes all");
    text += "read_verilog $here/top.v\nread_xdc $here/pins.xdc\nread_xdc -unmanaged $here/timing.xdc\n";
    writeln!(text, "\nstep synthesis\nsynth_design -top {} -part $part -flatten_hierarchy rebuilt", board.top.name).expect("a String takes all");
    text += "write_checkpoint -force $out/synth.dcp\nreport_utilization -hierarchical -file $out/synth_utilization.rpt\n";
    text += "\nstep optimisation\nopt_design\nstep placement\nplace_design -directive ExtraTimingOpt\nphys_opt_design -directive AggressiveExplore\nstep routing\nroute_design -directive AggressiveExplore\nphys_opt_design\n";
    text += "write_checkpoint -force $out/routed.dcp\n";
    for (command, file) in [
        ("report_timing_summary", "timing"),
        ("report_utilization -hierarchical", "utilization"),
        ("report_cdc -details", "cdc"),
        ("report_methodology", "methodology"),
        ("report_drc", "drc"),
        ("report_power", "power"),
    ] {
        writeln!(text, "{command} -file $out/{file}.rpt").expect("a String takes all");
    }
    text += "
set slack [get_property SLACK [get_timing_paths -delay_type max]]
set hold [get_property SLACK [get_timing_paths -delay_type min]]
puts \"ferric: worst slack $slack ns, hold $hold ns\"
if {$slack < 0 || $hold < 0} { error \"timing is not met: $out/timing.rpt; no bitstream is written\" }

step bitstream
";
    writeln!(text, "write_bitstream -force $out/{}.bit", board.top.name).expect("a String takes all");
    writeln!(text, "# Above the golden image, which ends below {:#010x}.", board.image.user).expect("a String takes all");
    let (mib, user, name) = (board.image.flash >> 20, board.image.user, &board.top.name);
    writeln!(text, "write_cfgmem -force -format mcs -size {mib} -interface SPIx4 -loadbit [list up {user:#010x} $out/{name}.bit] -file $out/{name}.mcs\nstep done").expect("a String takes all");
    text
}

/// Synthesis of the custom logic inside Amazon's HDK, which places, routes and packs.
pub fn hdk(board: &Board) -> String {
    let mut text = header("#");
    text += "# Sourced by the HDK's build_all.tcl, which sets the variables used here. FERRIC_ROOT: this repository.\n";
    text += "source ${HDK_SHELL_DIR}/build/scripts/synth_cl_header.tcl\nset root $::env(FERRIC_ROOT)\n";
    writeln!(text, "foreach module {{{}}} {{ read_verilog $root/target/verilog/$module.v }}", gateware(board)).expect("a String takes all");
    writeln!(text, "read_verilog $root/constraints/{}/top.v\nread_xdc ${{constraints_dir}}/cl_timing_user.xdc", board.key).expect("a String takes all");
    text += "set_property PROCESSING_ORDER LATE [get_files cl_timing_user.xdc]\nupdate_compile_order -fileset sources_1\n";
    text += "synth_design -mode out_of_context -top ${CL} -verilog_define XSDB_SLV_DIS -part ${DEVICE_TYPE} -keep_equivalent_registers\n";
    text + "source ${HDK_SHELL_DIR}/build/scripts/synth_cl_footer.tcl\n"
}
