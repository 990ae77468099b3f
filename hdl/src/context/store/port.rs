//! One client's port: the life of a line from acquire to release.

use crate::context::bus::CtxServer;
use crate::prim::chaos::ChaosDelay;
use crate::stream::chaos;
use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Nothing wanted; what is asked for may be granted at once.
    Idle,
    /// Waits for the lock and the read port.
    Want,
    /// The memory's output is this port's line and offered as it comes.
    Read,
    /// The line, or the fault, is offered.
    Line,
    Fault,
    /// The client works on it, or waits for the write port.
    Held,
}

/// Speaks the acquire/release protocol; the store grants the memory's ports.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=23).contains(&LQ), "a line number has 24 bits")]
pub(super) struct Port<T: Synth, const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub client: CtxServer<T>,
    /// Line number wanted.
    pub id: Signal<Out, Bits<LQ>>,
    /// Waits for `grant`: read port and lock.
    pub want: Signal<Out, Bit>,
    pub grant: Signal<In, Bit>,
    /// The lock of line `kept` is this port's.
    pub held: Signal<Out, Bit>,
    /// Line number held.
    pub kept: Signal<Out, Bits<LQ>>,
    /// The memory's read data, one cycle after `grant`.
    pub row: Signal<In, T>,
    /// The client's `rel_data` is to be written: so it is in a cycle with `open`.
    pub put: Signal<Out, Bit>,
    /// Nobody that goes before this port writes.
    pub open: Signal<In, Bit>,
    state: DFF<State>,
    /// The state is `Read`: in one bit, since the client's first look at the line is the longest way of all.
    reading: DFF<Bit>,
    /// The state is `Want`: in one bit, since it chooses the line number, which is compared and then read.
    waits: DFF<Bit>,
    wanted: DFF<Bits<24>>,
    tag: DFF<Bits<4>>,
    hold: DFF<T>,
    #[init(ChaosDelay::new(chaos::next_seed()))]
    delay: ChaosDelay,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LQ)).to_bits()))]
    outside: Constant<Bits<24>>,
    excess: Signal<Local, Bits<24>>,
    number: Signal<Local, Bits<24>>,
    own: Signal<Local, Bits<24>>,
    /// The line goes back in this cycle; something may be asked for.
    returns: Signal<Local, Bit>,
    open_to: Signal<Local, Bit>,
}

#[kernel]
impl<T: Synth, const LQ: usize> Logic for Port<T, LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, reading, waits, wanted, tag, hold);
        clock!(self, clock, delay);
        self.own.next = self.wanted.q.val();
        self.kept.next = self.own.val().get_bits::<LQ>(0);
        self.number.next = self.client.acq_id.val();
        if self.waits.q.val() {
            self.number.next = self.wanted.q.val();
        }
        self.client.line_valid.next = false;
        self.client.line_fault.next = false;
        self.client.line_tag.next = self.tag.q.val();
        self.client.line_data.next = self.hold.q.val();
        if self.reading.q.val() {
            self.client.line_data.next = self.row.val();
        }
        self.reading.d.next = false;
        self.client.rel_ready.next = false;
        self.want.next = false;
        self.held.next = false;
        self.put.next = false;
        self.delay.start.next = false;
        self.excess.next = self.client.acq_id.val() & self.outside.val();
        self.waits.d.next = false;
        self.returns.next = self.client.rel_valid.val() & (self.open.val() | !self.client.rel_dirty.val());
        self.open_to.next = false;
        match self.state.q.val() {
            State::Idle => {
                // A grant for a number past the table comes to nothing: the lock is the state.
                self.want.next = self.client.acq_valid.val();
                self.open_to.next = true;
            }
            State::Want => {
                self.want.next = true;
                self.waits.d.next = !self.grant.val();
                if self.grant.val() {
                    self.state.d.next = State::Read;
                    self.reading.d.next = true;
                    self.delay.start.next = true;
                }
            }
            State::Read => {
                self.held.next = true;
                self.hold.d.next = self.row.val();
                self.client.line_valid.next = !self.delay.busy.val();
                self.state.d.next = State::Line;
                if self.client.line_ready.val() & !self.delay.busy.val() {
                    self.state.d.next = State::Held;
                }
            }
            State::Line => {
                self.held.next = true;
                self.client.line_valid.next = !self.delay.busy.val();
                if self.client.line_ready.val() & !self.delay.busy.val() {
                    self.state.d.next = State::Held;
                }
            }
            State::Fault => {
                self.client.line_valid.next = true;
                self.client.line_fault.next = true;
                if self.client.line_ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Held => {
                self.held.next = true;
                self.put.next = self.client.rel_valid.val() & self.client.rel_dirty.val();
                self.client.rel_ready.next = self.open.val() | !self.client.rel_dirty.val();
                // The next line may be asked for as this one goes back. Whether it does is known late: a grant comes to nothing while it does not.
                self.want.next = self.client.acq_valid.val() & self.client.rel_valid.val();
                self.open_to.next = self.returns.val();
                if self.returns.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.client.acq_ready.next = self.open_to.val();
        if self.open_to.val() {
            self.wanted.d.next = self.client.acq_id.val();
            self.tag.d.next = self.client.acq_tag.val();
            if self.client.acq_valid.val() {
                self.state.d.next = State::Want;
                self.waits.d.next = true;
                if self.excess.val().any() {
                    self.state.d.next = State::Fault;
                    self.waits.d.next = false;
                } else if self.grant.val() {
                    self.state.d.next = State::Read;
                    self.waits.d.next = false;
                    self.reading.d.next = true;
                    self.delay.start.next = true;
                }
            }
        }
        self.id.next = self.number.val().get_bits::<LQ>(0);
        if self.reset.val() {
            self.state.d.next = State::Idle;
            self.reading.d.next = false;
            self.waits.d.next = false;
        }
    }
}
