//! The hardware structs of `ferric_hdl::records` have the fields, widths and order of the abi's layouts.
use ferric_abi::layout::Layout;
use rust_hdl::prelude::*;

/// Name and width of every field, in order.
fn fields(kind: &TypeKind) -> Vec<(String, usize)> {
    let TypeKind::Composite(fields) = kind else { panic!("not a struct: {kind:?}") };
    let width = |kind: &TypeKind| match kind {
        TypeKind::Bits(n) => *n,
        other => panic!("a field is a plain bit vector, not {other:?}"),
    };
    fields.iter().map(|f| (f.fieldname.clone(), width(&f.kind.kind))).collect()
}

fn check<T: Synth>(layout: &Layout) {
    let wanted: Vec<(String, usize)> = layout.fields.iter().map(|f| (f.name.to_string(), f.width)).collect();
    assert_eq!(fields(&T::descriptor().kind), wanted, "{}", layout.name);
    assert_eq!(T::BITS, layout.bytes * 8, "{}", layout.name);
}

macro_rules! check_all {
    ($module:ident, $order:ident; $( #[doc = $doc:literal] $name:ident [$bytes:literal] { $($fields:tt)* } )*) => {
        $( check::<ferric_hdl::records::$name>(&ferric_abi::$module::$name::LAYOUT); )*
    };
}
macro_rules! check_host { ($($t:tt)*) => { check_all!(host, $($t)*) }; }
macro_rules! check_context { ($($t:tt)*) => { check_all!(context, $($t)*) }; }
macro_rules! check_switch { ($($t:tt)*) => { check_all!(switch, $($t)*) }; }
macro_rules! check_wire { ($($t:tt)*) => { check_all!(wire, $($t)*) }; }

#[test]
fn host_records() {
    ferric_abi::host_records!(check_host);
}

#[test]
fn context_records() {
    ferric_abi::context_records!(check_context);
}

#[test]
fn wire_records() {
    ferric_abi::wire_records!(check_wire);
}

#[test]
fn switch_records() {
    ferric_abi::switch_records!(check_switch);
}
