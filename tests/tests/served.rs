//! A card that another process serves: isolation, exclusive use, reset under load, clients that send nonsense.
use ferric_abi::codes::{AdminOpcode, WrOpcode};
use ferric_abi::{csr, pci};
use ferric_cli::party::{Party, Trouble};
use ferric_driver::device::{Device, DmaAccess};
use ferric_driver::mapping::Mapping;
use ferric_driver::pages::{Pages, PAGE};
use ferric_driver::vfio_user::VfioUserDevice;
use ferric_driver::{Config, Context, Error};
use ferric_hdl::card::counters;
use ferric_sim::pci::config;
use ferric_sim::peer::PeerMemory;
use ferric_tests::served::{looped, open, selfish, shape};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn exchange(socket: &Path, opcode: WrOpcode) -> Result<(), Trouble> {
    let (mut party, address) = selfish(open(socket))?;
    for n in 0..2 {
        party.exchange(n, opcode, &address)?;
    }
    Ok(())
}

fn counter(ctx: &Context, name: &str) -> u64 {
    ctx.counters(counters::index(name).unwrap() as u32, 1).unwrap()[0]
}

fn config32(device: &VfioUserDevice, at: usize) -> u32 {
    let mut word = [0; 4];
    device.config(at as u32, &mut word).unwrap();
    u32::from_le_bytes(word)
}

#[test]
fn dma_stays_inside_what_is_mapped() {
    let (_alone, server, sockets) = looped(1);
    let device = open(&sockets[0]);
    let ctx = Context::open(device.clone(), Config::default()).unwrap();
    let memory = Pages::new(3 * PAGE).unwrap();
    let base = memory.ptr().as_ptr();
    // SAFETY: three pages of our own.
    unsafe { base.write_bytes(0xa5, 3 * PAGE) };
    // SAFETY: `memory` outlives the device. Its middle page alone is mapped, then its last one for reading only.
    let middle = unsafe { device.map(base.add(PAGE), PAGE, DmaAccess::ReadWrite, true) }.unwrap().iova();
    // SAFETY: as above.
    let last = unsafe { device.map(base.add(2 * PAGE), PAGE, DmaAccess::Read, true) }.unwrap().iova();
    let dump = |iova: u64| ctx.admin(AdminOpcode::QueryCounters, 0, &[iova as u32, (iova >> 32) as u32, 0, 8]);
    // SAFETY: no reference to these bytes exists.
    let untouched = |page: usize| (0..PAGE).all(|i| unsafe { base.add(page * PAGE + i).read_volatile() } == 0xa5);

    dump(middle).unwrap();
    assert!(!untouched(1), "the card did not write where it may");
    assert_eq!((server.counters(0).dma_refused, config32(&device, config::AER_UNCORRECTABLE)), (0, 0));
    let before = counter(&ctx, "dma_wr.write_errors");

    let outside = [middle + PAGE as u64, middle - 64, last, 0, 0x1234_5678_9000];
    for (i, iova) in outside.into_iter().enumerate() {
        let refused = server.counters(0).dma_refused;
        // The card says it was done or not; what counts is where it wrote.
        let _ = dump(iova);
        assert!(server.counters(0).dma_refused > refused, "the access to {iova:#x} was not refused");
        assert_eq!(config32(&device, config::AER_UNCORRECTABLE), config::ERROR_UNSUPPORTED);
        let logged = (config32(&device, config::AER_HEADER_LOG + 8) as u64) << 32 | config32(&device, config::AER_HEADER_LOG + 12) as u64;
        assert_eq!(logged, iova, "header log of access {i}");
        device.write_config(config::AER_UNCORRECTABLE as u32, &[0xff; 4]).unwrap();
    }
    assert!(untouched(0) && untouched(2), "the card has written memory that it was not given");
    assert!(counter(&ctx, "dma_wr.write_errors") >= before + outside.len() as u64);
    // A file that another device exported is reached past this process's memory.
    let gpu = PeerMemory::new(3 * PAGE as u64).unwrap();
    gpu.store(0, &[0xa5; 3 * PAGE]).unwrap();
    dump(device.map_dmabuf(gpu.export(), PAGE as u64, PAGE, DmaAccess::ReadWrite).unwrap().iova()).unwrap();
    let mut bytes = [0; 3 * PAGE];
    gpu.load(0, &mut bytes).unwrap();
    assert_eq!([0, 1, 2].map(|page| bytes[page * PAGE..][..PAGE].iter().all(|b| *b == 0xa5)), [true, false, true]);
    // A mapping that is taken back is gone at once.
    device.unmap(&Mapping::new([(middle, PAGE as u64)]));
    let refused = server.counters(0).dma_refused;
    let _ = dump(middle);
    assert!(server.counters(0).dma_refused > refused);
}

#[test]
fn one_client_at_a_time() {
    let (_alone, server, sockets) = looped(2);
    let first = open(&sockets[0]);
    let error = VfioUserDevice::open(&sockets[0]).err().expect("refused").to_string();
    assert!(error.contains("in use by another process") && error.contains("ss -xp"), "{error}");
    assert!(server.counters(0).refused > 0);
    assert_eq!(first.read32(csr::MAGIC), csr::MAGIC_VALUE);
    // The other function has a door of its own.
    assert_eq!(open(&sockets[1]).read32(csr::MAGIC), csr::MAGIC_VALUE);
    drop(first);
    exchange(&sockets[0], WrOpcode::Write).unwrap();
}

#[test]
fn functions_do_not_see_each_other() {
    let (_alone, server, sockets) = looped(2);
    let (a, b) = (open(&sockets[0]), open(&sockets[1]));
    let ca = Context::open(a.clone(), Config::default()).unwrap();
    let memory = Pages::new(PAGE).unwrap();
    // SAFETY: `memory` outlives the devices. Only function 0 has it.
    let iova = unsafe { a.map(memory.ptr().as_ptr(), PAGE, DmaAccess::ReadWrite, true) }.unwrap().iova();
    // An address that function 1 has not mapped, whatever function 0 has there.
    let far = iova + 0x4000_0000;
    let before = server.counters(0).dma_refused;
    // Its admin rings are to lie there.
    for (register, value) in [
        (csr::ADMIN_SQ_LO, far as u32),
        (csr::ADMIN_SQ_HI, (far >> 32) as u32),
        (csr::ADMIN_CQ_LO, far as u32),
        (csr::ADMIN_CQ_HI, (far >> 32) as u32),
        (csr::ADMIN_SIZE, 4),
        (csr::CONTROL, 1),
        (csr::ADMIN_DOORBELL, 1),
    ] {
        b.write32(register, value);
    }
    let start = Instant::now();
    while server.counters(1).dma_refused == 0 {
        assert!(start.elapsed() < Duration::from_secs(30), "function 1 reads what it has not mapped");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.counters(0).dma_refused, before, "the fault was booked to the wrong function");
    // Resetting one leaves the other alone.
    b.reset().unwrap();
    assert_eq!(config32(&a, config::COMMAND) & 6, 6);
    ca.admin(AdminOpcode::QueryCounters, 0, &[iova as u32, (iova >> 32) as u32, 0, 8]).unwrap();
}

#[test]
fn reset_under_load_leaves_a_card_that_works() {
    let (_alone, server, sockets) = looped(1);
    let device = open(&sockets[0]);
    for round in 0..3 {
        let (mut party, address) = selfish(device.clone()).unwrap();
        for n in 0..4 {
            party.fill(n);
            party.post(n, WrOpcode::Write, &address).unwrap();
        }
        if round == 1 {
            party.wait().unwrap();
        }
        if round == 2 {
            // As a guest resets: by the bit in configuration space.
            let control = config::DEVICE_CONTROL as u32;
            device.write_config(control, &0xa810u16.to_le_bytes()).unwrap();
            device.write_config(config::COMMAND as u32, &6u16.to_le_bytes()).unwrap();
        } else {
            device.reset().unwrap();
        }
        // Nothing of before is valid; the card was not asked to destroy it.
        std::mem::forget(party);
        let (mut party, address) = selfish(device.clone()).unwrap();
        party.fill(3);
        party.post(3, WrOpcode::Write, &address).unwrap();
        assert_eq!(party.wait().unwrap().wr_id, 3, "round {round}");
        party.verify(3).unwrap();
    }
    assert_eq!(server.counters(0).nonsense, 0);
}

#[test]
fn both_operations_and_interrupts_work_through_a_socket() {
    let (_alone, server, sockets) = looped(1);
    exchange(&sockets[0], WrOpcode::Write).unwrap();
    exchange(&sockets[0], WrOpcode::Send).unwrap();
    assert_eq!((server.counters(0).dma_refused, server.counters(0).late), (0, 0));
    let ctx = Context::open(open(&sockets[0]), Config::default()).unwrap();
    let mut party = Party::on(ctx, shape(1)).unwrap();
    let address = party.address();
    party.connect(&address).unwrap();
    assert_eq!(party.next_event(Duration::from_millis(5)).unwrap(), None);
    party.arm();
    party.fill(0);
    party.post(0, WrOpcode::Write, &address).unwrap();
    assert!(party.next_event(Duration::from_secs(30)).unwrap().is_some(), "no interrupt came");
    assert!(server.counters(0).interrupts > 0);
}

#[test]
fn registers_answer_while_the_card_is_busy() {
    let (_alone, server, sockets) = looped(1);
    let device = open(&sockets[0]);
    let (mut party, address) = selfish(device.clone()).unwrap();
    let mut slowest = Duration::ZERO;
    for n in 0..12 {
        if n >= 4 {
            party.wait().unwrap();
        }
        party.post(n, WrOpcode::Write, &address).unwrap();
        let start = Instant::now();
        assert_eq!(device.read32(csr::MAGIC), csr::MAGIC_VALUE);
        slowest = slowest.max(start.elapsed());
    }
    assert!(slowest < Duration::from_millis(1500), "a register read took {slowest:?}");
    assert_eq!(server.counters(0).late, 0);
}

#[test]
fn a_server_that_ends_is_noticed() {
    let (_alone, server, sockets) = looped(1);
    let device = open(&sockets[0]);
    let ctx = Context::open(device.clone(), Config::default()).unwrap();
    let mut party = Party::on(ctx.clone(), shape(1)).unwrap();
    let address = party.address();
    party.connect(&address).unwrap();
    party.post(0, WrOpcode::Write, &address).unwrap();
    server.stop();
    let start = Instant::now();
    // The write may have come to its end, but no other does.
    let ends = [party.wait(), party.wait()];
    assert!(matches!(ends[1], Err(Trouble::Driver(Error::Gone))), "{ends:?}");
    assert!(matches!(party.next_event(Duration::from_secs(1)), Err(Trouble::Driver(Error::Gone))));
    drop(party);
    assert!(start.elapsed() < Duration::from_secs(5), "it took {:?} to let go of everything", start.elapsed());
    assert_eq!(device.read32(csr::MAGIC), u32::MAX);
    assert!(device.is_gone());
    assert!(matches!(device.wait_interrupt(0, Duration::from_secs(1)), Err(Error::Gone)));
    assert!(matches!(device.reset(), Err(Error::Gone)));
    assert!(ctx.alloc_pd().is_err());
    let error = VfioUserDevice::open(&sockets[0]).err().expect("nobody serves").to_string();
    assert!(error.contains("no such socket") && error.contains("ferric card serve --socket"), "{error}");
}

/// The published client knows nothing of our code.
#[test]
fn the_published_client_agrees_with_the_server() {
    let (_alone, _server, sockets) = looped(1);
    let mut client = vfio_user::Client::new(&sockets[0]).unwrap();
    assert_eq!(client.region(pci::BAR_WINDOW).unwrap().size, pci::BAR_WINDOW_SIZE as u64);
    let mut id = [0; 4];
    client.region_read(7, 0, &mut id).unwrap();
    assert_eq!(u32::from_le_bytes(id), (pci::DEVICE_ID as u32) << 16 | pci::VENDOR_ID as u32);
    client.region_write(7, 4, &6u16.to_le_bytes()).unwrap();
    let mut magic = [0; 4];
    client.region_read(0, csr::MAGIC as u64, &mut magic).unwrap();
    assert_eq!(u32::from_le_bytes(magic), csr::MAGIC_VALUE);
    assert_eq!(client.get_irq_info(2).unwrap().count, pci::MSIX_VECTORS as u32);
    let memory = std::fs::File::options().read(true).write(true).open("/proc/self/mem").unwrap();
    use std::os::fd::AsRawFd;
    client.dma_map(0x1000_0000, 0x10_0000, PAGE as u64, memory.as_raw_fd()).unwrap();
    client.dma_unmap(0x10_0000, PAGE as u64).unwrap();
    client.reset().unwrap();
    client.shutdown().unwrap();
}

#[test]
fn an_arc_of_the_device_is_enough() {
    // The trait object that the driver works with, not the concrete type.
    let (_alone, _server, sockets) = looped(1);
    let device: Arc<dyn Device> = VfioUserDevice::open(&sockets[0]).unwrap();
    let caps = *Context::open(device, Config::default()).unwrap().capabilities();
    assert_eq!((caps.functions, caps.width), (4, 8));
}
