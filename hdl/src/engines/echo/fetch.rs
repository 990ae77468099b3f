//! Reads a frame out of the cell buffer, one aligned piece of 64 bytes at a time, and frees it.

use crate::bus::{AxisSink, MsgSrc};
use crate::msg::CellRead;
use crate::stream::BeatsToWide;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// Bytes of a piece.
pub(super) const PIECE: usize = 64;
/// Its bits.
pub(super) const PIECE_BITS: usize = 8 * PIECE;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The length is being computed.
    Size,
    /// The command is on offer.
    Ask,
    /// Its beats are on their way. There is room for them: they are never held up.
    Wait,
}

/// One command at a time. `L` is log2(K) + 1.
#[derive(LogicBlock, BlockDefault)]
pub(super) struct Fetch<const W: usize, const K: usize, const L: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous.
    pub reset: Signal<In, Bit>,
    pub m_cell: MsgSrc<CellRead>,
    pub s_cell: AxisSink<W, K>,
    pub handle: Signal<In, Bits<12>>,
    pub frame_len: Signal<In, Bits<14>>,
    /// Reads piece `index`; taken while `idle`.
    pub go: Signal<In, Bit>,
    pub index: Signal<In, Bits<7>>,
    /// With `go`: reads nothing, frees the frame.
    pub free: Signal<In, Bit>,
    /// For one cycle: the piece is there, or the order to free it has been taken.
    pub came: Signal<Out, Bit>,
    /// Zeros behind the frame's end; stays until the next piece comes.
    pub piece: Signal<Out, Bits<PIECE_BITS>>,
    wide: BeatsToWide<PIECE_BITS, W, K, L>,
    state: DFF<State>,
    command: DFF<CellRead>,
    off: Signal<Local, Bits<14>>,
    left: Signal<Local, Bits<14>>,
}

#[kernel]
impl<const W: usize, const K: usize, const L: usize> Logic for Fetch<W, K, L> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, command);
        clock!(self, clock, wide);
        self.wide.reset.next = self.reset.val();
        AxisSink::<W, K>::link(&mut self.s_cell, &mut self.wide.s);
        self.piece.next = self.wide.m.data.val();
        self.wide.m.ready.next = self.state.q.val() == State::Wait;
        self.m_cell.data.next = self.command.q.val();
        self.m_cell.valid.next = self.state.q.val() == State::Ask;
        self.off.next = bit_cast::<14, 7>(self.index.val()) << 6;
        self.left.next = self.frame_len.val() - self.command.q.val().off;
        self.came.next = false;
        match self.state.q.val() {
            State::Idle => {
                self.command.d.next.handle = self.handle.val();
                self.command.d.next.off = self.off.val();
                self.command.d.next.len = bits::<14>(0);
                self.command.d.next.free = self.free.val();
                if self.go.val() {
                    self.state.d.next = State::Size;
                }
            }
            State::Size => {
                if !self.command.q.val().free {
                    self.command.d.next.len = bits::<14>(PIECE as u64);
                    if self.left.val() < PIECE as u64 {
                        self.command.d.next.len = self.left.val();
                    }
                }
                self.state.d.next = State::Ask;
            }
            State::Ask => {
                if self.m_cell.ready.val() {
                    self.state.d.next = State::Wait;
                    if self.command.q.val().free {
                        self.came.next = true;
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Wait => {
                if self.wide.m.valid.val() {
                    self.came.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
