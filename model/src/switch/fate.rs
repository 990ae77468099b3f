//! What the receive side of the card does by a verdict: the part of [`super::Switch`]'s actions that there is gateware for. The gateware's `switch/flows` is compared with this.
use ferric_abi::codes::SwitchCause;
use ferric_abi::csr::FUNCTION_PORTS;
use ferric_abi::switch::{destination, tag_op, Verdict};

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// To this function, and to no other.
    Function(u16),
    /// To software, which is function 0, whole and as it came. `unable`: the action orders what the card cannot do.
    Software {
        /// See above.
        unable: bool,
    },
    /// Nowhere.
    Drop(SwitchCause),
}

/// The action changes the frame or copies it. Nobody does that on the receive side. Counting and the class change nothing that anybody gets.
pub fn changes(verdict: &Verdict) -> bool {
    let edits = verdict.encap() != 0 || verdict.rewrite() != 0 || verdict.tag_op() != tag_op::NONE || verdict.dec_ttl() || verdict.write_dscp();
    edits || verdict.mirror() != 0 || verdict.sample() != 0
}

impl Fate {
    /// That of a frame with this verdict on a card of so many functions. `roce`: UDP to RoCE's port, which goes to a queue pair and never to the raw queue, so that software cannot have it.
    pub fn of(verdict: &Verdict, roce: bool, functions: u16) -> Self {
        let unable = match verdict.kind() {
            destination::EXCEPTION => false,
            destination::UPLINK | destination::GROUP => true,
            destination::PORT if changes(verdict) => true,
            destination::PORT => {
                let function = u32::from(verdict.number()).checked_sub(FUNCTION_PORTS).filter(|f| *f < functions.into());
                return function.map_or(Fate::Drop(SwitchCause::PortDown), |f| Fate::Function(f as u16));
            }
            _ => return Fate::Drop(SwitchCause::from_u8(verdict.cause()).unwrap_or(SwitchCause::None)),
        };
        match roce {
            true => Fate::Drop(SwitchCause::ExceptionNoQueue),
            false => Fate::Software { unable },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_card_cannot_do_goes_to_software() {
        let port = |number| Verdict::default().with_kind(destination::PORT).with_number(number);
        assert_eq!([8, 11].map(|n| Fate::of(&port(n), true, 4)), [Fate::Function(0), Fate::Function(3)]);
        assert_eq!([0, 1, 7, 12, 0xfff].map(|n| Fate::of(&port(n), false, 4)), [Fate::Drop(SwitchCause::PortDown); 5]);
        let edited = [
            port(8).with_encap(1),
            port(8).with_rewrite(1),
            port(8).with_tag_op(tag_op::POP),
            port(8).with_dec_ttl(true),
            port(8).with_write_dscp(true),
            port(8).with_mirror(1),
            port(8).with_sample(1),
            port(8).with_kind(destination::UPLINK),
            port(8).with_kind(destination::GROUP),
        ];
        for verdict in edited {
            assert_eq!(Fate::of(&verdict, false, 4), Fate::Software { unable: true });
            assert_eq!(Fate::of(&verdict, true, 4), Fate::Drop(SwitchCause::ExceptionNoQueue));
        }
        assert_eq!(Fate::of(&port(9).with_count(true).with_class(3), false, 4), Fate::Function(1));
        assert_eq!(Fate::of(&port(8).with_kind(destination::EXCEPTION), false, 4), Fate::Software { unable: false });
        assert_eq!(Fate::of(&port(8).with_kind(destination::DROP).with_cause(SwitchCause::Acl as u8), true, 4), Fate::Drop(SwitchCause::Acl));
    }
}
