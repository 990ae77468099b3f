//! What the replies keep per queue pair.
use rust_hdl::prelude::*;

/// Where a queue pair's replies go, and on whose behalf.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Addressee {
    pub function: Bits<12>,
    pub pd: Bits<24>,
    pub dest_qpn: Bits<24>,
    pub pmtu: Bits<3>,
    pub ipv6: Bit,
    pub vlan: Bit,
}

/// What is known of a queue pair. `epoch`: the life that the rest belongs to. `head`, `count`: its READs and atomics in the ring; `off`,
/// `psn_off`: bytes and packets already sent of the first. `slot`, `used`: next place for an atomic's result, and how many hold one.
/// `marks`: packets with `notify` on their way out. `listed`: in the list of those with something to send; `busy`: having its turn.
/// `ack`: an acknowledge is to go behind all that. `dead`: a READ or atomic has failed. `answered`: READs and atomics answered in this life, modulo 32,
/// duplicates apart. `ended`: atomics, of all lives, that have been executed or come to nothing, modulo 512.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Seat {
    pub epoch: Bits<8>,
    pub to: Addressee,
    pub head: Bits<5>,
    pub count: Bits<6>,
    pub off: Bits<32>,
    pub psn_off: Bits<24>,
    pub slot: Bits<5>,
    pub used: Bits<6>,
    pub marks: Bits<8>,
    pub listed: Bit,
    pub busy: Bit,
    pub dead: Bit,
    pub ack: Bit,
    pub ack_psn: Bits<24>,
    pub ack_msn: Bits<24>,
    pub ack_syndrome: Bits<8>,
    pub answered: Bits<5>,
    pub ended: Bits<9>,
}

/// A READ, or an atomic whose result is in `slot`. `again`: a duplicate.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Item {
    pub atomic: Bit,
    pub again: Bit,
    pub slot: Bits<5>,
    pub psn: Bits<24>,
    pub msn: Bits<24>,
    pub va: Bits<64>,
    pub key: Bits<32>,
    pub len: Bits<32>,
}

/// An atomic's outcome. `running`: not there yet; `failed`: never.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Outcome {
    pub psn: Bits<24>,
    pub running: Bit,
    pub failed: Bit,
    pub value: Bits<64>,
}

/// What comes back with an atomic's outcome: the PSN of its packet, and the place of its result.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Mark {
    pub psn: Bits<24>,
    pub slot: Bits<5>,
}

/// What brings a queue pair's seat to hand.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Job {
    /// A reply came from completion.
    Ack,
    /// A packet left.
    Left,
    /// A turn ended.
    Ended,
    /// An atomic was executed.
    Executed,
    /// The queue pair's life is over.
    Life,
    /// The next in the list has its turn.
    Turn,
}
