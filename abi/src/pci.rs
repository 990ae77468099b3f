//! What the card shows on the PCI bus: identifiers, BARs and interrupt vectors. The board's PCIe hard IP is configured
//! with these, the simulated function shows them, and the driver finds cards by them.

/// Vendor identifier. Not assigned by PCI-SIG: a board that is sold needs its maker's own.
pub const VENDOR_ID: u16 = 0xfe11;
/// Device identifier of the physical function.
pub const DEVICE_ID: u16 = 0x0c01;
/// Device identifier of virtual functions.
pub const VF_DEVICE_ID: u16 = 0x0c02;
/// Class code: Ethernet controller.
pub const CLASS: u32 = 0x02_0000;
/// Revision.
pub const REVISION: u8 = 1;
/// Functions that a card shows on the bus: the physical one and its virtual ones. Discovery has its own word, CAPS1.
pub const FUNCTIONS: u16 = 4;
/// BAR of the register window ([`crate::csr`]), 64-bit, not prefetchable.
pub const BAR_WINDOW: u32 = 0;
/// Bytes of that BAR: one function's window.
pub const BAR_WINDOW_SIZE: u32 = 1 << crate::csr::WINDOW_BITS;
/// BAR of the MSI-X table and pending bits, 64-bit, not prefetchable.
pub const BAR_MSIX: u32 = 2;
/// Bytes of that BAR.
pub const BAR_MSIX_SIZE: u32 = 0x2000;
/// Offset of the pending bit array behind the table, which starts the BAR.
pub const MSIX_PBA: u32 = 0x1000;
/// MSI-X vectors of a function: one per event queue.
pub const MSIX_VECTORS: u16 = 32;
