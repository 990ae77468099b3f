//! Which signals a kernel drives: RustHDL wants each of them connected.
use super::{names, Setup};
use proc_macro2::TokenStream;
use quote::quote;
use std::collections::HashSet;
use syn::{Block, Expr, Member, Result, Stmt};

#[derive(Default)]
struct Connects {
    calls: Vec<TokenStream>,
    known: HashSet<String>,
}

/// The body of `connect`.
pub fn connects(body: &Block) -> Result<TokenStream> {
    let mut connects = Connects::default();
    connects.block(body)?;
    let calls = connects.calls;
    Ok(quote!(#(#calls)*))
}

impl Connects {
    fn add(&mut self, call: TokenStream) {
        if self.known.insert(call.to_string()) {
            self.calls.push(call);
        }
    }

    fn block(&mut self, block: &Block) -> Result<()> {
        block.stmts.iter().try_for_each(|statement| match statement {
            Stmt::Expr(expr, _) => self.statement(expr),
            Stmt::Macro(call) => self.macro_call(&call.mac),
            _ => Ok(()),
        })
    }

    fn statement(&mut self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::Assign(assign) => {
                if let Some(signal) = driven(&assign.left) {
                    self.add(quote!(logic::logic_connect_fn(&mut #signal);));
                }
                Ok(())
            }
            Expr::If(choice) => {
                self.block(&choice.then_branch)?;
                choice.else_branch.as_ref().map_or(Ok(()), |(_, branch)| self.statement(branch))
            }
            Expr::Block(block) => self.block(&block.block),
            Expr::Match(choice) => choice.arms.iter().try_for_each(|arm| self.statement(&arm.body)),
            Expr::ForLoop(all) => {
                let (index, range, inside) = (&all.pat, &all.expr, connects(&all.body)?);
                self.add(quote!(for #index in #range { #inside }));
                Ok(())
            }
            Expr::Call(call) => {
                if let Some(path) = names::joining(call) {
                    let join = names::ends_in(&path, "join");
                    let (a, b) = (&call.args[0], &call.args[1]);
                    self.add(if join { quote!(logic::logic_connect_join_fn(#a, #b);) } else { quote!(logic::logic_connect_link_fn(#a, #b);) });
                }
                Ok(())
            }
            Expr::Macro(call) => self.macro_call(&call.mac),
            _ => Ok(()),
        }
    }

    fn macro_call(&mut self, call: &syn::Macro) -> Result<()> {
        let Setup { me, parts, .. } = call.parse_body()?;
        for part in parts {
            self.add(quote!(logic::logic_connect_fn(&mut #me.#part.clock);));
            if call.path.is_ident("dff_setup") {
                self.add(quote!(logic::logic_connect_fn(&mut #me.#part.d);));
            }
        }
        Ok(())
    }
}

/// The signal of `signal.next` and of `signal.next.field`.
fn driven(target: &Expr) -> Option<&Expr> {
    match target {
        Expr::Field(field) => match &field.member {
            Member::Named(name) if name == "next" => Some(&field.base),
            _ => driven(&field.base),
        },
        _ => None,
    }
}
