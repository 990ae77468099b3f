//! The messages of the vfio-user protocol, version 0.1: what both ends share. Numbers are in the machine's byte order,
//! as the protocol wants it (both ends are on one machine).
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Commands.
pub mod command {
    /// Version and capabilities; the first message of a connection.
    pub const VERSION: u16 = 1;
    /// Gives the server memory for DMA.
    pub const DMA_MAP: u16 = 2;
    /// Takes it back.
    pub const DMA_UNMAP: u16 = 3;
    /// Numbers of regions and interrupt kinds.
    pub const GET_INFO: u16 = 4;
    /// Size and rights of a region.
    pub const GET_REGION_INFO: u16 = 5;
    /// Number of vectors of an interrupt kind.
    pub const GET_IRQ_INFO: u16 = 7;
    /// Wires interrupts to eventfds.
    pub const SET_IRQS: u16 = 8;
    /// Reads a region.
    pub const REGION_READ: u16 = 9;
    /// Writes a region.
    pub const REGION_WRITE: u16 = 10;
    /// Resets the function.
    pub const RESET: u16 = 13;
}

/// Regions and interrupt kinds of a PCI function.
pub mod index {
    /// Configuration space as a region.
    pub const CONFIG_REGION: u32 = 7;
    /// Regions: six BARs, ROM, configuration space, VGA.
    pub const REGIONS: u32 = 9;
    /// MSI-X as an interrupt kind.
    pub const MSIX_IRQ: u32 = 2;
    /// Uncorrectable errors as an interrupt kind.
    pub const ERR_IRQ: u32 = 3;
    /// Interrupt kinds: INTx, MSI, MSI-X, errors, requests.
    pub const IRQS: u32 = 5;
}

/// Header flag: this is a reply.
pub const REPLY: u32 = 1;
/// Header flag: no reply is wanted.
pub const NO_REPLY: u32 = 1 << 4;
/// Header flag: the command failed, `error` holds an errno.
pub const ERROR: u32 = 1 << 5;
/// Device flag: can be reset.
pub const DEVICE_RESET: u32 = 1;
/// Device flag: is a PCI function.
pub const DEVICE_PCI: u32 = 2;
/// Region flag: readable.
pub const REGION_READABLE: u32 = 1;
/// Region flag: writable.
pub const REGION_WRITABLE: u32 = 2;
/// Interrupt flag: raises eventfds.
pub const IRQ_EVENTFD: u32 = 1;
/// SET_IRQS: no data.
pub const IRQ_DATA_NONE: u32 = 1;
/// SET_IRQS: one byte per vector.
pub const IRQ_DATA_BOOL: u32 = 2;
/// SET_IRQS: one eventfd per vector.
pub const IRQ_DATA_EVENTFD: u32 = 4;
/// SET_IRQS: trigger (or wire up) the vectors.
pub const IRQ_ACTION_TRIGGER: u32 = 1 << 5;
/// DMA_MAP: the device may read.
pub const DMA_READ: u32 = 1;
/// DMA_MAP: the device may write.
pub const DMA_WRITE: u32 = 2;
/// DMA_UNMAP: everything.
pub const UNMAP_ALL: u32 = 4;

/// Largest message either side takes: a megabyte of data and its header.
pub const MAX_MESSAGE: usize = (1 << 20) + 256;
/// Most file descriptors in one message: QEMU takes no higher offer.
pub const MAX_FDS: usize = 16;

macro_rules! message {
    ($( $(#[$doc:meta])* $name:ident { $( $(#[$field_doc:meta])* $field:ident: $kind:ty ),* $(,)? } )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct $name { $( $(#[$field_doc])* pub $field: $kind ),* }
        impl $name {
            /// Reads it from the start of `body`; `None` when that is too short.
            pub fn parse(body: &[u8]) -> Option<Self> {
                Self::read_from_prefix(body).ok().map(|(m, _)| m)
            }
        }
    )* };
}

message! {
    /// Stands before every message.
    Header {
        /// Given back in the reply.
        id: u16,
        /// See [`command`].
        command: u16,
        /// Bytes of header and body.
        size: u32,
        /// [`REPLY`], [`NO_REPLY`], [`ERROR`].
        flags: u32,
        /// errno of a failure.
        error: u32,
    }
    /// Body of VERSION, in front of a JSON text that ends in a zero byte.
    Version {
        /// Major.
        major: u16,
        /// Minor.
        minor: u16,
    }
    /// Body of DMA_MAP; the memory comes as a file descriptor.
    DmaMap {
        /// Bytes of this structure.
        argsz: u32,
        /// [`DMA_READ`], [`DMA_WRITE`].
        flags: u32,
        /// Where in the file the memory starts.
        offset: u64,
        /// I/O virtual address.
        address: u64,
        /// Bytes.
        size: u64,
    }
    /// Body of DMA_UNMAP and of its reply.
    DmaUnmap {
        /// Bytes of this structure.
        argsz: u32,
        /// [`UNMAP_ALL`].
        flags: u32,
        /// I/O virtual address.
        address: u64,
        /// Bytes.
        size: u64,
    }
    /// Body of GET_INFO and of its reply.
    DeviceInfo {
        /// Bytes of this structure.
        argsz: u32,
        /// [`DEVICE_RESET`], [`DEVICE_PCI`].
        flags: u32,
        /// Regions.
        regions: u32,
        /// Interrupt kinds.
        irqs: u32,
    }
    /// Body of GET_REGION_INFO and of its reply.
    RegionInfo {
        /// Bytes of this structure.
        argsz: u32,
        /// [`REGION_READABLE`], [`REGION_WRITABLE`].
        flags: u32,
        /// Region.
        index: u32,
        /// Offset of the first capability; 0: none.
        cap_offset: u32,
        /// Bytes.
        size: u64,
        /// Offset for mmap.
        offset: u64,
    }
    /// Body of GET_IRQ_INFO and of its reply.
    IrqInfo {
        /// Bytes of this structure.
        argsz: u32,
        /// [`IRQ_EVENTFD`].
        flags: u32,
        /// Interrupt kind.
        index: u32,
        /// Vectors.
        count: u32,
    }
    /// Body of SET_IRQS.
    SetIrqs {
        /// Bytes of this structure and its data.
        argsz: u32,
        /// `IRQ_DATA_*` and [`IRQ_ACTION_TRIGGER`].
        flags: u32,
        /// Interrupt kind.
        index: u32,
        /// First vector.
        start: u32,
        /// Vectors.
        count: u32,
    }
    /// Body of REGION_READ, REGION_WRITE and their replies, in front of the data.
    RegionAccess {
        /// Offset in the region.
        offset: u64,
        /// Region.
        region: u32,
        /// Bytes.
        count: u32,
    }
}

/// Bytes of a header.
pub const HEADER: usize = size_of::<Header>();

/// The JSON text each side sends in VERSION, with its zero byte.
pub fn capabilities() -> Vec<u8> {
    format!("{{\"capabilities\":{{\"max_msg_fds\":{MAX_FDS},\"max_data_xfer_size\":{},\"migration\":{{\"pgsize\":4096}}}}}}\0", 1 << 20).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_protocol() {
        let sizes = [
            size_of::<Header>(),
            size_of::<Version>(),
            size_of::<DmaMap>(),
            size_of::<DmaUnmap>(),
            size_of::<DeviceInfo>(),
            size_of::<RegionInfo>(),
            size_of::<IrqInfo>(),
            size_of::<SetIrqs>(),
            size_of::<RegionAccess>(),
        ];
        assert_eq!(sizes, [16, 4, 32, 24, 16, 32, 16, 20, 16]);
    }

    #[test]
    fn a_short_body_is_no_message() {
        assert_eq!(RegionAccess::parse(&[0; 15]), None);
        assert!(RegionAccess::parse(&[0; 17]).is_some());
    }
}
