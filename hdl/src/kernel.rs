//! What the attribute `kernel` of `ferric-hdl-derive` writes calls this: the Verilog of a kernel's text, and the numbers in it that have names.

pub mod text;

pub use ferric_hdl_derive::kernel;
use rust_hdl::core::ast::*;

/// A kernel's Verilog with values in place of marks. In `marks`, a mark that begins with a letter is a signal's name or an element's index in one, any other is an arm of a `match`.
fn with_numbers(verilog: Verilog, marks: &[(&str, u64)]) -> Verilog {
    match verilog {
        Verilog::Combinatorial(mut code) => {
            let numbers = Numbers(marks);
            numbers.block(&mut code);
            Verilog::Combinatorial(code)
        }
        other => other,
    }
}

struct Numbers<'a>(&'a [(&'a str, u64)]);

impl Numbers<'_> {
    fn block(&self, block: &mut VerilogBlock) {
        block.iter_mut().for_each(|statement| self.statement(statement));
    }

    fn statement(&self, statement: &mut VerilogStatement) {
        match statement {
            VerilogStatement::Assignment(target, value) => {
                self.expression(target);
                self.expression(value);
            }
            VerilogStatement::SliceAssignment { base, offset, replacement, .. } => {
                self.expression(base);
                self.expression(offset);
                self.expression(replacement);
            }
            VerilogStatement::If(conditional) => {
                self.expression(&mut conditional.test);
                self.block(&mut conditional.then);
                match &mut conditional.otherwise {
                    VerilogBlockOrConditional::Block(block) => self.block(block),
                    VerilogBlockOrConditional::Conditional(next) => self.statement(next),
                    VerilogBlockOrConditional::None => {}
                }
            }
            VerilogStatement::Match(choice) => {
                self.expression(&mut choice.test);
                for case in &mut choice.cases {
                    if let Some((_, value)) = self.0.iter().find(|(mark, _)| *mark == case.condition) {
                        case.condition = value.to_string();
                    }
                    self.block(&mut case.block);
                }
            }
            VerilogStatement::Loop(all) => self.block(&mut all.block),
            VerilogStatement::Link(links) => {
                for link in links {
                    let (VerilogLink::Forward(ends) | VerilogLink::Backward(ends) | VerilogLink::Bidirectional(ends)) = link;
                    self.elements(&mut ends.owner_name);
                    self.elements(&mut ends.other_name);
                }
            }
            VerilogStatement::Macro(block) => self.block(block),
            VerilogStatement::Comment(_) => {}
        }
    }

    fn expression(&self, expression: &mut VerilogExpression) {
        use VerilogExpression::*;
        match expression {
            Signal(name) => match self.0.iter().find(|(mark, _)| mark == name) {
                Some((_, value)) => *expression = Literal(literal(*value)),
                None => self.elements(name),
            },
            Literal(_) => {}
            Cast(a, _) | Signed(a) | Unsigned(a) | Paren(a) | Unary(_, a) => self.expression(a),
            Binary(a, _, b) | Index(a, b) | Slice(a, _, b) => {
                self.expression(a);
                self.expression(b);
            }
            IndexReplace(a, b, c) => {
                self.expression(a);
                self.expression(b);
                self.expression(c);
            }
        }
    }

    /// Names of elements in the name of a signal.
    fn elements(&self, name: &mut String) {
        for (mark, value) in self.0.iter().filter(|(mark, _)| mark.starts_with(char::is_alphabetic)) {
            if name.contains(mark) {
                *name = name.replace(mark, &value.to_string());
            }
        }
    }
}

/// As wide as RustHDL makes the bare number: 32 bits, or 64 where it had to be written with `_u64`.
fn literal(value: u64) -> VerilogLiteral {
    if i32::try_from(value).is_ok() {
        (value as u32).into()
    } else {
        value.into()
    }
}

#[cfg(test)]
mod tests;
