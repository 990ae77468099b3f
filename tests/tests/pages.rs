//! Regions whose page tables have pages of 4 KiB, 2 MiB and 1 GiB, up to a tebibyte, on whole cards.
use ferric_abi::codes::WrOpcode;
use ferric_driver::mapping::PageSize;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::{Access, CqeOpcode, CqeStatus, QpConfig, ReadRequest, SendRequest};
use ferric_tests::pair::{Linked, Wire};
use memmap2::{Advice, MmapMut, MmapOptions};
use rand::{rngs::StdRng, Rng, SeedableRng};

const BYTES: usize = 9000;
const PATIENCE: u64 = 400_000;

/// Address space without memory behind it until it is touched.
fn reserved(len: usize) -> MmapMut {
    let memory = MmapOptions::new().len(len).no_reserve_swap().map_anon().unwrap_or_else(|e| panic!("{len} bytes: {e}"));
    // Every touch costs a page of 4 KiB, not a huge one.
    memory.advise(Advice::NoHugePage).unwrap_or_else(|e| panic!("{e}"));
    memory
}

fn write(link: &mut Linked, to: u64, rkey: u32) -> CqeStatus {
    let from = [sge(link.src.addr(), BYTES as u32, link.src.lkey())];
    let request = SendRequest { wr_id: 1, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr: to, rkey, imm: 0, signaled: true, solicited: false };
    link.qps[0].post_send(&request).unwrap();
    link.wait(0, PATIENCE).unwrap().status
}

fn bytes(n: u64) -> Vec<u8> {
    (0..BYTES as u64).map(|i| (i * 7 + (i >> 8) + n * 31) as u8).collect()
}

/// Written by the peer and read back, at both ends, across the borders of pages and in between; one byte behind the end is refused.
#[test]
fn pages_of_every_size_reach_a_tebibyte() {
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    for (together, len, size) in [(4096, 8 * MIB, PageSize::Small), (2 * MIB, 64 * GIB, PageSize::Large), (GIB, 1 << 40, PageSize::Huge)] {
        let mut link = Linked::new(&QpConfig::default(), &Wire::default(), &bytes(0)).unwrap();
        link.pair.world().cards[1].iommu.keep_together(together);
        // Not where a page begins, neither for the process nor for peers.
        let mut memory = reserved((len + GIB) as usize);
        let ptr = memory.as_mut_ptr().wrapping_add(5 * 4096 + 123);
        let start = ptr as u64 % GIB + 3 * GIB;
        // SAFETY: the memory outlives the region.
        let region = unsafe { link.pair.hosts[1].pd.register_raw(ptr, len as usize, start, Access::ALL) }.unwrap();
        assert_eq!(region.page_size(), size);
        let mut rng = StdRng::seed_from_u64(len);
        let border = |page: u64| (start + page * size.bytes()).next_multiple_of(size.bytes()) - start;
        let mut places = vec![0, len - BYTES as u64, border(0) - 17, border(len / size.bytes() - 8) - 4096];
        places.extend((0..6).map(|_| rng.gen_range(0..len - BYTES as u64)));
        for (n, at) in places.into_iter().enumerate() {
            link.src.write(0, &bytes(n as u64));
            assert_eq!(write(&mut link, start + at, region.rkey()), CqeStatus::Success, "{size:?} at {at:#x}");
            assert!(region.to_vec(at as usize, BYTES) == bytes(n as u64), "{size:?}: the bytes of {at:#x} went elsewhere");
            link.src.write(0, &[0; BYTES]);
            let into = [sge(link.src.addr(), BYTES as u32, link.src.lkey())];
            link.qps[0].post_read(&ReadRequest { wr_id: 2, sges: &into, remote_addr: start + at, rkey: region.rkey(), signaled: true, fence: false }).unwrap();
            assert_eq!(link.wait(0, PATIENCE).unwrap().status, CqeStatus::Success, "{size:?} at {at:#x}");
            assert!(link.src.to_vec(0, BYTES) == bytes(n as u64), "{size:?}: other bytes than those of {at:#x}");
        }
        assert_eq!(write(&mut link, start + len - BYTES as u64 + 1, region.rkey()), CqeStatus::RemoteAccess, "{size:?}");
        assert_eq!(link.pair.iommu_faults(), 0);
    }
}

/// Parts of a region in huge pages are registered one after the other: each table lists the large pages of its part.
#[test]
fn large_pages_are_registered_by_work_requests() {
    const PART: usize = 3 << 20;
    let mut link = Linked::new(&QpConfig::default(), &Wire { ..Default::default() }, &bytes(0)).unwrap();
    link.pair.world().cards[1].iommu.keep_together(2 << 20);
    let mut region = link.pair.hosts[1].pd.alloc_fast(vec![0; 4 * PART].into_boxed_slice()).unwrap();
    assert_eq!(region.memory().page_size(), PageSize::Large);
    for n in 0..4 {
        let range = n * PART + 77..(n + 1) * PART;
        let key = link.qps[1].post_register(1, &mut region, range.clone(), Access::ALL, true).unwrap();
        let c = link.wait(1, PATIENCE).unwrap();
        assert_eq!((c.opcode, c.status), (CqeOpcode::RegMr, CqeStatus::Success));
        link.src.write(0, &bytes(n as u64));
        for at in [range.start, (range.start + range.end) / 2, range.end - BYTES] {
            assert_eq!(write(&mut link, region.memory().addr() + at as u64, key), CqeStatus::Success, "part {n} at {at}");
            assert!(region.memory().to_vec(at, BYTES) == bytes(n as u64), "part {n}: the bytes of {at} went elsewhere");
        }
        link.qps[1].post_local_invalidate(2, key, true).unwrap();
        assert_eq!(link.wait(1, PATIENCE).unwrap().status, CqeStatus::Success);
    }
    assert_eq!(link.pair.iommu_faults(), 0);
}
