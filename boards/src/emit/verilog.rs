//! The top as structural Verilog, stubs of what it instantiates, and the waivers of its lint run.

use super::header;
use crate::netlist::{Dir, Expr, Module, Netlist, Origin, Port};
use crate::Board;
use std::collections::BTreeMap;
use std::fmt::Write;

fn range(port: &Port) -> String {
    if port.vector {
        format!("[{}:0] ", port.width - 1)
    } else {
        String::new()
    }
}

fn declare(port: &Port) -> String {
    let dir = match port.dir {
        Dir::In => "input wire",
        Dir::Out => "output wire",
        Dir::InOut => "inout wire",
    };
    format!("    {dir} {}{}", range(port), port.name)
}

fn expr(e: &Expr) -> String {
    match e {
        Expr::Net(n) => n.clone(),
        Expr::Slice(n, high, low) if high == low => format!("{n}[{high}]"),
        Expr::Slice(n, high, low) => format!("{n}[{high}:{low}]"),
        Expr::Const(width, value) => format!("{width}'h{value:x}"),
        Expr::Concat(parts) => format!("{{{}}}", parts.iter().map(expr).collect::<Vec<_>>().join(", ")),
        Expr::Open => String::new(),
    }
}

/// The top module: declarations, instances and assignments of nets, nothing else.
pub fn top(n: &Netlist) -> String {
    let mut text = header("//");
    let ports = n.ports.iter().map(declare).collect::<Vec<_>>().join(",\n");
    writeln!(text, "`default_nettype none\nmodule {} (\n{ports}\n);\n", n.name).expect("a String takes all");
    // A net has the width of the output that drives it.
    let mut wires = BTreeMap::new();
    for i in &n.instances {
        let Some(module) = n.module(&i.module) else { continue };
        for (name, e) in &i.conns {
            if let (Some(port), Expr::Net(net)) = (module.port(name).filter(|p| p.dir == Dir::Out), e) {
                if !n.ports.iter().any(|p| p.name == *net) {
                    wires.insert(net.clone(), range(port));
                }
            }
        }
    }
    for (net, range) in &wires {
        writeln!(text, "    wire {range}{net};").expect("a String takes all");
    }
    for i in &n.instances {
        let attributes = i.attributes.iter().map(|(k, v)| format!("{k} = \"{v}\"")).collect::<Vec<_>>().join(", ");
        let attributes = if attributes.is_empty() { attributes } else { format!("(* {attributes} *)\n    ") };
        let params = i.params.iter().map(|(k, v)| format!(".{k}({v})")).collect::<Vec<_>>().join(", ");
        let params = if params.is_empty() { params } else { format!("#({params}) ") };
        let conns = i.conns.iter().map(|(p, e)| format!("        .{p}({})", expr(e))).collect::<Vec<_>>().join(",\n");
        writeln!(text, "\n    {attributes}{} {params}{} (\n{conns}\n    );", i.module, i.name).expect("a String takes all");
    }
    text += "\n";
    for (name, e) in &n.assigns {
        writeln!(text, "    assign {name} = {};", expr(e)).expect("a String takes all");
    }
    text + "endmodule\n`default_nettype wire\n"
}

fn stub(m: &Module) -> String {
    let mut text = format!("{}// {}\n(* blackbox *)\nmodule {} ", header("//"), m.doc, m.name);
    if !m.params.is_empty() && m.origin == Origin::Primitive {
        let params = m.params.iter().map(|p| format!("    parameter {} = 0", p.name)).collect::<Vec<_>>().join(",\n");
        write!(text, "#(\n{params}\n) ").expect("a String takes all");
    }
    text + "(\n" + &m.ports.iter().map(declare).collect::<Vec<_>>().join(",\n") + "\n);\nendmodule\n"
}

/// A stub file for each module.
pub fn stubs(n: &Netlist) -> Vec<(String, String)> {
    n.modules.iter().map(|m| (format!("{}_stub.v", m.name), stub(m))).collect()
}

/// Verilator's waiver file: each with its reason.
pub fn waivers(board: &Board) -> String {
    let mut text = format!("`verilator_config\n{}", header("//"));
    for w in &board.waivers {
        let matching = if w.matching.is_empty() { String::new() } else { format!(" -match \"{}\"", w.matching) };
        writeln!(text, "// {}\nlint_off -rule {} -file \"{}\"{matching}", w.reason, w.rule, w.file).expect("a String takes all");
    }
    text
}
