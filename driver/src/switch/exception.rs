//! Why software has got a frame.

use crate::cq::Completion;
use ferric_abi::switch::Exception;

/// What the flow tables say about the frame of this completion at function 0's raw queue pair: nothing if they have not sent it there.
pub fn exception(completion: &Completion) -> Option<Exception> {
    let [low, middle, high, _] = completion.src_qp.to_le_bytes();
    Some(Exception([low, middle, high])).filter(|exception| exception.port() != 0)
}
