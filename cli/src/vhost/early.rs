//! SET_VRING_ENABLE before SET_FEATURES: QEMU sends it for network cards (`virtio_net_reset`), and waits for the answer. The specification does not have that, and the crate `vhost` does not
//! answer it; so it is taken here.
use super::guest::Guest;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use vhost::vhost_user::{Error, Result, VhostUserBackendReqHandlerMut};

/// Its number; its words: number, flags, bytes of what follows, ring, 0 or 1.
const SET_VRING_ENABLE: u32 = 18;
const WORDS: usize = 5;
const BODY: u32 = 8;
/// Flags: the protocol's version in two bits, an answer, the sender waits for one.
const VERSION: u32 = 1;
const VERSION_BITS: u32 = 3;
const ANSWER: u32 = 4;
const WAITS: u32 = 8;

/// Carries out the message if it is what comes next and `guest`'s features are not known yet. `None`: it is something else, and still to be read.
pub fn enable(stream: &UnixStream, guest: &mut Guest) -> Option<Result<()>> {
    let mut bytes = [0u8; 4 * WORDS];
    if !guest.is_new() {
        return None;
    }
    // SAFETY: as many bytes as are said, of our own.
    let there = unsafe { libc::recv(stream.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_PEEK | libc::MSG_DONTWAIT) };
    let word = |n: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[4 * n + i]));
    let [number, flags, length, ring, on] = std::array::from_fn(word);
    if there != bytes.len() as isize || [number, flags & VERSION_BITS, length] != [SET_VRING_ENABLE, VERSION, BODY] || on > 1 {
        return None;
    }
    Some(carry_out(stream, guest, &mut bytes, ring, on == 1, flags & WAITS != 0))
}

fn carry_out(mut stream: &UnixStream, guest: &mut Guest, bytes: &mut [u8], ring: u32, on: bool, waits: bool) -> Result<()> {
    stream.read_exact(bytes).map_err(Error::SocketError)?;
    guest.set_vring_enable(ring, on)?;
    if waits {
        let answer: Vec<u8> = [SET_VRING_ENABLE, VERSION | ANSWER, BODY, 0, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
        stream.write_all(&answer).map_err(Error::SocketError)?;
    }
    Ok(())
}
