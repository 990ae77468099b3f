//! The tunnel's end (gateware: `outer`): VXLAN (RFC 7348) and Geneve (RFC 8926) to a local address are stripped, outer ECN goes to the inner packet (RFC 6040). Which frames are
//! refused follows the table of SWITCH.md section 3, its last column.
use super::edit;
use super::layers::{parse, Fragment, Ip, Upper};
use super::tables::{Endpoint, EndpointKind, InnerTag, Tables, ANY_REMOTE};
use crate::net::sums::{pseudo, sum};
use ferric_abi::codes::SwitchCause;
use ferric_abi::wire::protocol;

/// Bytes of Geneve options that the parser takes at most.
const OPTIONS: usize = 40;
/// Protocol type of Ethernet in Geneve.
const ETHERNET: [u8; 2] = [0x65, 0x58];

/// What came out of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inner {
    /// The frame, with the outer ECN in it.
    pub frame: Vec<u8>,
    /// Bridge domain of the VNI.
    pub domain: u16,
    /// Remote endpoint.
    pub remote: u16,
    /// VNI, 24 bits.
    pub vni: u32,
    /// The configured Geneve option was there.
    pub option: bool,
}

/// What becomes of a frame from an uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stripped {
    /// It is for no endpoint.
    Plain,
    /// It came through a tunnel that ends here.
    Inner(Inner),
    /// It is refused.
    Drop(SwitchCause),
    /// Software gets the frame as it came.
    Software(SwitchCause),
}

/// Strips `frame` if it is for an endpoint; `mac` is the uplink's.
pub fn strip(tables: &Tables, frame: &[u8], mac: Option<u64>) -> Stripped {
    let Ok(layers) = parse(frame) else {
        return Stripped::Plain;
    };
    let (Upper::Ip(ip), Some(port)) = (layers.upper, layers.udp_to()) else {
        return Stripped::Plain;
    };
    let found = tables.endpoints.iter().position(|e| e.v6 == ip.v6 && e.ip == ip.dst && e.udp_port == port);
    let Some(number) = found.filter(|_| mac.is_none_or(|mac| mac == layers.dmac)) else {
        return Stripped::Plain;
    };
    if ip.fragment == Fragment::First {
        return Stripped::Drop(SwitchCause::OuterFragment);
    }
    let plain = if ip.v6 { ip.l4 == layers.l3 + 40 } else { ip.l4 == layers.l3 + 20 };
    if layers.second || !plain {
        return Stripped::Software(SwitchCause::Deep);
    }
    let endpoint = &tables.endpoints[number];
    match outer(frame, layers.l3, &ip, endpoint) {
        Err(end) => end,
        Ok((head, payload)) => inside(tables, number as u8, endpoint, &ip, head, payload),
    }
}

/// Checks IP and UDP; the UDP payload, and the tunnel's header without options that it begins with.
fn outer<'a>(frame: &'a [u8], l3: usize, ip: &Ip, endpoint: &Endpoint) -> Result<(&'a [u8; 8], &'a [u8]), Stripped> {
    let datagram = &frame[ip.l4..ip.end];
    let word = |at: usize| u16::from_be_bytes([datagram[at], datagram[at + 1]]);
    let header_good = ip.v6 || sum(0, &frame[l3..ip.l4]) == 0xffff;
    let payload = &datagram[8..];
    let Some(head) = payload.first_chunk().filter(|_| header_good && usize::from(word(4)) == datagram.len()) else {
        return Err(Stripped::Drop(SwitchCause::OuterMalformed));
    };
    let (src, dst) = if ip.v6 { (l3 + 8..l3 + 24, l3 + 24..l3 + 40) } else { (l3 + 12..l3 + 16, l3 + 16..l3 + 20) };
    let good = match word(6) {
        0 => !ip.v6 || endpoint.zero_csum6,
        _ => sum(pseudo(&frame[src], &frame[dst], protocol::UDP, datagram.len() as u32), datagram) == 0xffff,
    };
    if good {
        Ok((head, payload))
    } else {
        Err(Stripped::Drop(SwitchCause::OuterCsum))
    }
}

fn inside(tables: &Tables, number: u8, endpoint: &Endpoint, ip: &Ip, head: &[u8; 8], payload: &[u8]) -> Stripped {
    let tunnel = match endpoint.kind {
        EndpointKind::Vxlan => vxlan(head, endpoint.lenient).map(|()| (8, false)),
        EndpointKind::Geneve => geneve(head, payload, endpoint.option),
    };
    let (length, option) = match tunnel {
        Ok(found) => found,
        Err(end) => return end,
    };
    let vni = u32::from_be_bytes([0, head[4], head[5], head[6]]);
    let Some(&(domain, rule)) = tables.vnis.get(&(number, vni)) else {
        let end = if endpoint.unknown_to_software { Stripped::Software } else { Stripped::Drop };
        return end(SwitchCause::VniUnknown);
    };
    let remote = match tables.remotes.get(&(ip.v6, ip.src)) {
        Some(remote) => *remote,
        None if endpoint.any_remote => ANY_REMOTE,
        None => return Stripped::Drop(SwitchCause::RemoteUnknown),
    };
    let mut frame = payload[length..].to_vec();
    if frame.len() < 14 {
        return Stripped::Drop(SwitchCause::InnerShort);
    }
    // An inner frame that the parser does not understand stays as it is: software does what is to be done with it.
    if let Ok(layers) = parse(&frame) {
        if let Upper::Ip(inner) = layers.upper {
            match ecn(ip.tos & 3, inner.tos & 3) {
                Some(ecn) if ecn == inner.tos & 3 => {}
                Some(ecn) => edit::set_tos(&mut frame, layers.l3, &inner, inner.tos & !3 | ecn),
                None => return Stripped::Drop(SwitchCause::Ecn),
            }
        }
        match (layers.tag, rule) {
            (None, _) | (_, InnerTag::Keep) => {}
            (Some(_), InnerTag::Strip) => edit::pop_tag(&mut frame),
            (Some(_), InnerTag::Drop) => return Stripped::Drop(SwitchCause::InnerTag),
        }
    }
    Stripped::Inner(Inner { frame, domain, remote, vni, option })
}

/// RFC 7348 section 5.
fn vxlan(head: &[u8; 8], lenient: bool) -> Result<(), Stripped> {
    let good = if lenient { head[0] & 8 == 8 } else { head[..4] == [8, 0, 0, 0] && head[7] == 0 };
    if good {
        Ok(())
    } else {
        Err(Stripped::Drop(SwitchCause::VxlanFlags))
    }
}

/// RFC 8926 section 3.4: bytes of the header with its options, and whether the configured option is there.
fn geneve(head: &[u8; 8], payload: &[u8], known: Option<(u16, u8)>) -> Result<(usize, bool), Stripped> {
    if head[0] >> 6 != 0 {
        return Err(Stripped::Drop(SwitchCause::GeneveVersion));
    }
    let length = usize::from(head[0] & 0x3f) * 4;
    let Some(mut options) = payload.get(8..8 + length) else {
        return Err(Stripped::Drop(SwitchCause::OuterMalformed));
    };
    // Control packets are software's, and so is what is not Ethernet.
    if head[1] & 0x80 != 0 || head[2..4] != ETHERNET || length > OPTIONS {
        return Err(Stripped::Software(SwitchCause::Deep));
    }
    let mut found = false;
    while let Some((option, rest)) = options.split_first_chunk::<4>() {
        let name = (u16::from_be_bytes([option[0], option[1]]), option[2]);
        let data = usize::from(option[3] & 0x1f) * 4;
        if rest.len() < data {
            return Err(Stripped::Drop(SwitchCause::OuterMalformed));
        }
        if known == Some(name) {
            found = true;
        } else if name.1 & 0x80 != 0 {
            return Err(Stripped::Drop(SwitchCause::GeneveCritical));
        }
        options = &rest[data..];
    }
    Ok((8 + length, found))
}

/// RFC 6040 figure 4: the ECN of the inner packet afterwards; `None`: it is dropped.
pub fn ecn(outer: u8, inner: u8) -> Option<u8> {
    const NOT_ECT: u8 = 0;
    const ECT1: u8 = 1;
    const ECT0: u8 = 2;
    const CE: u8 = 3;
    match (outer, inner) {
        (CE, NOT_ECT) => None,
        (CE, _) => Some(CE),
        (ECT1, ECT0) => Some(ECT1),
        _ => Some(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::ecn;

    /// RFC 6040 figure 4, row by row: inner Not-ECT, ECT(0), ECT(1), CE; columns: outer the same.
    #[test]
    fn figure_4() {
        let order = [0, 2, 1, 3];
        let figure = [[Some(0), Some(0), Some(0), None], [Some(2), Some(2), Some(1), Some(3)], [Some(1), Some(1), Some(1), Some(3)], [Some(3); 4]];
        for (row, inner) in order.into_iter().enumerate() {
            for (column, outer) in order.into_iter().enumerate() {
                assert_eq!(ecn(outer, inner), figure[row][column], "outer {outer}, inner {inner}");
            }
        }
    }
}
