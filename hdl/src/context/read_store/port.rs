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
    /// Waits for the lock.
    Want,
    /// The line, or the fault, is offered.
    Line,
    Fault,
    /// The client has it.
    Held,
}

/// Speaks the acquire/release protocol; the store grants the lock. The memory reads `id` in every cycle, so it shows the line for as long as that is offered.
#[derive(LogicBlock, BlockDefault)]
#[demand((1..=23).contains(&LQ), "a line number has 24 bits")]
pub(super) struct Port<T: Synth, const LQ: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub client: CtxServer<T>,
    /// Line number wanted or held.
    pub id: Signal<Out, Bits<LQ>>,
    /// Waits for `grant`: the lock.
    pub want: Signal<Out, Bit>,
    pub grant: Signal<In, Bit>,
    /// The lock of line `kept` is this port's.
    pub held: Signal<Out, Bit>,
    pub kept: Signal<Out, Bits<LQ>>,
    /// The line `id` of one cycle before.
    pub row: Signal<In, T>,
    state: DFF<State>,
    wanted: DFF<Bits<24>>,
    tag: DFF<Bits<4>>,
    #[init(ChaosDelay::new(chaos::next_seed()))]
    delay: ChaosDelay,
    #[init(Constant::new(((1u64 << 24) - (1u64 << LQ)).to_bits()))]
    outside: Constant<Bits<24>>,
    excess: Signal<Local, Bits<24>>,
    number: Signal<Local, Bits<24>>,
    own: Signal<Local, Bits<24>>,
}

#[kernel]
impl<T: Synth, const LQ: usize> Logic for Port<T, LQ> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, wanted, tag);
        clock!(self, clock, delay);
        self.own.next = self.wanted.q.val();
        self.kept.next = self.own.val().get_bits::<LQ>(0);
        self.number.next = self.wanted.q.val();
        self.client.acq_ready.next = false;
        self.client.line_valid.next = false;
        self.client.line_fault.next = false;
        self.client.line_tag.next = self.tag.q.val();
        self.client.line_data.next = self.row.val();
        self.client.rel_ready.next = false;
        self.want.next = false;
        self.held.next = false;
        self.delay.start.next = false;
        self.excess.next = self.client.acq_id.val() & self.outside.val();
        match self.state.q.val() {
            State::Idle => {
                self.client.acq_ready.next = true;
                self.number.next = self.client.acq_id.val();
                self.wanted.d.next = self.client.acq_id.val();
                self.tag.d.next = self.client.acq_tag.val();
                // A grant for a number past the table comes to nothing: the lock is the state.
                self.want.next = self.client.acq_valid.val();
                if self.client.acq_valid.val() {
                    self.state.d.next = State::Want;
                    if self.excess.val().any() {
                        self.state.d.next = State::Fault;
                    } else if self.grant.val() {
                        self.state.d.next = State::Line;
                        self.delay.start.next = true;
                    }
                }
            }
            State::Want => {
                self.want.next = true;
                if self.grant.val() {
                    self.state.d.next = State::Line;
                    self.delay.start.next = true;
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
                self.client.rel_ready.next = true;
                if self.client.rel_valid.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        self.id.next = self.number.val().get_bits::<LQ>(0);
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}
