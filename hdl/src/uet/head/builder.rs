//! The builder: headers to beats.
use super::tables::{self, form, front, prologue, Data, DataSmall, Extension, Front, Kind, Later, Request, Response, BODY_BITS, ENTROPY, KIND_BITS, KIND_KEY, LENGTH, LONG_BITS, OPERANDS_BITS};
use super::tables::{PDS_BITS, PLACE, PLACES, SES_BITS, SHORTS, TAIL_BITS, UDP, WINDOW_BITS};
use super::types::{Carried, Operands, PdsFields, SesFields, UetHead};
use crate::bus::{AxisSrc, MsgSink};
use crate::prim::lookup::Lookup;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::{BePack, BePick, Cast, Gather, Resize};
use crate::records::Udp;
use crate::stream::{MsgSlice, WideToBeats};
use ferric_abi::uet::{SesAtomic, SesCompare, UET_CRC_BYTES};
use ferric_abi::wire;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// `bits` bits in their order from byte `at` on, for `BePack::new`.
fn moved(bits: usize, at: usize) -> Vec<usize> {
    (8 * at..8 * at + bits).collect()
}

/// The flag SYN of a request or a control packet, in the two bits below PSN's flags (UE 3.5.11).
const SYN: u64 = 2;

/// `L`: log2(K) + 1. Lays the headers of one packet after another out as beats: that of UDP or the entropy header, PDS, SES and an atomic's operands. The payload is somebody else's affair.
#[derive(LogicBlock, BlockDefault)]
pub struct Builder<const W: usize, const K: usize, const L: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; forgets what is under way.
    pub reset: Signal<In, Bit>,
    /// UDP destination port of Ultra Ethernet.
    pub port: Signal<In, Bits<16>>,
    /// A CRC-32C will follow the payload: UDP's length counts it.
    pub crc: Signal<In, Bit>,
    /// Fields that the type and the form lack are zero; `pay_off` and `reserved` are not looked at.
    pub s: MsgSink<UetHead>,
    /// One packet for each: its headers.
    pub m: AxisSrc<W, K>,
    inp: MsgSlice<UetHead>,
    wide: WideToBeats<WINDOW_BITS, W, K, L>,
    go: Signal<Local, Bit>,
    pds: Signal<Local, PdsFields>,
    ses: Signal<Local, SesFields>,
    operands: Signal<Local, Operands>,
    // Step 1: each header by itself.
    #[init(BePick::new(prologue()))]
    key: BePick<PDS_BITS, Bits<KIND_KEY>>,
    #[init(Lookup::of(tables::kind))]
    kinds: Lookup<KIND_KEY, KIND_BITS>,
    kind: Cast<Bits<KIND_BITS>, Kind>,
    #[init(Lookup::of(tables::form_bytes))]
    sizes: Lookup<3, 6>,
    #[init(BePack::new(front()))]
    front: BePack<PDS_BITS, Front>,
    #[init(BePack::new(tables::request()))]
    request: BePack<SES_BITS, Request>,
    #[init(BePack::new(tables::later()))]
    later: BePack<SES_BITS, Later>,
    #[init(BePack::new(tables::short_length()))]
    length: BePack<SES_BITS, Bits<LENGTH>>,
    #[init(BePack::new(tables::response()))]
    response: BePack<SES_BITS, Response>,
    #[init(BePack::new(tables::data()))]
    data: BePack<SES_BITS, Data>,
    #[init(BePack::new(tables::data_small()))]
    data_small: BePack<SES_BITS, DataSmall>,
    #[init(BePack::new(tables::extension()))]
    extension: BePack<OPERANDS_BITS, Extension>,
    pay_length: Signal<Local, Bits<LENGTH>>,
    request_length: Signal<Local, Bits<32>>,
    short: Signal<Local, Bit>,
    standard: Signal<Local, Bit>,
    answer_data: Signal<Local, Bit>,
    answer_small: Signal<Local, Bit>,
    tail_size: Signal<Local, Bits<8>>,
    valid1: DFF<Bit>,
    carried1: DFF<Carried>,
    pds1: DFF<Bits<PDS_BITS>>,
    place1: DFF<Bits<PLACES>>,
    size1: DFF<Bits<8>>,
    tail_size1: DFF<Bits<8>>,
    pay_len1: DFF<Bits<16>>,
    ses1: DFF<Bits<SES_BITS>>,
    operands1: DFF<Bits<OPERANDS_BITS>>,
    forms1: DFF<Bits<3>>,
    // Step 2: operands behind the SES header.
    #[init(SHORTS.map(|bytes| BePack::new(moved(OPERANDS_BITS, bytes))))]
    behind: [BePack<TAIL_BITS, Bits<OPERANDS_BITS>>; 3],
    extensions: OneHotMux<Bits<TAIL_BITS>, 3>,
    which: Gather<3>,
    ses_wide: Resize<SES_BITS, TAIL_BITS>,
    valid2: DFF<Bit>,
    carried2: DFF<Carried>,
    pds2: DFF<Bits<PDS_BITS>>,
    place2: DFF<Bits<PLACES>>,
    size2: DFF<Bits<8>>,
    pay_len2: DFF<Bits<16>>,
    tail2: DFF<Bits<TAIL_BITS>>,
    // Step 3: the SES header behind the PDS header.
    #[init(PLACE.map(|bytes| BePack::new(moved(TAIL_BITS, bytes))))]
    moves: [BePack<LONG_BITS, Bits<TAIL_BITS>>; PLACES],
    tails: OneHotMux<Bits<LONG_BITS>, PLACES>,
    cut: Resize<LONG_BITS, BODY_BITS>,
    pds_wide: Resize<PDS_BITS, BODY_BITS>,
    valid3: DFF<Bit>,
    carried3: DFF<Carried>,
    body3: DFF<Bits<BODY_BITS>>,
    size3: DFF<Bits<8>>,
    length3: DFF<Bits<16>>,
    // Step 4: what is in front.
    #[init(BePack::of(&wire::Udp::LAYOUT, 0))]
    udp: BePack<WINDOW_BITS, Udp>,
    #[init(BePack::new(moved(BODY_BITS, UDP)))]
    behind_udp: BePack<WINDOW_BITS, Bits<BODY_BITS>>,
    #[init(BePack::new(moved(BODY_BITS, ENTROPY)))]
    behind_entropy: BePack<WINDOW_BITS, Bits<BODY_BITS>>,
    len: Signal<Local, Bits<8>>,
    #[init(Constant::new((UDP as u64).to_bits()))]
    udp_bytes: Constant<Bits<8>>,
    #[init(Constant::new((UDP as u64).to_bits()))]
    udp_length: Constant<Bits<16>>,
    #[init(Constant::new((ENTROPY as u64).to_bits()))]
    entropy_bytes: Constant<Bits<8>>,
    #[init(Constant::new((UET_CRC_BYTES as u64).to_bits()))]
    crc_length: Constant<Bits<16>>,
}

#[kernel]
impl<const W: usize, const K: usize, const L: usize> Logic for Builder<W, K, L> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid1, carried1, pds1, place1, size1, tail_size1, pay_len1, ses1, operands1, forms1);
        dff_setup!(self, clock, valid2, carried2, pds2, place2, size2, pay_len2, tail2, valid3, carried3, body3, size3, length3);
        clock!(self, clock, inp, wide);
        self.inp.reset.next = self.reset.val();
        self.wide.reset.next = self.reset.val();
        MsgSink::<UetHead>::link(&mut self.s, &mut self.inp.s);
        AxisSrc::<W, K>::link(&mut self.m, &mut self.wide.m);
        self.go.next = self.wide.s.ready.val();
        self.inp.m.ready.next = self.go.val();
        self.pds.next = self.inp.m.data.val().pds;
        self.ses.next = self.inp.m.data.val().ses;
        self.operands.next = self.inp.m.data.val().operands;
        // Step 1
        self.front.x.next.kind = self.pds.val().kind;
        self.front.x.next.follows = self.pds.val().follows;
        self.front.x.next.high = self.pds.val().marked | self.pds.val().rod;
        self.front.x.next.retx = self.pds.val().retx;
        self.front.x.next.middle = self.pds.val().ar | self.pds.val().probe | self.pds.val().rudi;
        self.front.x.next.low = self.pds.val().req;
        if self.pds.val().syn {
            self.front.x.next.low = bits::<2>(SYN);
        }
        self.front.x.next.word = self.pds.val().word;
        self.front.x.next.psn = self.pds.val().psn;
        self.front.x.next.spdcid = self.pds.val().spdcid;
        self.front.x.next.dpdcid = self.pds.val().dpdcid;
        self.front.x.next.payload =
            self.pds.val().payload | (bit_cast::<32, 4>(self.pds.val().cc_type) << 28) | (bit_cast::<32, 8>(self.pds.val().mpr) << 16) | bit_cast::<32, 16>(self.pds.val().sack_offset);
        self.front.x.next.bitmap = self.pds.val().bitmap;
        self.front.x.next.state = self.pds.val().state;
        self.key.x.next = self.front.y.val();
        self.kinds.x.next = self.key.y.val();
        self.kind.x.next = self.kinds.y.val();
        self.sizes.x.next = self.ses.val().form;
        self.short.next = (self.ses.val().form == form::SMALL) | (self.ses.val().form == form::MEDIUM);
        self.standard.next = self.ses.val().form == form::STANDARD;
        self.answer_data.next = self.ses.val().form == form::DATA;
        self.answer_small.next = self.ses.val().form == form::DATA_SMALL;
        self.pay_length.next = self.inp.m.data.val().pay_len.get_bits::<LENGTH>(0);
        self.request_length.next = self.ses.val().request_length;
        self.request.x.next.opcode = self.ses.val().opcode;
        self.request.x.next.version = bits::<2>(0);
        self.request.x.next.dc = self.ses.val().dc;
        self.request.x.next.ie = self.ses.val().ie;
        self.request.x.next.rel = self.ses.val().rel;
        self.request.x.next.hd = self.ses.val().hd;
        self.request.x.next.eom = self.ses.val().eom;
        self.request.x.next.som = self.ses.val().som;
        self.request.x.next.message = self.ses.val().message;
        self.request.x.next.generation = self.ses.val().generation;
        self.request.x.next.job = self.ses.val().job;
        self.request.x.next.pid = self.ses.val().pid;
        self.request.x.next.index = self.ses.val().index;
        self.request.x.next.offset = self.ses.val().offset;
        self.request.x.next.initiator = self.ses.val().initiator;
        self.request.x.next.key = self.ses.val().key;
        self.request.x.next.header_data = self.ses.val().header_data;
        self.request.x.next.request_length = bits::<32>(0);
        self.length.x.next = bits::<LENGTH>(0);
        self.later.x.next.payload_length = bits::<LENGTH>(0);
        self.later.x.next.message_offset = bits::<32>(0);
        if self.standard.val() {
            self.request.x.next.request_length = self.ses.val().request_length;
            if !self.ses.val().som {
                self.later.x.next.payload_length = self.pay_length.val();
                self.later.x.next.message_offset = self.ses.val().message_offset;
            }
        }
        if self.short.val() {
            self.length.x.next = self.request_length.val().get_bits::<LENGTH>(0);
        }
        self.response.x.next.list = self.ses.val().list;
        self.response.x.next.code = self.ses.val().code;
        self.response.x.next.modified_length = bits::<32>(0);
        if self.ses.val().form == form::RESPONSE {
            self.response.x.next.modified_length = self.ses.val().modified_length;
        }
        self.data.x.next.read_id = self.ses.val().read_id;
        self.data.x.next.payload_length = bits::<LENGTH>(0);
        self.data.x.next.modified_length = bits::<32>(0);
        self.data.x.next.message_offset = bits::<32>(0);
        if self.answer_data.val() {
            self.data.x.next.payload_length = self.pay_length.val();
            self.data.x.next.modified_length = self.ses.val().modified_length;
            self.data.x.next.message_offset = self.ses.val().message_offset;
        }
        self.data_small.x.next.request_psn = self.ses.val().request_psn;
        self.data_small.x.next.payload_length = bits::<LENGTH>(0);
        if self.answer_small.val() {
            self.data_small.x.next.payload_length = self.pay_length.val();
        }
        self.extension.x.next.operation = self.operands.val().operation;
        self.extension.x.next.datatype = self.operands.val().datatype;
        self.extension.x.next.control = self.operands.val().control;
        self.extension.x.next.compare = self.operands.val().compare;
        self.extension.x.next.swap = self.operands.val().swap;
        self.tail_size.next = bits::<8>(0);
        if self.operands.val().swaps {
            self.tail_size.next = bits::<8>((SesAtomic::BYTES + SesCompare::BYTES) as u64);
        } else if self.operands.val().atomic {
            self.tail_size.next = bits::<8>(SesAtomic::BYTES as u64);
        }
        self.which.x[0].next = self.ses.val().form == form::SMALL;
        self.which.x[1].next = self.ses.val().form == form::MEDIUM;
        self.which.x[2].next = self.standard.val();
        // Step 2
        for i in 0..3 {
            self.behind[i].x.next = self.operands1.q.val();
            self.extensions.x[i].next = self.behind[i].y.val();
        }
        self.extensions.sel.next = self.forms1.q.val();
        self.ses_wide.x.next = self.ses1.q.val();
        // Step 3
        for i in 0..PLACES {
            self.moves[i].x.next = self.tail2.q.val();
            self.tails.x[i].next = self.moves[i].y.val();
        }
        self.tails.sel.next = self.place2.q.val();
        self.cut.x.next = self.tails.y.val();
        self.pds_wide.x.next = self.pds2.q.val();
        // Step 4
        self.udp.x.next.src_port = self.carried3.q.val().entropy;
        self.udp.x.next.dst_port = self.port.val();
        self.udp.x.next.length = self.length3.q.val();
        self.udp.x.next.checksum = bits::<16>(0);
        self.len.next = self.size3.q.val() + self.udp_bytes.val();
        self.behind_udp.x.next = self.body3.q.val();
        self.behind_entropy.x.next = self.body3.q.val();
        self.wide.s.data.next = self.behind_udp.y.val() | self.udp.y.val();
        if self.carried3.q.val().native {
            self.udp.x.next.dst_port = bits::<16>(0);
            self.udp.x.next.length = bits::<16>(0);
            self.len.next = self.size3.q.val() + self.entropy_bytes.val();
            self.wide.s.data.next = self.behind_entropy.y.val() | self.udp.y.val();
        }
        self.wide.s.len.next = bit_cast::<16, 8>(self.len.val());
        self.wide.s.valid.next = self.valid3.q.val();
        if self.go.val() {
            self.valid1.d.next = self.inp.m.valid.val();
            self.carried1.d.next = self.inp.m.data.val().carried;
            self.pds1.d.next = self.front.y.val();
            self.place1.d.next = self.kind.y.val().place;
            self.size1.d.next = bit_cast::<8, 6>(self.kind.y.val().size) + bit_cast::<8, 6>(self.sizes.y.val());
            self.tail_size1.d.next = self.tail_size.val();
            self.pay_len1.d.next = self.inp.m.data.val().pay_len;
            self.ses1.d.next = self.request.y.val() | self.later.y.val() | self.length.y.val() | self.response.y.val() | self.data.y.val() | self.data_small.y.val();
            self.operands1.d.next = self.extension.y.val();
            self.forms1.d.next = self.which.y.val();
            self.valid2.d.next = self.valid1.q.val();
            self.carried2.d.next = self.carried1.q.val();
            self.pds2.d.next = self.pds1.q.val();
            self.place2.d.next = self.place1.q.val();
            self.size2.d.next = self.size1.q.val() + self.tail_size1.q.val();
            self.pay_len2.d.next = self.pay_len1.q.val();
            if self.crc.val() {
                self.pay_len2.d.next = self.pay_len1.q.val() + self.crc_length.val();
            }
            self.tail2.d.next = self.ses_wide.y.val() | self.extensions.y.val();
            self.valid3.d.next = self.valid2.q.val();
            self.carried3.d.next = self.carried2.q.val();
            self.body3.d.next = self.pds_wide.y.val() | self.cut.y.val();
            self.size3.d.next = self.size2.q.val();
            self.length3.d.next = self.pay_len2.q.val() + bit_cast::<16, 8>(self.size2.q.val()) + self.udp_length.val();
        }
        if self.reset.val() {
            self.valid1.d.next = false;
            self.valid2.d.next = false;
            self.valid3.d.next = false;
        }
    }
}
