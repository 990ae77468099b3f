//! The card's counters: which input of the statistics block is which event.

/// Counter blocks in input order: name of the block and of its events.
pub const BLOCKS: &[(&str, &[&str])] = &[
    ("dma_rd", crate::host::dma_rd::STATS),
    ("dma_wr", crate::host::dma_wr::STATS),
    ("doorbell", crate::host::doorbell::STATS),
    ("sq", crate::host::sq::STATS),
    ("rq", crate::host::rq::STATS),
    ("cq", crate::host::cq::STATS),
    ("eq", crate::host::eq::STATS),
    ("mr", crate::rdma::mr::STATS),
    ("req_tx", crate::roce::req_tx::STATS),
    ("req_rx", crate::roce::req_rx::STATS),
    ("resp", crate::roce::resp::STATS),
    ("place", crate::rdma::place::STATS),
    ("complete", crate::rdma::complete::STATS),
    ("ackgen", crate::roce::ackgen::STATS),
    ("egress", crate::net::tx::STATS),
    ("rx", crate::net::rx::STATS),
    ("reply", crate::roce::reply::STATS),
    ("cc", crate::cc::hook::STATS),
    ("mcast", crate::roce::mcast::STATS),
    ("rx", crate::net::rx::STRANGERS),
    ("admin", crate::host::admin::STATS),
];

/// Inputs of the statistics block.
pub const INPUTS: usize = 128;

/// `block.event` of every counter, in counter order.
pub fn names() -> Vec<String> {
    BLOCKS.iter().flat_map(|(b, events)| events.iter().map(move |e| format!("{b}.{e}"))).collect()
}

/// Number of the counter called `name` (`block.event`).
pub fn index(name: &str) -> Option<usize> {
    names().iter().position(|n| n == name)
}

/// First counter of block number `n`.
pub fn offset(n: usize) -> usize {
    BLOCKS[..n].iter().map(|(_, e)| e.len()).sum()
}
