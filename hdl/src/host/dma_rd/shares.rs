//! Who has which of the small reads' tags: every port a power of two of them, aligned, so that tags and rows of a port are rings.

use crate::assembly::up_to_most;

/// Tags of small reads: AXI ids of 8 bits, of which payload reads have the other half.
pub const TAGS: usize = 128;
/// Fewest and most tags of a port. A port takes a read while it has room for the largest one, of eight rows: two tags would never be in use at once.
pub const SMALLEST: usize = 4;
pub const LARGEST: usize = 64;
/// Rows of the row buffer behind a tag.
pub(super) const ROWS_PER_TAG: u64 = 4;
/// log2 of the smallest share, and of how many of those there are: all tags of one belong to one port.
pub(super) const LOG_SMALLEST: usize = SMALLEST.ilog2() as usize;
pub(super) const LOG_GROUPS: usize = (TAGS / SMALLEST).ilog2() as usize;

/// The tags of a port: `base` to `base + tags - 1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub base: u64,
    pub tags: u64,
}

/// Whether clients can have these quotas. Errors: what cannot be had.
pub fn fit(quotas: &[usize]) -> Result<(), String> {
    up_to_most(quotas)?;
    if let Some(quota) = quotas.iter().find(|quota| !quota.is_power_of_two() || !(SMALLEST..=LARGEST).contains(quota)) {
        return Err(format!("a quota of {quota} is no power of two from {SMALLEST} to {LARGEST}"));
    }
    match quotas.iter().sum::<usize>() {
        sum if sum > TAGS => Err(format!("the quotas are {sum} together, and there are {TAGS} tags")),
        _ => Ok(()),
    }
}

/// Tags for each port, the largest share first: then each begins at a multiple of its size. Equal ones in the order of the ports.
pub(super) fn allot<const N: usize>(quotas: &[usize; N]) -> [Share; N] {
    let mut order: [usize; N] = std::array::from_fn(|port| port);
    order.sort_by_key(|port| std::cmp::Reverse(quotas[*port]));
    let (mut shares, mut base) = ([Share::default(); N], 0);
    for port in order {
        let tags = quotas[port] as u64;
        shares[port] = Share { base, tags };
        base += tags;
    }
    shares
}

/// Mask of the rows in the ring of the port that has this group of tags; nobody's: zero.
pub(super) fn row_mask(shares: &[Share], group: usize) -> u128 {
    let tag = (group * SMALLEST) as u64;
    let owner = shares.iter().find(|share| (share.base..share.base + share.tags).contains(&tag));
    owner.map_or(0, |share| (ROWS_PER_TAG * share.tags - 1).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every share begins at a multiple of its size, none overlaps another, and each tag finds the ring of its port.
    #[test]
    fn shares_are_aligned_and_apart() {
        let bases = allot(&[8, 64, 32, 16, 8]).map(|share| share.base);
        assert_eq!(bases, [112, 0, 64, 96, 120]);
        for quotas in [[4, 8, 4, 16, 64, 32], [32, 32, 4, 4, 4, 4], [16; 6]] {
            assert_eq!(fit(&quotas), Ok(()));
            let shares = allot(&quotas);
            let mut owners = [None; TAGS];
            for (port, share) in shares.iter().enumerate() {
                assert!(share.tags == quotas[port] as u64 && share.base % share.tags == 0);
                for tag in share.base..share.base + share.tags {
                    assert_eq!(owners[tag as usize].replace(port), None);
                    assert_eq!(row_mask(&shares, tag as usize / SMALLEST), u128::from(4 * share.tags - 1));
                }
            }
            (0..TAGS).filter(|tag| owners[*tag].is_none()).for_each(|tag| assert_eq!(row_mask(&shares, tag / SMALLEST), 0));
        }
    }

    #[test]
    fn what_cannot_be_shared_out_is_said() {
        assert_eq!(fit(&[64, 64, 8]), Err("the quotas are 136 together, and there are 128 tags".into()));
        for quota in [0, 1, 2, 12, 128] {
            assert_eq!(fit(&[8, quota]), Err(format!("a quota of {quota} is no power of two from 4 to 64")));
        }
        assert_eq!(fit(&[4; 9]), Err("9 clients, and at most 8 are possible".into()));
        assert_eq!((fit(&[]), fit(&[64, 64]), fit(&[16; 8])), (Ok(()), Ok(()), Ok(())));
    }
}
