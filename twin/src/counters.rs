//! The counters: the gateware's own, in its order, kept by function where the gateware keeps them so.

/// Counters that the control bus knows; those without a name stay zero.
pub const COUNTERS: usize = 128;

/// `block.event` of every counter, in counter order. A test of the workspace compares with the gateware's list.
pub const NAMES: &[&str] = &[
    "dma_rd.reads",
    "dma_rd.read_errors",
    "dma_wr.writes",
    "dma_wr.write_errors",
    "doorbell.db_bad",
    "doorbell.db_rung",
    "doorbell.db_wqe",
    "eq.eqe_written",
    "eq.eq_bad",
    "eq.eq_overflow",
    "eq.eq_db_bad",
    "eq.eq_db_overrun",
    "eq.eq_msix",
    "eq.eq_write_errors",
    "egress.tx_frames",
    "egress.tx_aborted",
    "rx.rx_frames",
    "rx.rx_roce",
    "rx.rx_raw",
    "rx.rx_malformed",
    "rx.rx_bad_icrc",
    "rx.rx_no_buffer",
    "rx.rx_mac_error",
    "rx.rx_oversize",
    "rx.rx_stranger",
    "rx.rx_other_station",
    "admin.refused",
    "sq.sq_db_bad",
    "sq.sq_db_overrun",
    "sq.sq_fetches",
    "sq.sq_flushed",
    "sq.sq_fetch_errors",
    "sq.sq_wqe_direct",
    "sq.sq_offered",
    "rq.rq_db_bad",
    "rq.rq_db_overrun",
    "rq.rq_empty",
    "rq.rq_fetched_again",
    "rq.rq_flushed",
    "rq.srq_limits",
    "rq.srq_errors",
    "rq.rq_fetched_ahead",
    "rq.rq_fetches",
    "rq.rq_fetch_errors",
    "cq.cqe_written",
    "cq.cq_bad",
    "cq.cq_overflow",
    "cq.cq_db_bad",
    "cq.cq_db_overrun",
    "cq.cq_events",
    "cq.cq_write_errors",
    "mr.mr_checks",
    "mr.mr_refused",
    "mr.mtt_misses",
    "mr.invalidated",
    "mr.changes_refused",
    "mr.registered",
    "mr.bound",
    "mr.mtt_ahead",
    "place.poisoned",
    "place.place_failed",
    "place.msg_dropped",
    "complete.nak_inv_sent",
    "complete.nak_access_sent",
    "complete.nak_op_sent",
    "complete.poisoned",
    "complete.writes_failed",
    "complete.recv_too_small",
    "req_tx.tx_packets",
    "req_tx.stale_wqe",
    "req_tx.flushed",
    "req_rx.retransmits",
    "req_rx.timeouts",
    "req_rx.rnr_received",
    "req_rx.nak_seq_received",
    "req_rx.nak_inv_received",
    "req_rx.nak_access_received",
    "req_rx.nak_op_received",
    "req_rx.bad_ack",
    "req_rx.local_errors",
    "req_rx.retry_exceeded",
    "req_rx.rnr_exceeded",
    "req_rx.unexpected_response",
    "req_rx.bad_response",
    "resp.rx_requests",
    "resp.dup_requests",
    "resp.out_of_order",
    "resp.nak_seq_sent",
    "resp.nak_inv_sent",
    "resp.nak_access_sent",
    "resp.rnr_sent",
    "resp.drop_no_qp",
    "resp.drop_bad_transport",
    "resp.drop_bad_pkey",
    "resp.raw_no_queue",
    "resp.no_recv",
    "resp.recv_flushed",
    "resp.drop_bad_qkey",
    "resp.drop_bad_length",
    "resp.srq_dead",
    "ackgen.ack_sent",
    "ackgen.ack_coalesced",
    "ackgen.nak_sent",
    "ackgen.rnr_nak_sent",
    "reply.reads",
    "reply.atomics",
    "reply.answered_again",
    "reply.replies_dropped",
    "reply.reply_errors",
    "cc.np_ecn_marked_roce_packets",
    "cc.rp_cnp_ignored",
    "mcast.mcast_delivered",
    "mcast.mcast_no_group",
    "echo.echo_arp",
    "echo.echo_nd",
    "echo.echo_ping",
    "echo.echo_ping6",
    "echo.echo_malformed",
    "echo.echo_limited",
    "echo.echo_passed_on",
    "echo.echo_found",
    "echo.echo_asked",
    "pause.pause_sent",
    "pause.pause_received",
    "pause.pause_malformed",
    "pause.pause_held",
    "pause.pause_ignored",
    "pause.pause_given_up",
];

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Number of the counter called `name`. Where it is a constant, a name that does not exist fails to compile.
pub const fn id(name: &str) -> usize {
    let mut i = 0;
    while i < NAMES.len() {
        if same(NAMES[i].as_bytes(), name.as_bytes()) {
            return i;
        }
        i += 1;
    }
    panic!("no such counter")
}

/// Adds one to the counter called `$name` of `$function` (0: the card's own) of a [`crate::Twin`].
macro_rules! count {
    ($twin:expr, $function:expr, $name:literal) => {{
        const ID: usize = $crate::counters::id($name);
        $twin.counters.add($function, ID);
    }};
}
pub(crate) use count;

/// What has been counted, by function.
pub struct Counters(Vec<[u64; COUNTERS]>);

impl Counters {
    pub(crate) fn new(functions: usize) -> Self {
        Self(vec![[0; COUNTERS]; functions])
    }

    /// One more event of `function`.
    pub(crate) fn add(&mut self, function: u16, id: usize) {
        let of = usize::from(function);
        let of = if of < self.0.len() { of } else { 0 };
        self.0[of][id] += 1;
    }

    /// Counter `id` of the card's own is `n`.
    pub(crate) fn set(&mut self, id: usize, n: u64) {
        self.0[0][id] = n;
    }

    /// What `function` has of counter `id`; `None`: no such function or counter.
    pub fn of(&self, function: usize, id: usize) -> Option<u64> {
        self.0.get(function)?.get(id).copied()
    }

    /// All functions together.
    pub fn total(&self, id: usize) -> u64 {
        self.0.iter().map(|f| f.get(id).copied().unwrap_or(0)).sum()
    }
}
