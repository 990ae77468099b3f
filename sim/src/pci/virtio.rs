//! Configuration space of a virtio network function (spec 4.1.2, 4.1.4): who it is, and where in BAR 0 its structures lie.
use super::config::{Builder, ConfigSpace, Identity, PCIE, SERIAL};
use ferric_abi::pci;
use ferric_abi::virtio::window;

/// Vendor of virtio devices.
pub const VENDOR_ID: u16 = 0x1af4;
/// A network device without the transitional interface: 0x1040 and the type of the device, 1.
pub const DEVICE_ID: u16 = 0x1041;
/// Subsystem device: at least 0x40 where there is no transitional interface.
const SUBSYSTEM_ID: u16 = 0x40;
/// Revision: at least 1 for the same reason.
const REVISION: u8 = 1;

/// The capability that is a vendor's own.
const VENDOR_CAPABILITY: u32 = 9;
/// Length of a virtio capability, and of one with a field of 32 bits more.
const SHORT: usize = 16;
const LONG: usize = 20;

/// Kinds of structures (`cfg_type`).
const COMMON_CFG: u8 = 1;
const NOTIFY_CFG: u8 = 2;
const ISR_CFG: u8 = 3;
const DEVICE_CFG: u8 = 4;
const PCI_CFG: u8 = 5;

/// Capabilities, one behind the other: kind, length, offset and bytes of the structure in BAR 0.
const CAPABILITIES: [(u8, usize, u32, u32); 5] = [
    (COMMON_CFG, SHORT, window::COMMON, 64),
    (NOTIFY_CFG, LONG, window::NOTIFY, window::NOTIFY_SIZE),
    (ISR_CFG, SHORT, window::ISR, 4),
    (DEVICE_CFG, SHORT, window::DEVICE, 256),
    (PCI_CFG, LONG, 0, 0),
];
/// The first of them, behind that of PCI Express, which takes 60 bytes.
pub const FIRST: usize = PCIE + 0x40;
/// The last one, which is a way into the BAR.
pub const ACCESS: usize = FIRST + 3 * SHORT + LONG;
/// All of them lie in the space that every function has.
const _: () = assert!(ACCESS + LONG <= 0x100);

/// Fields of a virtio capability.
const BAR: usize = 4;
const OFFSET: usize = 8;
const LENGTH: usize = 12;
/// Behind them: the multiplier of notifications; the data of an access.
const MORE: usize = 16;

impl ConfigSpace {
    /// The space of a virtio network function. `serial`: the card's serial number.
    pub fn virtio(serial: u64) -> Self {
        let identity = Identity { vendor: VENDOR_ID, device: DEVICE_ID, subsystem: (pci::VENDOR_ID, SUBSYSTEM_ID), revision: REVISION };
        let mut b = Builder::endpoint(identity, FIRST, SERIAL);
        let mut at = FIRST;
        for (kind, length, offset, bytes) in CAPABILITIES {
            let next = if kind == PCI_CFG { 0 } else { at + length };
            let writable = if kind == PCI_CFG { u32::MAX } else { 0 };
            b.field(at, 4, u32::from(kind) << 24 | (length as u32) << 16 | (next as u32) << 8 | VENDOR_CAPABILITY, 0, 0)
                .field(at + BAR, 4, pci::BAR_WINDOW, writable & 0xff, 0)
                .field(at + OFFSET, 4, offset, writable, 0)
                .field(at + LENGTH, 4, bytes, writable, 0);
            if kind == NOTIFY_CFG {
                b.field(at + MORE, 4, window::NOTIFY_MULTIPLIER, 0, 0);
            }
            at += length;
        }
        b.serial(serial)
    }
}

/// Where in the window an access of `bytes` bytes at `at` of configuration space goes, if it is one to the data of the access capability, and that says a place that is there, of as many bytes (spec 4.1.4.9).
pub fn target(config: &ConfigSpace, at: usize, bytes: usize) -> Option<u32> {
    let (offset, length) = (config.dword(ACCESS + OFFSET), config.dword(ACCESS + LENGTH));
    let fits = matches!(length, 1 | 2 | 4) && offset % length == 0 && offset <= pci::BAR_WINDOW_SIZE - length;
    let meant = at == ACCESS + MORE && bytes == length as usize && config.dword(ACCESS + BAR) & 0xff == pci::BAR_WINDOW;
    (fits && meant).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::config::{AER, BARS, MSIX, PM};

    /// As Linux' `vp_modern_probe` looks for them: by the list, kind after kind, inside the BAR and aligned.
    #[test]
    fn the_structures_are_found() {
        let c = ConfigSpace::virtio(1);
        assert_eq!((c.dword(0), c.dword(8), c.word(0x2e)), (0x1041_1af4, 0x0200_0001, 0x40));
        let (mut at, mut list, mut kinds) = (c.dword(0x34) as usize & 0xff, Vec::new(), Vec::new());
        while at != 0 {
            assert!(at % 4 == 0 && (0x40..0x100).contains(&at) && list.len() < 12, "{at:#x}");
            let id = c.dword(at) & 0xff;
            if id == VENDOR_CAPABILITY {
                let (bar, offset, length) = (c.dword(at + BAR), c.dword(at + OFFSET), c.dword(at + LENGTH));
                assert!(bar == 0 && offset % 4 == 0 && offset + length <= pci::BAR_WINDOW_SIZE);
                kinds.push((c.dword(at) >> 24, c.dword(at) >> 16 & 0xff, offset, length));
            }
            list.push(id);
            at = c.dword(at) as usize >> 8 & 0xff;
        }
        assert_eq!(list, [1, 0x11, 0x10, 9, 9, 9, 9, 9]);
        assert_eq!(kinds, [(1, 16, 0x4000, 64), (2, 20, 0x8000, 0x4000), (3, 16, 0x5000, 4), (4, 16, 0x6000, 256), (5, 20, 0, 0)]);
        assert_eq!(c.dword(FIRST + SHORT + MORE), 4, "multiplier of notifications");
        // No virtual functions, and no alternative routing: error reporting, then the serial number.
        assert_eq!((c.dword(AER) >> 20, c.dword(SERIAL) as u16, c.dword(SERIAL) >> 20), (SERIAL as u32, 3, 0));
        assert_eq!((c.dword(PM) & 0xff, c.word(MSIX + 2) & 0x7ff, c.dword(BARS) & 0xf), (1, pci::MSIX_VECTORS - 1, 4));
    }

    #[test]
    fn the_way_through_configuration_space() {
        let mut c = ConfigSpace::virtio(1);
        let mut set = |offset: u32, length: u32, bar: u8| {
            c.write(ACCESS + OFFSET, &offset.to_le_bytes());
            c.write(ACCESS + LENGTH, &length.to_le_bytes());
            c.write(ACCESS + BAR, &[bar]);
            [1, 2, 4].map(|bytes| target(&c, ACCESS + MORE, bytes))
        };
        assert_eq!(set(0x4014, 1, 0), [Some(0x4014), None, None]);
        assert_eq!(set(0x4012, 2, 0), [None, Some(0x4012), None]);
        assert_eq!(set(0xfffc, 4, 0), [None, None, Some(0xfffc)]);
        for (offset, length, bar) in [(0x1_0000, 4, 0), (u32::MAX, 1, 0), (0x4002, 4, 0), (0x4000, 3, 0), (0x4000, 0, 0), (0x4000, 4, 2)] {
            assert_eq!(set(offset, length, bar), [None; 3], "{offset:#x}, {length}, {bar}");
        }
        // Other capabilities cannot be written.
        c.write(FIRST, &[0xff; 16]);
        assert_eq!(c.dword(FIRST + OFFSET), window::COMMON);
    }
}
