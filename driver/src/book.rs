//! Which receives of a shared receive queue are outstanding: the program's numbers for them, found by completions in any order.
use crate::alloc::{boxed, room};
use crate::error::{Error, Result};
use std::sync::{Mutex, MutexGuard};

/// A request: its index in the ring, the program's number, and where its copy stands.
#[derive(Clone, Copy, Default)]
struct Posted {
    index: u16,
    number: u64,
    copy: u16,
}

/// The program's numbers of outstanding requests.
pub(crate) struct Book {
    /// Per slot: its request, and whether that is outstanding.
    slots: Box<[(Posted, bool)]>,
    /// Outstanding ones whose slot has been used again.
    late: Vec<Posted>,
    /// Places for copies that no outstanding request has. There are as many as slots, hence always one more than are taken.
    copies: Vec<u16>,
    outstanding: usize,
    pub(crate) max_wr: usize,
}

impl Book {
    fn new(slots: usize, max_wr: usize) -> Result<Self> {
        // `late` never grows beyond what is outstanding: no allocation later.
        let mut copies = room(slots)?;
        copies.extend((0..slots as u16).rev());
        Ok(Self { slots: boxed(slots, |_| (Posted::default(), false))?, late: room(max_wr)?, copies, outstanding: 0, max_wr })
    }

    fn place(&self, index: u16) -> usize {
        index as usize & (self.slots.len() - 1)
    }

    pub(crate) fn check_room(&self, index: u16) -> Result<()> {
        // One that has been outstanding for 65,536 others stands in the way of its own index.
        if self.outstanding >= self.max_wr || self.late.iter().any(|old| old.index == index) {
            return Err(Error::QueueFull);
        }
        Ok(())
    }

    /// Where the next request's copy goes.
    pub(crate) fn next_copy(&self) -> Result<u16> {
        self.copies.last().copied().ok_or(Error::QueueFull)
    }

    pub(crate) fn post(&mut self, index: u16, number: u64) {
        let (place, copy) = (self.place(index), self.copies.pop().unwrap_or_default());
        let (old, live) = std::mem::replace(&mut self.slots[place], (Posted { index, number, copy }, true));
        if live {
            self.late.push(old);
        }
        self.outstanding += 1;
    }

    fn complete(&mut self, index: u16) -> Option<u64> {
        let place = self.place(index);
        let (found, live) = &mut self.slots[place];
        let posted = if *live && found.index == index {
            *live = false;
            *found
        } else {
            let at = self.late.iter().position(|old| old.index == index)?;
            self.late.swap_remove(at)
        };
        self.copies.push(posted.copy);
        self.outstanding -= 1;
        Some(posted.number)
    }
}

/// What completion queues need to know of a shared receive queue. They are those of all its queue pairs, hence the lock.
pub(crate) struct Numbers(Mutex<Book>);

impl Numbers {
    pub(crate) fn new(slots: usize, max_wr: usize) -> Result<Self> {
        Ok(Self(Mutex::new(Book::new(slots, max_wr)?)))
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The program's number of the request with this index; `None`: there is none outstanding.
    pub(crate) fn complete(&self, index: u16) -> Option<u64> {
        self.book().complete(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_in_any_order_find_their_numbers() {
        let mut book = Book::new(128, 64).unwrap();
        let mut producer = 0xffc0u16;
        for n in 0..64 {
            book.check_room(producer).unwrap();
            book.post(producer, n);
            producer = producer.wrapping_add(1);
        }
        assert!(matches!(book.check_room(producer), Err(Error::QueueFull)));
        // All but number 5 complete, last one first; then the ring goes round twice.
        for n in (0..64).rev().filter(|n| *n != 5) {
            assert_eq!(book.complete(0xffc0u16.wrapping_add(n)), Some(n.into()));
        }
        for n in 64..300u64 {
            book.check_room(producer).unwrap();
            book.post(producer, n);
            assert_eq!(book.complete(producer), Some(n));
            producer = producer.wrapping_add(1);
        }
        assert_eq!((book.outstanding, book.late.len()), (1, 1));
        assert_eq!(book.complete(producer), None);
        assert_eq!((book.complete(0xffc5), book.complete(0xffc5)), (Some(5), None));
        assert_eq!((book.outstanding, book.late.len()), (0, 0));
    }

    #[test]
    fn an_index_is_not_used_while_it_is_outstanding() {
        let mut book = Book::new(128, 64).unwrap();
        for index in 0..=u16::MAX {
            book.check_room(index).unwrap();
            book.post(index, index.into());
            if index != 0 {
                assert_eq!(book.complete(index), Some(index.into()));
            }
        }
        assert!(matches!(book.check_room(0), Err(Error::QueueFull)));
        assert_eq!(book.complete(0), Some(0));
        book.check_room(0).unwrap();
    }
}
