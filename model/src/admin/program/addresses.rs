//! Addresses that the card answers for, and the search for a neighbour's MAC address (docs/admin.md): lines of `space::ADDRESS`, which the block that answers has.
//!
//! That block works meanwhile: it must never see the IP address of one entry with the MAC address of another. So the last word of a line, which makes it count, is the first that is cleared
//! and the last that is written.

use super::*;
use ferric_abi::context::{AddressCtx, NeighbourCtx};
use ferric_abi::csr::space::ADDRESS;
use ferric_abi::csr::{ADDRESSES, NEIGHBOUR_LINE, STATIONS};

/// Words of an IP address; p(0) is the first of both commands.
pub(super) const IP_WORDS: u8 = 4;
/// Low word of a MAC address, in both kinds of line and in the parameters.
pub(super) const MAC_LOW: u32 = 4;
/// The word that makes a line count, of both kinds; its low half is the rest of the MAC address.
pub(super) const LAST: u32 = 5;
pub(super) const MAC_HIGH: u32 = 0xffff;
/// The bit of a group's MAC address (the first on the wire), in the last word.
const GROUP_MAC: u8 = 8;
/// 802.1Q: this identifier is reserved.
const NO_VLAN: u32 = 0xfff;
/// IPv4: from 224.0.0.0 on there are groups, reserved addresses and the broadcast address.
const IPV4_GROUPS: u32 = 0xe000_0000;
/// IPv6: groups begin with ff00::.
const IPV6_GROUPS: u32 = 0xff00_0000;
/// States of a search.
const ASKED: u32 = 1;
const KNOWN: u32 = 2;
/// Bits of RESOLVE's p(4).
const ASK: u8 = 0;
const AGAIN: u8 = 1;

fn own(name: &str) -> F {
    field(&AddressCtx::LAYOUT, name)
}

fn sought(name: &str) -> F {
    field(&NeighbourCtx::LAYOUT, name)
}

/// Where field `f` has its bits.
fn bits(f: F) -> u32 {
    f.mask << f.shift
}

impl Program {
    /// N = the line of the function's address ID, which must be one of its numbers.
    fn address_line(&mut self) {
        self.refuse(AdminStatus::BadId, Op::Bge, ID, ADDRESSES);
        self.asm.op(Op::Shl, N, FN, ADDRESSES.ilog2());
        self.asm.op(Op::Add, N, N, ID);
    }

    /// The line is that of the function's search.
    fn neighbour_line(&mut self) {
        self.asm.op(Op::Add, T, FN, NEIGHBOUR_LINE);
        self.line(T);
    }

    /// The IP address from p(0) on must be one machine's, and of the version that W, an address's last word, says.
    fn one_machine(&mut self) {
        let [ipv6, fits] = std::array::from_fn(|_| self.asm.label());
        self.asm.op(Op::Or, T, p(1), p(2));
        self.asm.op(Op::Or, T, T, p(3));
        self.asm.op(Op::Or, U, T, p(0));
        self.refuse(AdminStatus::BadParameter, Op::Beq, U, 0);
        self.get(U, W, own("ipv6"));
        self.asm.branch(Op::Bne, U, 0, ipv6);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(0), IPV4_GROUPS);
        self.asm.jump(fits);
        self.asm.bind(ipv6);
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(3), IPV6_GROUPS);
        self.asm.bind(fits);
    }

    /// Goes to `other` unless the line has the IP address from p(0) on.
    fn same_ip(&mut self, other: Label) {
        for n in 0..IP_WORDS {
            self.read(U, ADDRESS, n.into());
            self.asm.branch(Op::Bne, U, p(n), other);
        }
    }

    /// Goes to `next` if line I is that of a function in another network. Changes U; the line stays I's. T stays, too.
    fn other_network(&mut self, next: Label) {
        self.asm.op(Op::Shr, U, I, ADDRESSES.ilog2());
        self.same_network(U, next);
        self.line(I);
    }

    /// Address ID counts no more, line N, unless the function's special queue pair speaks from it; neither does what was found from it, which was found in its network.
    fn forget_address(&mut self) {
        let stays = self.asm.label();
        self.not_spoken_from();
        self.write(ADDRESS, LAST, ZERO);
        self.neighbour_line();
        self.read(T, ADDRESS, LAST);
        self.get(T, T, sought("source"));
        self.asm.branch(Op::Bne, T, ID, stays);
        self.write(ADDRESS, LAST, ZERO);
        self.asm.bind(stays);
    }

    /// What is there already stays as it is: two programs on one function may both say it, and the card answers all the while.
    pub fn set_address(&mut self) {
        let [goes, tagged, each, next] = std::array::from_fn(|_| self.asm.label());
        let (ok, bad) = (self.fails(AdminStatus::Ok), self.fails(AdminStatus::BadParameter));
        self.address_line();
        self.get(T, p(LAST as u8), own("valid"));
        self.asm.branch(Op::Beq, T, 0, goes);
        self.asm.op(Op::And, W, p(LAST as u8), !bits(own("rsvd0")));
        self.one_machine();
        self.asm.op(Op::And, T, W, MAC_HIGH);
        self.asm.op(Op::Or, T, T, p(MAC_LOW as u8));
        self.refuse(AdminStatus::BadParameter, Op::Beq, T, 0);
        self.asm.ext(T, W, GROUP_MAC, 1);
        self.refuse(AdminStatus::BadParameter, Op::Bne, T, 0);
        // Nobody says of another function's MAC address that it is his.
        self.asm.op(Op::And, LO, W, MAC_HIGH);
        self.each_same_station(p(MAC_LOW as u8), LO, |program| {
            program.asm.op(Op::Shr, U, I, STATIONS.ilog2());
            program.refuse(AdminStatus::InUse, Op::Bne, U, FN);
        });
        self.get(U, W, own("vid"));
        self.refuse(AdminStatus::BadParameter, Op::Beq, U, NO_VLAN);
        self.get(T, W, own("vlan"));
        self.asm.branch(Op::Bne, T, 0, tagged);
        self.asm.branch(Op::Bne, U, 0, bad);
        self.asm.bind(tagged);
        // Nobody else in the same network may have it: all lines of all functions. V: the network that it is in.
        let network = bits(own("vid")) | bits(own("vlan")) | bits(own("ipv6"));
        self.asm.op(Op::And, V, W, network);
        self.asm.li(I, 0);
        self.asm.bind(each);
        self.line(I);
        self.read(T, ADDRESS, LAST);
        self.get(U, T, own("valid"));
        self.asm.branch(Op::Beq, U, 0, next);
        self.asm.op(Op::And, U, T, network);
        self.asm.branch(Op::Bne, U, V, next);
        self.other_network(next);
        self.same_ip(next);
        self.refuse(AdminStatus::InUse, Op::Bne, I, N);
        self.read(U, ADDRESS, MAC_LOW);
        self.asm.branch(Op::Bne, U, p(MAC_LOW as u8), next);
        self.asm.branch(Op::Beq, T, W, ok);
        self.asm.bind(next);
        self.asm.op(Op::Add, I, I, 1);
        self.asm.branch(Op::Bne, I, self.functions() * ADDRESSES, each);
        self.asm.bind(goes);
        self.forget_address();
        self.get(T, p(LAST as u8), own("valid"));
        self.asm.branch(Op::Beq, T, 0, ok);
        self.line(N);
        for n in 0..LAST {
            self.write(ADDRESS, n, p(n as u8));
        }
        self.write(ADDRESS, LAST, W);
        self.done();
    }

    /// V: the state of the search, T: its last word.
    pub fn resolve(&mut self) {
        let [anew, same, ask, answer] = std::array::from_fn(|_| self.asm.label());
        let ok = self.fails(AdminStatus::Ok);
        self.address_line();
        self.refuse(AdminStatus::BadParameter, Op::Bge, p(4), 1 << (AGAIN + 1));
        self.line(N);
        self.read(W, ADDRESS, LAST);
        self.get(T, W, own("valid"));
        self.refuse(AdminStatus::BadState, Op::Beq, T, 0);
        self.one_machine();
        self.neighbour_line();
        self.read(T, ADDRESS, LAST);
        self.get(V, T, sought("state"));
        self.get(U, T, sought("source"));
        self.asm.branch(Op::Bne, U, ID, anew);
        self.same_ip(anew);
        self.asm.jump(same);
        self.asm.bind(anew);
        self.write(ADDRESS, LAST, ZERO);
        for n in 0..IP_WORDS {
            self.write(ADDRESS, n.into(), p(n));
        }
        self.asm.li(V, 0);
        self.set(T, ZERO, ID, sought("source"));
        self.write(ADDRESS, LAST, T);
        self.asm.bind(same);
        self.asm.ext(U, p(4), ASK, 1);
        self.asm.branch(Op::Beq, U, 0, answer);
        self.asm.branch(Op::Bne, V, KNOWN, ask);
        self.asm.ext(U, p(4), AGAIN, 1);
        self.asm.branch(Op::Beq, U, 0, answer);
        self.asm.bind(ask);
        self.asm.li(V, ASKED);
        self.set(T, ZERO, ID, sought("source"));
        self.set(T, T, V, sought("state"));
        self.write(ADDRESS, LAST, T);
        self.asm.bind(answer);
        self.asm.mov(R(RES), V);
        self.asm.branch(Op::Bne, V, KNOWN, ok);
        self.read(R(RES + 1), ADDRESS, MAC_LOW);
        self.asm.op(Op::And, R(RES + 2), T, MAC_HIGH);
        self.done();
    }

    /// The function has no addresses any more, and seeks nobody.
    pub fn no_addresses(&mut self) {
        self.neighbour_line();
        self.write(ADDRESS, LAST, ZERO);
        self.asm.op(Op::Shl, I, FN, ADDRESSES.ilog2());
        self.asm.op(Op::Add, N, I, ADDRESSES);
        let each = self.asm.here();
        self.line(I);
        self.write(ADDRESS, LAST, ZERO);
        self.asm.op(Op::Add, I, I, 1);
        self.asm.branch(Op::Bne, I, N, each);
    }
}
