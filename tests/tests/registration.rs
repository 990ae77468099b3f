//! The registration policies of the driver on whole cards; what each costs is in the bench.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, LocalSge, Payload};
use ferric_driver::registration::{Bounce, Pool, Registered};
use ferric_driver::{Access, CqeStatus, QpConfig, ReadRequest, SendRequest};
use ferric_sim::peer::PeerMemory;
use ferric_tests::pair::{Linked, Wire};
use std::sync::Arc;

const BYTES: usize = 10_000;

fn arrives(link: &mut Linked, entry: LocalSge, bytes: &[u8]) {
    let entries = [entry];
    let (remote_addr, rkey) = (link.dst.addr(), link.dst.rkey());
    let request = SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&entries), remote_addr, rkey, imm: 0, signaled: true, solicited: false };
    link.qps[0].post_send(&request).unwrap();
    assert_eq!(link.wait(0, 400_000).unwrap().status, CqeStatus::Success);
    assert_eq!(link.dst.to_vec(0, bytes.len()), bytes);
}

#[test]
fn each_policy_carries_messages() {
    let mut link = Linked::new(&QpConfig::default(), &Wire::default(), &[0; BYTES]).unwrap();
    let pd = link.pair.hosts[0].pd.clone();
    let bytes = |n: usize| (0..BYTES).map(|i| (i * 11 + (i >> 8) + n) as u8).collect::<Vec<u8>>();

    let pool = Pool::new(&pd, 3 * BYTES, Access::LOCAL_WRITE).unwrap();
    let before = pool.available();
    let pieces = [pool.take(BYTES).unwrap(), pool.take(3000).unwrap()];
    assert!(pool.take(2 * BYTES).is_none() && pieces.iter().all(|p| p.addr() % 64 == 0));
    for (n, piece) in pieces.iter().enumerate() {
        piece.write(0, &bytes(n)[..piece.len()]);
    }
    for (n, piece) in pieces.iter().enumerate() {
        arrives(&mut link, piece.sge(piece.len()), &bytes(n)[..piece.len()]);
    }
    drop(pieces);
    assert_eq!(pool.available(), before);

    let bounce = Bounce::new(&pd, 5000, 2, Access::LOCAL_WRITE).unwrap();
    let blocks = [bounce.copy(&bytes(3)[..5000]).unwrap(), bounce.copy(&bytes(4)[..1]).unwrap()];
    assert!(bounce.take().is_none());
    arrives(&mut link, blocks[0].sge(5000), &bytes(3)[..5000]);
    arrives(&mut link, blocks[1].sge(1), &bytes(4)[..1]);
    drop(blocks);
    assert!(bounce.copy(&bytes(3)[..5001]).is_none() && bounce.take().is_some());
    assert!(Bounce::new(&pd, 0, 2, Access::LOCAL_WRITE).is_err() && Bounce::new(&pd, usize::MAX, 2, Access::LOCAL_WRITE).is_err());

    let mut buffer = bytes(5);
    let registered = Registered::new(pd, Access::LOCAL_WRITE);
    for (at, len, kept) in [(100, 4000, 1), (100, 4000, 1), (200, 300, 1), (4100, 900, 2), (0, BYTES, 1), (4100, 900, 1)] {
        let ptr = buffer[at..].as_mut_ptr();
        // SAFETY: the buffer outlives `registered`, and nothing writes it from here on.
        let region = unsafe { registered.region(ptr, len) }.unwrap();
        arrives(&mut link, sge(ptr as u64, len as u32, region.lkey()), &bytes(5)[at..at + len]);
        assert_eq!(registered.len(), kept, "at {at}, {len} bytes");
    }
    registered.forget(buffer[BYTES - 1..].as_ptr(), 1);
    assert!(registered.is_empty());
    assert_eq!(link.pair.iommu_faults(), 0);
}

/// The card reads and writes another device's memory (dma-buf) on the bus; peers reach it by the key, and nothing beside it changes.
#[test]
fn memory_of_another_device() {
    const AT: usize = 5000;
    let bytes = |n: usize| (0..BYTES).map(|i| (i * 13 + (i >> 8) + n) as u8).collect::<Vec<u8>>();
    let mut link = Linked::new(&QpConfig::default(), &Wire::default(), &bytes(0)).unwrap();
    let gpu = Arc::new(PeerMemory::new(32 << 10).unwrap());
    let pd = link.pair.hosts[0].pd.clone();
    let register = |offset: u64, len, start| pd.register_dmabuf(gpu.export(), offset, len, start, Access::ALL);
    assert!(register(AT as u64, BYTES, AT as u64).is_err(), "not a device of this machine");
    link.pair.world().peers.push(gpu.clone());
    for (offset, len, start) in [(AT as u64, 32 << 10, AT as u64), (AT as u64, BYTES, 0), (0, 0, 0), (u64::MAX - 4095, 100, 0)] {
        assert!(register(offset, len, start).is_err(), "{offset:#x}+{len}");
    }
    // A name that is neither the offset nor an address of this process.
    let start = 0x7000_0000_0000 + AT as u64 % 4096;
    let region = register(AT as u64, BYTES, start).unwrap();

    gpu.store(AT as u64, &bytes(1)).unwrap();
    arrives(&mut link, sge(start, BYTES as u32, region.lkey()), &bytes(1));
    let reads = gpu.passed()[0];
    assert!(reads > 0 && gpu.passed()[1] == 0);

    // The other host's card writes into it, then reads what is there.
    let there = [sge(link.dst.addr(), BYTES as u32, link.dst.lkey())];
    link.dst.write(0, &bytes(2));
    let write = SendRequest { wr_id: 2, opcode: WrOpcode::Write, payload: Payload::Sges(&there), remote_addr: start, rkey: region.rkey(), imm: 0, signaled: true, solicited: false };
    link.qps[1].post_send(&write).unwrap();
    assert_eq!(link.wait(1, 400_000).unwrap().status, CqeStatus::Success);
    let mut all = vec![0; 32 << 10];
    gpu.load(0, &mut all).unwrap();
    assert!(all[AT..AT + BYTES] == bytes(2) && all.iter().enumerate().all(|(i, b)| (AT..AT + BYTES).contains(&i) || *b == 0));
    gpu.store(AT as u64, &bytes(3)).unwrap();
    link.qps[1].post_read(&ReadRequest { wr_id: 3, sges: &there, remote_addr: start, rkey: region.rkey(), signaled: true, fence: false }).unwrap();
    assert_eq!(link.wait(1, 400_000).unwrap().status, CqeStatus::Success);
    assert_eq!(link.dst.to_vec(0, BYTES), bytes(3));
    assert!(gpu.passed()[0] > reads && gpu.passed()[1] > 0);
    assert_eq!(link.pair.iommu_faults(), 0);

    // The device takes its memory back while it is registered: the request fails, and only it.
    gpu.revoke();
    let passed = gpu.passed();
    link.qps[1].post_send(&write).unwrap();
    assert_eq!(link.wait(1, 2_000_000).unwrap().status, CqeStatus::RemoteOperation);
    assert!(gpu.passed() == passed && link.pair.iommu_faults() > 0);
    let page = region.mapping().iova();
    drop(region);
    assert!(!link.pair.world().cards[0].iommu.is_mapped(0, page));
}
