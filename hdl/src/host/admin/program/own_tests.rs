//! A command of an engine that has a table of its own, which hosts have no number for.
use super::*;

/// What the engine calls its table.
pub(crate) const OWN: &str = "own";

impl Program {
    /// Word 1 of line `id` becomes p0; r0 is what stood there.
    pub(crate) fn swap_own(&mut self) {
        let bad = self.fails(AdminStatus::BadId);
        self.line(ID);
        self.read(R(RES), OWN, 1);
        self.asm.on_error(bad);
        self.write(OWN, 1, p(0));
        self.done();
    }
}
