//! SET_FLOW and SET_FLOW_PORT: whose they are, in which order a command's words go, what is refused, and what a reset leaves.

use super::card::Event;
use super::commands::words;
use super::{functions, Bench, SIZES};
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::*;
use ferric_abi::context::FlowPortCtx;
use ferric_abi::csr::space::FLOW;
use ferric_abi::csr::{FLOW_BUSY, FLOW_CLOSE, FLOW_COMMAND, FLOW_FORGET, FLOW_PORT, FLOW_REFUSED};

const FUNCTIONS: usize = 1 << SIZES.functions;

/// Writes since event `start`, in order: line, word, value.
fn told(b: &Bench, start: usize) -> Vec<(u32, u8, u32)> {
    b.card.written(FLOW, start)
}

pub fn all(b: &mut Bench) {
    let params: Vec<u32> = (0..30).map(|n| 0x0101_0000 * n + 7).collect();
    let port = FlowPortCtx::default().with_valid(true).with_drop_miss(true).with_class(3).with_generation(2);
    let start = b.card.log.len();
    for f in 1..FUNCTIONS {
        b.expect(Denied, f, SetFlow, 0, &params);
        b.expect(Denied, f, SetFlowPort, 0, &words::<1>(&port.0));
    }
    for id in [1, u32::MAX] {
        b.expect(BadId, 0, SetFlow, id, &params);
        b.expect(BadId, 0, SetFlowPort, id, &words::<1>(&port.0));
    }
    assert_eq!(told(b, start), [], "what is refused changes nothing");
    // Busy, ready, done; and the same with a command that reads, and with one that names nothing.
    let answers = [
        (vec![FLOW_BUSY, FLOW_BUSY | FLOW_REFUSED, 0, 0], Ok),
        (vec![FLOW_REFUSED, 0], Ok),
        (vec![0, FLOW_BUSY, FLOW_BUSY, 0], Ok),
        (vec![0, FLOW_REFUSED], BadParameter),
        (vec![0, FLOW_BUSY, FLOW_REFUSED], BadParameter),
    ];
    for (answers, status) in answers {
        let start = b.card.log.len();
        b.card.flow_answers = answers.into();
        b.expect(status, 0, SetFlow, 0, &params);
        assert!(b.card.flow_answers.is_empty());
        let want: Vec<(u32, u8, u32)> = (1..30).chain([0]).map(|n: u8| (FLOW_COMMAND, n, params[usize::from(n)])).collect();
        assert_eq!(told(b, start), want, "the first word is the last");
        assert!(b.card.log[start..].iter().all(|e| !matches!(e, Event::Control { space: FLOW, word: 1..=29, write: None, .. })));
    }
    // The lines of whoever had the function before do not decide about anything.
    let start = b.card.log.len();
    b.card.flow_answers = vec![FLOW_BUSY, FLOW_BUSY, 0].into();
    b.expect(Ok, 0, SetFlowPort, 0, &words::<1>(&port.with_rsvd0(77).0));
    assert!(b.card.flow_answers.is_empty());
    b.expect(Ok, 0, SetFlowPort, 0, &[0]);
    assert_eq!(told(b, start), [(FLOW_PORT, 0, u32::from_le_bytes(port.0)), (FLOW_PORT, 0, 0)], "reserved bits are zero");
    // With the physical function goes what it has written; with another one what it may send.
    let start = b.card.log.len();
    (1..FUNCTIONS).for_each(|f| functions::reset(b, f));
    let closed: Vec<(u32, u8, u32)> = (1..FUNCTIONS as u32).map(|f| (FLOW_COMMAND, FLOW_CLOSE as u8, f)).collect();
    assert_eq!(told(b, start), closed);
    let start = b.card.log.len();
    functions::reset(b, 0);
    assert_eq!(told(b, start), [(FLOW_PORT, 0, 0), (FLOW_COMMAND, FLOW_FORGET as u8, 0)], "frames pass before the tables are emptied");
}
