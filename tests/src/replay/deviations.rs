//! Known differences of captured implementations from IBTA. Each is excused here, by name, and nowhere else.

/// A named difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deviation {
    /// After an RNR NAK, Linux rxe also sends a sequence NAK for the same PSN when the next packets arrive.
    SequenceNakAfterRnr,
    /// Linux rxe answers a SEND that does not fit its receive with remote operational error.
    ReceiveTooSmall,
    /// Linux rxe answers the repeated rest of a READ with the opcodes of the whole.
    MiddleOfRead,
}

/// The table: name, what is different, what is done about it.
pub const TABLE: &[(Deviation, &str, &str)] = &[
    (
        Deviation::SequenceNakAfterRnr,
        "Linux rxe: sequence NAK for the PSN of an RNR NAK just sent",
        "as responder, the packets behind an RNR NAK may be dropped silently; as requester, that NAK is ignored during the RNR wait",
    ),
    (Deviation::ReceiveTooSmall, "Linux rxe: NAK remote operational error (3) for a SEND longer than its receive", "as responder, NAK invalid request (1), as IBTA 9.7.4.1.6 has it, is accepted too"),
    (
        Deviation::MiddleOfRead,
        "Linux rxe: a READ asked for again from its middle on is answered with Middle packets from the start",
        "as responder, a response that begins with First or Only, as that of every request (IBTA 9.7.5.1.1), is accepted too",
    ),
];

impl Deviation {
    /// The table's description.
    pub fn text(self) -> &'static str {
        TABLE.iter().find(|(d, ..)| *d == self).map_or("", |(_, text, _)| text)
    }
}
