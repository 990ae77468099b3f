//! The client's half of the protocol: one request, one reply.
use super::socket::{send, Inbox, Message};
use super::wire::{self, command, index, Header};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

/// How long a server may take for a reply. It promises MMIO within a second and a reset within half a minute at worst.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a server is asked again that still has another client: a killed one may not have been noticed yet.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    inbox: Inbox,
    next_id: u16,
    /// What the device is.
    pub info: wire::DeviceInfo,
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, what.into())
}

impl Client {
    /// Connects and agrees on the version. `ResourceBusy`: the server has another client.
    pub fn connect(path: &Path) -> Result<Self> {
        let start = Instant::now();
        loop {
            match Self::try_connect(path) {
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) && start.elapsed() < BUSY_TIMEOUT => std::thread::sleep(Duration::from_millis(20)),
                other => return other,
            }
        }
    }

    fn try_connect(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        let mut client = Self { stream, inbox: Inbox::default(), next_id: 0, info: wire::DeviceInfo::default() };
        let version = wire::Version { major: 0, minor: 1 };
        let reply = client.request(command::VERSION, &[version.as_bytes(), &wire::capabilities()], &[])?;
        match wire::Version::parse(&reply) {
            Some(v) if v.major == 0 => {}
            v => return Err(invalid(format!("the server speaks {v:?} of vfio-user"))),
        }
        let info = wire::DeviceInfo { argsz: size_of::<wire::DeviceInfo>() as u32, ..Default::default() };
        let reply = client.request(command::GET_INFO, &[info.as_bytes()], &[])?;
        client.info = wire::DeviceInfo::parse(&reply).ok_or_else(|| invalid("short reply to GET_INFO"))?;
        if client.info.flags & wire::DEVICE_PCI == 0 || client.info.regions <= index::CONFIG_REGION {
            return Err(invalid("the server's device is not a PCI function"));
        }
        Ok(client)
    }

    /// The socket, to watch for its end.
    pub fn raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Sends a command and gives the body of its reply.
    pub fn request(&mut self, command: u16, parts: &[&[u8]], fds: &[RawFd]) -> Result<Vec<u8>> {
        let id = self.post_with(command, parts, fds, 0)?;
        let Message { header, body, .. } = self.inbox.receive(&self.stream)?.ok_or_else(|| Error::from(ErrorKind::ConnectionAborted))?;
        if header.id != id || header.command != command || header.flags & 0xf != wire::REPLY {
            return Err(invalid(format!("{header:?} is no reply to command {command}, id {id}")));
        }
        if header.flags & wire::ERROR != 0 {
            return Err(Error::from_raw_os_error(header.error as i32));
        }
        Ok(body)
    }

    fn post_with(&mut self, command: u16, parts: &[&[u8]], fds: &[RawFd], flags: u32) -> Result<u16> {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        send(&self.stream, Header { id, command, flags, ..Default::default() }, parts, fds)?;
        Ok(id)
    }

    /// Size of a region.
    pub fn region_size(&mut self, region: u32) -> Result<u64> {
        let ask = wire::RegionInfo { argsz: size_of::<wire::RegionInfo>() as u32, index: region, ..Default::default() };
        let reply = self.request(command::GET_REGION_INFO, &[ask.as_bytes()], &[])?;
        wire::RegionInfo::parse(&reply).map(|r| r.size).ok_or_else(|| invalid("short reply to GET_REGION_INFO"))
    }

    /// Vectors of an interrupt kind.
    pub fn irq_count(&mut self, kind: u32) -> Result<u32> {
        let ask = wire::IrqInfo { argsz: size_of::<wire::IrqInfo>() as u32, index: kind, ..Default::default() };
        let reply = self.request(command::GET_IRQ_INFO, &[ask.as_bytes()], &[])?;
        wire::IrqInfo::parse(&reply).map(|i| i.count).ok_or_else(|| invalid("short reply to GET_IRQ_INFO"))
    }

    /// Wires the vectors from 0 on to eventfds.
    pub fn set_eventfds(&mut self, kind: u32, fds: &[BorrowedFd]) -> Result<()> {
        for (n, some) in fds.chunks(wire::MAX_FDS).enumerate() {
            let raw: Vec<RawFd> = some.iter().map(|f| f.as_raw_fd()).collect();
            let set = wire::SetIrqs {
                argsz: size_of::<wire::SetIrqs>() as u32,
                flags: wire::IRQ_DATA_EVENTFD | wire::IRQ_ACTION_TRIGGER,
                index: kind,
                start: (n * wire::MAX_FDS) as u32,
                count: raw.len() as u32,
            };
            self.request(command::SET_IRQS, &[set.as_bytes()], &raw)?;
        }
        Ok(())
    }

    /// Reads from a region.
    pub fn read(&mut self, region: u32, offset: u64, out: &mut [u8]) -> Result<()> {
        let access = wire::RegionAccess { offset, region, count: out.len() as u32 };
        let reply = self.request(command::REGION_READ, &[access.as_bytes()], &[])?;
        let data = reply.get(size_of::<wire::RegionAccess>()..).unwrap_or_default();
        if data.len() != out.len() {
            return Err(invalid(format!("{} bytes came for a read of {}", data.len(), out.len())));
        }
        out.copy_from_slice(data);
        Ok(())
    }

    /// Writes to a region. `posted`: without waiting for the server's answer.
    pub fn write(&mut self, region: u32, offset: u64, data: &[u8], posted: bool) -> Result<()> {
        let access = wire::RegionAccess { offset, region, count: data.len() as u32 };
        let parts = [access.as_bytes(), data];
        if posted {
            self.post_with(command::REGION_WRITE, &parts, &[], wire::NO_REPLY).map(drop)
        } else {
            self.request(command::REGION_WRITE, &parts, &[]).map(drop)
        }
    }

    /// Lets the device reach `size` bytes of a file from `offset` on at I/O virtual address `address`.
    pub fn dma_map(&mut self, address: u64, size: u64, fd: RawFd, offset: u64, writable: bool) -> Result<()> {
        let flags = wire::DMA_READ | if writable { wire::DMA_WRITE } else { 0 };
        let map = wire::DmaMap { argsz: size_of::<wire::DmaMap>() as u32, flags, offset, address, size };
        self.request(command::DMA_MAP, &[map.as_bytes()], &[fd]).map(drop)
    }

    /// Takes a mapping back. When this returns the device does not reach it any more.
    pub fn dma_unmap(&mut self, address: u64, size: u64) -> Result<()> {
        let unmap = wire::DmaUnmap { argsz: size_of::<wire::DmaUnmap>() as u32, flags: 0, address, size };
        self.request(command::DMA_UNMAP, &[unmap.as_bytes()], &[]).map(drop)
    }

    /// Resets the function.
    pub fn reset(&mut self) -> Result<()> {
        self.request(command::RESET, &[], &[]).map(drop)
    }
}
