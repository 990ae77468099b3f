//! The functions' tunnels (docs/admin.md, SET_TUNNEL): lines of `space::TUNNEL`. The blocks work meanwhile: the first word, which switches a tunnel on, is the first that is cleared, but for the
//! bit that keeps the function's frames out of every other network meanwhile, and the last that is written.

use super::*;
use ferric_abi::context::TunnelCtx;
use ferric_abi::csr::space::TUNNEL;

/// Words of the line and of the parameters: low and high words of MAC addresses, the first of IP addresses, and how many there are.
pub(super) const FIRST: u32 = 0;
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

pub(super) fn of(name: &str) -> F {
    field(&TunnelCtx::LAYOUT, name)
}

/// Where field `f` has its bits.
pub(super) fn bits(f: F) -> u32 {
    f.mask << f.shift
}

impl Program {
    /// W: the first word, as it is to become.
    pub fn set_tunnel(&mut self) {
        let off = self.asm.label();
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadId, Op::Bge, ID, self.functions());
        self.asm.op(Op::And, W, p(FIRST as u8), !(bits(of("rsvd1")) | bits(of("bound"))));
        self.no_raw_left_behind();
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
        self.no_other_tunnel();
        self.line(ID);
        self.asm.li(T, bits(of("bound")));
        self.write(TUNNEL, FIRST, T);
        for n in VNI..WORDS {
            self.write(TUNNEL, n, p(n as u8));
        }
        self.asm.op(Op::Or, W, W, T);
        self.write(TUNNEL, FIRST, W);
        self.done();
        self.asm.bind(off);
        self.line(ID);
        self.write(TUNNEL, FIRST, ZERO);
        self.done();
    }

    /// Refuses the path MTU in `mtu` if the function's tunnel says that the underlay has no room for it. Changes U; the line is ID's.
    pub(super) fn fits_tunnel(&mut self, mtu: R) {
        if !self.tables.contains(&TUNNEL.into()) {
            return;
        }
        let any = self.asm.label();
        self.line(FN);
        self.read(U, TUNNEL, FIRST);
        self.get(U, U, of("pmtu"));
        self.asm.branch(Op::Beq, U, 0, any);
        self.asm.op(Op::Add, U, U, 1);
        self.refuse(AdminStatus::NoRoom, Op::Bge, mtu, U);
        self.asm.bind(any);
        self.line(ID);
    }

    /// Refuses a VNI that another function has at the same address: what comes would be of two.
    fn no_other_tunnel(&mut self) {
        let [each, next] = std::array::from_fn(|_| self.asm.label());
        let in_use = self.fails(AdminStatus::InUse);
        self.asm.li(I, 0);
        self.asm.bind(each);
        self.asm.branch(Op::Beq, I, ID, next);
        self.line(I);
        self.read(T, TUNNEL, FIRST);
        let version = bits(of("valid")) | bits(of("ipv6"));
        self.asm.op(Op::And, T, T, version);
        self.asm.op(Op::And, U, W, version);
        self.asm.branch(Op::Bne, T, U, next);
        self.read(T, TUNNEL, VNI);
        self.get(T, T, of("vni"));
        self.get(U, p(VNI as u8), of("vni"));
        self.asm.branch(Op::Bne, T, U, next);
        for n in 0..4 {
            self.read(T, TUNNEL, u32::from(LOCAL + n));
            self.asm.branch(Op::Bne, T, p(LOCAL + n), next);
        }
        self.asm.jump(in_use);
        self.asm.bind(next);
        self.asm.op(Op::Add, I, I, 1);
        self.asm.branch(Op::Bne, I, self.functions(), each);
    }

    /// Goes to `other` unless function `g` is in the network of the function whose command it is: it is that function, or neither has a tunnel. Changes `g` and the line. Cards without tunnels
    /// have one network.
    pub(super) fn same_network(&mut self, g: R, other: Label) {
        if !self.tables.contains(&TUNNEL.into()) {
            return;
        }
        let same = self.asm.label();
        self.asm.branch(Op::Beq, g, FN, same);
        for function in [g, FN] {
            self.line(function);
            self.read(g, TUNNEL, FIRST);
            self.asm.op(Op::And, g, g, bits(of("valid")) | bits(of("bound")));
            self.asm.branch(Op::Bne, g, 0, other);
        }
        self.asm.bind(same);
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

    /// With the physical function goes its own. Those of others stay, whoever is reset: nobody gets out of a tunnel that way.
    pub fn no_tunnel(&mut self) {
        let stays = self.asm.label();
        self.asm.branch(Op::Bne, FN, 0, stays);
        self.line(ZERO);
        self.write(TUNNEL, FIRST, ZERO);
        self.asm.bind(stays);
    }
}
