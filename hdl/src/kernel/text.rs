//! The syntax tree of a kernel from its text: words in prefix notation, as `ferric-hdl-derive` writes them.
//!
//! | statement | is |
//! |---|---|
//! | `= TARGET VALUE` | an assignment |
//! | `part TARGET w o VALUE` | an assignment to a field of a record: numbers `w` and `o` are its width and offset |
//! | `if TEST BLOCK` and `end`, a block or `if` | a conditional |
//! | `match VALUE`, `PATTERN BLOCK` for each arm, `end` | a choice |
//! | `for INDEX a b BLOCK` | a loop, between two numbers |
//! | `join`, `macro BLOCK` | the next join of interfaces; what a macro stands for |
//!
//! A block is `{`, statements, `}`. An expression is `$SIGNAL`, `'WIDTH:VALUE`, or a word and its operands; where one of them is a number (a cast's width, a slice's, a field's width and offset), its place in the
//! list of numbers stands there.
use super::with_numbers;
use rust_hdl::core::ast::*;
use std::str::Split;

/// The Verilog of a kernel: its text, the numbers that the text names by their place, what its joins stand for in their order, and the values in place of marks.
///
/// # Panics
/// A text that `ferric-hdl-derive` did not write.
pub fn verilog(text: &str, numbers: &[u64], links: Vec<Vec<VerilogLink>>, marks: &[(&str, u64)]) -> Verilog {
    let mut reader = Reader { words: text.split(' '), numbers, links: links.into_iter() };
    assert_eq!(reader.word(), "{", "a kernel is a block");
    let block = reader.block();
    with_numbers(Verilog::Combinatorial(block), marks)
}

struct Reader<'a> {
    words: Split<'a, char>,
    numbers: &'a [u64],
    links: std::vec::IntoIter<Vec<VerilogLink>>,
}

impl<'a> Reader<'a> {
    fn word(&mut self) -> &'a str {
        self.words.next().expect("a kernel's text is whole")
    }

    fn number(&mut self) -> u64 {
        self.numbers[self.word().parse::<usize>().expect("the place of a number")]
    }

    fn width(&mut self) -> usize {
        self.number() as usize
    }

    /// The number as an expression.
    fn offset(&mut self) -> VerilogExpression {
        VerilogExpression::Literal(self.number().into())
    }

    /// Behind the block's first brace.
    fn block(&mut self) -> VerilogBlock {
        let mut block = Vec::new();
        loop {
            match self.word() {
                "}" => return block,
                word => block.push(self.statement(word)),
            }
        }
    }

    fn whole_block(&mut self) -> VerilogBlock {
        assert_eq!(self.word(), "{", "a block begins with a brace");
        self.block()
    }

    fn statement(&mut self, word: &str) -> VerilogStatement {
        match word {
            "=" => VerilogStatement::Assignment(self.expression(), self.expression()),
            "part" => {
                let (base, width, offset) = (self.expression(), self.width(), self.offset());
                VerilogStatement::SliceAssignment { base, width, offset, replacement: self.expression() }
            }
            "if" => {
                let (test, then) = (self.expression(), self.whole_block());
                let otherwise = match self.word() {
                    "end" => VerilogBlockOrConditional::None,
                    "{" => VerilogBlockOrConditional::Block(self.block()),
                    next => VerilogBlockOrConditional::Conditional(Box::new(self.statement(next))),
                };
                VerilogStatement::If(VerilogConditional { test, then, otherwise })
            }
            "match" => {
                let test = self.expression();
                let mut cases = Vec::new();
                loop {
                    match self.word() {
                        "end" => return VerilogStatement::Match(VerilogMatch { test, cases }),
                        pattern => cases.push(VerilogCase { condition: pattern.into(), block: self.whole_block() }),
                    }
                }
            }
            "for" => {
                let (index, from, to) = (self.word().into(), self.number().into(), self.number().into());
                VerilogStatement::Loop(VerilogLoop { index, from, to, block: self.whole_block() })
            }
            "join" => VerilogStatement::Link(self.links.next().expect("a join for each word")),
            "macro" => VerilogStatement::Macro(self.whole_block()),
            other => unreachable!("no statement: {other}"),
        }
    }

    fn operand(&mut self) -> Box<VerilogExpression> {
        Box::new(self.expression())
    }

    fn expression(&mut self) -> VerilogExpression {
        use VerilogExpression::*;
        let word = self.word();
        if let Some(signal) = word.strip_prefix('$') {
            return Signal(signal.into());
        }
        if let Some(number) = word.strip_prefix('\'') {
            return Literal(literal(number));
        }
        if let Some(op) = operator(word) {
            return Binary(self.operand(), op, self.operand());
        }
        match word {
            ":" => {
                let width = self.width();
                Cast(self.operand(), width)
            }
            "(" => Paren(self.operand()),
            "not" => Unary(VerilogOpUnary::Not, self.operand()),
            "all" => Unary(VerilogOpUnary::All, self.operand()),
            "any" => Unary(VerilogOpUnary::Any, self.operand()),
            "xor" => Unary(VerilogOpUnary::Xor, self.operand()),
            "bit" => Index(self.operand(), self.operand()),
            "slice" => {
                let width = self.width();
                Slice(self.operand(), width, self.operand())
            }
            "field" => {
                let (record, width) = (self.operand(), self.width());
                Slice(record, width, Box::new(self.offset()))
            }
            "replace" => IndexReplace(self.operand(), self.operand(), self.operand()),
            other => unreachable!("no expression: {other}"),
        }
    }
}

/// `WIDTH:VALUE`.
fn literal(text: &str) -> VerilogLiteral {
    let (width, value) = text.split_once(':').expect("a width and a value");
    let value: u64 = value.parse().expect("a value");
    match width {
        "1" => (value != 0).into(),
        "32" => (value as u32).into(),
        "64" => value.into(),
        other => unreachable!("no width of a literal: {other}"),
    }
}

fn operator(word: &str) -> Option<VerilogOp> {
    Some(match word {
        "+" => VerilogOp::Add,
        "-" => VerilogOp::Sub,
        "*" => VerilogOp::Mul,
        "&&" => VerilogOp::LogicalAnd,
        "||" => VerilogOp::LogicalOr,
        "^" => VerilogOp::BitXor,
        "&" => VerilogOp::BitAnd,
        "|" => VerilogOp::BitOr,
        "<<" => VerilogOp::Shl,
        ">>" => VerilogOp::Shr,
        "==" => VerilogOp::Eq,
        "!=" => VerilogOp::Ne,
        "<" => VerilogOp::Lt,
        "<=" => VerilogOp::Le,
        ">=" => VerilogOp::Ge,
        ">" => VerilogOp::Gt,
        _ => return None,
    })
}
