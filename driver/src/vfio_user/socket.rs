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

/// Bytes that an [`Inbox`] keeps: many small messages, as doorbells are, come in one call.
const ROOM: usize = 4096;

/// What has been received from a stream and belongs to messages that nobody has asked for yet. A stream has one for its whole life.
#[derive(Debug)]
pub struct Inbox {
    bytes: Box<[u8]>,
    /// Where the next message begins, and where what has come ends.
    from: usize,
    to: usize,
    /// Descriptors that nobody has been given yet, and the end of what came with the last of them.
    fds: Vec<OwnedFd>,
    fds_end: usize,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { bytes: vec![0; ROOM].into(), from: 0, to: 0, fds: Vec::new(), fds_end: 0 }
    }
}

impl Inbox {
    /// Receives one message. `Ok(None)`: the other end closed the connection between messages. An error means that the stream
    /// is of no use any more: it broke, or what came cannot be a message.
    pub fn receive(&mut self, stream: &UnixStream) -> Result<Option<Message>> {
        self.receive_in(stream, None, None)
    }

    /// As [`Inbox::receive_within`] for a message that may begin whenever it likes, but whoever else wants the processor has it `turns` times before the caller sleeps: waking
    /// up costs more than what a small message asks for, and in an exchange the next one comes soon.
    pub fn receive_eagerly(&mut self, stream: &UnixStream, turns: u32, rest: Duration) -> Result<Option<Message>> {
        if self.from == self.to {
            for _ in 0..turns {
                // The time-out has passed already: this only looks.
                match self.more(stream, Some(Instant::now())) {
                    Ok(0) => return Ok(None),
                    Ok(_) => break,
                    Err(e) if e.kind() == ErrorKind::TimedOut => std::thread::yield_now(),
                    Err(e) => return Err(e),
                }
            }
        }
        self.receive_in(stream, None, Some(rest))
    }

    /// As [`Inbox::receive`], but with an error (`TimedOut`) when the message has not begun after `first` (`None`: it may begin whenever it likes), or is not
    /// whole `rest` after it has.
    pub fn receive_within(&mut self, stream: &UnixStream, first: Option<Duration>, rest: Duration) -> Result<Option<Message>> {
        self.receive_in(stream, first, Some(rest))
    }

    fn receive_in(&mut self, stream: &UnixStream, first: Option<Duration>, rest: Option<Duration>) -> Result<Option<Message>> {
        let after = |d: Duration| Instant::now() + d;
        if self.from == self.to && self.more(stream, first.map(after))? == 0 {
            return Ok(None);
        }
        // Nobody waits for what is whole already, and then no clock is needed.
        let mut end = None;
        while self.to - self.from < HEADER {
            end = end.or_else(|| rest.map(after));
            self.some(stream, end)?;
        }
        let header = Header::read_from_bytes(&self.bytes[self.from..self.from + HEADER]).map_err(|_| Error::from(ErrorKind::InvalidData))?;
        let size = header.size as usize;
        if !(HEADER..=MAX_MESSAGE).contains(&size) {
            return Err(Error::new(ErrorKind::InvalidData, format!("a message of {size} bytes")));
        }
        while self.to - self.from < size.min(ROOM) {
            end = end.or_else(|| rest.map(after));
            self.some(stream, end)?;
        }
        let kept = size.min(ROOM);
        let mut body = vec![0; size - HEADER];
        body[..kept - HEADER].copy_from_slice(&self.bytes[self.from + HEADER..self.from + kept]);
        self.from += kept;
        // What has room in no inbox is received where it belongs. Descriptors come with the beginning of a message; what comes later is closed.
        let mut got = kept - HEADER;
        while got < body.len() {
            end = end.or_else(|| rest.map(after));
            match receive_some(stream, &mut body[got..], &mut Vec::new(), end)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                n => got += n,
            }
        }
        // The kernel ends what it gives at once with the piece that has descriptors: they belong to the last message that came, whole or not, not to those in front.
        let fds = if self.fds_end <= self.from { std::mem::take(&mut self.fds) } else { Vec::new() };
        Ok(Some(Message { header, body, fds }))
    }

    /// Receives into the inbox, the end of the stream in the middle of a message being an error.
    fn some(&mut self, stream: &UnixStream, end: Option<Instant>) -> Result<()> {
        match self.more(stream, end)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Receives what there is, and how much that was; 0: the other end is closed.
    fn more(&mut self, stream: &UnixStream, end: Option<Instant>) -> Result<usize> {
        self.bytes.copy_within(self.from..self.to, 0);
        self.fds_end = self.fds_end.saturating_sub(self.from);
        (self.from, self.to) = (0, self.to - self.from);
        let had = self.fds.len();
        let n = receive_some(stream, &mut self.bytes[self.to..], &mut self.fds, end)?;
        self.to += n;
        if self.fds.len() > had {
            self.fds_end = self.to;
        }
        if self.fds.len() > MAX_FDS {
            return Err(Error::new(ErrorKind::InvalidData, "more file descriptors than a message may have"));
        }
        Ok(n)
    }
}

/// Waits until there is something to receive.
fn wait(stream: &UnixStream, end: Instant) -> Result<()> {
    let late = || Err(Error::new(ErrorKind::TimedOut, "it sends nothing, or half a message"));
    let mut fd = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let ms = end.saturating_duration_since(Instant::now()).as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
    if ms == 0 {
        // Whoever waits has looked just now.
        return late();
    }
    // SAFETY: one valid entry.
    match unsafe { libc::poll(&mut fd, 1, ms) } {
        0 => late(),
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
        let mut inbox = Inbox::default();
        let first = inbox.receive(&b).unwrap().unwrap();
        assert_eq!((first.header.id, first.header.size, first.body.as_slice(), first.fds.len()), (7, 19, &b"abc"[..], MAX_FDS));
        assert_eq!(inbox.receive(&b).unwrap().unwrap().header.id, 8);
        drop(a);
        assert!(inbox.receive(&b).unwrap().is_none());
        assert!(send(&b, Header::default(), &[], &[0; MAX_FDS + 1]).is_err());
    }

    /// Many small ones in one piece, and one between them that has no room in an inbox.
    #[test]
    fn messages_that_come_at_once_are_kept_apart() {
        let (a, b) = UnixStream::pair().unwrap();
        let file = std::fs::File::open("/proc/self/mem").unwrap();
        let sender = std::thread::spawn(move || {
            for id in 0..2000u16 {
                let body = vec![id as u8; if id % 500 == 77 { 3 * ROOM } else { id as usize % 90 }];
                let fds = vec![file.as_raw_fd(); if id % 7 == 3 { 1 + id as usize % MAX_FDS } else { 0 }];
                send(&a, Header { id, ..Default::default() }, &[&body], &fds).unwrap();
            }
        });
        let mut inbox = Inbox::default();
        for id in 0..2000u16 {
            if id % 300 == 0 {
                // So that there is much at once.
                std::thread::sleep(Duration::from_millis(5));
            }
            let m = inbox.receive_within(&b, None, Duration::from_secs(5)).unwrap().unwrap();
            let length = if id % 500 == 77 { 3 * ROOM } else { id as usize % 90 };
            assert_eq!((m.header.id, m.body.len(), m.fds.len()), (id, length, if id % 7 == 3 { 1 + id as usize % MAX_FDS } else { 0 }));
            assert!(m.body.iter().all(|byte| *byte == id as u8));
        }
        assert!(inbox.receive(&b).unwrap().is_none());
        sender.join().unwrap();
    }

    /// Looking does not end a silence and loses nothing, whenever a message begins; a stream that is closed ends it.
    #[test]
    fn who_looks_eagerly_sleeps_in_the_end() {
        let (a, b) = UnixStream::pair().unwrap();
        let sender = std::thread::spawn(move || {
            for id in 0..300u16 {
                if id % 3 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                send(&a, Header { id, ..Default::default() }, &[&[id as u8; 5]], &[]).unwrap();
            }
        });
        let mut inbox = Inbox::default();
        for id in 0..300u16 {
            let m = inbox.receive_eagerly(&b, u32::from(id % 7), Duration::from_secs(5)).unwrap().unwrap();
            assert_eq!((m.header.id, m.body), (id, vec![id as u8; 5]));
        }
        sender.join().unwrap();
        assert!(inbox.receive_eagerly(&b, 3, Duration::from_secs(5)).unwrap().is_none());
        assert!(inbox.receive_eagerly(&b, 0, Duration::from_secs(5)).unwrap().is_none());
    }

    #[test]
    fn silence_and_half_messages_end() {
        let ms = Duration::from_millis;
        let (mut a, b) = UnixStream::pair().unwrap();
        let late = |r: Result<Option<Message>>| r.err().map(|e| e.kind()) == Some(ErrorKind::TimedOut);
        assert!(late(Inbox::default().receive_within(&b, Some(ms(20)), ms(20))));
        send(&a, Header { id: 3, ..Default::default() }, &[&[5; 100]], &[]).unwrap();
        assert_eq!(Inbox::default().receive_within(&b, None, ms(20)).unwrap().unwrap().body, [5; 100]);
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
            assert!(Inbox::default().receive_within(&b, None, ms(60)).is_err(), "{half}");
            trickle.join().unwrap();
        }
        a.write_all(&whole[..7]).unwrap();
        drop(a);
        assert_eq!(Inbox::default().receive_within(&b, None, ms(1000)).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    /// A message has [`MAX_FDS`] descriptors at most, in however many pieces they come.
    #[test]
    fn descriptors_do_not_pile_up() {
        let (a, b) = UnixStream::pair().unwrap();
        let file = std::fs::File::open("/proc/self/mem").unwrap();
        let fds = vec![file.as_raw_fd(); MAX_FDS];
        let whole = Header { size: 20, ..Default::default() };
        for byte in whole.as_bytes() {
            send_some(&a, &[*byte], &fds).unwrap();
        }
        drop(a);
        assert_eq!(Inbox::default().receive(&b).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn what_cannot_be_a_message_is_an_error() {
        for size in [0u32, 15, MAX_MESSAGE as u32 + 1, u32::MAX] {
            let (mut a, b) = UnixStream::pair().unwrap();
            a.write_all(Header { size, ..Default::default() }.as_bytes()).unwrap();
            assert!(Inbox::default().receive(&b).is_err(), "{size}");
        }
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(&[1; 5]).unwrap();
        drop(a);
        assert!(Inbox::default().receive(&b).is_err());
    }
}
