//! Configuration space as the card's PCIe hard IP shows it: bytes, which of their bits software may write, and which it
//! clears by writing ones.
use ferric_abi::pci;

/// Bytes of configuration space.
pub const SIZE: usize = 4096;
/// Command register.
pub const COMMAND: usize = 0x04;
/// Status register.
pub const STATUS: usize = 0x06;
/// First BAR register.
pub const BARS: usize = 0x10;
/// Expansion ROM register, hard-wired to zero: the card has none.
pub const ROM: usize = 0x30;
/// Power management capability.
pub const PM: usize = 0x40;
/// MSI-X capability.
pub const MSIX: usize = 0x50;
/// PCI Express capability.
pub const PCIE: usize = 0x60;
/// Device control register.
pub const DEVICE_CONTROL: usize = PCIE + 8;
/// Device status register.
pub const DEVICE_STATUS: usize = PCIE + 10;
/// Advanced error reporting.
pub const AER: usize = 0x100;
/// Uncorrectable error status.
pub const AER_UNCORRECTABLE: usize = AER + 4;
/// Uncorrectable error mask.
pub const AER_MASK: usize = AER + 8;
/// Uncorrectable error severity: 1 is fatal.
pub const AER_SEVERITY: usize = AER + 12;
/// Capabilities and control, with the first error pointer.
pub const AER_CONTROL: usize = AER + 0x18;
/// Header of the request that the first error belongs to.
pub const AER_HEADER_LOG: usize = AER + 0x1c;
/// Single root I/O virtualisation (physical function only).
pub const SRIOV: usize = 0x140;
/// The capability's identifier.
const SRIOV_ID: u16 = 0x10;
/// Its control register.
pub const SRIOV_CONTROL: usize = SRIOV + 0x08;
/// How many virtual functions there may be.
pub const SRIOV_TOTAL_VFS: usize = SRIOV + 0x0e;
/// How many there are, once they are enabled.
pub const SRIOV_NUM_VFS: usize = SRIOV + 0x10;
/// Routing IDs between the physical function and its first virtual one, and, behind that, between virtual ones.
pub const SRIOV_OFFSET: usize = SRIOV + 0x14;
/// System page size: a bit for each size, from 4 KiB on.
pub const SRIOV_PAGE_SIZE: usize = SRIOV + 0x20;
/// First of the BAR registers of the virtual functions, which have one behind the other there.
pub const SRIOV_BARS: usize = SRIOV + 0x24;
/// SR-IOV control: the virtual functions are there.
pub const VF_ENABLE: u16 = 1 << 0;
/// SR-IOV control: memory space enable of the virtual functions.
pub const VF_MEMORY: u16 = 1 << 3;
/// SR-IOV control: routing IDs may go beyond function 7 of a device.
const ARI_HIERARCHY: u16 = 1 << 4;
/// Page sizes that every physical function has to support: 4, 8, 64 and 256 KiB, 1 and 4 MiB.
const PAGE_SIZES: u32 = 0x553;
/// Alternative routing-ID interpretation.
pub const ARI: usize = 0x180;
/// Device serial number.
pub const SERIAL: usize = 0x190;

/// Command: memory space enable.
pub const COMMAND_MEMORY: u16 = 1 << 1;
/// Command: bus master enable.
pub const COMMAND_MASTER: u16 = 1 << 2;
/// Status: the function got an Unsupported Request answer (received master abort).
pub const STATUS_MASTER_ABORT: u16 = 1 << 13;
/// Device control: start a function-level reset; reads as zero.
const FLR: u8 = 1 << 7;

/// Uncorrectable error: completion time-out.
pub const ERROR_TIMEOUT: u32 = 1 << 14;
/// Uncorrectable error: unsupported request.
pub const ERROR_UNSUPPORTED: u32 = 1 << 20;
/// The uncorrectable errors the function can report.
const ERRORS: u32 = 1 << 4 | 1 << 12 | ERROR_TIMEOUT | 1 << 15 | 1 << 16 | 1 << 17 | 1 << 18 | ERROR_UNSUPPORTED;
/// Which of them are fatal after reset, as the specification wants: data link, flow control, receiver overflow, malformed.
const FATAL: u32 = 1 << 4 | 1 << 17 | 1 << 18;

/// One function's configuration space.
pub struct ConfigSpace {
    bytes: Box<[u8; SIZE]>,
    writable: Box<[u8; SIZE]>,
    clear: Box<[u8; SIZE]>,
    start: Box<[u8; SIZE]>,
}

/// What a write asks for beyond the new bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// A function-level reset.
    pub reset: bool,
    /// The command register changed.
    pub command: bool,
    /// The control register of SR-IOV was written.
    pub virtuals: bool,
}

/// BARs of virtual functions, with their bytes where pages are no larger.
const VF_BARS: [(u32, u32); 2] = [(pci::BAR_WINDOW, pci::BAR_WINDOW_SIZE), (pci::BAR_MSIX, pci::BAR_MSIX_SIZE)];

/// Who a function is: identifiers of maker and device, of the subsystem, and the revision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) vendor: u16,
    pub(super) device: u16,
    pub(super) subsystem: (u16, u16),
    pub(super) revision: u8,
}

/// A configuration space in the making.
pub(super) struct Builder(ConfigSpace);

impl Builder {
    /// `n` bytes at `at`: value, writable bits, write-one-to-clear bits.
    pub(super) fn field(&mut self, at: usize, n: usize, value: u32, writable: u32, clear: u32) -> &mut Self {
        self.0.bytes[at..at + n].copy_from_slice(&value.to_le_bytes()[..n]);
        self.0.writable[at..at + n].copy_from_slice(&writable.to_le_bytes()[..n]);
        self.0.clear[at..at + n].copy_from_slice(&clear.to_le_bytes()[..n]);
        self
    }
    fn bar(&mut self, at: usize, size: u32) -> &mut Self {
        // 64-bit memory, not prefetchable: the address bits below the size are zero, which is how software finds the size.
        self.field(at, 4, 4, !(size - 1), 0).field(at + 4, 4, 0, u32::MAX, 0)
    }
    pub(super) fn extended(&mut self, at: usize, id: u16, version: u32, next: usize) -> &mut Self {
        self.field(at, 4, (next as u32) << 20 | version << 16 | id as u32, 0, 0)
    }

    /// What all functions have: the header, power management, MSI-X, PCI Express with FLR, error reporting. `behind`: the next capability, 0 for none; `extended`: the next extended one.
    pub(super) fn endpoint(id: Identity, behind: usize, extended: usize) -> Self {
        let zero = || Box::new([0; SIZE]);
        let mut b = Self(ConfigSpace { bytes: zero(), writable: zero(), clear: zero(), start: zero() });
        b.field(0, 4, (id.device as u32) << 16 | id.vendor as u32, 0, 0)
            .field(COMMAND, 2, 0, 0x0546, 0)
            .field(STATUS, 2, 1 << 4, 0, 0xf900)
            .field(8, 4, pci::CLASS << 8 | id.revision as u32, 0, 0)
            .field(0x0c, 1, 0, 0xff, 0)
            .bar(BARS + 4 * pci::BAR_WINDOW as usize, pci::BAR_WINDOW_SIZE)
            .bar(BARS + 4 * pci::BAR_MSIX as usize, pci::BAR_MSIX_SIZE)
            .field(0x2c, 4, (id.subsystem.1 as u32) << 16 | id.subsystem.0 as u32, 0, 0)
            .field(ROM, 4, 0, 0, 0)
            .field(0x34, 1, PM as u32, 0, 0)
            .field(0x3c, 1, 0, 0xff, 0);
        // Power management 1.2: D0 and D3hot, no PME.
        b.field(PM, 4, 3 << 16 | (MSIX as u32) << 8 | 1, 0, 0).field(PM + 4, 4, 1 << 3, 3, 0);
        let vectors = pci::MSIX_VECTORS as u32 - 1;
        b.field(MSIX, 4, vectors << 16 | (PCIE as u32) << 8 | 0x11, 0xc000_0000, 0).field(MSIX + 4, 4, pci::BAR_MSIX, 0, 0).field(MSIX + 8, 4, pci::MSIX_PBA | pci::BAR_MSIX, 0, 0);
        // PCI Express endpoint, capability version 2: 512-byte payloads, FLR, Gen3 x16.
        b.field(PCIE, 4, 2 << 16 | (behind as u32) << 8 | 0x10, 0, 0)
            .field(PCIE + 4, 4, 1 << 28 | 1 << 15 | 1 << 5 | 2, 0, 0)
            .field(DEVICE_CONTROL, 2, 0x2810, 0x7fff, 0)
            .field(DEVICE_STATUS, 2, 0, 0, 0xf)
            .field(PCIE + 12, 4, 1 << 22 | 16 << 4 | 3, 0, 0)
            .field(PCIE + 16, 2, 0, 0x0fcb, 0)
            .field(PCIE + 18, 2, 16 << 4 | 3, 0, 0)
            .field(PCIE + 0x24, 4, 1 << 4 | 0xf, 0, 0)
            .field(PCIE + 0x28, 2, 0, 0x001f, 0)
            .field(PCIE + 0x2c, 4, 7 << 1, 0, 0)
            .field(PCIE + 0x30, 2, 3, 0xf, 0);
        b.extended(AER, 1, 2, extended).field(AER_UNCORRECTABLE, 4, 0, 0, ERRORS).field(AER_MASK, 4, 0, ERRORS, 0).field(AER_SEVERITY, 4, FATAL, ERRORS, 0).field(AER + 0x10, 4, 0, 0, 0x31c1).field(
            AER + 0x14,
            4,
            1 << 13,
            0x31c1,
            0,
        );
        b
    }

    /// The last of the capabilities, and the space as after power-on.
    pub(super) fn serial(mut self, serial: u64) -> ConfigSpace {
        self.extended(SERIAL, 3, 1, 0).field(SERIAL + 4, 4, serial as u32, 0, 0).field(SERIAL + 8, 4, (serial >> 32) as u32, 0, 0);
        let mut space = self.0;
        space.start = space.bytes.clone();
        space
    }
}

impl ConfigSpace {
    /// The space of function `function` of `functions`; 0 is the physical one. `serial`: the card's serial number.
    pub fn new(function: u16, functions: u16, serial: u64) -> Self {
        let physical = function == 0;
        let device = if physical { pci::DEVICE_ID } else { pci::VF_DEVICE_ID };
        let identity = Identity { vendor: pci::VENDOR_ID, device, subsystem: (pci::VENDOR_ID, device), revision: pci::REVISION };
        let mut b = Builder::endpoint(identity, 0, if physical { SRIOV } else { ARI });
        if physical {
            let functions = functions as u32 - 1;
            b.extended(SRIOV, SRIOV_ID, 1, ARI)
                .field(SRIOV_CONTROL, 2, 0, u32::from(VF_ENABLE | VF_MEMORY | ARI_HIERARCHY), 0)
                .field(SRIOV_TOTAL_VFS - 2, 4, functions << 16 | functions, 0, 0)
                .field(SRIOV_NUM_VFS, 2, 0, 0xffff, 0)
                // First virtual function is function 1, stride 1.
                .field(SRIOV_OFFSET, 4, 1 << 16 | 1, 0, 0)
                .field(SRIOV + 0x1a, 2, pci::VF_DEVICE_ID as u32, 0, 0)
                .field(SRIOV_PAGE_SIZE - 4, 4, PAGE_SIZES, 0, 0)
                .field(SRIOV_PAGE_SIZE, 4, 1, PAGE_SIZES, 0);
            for (bar, size) in VF_BARS {
                b.bar(SRIOV_BARS + 4 * bar as usize, size);
            }
        }
        b.extended(ARI, 0x0e, 1, SERIAL).field(ARI + 4, 2, ((function + 1) % functions) as u32 * 0x100, 0, 0);
        b.serial(serial)
    }

    /// Back to the values after power-on.
    pub fn reset(&mut self) {
        self.bytes = self.start.clone();
    }

    /// Reads bytes; beyond the end they are all ones.
    pub fn read(&self, offset: usize, out: &mut [u8]) {
        for (i, o) in out.iter_mut().enumerate() {
            *o = offset.checked_add(i).and_then(|at| self.bytes.get(at)).copied().unwrap_or(0xff);
        }
    }

    /// Writes bytes as software does.
    pub fn write(&mut self, offset: usize, data: &[u8]) -> Effect {
        let mut effect = Effect::default();
        let enabled = self.has_virtuals();
        for (i, d) in data.iter().enumerate() {
            let Some(at) = offset.checked_add(i).filter(|at| *at < SIZE) else { break };
            let old = self.bytes[at];
            // How many there are and how large their pages are is settled while they are there.
            let settled = enabled && ((SRIOV_NUM_VFS..SRIOV_NUM_VFS + 2).contains(&at) || (SRIOV_PAGE_SIZE..SRIOV_PAGE_SIZE + 4).contains(&at));
            let w = if settled { 0 } else { self.writable[at] };
            self.bytes[at] = (old & !w | d & w) & !(d & self.clear[at]);
            effect.reset |= at == DEVICE_CONTROL + 1 && d & FLR != 0;
            effect.command |= (COMMAND..COMMAND + 2).contains(&at) && self.bytes[at] != old;
            effect.virtuals |= self.is_physical() && (SRIOV_CONTROL..SRIOV_CONTROL + 2).contains(&at);
        }
        if self.is_physical() && !enabled {
            self.settle_virtuals();
        }
        effect
    }

    /// It has the capability of SR-IOV.
    fn is_physical(&self) -> bool {
        self.dword(SRIOV) as u16 == SRIOV_ID
    }

    fn has_virtuals(&self) -> bool {
        self.is_physical() && self.word(SRIOV_CONTROL) & VF_ENABLE != 0
    }

    /// What follows from a write while there were no virtual functions: more of them than there may be are not enabled (the specification leaves that open), and each has a page at
    /// least in each of its BARs.
    fn settle_virtuals(&mut self) {
        if self.word(SRIOV_NUM_VFS) > self.word(SRIOV_TOTAL_VFS) {
            self.bytes[SRIOV_CONTROL] &= !(VF_ENABLE as u8);
        }
        // Software may not write a register without a bit: it counts as the smallest page.
        let page = 4096u32 << self.dword(SRIOV_PAGE_SIZE).max(1).trailing_zeros();
        for (bar, size) in VF_BARS {
            let (at, mask) = (SRIOV_BARS + 4 * bar as usize, !(size.max(page) - 1));
            self.writable[at..at + 4].copy_from_slice(&mask.to_le_bytes());
            let address = self.dword(at) & (mask | 0xf);
            self.bytes[at..at + 4].copy_from_slice(&address.to_le_bytes());
        }
    }

    /// A 16-bit register.
    pub fn word(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }
    /// A 32-bit register.
    pub fn dword(&self, at: usize) -> u32 {
        u32::from_le_bytes([self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]])
    }
    /// Sets bits of a register from the hardware's side.
    pub fn set(&mut self, at: usize, bits: u32) {
        self.bytes[at..at + 4].iter_mut().zip(bits.to_le_bytes()).for_each(|(b, v)| *b |= v);
    }

    /// Logs an uncorrectable error as the function's error logic does, with the header of the request it belongs to.
    /// Returns true when it is to be signalled as fatal.
    pub fn log_error(&mut self, error: u32, header: [u32; 4]) -> bool {
        let first = self.dword(AER_UNCORRECTABLE) & !self.dword(AER_MASK) == 0;
        self.set(AER_UNCORRECTABLE, error);
        let fatal = self.dword(AER_SEVERITY) & error != 0;
        let unsupported = if error == ERROR_UNSUPPORTED { 1 << 3 } else { 0 };
        self.set(DEVICE_STATUS, unsupported | if fatal { 1 << 2 } else { 1 << 1 });
        if self.dword(AER_MASK) & error != 0 {
            return false;
        }
        if first {
            self.bytes[AER_CONTROL] = self.bytes[AER_CONTROL] & !0x1f | error.trailing_zeros() as u8;
            for (i, word) in header.iter().enumerate() {
                self.bytes[AER_HEADER_LOG + 4 * i..][..4].copy_from_slice(&word.to_le_bytes());
            }
        }
        fatal && self.word(DEVICE_CONTROL) & 1 << 2 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(c: &ConfigSpace) -> (Vec<u8>, Vec<u16>) {
        let (mut legacy, mut extended) = (Vec::new(), Vec::new());
        let mut at = c.bytes[0x34] as usize;
        while at != 0 {
            assert!(at % 4 == 0 && at >= 0x40 && legacy.len() < 10);
            legacy.push(c.bytes[at]);
            at = c.bytes[at + 1] as usize;
        }
        at = 0x100;
        while at != 0 {
            assert!(at % 4 == 0 && at >= 0x100 && extended.len() < 10);
            extended.push(c.dword(at) as u16);
            at = c.dword(at) as usize >> 20;
        }
        (legacy, extended)
    }

    #[test]
    fn the_capability_lists_can_be_walked() {
        assert_eq!(capabilities(&ConfigSpace::new(0, pci::FUNCTIONS, 1)), (vec![0x01, 0x11, 0x10], vec![1, 0x10, 0x0e, 3]));
        assert_eq!(capabilities(&ConfigSpace::new(1, pci::FUNCTIONS, 1)), (vec![0x01, 0x11, 0x10], vec![1, 0x0e, 3]));
    }

    #[test]
    fn bars_are_sized_and_the_rom_is_not_there() {
        let mut c = ConfigSpace::new(0, pci::FUNCTIONS, 1);
        for (at, size) in [(BARS, pci::BAR_WINDOW_SIZE), (BARS + 8, pci::BAR_MSIX_SIZE), (SRIOV + 0x24, pci::BAR_WINDOW_SIZE)] {
            c.write(at, &[0xff; 8]);
            assert_eq!(((c.dword(at) & !0xf).wrapping_neg(), c.dword(at) & 0xf, c.dword(at + 4)), (size, 4, u32::MAX));
        }
        c.write(ROM, &[0xff; 4]);
        assert_eq!(c.dword(ROM), 0);
        c.write(0, &[0xff; 4]);
        assert_eq!(c.dword(0), (pci::DEVICE_ID as u32) << 16 | pci::VENDOR_ID as u32);
        c.reset();
        assert_eq!(c.dword(BARS), 4);
    }

    #[test]
    fn writes_have_their_effects() {
        let mut c = ConfigSpace::new(0, pci::FUNCTIONS, 1);
        assert_eq!(c.write(COMMAND, &[6, 0]), Effect { command: true, ..Effect::default() });
        assert_eq!(c.write(COMMAND, &[6, 0]), Effect::default());
        assert_eq!(c.write(DEVICE_CONTROL, &[0, 0x80]), Effect { reset: true, ..Effect::default() });
        assert_eq!(c.word(DEVICE_CONTROL) & 0x8000, 0);
        // Beyond the end and across it.
        assert_eq!(c.write(usize::MAX, &[1, 2, 3]), Effect::default());
        c.write(SIZE - 1, &[1, 2]);
        let mut out = [0; 4];
        c.read(SIZE - 2, &mut out);
        assert_eq!(out, [0, 0, 0xff, 0xff]);
    }

    #[test]
    fn virtual_functions_are_settled_before_they_are_enabled() {
        let mut c = ConfigSpace::new(0, pci::FUNCTIONS, 1);
        let (on, total) = ((VF_ENABLE | VF_MEMORY).to_le_bytes(), pci::FUNCTIONS - 1);
        // More than there are: not enabled.
        c.write(SRIOV_NUM_VFS, &(total + 1).to_le_bytes());
        assert_eq!(c.write(SRIOV_CONTROL, &on), Effect { virtuals: true, ..Effect::default() });
        assert!(!c.has_virtuals());
        c.write(SRIOV_NUM_VFS, &total.to_le_bytes());
        c.write(SRIOV_CONTROL, &on);
        assert!(c.has_virtuals());
        // Enabled: neither their number nor their pages change.
        c.write(SRIOV_NUM_VFS, &[1, 0]);
        c.write(SRIOV_PAGE_SIZE, &[0x10, 0, 0, 0]);
        assert_eq!((c.word(SRIOV_NUM_VFS), c.dword(SRIOV_PAGE_SIZE)), (total, 1));
        c.reset();
        assert!(!c.has_virtuals() && c.word(SRIOV_NUM_VFS) == 0);
        // Those without the capability have none.
        assert_eq!(ConfigSpace::new(1, pci::FUNCTIONS, 1).write(SRIOV_CONTROL, &on), Effect::default());
    }

    #[test]
    fn a_virtual_function_has_whole_pages() {
        let mut c = ConfigSpace::new(0, pci::FUNCTIONS, 1);
        let mut sizes = |page: u32| {
            c.write(SRIOV_PAGE_SIZE, &page.to_le_bytes());
            [0, 8].map(|bar| {
                c.write(SRIOV_BARS + bar, &[0xff; 8]);
                (c.dword(SRIOV_BARS + bar) & !0xf).wrapping_neg()
            })
        };
        assert_eq!(sizes(1 << 4), [pci::BAR_WINDOW_SIZE.max(1 << 16), 1 << 16]);
        assert_eq!(sizes(1 << 10), [1 << 22; 2]);
        // No page at all counts as the smallest.
        assert_eq!([sizes(1), sizes(0)], [[pci::BAR_WINDOW_SIZE, pci::BAR_MSIX_SIZE]; 2]);
    }

    #[test]
    fn the_first_error_is_logged_and_cleared_by_ones() {
        let mut c = ConfigSpace::new(0, pci::FUNCTIONS, 1);
        assert!(!c.log_error(ERROR_UNSUPPORTED, [1, 2, 3, 4]));
        c.log_error(ERROR_UNSUPPORTED, [9; 4]);
        assert_eq!((c.dword(AER_UNCORRECTABLE), c.bytes[AER_CONTROL] & 0x1f, c.dword(AER_HEADER_LOG)), (ERROR_UNSUPPORTED, 20, 1));
        assert_eq!(c.word(DEVICE_STATUS), 0b1010);
        c.write(AER_UNCORRECTABLE, &ERROR_UNSUPPORTED.to_le_bytes());
        c.write(DEVICE_STATUS, &[0xf, 0]);
        assert_eq!((c.dword(AER_UNCORRECTABLE), c.word(DEVICE_STATUS)), (0, 0));
        // Fatal by severity and enabled: signalled. Masked: neither logged in detail nor signalled.
        c.write(AER_SEVERITY, &ERRORS.to_le_bytes());
        c.write(DEVICE_CONTROL, &[0x14, 0x28]);
        assert!(c.log_error(ERROR_UNSUPPORTED, [5; 4]));
        c.write(AER_MASK, &ERRORS.to_le_bytes());
        assert!(!c.log_error(ERROR_TIMEOUT, [7; 4]));
        assert_eq!(c.dword(AER_HEADER_LOG), 5);
    }
}
