//! Sizes, offsets and codecs of every record.
#[path = "../examples/reference/page.rs"]
#[allow(dead_code)]
mod page;

use ferric_abi::layout::{get, set, Layout, Order};
use proptest::prelude::*;

fn all() -> impl Iterator<Item = &'static Layout> {
    page::HOST.iter().chain(page::CONTEXT).chain(page::WIRE).chain(page::TARGET).chain(page::SWITCH).chain(page::VIRTIO).chain(page::UET)
}

#[test]
fn fields_cover_every_bit_once() {
    for l in all() {
        let mut owner = vec![None; l.bytes * 8];
        for f in l.fields {
            assert!(f.width >= 1 && f.width <= 128, "{}.{}: {} bits", l.name, f.name, f.width);
            for bit in 0..f.width {
                let raw = l.raw_bit(f, bit);
                assert_eq!(owner[raw], None, "{}: raw bit {raw} is of {} too", l.name, f.name);
                owner[raw] = Some(f.name);
            }
        }
        assert!(owner.iter().all(Option::is_some), "{} has a gap", l.name);
        let mut names: Vec<_> = l.fields.iter().map(|f| f.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), l.fields.len(), "{}: a name stands twice", l.name);
    }
}

/// The control bus writes whole words: a narrow field of a context line lies in one of them, a wide one starts on 16 bits.
#[test]
fn context_fields_do_not_straddle_words() {
    for l in page::CONTEXT {
        assert_eq!(l.order, Order::Little);
        for f in l.fields {
            let inside = f.offset / 32 == (f.offset + f.width - 1) / 32;
            assert!(inside || f.offset % 16 == 0, "{}.{} at bit {}", l.name, f.name, f.offset);
        }
    }
}

/// Rings have slots of a power of two, lines of the context store are whole words.
#[test]
fn sizes() {
    for l in page::HOST {
        assert!(l.bytes.is_power_of_two(), "{}: {} bytes", l.name, l.bytes);
    }
    for l in page::CONTEXT {
        assert_eq!(l.bytes % 4, 0, "{}", l.name);
    }
    for l in all() {
        assert_eq!(l.fields.iter().map(|f| f.width).sum::<usize>(), l.bytes * 8, "{}", l.name);
    }
}

#[test]
fn registers_stand_alone_and_in_order() {
    for pair in ferric_abi::csr::REGISTERS.windows(2) {
        assert!(pair[0].offset < pair[1].offset && pair[1].offset % 4 == 0, "{} and {}", pair[0].name, pair[1].name);
    }
}

/// A bit of the record by hand: independent of `get`.
fn bit_of(l: &Layout, raw: &[u8], f: &ferric_abi::layout::Field, bit: usize) -> bool {
    let at = l.raw_bit(f, bit);
    raw[at / 8] >> (at % 8) & 1 == 1
}

/// Copies a record field by field through its typed accessors.
macro_rules! copies {
    ($module:ident, $order:ident; $( #[doc = $doc:literal] $name:ident [$bytes:literal] { $( $field:ident : $ty:ident [$width:literal] $fdoc:literal; )* } )*) => {
        ferric_abi::paste! {
            /// Records whose typed copy differs from the original.
            fn [<$module _copies>](bytes: &[u8]) -> Vec<&'static str> {
                let mut wrong = Vec::new();
                $( {
                    let raw: [u8; $bytes] = core::array::from_fn(|i| bytes[i % bytes.len()].wrapping_add(i as u8));
                    let record = ferric_abi::$module::$name(raw);
                    let mut copy = ferric_abi::$module::$name::default();
                    $( copy.[<set_ $field>](record.$field()); )*
                    if copy != record {
                        wrong.push(stringify!($name));
                    }
                } )*
                wrong
            }
        }
    };
}
macro_rules! host_copies { ($($t:tt)*) => { copies!(host, $($t)*); }; }
macro_rules! context_copies { ($($t:tt)*) => { copies!(context, $($t)*); }; }
macro_rules! wire_copies { ($($t:tt)*) => { copies!(wire, $($t)*); }; }
macro_rules! switch_copies { ($($t:tt)*) => { copies!(switch, $($t)*); }; }
macro_rules! virtio_copies { ($($t:tt)*) => { copies!(virtio, $($t)*); }; }
macro_rules! uet_copies { ($($t:tt)*) => { copies!(uet, $($t)*); }; }
macro_rules! target_copies { ($($t:tt)*) => { copies!(target, $($t)*); }; }
ferric_abi::host_records!(host_copies);
ferric_abi::context_records!(context_copies);
ferric_abi::wire_records!(wire_copies);
ferric_abi::target_records!(target_copies);
ferric_abi::switch_records!(switch_copies);
ferric_abi::virtio_records!(virtio_copies);
ferric_abi::uet_records!(uet_copies);

proptest! {
    /// Getters and setters name the same bits: a record copied field by field is the record.
    #[test]
    fn typed_copies(bytes in prop::collection::vec(any::<u8>(), 1..160)) {
        prop_assert_eq!(host_copies(&bytes), Vec::<&str>::new());
        prop_assert_eq!(context_copies(&bytes), Vec::<&str>::new());
        prop_assert_eq!(wire_copies(&bytes), Vec::<&str>::new());
        prop_assert_eq!(uet_copies(&bytes), Vec::<&str>::new());
        prop_assert_eq!(target_copies(&bytes), Vec::<&str>::new());
        prop_assert_eq!(switch_copies(&bytes), Vec::<&str>::new());
        prop_assert_eq!(virtio_copies(&bytes), Vec::<&str>::new());
    }

    /// `get` and `set` agree with `raw_bit`, and touch nothing else.
    #[test]
    fn raw_access(pick in any::<prop::sample::Index>(), which in any::<prop::sample::Index>(), fill in any::<u8>(), value in any::<u128>()) {
        let layouts: Vec<_> = all().collect();
        let l = layouts[pick.index(layouts.len())];
        let f = &l.fields[which.index(l.fields.len())];
        let mut raw = vec![fill; l.bytes];
        set(&mut raw, l.order, f.offset, f.width, value);
        let mask = if f.width == 128 { u128::MAX } else { (1 << f.width) - 1 };
        prop_assert_eq!(get(&raw, l.order, f.offset, f.width), value & mask, "{}.{}", l.name, f.name);
        for bit in 0..f.width {
            prop_assert_eq!(bit_of(l, &raw, f, bit), value >> bit & 1 == 1, "{}.{} bit {}", l.name, f.name, bit);
        }
        for other in l.fields.iter().filter(|o| o.name != f.name) {
            let was = get(&vec![fill; l.bytes], l.order, other.offset, other.width);
            prop_assert_eq!(get(&raw, l.order, other.offset, other.width), was, "{}: {} changed {}", l.name, f.name, other.name);
        }
    }
}

/// What a table's line says stands in the bytes that are asked for.
#[test]
fn answers_end_where_they_are_said_to() {
    use ferric_abi::switch::table::{self, answer_bytes, standing, ANSWER_BYTES};
    let tables = [table::PROFILE, table::EXACT, table::ACTION, table::RULE, table::STATION, table::FLOOD, table::SENDER, table::BIND];
    for table in tables {
        let read = table::read(table, 1, 3);
        let whole = standing(&read, &[0xff; ANSWER_BYTES]).expect("a table that is read");
        let until = answer_bytes(table);
        let mut asked = [0; ANSWER_BYTES];
        asked[..until].fill(0xff);
        assert_eq!(standing(&read, &asked), Some(whole), "table {table}");
        // And, where it is not the whole answer, in no fewer.
        asked[until - 1] = 0;
        assert!(until == ANSWER_BYTES || standing(&read, &asked) != Some(whole), "table {table}");
    }
}
