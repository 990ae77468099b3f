//! Golden model of one end of an unreliable connection, from IBTA volume 1, 9.8.2: the sender numbers packets and forgets them; the
//! receiver takes a message only if its packets come one after the other, tells nobody otherwise, and starts anew with the next First or Only.
use super::memory::{Memory, Want};
use super::{Defect, Port, Protocol, QPN};
use crate::replay::endpoint::{Done, Post, Setup, Slice};
use crate::replay::error::{Error, Result};
use crate::replay::frame::{psn_add, Frame, Kind, Op, Syndrome};
use crate::replay::uc::CLASS;
use ferric_abi::wire::{ImmDt, Reth};
use ferric_driver::CqeStatus;
use std::collections::VecDeque;

/// Deliberate faults, to show that a replay notices them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UcDefect {
    /// A message goes on behind a lost packet.
    GapIgnored,
    /// Behind a lost packet only the lost one will do, as on a reliable connection.
    GapWaitedFor,
    /// A message lost in part keeps its receive.
    ReceiveLost,
    /// Requests are acknowledged.
    Acknowledges,
    /// Received ICRCs are not looked at.
    IcrcUnchecked,
    /// Middle packets of a WRITE go where the first one went.
    WriteStands,
    /// All PSNs are the first one.
    PsnNotAdvanced,
    /// One pad byte is missing.
    PadWrong,
    /// The ICRC of sent frames starts from another value.
    IcrcSeedWrong,
    /// Immediate data in the wrong byte order.
    ImmediateSwapped,
    /// A WRITE with immediate completes no receive.
    ImmediateUnheard,
    /// The length in a RETH is that of the packet.
    LengthOfPacket,
}

impl UcDefect {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::GapIgnored,
        Self::GapWaitedFor,
        Self::ReceiveLost,
        Self::Acknowledges,
        Self::IcrcUnchecked,
        Self::WriteStands,
        Self::PsnNotAdvanced,
        Self::PadWrong,
        Self::IcrcSeedWrong,
        Self::ImmediateSwapped,
        Self::ImmediateUnheard,
        Self::LengthOfPacket,
    ];
}

/// A message whose last packet has not come.
#[derive(Clone, Copy)]
enum InProgress {
    None,
    Send { got: usize },
    Write { va: u64, key: u32, left: usize, total: usize },
}

/// The model.
pub struct GoldenUc {
    port: Port,
    defect: Option<UcDefect>,
    next: u32,
    expected: u32,
    message: InProgress,
    receives: VecDeque<(u64, Option<Slice>)>,
}

impl GoldenUc {
    /// A queue pair that is ready to send.
    pub fn new(setup: &Setup, defect: Option<UcDefect>) -> Self {
        let shared = match defect {
            Some(UcDefect::PadWrong) => Some(Defect::PadWrong),
            Some(UcDefect::IcrcSeedWrong) => Some(Defect::IcrcSeedWrong),
            _ => None,
        };
        let port = Port { setup: setup.clone(), defect: shared, memory: Memory::new(None), out: Vec::new(), done: VecDeque::new(), now: 0, error: false };
        Self { port, defect, next: setup.sq_psn, expected: setup.rq_psn, message: InProgress::None, receives: VecDeque::new() }
    }

    fn has(&self, defect: UcDefect) -> bool {
        self.defect == Some(defect)
    }

    fn imm(&self, imm: u32) -> u32 {
        if self.has(UcDefect::ImmediateSwapped) {
            imm.swap_bytes()
        } else {
            imm
        }
    }

    /// Drops what is under way.
    fn lose(&mut self) {
        if matches!(self.message, InProgress::Send { .. }) && self.has(UcDefect::ReceiveLost) {
            self.receives.pop_front();
        }
        self.message = InProgress::None;
    }

    /// Takes one packet; `None`: the message is lost.
    fn take(&mut self, f: &Frame) -> Option<()> {
        let (op, len, mtu) = (f.op, f.payload.len(), self.port.setup.mtu.bytes());
        // Opcode sequence: what goes on is what began.
        let same = matches!((op.kind, self.message), (Kind::Send, InProgress::Send { .. }) | (Kind::Write, InProgress::Write { .. }));
        if !op.first && !same {
            return None;
        }
        let fits = if op.last { len <= mtu && (op.first || len > 0) } else { len == mtu };
        if !fits || f.pad.len() != (len.wrapping_neg() & 3) {
            return None;
        }
        let imm = f.imm.map(|i| self.imm(i.imm()));
        let (total, completes) = match (op.kind, self.message) {
            (Kind::Send, message) => {
                let got = if let InProgress::Send { got } = message { got } else { 0 };
                let place = self.receives.front()?.1;
                if got + len > place.map_or(0, |p| p.len) {
                    return None;
                }
                if let Some(p) = place {
                    self.port.memory.bytes_mut(p.region.index)[p.offset + got..p.offset + got + len].copy_from_slice(&f.payload);
                }
                self.message = InProgress::Send { got: got + len };
                (got + len, true)
            }
            (Kind::Write, message) => {
                let (va, key, left, total) = match (f.reth, message) {
                    (Some(r), _) => (r.va(), r.rkey(), r.length() as usize, r.length() as usize),
                    (None, InProgress::Write { va, key, left, total }) => (va, key, left, total),
                    _ => return None,
                };
                let right = self.port.setup.access.remote_write && if op.last { len == left } else { len < left };
                if !right || op.imm && self.receives.is_empty() {
                    return None;
                }
                if len > 0 {
                    let (region, offset) = self.port.memory.remote(va, key, left, Want::Write)?;
                    self.port.memory.bytes_mut(region)[offset..offset + len].copy_from_slice(&f.payload);
                }
                let step = if self.has(UcDefect::WriteStands) { 0 } else { len };
                self.message = InProgress::Write { va: va + step as u64, key, left: left - len, total };
                (total, op.imm && !self.has(UcDefect::ImmediateUnheard))
            }
            _ => return None,
        };
        if op.last {
            self.message = InProgress::None;
            if completes {
                let (id, _) = self.receives.pop_front()?;
                self.port.done.push_back(Done { len: total as u32, imm, solicited: f.bth.solicited(), ..Done::new(id, true, CqeStatus::Success) });
            }
        }
        Some(())
    }
}

impl Protocol for GoldenUc {
    fn port(&self) -> &Port {
        &self.port
    }
    fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }
    fn post_send(&mut self, post: &Post) -> Result<()> {
        if !matches!(post.kind, Kind::Send | Kind::Write) {
            return Err(Error::Endpoint(format!("{} on an unreliable connection", post.kind.name())));
        }
        let mtu = self.port.setup.mtu.bytes();
        let data = post.local.map_or(Vec::new(), |l| self.port.memory.bytes(l.region.index)[l.offset..l.offset + l.len].to_vec());
        let packets = data.len().div_ceil(mtu).max(1);
        for i in 0..packets {
            let last = i + 1 == packets;
            let op = Op { imm: last && post.imm.is_some(), ..Op::plain(post.kind, i == 0, last) };
            let mut f = self.port.frame(op, self.next);
            f.bth.set_opcode(CLASS << 5 | op.code().unwrap_or(0)).set_solicited(last && post.solicited);
            f.payload = data[i * mtu..data.len().min((i + 1) * mtu)].to_vec();
            if op.first && op.kind == Kind::Write {
                let len = if self.has(UcDefect::LengthOfPacket) { f.payload.len() } else { data.len() };
                f.reth = Some(Reth::default().with_va(post.remote.0).with_rkey(post.remote.1).with_length(len as u32));
            }
            f.imm = post.imm.filter(|_| op.imm).map(|i| ImmDt::default().with_imm(self.imm(i)));
            self.port.send(f);
            if !self.has(UcDefect::PsnNotAdvanced) {
                self.next = psn_add(self.next, 1);
            }
        }
        self.port.done.push_back(Done::new(post.id, false, CqeStatus::Success));
        Ok(())
    }
    fn post_recv(&mut self, id: u64, place: Option<Slice>) -> Result<()> {
        self.receives.push_back((id, place));
        Ok(())
    }
    fn receive(&mut self, bytes: &[u8]) {
        let Ok(Some(f)) = Frame::decode(bytes) else { return };
        let whole = f.icrc_error == 0 || self.has(UcDefect::IcrcUnchecked);
        if !whole || f.bth.dest_qpn() != QPN || f.bth.opcode() >> 5 != CLASS || f.bth.tver() != 0 || f.bth.pkey() & 0x7fff != 0x7fff {
            return;
        }
        let gap = f.psn() != self.expected;
        if gap && self.has(UcDefect::GapWaitedFor) {
            return;
        }
        if f.op.first {
            self.lose();
        }
        let begun = !matches!(self.message, InProgress::None);
        let follows = f.op.first || begun && (!gap || self.has(UcDefect::GapIgnored));
        self.expected = psn_add(f.psn(), 1);
        if !follows || self.take(&f).is_none() {
            self.lose();
        }
        if self.has(UcDefect::Acknowledges) {
            self.port.acknowledge(f.psn(), Syndrome::Ack, 0);
        }
    }
}
