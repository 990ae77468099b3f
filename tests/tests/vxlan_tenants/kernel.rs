//! The kernel's own VXLAN device is the other end of a tenant's tunnel: ordinary traffic of a tap goes through the tenant's raw queue pair and the card's tunnel to a bridge behind that device, and back.
use super::*;
use ferric_sim::wire::{pump, Wire, WireConfig};
use ferric_tests::programs::skipped;
use ferric_tests::raw::{raw, Raw};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const VNI: u32 = 100;
/// The underlay: the card, and the kernel.
const UNDER_MACS: [Mac; 2] = [Mac([6, 0, 0, 0, 0, 1]), Mac([6, 0, 0, 0, 0, 2])];
const UNDER: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];
/// The tenant's own MAC address and network.
const TENANT_MAC: Mac = Mac([2, 0, 0, 0, 7, 9]);
const INSIDE: [[u8; 4]; 2] = [[10, 7, 0, 1], [10, 7, 0, 2]];
const PORT: u16 = 5001;
/// How long everything together may take.
const LONG: Duration = Duration::from_secs(300);
/// Frames at a time: fewer than the queue pair has receives.
const BURST: usize = 16;
/// Cycles of the card at a time.
const STRETCH: u64 = 400;

/// Two network namespaces, which go with this.
struct Spaces([String; 2]);

fn ip(args: &str) -> Result<(), String> {
    let done = Command::new("ip").args(args.split_whitespace()).output().map_err(|e| e.to_string())?;
    if done.status.success() {
        Ok(())
    } else {
        Err(format!("ip {args}: {}", String::from_utf8_lossy(&done.stderr)))
    }
}

impl Spaces {
    fn new() -> Result<Self, String> {
        // Two tests of this process may be here at once.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let own = COUNT.fetch_add(1, Ordering::Relaxed);
        let spaces = Self(["under", "tenant"].map(|what| format!("ferric-{what}-{}-{own}", std::process::id())));
        spaces.0.iter().try_for_each(|name| ip(&format!("netns add {name}")))?;
        Ok(spaces)
    }

    /// Interfaces and addresses.
    fn furnish(&self) {
        let [under, tenant] = &self.0;
        let dotted = |ip: [u8; 4]| Ipv4Addr::from(ip).to_string();
        let mac = |mac: Mac| mac.0.map(|byte| format!("{byte:02x}")).join(":");
        let [card, kernel] = UNDER.map(dotted);
        let [guest, bridge] = INSIDE.map(dotted);
        let lines = [
            format!("-n {under} tuntap add u0 mode tap"),
            format!("-n {under} link set u0 address {} mtu 1600 up", mac(UNDER_MACS[1])),
            format!("-n {under} addr add {kernel}/24 dev u0"),
            format!("-n {under} link add vx type vxlan id {VNI} local {kernel} remote {card} dstport 4789 dev u0"),
            format!("-n {under} link add br0 type bridge"),
            format!("-n {under} link set vx mtu 1500 master br0 up"),
            format!("-n {under} link set br0 mtu 1500 up"),
            format!("-n {under} addr add {bridge}/24 dev br0"),
            format!("-n {tenant} tuntap add t0 mode tap"),
            format!("-n {tenant} link set t0 address {} mtu 1500 up", mac(TENANT_MAC)),
            format!("-n {tenant} addr add {guest}/24 dev t0"),
        ];
        lines.iter().for_each(|line| ip(line).unwrap());
    }

    fn program(&self, space: usize, args: &[&str]) -> Child {
        Command::new("ip").args(["netns", "exec", &self.0[space]]).args(args).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Runs `what` on a thread in a namespace.
    fn inside<T: Send + 'static>(&self, space: usize, what: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let file = File::open(format!("/run/netns/{}", self.0[space])).unwrap();
        std::thread::spawn(move || {
            // SAFETY: no memory involved; only this thread changes.
            assert_eq!(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            what()
        })
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        self.0.iter().for_each(|name| _ = ip(&format!("netns del {name}")));
    }
}

/// An interface of the kernel's, and what has come from it.
struct Tap {
    wire: Arc<dyn Wire>,
    came: Receiver<Vec<u8>>,
    stop: Arc<AtomicBool>,
}

impl Tap {
    fn new(netns: &str, name: &str) -> Self {
        let wire = WireConfig::Tap { netns: netns.into(), name: name.into() }.open().unwrap().unwrap();
        let ((give, came), stop) = (channel(), Arc::new(AtomicBool::new(false)));
        pump(wire.clone(), stop.clone(), Arc::new(AtomicU64::new(0)), move |frame| give.send(frame).is_ok());
        Self { wire, came, stop }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The card between the two taps, function 1's.
struct Card {
    pair: Pair,
    queue: Raw,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    under: Tap,
    tenant: Tap,
}

impl Card {
    /// Carries frames until something has happened.
    fn until(&mut self, mut done: impl FnMut() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < LONG, "the programs take too long");
            self.under.came.try_iter().take(BURST).for_each(|frame| self.pair.world().cards[0].receive(frame));
            self.tenant.came.try_iter().take(BURST).for_each(|frame| self.queue.send(&self.pair, &frame));
            self.pair.world().run(STRETCH);
            self.queue.heard().iter().for_each(|frame| self.tenant.wire.send(frame).unwrap());
            self.sent.lock().unwrap().drain(..).for_each(|frame| self.under.wire.send(&frame).unwrap());
        }
    }
}

/// Bytes of a stream, one way or the other.
fn bytes(way: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| pattern(way, i)).collect()
}

/// Writes the own bytes and reads the other's, all of them, at the same time.
fn exchange(mut stream: TcpStream, way: u64, len: usize) {
    let mut to = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || to.write_all(&bytes(way, len)).unwrap());
    let mut got = vec![0; len];
    stream.read_exact(&mut got).unwrap();
    writer.join().unwrap();
    assert!(got == bytes(1 - way, len), "every byte");
}

/// Pings of two lengths from both sides, one behind the other (ARP comes first), and a stream of `len` bytes each way.
fn through_the_kernel(body: Body, pings: &str, len: usize) {
    let spaces = match Spaces::new() {
        Ok(spaces) => spaces,
        Err(why) => return skipped("vxlan_tenants::kernel", &why),
    };
    spaces.furnish();
    let [under, tenant] = [Tap::new(&spaces.0[0], "u0"), Tap::new(&spaces.0[1], "t0")];
    let cards = [body, Body::Twin].map(|body| CardConfig { body, width: 64, engines: "vxlan", ..Default::default() });
    let pair = Pair::with_functions(&WorldConfig { cards: cards.to_vec(), ..Default::default() }, 2).unwrap();
    // The kernel finds the card by ARP.
    let ctx = &pair.hosts[0].ctx;
    ctx.set_address(0, Address { ip: UNDER[0].into(), mac: UNDER_MACS[0], vlan: None }).unwrap();
    ctx.set_tunnel(1, &TunnelConfig { raw: true, underlay_mtu: Some(1600), ..TunnelConfig::new(VNI, UNDER_MACS[0], UNDER[0].into(), UNDER_MACS[1], UNDER[1].into()) }).unwrap();
    pair.of(1)[0].ctx.set_station(3, TENANT_MAC).unwrap();
    let queue = raw(&pair.of(1)[0]).unwrap().listening();
    let sent = tap(&pair, true);
    let mut card = Card { pair, queue, sent, under, tenant };
    let [guest, bridge] = INSIDE.map(|ip| Ipv4Addr::from(ip).to_string());
    for (space, to) in [(1, &bridge), (0, &guest)] {
        for length in ["56", "1400"] {
            let mut ping = spaces.program(space, &["busybox", "ping", "-A", "-c", pings, "-s", length, "-w", "60", to]);
            card.until(|| ping.try_wait().unwrap().is_some());
            let said = ping.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            assert!(said.contains(&format!("{pings} packets transmitted, {pings} packets received")), "{said}");
        }
    }
    let server = spaces.inside(0, move || {
        let listener = TcpListener::bind((Ipv4Addr::from(INSIDE[1]), PORT)).unwrap();
        exchange(listener.accept().unwrap().0, 0, len);
    });
    let client = spaces.inside(1, move || {
        let start = Instant::now();
        let stream = loop {
            match TcpStream::connect((Ipv4Addr::from(INSIDE[1]), PORT)) {
                Ok(stream) => break stream,
                Err(e) => {
                    assert!(start.elapsed() < LONG, "{e}");
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        };
        exchange(stream, 1, len);
    });
    card.until(|| server.is_finished() && client.is_finished());
    [server, client].into_iter().for_each(|end| end.join().unwrap());
    // The device has seen no errors.
    let counts = spaces.program(0, &["ip", "-j", "-s", "link", "show", "dev", "vx"]).wait_with_output().unwrap();
    let counts = String::from_utf8_lossy(&counts.stdout).into_owned();
    assert!(counts.matches("\"errors\":0").count() == 2, "{counts}");
    let tunnel = card.pair.hosts[0].ctx.tunnel_counts().unwrap();
    assert!(tunnel.stripped() > 0 && tunnel.wrapped() > 0);
    assert_eq!([tunnel.outer_malformed(), tunnel.outer_csum(), tunnel.vxlan_flags(), tunnel.vni_unknown(), tunnel.remote_unknown(), tunnel.inner_short(), tunnel.ecn()], [0; 7]);
}

#[test]
fn a_tenant_of_a_card_and_the_kernel() {
    through_the_kernel(Body::Gateware, "5", 500_000);
}

#[test]
fn a_tenant_of_a_twin_and_the_kernel() {
    through_the_kernel(Body::Twin, "20", 10_000_000);
}
