//! Memory whose size a program decides: its want is an error, not the end of the process.
use crate::error::{Error, Result};

/// Bytes that what a program asks for must leave to the small things that come with it, for which there is no error.
const SPARE: usize = 16 << 10;

fn list<T>(n: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(n).map_err(|_| Error::NoMemory { bytes: n.saturating_mul(size_of::<T>()) })?;
    Ok(list)
}

/// There is memory for small things: the allocator has it from the system now, and keeps it.
pub(crate) fn spare() -> Result<()> {
    list::<u8>(SPARE).map(|spare| drop(std::hint::black_box(spare)))
}

/// An empty list with room for `n` elements.
pub(crate) fn room<T>(n: usize) -> Result<Vec<T>> {
    let room = list(n)?;
    spare()?;
    Ok(room)
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
