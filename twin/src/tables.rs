//! The card's tables, as the control bus knows them.
use ferric_abi::context::{CqCtx, EqCtx, McastCtx, MrCtx, PathCtx, PauseCtx, RawCtx, ReqCtx, RingCtx, RspCtx, StationCtx, TunnelCounts, TunnelCtx};
use ferric_abi::csr::{space, MULTICAST_ATTACHMENTS, STATIONS, TUNNEL_COUNTS};
use ferric_model::admin::program::Sizes;

/// One line per object.
pub struct Tables {
    pub sq: Vec<RingCtx>,
    /// The queue pairs' own rings, and behind them those of the shared receive queues.
    pub rq: Vec<RingCtx>,
    pub req: Vec<ReqCtx>,
    pub rsp: Vec<RspCtx>,
    pub path: Vec<PathCtx>,
    pub cq: Vec<CqCtx>,
    pub eq: Vec<EqCtx>,
    pub mr: Vec<MrCtx>,
    pub mcast: Vec<McastCtx>,
    pub station: Vec<StationCtx>,
    /// Nobody asks: a program's receive buffer never fills, and it has no port that could be paused.
    pub pause: PauseCtx,
    /// By function, and what became of frames at them.
    pub tunnel: Vec<TunnelCtx>,
    pub tunnel_counts: TunnelCounts,
    /// Raw queue pairs of functions with tunnels.
    pub raw: Vec<RawCtx>,
}

fn word_of(bytes: &[u8], word: u8) -> u32 {
    let at = usize::from(word) * 4;
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

pub(crate) fn put_word(bytes: &mut [u8], word: u8, value: u32) {
    let at = usize::from(word) * 4;
    if let Some(b) = bytes.get_mut(at..at + 4) {
        b.copy_from_slice(&value.to_le_bytes());
    }
}

impl Tables {
    pub(crate) fn new(sizes: &Sizes) -> Self {
        let (qps, cqs, functions) = (1 << sizes.qp, 1 << sizes.cq, 1usize << sizes.functions);
        Self {
            sq: vec![RingCtx::default(); qps],
            rq: vec![RingCtx::default(); 2 * qps],
            req: vec![ReqCtx::default(); qps],
            rsp: vec![RspCtx::default(); qps],
            path: vec![PathCtx::default(); qps],
            cq: vec![CqCtx::default(); cqs],
            eq: vec![EqCtx::default(); 1 << sizes.eq],
            mr: vec![MrCtx::default(); 1 << sizes.mr],
            mcast: vec![McastCtx::default(); MULTICAST_ATTACHMENTS as usize],
            station: vec![StationCtx::default(); functions * STATIONS as usize],
            pause: PauseCtx::default(),
            tunnel: vec![TunnelCtx::default(); functions],
            tunnel_counts: TunnelCounts::default(),
            raw: vec![RawCtx::default(); functions],
        }
    }

    /// The bytes of a line; `None`: there is none, or the space is not one of these.
    pub(crate) fn line(&mut self, of: u8, line: u32) -> Option<&mut [u8]> {
        let n = line as usize;
        Some(match of {
            space::SQ => &mut self.sq.get_mut(n)?.0,
            space::RQ => &mut self.rq.get_mut(n)?.0,
            space::REQ => &mut self.req.get_mut(n)?.0,
            space::RSP => &mut self.rsp.get_mut(n)?.0,
            space::PATH => &mut self.path.get_mut(n)?.0,
            space::CQ => &mut self.cq.get_mut(n)?.0,
            space::EQ => &mut self.eq.get_mut(n)?.0,
            space::MR => &mut self.mr.get_mut(n)?.0,
            space::MCAST => &mut self.mcast.get_mut(n)?.0,
            space::STATION => &mut self.station.get_mut(n)?.0,
            space::PAUSE if n == 0 => &mut self.pause.0,
            space::TUNNEL if line == TUNNEL_COUNTS => &mut self.tunnel_counts.0,
            space::TUNNEL => &mut self.tunnel.get_mut(n)?.0,
            space::RAW => &mut self.raw.get_mut(n)?.0,
            _ => return None,
        })
    }

    /// A word of a line; those behind its end are zero.
    pub(crate) fn word(&mut self, of: u8, line: u32, word: u8) -> Option<u32> {
        self.line(of, line).map(|bytes| word_of(bytes, word))
    }
}

/// A word of any record.
pub(crate) fn word(bytes: &[u8], number: u8) -> u32 {
    word_of(bytes, number)
}
