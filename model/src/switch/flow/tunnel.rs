//! The header of `tnl_push`.

/// Which tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelKind {
    /// RFC 7348: the first word (flags, reserved) and the VNI.
    Vxlan { flags: u32, vni: u32 },
    /// RFC 8926: control bit, critical bit, VNI and options as they stand on the wire.
    Geneve { oam: bool, critical: bool, vni: u32, options: Vec<(u16, u8, Vec<u8>)> },
}

/// Outer IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// IPv6, else IPv4.
    pub v6: bool,
    /// Source address; IPv4 in the lower 32 bits.
    pub src: u128,
    /// Destination address.
    pub dst: u128,
    /// DSCP and ECN.
    pub tos: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// IPv4: flags and fragment offset, 16 bits; IPv6: the flow label, 20 bits.
    pub extra: u32,
}

/// Everything that goes in front of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Destination MAC address, 48 bits.
    pub dmac: u64,
    /// Source MAC address.
    pub smac: u64,
    /// Outer IP header.
    pub outer: Outer,
    /// UDP source and destination port, and the checksum as the text has it: 0 for none.
    pub udp: (u16, u16, u16),
    /// The tunnel's header.
    pub kind: TunnelKind,
}

impl Header {
    /// Its bytes; lengths and checksums are zero.
    pub fn bytes(&self) -> Vec<u8> {
        let mut b = [&self.dmac.to_be_bytes()[2..], &self.smac.to_be_bytes()[2..]].concat();
        let o = &self.outer;
        if o.v6 {
            b.extend([0x86, 0xdd]);
            b.extend((6 << 28 | u32::from(o.tos) << 20 | o.extra & 0xf_ffff).to_be_bytes());
            b.extend([0, 0, 17, o.ttl]);
            b.extend(o.src.to_be_bytes());
            b.extend(o.dst.to_be_bytes());
        } else {
            b.extend([0x08, 0x00, 0x45, o.tos, 0, 0, 0, 0]);
            b.extend((o.extra as u16).to_be_bytes());
            b.extend([o.ttl, 17, 0, 0]);
            b.extend((o.src as u32).to_be_bytes());
            b.extend((o.dst as u32).to_be_bytes());
        }
        b.extend(self.udp.0.to_be_bytes());
        b.extend(self.udp.1.to_be_bytes());
        b.extend([0; 4]);
        match &self.kind {
            TunnelKind::Vxlan { flags, vni } => {
                b.extend(flags.to_be_bytes());
                b.extend((vni << 8).to_be_bytes());
            }
            TunnelKind::Geneve { oam, critical, vni, options } => {
                let length: usize = options.iter().map(|(_, _, data)| 4 + data.len()).sum();
                b.extend([(length / 4) as u8, u8::from(*oam) << 7 | u8::from(*critical) << 6, 0x65, 0x58]);
                b.extend((vni << 8).to_be_bytes());
                for (class, kind, data) in options {
                    b.extend(class.to_be_bytes());
                    b.extend([*kind, (data.len() / 4) as u8]);
                    b.extend(data);
                }
            }
        }
        b
    }
}
