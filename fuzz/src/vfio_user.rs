//! The server of a served card: bytes and messages of any content on a client's connection, with a stub where the simulation would be.
use arbitrary::{Arbitrary, Unstructured};
use ferric_driver::vfio_user::socket::send;
use ferric_driver::vfio_user::wire::{command, Header, Version, HEADER};
use ferric_sim::iommu::Fault;
use ferric_sim::pci::command::{Command, Handle};
use ferric_sim::pci::dma::ClientMap;
use ferric_sim::pci::function::Function;
use ferric_sim::pci::session::{Seat, Session};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zerocopy::IntoBytes;

#[derive(Arbitrary, Debug)]
struct Input {
    /// A client that says hello.
    greets: bool,
    messages: Vec<Told>,
    /// What comes behind them.
    tail: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
struct Told {
    command: u8,
    flags: Option<u8>,
    fields: [u32; 5],
    /// An offset, an address or a size beyond 32 bits.
    high: Option<u32>,
    data: Vec<u8>,
    fds: Vec<Kind>,
    /// Bytes that the header says are missing or too many.
    lie: Option<i8>,
}

/// What a descriptor is.
#[derive(Arbitrary, Debug)]
enum Kind {
    Event,
    Memory,
    Pipe,
    Socket,
}

fn descriptor(kind: &Kind) -> Option<OwnedFd> {
    // SAFETY: system calls that make descriptors; what they give is nobody else's.
    let fd = unsafe {
        match kind {
            Kind::Event => libc::eventfd(0, libc::EFD_CLOEXEC),
            Kind::Memory => {
                let fd = libc::memfd_create(c"fuzz".as_ptr(), libc::MFD_CLOEXEC);
                libc::ftruncate(fd, 1 << 20);
                fd
            }
            Kind::Pipe => {
                let mut ends = [0; 2];
                libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC);
                libc::close(ends[0]);
                ends[1]
            }
            Kind::Socket => libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0),
        }
    };
    // SAFETY: as above.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A body: numbers where the messages have them, and data behind.
fn body(told: &Told) -> Vec<u8> {
    let [a, b, c, d, e] = told.fields;
    let wide = |low: u32| u64::from(told.high.unwrap_or(0)) << 32 | u64::from(low);
    let head = match u16::from(told.command) {
        command::REGION_READ | command::REGION_WRITE => {
            // Mostly accesses that lie inside a region, and as long as their data.
            let count = if a & 1 == 0 { told.data.len() as u32 } else { b % 80 };
            [wide(c % 0x1_2000).as_bytes(), (d % 10).as_bytes(), count.as_bytes()].concat()
        }
        command::DMA_MAP => [32u32.as_bytes(), (a % 4).as_bytes(), u64::from(b & !4095).as_bytes(), wide(c & !4095).as_bytes(), u64::from(d & 0xffff_f000).as_bytes()].concat(),
        command::DMA_UNMAP => [24u32.as_bytes(), (a % 5).as_bytes(), wide(b & !4095).as_bytes(), wide(c & !4095).as_bytes()].concat(),
        command::SET_IRQS => [20u32.as_bytes(), (32 | 1 << (a % 3)).as_bytes(), (b % 6).as_bytes(), (c % 40).as_bytes(), (d % 40).as_bytes()].concat(),
        command::GET_REGION_INFO => [32u32.as_bytes(), a.as_bytes(), (b % 12).as_bytes(), c.as_bytes(), wide(d).as_bytes(), wide(e).as_bytes()].concat(),
        _ => told.fields.as_bytes().to_vec(),
    };
    [&head[..], &told.data].concat()
}

fn client(stream: &mut UnixStream, input: &Input) -> std::io::Result<()> {
    if input.greets {
        let hello = Header { command: command::VERSION, ..Default::default() };
        send(stream, hello, &[Version { major: 0, minor: 1 }.as_bytes(), b"{}\0"], &[])?;
    }
    for (id, told) in input.messages.iter().take(24).enumerate() {
        let body = body(told);
        let header = Header { id: id as u16, command: told.command.into(), flags: told.flags.unwrap_or(0).into(), ..Default::default() };
        if let Some(lie) = told.lie {
            let size = (HEADER + body.len()).saturating_add_signed(lie.into()) as u32;
            stream.write_all(&[Header { size, ..header }.as_bytes(), &body].concat())?;
            continue;
        }
        let fds: Vec<OwnedFd> = told.fds.iter().take(20).filter_map(descriptor).collect();
        let numbers: Vec<i32> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        // More than a message may have: refused here already.
        let _ = send(stream, header, &[&body], &numbers);
    }
    stream.write_all(&input.tail)?;
    stream.shutdown(Shutdown::Write)
}

/// What a virtio function's window takes at once.
fn is_one_access(offset: u32, bytes: usize) -> bool {
    matches!(bytes, 1 | 2 | 4) && offset as usize % bytes == 0 && offset as usize + bytes <= 0x1_0000
}

/// Stands where the simulation would: keeps the map, answers reads with the offset, interrupts and faults now and then.
fn execute(command: Command, map: &mut ClientMap, function: &Function) {
    match command {
        Command::Map { change, .. } => change(map),
        Command::Read32 { offset, reply, .. } => drop(reply.try_send(offset)),
        Command::Reset { done, .. } => drop(done.map(|d| d.try_send(()))),
        Command::Write32 { offset, value, .. } => {
            // As the card's engines would, with whatever they were told.
            let at = u64::from(value) << 12 | u64::from(offset);
            let mut bytes = [0; 64];
            let reached = if value & 1 == 0 { map.read(at, &mut bytes) } else { map.write(at, &bytes, u64::from(offset) * 0x9e37_79b9_7f4a_7c15) };
            if !reached {
                function.dma_fault(Fault { function: 0, iova: at, write: value & 1 == 1 });
            }
            function.interrupt((offset / 4 % 40) as u16);
        }
        Command::Doorbell { bytes, .. } => assert!(matches!(bytes.len(), 1 | 2 | 4 | 8 | 64), "a write on the bus of {} bytes", bytes.len()),
        Command::WindowWrite { offset, bytes, .. } => assert!(is_one_access(offset, bytes.len()), "a write of {} bytes to {offset:#x}", bytes.len()),
        Command::WindowRead { offset, bytes, reply, .. } => {
            assert!(is_one_access(offset, bytes), "a read of {bytes} bytes from {offset:#x}");
            // Nobody may listen any more.
            let _ = reply.try_send(offset.to_le_bytes());
        }
        Command::Wake | Command::Stop => {}
    }
}

/// One input.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    [Function::new(0, 0), Function::virtio(0, 0, 4)].into_iter().for_each(|function| session(&input, Arc::new(function)));
}

/// The input as the client of a function, native or virtio.
fn session(input: &Input, function: Arc<Function>) {
    let Ok((mut near, far)) = UnixStream::pair() else { return };
    // It all fits into the socket. Nobody reads the answers meanwhile: a server that has no room for them gives its client up.
    if client(&mut near, input).is_err() || far.set_write_timeout(Some(Duration::from_millis(100))).is_err() {
        return;
    }
    let (map, of_engine) = (Mutex::new(ClientMap::default()), function.clone());
    let engine = Handle::Direct(Arc::new(move |command| execute(command, &mut map.lock().unwrap_or_else(|e| e.into_inner()), &of_engine)));
    Session::new(far, [Seat { function, number: 0, door: Arc::default(), virtuals: None }].into(), engine).run();
    let mut first = [0; HEADER];
    // Every message is answered or ends the connection.
    assert!(!input.greets || near.read_exact(&mut first).is_ok(), "no answer to the first message");
}
