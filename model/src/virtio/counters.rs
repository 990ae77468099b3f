//! What a function counts.
use ferric_abi::codes::VirtioCause;

/// Rejects of a function, by their cause, and what it has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    causes: [u64; VirtioCause::ALL.len()],
    /// Frames that [`super::Device::arrive`] found to be for somebody else.
    pub filtered: u64,
    /// Frames that [`super::Device::receive`] was given.
    pub frames: u64,
    /// Of these those that are in the guest's buffers.
    pub delivered: u64,
    /// Frames that left the transmit queues.
    pub transmitted: u64,
    /// Chains that control queues have used.
    pub commands: u64,
}

impl Counters {
    pub(super) fn count(&mut self, cause: VirtioCause) {
        self.causes[cause as usize] += 1;
    }

    /// How often this has been the cause of a reject.
    pub fn of(&self, cause: VirtioCause) -> u64 {
        self.causes[cause as usize]
    }

    /// All rejects.
    pub fn rejects(&self) -> u64 {
        self.causes.iter().sum()
    }
}
