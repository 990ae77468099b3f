//! The card's tunnel (docs/admin.md, SET_TUNNEL): line 0 of `space::TUNNEL`. The blocks work meanwhile: the first word, which switches it on, is the first that is cleared and the last that is
//! written.

use super::*;
use ferric_abi::context::TunnelCtx;
use ferric_abi::csr::space::TUNNEL;

/// Words of the line and of the parameters: low and high words of MAC addresses, the first of IP addresses, and how many there are.
const FIRST: u32 = 0;
const VNI: u32 = 1;
const TO_MAC: u8 = 2;
const FROM_MAC: u8 = 4;
const LOCAL: u8 = 6;
const REMOTE: u8 = 10;
const WORDS: u32 = (TunnelCtx::BYTES / 4) as u32;
/// Of the high word of a MAC address its bits, and the bit of a group's (the first on the wire).
const MAC_HIGH: u32 = 0xffff;
const GROUP: u8 = 8;
/// From here on there are groups and what else is no machine's address.
const IPV4_GROUPS: u32 = 0xe000_0000;
const IPV6_GROUPS: u32 = 0xff00_0000;

fn of(name: &str) -> F {
    field(&TunnelCtx::LAYOUT, name)
}

/// Where field `f` has its bits.
fn bits(f: F) -> u32 {
    f.mask << f.shift
}

impl Program {
    /// W: the first word, as it is to become.
    pub fn set_tunnel(&mut self) {
        let off = self.asm.label();
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadId, Op::Bne, ID, 0);
        self.asm.op(Op::And, W, p(FIRST as u8), !(bits(of("rsvd0")) | bits(of("rsvd1"))));
        self.get(T, W, of("valid"));
        self.asm.branch(Op::Beq, T, 0, off);
        self.get(T, W, of("hop_limit"));
        self.refuse(AdminStatus::BadParameter, Op::Beq, T, 0);
        for low in [TO_MAC, FROM_MAC] {
            self.asm.op(Op::And, T, p(low + 1), MAC_HIGH);
            self.asm.op(Op::Or, T, T, p(low));
            self.refuse(AdminStatus::BadParameter, Op::Beq, T, 0);
            self.asm.ext(T, p(low + 1), GROUP, 1);
            self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        }
        [LOCAL, REMOTE].into_iter().for_each(|first| self.unicast_address(first));
        self.line(ZERO);
        self.write(TUNNEL, FIRST, ZERO);
        for n in VNI..WORDS {
            self.write(TUNNEL, n, p(n as u8));
        }
        self.write(TUNNEL, FIRST, W);
        self.done();
        self.asm.bind(off);
        self.line(ZERO);
        self.write(TUNNEL, FIRST, ZERO);
        self.done();
    }

    /// Refuses the IP address in four words from parameter `first` on if it is not one machine's of the version that W says.
    fn unicast_address(&mut self, first: u8) {
        let [v6, fine] = std::array::from_fn(|_| self.asm.label());
        self.asm.op(Op::Or, T, p(first + 1), p(first + 2));
        self.asm.op(Op::Or, T, T, p(first + 3));
        self.get(U, W, of("ipv6"));
        self.asm.branch(Op::Bne, U, 0, v6);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        self.refuse(AdminStatus::BadParameter, Op::Beq, p(first), 0);
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(first), IPV4_GROUPS);
        self.asm.jump(fine);
        self.asm.bind(v6);
        self.asm.op(Op::Or, T, T, p(first));
        self.refuse(AdminStatus::BadParameter, Op::Beq, T, 0);
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(first + 3), IPV6_GROUPS);
        self.asm.bind(fine);
    }

    /// With the physical function goes what it has set.
    pub fn no_tunnel(&mut self) {
        let stays = self.asm.label();
        self.asm.branch(Op::Bne, FN, 0, stays);
        self.line(ZERO);
        self.write(TUNNEL, FIRST, ZERO);
        self.asm.bind(stays);
    }
}
