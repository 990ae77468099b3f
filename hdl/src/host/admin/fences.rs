//! What the engine awaits of the rest of the card: a barrier, caches without translations, quiet reads and writes.
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Barrier,
    Clean,
    ReadsRise,
    ReadsFall,
    WritesRise,
    WritesFall,
}

/// One of them at a time.
#[derive(LogicBlock, Default)]
pub(super) struct Fences {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulses: a barrier is wanted, caches without translations, no read under way, no write under way.
    pub pass: Signal<In, Bit>,
    pub clean: Signal<In, Bit>,
    pub still_reads: Signal<In, Bit>,
    pub still_writes: Signal<In, Bit>,
    /// Pulse: it has come.
    pub over: Signal<Out, Bit>,
    /// To the card and from there, as in [`super::Admin`].
    pub barrier: Signal<Out, Bit>,
    pub barrier_done: Signal<In, Bit>,
    pub mtt_invalidate: Signal<Out, Bit>,
    pub mtt_clean: Signal<In, Bit>,
    pub quiesce_rd: Signal<Out, Bit>,
    pub quiesced_rd: Signal<In, Bit>,
    pub quiesce_wr: Signal<Out, Bit>,
    pub quiesced_wr: Signal<In, Bit>,
    state: DFF<State>,
    barrier_now: DFF<Bit>,
    invalidate_now: DFF<Bit>,
}

#[kernel]
impl Logic for Fences {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, barrier_now, invalidate_now);
        self.barrier.next = self.barrier_now.q.val();
        self.mtt_invalidate.next = self.invalidate_now.q.val();
        self.quiesce_rd.next = self.state.q.val() == State::ReadsRise;
        self.quiesce_wr.next = self.state.q.val() == State::WritesRise;
        self.barrier_now.d.next = self.pass.val();
        self.invalidate_now.d.next = self.clean.val();
        self.over.next = false;
        match self.state.q.val() {
            State::Idle => {
                if self.pass.val() {
                    self.state.d.next = State::Barrier;
                }
                if self.clean.val() {
                    self.state.d.next = State::Clean;
                }
                if self.still_reads.val() {
                    self.state.d.next = State::ReadsRise;
                }
                if self.still_writes.val() {
                    self.state.d.next = State::WritesRise;
                }
            }
            State::Barrier => {
                if self.barrier_done.val() {
                    self.over.next = true;
                }
            }
            State::Clean => {
                if !self.invalidate_now.q.val() & self.mtt_clean.val() {
                    self.over.next = true;
                }
            }
            State::ReadsRise => {
                if self.quiesced_rd.val() {
                    self.state.d.next = State::ReadsFall;
                }
            }
            State::ReadsFall => {
                if !self.quiesced_rd.val() {
                    self.over.next = true;
                }
            }
            State::WritesRise => {
                if self.quiesced_wr.val() {
                    self.state.d.next = State::WritesFall;
                }
            }
            State::WritesFall => {
                if !self.quiesced_wr.val() {
                    self.over.next = true;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.over.val() | self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
