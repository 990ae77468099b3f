//! A kernel as a text in prefix notation, from which `ferric_hdl::kernel::text` builds RustHDL's syntax tree when the Verilog is written.
//!
//! RustHDL's `hdl_gen` writes Rust that builds the tree, node by node, and evaluates the argument of each cast for the width of its result: most of what the compiler made of the gateware's crate. A text of words
//! is no code; only the widths and offsets that the compiler must know are computed. Both give the same tree of what both take. This one refuses what no kernel of ours says: signed numbers, negation, casts that do
//! not say their width, comments.
use super::{names, Setup};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{BinOp, Block, Error, Expr, ExprCall, ExprForLoop, ExprIf, ExprMatch, ExprMethodCall, Lit, Member, Pat, PathArguments, Result, Stmt, UnOp};

#[derive(Default)]
pub struct Text {
    words: Vec<String>,
    /// Widths, offsets and bounds of loops; a word gives the place of one.
    pub numbers: Vec<TokenStream>,
    /// What joins of interfaces stand for, in their order.
    pub links: Vec<TokenStream>,
}

fn refuse<T>(what: impl Spanned, reason: &str) -> Result<T> {
    Err(Error::new(what.span(), reason))
}

/// A signal's name in Verilog: without `self`, with `$` between its parts.
fn name(tokens: TokenStream) -> String {
    names::flat(&tokens.to_string())
}

impl Text {
    /// The text of a kernel's body.
    pub fn of(body: &Block) -> Result<Self> {
        let mut text = Self::default();
        text.block(body)?;
        Ok(text)
    }

    pub fn words(&self) -> String {
        self.words.join(" ")
    }

    fn word(&mut self, word: impl Into<String>) {
        self.words.push(word.into());
    }

    fn number(&mut self, value: TokenStream) {
        self.word(self.numbers.len().to_string());
        self.numbers.push(value);
    }

    fn signal(&mut self, name: &str) {
        self.word(format!("${name}"));
    }

    fn block(&mut self, block: &Block) -> Result<()> {
        self.word("{");
        for statement in &block.stmts {
            match statement {
                Stmt::Expr(expr, _) => self.statement(expr)?,
                Stmt::Macro(call) => self.macro_call(&call.mac)?,
                _ => return refuse(statement, "a kernel has no definitions of its own"),
            }
        }
        self.word("}");
        Ok(())
    }

    fn statement(&mut self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::Assign(assign) => self.assignment(&assign.left, &assign.right),
            Expr::If(choice) => self.conditional(choice),
            Expr::Match(choice) => self.choice(choice),
            Expr::ForLoop(all) => self.all(all),
            Expr::Call(call) => self.join(call),
            Expr::Macro(call) => self.macro_call(&call.mac),
            _ => refuse(expr, "no statement of a kernel: assignments, `if`, `match`, `for`, `join` and `dff_setup` are"),
        }
    }

    fn assignment(&mut self, target: &Expr, value: &Expr) -> Result<()> {
        let Expr::Field(field) = target else { return refuse(target, "signals are assigned by their `.next`") };
        let base = &field.base;
        match (&**base, &field.member) {
            // A field of a record.
            (Expr::Field(signal), Member::Named(part)) if name(quote!(#base)).ends_with("$next") => {
                self.word("part");
                self.expression(&signal.base)?;
                self.place(base, &part.to_string());
            }
            _ => {
                let name = name(quote!(#target));
                if name.ends_with("$val") {
                    return refuse(target, "signals are assigned by their `.next`");
                }
                self.word("=");
                self.signal(&name);
            }
        }
        self.expression(value)
    }

    /// Width and offset of a record's field.
    fn place(&mut self, record: &Expr, field: &str) {
        let (width, offset) = (format_ident!("get_my_width_{field}"), format_ident!("get_my_offset_{field}"));
        self.number(quote!(#record.#width() as u64));
        self.number(quote!(#record.#offset() as u64));
    }

    fn conditional(&mut self, choice: &ExprIf) -> Result<()> {
        self.word("if");
        self.expression(&choice.cond)?;
        self.block(&choice.then_branch)?;
        match choice.else_branch.as_ref().map(|(_, branch)| &**branch) {
            None => self.word("end"),
            Some(Expr::Block(block)) => self.block(&block.block)?,
            Some(Expr::If(next)) => self.conditional(next)?,
            Some(other) => return refuse(other, "`else` is followed by a block or by `if`"),
        }
        Ok(())
    }

    fn choice(&mut self, choice: &ExprMatch) -> Result<()> {
        self.word("match");
        self.expression(&choice.expr)?;
        for arm in &choice.arms {
            let pattern = match &arm.pat {
                Pat::Ident(ident) => ident.ident.to_string(),
                Pat::Lit(literal) => quote!(#literal).to_string(),
                Pat::Path(path) => name(quote!(#path)),
                Pat::Wild(_) => "default".into(),
                other => return refuse(other, "an arm of a kernel's `match` is a number, a name or `_`"),
            };
            self.word(pattern);
            match &*arm.body {
                Expr::Block(block) => self.block(&block.block)?,
                Expr::Tuple(nothing) if nothing.elems.is_empty() => return refuse(nothing, "an arm of a kernel's `match` that does nothing is `{}`"),
                one => {
                    self.word("{");
                    self.statement(one)?;
                    self.word("}");
                }
            }
        }
        self.word("end");
        Ok(())
    }

    fn all(&mut self, all: &ExprForLoop) -> Result<()> {
        let (Pat::Ident(index), Expr::Range(range)) = (&*all.pat, &*all.expr) else { return refuse(&all.expr, "a loop of a kernel is `for i in a..b`") };
        let (Some(from), Some(to)) = (&range.start, &range.end) else { return refuse(range, "a loop of a kernel has both bounds") };
        self.word("for");
        self.word(index.ident.to_string());
        self.number(quote!((#from) as u64));
        self.number(quote!((#to) as u64));
        self.block(&all.body)
    }

    /// `Type::join(&mut self.a, &mut self.b)`.
    fn join(&mut self, call: &ExprCall) -> Result<()> {
        let Some(mut path) = names::joining(call) else { return refuse(call, "no call of a kernel: `Type::join(..)` and `Type::link(..)` are") };
        let last = path.segments.last_mut().expect("two segments at least");
        last.ident = format_ident!("{}_hdl", last.ident);
        let [left, right] = [0, 1].map(|n| {
            let end = &call.args[n];
            name(quote!(#end))
        });
        self.word("join");
        self.links.push(quote!(#path("", #left, #right)));
        Ok(())
    }

    fn macro_call(&mut self, call: &syn::Macro) -> Result<()> {
        let data = if call.path.is_ident("dff_setup") {
            true
        } else if call.path.is_ident("clock") {
            false
        } else {
            return refuse(&call.path, "no macro of a kernel: `dff_setup!` and `clock!` are");
        };
        let Setup { clock, parts, .. } = call.parse_body()?;
        let clock = name(quote!(#clock));
        self.word("macro");
        self.word("{");
        for part in &parts {
            self.word("=");
            self.signal(&name(quote!(#part.clock.next)));
            self.signal(&clock);
        }
        for part in parts.iter().filter(|_| data) {
            self.word("=");
            self.signal(&name(quote!(#part.d.next)));
            self.signal(&name(quote!(#part.q)));
        }
        self.word("}");
        Ok(())
    }

    fn expression(&mut self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::Path(_) | Expr::Field(_) | Expr::Index(_) => self.read(expr),
            Expr::Paren(inner) => {
                self.word("(");
                self.expression(&inner.expr)
            }
            Expr::Binary(both) => {
                self.word(operator(&both.op)?);
                self.expression(&both.left)?;
                self.expression(&both.right)
            }
            Expr::Unary(one) => {
                let UnOp::Not(_) = one.op else { return refuse(one, "no operator of a kernel") };
                self.word("not");
                self.expression(&one.expr)
            }
            Expr::Call(call) => self.cast(call),
            Expr::MethodCall(call) => self.method(call),
            Expr::Lit(literal) => self.literal(&literal.lit),
            _ => refuse(expr, "no expression of a kernel"),
        }
    }

    /// A signal, or a field of a record that is one.
    fn read(&mut self, expr: &Expr) -> Result<()> {
        if let Expr::Field(field) = expr {
            let base = &field.base;
            if name(quote!(#base)).ends_with("val()") {
                let Member::Named(part) = &field.member else { return refuse(field, "a record's fields have names") };
                self.word("field");
                self.expression(base)?;
                self.place(base, &part.to_string());
                return Ok(());
            }
        }
        let name = name(quote!(#expr));
        if name.ends_with("$next") {
            return refuse(expr, "signals are read by their `.val()`");
        }
        self.signal(&name);
        Ok(())
    }

    /// `bits::<8>(..)` and `bit_cast::<8, N>(..)`: the width of the result stands first.
    fn cast(&mut self, call: &ExprCall) -> Result<()> {
        let Expr::Path(path) = &*call.func else { return refuse(call, "no function of a kernel") };
        let last = path.path.segments.last().expect("a path has segments");
        let width = match &last.arguments {
            PathArguments::AngleBracketed(list) if ["bits", "bit_cast"].iter().any(|name| last.ident == name) => list.args.first(),
            _ => None,
        };
        let Some(width) = width else { return refuse(call, "no function of a kernel: `bits::<8>(..)` and `bit_cast::<8, N>(..)` are") };
        self.word(":");
        self.number(quote!({ #width } as u64));
        self.expression(&call.args[0])
    }

    fn method(&mut self, call: &ExprMethodCall) -> Result<()> {
        let method = call.method.to_string();
        match (method.as_str(), call.args.len()) {
            ("val" | "into" | "index" | "to_bits", 0) => {}
            ("all" | "any" | "xor", 0) => self.word(method),
            ("get_bit", 1) => self.word("bit"),
            ("replace_bit", 2) => self.word("replace"),
            ("get_bits", 1) => {
                let width = call.turbofish.as_ref().and_then(|fish| fish.args.first());
                let Some(width) = width else { return refuse(&call.method, "`get_bits` is told how many: `get_bits::<8>(place)`") };
                self.word("slice");
                self.number(quote!({ #width } as u64));
            }
            _ => return refuse(&call.method, "no method of a kernel"),
        }
        self.expression(&call.receiver)?;
        call.args.iter().try_for_each(|argument| self.expression(argument))
    }

    /// A number has 64 bits where its type says so, and 32 otherwise.
    fn literal(&mut self, literal: &Lit) -> Result<()> {
        let (width, value) = match literal {
            Lit::Bool(value) => (1, u64::from(value.value)),
            Lit::Int(number) => {
                let width = match number.suffix() {
                    "" => 32,
                    "u64" => 64,
                    _ => return refuse(number, "a kernel's number has no type, or `_u64`"),
                };
                let value = number.base10_parse::<u64>()?;
                if width == 32 && i32::try_from(value).is_err() {
                    return refuse(number, "a number of more than 31 bits says its type: `_u64`");
                }
                (width, value)
            }
            other => return refuse(other, "a kernel's literals are numbers, `true` and `false`"),
        };
        self.word(format!("'{width}:{value}"));
        Ok(())
    }
}

fn operator(op: &BinOp) -> Result<&'static str> {
    Ok(match op {
        BinOp::Add(_) => "+",
        BinOp::Sub(_) => "-",
        BinOp::Mul(_) => "*",
        BinOp::And(_) => "&&",
        BinOp::Or(_) => "||",
        BinOp::BitXor(_) => "^",
        BinOp::BitAnd(_) => "&",
        BinOp::BitOr(_) => "|",
        BinOp::Shl(_) => "<<",
        BinOp::Shr(_) => ">>",
        BinOp::Eq(_) => "==",
        BinOp::Ne(_) => "!=",
        BinOp::Lt(_) => "<",
        BinOp::Le(_) => "<=",
        BinOp::Ge(_) => ">=",
        BinOp::Gt(_) => ">",
        other => return refuse(other, "no operator of a kernel"),
    })
}
