//! Frames that were marked on their way, and congestion notification packets (annex A17): counted, told to the congestion hook, otherwise without effect.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{CqeStatus, QpConfig, RecvRequest, SendRequest};
use ferric_hdl::card::counters;
use ferric_hdl::net::icrc::model::seal;
use ferric_tests::pair::{Linked, Pair, Wire};

fn counter(pair: &Pair, host: usize, name: &str) -> u64 {
    pair.hosts[host].ctx.counters(counters::index(name).unwrap() as u32, 1).unwrap()[0]
}

/// A SEND of `len` bytes from host 0 to host 1, `len` bytes of it compared.
fn send(b: &mut Linked, len: u32) {
    let into = [sge(b.dst.addr(), len, b.dst.lkey())];
    b.qps[1].post_recv(&RecvRequest { wr_id: 1, sges: &into }).unwrap();
    let from = [sge(b.src.addr(), len, b.src.lkey())];
    let request = SendRequest { wr_id: 2, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
    b.qps[0].post_send(&request).unwrap();
    for host in [1, 0] {
        assert_eq!(b.wait(host, 400_000).unwrap().status, CqeStatus::Success);
    }
    assert_eq!(b.dst.to_vec(0, len as usize), b.src.to_vec(0, len as usize));
}

/// A congestion notification packet for queue pair `qpn` of host 1: BTH with opcode 0x81 and BECN, 16 bytes of zeros.
fn cnp(pair: &Pair, qpn: u32, v6: bool) -> Vec<u8> {
    let mut udp = vec![0xc0, 0, 0x12, 0xb7, 0, 8 + 12 + 16 + 4, 0, 0, 0x81, 0, 0xff, 0xff, 0x40];
    udp.extend_from_slice(&qpn.to_be_bytes()[1..]);
    udp.extend_from_slice(&[0; 4 + 16 + 4]);
    let mut f = [pair.hosts[1].mac().0, pair.hosts[0].mac().0].concat();
    if v6 {
        f.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, udp.len() as u8, 17, 64]);
        for host in 0..2 {
            let std::net::IpAddr::V6(ip) = pair.hosts[host].ip(true) else { unreachable!() };
            f.extend_from_slice(&ip.octets());
        }
    } else {
        f.extend_from_slice(&[8, 0, 0x45, 0, 0, 20 + udp.len() as u8, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum: u32 = f[14..34].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        f[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    f.extend_from_slice(&udp);
    seal(&mut f).unwrap();
    f
}

#[test]
fn marked_frames_and_notifications_are_counted() {
    for v6 in [false, true] {
        // ECT(0) is no mark, CE is.
        let mut frames = [0; 2];
        for (ecn, frames) in [2, 3].into_iter().zip(&mut frames) {
            let wire = Wire { v6, tclass: 26 << 2 | ecn, ..Default::default() };
            let mut b = Linked::new(&QpConfig::default(), &wire, &(0..20_000u32).map(|i| ((i * 11) >> 3) as u8).collect::<Vec<_>>()).unwrap();
            send(&mut b, 20_000);
            *frames = counter(&b.pair, 1, "cc.np_ecn_marked_roce_packets");
            // Notifications between messages, one of them for a queue pair that does not exist.
            let qpn = b.qps[1].qpn();
            for to in [qpn, qpn, 200] {
                let frame = cnp(&b.pair, to, v6);
                b.pair.world().cards[1].receive(frame);
            }
            send(&mut b, 100);
            let count = |name| counter(&b.pair, 1, name);
            assert_eq!((count("cc.rp_cnp_ignored"), count("resp.drop_bad_transport"), count("resp.drop_no_qp")), (3, 0, 1));
            assert_eq!(counter(&b.pair, 0, "cc.rp_cnp_ignored"), 0);
            assert_eq!((count("rx.rx_malformed"), count("rx.rx_bad_icrc")), (0, 0));
        }
        assert_eq!(frames, [0, 5], "4096 bytes each");
    }
}
