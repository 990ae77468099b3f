//! Messages as named fields: packing and unpacking what RustHDL flattens.

use rust_hdl::prelude::*;
use std::any::TypeId;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Values up to this wide travel as `u128`; wider fields as words.
const VALUE_BITS: u32 = 128;

#[derive(Clone, Debug)]
struct Field {
    name: String,
    offset: u32,
    width: u32,
}

/// The layout of a message: fields in declaration order, the first in the least significant bits, as
/// `LogicStruct` lays them out.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    fields: Rc<Vec<Field>>,
    width: u32,
}

thread_local! {
    /// Layouts that have been asked for: tests ask for them in every cycle.
    static KNOWN: RefCell<HashMap<(TypeId, TypeId), Fields>> = RefCell::default();
}

impl Fields {
    /// A layout from `(name, width in bits)` pairs, least significant first.
    pub fn new<S: AsRef<str>>(list: &[(S, u32)]) -> Fields {
        let mut layout = Fields::default();
        for (name, width) in list {
            layout.add(name.as_ref(), *width);
        }
        layout
    }

    /// The layout of a `LogicStruct`; the fields of nested structs are called `outer.inner`.
    pub fn of<T: Synth + 'static>() -> Fields {
        let make = || {
            let mut layout = Fields::default();
            layout.describe("", &T::descriptor());
            layout
        };
        KNOWN.with(|known| known.borrow_mut().entry((TypeId::of::<T>(), TypeId::of::<()>())).or_insert_with(make).clone())
    }

    /// The layout of a `LogicStruct` of which one field, `open`, is in truth a `U`: that one's fields stand in its place, under their own names.
    pub fn opened<T: Synth + 'static, U: Synth + 'static>(open: &str) -> Fields {
        let make = || {
            let (mut layout, whole) = (Fields::default(), Fields::of::<T>());
            assert_eq!(whole.field(open).width as usize, U::BITS, "`{open}`");
            for field in whole.fields.iter() {
                if field.name == open {
                    layout.describe("", &U::descriptor());
                } else {
                    layout.add(&field.name, field.width);
                }
            }
            layout
        };
        KNOWN.with(|known| known.borrow().get(&(TypeId::of::<T>(), TypeId::of::<U>())).cloned()).unwrap_or_else(|| {
            let layout = make();
            KNOWN.with(|known| known.borrow_mut().insert((TypeId::of::<T>(), TypeId::of::<U>()), layout.clone()));
            layout
        })
    }

    fn add(&mut self, name: &str, width: u32) {
        assert!(self.find(name).is_none(), "field `{name}` is declared twice");
        Rc::make_mut(&mut self.fields).push(Field { name: name.into(), offset: self.width, width });
        self.width += width;
    }

    fn describe(&mut self, name: &str, descriptor: &TypeDescriptor) {
        match &descriptor.kind {
            TypeKind::Bits(width) | TypeKind::Signed(width) => self.add(name, *width as u32),
            TypeKind::Enum(variants) => self.add(name, clog2(variants.len()) as u32),
            TypeKind::Composite(fields) => {
                for field in fields {
                    let dot = if name.is_empty() { "" } else { "." };
                    self.describe(&format!("{name}{dot}{}", field.fieldname), &field.kind);
                }
            }
        }
    }

    /// Bits of the whole message.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Field names, least significant first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    fn find(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    fn field(&self, name: &str) -> &Field {
        self.find(name).unwrap_or_else(|| panic!("no field `{name}` among {:?}", self.names().collect::<Vec<_>>()))
    }

    /// A message of zeros.
    pub fn zero(&self) -> Vec<u32> {
        vec![0; self.width.div_ceil(32) as usize]
    }

    /// A message from `(name, value)` pairs; fields not named are zero. Panics if a value does not fit.
    pub fn pack(&self, values: &[(&str, u128)]) -> Vec<u32> {
        let mut words = self.zero();
        for (name, value) in values {
            self.set(&mut words, name, *value);
        }
        words
    }

    /// All fields as `(name, value)`, least significant first. Fields over 128 bits show their low 128 bits.
    pub fn unpack(&self, words: &[u32]) -> Vec<(&str, u128)> {
        let value = |field: &Field| read(words, field.offset, field.width.min(VALUE_BITS));
        self.fields.iter().map(|field| (field.name.as_str(), value(field))).collect()
    }

    /// One field's value.
    pub fn get(&self, words: &[u32], name: &str) -> u128 {
        let field = self.field(name);
        assert!(field.width <= VALUE_BITS, "`{name}` is {} bits wide: use get_words", field.width);
        read(words, field.offset, field.width)
    }

    /// Replaces one field's value. Panics if it does not fit.
    pub fn set(&self, words: &mut [u32], name: &str, value: u128) {
        let field = self.field(name);
        assert!(field.width >= VALUE_BITS || value >> field.width == 0, "{value:#x} does not fit `{name}`");
        for bit in 0..field.width {
            let on = bit < VALUE_BITS && value >> bit & 1 == 1;
            write_bit(words, field.offset + bit, on);
        }
    }

    /// A field of any width as words, least significant first.
    pub fn get_words(&self, words: &[u32], name: &str) -> Vec<u32> {
        let field = self.field(name);
        let part = |at: u32| read(words, field.offset + at, (field.width - at).min(32)) as u32;
        (0..field.width).step_by(32).map(part).collect()
    }

    /// Replaces a field of any width. Panics unless there are `width.div_ceil(32)` words.
    pub fn set_words(&self, words: &mut [u32], name: &str, value: &[u32]) {
        let field = self.field(name);
        assert_eq!(value.len() as u32, field.width.div_ceil(32), "words of `{name}`");
        for bit in 0..field.width {
            write_bit(words, field.offset + bit, value[bit as usize / 32] >> (bit % 32) & 1 == 1);
        }
    }
}

fn read(words: &[u32], offset: u32, width: u32) -> u128 {
    let bit = |at: u32| u128::from(words[at as usize / 32] >> (at % 32) & 1);
    (0..width).fold(0, |value, at| value | bit(offset + at) << at)
}

fn write_bit(words: &mut [u32], at: u32, on: bool) {
    let word = &mut words[at as usize / 32];
    *word = *word & !(1 << (at % 32)) | u32::from(on) << (at % 32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_in_declaration_order_from_the_least_bit() {
        let layout = Fields::new(&[("op", 5), ("wide", 200), ("end", 33)]);
        let mut words = layout.pack(&[("op", 0x15), ("end", 0x1_2345_6789)]);
        layout.set_words(&mut words, "wide", &[u32::MAX, 0, 0xf0f0, 0, 0, 0, 0x81]);
        assert_eq!(words[0], 0xffff_fff5);
        assert_eq!(layout.get(&words, "end"), 0x1_2345_6789);
        assert_eq!(layout.get_words(&words, "wide"), [u32::MAX, 0, 0xf0f0, 0, 0, 0, 0x81]);
        assert_eq!(layout.unpack(&words)[0], ("op", 0x15));
        assert_eq!((layout.width(), words.len()), (238, 8));
    }

    #[test]
    #[should_panic(expected = "does not fit `op`")]
    fn a_value_too_wide_is_refused() {
        Fields::new(&[("op", 5)]).pack(&[("op", 32)]);
    }
}
