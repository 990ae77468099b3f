//! What kernels call things.
use syn::{Expr, ExprCall, Path};

/// The name in Verilog of what is spelled so in Rust, as RustHDL makes it.
pub fn flat(tokens: &str) -> String {
    tokens.replace(' ', "").replace("self.", "").replace(['\n'], "").replace('.', "$").replace("::", "$").replace("&mut", "")
}

pub fn ends_in(path: &Path, name: &str) -> bool {
    path.segments.last().is_some_and(|last| last.ident == name)
}

/// The function of `Type::join(a, b)` and of `Type::link(a, b)`.
pub fn joining(call: &ExprCall) -> Option<Path> {
    match &*call.func {
        Expr::Path(path) if path.path.segments.len() > 1 && call.args.len() == 2 && (ends_in(&path.path, "join") || ends_in(&path.path, "link")) => Some(path.path.clone()),
        _ => None,
    }
}
