//! The same programs on cards of different make: twins, gateware, and one of each. What they come to is judged as always, and has to be the same where it is certain.
use super::golden::{judge, Observed};
use super::program::{program, Connection, Program};
use super::script::Script;
use super::{runner, Bench, Coverage, Plan};
use ferric_driver::types::QpType;
use ferric_driver::ud::GRH_BYTES;
use ferric_driver::Completion;
use ferric_hdl::card::counters;
use ferric_sim::Body;
use proptest::strategy::{Strategy, ValueTree};

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub struct Differ {
    /// Seed of all programs.
    pub seed: u64,
    /// Programs.
    pub programs: u32,
    /// Data path width in bits.
    pub width: usize,
}

/// The pairs of cards that each program runs on; what the first comes to is what the others have to come to.
pub const PAIRS: [[Body; 2]; 4] = [[Body::Twin; 2], [Body::Gateware; 2], [Body::Twin, Body::Gateware], [Body::Gateware, Body::Twin]];

/// Counters that are the same wherever nothing is sent again. The others count what a twin does not have, or does in other portions: acknowledges, accesses, fetches.
pub const EQUAL: &[&str] = &[
    "doorbell.db_bad",
    "eq.eq_bad",
    "eq.eq_overflow",
    "egress.tx_aborted",
    "rx.rx_raw",
    "rx.rx_malformed",
    "rx.rx_bad_icrc",
    "rx.rx_oversize",
    "rx.rx_stranger",
    "admin.refused",
    "sq.sq_db_bad",
    "sq.sq_db_overrun",
    "sq.sq_fetch_errors",
    "rq.rq_db_bad",
    "rq.rq_db_overrun",
    "rq.rq_fetch_errors",
    "cq.cqe_written",
    "cq.cq_bad",
    "cq.cq_overflow",
    "mr.mr_refused",
    "mr.invalidated",
    "mr.changes_refused",
    "mr.registered",
    "mr.bound",
    "place.place_failed",
    "place.msg_dropped",
    "complete.nak_inv_sent",
    "complete.nak_access_sent",
    "complete.nak_op_sent",
    "complete.writes_failed",
    "complete.recv_too_small",
    "req_tx.tx_packets",
    "req_rx.local_errors",
    "req_rx.retry_exceeded",
    "req_rx.rnr_exceeded",
    "req_rx.bad_response",
    "resp.rx_requests",
    "resp.out_of_order",
    "resp.nak_inv_sent",
    "resp.nak_access_sent",
    "resp.drop_bad_transport",
    "resp.drop_bad_pkey",
    "resp.drop_bad_qkey",
    "resp.drop_bad_length",
    "reply.reads",
    "reply.atomics",
    "reply.answered_again",
    "reply.replies_dropped",
    "reply.reply_errors",
];

/// Where one of these has counted, something has been sent again, and how much was depends on when.
const AGAIN: &[&str] = &["req_rx.retransmits", "req_rx.timeouts", "req_rx.rnr_received", "req_rx.nak_seq_received", "resp.dup_requests"];

/// What a completion says, but for its time, its queue pair's number, and the syndrome of a failure: where answers to READs and atomics are still being written the
/// gateware may give none (seed 2, program 11).
fn says(c: &Completion) -> String {
    let Completion { wr_id, status, opcode, is_recv, byte_len, imm, invalidated, solicited, grh, pkey_index, .. } = c;
    match *status {
        ferric_driver::CqeStatus::Success => format!("{wr_id} {opcode:?} {is_recv} {byte_len} {imm:?} {} {solicited} {grh} {pkey_index}", invalidated.is_some()),
        failed => format!("{wr_id} {failed:?} {is_recv}"),
    }
}

/// Everything about a connection is certain: nothing is lost, nothing is refused while others are on their way.
fn is_calm(program: &Program, connection: &Connection) -> bool {
    !program.faults && connection.ops.iter().all(|op| op.crime.is_none() && !op.late)
}

/// How its completions end is certain: what is refused is the peer's to refuse or never leaves, and nothing behind it matters.
fn ends_for_sure(program: &Program, script: &Script) -> bool {
    !program.faults && !script.acts.iter().any(|act| act.op.verb.asks() && act.op.crime.is_some_and(|c| c.is_local()))
}

/// Memory of the receiver, without what stands in front of datagrams.
fn without_headers(script: &Script, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if script.transport == QpType::Ud {
        script.acts.iter().filter(|act| act.receive.is_some()).for_each(|act| bytes[act.remote..act.remote + GRH_BYTES].fill(0));
    }
    bytes
}

/// The first difference.
fn difference(program: &Program, n: usize, script: &Script, a: &Observed, b: &Observed) -> Option<String> {
    if ends_for_sure(program, script) {
        for (what, a, b) in [("requests", &a.sent, &b.sent), ("receives", &a.received, &b.received)] {
            let [a, b] = [a, b].map(|all| all.iter().map(says).collect::<Vec<_>>());
            if a != b {
                return Some(format!("connection {n}: {what} end with\n{a:#?}\nand with\n{b:#?}"));
            }
        }
    }
    let calm = is_calm(program, &program.connections[n]) && script.acts.iter().all(|act| act.op.crime.is_none());
    if calm && (a.after[0] != b.after[0] || without_headers(script, &a.after[1]) != without_headers(script, &b.after[1])) {
        return Some(format!("connection {n}: memory differs"));
    }
    None
}

/// Counters of both cards.
fn counted(bench: &Bench) -> Result<[Vec<u64>; 2], String> {
    let Some(cards) = &bench.cards else { return Ok(Default::default()) };
    let [a, b] = [0, 1].map(|host: usize| cards.pair.hosts[host].ctx.counters(0, counters::names().len() as u32).map_err(|e| e.to_string()));
    Ok([a?, b?])
}

/// What the cards have counted in one program, by name, or `None` if something was sent again.
fn counts(before: &[Vec<u64>; 2], after: &[Vec<u64>; 2]) -> Option<Vec<[u64; 2]>> {
    let of = |name: &str| {
        let at = counters::index(name)?;
        // Cards that are new have counted nothing before.
        Some([0, 1].map(|host: usize| after[host][at] - before[host].get(at).copied().filter(|n| *n <= after[host][at]).unwrap_or(0)))
    };
    let again = AGAIN.iter().any(|name| of(name) != Some([0, 0]));
    (!again).then(|| EQUAL.iter().map(|name| of(name).expect("a counter")).collect())
}

/// Runs `plan.programs` programs on all pairs; the error is the first difference, with its program. What happened, and how many programs were compared to the counters.
pub fn run(plan: Differ) -> Result<Coverage, String> {
    let mut runner = runner(plan.seed, plan.programs);
    let mut benches = PAIRS.map(|bodies| Bench { plan: Plan { seed: plan.seed, cases: plan.programs, width: plan.width, bodies }, cards: None, lives: 0, coverage: Coverage::new() });
    let mut coverage = Coverage::new();
    for number in 0..plan.programs {
        let mut program = program().new_tree(&mut runner).map_err(|e| e.to_string())?.current();
        program.tell_the_end();
        let fail = |bodies: [Body; 2], e: String| format!("seed {}, program {number} on {bodies:?}: {e}\n{program:#?}", plan.seed);
        let scripts: Vec<_> = program.connections.iter().map(Script::new).collect();
        // The same cards run some programs, one after another; those of another pair are not asked before the first one has said what is right.
        let mut first: Option<(Vec<Observed>, Option<Vec<[u64; 2]>>)> = None;
        let calm = program.connections.iter().all(|c| is_calm(&program, c)) && scripts.iter().all(|s| s.acts.iter().all(|act| act.op.crime.is_none()));
        for bench in &mut benches {
            let bodies = bench.plan.bodies;
            let fresh = bench.cards.as_ref().is_none_or(|c| c.used >= super::LIFE);
            let before = if fresh { Default::default() } else { counted(bench).map_err(|e| fail(bodies, e))? };
            let seen = bench.observe(&program, &scripts).map_err(|e| fail(bodies, e))?;
            let after = counted(bench).map_err(|e| fail(bodies, e))?;
            // With all that the cards have counted: most causes of a loss have a counter.
            let cards = || bench.cards.as_ref().map_or_else(String::new, |cards| cards.counted());
            for (n, (script, seen)) in scripts.iter().zip(&seen).enumerate() {
                judge(script, program.faults, seen).map_err(|e| fail(bodies, format!("connection {n}: {e}\n{}", cards())))?;
            }
            let counts = calm.then(|| counts(&before, &after)).flatten();
            let Some((expected, numbers)) = &first else {
                first = Some((seen, counts));
                continue;
            };
            if let Some(e) = scripts.iter().enumerate().find_map(|(n, script)| difference(&program, n, script, &expected[n], &seen[n])) {
                return Err(fail(bodies, format!("{e}\n{}", cards())));
            }
            if let (Some(a), Some(b)) = (numbers, &counts) {
                let differ: Vec<_> = EQUAL.iter().zip(a.iter().zip(b)).filter(|(_, (a, b))| a != b).collect();
                if !differ.is_empty() {
                    return Err(fail(bodies, format!("counters of the first pair and of this one: {differ:?}")));
                }
                *coverage.entry("counters compared".into()).or_default() += 1;
            }
        }
        *coverage.entry("programs".into()).or_default() += 1;
        for (name, n) in [("good wire", !program.faults), ("calm", calm)] {
            *coverage.entry(name.into()).or_default() += u64::from(n);
        }
    }
    Ok(coverage)
}
