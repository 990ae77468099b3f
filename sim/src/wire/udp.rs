//! Frames in UDP datagrams, one each, nothing around them: what QEMU's `-netdev dgram` speaks.
use super::{Wire, MAX_FRAME, POLL};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};

/// A socket with a fixed other end.
pub struct Udp {
    socket: UdpSocket,
    remote: SocketAddr,
}

impl Udp {
    /// Receives at `local`, sends to `remote`.
    pub fn open(local: SocketAddr, remote: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(local).map_err(|e| io::Error::new(e.kind(), format!("{local}: {e}")))?;
        socket.set_read_timeout(Some(POLL))?;
        Ok(Self { socket, remote })
    }
}

impl Wire for Udp {
    fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send_to(frame, self.remote).map(drop)
    }

    fn receive(&self, buffer: &mut [u8; MAX_FRAME]) -> io::Result<Option<usize>> {
        match self.socket.recv_from(buffer) {
            // Only the other end of the cable is heard.
            Ok((n, from)) => Ok((from == self.remote).then_some(n)),
            // Refused: the other end is not there yet.
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted | ErrorKind::ConnectionRefused) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_go_both_ways_and_strangers_are_not_heard() {
        let [a, b] = ["127.0.0.1:47311", "127.0.0.1:47312"].map(|a| a.parse().unwrap());
        let (x, y) = (Udp::open(a, b).unwrap(), Udp::open(b, a).unwrap());
        let mut buffer = [0; MAX_FRAME];
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"stranger", b).unwrap();
        assert_eq!(y.receive(&mut buffer).unwrap(), None);
        x.send(&[7; 9000]).unwrap();
        assert_eq!(y.receive(&mut buffer).unwrap(), Some(9000));
        y.send(b"hello").unwrap();
        assert_eq!((x.receive(&mut buffer).unwrap(), &buffer[..5]), (Some(5), &b"hello"[..]));
        assert_eq!(x.receive(&mut buffer).unwrap(), None);
        assert!(Udp::open(a, b).is_err(), "the address is taken");
    }
}
