//! Tunnels that functions' frames go through (docs/admin.md, SET_TUNNEL).
use crate::admin::Command;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::types::{Mac, Mtu};
use ferric_abi::codes::AdminOpcode;
use ferric_abi::context::{TunnelCounts, TunnelCtx};
use ferric_abi::{csr, wire};
use std::net::IpAddr;

/// Words of a line that one QUERY_OBJECT brings.
const QUERY_WORDS: usize = 8;

/// One VXLAN tunnel (RFC 7348) between two endpoints, of which the card is one. Both addresses are of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelConfig {
    /// VXLAN network identifier, 24 bits.
    pub vni: u32,
    /// MAC address of the card in the underlay.
    pub mac: Mac,
    /// MAC address of the remote endpoint, or of the router on the way to it.
    pub next_hop: Mac,
    /// IP address of the card in the underlay.
    pub local: IpAddr,
    /// IP address of the remote endpoint.
    pub remote: IpAddr,
    /// 802.1Q tag control information of frames in the underlay, if they are to have a tag.
    pub tag: Option<u16>,
    /// Outer DSCP; `None`: the inner packet's.
    pub dscp: Option<u8>,
    /// Outer time to live; `None`: the inner packet's, of frames that are not IP 64.
    pub ttl: Option<u8>,
    /// Packets from any source address are taken, else from `remote` only.
    pub any_remote: bool,
    /// Over IPv6 packets without a UDP checksum are taken (RFC 6935): this card sends none.
    pub zero_checksum_v6: bool,
    /// Reserved bits of received VXLAN headers are ignored, as RFC 7348 has it; else such packets are dropped, as Linux does.
    pub lenient: bool,
    /// The function may have raw queue pairs: it may send whatever it likes into the tunnel, and gets what comes through that. Of no meaning for the physical function, which may in any case.
    pub raw: bool,
    /// Bytes of an IP packet that the underlay has room for. A queue pair whose path MTU does not fit with all headers is refused when it is connected. `None`: the card believes that all fit.
    pub underlay_mtu: Option<u16>,
}

impl TunnelConfig {
    /// A tunnel that takes packets of its own remote endpoint only. TTL 64, DSCP 0, no tag, no raw queue pairs.
    pub fn new(vni: u32, mac: Mac, local: IpAddr, next_hop: Mac, remote: IpAddr) -> Self {
        Self { vni, mac, next_hop, local, remote, tag: None, dscp: Some(0), ttl: Some(64), any_remote: false, zero_checksum_v6: true, lenient: false, raw: false, underlay_mtu: None }
    }

    /// Bytes that the outer header adds to a frame.
    pub fn overhead(&self) -> usize {
        let ip = if self.local.is_ipv6() { wire::Ipv6::BYTES } else { wire::Ipv4::BYTES };
        let tag = if self.tag.is_some() { wire::Vlan::BYTES } else { 0 };
        wire::Eth::BYTES + tag + ip + wire::Udp::BYTES + wire::Vxlan::BYTES
    }

    /// The largest path MTU that the underlay has room for, with the longest headers of RoCE.
    fn largest_mtu(&self) -> Result<Option<Mtu>> {
        let Some(underlay) = self.underlay_mtu else { return Ok(None) };
        let outer = self.overhead() - wire::Eth::BYTES - if self.tag.is_some() { wire::Vlan::BYTES } else { 0 };
        let around = outer + wire::Eth::BYTES + wire::Vlan::BYTES + wire::Ipv6::BYTES + wire::Udp::BYTES + wire::Bth::BYTES + wire::Reth::BYTES + wire::ImmDt::BYTES + wire::ICRC_BYTES;
        let fits = |mtu: &Mtu| mtu.bytes() + around <= usize::from(underlay);
        let all = [Mtu::M4096, Mtu::M2048, Mtu::M1024, Mtu::M512, Mtu::M256];
        all.into_iter().find(fits).map(Some).ok_or(Error::Invalid("the underlay has no room for RoCE in a tunnel, whatever the path MTU"))
    }

    fn line(&self) -> Result<TunnelCtx> {
        if self.vni >> 24 != 0 {
            return Err(Error::Invalid("a VNI has 24 bits"));
        }
        if self.local.is_ipv6() != self.remote.is_ipv6() {
            return Err(Error::Invalid("the ends of a tunnel have addresses of one version"));
        }
        if self.dscp.is_some_and(|dscp| dscp > 63) {
            return Err(Error::Invalid("a DSCP has 6 bits"));
        }
        let number = |ip: IpAddr| match ip {
            IpAddr::V4(a) => u32::from(a).into(),
            IpAddr::V6(a) => u128::from(a),
        };
        let on = TunnelCtx::default().with_valid(true).with_ipv6(self.local.is_ipv6()).with_vni(self.vni).with_vlan(self.tag.is_some()).with_tci(self.tag.unwrap_or(0));
        let how = on.with_lenient(self.lenient).with_zero_csum6(self.zero_checksum_v6).with_any_remote(self.any_remote).with_raw(self.raw).with_pmtu(self.largest_mtu()?.map_or(0, |mtu| mtu as u8));
        let outer = how.with_copy_dscp(self.dscp.is_none()).with_dscp(self.dscp.unwrap_or(0)).with_copy_ttl(self.ttl.is_none()).with_hop_limit(self.ttl.unwrap_or(64));
        Ok(outer.with_dmac(self.next_hop.number()).with_smac(self.mac.number()).with_local(number(self.local)).with_remote(number(self.remote)))
    }
}

impl Context {
    /// Whether the card can be the end of tunnels.
    pub fn has_tunnel(&self) -> bool {
        self.inner.caps.features >> csr::FEATURE_TUNNEL & 1 == 1
    }

    /// From now on all frames of `function` go through this tunnel, and those that come through it are for that function only; no other frame is. For the physical function only. While it is
    /// changed the function's frames wait. Functions with one VNI at one address are in one network, and reach each other: the second joins the first, if both say the same of the packets that are taken
    /// (the card's MAC address, `remote`, `any_remote`, `lenient`, `zero_checksum_v6`); neither is the physical function, and eight are the most. As long as one has joined it a function's VNI and what is
    /// taken stay. Tunnels stay when their function is reset, but for the physical function's own. A path MTU that [`TunnelConfig::underlay_mtu`] has no room for is refused; queue
    /// pairs that are connected already keep theirs. Errors: no such function, a VNI or DSCP of too many bits, addresses of two versions or that are not one machine's, a TTL of zero, a VNI that
    /// another function has at the same address with other rules, a change of what others have joined, or no leave for raw queue pairs though the function has some.
    pub fn set_tunnel(&self, function: u16, config: &TunnelConfig) -> Result<()> {
        self.tell_tunnel(function, config.line()?)
    }

    /// The function's frames go as they are from now on, and it gets what came through no tunnel. Errors: no such function, one that others have joined, or one that has raw queue pairs and is not the physical one: its reset takes them away.
    pub fn clear_tunnel(&self, function: u16) -> Result<()> {
        self.tell_tunnel(function, TunnelCtx::default())
    }

    fn tell_tunnel(&self, function: u16, line: TunnelCtx) -> Result<()> {
        if !self.has_tunnel() {
            return Err(Error::Unsupported("be the end of a tunnel"));
        }
        self.inner.admin("set tunnel", AdminOpcode::SetTunnel, function.into(), &crate::admin::words::<14>(&line.0)).map(drop)
    }

    /// The function that `function` has joined: its network is that one's, too. `None`: it has a network of its own, or no tunnel. For the physical function only.
    pub fn tunnel_leader(&self, function: u16) -> Result<Option<u16>> {
        if !self.has_tunnel() {
            return Err(Error::Unsupported("be the end of a tunnel"));
        }
        let query = Command { what: "query tunnel", opcode: AdminOpcode::QueryObject, id: function.into(), params: vec![csr::space::TUNNEL.into(), 0] };
        let mut line = TunnelCtx::default();
        for ticket in self.inner.post([query].iter()) {
            line.0.chunks_exact_mut(4).zip(self.inner.answer(ticket)?).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
        }
        Ok(line.joined().then(|| line.leader().into()))
    }

    /// What became of frames at the tunnels since the card was switched on; for the physical function only. Counters that move meanwhile are read one after the other.
    pub fn tunnel_counts(&self) -> Result<TunnelCounts> {
        if !self.has_tunnel() {
            return Err(Error::Unsupported("be the end of a tunnel"));
        }
        let mut counts = TunnelCounts::default();
        self.read_counts("query tunnel", [csr::space::TUNNEL.into(), csr::TUNNEL_COUNTS], &mut counts.0)?;
        Ok(counts)
    }

    /// Fills `counts` with a line of 64-bit counters.
    pub(crate) fn read_counts(&self, what: &'static str, [space, line]: [u32; 2], counts: &mut [u8]) -> Result<()> {
        let read = |into: &mut [u8]| -> Result<()> {
            let firsts = (0..into.len() / 4).step_by(QUERY_WORDS);
            let queries: Vec<_> = firsts.map(|first| Command { what, opcode: AdminOpcode::QueryObject, id: line, params: vec![space, first as u32] }).collect();
            let said: Vec<_> = self.inner.post(queries.iter()).into_iter().map(|ticket| self.inner.answer(ticket)).collect();
            for (part, words) in into.chunks_mut(4 * QUERY_WORDS).zip(said) {
                part.chunks_exact_mut(4).zip(words?).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
            }
            Ok(())
        };
        let mut before = vec![0; counts.len()];
        read(&mut before)?;
        read(counts)?;
        // The halves of a counter are read one behind the other: one that has carried in between is read again.
        while before.chunks(8).zip(counts.chunks(8)).any(|(old, new)| old[4..] != new[4..]) {
            before.copy_from_slice(counts);
            read(counts)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_tunnel_can_be() {
        let macs = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
        let (v4, v6): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [0xfd00, 0, 0, 0, 0, 0, 0, 1].into());
        let good = TunnelConfig::new(0xff_ffff, macs[0], v4, macs[1], v4);
        assert!(good.line().is_ok());
        assert_eq!([good.overhead(), TunnelConfig { tag: Some(5), ..good.clone() }.overhead(), TunnelConfig { local: v6, ..good.clone() }.overhead()], [50, 54, 70]);
        // With the longest headers: 102 bytes inside, 36 of an outer header over IPv4, 56 over IPv6.
        let mtu = |underlay, over6| {
            let tunnel = TunnelConfig { underlay_mtu: Some(underlay), ..good.clone() };
            if over6 { TunnelConfig { local: v6, remote: v6, ..tunnel } } else { tunnel }.largest_mtu().ok().flatten().map(Mtu::bytes)
        };
        assert_eq!([1500, 1161, 1162, 4233, 4234, 9000, 393, 394].map(|u| mtu(u, false)), [1024, 512, 1024, 2048, 4096, 4096, 0, 256].map(|n| (n > 0).then_some(n)));
        assert_eq!([4253, 4254].map(|u| mtu(u, true)), [Some(2048), Some(4096)]);
        assert_eq!((good.line().unwrap().pmtu(), TunnelConfig { underlay_mtu: Some(1500), ..good.clone() }.line().unwrap().pmtu()), (0, 3));
        for bad in [TunnelConfig { vni: 1 << 24, ..good.clone() }, TunnelConfig { remote: v6, ..good.clone() }, TunnelConfig { dscp: Some(64), ..good }] {
            assert!(matches!(bad.line(), Err(Error::Invalid(_))), "{bad:?}");
        }
    }
}
