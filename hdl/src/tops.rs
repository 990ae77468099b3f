//! Every block as a top of its own, with the data width and the table sizes of either card: what `./scripts/synth` maps and
//! the lint gate reads.

use crate::cc::hook::CcHook;
use crate::context::store::CtxStore;
use crate::core::{capabilities, Card512, Card64};
use crate::emit::emit;
use crate::host::{admin::{program::Sizes, Admin}, cq::CompletionWriter, csr::Csr, ctl::switch::CtlSwitch, dma_rd::DmaRead, dma_wr::DmaWrite, doorbell::Doorbell, eq::EventWriter, row_share::RowShare, rq::RecvQueue, sq::{again::WqeAgainUnit, SendQueue}};
use crate::msg::*;
use crate::net::{cells::CellBuffer, dispatch::Dispatch, icrc::IcrcPipe, rx::RxFront, tx::Egress};
use crate::prim::leaves::leaves;
use crate::rdma::{complete::Complete, mover::Mover, mr::MemoryKeys, place::Place};
use crate::records::{PathCtx, ReqCtx, RspCtx};
use crate::roce::{ackgen::AckGen, gather::Gather, header::HeaderBuilder, mcast::Multicast, peer::PeerCheck, reply::Reply, req_rx::RequesterRx, req_tx::RequesterTx, resp::Responder, timer::Timers, tracker::Tracker};
use crate::stats::Stats;
use crate::stream::{AxisArb, AxisFifo, AxisSlice, MsgArb, MsgFifo};
use crate::target::{self, Target};
use ferric_abi::csr::space;

/// A block that can be emitted on its own.
pub struct Top {
    /// Name of the top module and of the file: the block, `_w` and the width where the two cards differ.
    pub name: &'static str,
    /// Data path bits of the card it belongs to; `None` where it is the same in both.
    pub width: Option<usize>,
    build: fn(&str) -> Result<String, crate::emit::EmitError>,
    leaves: fn(&str) -> Vec<String>,
}

impl Top {
    /// The block's Verilog. Errors: what the emitter found.
    pub fn emit(&self) -> Result<String, String> {
        self.with_stack(self.build)?.map_err(|e| e.to_string())
    }

    /// Names of the modules in it that are leaves of [`crate::prim`].
    pub fn leaves(&self) -> Result<Vec<String>, String> {
        self.with_stack(self.leaves)
    }

    /// A card is larger than an ordinary thread's stack.
    fn with_stack<R: Send + 'static>(&self, f: fn(&str) -> R) -> Result<R, String> {
        let name = self.name;
        let thread = std::thread::Builder::new().stack_size(512 << 20).spawn(move || f(name)).map_err(|e| e.to_string())?;
        thread.join().map_err(|_| format!("{name}: the generator panicked"))
    }
}

macro_rules! tops {
    ($($name:literal $width:expr, $block:expr;)*) => { &[$(Top { name: $name, width: $width, build: |name| emit(name, $block), leaves: |name| leaves(name, &$block) }),*] };
}

/// All tops: blocks in the order of the life of a packet, then the memory target (under the name that boards use) and the whole core.
pub const TOPS: &[Top] = tops! {
    "csr_w64" Some(64), Csr::new(capabilities(8, [8, 8, 10, 5]));
    "csr_w512" Some(512), Csr::new(capabilities(64, [10, 10, 12, 5]));
    "doorbell_w64" Some(64), Doorbell::<64, 8>::default();
    "doorbell_w512" Some(512), Doorbell::<512, 64>::default();
    "admin_w64" Some(64), Admin::default();
    "admin_w512" Some(512), Admin::new(Sizes { qp: 10, cq: 10, mr: 12, pd: 8, eq: 5 });
    "switch" None, CtlSwitch::<10>::new([space::SQ, space::RQ, space::REQ, space::RSP, space::PATH, space::CQ, space::EQ, space::MR, space::STATS, space::MCAST]);
    "stats" None, Stats::<128>::default();
    "sq_w64" Some(64), SendQueue::<8>::default();
    "sq_w512" Some(512), SendQueue::<10>::default();
    "again_w64" Some(64), WqeAgainUnit::<8>::default();
    "again_w512" Some(512), WqeAgainUnit::<10>::default();
    "row_share" None, RowShare::default();
    "rq_w64" Some(64), RecvQueue::<9>::default();
    "rq_w512" Some(512), RecvQueue::<11>::default();
    "cq_w64" Some(64), CompletionWriter::<8>::default();
    "cq_w512" Some(512), CompletionWriter::<10>::default();
    "eq" None, EventWriter::<5>::default();
    "dma_rd_w64" Some(64), DmaRead::<64, 8, 3>::default();
    "dma_rd_w512" Some(512), DmaRead::<512, 64, 6>::default();
    "dma_wr_w64" Some(64), DmaWrite::<64, 8, 3>::default();
    "dma_wr_w512" Some(512), DmaWrite::<512, 64, 6>::default();
    "req_ctx_w64" Some(64), CtxStore::<ReqCtx, 8, 3>::default();
    "req_ctx_w512" Some(512), CtxStore::<ReqCtx, 10, 3>::default();
    "rsp_ctx_w64" Some(64), CtxStore::<RspCtx, 8, 2>::default();
    "rsp_ctx_w512" Some(512), CtxStore::<RspCtx, 10, 2>::default();
    "path_ctx_w64" Some(64), CtxStore::<PathCtx, 8, 2>::default();
    "path_ctx_w512" Some(512), CtxStore::<PathCtx, 10, 2>::default();
    "keys_w64" Some(64), MemoryKeys::<10>::default();
    "keys_w512" Some(512), MemoryKeys::<12>::default();
    "req_tx" None, RequesterTx::default();
    "gather" None, Gather::default();
    "header_w64" Some(64), HeaderBuilder::<64, 8>::default();
    "header_w512" Some(512), HeaderBuilder::<512, 64>::default();
    "ackgen_w64" Some(64), AckGen::<8>::default();
    "ackgen_w512" Some(512), AckGen::<10>::default();
    "reply_w64" Some(64), Reply::<8, 13>::default();
    "reply_w512" Some(512), Reply::<10, 15>::default();
    "egress_w64" Some(64), Egress::<64, 8, 3>::default();
    "egress_w512" Some(512), Egress::<512, 64, 6>::default();
    "icrc_w64" Some(64), IcrcPipe::<64, 8, 3>::default();
    "icrc_w512" Some(512), IcrcPipe::<512, 64, 6>::default();
    "tracker_w64" Some(64), Tracker::<8, 15>::default();
    "tracker_w512" Some(512), Tracker::<10, 17>::default();
    "timers_w64" Some(64), Timers::<8>::default();
    "timers_w512" Some(512), Timers::<10>::default();
    "req_rx" None, RequesterRx::default();
    "front_w64" Some(64), RxFront::<64, 8, 3>::default();
    "front_w512" Some(512), RxFront::<512, 64, 6>::default();
    "cells_w64" Some(64), CellBuffer::<64, 8>::default();
    "cells_w512" Some(512), CellBuffer::<512, 64>::default();
    "dispatch" None, Dispatch::default();
    "peer_w64" Some(64), PeerCheck::<8>::default();
    "peer_w512" Some(512), PeerCheck::<10>::default();
    "mcast_w64" Some(64), Multicast::<6, 8>::default();
    "mcast_w512" Some(512), Multicast::<6, 10>::default();
    "cc_hook" None, CcHook::default();
    "resp_w64" Some(64), Responder::<8>::default();
    "resp_w512" Some(512), Responder::<10>::default();
    "place_w64" Some(64), Place::<8>::default();
    "place_w512" Some(512), Place::<10>::default();
    "mover_w64" Some(64), Mover::<64, 8, 3>::default();
    "mover_w512" Some(512), Mover::<512, 64, 6>::default();
    "complete_w64" Some(64), Complete::<8>::default();
    "complete_w512" Some(512), Complete::<10>::default();
    "errors_w64" Some(64), MsgFifo::<QpError, 8>::default();
    "errors_w512" Some(512), MsgFifo::<QpError, 10>::default();
    "error_arb" None, MsgArb::<QpError, 2>::default();
    "error_arb3" None, MsgArb::<QpError, 3>::default();
    "axis_slice_w64" Some(64), AxisSlice::<64, 8>::default();
    "axis_slice_w512" Some(512), AxisSlice::<512, 64>::default();
    "axis_fifo_w64" Some(64), AxisFifo::<64, 8, 9>::default();
    "axis_fifo_w512" Some(512), AxisFifo::<512, 64, 9>::default();
    "axis_arb_w64" Some(64), AxisArb::<64, 8, 4>::default();
    "axis_arb_w512" Some(512), AxisArb::<512, 64, 4>::default();
    "ferric_target_w64" Some(64), Target::new(target::MAC, target::IP);
    "core_w64" Some(64), Card64::default();
    "core_w512" Some(512), Card512::default();
};

/// The top called `name`.
pub fn find(name: &str) -> Option<&'static Top> {
    TOPS.iter().find(|t| t.name == name)
}

/// The top that stands for the core's block `instance` in a card of `width` bits.
pub fn in_core(instance: &str, width: usize) -> Option<&'static Top> {
    let block = match instance {
        "error_to_req" | "error_to_resp" | "error_from_complete" | "error_from_reply" => "errors",
        "req_errors" => "error_arb",
        "resp_errors" => "error_arb3",
        other => other,
    };
    find(block).or_else(|| find(&format!("{block}_w{width}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the core, which has a lint test of its own.
    #[test]
    fn every_block_top_emits_and_passes_the_lint_gate() {
        let mut faults = Vec::new();
        for top in TOPS.iter().filter(|t| !t.name.starts_with("core_")) {
            match top.emit() {
                Err(e) => faults.push(e),
                Ok(verilog) => faults.extend(crate::lint::check(top.name, &verilog).err().into_iter().flatten().map(|f| format!("{}: {f}", top.name))),
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
    }

    /// Memories and sums are leaves; registers and kernels are none.
    #[test]
    fn leaves_are_modules_of_the_text() {
        let top = find("tracker_w64").unwrap_or_else(|| panic!("no tracker"));
        let (verilog, leaves) = (top.emit().unwrap_or_default(), top.leaves().unwrap_or_default());
        assert!(!leaves.is_empty());
        for leaf in &leaves {
            let at = verilog.find(&format!("module {leaf}(")).unwrap_or_else(|| panic!("no module {leaf}"));
            let body = verilog[at..].split("endmodule").next().unwrap_or_default();
            assert!(!body.contains("q <= d;") && !body.contains(&format!("{leaf}$")), "{leaf}: {body}");
        }
        assert!(verilog.matches("endmodule").count() > leaves.len());
    }

    #[test]
    fn names_carry_the_width_and_occur_once() {
        for (n, top) in TOPS.iter().enumerate() {
            let suffix = top.name.rsplit_once("_w").and_then(|(_, w)| w.parse::<usize>().ok());
            assert_eq!(suffix, top.width, "{}", top.name);
            assert!(TOPS[..n].iter().all(|other| other.name != top.name), "{} stands twice", top.name);
        }
        assert!(find("nobody").is_none() && find("csr_w64").is_some());
    }
}
