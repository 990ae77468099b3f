//! The policy in force: none. Another one takes this block's place, with the same ports and what else it needs.

use crate::msg::{CcEvent, CcUpdate};
use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Takes every event, wants nothing.
#[derive(LogicBlock, Default)]
pub(super) struct Policy {
    pub notice: Signal<In, CcEvent>,
    pub notice_valid: Signal<In, Bit>,
    /// The event in hand has an effect.
    pub handled: Signal<Out, Bit>,
    pub update: Signal<Out, CcUpdate>,
    pub update_valid: Signal<Out, Bit>,
}

#[kernel]
impl Logic for Policy {
    #[hdl_gen]
    fn update(&mut self) {
        self.handled.next = false;
        self.update_valid.next = false;
        self.update.next.context = self.notice.val().context;
        self.update.next.rate = bits::<32>(0);
        self.update.next.window = bits::<32>(0);
        self.update.next.path = bits::<8>(0);
    }
}
