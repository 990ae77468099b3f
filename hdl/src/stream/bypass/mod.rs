//! Whether a frame goes past a block that would only keep it.

#[cfg(test)]
pub(crate) mod tests;

use ferric_hdl_derive::{kernel, BlockDefault};
use rust_hdl::prelude::*;

/// log2 of the cycles of silence after which nothing is in the block any more: no block with such a way past it keeps a frame that is complete for so long without showing it.
pub(crate) const LG_SILENCE: usize = 6;

/// Decides for each frame, when it begins, whether it goes past a block, so that frames stay in order: the first one goes past when nothing has come or shown itself for 64 cycles in which all
/// might have gone past. The owner leads frames by, and lets what goes by leave first.
#[derive(LogicBlock, BlockDefault)]
pub struct Bypass {
    pub clock: Signal<In, Clock>,
    /// Synchronous; a frame under way is forgotten.
    pub reset: Signal<In, Bit>,
    /// The block would hand on each frame that begins now, as it is.
    pub may: Signal<In, Bit>,
    /// A beat is taken in this cycle, past the block or into it, and whether it is its frame's last.
    pub taken: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    /// The block shows something at its output.
    pub busy: Signal<In, Bit>,
    /// The beat that is taken now, or next, goes past. A register; the same for all beats of a frame.
    pub past: Signal<Out, Bit>,
    /// It is its frame's first.
    pub first: Signal<Out, Bit>,
    by: DFF<Bit>,
    inside: DFF<Bit>,
    silence: DFF<Bits<LG_SILENCE>>,
    goes_on: Signal<Local, Bit>,
    still: Signal<Local, Bit>,
}

#[kernel]
impl Logic for Bypass {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, by, inside, silence);
        self.past.next = self.by.q.val();
        self.first.next = !self.inside.q.val();
        // A frame is under way behind this cycle.
        self.goes_on.next = self.inside.q.val();
        if self.taken.val() {
            self.goes_on.next = !self.last.val();
        }
        self.inside.d.next = self.goes_on.val();
        self.still.next = self.may.val() & !self.busy.val() & !self.taken.val() & !self.inside.q.val();
        self.silence.d.next = bits::<LG_SILENCE>(0);
        if self.by.q.val() {
            self.by.d.next = self.may.val() | self.goes_on.val();
        } else if self.still.val() {
            self.silence.d.next = self.silence.q.val() + 1;
            self.by.d.next = self.silence.q.val().all();
        }
        if self.reset.val() {
            self.by.d.next = false;
            self.inside.d.next = false;
            self.silence.d.next = bits::<LG_SILENCE>(0);
        }
    }
}
