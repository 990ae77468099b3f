//! The derived constructors on plain structs: what they build, and what they refuse.

use ferric_hdl_derive::{BlockDefault, BlockNew};

#[derive(BlockDefault)]
#[demand(N > 1, "{N} is too few")]
#[demand(N < 100)]
struct Block<T: Default, const N: usize> {
    plain: T,
    many: [T; N],
    #[init(N * 2)]
    double: usize,
    #[init(std::array::from_fn(|i| i + 1))]
    counted: [usize; 3],
}

#[test]
fn fields_take_their_default_or_what_is_given() {
    let block = Block::<u8, 40>::default();
    assert_eq!((block.plain, block.many, block.double, block.counted), (0, [0; 40], 80, [1, 2, 3]));
}

#[test]
#[should_panic(expected = "1 is too few")]
fn a_demand_is_made() {
    Block::<u8, 1>::default();
}

#[test]
#[should_panic(expected = "N < 100")]
fn every_demand_is_made() {
    Block::<u8, 100>::default();
}

#[derive(BlockNew)]
#[given(size: usize, seeds: [u32; 2])]
#[demand(size > 0, "nothing to build")]
struct Given<const N: usize> {
    #[init(vec![seeds[1]; size + N])]
    cells: Vec<u32>,
    rest: [u8; N],
}

#[test]
fn values_may_depend_on_what_is_given() {
    let block = Given::<2>::new(1, [6, 7]);
    assert_eq!((block.cells, block.rest), (vec![7; 3], [0; 2]));
}

#[test]
#[should_panic(expected = "nothing to build")]
fn a_demand_on_what_is_given_is_made() {
    Given::<2>::new(0, [0; 2]);
}
