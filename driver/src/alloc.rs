//! Memory whose size a program decides: its want is an error, not the end of the process.
use crate::error::{Error, Result};

/// An empty list with room for `n` elements.
pub(crate) fn room<T>(n: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(n).map_err(|_| Error::NoMemory { bytes: n.saturating_mul(size_of::<T>()) })?;
    Ok(list)
}

/// `n` elements, each made from its place.
pub(crate) fn boxed<T>(n: usize, make: impl FnMut(usize) -> T) -> Result<Box<[T]>> {
    let mut list = room(n)?;
    list.extend((0..n).map(make));
    Ok(list.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_memory_is_an_error() {
        assert_eq!(*boxed(3, |n| n * n).unwrap(), [0, 1, 4]);
        assert!(matches!(boxed(usize::MAX / 8, |_| 0u64), Err(Error::NoMemory { .. })));
        assert!(matches!(room::<u64>(usize::MAX), Err(Error::NoMemory { .. })));
    }
}
