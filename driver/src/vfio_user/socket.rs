//! Whole messages with file descriptors over a Unix stream socket: the same code at both ends.
use super::wire::{Header, HEADER, MAX_FDS, MAX_MESSAGE};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};

/// A message as it came.
#[derive(Debug)]
pub struct Message {
    /// Header.
    pub header: Header,
    /// What follows it.
    pub body: Vec<u8>,
    /// File descriptors that came with it.
    pub fds: Vec<OwnedFd>,
}

/// Room for the ancillary data of [`MAX_FDS`] descriptors; `u64` for alignment.
const CONTROL_WORDS: usize = 4 + MAX_FDS / 2;

/// Receives one message. `Ok(None)`: the other end closed the connection between messages. An error means that the stream
/// is of no use any more: it broke, or what came cannot be a message.
pub fn receive(stream: &UnixStream) -> Result<Option<Message>> {
    receive_in(stream, None, None)
}

/// As [`receive`], but with an error (`TimedOut`) when the message has not begun after `first` (`None`: it may begin whenever it likes), or is not
/// whole `rest` after it has.
pub fn receive_within(stream: &UnixStream, first: Option<Duration>, rest: Duration) -> Result<Option<Message>> {
    receive_in(stream, first, Some(rest))
}

fn receive_in(stream: &UnixStream, first: Option<Duration>, rest: Option<Duration>) -> Result<Option<Message>> {
    let after = |d: Duration| Instant::now() + d;
    let mut header = [0u8; HEADER];
    let mut fds = Vec::new();
    let mut got = receive_some(stream, &mut header, &mut fds, first.map(after))?;
    if got == 0 {
        return Ok(None);
    }
    let end = rest.map(after);
    fill(stream, &mut header, &mut got, &mut fds, end)?;
    let header = Header::read_from_bytes(&header).map_err(|_| Error::from(ErrorKind::InvalidData))?;
    let size = header.size as usize;
    if !(HEADER..=MAX_MESSAGE).contains(&size) {
        return Err(Error::new(ErrorKind::InvalidData, format!("a message of {size} bytes")));
    }
    let mut body = vec![0; size - HEADER];
    // Descriptors belong to the header; what comes later is closed.
    fill(stream, &mut body, &mut 0, &mut Vec::new(), end)?;
    Ok(Some(Message { header, body, fds }))
}

/// Receives until `into` is full.
fn fill(stream: &UnixStream, into: &mut [u8], got: &mut usize, fds: &mut Vec<OwnedFd>, end: Option<Instant>) -> Result<()> {
    while *got < into.len() {
        match receive_some(stream, &mut into[*got..], fds, end)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            n => *got += n,
        }
    }
    Ok(())
}

/// Waits until there is something to receive.
fn wait(stream: &UnixStream, end: Instant) -> Result<()> {
    let mut fd = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let ms = end.saturating_duration_since(Instant::now()).as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
    // SAFETY: one valid entry.
    match unsafe { libc::poll(&mut fd, 1, ms) } {
        0 => Err(Error::new(ErrorKind::TimedOut, "it sends nothing, or half a message")),
        n if n < 0 => Err(Error::last_os_error()).or_else(|e| if e.kind() == ErrorKind::Interrupted { Ok(()) } else { Err(e) }),
        _ => Ok(()),
    }
}

/// Receives what there is, at least a byte unless the other end is closed; waits until `end` (`None`: as long as the stream's own time-out says).
fn receive_some(stream: &UnixStream, into: &mut [u8], fds: &mut Vec<OwnedFd>, end: Option<Instant>) -> Result<usize> {
    // Asked first without waiting: mostly it is there.
    let flags = libc::MSG_CMSG_CLOEXEC | if end.is_some() { libc::MSG_DONTWAIT } else { 0 };
    let mut control = [0u64; CONTROL_WORDS];
    let mut iov = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero is a valid msghdr.
    let mut msg: libc::msghdr = unsafe { std::mem::zeroed() };
    msg.msg_iov = &mut iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.as_mut_ptr().cast();
    msg.msg_controllen = size_of_val(&control) as _;
    let n = loop {
        // SAFETY: the vectors above outlive the call.
        let n = unsafe { libc::recvmsg(stream.as_raw_fd(), &mut msg, flags) };
        if n >= 0 {
            break n as usize;
        }
        let e = Error::last_os_error();
        match (e.kind(), end) {
            (ErrorKind::Interrupted, _) => {}
            (ErrorKind::WouldBlock, Some(end)) => wait(stream, end)?,
            _ => return Err(e),
        }
    };
    // SAFETY: the kernel filled `control` and set its length; each header lies inside it.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(&msg);
        while !c.is_null() {
            if (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(c).cast::<RawFd>();
                let count = ((*c).cmsg_len as usize - libc::CMSG_LEN(0) as usize) / size_of::<RawFd>();
                fds.extend((0..count).map(|i| OwnedFd::from_raw_fd(data.add(i).read_unaligned())));
            }
            c = libc::CMSG_NXTHDR(&msg, c);
        }
    }
    if msg.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(Error::new(ErrorKind::InvalidData, "more file descriptors than a message may have"));
    }
    Ok(n)
}

/// Sends one message: `header.size` is filled in here.
pub fn send(stream: &UnixStream, mut header: Header, parts: &[&[u8]], fds: &[RawFd]) -> Result<()> {
    if fds.len() > MAX_FDS {
        return Err(Error::new(ErrorKind::InvalidInput, "more file descriptors than a message may have"));
    }
    let size = HEADER + parts.iter().map(|p| p.len()).sum::<usize>();
    header.size = size as u32;
    let mut bytes = Vec::with_capacity(size);
    bytes.extend_from_slice(header.as_bytes());
    parts.iter().for_each(|p| bytes.extend_from_slice(p));
    let mut sent = 0;
    while sent < bytes.len() {
        match send_some(stream, &bytes[sent..], if sent == 0 { fds } else { &[] }) {
            Ok(n) => sent += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn send_some(stream: &UnixStream, bytes: &[u8], fds: &[RawFd]) -> Result<usize> {
    let mut control = [0u64; CONTROL_WORDS];
    let mut iov = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all-zero is a valid msghdr.
    let mut msg: libc::msghdr = unsafe { std::mem::zeroed() };
    msg.msg_iov = &mut iov;
    msg.msg_iovlen = 1;
    if !fds.is_empty() {
        let len = size_of_val(fds) as u32;
        msg.msg_control = control.as_mut_ptr().cast();
        // SAFETY: plain arithmetic.
        msg.msg_controllen = unsafe { libc::CMSG_SPACE(len) } as _;
        // SAFETY: `control` has room for MAX_FDS descriptors, checked by `send`.
        unsafe {
            let c = libc::CMSG_FIRSTHDR(&msg);
            (*c).cmsg_level = libc::SOL_SOCKET;
            (*c).cmsg_type = libc::SCM_RIGHTS;
            (*c).cmsg_len = libc::CMSG_LEN(len) as _;
            std::ptr::copy_nonoverlapping(fds.as_ptr(), libc::CMSG_DATA(c).cast(), fds.len());
        }
    }
    // SAFETY: the vectors above outlive the call.
    let n = unsafe { libc::sendmsg(stream.as_raw_fd(), &msg, libc::MSG_NOSIGNAL) };
    if n < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(n as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn messages_and_descriptors_arrive() {
        let (a, b) = UnixStream::pair().unwrap();
        let file = std::fs::File::open("/proc/self/mem").unwrap();
        let fds = vec![file.as_raw_fd(); MAX_FDS];
        send(&a, Header { id: 7, command: 2, ..Default::default() }, &[b"ab", b"c"], &fds).unwrap();
        send(&a, Header { id: 8, ..Default::default() }, &[], &[]).unwrap();
        let first = receive(&b).unwrap().unwrap();
        assert_eq!((first.header.id, first.header.size, first.body.as_slice(), first.fds.len()), (7, 19, &b"abc"[..], MAX_FDS));
        assert_eq!(receive(&b).unwrap().unwrap().header.id, 8);
        drop(a);
        assert!(receive(&b).unwrap().is_none());
        assert!(send(&b, Header::default(), &[], &[0; MAX_FDS + 1]).is_err());
    }

    #[test]
    fn silence_and_half_messages_end() {
        let ms = Duration::from_millis;
        let (mut a, b) = UnixStream::pair().unwrap();
        let late = |r: Result<Option<Message>>| r.err().map(|e| e.kind()) == Some(ErrorKind::TimedOut);
        assert!(late(receive_within(&b, Some(ms(20)), ms(20))));
        send(&a, Header { id: 3, ..Default::default() }, &[&[5; 100]], &[]).unwrap();
        assert_eq!(receive_within(&b, None, ms(20)).unwrap().unwrap().body, [5; 100]);
        // A byte now and then is no message either: half a header, half a body.
        let whole = [Header { size: 20, ..Default::default() }.as_bytes(), &[0; 4]].concat();
        for half in [1, 15, 16, 19] {
            let (mut a, b) = UnixStream::pair().unwrap();
            let trickle = std::thread::spawn({
                let whole = whole.clone();
                move || {
                    whole[..half].iter().for_each(|byte| {
                        a.write_all(&[*byte]).unwrap_or_default();
                        std::thread::sleep(ms(10));
                    })
                }
            });
            assert!(receive_within(&b, None, ms(60)).is_err(), "{half}");
            trickle.join().unwrap();
        }
        a.write_all(&whole[..7]).unwrap();
        drop(a);
        assert_eq!(receive_within(&b, None, ms(1000)).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_cannot_be_a_message_is_an_error() {
        for size in [0u32, 15, MAX_MESSAGE as u32 + 1, u32::MAX] {
            let (mut a, b) = UnixStream::pair().unwrap();
            a.write_all(Header { size, ..Default::default() }.as_bytes()).unwrap();
            assert!(receive(&b).is_err(), "{size}");
        }
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(&[1; 5]).unwrap();
        drop(a);
        assert!(receive(&b).is_err());
    }
}
