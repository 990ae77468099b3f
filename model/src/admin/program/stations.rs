//! MAC addresses of the functions (docs/admin.md, SET_STATION): lines of `space::STATION`. The receive front looks at them meanwhile: a line's last word is the first that is cleared and the last
//! that is written.

use super::*;
use ferric_abi::context::StationCtx;
use ferric_abi::csr::space::STATION;
use ferric_abi::csr::STATIONS;

/// Words of a line, and of the parameters.
const LOW: u32 = 0;
const LAST: u32 = 1;
const MAC_HIGH: u32 = 0xffff;
/// The bit of a group's address (the first on the wire), in the last word.
const GROUP: u8 = 8;

impl Program {
    /// `body` for each line I, of whatever function of the same network, whose address counts and is `high`:`low`. It leaves I as it is; changes T and U, and `high` gets the bit that says so.
    pub(super) fn each_same_station(&mut self, low: R, high: R, body: impl FnOnce(&mut Self)) {
        let [each, other] = std::array::from_fn(|_| self.asm.label());
        self.set_to(high, field(&StationCtx::LAYOUT, "valid"), 1);
        self.asm.li(I, 0);
        self.asm.bind(each);
        self.line(I);
        self.read(T, STATION, LAST);
        self.asm.branch(Op::Bne, T, high, other);
        self.read(U, STATION, LOW);
        self.asm.branch(Op::Bne, U, low, other);
        self.asm.op(Op::Shr, U, I, STATIONS.ilog2());
        self.same_network(U, other);
        body(self);
        self.asm.bind(other);
        self.asm.op(Op::Add, I, I, 1);
        self.asm.branch(Op::Bne, I, self.functions() * STATIONS, each);
    }

    /// Whoever comes first keeps it. What is there already stays as it is.
    pub(super) fn set_station(&mut self) {
        let makes = self.asm.label();
        let ok = self.fails(AdminStatus::Ok);
        self.refuse(AdminStatus::BadId, Op::Bge, ID, STATIONS);
        self.asm.op(Op::Shl, N, FN, STATIONS.ilog2());
        self.asm.op(Op::Add, N, N, ID);
        self.get(T, p(LAST as u8), field(&StationCtx::LAYOUT, "valid"));
        self.asm.branch(Op::Bne, T, 0, makes);
        self.line(N);
        self.write(STATION, LAST, ZERO);
        self.done();
        self.asm.bind(makes);
        self.asm.op(Op::And, W, p(LAST as u8), MAC_HIGH);
        self.asm.op(Op::Or, T, W, p(LOW as u8));
        self.refuse(AdminStatus::BadParameter, Op::Beq, T, 0);
        self.asm.ext(T, W, GROUP, 1);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        self.each_same_station(p(LOW as u8), W, |program| {
            program.refuse(AdminStatus::InUse, Op::Bne, I, N);
            program.asm.jump(ok);
        });
        self.line(N);
        self.write(STATION, LAST, ZERO);
        self.write(STATION, LOW, p(LOW as u8));
        self.write(STATION, LAST, W);
        self.done();
    }

    /// The function has no MAC addresses any more.
    pub(super) fn no_stations(&mut self) {
        self.asm.op(Op::Shl, I, FN, STATIONS.ilog2());
        self.asm.op(Op::Add, N, I, STATIONS);
        let each = self.asm.here();
        self.line(I);
        self.write(STATION, LAST, ZERO);
        self.asm.op(Op::Add, I, I, 1);
        self.asm.branch(Op::Bne, I, N, each);
    }
}
