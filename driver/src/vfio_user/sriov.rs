//! Virtual functions of a served card, switched on and off as an operating system does (PCI Express base specification, SR-IOV).
use super::VfioUserDevice;
use crate::error::{Error, Result};
use std::time::Duration;

/// Where the extended capabilities start, and how many there can be.
const FIRST: u32 = 0x100;
const MOST: usize = (0x1000 - 0x100) / 8;
/// The capability's identifier.
const SRIOV: u16 = 0x10;
/// Its registers.
const CONTROL: u32 = 0x08;
const TOTAL: u32 = 0x0e;
const NUMBER: u32 = 0x10;
const OFFSET: u32 = 0x14;
const DEVICE: u32 = 0x1a;
const PAGE_SIZE: u32 = 0x20;
const BARS: u32 = 0x24;
/// BARs of a virtual function.
const BAR_COUNT: u32 = 6;
/// Control: virtual functions are there; they answer accesses to their memory.
const ENABLE: u16 = 1 << 0;
const MEMORY: u16 = 1 << 3;
/// A page of 4 KiB.
const PAGES_OF_4K: u32 = 1;
/// Virtual functions need not answer before.
const AFTER_ENABLE: Duration = Duration::from_millis(100);
/// They may take so long to be gone.
const AFTER_DISABLE: Duration = Duration::from_secs(1);

/// What a physical function says of its virtual ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualFunctions {
    /// How many there can be.
    pub total: u16,
    /// How many there are.
    pub enabled: u16,
    /// From the physical function's routing ID to that of the first virtual one.
    pub offset: u16,
    /// From one virtual function's routing ID to the next one's.
    pub stride: u16,
    /// Their device identifier.
    pub device: u16,
    /// Memory of each, by its BAR, in bytes; empty while they are enabled, since their size cannot be asked for then.
    pub bars: Vec<(u32, u64)>,
    at: u32,
}

impl VfioUserDevice {
    fn config16(&self, at: u32) -> Result<u16> {
        let mut word = [0; 2];
        self.config(at, &mut word)?;
        Ok(u16::from_le_bytes(word))
    }

    fn config32(&self, at: u32) -> Result<u32> {
        let mut word = [0; 4];
        self.config(at, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn capability(&self, id: u16) -> Result<Option<u32>> {
        let mut at = FIRST;
        for _ in 0..MOST {
            let header = self.config32(at)?;
            if header as u16 == id {
                return Ok(Some(at));
            }
            at = header >> 20 & !3;
            if at < FIRST {
                break;
            }
        }
        Ok(None)
    }

    /// What the function says of its virtual ones; `None`: it has none, or is one. Errors: [`Error::Gone`].
    pub fn virtual_functions(&self) -> Result<Option<VirtualFunctions>> {
        let Some(at) = self.capability(SRIOV)? else { return Ok(None) };
        let enabled = if self.config16(at + CONTROL)? & ENABLE != 0 { self.config16(at + NUMBER)? } else { 0 };
        let bars = if enabled == 0 { self.sizes(at)? } else { Vec::new() };
        let (offset, stride) = (self.config16(at + OFFSET)?, self.config16(at + OFFSET + 2)?);
        Ok(Some(VirtualFunctions { total: self.config16(at + TOTAL)?, enabled, offset, stride, device: self.config16(at + DEVICE)?, bars, at }))
    }

    /// Sizes of the BARs, asked for with ones; their addresses stay as they were.
    fn sizes(&self, at: u32) -> Result<Vec<(u32, u64)>> {
        let mut sizes = Vec::new();
        let mut bar = 0;
        while bar < BAR_COUNT {
            let register = at + BARS + 4 * bar;
            let mut before = [0; 8];
            self.config(register, &mut before)?;
            // The last one has none behind it.
            let wide = before[0] & 6 == 4 && bar + 1 < BAR_COUNT;
            let bytes = if wide { 8 } else { 4 };
            self.write_config(register, &[0xff; 8][..bytes])?;
            let mut ones = [0xff; 8];
            self.config(register, &mut ones[..bytes])?;
            self.write_config(register, &before[..bytes])?;
            let mask = u64::from_le_bytes(ones) & !0xf;
            // All zeros: there is no such BAR. Of one of 32 bits the upper half has stayed ones.
            if mask as u32 | if wide { (mask >> 32) as u32 } else { 0 } != 0 {
                sizes.push((bar, mask.wrapping_neg()));
            }
            bar += bytes as u32 / 4;
        }
        Ok(sizes)
    }

    /// Has the card show `count` virtual functions, and waits as long as they may take to come or to go. Those that were there are gone first, and those who use them are told.
    /// They are there as long as this device is open and not reset.
    ///
    /// Errors: [`Error::Unsupported`] when the function has none, [`Error::Open`] for more than there can be, [`Error::Gone`].
    pub fn set_virtual_functions(&self, count: u16) -> Result<()> {
        let now = self.virtual_functions()?.ok_or(Error::Unsupported("have virtual functions"))?;
        let no = |problem: String, mend: &str| Err(Error::Open { device: self.path.display().to_string(), problem, mend: mend.into(), errno: libc::ERANGE });
        if count > now.total {
            return no(format!("{count} virtual functions are wanted, and the card has {}", now.total), "ask for fewer, or serve more: ferric card serve --vfs N");
        }
        if now.enabled > 0 {
            self.write_config(now.at + CONTROL, &0u16.to_le_bytes())?;
            std::thread::sleep(AFTER_DISABLE);
        }
        if count == 0 {
            return Ok(());
        }
        self.write_config(now.at + PAGE_SIZE, &PAGES_OF_4K.to_le_bytes())?;
        self.write_config(now.at + NUMBER, &count.to_le_bytes())?;
        self.write_config(now.at + CONTROL, &(ENABLE | MEMORY).to_le_bytes())?;
        std::thread::sleep(AFTER_ENABLE);
        match self.virtual_functions()? {
            Some(now) if now.enabled == count => Ok(()),
            _ => no("it has not taken the number of virtual functions".into(), "see what it says of them: ferric card dump"),
        }
    }
}
