//! The wire side of a served card or board: where its frames go and come from.
pub mod host;
pub mod udp;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest frame that is carried.
pub const MAX_FRAME: usize = 16 << 10;
/// How long a receiver waits before it looks whether it is to end.
pub const POLL: Duration = Duration::from_millis(100);

/// Carries whole Ethernet frames without FCS.
pub trait Wire: Send + Sync {
    /// Sends a frame.
    fn send(&self, frame: &[u8]) -> io::Result<()>;
    /// Receives a frame; `None` when none came within [`POLL`].
    fn receive(&self, buffer: &mut [u8; MAX_FRAME]) -> io::Result<Option<usize>>;
}

/// Which wire a card has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireConfig {
    /// None: frames end at the card's port.
    None,
    /// The second card of the same process.
    Peer,
    /// A plug that sends every frame back.
    Loop,
    /// One frame per UDP datagram, as QEMU's `-netdev dgram` has it.
    Udp {
        /// Where frames are received.
        local: SocketAddr,
        /// Where they are sent.
        remote: SocketAddr,
    },
    /// A tap device, made if there is none.
    Tap {
        /// Network namespace, this process's if empty.
        netns: String,
        /// Interface.
        name: String,
    },
    /// A packet socket on an interface.
    Packet {
        /// Network namespace, this process's if empty.
        netns: String,
        /// Interface.
        name: String,
    },
}

impl FromStr for WireConfig {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let address = |s: &str| s.parse::<SocketAddr>().map_err(|e| format!("`{s}` is not an address and port: {e}"));
        let interface = || {
            let (netns, name) = rest.rsplit_once('/').unwrap_or(("", rest));
            if name.is_empty() || name.len() > 15 || netns.contains('/') {
                return Err(format!("`{rest}` is not INTERFACE or NAMESPACE/INTERFACE"));
            }
            Ok((netns.to_string(), name.to_string()))
        };
        match kind {
            "none" if rest.is_empty() => Ok(Self::None),
            "peer" if rest.is_empty() => Ok(Self::Peer),
            "loop" if rest.is_empty() => Ok(Self::Loop),
            "udp" => {
                let (local, remote) = rest.split_once(',').ok_or("udp wants LOCAL,REMOTE, for example udp:127.0.0.1:7001,127.0.0.1:7002")?;
                Ok(Self::Udp { local: address(local)?, remote: address(remote)? })
            }
            "tap" => interface().map(|(netns, name)| Self::Tap { netns, name }),
            "packet" => interface().map(|(netns, name)| Self::Packet { netns, name }),
            _ => Err(format!("`{text}` is no wire: none, loop, peer, udp:LOCAL,REMOTE, tap:[NAMESPACE/]INTERFACE or packet:[NAMESPACE/]INTERFACE")),
        }
    }
}

impl fmt::Display for WireConfig {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let path = |netns: &str, name: &str| if netns.is_empty() { name.to_string() } else { format!("{netns}/{name}") };
        match self {
            Self::None => write!(f, "none"),
            Self::Peer => write!(f, "peer"),
            Self::Loop => write!(f, "loop"),
            Self::Udp { local, remote } => write!(f, "udp:{local},{remote}"),
            Self::Tap { netns, name } => write!(f, "tap:{}", path(netns, name)),
            Self::Packet { netns, name } => write!(f, "packet:{}", path(netns, name)),
        }
    }
}

impl WireConfig {
    /// Opens it. `None` for those that are no business of the host.
    pub fn open(&self) -> io::Result<Option<Arc<dyn Wire>>> {
        let wire: Arc<dyn Wire> = match self {
            Self::None | Self::Peer => return Ok(None),
            Self::Loop => Arc::new(Loop::default()),
            Self::Udp { local, remote } => Arc::new(udp::Udp::open(*local, *remote)?),
            Self::Tap { netns, name } => Arc::new(host::HostWire::tap(netns, name)?),
            Self::Packet { netns, name } => Arc::new(host::HostWire::packet(netns, name)?),
        };
        Ok(Some(wire))
    }
}

/// A thread that hands what comes from `wire` to `deliver`, until `stop` or the wire's end. Frames that `deliver` has no room for (false) are
/// counted in `dropped`.
pub fn pump(wire: Arc<dyn Wire>, stop: Arc<AtomicBool>, dropped: Arc<AtomicU64>, deliver: impl Fn(Vec<u8>) -> bool + Send + 'static) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = Box::new([0u8; MAX_FRAME]);
        while !stop.load(Ordering::Relaxed) {
            match wire.receive(&mut buffer) {
                Ok(Some(n)) if n >= 14 => {
                    if !deliver(buffer[..n].to_vec()) {
                        dropped.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(_) => {}
                Err(e) => {
                    log::error!("the wire has broken: {e}");
                    return;
                }
            }
        }
    })
}

/// Every frame comes back.
#[derive(Default)]
struct Loop {
    frames: Mutex<VecDeque<Vec<u8>>>,
    more: Condvar,
}

impl Wire for Loop {
    fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.frames.lock().unwrap_or_else(|e| e.into_inner()).push_back(frame.to_vec());
        self.more.notify_one();
        Ok(())
    }

    fn receive(&self, buffer: &mut [u8; MAX_FRAME]) -> io::Result<Option<usize>> {
        let frames = self.frames.lock().unwrap_or_else(|e| e.into_inner());
        let mut frames = self.more.wait_timeout_while(frames, POLL, |f| f.is_empty()).unwrap_or_else(|e| e.into_inner()).0;
        Ok(frames.pop_front().map(|f| {
            let n = f.len().min(MAX_FRAME);
            buffer[..n].copy_from_slice(&f[..n]);
            n
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_wrong_ones_refused() {
        for name in ["none", "peer", "loop", "udp:127.0.0.1:7001,127.0.0.1:7002", "udp:[::1]:1,[::1]:2", "tap:fe0", "packet:blue/veth1"] {
            assert_eq!(name.parse::<WireConfig>().unwrap().to_string(), name);
        }
        for name in ["", "udp", "udp:127.0.0.1,127.0.0.1", "tap:", "packet:a/b/c", "tap:averyveryverylongname", "peer:1", "carrier pigeon"] {
            assert!(name.parse::<WireConfig>().is_err(), "{name}");
        }
    }
}
