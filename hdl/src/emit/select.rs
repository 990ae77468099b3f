//! Selects of selects, which RustHDL writes for a part of a field (`x.val().field.get_bits::<4>(3)`): no Verilog, though Verilator takes it as
//! meant. yosys takes the bits counted from the start of the whole, without a word. They become one select.

/// `text` with every `x[(a)+:(w)][(b)+:(v)]` as `x[(a + b)+:(v)]` and every `x[(a)+:(w)][b]` as `x[(a + b)+:(1)]`.
pub(super) fn fold(text: &str) -> String {
    text.lines().map(|line| fold_line(line) + "\n").collect()
}

fn fold_line(line: &str) -> String {
    let mut line = line.to_string();
    // From the right: of three selects the last two become one, which is then joined with the first.
    while let Some(joined) = join_last(&line) {
        line = joined;
    }
    line
}

/// The last two adjoining selects of a line as one, if there are any.
fn join_last(line: &str) -> Option<String> {
    let border = line.rfind(")][")?;
    let first = line[..border].rfind("[(")?;
    let (start, _width) = line[first + 2..border].split_once(")+:(")?;
    let (inner, rest) = line[border + 3..].split_at(closing(&line[border + 3..])?);
    let (index, width) = match inner.strip_prefix('(').and_then(|s| s.strip_suffix(')')).and_then(|s| s.split_once(")+:(")) {
        Some((index, width)) => (index, width),
        None => (inner, "1"),
    };
    Some(format!("{}[({})+:({width}){rest}", &line[..first], sum(start, index)))
}

/// Where the bracket that is open at the start of `text` closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' if depth == 0 => return Some(at),
            ']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A literal if both are, else their sum, which is as wide as the start.
fn sum(start: &str, index: &str) -> String {
    let literal = |s: &str| u64::from_str_radix(s.split_once("'h")?.1, 16).ok();
    match (literal(start), literal(index)) {
        (Some(a), Some(b)) => format!("64'h{:x}", a + b),
        _ => format!("{start} + ({index})"),
    }
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn two_selects_become_one() {
        for (twice, once) in [
            ("w = little[(64'h5b)+:(512)][(32'h40)+:(64)];", "w = little[(64'h9b)+:(64)];"),
            ("if (a[(64'h20)+:(4)][32'h1] | ~b$q[(64'h0)+:(32)][32'h0]) begin", "if (a[(64'h21)+:(1)] | ~b$q[(64'h0)+:(1)]) begin"),
            ("x = a[(64'h8)+:(8)][n[(64'h0)+:(3)]];", "x = a[(64'h8 + (n[(64'h0)+:(3)]))+:(1)];"),
            ("x = a[(64'h10)+:(32)][(64'h8)+:(16)][(32'h2)+:(3)];", "x = a[(64'h1a)+:(3)];"),
            ("x = ((a[(64'h24)+:(32)][(32'h0)+:(9)]) & 15'h7fff) + b[(64'h1)+:(2)];", "x = ((a[(64'h24)+:(9)]) & 15'h7fff) + b[(64'h1)+:(2)];"),
            ("x = cells[address][(64'h1)+:(2)] + y[3:0];", "x = cells[address][(64'h1)+:(2)] + y[3:0];"),
        ] {
            assert_eq!(fold(twice), format!("{once}\n"));
        }
    }
}
