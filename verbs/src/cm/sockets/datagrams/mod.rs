//! Datagram rsockets: datagrams go between datagram queue pairs, and what two of these have to know of each other goes, with the first data, through a UDP socket of the kernel that has
//! the same address and port. So an interface of the machine has to have the card's address.
//!
//! * `wire`: the headers; `link`: the queue pair, and what completes on it.
//! * Here: the socket. Nothing happens outside the calls: a peer that does not know our queue pair yet hears of it when the program next looks at the socket.
mod link;
mod wire;

use super::options::Options;
use super::{last_errno, watch, SLICE};
use crate::cm::address::{address, sockaddr};
use crate::context::devices;
use crate::shared::lock;
use link::{Link, Way};
use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};
use wire::Introduction;

/// Datagrams that wait for the program at most; others stay where they are, and are lost when there is no room there either.
const MOST_WAITING: usize = 1024;
/// Peers whose queue pairs are remembered; when they are more, all are asked anew.
const MOST_PEERS: usize = 1024;
/// The longest datagram of UDP.
pub const LONGEST: usize = 65_536;
/// How long `rclose` waits for what has been posted.
const LINGER: Duration = Duration::from_secs(1);

/// A datagram socket.
pub struct Datagrams {
    /// Readable when the UDP socket or the completion channel is.
    fd: OwnedFd,
    inner: Mutex<Inner>,
}

/// A peer's queue pair.
struct Peer {
    qpn: u32,
    way: Way,
}

/// What a datagram socket has.
pub struct Inner {
    pub options: Options,
    v4: bool,
    udp: OwnedFd,
    /// Ways go before the queue pair.
    peers: HashMap<SocketAddr, Peer>,
    link: Option<Link>,
    /// The only peer, after `rconnect`.
    connected: Option<SocketAddr>,
    waiting: VecDeque<Received>,
    /// Where the kernel puts what comes by UDP.
    buffer: Vec<u8>,
    broken: Option<c_int>,
    closed: bool,
}

/// What `receive` gives: the sender, and the datagram.
pub type Received = (SocketAddr, Vec<u8>);

fn table() -> &'static RwLock<HashMap<c_int, Arc<Datagrams>>> {
    static TABLE: OnceLock<RwLock<HashMap<c_int, Arc<Datagrams>>>> = OnceLock::new();
    TABLE.get_or_init(RwLock::default)
}

/// A descriptor of a call that gives one.
fn owned(fd: c_int) -> Result<OwnedFd, c_int> {
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: a new descriptor, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// 0, or the error number of a call that gives -1.
fn done(r: isize) -> Result<usize, c_int> {
    usize::try_from(r).map_err(|_| last_errno())
}

impl Datagrams {
    /// A new one; its number. EMFILE and others of the system.
    pub fn add(v4: bool, options: Options) -> Result<c_int, c_int> {
        let family = if v4 { libc::AF_INET } else { libc::AF_INET6 };
        // SAFETY: no memory involved.
        let (udp, fd) = unsafe { (owned(libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0))?, owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        let number = fd.as_raw_fd();
        watch(number, udp.as_raw_fd())?;
        let inner = Inner { options, v4, udp, peers: HashMap::new(), link: None, connected: None, waiting: VecDeque::new(), buffer: Vec::new(), broken: None, closed: false };
        table().write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(Self { fd, inner: Mutex::new(inner) }));
        Ok(number)
    }

    /// The socket with a number.
    pub fn find(number: c_int) -> Option<Arc<Self>> {
        table().read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Takes it out of the table.
    pub fn remove(number: c_int) -> Option<Arc<Self>> {
        table().write().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }

    /// Its state, for one thread at a time.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Binds it. EINVAL: it has an address; EADDRNOTAVAIL: no card and interface has this one; EADDRINUSE.
    pub fn bind(&self, own: SocketAddr) -> Result<(), c_int> {
        let mut inner = self.lock();
        if inner.link.is_some() {
            return Err(libc::EINVAL);
        }
        self.link(&mut inner, own)
    }

    /// Makes the queue pair and gives the kernel's socket the address.
    fn link(&self, inner: &mut Inner, own: SocketAddr) -> Result<(), c_int> {
        if own.is_ipv4() != inner.v4 {
            return Err(libc::EAFNOSUPPORT);
        }
        // One that is bound to no card in particular has its queue pair on the first.
        let ip = if own.ip().is_unspecified() { inner.card()? } else { own.ip() };
        let link = Link::new(ip, inner.options.sizes)?;
        watch(self.fd.as_raw_fd(), link.fd())?;
        let (bytes, len) = sockaddr(own);
        // SAFETY: an address of so many bytes.
        done(unsafe { libc::bind(inner.udp.as_raw_fd(), bytes.0.as_ptr().cast(), len) } as isize).inspect_err(|n| {
            if *n == libc::EADDRNOTAVAIL {
                log::warn!("rsocket: datagram sockets need an interface of this machine with the card's address {ip}");
            }
        })?;
        inner.link = Some(link);
        Ok(())
    }

    /// It has an address: one of the first card's, if the program has not chosen.
    fn linked(&self, inner: &mut Inner) -> Result<(), c_int> {
        if inner.link.is_some() {
            return Ok(());
        }
        let own = SocketAddr::new(inner.card()?, 0);
        self.link(inner, own)
    }

    /// From now on `peer` is the only one.
    pub fn connect(&self, peer: SocketAddr) -> Result<(), c_int> {
        let mut inner = self.lock();
        if peer.is_ipv4() != inner.v4 {
            return Err(libc::EAFNOSUPPORT);
        }
        self.linked(&mut inner)?;
        inner.connected = Some(peer);
        inner.waiting.retain(|(from, _)| *from == peer);
        Ok(())
    }

    /// Sends a datagram, to the peer of `connect` if no other is named. EDESTADDRREQ: there is none; EMSGSIZE.
    pub fn send(&self, to: Option<SocketAddr>, data: &[u8], patient: bool) -> Result<usize, c_int> {
        let mut inner = self.lock();
        let to = to.or(inner.connected).ok_or(libc::EDESTADDRREQ)?;
        if to.is_ipv4() != inner.v4 {
            return Err(libc::EAFNOSUPPORT);
        }
        self.linked(&mut inner)?;
        self.until(inner, patient, None, |inner| inner.send(to, data).transpose()).map(|()| data.len())
    }

    /// The next datagram, which stays where it is if `peek` is set.
    pub fn receive(&self, peek: bool, patient: bool) -> Result<Received, c_int> {
        let inner = self.lock();
        self.until(inner, patient, None, |inner| {
            let next = if peek { inner.waiting.front().cloned() } else { inner.waiting.pop_front() };
            next.map(Ok)
        })
    }

    /// Lets go of everything, when what was posted is on its way.
    pub fn close(&self) {
        let inner = self.lock();
        let all = |inner: &Inner| inner.link.as_ref().is_none_or(Link::is_idle);
        let _ = self.until(inner, true, Some(Instant::now() + LINGER), |inner| all(inner).then_some(Ok(())));
        let mut inner = self.lock();
        inner.peers.clear();
        (inner.link, inner.closed) = (None, true);
    }

    /// Waits until `f` gives something. EAGAIN if it does not at once and `patient` is not set.
    fn until<'a, T>(&'a self, mut inner: MutexGuard<'a, Inner>, patient: bool, deadline: Option<Instant>, mut f: impl FnMut(&mut Inner) -> Option<Result<T, c_int>>) -> Result<T, c_int> {
        loop {
            inner.progress();
            if let Some(r) = f(&mut inner) {
                return r;
            }
            match inner.broken {
                _ if inner.closed => return Err(libc::EBADF),
                Some(n) => return Err(n),
                None if !patient || deadline.is_some_and(|d| Instant::now() >= d) => return Err(libc::EAGAIN),
                None => {}
            }
            if inner.arm() {
                continue;
            }
            drop(inner);
            let mut fds = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry.
            unsafe { libc::poll(&mut fds, 1, SLICE.as_millis() as c_int) };
            inner = self.lock();
            inner.disarm();
        }
    }
}

impl Inner {
    /// Address of the first card of the socket's family. ENODEV: there is none.
    fn card(&self) -> Result<IpAddr, c_int> {
        devices().iter().map(|d| d.named.ip).find(|ip| ip.is_ipv4() == self.v4).ok_or(libc::ENODEV)
    }

    /// The own address, once there is one.
    pub fn own(&self) -> Option<SocketAddr> {
        let mut bytes = [0u64; 16];
        let mut len = size_of_val(&bytes) as u32;
        // SAFETY: room for so many bytes; what the kernel writes is an address.
        unsafe {
            self.link.as_ref()?;
            (libc::getsockname(self.udp.as_raw_fd(), bytes.as_mut_ptr().cast(), &mut len) == 0).then(|| address(bytes.as_ptr().cast()).ok()).flatten()
        }
    }

    /// The peer of `connect`.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.connected
    }

    /// Why it is of no use any more.
    pub fn broken(&self) -> Option<c_int> {
        self.broken
    }

    /// Events of poll(2): something can be read, something can be sent.
    pub fn ready(&mut self) -> (bool, bool) {
        self.progress();
        (!self.waiting.is_empty(), self.link.as_ref().is_none_or(Link::can_send))
    }

    /// Asks to be told of the next completion; `true` if something has come meanwhile.
    pub fn arm(&mut self) -> bool {
        self.link.as_mut().is_some_and(Link::arm) && self.progress()
    }

    /// Takes out what makes the descriptor readable, and looks at everything.
    pub fn disarm(&mut self) {
        if let Some(link) = &mut self.link {
            link.disarm();
        }
        self.progress();
    }

    /// Through the kernel, with our queue pair's number in front.
    fn by_udp(&self, to: SocketAddr, data: Option<&[u8]>) -> Result<(), c_int> {
        let qpn = self.link.as_ref().ok_or(libc::EIO)?.qpn();
        let message = [&Introduction { data: data.is_some(), qpn, to: to.ip() }.to_bytes()[..], data.unwrap_or_default()].concat();
        let (bytes, len) = sockaddr(to);
        // SAFETY: slices of these lengths.
        done(unsafe { libc::sendto(self.udp.as_raw_fd(), message.as_ptr().cast(), message.len(), libc::MSG_NOSIGNAL, bytes.0.as_ptr().cast(), len) }).map(drop)
    }

    /// Sends; `None`: there is no room now.
    fn send(&mut self, to: SocketAddr, data: &[u8]) -> Result<Option<()>, c_int> {
        if let Some(n) = self.broken {
            return Err(n);
        }
        let port = self.own().ok_or(libc::EIO)?.port();
        let link = self.link.as_mut().ok_or(libc::EIO)?;
        let header = wire::sender_to_bytes(SocketAddr::new(link.ip().ok_or(libc::EIO)?, port));
        if header.len() + data.len() > link.most() {
            return Err(libc::EMSGSIZE);
        }
        let sent = match self.peers.get(&to) {
            Some(_) if !link.can_send() => return Ok(None),
            Some(peer) => link.send((&peer.way, peer.qpn), &header, data),
            None => self.by_udp(to, Some(data)),
        };
        match sent {
            Ok(()) => Ok(Some(())),
            Err(libc::EAGAIN) => Ok(None),
            Err(n) => Err(n),
        }
    }

    /// A datagram has come.
    fn came(&mut self, from: SocketAddr, data: &[u8]) {
        if self.connected.is_none_or(|peer| peer == from) {
            self.waiting.push_back((from, data.to_vec()));
        }
    }

    /// The next datagram of the kernel's socket; `false`: there is none.
    fn take_udp(&mut self) -> bool {
        let mut data = std::mem::take(&mut self.buffer);
        data.resize(LONGEST, 0);
        let some = self.take_udp_into(&mut data);
        self.buffer = data;
        some
    }

    fn take_udp_into(&mut self, data: &mut [u8]) -> bool {
        let mut bytes = [0u64; 16];
        let mut len = size_of_val(&bytes) as u32;
        // SAFETY: room for so many bytes of each.
        let n = unsafe { libc::recvfrom(self.udp.as_raw_fd(), data.as_mut_ptr().cast(), data.len(), 0, bytes.as_mut_ptr().cast(), &mut len) };
        let Ok(n) = usize::try_from(n) else {
            // Errors of what was sent before come here, too, and the next call goes on.
            return last_errno() == libc::ECONNREFUSED;
        };
        // SAFETY: an address of the kernel's.
        let Ok(from) = (unsafe { address(bytes.as_ptr().cast()) }) else { return true };
        let Some((introduction, data)) = Introduction::parse(&data[..n]).filter(|(i, _)| i.to.is_ipv4() == self.v4) else {
            log::debug!("rsocket: {n} bytes from {from} are not of an rsocket");
            return true;
        };
        if let Err(n) = self.introduced(from, introduction) {
            log::info!("rsocket: {from} cannot be answered, errno {n}");
        }
        if introduction.data {
            self.came(from, data);
        }
        true
    }

    /// A peer has said which queue pair it has.
    fn introduced(&mut self, from: SocketAddr, said: Introduction) -> Result<(), c_int> {
        if said.data {
            self.by_udp(from, None)?;
        }
        match self.peers.get_mut(&from) {
            Some(peer) => peer.qpn = said.qpn,
            None => {
                let way = self.link.as_ref().ok_or(libc::EIO)?.way(from.ip())?;
                if self.peers.len() >= MOST_PEERS {
                    self.peers.clear();
                }
                self.peers.insert(from, Peer { qpn: said.qpn, way });
            }
        }
        Ok(())
    }

    /// Looks at everything that has come. `true`: there was something.
    fn progress(&mut self) -> bool {
        if self.link.is_none() || self.broken.is_some() {
            return false;
        }
        let before = self.waiting.len();
        while self.waiting.len() < MOST_WAITING && self.take_udp() {}
        while self.waiting.len() < MOST_WAITING {
            match self.link.as_mut().map_or(Ok(None), Link::poll) {
                Ok(None) => break,
                Ok(Some(datagram)) => match wire::sender(&datagram) {
                    Some((from, data)) => self.came(from, data),
                    None => log::debug!("rsocket: a datagram without a header"),
                },
                Err(n) => {
                    self.broken = Some(n);
                    break;
                }
            }
        }
        self.waiting.len() > before
    }
}
