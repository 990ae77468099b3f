//! Client of the set-up protocol of `ferric_abi::target` over a UDP socket: queue pairs, keys and the receive ring of a card without a host.

use ferric_abi::codes::{TargetOp, TargetStatus};
use ferric_abi::target::{SetupReply, SetupRequest, MAGIC, PORT, VERSION};
use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

/// How long a request waits for its answer before it is sent again, and before the target counts as silent.
const TRY: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(1);

/// Why a request was not done.
#[derive(Debug)]
pub enum TargetError {
    /// The socket failed.
    Io(io::Error),
    /// No answer to any try.
    Silent,
    /// The target's own word.
    Refused(TargetStatus),
}

impl std::fmt::Display for TargetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(e) => write!(f, "{e}"),
            Self::Silent => write!(f, "the target does not answer on UDP port {PORT}: is its address right, is the lamp \"frame seen\" lit?"),
            Self::Refused(status) => write!(f, "the target refuses: {status:?}"),
        }
    }
}

impl std::error::Error for TargetError {}

impl From<io::Error> for TargetError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

/// What the target is to know of the peer's RC queue pair. Its addresses are those of this socket.
#[derive(Clone, Copy, Debug)]
pub struct PeerQp {
    /// The peer's number (24 bits), and the PSN of its first request.
    pub qpn: u32,
    /// See `qpn`.
    pub first_psn: u32,
    /// Keys of the same protection domain work for it.
    pub pd: u32,
    /// Partition key.
    pub pkey: u16,
    /// Path MTU: 1 is 256, 5 is 4096 bytes.
    pub mtu: u8,
    /// Bit 0: WRITE, 1: READ, 2: atomics.
    pub rights: u8,
}

fn tries(patience: Duration) -> u32 {
    patience.as_millis().div_ceil(TRY.as_millis()).clamp(1, 1 << 20) as u32
}

/// A target at the other end of a socket.
pub struct Target {
    socket: UdpSocket,
    seq: Cell<u32>,
    tries: u32,
}

impl Target {
    /// The target at `address`. Requests of this client are numbered from `seq` on: a number never used by this host before, the time for instance.
    pub fn at(address: IpAddr, seq: u32) -> Result<Self, TargetError> {
        Self::through(SocketAddr::new(address, PORT), seq)
    }

    fn through(address: SocketAddr, seq: u32) -> Result<Self, TargetError> {
        let any: SocketAddr = if address.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(TRY))?;
        Ok(Self { socket, seq: Cell::new(seq), tries: tries(PATIENCE) })
    }

    /// Waits so long, instead of a second, before the target counts as silent.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { tries: tries(patience), ..self }
    }

    /// Sends `request` until it is answered. Answers to earlier requests are passed over.
    fn ask(&self, op: TargetOp, request: SetupRequest) -> Result<SetupReply, TargetError> {
        let seq = self.seq.get().wrapping_add(1);
        self.seq.set(seq);
        let request = request.with_magic(MAGIC).with_version(VERSION).with_op(op as u8).with_seq(seq);
        for _ in 0..self.tries {
            self.socket.send(&request.0)?;
            loop {
                let mut bytes = [0; 65];
                match self.socket.recv(&mut bytes) {
                    Ok(64) => {
                        let reply = SetupReply(bytes[..64].try_into().expect("64 bytes"));
                        if reply.magic() != MAGIC || reply.seq() != seq || reply.op() != op as u8 {
                            continue;
                        }
                        return match TargetStatus::from_u8(reply.status()) {
                            Some(TargetStatus::Done) => Ok(reply),
                            status => Err(TargetError::Refused(status.unwrap_or(TargetStatus::Malformed))),
                        };
                    }
                    Ok(_) => {}
                    Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
                    Err(e) => return Err(e.into()),
                }
            }
        }
        Err(TargetError::Silent)
    }

    /// Counters, the ring, and the state of queue pair `qpn`.
    pub fn query(&self, qpn: u32) -> Result<SetupReply, TargetError> {
        self.ask(TargetOp::Query, SetupRequest::default().with_object(qpn))
    }

    /// A queue pair for `peer`; its number. One that this host has for the same peer's queue pair begins anew.
    pub fn create_qp(&self, peer: &PeerQp) -> Result<u32, TargetError> {
        let request = SetupRequest::default().with_peer_qpn(peer.qpn).with_first_psn(peer.first_psn).with_pd(peer.pd).with_pkey(peer.pkey);
        // RNR NAK timer 12: 0.64 ms.
        Ok(self.ask(TargetOp::CreateQp, request.with_pmtu(peer.mtu).with_rights(peer.rights).with_rnr_timer(12))?.object())
    }

    /// Ends a queue pair of this host: everything the target accepted through it is done.
    pub fn destroy_qp(&self, qpn: u32) -> Result<(), TargetError> {
        self.ask(TargetOp::DestroyQp, SetupRequest::default().with_object(qpn)).map(drop)
    }

    /// A key over `length` bytes of the target's memory from `start` on (addresses in requests count from the memory's first byte).
    pub fn create_key(&self, start: u32, length: u32, pd: u32, rights: u8) -> Result<u32, TargetError> {
        let request = SetupRequest::default().with_start(start).with_length(length).with_pd(pd).with_rights(rights);
        Ok(self.ask(TargetOp::CreateKey, request)?.object())
    }

    /// Ends a key of this host.
    pub fn destroy_key(&self, key: u32) -> Result<(), TargetError> {
        self.ask(TargetOp::DestroyKey, SetupRequest::default().with_object(key)).map(drop)
    }

    /// Lays the receive ring: 2^`log_count` slots of 2^`log_slot` bytes from `start` on. The index of its first message.
    pub fn set_ring(&self, start: u32, log_slot: u8, log_count: u8) -> Result<u16, TargetError> {
        let request = SetupRequest::default().with_start(start).with_log_slot(log_slot).with_log_count(log_count);
        Ok(self.ask(TargetOp::SetRing, request)?.ring_consumer())
    }

    /// Gives back the ring's slots before message `consumer`.
    pub fn release(&self, consumer: u16) -> Result<(), TargetError> {
        self.ask(TargetOp::Release, SetupRequest::default().with_consumer(consumer)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers after it was asked `lost` + 1 times, with an old answer in front.
    fn server(lost: usize, status: TargetStatus) -> (SocketAddr, std::thread::JoinHandle<SetupRequest>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut seen: Option<SetupRequest> = None;
            for n in 0..=lost {
                let mut bytes = [0; 100];
                let (len, from) = socket.recv_from(&mut bytes).unwrap();
                let request = SetupRequest(bytes[..len].try_into().unwrap());
                assert!(seen.is_none_or(|r| r == request), "a repetition is the same request");
                seen = Some(request);
                if n == lost {
                    let reply = SetupReply::default().with_magic(MAGIC).with_version(VERSION).with_op(request.op()).with_status(status as u8).with_object(7);
                    socket.send_to(&reply.with_seq(request.seq() - 1).0, from).unwrap();
                    socket.send_to(&reply.with_seq(request.seq()).0, from).unwrap();
                }
            }
            seen.unwrap()
        });
        (address, thread)
    }

    #[test]
    fn requests_are_repeated_until_they_are_answered() {
        let (address, thread) = server(2, TargetStatus::Done);
        let target = Target::through(address, 41).unwrap();
        let peer = PeerQp { qpn: 0x123, first_psn: 5, pd: 9, pkey: 0xffff, mtu: 3, rights: 7 };
        assert_eq!(target.create_qp(&peer).unwrap(), 7);
        let request = thread.join().unwrap();
        assert_eq!((request.seq(), request.op(), request.peer_qpn(), request.first_psn()), (42, TargetOp::CreateQp as u8, 0x123, 5));
        assert_eq!((request.pd(), request.pkey(), request.pmtu(), request.rights()), (9, 0xffff, 3, 7));
    }

    #[test]
    fn a_refusal_says_why() {
        let (address, thread) = server(0, TargetStatus::Full);
        let target = Target::through(address, 0).unwrap();
        assert!(matches!(target.create_key(0, 8, 0, 1), Err(TargetError::Refused(TargetStatus::Full))));
        thread.join().unwrap();
    }

    #[test]
    fn silence_is_an_error() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let target = Target::through(socket.local_addr().unwrap(), 0).unwrap().with_patience(Duration::from_millis(201));
        assert!(matches!(target.query(2), Err(TargetError::Silent)));
        socket.set_nonblocking(true).unwrap();
        assert_eq!(std::iter::from_fn(|| socket.recv(&mut [0; 100]).ok()).count(), 2, "two tries");
    }
}
