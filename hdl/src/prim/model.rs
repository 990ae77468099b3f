//! Golden models of the leaves. Vectors are bit lists, lowest first.

/// A vector of bits, lowest first.
pub type BitVec = Vec<bool>;

/// Rotates left by `n` bytes: byte `i` moves to `(i + n) mod K`.
pub fn rotate(x: &[bool], n: usize) -> BitVec {
    let w = x.len();
    (0..w).map(|i| x[(i + w - 8 * n % w) % w]).collect()
}

/// Image of `x` under the matrix with these columns.
pub fn xor_matrix(columns: &[Vec<bool>], x: &[bool]) -> BitVec {
    let mut y = vec![false; columns[0].len()];
    for (column, _) in columns.iter().zip(x).filter(|(_, &on)| on) {
        y.iter_mut().zip(column).for_each(|(a, b)| *a ^= b);
    }
    y
}

/// Each bit eight times.
pub fn keep_mask(keep: &[bool]) -> BitVec {
    keep.iter().flat_map(|&k| [k; 8]).collect()
}

/// Bits `lo` (inclusive) to `hi` (exclusive) of `k`.
pub fn range_mask(k: usize, lo: usize, hi: usize) -> BitVec {
    (0..k).map(|i| lo <= i && i < hi).collect()
}

/// Bit `i` is bit `list[i]` of `x`.
pub fn pick(list: &[usize], x: &[bool]) -> BitVec {
    list.iter().map(|&i| x[i]).collect()
}

/// Inverse of [`pick`] onto `n` bits, zeros elsewhere.
pub fn pack(list: &[usize], x: &[bool], n: usize) -> BitVec {
    let mut y = vec![false; n];
    for (i, &to) in list.iter().enumerate() {
        y[to] = x[i];
    }
    y
}

/// Index of the next requester after `last`, cyclically; `None` without a request. `last = None` starts at 0.
pub fn rr_pick(req: &[bool], last: Option<usize>) -> Option<usize> {
    let n = req.len();
    let from = last.map_or(0, |l| l + 1);
    (from..from + n).map(|i| i % n).find(|&i| req[i])
}

/// For each `i`: whether another one holds a number and that is `id[i]`.
pub fn clash(id: &[usize], kept: &[usize], held: &[bool]) -> BitVec {
    (0..id.len()).map(|i| (0..id.len()).any(|j| held[j] && kept[j] == id[i])).collect()
}

/// `acc` with piece `slot` of `data.len()` bits replaced and the pieces above it (with `fresh` all others) zeroed.
pub fn slot_merge(acc: &[bool], data: &[bool], slot: usize, fresh: bool) -> BitVec {
    let w = data.len();
    let at = |i: usize| match (i / w).cmp(&slot) {
        std::cmp::Ordering::Equal => data[i % w],
        std::cmp::Ordering::Less => !fresh && acc[i],
        std::cmp::Ordering::Greater => false,
    };
    (0..acc.len()).map(at).collect()
}

/// Contents of a lane RAM: `rows` of bytes.
pub struct LaneRam {
    rows: Vec<Vec<u8>>,
}

impl LaneRam {
    /// Zeros.
    pub fn new(k: usize, rows: usize) -> Self {
        Self { rows: vec![vec![0; k]; rows] }
    }

    /// The row as it is now.
    pub fn read(&self, row: usize) -> &[u8] {
        &self.rows[row]
    }

    /// Lane `l` with `we[l]` goes to `row` or the one after it.
    pub fn write(&mut self, row: usize, we: &[bool], row1: &[bool], data: &[u8]) {
        let n = self.rows.len();
        for l in (0..data.len()).filter(|&l| we[l]) {
            self.rows[(row + row1[l] as usize) % n][l] = data[l];
        }
    }
}
