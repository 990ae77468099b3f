//! The memory target as a board, the ECPIX-5's top behind its RGMII pins, on a wire of the host.
use crate::capture::Capture;
use crate::error::Error;
use crate::service::Service;
use crate::wire::{pump, Wire, WireConfig};
use ferric_hdl::board::ecpix5::Pins;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Frames that wait in front of the pins, and in front of those.
const QUEUE: usize = 4;
const BACKLOG: usize = 512;
/// Cycles between looks at the wire while something moves.
const BURST: u64 = 64;
/// Cycles behind the last frame for which the board runs at full speed: more than any request takes.
const LINGER: u64 = 20_000;
/// Sleep between looks while nothing moves, and the cycles run then.
const IDLE: Duration = Duration::from_millis(8);
const IDLE_CYCLES: u64 = 64;

/// What to serve.
#[derive(Clone, Debug)]
pub struct BoardConfig {
    /// What the Ethernet pins are plugged into.
    pub wire: WireConfig,
    /// Write a pcapng of the wire here.
    pub capture: Option<PathBuf>,
}

/// What a board has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct BoardCounters {
    /// Cycles of 8 ns.
    pub cycles: u64,
    /// Frames that came to the pins and left them.
    pub frames: [u64; 2],
    /// Frames from the wire that the simulation was too slow for.
    pub dropped: u64,
}

#[derive(Default)]
struct Shared {
    cycles: AtomicU64,
    frames: [AtomicU64; 2],
}

/// The simulation and its ways out.
struct Engine {
    pins: Pins,
    wire: Arc<dyn Wire>,
    capture: Option<Capture>,
    shared: Arc<Shared>,
    started: Instant,
    /// Cycle of the last frame.
    moved: u64,
}

impl Engine {
    fn run(mut self, stop: &AtomicBool, frames: &Receiver<Vec<u8>>) {
        while !stop.load(Ordering::Relaxed) {
            while self.pins.waiting() < QUEUE {
                let Ok(frame) = frames.try_recv() else { break };
                self.push(&frame);
            }
            if self.pins.waiting() > 0 || self.pins.cycles() - self.moved < LINGER {
                self.burst(BURST);
                continue;
            }
            match frames.recv_timeout(IDLE) {
                Ok(frame) => self.push(&frame),
                Err(RecvTimeoutError::Timeout) => self.burst(IDLE_CYCLES),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn push(&mut self, frame: &[u8]) {
        self.note(0, frame);
        self.pins.push(frame);
    }

    fn burst(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.pins.cycle());
        self.shared.cycles.store(self.pins.cycles(), Ordering::Relaxed);
        while let Some(frame) = self.pins.pop() {
            self.note(1, &frame);
            if let Err(e) = self.wire.send(&frame) {
                // The other end is not there: as with a cable that is not plugged in.
                log::debug!("a frame is lost: {e}");
            }
        }
    }

    /// A frame has moved, 0: towards the pins, 1: from them.
    fn note(&mut self, way: usize, frame: &[u8]) {
        self.moved = self.pins.cycles();
        self.shared.frames[way].fetch_add(1, Ordering::Relaxed);
        let nanos = self.started.elapsed().as_nanos() as u64;
        // As in captures of cards: 1 is from the board, 2 to it.
        if let Some(Err(e)) = self.capture.as_mut().map(|c| c.frame_at(nanos, 2 - way as u32, frame, None)) {
            log::error!("{e}");
            self.capture = None;
        }
    }
}

/// A board being served. Ends with [`BoardServer::stop`] or when dropped.
pub struct BoardServer {
    shared: Arc<Shared>,
    dropped: Arc<AtomicU64>,
    service: Service,
}

impl BoardServer {
    /// Builds the board and plugs it in. When this returns it answers.
    pub fn start(config: &BoardConfig) -> Result<Self, Error> {
        let fail = |what: String| Error::Serve(what);
        let wire = config.wire.open().map_err(|e| fail(format!("wire {}: {e}", config.wire)))?;
        let wire = wire.ok_or_else(|| fail(format!("a board's wire goes to the host: udp, tap, packet or loop, not {}", config.wire)))?;
        let capture = config.capture.as_deref().map(Capture::create).transpose()?;
        let pins = Pins::new().map_err(Error::Gateware)?;
        let (shared, dropped): (Arc<Shared>, Arc<AtomicU64>) = Default::default();
        let mut service = Service::new("board");
        let (to_board, frames) = sync_channel(BACKLOG);
        let engine = Engine { pins, wire: wire.clone(), capture, shared: shared.clone(), started: Instant::now(), moved: 0 };
        let ends = service.stopped();
        service.push(std::thread::spawn(move || engine.run(&ends, &frames)));
        service.push(pump(wire, service.stopped(), dropped.clone(), move |frame| to_board.try_send(frame).is_ok()));
        Ok(Self { shared, dropped, service })
    }

    /// What has happened so far.
    pub fn counters(&self) -> BoardCounters {
        let frames = [0, 1].map(|way| self.shared.frames[way].load(Ordering::Relaxed));
        BoardCounters { cycles: self.shared.cycles.load(Ordering::Relaxed), frames, dropped: self.dropped.load(Ordering::Relaxed) }
    }

    /// The simulation has ended although nobody asked it to.
    pub fn has_died(&self) -> bool {
        self.service.has_died()
    }

    /// Ends everything.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for BoardServer {
    fn drop(&mut self) {
        self.service.end(|| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{udp::Udp, MAX_FRAME};
    use ferric_abi::wire::{Arp, Eth};
    use ferric_hdl::memory_target::{IP, MAC};

    #[test]
    fn a_board_answers_at_its_wire() {
        let [board, peer] = ["127.0.0.1:47321", "127.0.0.1:47322"].map(|a| a.parse().unwrap());
        let ours = Udp::open(peer, board).unwrap();
        let capture = std::env::temp_dir().join(format!("ferric-board-{}.pcapng", std::process::id()));
        let server = BoardServer::start(&BoardConfig { wire: WireConfig::Udp { local: board, remote: peer }, capture: Some(capture.clone()) }).unwrap();
        let arp = |oper, sha, spa, tha, tpa| Arp::default().with_htype(1).with_ptype(0x800).with_hlen(6).with_plen(4).with_oper(oper).with_sha(sha).with_spa(spa).with_tha(tha).with_tpa(tpa);
        let (mac, ip) = (0x0200_5e00_0002, 0x0a00_0002);
        let request = [&Eth::default().with_dst(u64::MAX).with_src(mac).with_ethertype(0x806).0[..], &arp(1, mac, ip, 0, IP).0[..]].concat();
        ours.send(&request).unwrap();
        let mut buffer = [0; MAX_FRAME];
        let n = (0..600).find_map(|_| ours.receive(&mut buffer).unwrap()).expect("an answer within a minute");
        // Padded to the shortest frame.
        assert_eq!(n, 60);
        assert_eq!(buffer[..14], Eth::default().with_dst(mac).with_src(MAC).with_ethertype(0x806).0);
        assert_eq!(buffer[14..42], arp(2, MAC, IP, mac, ip).0);
        let c = server.counters();
        assert_eq!((c.frames, c.dropped), ([1, 1], 0));
        server.stop();
        assert!(capture.metadata().unwrap().len() > 100);
        std::fs::remove_file(capture).unwrap();
    }

    #[test]
    fn a_board_needs_a_wire_of_the_host() {
        let start = |wire| BoardServer::start(&BoardConfig { wire, capture: None }).err().expect("an error").to_string();
        assert!(start(WireConfig::Peer).contains("not peer"));
        assert!(start(WireConfig::None).contains("not none"));
    }
}
