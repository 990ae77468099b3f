//! Who has which ids of small reads: every port a power of two of them, aligned, so that ids and rows of a port are rings.

use crate::assembly::up_to_most;

/// log2 of the AXI ids of payload reads, at least and at most: 0 and up. Those of small reads follow.
pub const FEWEST: usize = 7;
pub const MOST: usize = 8;
/// Small reads that ids of 8 bits suffice for, beside 128 of payload; those of which the low 8 bits of an id of 9 tell one from another; and all for which ids of 9 bits do, beside 128 of payload.
pub const FEW: usize = 128;
pub const SOME: usize = 256;
pub const MANY: usize = 384;
/// Fewest and most ids of a port. A port takes a read while it has room for the largest one, of eight rows: two ids would never be in use at once.
pub const SMALLEST: usize = 4;
pub const LARGEST: usize = 64;
/// Rows of the row buffer behind an id; twice as many behind those of the largest share, where the buffer has room: its client's reads may be long ones.
pub(super) const ROWS_PER_ID: u64 = 4;
/// Rows behind an id of a smaller share of [`LEAN`] ids or more, where the largest could not have its rows otherwise: reads of one row still fill such a share.
const LEAN_ROWS_PER_ID: u64 = 2;
const LEAN: usize = 16;
/// log2 of the rows of a share, at most.
pub(super) const LOG_MOST_ROWS: usize = 9;
/// log2 of the smallest share: all ids of a group of so many belong to one port.
pub(super) const LOG_SMALLEST: usize = SMALLEST.ilog2() as usize;

/// The ids of a port: `base` to `base + ids - 1`, and its rows of the row buffer: `row` to `row + rows - 1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub base: u64,
    pub ids: u64,
    pub row: u64,
    pub rows: u64,
}

/// Whether clients can have these quotas. Errors: what cannot be had.
pub fn fit(quotas: &[usize]) -> Result<(), String> {
    up_to_most(quotas)?;
    if let Some(quota) = quotas.iter().find(|quota| !quota.is_power_of_two() || !(SMALLEST..=LARGEST).contains(quota)) {
        return Err(format!("a quota of {quota} is no power of two from {SMALLEST} to {LARGEST}"));
    }
    match quotas.iter().sum::<usize>() {
        sum if sum > MANY => Err(format!("the quotas are {sum} together, and there are {MANY} ids")),
        _ => Ok(()),
    }
}

/// log2 of the payload reads' ids beside clients with these quotas, of 2^`wanted`: fewer if ids of 9 bits would not suffice otherwise.
pub fn payload(quotas: &[usize], wanted: usize) -> usize {
    if quotas.iter().sum::<usize>() > SOME {
        FEWEST
    } else {
        wanted
    }
}

/// Bits of the AXI ids that clients with these quotas need, and 2^`wanted` payload reads.
pub fn id_bits(quotas: &[usize], wanted: usize) -> usize {
    if wanted > FEWEST || quotas.iter().sum::<usize>() > FEW {
        9
    } else {
        8
    }
}

/// Ids for each port, behind 2^`payload` of payload reads, and rows of a buffer of 2^`log_rows`, the largest share first: then each begins at a multiple of its size. Equal ones in the order of the ports.
pub(super) fn allot<const N: usize>(quotas: &[usize; N], payload: usize, log_rows: usize) -> [Share; N] {
    let mut order: [usize; N] = std::array::from_fn(|port| port);
    order.sort_by_key(|port| std::cmp::Reverse(quotas[*port]));
    let largest = quotas.iter().copied().max().unwrap_or(0);
    let rows = |ids: usize, lean: bool| if lean && (LEAN..largest).contains(&ids) { LEAN_ROWS_PER_ID } else { ROWS_PER_ID } * ids as u64;
    let spare = |lean: bool| (1u64 << log_rows).checked_sub(quotas.iter().map(|ids| rows(*ids, lean)).sum());
    let doubles = |lean: bool| spare(lean).is_some_and(|spare| spare >= rows(largest, lean));
    let lean = !doubles(false) && doubles(true);
    let (mut shares, mut base, mut row) = ([Share::default(); N], 1 << payload, 0);
    for port in order {
        let mut rows = rows(quotas[port], lean);
        if row == 0 && doubles(lean) {
            rows *= 2;
        }
        let ids = quotas[port] as u64;
        shares[port] = Share { base, ids, row, rows };
        base += ids;
        row += rows;
    }
    shares
}

/// Mask of the rows in the ring of the port that has this group of tags; nobody's: zero. A tag is the low `tag_bits` of an id.
pub(super) fn row_mask(shares: &[Share], tag_bits: usize, group: usize) -> u128 {
    let tag = (group * SMALLEST) as u64;
    let owner = shares.iter().find(|share| (share.base..share.base + share.ids).any(|id| id % (1 << tag_bits) == tag));
    owner.map_or(0, |share| (share.rows - 1).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every share begins at a multiple of its size, none overlaps another, and each tag finds the ring of its port.
    #[test]
    fn shares_are_aligned_and_apart() {
        let shares = allot(&[8, 64, 32, 16, 8], 7, 9);
        assert_eq!(shares.map(|share| share.base - 128), [112, 0, 64, 96, 120]);
        assert_eq!(shares.map(|share| (share.row, share.rows)), [(448, 32), (0, 256), (256, 128), (384, 64), (480, 32)]);
        assert_eq!(allot(&[8, 64, 32, 32, 16], 8, 10).map(|share| (share.row, share.rows)), [(832, 32), (0, 512), (512, 128), (640, 128), (768, 64)]);
        // The largest has its eight rows for each id at the expense of two of the others.
        assert_eq!(allot(&[8, 64, 64, 32, 32], 8, 10).map(|share| (share.row, share.rows)), [(896, 32), (0, 512), (512, 256), (768, 64), (832, 64)]);
        let all = [[4, 8, 4, 16, 64, 32], [32, 32, 4, 4, 4, 4], [16; 6], [8, 64, 32, 32, 32, 4], [64; 6], [64, 4, 64, 32, 64, 64], [8, 64, 64, 32, 32, 4]];
        for (quotas, most) in all.into_iter().flat_map(|quotas| [(quotas, FEWEST), (quotas, MOST)]) {
            assert_eq!(fit(&quotas), Ok(()));
            let (bits, payload) = (id_bits(&quotas, most), payload(&quotas, most));
            // Of ids of 8 bits the highest says that it is a small read's; of those of 9 bits the low 8 are the tag as far as they suffice.
            let wanted: usize = quotas.iter().sum();
            let tag_bits = if wanted > SOME { 9 } else { bits - 1 };
            let log_rows = 2 + tag_bits;
            let shares = allot(&quotas, payload, log_rows);
            let (mut owners, mut rows) = ([None; 512], [false; 2048]);
            for (port, share) in shares.iter().enumerate() {
                assert!(share.ids == quotas[port] as u64 && share.base % share.ids == 0 && share.base >= 1 << payload);
                assert!(share.row % share.rows == 0 && share.row + share.rows <= 1 << log_rows && share.rows <= 1 << LOG_MOST_ROWS && share.rows >= 2 * share.ids);
                (share.row..share.row + share.rows).for_each(|row| assert!(!std::mem::replace(&mut rows[row as usize], true)));
                for id in share.base..share.base + share.ids {
                    assert!(id < 1 << bits);
                    let tag = id as usize % (1 << tag_bits);
                    assert_eq!(owners[tag].replace(port), None);
                    assert_eq!(row_mask(&shares, tag_bits, tag / SMALLEST), u128::from(share.rows - 1));
                }
            }
            (0..1 << tag_bits).filter(|tag| owners[*tag].is_none()).for_each(|tag| assert_eq!(row_mask(&shares, tag_bits, tag / SMALLEST), 0));
        }
    }

    #[test]
    fn what_cannot_be_shared_out_is_said() {
        assert_eq!(fit(&[64, 64, 64, 64, 64, 64, 8]), Err("the quotas are 392 together, and there are 384 ids".into()));
        for quota in [0, 1, 2, 12, 128] {
            assert_eq!(fit(&[8, quota]), Err(format!("a quota of {quota} is no power of two from 4 to 64")));
        }
        assert_eq!(fit(&[4; 9]), Err("9 clients, and at most 8 are possible".into()));
        assert_eq!((fit(&[]), fit(&[64, 64]), fit(&[16; 8]), fit(&[64; 6])), (Ok(()), Ok(()), Ok(()), Ok(())));
        assert_eq!([&[8, 64, 32, 16, 8][..], &[64, 64], &[64, 64, 4], &[64; 6]].map(|quotas| id_bits(quotas, FEWEST)), [8, 8, 9, 9]);
        assert_eq!([&[64, 64][..], &[64; 4], &[64, 64, 64, 64, 4]].map(|quotas| (id_bits(quotas, MOST), payload(quotas, MOST))), [(9, 8), (9, 8), (9, 7)]);
    }
}
