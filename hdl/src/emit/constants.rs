//! Constants leave `always @(*)`. Such a block waits for a change of what it reads (IEEE 1364-2005, 9.7.5); one that reads no variable waits for ever.
//! Verilator 5.48 does that, 5.006 and yosys take the constant as meant. `assign` says the same to all of them.

use super::split::{assignment, identifiers};
use std::collections::BTreeSet;

/// `verilog` with every block that assigns constants to whole variables, and does nothing else, as `assign` to wires.
pub(super) fn assign(verilog: &str) -> String {
    let mut out = String::with_capacity(verilog.len());
    let mut module: Vec<&str> = Vec::new();
    for line in verilog.lines() {
        module.push(line);
        if line.trim_start().starts_with("endmodule") {
            write(&module, &mut out);
            module.clear();
        }
    }
    write(&module, &mut out);
    out
}

fn write(module: &[&str], out: &mut String) {
    let parameters: BTreeSet<&str> = module.iter().filter_map(|l| l.trim_start().strip_prefix("localparam")).filter_map(|l| l.split(" = ").next()?.split_whitespace().last()).collect();
    let mut wires = BTreeSet::new();
    let mut lines: Vec<String> = Vec::with_capacity(module.len());
    let mut at = 0;
    while let Some(line) = module.get(at) {
        let (targets, next) = constants(&module[at..], &parameters);
        if targets.is_empty() {
            lines.push((*line).into());
            at += 1;
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        lines.extend(targets.iter().map(|(_, statement)| format!("{indent}assign {statement}")));
        wires.extend(targets.iter().map(|(name, _)| *name));
        at += next;
    }
    for line in lines {
        let declared = line.trim_start().trim_start_matches("output ").strip_prefix("reg ").and_then(|l| l.split_whitespace().last()).is_some_and(|name| wires.contains(name.trim_end_matches(';')));
        out.push_str(&if declared { line.replacen("reg ", "wire ", 1) } else { line });
        out.push('\n');
    }
}

/// The names and statements of the block that `lines` begin with, if it is one of constants, and its number of lines.
fn constants<'a>(lines: &[&'a str], parameters: &BTreeSet<&str>) -> (Vec<(&'a str, &'a str)>, usize) {
    let (first, nothing) = (lines[0], (Vec::new(), 0));
    let Some(one) = first.trim_start().strip_prefix("always @(*) ") else { return nothing };
    let (body, count) = if one == "begin" {
        let end = lines.iter().position(|l| l.trim() == "end" && l.len() - l.trim_start().len() == first.len() - first.trim_start().len());
        let Some(end) = end else { return nothing };
        (&lines[1..end], end + 1)
    } else {
        (&lines[..1], 1)
    };
    let mut targets = Vec::new();
    for line in body {
        let statement = line.trim_start().trim_start_matches("always @(*) ");
        let (Some(name), value) = assignment(statement) else { return nothing };
        let whole = statement[name.len()..].starts_with(" = ") && statement.ends_with(';') && targets.iter().all(|(other, _)| *other != name);
        if !whole || reads(value, parameters) {
            return nothing;
        }
        targets.push((name, statement));
    }
    (targets, count)
}

/// Does an expression read a variable? Literals (`4'hf`) and parameters are none.
fn reads(expression: &str, parameters: &BTreeSet<&str>) -> bool {
    let begin = expression.as_ptr() as usize;
    identifiers(expression).any(|word| {
        let at = word.as_ptr() as usize - begin;
        !expression[..at].ends_with('\'') && !parameters.contains(word)
    })
}

#[cfg(test)]
mod tests {
    use super::assign;

    #[test]
    fn constants_are_assigned() {
        let text = "module m(a,y);\n    input wire  a;\n    output reg  y;\n    localparam  width = 8'h8;\n    reg  [3:0] b$x;\n    reg  c;\n    reg  w;\n    always @(*) begin\n        b$x = ((32'h1) & 4'hf);\n        w = width;\n    end\n    always @(*) y = 1'b1;\n    always @(*) begin\n        c = a;\n    end\nendmodule // m\nmodule n(y);\n    output reg  y;\n    always @(*) y = x;\nendmodule\n";
        let want = "module m(a,y);\n    input wire  a;\n    output wire  y;\n    localparam  width = 8'h8;\n    wire  [3:0] b$x;\n    reg  c;\n    wire  w;\n    assign b$x = ((32'h1) & 4'hf);\n    assign w = width;\n    assign y = 1'b1;\n    always @(*) begin\n        c = a;\n    end\nendmodule // m\nmodule n(y);\n    output reg  y;\n    always @(*) y = x;\nendmodule\n";
        assert_eq!(assign(text), want);
    }

    #[test]
    fn what_is_written_twice_or_in_parts_stays() {
        for body in ["y = 1'b0;\n        y = 1'b1;", "y = 4'h0;\n        y[(64'h1)+:(2)] = 2'h3;", "if (1'b1) begin\n            y = 1'b0;\n        end"] {
            let text = format!("module m(y);\n    output reg  [3:0] y;\n    always @(*) begin\n        {body}\n    end\nendmodule\n");
            assert_eq!(assign(&text), text);
        }
    }
}
