//! What an answer says: counters, the ring, and what has come of the request.
use super::EPSN;
use crate::memory_target::ring::RingSetup;
use crate::records::{SetupReply, SetupRequest};
use ferric_abi::target;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// The answer, with counters of a RAM of `2^A` rows of 8 bytes.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Told<const A: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; counters become 0.
    pub reset: Signal<In, Bit>,
    pub now: Signal<In, Bits<32>>,
    pub request: Signal<In, SetupRequest>,
    pub status: Signal<In, Bits<8>>,
    pub object: Signal<In, Bits<32>>,
    /// Pulse: `data` is word `word` of a queue pair's context. `clear`: none has been read.
    pub look: Signal<In, Bit>,
    pub word: Signal<In, Bits<6>>,
    pub data: Signal<In, Bits<32>>,
    pub clear: Signal<In, Bit>,
    pub ring: Signal<In, RingSetup>,
    pub head: Signal<In, Bits<16>>,
    pub consumer: Signal<In, Bits<16>>,
    /// Pulses that are counted: a RoCE frame, a request judged, a queue pair's error, an answer; an ARP or ICMP echo request answered, and a malformed one.
    pub frame: Signal<In, Bit>,
    pub judged: Signal<In, Bit>,
    pub failed: Signal<In, Bit>,
    pub told: Signal<In, Bit>,
    pub echoed: Signal<In, Bit>,
    pub malformed: Signal<In, Bit>,
    pub reply: Signal<Out, SetupReply>,
    frames: DFF<Bits<32>>,
    requests: DFF<Bits<32>>,
    errors: DFF<Bits<32>>,
    refused: DFF<Bits<32>>,
    echoes: DFF<Bits<16>>,
    spoilt: DFF<Bits<16>>,
    state: DFF<Bits<8>>,
    epsn: DFF<Bits<24>>,
    msn: DFF<Bits<24>>,
    #[init(Constant::new((8u64 << A).into()))]
    ram_bytes: Constant<Bits<33>>,
    #[init(Constant::new(u64::from(target::MAGIC).into()))]
    magic: Constant<Bits<32>>,
    #[init(Constant::new(u64::from(target::VERSION).into()))]
    version: Constant<Bits<8>>,
}

#[kernel]
impl<const A: usize> Logic for Told<A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, frames, requests, errors, refused, echoes, spoilt, state, epsn, msn);
        if self.frame.val() {
            self.frames.d.next = self.frames.q.val() + 1;
        }
        if self.judged.val() {
            self.requests.d.next = self.requests.q.val() + 1;
        }
        if self.failed.val() {
            self.errors.d.next = self.errors.q.val() + 1;
        }
        if self.told.val() & self.status.val().any() {
            self.refused.d.next = self.refused.q.val() + 1;
        }
        if self.echoed.val() {
            self.echoes.d.next = self.echoes.q.val() + 1;
        }
        if self.malformed.val() {
            self.spoilt.d.next = self.spoilt.q.val() + 1;
        }
        if self.look.val() {
            if self.word.val() == 0 {
                self.state.d.next = bit_cast::<8, 3>(self.data.val().get_bits::<3>(0));
            } else if self.word.val() == EPSN {
                self.epsn.d.next = self.data.val().get_bits::<24>(0);
            } else {
                self.msn.d.next = self.data.val().get_bits::<24>(0);
            }
        }
        if self.clear.val() {
            self.state.d.next = bits::<8>(0);
            self.epsn.d.next = bits::<24>(0);
            self.msn.d.next = bits::<24>(0);
        }
        self.reply.next.magic = self.magic.val();
        self.reply.next.version = self.version.val();
        self.reply.next.op = self.request.val().op;
        self.reply.next.status = self.status.val();
        self.reply.next.rsvd0 = bits::<8>(0);
        self.reply.next.seq = self.request.val().seq;
        self.reply.next.object = self.object.val();
        self.reply.next.ram_bytes = self.ram_bytes.val().get_bits::<32>(0);
        self.reply.next.state = self.state.q.val();
        self.reply.next.rsvd1 = bits::<8>(0);
        self.reply.next.echoes = self.echoes.q.val();
        self.reply.next.rsvd3 = bits::<8>(0);
        self.reply.next.epsn = self.epsn.q.val();
        self.reply.next.rsvd4 = bits::<8>(0);
        self.reply.next.msn = self.msn.q.val();
        self.reply.next.ring_base = self.ring.val().base;
        self.reply.next.ring_log_slot = bit_cast::<8, 4>(self.ring.val().log_slot);
        self.reply.next.ring_log_count = bit_cast::<8, 3>(self.ring.val().log_count);
        self.reply.next.ring_head = self.head.val();
        self.reply.next.ring_consumer = self.consumer.val();
        self.reply.next.malformed = self.spoilt.q.val();
        self.reply.next.frames = self.frames.q.val();
        self.reply.next.requests = self.requests.q.val();
        self.reply.next.errors = self.errors.q.val();
        self.reply.next.refused = self.refused.q.val();
        self.reply.next.now = self.now.val();
        if self.reset.val() {
            self.frames.d.next = bits::<32>(0);
            self.requests.d.next = bits::<32>(0);
            self.errors.d.next = bits::<32>(0);
            self.refused.d.next = bits::<32>(0);
            self.echoes.d.next = bits::<16>(0);
            self.spoilt.d.next = bits::<16>(0);
        }
    }
}
