//! Transmit: the bytes of a chain become a frame. See README.md.

pub mod asks;
pub mod owed;

use crate::bus::{AxisSrc, MsgSink, MsgSrc};
use crate::msg::{L4Order, PayCmd, PayDone, VqPiece, VqTold, VqUse};
use crate::prim::keep_mask::LenMask;
use crate::prim::lane_ram::LaneRam;
use crate::prim::ram::RamAsync;
use crate::prim::sum::Sum;
use crate::stream::{AxisFifo, MsgSlice};
use asks::Asks;
use ferric_abi::codes::VirtioCause;
use ferric_hdl_derive::{kernel, BlockDefault};
use owed::Owed;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    ("s_piece", &["m_pay", "s_pay_done", "m_frame", "m_order", "m_use"]),
    ("s_pay_done", &[]),
    ("m_frame", &["s_pay_done", "m_order"]),
    ("m_order", &["s_pay_done"]),
    ("m_use", &["s_pay_done", "m_frame", "m_order"]),
];

/// log2 of a slot's bytes, and of a page's: no read goes across a border of those.
pub const LG_SLOT: usize = 14;
const LG_PAGE: usize = 12;
const PAGE: u64 = 1 << LG_PAGE;
/// Where a frame begins in its slot, at the beginning of a row whatever the width, and its header in front of it.
const FRAME: u64 = 64;
const HEADER: u64 = super::HEADER;
const START: u64 = FRAME - HEADER;
/// Bytes of the shortest and of the longest chain: a header and an Ethernet header; a header and the longest frame of the port.
const SHORTEST: u64 = HEADER + 14;
const LONGEST: u64 = HEADER + super::LONGEST;
/// Below this level a row may be read: those on the way have room.
const ROOM: u64 = 8;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Fill {
    Idle,
    Cut,
    Order,
    Seal,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Drain {
    Wait,
    Settle,
    Settled,
    Head,
    Asks,
    Sum,
    Bound,
    Judge,
    Rows,
    Give,
}

/// A slot's chain. `cause`: why its frame does not leave; `known`: that has been told already. `sums`: it may ask for a checksum.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Chain {
    queue: Bits<16>,
    id: Bits<16>,
    slots: Bits<16>,
    len: Bits<14>,
    cause: Bits<5>,
    known: Bit,
    sums: Bit,
}

/// `S` = 2^`LS` slots of 16 KiB, `A` bits of a row's number in all of them. Frames leave in the order of their chains.
#[derive(LogicBlock, BlockDefault)]
#[demand(W == 8 * K && K == 1 << LK, "K must be W / 8, LK its logarithm")]
#[demand(S == 1 << LS && LS >= 2 && LS + LG_SLOT <= 18 && A == LS + LG_SLOT - LK && A <= 13, "the slots' rows")]
#[demand(LONGEST + FRAME <= 1 << LG_SLOT, "the longest frame fits a slot")]
pub struct Tx<const W: usize, const K: usize, const LK: usize, const LS: usize, const S: usize, const A: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a read is in flight.
    pub reset: Signal<In, Bit>,
    pub s_piece: MsgSink<VqPiece>,
    pub m_pay: MsgSrc<PayCmd>,
    pub s_pay_done: MsgSink<PayDone>,
    /// The DMA reader's assembly write port.
    pub asm_we: Signal<In, Bits<K>>,
    pub asm_row1: Signal<In, Bits<K>>,
    pub asm_addr: Signal<In, Bits<13>>,
    pub asm_data: Signal<In, Bits<W>>,
    pub m_frame: AxisSrc<W, K>,
    /// The queue of each frame that leaves, in their order, and the checksum that it is to get.
    pub m_order: MsgSrc<L4Order>,
    pub m_use: MsgSrc<VqUse>,
    /// Pulse: a head of a transmit queue goes to the walker, whose chain will want a slot. There is a slot for one more, from the cycle behind the pulse on.
    pub promise: Signal<In, Bit>,
    pub room: Signal<Out, Bit>,
    /// Pulse: a frame does not leave.
    pub told_valid: Signal<Out, Bit>,
    pub told: Signal<Out, VqTold>,
    fill: DFF<Fill>,
    drain: DFF<Drain>,
    pieces: MsgSlice<VqPiece>,
    orders: MsgSlice<L4Order>,
    /// Slots that have been sealed, and given back; both with a bit more.
    sealed: DFF<Bits<8>>,
    given: DFF<Bits<8>>,
    piece: DFF<VqPiece>,
    /// Where the next bytes go in the slot, and how many may follow.
    off: DFF<Bits<14>>,
    space: DFF<Bits<14>>,
    cut: DFF<Bits<13>>,
    over: DFF<Bit>,
    next_at: Sum<64>,
    chains: RamAsync<Chain, LS>,
    owed: Owed<LS, S>,
    /// Slots that are taken, or promised to a chain on its way.
    promised: DFF<Bits<8>>,
    ready: DFF<Bit>,
    buffer: LaneRam<W, K, A>,
    chain: DFF<Chain>,
    asks: Asks<W, K>,
    row: DFF<Bits<A>>,
    left: DFF<Bits<14>>,
    /// The frame's first row is the next.
    begins: DFF<Bit>,
    shows: DFF<Bit>,
    shows_last: DFF<Bit>,
    shows_keep: DFF<Bits<K>>,
    mask: LenMask<K, 14>,
    out: AxisFifo<W, K, 4>,
    #[init(Constant::new((asks::FLAGS >> LK).to_bits()))]
    head_row: Constant<Bits<A>>,
    #[init(Constant::new((asks::SUM >> LK).to_bits()))]
    sum_row: Constant<Bits<A>>,
    #[init(Constant::new((FRAME >> LK).to_bits()))]
    frame_row: Constant<Bits<A>>,
    #[init(Constant::new(((LG_SLOT - LK) as u64).into()))]
    lg_rows: Constant<Bits<4>>,
    #[init(Constant::new((K as u64).into()))]
    width: Constant<Bits<14>>,
    #[init(Constant::new(PAGE.into()))]
    page_bytes: Constant<Bits<13>>,
    #[init(Constant::new((S as u64).into()))]
    slots: Constant<Bits<8>>,
    used_slots: Signal<Local, Bits<8>>,
    open: Signal<Local, Bit>,
    gives: Signal<Local, Bit>,
    slot: Signal<Local, Bits<LS>>,
    oldest: Signal<Local, Bits<LS>>,
    place: Signal<Local, Bits<64>>,
    in_page: Signal<Local, Bits<13>>,
    page_room: Signal<Local, Bits<13>>,
    rest: Signal<Local, Bits<32>>,
    vast: Signal<Local, Bits<32>>,
    sends: Signal<Local, Bit>,
    total: Signal<Local, Bits<18>>,
    cause: Signal<Local, Bits<5>>,
    issues: Signal<Local, Bit>,
    base: Signal<Local, Bits<A>>,
    dst: Signal<Local, Bits<18>>,
    waits: Signal<Local, Bit>,
    whose: Signal<Local, Bits<16>>,
    header: Signal<Local, Bits<14>>,
}

#[kernel]
impl<const W: usize, const K: usize, const LK: usize, const LS: usize, const S: usize, const A: usize> Logic for Tx<W, K, LK, LS, S, A> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, fill, drain, sealed, given, piece, off, space, cut, over, ready, chain, row, left, begins, shows, shows_last, shows_keep, promised);
        clock!(self, clock, pieces, orders, owed, chains, buffer, asks, out);
        self.pieces.reset.next = self.reset.val();
        self.out.reset.next = self.reset.val();
        self.orders.reset.next = self.reset.val();
        self.owed.reset.next = self.reset.val();
        MsgSink::<PayDone>::link(&mut self.s_pay_done, &mut self.owed.s_done);
        MsgSink::<VqPiece>::link(&mut self.s_piece, &mut self.pieces.s);
        AxisSrc::<W, K>::link(&mut self.m_frame, &mut self.out.m);
        MsgSrc::<L4Order>::link(&mut self.m_order, &mut self.orders.m);
        self.buffer.we.next = self.asm_we.val();
        self.buffer.row1.next = self.asm_row1.val();
        self.buffer.waddr.next = self.asm_addr.val().get_bits::<A>(0);
        self.buffer.wdata.next = self.asm_data.val();
        self.used_slots.next = self.sealed.q.val() - self.given.q.val();
        self.open.next = self.used_slots.val() != self.slots.val();
        self.room.next = self.promised.q.val() != self.slots.val();
        self.gives.next = (self.drain.q.val() == Drain::Give) & self.m_use.ready.val();
        if self.promise.val() & !self.gives.val() {
            self.promised.d.next = self.promised.q.val() + 1;
        }
        if self.gives.val() & !self.promise.val() {
            self.promised.d.next = self.promised.q.val() - 1;
        }
        self.slot.next = self.sealed.q.val().get_bits::<LS>(0);
        self.oldest.next = self.given.q.val().get_bits::<LS>(0);

        // ---- Fill: buffers are ordered from the host as they come, whatever becomes of their chain ----
        self.pieces.m.ready.next = (self.fill.q.val() == Fill::Idle) & self.open.val();
        self.place.next = self.piece.q.val().addr;
        self.in_page.next = bit_cast::<13, LG_PAGE>(self.place.val().get_bits::<LG_PAGE>(0));
        self.page_room.next = self.page_bytes.val() - self.in_page.val();
        self.rest.next = self.piece.q.val().len;
        self.vast.next = self.pieces.m.data.val().len;
        self.next_at.a.next = self.piece.q.val().addr;
        self.next_at.b.next = bit_cast::<64, 13>(self.cut.q.val());
        self.sends.next = (self.fill.q.val() == Fill::Order) & self.m_pay.ready.val();
        self.m_pay.valid.next = self.fill.q.val() == Fill::Order;
        self.m_pay.data.next.iova = self.piece.q.val().addr;
        self.m_pay.data.next.function = self.piece.q.val().function;
        self.m_pay.data.next.len = self.cut.q.val();
        self.dst.next = (bit_cast::<18, LS>(self.slot.val()) << LG_SLOT) | bit_cast::<18, 14>(self.off.q.val());
        self.m_pay.data.next.dst = self.dst.val();
        self.m_pay.data.next.slot = bit_cast::<8, LS>(self.slot.val());
        self.total.next = self.piece.q.val().total;
        self.cause.next = bits::<5>(0);
        if self.piece.q.val().cause.any() {
            self.cause.next = self.piece.q.val().cause;
        } else if self.total.val() < SHORTEST {
            self.cause.next = bits::<5>(VirtioCause::Short as u64);
        } else if self.total.val() > LONGEST {
            self.cause.next = bits::<5>(VirtioCause::Oversize as u64);
        }
        self.chains.write_addr.next = self.slot.val();
        self.chains.write_data.next.queue = self.piece.q.val().queue;
        self.chains.write_data.next.id = self.piece.q.val().id;
        self.chains.write_data.next.slots = self.piece.q.val().slots;
        self.header.next = self.total.val().get_bits::<14>(0) - HEADER;
        self.chains.write_data.next.len = self.header.val();
        self.chains.write_data.next.cause = self.cause.val();
        self.chains.write_data.next.known = self.piece.q.val().cause.any();
        self.chains.write_data.next.sums = self.piece.q.val().sums;
        self.chains.write_en.next = self.fill.q.val() == Fill::Seal;
        match self.fill.q.val() {
            Fill::Idle => {
                self.piece.d.next = self.pieces.m.data.val();
                if self.pieces.m.valid.val() & self.open.val() {
                    if self.pieces.m.data.val().ends {
                        self.fill.d.next = Fill::Seal;
                    } else if self.over.q.val() | (self.vast.val() > LONGEST) {
                        // It does not fit: its end says that it is too long.
                        self.over.d.next = true;
                    } else {
                        self.fill.d.next = Fill::Cut;
                    }
                }
            }
            Fill::Cut => {
                self.cut.d.next = self.page_room.val();
                if self.rest.val() < bit_cast::<32, 13>(self.page_room.val()) {
                    self.cut.d.next = self.rest.val().get_bits::<13>(0);
                }
                self.fill.d.next = Fill::Order;
                if self.rest.val() > bit_cast::<32, 14>(self.space.q.val()) {
                    self.over.d.next = true;
                    self.fill.d.next = Fill::Idle;
                }
            }
            Fill::Order => {
                if self.m_pay.ready.val() {
                    self.piece.d.next.addr = self.next_at.y.val();
                    self.piece.d.next.len = self.rest.val() - bit_cast::<32, 13>(self.cut.q.val());
                    self.off.d.next = self.off.q.val() + bit_cast::<14, 13>(self.cut.q.val());
                    self.space.d.next = self.space.q.val() - bit_cast::<14, 13>(self.cut.q.val());
                    self.fill.d.next = Fill::Cut;
                    if self.rest.val() == bit_cast::<32, 13>(self.cut.q.val()) {
                        self.fill.d.next = Fill::Idle;
                    }
                }
            }
            Fill::Seal => {
                self.sealed.d.next = self.sealed.q.val() + 1;
                self.off.d.next = bits::<14>(START);
                self.space.d.next = bits::<14>(LONGEST);
                self.over.d.next = false;
                self.fill.d.next = Fill::Idle;
            }
            _ => {
                self.fill.d.next = Fill::Idle;
            }
        }

        self.owed.sends.next = self.sends.val();
        self.owed.slot.next = self.slot.val();
        self.owed.renews.next = (self.fill.q.val() == Fill::Idle) & (self.off.q.val() == START) & self.open.val();
        self.owed.of.next = self.oldest.val();

        // ---- Drain: the oldest sealed slot, when all its bytes are there ----
        self.waits.next = self.used_slots.val().any() & self.owed.quiet.val();
        self.ready.d.next = self.waits.val() & (self.drain.q.val() == Drain::Wait);
        self.chains.read_addr.next = self.oldest.val();
        self.base.next = bit_cast::<A, LS>(self.oldest.val()) << self.lg_rows.val();
        self.buffer.raddr.next = self.base.val() | self.row.q.val();
        if self.drain.q.val() == Drain::Head {
            self.buffer.raddr.next = self.base.val() | self.head_row.val();
        }
        if self.drain.q.val() == Drain::Asks {
            self.buffer.raddr.next = self.base.val() | self.sum_row.val();
        }
        self.asks.row.next = self.buffer.rdata.val();
        self.asks.flags.next = self.drain.q.val() == Drain::Asks;
        self.asks.sums.next = self.drain.q.val() == Drain::Sum;
        self.asks.len.next = self.chain.q.val().len;
        self.asks.offered.next = self.chain.q.val().sums;
        self.mask.len.next = self.left.q.val();
        self.issues.next = (self.drain.q.val() == Drain::Rows) & (self.out.level.val() < ROOM) & (self.orders.s.ready.val() | !self.begins.q.val());
        self.shows.d.next = self.issues.val();
        self.shows_last.d.next = self.left.q.val() <= self.width.val();
        self.shows_keep.d.next = self.mask.keep.val();
        self.out.s.data.next = self.buffer.rdata.val();
        self.out.s.keep.next = self.shows_keep.q.val();
        self.out.s.last.next = self.shows_last.q.val();
        self.out.s.valid.next = self.shows.q.val();
        self.m_use.valid.next = self.drain.q.val() == Drain::Give;
        self.whose.next = self.chain.q.val().queue;
        self.m_use.data.next.queue = self.whose.val();
        self.m_use.data.next.id = self.chain.q.val().id;
        self.m_use.data.next.slots = self.chain.q.val().slots;
        self.m_use.data.next.len = bits::<32>(0);
        self.m_use.data.next.follows = false;
        self.m_use.data.next.none = false;
        self.orders.s.valid.next = self.issues.val() & self.begins.q.val();
        self.orders.s.data.next = self.asks.order.val();
        self.orders.s.data.next.queue = self.whose.val();
        self.told_valid.next = false;
        self.told.next.queue = self.whose.val();
        self.told.next.lost = false;
        self.told.next.cause = self.chain.q.val().cause;
        match self.drain.q.val() {
            Drain::Wait => {
                self.chain.d.next = self.chains.read_data.val();
                if self.ready.q.val() {
                    self.drain.d.next = Drain::Settle;
                }
            }
            // The last bytes may be on the write port as late as this.
            Drain::Settle => {
                self.drain.d.next = Drain::Settled;
            }
            Drain::Settled => {
                self.drain.d.next = Drain::Head;
                if self.chain.q.val().cause.any() {
                    self.drain.d.next = Drain::Give;
                } else if self.owed.failed.val() {
                    self.chain.d.next.cause = bits::<5>(VirtioCause::TxDma as u64);
                    self.drain.d.next = Drain::Give;
                }
            }
            Drain::Head => {
                self.row.d.next = self.frame_row.val();
                self.left.d.next = self.chain.q.val().len;
                self.drain.d.next = Drain::Asks;
            }
            Drain::Asks => {
                self.drain.d.next = Drain::Sum;
            }
            Drain::Sum => {
                self.drain.d.next = Drain::Bound;
            }
            Drain::Bound => {
                self.drain.d.next = Drain::Judge;
            }
            Drain::Judge => {
                self.begins.d.next = true;
                self.drain.d.next = Drain::Rows;
                if self.asks.bad.val() {
                    self.chain.d.next.cause = bits::<5>(VirtioCause::BadOffload as u64);
                    self.drain.d.next = Drain::Give;
                }
            }
            Drain::Rows => {
                if self.issues.val() {
                    self.begins.d.next = false;
                    self.row.d.next = self.row.q.val() + 1;
                    self.left.d.next = self.left.q.val() - self.width.val();
                    if self.left.q.val() <= self.width.val() {
                        self.drain.d.next = Drain::Give;
                    }
                }
            }
            Drain::Give => {
                if self.gives.val() {
                    self.told_valid.next = self.chain.q.val().cause.any() & !self.chain.q.val().known;
                    self.given.d.next = self.given.q.val() + 1;
                    self.drain.d.next = Drain::Wait;
                }
            }
            _ => {
                self.drain.d.next = Drain::Wait;
            }
        }
        if self.reset.val() {
            self.fill.d.next = Fill::Idle;
            self.drain.d.next = Drain::Wait;
            self.sealed.d.next = bits::<8>(0);
            self.given.d.next = bits::<8>(0);
            self.promised.d.next = bits::<8>(0);
            self.off.d.next = bits::<14>(START);
            self.space.d.next = bits::<14>(LONGEST);
            self.over.d.next = false;
            self.ready.d.next = false;
            self.shows.d.next = false;
        }
    }
}
