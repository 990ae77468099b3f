//! Cards served in this process, and driver processes: what the tests of served cards start from.
use ferric_cli::party::{Address, Party, Shape, Trouble};
use ferric_driver::types::Mtu;
use ferric_driver::vfio_user::VfioUserDevice;
use ferric_sim::pci::{Endpoint, ServeConfig, Server};
use ferric_sim::wire::WireConfig;
use ferric_sim::LinkConfig;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// A fresh directory of this process under the system's temporary one.
pub fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let dir = std::env::temp_dir().join(format!("ferric-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    std::fs::create_dir_all(&dir).expect("a temporary directory");
    dir
}

/// One card with the wire plugged into itself; `functions` of it are served.
pub fn looped(functions: u16) -> (Server, Vec<PathBuf>) {
    let dir = scratch();
    let sockets: Vec<PathBuf> = (0..functions).map(|f| dir.join(format!("f{f}.sock"))).collect();
    let endpoints = sockets.iter().zip(0..).map(|(s, function)| Endpoint { card: 0, function, socket: s.clone() }).collect();
    let config = ServeConfig { cards: vec![ServeConfig::card(64)], endpoints, wire: WireConfig::Loop, link: LinkConfig::default(), capture: None, seed: 1 };
    (Server::start(&config).expect("a server"), sockets)
}

/// Opens a served function, concretely.
pub fn open(socket: &Path) -> Arc<VfioUserDevice> {
    Arc::new(VfioUserDevice::connect(socket).expect("the served card"))
}

/// The shape of a small exchange.
pub fn shape(last: u8) -> Shape {
    Shape { ip: IpAddr::from([10, 0, 0, last]), size: 3000, window: 4, mtu: Mtu::M1024, patience: Duration::from_secs(60) }
}

/// A queue pair connected to itself over a looped wire, on `device`.
pub fn selfish(device: Arc<VfioUserDevice>) -> Result<(Party, Address), Trouble> {
    let mut party = Party::open(device, shape(1))?;
    let address = party.address();
    party.connect(&address)?;
    Ok((party, address))
}
