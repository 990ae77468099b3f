//! Mappings: buffers of the program's that the peer writes to by an offset (`riomap`, `riounmap`, `riowrite`).
use super::data::send_all;
use super::endpoint::MAPPING;
use super::memory::{deregister, register};
use super::state::{Inner, State};
use super::wire::{Message, Place};
use super::{bytes, Socket};
use crate::abi::consts::*;
use crate::abi::objects::Mr;
use crate::errors::minus_one;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_int, c_void};

/// A buffer that is mapped.
struct Mapped {
    mr: *mut Mr,
    addr: usize,
    len: usize,
    /// Its entry in the peer's table. `None`: the peer does not know of it.
    entry: Option<u32>,
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: registered in `riomap`, nobody else has it.
        unsafe { deregister(self.mr) };
    }
}

/// Mappings of both sides.
#[derive(Default)]
pub struct Mappings {
    own: Vec<Mapped>,
    /// Entries of which the peer is to be told before more data: their offsets and places.
    untold: VecDeque<(u32, u64, Place)>,
    /// What the peer has mapped, by entry.
    theirs: BTreeMap<u32, (u64, Place)>,
}

impl Mappings {
    /// The peer has mapped a buffer.
    pub fn named(&mut self, entry: u32, offset: u64, place: Place) {
        self.theirs.insert(entry, (offset, place));
    }

    /// Where the byte at an offset is, and how many bytes follow it, itself included.
    fn find(&self, offset: u64) -> Option<Place> {
        self.theirs.values().find_map(|(at, place)| {
            let into = offset.checked_sub(*at).filter(|n| *n < place.length.into())?;
            Some(Place { addr: place.addr.wrapping_add(into), key: place.key, length: place.length - into as u32 })
        })
    }
}

/// Tells the peer of mappings that it does not know, as far as it has receives for that. `true`: it knows all.
pub fn tell_mappings(inner: &mut Inner) -> Result<bool, c_int> {
    let (Some(endpoint), Some(flow), Some(peer)) = (&mut inner.endpoint, &mut inner.flow, &inner.peer) else { return Ok(true) };
    while let Some((entry, offset, place)) = inner.mappings.untold.front().copied() {
        if !flow.may_tell() || (endpoint.room() as usize) < MAPPING {
            return Ok(false);
        }
        inner.mappings.untold.pop_front();
        let mut b = [0; MAPPING];
        b[..8].copy_from_slice(&if peer.big_endian { offset.to_be_bytes() } else { offset.to_le_bytes() });
        b[8..].copy_from_slice(&place.to_bytes(peer.big_endian));
        let at = u64::from(peer.table.length) * Place::BYTES as u64 + u64::from(entry) * MAPPING as u64;
        flow.tell();
        // SAFETY: so many bytes on the stack.
        unsafe { endpoint.write(b.as_ptr(), MAPPING as u32, Some(Message::Mapped(entry)), Place { addr: peer.table.addr.wrapping_add(at), ..peer.table }) }?;
    }
    Ok(true)
}

unsafe fn map(socket: c_int, buf: *mut c_void, len: usize, prot: c_int, offset: i64) -> Result<i64, c_int> {
    let socket = Socket::of(socket)?;
    let mut inner = socket.lock();
    let remote = prot & libc::PROT_WRITE != 0;
    if inner.state == State::Closed {
        return Err(libc::EBADF);
    }
    // SAFETY: an identifier in use.
    let pd = unsafe { (*inner.id).pd };
    if pd.is_null() || prot & !libc::PROT_WRITE != 0 || len == 0 || remote && u32::try_from(len).is_err() {
        return Err(libc::EINVAL);
    }
    let entry = if remote {
        let room = u32::from(inner.peer.map_or(0, |p| p.mappings));
        Some((0..room).find(|n| inner.mappings.own.iter().all(|m| m.entry != Some(*n))).ok_or(libc::ENOMEM)?)
    } else {
        None
    };
    let access = IBV_ACCESS_LOCAL_WRITE | if remote { IBV_ACCESS_REMOTE_WRITE } else { 0 };
    // SAFETY: a domain in use; the program keeps the buffer until it takes the mapping back.
    let mr = unsafe { register(pd, buf, len, access) }?;
    let offset = if offset == -1 { buf as i64 } else { offset };
    inner.mappings.own.push(Mapped { mr, addr: buf as usize, len, entry });
    if let Some(entry) = entry {
        // SAFETY: just made.
        let key = unsafe { (*mr).rkey };
        inner.mappings.untold.push_back((entry, offset as u64, Place { addr: buf as u64, key, length: len as u32 }));
    }
    Ok(offset)
}

/// Maps a buffer of `len` bytes at `offset`, or at its address if that is -1; gives the offset. `prot`: `PROT_WRITE` lets the peer write, `PROT_NONE` does not. The peer knows of it
/// when it has received what is sent next. -1 with EBADF, EINVAL, or ENOMEM when the peer has no room for it.
#[no_mangle]
unsafe extern "C" fn ferric_riomap(socket: c_int, buf: *mut c_void, len: usize, prot: c_int, _flags: c_int, offset: i64) -> i64 {
    // SAFETY: by the caller's promise.
    let mapped = unsafe { map(socket, buf, len, prot, offset) };
    mapped.unwrap_or_else(|n| minus_one("riomap", Err(n)).into())
}

/// Takes a mapping back. A peer that writes to it afterwards loses the connection. -1 with EBADF, or EINVAL when there is no such mapping.
#[no_mangle]
extern "C" fn ferric_riounmap(socket: c_int, buf: *mut c_void, len: usize) -> c_int {
    minus_one(
        "riounmap",
        Socket::of(socket).and_then(|socket| {
            let mut inner = socket.lock();
            let at = inner.mappings.own.iter().position(|m| m.addr == buf as usize && m.len == len).ok_or(libc::EINVAL)?;
            let gone = inner.mappings.own.remove(at);
            inner.mappings.untold.retain(|(entry, ..)| Some(*entry) != gone.entry);
            Ok(())
        }),
    )
}

/// Writes to what the peer has mapped at `offset`. Gives the bytes written, which may be fewer; -1 with EINVAL when nothing is mapped there, and the numbers of `rsend`.
#[no_mangle]
unsafe extern "C" fn ferric_riowrite(socket: c_int, buf: *const c_void, count: usize, offset: i64, flags: c_int) -> isize {
    let mut at = offset as u64;
    // SAFETY: by the caller's promise.
    let sent = unsafe {
        send_all(socket, buf.cast(), count, flags, |inner, from, left| {
            let place = inner.mappings.find(at).ok_or(libc::EINVAL)?;
            let Some(endpoint) = &mut inner.endpoint else { return Err(libc::ENOTCONN) };
            let n = (left.min(place.length as usize) as u32).min(endpoint.room());
            if n > 0 {
                endpoint.write(from, n, None, place)?;
                at = at.wrapping_add(n.into());
            }
            Ok(n)
        })
    };
    bytes("riowrite", sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_found_in_the_mapping_that_has_it() {
        let mut m = Mappings::default();
        let place = |addr, length| Place { addr, key: 1, length };
        m.named(0, 100, place(0x1000, 50));
        m.named(1, 150, place(0x8000, 10));
        assert_eq!([99, 100, 149, 150, 159, 160].map(|at| m.find(at)), [None, Some(place(0x1000, 50)), Some(place(0x1031, 1)), Some(place(0x8000, 10)), Some(place(0x8009, 1)), None]);
        // An entry that is named again is what it was named last.
        m.named(0, 0, place(0x2000, 5));
        assert_eq!([m.find(100), m.find(4)], [None, Some(place(0x2004, 1))]);
    }
}
