//! Send work requests fetched once more: the answers to READs and atomics are placed by their entries. See README.md.

#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::host::table::INDEX;
use crate::host::wqe_store::WqeStore;
use crate::msg::{CtlReq, RdCmd, RdRow, WqeAgain, WqeData, WqeFree, WqeHandle, WqeRead};
use crate::prim::ram::Ram;
use crate::prim::sum::Sum;
use crate::stream::MsgFifo;
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

// Words of a ring: see `RingCtx`.
const BASE_LOW: u64 = 0;
const BASE_HIGH: u64 = 1;
const SHAPE: u64 = 2;
/// log2 of the bytes of the smallest slot.
const LOG_SLOT: u64 = 6;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[
    // A buffer is free when placement has given one back.
    ("s_want", &["s_free", "m_rd", "m_handle"]),
    ("m_handle", &["s_free", "m_rd", "m_handle"]),
    ("s_rd", &[]),
    ("s_read", &["m_rd", "s_rd", "m_read"]), // until the buffer is filled
    ("m_read", &["m_rd", "s_rd", "m_read"]),
    ("s_free", &[]), // the list has a place for each buffer
];

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The ring's words are there: place of the slot.
    Place,
    Send,
}

/// For `2^LQ` queues, 64 buffers. Where a ring lies it learns from what the control bus writes to the send queues.
#[derive(LogicBlock, Default)]
pub struct WqeAgainUnit<const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A request on the send queues' control port.
    pub ctl: Signal<In, CtlReq>,
    pub ctl_valid: Signal<In, Bit>,
    pub s_want: MsgSink<WqeAgain>,
    /// One answer per request, in order.
    pub m_handle: MsgSrc<WqeHandle>,
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
    pub s_read: MsgSink<WqeRead>,
    pub m_read: MsgSrc<WqeData>,
    pub s_free: MsgSink<WqeFree>,
    low: Ram<Bits<32>, LQ>,
    high: Ram<Bits<32>, LQ>,
    attributes: Ram<Bits<32>, LQ>,
    store: WqeStore<64, 6, 9>,
    reads: MsgFifo<RdCmd, 2>,
    handles: MsgFifo<WqeHandle, 2>,
    state: DFF<State>,
    index: DFF<Bits<16>>,
    base: DFF<Bits<64>>,
    offset: DFF<Bits<24>>,
    owner: DFF<Bits<12>>,
    stride: DFF<Bits<2>>,
    place: Sum<64>,
    line: Signal<Local, Bits<24>>,
    write: Signal<Local, Bit>,
    qpn: Signal<Local, Bits<24>>,
    words: Signal<Local, Bits<32>>,
    mask: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    send: Signal<Local, Bit>,
    handle: Signal<Local, Bits<8>>,
}

#[kernel]
impl<const LQ: usize> Logic for WqeAgainUnit<LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, index, base, offset, owner, stride);
        clock!(self, clock, low, high, attributes, store, reads, handles);
        self.store.reset.next = self.reset.val();
        self.reads.reset.next = self.reset.val();
        self.handles.reset.next = self.reset.val();
        MsgSrc::<RdCmd>::link(&mut self.m_rd, &mut self.reads.m);
        MsgSrc::<WqeHandle>::link(&mut self.m_handle, &mut self.handles.m);
        MsgSink::<RdRow>::link(&mut self.s_rd, &mut self.store.s_rd);
        MsgSink::<WqeRead>::link(&mut self.s_read, &mut self.store.s_read);
        MsgSrc::<WqeData>::link(&mut self.m_read, &mut self.store.m_read);
        MsgSink::<WqeFree>::link(&mut self.s_free, &mut self.store.s_free);

        // Words 0 and 1 of a ring are its base, word 2 its owner and shape. Seen for several cycles a write is only repeated.
        self.line.next = self.ctl.val().line;
        self.write.next = self.ctl_valid.val() & self.ctl.val().write;
        self.low.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.high.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.attributes.write_addr.next = self.line.val().get_bits::<LQ>(0);
        self.low.write_data.next = self.ctl.val().data;
        self.high.write_data.next = self.ctl.val().data;
        self.attributes.write_data.next = self.ctl.val().data;
        self.low.write_en.next = self.write.val() & (self.ctl.val().word == BASE_LOW);
        self.high.write_en.next = self.write.val() & (self.ctl.val().word == BASE_HIGH);
        self.attributes.write_en.next = self.write.val() & (self.ctl.val().word == SHAPE);
        self.qpn.next = self.s_want.data.val().qpn;
        self.low.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.high.read_addr.next = self.qpn.val().get_bits::<LQ>(0);
        self.attributes.read_addr.next = self.qpn.val().get_bits::<LQ>(0);

        // RingCtx word 2: function 12, 4 unused, log2 of the slots 4, stride 2.
        self.words.next = self.attributes.read_data.val();
        self.mask.next = bits::<16>(INDEX) << bit_cast::<16, 4>(self.words.val().get_bits::<4>(16));
        self.slot.next = self.index.q.val() & !self.mask.val();
        self.place.a.next = self.base.q.val();
        self.place.b.next = bit_cast::<64, 24>(self.offset.q.val());
        self.s_want.ready.next = self.state.q.val() == State::Idle;
        self.handle.next = self.store.m_buffer.data.val().handle;
        self.send.next = (self.state.q.val() == State::Send) & self.store.m_buffer.valid.val() & self.reads.s.ready.val() & self.handles.s.ready.val();

        match self.state.q.val() {
            State::Idle => {
                self.index.d.next = self.s_want.data.val().index;
                if self.s_want.valid.val() {
                    self.state.d.next = State::Place;
                }
            }
            State::Place => {
                self.base.d.next = bit_cast::<64, 32>(self.low.read_data.val()) | (bit_cast::<64, 32>(self.high.read_data.val()) << 32);
                self.owner.d.next = self.words.val().get_bits::<12>(0);
                self.stride.d.next = self.words.val().get_bits::<2>(20);
                self.offset.d.next = bit_cast::<24, 16>(self.slot.val()) << (bit_cast::<24, 2>(self.words.val().get_bits::<2>(20)) + LOG_SLOT);
                self.state.d.next = State::Send;
            }
            State::Send => {
                if self.send.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }

        // The buffer's number is that of the fetch: it comes back only when its rows have been read.
        self.store.m_buffer.ready.next = self.send.val();
        self.store.map_we.next = self.send.val();
        self.store.map_addr.next = bit_cast::<9, 8>(self.handle.val()) << 3;
        self.store.map_handle.next = self.handle.val().get_bits::<6>(0);
        self.store.open_en.next = self.send.val();
        self.store.open_done.next = false;
        self.store.put_en.next = false;
        self.store.put_handle.next = bits::<6>(0);
        self.store.put_data.next = bits::<512>(0);
        self.store.head_addr.next = bits::<6>(0);
        self.handles.s.valid.next = self.send.val();
        self.handles.s.data.next.handle = self.handle.val();
        self.reads.s.valid.next = self.send.val();
        self.reads.s.data.next.iova = self.place.y.val();
        self.reads.s.data.next.function = self.owner.q.val();
        self.reads.s.data.next.rows = bits::<4>(1) << bit_cast::<4, 2>(self.stride.q.val());
        self.reads.s.data.next.tag = self.handle.val() | (bit_cast::<8, 2>(self.stride.q.val()) << 6);

        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
