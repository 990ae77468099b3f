//! The control queue (spec 5.1.6.5): receive modes, the filter's MAC addresses and VLANs, the function's own MAC address, pairs in use, receive-side scaling, coalescing. A command that is not done is answered with an error if there is room for an answer, and counted.
use super::coalesce::Limits;
use super::device::Device;
use super::engine::Taken;
use super::memory::Memory;
use super::queue::Role;
use super::rss::Rss;
use super::transmit::gather;
use super::walk::Segment;
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::net::control;
use ferric_abi::virtio::{feature, ControlHead};

/// Bytes of a command at most: a table of 10,000 MAC addresses. A longer one is cut, and refused for what it lacks.
const LONGEST: u32 = 0x1_0000;

/// What commands have set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Receive modes, by their command's number.
    pub receive: [bool; 6],
    /// Pairs of queues in use; with receive-side scaling those that the driver sends by, while the table says which of them receive.
    pub pairs: u16,
    /// When the driver is told of buffers that receive queues have used.
    pub receive_limits: Limits,
    /// The same of transmit queues.
    pub transmit_limits: Limits,
}

impl Default for Modes {
    fn default() -> Self {
        Self { receive: [false; 6], pairs: 1, receive_limits: Limits::default(), transmit_limits: Limits::default() }
    }
}

impl Device {
    pub(super) fn command(&mut self, memory: &mut dyn Memory, queue: u16, taken: Taken) {
        let done = self.carry_out(memory, &taken.chain.readable).is_some();
        let answer = if done { control::OK } else { control::ERR };
        let place = taken.chain.writable.first();
        let answered = place.is_some_and(|to| memory.write(to.addr, &[answer]).is_ok());
        if !done || !answered {
            self.counters.count(VirtioCause::BadCommand);
        }
        self.counters.commands += 1;
        if let Some(engine) = &mut self.queues[usize::from(queue)].engine {
            engine.finish(taken.number, answered.into());
        }
    }

    /// Carries out a command; `None`: it has not been.
    fn carry_out(&mut self, memory: &mut dyn Memory, segments: &[Segment]) -> Option<()> {
        let mut left = LONGEST;
        let mut first = Vec::new();
        for segment in segments {
            let length = segment.length.min(left);
            left -= length;
            first.extend((length > 0).then_some(Segment { length, ..*segment }));
        }
        let bytes = gather(memory, &first).ok()?;
        let (head, data) = bytes.split_first_chunk()?;
        let head = ControlHead(*head);
        let has = |bit: u64| self.features & bit != 0;
        match (head.class(), head.command()) {
            (control::RX, mode @ control::RX_PROMISC..=control::RX_NOBCAST) => {
                let known = if mode <= control::RX_ALLMULTI { has(feature::CTRL_RX) } else { has(feature::CTRL_RX_EXTRA) };
                let on = *data.first().filter(|on| known && **on <= 1)?;
                self.modes.receive[usize::from(mode)] = on == 1;
            }
            (control::MAC, control::MAC_ADDR_SET) if has(feature::CTRL_MAC_ADDR) => {
                let mut mac = [0; 8];
                mac[..6].copy_from_slice(data.get(..6)?);
                self.config.set_mac(u64::from_le_bytes(mac));
                // The driver knows: it is not told, but what it has read is old.
                self.config_renewed();
            }
            (control::MAC, control::MAC_TABLE_SET) if has(feature::CTRL_RX) => self.filter.set_addresses(data)?,
            (control::VLAN, command @ (control::VLAN_ADD | control::VLAN_DEL)) if has(feature::CTRL_VLAN) => {
                self.filter.set_vlan(u16::from_le_bytes(*data.first_chunk()?), command == control::VLAN_ADD)?;
            }
            (control::MQ, control::MQ_PAIRS_SET) if has(feature::MQ) => {
                self.use_pairs(u16::from_le_bytes(*data.first_chunk()?), None)?;
            }
            (control::MQ, control::MQ_RSS_CONFIG) if has(feature::RSS) => {
                let (rss, pairs) = Rss::parse(data, |pair| self.is_enabled(pair))?;
                self.use_pairs(pairs, Some(rss))?;
            }
            (control::NOTF_COAL, control::NOTF_COAL_TX_SET) if has(feature::NOTF_COAL) => self.modes.transmit_limits = Limits::parse(data)?,
            (control::NOTF_COAL, control::NOTF_COAL_RX_SET) if has(feature::NOTF_COAL) => self.modes.receive_limits = Limits::parse(data)?,
            _ => return None,
        }
        Some(())
    }

    /// So many pairs are in use, and frames are spread by their hash or by their flow: the last command decides (spec 5.1.6.5.6). `None`: there are not so many.
    fn use_pairs(&mut self, pairs: u16, rss: Option<Rss>) -> Option<()> {
        self.modes.pairs = (1..=self.offer.pairs).contains(&pairs).then_some(pairs)?;
        self.rss = rss;
        Some(())
    }

    /// The receive queue of a pair is enabled.
    fn is_enabled(&self, pair: u16) -> bool {
        let queue = pair.checked_mul(2).filter(|queue| self.role(*queue) == Some(Role::Receive));
        queue.is_some_and(|queue| self.queues[usize::from(queue)].engine.is_some())
    }
}
