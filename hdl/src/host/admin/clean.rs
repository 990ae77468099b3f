//! In a card without translations there are none to be dropped: the admin engine does not wait.

use ferric_hdl_derive::kernel;
use rust_hdl::prelude::*;

/// Which ports may wait for which others (docs/deadlock.md).
pub const WAITS: &[(&str, &[&str])] = &[("clean", &[])];

/// Stands for the cache of translations: always clean, but in the cycle in which it is told to become so.
#[derive(LogicBlock, Default)]
pub struct Clean {
    pub invalidate: Signal<In, Bit>,
    pub clean: Signal<Out, Bit>,
}

#[kernel]
impl Logic for Clean {
    #[hdl_gen]
    fn update(&mut self) {
        self.clean.next = !self.invalidate.val();
    }
}
