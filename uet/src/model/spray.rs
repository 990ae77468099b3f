//! The entropy value of each packet, and with it its path.

/// How a PDC chooses paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// One value for good; ROD always has it so.
    Fixed,
    /// The values of a table in turn.
    Oblivious,
    /// The same, but values whose path is bad are passed over as often as they were found so.
    Penalties,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Told {
    /// It arrived.
    Ok,
    /// It arrived marked.
    Ecn,
    /// It was refused.
    Nack,
    /// Nothing was heard of it.
    Timeout,
}

/// Most that a value can be passed over.
const MOST: u8 = 15;

/// The paths of a PDC: a slot is a place in its table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spray {
    policy: Policy,
    table: Vec<u16>,
    penalties: Vec<u8>,
    turn: u16,
}

/// Next number of a generator that is good enough to choose paths and first PSNs (splitmix64).
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Spray {
    /// A table of `entropies` values, of one with a fixed path.
    pub fn new(policy: Policy, entropies: u16, seed: &mut u64) -> Self {
        let count = if policy == Policy::Fixed { 1 } else { usize::from(entropies.max(1)) };
        let table = (0..count).map(|_| random(seed) as u16).collect();
        Self { policy, table, penalties: if policy == Policy::Penalties { vec![0; count] } else { Vec::new() }, turn: 0 }
    }

    /// Slot and entropy value of the next packet.
    pub fn choose(&mut self) -> (u16, u16) {
        let count = self.table.len() as u16;
        let mut slot = self.turn % count;
        // Only the first that is passed over in a choice has done its time by that.
        let mut first = true;
        for _ in 0..count {
            let Some(penalty) = self.penalties.get_mut(usize::from(slot)).filter(|p| **p > 0) else { break };
            *penalty -= u8::from(std::mem::take(&mut first));
            slot = (slot + 1) % count;
        }
        self.turn = (slot + 1) % count;
        (slot, self.table[usize::from(slot)])
    }

    /// What became of a packet that went by `slot`.
    pub fn told(&mut self, slot: u16, what: Told) {
        if let Some(penalty) = self.penalties.get_mut(usize::from(slot)) {
            let more = match what {
                Told::Ok => 0,
                Told::Ecn => 1,
                Told::Nack => 4,
                Told::Timeout => MOST,
            };
            *penalty = (*penalty + more).min(MOST);
        }
    }
}
