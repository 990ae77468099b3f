//! A card with many functions: each has its turn, its numbers and its reset.

use super::super::program::Sizes;
use super::card::{Card, Event};
use super::functions::reset;
use super::{same, Bench};
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::*;
use ferric_abi::codes::ObjectKind;
use ferric_abi::csr::RANGE_IN_USE;

/// Two numbers of the rarest kind for each of 64 functions.
const SIZES: Sizes = Sizes { qp: 8, cq: 8, mr: 9, pd: 8, eq: 7, functions: 6 };
const FUNCTIONS: u32 = 1 << SIZES.functions;

/// First number of a function's protection domains, and how many they are.
fn domains(f: u32) -> std::ops::Range<u32> {
    let count = 1 << (SIZES.pd - SIZES.functions);
    f * count..(f + 1) * count
}

fn all(b: &mut Bench) {
    turns(b);
    numbers(b);
    resets(b);
    assert_eq!(b.card.refused, b.refused, "refused commands are counted");
}

/// Rings full of commands, all at once: a command of each function before the second of one.
fn turns(b: &mut Bench) {
    let start = b.card.log.len();
    let mut posted = Vec::new();
    for f in 0..FUNCTIONS as usize {
        for _ in 0..2 {
            posted.push((f, b.produced[f], b.post(f, Nop as u8, 0, &[])));
        }
    }
    for (f, n, iova) in posted {
        assert_eq!(b.wait(f, iova, n).0, Ok);
    }
    let order: Vec<u32> = b.card.log[start..].iter().filter_map(|e| if let Event::Fetch { function, .. } = e { Some(*function) } else { None }).collect();
    assert_eq!(order.len(), 2 * FUNCTIONS as usize);
    let mut first = order[..FUNCTIONS as usize].to_vec();
    first.sort_unstable();
    assert_eq!(first, (0..FUNCTIONS).collect::<Vec<_>>(), "{order:?}");
}

fn numbers(b: &mut Bench) {
    let pd = ObjectKind::Pd as usize;
    for f in 1..FUNCTIONS {
        let range = domains(f).start | (SIZES.pd - SIZES.functions) << 24;
        assert_eq!(b.expect(Ok, 0, QueryRanges, f, &[1])[pd], range);
        let f = f as usize;
        assert_eq!(b.expect(Ok, f, QueryRanges, 0, &[0])[pd], range);
        b.expect(Denied, f, QueryRanges, 0, &[1]);
        b.expect(BadId, f, CreatePd, domains(f as u32).end % 256, &[]);
        b.expect(BadId, f, CreatePd, domains(f as u32).start - 1, &[]);
        b.expect(Ok, f, CreatePd, domains(f as u32).start, &[]);
        assert_eq!(b.expect(Ok, f, QueryRanges, 0, &[0])[pd], range | RANGE_IN_USE);
    }
    b.expect(BadId, 0, QueryRanges, FUNCTIONS, &[1]);
    // What any other has, function 0 has not; nor has a neighbour.
    for f in [1, 31, 62, FUNCTIONS - 1] {
        b.expect(BadId, 0, CreatePd, domains(f).end - 1, &[]);
        b.expect(BadId, f as usize - 1, DestroyPd, domains(f).start, &[]);
        b.expect(BadId, (f as usize + 1) % FUNCTIONS as usize, DestroyPd, domains(f).start, &[]);
    }
    b.expect(BadId, 0, SetRange, FUNCTIONS, &[pd as u32, 0]);
    b.expect(InUse, 0, SetRange, FUNCTIONS - 1, &[pd as u32, 0]);
}

/// The last function and one in the middle are reset: they have nothing any more, the others what they had.
fn resets(b: &mut Bench) {
    for f in [FUNCTIONS - 1, 20] {
        reset(b, f as usize);
        let range = domains(f).start | (SIZES.pd - SIZES.functions) << 24;
        assert_eq!(b.expect(Ok, f as usize, QueryRanges, 0, &[0])[ObjectKind::Pd as usize], range);
        b.expect(BadState, f as usize, DestroyPd, domains(f).start, &[]);
    }
    b.expect(Ok, 0, SetRange, FUNCTIONS - 1, &[ObjectKind::Pd as u32, 0]);
    b.expect(Ok, FUNCTIONS as usize - 1, CreatePd, 0, &[]);
    for f in (1..FUNCTIONS - 1).filter(|f| *f != 20) {
        b.expect(Ok, f as usize, DestroyPd, domains(f).start, &[]);
    }
    // Two functions in turn are reset while all the others have commands.
    let busy: Vec<_> = (0..8).map(|f| (f, b.produced[f], b.post(f, Nop as u8, 0, &[]))).collect();
    reset(b, 40);
    for (f, n, iova) in busy {
        assert_eq!(b.wait(f, iova, n).0, Ok);
    }
    assert!(b.card.lines.keys().any(|iova| *iova == Card::completions(7)));
}

#[test]
fn sixty_four_functions_take_turns() {
    same([Bench::model_of(SIZES), Bench::rtl_of("admin64", SIZES, 10)], all, 1000);
}
