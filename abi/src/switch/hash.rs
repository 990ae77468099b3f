//! Where in a table of several ways a key may stand: the hash that gateware and driver share. It is linear, in two steps: every bit of the key goes into four bits of a middle word,
//! and every bit of a line's number is the parity of half of that word. So no bit has more than 36 inputs in either step, which is two levels of logic.

/// Ways of a table: a key stands in one of as many lines.
pub const WAYS: usize = 4;
/// Bits of a line's number at most.
pub const LINE_BITS: usize = 12;
/// Bits of the middle word that a bit of the key goes into.
const TAPS: usize = 4;
/// Seed of the tables' hashes. A card with another one would need to say so.
pub const SEED: u64 = 0x6665_7272_6963;

/// The hash of keys of `N` bits by way of `M` bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hash<const N: usize, const M: usize> {
    middle: [u64; N],
    lines: [[u64; LINE_BITS]; WAYS],
}

/// Steele, Lea and Flood's SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `M` - 1 in any order.
    fn shuffled<const M: usize>(&mut self) -> [usize; M] {
        let mut deck = core::array::from_fn(|n| n);
        for n in (1..M).rev() {
            deck.swap(n, (self.next() % (n as u64 + 1)) as usize);
        }
        deck
    }
}

impl<const N: usize, const M: usize> Hash<N, M> {
    /// The hash of this seed.
    ///
    /// # Panics
    /// `M` is above 64 or no multiple of four.
    pub fn new(seed: u64) -> Self {
        assert!(M <= 64 && M % TAPS == 0, "a middle word of {M} bits");
        let mut random = Random(seed ^ (N as u64) << 32 ^ (M as u64));
        let mut deck = [0; M];
        let middle = core::array::from_fn(|bit| {
            // Dealt from a shuffled deck, so that every bit of the middle word gets as many as any other.
            let at = bit * TAPS % M;
            if at == 0 {
                deck = random.shuffled();
            }
            deck[at..at + TAPS].iter().map(|row| 1 << row).sum()
        });
        let lines = core::array::from_fn(|_| core::array::from_fn(|_| random.shuffled::<M>()[..M / 2].iter().map(|row| 1 << row).sum()));
        Self { middle, lines }
    }

    /// What bit `bit` of a key turns over in the middle word.
    pub fn column(&self, bit: usize) -> u64 {
        self.middle[bit]
    }

    /// What bit `row` of the middle word turns over in a line's number of this way.
    pub fn line_column(&self, way: usize, row: usize) -> u32 {
        self.lines[way].iter().enumerate().map(|(n, mask)| ((mask >> row & 1) as u32) << n).sum()
    }

    /// The middle word of a key, whose bit n is bit n % 8 of byte n / 8.
    pub fn middle(&self, key: &[u8]) -> u64 {
        (0..N).filter(|bit| key[bit / 8] >> (bit % 8) & 1 == 1).fold(0, |word, bit| word ^ self.middle[bit])
    }

    /// Line of a way in a table of 2^`lg` lines.
    pub fn line(&self, way: usize, middle: u64, lg: u32) -> u32 {
        self.lines[way].iter().take(lg as usize).enumerate().map(|(n, mask)| ((mask & middle).count_ones() & 1) << n).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rank of these rows over GF(2).
    fn rank(rows: impl Iterator<Item = u64>) -> usize {
        let mut basis = [0u64; 64];
        for mut row in rows {
            while row != 0 {
                let top = 63 - row.leading_zeros() as usize;
                if basis[top] == 0 {
                    basis[top] = row;
                    break;
                }
                row ^= basis[top];
            }
        }
        basis.iter().filter(|row| **row != 0).count()
    }

    /// Two levels of logic.
    fn shallow<const N: usize, const M: usize>(hash: &Hash<N, M>) {
        for row in 0..M {
            assert!((0..N).filter(|bit| hash.column(*bit) >> row & 1 == 1).count() <= 36);
        }
    }

    #[test]
    fn keys_spread_and_no_bit_has_more_inputs_than_two_levels_take() {
        let hash = Hash::<488, 64>::new(SEED);
        // Four bits turn over at once, so the middle word's parity is always even: one bit is lost.
        assert_eq!(rank((0..488).map(|bit| hash.column(bit))), 63);
        // Every set of lines comes about.
        assert_eq!(rank(hash.lines.iter().flatten().copied()), WAYS * LINE_BITS);
        shallow(&hash);
        shallow(&Hash::<64, 64>::new(SEED));
    }

    #[test]
    fn columns_and_words_agree() {
        let hash = Hash::<488, 64>::new(SEED);
        let key: [u8; 61] = core::array::from_fn(|n| (n * 37) as u8);
        let middle = hash.middle(&key);
        for way in 0..WAYS {
            let line = (0..64).filter(|row| middle >> row & 1 == 1).fold(0, |line, row| line ^ hash.line_column(way, row));
            assert_eq!(hash.line(way, middle, 12), line);
            assert_eq!(hash.line(way, middle, 5), line & 31);
        }
    }
}
