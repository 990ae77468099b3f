//! Tunnels of functions (VXLAN, RFC 7348): what leaves, what comes, and which functions are in whose network.
use crate::host::Host;
use crate::Twin;
use ferric_abi::codes::SwitchCause;
use ferric_abi::context::TunnelCounts;
use ferric_model::net::networks::{Network, Networks, Through};
use ferric_model::switch::functions::{has, receive, send, Came};

/// Adds one to a counter of the tunnels.
macro_rules! tunnel_count {
    ($counts:expr, $($get:ident $set:ident),*) => {{ $( let n = $counts.$get(); $counts.$set(n + 1); )* }};
}

impl Twin {
    /// A frame that came from there.
    pub(crate) fn network(&self, through: Through) -> Network {
        Network { through, networks: Networks::of(&self.tables.tunnel) }
    }

    /// A frame that a function sends to its network.
    pub(crate) fn network_of(&self, function: u16) -> Network {
        let tunnel = self.tables.tunnel.get(usize::from(function)).is_some_and(has);
        self.network(if tunnel { Through::Looped(function) } else { Through::None })
    }

    /// A frame off the wire, from its Ethernet header on, without FCS.
    pub fn receive(&mut self, host: &mut dyn Host, frame: &[u8]) {
        if !self.tables.tunnel.iter().any(has) {
            return self.receive_from(host, frame, Through::None);
        }
        match receive(&self.tables.tunnel, frame) {
            Came::Plain => self.receive_from(host, frame, Through::None),
            Came::Through(function, inner) => {
                tunnel_count!(self.tables.tunnel_counts, stripped set_stripped);
                self.receive_from(host, &inner, Through::Whole(function));
            }
            Came::Drop(cause) => count(&mut self.tables.tunnel_counts, cause),
        }
    }

    /// A RoCE packet was to a queue pair of another network.
    pub(crate) fn count_foreign(&mut self) {
        count(&mut self.tables.tunnel_counts, SwitchCause::WrongFunction);
    }

    /// A frame of `function` as it leaves for the wire.
    pub(crate) fn outside(&mut self, function: u16, frame: Vec<u8>) -> Vec<u8> {
        let line = self.tables.tunnel.get(usize::from(function)).filter(|line| line.valid()).copied();
        let Some(wrapped) = line.and_then(|line| send(&line, &frame)) else { return frame };
        tunnel_count!(self.tables.tunnel_counts, wrapped set_wrapped);
        wrapped
    }
}

fn count(counts: &mut TunnelCounts, cause: SwitchCause) {
    match cause {
        SwitchCause::Miss => tunnel_count!(counts, miss set_miss),
        SwitchCause::OuterFragment => tunnel_count!(counts, outer_fragment set_outer_fragment),
        SwitchCause::OuterCsum => tunnel_count!(counts, outer_csum set_outer_csum),
        SwitchCause::VxlanFlags => tunnel_count!(counts, vxlan_flags set_vxlan_flags),
        SwitchCause::VniUnknown => tunnel_count!(counts, vni_unknown set_vni_unknown),
        SwitchCause::RemoteUnknown => tunnel_count!(counts, remote_unknown set_remote_unknown),
        SwitchCause::InnerShort => tunnel_count!(counts, inner_short set_inner_short),
        SwitchCause::Ecn => tunnel_count!(counts, ecn set_ecn),
        SwitchCause::WrongFunction => tunnel_count!(counts, wrong_function set_wrong_function),
        _ => tunnel_count!(counts, outer_malformed set_outer_malformed),
    }
}
