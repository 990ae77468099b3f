//! `ferric vhost-user`: a network card for a QEMU guest's stock driver on a card that has no virtio of its own (docs/virtio.md). The guest's rings are software here, its frames go through a raw
//! queue pair of a function of the card, and are copied on the way.
pub mod bridge;
mod early;
pub mod guest;
pub mod ring;

use crate::device;
use crate::raw::{Port, VECTOR};
use bridge::{Bridge, Counts};
use ferric_driver::types::Mac;
use ferric_driver::{Config, Context};
use guest::Guest;
use std::error::Error;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use vhost::vhost_user::{BackendReqHandler, Error as Said};
use vmm_sys_util::eventfd::{EventFd, EFD_CLOEXEC, EFD_NONBLOCK};

/// How long nobody looks whether it is to end, and how long between two looks at a ring whose driver does not tell.
const PATIENCE: Duration = Duration::from_millis(100);
const SILENT: Duration = Duration::from_millis(1);
/// Most frames that the card holds in each direction.
const MOST_FRAMES: u64 = 4096;

/// Options.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Device: function 0, or one whose tunnel has `raw`.
    pub device: String,
    /// Where front ends connect (QEMU: -chardev socket,path=PATH); one at a time.
    #[arg(long)]
    pub socket: PathBuf,
    /// MAC address of the guest's card (QEMU: mac=), up to 4. Only frames to these and to groups reach the guest, and it sends from no others. Without it the guest gets all that the card hears, and may send what it likes.
    #[arg(long)]
    pub mac: Vec<Mac>,
    /// Frames that the card holds in each direction.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=MOST_FRAMES))]
    pub frames: u64,
    /// Print the counts at the end as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Serves until SIGINT or SIGTERM.
pub fn run(o: &Options) -> Result<(), Box<dyn Error>> {
    if o.mac.len() > ferric_abi::csr::STATIONS as usize {
        return Err("a function has 4 MAC addresses: say --mac 4 times at most, or not at all".into());
    }
    if let Some(group) = o.mac.iter().find(|mac| mac.0[0] & 1 == 1) {
        return Err(format!("{group} is the address of a group: the second digit of a card's own is even").into());
    }
    crate::serve::catch_signals();
    let ctx = Context::open(device::open(&o.device)?, Config::default())?;
    let mut bridge = Bridge::new(Port::open(&ctx, o.frames as usize, &o.mac)?, &o.mac);
    let listener = ferric_sim::pci::listen(&o.socket)?;
    crate::serve::ready(&format!(": {} is served at {}", o.device, o.socket.display()));
    let end = serve(&mut bridge, &ctx, &listener, &crate::serve::stopped);
    _ = std::fs::remove_file(&o.socket);
    report(&bridge.counts, o.json)?;
    end
}

fn report(counts: &Counts, json: bool) -> Result<(), Box<dyn Error>> {
    let value = serde_json::to_value(counts)?;
    if json {
        println!("{value}");
    } else {
        value.as_object().into_iter().flatten().for_each(|(name, n)| println!("{name:24} {n}"));
    }
    Ok(())
}

/// A front end.
struct Session {
    stream: UnixStream,
    messages: BackendReqHandler<Mutex<Guest>>,
    guest: Arc<Mutex<Guest>>,
}

impl Session {
    fn new(stream: UnixStream) -> std::io::Result<Self> {
        stream.set_nonblocking(false)?;
        let guest = Arc::new(Mutex::new(Guest::default()));
        Ok(Self { messages: BackendReqHandler::from_stream(stream.try_clone()?, guest.clone()), stream, guest })
    }

    /// Takes a message and answers it.
    fn hear(&mut self) -> Result<(), Said> {
        // Unlocked before the other way is gone, which locks.
        let early = early::enable(&self.stream, &mut lock(&self.guest));
        early.unwrap_or_else(|| self.messages.handle_request())
    }
}

/// One thread does all work: nobody else locks for longer than a look.
fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

/// Serves front ends that come to `listener`, one after the other, until `stop`. Errors: the card is gone or does what it should not. What a front end does is no error of ours: it is sent away.
pub fn serve(bridge: &mut Bridge, ctx: &Context, listener: &UnixListener, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), Box<dyn Error>> {
    listener.set_nonblocking(true)?;
    let rung = EventFd::new(EFD_NONBLOCK | EFD_CLOEXEC)?;
    let over = std::sync::atomic::AtomicBool::new(false);
    let current: Mutex<Option<UnixStream>> = Mutex::new(None);
    std::thread::scope(|scope| {
        // Devices say no descriptor that could be waited for along with the others.
        scope.spawn(|| {
            let over = || over.load(std::sync::atomic::Ordering::Relaxed);
            while !over() && !stop() {
                match ctx.device().wait_interrupt(VECTOR, PATIENCE) {
                    Ok(false) => {}
                    Ok(true) => _ = rung.write(1),
                    Err(_) => break,
                }
            }
            _ = rung.write(1);
            // A front end may have said half of something: nobody waits for the rest.
            while !over() {
                if let (true, Some(stream)) = (stop() || ctx.device().is_gone(), &*lock(&current)) {
                    _ = stream.shutdown(std::net::Shutdown::Both);
                }
                std::thread::sleep(SILENT);
            }
        });
        let end = turns(bridge, listener, &rung, &current, stop);
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        end
    })
}

fn turns(bridge: &mut Bridge, listener: &UnixListener, rung: &EventFd, current: &Mutex<Option<UnixStream>>, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), Box<dyn Error>> {
    let mut session: Option<Session> = None;
    let mut more = true;
    while !stop() {
        if bridge.is_gone() {
            return Err("the card is gone: see why, and start again; QEMU connects again by itself if its chardev has reconnect-ms=1000".into());
        }
        let said = wait(session.as_ref(), listener, rung, more);
        match &mut session {
            None if said => {
                if let Ok((stream, _)) = listener.accept() {
                    *lock(current) = Some(stream.try_clone()?);
                    session = Some(Session::new(stream)?);
                    bridge.counts.connections += 1;
                    log::info!("a front end has come");
                }
            }
            Some(s) if said => {
                if let Err(e) = s.hear() {
                    if !stop() && !is_leave(&e) {
                        bridge.counts.rejected_connections += 1;
                        log::warn!("the front end is sent away: {e}");
                    }
                    log::info!("the front end has gone");
                    *lock(current) = None;
                    session = None;
                }
            }
            _ => {}
        }
        more = match &session {
            None => bridge.carry(None)?,
            Some(s) => bridge.carry(Some(&mut lock(&s.guest)))?,
        };
    }
    Ok(())
}

/// A front end that has ended, and nothing worse.
fn is_leave(e: &Said) -> bool {
    matches!(e, Said::Disconnected | Said::PartialMessage | Said::SocketBroken(_))
}

/// Waits until there is something to do, not at all if there is `more`. True: a front end comes, or says something.
fn wait(session: Option<&Session>, listener: &UnixListener, rung: &EventFd, more: bool) -> bool {
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut guest = session.map(|s| lock(&s.guest));
    let mut fds = vec![entry(session.map_or(listener.as_raw_fd(), |s| s.stream.as_raw_fd())), entry(rung.as_raw_fd())];
    let mut patience = if more { Duration::ZERO } else { PATIENCE };
    let mut rings = Vec::new();
    for ring in guest.iter_mut().flat_map(|g| g.parts().1) {
        if ring.is_silent() {
            patience = patience.min(SILENT);
        }
        // A negative descriptor is one that is not looked at.
        fds.push(entry(ring.kick().map_or(-1, |k| k.as_raw_fd())));
        rings.push(ring);
    }
    // SAFETY: as many valid entries as are said.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, patience.as_millis() as i32) };
    _ = rung.read();
    for (ring, fd) in rings.into_iter().zip(&fds[2..]) {
        if fd.revents != 0 && !ring.kicked(fd.revents == libc::POLLIN) {
            log::warn!("a kick that is no event; its ring stands until the front end starts it again");
        }
    }
    fds[0].revents != 0
}
