//! Constructors of blocks, field by field, for what `#[derive(Default)]` cannot do, and names for numbers in kernels.

mod kernel;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{parse_macro_input, Attribute, Data, DataStruct, DeriveInput, Error, Field, Fields, Result, Type};

/// Implements `Default`: each field the default of its type, arrays of any length element by element.
///
/// * `#[init(expression)]` on a field gives it that value instead: a constant, a leaf with a table.
/// * `#[demand(condition, "message")]` on the struct is an `assert!` made first: what its parameters must fulfil.
///
/// Fields are built in the order in which they are declared. Generic parameters keep the bounds they are declared with
/// and get no others.
#[proc_macro_derive(BlockDefault, attributes(init, demand))]
pub fn block_default(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let (name, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    let item = body(&input).map(|body| {
        quote! {
            impl #generics ::core::default::Default for #name #arguments #bounds {
                fn default() -> Self {
                    #body
                }
            }
        }
    });
    item.unwrap_or_else(Error::into_compile_error).into()
}

/// Gives a block that is built for values no type can carry its `new`: the parameters are those of `#[given(name: Type,
/// ..)]` on the struct, and `#[init(..)]` and `#[demand(..)]`, as in [`BlockDefault`], may use them.
#[proc_macro_derive(BlockNew, attributes(given, init, demand))]
pub fn block_new(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let (name, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    let item = body(&input).and_then(|body| {
        let [given] = named(&input.attrs, "given")?[..] else {
            return Err(Error::new(input.ident.span(), "one `#[given(name: Type, ..)]` says what `new` takes"));
        };
        Ok(quote! {
            impl #generics #name #arguments #bounds {
                /// The block for these parameters; the struct's comment says what they are.
                pub fn new(#given) -> Self {
                    #body
                }
            }
        })
    });
    item.unwrap_or_else(Error::into_compile_error).into()
}

/// Takes the kernel of a block, `#[hdl_gen] fn update` of an `impl Logic`, in place of RustHDL's `hdl_gen`. The compiler checks the kernel as ever, and the Verilog is the same. Two things are other:
///
/// **Code.** `hdl_gen` makes machine code of the kernel, to be run in RustHDL's own simulation, and much more that builds its syntax tree. Here the kernel is a text from which the tree is built, and `update`
/// panics: RustHDL's own simulation of these blocks is **not** there, Verilator simulates them.
///
/// **Names of numbers.** RustHDL takes each path for a signal; with this attribute these are numbers, and the Verilog is what the bare number would give:
///
/// * a path to a constant, by its spelling (`place_kind::WRITE`, `Self::ROOM`; two letters at least, and no parameter of the `impl`);
/// * what is cast: `CqeStatus::Fatal as u64`, `(RequestHead::BYTES + 4) as u64`;
/// * in a `match` on `..index()` every path of an arm, codes included: `QpState::Rts => ..`.
///
/// Bounds of `for` may be constants without it. A name that does not exist is an error at compile time, and so is a number that is not constant; one
/// that does not fit its `bits::<N>(..)` is an error when the Verilog is written.
#[proc_macro_attribute]
pub fn kernel(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let item = parse_macro_input!(item as syn::ItemImpl);
    kernel::expand(&arguments.into(), item).unwrap_or_else(Error::into_compile_error).into()
}

/// The demands, then the struct with all its fields.
fn body(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(DataStruct { fields: Fields::Named(fields), .. }) = &input.data else {
        return Err(Error::new(input.ident.span(), "a block is a struct with named fields"));
    };
    let demands = named(&input.attrs, "demand")?;
    let names = fields.named.iter().map(|f| &f.ident);
    let values = fields.named.iter().map(value).collect::<Result<Vec<_>>>()?;
    Ok(quote! {
        #(::core::assert!(#demands);)*
        Self { #(#names: #values,)* }
    })
}

/// What stands in the brackets of the attributes of this name.
fn named<'a>(attrs: &'a [Attribute], name: &str) -> Result<Vec<&'a TokenStream>> {
    attrs.iter().filter(|a| a.path().is_ident(name)).map(|a| Ok(&a.meta.require_list()?.tokens)).collect()
}

fn value(field: &Field) -> Result<TokenStream> {
    let span = field.ty.span();
    match (&named(&field.attrs, "init")?[..], &field.ty) {
        ([expression], _) => Ok((*expression).clone()),
        ([_, second, ..], _) => Err(Error::new(second.span(), "a field has one value")),
        ([], Type::Array(_)) => Ok(quote_spanned! { span => ::core::array::from_fn(|_| ::core::default::Default::default()) }),
        ([], _) => Ok(quote_spanned! { span => ::core::default::Default::default() }),
    }
}
