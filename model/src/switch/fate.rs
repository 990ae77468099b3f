//! What the card does by a verdict with a frame that it has received, or that is about to leave by the wire: the part of [`super::Switch`]'s actions that there is gateware for. The gateware's `switch/flows` is compared with this.
use ferric_abi::codes::SwitchCause;
use ferric_abi::csr::{FUNCTION_PORTS, WIRE_PORT};
use ferric_abi::switch::{destination, tag_op, Exception, Verdict};

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// To this function, and to no other, with the verdict's changes ([`super::edit::edited`]).
    Function(u16),
    /// To software, which is function 0, whole and as it came. `unable`: the action orders what the card cannot do.
    Software {
        /// See above.
        unable: bool,
    },
    /// Nowhere.
    Drop(SwitchCause),
}

/// The action orders what the card does with no frame: an outer header, a tag that comes or goes, copies. Counting and the class change nothing that anybody gets.
pub fn beyond(verdict: &Verdict) -> bool {
    verdict.encap() != 0 || [tag_op::PUSH, tag_op::POP].contains(&verdict.tag_op()) || verdict.mirror() != 0 || verdict.sample() != 0
}

/// The action changes the frame or copies it. Nobody does that with a frame that leaves by the wire.
pub fn changes(verdict: &Verdict) -> bool {
    beyond(verdict) || verdict.rewrite() != 0 || verdict.tag_op() != tag_op::NONE || verdict.dec_ttl() || verdict.write_dscp()
}

/// Software gets a frame with this verdict if it may get it: the action says so, or orders what the card cannot do.
fn is_for_software(verdict: &Verdict) -> bool {
    match verdict.kind() {
        destination::EXCEPTION | destination::UPLINK | destination::GROUP => true,
        destination::PORT => beyond(verdict),
        _ => false,
    }
}

impl Fate {
    /// That of a frame with this verdict on a card of so many functions, and of as many lines of MAC addresses. `roce`: UDP to RoCE's port, which goes to a queue pair and never to the raw queue, so that software cannot have it.
    pub fn of(verdict: &Verdict, roce: bool, functions: u16, rewrites: u32) -> Self {
        match verdict.kind() {
            _ if is_for_software(verdict) && roce => Fate::Drop(SwitchCause::ExceptionNoQueue),
            _ if is_for_software(verdict) => Fate::Software { unable: verdict.kind() != destination::EXCEPTION },
            destination::PORT => {
                let function = u32::from(verdict.number()).checked_sub(FUNCTION_PORTS).filter(|f| *f < functions.into());
                match function {
                    None => Fate::Drop(SwitchCause::PortDown),
                    Some(_) if u32::from(verdict.rewrite()) >= rewrites => Fate::Drop(SwitchCause::NoRuleRoom),
                    Some(f) => Fate::Function(f as u16),
                }
            }
            _ => Fate::Drop(SwitchCause::from_u8(verdict.cause()).unwrap_or(SwitchCause::None)),
        }
    }
}

/// What becomes of a frame of a function that is about to leave by the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Egress {
    /// It leaves, as it is.
    Leaves,
    /// The parser does not understand it: it is for software.
    Deep,
    /// It is for software.
    Software,
    /// The action orders another port than the wire, or something beside it.
    Elsewhere,
    /// Nowhere.
    Drop(SwitchCause),
}

/// What software is told about a frame with this verdict that it gets, from this port and remote endpoint.
pub fn exception(verdict: &Verdict, port: u8, remote: u16) -> Exception {
    Exception::default().with_port(port).with_remote(remote).with_cause(verdict.cause()).with_unable(verdict.kind() != destination::EXCEPTION)
}

impl Egress {
    /// That of a frame with this verdict.
    pub fn of(verdict: &Verdict) -> Self {
        let cause = SwitchCause::from_u8(verdict.cause()).unwrap_or(SwitchCause::None);
        match verdict.kind() {
            destination::DROP => Egress::Drop(cause),
            destination::EXCEPTION if cause == SwitchCause::Deep => Egress::Deep,
            destination::EXCEPTION => Egress::Software,
            destination::UPLINK | destination::PORT if u32::from(verdict.number()) == WIRE_PORT && !changes(verdict) => Egress::Leaves,
            _ => Egress::Elsewhere,
        }
    }

    /// A frame with this verdict comes in again, as one that functions send each other does, and the tables decide about it once more ([`Fate`]): they are the same, so it gets to the function or to software. Neither does what is
    /// dropped, nor a RoCE packet for software, which has no queue for it.
    pub fn returns(verdict: &Verdict, roce: bool) -> bool {
        match Self::of(verdict) {
            Egress::Leaves | Egress::Drop(_) => false,
            _ => !roce || !is_for_software(verdict),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_for_the_wire_leaves() {
        let to = |kind, number| Egress::of(&Verdict::default().with_kind(kind).with_number(number));
        let wire = WIRE_PORT as u16;
        assert_eq!([to(destination::UPLINK, wire), to(destination::PORT, wire)], [Egress::Leaves; 2]);
        assert_eq!([to(destination::UPLINK, 0), to(destination::UPLINK, 2), to(destination::PORT, 8), to(destination::GROUP, wire)], [Egress::Elsewhere; 4]);
        assert_eq!(Egress::of(&Verdict::default().with_kind(destination::UPLINK).with_number(wire).with_encap(1)), Egress::Elsewhere);
        assert_eq!(Egress::of(&Verdict::default().with_kind(destination::UPLINK).with_number(wire).with_count(true).with_class(3)), Egress::Leaves);
        let refused = |kind, cause| Egress::of(&Verdict::default().with_kind(kind).with_number(wire).with_cause(cause as u8));
        assert_eq!([refused(destination::EXCEPTION, SwitchCause::None), refused(destination::EXCEPTION, SwitchCause::Ttl)], [Egress::Software; 2]);
        assert_eq!(refused(destination::EXCEPTION, SwitchCause::Deep), Egress::Deep);
        assert_eq!(refused(destination::DROP, SwitchCause::Miss), Egress::Drop(SwitchCause::Miss));
    }

    #[test]
    fn what_is_neither_for_the_wire_nor_dropped_comes_in_again() {
        let to = |kind, number| Verdict::default().with_kind(kind).with_number(number);
        let returns = |verdict: Verdict| [false, true].map(|roce| Egress::returns(&verdict, roce));
        assert_eq!([to(destination::UPLINK, WIRE_PORT as u16), to(destination::DROP, 8)].map(returns), [[false; 2]; 2]);
        assert_eq!([to(destination::PORT, 9), to(destination::PORT, 9).with_rewrite(1)].map(returns), [[true; 2]; 2]);
        let for_software = [to(destination::EXCEPTION, 0), to(destination::GROUP, 1), to(destination::UPLINK, WIRE_PORT as u16).with_dec_ttl(true), to(destination::PORT, 9).with_encap(1)];
        assert_eq!(for_software.map(returns), [[true, false]; 4]);
    }

    #[test]
    fn what_the_card_cannot_do_goes_to_software() {
        let port = |number| Verdict::default().with_kind(destination::PORT).with_number(number);
        assert_eq!([8, 11].map(|n| Fate::of(&port(n), true, 4, 64)), [Fate::Function(0), Fate::Function(3)]);
        assert_eq!([0, 1, 7, 12, 0xfff].map(|n| Fate::of(&port(n), false, 4, 64)), [Fate::Drop(SwitchCause::PortDown); 5]);
        let edited = [
            port(8).with_encap(1),
            port(8).with_tag_op(tag_op::POP),
            port(8).with_tag_op(tag_op::PUSH),
            port(8).with_mirror(1),
            port(8).with_sample(1),
            port(8).with_kind(destination::UPLINK),
            port(8).with_kind(destination::GROUP),
        ];
        for verdict in edited {
            assert_eq!(Fate::of(&verdict, false, 4, 64), Fate::Software { unable: true });
            assert_eq!(Fate::of(&verdict, true, 4, 64), Fate::Drop(SwitchCause::ExceptionNoQueue));
        }
        assert_eq!(Fate::of(&port(9).with_count(true).with_class(3), false, 4, 64), Fate::Function(1));
        for changed in [port(9).with_rewrite(1), port(9).with_tag_op(tag_op::SET), port(9).with_dec_ttl(true), port(9).with_write_dscp(true)] {
            assert_eq!(Fate::of(&changed, true, 4, 64), Fate::Function(1));
            assert_eq!(Egress::of(&changed.with_kind(destination::UPLINK).with_number(WIRE_PORT as u16)), Egress::Elsewhere);
        }
        assert_eq!([63, 64].map(|line| Fate::of(&port(9).with_rewrite(line), false, 4, 64)), [Fate::Function(1), Fate::Drop(SwitchCause::NoRuleRoom)]);
        assert_eq!(Fate::of(&port(8).with_kind(destination::EXCEPTION), false, 4, 64), Fate::Software { unable: false });
        assert_eq!(Fate::of(&port(8).with_kind(destination::DROP).with_cause(SwitchCause::Acl as u8), true, 4, 64), Fate::Drop(SwitchCause::Acl));
    }
}
