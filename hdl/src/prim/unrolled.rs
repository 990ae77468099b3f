//! A kernel without loops, and with the names of elements as Verilog has them (`a$3`). RustHDL does the same while it writes, and compiles a regular expression for every name with an
//! index: that was half of the time in which a block's text was made.

use rust_hdl::core::ast::*;

/// `block` with every loop as the statements of all its rounds.
pub(super) fn unrolled(block: &VerilogBlock) -> VerilogBlock {
    Rounds::default().block(block)
}

/// Variables of the loops around a statement and their values, the innermost last.
#[derive(Default)]
struct Rounds<'a>(Vec<(&'a str, usize)>);

impl<'a> Rounds<'a> {
    fn block(&mut self, block: &'a VerilogBlock) -> VerilogBlock {
        block.iter().flat_map(|statement| self.statement(statement)).collect()
    }

    fn statement(&mut self, statement: &'a VerilogStatement) -> Vec<VerilogStatement> {
        use VerilogStatement::*;
        vec![match statement {
            Assignment(target, value) => Assignment(self.expression(target), self.expression(value)),
            SliceAssignment { base, width, offset, replacement } => {
                SliceAssignment { base: self.expression(base), width: *width, offset: self.expression(offset), replacement: self.expression(replacement) }
            }
            If(conditional) => If(self.conditional(conditional)),
            Match(choice) => {
                let cases = choice.cases.iter().map(|case| VerilogCase { condition: self.name(&case.condition), block: self.block(&case.block) }).collect();
                Match(VerilogMatch { test: self.expression(&choice.test), cases })
            }
            Loop(all) => {
                let mut statements = Vec::new();
                for round in all.from.as_usize()..all.to.as_usize() {
                    self.0.push((&all.index, round));
                    statements.extend(self.block(&all.block));
                    self.0.pop();
                }
                return statements;
            }
            Comment(text) => Comment(text.clone()),
            Link(links) => Link(links.iter().map(|link| self.link(link)).collect()),
            Macro(block) => Macro(self.block(block)),
        }]
    }

    fn conditional(&mut self, conditional: &'a VerilogConditional) -> VerilogConditional {
        use VerilogBlockOrConditional::*;
        let otherwise = match &conditional.otherwise {
            Block(block) => Block(self.block(block)),
            Conditional(next) => match &**next {
                VerilogStatement::If(next) => Conditional(Box::new(VerilogStatement::If(self.conditional(next)))),
                other => Block(self.statement(other)),
            },
            None => None,
        };
        VerilogConditional { test: self.expression(&conditional.test), then: self.block(&conditional.then), otherwise }
    }

    fn link(&self, link: &VerilogLink) -> VerilogLink {
        let ends = |ends: &VerilogLinkDetails| VerilogLinkDetails { my_name: self.name(&ends.my_name), owner_name: self.name(&ends.owner_name), other_name: self.name(&ends.other_name) };
        match link {
            VerilogLink::Forward(link) => VerilogLink::Forward(ends(link)),
            VerilogLink::Backward(link) => VerilogLink::Backward(ends(link)),
            VerilogLink::Bidirectional(link) => VerilogLink::Bidirectional(ends(link)),
        }
    }

    fn expression(&self, expression: &VerilogExpression) -> VerilogExpression {
        use VerilogExpression::*;
        let of = |expression: &VerilogExpression| Box::new(self.expression(expression));
        match expression {
            Signal(name) => Signal(self.name(name)),
            Literal(value) => Literal(value.clone()),
            Cast(a, bits) => Cast(of(a), *bits),
            Signed(a) => Signed(of(a)),
            Unsigned(a) => Unsigned(of(a)),
            Paren(a) => Paren(of(a)),
            Binary(a, op, b) => Binary(of(a), op.clone(), of(b)),
            Unary(op, a) => Unary(op.clone(), of(a)),
            Index(a, b) => Index(of(a), of(b)),
            Slice(a, width, b) => Slice(of(a), *width, of(b)),
            IndexReplace(a, b, c) => IndexReplace(of(a), of(b), of(c)),
        }
    }

    /// A signal's name without loop variables. RustHDL resolves one index of a name, so this does, too; what it has to calculate is left to it.
    fn name(&self, name: &str) -> String {
        if let Some(value) = self.value(name) {
            return value.to_string();
        }
        let Some((array, (index, rest))) = name.split_once('[').and_then(|(array, rest)| Some((array, rest.split_once(']')?))) else { return name.into() };
        match self.value(index) {
            Some(value) => format!("{array}${value}{rest}"),
            None => format!("{array}[{}]{rest}", self.calculation(index)),
        }
    }

    /// The number that `word` is, or the loop variable of that name.
    fn value(&self, word: &str) -> Option<usize> {
        let number = word.bytes().all(|b| b.is_ascii_digit()).then(|| word.parse().ok()).flatten();
        number.or_else(|| self.0.iter().rev().find(|(variable, _)| *variable == word).map(|(_, value)| *value))
    }

    /// An index with numbers in place of loop variables.
    fn calculation(&self, index: &str) -> String {
        let mut out = String::new();
        let mut rest = index;
        while let Some(first) = rest.chars().next() {
            let in_word = |c: char| c.is_alphanumeric() || c == '_';
            let end = if in_word(first) { rest.find(|c| !in_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
            let (word, behind) = rest.split_at(end);
            match self.value(word) {
                Some(value) => out.push_str(&value.to_string()),
                None => out.push_str(word),
            }
            rest = behind;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_elements_have_their_numbers() {
        let rounds = Rounds(vec![("i", 3), ("j", 10)]);
        for (name, resolved) in
            [("a[i].b", "a$3.b"), ("a[2]", "a$2"), ("a.b.next", "a.b.next"), ("j", "10"), ("a[j + i1]", "a[10 + i1]"), ("a[((i+1))].next", "a[((3+1))].next"), ("a[i][j]", "a$3[j]")]
        {
            assert_eq!(rounds.name(name), resolved);
        }
    }
}
