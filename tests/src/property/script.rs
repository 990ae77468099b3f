//! A program made concrete: where everything lies, what is in memory before, operands and payload.
use super::program::{Connection, Crime, Op, Verb};
use ferric_driver::types::QpType;
use ferric_driver::ud::GRH_BYTES;
use ferric_sim::Rng;
use rand::{Rng as _, SeedableRng};

/// Bytes between slots, which nothing may touch.
const GUARD: usize = 32;
/// The word that atomics work on stands in front of the slots of the side that answers.
pub const WORD: usize = 0;

/// One work request with all it needs. Offsets count from the first multiple of 8 in the region.
#[derive(Clone, Debug)]
pub struct Act {
    pub op: Op,
    /// Slot of the sender, slot of the other side.
    pub local: usize,
    pub remote: usize,
    /// Bytes of the receive that this message takes.
    pub receive: Option<usize>,
    pub imm: u32,
    /// Of an atomic: addend, or value to swap in.
    pub operand: u64,
}

/// Everything of one connection.
#[derive(Clone, Debug)]
pub struct Script {
    pub transport: QpType,
    pub acts: Vec<Act>,
    /// Memory of the sender and of the other side, before.
    pub before: [Vec<u8>; 2],
}

fn random(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes[..]);
    bytes
}

impl Script {
    pub fn new(connection: &Connection) -> Self {
        let (mut local, mut remote) = (GUARD, WORD + 8 + GUARD);
        let mut acts: Vec<Act> = Vec::new();
        let mut seed = 0u64;
        let grh = if connection.transport == QpType::Ud { GRH_BYTES } else { 0 };
        let largest = connection.ops.iter().map(|op| op.len).max().unwrap_or(0);
        // The window's key has gone; something reads by it.
        let (mut gone, mut reading) = (false, false);
        for op in &connection.ops {
            let mut op = op.clone();
            // The window's key goes once, and what comes by it then is refused. What has no payload needs no key.
            if op.verb == Verb::SendInv && gone {
                op.verb = Verb::Send;
            }
            op.through &= op.len > 0;
            if op.through && gone {
                op.crime = Some(Crime::Gone);
            }
            gone |= op.verb == Verb::SendInv;
            // A READ is not over when the next request is executed: without the fence its key may go before its answer (IBTA 10.8.3, table of work request ordering).
            op.fence |= op.verb == Verb::SendInv && reading;
            reading |= op.verb == Verb::Read && op.through;
            let mut rng = Rng::seed_from_u64(op.data);
            seed = seed.rotate_left(7) ^ op.data;
            let receive = op.verb.consumes().then(|| match op.crime {
                Some(Crime::Short) => op.len - 1,
                // Whichever message comes.
                _ if connection.transport != QpType::Rc => largest + grh,
                _ if op.verb.sends() => op.len + rng.gen_range(0..20),
                _ => rng.gen_range(0..20),
            });
            // What a WRITE wrote before; a READ of anything that is still to be written has no certain answer without a fence.
            let written = acts.last().filter(|a: &&Act| op.reads_back && a.op.verb == Verb::Write && a.op.crime.is_none() && a.op.len >= op.len);
            let at = match written {
                Some(act) if op.verb == Verb::Read => act.remote,
                _ if matches!(op.verb, Verb::Put | Verb::Store) => WORD,
                _ => remote,
            };
            let len = op.len;
            acts.push(Act { op, local, remote: at, receive, imm: rng.gen(), operand: rng.gen() });
            local = (local + len + GUARD).next_multiple_of(8);
            remote = (remote + len.max(receive.unwrap_or(0)) + GUARD).next_multiple_of(8);
        }
        let mut rng = Rng::seed_from_u64(seed);
        Self { transport: connection.transport, before: [random(&mut rng, local), random(&mut rng, remote)], acts }
    }

    /// Payload of an act that sends or writes.
    pub fn payload(&self, act: &Act) -> &[u8] {
        &self.before[0][act.local..act.local + act.op.len]
    }
}
