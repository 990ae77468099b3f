//! The thin slice: one WRITE and one SEND through driver, rings, gateware, wire, gateware, memory, completion.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{Access, CqeStatus, QpConfig, RecvRequest, SendRequest};
use ferric_sim::{CardConfig, WorldConfig};
use ferric_tests::pair::{Pair, Wire};

/// Compares without printing thousands of bytes.
fn same(got: Vec<u8>, want: &[u8]) {
    let wrong = got.iter().zip(want).enumerate().filter(|(_, (g, w))| g != w).map(|(i, (g, w))| (i, *g, *w));
    let n = wrong.clone().count();
    assert!(n == 0 && got.len() == want.len(), "{n} of {} bytes differ, first (offset, got, want): {:?}", want.len(), wrong.take(8).collect::<Vec<_>>());
}

fn one_message(width: usize) {
    let card = CardConfig { width, ..Default::default() };
    let pair = Pair::new(&WorldConfig { cards: vec![card.clone(), card], ..Default::default() }).unwrap();
    let (mut cq0, mut cq1) = (pair.hosts[0].cq(64).unwrap(), pair.hosts[1].cq(64).unwrap());
    let [mut a, mut b] = pair.connected(&QpConfig::default(), &Wire::default(), [&cq0, &cq1]).unwrap();
    let (src, dst) = (pair.hosts[0].region(20_000, Access::ALL).unwrap(), pair.hosts[1].region(24_000, Access::ALL).unwrap());
    if let Ok(path) = std::env::var("FERRIC_PCAP") {
        pair.world().start_capture(std::path::Path::new(&path)).unwrap();
    }
    let bytes: Vec<u8> = (0..9001u32).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    src.write(5, &bytes);

    let sges = [sge(src.addr() + 5, bytes.len() as u32, src.lkey())];
    let write = SendRequest { wr_id: 11, opcode: WrOpcode::Write, payload: Payload::Sges(&sges), remote_addr: dst.addr() + 100, rkey: dst.rkey(), imm: 0, signaled: true, solicited: false };
    a.post_send(&write).unwrap();
    let done = pair.wait(&mut cq0, 20_000).unwrap();
    assert_eq!((done.wr_id, done.status), (11, CqeStatus::Success));
    same(dst.to_vec(100, bytes.len()), &bytes);
    same(dst.to_vec(0, 100), &[0; 100]);

    let into = [sge(dst.addr() + 10_000, 5000, dst.lkey()), sge(dst.addr() + 16_000, 4001, dst.lkey())];
    b.post_recv(&RecvRequest { wr_id: 22, sges: &into }).unwrap();
    a.post_send(&SendRequest { wr_id: 12, opcode: WrOpcode::SendImm, imm: 0xdead_beef, ..write }).unwrap();
    let received = pair.wait(&mut cq1, 20_000).unwrap();
    assert_eq!((received.wr_id, received.status, received.byte_len, received.imm), (22, CqeStatus::Success, 9001, Some(0xdead_beef)));
    assert_eq!(pair.wait(&mut cq0, 20_000).unwrap().wr_id, 12);
    same(dst.to_vec(10_000, 5000), &bytes[..5000]);
    same(dst.to_vec(16_000, 4001), &bytes[5000..]);
    assert_eq!(pair.iommu_faults(), 0);
}

#[test]
fn one_message_w64() {
    one_message(64);
}

#[test]
fn one_message_w512() {
    one_message(512);
}
