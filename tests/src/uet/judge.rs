//! In which counters a frame has to be found: the rules of the receive front and of the intake, and the codecs of `ferric_uet::wire` for what is behind. Nothing of the gateware is used.
use super::{address, Way};
use ferric_abi::uet::UET_PORT;
use ferric_abi::wire::{ethertype, protocol, Eth, Ipv4, Ipv6, Udp};
use ferric_uet::wire::{checksum, parse, Bad, Parsed, Registers};

/// Bytes to which a MAC fills a frame up.
const SHORTEST: usize = 60;

/// Where UDP's destination port is in its header.
const PORT: usize = 2;

/// What becomes of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It is none of Ultra Ethernet: the engine passes it on.
    Other,
    /// It ends in this counter of the engine, and nothing else is looked at.
    Dropped(&'static str),
    /// It is a packet of this peer; the parser counts it here, and if that is `uet.uet_rx` it goes to packet delivery.
    Peer(usize, &'static str, Option<Box<Parsed>>),
}

/// What a card reads: no native carriage, no CRC, no DSCP that says that a frame was trimmed.
pub fn registers() -> Registers {
    Registers { native: None, dscp_trimmed: u8::MAX, dscp_trimmed_last: u8::MAX, ..Registers::default() }
}

/// The parser's counter for a reason. None: none of the parser's.
fn counter(bad: Bad) -> Option<&'static str> {
    Some(match bad {
        Bad::NotUet => "uet.uet_rx_other",
        Bad::Truncated => "uet.uet_rx_truncated",
        Bad::UdpLength => "uet.uet_rx_udp_length",
        Bad::PdsShort => "uet.uet_rx_pds_short",
        Bad::PdsType(_) => "uet.uet_rx_pds_type",
        Bad::Tss => "uet.uet_rx_tss",
        Bad::Ccx => "uet.uet_rx_ccx",
        Bad::NextHeader(_) => "uet.uet_rx_next",
        Bad::NextNotAllowed(_) => "uet.uet_rx_next_not_allowed",
        Bad::SesShort => "uet.uet_rx_ses_short",
        Bad::Version(_) => "uet.uet_rx_version",
        Bad::PayloadLength => "uet.uet_rx_payload_length",
        Bad::ShortForm => "uet.uet_rx_short_form",
        Bad::HeaderData => "uet.uet_rx_header_data",
        Bad::Range => "uet.uet_rx_range",
        Bad::Datagram => "uet.uet_rx_datagram",
        Bad::Fragment | Bad::IpChecksum | Bad::IpLength | Bad::Group | Bad::Crc => return None,
    })
}

/// What IP says: source, destination, bytes from the IP header on, whether its checksum is right. None: not IP as the intake wants it, with UDP to the port in it.
fn network(frame: &[u8]) -> Option<(u128, u128, usize, bool)> {
    const AT: usize = Eth::BYTES;
    // The frame may end within UDP's header, behind the ports.
    let port = |at: usize| frame.get(at + PORT..at + PORT + 2) == Some(&UET_PORT.to_be_bytes()[..]);
    match Eth(*frame.first_chunk()?).ethertype() {
        ethertype::IPV4 => {
            let ip = Ipv4(*frame.get(AT..)?.first_chunk()?);
            let plain = ip.version() == 4 && ip.ihl() == 5 && ip.fragment() == 0 && ip.flags() & 1 == 0 && ip.protocol() == protocol::UDP;
            (plain && port(AT + Ipv4::BYTES)).then_some((ip.src().into(), ip.dst().into(), ip.total_length().into(), checksum(&ip.0) == 0))
        }
        ethertype::IPV6 => {
            let ip = Ipv6(*frame.get(AT..)?.first_chunk()?);
            let plain = ip.version() == 6 && ip.next_header() == protocol::UDP;
            (plain && port(AT + Ipv6::BYTES)).then_some((ip.src(), ip.dst(), Ipv6::BYTES + usize::from(ip.payload_length()), true))
        }
        _ => None,
    }
}

/// Judges a frame that the receive front hands on. `ways`: to the peers, by number.
pub fn judge(frame: &[u8], ways: &[Way]) -> Judged {
    let mut frame = frame.to_vec();
    if frame.len() < SHORTEST {
        frame.resize(SHORTEST, 0);
    }
    let Some((source, destination, total, right)) = network(&frame) else { return Judged::Other };
    let v6 = frame[12..14] == ethertype::IPV6.to_be_bytes();
    let least = Udp::BYTES + if v6 { Ipv6::BYTES } else { Ipv4::BYTES };
    if !right || total > frame.len() - Eth::BYTES || total < least {
        return Judged::Dropped("uet.uet_bad_ip");
    }
    let Some(peer) = ways.iter().position(|way| way.own.is_ipv6() == v6 && address(way.own) == destination && address(way.other) == source) else { return Judged::Dropped("uet.uet_stranger") };
    // The engine does not look at MAC addresses.
    frame[..12].fill(2);
    match parse(&frame, &registers()) {
        Ok(parsed) => Judged::Peer(peer, "uet.uet_rx", Some(Box::new(parsed))),
        Err(bad) => Judged::Peer(peer, counter(bad).unwrap_or("a reason that is not the parser's"), None),
    }
}
