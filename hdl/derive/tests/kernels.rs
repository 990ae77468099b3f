//! Numbers in kernels have names, and kernels have an end. A kernel is the body of a `#[hdl_gen] fn update`.
//!
//! An integer literal in one is bare, and counts, where it is
//! * compared (`==`, `!=`, `<`, `>`, `<=`, `>=`), unless it is 0, or any pattern of a `match`, 0 included;
//! * the argument of `bits::<N>(..)`, unless it is 0: 1 and all ones count;
//! * an operand of arithmetic or logic, also in a computed constant (`.. as u64`), unless it is 0 or 1.
//!
//! Places of bits (`get_bit`, `get_bits`, `replace_bit`), distances of shifts, elements of arrays and bounds of loops do not count here.
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary, ExprCall, ExprForLoop, ExprIndex, ExprMethodCall, ImplItemFn, Lit, LitInt, Pat};

/// Fewer bare literals than this.
const BARE: usize = 142;
/// No kernel has more lines than the longest has now (`rdma/gather`'s walk); 350 was the aim.
const LINES: usize = 350;

#[derive(Default)]
struct Kernel {
    /// Smallest number that counts at this place.
    from: Option<u128>,
    bare: Vec<(usize, String)>,
}

impl Kernel {
    fn at(&mut self, from: Option<u128>, visit: impl FnOnce(&mut Self)) {
        let outside = std::mem::replace(&mut self.from, from);
        visit(self);
        self.from = outside;
    }
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(lit) => matches!(lit.lit, Lit::Int(_)),
        Expr::Paren(paren) => is_number(&paren.expr),
        _ => false,
    }
}

impl<'a> Visit<'a> for Kernel {
    fn visit_lit_int(&mut self, number: &'a LitInt) {
        let value = number.base10_parse().unwrap_or(u128::MAX);
        if self.from.is_some_and(|from| value >= from) {
            self.bare.push((number.span().start().line, number.to_string()));
        }
    }

    fn visit_expr_binary(&mut self, expr: &'a ExprBinary) {
        let from = match expr.op {
            BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => Some(1),
            BinOp::Shl(_) | BinOp::Shr(_) => None,
            _ => Some(2),
        };
        for side in [&expr.left, &expr.right] {
            let from = if is_number(side) { from } else { self.from };
            self.at(from, |kernel| kernel.visit_expr(side));
        }
    }

    fn visit_expr_call(&mut self, call: &'a ExprCall) {
        for argument in &call.args {
            self.at(is_number(argument).then_some(1), |kernel| kernel.visit_expr(argument));
        }
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        self.visit_expr(&call.receiver);
        for argument in &call.args {
            self.at(None, |kernel| kernel.visit_expr(argument));
        }
    }

    fn visit_expr_cast(&mut self, cast: &'a syn::ExprCast) {
        self.at(Some(2), |kernel| kernel.visit_expr(&cast.expr));
    }

    fn visit_expr_index(&mut self, index: &'a ExprIndex) {
        self.visit_expr(&index.expr);
        self.at(None, |kernel| kernel.visit_expr(&index.index));
    }

    fn visit_expr_for_loop(&mut self, all: &'a ExprForLoop) {
        self.visit_block(&all.body);
    }

    fn visit_pat(&mut self, pattern: &'a Pat) {
        self.at(Some(0), |kernel| visit::visit_pat(kernel, pattern));
    }

    // Widths, as in `bits::<8>`, are types.
    fn visit_angle_bracketed_generic_arguments(&mut self, _: &'a syn::AngleBracketedGenericArguments) {}
}

#[derive(Default)]
struct Kernels {
    /// First line, lines, bare literals.
    found: Vec<(usize, usize, Kernel)>,
    /// First lines of an `impl` whose kernel RustHDL's own attribute would take.
    plain: Vec<usize>,
}

/// Names of attributes.
fn has(attributes: &[syn::Attribute], name: &str) -> bool {
    attributes.iter().any(|a| a.path().is_ident(name))
}

impl<'a> Visit<'a> for Kernels {
    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let kernel = item.items.iter().any(|item| matches!(item, syn::ImplItem::Fn(f) if has(&f.attrs, "hdl_gen")));
        if kernel && !has(&item.attrs, "kernel") {
            self.plain.push(item.impl_token.span().start().line);
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a ImplItemFn) {
        if has(&item.attrs, "hdl_gen") {
            let mut kernel = Kernel::default();
            kernel.visit_block(&item.block);
            let (first, last) = (item.sig.span().start().line, item.span().end().line);
            self.found.push((first, last + 1 - first, kernel));
        }
    }
}

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Tests have kernels of their own, and so have benches.
        if path.is_dir() && name != "tests" && name != "tb" {
            sources(&path, into);
        } else if name.ends_with(".rs") && !name.contains("tests") {
            into.push(path);
        }
    }
}

#[test]
fn numbers_in_kernels_have_names_and_kernels_have_an_end() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    files.sort();
    let (mut bare, mut long, mut plain, mut kernels) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for file in files {
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        let mut all = Kernels::default();
        all.visit_file(&syn::parse_file(&std::fs::read_to_string(&file).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}")));
        plain.extend(all.plain.iter().map(|line| format!("{name}:{line}")));
        for (first, lines, kernel) in all.found {
            kernels += 1;
            bare.extend(kernel.bare.iter().map(|(line, text)| format!("{name}:{line} {text}")));
            if lines > LINES {
                long.push(format!("{name}:{first} has {lines} lines"));
            }
        }
    }
    println!("{} bare literals in {kernels} kernels", bare.len());
    assert!(kernels > 150, "only {kernels} kernels found");
    assert!(bare.len() < BARE, "{} bare literals:\n{}", bare.len(), bare.join("\n"));
    assert!(long.is_empty(), "{}", long.join("\n"));
    assert!(plain.is_empty(), "`#[kernel]` is missing:\n{}", plain.join("\n"));
}
