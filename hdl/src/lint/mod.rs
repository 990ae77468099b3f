//! The gate every emitted top passes: Verilator's lint, read for the traps that matter.
//!
//! RustHDL computes with exact widths where Verilog extends operands to the widest in the expression, so a
//! few harmless-looking kernels mean something else once emitted: `a & b == 1`, a sum compared or sliced
//! before it was cut to width, `!a` widened. All of them show as Verilator width warnings. Latches, signals
//! without a driver or with two, and names nobody declared are refused as well. The submodule `latch` finds those
//! latches that Verilator overlooks.

mod latch;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use verilator_sys::{cache_dir, content_hash, shared, verilator};

/// Counts as part of the cached verdict's key: raise it with any change of the rules.
pub const RULES: &str = "6";

/// Warnings refused wherever they appear.
const REFUSED: [&str; 10] = ["ALWNEVER", "LATCH", "UNDRIVEN", "MULTIDRIVEN", "IMPLICIT", "PINMISSING", "SELRANGE", "CASEINCOMPLETE", "COMBDLY", "BLKANDNBLK"];

/// Checks the Verilog of the top `name`. A pass is remembered by content, so asking again costs nothing.
///
/// Faults come back one per string, each with the line it is about, of a text in which modules that are the same stand once ([`shared`]).
pub fn check(name: &str, verilog: &str) -> Result<(), Vec<String>> {
    let tool = verilator().map_err(|e| vec![e.to_string()])?;
    let verilog = &shared(verilog, name);
    let (dir, key) = place(name, verilog, &tool.version);
    if dir.join(format!("{key}.ok")).is_file() {
        return Ok(());
    }
    let io = |e: std::io::Error| vec![format!("{}: {e}", dir.display())];
    fs::create_dir_all(&dir).map_err(io)?;
    // Concurrent checks of the same text write the same bytes; the process id keeps them from meeting half way.
    let source = dir.join(format!("{key}.{}.{:?}.v", std::process::id(), std::thread::current().id()));
    fs::write(&source, verilog).map_err(io)?;
    let mut command = Command::new(&tool.program);
    // Without inlining Verilator checks a module once, and not in each place where it stands.
    command.args(["--lint-only", "-fno-inline", "-Wno-context", "-Wall", "-Wno-fatal", "--default-language", "1364-2005", "--top-module", name]);
    let output = command.arg(&source).output().map_err(io)?;
    fs::remove_file(&source).map_err(io)?;

    let messages = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return verdict(name, verilog, &messages);
    }
    let faults = faults(verilog, &messages);
    Err(if faults.is_empty() { vec![messages.into_owned()] } else { faults })
}

/// All that is wrong with a text of which Verilator, with `-Wall`, has said `messages`.
fn faults(verilog: &str, messages: &str) -> Vec<String> {
    let mut faults = judge(verilog, messages);
    faults.extend(selects(verilog));
    faults.extend(latch::check(verilog));
    faults
}

/// The same, and remembers a pass.
fn verdict(name: &str, verilog: &str, messages: &str) -> Result<(), Vec<String>> {
    let faults = faults(verilog, messages);
    if !faults.is_empty() {
        return Err(faults);
    }
    let (dir, key) = place(name, verilog, &verilator().map_err(|e| vec![e.to_string()])?.version);
    let passed = dir.join(format!("{key}.ok"));
    fs::create_dir_all(&dir).and_then(|()| fs::write(&passed, "")).map_err(|e| vec![format!("{}: {e}", passed.display())])
}

/// The gate for whoever has a model built anyway (`verilator_sys::Builder::judge`): Verilator reads the text once for both.
pub fn gate(name: &str, verilog: &str, messages: &str) -> Result<(), String> {
    verdict(name, verilog, messages).map_err(|faults| faults.join("\n"))
}

/// Folder and name of what is remembered of a text.
fn place(name: &str, verilog: &str, version: &str) -> (PathBuf, String) {
    (cache_dir().join("lint"), content_hash(&[verilog, name, version, RULES]))
}

/// Selects of part selects: Verilator takes them as meant, yosys takes other bits (`emit::select`).
fn selects(verilog: &str) -> Vec<String> {
    let lines = verilog.lines().enumerate().filter(|(_, line)| line.contains(")]["));
    lines.map(|(n, line)| format!("line {}: {}   <- select of a select", n + 1, line.trim())).collect()
}

/// Sorts Verilator's messages about `verilog` into faults; the rest is let through.
fn judge(verilog: &str, messages: &str) -> Vec<String> {
    let lines: Vec<&str> = verilog.lines().collect();
    let mut faults = BTreeSet::new();
    for message in messages.lines() {
        let Some((kind, number, text)) = split(message) else { continue };
        let line = number.checked_sub(1).and_then(|n| lines.get(n)).map_or("", |line| line.trim());
        let refused = match kind {
            "error" => true,
            _ if kind.starts_with("WIDTH") => width_fault(line, text),
            _ => REFUSED.contains(&kind),
        };
        if refused {
            let line: String = line.chars().take(120).collect();
            faults.insert((number, format!("line {number}: {line}   <- {kind}: {text}")));
        }
    }
    faults.into_iter().map(|(_, fault)| fault).collect()
}

/// `%Warning-KIND: file:line:column: text` or `%Error: file:line:column: text`.
fn split(message: &str) -> Option<(&str, usize, &str)> {
    let (head, rest) = message.strip_prefix('%')?.split_once(": ")?;
    let kind = head.strip_prefix("Warning-").or_else(|| head.starts_with("Error").then_some("error"))?;
    let (place, text) = match rest.split_once(": ") {
        Some((place, text)) if place.contains(".v:") => (place, text),
        // An error without a place says how many there were.
        _ => return None,
    };
    let number = place.rsplit(':').nth(1)?.parse().ok()?;
    Some((kind, number, text))
}

/// Whether a width warning can change the result.
fn width_fault(line: &str, text: &str) -> bool {
    let Some(operator) = text.split("Operator ").nth(1).and_then(|rest| rest.split_once(" expects")) else {
        return false;
    };
    match operator.0 {
        // `x = y + 32'h1;` is cut to width by the assignment itself.
        "ADD" | "SUB" => !is_plain_count(line),
        "MUL" | "NOT" | "NEGATE" | "SHIFTL" | "SHIFTR" => true,
        // `a & (b == 1)`: the missing parentheses of `(a & b) == 1`.
        "AND" | "OR" | "XOR" => ["EQ", "NEQ", "LT", "LTE", "GT", "GTE"].iter().any(|comparison| operator.1.contains(&format!("'s {comparison} generates 1 bits"))),
        _ => false,
    }
}

/// A statement `target = a + b - 32'h1;` of nothing but sums of names, constant slices and literals: arithmetic modulo
/// the target's width, whatever the width it is done in.
fn is_plain_count(line: &str) -> bool {
    let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
    let Some((target, ["=", sum @ ..])) = words.split_first() else { return false };
    let plain = |word: &str| {
        let (name, select) = word.split_once('[').unwrap_or((word, ""));
        let simple = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "_$'".contains(c));
        simple(name) && (select.is_empty() || latch::constant_select(select).is_some())
    };
    let operand = |(index, word): (usize, &&str)| if index % 2 == 0 { plain(word) } else { ["+", "-"].contains(word) };
    plain(target) && sum.len() % 2 == 1 && sum.iter().enumerate().all(operand)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::emit;
    use rust_hdl::prelude::*;

    /// One kernel per trap, all on the same ports.
    macro_rules! traps {
        ($($name:ident, $good:expr, ($($kernel:tt)*))*) => {$(
            #[derive(LogicBlock, Default)]
            #[allow(non_camel_case_types)]
            struct $name {
                a: Signal<In, Bits<8>>,
                b: Signal<In, Bits<8>>,
                f: Signal<In, Bit>,
                y: Signal<Out, Bits<8>>,
                w: Signal<Out, Bits<16>>,
                z: Signal<Out, Bit>,
                t: Signal<Local, Bits<8>>,
            }
            impl Logic for $name {
                $($kernel)*
            }
        )*
            fn verdicts() -> Vec<(&'static str, bool, Result<(), Vec<String>>)> {
                vec![$((stringify!($name), $good, {
                    let name = stringify!($name);
                    match emit(name, $name::default()) {
                        Ok(verilog) => check(name, &verilog),
                        Err(error) => Err(error.faults),
                    }
                })),*]
            }
        };
    }

    traps! {
        clean, true, (#[hdl_gen] fn update(&mut self) {
            self.t.next = self.a.val() + self.b.val();
            self.z.next = self.t.val() == 5;
            self.y.next = self.t.val() + 1;
            self.w.next = bit_cast::<16, 8>(self.t.val());
        })
        unparenthesised, false, (#[hdl_gen] fn update(&mut self) {
            self.t.next = self.a.val();
            self.z.next = self.f.val() & (self.t.val() & self.b.val() == 1);
            self.y.next = self.t.val();
            self.w.next = bit_cast::<16, 8>(self.b.val());
        })
        sum_compared, false, (#[hdl_gen] fn update(&mut self) {
            self.t.next = self.a.val();
            self.z.next = self.f.val() & ((self.t.val() + self.b.val()) == 5);
            self.y.next = self.t.val();
            self.w.next = bit_cast::<16, 8>(self.b.val());
        })
        difference_compared, false, (#[hdl_gen] fn update(&mut self) {
            self.t.next = self.a.val();
            self.z.next = self.f.val() & ((self.t.val() - self.b.val()) < 16);
            self.y.next = self.t.val();
            self.w.next = bit_cast::<16, 8>(self.b.val());
        })
        carry_leaks, false, (#[hdl_gen] fn update(&mut self) {
            self.t.next = self.a.val();
            self.z.next = self.f.val();
            self.y.next = self.t.val();
            self.w.next = bit_cast::<16, 8>(self.a.val() + self.b.val());
        })
        not_widened, false, (#[hdl_gen] fn update(&mut self) {
            self.t.next = self.a.val();
            self.z.next = self.f.val();
            self.y.next = self.t.val() ^ self.b.val();
            self.w.next = bit_cast::<16, 8>(!self.a.val());
        })
        latch, false, (#[hdl_gen] fn update(&mut self) {
            self.t.next = self.a.val();
            self.z.next = self.f.val();
            if self.f.val() {
                self.y.next = self.t.val();
            }
            self.w.next = bit_cast::<16, 8>(self.b.val());
        })
        match_all, true, (#[hdl_gen] fn update(&mut self) {
            self.t.next = self.a.val();
            self.z.next = self.f.val();
            match self.t.val().index() {
                0 => {
                    self.y.next = self.a.val() - 2 + self.b.val();
                }
                1 => {
                    self.y.next = self.b.val();
                }
                _ => {
                    self.y.next = 5.into();
                }
            }
            self.w.next = bit_cast::<16, 8>(self.b.val());
        })
        open_output, false, (#[hdl_gen] fn update(&mut self) {
            self.t.next = self.a.val() ^ self.b.val();
            self.z.next = self.f.val();
            self.y.next = self.t.val();
        })
    }

    #[test]
    fn every_trap_is_caught_and_clean_code_passes() {
        for (name, good, verdict) in verdicts() {
            println!("{name}: {verdict:?}");
            assert_eq!(verdict.is_ok(), good, "{name}: {verdict:?}");
        }
    }

    #[test]
    fn structural_faults_in_text_are_caught() {
        let faults = |body: &str| {
            let text = format!("module t(input wire a, input wire b, output wire y);\n{body}\nendmodule\n");
            check("t", &text).err().unwrap_or_default().join("\n")
        };
        assert_eq!(faults("assign y = a ^ b;"), "");
        assert!(faults("reg r;\nalways @(*) r = a;\nalways @(*) r = b;\nassign y = r;").contains("MULTIDRIVEN"));
        assert!(faults("wire n;\nassign y = a ^ b ^ n;").contains("UNDRIVEN"));
        assert!(faults("reg r;\nalways @(*) if (a) r = b;\nassign y = r;").contains("LATCH"));
        assert!(faults("assign y = a ^ nobody;").contains("nobody"));
        assert!(faults("wire [7:0] w = {8{a}};\nassign y = w[(64'h1)+:(4)][(32'h1)+:(1)] ^ b;").contains("select of a select"));
    }
}
