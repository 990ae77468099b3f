//! The admin queue: commands in host memory, completions polled by phase bit. See docs/admin.md.
use crate::device::Device;
use crate::dma::DmaBuffer;
use crate::error::{Error, Result};
use ferric_abi::codes::{AdminOpcode, AdminStatus};
use ferric_abi::csr;
use ferric_abi::host::{AdminCommand, AdminCompletion};
use std::sync::Arc;
use std::time::Duration;

const LOG_SIZE: u32 = 5;
const SLOTS: u32 = 1 << LOG_SIZE;
/// Far longer than any command takes, even while the card drains a full pipeline, and even on a simulated card served by a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How often a wait looks whether the card is still there. A register of one that was pulled reads all ones; one that is simulated may do so
/// once because it was late.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: u32 = 3;

/// One function's admin queue. One command is in flight at a time.
pub struct AdminQueue {
    device: Arc<dyn Device>,
    commands: DmaBuffer,
    completions: DmaBuffer,
    producer: u32,
    /// The card has gone: no command waits for it again.
    gone: bool,
}

impl AdminQueue {
    /// Allocates the rings, tells the card and enables the function. What an earlier driver left behind (it may have been killed) goes first.
    pub fn new(device: &Arc<dyn Device>) -> Result<Self> {
        const ENABLED: u32 = 1;
        const RESETTING: u32 = 2;
        if device.read32(csr::STATUS) & ENABLED != 0 {
            log::info!("the function is in use: soft reset");
            device.write32(csr::CONTROL, 2);
            let start = device.now();
            while device.read32(csr::STATUS) & RESETTING != 0 {
                if device.now() - start > TIMEOUT {
                    return Err(Error::AdminTimeout("soft reset"));
                }
                device.relax();
            }
        }
        let commands = DmaBuffer::new(device, SLOTS as usize * AdminCommand::BYTES)?;
        let completions = DmaBuffer::new(device, SLOTS as usize * AdminCompletion::BYTES)?;
        for (lo, hi, iova) in [(csr::ADMIN_SQ_LO, csr::ADMIN_SQ_HI, commands.iova()), (csr::ADMIN_CQ_LO, csr::ADMIN_CQ_HI, completions.iova())] {
            device.write32(lo, iova as u32);
            device.write32(hi, (iova >> 32) as u32);
        }
        device.write32(csr::ADMIN_SIZE, LOG_SIZE);
        device.write32(csr::CONTROL, 1);
        Ok(Self { device: device.clone(), commands, completions, producer: 0, gone: false })
    }

    /// Executes one command and returns its 14 result words.
    pub fn execute(&mut self, what: &'static str, opcode: AdminOpcode, id: u32, params: &[u32]) -> Result<[u32; 14]> {
        if self.gone || self.device.is_gone() {
            return Err(Error::Gone);
        }
        let slot = (self.producer % SLOTS) as usize;
        let mut raw = [0u8; AdminCommand::BYTES];
        let mut command = AdminCommand(raw);
        command.set_opcode(opcode as u8).set_command_id(self.producer as u16).set_id(id);
        raw.copy_from_slice(&command.0);
        for (word, p) in raw[8..].chunks_exact_mut(4).zip(params) {
            word.copy_from_slice(&p.to_le_bytes());
        }
        self.commands.write(slot * AdminCommand::BYTES, &raw);
        let phase = (self.producer >> LOG_SIZE) & 1 == 0;
        self.producer = self.producer.wrapping_add(1);
        self.device.write32(csr::ADMIN_DOORBELL, self.producer & 0xffff);

        let start = self.device.now();
        let (mut looked, mut silent) = (start, 0);
        let at = slot * AdminCompletion::BYTES;
        while (self.completions.read_flag(at + AdminCompletion::BYTES - 1) >> 7 == 1) != phase {
            if self.device.now() - start > TIMEOUT {
                return Err(Error::AdminTimeout(what));
            }
            if self.device.now() - looked > LOOK {
                looked = self.device.now();
                silent = if self.device.read32(csr::MAGIC) == u32::MAX { silent + 1 } else { 0 };
            }
            if silent == LOOKS || self.device.is_gone() {
                self.gone = true;
                return Err(Error::Gone);
            }
            self.device.relax();
        }
        let completion = AdminCompletion(self.completions.read(at));
        log::debug!("admin {what} id {id}: {completion:?}");
        match AdminStatus::from_u8(completion.status()) {
            Some(AdminStatus::Ok) => {
                let mut result = [0; 14];
                for (r, w) in result.iter_mut().zip(completion.0[4..].chunks_exact(4)) {
                    *r = u32::from_le_bytes([w[0], w[1], w[2], w[3]]);
                }
                Ok(result)
            }
            Some(status) => Err(Error::Admin { what, status }),
            None => Err(Error::Invalid("card answered an admin command with an unknown status")),
        }
    }
}

/// Splits a little-endian context line into control-bus words.
pub fn words<const N: usize>(line: &[u8]) -> [u32; N] {
    let mut out = [0; N];
    for (o, w) in out.iter_mut().zip(line.chunks_exact(4)) {
        *o = u32::from_le_bytes([w[0], w[1], w[2], w[3]]);
    }
    out
}
