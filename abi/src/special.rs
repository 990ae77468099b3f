//! Special queue pairs: for management datagrams (QP1, IBTA volume 1, 3.9.1). Each function has one, which others know as number 1.
use crate::csr::SPECIAL;

/// Number on the card of a function's special queue pair: the second of the share that the function has after the card's reset (`log_share`: log2 of the numbers in a share).
///
/// It is fixed, so that the way from one number to the other is wiring: no table has to be written when a queue pair is made, and none has a line of a former life when a function has been reset.
pub const fn special_queue_pair(function: u32, log_share: u32) -> u32 {
    function << log_share | SPECIAL
}

/// The number is that of some function's special queue pair.
pub const fn is_special(qpn: u32, log_share: u32) -> bool {
    qpn & ((1 << log_share) - 1) == SPECIAL
}
