//! The function as a whole: what its owner calls. Its register window is in `common.rs`.
use super::coalesce::Untold;
use super::control::Modes;
use super::counters::Counters;
use super::engine::Balance;
use super::filter::Filter;
use super::memory::Memory;
use super::queue::{Queue, Role, Ticket};
use super::rss::{Rss, KEY, MOST};
use super::steer::Flows;
use super::transmit::Frame;
use super::turn::Turn;
use ferric_abi::codes::VirtioCause;
use ferric_abi::virtio::net::hash_type;
use ferric_abi::virtio::{feature, isr, status, NetConfig, NO_VECTOR};

/// What a function is made of: what it offers, and how large it is.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Feature bits; see [`Offer::KNOWN`].
    pub features: u64,
    /// Pairs of queues, at least 1; more than one only with MQ or RSS.
    pub pairs: u16,
    /// Descriptors of a queue at most, a power of two.
    pub max_size: u16,
    /// MSI-X vectors.
    pub vectors: u16,
    /// Receive chains that are fetched ahead, at most.
    pub stock: usize,
    /// Device configuration; `max_pairs` and what RSS has there are filled in.
    pub config: NetConfig,
}

impl Offer {
    /// Features that the model has; others must not be offered.
    pub const KNOWN: u64 = feature::CSUM
        | feature::GUEST_CSUM
        | feature::MTU
        | feature::MAC
        | feature::HOST_TSO4
        | feature::HOST_TSO6
        | feature::HOST_ECN
        | feature::MRG_RXBUF
        | feature::STATUS
        | feature::CTRL_VQ
        | feature::CTRL_RX
        | feature::CTRL_VLAN
        | feature::CTRL_RX_EXTRA
        | feature::MQ
        | feature::CTRL_MAC_ADDR
        | feature::INDIRECT_DESC
        | feature::EVENT_IDX
        | feature::VERSION_1
        | feature::ACCESS_PLATFORM
        | feature::RING_PACKED
        | feature::IN_ORDER
        | feature::ORDER_PLATFORM
        | feature::NOTIFICATION_DATA
        | feature::RING_RESET
        | feature::HOST_USO
        | feature::RSS
        | feature::NOTF_COAL
        | feature::SPEED_DUPLEX;
}

/// What one step of a queue did.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing is to be done before the driver does something.
    Idle,
    /// Something.
    Worked,
    /// A frame leaves; its chain is in hand until [`Device::sent`].
    Frame(Frame),
}

/// Registers that select, and those of the whole device.
#[derive(Clone, Copy, Default)]
pub(super) struct Selects {
    pub(super) device_features: u32,
    pub(super) driver_features: u32,
    pub(super) queue: u16,
}

/// A virtio network function.
pub struct Device {
    pub(super) offer: Offer,
    pub(super) config: NetConfig,
    /// Features that the driver has taken.
    pub(super) features: u64,
    /// Bits 64 to 127 that it has taken; none is offered.
    pub(super) beyond: u64,
    pub(super) status: u8,
    /// Reset has been asked for, and frames are still out.
    pub(super) resets: bool,
    pub(super) selects: Selects,
    pub(super) config_vector: u16,
    pub(super) generation: u8,
    /// The driver has read the device configuration of this generation.
    pub(super) seen: bool,
    pub(super) isr: u8,
    pub(super) queues: Vec<Queue>,
    pub(super) modes: Modes,
    pub(super) filter: Filter,
    pub(super) flows: Flows,
    /// Frames are spread by their hash; `None`: by their flow.
    pub(super) rss: Option<Rss>,
    /// Microseconds, as the owner has said last.
    pub(super) now: u64,
    interrupts: Vec<u16>,
    pub(super) counters: Counters,
}

impl Device {
    /// A function as after power-up. Panics if the offer cannot be: that is its maker's error, not a guest's.
    pub fn new(offer: Offer) -> Self {
        assert!(offer.features & !Offer::KNOWN == 0 && feature::are_complete(offer.features), "features {:#x}", offer.features);
        assert!(offer.max_size.is_power_of_two() && offer.pairs >= 1 && (offer.pairs == 1 || offer.features & (feature::MQ | feature::RSS) != 0));
        let mut config = offer.config.with_max_pairs(offer.pairs);
        if offer.features & feature::RSS != 0 {
            config = config.with_rss_max_key_size(KEY as u8).with_rss_max_table(MOST as u16).with_hash_types(hash_type::ALL);
        }
        Self {
            offer,
            config,
            features: 0,
            beyond: 0,
            status: 0,
            resets: false,
            selects: Selects::default(),
            config_vector: NO_VECTOR,
            generation: 0,
            seen: false,
            isr: 0,
            queues: (0..2 * offer.pairs + 1).map(|_| Queue::new(offer.max_size)).collect(),
            modes: Modes::default(),
            filter: Filter::default(),
            flows: Flows::default(),
            rss: None,
            now: 0,
            interrupts: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Features that both sides have.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// `device_status`.
    pub fn status(&self) -> u8 {
        self.status
    }

    /// What it has counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Receive modes, MAC address and pairs in use, as the control queue has set them.
    pub fn modes(&self) -> &Modes {
        &self.modes
    }

    /// How frames are spread by their hash, if the driver has asked for that last.
    pub fn rss(&self) -> Option<&Rss> {
        self.rss.as_ref()
    }

    /// Its queues: two of each pair, and the control queue behind them.
    pub fn queues(&self) -> u16 {
        2 * self.offer.pairs + 1
    }

    /// A reset has been asked for, and frames are still out.
    pub fn is_resetting(&self) -> bool {
        self.resets
    }

    /// Where a queue's chains are; `None`: it is not enabled.
    pub fn balance(&self, queue: u16) -> Option<Balance> {
        Some(self.queues.get(usize::from(queue))?.engine.as_ref()?.balance())
    }

    /// Receive chains in a queue's stock, and chains in hand beside them.
    pub fn held(&self, queue: u16) -> Option<(usize, usize)> {
        let queue = self.queues.get(usize::from(queue))?;
        let stock = queue.stock.len();
        Some((stock, queue.engine.as_ref()?.in_hand() - stock))
    }

    /// Vectors of the interrupts since the last call, in their order.
    pub fn interrupts(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.interrupts)
    }

    /// What a queue is for with the features taken; `None`: nothing.
    pub(super) fn role(&self, queue: u16) -> Option<Role> {
        let pairs = if self.features & (feature::MQ | feature::RSS) != 0 { self.offer.pairs } else { 1 };
        match queue {
            n if n < 2 * pairs => Some(if n % 2 == 0 { Role::Receive } else { Role::Transmit }),
            n if n == 2 * pairs && self.features & feature::CTRL_VQ != 0 => Some(Role::Control),
            _ => None,
        }
    }

    /// The driver may use the function, and it works.
    pub(super) fn runs(&self) -> bool {
        self.status & (status::DRIVER_OK | status::NEEDS_RESET) == status::DRIVER_OK && !self.resets
    }

    /// One step of a queue: what has been used is given back and signalled first, then the next chain is taken, or the queue armed. Every step ends, whatever the guest's memory says.
    pub fn step(&mut self, memory: &mut dyn Memory, queue: u16) -> Step {
        let (true, Some(role)) = (self.runs(), self.role(queue)) else { return Step::Idle };
        match self.try_step(memory, queue, role) {
            Ok(step) => step,
            Err(cause) => {
                self.fail(cause);
                Step::Worked
            }
        }
    }

    fn try_step(&mut self, memory: &mut dyn Memory, queue: u16, role: Role) -> Result<Step, VirtioCause> {
        let may_tell = self.may_tell(queue);
        let q = &mut self.queues[usize::from(queue)];
        let Some(engine) = q.engine.as_mut().filter(|_| !q.lent) else { return Ok(Step::Idle) };
        if engine.give_back(memory)? > 0 {
            return Ok(Step::Worked);
        }
        if let Some(wants) = if may_tell { engine.wants_interrupt(memory)? } else { None } {
            let vector = q.vector;
            q.untold = Untold::default();
            if wants {
                self.interrupt(isr::QUEUE, vector);
            }
            return Ok(Step::Worked);
        }
        if role == Role::Receive {
            let (stock, target) = (q.stock.len(), self.offer.stock);
            q.fills = stock < target && (q.fills || stock <= target / 2);
            if !q.fills {
                return Ok(Step::Idle);
            }
        }
        match engine.turn(memory)? {
            Turn::Idle => Ok(Step::Idle),
            Turn::Worked => Ok(Step::Worked),
            Turn::Rejected(cause) => {
                self.counters.count(cause);
                Ok(Step::Worked)
            }
            Turn::Chain(taken) => match role {
                Role::Receive => {
                    q.stock.push_back(taken);
                    Ok(Step::Worked)
                }
                Role::Transmit => Ok(self.transmit(memory, queue, taken)),
                Role::Control => {
                    self.command(memory, queue, taken);
                    Ok(Step::Worked)
                }
            },
        }
    }

    /// The frame of this ticket has left: its chain is done with. Frames may come back in any order; their chains are used in that of the ring.
    pub fn sent(&mut self, ticket: Ticket) {
        if let Some(queue) = self.queues.get_mut(usize::from(ticket.queue)) {
            queue.finish(ticket, self.now);
        }
        self.settle();
    }

    /// `status` of the device configuration is another one, such as when the link goes down.
    pub fn set_link(&mut self, status: u16) {
        if self.config.status() != status {
            self.config.set_status(status);
            self.config_renewed();
            if self.runs() {
                self.interrupt(isr::CONFIG, self.config_vector);
            }
        }
    }

    /// The device configuration is another one: a driver that has read the old one sees another generation (spec 2.5).
    pub(super) fn config_renewed(&mut self) {
        if std::mem::take(&mut self.seen) {
            self.generation = self.generation.wrapping_add(1);
        }
    }

    /// The function cannot go on (spec 2.1.2).
    pub(super) fn fail(&mut self, cause: VirtioCause) {
        self.counters.count(cause);
        self.need_reset();
    }

    pub(super) fn need_reset(&mut self) {
        self.status |= status::NEEDS_RESET;
        self.interrupt(isr::CONFIG, self.config_vector);
    }

    pub(super) fn interrupt(&mut self, bit: u8, vector: u16) {
        self.isr |= bit;
        if vector != NO_VECTOR {
            self.interrupts.push(vector);
        }
    }

    /// Reset of the function: the driver has written 0 to the status, or the bus has reset it. Queues stop at once; what the driver can read changes when no frame is out any more.
    pub fn reset(&mut self) {
        if !self.resets {
            self.resets = true;
            self.queues.iter_mut().for_each(Queue::stop);
        }
        self.settle();
    }

    /// Ends resets that wait for nothing any more.
    pub(super) fn settle(&mut self) {
        for queue in &mut self.queues {
            queue.resets &= !queue.is_drained();
        }
        if self.resets && self.queues.iter().all(Queue::is_drained) {
            let (counters, mut queues) = (std::mem::take(&mut self.counters), std::mem::take(&mut self.queues));
            queues.iter_mut().for_each(|queue| queue.clear(self.offer.max_size));
            *self = Self { counters, queues, generation: self.generation, now: self.now, ..Self::new(self.offer) };
        }
    }
}
