//! Latches that Verilator does not see: a bit or a field assigned on some paths only, a `case` without default.
//!
//! Verilator decides per variable, so `if (f) x[3:0] = a;` beside a full assignment of the other bits passes it.
//! This is a definite-assignment analysis, bit by bit, of the combinational blocks RustHDL writes (their layout is
//! fixed: one statement a line). Custom text of the leaves is not read.

use std::collections::BTreeMap;
use std::iter::Peekable;

/// A set of bits as sorted, disjoint, half-open ranges.
#[derive(Clone, Debug, Default, PartialEq)]
struct Bits(Vec<(u64, u64)>);

const ALL: (u64, u64) = (0, u64::MAX);

impl Bits {
    fn add(&mut self, (mut low, mut high): (u64, u64)) {
        self.0.retain(|&(l, h)| {
            let apart = h < low || high < l;
            if !apart {
                (low, high) = (low.min(l), high.max(h));
            }
            apart
        });
        self.0.push((low, high));
        self.0.sort_unstable();
    }

    fn and(&self, other: &Bits) -> Bits {
        let mut both = Bits::default();
        for &(a, b) in &self.0 {
            for &(c, d) in &other.0 {
                if a.max(c) < b.min(d) {
                    both.add((a.max(c), b.min(d)));
                }
            }
        }
        both
    }

    fn covers(&self, other: &Bits) -> bool {
        self.and(other) == *other
    }
}

/// What is assigned on every path to a point.
type Assigned<'a> = BTreeMap<&'a str, Bits>;

/// One fault per signal that some path leaves unassigned.
pub(super) fn check(verilog: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut module = "";
    let mut lines = verilog.lines().enumerate().map(|(index, line)| (index + 1, line.trim())).peekable();
    let mut generated = false;
    while let Some((number, line)) = lines.next() {
        if let Some(rest) = line.strip_prefix("module ") {
            module = rest.split('(').next().unwrap_or(rest);
        }
        if line.starts_with("// Update code") {
            generated = line == "// Update code";
        }
        if generated && line == "always @(*) begin" {
            let mut walk = Walk { lines: &mut lines, ever: BTreeMap::new(), faults: Vec::new() };
            let always = walk.block(Assigned::new());
            for (name, (first, bits)) in &walk.ever {
                if !always.get(name).is_some_and(|assigned| assigned.covers(bits)) {
                    walk.faults.push(format!("line {first}: latch: `{name}` is not assigned on every path"));
                }
            }
            faults.extend(walk.faults.into_iter().map(|fault| format!("{fault} (module {module}, line {number})")));
        }
    }
    faults
}

struct Walk<'a, 'b, L: Iterator<Item = (usize, &'a str)>> {
    lines: &'b mut Peekable<L>,
    /// Bits assigned anywhere, and the line of the first assignment.
    ever: BTreeMap<&'a str, (usize, Bits)>,
    faults: Vec<String>,
}

impl<'a, L: Iterator<Item = (usize, &'a str)>> Walk<'a, '_, L> {
    /// The statements up to the matching `end`.
    fn block(&mut self, mut assigned: Assigned<'a>) -> Assigned<'a> {
        while let Some((number, line)) = self.lines.next() {
            if line == "end" {
                break;
            } else if line.starts_with("if (") && line.ends_with("begin") {
                assigned = self.conditional(assigned);
            } else if line.starts_with("case (") {
                assigned = self.case(number, assigned);
            } else if let Some((target, _)) = line.split_once(" = ") {
                let (name, bits) = split_target(target);
                let ever = self.ever.entry(name).or_insert_with(|| (number, Bits::default()));
                // At an offset that is not constant, any bit may be meant and none is sure.
                ever.1.add(bits.unwrap_or(ALL));
                if let Some(bits) = bits {
                    assigned.entry(name).or_default().add(bits);
                }
            } else if !line.is_empty() && !line.starts_with("//") {
                self.faults.push(format!("line {number}: the latch check does not understand: {line}"));
            }
        }
        assigned
    }

    /// After `if (..) begin`.
    fn conditional(&mut self, before: Assigned<'a>) -> Assigned<'a> {
        let then = self.block(before.clone());
        while self.lines.next_if(|(_, line)| line.is_empty()).is_some() {}
        let otherwise = match self.lines.next_if(|(_, line)| line.starts_with("else ")) {
            Some((_, "else begin")) => self.block(before),
            Some(_) => self.conditional(before),
            None => before,
        };
        meet(then, &otherwise)
    }

    /// After `case (..)`: labels stand on lines of their own, `begin` starts a branch.
    fn case(&mut self, number: usize, before: Assigned<'a>) -> Assigned<'a> {
        let mut after: Option<Assigned<'a>> = None;
        let mut default = false;
        while let Some((_, line)) = self.lines.next() {
            default |= line == "default:";
            if line == "endcase" {
                break;
            } else if line == "begin" {
                let branch = self.block(before.clone());
                after = Some(match after {
                    Some(others) => meet(others, &branch),
                    None => branch,
                });
            }
        }
        if !default {
            self.faults.push(format!("line {number}: a case without default: end the match with `_ =>`"));
        }
        after.unwrap_or(before)
    }
}

fn meet<'a>(a: Assigned<'a>, b: &Assigned<'a>) -> Assigned<'a> {
    a.into_iter().filter_map(|(name, bits)| b.get(name).map(|other| (name, bits.and(other)))).collect()
}

/// The signal and its bits; no bits if the offset is not constant.
fn split_target(target: &str) -> (&str, Option<(u64, u64)>) {
    let Some((name, select)) = target.split_once('[') else { return (target, Some(ALL)) };
    (name, constant_select(select))
}

/// `(64'h47)+:(1)]` or `5]`.
pub(super) fn constant_select(select: &str) -> Option<(u64, u64)> {
    let select = select.strip_suffix(']')?;
    let (offset, width) = select.split_once("+:").unwrap_or((select, "1"));
    let low = number(offset)?;
    Some((low, low + number(width)?))
}

/// A literal such as `64'h47`, `4'b10` or `12`, in any number of parentheses.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_start_matches('(').trim_end_matches(')').trim();
    match text.split_once('\'') {
        None => text.parse().ok(),
        Some((_, digits)) => {
            let radix = if digits.starts_with('h') { 16 } else { 2 };
            u64::from_str_radix(digits.get(1..)?, radix).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    fn faults(body: &str) -> String {
        check(&format!("module t(a);\n// Update code\nalways @(*) begin\n{body}\nend\nendmodule\n")).join("\n")
    }

    #[test]
    fn whole_and_partial_assignments_are_told_apart() {
        assert_eq!(faults("x = a;\nif (f) begin\nx[(64'h3)+:(2)] = b;\nend"), "");
        assert_eq!(faults("x[(64'h0)+:(3)] = a;\nx[(64'h3)+:(2)] = b;"), "");
        assert_eq!(faults("if (f) begin\nx = a;\nend\nelse if (g) begin\nx = b;\nend\nelse begin\nx = c;\nend"), "");
        let missing = faults("x[(64'h0)+:(3)] = a;\nif (f) begin\nx[(64'h3)+:(2)] = b;\nend");
        assert!(missing.contains("line 4: latch: `x`"), "{missing}");
        assert!(faults("if (f) begin\nx = a;\nend\nelse if (g) begin\nx = b;\nend").contains("latch: `x`"));
        assert!(faults("x[(i)+:(8)] = a;").contains("latch: `x`"));
        assert_eq!(faults("x = a;\nx[(i)+:(8)] = a;"), "");
    }

    #[test]
    fn a_case_needs_its_default() {
        let branches = "1'b0:\nbegin\nx = a;\nend\n";
        assert!(faults(&format!("x = b;\ncase (f)\n{branches}endcase")).contains("without default"));
        assert_eq!(faults(&format!("case (f)\n{branches}default:\nbegin\nx = b;\nend\nendcase")), "");
        assert!(faults(&format!("case (f)\n{branches}default:\nbegin\nend\nendcase")).contains("latch: `x`"));
    }
}
