//! Splits RustHDL's one `always @(*)` block per module into independent ones.
//!
//! RustHDL puts a whole kernel, clock wiring included, into one combinational block. Simulators and analysers see such a block as one
//! node: every output seems to depend on every input, which makes false combinational loops between blocks and derived clocks. Blocking
//! assignments that share no variable can stand in blocks of their own without a change of meaning; that is all this does.

use std::collections::{BTreeMap, BTreeSet};

/// `verilog` with its kernels split. Text that is not a RustHDL kernel passes unchanged.
pub fn split(verilog: &str) -> String {
    let mut out = String::with_capacity(verilog.len() + verilog.len() / 4);
    let mut lines = verilog.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line.trim() != "always @(*) begin" {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}end", &line[..indent]);
        let mut body = Vec::new();
        let mut closed = false;
        for l in lines.by_ref() {
            if l == end {
                closed = true;
                break;
            }
            body.push(l);
        }
        let groups = if closed { group(&body, indent + 4) } else { None };
        let Some(groups) = groups else {
            body.iter().for_each(|l| push(&mut out, l));
            if closed {
                push(&mut out, &end);
            }
            continue;
        };
        for (n, statements) in groups.iter().enumerate() {
            if n > 0 {
                push(&mut out, line);
            }
            statements.iter().flat_map(|s| s.iter()).for_each(|l| push(&mut out, l));
            push(&mut out, &end);
        }
    }
    super::constants::assign(&out)
}

fn push(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// One top-level statement: its lines.
type Statement<'a> = Vec<&'a str>;

/// The statements of a kernel in groups that share no variable out of order; `None` if the text is not laid out as RustHDL does.
fn group<'a>(body: &[&'a str], indent: usize) -> Option<Vec<Vec<Statement<'a>>>> {
    let mut statements: Vec<Statement> = Vec::new();
    for line in body {
        let depth = line.len() - line.trim_start().len();
        let text = line.trim_start();
        let goes_on = depth > indent || ["end", "else", ")"].iter().any(|w| text.starts_with(w)) || text.is_empty();
        if depth < indent && !text.is_empty() {
            return None;
        }
        match statements.last_mut() {
            Some(s) if goes_on => s.push(line),
            None if goes_on => return None,
            _ => statements.push(vec![line]),
        }
    }
    let mut writers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut readers: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (n, statement) in statements.iter().enumerate() {
        for line in statement {
            let (target, rest) = assignment(line.trim_start());
            if let Some(t) = target {
                let w = writers.entry(t).or_default();
                if w.last() != Some(&n) {
                    w.push(n);
                }
            }
            for name in identifiers(rest) {
                readers.entry(name).or_default().insert(n);
            }
        }
    }
    let mut parent: Vec<usize> = (0..statements.len()).collect();
    for (variable, w) in &writers {
        w.windows(2).for_each(|p| join(&mut parent, p[0], p[1]));
        let last = *w.last()?;
        // A reader in front of the last assignment sees an earlier value: it has to stay in the sequence.
        for r in readers.get(variable).into_iter().flatten().filter(|r| **r < last) {
            join(&mut parent, *r, last);
        }
    }
    let mut groups: BTreeMap<usize, Vec<Statement>> = BTreeMap::new();
    for (n, statement) in statements.into_iter().enumerate() {
        groups.entry(root(&mut parent, n)).or_default().push(statement);
    }
    Some(groups.into_values().collect())
}

/// Target of an assignment line, and the part of the line that is read (all of it, when it is none).
pub(super) fn assignment(line: &str) -> (Option<&str>, &str) {
    let name = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).unwrap_or(line.len());
    if name == 0 || line.starts_with(|c: char| c.is_ascii_digit()) {
        return (None, line);
    }
    let mut rest = &line[name..];
    if rest.starts_with('[') {
        match rest.find("] = ") {
            Some(at) => rest = &rest[at + 1..],
            None => return (None, line),
        }
    }
    match rest.strip_prefix(" = ") {
        // The index of a slice is read too; it is constant or in the text of the whole line.
        Some(value) => (Some(&line[..name]), if line[name..].starts_with('[') { &line[name..] } else { value }),
        None => (None, line),
    }
}

pub(super) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).filter(|w| w.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

fn root(parent: &mut [usize], mut n: usize) -> usize {
    while parent[n] != n {
        parent[n] = parent[parent[n]];
        n = parent[n];
    }
    n
}

/// The smaller number becomes the root, so that groups come out in the order of their first statement.
fn join(parent: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(parent, a), root(parent, b));
    parent[a.max(b)] = a.min(b);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_statements_part_and_sequences_stay() {
        let text = "module m(a);\n    always @(*) begin\n        x$clock = clock;\n        y = a;\n        t = b;\n        u = t;\n        t = c;\n        v = t;\n        z = y;\n        if (k) begin\n            y = e;\n        end\n        else begin\n            y[(1)+:(2)] = f;\n        end\n    end\nendmodule\n";
        let blocks: Vec<String> = split(text).split("    always @(*) begin\n").skip(1).map(|b| b.lines().take_while(|l| *l != "    end").map(str::trim).collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(blocks[0], "x$clock = clock;");
        // z reads y before its last assignment, u reads t between two.
        assert_eq!(blocks[1], "y = a; z = y; if (k) begin y = e; end else begin y[(1)+:(2)] = f; end");
        assert_eq!(blocks[2], "t = b; u = t; t = c;");
        assert_eq!(blocks[3], "v = t;");
        assert_eq!(blocks.len(), 4);
    }

    #[test]
    fn other_text_passes() {
        let text = "always @(*) y = x;\nalways @(posedge clock) q <= d;\n";
        assert_eq!(split(text), text);
    }
}
