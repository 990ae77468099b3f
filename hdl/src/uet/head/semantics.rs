//! Second half of the parser: the SES header, and whether the headers agree with each other and with the packet's length. Five steps.
use super::delivery::Behind;
use super::tables::{self, form, Data, DataSmall, Extension, Later, Operation, Request, Response, FIRST_SWAP, LAST_SWAP, LENGTH, OPERANDS_BITS, SHORTS, TAIL_BITS};
use super::types::{cause, Operands, PdsFields, SesFields, UetHead, CAUSE};
use crate::prim::lookup::Lookup;
use crate::prim::mux::OneHotMux;
use crate::prim::pack::{BePick, Cast, Gather, Slice};
use crate::prim::sum::{Diff, Sum};
use ferric_abi::uet::{SesAtomic, SesCompare, SesFirst, SesNext, SesResponseData, SesResponseDataSmall, SesSmall};
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

const FIRST_RESERVED: usize = tables::reserved_bits(&SesFirst::LAYOUT);
const NEXT_RESERVED: usize = tables::reserved_bits(&SesNext::LAYOUT);
const SHORT_RESERVED: usize = tables::reserved_bits(&SesSmall::LAYOUT);
const DATA_RESERVED: usize = tables::reserved_bits(&SesResponseData::LAYOUT);
const DATA_SMALL_RESERVED: usize = tables::reserved_bits(&SesResponseDataSmall::LAYOUT);
const ATOMIC_RESERVED: usize = tables::reserved_bits(&SesAtomic::LAYOUT);

/// What is still to be judged, in steps 4 to 7.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Open {
    /// Of the first packet of a standard request; of another one.
    pub first: Bit,
    pub later: Bit,
    /// The header says what the payload is (`want`); it says how long the message is.
    pub said: Bit,
    pub whole: Bit,
    /// Neither.
    pub all: Bit,
    pub want: Bits<32>,
    /// No payload follows.
    pub bare: Bit,
    pub version: Bit,
    pub request: Bit,
    pub datagram: Bit,
}

/// Moves on while `go`: what is at the inputs now is at `head` five steps later.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Semantics {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub go: Signal<In, Bit>,
    pub pds: Signal<In, PdsFields>,
    pub behind: Signal<In, Behind>,
    pub tail: Signal<In, Bits<TAIL_BITS>>,
    pub valid: Signal<In, Bit>,
    pub head: Signal<Out, UetHead>,
    pub cause: Signal<Out, Bits<CAUSE>>,
    pub done: Signal<Out, Bit>,
    valids: [DFF<Bit>; 5],
    pds4: DFF<PdsFields>,
    pds5: DFF<PdsFields>,
    pds6: DFF<PdsFields>,
    pds7: DFF<PdsFields>,
    pds8: DFF<PdsFields>,
    behind4: DFF<Behind>,
    behind5: DFF<Behind>,
    behind6: DFF<Behind>,
    behind7: DFF<Behind>,
    behind8: DFF<Behind>,
    ses4: DFF<SesFields>,
    ses5: DFF<SesFields>,
    ses6: DFF<SesFields>,
    ses7: DFF<SesFields>,
    ses8: DFF<SesFields>,
    open4: DFF<Open>,
    open5: DFF<Open>,
    open6: DFF<Open>,
    open7: DFF<Open>,
    // Step 4: fields.
    #[init(BePick::new(tables::request()))]
    request: BePick<TAIL_BITS, Request>,
    #[init(BePick::new(tables::later()))]
    later: BePick<TAIL_BITS, Later>,
    #[init(BePick::new(tables::short_length()))]
    length: BePick<TAIL_BITS, Bits<LENGTH>>,
    #[init(BePick::new(tables::response()))]
    response: BePick<TAIL_BITS, Response>,
    #[init(BePick::new(tables::data()))]
    data: BePick<TAIL_BITS, Data>,
    #[init(BePick::new(tables::data_small()))]
    data_small: BePick<TAIL_BITS, DataSmall>,
    #[init(BePick::new(tables::reserved(&SesFirst::LAYOUT, 0)))]
    first_reserved: BePick<TAIL_BITS, Bits<FIRST_RESERVED>>,
    #[init(BePick::new(tables::reserved(&SesNext::LAYOUT, 0)))]
    next_reserved: BePick<TAIL_BITS, Bits<NEXT_RESERVED>>,
    #[init(BePick::new(tables::reserved(&SesSmall::LAYOUT, 0)))]
    short_reserved: BePick<TAIL_BITS, Bits<SHORT_RESERVED>>,
    #[init(BePick::new(tables::reserved(&SesResponseData::LAYOUT, 0)))]
    data_reserved: BePick<TAIL_BITS, Bits<DATA_RESERVED>>,
    #[init(BePick::new(tables::reserved(&SesResponseDataSmall::LAYOUT, 0)))]
    data_small_reserved: BePick<TAIL_BITS, Bits<DATA_SMALL_RESERVED>>,
    #[init(Lookup::of(tables::operation))]
    operations: Lookup<6, 3>,
    operation: Cast<Bits<3>, Operation>,
    #[init(Lookup::of(tables::form_bytes))]
    sizes: Lookup<3, 6>,
    #[init(SHORTS.map(|bytes| Slice::new(8 * bytes)))]
    extensions: [Slice<TAIL_BITS, OPERANDS_BITS>; 3],
    extension: OneHotMux<Bits<OPERANDS_BITS>, 3>,
    which: Gather<3>,
    raw: Signal<Local, Request>,
    form: Signal<Local, Bits<3>>,
    is_small: Signal<Local, Bit>,
    is_medium: Signal<Local, Bit>,
    is_standard: Signal<Local, Bit>,
    answer: Signal<Local, Bit>,
    answer_data: Signal<Local, Bit>,
    answer_small: Signal<Local, Bit>,
    short: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
    extension4: DFF<Bits<OPERANDS_BITS>>,
    atomic4: DFF<Bit>,
    size4: DFF<Bits<6>>,
    // Step 5: operands.
    #[init(BePick::new(tables::extension()))]
    named: BePick<OPERANDS_BITS, Extension>,
    #[init(BePick::new(tables::reserved(&SesAtomic::LAYOUT, 0)))]
    atomic_reserved: BePick<OPERANDS_BITS, Bits<ATOMIC_RESERVED>>,
    past_last: Sum<33>,
    more: Signal<Local, Extension>,
    was4: Signal<Local, Behind>,
    ses4q: Signal<Local, SesFields>,
    open4q: Signal<Local, Open>,
    swaps: Signal<Local, Bit>,
    need: Signal<Local, Bits<8>>,
    #[init(Constant::new((SesAtomic::BYTES as u64).to_bits()))]
    atomic_bytes: Constant<Bits<8>>,
    #[init(Constant::new(((SesAtomic::BYTES + SesCompare::BYTES) as u64).to_bits()))]
    both_bytes: Constant<Bits<8>>,
    operands5: DFF<Operands>,
    need5: DFF<Bits<8>>,
    end5: DFF<Bits<33>>,
    bad_datagram5: DFF<Bit>,
    // Step 6: lengths.
    left: Diff<16>,
    past: Diff<33>,
    was5: Signal<Local, Behind>,
    ses5q: Signal<Local, SesFields>,
    open5q: Signal<Local, Open>,
    operands6: DFF<Operands>,
    short6: DFF<Bit>,
    past6: DFF<Bit>,
    bad_datagram6: DFF<Bit>,
    // Step 7: what the headers say against each other.
    over: Diff<32>,
    was6: Signal<Local, Behind>,
    ses6q: Signal<Local, SesFields>,
    open6q: Signal<Local, Open>,
    operands7: DFF<Operands>,
    over7: DFF<Bit>,
    early7: DFF<Bits<CAUSE>>,
    late7: DFF<Bits<CAUSE>>,
    // Step 8: the verdict.
    was7: Signal<Local, Behind>,
    open7q: Signal<Local, Open>,
    there: Signal<Local, Bit>,
    want: Signal<Local, Bits<32>>,
    operands8: DFF<Operands>,
    pay_len8: DFF<Bits<16>>,
    cause8: DFF<Bits<CAUSE>>,
    was8: Signal<Local, Behind>,
}

#[kernel]
impl Logic for Semantics {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, pds4, pds5, pds6, pds7, pds8, behind4, behind5, behind6, behind7, behind8, ses4, ses5, ses6, ses7, ses8);
        dff_setup!(self, clock, open4, open5, open6, open7, extension4, atomic4, size4, operands5, need5, end5, bad_datagram5);
        dff_setup!(self, clock, operands6, short6, past6, bad_datagram6, operands7, over7, early7, late7, operands8, pay_len8, cause8);
        for i in 0..5 {
            self.valids[i].clock.next = self.clock.val();
            self.valids[i].d.next = self.valids[i].q.val();
        }
        self.was8.next = self.behind8.q.val();
        self.head.next.carried = self.was8.val().carried;
        self.head.next.pds = self.pds8.q.val();
        self.head.next.ses = self.ses8.q.val();
        self.head.next.operands = self.operands8.q.val();
        self.head.next.pay_off = self.was8.val().pay_off;
        self.head.next.pay_len = self.pay_len8.q.val();
        self.head.next.reserved = self.was8.val().reserved;
        self.cause.next = self.cause8.q.val();
        self.done.next = self.valids[4].q.val();
        // Step 4
        self.request.x.next = self.tail.val();
        self.later.x.next = self.tail.val();
        self.length.x.next = self.tail.val();
        self.response.x.next = self.tail.val();
        self.data.x.next = self.tail.val();
        self.data_small.x.next = self.tail.val();
        self.first_reserved.x.next = self.tail.val();
        self.next_reserved.x.next = self.tail.val();
        self.short_reserved.x.next = self.tail.val();
        self.data_reserved.x.next = self.tail.val();
        self.data_small_reserved.x.next = self.tail.val();
        self.raw.next = self.request.y.val();
        self.form.next = self.behind.val().form;
        self.is_small.next = self.form.val() == form::SMALL;
        self.is_medium.next = self.form.val() == form::MEDIUM;
        self.is_standard.next = self.form.val() == form::STANDARD;
        self.answer.next = self.form.val() == form::RESPONSE;
        self.answer_data.next = self.form.val() == form::DATA;
        self.answer_small.next = self.form.val() == form::DATA_SMALL;
        self.short.next = self.is_small.val() | self.is_medium.val();
        self.asks.next = self.short.val() | self.is_standard.val();
        self.operations.x.next = self.raw.val().opcode;
        self.operation.x.next = self.operations.y.val();
        self.sizes.x.next = self.form.val();
        self.which.x[0].next = self.is_small.val();
        self.which.x[1].next = self.is_medium.val();
        self.which.x[2].next = self.is_standard.val();
        self.extension.sel.next = self.which.y.val();
        for i in 0..3 {
            self.extensions[i].x.next = self.tail.val();
            self.extension.x[i].next = self.extensions[i].y.val();
        }
        // Step 5
        self.named.x.next = self.extension4.q.val();
        self.atomic_reserved.x.next = self.extension4.q.val();
        self.more.next = self.named.y.val();
        self.was4.next = self.behind4.q.val();
        self.ses4q.next = self.ses4.q.val();
        self.open4q.next = self.open4.q.val();
        self.swaps.next = self.atomic4.q.val() & (self.more.val().operation >= FIRST_SWAP) & (self.more.val().operation <= LAST_SWAP);
        self.need.next = bit_cast::<8, 6>(self.size4.q.val());
        if self.swaps.val() {
            self.need.next = bit_cast::<8, 6>(self.size4.q.val()) + self.both_bytes.val();
        } else if self.atomic4.q.val() {
            self.need.next = bit_cast::<8, 6>(self.size4.q.val()) + self.atomic_bytes.val();
        }
        self.past_last.a.next = bit_cast::<33, 32>(self.ses4q.val().message_offset);
        self.past_last.b.next = bit_cast::<33, 32>(self.open4q.val().want);
        // Step 6
        self.was5.next = self.behind5.q.val();
        self.ses5q.next = self.ses5.q.val();
        self.open5q.next = self.open5.q.val();
        self.left.a.next = self.was5.val().rest;
        self.left.b.next = bit_cast::<16, 8>(self.need5.q.val());
        self.past.a.next = bit_cast::<33, 32>(self.ses5q.val().request_length);
        self.past.b.next = self.end5.q.val();
        // Step 7
        self.was6.next = self.behind6.q.val();
        self.ses6q.next = self.ses6.q.val();
        self.open6q.next = self.open6.q.val();
        self.over.a.next = bit_cast::<32, 16>(self.was6.val().rest);
        self.over.b.next = self.open6q.val().want;
        // Step 8
        self.was7.next = self.behind7.q.val();
        self.open7q.next = self.open7.q.val();
        self.want.next = self.open7q.val().want;
        self.there.next = self.open7q.val().all | (self.open7q.val().first & self.over7.q.val());
        if self.go.val() {
            self.valids[0].d.next = self.valid.val();
            self.valids[1].d.next = self.valids[0].q.val();
            self.valids[2].d.next = self.valids[1].q.val();
            self.valids[3].d.next = self.valids[2].q.val();
            self.valids[4].d.next = self.valids[3].q.val();
            self.pds4.d.next = self.pds.val();
            self.pds5.d.next = self.pds4.q.val();
            self.pds6.d.next = self.pds5.q.val();
            self.pds7.d.next = self.pds6.q.val();
            self.pds8.d.next = self.pds7.q.val();
            self.behind4.d.next = self.behind.val();
            self.behind5.d.next = self.behind4.q.val();
            self.behind6.d.next = self.behind5.q.val();
            self.behind7.d.next = self.behind6.q.val();
            self.behind8.d.next = self.behind7.q.val();
            self.ses5.d.next = self.ses4.q.val();
            self.ses6.d.next = self.ses5.q.val();
            self.ses7.d.next = self.ses6.q.val();
            self.ses8.d.next = self.ses7.q.val();
            self.open5.d.next = self.open4.q.val();
            self.open6.d.next = self.open5.q.val();
            self.open7.d.next = self.open6.q.val();
            self.operands6.d.next = self.operands5.q.val();
            self.operands7.d.next = self.operands6.q.val();
            self.operands8.d.next = self.operands7.q.val();
            self.bad_datagram6.d.next = self.bad_datagram5.q.val();
            // Step 4: each field where it stands in this form.
            self.ses4.d.next.form = self.form.val();
            self.ses4.d.next.opcode = bits::<6>(0);
            self.ses4.d.next.generation = bits::<8>(0);
            self.ses4.d.next.job = bits::<24>(0);
            if self.form.val().any() {
                self.ses4.d.next.opcode = self.raw.val().opcode;
                self.ses4.d.next.job = self.raw.val().job;
            }
            if self.asks.val() | self.answer.val() {
                self.ses4.d.next.generation = self.raw.val().generation;
            }
            self.ses4.d.next.dc = self.raw.val().dc & self.asks.val();
            self.ses4.d.next.ie = self.raw.val().ie & self.asks.val();
            self.ses4.d.next.rel = self.raw.val().rel & self.asks.val();
            self.ses4.d.next.hd = self.raw.val().hd & self.asks.val();
            self.ses4.d.next.eom = self.raw.val().eom & self.asks.val();
            self.ses4.d.next.som = self.raw.val().som & self.asks.val();
            self.ses4.d.next.message = bits::<16>(0);
            if self.is_standard.val() | self.answer.val() | self.answer_data.val() {
                self.ses4.d.next.message = self.raw.val().message;
            }
            self.ses4.d.next.pid = bits::<12>(0);
            self.ses4.d.next.index = bits::<12>(0);
            self.ses4.d.next.offset = bits::<64>(0);
            if self.asks.val() {
                self.ses4.d.next.pid = self.raw.val().pid;
                self.ses4.d.next.index = self.raw.val().index;
                self.ses4.d.next.offset = self.raw.val().offset;
            }
            self.ses4.d.next.initiator = bits::<32>(0);
            self.ses4.d.next.key = bits::<64>(0);
            if self.is_medium.val() | self.is_standard.val() {
                self.ses4.d.next.initiator = self.raw.val().initiator;
                self.ses4.d.next.key = self.raw.val().key;
            }
            self.ses4.d.next.header_data = bits::<64>(0);
            if self.is_standard.val() & self.raw.val().som {
                self.ses4.d.next.header_data = self.raw.val().header_data;
            }
            self.ses4.d.next.request_length = bits::<32>(0);
            self.open4.d.next.want = bits::<32>(0);
            self.ses4.d.next.message_offset = bits::<32>(0);
            self.ses4.d.next.modified_length = bits::<32>(0);
            if self.short.val() {
                self.ses4.d.next.request_length = bit_cast::<32, LENGTH>(self.length.y.val());
                self.open4.d.next.want = bit_cast::<32, LENGTH>(self.length.y.val());
            }
            if self.is_standard.val() {
                self.ses4.d.next.request_length = self.raw.val().request_length;
                self.open4.d.next.want = self.raw.val().request_length;
                if !self.raw.val().som {
                    self.ses4.d.next.message_offset = self.later.y.val().message_offset;
                    self.open4.d.next.want = bit_cast::<32, LENGTH>(self.later.y.val().payload_length);
                }
            }
            if self.answer.val() {
                self.ses4.d.next.modified_length = self.response.y.val().modified_length;
            }
            self.ses4.d.next.list = bits::<2>(0);
            self.ses4.d.next.code = bits::<6>(0);
            if self.form.val().any() & !self.asks.val() {
                self.ses4.d.next.list = self.response.y.val().list;
                self.ses4.d.next.code = self.response.y.val().code;
            }
            self.ses4.d.next.read_id = bits::<16>(0);
            if self.answer_data.val() {
                self.ses4.d.next.read_id = self.data.y.val().read_id;
                self.ses4.d.next.modified_length = self.data.y.val().modified_length;
                self.ses4.d.next.message_offset = self.data.y.val().message_offset;
                self.open4.d.next.want = bit_cast::<32, LENGTH>(self.data.y.val().payload_length);
            }
            self.ses4.d.next.request_psn = bits::<32>(0);
            if self.answer_small.val() {
                self.ses4.d.next.request_psn = self.data_small.y.val().request_psn;
                self.open4.d.next.want = bit_cast::<32, LENGTH>(self.data_small.y.val().payload_length);
            }
            self.extension4.d.next = self.extension.y.val();
            self.atomic4.d.next = self.asks.val() & self.operation.y.val().atomic;
            self.size4.d.next = self.sizes.y.val();
            self.open4.d.next.first = self.is_standard.val() & self.raw.val().som & !self.raw.val().eom;
            self.open4.d.next.later = self.is_standard.val() & !self.raw.val().som;
            self.open4.d.next.said = (self.is_standard.val() & !self.raw.val().som) | self.answer_data.val() | self.answer_small.val();
            self.open4.d.next.whole = self.short.val() | (self.is_standard.val() & self.raw.val().som & self.raw.val().eom);
            self.open4.d.next.all = self.answer.val() | !self.form.val().any();
            self.open4.d.next.bare = (self.asks.val() & self.operation.y.val().bare) | self.behind.val().trimmed;
            self.open4.d.next.version = self.form.val().any() & self.raw.val().version.any();
            self.open4.d.next.request = self.asks.val();
            self.open4.d.next.datagram = self.asks.val() & self.operation.y.val().datagram;
            self.behind4.d.next.reserved = self.behind.val().reserved
                | (self.short.val() & self.short_reserved.y.val().any())
                | (self.is_standard.val() & self.raw.val().som & self.first_reserved.y.val().any())
                | (self.is_standard.val() & !self.raw.val().som & self.next_reserved.y.val().any())
                | (self.answer_data.val() & self.data_reserved.y.val().any())
                | (self.answer_small.val() & self.data_small_reserved.y.val().any());
            // Step 5
            self.operands5.d.next.atomic = self.atomic4.q.val();
            self.operands5.d.next.swaps = self.swaps.val();
            self.operands5.d.next.operation = bits::<8>(0);
            self.operands5.d.next.datatype = bits::<8>(0);
            self.operands5.d.next.control = bits::<8>(0);
            if self.atomic4.q.val() {
                self.operands5.d.next.operation = self.more.val().operation;
                self.operands5.d.next.datatype = self.more.val().datatype;
                self.operands5.d.next.control = self.more.val().control;
            }
            self.operands5.d.next.compare = bits::<128>(0);
            self.operands5.d.next.swap = bits::<128>(0);
            if self.swaps.val() {
                self.operands5.d.next.compare = self.more.val().compare;
                self.operands5.d.next.swap = self.more.val().swap;
            }
            self.need5.d.next = self.need.val();
            self.end5.d.next = self.past_last.y.val();
            self.open5.d.next.bare = self.open4q.val().bare | self.swaps.val();
            self.behind5.d.next.reserved = self.was4.val().reserved | (self.atomic4.q.val() & self.atomic_reserved.y.val().any());
            // A datagram is one packet, and so has no message id.
            self.bad_datagram5.d.next = false;
            if self.was4.val().uud {
                self.bad_datagram5.d.next = self.ses4q.val().form.any() & (!self.open4q.val().datagram | !self.open4q.val().whole | self.ses4q.val().message.any());
            } else {
                self.bad_datagram5.d.next = self.open4q.val().datagram;
            }
            // Step 6
            self.behind6.d.next.rest = self.left.y.val();
            self.behind6.d.next.pay_off = self.was5.val().pay_off + self.need5.q.val();
            self.short6.d.next = self.left.below.val();
            self.past6.d.next = self.past.below.val();
            // Step 7
            self.over7.d.next = self.over.below.val();
            self.early7.d.next = self.was6.val().cause;
            if !self.was6.val().cause.any() & !self.was6.val().trimmed {
                if self.short6.q.val() {
                    self.early7.d.next = bits::<CAUSE>(cause::SES_SHORT);
                } else if self.open6q.val().version {
                    self.early7.d.next = bits::<CAUSE>(cause::VERSION);
                }
            }
            self.late7.d.next = bits::<CAUSE>(cause::NONE);
            if (self.ses6q.val().form == form::SMALL) & self.ses6q.val().hd {
                self.late7.d.next = bits::<CAUSE>(cause::HEADER_DATA);
            } else if ((self.ses6q.val().form == form::SMALL) | (self.ses6q.val().form == form::MEDIUM)) & !(self.ses6q.val().som & self.ses6q.val().eom) {
                self.late7.d.next = bits::<CAUSE>(cause::SHORT_FORM);
            } else if self.open6q.val().later & self.past6.q.val() {
                self.late7.d.next = bits::<CAUSE>(cause::RANGE);
            } else if self.bad_datagram6.q.val() {
                self.late7.d.next = bits::<CAUSE>(cause::DATAGRAM);
            }
            // Step 8
            self.cause8.d.next = self.early7.q.val();
            if !self.early7.q.val().any() {
                if self.open7q.val().said & self.over7.q.val() {
                    self.cause8.d.next = bits::<CAUSE>(cause::PAYLOAD_LENGTH);
                } else if self.late7.q.val().any() {
                    self.cause8.d.next = self.late7.q.val();
                } else if self.open7q.val().whole & self.over7.q.val() & !self.open7q.val().bare {
                    self.cause8.d.next = bits::<CAUSE>(cause::PAYLOAD_LENGTH);
                }
            }
            self.pay_len8.d.next = self.want.val().get_bits::<16>(0);
            if self.there.val() {
                self.pay_len8.d.next = self.was7.val().rest;
            }
            if self.open7q.val().bare {
                self.pay_len8.d.next = bits::<16>(0);
            }
        }
        if self.reset.val() {
            for i in 0..5 {
                self.valids[i].d.next = false;
            }
        }
    }
}
