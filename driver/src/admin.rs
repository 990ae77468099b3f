//! The admin queue: commands in host memory, completions polled by phase bit. See docs/admin.md.
use crate::device::Device;
use crate::dma::DmaBuffer;
use crate::error::{Error, Result};
use ferric_abi::codes::{AdminOpcode, AdminStatus};
use ferric_abi::csr;
use ferric_abi::host::{AdminCommand, AdminCompletion};
use std::collections::HashMap;
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

/// What the card answers: 14 result words.
pub(crate) type Answer = [u32; 14];

/// A command that is to be posted.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// In words, for errors.
    pub(crate) what: &'static str,
    pub(crate) opcode: AdminOpcode,
    pub(crate) id: u32,
    pub(crate) params: Vec<u32>,
}

/// Where a posted command's answer is to be found.
#[derive(Debug)]
pub(crate) struct Ticket {
    what: &'static str,
    number: u32,
}

/// One function's admin queue. The card executes commands in the order in which they were posted; as many may be posted as the ring has slots.
pub struct AdminQueue {
    device: Arc<dyn Device>,
    commands: DmaBuffer,
    completions: DmaBuffer,
    /// Commands posted so far, and those of them that the card has been told of.
    producer: u32,
    rung: u32,
    /// Commands whose completions have been read, or given up.
    consumer: u32,
    /// Commands given up in a row up to `consumer`: the card may still read them, until it answers a later one.
    given_up: u32,
    /// Answers that came while another was waited for, by number.
    answers: HashMap<u32, AdminCompletion>,
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
                device.relax_for_answer();
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
        Ok(Self { device: device.clone(), commands, completions, producer: 0, rung: 0, consumer: 0, given_up: 0, answers: HashMap::new(), gone: false })
    }

    /// Executes one command and returns its 14 result words.
    pub fn execute(&mut self, what: &'static str, opcode: AdminOpcode, id: u32, params: &[u32]) -> Result<[u32; 14]> {
        let ticket = self.post(&Command { what, opcode, id, params: params.to_vec() })?;
        self.take(ticket)
    }

    /// Writes a command into the ring; the card does not hear of it before [`Self::ring`]. While the ring is full this waits.
    pub(crate) fn post(&mut self, command: &Command) -> Result<Ticket> {
        if self.gone || self.device.is_gone() {
            return Err(Error::Gone);
        }
        while self.producer.wrapping_sub(self.consumer) + self.given_up >= SLOTS {
            if self.producer == self.consumer {
                return Err(Error::AdminTimeout(command.what));
            }
            self.ring();
            self.collect(command.what)?;
        }
        let mut raw = [0u8; AdminCommand::BYTES];
        let mut head = AdminCommand(raw);
        head.set_opcode(command.opcode as u8).set_command_id(self.producer as u16).set_id(command.id);
        raw.copy_from_slice(&head.0);
        for (word, p) in raw[8..].chunks_exact_mut(4).zip(&command.params) {
            word.copy_from_slice(&p.to_le_bytes());
        }
        self.commands.write((self.producer % SLOTS) as usize * AdminCommand::BYTES, &raw);
        let ticket = Ticket { what: command.what, number: self.producer };
        self.producer = self.producer.wrapping_add(1);
        Ok(ticket)
    }

    /// Tells the card of all commands in the ring.
    pub(crate) fn ring(&mut self) {
        if self.rung != self.producer {
            self.rung = self.producer;
            self.device.write32(csr::ADMIN_DOORBELL, self.producer & 0xffff);
        }
    }

    /// Waits for the answer of a posted command.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Result<Answer> {
        self.ring();
        while !self.answers.contains_key(&ticket.number) && (ticket.number.wrapping_sub(self.consumer) as i32) >= 0 {
            self.collect(ticket.what)?;
        }
        // Without an answer: another wait has given up all that was posted.
        let completion = self.answers.remove(&ticket.number).ok_or(if self.gone { Error::Gone } else { Error::AdminTimeout(ticket.what) })?;
        match AdminStatus::from_u8(completion.status()) {
            Some(AdminStatus::Ok) => Ok(words(&completion.0[4..])),
            Some(status) => Err(Error::Admin { what: ticket.what, status }),
            None => Err(Error::Invalid("card answered an admin command with an unknown status")),
        }
    }

    /// Waits for the next completion. When it does not come, everything that has been posted is given up.
    fn collect(&mut self, what: &'static str) -> Result<()> {
        let at = (self.consumer % SLOTS) as usize * AdminCompletion::BYTES;
        let phase = (self.consumer >> LOG_SIZE) & 1 == 0;
        let start = self.device.now();
        let (mut looked, mut silent) = (start, 0);
        while (self.completions.read_flag(at + AdminCompletion::BYTES - 1) >> 7 == 1) != phase {
            if self.device.now() - start > TIMEOUT {
                self.give_up();
                return Err(Error::AdminTimeout(what));
            }
            if self.device.now() - looked > LOOK {
                looked = self.device.now();
                silent = if self.device.read32(csr::MAGIC) == u32::MAX { silent + 1 } else { 0 };
            }
            if silent == LOOKS || self.device.is_gone() {
                self.gone = true;
                self.give_up();
                return Err(Error::Gone);
            }
            self.device.relax_for_answer();
        }
        let completion = AdminCompletion(self.completions.read(at));
        log::debug!("admin command {}: {completion:?}", self.consumer);
        self.answers.insert(self.consumer, completion);
        self.consumer = self.consumer.wrapping_add(1);
        self.given_up = 0;
        Ok(())
    }

    /// Nobody waits any more for what has been posted.
    fn give_up(&mut self) {
        self.given_up += self.producer.wrapping_sub(self.consumer);
        self.consumer = self.producer;
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
