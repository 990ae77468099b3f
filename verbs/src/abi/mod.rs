//! What programs compiled against libibverbs and librdmacm expect in memory: structures, unions and the numbers in them.
//!
//! Names are those of the manual pages (`man ibv_post_send` and so on), which describe them; layouts are declared here by hand and compared
//! with the installed headers by `tests/layout.rs`.
#![allow(missing_docs, non_snake_case)]

pub mod attr;
pub mod cma;
pub mod consts;
pub mod objects;
pub mod wr;

/// A structure of the C interface: its name there, its size and where its fields lie.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// `struct ibv_qp`.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Fields and their offsets.
    pub fields: &'static [(&'static str, usize)],
}

/// Declares structures with their C names. Fields whose names start with `opaque` are padding for parts that are not used here.
macro_rules! c_structs {
    ($( $(#[$meta:meta])* $name:ident = $c:literal { $( $field:ident : $ty:ty ),* $(,)? } )*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name { $( pub $field: $ty ),* }
            impl $name {
                pub const LAYOUT: $crate::abi::Layout = $crate::abi::Layout {
                    name: $c,
                    size: size_of::<$name>(),
                    fields: &[ $( (stringify!($field), std::mem::offset_of!($name, $field)) ),* ],
                };
            }
        )*
        /// Everything declared in this file.
        pub const LAYOUTS: &[$crate::abi::Layout] = &[ $( $name::LAYOUT ),* ];
    };
}
pub(crate) use c_structs;

/// Every structure.
pub fn layouts() -> impl Iterator<Item = &'static Layout> {
    [attr::LAYOUTS, cma::LAYOUTS, objects::LAYOUTS, wr::LAYOUTS].into_iter().flatten()
}
