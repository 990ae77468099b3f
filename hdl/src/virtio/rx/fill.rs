//! Header and frame into the buffers of chains, one chain after the other, as moves. See README.md.

use crate::bus::{MsgSink, MsgSrc};
use crate::msg::{MoveOp, VqPiece};
use crate::prim::sum::Sum;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bytes of the header, of a page, and of a move that carries its bytes with it, at most.
const HEADER: u64 = crate::virtio::HEADER;
const LG_PAGE: usize = 12;
const PAGE: u64 = 1 << LG_PAGE;
const DIRECT: u64 = 8;
/// The byte of the header in which the number of buffers begins. It is below 256, so that its second byte is 0.
const BUFFERS: u64 = 10;
/// The first byte of the header: the checksum has been verified (VIRTIO 1.3, 5.1.6: VIRTIO_NET_HDR_F_DATA_VALID).
const DATA_VALID: u64 = 2;
/// What is left when it is the last.
const LAST: u64 = 1;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Piece,
    Fit,
    Cut,
    Move,
    Rest,
    Done,
}

/// One chain at a time.
#[derive(LogicBlock, BlockDefault)]
pub struct Fill {
    pub clock: Signal<In, Clock>,
    /// Synchronous; not while a write is in flight.
    pub reset: Signal<In, Bit>,
    /// A frame begins: `whole` bytes with its header, in buffer `handle`. It stays as it is until the frame is over.
    pub begins: Signal<In, Bit>,
    pub whole: Signal<In, Bits<14>>,
    pub handle: Signal<In, Bits<12>>,
    /// Chains that the frame is in, as its header says.
    pub chains: Signal<In, Bits<7>>,
    /// Its checksum has been verified, as its header says.
    pub sound: Signal<In, Bit>,
    /// Its next chain, of `count` buffers, which come on `s_piece`: until `done`.
    pub goes: Signal<In, Bit>,
    pub count: Signal<In, Bits<8>>,
    /// The function whose memory that is.
    pub owner: Signal<In, Bits<12>>,
    /// The frame's buffer is to be freed: until `freed`.
    pub frees: Signal<In, Bit>,
    pub freed: Signal<Out, Bit>,
    /// Pulse: the chain has what it takes, `written` bytes. `over`: nothing is left of the frame.
    pub done: Signal<Out, Bit>,
    pub written: Signal<Out, Bits<14>>,
    pub over: Signal<Out, Bit>,
    /// Writes that have been ordered so far, of all frames.
    pub sent: Signal<Out, Bits<10>>,
    pub s_piece: MsgSink<VqPiece>,
    /// To the mover.
    pub m_move: MsgSrc<MoveOp>,
    state: DFF<State>,
    /// Buffers of the chain that have not come; the one that has.
    behind: DFF<Bits<8>>,
    addr: DFF<Bits<64>>,
    room: DFF<Bits<32>>,
    /// Bytes of header and frame that have been ordered, those of them before this chain, and those still to be.
    at: DFF<Bits<14>>,
    begun: DFF<Bits<14>>,
    left: DFF<Bits<14>>,
    fits: DFF<Bits<14>>,
    cut: DFF<Bits<13>>,
    writes: DFF<Bits<10>>,
    next_at: Sum<64>,
    #[init(Constant::new(PAGE.into()))]
    page_bytes: Constant<Bits<14>>,
    #[init(Constant::new(HEADER.into()))]
    header: Constant<Bits<14>>,
    #[init(Constant::new(BUFFERS.into()))]
    buffers_at: Constant<Bits<6>>,
    apart: Signal<Local, Bits<6>>,
    from: Signal<Local, Bits<64>>,
    in_page: Signal<Local, Bits<14>>,
    page: Signal<Local, Bits<14>>,
    head: Signal<Local, Bit>,
    todo: Signal<Local, Bits<14>>,
    place: Signal<Local, Bits<6>>,
    distance: Signal<Local, Bits<6>>,
    number: Signal<Local, Bits<64>>,
    moves: Signal<Local, Bit>,
    sends: Signal<Local, Bit>,
    lasts: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Fill {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, behind, addr, room, at, begun, left, fits, cut, writes);
        self.s_piece.ready.next = (self.state.q.val() == State::Piece) | (self.state.q.val() == State::Rest);
        self.done.next = self.state.q.val() == State::Done;
        self.written.next = self.at.q.val() - self.begun.q.val();
        self.over.next = !self.left.q.val().any();
        self.sent.next = self.writes.q.val();

        // A move: of the header with its bytes, of the frame from its buffer; inside of a page, and of the chain's buffer.
        self.from.next = self.addr.q.val();
        self.in_page.next = bit_cast::<14, LG_PAGE>(self.from.val().get_bits::<LG_PAGE>(0));
        self.page.next = self.page_bytes.val() - self.in_page.val();
        self.head.next = self.at.q.val() < HEADER;
        self.todo.next = self.left.q.val();
        if self.head.val() {
            self.todo.next = self.header.val() - self.at.q.val();
            if self.at.q.val() < (HEADER - DIRECT) as u64 {
                self.todo.next = bits::<14>(DIRECT);
            }
        }
        self.place.next = self.at.q.val().get_bits::<6>(0);
        self.apart.next = self.buffers_at.val() - self.place.val();
        self.distance.next = self.apart.val() << 3;
        self.number.next = bit_cast::<64, 7>(self.chains.val());
        self.moves.next = self.state.q.val() == State::Move;
        self.m_move.valid.next = self.moves.val() | self.frees.val();
        self.m_move.data.next.handle = self.handle.val();
        // The header's bytes are its own first ones, the frame's those behind the header.
        self.m_move.data.next.off = self.at.q.val() - HEADER;
        if self.head.val() {
            self.m_move.data.next.off = bits::<14>(0);
        }
        self.m_move.data.next.len = self.cut.q.val();
        self.m_move.data.next.iova = self.addr.q.val();
        self.m_move.data.next.function = self.owner.val();
        self.m_move.data.next.free = false;
        self.m_move.data.next.direct = self.head.val();
        self.m_move.data.next.data = bits::<64>(0);
        if (self.at.q.val() <= BUFFERS) & (self.at.q.val() > (BUFFERS - DIRECT) as u64) {
            self.m_move.data.next.data = self.number.val() << self.distance.val();
        }
        if !self.at.q.val().any() & self.sound.val() {
            self.m_move.data.next.data = bits::<64>(DATA_VALID);
        }
        if self.frees.val() {
            self.m_move.data.next.len = bits::<13>(0);
            self.m_move.data.next.free = true;
            self.m_move.data.next.direct = false;
        }
        self.freed.next = self.frees.val() & self.m_move.ready.val();
        self.next_at.a.next = self.addr.q.val();
        self.next_at.b.next = bit_cast::<64, 13>(self.cut.q.val());
        self.sends.next = self.moves.val() & self.m_move.ready.val();
        if self.sends.val() {
            self.writes.d.next = self.writes.q.val() + 1;
        }
        self.lasts.next = self.left.q.val() == bit_cast::<14, 13>(self.cut.q.val());

        match self.state.q.val() {
            State::Idle => {
                self.behind.d.next = self.count.val();
                self.begun.d.next = self.at.q.val();
                if self.goes.val() {
                    self.state.d.next = State::Piece;
                    if !self.count.val().any() {
                        self.state.d.next = State::Done;
                    }
                }
            }
            State::Piece => {
                self.addr.d.next = self.s_piece.data.val().addr;
                self.room.d.next = self.s_piece.data.val().len;
                if self.s_piece.valid.val() {
                    self.behind.d.next = self.behind.q.val() - 1;
                    self.state.d.next = State::Fit;
                }
            }
            // The smallest of what is left of the page, of header or frame, and of the buffer.
            State::Fit => {
                self.fits.d.next = self.todo.val();
                if self.page.val() < self.todo.val() {
                    self.fits.d.next = self.page.val();
                }
                self.state.d.next = State::Cut;
            }
            State::Cut => {
                self.cut.d.next = self.fits.q.val().get_bits::<13>(0);
                if self.room.q.val() < bit_cast::<32, 14>(self.fits.q.val()) {
                    self.cut.d.next = self.room.q.val().get_bits::<13>(0);
                }
                self.state.d.next = State::Move;
            }
            State::Move => {
                if self.m_move.ready.val() {
                    self.addr.d.next = self.next_at.y.val();
                    self.room.d.next = self.room.q.val() - bit_cast::<32, 13>(self.cut.q.val());
                    self.at.d.next = self.at.q.val() + bit_cast::<14, 13>(self.cut.q.val());
                    self.left.d.next = self.left.q.val() - bit_cast::<14, 13>(self.cut.q.val());
                    self.state.d.next = State::Fit;
                    if self.lasts.val() | (self.room.q.val() == bit_cast::<32, 13>(self.cut.q.val())) {
                        self.state.d.next = State::Piece;
                        if self.lasts.val() {
                            self.state.d.next = State::Rest;
                        }
                        if !self.behind.q.val().any() {
                            self.state.d.next = State::Done;
                        }
                    }
                }
            }
            // Buffers that the frame does not need.
            State::Rest => {
                if self.s_piece.valid.val() {
                    self.behind.d.next = self.behind.q.val() - 1;
                    if self.behind.q.val() == LAST {
                        self.state.d.next = State::Done;
                    }
                }
            }
            State::Done => {
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.begins.val() {
            self.at.d.next = bits::<14>(0);
            self.left.d.next = self.whole.val();
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.writes.d.next = bits::<10>(0);
        }
    }
}
