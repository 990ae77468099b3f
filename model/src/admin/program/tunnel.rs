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
/// The rest of a parameter list that SET_TUNNEL, SET_STATION and SET_ADDRESS have no use for: registers.
const OURS: R = p(20);
const OTHERS: R = p(21);
const JOINS: R = p(22);
const COUNT: R = p(23);
/// Functions of a network: so many owners can a received frame have.
const MOST: u32 = 8;
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
        let [off, goes] = std::array::from_fn(|_| self.asm.label());
        self.refuse(AdminStatus::Denied, Op::Bne, FN, 0);
        self.refuse(AdminStatus::BadId, Op::Bge, ID, self.functions());
        self.asm.op(Op::And, W, p(FIRST as u8), !(bits(of("rsvd1")) | bits(of("bound"))));
        self.no_raw_left_behind();
        self.get(T, W, of("valid"));
        self.asm.branch(Op::Beq, T, 0, goes);
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
        self.asm.bind(goes);
        self.others_of_the_vni();
        self.line(ID);
        self.get(T, W, of("valid"));
        self.asm.branch(Op::Beq, T, 0, off);
        self.asm.li(T, bits(of("bound")));
        self.write(TUNNEL, FIRST, T);
        self.write(TUNNEL, VNI, V);
        for n in VNI + 1..WORDS {
            self.write(TUNNEL, n, p(n as u8));
        }
        self.asm.op(Op::Or, W, W, T);
        self.write(TUNNEL, FIRST, W);
        self.done();
        // The network goes with it: whoever has a tunnel next begins alone.
        self.asm.bind(off);
        self.write(TUNNEL, FIRST, ZERO);
        self.write(TUNNEL, VNI, ZERO);
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

    /// V: the second word of the line as it is to become. A function whose VNI another has at the same address joins that one's network, if the two say the same of what is taken; else, and where one of them is the physical
    /// function, whose tunnel its own reset takes away, it is refused: what comes would be of two. So is a change of what others have joined. W is the first word. Changes T, U, I, N and the line.
    fn others_of_the_vni(&mut self) {
        let [each, differs, next] = std::array::from_fn(|_| self.asm.label());
        let in_use = self.fails(AdminStatus::InUse);
        let network = bits(of("joined")) | bits(of("leader"));
        let same_flag = |program: &mut Self, flags: &[&str], other: Label| {
            let mask = flags.iter().fold(0, |mask, name| mask | bits(of(name)));
            program.asm.op(Op::And, U, T, mask);
            program.asm.op(Op::And, OTHERS, W, mask);
            program.asm.branch(Op::Bne, U, OTHERS, other);
        };
        let same_words = |program: &mut Self, words: std::ops::Range<u8>, other: Label| {
            for n in words {
                program.read(U, TUNNEL, n.into());
                program.asm.branch(Op::Bne, U, p(n), other);
            }
        };
        // What a line says that has joined this function.
        self.asm.op(Op::Shl, OURS, ID, u32::from(of("leader").shift));
        self.asm.op(Op::Or, OURS, OURS, bits(of("joined")));
        self.get(V, p(VNI as u8), of("vni"));
        self.asm.li(JOINS, 0);
        self.asm.li(COUNT, 1);
        self.asm.li(I, 0);
        self.asm.bind(each);
        self.asm.branch(Op::Beq, I, ID, next);
        self.line(I);
        self.read(T, TUNNEL, FIRST);
        self.read(N, TUNNEL, VNI);
        same_flag(self, &["valid", "ipv6"], differs);
        self.get(U, T, of("valid"));
        self.asm.branch(Op::Beq, U, 0, next);
        self.get(U, N, of("vni"));
        self.asm.branch(Op::Bne, U, V, differs);
        same_words(self, LOCAL..REMOTE, differs);
        self.asm.branch(Op::Beq, I, 0, in_use);
        self.asm.branch(Op::Beq, ID, 0, in_use);
        same_flag(self, &["lenient", "zero_csum6", "any_remote"], in_use);
        same_words(self, FROM_MAC..LOCAL, in_use);
        same_words(self, REMOTE..WORDS as u8, in_use);
        self.asm.op(Op::Add, COUNT, COUNT, 1);
        self.refuse(AdminStatus::NoRoom, Op::Bge, COUNT, MOST + 1);
        self.asm.op(Op::And, U, N, network);
        self.asm.branch(Op::Beq, U, OURS, next);
        self.asm.mov(JOINS, U);
        self.asm.branch(Op::Bne, U, 0, next);
        self.asm.op(Op::Shl, JOINS, I, u32::from(of("leader").shift));
        self.asm.op(Op::Or, JOINS, JOINS, bits(of("joined")));
        self.asm.jump(next);
        self.asm.bind(differs);
        self.asm.op(Op::And, U, N, network);
        self.asm.branch(Op::Beq, U, OURS, in_use);
        self.asm.bind(next);
        self.asm.op(Op::Add, I, I, 1);
        self.asm.branch(Op::Bne, I, self.functions(), each);
        self.asm.op(Op::Or, V, V, JOINS);
    }

    /// Goes to `other` unless function `g` is in the network of the function whose command it is: it is that function, or both have tunnels of one network, or neither has one. Changes `g` and the line. Cards
    /// without tunnels have one network.
    pub(super) fn same_network(&mut self, g: R, other: Label) {
        if !self.tables.contains(&TUNNEL.into()) {
            return;
        }
        self.asm.mov(OURS, g);
        self.asm.call(LINK, self.network_number);
        self.asm.mov(g, OURS);
        self.asm.mov(OURS, FN);
        self.asm.call(LINK, self.network_number);
        self.asm.branch(Op::Bne, OURS, g, other);
    }

    /// The subroutine: OURS, a function's number, becomes what says which network it is in. Zero: that of functions without a tunnel.
    pub(super) fn number_of(&mut self) {
        if !self.tables.contains(&TUNNEL.into()) {
            return;
        }
        let [has, joined] = std::array::from_fn(|_| self.asm.label());
        self.asm.bind(self.network_number);
        self.line(OURS);
        self.read(OTHERS, TUNNEL, FIRST);
        self.asm.op(Op::And, OTHERS, OTHERS, bits(of("valid")) | bits(of("bound")));
        self.asm.branch(Op::Bne, OTHERS, 0, has);
        self.asm.li(OURS, 0);
        self.asm.ret(LINK);
        self.asm.bind(has);
        self.read(OTHERS, TUNNEL, VNI);
        self.asm.op(Op::And, OTHERS, OTHERS, bits(of("joined")) | bits(of("leader")));
        self.asm.op(Op::Shl, OURS, OURS, u32::from(of("leader").shift));
        self.asm.op(Op::Or, OURS, OURS, bits(of("joined")));
        self.asm.branch(Op::Beq, OTHERS, 0, joined);
        self.asm.mov(OURS, OTHERS);
        self.asm.bind(joined);
        self.asm.ret(LINK);
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
