//! The attribute `kernel`: RustHDL's kernel, checked by the compiler, in which each number is an associated constant; and an `impl Logic` that makes the Verilog of its text
//! and puts the values in place of their names.

mod connect;
mod names;
mod text;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use std::collections::HashSet;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{parse_quote_spanned, BinOp, Error, Expr, ExprMethodCall, GenericParam, Ident, ImplItem, ItemImpl, Lit, LitInt, Pat, Path, Result, Token};

/// Numbers that stand for the names in patterns, until the values take their places: patterns are text by then.
const FIRST_MARK: u64 = 1_990_000_000;

/// What stands in `dff_setup!(self, clock, a, b)` and in `clock!(self, clock, a, b)`.
struct Setup {
    me: Expr,
    clock: Expr,
    parts: Vec<Expr>,
}

impl Parse for Setup {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut all = Punctuated::<Expr, Token![,]>::parse_terminated(input)?.into_iter();
        let (Some(me), Some(clock)) = (all.next(), all.next()) else { return Err(input.error("`self`, the clock, and what runs with it")) };
        Ok(Self { me, clock, parts: all.collect() })
    }
}

pub fn expand(arguments: &TokenStream, item: ItemImpl) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new(arguments.span(), "`kernel` takes no arguments"));
    }
    let [ImplItem::Fn(update)] = &item.items[..] else {
        return Err(Error::new(item.self_ty.span(), "`kernel` stands on an `impl Logic` with `#[hdl_gen] fn update` and nothing else"));
    };
    let is_kernel = |a: &syn::Attribute| a.path().is_ident("hdl_gen");
    if item.trait_.is_none() || update.sig.ident != "update" || !update.attrs.iter().any(is_kernel) {
        return Err(Error::new(update.sig.span(), "`kernel` is for the `#[hdl_gen] fn update` of an `impl Logic`"));
    }
    let parameters = item.generics.params.iter().filter_map(|p| if let GenericParam::Const(c) = p { Some(c.ident.clone()) } else { None });
    let mut numbers = Numbers { parameters: parameters.collect(), found: Vec::new(), position: false, fault: None };
    let mut update = update.clone();
    update.attrs.retain(|a| !is_kernel(a));
    // Under its own name it would stand in front of the trait's, which RustHDL calls.
    update.sig.ident = format_ident!("kernel");
    numbers.visit_block_mut(&mut update.block);
    if let Some(fault) = numbers.fault {
        return Err(fault);
    }
    let constants = numbers.found.iter().enumerate().map(|(n, number)| {
        let (name, value) = (number_name(n), &number.value);
        let kind = if number.position { quote!(usize) } else { quote!(u64) };
        quote_spanned! { value.span() => const #name: #kind = (#value) as #kind; }
    });
    let names = (0..numbers.found.len()).map(number_name);
    let marks = numbers.found.iter().enumerate().map(|(n, number)| if number.pattern { mark(n).to_string() } else { format!("Self${}", number_name(n)) });
    let text = text::Text::of(&update.block)?;
    let (words, values, links) = (text.words(), &text.numbers, &text.links);
    let connects = connect::connects(&update.block)?;
    let (generics, _, bounds) = item.generics.split_for_impl();
    let (block, attributes) = (&item.self_ty, &item.attrs);
    let implemented = item.trait_.as_ref().map(|(_, path, _)| path);
    Ok(quote! {
        // The compiler checks the kernel's types; nobody runs it, and so no code is made of it.
        #[allow(clippy::unnecessary_cast, dead_code, unreachable_patterns)]
        #(#attributes)*
        impl #generics #block #bounds {
            #(#constants)*
            #update
        }

        #[allow(clippy::unnecessary_cast, unused_braces, unused_parens, unused_variables)]
        impl #generics #implemented for #block #bounds {
            fn update(&mut self) {
                ::core::unreachable!("Verilator simulates the Verilog of this block")
            }
            fn connect(&mut self) {
                #connects
            }
            fn hdl(&self) -> ast::Verilog {
                ::ferric_hdl::kernel::text::verilog(#words, &[#(#values),*], [#(#links),*].into(), &[#((#marks, Self::#names as u64)),*])
            }
        }
    })
}

fn number_name(n: usize) -> Ident {
    format_ident!("NUMBER_{n:03}")
}

fn mark(n: usize) -> u64 {
    FIRST_MARK + n as u64
}

struct Number {
    value: Expr,
    /// Where RustHDL wants `usize`: places of bits, elements of arrays.
    position: bool,
    /// Of an arm of a `match`.
    pattern: bool,
}

struct Numbers {
    /// Constant parameters of the impl.
    parameters: HashSet<Ident>,
    found: Vec<Number>,
    position: bool,
    fault: Option<Error>,
}

impl Numbers {
    fn is_name(&self, path: &Path) -> bool {
        let Some(last) = path.segments.last() else { return false };
        let text = last.ident.to_string();
        text.len() > 1
            && text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
            && !(path.segments.len() == 1 && self.parameters.contains(&last.ident))
    }

    fn add(&mut self, value: Expr, pattern: bool) -> usize {
        self.found.push(Number { value, position: self.position && !pattern, pattern });
        self.found.len() - 1
    }

    fn in_position(&mut self, position: bool, expr: &mut Expr) {
        let outside = std::mem::replace(&mut self.position, position);
        self.visit_expr_mut(expr);
        self.position = outside;
    }
}

/// Whether an expression is of RustHDL's index type.
fn is_index(expr: &Expr) -> bool {
    matches!(expr, Expr::MethodCall(call) if call.method == "index")
}

fn compares(op: &BinOp) -> bool {
    matches!(op, BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_))
}

impl VisitMut for Numbers {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let number = match expr {
            Expr::Cast(cast) => Some((*cast.expr).clone()),
            Expr::Path(path) if self.is_name(&path.path) => Some(expr.clone()),
            _ => None,
        };
        match number {
            Some(value) => {
                let (span, n) = (value.span(), self.add(value, false));
                let name = number_name(n);
                *expr = parse_quote_spanned! { span => Self::#name };
            }
            None => visit_mut::visit_expr_mut(self, expr),
        }
    }

    fn visit_expr_binary_mut(&mut self, expr: &mut syn::ExprBinary) {
        let position = compares(&expr.op) && (is_index(&expr.left) || is_index(&expr.right));
        self.in_position(position, &mut expr.left);
        self.in_position(position, &mut expr.right);
    }

    fn visit_expr_method_call_mut(&mut self, call: &mut ExprMethodCall) {
        self.in_position(false, &mut call.receiver);
        let takes_place = ["get_bit", "get_bits", "replace_bit"].iter().any(|name| call.method == name);
        for (n, argument) in call.args.iter_mut().enumerate() {
            self.in_position(takes_place && n == 0, argument);
        }
    }

    fn visit_expr_index_mut(&mut self, index: &mut syn::ExprIndex) {
        self.in_position(false, &mut index.expr);
        self.in_position(true, &mut index.index);
    }

    fn visit_expr_for_loop_mut(&mut self, all: &mut syn::ExprForLoop) {
        self.visit_block_mut(&mut all.body);
    }

    fn visit_expr_match_mut(&mut self, choice: &mut syn::ExprMatch) {
        let codes = is_index(&choice.expr);
        self.visit_expr_mut(&mut choice.expr);
        for arm in &mut choice.arms {
            let path = match &arm.pat {
                Pat::Path(path) if codes || self.is_name(&path.path) => Some(path.path.clone()),
                Pat::Ident(ident) if ident.subpat.is_none() && self.is_name(&ident.ident.clone().into()) => Some(ident.ident.clone().into()),
                _ => None,
            };
            if let Some(path) = path {
                let span = path.span();
                let n = self.add(parse_quote_spanned! { span => #path }, true);
                let number = LitInt::new(&mark(n).to_string(), span);
                arm.pat = parse_pattern(number, span);
            }
            self.visit_expr_mut(&mut arm.body);
        }
    }

    fn visit_lit_int_mut(&mut self, number: &mut LitInt) {
        if number.base10_parse::<u64>().is_ok_and(|n| (FIRST_MARK..FIRST_MARK + 1000).contains(&n)) {
            self.fault = Some(Error::new(number.span(), "this number stands for a name inside `kernel`"));
        }
    }

    // Types and generic arguments are Rust's own business.
    fn visit_path_mut(&mut self, _: &mut Path) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_angle_bracketed_generic_arguments_mut(&mut self, _: &mut syn::AngleBracketedGenericArguments) {}
}

fn parse_pattern(number: LitInt, _: Span) -> Pat {
    Pat::Lit(syn::PatLit { attrs: Vec::new(), lit: Lit::Int(number) })
}
