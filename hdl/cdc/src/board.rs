//! The ECPIX-5's top as a whole: how its modules are wired to each other, to the pins and to the clocks.
//!
//! The PLL is left out, its outputs become inputs: its clocks are clocks, its `LOCK` belongs to none. The DDR registers and the delay
//! are written here as what they are, seen from their clock. The memory target has one clock, hence stands as one register of it.

use ferric_boards::blocks::lattice;
use ferric_boards::netlist::{Dir, Expr, Instance, Module, Port};
use ferric_boards::{boards, emit, Board};
use std::fmt::Write;

/// Its name in the list of crossings.
pub const NAME: &str = "ferric_ecpix5";

/// The clocks of its pins, and of what the PLL gives. The PHY's pins come and go with a clock of their own.
pub const CLOCKS: &[(&str, &str)] =
    &[("eth_rx_", "eth_rx_clk"), ("eth_tx_", "clk125"), ("led_g", "clk_core"), ("led_", "-"), ("eth_rst_n", "-"), ("eth_mdc", "-"), ("rst_n", "-"), ("locked", "-"), ("clk100", "-")];

/// Lattice's cells seen from their clock; both edges are one.
const CELLS: &str = "
module IDDRX1F(input D, input SCLK, input RST, output reg Q0, output reg Q1);
  always @(posedge SCLK or posedge RST) if (RST) {Q0, Q1} <= 2'b0; else {Q0, Q1} <= {D, D};
endmodule
module ODDRX1F(input D0, input D1, input SCLK, input RST, output reg Q);
  always @(posedge SCLK or posedge RST) if (RST) Q <= 1'b0; else Q <= D0 ^ D1;
endmodule
module DELAYG #(parameter DEL_MODE = \"\", parameter DEL_VALUE = 0) (input A, output Z);
  assign Z = A;
endmodule
";

/// Cells that [`CELLS`] has.
const KNOWN: [&str; 3] = ["IDDRX1F", "ODDRX1F", "DELAYG"];

/// The top and what stands in it besides the gateware that is looked at itself. Errors: a vendor's cell of which nothing is known here.
pub fn top() -> Result<String, String> {
    verilog(&[boards::find("ecpix5").ok_or("no board is called ecpix5")?])
}

/// The same for descriptions that differ in wiring only.
pub fn verilog(boards: &[Board]) -> Result<String, String> {
    let mut text = String::from(CELLS);
    let (pll, target) = (lattice::ehxplll().name, ferric_hdl::tops::find("ferric_target_w64").ok_or("no memory target")?.name);
    for module in boards.first().iter().flat_map(|b| &b.top.modules) {
        if module.name == target {
            text += &register(module);
        } else if module.name != pll && !KNOWN.contains(&module.name.as_str()) && ferric_hdl::board::tops::find(&module.name).is_none() {
            return Err(format!("nothing is known of the clocks of a {}", module.name));
        }
    }
    boards.iter().try_fold(text, |text, board| Ok(text + &wiring(board.clone(), &pll)?))
}

/// The top's text with the PLL's outputs as inputs.
fn wiring(mut board: Board, pll: &str) -> Result<String, String> {
    let (plls, rest): (Vec<Instance>, Vec<Instance>) = board.top.instances.drain(..).partition(|i| i.module == pll);
    board.top.instances = rest;
    let outputs = ["CLKOP", "CLKOS", "CLKOS2", "CLKOS3", "LOCK"];
    for (_, to) in plls.iter().flat_map(|i| &i.conns).filter(|(port, _)| outputs.contains(&port.as_str())) {
        if let Expr::Net(name) = to {
            board.top.ports.push(Port { name: name.clone(), dir: Dir::In, width: 1, vector: false });
        }
    }
    emit::files(&board).into_iter().find(|(name, _)| name == "top.v").map(|f| f.1).ok_or("no top.v".into())
}

/// A module of one clock as one register: every output depends on every input, a cycle later.
fn register(module: &Module) -> String {
    let range = |p: &Port| if p.vector { format!("[{}:0] ", p.width - 1) } else { String::new() };
    let dir = |p: &Port| if p.dir == Dir::In { "input" } else { "output" };
    let ports: Vec<String> = module.ports.iter().map(|p| format!("{} {}{}", dir(p), range(p), p.name)).collect();
    let inputs: Vec<&str> = module.ports.iter().filter(|p| p.dir == Dir::In && p.name != "clock").map(|p| p.name.as_str()).collect();
    let mut text = format!("module {}({});\nreg state;\nalways @(posedge clock) state <= ^{{state, {}}};\n", module.name, ports.join(", "), inputs.join(", "));
    for p in module.ports.iter().filter(|p| p.dir == Dir::Out) {
        writeln!(text, "assign {} = {{{}{{state}}}};", p.name, p.width).expect("a String takes all");
    }
    text + "endmodule\n"
}
