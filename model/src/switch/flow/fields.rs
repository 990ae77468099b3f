//! The fields of a flow key: their names in the text, their width and how their values are written.

/// How a field's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Decimal, the mask in hexadecimal.
    Decimal,
    /// Hexadecimal.
    Hex,
    /// Six bytes with colons.
    Mac,
    /// IPv4 address.
    Ip4,
    /// IPv6 address.
    Ip6,
    /// `no`, `first`, `later`; always whole.
    Fragment,
    /// Names of TCP flags, or a number.
    TcpFlags,
    /// Names of tunnel flags.
    TunnelFlags,
    /// Number of a port, or its name.
    Port,
}

macro_rules! fields {
    ($( $group:literal { $( $name:ident $member:literal $width:literal $form:ident; )* } )*) => {
        /// A field of the flow key that the text can name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Field { $( $( #[doc = concat!("`", $member, "` of `", $group, "(...)`.")] $name, )* )* }

        impl Field {
            /// Every field, its group, its name in the group (empty: the group has this one value), its width in bits and its form; in the text's order.
            pub const ALL: &'static [(Field, &'static str, &'static str, u32, Form)] = &[ $( $( (Field::$name, $group, $member, $width, Form::$form), )* )* ];
        }
    };
}

fields! {
    "tunnel" { TunId "tun_id" 64 Hex; TunSrc "src" 32 Ip4; TunDst "dst" 32 Ip4; TunSrc6 "ipv6_src" 128 Ip6; TunDst6 "ipv6_dst" 128 Ip6; TunTos "tos" 8 Hex; TunTtl "ttl" 8 Decimal;
        TunTpSrc "tp_src" 16 Decimal; TunTpDst "tp_dst" 16 Decimal; TunFlags "flags" 16 TunnelFlags; }
    "in_port" { InPort "" 32 Port; }
    "eth" { EthSrc "src" 48 Mac; EthDst "dst" 48 Mac; }
    "eth_type" { EthType "" 16 Hex; }
    "ipv4" { Ip4Src "src" 32 Ip4; Ip4Dst "dst" 32 Ip4; Ip4Proto "proto" 8 Decimal; Ip4Tos "tos" 8 Hex; Ip4Ttl "ttl" 8 Decimal; Ip4Frag "frag" 8 Fragment; }
    "ipv6" { Ip6Src "src" 128 Ip6; Ip6Dst "dst" 128 Ip6; Ip6Label "label" 20 Hex; Ip6Proto "proto" 8 Decimal; Ip6Tclass "tclass" 8 Hex; Ip6Hlimit "hlimit" 8 Decimal; Ip6Frag "frag" 8 Fragment; }
    "tcp" { TcpSrc "src" 16 Decimal; TcpDst "dst" 16 Decimal; }
    "tcp_flags" { TcpFlags "" 12 TcpFlags; }
    "udp" { UdpSrc "src" 16 Decimal; UdpDst "dst" 16 Decimal; }
    "icmp" { IcmpType "type" 8 Decimal; IcmpCode "code" 8 Decimal; }
    "icmpv6" { Icmp6Type "type" 8 Decimal; Icmp6Code "code" 8 Decimal; }
    "arp" { ArpSip "sip" 32 Ip4; ArpTip "tip" 32 Ip4; ArpOp "op" 8 Decimal; ArpSha "sha" 48 Mac; ArpTha "tha" 48 Mac; }
}

impl Field {
    fn entry(self) -> &'static (Field, &'static str, &'static str, u32, Form) {
        &Self::ALL[self as usize]
    }

    /// Name of the group it stands in.
    pub fn group(self) -> &'static str {
        self.entry().1
    }

    /// All ones of its width.
    pub fn full(self) -> u128 {
        u128::MAX >> (128 - self.entry().3)
    }

    /// How its values are written.
    pub fn form(self) -> Form {
        self.entry().4
    }

    /// The field `member` of `group`.
    pub fn of(group: &str, member: &str) -> Option<Self> {
        Self::ALL.iter().find(|e| e.1 == group && e.2 == member).map(|e| e.0)
    }
}

/// TCP flags by the bit's number.
pub const TCP_FLAGS: [&str; 12] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"];
/// Tunnel flags of Open vSwitch by the bit's number.
pub const TUNNEL_FLAGS: [&str; 4] = ["oam", "df", "csum", "key"];

/// Groups that the datapath knows and this switch has no field for. One with a mask of zero says nothing.
pub const FOREIGN: [&str; 17] =
    ["skb_priority", "skb_mark", "recirc_id", "dp_hash", "packet_type", "ct_state", "ct_zone", "ct_mark", "ct_label", "ct_tuple4", "ct_tuple6", "sctp", "nd", "nd_ext", "mpls", "nsh", "tunnel_geneve"];
