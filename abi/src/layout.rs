//! Bit layouts: what one side of the card needs to know about a record to pack or unpack it.

/// Byte order of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Host records: bit `i` of the layout is bit `i % 8` of byte `i / 8`.
    Little,
    /// Wire headers, network order: bit 0 of the layout is the most significant bit of byte 0.
    Big,
}

/// One field of a record.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Field name; names starting with `rsvd` are reserved and must be zero.
    pub name: &'static str,
    /// Width in bits.
    pub width: usize,
    /// Offset in bits from the start of the record, in the record's own order.
    pub offset: usize,
    /// One line for the reference page.
    pub doc: &'static str,
}

/// A whole record.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Record name.
    pub name: &'static str,
    /// One paragraph for the reference page.
    pub doc: &'static str,
    /// Byte order.
    pub order: Order,
    /// Size in bytes.
    pub bytes: usize,
    /// Fields in declaration order; they cover every bit.
    pub fields: &'static [Field],
}

impl Layout {
    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// For every bit of the record packed first-field-lowest (the order of a hardware struct), the index of the raw bit
    /// (byte * 8 + bit) that carries it. Identity for little-endian records.
    pub fn raw_bit(&self, field: &Field, bit: usize) -> usize {
        match self.order {
            Order::Little => field.offset + bit,
            Order::Big => {
                let msb_first = field.offset + field.width - 1 - bit;
                (msb_first / 8) * 8 + 7 - msb_first % 8
            }
        }
    }
}

/// Sum of the first `n` widths.
pub const fn offset_of(widths: &[usize], n: usize) -> usize {
    let (mut i, mut sum) = (0, 0);
    while i < n {
        sum += widths[i];
        i += 1;
    }
    sum
}

/// Where a field of a host record lies if it is inside one whole 64-bit word: the word's first byte, the field's place in it and its mask there.
/// Offsets and widths are constants where this is used, so that a record is packed and unpacked in registers.
#[inline(always)]
fn in_word(bytes: usize, order: Order, offset: usize, width: usize) -> Option<(usize, usize, u64)> {
    let (word, shift) = (offset / 64, offset % 64);
    let inside = matches!(order, Order::Little) && shift + width <= 64 && (word + 1) * 8 <= bytes && width > 0;
    inside.then(|| (word * 8, shift, (u64::MAX >> (64 - width)) << shift))
}

#[inline(always)]
fn word(raw: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&raw[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Reads `width` bits at `offset` of a record.
#[inline(always)]
pub fn get(raw: &[u8], order: Order, offset: usize, width: usize) -> u128 {
    if let Some((at, shift, mask)) = in_word(raw.len(), order, offset, width) {
        return u128::from((word(raw, at) & mask) >> shift);
    }
    let mut v = 0u128;
    if offset % 8 == 0 && width % 8 == 0 {
        let bytes = &raw[offset / 8..(offset + width) / 8];
        for i in 0..bytes.len() {
            let b = match order {
                Order::Little => bytes[bytes.len() - 1 - i],
                Order::Big => bytes[i],
            };
            v = (v << 8) | b as u128;
        }
        return v;
    }
    for i in 0..width {
        let bit = match order {
            Order::Little => {
                let p = offset + width - 1 - i;
                raw[p / 8] >> (p % 8) & 1
            }
            Order::Big => {
                let p = offset + i;
                raw[p / 8] >> (7 - p % 8) & 1
            }
        };
        v = (v << 1) | bit as u128;
    }
    v
}

/// Writes `width` bits at `offset` of a record; higher bits of `value` are ignored.
#[inline(always)]
pub fn set(raw: &mut [u8], order: Order, offset: usize, width: usize, value: u128) {
    if let Some((at, shift, mask)) = in_word(raw.len(), order, offset, width) {
        let changed = word(raw, at) & !mask | (value as u64) << shift & mask;
        raw[at..at + 8].copy_from_slice(&changed.to_le_bytes());
        return;
    }
    if offset % 8 == 0 && width % 8 == 0 {
        let bytes = &mut raw[offset / 8..(offset + width) / 8];
        let n = bytes.len();
        for i in 0..n {
            let b = (value >> (8 * i)) as u8;
            match order {
                Order::Little => bytes[i] = b,
                Order::Big => bytes[n - 1 - i] = b,
            }
        }
        return;
    }
    for i in 0..width {
        let (p, shift) = match order {
            Order::Little => (offset + i, (offset + i) % 8),
            Order::Big => {
                let p = offset + width - 1 - i;
                (p, 7 - p % 8)
            }
        };
        let bit = (value >> i & 1) as u8;
        raw[p / 8] = raw[p / 8] & !(1 << shift) | bit << shift;
    }
}

/// Turns a list of record declarations into software codecs: a byte-array type with typed getters and setters and a
/// [`Layout`]. The list itself comes from an x-macro ([`crate::host_records`], [`crate::wire_records`],
/// [`crate::context_records`], [`crate::target_records`]), which the gateware expands with its own callback into structs with the same field order.
#[macro_export]
macro_rules! define_codecs {
    ($order:ident; $( #[doc = $doc:literal] $name:ident [$bytes:literal] { $( $field:ident : $ty:ident [$width:literal] $fdoc:literal; )* } )*) => { $(
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout, zerocopy::Unaligned)]
        #[repr(transparent)]
        pub struct $name(pub [u8; $bytes]);

        impl Default for $name { fn default() -> Self { Self([0; $bytes]) } }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut s = f.debug_struct(stringify!($name));
                $( s.field(stringify!($field), &self.$field()); )*
                s.finish()
            }
        }

        const _: () = {
            #[allow(non_camel_case_types, dead_code)]
            enum Index { $( $field ),* }
            const WIDTHS: &[usize] = &[ $( $width ),* ];
            const ORDER: $crate::layout::Order = $crate::layout::Order::$order;
            // Every bit is named: a record with a gap does not compile.
            assert!($crate::layout::offset_of(WIDTHS, WIDTHS.len()) == $bytes * 8);

            impl $name {
                /// Size in bytes.
                pub const BYTES: usize = $bytes;
                /// Bit layout of the record.
                pub const LAYOUT: $crate::layout::Layout = $crate::layout::Layout {
                    name: stringify!($name), doc: $doc, order: ORDER, bytes: $bytes,
                    fields: &[ $( $crate::layout::Field {
                        name: stringify!($field), width: $width,
                        offset: $crate::layout::offset_of(WIDTHS, Index::$field as usize), doc: $fdoc,
                    } ),* ],
                };
                $(
                    #[doc = $fdoc]
                    #[inline(always)]
                    pub fn $field(&self) -> $ty {
                        const OFFSET: usize = $crate::layout::offset_of(WIDTHS, Index::$field as usize);
                        $crate::codec_out!($ty, $crate::layout::get(&self.0, ORDER, OFFSET, $width))
                    }
                )*
                $crate::define_setters! { ORDER WIDTHS Index $( $field : $ty [$width] )* }
            }
        };
    )* };
}

/// Setters, named `with_<field>` and chainable. Part of [`define_codecs`].
#[macro_export]
#[doc(hidden)]
macro_rules! define_setters {
    ($order:ident $widths:ident $index:ident $( $field:ident : $ty:ident [$width:literal] )*) => { $crate::paste! { $(
        #[doc = concat!("Sets `", stringify!($field), "`; bits above its width are dropped.")]
        #[inline(always)]
        pub fn [<set_ $field>](&mut self, value: $ty) -> &mut Self {
            const OFFSET: usize = $crate::layout::offset_of($widths, $index::$field as usize);
            $crate::layout::set(&mut self.0, $order, OFFSET, $width, value as u128);
            self
        }
        #[doc = concat!("Builder form of [`Self::set_", stringify!($field), "`].")]
        #[inline(always)]
        pub fn [<with_ $field>](mut self, value: $ty) -> Self {
            self.[<set_ $field>](value);
            self
        }
    )* } };
}

/// Converts the raw value of a field to its Rust type. Part of [`define_codecs`].
#[macro_export]
#[doc(hidden)]
macro_rules! codec_out {
    (bool, $v:expr) => {
        $v != 0
    };
    ($ty:ident, $v:expr) => {
        $v as $ty
    };
}
