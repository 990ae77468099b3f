//! RSS: the verification suite that Microsoft has published for the Toeplitz hash ("Verifying the RSS Hash Calculation"), and which kind of hash counts.
use crate::virtio::rss::{toeplitz, Rss, KEY};
use ferric_abi::virtio::net::hash_type;
use std::net::IpAddr;

/// The key of the suite.
const PUBLISHED: [u8; KEY] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// Source and its port, destination and its port, hash of the addresses, hash with ports.
type Vector = (&'static str, u16, &'static str, u16, u32, u32);

const VECTORS: [Vector; 8] = [
    ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e_8fc2, 0x51cc_c178),
    ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718_262a, 0xc626_b0ea),
    ("24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0_a5de, 0x5c2b_394a),
    ("38.27.205.30", 48228, "209.142.163.6", 2217, 0x8298_9176, 0xafc7_327f),
    ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x5d18_09c5, 0x10e8_28a2),
    ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2cc1_8cd5, 0x4020_7d3d),
    ("3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0f0c_461c, 0xdde5_1bbf),
    ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024, 0x4b61_e985, 0x02d1_feef),
];

fn bytes(address: &str) -> Vec<u8> {
    match address.parse().expect("an address") {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

#[test]
fn published_hashes() {
    for (src, from, dst, to, addresses, ports) in VECTORS {
        let ends = [bytes(src), bytes(dst)].concat();
        assert_eq!(toeplitz(&PUBLISHED, &ends), addresses, "{src}");
        assert_eq!(toeplitz(&PUBLISHED, &[&ends[..], &from.to_be_bytes(), &to.to_be_bytes()].concat()), ports, "{src}");
    }
}

/// A frame of a vector.
fn packet(v: &Vector, protocol: u8) -> Vec<u8> {
    let ends = [bytes(v.0), bytes(v.2)].concat();
    let ports = [v.1.to_be_bytes(), v.3.to_be_bytes()].concat();
    let head = if ends.len() == 8 { vec![8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0] } else { vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, protocol, 64] };
    [vec![2; 12], head, ends, ports, vec![0; 20]].concat()
}

#[test]
fn kinds_of_hash() {
    use hash_type::*;
    for v in &VECTORS {
        let v4 = v.0.contains('.');
        let of = |v4_type: u32, v6_type: u32| if v4 { v4_type } else { v6_type };
        let hash = |types: u32, frame: &[u8]| Rss { types, pairs: vec![0], unclassified: 0, key: PUBLISHED }.hash(frame);
        for (protocol, with, other) in [(6, of(TCPV4, TCPV6), of(UDPV4, UDPV6)), (17, of(UDPV4, UDPV6), of(TCPV4, TCPV6))] {
            let frame = packet(v, protocol);
            assert_eq!(hash(ALL, &frame), Some(v.5));
            assert_eq!(hash(with, &frame), Some(v.5));
            assert_eq!(hash(other, &frame), None);
            assert_eq!(hash(other | of(IPV4, IPV6), &frame), Some(v.4));
            assert_eq!(hash(ALL & !of(IPV4 | TCPV4 | UDPV4, IPV6 | TCPV6 | UDPV6), &frame), None);
        }
        // Another protocol; a fragment; ports that are not all there.
        assert_eq!(hash(ALL, &packet(v, 1)), Some(v.4));
        let tcp = packet(v, 6);
        let l4 = if v4 { 34 } else { 54 };
        assert_eq!([hash(ALL, &tcp[..l4 + 3]), hash(ALL, &tcp[..l4]), hash(ALL, &tcp[..l4 - 1])], [Some(v.4), Some(v.4), None]);
        if v4 {
            let mut fragment = tcp.clone();
            fragment[20] |= 0x20;
            assert_eq!(hash(ALL, &fragment), Some(v.4));
        }
    }
    let mut arp = packet(&VECTORS[0], 6);
    arp[13] = 6;
    let rss = Rss { types: ALL, pairs: vec![0, 1, 2, 3], unclassified: 3, key: PUBLISHED };
    assert_eq!((rss.pair_of(&arp), rss.pair_of(&packet(&VECTORS[0], 6))), (3, 0));
}
