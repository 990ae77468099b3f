//! Engines: what a card is made of besides its chassis. See README.md.

pub mod bus;
pub mod echo;
mod flows;
mod local;
pub mod pause;
mod roce;
pub mod sizes;
mod uet;
mod verbs;
mod virtio;
mod vxlan;

use crate::assembly::Assembly;
use crate::host::admin::program::{Command, Program};
pub use sizes::Sizes;

/// Every engine. An engine stands behind those that it needs.
pub const ENGINES: &[&Engine] = &[&verbs::VERBS, &roce::ROCE, &echo::ECHO, &pause::PAUSE, &vxlan::VXLAN, &local::LOCAL, &flows::FLOWS, &uet::UET, &virtio::VIRTIO];

/// What the port side computes over a frame of an engine, and inserts into the frames that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The invariant CRC of RoCEv2 (IBTA volume 1, annex A17).
    Icrc,
    /// Nothing beyond what the MAC checks.
    None,
}

/// The manifest of an engine: everything that the chassis, the admin engine and the pages have to know about it. Its tables, counters and blocks are in its lines.
pub struct Engine {
    /// Its name, by which a card lists it.
    pub name: &'static str,
    /// What it does, in one sentence for docs/engines.md.
    pub what: &'static str,
    /// The engines that it stands on: they are in every card that it is in.
    pub needs: &'static [&'static str],
    /// Its bits of the discovery word CAPS3 (`abi::csr`).
    pub capabilities: u32,
    /// Which frames are its own, in one sentence; empty: it receives none.
    pub receives: &'static str,
    /// What is checked in them.
    pub check: Check,
    /// Doorbells in a function's window that it listens to: offset and what they ring.
    pub doorbells: &'static [(u32, &'static str)],
    /// The admin commands that it brings.
    pub commands: &'static [Command],
    /// What the admin engine does for it first when a function is reset.
    pub reset: Option<fn(&mut Program)>,
    /// Adds its lines to the list of a card of these sizes.
    pub lines: fn(&mut Assembly, &Sizes),
}

/// Places of descriptors of received frames that are not RoCE packets (the chain `frames`): who looks at a frame first. What nobody takes out goes to the raw queue pair, or is dropped and counted.
pub mod frame {
    /// The engine of every frame that is for the card itself.
    pub const ECHO: u32 = 10;
    /// Engines behind it.
    pub const LATER: u32 = 20;
    /// Virtio functions, which may want all that is left.
    pub const VIRTIO: u32 = 30;
}

/// Places between the card's ports and the card (the chains `frames off the wire` and `frames to the wire`): who is nearest to the port off the wire, and nearest to the card on the way out.
pub mod wire {
    /// The chains of frames between the ports and the card: beats and the MAC's verdict, and beats. Nothing on them but what engines link in; what stands on the first is always ready.
    pub const OFF_THE_WIRE: &str = "frames off the wire";
    pub const TO_THE_WIRE: &str = "frames to the wire";
    /// On the way out in front of the switch: whether a function may send a frame.
    pub const GUARD: u32 = 7;
    /// Behind that, what is for functions of the card itself, which the switch shall not put into a tunnel.
    pub const LOCAL_OUT: u32 = 8;
    /// What is between the two ends of a link only: nearest to the port, on the way in and on the way out.
    pub const LINK_IN: u32 = 5;
    pub const LINK_OUT: u32 = 95;
    /// Frames of virtio functions get in behind all that decides about the card's own.
    pub const VIRTIO_OUT: u32 = 90;
    /// What decides whether a frame may pass, and where to.
    pub const SWITCH: u32 = 10;
    /// Behind that on the way in: flow tables, which see the frames without their outer headers.
    pub const FLOWS: u32 = 15;
    /// Between those: what comes from functions of the card, which never had any.
    pub const LOCAL_IN: u32 = 12;
}

/// Places of the admin engine's barrier (the chain `barrier`): what arrived first, then what was decided by it, then what the host sees of that.
pub mod fence {
    /// Answers from the wire.
    pub const ANSWERS: u32 = 10;
    /// Requests from the wire.
    pub const REQUESTS: u32 = 20;
    /// What they are answered with.
    pub const REPLIES: u32 = 30;
    /// Packets that were ordered.
    pub const ORDERS: u32 = 40;
    /// Their payload.
    pub const PAYLOAD: u32 = 50;
    /// Fetches of work requests.
    pub const SEND_QUEUES: u32 = 60;
    pub const RECEIVE_QUEUES: u32 = 70;
    pub const ROWS: u32 = 80;
    /// Entries of completion queues.
    pub const COMPLETIONS: u32 = 90;
    /// Entries of event queues.
    pub const EVENTS: u32 = 100;
}
