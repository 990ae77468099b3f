//! What switches read of a frame, and what they change in it.

const VLAN: u16 = 0x8100;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const UDP: u8 = 17;
const TCP: u8 = 6;
/// ECN codepoints.
const NOT_ECT: u8 = 0;
const CE: u8 = 3;

/// How frames are trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimming {
    /// DSCP of frames that may be trimmed.
    pub trimmable: u8,
    /// What it becomes.
    pub trimmed: u8,
    /// What it becomes at the last hop.
    pub trimmed_last: u8,
    /// Bytes that stay behind the IP header.
    pub keep: usize,
}

/// Where things are in a frame.
pub struct Read {
    /// Destination MAC.
    pub dst: Option<u64>,
    /// DSCP, if it is IP.
    pub dscp: Option<u8>,
    /// First byte of the IP header, and its bytes.
    ip: Option<(usize, usize)>,
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?))
}

/// Finds what switches look at.
pub fn read(frame: &[u8]) -> Read {
    let dst = frame.first_chunk::<6>().map(|mac| mac.iter().fold(0, |mac, byte| mac << 8 | u64::from(*byte)));
    let (mut at, mut ether) = (14, word(frame, 12).unwrap_or(0));
    if ether == VLAN {
        (at, ether) = (18, word(frame, 16).unwrap_or(0));
    }
    let ip = match ether {
        IPV4 if frame.len() >= at + 20 && frame[at] >> 4 == 4 => Some((at, usize::from(frame[at] & 15) * 4)).filter(|(at, bytes)| *bytes >= 20 && frame.len() >= at + bytes),
        IPV6 if frame.len() >= at + 40 && frame[at] >> 4 == 6 => Some((at, 40)),
        _ => None,
    };
    let dscp = ip.map(|(at, _)| if frame[at] >> 4 == 4 { frame[at + 1] >> 2 } else { (word(frame, at).unwrap_or(0) >> 6 & 63) as u8 });
    Read { dst, dscp, ip }
}

/// What the path is chosen by: addresses, protocol, and the four bytes of ports. Protocols that switches do not know have those bytes counted likewise: native Ultra Ethernet has its entropy there.
/// Frames without IP: both MAC addresses.
pub fn flow(frame: &[u8]) -> Vec<u8> {
    let Some((at, bytes)) = read(frame).ip else { return frame.iter().take(12).copied().collect() };
    let (addresses, protocol) = if frame[at] >> 4 == 4 { (&frame[at + 12..at + 20], frame[at + 9]) } else { (&frame[at + 8..at + 40], frame[at + 6]) };
    let ports = frame.get(at + bytes..at + bytes + 4).unwrap_or(&[]);
    // An entropy value is 16 bits, whatever stands behind it.
    let ports = if matches!(protocol, UDP | TCP) { ports } else { ports.get(..2).unwrap_or(&[]) };
    [addresses, &[protocol], ports].concat()
}

/// The header checksum of IPv4 anew.
fn sum(frame: &mut [u8], at: usize, bytes: usize) {
    frame[at + 10..at + 12].fill(0);
    let mut sum: u32 = frame[at..at + bytes].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[at + 10..at + 12].copy_from_slice(&(!sum as u16).to_be_bytes());
}

/// Changes the byte or bits of DSCP and ECN.
fn set_class(frame: &mut [u8], at: usize, bytes: usize, class: u8) {
    if frame[at] >> 4 == 4 {
        frame[at + 1] = class;
        sum(frame, at, bytes);
    } else {
        frame[at] = frame[at] & 0xf0 | class >> 4;
        frame[at + 1] = frame[at + 1] & 0x0f | class << 4;
    }
}

fn class(frame: &[u8], at: usize) -> u8 {
    if frame[at] >> 4 == 4 {
        frame[at + 1]
    } else {
        frame[at] << 4 | frame[at + 1] >> 4
    }
}

/// Sets CE, if the frame says that its sender understands it. Whether it did.
pub fn mark(frame: &mut [u8]) -> bool {
    let Some((at, bytes)) = read(frame).ip else { return false };
    let class = class(frame, at);
    if matches!(class & 3, NOT_ECT | CE) {
        return false;
    }
    set_class(frame, at, bytes, class | CE);
    true
}

/// Cuts the frame, if it may be and is longer. The length of IP becomes what is left; that of UDP stays, as it is not the switch's. Whether it did.
pub fn trim(frame: &mut Vec<u8>, trimming: &Trimming, last: bool) -> bool {
    let read = read(frame);
    let Some((at, bytes)) = read.ip.filter(|_| read.dscp == Some(trimming.trimmable)) else { return false };
    let length = at + bytes + trimming.keep;
    if frame.len() <= length {
        return false;
    }
    frame.truncate(length);
    let dscp = if last { trimming.trimmed_last } else { trimming.trimmed };
    let class = dscp << 2 | class(frame, at) & 3;
    let (place, said) = if frame[at] >> 4 == 4 { (at + 2, bytes + trimming.keep) } else { (at + 4, trimming.keep) };
    frame[place..place + 2].copy_from_slice(&(said as u16).to_be_bytes());
    set_class(frame, at, bytes, class);
    true
}

/// Makes one bit behind the MAC addresses wrong, which one `draw` says.
pub fn corrupt(frame: &mut [u8], draw: u64) {
    if let Some(behind) = frame.get_mut(12..).filter(|behind| !behind.is_empty()) {
        let bit = draw as usize % (behind.len() * 8);
        behind[bit / 8] ^= 1 << (bit % 8);
    }
}
