//! The records of `ferric-abi` as hardware structs, made from the same declarations. Field order is the abi's, first
//! field in the lowest bits, so a little-endian host record and its struct are the same bit vector; big-endian records need
//! the permutation of [`ferric_abi::layout::Layout::raw_bit`] (leaf `prim::pack::BePick`).
#![allow(missing_docs)]
use rust_hdl::prelude::*;

/// Hardware type of an abi field.
macro_rules! hdl_type {
    (bool 1) => { Bit };
    ($t:ident $w:tt) => { Bits<$w> };
}

macro_rules! logic_structs {
    ($order:ident; $( #[doc = $doc:literal] $name:ident [$bytes:literal] { $( $field:ident : $ty:ident [$width:tt] $fdoc:literal; )* } )*) => { $(
        #[doc = $doc]
        #[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
        pub struct $name { $( #[doc = $fdoc] pub $field: hdl_type!($ty $width) ),* }
    )* };
}

ferric_abi::host_records!(logic_structs);
ferric_abi::context_records!(logic_structs);
ferric_abi::wire_records!(logic_structs);
ferric_abi::target_records!(logic_structs);
ferric_abi::switch_records!(logic_structs);
ferric_abi::virtio_records!(logic_structs);
