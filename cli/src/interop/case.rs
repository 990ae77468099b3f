//! Cases of `ferric interop`, and the lines in which both sides speak of them.
use crate::party::Trouble;
use ferric_abi::codes::WrOpcode;
use ferric_driver::types::{Mac, Mtu, QpType};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv6Addr, TcpStream};

pub(super) fn name(op: WrOpcode) -> &'static str {
    match op {
        WrOpcode::Send => "send",
        WrOpcode::SendImm => "send_imm",
        WrOpcode::Write => "write",
        WrOpcode::WriteImm => "write_imm",
        WrOpcode::Read => "read",
        WrOpcode::FetchAdd => "fetch_add",
        WrOpcode::CompareSwap => "compare_swap",
        WrOpcode::Flush => "flush",
        WrOpcode::AtomicWrite => "atomic_write",
        // None of the cases.
        _ => "other",
    }
}

pub(super) fn is_atomic(op: WrOpcode) -> bool {
    matches!(op, WrOpcode::FetchAdd | WrOpcode::CompareSwap)
}

/// The side that is asked completes a receive.
pub(super) fn receives(op: WrOpcode) -> bool {
    matches!(op, WrOpcode::Send | WrOpcode::SendImm | WrOpcode::WriteImm)
}

/// Operations of annex A19, which older rdma_rxe and rdma-core have not: played where they are asked for.
pub(super) fn is_placement(op: WrOpcode) -> bool {
    matches!(op, WrOpcode::Flush | WrOpcode::AtomicWrite)
}

pub(super) const CASES: [(QpType, WrOpcode); 11] = [
    (QpType::Rc, WrOpcode::Send),
    (QpType::Rc, WrOpcode::Write),
    (QpType::Rc, WrOpcode::WriteImm),
    (QpType::Rc, WrOpcode::Read),
    (QpType::Rc, WrOpcode::FetchAdd),
    (QpType::Rc, WrOpcode::CompareSwap),
    (QpType::Rc, WrOpcode::Flush),
    (QpType::Rc, WrOpcode::AtomicWrite),
    (QpType::Uc, WrOpcode::SendImm),
    (QpType::Uc, WrOpcode::WriteImm),
    (QpType::Ud, WrOpcode::SendImm),
];

/// A case as both sides play it.
pub(super) struct Case {
    pub(super) transport: QpType,
    pub(super) op: WrOpcode,
    pub(super) card_asks: bool,
    pub(super) mtu: Mtu,
    pub(super) ip: IpAddr,
    pub(super) count: u64,
    pub(super) size: usize,
}

pub(super) fn transport(t: QpType) -> &'static str {
    match t {
        QpType::Rc => "rc",
        QpType::Uc => "uc",
        _ => "ud",
    }
}

/// What the peer says of its queue pair.
pub(super) struct Remote {
    pub(super) qpn: u32,
    pub(super) psn: u32,
    pub(super) ip: IpAddr,
    /// The way to it; the peer does not say it.
    pub(super) mac: Mac,
    pub(super) addr: u64,
    pub(super) rkey: u32,
}

pub(super) fn peer_error(e: impl std::fmt::Display) -> Trouble {
    Trouble::Peer(e.to_string())
}

/// The peer's lines.
pub(super) struct Lines {
    pub(super) stream: BufReader<TcpStream>,
    /// Nothing more can be heard.
    pub(super) broken: bool,
}

impl Lines {
    pub(super) fn say(&mut self, line: &str) -> Result<(), Trouble> {
        self.stream.get_mut().write_all(format!("{line}\n").as_bytes()).map_err(peer_error)
    }

    /// The words of the answer behind `word`.
    pub(super) fn hear(&mut self, word: &str) -> Result<Vec<String>, Trouble> {
        let mut line = String::new();
        let heard = self.stream.read_line(&mut line);
        self.broken = !matches!(heard, Ok(n) if n > 0);
        heard.map_err(peer_error)?;
        match line.trim().split_once(' ') {
            Some((w, rest)) if w == word => Ok(rest.split(' ').map(str::to_owned).collect()),
            _ => Err(Trouble::Peer(format!("the peer says `{}`", line.trim()))),
        }
    }
}

/// `find` knows or seeks the peer's MAC address.
pub(super) fn remote(words: &[String], find: impl FnOnce(IpAddr) -> Result<Mac, Trouble>) -> Result<Remote, Trouble> {
    let said = said(words).ok_or_else(|| peer_error("the peer's address cannot be read"))?;
    Ok(Remote { mac: find(said.ip)?, ..said })
}

fn said(words: &[String]) -> Option<Remote> {
    let [qpn, psn, gid, addr, rkey] = words else { return None };
    let number = |s: &str| u32::from_str_radix(s, 16).ok();
    let gid = u128::from_str_radix(gid, 16).ok()?;
    Some(Remote { qpn: number(qpn)?, psn: number(psn)?, ip: Ipv6Addr::from(gid).to_canonical(), mac: Mac::default(), addr: u64::from_str_radix(addr, 16).ok()?, rkey: number(rkey)? })
}
