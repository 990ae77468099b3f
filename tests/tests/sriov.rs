//! Virtual functions of a served card that come and go as its physical function says.
use ferric_abi::codes::WrOpcode;
use ferric_abi::{csr, pci};
use ferric_driver::device::Device;
use ferric_driver::vfio_user::sriov::VirtualFunctions;
use ferric_driver::vfio_user::VfioUserDevice;
use ferric_driver::Error;
use ferric_sim::pci::{config, Endpoint, ServeConfig, Server};
use ferric_sim::virtio::FunctionConfig;
use ferric_sim::wire::WireConfig;
use ferric_sim::{Body, CardConfig, LinkConfig};
use ferric_tests::served::{alone, open, scratch, selfish, Ferric};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

const FERRIC: &str = env!("CARGO_BIN_EXE_ferric-under-test");
/// Virtual functions of the card.
const VFS: u16 = 3;

/// A twin with the wire plugged into itself: its physical function, its virtual ones, and a virtio function behind them.
fn card() -> (MutexGuard<'static, ()>, Server, Vec<PathBuf>) {
    let alone = alone();
    let dir = scratch();
    let functions = VFS + 1;
    let sockets: Vec<PathBuf> = (0..=functions).map(|f| dir.join(format!("f{f}.sock"))).collect();
    let endpoints = sockets.iter().zip(0..).map(|(s, function)| Endpoint { card: 0, function, socket: s.clone() }).collect();
    let card = CardConfig { body: Body::Twin, functions: functions.into(), virtio: vec![FunctionConfig::new(0, functions)], ..ServeConfig::card(64) };
    let config = ServeConfig { cards: vec![card], endpoints, wire: WireConfig::Loop, link: LinkConfig::default(), shared: false, sriov: true, capture: None, seed: 1 };
    (alone, Server::start(&config).expect("a server"), sockets)
}

/// Nobody is let in there, for there is no such function.
fn is_absent(socket: &Path) -> bool {
    match VfioUserDevice::connect(socket) {
        Err(Error::Open { errno, mend, .. }) => errno == libc::ENODEV && mend.contains("ferric vf enable"),
        _ => false,
    }
}

fn exchange(device: Arc<VfioUserDevice>) {
    let (mut party, address) = selfish(device).expect("a queue pair");
    party.exchange(0, WrOpcode::Write, &address).expect("a message");
}

/// The function's user has been told that it is gone, within the second that the specification gives software.
fn goes(device: &VfioUserDevice) -> bool {
    let end = Instant::now() + Duration::from_secs(1);
    // It finds out when it asks something.
    while device.read32(csr::MAGIC) != u32::MAX && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    device.is_gone()
}

#[test]
fn virtual_functions_come_and_go() {
    let (_alone, _server, sockets) = card();
    assert!(sockets[1..=usize::from(VFS)].iter().all(|socket| is_absent(socket)));
    let physical = open(&sockets[0]);
    let found = physical.virtual_functions().unwrap().expect("a physical function");
    let VirtualFunctions { total, enabled, offset, stride, device, bars, .. } = &found;
    assert_eq!((*total, *enabled, *offset, *stride, *device), (VFS, 0, 1, 1, pci::VF_DEVICE_ID));
    assert_eq!(bars, &[(pci::BAR_WINDOW, pci::BAR_WINDOW_SIZE.into()), (pci::BAR_MSIX, pci::BAR_MSIX_SIZE.into())]);
    assert!(matches!(physical.set_virtual_functions(VFS + 1), Err(Error::Open { errno: libc::ERANGE, .. })));

    physical.set_virtual_functions(2).unwrap();
    assert!(is_absent(&sockets[3]));
    let virtuals = [open(&sockets[1]), open(&sockets[2])];
    assert_eq!(virtuals[0].virtual_functions().unwrap(), None, "one of them has none itself");
    assert!(matches!(virtuals[0].set_virtual_functions(1), Err(Error::Unsupported(_))));
    virtuals.iter().for_each(|device| exchange(device.clone()));
    exchange(physical.clone());

    // All go; whoever uses the physical function notices nothing.
    let held = selfish(virtuals[0].clone()).expect("a queue pair");
    let (mut party, address) = selfish(physical.clone()).expect("a queue pair");
    physical.set_virtual_functions(0).unwrap();
    assert!(virtuals.iter().all(|device| goes(device)), "a function is there no more and has a user");
    assert!(is_absent(&sockets[1]) && is_absent(&sockets[2]));
    party.exchange(0, WrOpcode::Write, &address).expect("the physical function goes on");
    drop((party, held));

    // They come back as new ones.
    physical.set_virtual_functions(VFS).unwrap();
    sockets[1..=usize::from(VFS)].iter().for_each(|socket| exchange(open(socket)));
    // Fewer than before, in one call.
    let last = open(&sockets[3]);
    physical.set_virtual_functions(1).unwrap();
    assert!(goes(&last) && is_absent(&sockets[3]));
    exchange(open(&sockets[1]));
}

#[test]
fn a_physical_function_that_is_reset_has_no_virtual_ones() {
    let (_alone, _server, sockets) = card();
    let ways: [fn(Arc<VfioUserDevice>); 3] = [
        |physical| physical.reset().unwrap(),
        // Function-level reset.
        |physical| physical.write_config(config::DEVICE_CONTROL as u32, &0x8000u16.to_le_bytes()).unwrap(),
        // Its owner goes.
        drop,
    ];
    for way in ways {
        let physical = open(&sockets[0]);
        physical.set_virtual_functions(2).unwrap();
        let virtuals = [open(&sockets[1]), open(&sockets[2])];
        exchange(virtuals[1].clone());
        way(physical);
        assert!(virtuals.iter().all(|device| goes(device)));
        assert!(is_absent(&sockets[1]));
    }
    assert_eq!(open(&sockets[0]).virtual_functions().unwrap().unwrap().enabled, 0);
}

#[test]
fn their_memory_answers_when_the_physical_function_says_so() {
    let (_alone, _server, sockets) = card();
    let physical = open(&sockets[0]);
    physical.set_virtual_functions(1).unwrap();
    let device = open(&sockets[1]);
    assert_eq!(device.read32(csr::MAGIC), csr::MAGIC_VALUE);
    for (control, value) in [(config::VF_ENABLE, u32::MAX), (config::VF_ENABLE | config::VF_MEMORY, csr::MAGIC_VALUE)] {
        physical.write_config(config::SRIOV_CONTROL as u32, &control.to_le_bytes()).unwrap();
        assert_eq!(device.read32(csr::MAGIC), value);
    }
    assert!(!device.is_gone());
}

/// pciutils knows nothing of our code.
#[test]
fn lspci_reads_what_is_dumped() {
    let (_alone, _server, sockets) = card();
    // Nobody has enabled the others.
    let shown = Command::new(FERRIC).args(["card", "dump"]).args([&sockets[0], &sockets[4]]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    let file = sockets[0].with_extension("dump");
    std::fs::write(&file, &shown.stdout).unwrap();
    let lspci = Command::new("lspci").arg("-F").arg(&file).arg("-vvv").output().expect("lspci: ./scripts/setup installs it");
    let text = String::from_utf8_lossy(&lspci.stdout).into_owned();
    assert!(lspci.status.success() && !text.contains("<chain") && !text.contains("<access denied>"), "{lspci:?}");
    for line in [
        "Single Root I/O Virtualization (SR-IOV)",
        "Initial VFs: 3, Total VFs: 3, Number of VFs: 0, Function Dependency Link: 00",
        "VF offset: 1, stride: 1, Device ID: 0c02",
        "Supported Page Size: 00000553, System Page Size: 00000001",
        "VirtIO: CommonCfg",
        "VirtIO: Notify",
        "VirtIO: ISR",
        "VirtIO: DeviceCfg",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
    let refused = Command::new(FERRIC).args(["card", "dump"]).arg(&sockets[1]).output().unwrap();
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("ferric vf enable"), "{refused:?}");
}

#[test]
fn the_command_holds_them() {
    let _alone = alone();
    let socket = scratch().join("card.sock");
    let [card, first] = [socket.clone(), socket.with_extension("sock.1")].map(|path| path.to_str().unwrap().to_owned());
    let mut server = Ferric::start(FERRIC, &["card", "serve", "--twin", "--socket", &card, "--vfs", "7", "--wire", "loop"]);
    server.line("ready");
    let mut command = Ferric::start(FERRIC, &["vf", "enable", &card, "5"]);
    assert_eq!(command.line("up to"), "up to 7 virtual functions, device 0c02, the first 1 behind the physical one, 1 from one to the next");
    command.line("5 enabled");
    command.line("ready");
    let device = open(Path::new(&first));
    exchange(device.clone());
    assert!(is_absent(&socket.with_extension("sock.6")) && !is_absent(&socket.with_extension("sock.5")));
    command.signal(libc::SIGINT);
    assert!(command.finish());
    assert!(goes(&device) && is_absent(Path::new(&first)));
    let refused = Command::new(FERRIC).args(["vf", "enable", &card, "8"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("8 virtual functions are wanted, and the card has 7"), "{refused:?}");
}
