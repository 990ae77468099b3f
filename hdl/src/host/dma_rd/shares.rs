//! Who has which ids of small reads: every port a power of two of them, aligned, so that ids and rows of a port are rings.

use crate::assembly::up_to_most;

/// AXI ids of payload reads: 0 and up. Those of small reads follow.
pub const PAYLOAD: usize = 128;
/// Small reads that ids of 8 bits suffice for; those of which the low 8 bits of an id of 9 tell one from another; and all for which ids of 9 bits do.
pub const FEW: usize = 128;
pub const SOME: usize = 256;
pub const MANY: usize = 384;
/// Fewest and most ids of a port. A port takes a read while it has room for the largest one, of eight rows: two ids would never be in use at once.
pub const SMALLEST: usize = 4;
pub const LARGEST: usize = 64;
/// Rows of the row buffer behind an id.
pub(super) const ROWS_PER_ID: u64 = 4;
/// log2 of the smallest share: all ids of a group of so many belong to one port.
pub(super) const LOG_SMALLEST: usize = SMALLEST.ilog2() as usize;

/// The ids of a port: `base` to `base + ids - 1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub base: u64,
    pub ids: u64,
}

impl Share {
    /// Its first row in the row buffer.
    pub(super) fn first_row(&self) -> u64 {
        ROWS_PER_ID * (self.base - PAYLOAD as u64)
    }
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

/// Bits of the AXI ids that clients with these quotas need.
pub fn id_bits(quotas: &[usize]) -> usize {
    if quotas.iter().sum::<usize>() > FEW {
        9
    } else {
        8
    }
}

/// Ids for each port, the largest share first: then each begins at a multiple of its size. Equal ones in the order of the ports.
pub(super) fn allot<const N: usize>(quotas: &[usize; N]) -> [Share; N] {
    let mut order: [usize; N] = std::array::from_fn(|port| port);
    order.sort_by_key(|port| std::cmp::Reverse(quotas[*port]));
    let (mut shares, mut base) = ([Share::default(); N], PAYLOAD as u64);
    for port in order {
        let ids = quotas[port] as u64;
        shares[port] = Share { base, ids };
        base += ids;
    }
    shares
}

/// Mask of the rows in the ring of the port that has this group of tags; nobody's: zero. A tag is the low `tag_bits` of an id.
pub(super) fn row_mask(shares: &[Share], tag_bits: usize, group: usize) -> u128 {
    let tag = (group * SMALLEST) as u64;
    let owner = shares.iter().find(|share| (share.base..share.base + share.ids).any(|id| id % (1 << tag_bits) == tag));
    owner.map_or(0, |share| (ROWS_PER_ID * share.ids - 1).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every share begins at a multiple of its size, none overlaps another, and each tag finds the ring of its port.
    #[test]
    fn shares_are_aligned_and_apart() {
        let bases = allot(&[8, 64, 32, 16, 8]).map(|share| share.base - 128);
        assert_eq!(bases, [112, 0, 64, 96, 120]);
        for quotas in [[4, 8, 4, 16, 64, 32], [32, 32, 4, 4, 4, 4], [16; 6], [8, 64, 32, 32, 32, 4], [64; 6], [64, 4, 64, 32, 64, 64]] {
            assert_eq!(fit(&quotas), Ok(()));
            let bits = id_bits(&quotas);
            // Of ids of 8 bits the highest says that it is a small read's; of those of 9 bits the low 8 are the tag as far as they suffice.
            let wanted: usize = quotas.iter().sum();
            let tag_bits = 7 + usize::from(wanted > FEW) + usize::from(wanted > SOME);
            let shares = allot(&quotas);
            let mut owners = [None; 512];
            for (port, share) in shares.iter().enumerate() {
                assert!(share.ids == quotas[port] as u64 && share.base % share.ids == 0 && share.base >= 128);
                for id in share.base..share.base + share.ids {
                    assert!(id < 1 << bits);
                    let tag = id as usize % (1 << tag_bits);
                    assert_eq!(owners[tag].replace(port), None);
                    assert_eq!(row_mask(&shares, tag_bits, tag / SMALLEST), u128::from(4 * share.ids - 1));
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
        assert_eq!([&[8, 64, 32, 16, 8][..], &[64, 64], &[64, 64, 4], &[64; 6]].map(id_bits), [8, 8, 9, 9]);
    }
}
