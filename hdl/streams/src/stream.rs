//! Drivers and monitors of valid/ready ports.

use crate::rng::Rng;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use verilator_sys::{Direction, Model, PortId};

/// One beat: the words of every payload field, field after field.
pub type Beat = Vec<u32>;

/// Once in this many stalls the port stays stalled for up to [`LONG_STALL`] cycles, so that buffers fill.
const LONG_STALL_ODDS: u64 = 64;
const LONG_STALL: u64 = 40;

/// `bus$field`, or `bus_field` when the prefix brings its own separator (`ar_`, `ctx$acq_`). A field that begins with `/` is a
/// port's whole name.
pub fn port_name(prefix: &str, field: &str) -> String {
    if let Some(whole) = field.strip_prefix('/') {
        return whole.into();
    }
    let separator = if prefix.ends_with(['_', '$']) { "" } else { "$" };
    format!("{prefix}{separator}{field}")
}

/// The ports that make up one stream.
pub struct Lane {
    prefix: String,
    fields: Vec<(PortId, u32)>,
    valid: PortId,
    ready: Option<PortId>,
    stall: u32,
    stalled_for: u64,
}

impl Lane {
    /// The stream of ports `prefix` with these payload fields, which goes `into_block` or comes from it and stalls in `stall` percent of cycles (0..=90). Panics if the
    /// block has no such ports.
    pub fn new(model: &Model, prefix: &str, fields: &[&str], into_block: bool, stall: u32) -> Lane {
        let port = |field: &str, towards: bool| {
            let name = port_name(prefix, field);
            let id = model.port(&name).unwrap_or_else(|e| panic!("{e}"));
            let expected = if towards == into_block { Direction::In } else { Direction::Out };
            assert_eq!(model.info(id).direction, expected, "`{name}` faces the other way");
            id
        };
        assert!(stall <= 90, "stall probability is 0..=90 percent");
        let ready = model.try_port(&port_name(prefix, "ready")).map(|_| port("ready", false));
        let width = |id: PortId| (id, model.info(id).width);
        let fields = fields.iter().map(|field| width(port(field, true))).collect();
        Lane { prefix: prefix.into(), fields, valid: port("valid", true), ready, stall, stalled_for: 0 }
    }

    fn write(&self, model: &mut Model, beat: &[u32]) {
        let mut rest = beat;
        for (id, width) in &self.fields {
            let (words, tail) = rest.split_at(width.div_ceil(32) as usize);
            model.set_wide(*id, words);
            rest = tail;
        }
    }

    fn read(&self, model: &Model) -> Beat {
        let mut beat = vec![0; self.words()];
        let mut rest = &mut beat[..];
        for (id, width) in &self.fields {
            let (words, tail) = rest.split_at_mut(width.div_ceil(32) as usize);
            model.get_wide(*id, words);
            rest = tail;
        }
        beat
    }

    fn words(&self) -> usize {
        self.fields.iter().map(|(_, width)| width.div_ceil(32) as usize).sum()
    }

    fn noise(&self, rng: &mut Rng) -> Beat {
        self.fields.iter().flat_map(|(_, width)| rng.words(*width)).collect()
    }

    /// Decides whether this port stalls in this cycle.
    fn stalls(&mut self, rng: &mut Rng) -> bool {
        if self.stalled_for > 0 {
            self.stalled_for -= 1;
            return true;
        }
        let stall = self.stall > 0 && rng.percent(self.stall);
        if stall && rng.below(LONG_STALL_ODDS) == 0 {
            self.stalled_for = rng.below(LONG_STALL);
        }
        stall
    }
}

struct SourceState {
    lane: Lane,
    queue: VecDeque<Beat>,
    /// The head of the queue is on the port and must stay there until taken.
    offered: bool,
    taken: u64,
}

struct SinkState {
    lane: Lane,
    queue: VecDeque<Beat>,
    /// What was offered and not taken in the cycle before.
    held: Option<Beat>,
    ready: bool,
    /// Ready when this one is.
    along: Option<Rc<RefCell<SinkState>>>,
    taken: u64,
}

/// One cycle of a stream's test-bench side. `drive` sets inputs, `sample` looks at settled outputs.
pub trait Port {
    /// Sets the inputs of this cycle.
    fn drive(&self, model: &mut Model, rng: &mut Rng);
    /// Err says how the block broke the protocol.
    fn sample(&self, model: &Model) -> Result<(), String>;
    /// Drives something else, to see whether outputs of other ports follow within the cycle.
    fn disturb(&self, model: &mut Model, rng: &mut Rng);
    /// Puts back what `drive` set.
    fn restore(&self, model: &mut Model);
    /// What the block shows on this port: to be the same whatever inputs do within the cycle.
    fn outputs(&self, model: &Model) -> Beat;
    /// The stream's name, for messages.
    fn prefix(&self) -> String;
    /// Inactive inputs; forgets what was offered.
    fn quiet(&self, model: &mut Model);
}

impl Port for RefCell<SourceState> {
    fn drive(&self, model: &mut Model, rng: &mut Rng) {
        let this = &mut *self.borrow_mut();
        if !this.offered {
            this.offered = !this.lane.stalls(rng) && !this.queue.is_empty();
            // Between beats the payload is noise: a block that looks at it without `valid` is found out.
            let noise = (!this.offered).then(|| this.lane.noise(rng));
            let beat = noise.as_ref().or(this.queue.front()).expect("offered only if queued");
            this.lane.write(model, beat);
            model.set(this.lane.valid, this.offered.into());
        }
    }

    fn sample(&self, model: &Model) -> Result<(), String> {
        let this = &mut *self.borrow_mut();
        if this.offered && this.lane.ready.is_none_or(|ready| model.get(ready) == 1) {
            this.offered = false;
            this.queue.pop_front();
            this.taken += 1;
        }
        Ok(())
    }

    fn disturb(&self, model: &mut Model, rng: &mut Rng) {
        let this = self.borrow();
        this.lane.write(model, &this.lane.noise(rng));
        model.set(this.lane.valid, (!this.offered).into());
    }

    fn restore(&self, model: &mut Model) {
        let this = self.borrow();
        // Without an offer the payload means nothing: any noise will do.
        if this.offered {
            this.lane.write(model, this.queue.front().expect("offered only if queued"));
        }
        model.set(this.lane.valid, this.offered.into());
    }

    fn outputs(&self, model: &Model) -> Beat {
        self.borrow().lane.ready.iter().map(|ready| model.get(*ready) as u32).collect()
    }

    fn prefix(&self) -> String {
        self.borrow().lane.prefix.clone()
    }

    fn quiet(&self, model: &mut Model) {
        let mut this = self.borrow_mut();
        this.offered = false;
        model.set(this.lane.valid, 0);
    }
}

impl Port for RefCell<SinkState> {
    fn drive(&self, model: &mut Model, rng: &mut Rng) {
        let this = &mut *self.borrow_mut();
        if let Some(ready) = this.lane.ready {
            this.ready = match &this.along {
                Some(other) => other.borrow().ready,
                None => !this.lane.stalls(rng),
            };
            model.set(ready, this.ready.into());
        }
    }

    fn sample(&self, model: &Model) -> Result<(), String> {
        let this = &mut *self.borrow_mut();
        let prefix = &this.lane.prefix;
        let offer = (model.get(this.lane.valid) == 1).then(|| this.lane.read(model));
        match (this.held.take(), &offer) {
            (Some(_), None) => return Err(format!("`{prefix}`: valid fell before ready")),
            (Some(held), Some(now)) if held != *now => {
                return Err(format!("`{prefix}`: the payload changed before ready: {held:x?}, then {now:x?}"));
            }
            _ => {}
        }
        if this.ready {
            this.taken += u64::from(offer.is_some());
            this.queue.extend(offer);
        } else {
            this.held = offer;
        }
        Ok(())
    }

    fn disturb(&self, model: &mut Model, _: &mut Rng) {
        let this = self.borrow();
        if let Some(ready) = this.lane.ready {
            model.set(ready, (!this.ready).into());
        }
    }

    fn restore(&self, model: &mut Model) {
        let this = self.borrow();
        if let Some(ready) = this.lane.ready {
            model.set(ready, this.ready.into());
        }
    }

    fn outputs(&self, model: &Model) -> Beat {
        let this = self.borrow();
        match model.get(this.lane.valid) {
            0 => vec![0],
            _ => [vec![1], this.lane.read(model)].concat(),
        }
    }

    fn prefix(&self) -> String {
        self.borrow().lane.prefix.clone()
    }

    fn quiet(&self, model: &mut Model) {
        let mut this = self.borrow_mut();
        this.held = None;
        if let Some(ready) = this.lane.ready {
            this.ready = false;
            model.set(ready, 0);
        }
    }
}

/// What a message port carries: anything that becomes 32-bit words, least significant first.
pub trait IntoWords {
    /// The words; missing ones count as zero.
    fn into_words(self) -> Vec<u32>;
}

macro_rules! into_words {
    ($($int:ty)*) => {$(
        impl IntoWords for $int {
            fn into_words(self) -> Vec<u32> {
                (0..<$int>::BITS.div_ceil(32)).map(|i| (u128::from(self) >> (32 * i)) as u32).collect()
            }
        }
    )*};
}
into_words!(u8 u16 u32 u64 u128);

impl IntoWords for bool {
    fn into_words(self) -> Vec<u32> {
        vec![self.into()]
    }
}
impl IntoWords for Vec<u32> {
    fn into_words(self) -> Vec<u32> {
        self
    }
}
impl IntoWords for &[u32] {
    fn into_words(self) -> Vec<u32> {
        self.to_vec()
    }
}

/// Feeds a port of the block. Made by `Tb::source` and `Tb::source_of`; a clone feeds the same port.
#[derive(Clone)]
pub struct Source(Rc<RefCell<SourceState>>);

impl Source {
    /// Feeds the ports of `lane`.
    pub fn new(lane: Lane) -> Source {
        Source(Rc::new(RefCell::new(SourceState { lane, queue: VecDeque::new(), offered: false, taken: 0 })))
    }

    /// Its side of each cycle.
    pub fn port(&self) -> Rc<dyn Port> {
        self.0.clone()
    }

    /// Queues one message on a port with one payload field. Panics if it does not fit.
    pub fn push(&self, message: impl IntoWords) {
        self.push_fields(&[&message.into_words()]);
    }

    /// Queues one beat of several fields, in the order given to `Tb::source_of`.
    pub fn push_fields(&self, values: &[&[u32]]) {
        let mut this = self.0.borrow_mut();
        assert_eq!(values.len(), this.lane.fields.len(), "fields of `{}`", this.lane.prefix);
        let mut beat = Vec::with_capacity(this.lane.words());
        for (value, (_, width)) in values.iter().zip(&this.lane.fields) {
            let words = width.div_ceil(32) as usize;
            let excess = value.iter().skip(words).any(|word| *word != 0);
            assert!(!excess, "{value:x?} does not fit {width} bits of `{}`", this.lane.prefix);
            beat.extend((0..words).map(|i| value.get(i).copied().unwrap_or(0)));
        }
        this.queue.push_back(beat);
    }

    /// Messages not yet taken by the block.
    pub fn pending(&self) -> usize {
        self.0.borrow().queue.len()
    }

    /// Messages taken by the block since the start.
    pub fn taken(&self) -> u64 {
        self.0.borrow().taken
    }

    /// Changes the stall probability (percent, 0..=90).
    pub fn set_stall(&self, percent: u32) {
        self.0.borrow_mut().lane.stall = percent.min(90);
    }
}

/// Collects what a port of the block sends. Made by `Tb::sink` and `Tb::sink_of`; a clone reads the same queue.
#[derive(Clone)]
pub struct Sink(Rc<RefCell<SinkState>>);

impl Sink {
    /// Watches the ports of `lane`.
    pub fn new(lane: Lane) -> Sink {
        let ready = lane.ready.is_none();
        Sink(Rc::new(RefCell::new(SinkState { lane, queue: VecDeque::new(), held: None, ready, along: None, taken: 0 })))
    }

    /// Its side of each cycle.
    pub fn port(&self) -> Rc<dyn Port> {
        self.0.clone()
    }

    /// The oldest message, its fields' words one after the other.
    pub fn pop(&self) -> Option<Vec<u32>> {
        self.0.borrow_mut().queue.pop_front()
    }

    /// The oldest message of up to 64 bits. Panics if it is wider.
    pub fn pop_u64(&self) -> Option<u64> {
        self.pop_u128().map(|value| u64::try_from(value).expect("the message is wider than 64 bits"))
    }

    /// The oldest message of up to 128 bits. Panics if it is wider.
    pub fn pop_u128(&self) -> Option<u128> {
        let words = self.pop()?;
        assert!(words.len() <= 4, "the message is wider than 128 bits");
        Some(words.iter().rev().fold(0, |value, word| value << 32 | u128::from(*word)))
    }

    /// The oldest beat, field by field.
    pub fn pop_fields(&self) -> Option<Vec<Vec<u32>>> {
        let beat = self.pop()?;
        let mut rest = &beat[..];
        let this = self.0.borrow();
        let field = |(_, width): &(PortId, u32)| {
            let (words, tail) = rest.split_at(width.div_ceil(32) as usize);
            rest = tail;
            words.to_vec()
        };
        Some(this.lane.fields.iter().map(field).collect())
    }

    /// Messages collected and not yet popped.
    pub fn len(&self) -> usize {
        self.0.borrow().queue.len()
    }

    /// Whether there is nothing to pop.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Messages taken from the block since the start.
    pub fn taken(&self) -> u64 {
        self.0.borrow().taken
    }

    /// From now on it is ready in the cycles in which `other` is, which was made before it.
    pub fn go_along(&self, other: &Sink) {
        self.0.borrow_mut().along = Some(other.0.clone());
    }

    /// Takes nothing more, until `set_stall`.
    pub fn refuse(&self) {
        self.0.borrow_mut().lane.stall = 100;
    }

    /// Changes the stall probability (percent, 0..=90).
    pub fn set_stall(&self, percent: u32) {
        self.0.borrow_mut().lane.stall = percent.min(90);
    }
}
