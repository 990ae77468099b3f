//! The target's memory keys: parts of the RAM with rights. See README.md.
#[cfg(test)]
mod tests;

use crate::bus::{MsgSink, MsgSrc};
use crate::codes::key_status;
use crate::msg::{MrChange, MrChanged, MrReq, MrResp};
use crate::prim::ram::RamAsync;
use crate::stream::MsgSlice;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// One key: `length` bytes of the RAM from `start` on, for queue pairs of protection domain `pd`. `rights`: bit 0 local write, then remote write,
/// remote read, atomic. `variant`: low byte of the key, whose upper bytes are the entry's number.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Key {
    pub valid: Bit,
    pub variant: Bits<8>,
    pub rights: Bits<4>,
    pub pd: Bits<24>,
    pub start: Bits<32>,
    pub length: Bits<32>,
}

/// Writes entry `index`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct KeyWrite {
    pub index: Bits<8>,
    pub key: Key,
}

/// What the machine does.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum State {
    Idle,
    Subtract,
    Judge,
}

/// `2^LM` keys. An address is the byte of the RAM; two ports of checks in turn, one check in three cycles.
#[derive(LogicBlock, BlockDefault)]
pub struct RamKeys<const LM: usize> {
    pub clock: Signal<In, Clock>,
    /// Synchronous. The keys stay.
    pub reset: Signal<In, Bit>,
    /// 0: gather, 1: placement, as of `rdma/mr`.
    pub s_req: [MsgSink<MrReq>; 2],
    pub m_resp: [MsgSrc<MrResp>; 2],
    /// Keys that a peer wants invalid: none of these may be.
    pub s_change: MsgSink<MrChange>,
    pub m_changed: MsgSrc<MrChanged>,
    /// Taken at once; checks begun later see it.
    pub write: Signal<In, KeyWrite>,
    pub write_en: Signal<In, Bit>,
    /// Pulse per check that was refused.
    pub refused: Signal<Out, Bit>,
    entries: RamAsync<Key, LM>,
    /// Bits of a key's upper part that name no entry.
    #[init(Constant::new((0xff_ffff & !((1u64 << LM) - 1)).into()))]
    outside: Constant<Bits<24>>,
    changed: MsgSlice<MrChanged>,
    output: [MsgSlice<MrResp>; 2],
    state: DFF<State>,
    turn: DFF<Bit>,
    req: DFF<MrReq>,
    key: DFF<Key>,
    off: DFF<Bits<33>>,
    status: DFF<Bits<3>>,
    chosen: Signal<Local, MrReq>,
    some: Signal<Local, Bit>,
    room: Signal<Local, Bit>,
    index: Signal<Local, Bits<24>>,
    index_now: Signal<Local, Bits<24>>,
    excess: Signal<Local, Bits<24>>,
    variant: Signal<Local, Bits<8>>,
    rights: Signal<Local, Bits<6>>,
    lacks: Signal<Local, Bits<6>>,
    high: Signal<Local, Bits<32>>,
    low: Signal<Local, Bits<33>>,
    off_now: Signal<Local, Bits<33>>,
    length: Signal<Local, Bits<33>>,
    reach: Signal<Local, Bits<33>>,
    short: Signal<Local, Bit>,
    verdict: Signal<Local, Bits<3>>,
    answer: Signal<Local, MrResp>,
}

#[kernel]
impl<const LM: usize> Logic for RamKeys<LM> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, turn, req, key, off, status);
        clock!(self, clock, entries, changed);
        self.changed.reset.next = self.reset.val();
        MsgSrc::<MrChanged>::link(&mut self.m_changed, &mut self.changed.m);
        self.s_change.ready.next = self.changed.s.ready.val();
        self.changed.s.valid.next = self.s_change.valid.val();
        self.changed.s.data.next.status = bits::<3>(key_status::PERMISSION);
        for i in 0..2 {
            self.output[i].clock.next = self.clock.val();
            self.output[i].reset.next = self.reset.val();
            MsgSrc::<MrResp>::link(&mut self.m_resp[i], &mut self.output[i].m);
        }
        self.entries.write_en.next = self.write_en.val();
        self.entries.write_addr.next = self.write.val().index.get_bits::<LM>(0);
        self.entries.write_data.next = self.write.val().key;

        // A port waits for its turn; the turn passes on while nobody asks.
        self.chosen.next = self.s_req[0].data.val();
        self.some.next = self.s_req[0].valid.val();
        self.room.next = self.output[0].s.ready.val();
        if self.turn.q.val() {
            self.chosen.next = self.s_req[1].data.val();
            self.some.next = self.s_req[1].valid.val();
            self.room.next = self.output[1].s.ready.val();
        }
        self.s_req[0].ready.next = (self.state.q.val() == State::Idle) & !self.turn.q.val() & self.room.val();
        self.s_req[1].ready.next = (self.state.q.val() == State::Idle) & self.turn.q.val() & self.room.val();

        // First cycle: the entry.
        self.index.next = self.chosen.val().key.get_bits::<24>(8);
        self.entries.read_addr.next = self.index.val().get_bits::<LM>(0);

        // Second: owner and rights, the distance from its start.
        self.index_now.next = self.req.q.val().key.get_bits::<24>(8);
        self.excess.next = self.index_now.val() & self.outside.val();
        self.variant.next = self.req.q.val().key.get_bits::<8>(0);
        self.rights.next = (bit_cast::<6, 4>(self.key.q.val().rights) << 1) | 1;
        self.lacks.next = self.req.q.val().access & !self.rights.val();
        self.high.next = self.req.q.val().va.get_bits::<32>(32);
        self.low.next = bit_cast::<33, 32>(self.req.q.val().va.get_bits::<32>(0));
        self.off_now.next = self.low.val() - bit_cast::<33, 32>(self.key.q.val().start);
        self.off.d.next = self.off_now.val();
        self.status.d.next = bits::<3>(0);
        if !self.key.q.val().valid | (self.key.q.val().variant != self.variant.val()) | self.excess.val().any() {
            self.status.d.next = bits::<3>(key_status::KEY);
        } else if self.key.q.val().pd != self.req.q.val().pd {
            self.status.d.next = bits::<3>(key_status::DOMAIN);
        } else if self.lacks.val().any() {
            self.status.d.next = bits::<3>(key_status::PERMISSION);
        } else if self.high.val().any() {
            self.status.d.next = bits::<3>(key_status::BOUNDS);
        }

        // Third: what is left behind the address.
        self.length.next = bit_cast::<33, 32>(self.key.q.val().length);
        self.reach.next = self.off.q.val() + bit_cast::<33, 32>(self.req.q.val().chk_len);
        self.short.next = self.off.q.val().get_bit(32) | (self.off.q.val() > self.length.val()) | (self.reach.val() > self.length.val());
        self.verdict.next = self.status.q.val();
        if !self.status.q.val().any() & self.short.val() {
            self.verdict.next = bits::<3>(key_status::BOUNDS);
        }
        self.answer.next.iova = bit_cast::<64, 32>(self.req.q.val().va.get_bits::<32>(0));
        self.answer.next.status = self.verdict.val();
        self.refused.next = (self.state.q.val() == State::Judge) & self.verdict.val().any();
        for i in 0..2 {
            self.output[i].s.data.next = self.answer.val();
        }
        self.output[0].s.valid.next = (self.state.q.val() == State::Judge) & !self.turn.q.val();
        self.output[1].s.valid.next = (self.state.q.val() == State::Judge) & self.turn.q.val();

        match self.state.q.val() {
            State::Idle => {
                self.req.d.next = self.chosen.val();
                self.key.d.next = self.entries.read_data.val();
                if self.some.val() & self.room.val() {
                    self.state.d.next = State::Subtract;
                } else {
                    self.turn.d.next = !self.turn.q.val();
                }
            }
            State::Subtract => {
                self.state.d.next = State::Judge;
            }
            State::Judge => {
                self.turn.d.next = !self.turn.q.val();
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.turn.d.next = false;
        }
    }
}
