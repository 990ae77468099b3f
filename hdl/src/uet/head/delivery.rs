//! First half of the parser: what is in front of the PDS header, and that header. Three steps.
use super::tables::{self, front, prologue, Front, Kind, BODY_BITS, ENTROPY, KIND_BITS, KIND_KEY, PLACE, PLACES, TAIL_BITS, UDP, WINDOW_BITS};
use super::types::{cause, Carried, Note, PdsFields, CAUSE};
use crate::prim::lookup::Lookup;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::{BePick, Cast, Resize, ShiftDown, Slice};
use crate::prim::sum::Diff;
use crate::records::Udp;
use ferric_abi::uet::{PdsAck, PdsAckCc, PdsControl, PdsNack, PdsRequest, PdsRudi, PdsUud};
use ferric_abi::wire;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

const REQUEST_RESERVED: usize = tables::reserved_bits(&PdsRequest::LAYOUT);
const ACK_RESERVED: usize = tables::reserved_bits(&PdsAck::LAYOUT);
const ACK_CC_RESERVED: usize = tables::reserved_bits(&PdsAckCc::LAYOUT);
const NACK_RESERVED: usize = tables::reserved_bits(&PdsNack::LAYOUT);
const CONTROL_RESERVED: usize = tables::reserved_bits(&PdsControl::LAYOUT);
const RUDI_RESERVED: usize = tables::reserved_bits(&PdsRudi::LAYOUT);
const UUD_RESERVED: usize = tables::reserved_bits(&PdsUud::LAYOUT);

/// A packet behind this half, without the PDS header's fields.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Behind {
    pub carried: Carried,
    /// Why it is not taken, as far as is known.
    pub cause: Bits<CAUSE>,
    /// Bytes behind the PDS header; bytes of all headers up to there.
    pub rest: Bits<16>,
    pub pay_off: Bits<8>,
    /// Form of the SES header; 0: none, or it has been cut off.
    pub form: Bits<3>,
    pub uud: Bit,
    pub trimmed: Bit,
    pub reserved: Bit,
}

/// Moves on while `go`: what is at `window` now is at the outputs three steps later.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Delivery {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub go: Signal<In, Bit>,
    /// UDP destination port.
    pub port: Signal<In, Bits<16>>,
    /// First bytes of a packet, zeros behind its end, and all its bytes.
    pub window: Signal<In, Bits<WINDOW_BITS>>,
    pub len: Signal<In, Bits<16>>,
    pub note: Signal<In, Note>,
    pub valid: Signal<In, Bit>,
    pub pds: Signal<Out, PdsFields>,
    pub behind: Signal<Out, Behind>,
    /// SES header and what follows.
    pub tail: Signal<Out, Bits<TAIL_BITS>>,
    pub done: Signal<Out, Bit>,
    valid1: DFF<Bit>,
    valid2: DFF<Bit>,
    valid3: DFF<Bit>,
    // Step 1: what is in front.
    #[init(BePick::of(&wire::Udp::LAYOUT, 0))]
    udp: BePick<WINDOW_BITS, Udp>,
    #[init(Slice::new(8 * UDP))]
    behind_udp: Slice<WINDOW_BITS, BODY_BITS>,
    #[init(Slice::new(8 * ENTROPY))]
    behind_entropy: Slice<WINDOW_BITS, BODY_BITS>,
    less: Diff<16>,
    short: Signal<Local, Bit>,
    body1: DFF<Bits<BODY_BITS>>,
    carried1: DFF<Carried>,
    cause1: DFF<Bits<CAUSE>>,
    len1: DFF<Bits<16>>,
    // Step 2: the type.
    #[init(BePick::new(prologue()))]
    key: BePick<BODY_BITS, Bits<KIND_KEY>>,
    #[init(Lookup::of(tables::kind))]
    kinds: Lookup<KIND_KEY, KIND_BITS>,
    named: Cast<Bits<KIND_BITS>, Kind>,
    kind2: DFF<Kind>,
    body2: DFF<Bits<BODY_BITS>>,
    carried2: DFF<Carried>,
    cause2: DFF<Bits<CAUSE>>,
    len2: DFF<Bits<16>>,
    // Step 3: fields.
    #[init(BePick::new(front()))]
    front: BePick<BODY_BITS, Front>,
    #[init(PLACE.map(|bytes| ShiftDown::new(8 * bytes)))]
    shifts: [ShiftDown<BODY_BITS>; PLACES],
    tails: OneHotMux<Bits<BODY_BITS>, PLACES>,
    cut: Resize<BODY_BITS, TAIL_BITS>,
    rest: Diff<16>,
    #[init(BePick::new(tables::reserved(&PdsRequest::LAYOUT, 0)))]
    request_reserved: BePick<BODY_BITS, Bits<REQUEST_RESERVED>>,
    #[init(BePick::new(tables::reserved(&PdsAck::LAYOUT, 0)))]
    ack_reserved: BePick<BODY_BITS, Bits<ACK_RESERVED>>,
    #[init(BePick::new(tables::reserved(&PdsAckCc::LAYOUT, PdsAck::BYTES)))]
    ack_cc_reserved: BePick<BODY_BITS, Bits<ACK_CC_RESERVED>>,
    #[init(BePick::new(tables::reserved(&PdsNack::LAYOUT, 0)))]
    nack_reserved: BePick<BODY_BITS, Bits<NACK_RESERVED>>,
    #[init(BePick::new(tables::reserved(&PdsControl::LAYOUT, 0)))]
    control_reserved: BePick<BODY_BITS, Bits<CONTROL_RESERVED>>,
    #[init(BePick::new(tables::reserved(&PdsRudi::LAYOUT, 0)))]
    rudi_reserved: BePick<BODY_BITS, Bits<RUDI_RESERVED>>,
    #[init(BePick::new(tables::reserved(&PdsUud::LAYOUT, 0)))]
    uud_reserved: BePick<BODY_BITS, Bits<UUD_RESERVED>>,
    kind: Signal<Local, Kind>,
    raw: Signal<Local, Front>,
    low: Signal<Local, Bits<2>>,
    payload: Signal<Local, Bits<32>>,
    ids: Signal<Local, Bit>,
    numbered: Signal<Local, Bit>,
    #[init(Constant::new((UDP as u64).to_bits()))]
    udp_bytes: Constant<Bits<8>>,
    #[init(Constant::new((ENTROPY as u64).to_bits()))]
    entropy_bytes: Constant<Bits<8>>,
    pds3: DFF<PdsFields>,
    behind3: DFF<Behind>,
    tail3: DFF<Bits<TAIL_BITS>>,
}

#[kernel]
impl Logic for Delivery {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid1, valid2, valid3, body1, carried1, cause1, len1);
        dff_setup!(self, clock, kind2, body2, carried2, cause2, len2, pds3, behind3, tail3);
        self.pds.next = self.pds3.q.val();
        self.behind.next = self.behind3.q.val();
        self.tail.next = self.tail3.q.val();
        self.done.next = self.valid3.q.val();
        self.udp.x.next = self.window.val();
        self.behind_udp.x.next = self.window.val();
        self.behind_entropy.x.next = self.window.val();
        self.less.a.next = self.len.val();
        self.less.b.next = bits::<16>(UDP as u64);
        self.short.next = self.len.val() < UDP as u64;
        if self.note.val().native {
            self.less.b.next = bits::<16>(ENTROPY as u64);
            self.short.next = self.len.val() < ENTROPY as u64;
        }
        self.key.x.next = self.body1.q.val();
        self.kinds.x.next = self.key.y.val();
        self.named.x.next = self.kinds.y.val();
        self.kind.next = self.kind2.q.val();
        self.front.x.next = self.body2.q.val();
        self.raw.next = self.front.y.val();
        self.low.next = self.raw.val().low;
        self.payload.next = self.raw.val().payload;
        for i in 0..PLACES {
            self.shifts[i].x.next = self.body2.q.val();
            self.tails.x[i].next = self.shifts[i].y.val();
        }
        self.tails.sel.next = self.kind.val().place;
        self.cut.x.next = self.tails.y.val();
        self.rest.a.next = self.len2.q.val();
        self.rest.b.next = bit_cast::<16, 6>(self.kind.val().size);
        self.request_reserved.x.next = self.body2.q.val();
        self.ack_reserved.x.next = self.body2.q.val();
        self.ack_cc_reserved.x.next = self.body2.q.val();
        self.nack_reserved.x.next = self.body2.q.val();
        self.control_reserved.x.next = self.body2.q.val();
        self.rudi_reserved.x.next = self.body2.q.val();
        self.uud_reserved.x.next = self.body2.q.val();
        self.ids.next = self.kind.val().request | self.kind.val().ack | self.kind.val().nack | self.kind.val().control;
        self.numbered.next = self.ids.val() | self.kind.val().rudi;
        if self.go.val() {
            self.valid1.d.next = self.valid.val();
            self.valid2.d.next = self.valid1.q.val();
            self.valid3.d.next = self.valid2.q.val();
            // Step 1
            self.body1.d.next = self.behind_udp.y.val();
            self.carried1.d.next.native = self.note.val().native;
            self.carried1.d.next.trim = self.note.val().trim;
            self.carried1.d.next.peer = self.note.val().peer;
            self.carried1.d.next.congested = self.note.val().congested;
            self.carried1.d.next.handle = self.note.val().handle;
            // The entropy field stands where UDP has its source port.
            self.carried1.d.next.entropy = self.udp.y.val().src_port;
            self.len1.d.next = self.less.y.val();
            self.cause1.d.next = bits::<CAUSE>(cause::NONE);
            if self.note.val().native {
                self.body1.d.next = self.behind_entropy.y.val();
            } else if !(self.udp.y.val().dst_port == self.port.val()) {
                self.cause1.d.next = bits::<CAUSE>(cause::NOT_UET);
            } else if !self.note.val().trim.any() & !(self.udp.y.val().length == self.len.val()) {
                // Who trims a packet may leave the length as it was.
                self.cause1.d.next = bits::<CAUSE>(cause::UDP_LENGTH);
            }
            if self.short.val() {
                self.cause1.d.next = bits::<CAUSE>(cause::TRUNCATED);
            }
            // Step 2
            self.kind2.d.next = self.named.y.val();
            self.body2.d.next = self.body1.q.val();
            self.carried2.d.next = self.carried1.q.val();
            self.cause2.d.next = self.cause1.q.val();
            self.len2.d.next = self.len1.q.val();
            // Less than type and next header.
            if !self.cause1.q.val().any() & !self.len1.q.val().get_bits::<15>(1).any() {
                self.cause2.d.next = bits::<CAUSE>(cause::PDS_SHORT);
            }
            // Step 3
            self.pds3.d.next.kind = self.raw.val().kind;
            self.pds3.d.next.follows = self.raw.val().follows;
            self.pds3.d.next.marked = self.raw.val().high & (self.kind.val().ack | self.kind.val().nack | self.kind.val().rudi);
            self.pds3.d.next.rod = self.raw.val().high & self.kind.val().control;
            self.pds3.d.next.retx = self.raw.val().retx & self.numbered.val();
            self.pds3.d.next.ar = self.raw.val().middle & (self.kind.val().request | self.kind.val().control);
            self.pds3.d.next.syn = self.low.val().get_bit(1) & (self.kind.val().request | self.kind.val().control);
            self.pds3.d.next.probe = self.raw.val().middle & self.kind.val().ack;
            self.pds3.d.next.rudi = self.raw.val().middle & self.kind.val().nack;
            self.pds3.d.next.req = bits::<2>(0);
            if self.kind.val().ack {
                self.pds3.d.next.req = self.low.val();
            }
            self.pds3.d.next.word = bits::<16>(0);
            self.pds3.d.next.spdcid = bits::<16>(0);
            self.pds3.d.next.dpdcid = bits::<16>(0);
            if self.ids.val() {
                self.pds3.d.next.word = self.raw.val().word;
                self.pds3.d.next.spdcid = self.raw.val().spdcid;
                self.pds3.d.next.dpdcid = self.raw.val().dpdcid;
            }
            self.pds3.d.next.psn = bits::<32>(0);
            if self.numbered.val() {
                self.pds3.d.next.psn = self.raw.val().psn;
            }
            self.pds3.d.next.payload = bits::<32>(0);
            if self.kind.val().request_cc | self.kind.val().nack | self.kind.val().control {
                self.pds3.d.next.payload = self.raw.val().payload;
            }
            self.pds3.d.next.cc_type = bits::<4>(0);
            self.pds3.d.next.mpr = bits::<8>(0);
            self.pds3.d.next.sack_offset = bits::<16>(0);
            self.pds3.d.next.bitmap = bits::<64>(0);
            self.pds3.d.next.state = bits::<64>(0);
            if self.kind.val().ack_cc {
                self.pds3.d.next.cc_type = self.payload.val().get_bits::<4>(28);
                self.pds3.d.next.mpr = self.payload.val().get_bits::<8>(16);
                self.pds3.d.next.sack_offset = self.payload.val().get_bits::<16>(0);
                self.pds3.d.next.bitmap = self.raw.val().bitmap;
                self.pds3.d.next.state = self.raw.val().state;
            }
            self.tail3.d.next = self.cut.y.val();
            self.behind3.d.next.carried = self.carried2.q.val();
            self.behind3.d.next.rest = self.rest.y.val();
            self.behind3.d.next.pay_off = bit_cast::<8, 6>(self.kind.val().size) + self.udp_bytes.val();
            if self.carried2.q.val().native {
                self.behind3.d.next.pay_off = bit_cast::<8, 6>(self.kind.val().size) + self.entropy_bytes.val();
            }
            self.behind3.d.next.form = self.kind.val().form;
            if self.carried2.q.val().trim.any() {
                self.behind3.d.next.form = bits::<3>(0);
            }
            self.behind3.d.next.uud = self.kind.val().uud;
            self.behind3.d.next.trimmed = self.carried2.q.val().trim.any();
            self.behind3.d.next.reserved = (self.kind.val().request & self.request_reserved.y.val().any())
                | (self.kind.val().ack & self.ack_reserved.y.val().any())
                | (self.kind.val().ack_cc & self.ack_cc_reserved.y.val().any())
                | (self.kind.val().nack & self.nack_reserved.y.val().any())
                | (self.kind.val().control & self.control_reserved.y.val().any())
                | (self.kind.val().rudi & self.rudi_reserved.y.val().any())
                | (self.kind.val().uud & self.uud_reserved.y.val().any());
            if self.cause2.q.val().any() {
                self.behind3.d.next.cause = self.cause2.q.val();
            } else if self.kind.val().early.any() {
                self.behind3.d.next.cause = self.kind.val().early;
            } else if self.rest.below.val() {
                self.behind3.d.next.cause = bits::<CAUSE>(cause::PDS_SHORT);
            } else {
                self.behind3.d.next.cause = self.kind.val().late;
            }
        }
        if self.reset.val() {
            self.valid1.d.next = false;
            self.valid2.d.next = false;
            self.valid3.d.next = false;
        }
    }
}
