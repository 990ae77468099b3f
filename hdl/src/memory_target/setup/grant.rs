//! What a request gives to the other blocks: key, peer, receive ring.
use super::window::Sender;
use crate::memory_target::keys::{Key, KeyWrite};
use crate::memory_target::paths::{Peer, PeerWrite};
use crate::memory_target::ring::RingSetup;
use crate::records::SetupRequest;
use ferric_abi::codes::TargetOp;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Of `Key::rights`.
const LOCAL_WRITE: u64 = 1;

/// Key and peer of place `line` as the request has them, and the ring's registers.
#[derive(LogicBlock, Default)]
pub(super) struct Grant {
    pub clock: Signal<In, Clock>,
    /// Synchronous; no ring.
    pub reset: Signal<In, Bit>,
    pub request: Signal<In, SetupRequest>,
    pub sender: Signal<In, Sender>,
    pub line: Signal<In, Bits<24>>,
    pub life: Signal<In, Bits<8>>,
    /// Neither key nor peer: what stood there ends.
    pub clear: Signal<In, Bit>,
    pub key: Signal<Out, KeyWrite>,
    pub peer: Signal<Out, PeerWrite>,
    /// The ring's bytes; the ring asked for is the present one; slots handed out so far.
    pub ring_bytes: Signal<In, Bits<32>>,
    pub ring_same: Signal<In, Bit>,
    pub ring_head: Signal<In, Bits<16>>,
    /// The ring becomes what is asked for; slots come back.
    pub set_ring: Signal<In, Bit>,
    pub give_back: Signal<In, Bit>,
    pub ring: Signal<Out, RingSetup>,
    pub consumer: Signal<Out, Bits<16>>,
    ring_now: DFF<RingSetup>,
    given: DFF<Bits<16>>,
    key_now: Signal<Local, Key>,
    peer_now: Signal<Local, Peer>,
    op: Signal<Local, Bits<8>>,
    rights: Signal<Local, Bits<8>>,
    slot: Signal<Local, Bits<8>>,
    count: Signal<Local, Bits<8>>,
}

#[kernel]
impl Logic for Grant {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, ring_now, given);
        self.op.next = self.request.val().op;
        self.rights.next = self.request.val().rights;
        self.slot.next = self.request.val().log_slot;
        self.count.next = self.request.val().log_count;
        self.key.next.index = self.line.val().get_bits::<8>(0);
        self.key_now.next.valid = ((self.op.val() == TargetOp::CreateKey as u64) | (self.op.val() == TargetOp::SetRing as u64)) & !self.clear.val();
        self.key_now.next.variant = self.life.val();
        self.key_now.next.rights = bit_cast::<4, 3>(self.rights.val().get_bits::<3>(0)) << 1;
        self.key_now.next.pd = self.request.val().pd;
        self.key_now.next.start = self.request.val().start;
        self.key_now.next.length = self.request.val().length;
        if self.op.val() == TargetOp::SetRing as u64 {
            // Entry 0 is the ring's: the card may write it, no peer anything.
            self.key_now.next.variant = bits::<8>(0);
            self.key_now.next.rights = bits::<4>(LOCAL_WRITE);
            self.key_now.next.pd = bits::<24>(0);
            self.key_now.next.length = self.ring_bytes.val();
        }
        self.key.next.key = self.key_now.val();
        self.peer.next.qpn = self.line.val();
        self.peer_now.next.valid = (self.op.val() == TargetOp::CreateQp as u64) & !self.clear.val();
        self.peer_now.next.mac = self.sender.val().mac;
        self.peer_now.next.ip = self.sender.val().ip;
        self.peer_now.next.pkey = self.request.val().pkey;
        self.peer.next.peer = self.peer_now.val();

        self.ring.next = self.ring_now.q.val();
        self.consumer.next = self.given.q.val();
        if self.give_back.val() {
            self.given.d.next = self.request.val().consumer;
        }
        if self.set_ring.val() {
            self.ring_now.d.next.valid = true;
            self.ring_now.d.next.base = self.request.val().start;
            self.ring_now.d.next.log_slot = self.slot.val().get_bits::<4>(0);
            self.ring_now.d.next.log_count = self.count.val().get_bits::<3>(0);
            self.ring_now.d.next.key = bits::<32>(0);
            if !self.ring_same.val() {
                // Numbers go on: what an earlier ring wrote is not taken for new.
                self.given.d.next = self.ring_head.val();
            }
        }
        if self.reset.val() {
            self.ring_now.d.next.valid = false;
            self.ring_now.d.next.log_slot = bits::<4>(0);
            self.given.d.next = bits::<16>(0);
        }
    }
}
