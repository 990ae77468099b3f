//! Clients that send what no client should: the server answers with errors or closes the connection, and goes on serving.
use ferric_abi::csr;
use ferric_driver::device::Device;
use ferric_driver::vfio_user::socket::{send, Inbox};
use ferric_driver::vfio_user::wire::{self, command, Header};
use ferric_tests::served::{looped, open};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use zerocopy::IntoBytes;

fn connect(socket: &Path) -> UnixStream {
    let start = std::time::Instant::now();
    loop {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let body = [wire::Version { major: 0, minor: 1 }.as_bytes(), &wire::capabilities()].concat();
        match ask(&stream, command::VERSION, &body, &[]) {
            Ok(0) => return stream,
            // The one before is still being cleaned up after.
            _ if start.elapsed() < Duration::from_secs(60) => std::thread::sleep(Duration::from_millis(10)),
            e => panic!("no connection: {e:?}"),
        }
    }
}

/// Sends a command and gives the error of its reply.
fn ask(stream: &UnixStream, command: u16, body: &[u8], fds: &[RawFd]) -> std::io::Result<i32> {
    send(stream, Header { id: 77, command, ..Default::default() }, &[body], fds)?;
    let reply = Inbox::default().receive(stream)?.ok_or(std::io::ErrorKind::UnexpectedEof)?.header;
    assert_eq!((reply.id, reply.command, reply.flags & 0xf), (77, command, wire::REPLY));
    assert_eq!(reply.flags & wire::ERROR != 0, reply.error != 0);
    Ok(reply.error as i32)
}

#[test]
fn wrong_messages_get_errors() {
    let (_alone, server, sockets) = looped(1);
    let s = connect(&sockets[0]);
    let access = |offset, region, count| wire::RegionAccess { offset, region, count }.as_bytes().to_vec();
    let map = |flags, offset, address, size| wire::DmaMap { argsz: 32, flags, offset, address, size }.as_bytes().to_vec();
    let irqs = |flags, index, start, count| wire::SetIrqs { argsz: 20, flags, index, start, count }.as_bytes().to_vec();
    let region = |index| wire::RegionInfo { argsz: 32, index, ..Default::default() }.as_bytes().to_vec();
    let memory = File::options().read(true).write(true).open("/proc/self/mem").unwrap();
    let (pipe, _other) = UnixStream::pair().unwrap();
    let (m, p) = (memory.as_raw_fd(), pipe.as_raw_fd());
    use libc::{EEXIST, EINVAL, EOPNOTSUPP};
    let cases: Vec<(u16, Vec<u8>, Vec<RawFd>, i32)> = vec![
        (0, vec![], vec![], EOPNOTSUPP),
        (6, vec![], vec![], EOPNOTSUPP),
        (11, vec![0; 64], vec![], EOPNOTSUPP),
        (65535, vec![0; 64], vec![], EOPNOTSUPP),
        (command::VERSION, vec![0; 4], vec![], EINVAL),
        (command::GET_INFO, vec![0; 3], vec![], EINVAL),
        (command::GET_REGION_INFO, region(9), vec![], EINVAL),
        (command::GET_REGION_INFO, region(u32::MAX), vec![], EINVAL),
        (command::GET_IRQ_INFO, vec![0xff; 16], vec![], EINVAL),
        (command::REGION_READ, access(0, 0, 0), vec![], EINVAL),
        (command::REGION_READ, access(0, 0, u32::MAX), vec![], EINVAL),
        (command::REGION_READ, access(0xffff, 0, 2), vec![], EINVAL),
        (command::REGION_READ, access(u64::MAX, 7, 2), vec![], EINVAL),
        (command::REGION_READ, access(0, 1, 4), vec![], EINVAL),
        (command::REGION_READ, access(0, 99, 4), vec![], EINVAL),
        (command::REGION_READ, vec![1; 7], vec![], EINVAL),
        (command::REGION_WRITE, access(0, 0, 8), vec![], EINVAL),
        (command::REGION_WRITE, [access(0, 7, 4), vec![0; 5]].concat(), vec![], EINVAL),
        (command::DMA_MAP, map(3, 0, 0x1000, 0), vec![m], EINVAL),
        (command::DMA_MAP, map(3, 0, 0x1001, 0x1000), vec![m], EINVAL),
        (command::DMA_MAP, map(3, 0, !0xfff, 0x2000), vec![m], EINVAL),
        (command::DMA_MAP, map(3, u64::MAX, 0x1000, 0x1000), vec![m], EINVAL),
        (command::DMA_MAP, map(3, 0, 0x1000, 0x1000), vec![p], EINVAL),
        (command::DMA_MAP, map(3, 0, 0x1000, 0x1000), vec![m, m], EINVAL),
        (command::DMA_MAP, map(3, 0, 0x1000, 0x2000), vec![], 0),
        (command::DMA_MAP, map(3, 0, 0x2000, 0x1000), vec![m], EEXIST),
        (command::DMA_UNMAP, wire::DmaUnmap { argsz: 24, flags: 0, address: 0x1000, size: 0x1000 }.as_bytes().to_vec(), vec![], EINVAL),
        (command::DMA_UNMAP, wire::DmaUnmap { argsz: 24, flags: 0xff, address: 0, size: 0 }.as_bytes().to_vec(), vec![], EINVAL),
        (command::DMA_UNMAP, wire::DmaUnmap { argsz: 24, flags: wire::UNMAP_ALL, address: 0, size: 0 }.as_bytes().to_vec(), vec![], 0),
        (command::SET_IRQS, irqs(0x24, 2, 0, 33), vec![], EINVAL),
        (command::SET_IRQS, irqs(0x24, 2, u32::MAX, 2), vec![], EINVAL),
        (command::SET_IRQS, irqs(0x24, 9, 0, 1), vec![], EINVAL),
        (command::SET_IRQS, irqs(0x24, 2, 0, 1), vec![p], EINVAL),
        (command::SET_IRQS, irqs(0x24, 2, 0, 1), vec![m, m], EINVAL),
        (command::SET_IRQS, irqs(0x04, 2, 0, 1), vec![], EINVAL),
        (command::SET_IRQS, irqs(0x22, 2, 0, 4), vec![], EINVAL),
        (command::SET_IRQS, irqs(0x21, 2, 0, 0), vec![], 0),
    ];
    for (command, body, fds, want) in &cases {
        assert_eq!(ask(&s, *command, body, fds).unwrap(), *want, "command {command}, body {body:02x?}, {} descriptors", fds.len());
    }
    let wrong = cases.iter().filter(|c| c.3 != 0).count() as u64;
    assert_eq!(server.counters(0).nonsense, wrong);
    // Nothing may be asked before the version is agreed.
    drop(s);
    std::thread::sleep(Duration::from_millis(300));
    let s = UnixStream::connect(&sockets[0]).unwrap();
    assert_eq!(ask(&s, command::GET_INFO, &[0; 16], &[]).unwrap(), libc::EPROTO);
}

/// A message that is right in `chance` of 8 places.
fn message(rng: &mut ChaCha8Rng) -> (Header, Vec<u8>, usize) {
    let command = if rng.gen_bool(0.9) { rng.gen_range(0..17) } else { rng.gen() };
    let pick = |rng: &mut ChaCha8Rng| -> u64 {
        let base = [0, 1, 4, 7, 8, 0x54, 0x1000, 0x2000, 0xfff8, 1 << 16, u32::MAX as u64, u64::MAX][rng.gen_range(0..12)];
        if rng.gen_bool(0.2) {
            rng.gen()
        } else {
            base
        }
    };
    let mut body = Vec::new();
    match command {
        command::REGION_READ | command::REGION_WRITE if rng.gen_bool(0.8) => {
            let count = [1, 2, 4, 8, 64, 100, 4096, u32::MAX][rng.gen_range(0..8)];
            let region = [0, 0, 2, 7, 7, 1, 8, 1000][rng.gen_range(0..8)];
            body.extend_from_slice(wire::RegionAccess { offset: pick(rng), region, count }.as_bytes());
            if command == command::REGION_WRITE && count <= 4096 {
                body.extend((0..count).map(|_| rng.gen::<u8>()));
            }
        }
        command::DMA_MAP | command::DMA_UNMAP if rng.gen_bool(0.8) => {
            let map = wire::DmaMap { argsz: 32, flags: rng.gen_range(0..8), offset: pick(rng), address: pick(rng), size: pick(rng) };
            body.extend_from_slice(map.as_bytes());
            if command == command::DMA_UNMAP {
                body.drain(8..16);
            }
        }
        command::SET_IRQS => {
            let set = wire::SetIrqs { argsz: 20, flags: [0x21, 0x22, 0x24, rng.gen()][rng.gen_range(0..4)], index: rng.gen_range(0..7), start: pick(rng) as u32, count: pick(rng) as u32 };
            body.extend_from_slice(set.as_bytes());
        }
        _ => body.extend((0..rng.gen_range(0..80)).map(|_| rng.gen::<u8>())),
    }
    let flags = if rng.gen_bool(0.9) { 0 } else { wire::NO_REPLY };
    (Header { id: rng.gen(), command, flags, ..Default::default() }, body, if rng.gen_bool(0.2) { rng.gen_range(0..4) } else { 0 })
}

#[test]
fn random_messages_do_no_harm() {
    let seed: u64 = std::env::var("FERRIC_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let (_alone, server, sockets) = looped(1);
    let files: Vec<File> = vec![File::open("/proc/self/maps").unwrap(), File::open("/dev/null").unwrap(), File::open("/proc/self").unwrap()];
    for round in 0..6u64 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1000) + round);
        let s = connect(&sockets[0]);
        let mut inbox = Inbox::default();
        for n in 0..500 {
            let (header, body, fds) = message(&mut rng);
            if header.command == command::RESET && n % 16 != 0 {
                continue;
            }
            let fds: Vec<RawFd> = files.iter().cycle().take(fds).map(|f| f.as_raw_fd()).collect();
            send(&s, header, &[&body], &fds).unwrap_or_else(|e| panic!("seed {seed}, round {round}, message {n}: {e}"));
            if header.flags & wire::NO_REPLY == 0 {
                let reply = inbox.receive(&s).ok().flatten().unwrap_or_else(|| panic!("seed {seed}, round {round}, message {n} ({header:?}) was not answered"));
                assert_eq!((reply.header.id, reply.header.command), (header.id, header.command), "seed {seed}, round {round}, message {n}");
            }
        }
        // Then what is no message at all.
        let garbage: Vec<u8> = (0..64).map(|_| rng.gen()).collect();
        let _ = (&s).write_all(&garbage);
    }
    let device = open(&sockets[0]);
    assert_eq!(device.read32(csr::MAGIC), csr::MAGIC_VALUE, "seed {seed}");
    assert!(!server.has_died() && server.counters(0).nonsense > 100);
}

/// Connections that say nothing, or half a hello, hold nothing; and a server ends although clients hang.
#[test]
fn silence_holds_no_card() {
    let (_alone, server, sockets) = looped(1);
    let quiet: Vec<UnixStream> = (0..100)
        .map(|n| {
            let s = UnixStream::connect(&sockets[0]).unwrap();
            (&s).write_all(&[1, 0, 1, 0, 40, 0, 0][..n % 8]).unwrap_or_default();
            s
        })
        .collect();
    let start = std::time::Instant::now();
    let device = open(&sockets[0]);
    assert_eq!(device.read32(csr::MAGIC), csr::MAGIC_VALUE);
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert_eq!(server.counters(0).clients, 1);
    drop(device);
    // Who has said hello and stops in the middle of a message is a client that has failed.
    let half = connect(&sockets[0]);
    (&half).write_all(&[9, 0, 9, 0, 0x40]).unwrap();
    let start = std::time::Instant::now();
    let next = connect(&sockets[0]);
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}", start.elapsed());
    assert!(Inbox::default().receive(&half).unwrap().is_none(), "it sees its end");
    // It asks and never reads, until there is no room for answers.
    next.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let read = wire::RegionAccess { offset: 0, region: 7, count: 4096 };
    while send(&next, Header { id: 1, command: command::REGION_READ, ..Default::default() }, &[read.as_bytes()], &[]).is_ok() {}
    let start = std::time::Instant::now();
    server.stop();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    drop((quiet, half, next));
}

#[test]
fn half_a_message_and_a_flood_of_clients() {
    let (_alone, server, sockets) = looped(1);
    let s = connect(&sockets[0]);
    (&s).write_all(&[9, 0, 9, 0, 0x40]).unwrap();
    // Many more, each of which says nothing and goes.
    for _ in 0..50 {
        drop(UnixStream::connect(&sockets[0]).unwrap());
    }
    drop(s);
    let start = std::time::Instant::now();
    while server.counters(0).resets == 0 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let device = open(&sockets[0]);
    assert_eq!(device.read32(csr::MAGIC), csr::MAGIC_VALUE);
}
