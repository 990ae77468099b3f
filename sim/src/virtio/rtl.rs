//! The virtio engine of the gateware at its ports: the host's memory behind its AXI port, frames, notifications, its tables of queues.
use crate::axi::AxiHost;
use crate::card::{BusCounters, CardConfig, Edge};
use crate::error::Error;
use crate::iommu::Iommu;
use ferric_abi::codes::VirtioCause;
use ferric_hdl::msg::{CtlReq, CtlResp, MsixReq, VqNotify, VqTold, VsDropped, VsFor};
use ferric_hdl::tb::Fields;
use ferric_hdl::virtio::engine::TELLERS;
use std::collections::VecDeque;
use verilator_sys::{Model, PortId};

/// Cycles in which nothing passes the engine's ports after which nothing is under way inside.
const SILENCE: u64 = 256;
/// Cycles of reset, and those behind it until all tables are clear.
const RESET: u64 = 8;
const SWEEP: u64 = 600;

/// A stream of messages: payload, valid, ready.
struct Stream {
    data: PortId,
    valid: PortId,
    ready: PortId,
}

impl Stream {
    fn find(model: &Model, name: &str) -> Result<Self, verilator_sys::Error> {
        let port = |part: &str| model.port(&format!("{name}${part}"));
        Ok(Self { data: port("data")?, valid: port("valid")?, ready: port("ready")? })
    }

    fn offer(&self, model: &mut Model, words: Option<&[u32]>) {
        model.set(self.valid, words.is_some().into());
        if let Some(words) = words {
            model.set_wide(self.data, words);
        }
    }

    fn moves(&self, model: &Model) -> bool {
        model.get(self.valid) == 1 && model.get(self.ready) == 1
    }

    fn words(&self, model: &Model) -> Vec<u32> {
        let mut words = vec![0; model.info(self.data).width.div_ceil(32) as usize];
        model.get_wide(self.data, &mut words);
        words
    }
}

/// A stream of frames.
struct Frames {
    beats: Stream,
    keep: PortId,
    last: PortId,
}

impl Frames {
    fn find(model: &Model, name: &str) -> Result<Self, verilator_sys::Error> {
        Ok(Self { beats: Stream::find(model, name)?, keep: model.port(&format!("{name}$keep"))?, last: model.port(&format!("{name}$last"))? })
    }
}

/// A table of queues, by its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// `VqAvail`.
    Avail,
    /// `VqUsed`.
    Used,
    /// Those of steering (`ferric_hdl::virtio::steer`).
    Steer,
}

/// An access to a word of a line.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub table: Table,
    pub line: u32,
    pub word: u32,
    /// What is written; `None`: it is read.
    pub write: Option<u32>,
}

/// What has come out of the engine since it was last asked.
#[derive(Default)]
pub struct Output {
    /// Frames that leave, and the queues that they were in.
    pub frames: Vec<(u16, Vec<u8>)>,
    /// Queues whose driver wants to be interrupted: a line's vector is its queue's number.
    pub interrupts: Vec<u16>,
    /// Rejects, and whether the ring is lost by them.
    pub told: Vec<(u16, VirtioCause, bool)>,
    /// Frames that are in a guest's buffers.
    pub delivered: u64,
    /// Frames that steering has dropped, by `steer_cause`.
    pub dropped: Vec<u64>,
    /// What the access has found.
    pub answer: Option<u32>,
}

/// An engine.
pub struct Rtl {
    model: Model,
    bytes: usize,
    reset: PortId,
    notify: Stream,
    whose: Stream,
    frames_in: Frames,
    frames_out: Frames,
    from: Stream,
    msix: Stream,
    tables: [(Stream, Stream); 3],
    dropped: (PortId, PortId),
    tellers: Vec<(PortId, PortId)>,
    delivered: PortId,
    axi: AxiHost,
    bus: BusCounters,
    cycle: u64,
    quiet_since: u64,
    /// What waits in front of it.
    notifications: VecDeque<u16>,
    owners: VecDeque<u16>,
    frames: VecDeque<Vec<u8>>,
    /// Bytes of the first frame that have gone in.
    at: usize,
    access: Option<(Access, bool)>,
    leaving: Vec<u8>,
    /// Frames that have left, and their queues: those of one kind wait for the other.
    left: VecDeque<Vec<u8>>,
    senders: VecDeque<u16>,
}

impl Rtl {
    /// An engine as after power-on: built, or taken from the cache. Errors: of that.
    pub fn new(config: &CardConfig) -> Result<Self, Error> {
        let mut model = crate::library::virtio_engine(config.width)?.instance(None)?;
        let m = &model;
        let table = |name: &str| Ok::<_, verilator_sys::Error>((Stream::find(m, &format!("s_{name}"))?, Stream::find(m, &format!("m_{name}"))?));
        let tellers = TELLERS.iter().map(|block| Ok((m.port(&format!("{block}_told_valid"))?, m.port(&format!("{block}_told"))?))).collect::<Result<_, verilator_sys::Error>>()?;
        let (notify, whose, from, msix) = (Stream::find(m, "s_notify")?, Stream::find(m, "s_for")?, Stream::find(m, "m_from")?, Stream::find(m, "m_msix")?);
        let (frames_in, frames_out) = (Frames::find(m, "s_frame")?, Frames::find(m, "m_frame")?);
        let (tables, delivered, reset) = ([table("avail")?, table("used")?, table("steer")?], m.port("delivered")?, m.port("reset")?);
        let dropped = (m.port("dropped_valid")?, m.port("dropped")?);
        let axi = AxiHost::new(&mut model, config.width / 8, config.host, config.seed ^ 0x71)?;
        let mut rtl = Self {
            model,
            bytes: config.width / 8,
            reset,
            notify,
            whose,
            frames_in,
            frames_out,
            from,
            msix,
            tables,
            dropped,
            tellers,
            delivered,
            axi,
            bus: BusCounters::default(),
            cycle: 0,
            quiet_since: 0,
            notifications: VecDeque::new(),
            owners: VecDeque::new(),
            frames: VecDeque::new(),
            at: 0,
            access: None,
            leaving: Vec::new(),
            left: VecDeque::new(),
            senders: VecDeque::new(),
        };
        for cycle in 0..RESET + SWEEP {
            rtl.model.set(rtl.reset, u64::from(cycle < RESET));
            rtl.model.tick();
        }
        Ok(rtl)
    }

    /// A driver has notified a queue.
    pub fn notify(&mut self, queue: u16) {
        self.notifications.push_back(queue);
        self.quiet_since = self.cycle;
    }

    /// A frame that has come, which may be for one of the engine's functions.
    pub fn receive(&mut self, function: u16, frame: Vec<u8>) {
        self.owners.push_back(function);
        self.frames.push_back(frame);
        self.quiet_since = self.cycle;
    }

    /// Frames that wait in front of it.
    pub fn backlog(&self) -> usize {
        self.frames.len()
    }

    /// Begins an access, when none is under way: [`Output::answer`] comes.
    pub fn access(&mut self, access: Access) {
        self.access = Some((access, false));
        self.quiet_since = self.cycle;
    }

    /// Nothing waits in front of it, and nothing is under way inside.
    pub fn is_silent(&self) -> bool {
        self.cycle - self.quiet_since > SILENCE
    }

    /// One clock cycle.
    pub fn cycle(&mut self, iommu: &mut Iommu, output: &mut Output) {
        self.drive(iommu);
        self.model.settle();
        let moved = self.sample(iommu, output);
        self.model.edge();
        self.cycle += 1;
        let waits = self.access.is_some()
            || self.left.len() != self.senders.len()
            || !(self.notifications.is_empty() && self.owners.is_empty() && self.frames.is_empty() && self.leaving.is_empty() && self.axi.idle());
        if moved || waits {
            self.quiet_since = self.cycle;
        }
    }

    fn drive(&mut self, iommu: &mut Iommu) {
        let m = &mut self.model;
        self.axi.drive(m, iommu, &mut self.bus, self.cycle);
        let queue = |queue: &u16| Fields::of::<VqNotify>().pack(&[("queue", (*queue).into())]);
        self.notify.offer(m, self.notifications.front().map(queue).as_deref());
        let function = |function: &u16| Fields::of::<VsFor>().pack(&[("function", (*function).into())]);
        self.whose.offer(m, self.owners.front().map(function).as_deref());
        for (n, (ask, answer)) in self.tables.iter().enumerate() {
            let asked = self.access.as_ref().filter(|(access, taken)| access.table as usize == n && !taken).map(|(access, _)| {
                let fields = [("line", access.line.into()), ("word", access.word.into()), ("write", access.write.is_some().into()), ("data", access.write.unwrap_or(0).into())];
                Fields::of::<CtlReq>().pack(&fields)
            });
            ask.offer(m, asked.as_deref());
            m.set(answer.ready, 1);
        }
        m.set(self.msix.ready, 1);
        m.set(self.from.ready, 1);
        m.set(self.frames_out.beats.ready, 1);
        m.set(self.frames_in.beats.valid, u64::from(!self.frames.is_empty()));
        if let Some(frame) = self.frames.front() {
            let left = &frame[self.at..];
            let n = left.len().min(self.bytes);
            let mut beat = [0; 64];
            beat[..n].copy_from_slice(&left[..n]);
            m.set_bytes(self.frames_in.beats.data, &beat[..self.bytes]);
            m.set(self.frames_in.keep, u64::MAX >> (64 - n));
            m.set(self.frames_in.last, (left.len() == n).into());
        }
    }

    /// What moves in this cycle; whether anything does.
    fn sample(&mut self, iommu: &mut Iommu, output: &mut Output) -> bool {
        let (mut sent, mut interrupts, mut trace) = (VecDeque::new(), VecDeque::new(), None);
        let mut edge = Edge { iommu, bus: &mut self.bus, sent: &mut sent, interrupts: &mut interrupts, trace: &mut trace };
        self.axi.sample(&self.model, &mut edge, self.cycle, 0);
        let m = &self.model;
        let mut moved = false;
        if self.notify.moves(m) {
            self.notifications.pop_front();
        }
        if self.whose.moves(m) {
            self.owners.pop_front();
        }
        if self.frames_in.beats.moves(m) {
            self.at += self.bytes;
            if self.frames.front().is_some_and(|frame| frame.len() <= self.at) {
                self.frames.pop_front();
                self.at = 0;
            }
        }
        if self.frames_out.beats.moves(m) {
            moved = true;
            let n = m.get(self.frames_out.keep).count_ones() as usize;
            self.leaving.extend_from_slice(&m.bytes(self.frames_out.beats.data)[..n]);
            if m.get(self.frames_out.last) == 1 {
                self.left.push_back(std::mem::take(&mut self.leaving));
            }
        }
        if self.from.moves(m) {
            self.senders.push_back(Fields::of::<VqNotify>().get(&self.from.words(m), "queue") as u16);
        }
        let whole = self.left.len().min(self.senders.len());
        output.frames.extend(self.senders.drain(..whole).zip(self.left.drain(..whole)));
        if self.msix.moves(m) {
            moved = true;
            output.interrupts.push(Fields::of::<MsixReq>().get(&self.msix.words(m), "vector") as u16);
        }
        for (ask, answer) in &self.tables {
            if ask.moves(m) {
                self.access.iter_mut().for_each(|(_, taken)| *taken = true);
            }
            if answer.moves(m) {
                moved = true;
                self.access = None;
                output.answer = Some(Fields::of::<CtlResp>().get(&answer.words(m), "data") as u32);
            }
        }
        for (valid, told) in &self.tellers {
            if m.get(*valid) == 1 {
                moved = true;
                let (fields, words) = (Fields::of::<VqTold>(), [m.get(*told) as u32]);
                let cause = VirtioCause::ALL[fields.get(&words, "cause") as usize].0;
                output.told.push((fields.get(&words, "queue") as u16, cause, fields.get(&words, "lost") == 1));
            }
        }
        if m.get(self.dropped.0) == 1 {
            moved = true;
            output.dropped.push(Fields::of::<VsDropped>().get(&[m.get(self.dropped.1) as u32], "cause") as u64);
        }
        let delivered = m.get(self.delivered);
        output.delivered += delivered;
        moved || delivered == 1
    }
}
