//! Registers: discovery, control, the bases of the admin rings, and whose turn it is at the admin engine.
use ferric_abi::csr;
use ferric_model::admin::word;

/// CONTROL: enable; STATUS: enabled.
const ENABLE: u32 = 1;
/// CONTROL: soft reset; STATUS: reset in progress.
const RESET: u32 = 2;
/// Bits that are kept of ADMIN_SIZE and of ADMIN_DOORBELL.
const SIZE_BITS: u32 = 0xf;
const PRODUCER_BITS: u32 = 0xffff;
const ROW: u32 = csr::ADMIN_SQ_LO;

/// A function's registers.
#[derive(Clone, Default)]
struct Window {
    /// Words of the admin rings, as the admin engine numbers them.
    row: [u32; 6],
    on: bool,
    resetting: bool,
    /// It is to have a turn.
    due: bool,
}

/// The registers of all functions.
pub(crate) struct Registers {
    caps: [u32; 4],
    windows: Vec<Window>,
    /// Whose turn is considered first.
    first: usize,
}

impl Registers {
    pub(crate) fn new(functions: usize, caps: [u32; 4]) -> Self {
        Self { caps, windows: vec![Window::default(); functions], first: 0 }
    }

    pub(crate) fn functions(&self) -> usize {
        self.windows.len()
    }

    pub(crate) fn read(&self, function: usize, offset: u32, now: u32) -> u32 {
        let Some(w) = self.windows.get(function) else { return 0 };
        match offset {
            csr::MAGIC => csr::MAGIC_VALUE,
            csr::VERSION => csr::VERSION_VALUE,
            csr::CAPS0 => self.caps[0],
            csr::CAPS1 => self.caps[1],
            csr::CAPS2 => self.caps[2],
            csr::CAPS3 => self.caps[3],
            csr::CONTROL | csr::STATUS => (if w.on { ENABLE } else { 0 }) | if w.resetting { RESET } else { 0 },
            csr::ADMIN_SQ_LO | csr::ADMIN_SQ_HI | csr::ADMIN_CQ_LO | csr::ADMIN_CQ_HI | csr::ADMIN_SIZE => w.row[((offset - ROW) / 4) as usize],
            csr::TICK => now,
            _ => 0,
        }
    }

    /// A write of a whole word.
    pub(crate) fn write(&mut self, function: usize, offset: u32, value: u32) {
        let Some(w) = self.windows.get_mut(function) else { return };
        match offset {
            csr::CONTROL => {
                w.on = false;
                if value & RESET != 0 {
                    // The function's ring begins anew.
                    w.resetting = true;
                    w.row[word::PRODUCER as usize] = 0;
                } else if value & ENABLE != 0 {
                    w.on = true;
                }
                w.due = true;
            }
            csr::ADMIN_SIZE => w.row[word::SIZE as usize] = value & SIZE_BITS,
            csr::ADMIN_DOORBELL => {
                w.row[word::PRODUCER as usize] = value & PRODUCER_BITS;
                w.due = true;
            }
            csr::ADMIN_SQ_LO | csr::ADMIN_SQ_HI | csr::ADMIN_CQ_LO | csr::ADMIN_CQ_HI => w.row[((offset - ROW) / 4) as usize] = value,
            _ => {}
        }
    }

    /// The function whose turn it is, if one is to have a turn.
    pub(crate) fn turn(&self) -> Option<usize> {
        let n = self.windows.len();
        (0..n).map(|i| (self.first + i) % n).find(|f| self.windows[*f].due)
    }

    /// What the admin engine reads (`ferric_model::admin::word`).
    pub(crate) fn look(&self, function: u32, number: u32) -> u32 {
        let w = &self.windows[function as usize % self.windows.len()];
        match number {
            word::STATE => u32::from(w.on) << word::ENABLED | u32::from(w.resetting) << word::RESETTING,
            word::TURN => self.turn().map_or(0, |f| 1 << word::DUE | f as u32),
            _ => w.row.get(number as usize).copied().unwrap_or(0),
        }
    }

    pub(crate) fn served(&mut self, function: u32) {
        self.windows[function as usize].due = false;
        self.first = function as usize + 1;
    }

    pub(crate) fn again(&mut self, function: u32) {
        self.windows[function as usize].due = true;
    }

    pub(crate) fn reset_done(&mut self, function: u32) {
        self.windows[function as usize].resetting = false;
    }
}
