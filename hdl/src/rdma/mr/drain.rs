//! Atomics whose key has been asked for and which are not over: whoever takes a key away waits for them. See README.md.
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Counts atomics in two phases. `turn` begins the other one: when `dry` says that none of the phase before is under way, every atomic
/// that may have found the key is over, however many have come since.
#[derive(LogicBlock, Default)]
pub struct Drain {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: a key is about to be asked for, in the present `phase`.
    pub begun: Signal<In, Bit>,
    pub phase: Signal<Out, Bit>,
    /// Pulse: an atomic that began in phase `over_phase` is over.
    pub over: Signal<In, Bit>,
    pub over_phase: Signal<In, Bit>,
    /// Pulse, when `dry`: the other phase begins. From the next cycle on `dry` belongs to the one before.
    pub turn: Signal<In, Bit>,
    pub dry: Signal<Out, Bit>,
    now: DFF<Bit>,
    open: [DFF<Bits<9>>; 2],
    /// The phase in which one has begun in the last cycle: counted in this one, because `begun` comes late.
    came: DFF<Bits<2>>,
    went: Signal<Local, Bits<2>>,
    pending: Signal<Local, Bits<2>>,
}

#[kernel]
impl Logic for Drain {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, now, came);
        self.phase.next = self.now.q.val();
        self.pending.next = self.came.q.val();
        self.dry.next = !self.open[1].q.val().any() & !self.pending.val().get_bit(1);
        self.came.d.next = bit_cast::<2, 1>(self.begun.val().into());
        self.went.next = bit_cast::<2, 1>(self.over.val().into());
        if self.now.q.val() {
            self.dry.next = !self.open[0].q.val().any() & !self.pending.val().get_bit(0);
            self.came.d.next = bit_cast::<2, 1>(self.begun.val().into()) << 1;
        }
        if self.over_phase.val() {
            self.went.next = bit_cast::<2, 1>(self.over.val().into()) << 1;
        }
        for i in 0..2 {
            self.open[i].clock.next = self.clock.val();
            self.open[i].d.next = self.open[i].q.val();
            if self.came.q.val().get_bit(i) & !self.went.val().get_bit(i) {
                self.open[i].d.next = self.open[i].q.val() + 1;
            }
            if self.went.val().get_bit(i) & !self.came.q.val().get_bit(i) {
                self.open[i].d.next = self.open[i].q.val() - 1;
            }
            if self.reset.val() {
                self.open[i].d.next = bits::<9>(0);
            }
        }
        if self.turn.val() {
            self.now.d.next = !self.now.q.val();
        }
        if self.reset.val() {
            self.came.d.next = bits::<2>(0);
            self.now.d.next = false;
        }
    }
}
