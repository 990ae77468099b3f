//! Wires that end in the host's network stack: tap devices and packet sockets, also in another network namespace.
use super::{Wire, MAX_FRAME, POLL};
use std::fs::File;
use std::io::{self, Error};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Every protocol, in network byte order.
const ETH_P_ALL: u16 = 3u16.to_be();
/// Packet socket option: do not show what this host sends on the interface.
const PACKET_IGNORE_OUTGOING: i32 = 23;
/// ioctl that turns an open tun file into an interface.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;

/// A file descriptor that reads and writes whole frames.
pub struct HostWire(OwnedFd);

fn check(result: i32, what: &str) -> io::Result<i32> {
    if result < 0 {
        let e = Error::last_os_error();
        return Err(Error::new(e.kind(), format!("{what}: {e}")));
    }
    Ok(result)
}

/// Runs `open` in a network namespace (`ip netns` name): on a thread of its own, which alone moves there.
fn inside<T: Send>(netns: &str, open: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    if netns.is_empty() {
        return open();
    }
    std::thread::scope(|s| {
        s.spawn(|| {
            let path = format!("/run/netns/{netns}");
            let file = File::open(&path).map_err(|e| Error::new(e.kind(), format!("{path}: {e}; make it: ip netns add {netns}")))?;
            // SAFETY: no memory involved; only this thread changes.
            check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, &format!("entering network namespace {netns} (needs CAP_SYS_ADMIN)"))?;
            open()
        })
        .join()
        .unwrap_or_else(|_| Err(Error::other("the thread in the namespace died")))
    })
}

fn name_bytes(name: &str) -> [libc::c_char; libc::IFNAMSIZ] {
    let mut bytes = [0; libc::IFNAMSIZ];
    bytes.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)).for_each(|(b, n)| *b = n as libc::c_char);
    bytes
}

impl HostWire {
    /// The tap device `name`.
    pub fn tap(netns: &str, name: &str) -> io::Result<Self> {
        inside(netns, || {
            let file = File::options().read(true).write(true).open("/dev/net/tun").map_err(|e| Error::new(e.kind(), format!("/dev/net/tun: {e}")))?;
            // SAFETY: all-zero is a valid ifreq.
            let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
            request.ifr_name = name_bytes(name);
            request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as _;
            // SAFETY: the request outlives the call.
            check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &request) }, &format!("tap {name} (make it yours: sudo ip tuntap add {name} mode tap user $USER)"))?;
            Ok(Self(file.into()))
        })
    }

    /// A packet socket on interface `name`.
    pub fn packet(netns: &str, name: &str) -> io::Result<Self> {
        inside(netns, || {
            // SAFETY: no memory involved.
            let fd = check(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, ETH_P_ALL as i32) }, "packet socket (needs CAP_NET_RAW)")?;
            // SAFETY: a new descriptor that nobody else owns.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            let text = name_bytes(name);
            // SAFETY: zero-terminated.
            let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
            if index == 0 {
                return Err(Error::new(io::ErrorKind::NotFound, format!("there is no interface {name}; see: ip link")));
            }
            let one = 1i32;
            // SAFETY: a valid option value.
            check(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, (&raw const one).cast(), 4) }, "packet socket")?;
            // SAFETY: all-zero is a valid sockaddr_ll.
            let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = ETH_P_ALL;
            address.sll_ifindex = index as i32;
            // SAFETY: a valid address of its size.
            check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as u32) }, name)?;
            Ok(Self(fd))
        })
    }
}

impl Wire for HostWire {
    fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the frame outlives the call.
        let n = unsafe { libc::write(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len()) };
        if n < 0 {
            Err(Error::last_os_error())
        } else {
            Ok(())
        }
    }

    fn receive(&self, buffer: &mut [u8; MAX_FRAME]) -> io::Result<Option<usize>> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry.
        if unsafe { libc::poll(&mut poll, 1, POLL.as_millis() as i32) } <= 0 {
            return Ok(None);
        }
        // SAFETY: the buffer outlives the call.
        let n = unsafe { libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match n {
            n if n >= 0 => Ok(Some(n as usize)),
            _ => match Error::last_os_error() {
                // The interface is down for now.
                e if matches!(e.raw_os_error(), Some(libc::ENETDOWN | libc::EAGAIN | libc::EINTR)) => Ok(None),
                e => Err(e),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_tap_and_a_packet_socket_are_two_ends_of_a_cable() {
        // A network of this thread's own, with nothing in it.
        // SAFETY: no memory involved; only this thread changes.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            eprintln!("not tested: this needs CAP_SYS_ADMIN");
            return;
        }
        let tap = HostWire::tap("", "fe0").unwrap();
        assert!(Command::new("ip").args(["link", "set", "fe0", "up"]).status().unwrap().success());
        let packet = HostWire::packet("", "fe0").unwrap();
        let mut buffer = [0; MAX_FRAME];
        // A type that no protocol of the kernel speaks; the kernel sends frames of its own (IPv6), which are passed over.
        let mut wait = |wire: &HostWire, frame: &[u8]| (0..20).any(|_| wire.receive(&mut buffer).unwrap().is_some_and(|n| buffer[..n] == *frame));
        let frame = |last: u8| [vec![2; 12], vec![0x88, 0xb5], vec![last; 100]].concat();
        tap.send(&frame(1)).unwrap();
        assert!(wait(&packet, &frame(1)), "from the tap device to the packet socket");
        packet.send(&frame(2)).unwrap();
        assert!(wait(&tap, &frame(2)), "from the packet socket to the tap device");
        assert!(!wait(&packet, &frame(2)), "the packet socket hears itself");
    }

    #[test]
    fn what_is_not_there_is_said() {
        let error = |r: io::Result<HostWire>| r.err().expect("an error").to_string();
        assert!(error(HostWire::tap("no-such-namespace", "fe0")).contains("ip netns add no-such-namespace"));
        let e = error(HostWire::packet("", "no-such-if"));
        assert!(e.contains("there is no interface no-such-if") || e.contains("CAP_NET_RAW"), "{e}");
    }
}
