//! The flow language: the text of Open vSwitch's datapath flows (`dpctl`), read and written.
//!
//! [`parse::flow`] and [`parse::steps`] read, `Display` writes. What the text can say and the card cannot do is read all the same and refused when the flow is installed, with
//! the reason: [`super::install`].
mod display;
pub mod fields;
pub mod parse;
mod tunnel;

pub use display::{mac as mac_text, steps as steps_text};
pub use fields::Field;
use std::collections::BTreeMap;
pub use tunnel::{Header, Outer, TunnelKind};

/// A value and those of its bits that count; the others are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masked {
    /// The bits that count; zero elsewhere.
    pub value: u128,
    /// Ones where bits count.
    pub mask: u128,
}

impl Masked {
    /// `value` where `mask` has ones.
    pub fn new(value: u128, mask: u128) -> Self {
        Self { value: value & mask, mask }
    }
}

/// One tag of the key: its type, and vid, pcp and cfi (which is 1 where there is a tag).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Type, 0x8100 or 0x88A8.
    pub tpid: u16,
    /// VLAN, 12 bits.
    pub vid: Masked,
    /// Priority, 3 bits.
    pub pcp: Masked,
}

/// What a flow matches. Fields that are not there do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Tags from the outside on; at most two.
    pub tags: Vec<Tag>,
    /// The fields behind the tags, and those of the tunnel.
    pub fields: BTreeMap<Field, Masked>,
    /// The text says that there is a tunnel.
    pub tunnel: bool,
    /// Groups of [`fields::FOREIGN`] that say something, as they stand in the text.
    pub foreign: Vec<String>,
}

impl Match {
    /// Sets a field to a whole value; the builder form is for programs that make flows.
    pub fn with(self, field: Field, value: u128) -> Self {
        self.with_masked(field, value, field.full())
    }

    /// Sets a field to the bits of `value` that `mask` has. A mask of zero takes the field out.
    pub fn with_masked(mut self, field: Field, value: u128, mask: u128) -> Self {
        let mask = mask & field.full();
        self.fields.remove(&field);
        if mask != 0 {
            self.fields.insert(field, Masked::new(value, mask));
        }
        self
    }

    /// The field's value if all its bits count.
    pub fn exact(&self, field: Field) -> Option<u128> {
        self.fields.get(&field).filter(|m| m.mask == field.full()).map(|m| m.value)
    }
}

/// One action of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the port with this number.
    Output(u32),
    /// `push_vlan(vid=,pcp=)`: tag control information without the cfi bit, and the type.
    PushVlan { tpid: u16, tci: u16 },
    /// `pop_vlan`.
    PopVlan,
    /// `set(group(...))` of fields that a frame has.
    Set(BTreeMap<Field, Masked>),
    /// `tnl_push(...)`; the actions behind it see the outer frame.
    TnlPush { port: u32, header: Header, out: u32 },
    /// `tnl_pop(port)`: the endpoint takes the frame.
    TnlPop(u32),
    /// `userspace(...)`, with what stands in the brackets.
    Userspace(String),
    /// `meter(n)`.
    Meter(u32),
    /// `clone(...)`: what is done to the frame in it does not stay.
    Clone(Vec<Step>),
    /// `sample(sample=P%,actions(...))`: the probability in 2^-32.
    Sample { probability: u32, steps: Vec<Step> },
    /// `trunc(n)`: the next output gets n bytes at most.
    Trunc(u32),
    /// An action that this switch does not have, as it stands in the text.
    Foreign(String),
}

/// A flow: what it matches and what is done. No step: drop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// What it matches.
    pub matches: Match,
    /// What is done, in this order.
    pub steps: Vec<Step>,
}
