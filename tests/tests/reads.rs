//! RDMA READ and atomics on whole cards: what a verbs user sees.
use ferric_abi::codes::WrOpcode;
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::Mtu;
use ferric_driver::{AtomicOp, AtomicRequest, CompletionQueue, CqeStatus, MemoryRegion, QpConfig, QueuePair, ReadRequest, RecvRequest, SendRequest};
use ferric_sim::fabric::Fate;
use ferric_tests::pair::{Linked, Pair, Wire};

const PATIENCE: u64 = 600_000;
const BYTES: usize = 65_536;

struct Bench {
    pair: Pair,
    cqs: [CompletionQueue; 2],
    qps: [QueuePair; 2],
    /// Of host 0, where answers go; of host 1, what is read.
    own: MemoryRegion,
    far: MemoryRegion,
}

fn bench(wire: &Wire) -> Bench {
    let Linked { pair, cqs, qps, src, dst } = Linked::new(&QpConfig::default(), wire, &[0; BYTES]).unwrap();
    let pattern: Vec<u8> = (0..BYTES as u32).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    dst.write(0, &pattern);
    Bench { pair, cqs, qps, own: src, far: dst }
}

impl Bench {
    fn read(&mut self, wr_id: u64, to: &[(usize, u32)], from: usize) {
        let sges: Vec<_> = to.iter().map(|(at, len)| sge(self.own.addr() + *at as u64, *len, self.own.lkey())).collect();
        let request = ReadRequest { wr_id, sges: &sges, remote_addr: self.far.addr() + from as u64, rkey: self.far.rkey(), signaled: true, fence: false };
        self.qps[0].post_read(&request).unwrap();
    }
    fn atomic(&mut self, wr_id: u64, op: AtomicOp, to: usize, at: usize) {
        let sges = [sge(self.own.addr() + to as u64, 8, self.own.lkey())];
        let request = AtomicRequest { wr_id, op, sges: &sges, remote_addr: self.far.addr() + at as u64, rkey: self.far.rkey(), signaled: true, fence: false };
        self.qps[0].post_atomic(&request).unwrap();
    }
    fn wait(&mut self, host: usize) -> (u64, CqeStatus) {
        let c = self.pair.wait(&mut self.cqs[host], PATIENCE).unwrap();
        (c.wr_id, c.status)
    }
    fn has(&self, to: usize, from: usize, len: usize) -> bool {
        self.own.to_vec(to, len) == self.far.to_vec(from, len) && self.pair.iommu_faults() == 0
    }
    fn word(&self, region: &MemoryRegion, at: usize) -> u64 {
        u64::from_le_bytes(region.to_vec(at, 8).try_into().unwrap())
    }
}

#[test]
fn bytes_come_from_anywhere_to_anywhere() {
    for mtu in [Mtu::M256, Mtu::M1024, Mtu::M4096] {
        let mut b = bench(&Wire { mtu, psn: [0xff_fff0, 0x10], ..Default::default() });
        for (n, len) in [0u32, 1, 3, 64, 255, 256, 1024, 1025, 4096, 5000, 12_289].into_iter().enumerate() {
            let (to, from) = (7 * n + 4090, 13 * n + 1);
            b.read(n as u64, &[(to, len)], from);
            assert_eq!(b.wait(0), (n as u64, CqeStatus::Success));
            assert!(b.has(to, from, len as usize), "{len} bytes");
        }
        // A list, and several at once.
        for n in 0..6 {
            b.read(100 + n, &[(32_768 + 5000 * n as usize, 1), (32_769 + 5000 * n as usize, 2100), (34_869 + 5000 * n as usize, 1400)], 3500 * n as usize);
        }
        for n in 0..6 {
            assert_eq!(b.wait(0), (100 + n, CqeStatus::Success));
            assert!(b.has(32_768 + 5000 * n as usize, 3500 * n as usize, 3501));
        }
    }
}

#[test]
fn atomics_change_and_tell() {
    let mut b = bench(&Wire::default());
    b.far.write(800, &41u64.to_le_bytes());
    b.atomic(1, AtomicOp::FetchAdd(u64::MAX), 0, 800);
    b.atomic(2, AtomicOp::CompareSwap { compare: 40, swap: 0x1122_3344_5566_7788 }, 11, 800);
    b.atomic(3, AtomicOp::CompareSwap { compare: 40, swap: 5 }, 4093, 800);
    for n in 1..=3 {
        assert_eq!(b.wait(0), (n, CqeStatus::Success));
    }
    assert_eq!([b.word(&b.own, 0), b.word(&b.own, 11), b.word(&b.own, 4093)], [41, 40, 0x1122_3344_5566_7788]);
    assert_eq!(b.word(&b.far, 800), 0x1122_3344_5566_7788);
}

/// One queue pair adds to some words without pause, another writes them: a write that has been acknowledged is never undone by an addition that had
/// read the word before (9.4.5, and beyond it: the card keeps its own writes away).
#[test]
fn a_write_does_not_vanish_in_an_atomic() {
    const AT: usize = 8 * 77;
    const WORDS: u64 = 8;
    let mut b = bench(&Wire::default());
    b.far.write(AT, &[0; 8 * WORDS as usize]);
    let mut others = [b.pair.hosts[0].cq(16).unwrap(), b.pair.hosts[1].cq(16).unwrap()];
    let mut writer = b.pair.connected(&QpConfig::default(), &Wire::default(), [&others[0], &others[1]]).unwrap();
    let (mut posted, mut done) = (0u64, 0u64);
    let add = |b: &mut Bench, n: u64| b.atomic(n, AtomicOp::FetchAdd(1), n as usize % 16 * 8, AT + (n % WORDS) as usize * 8);
    for n in 1..=60u64 {
        b.own.write(4096, &(n << 32).to_le_bytes());
        let from = [sge(b.own.addr() + 4096, 8, b.own.lkey())];
        let (before, mut sent, mut written) = (done, 0, 0);
        while written < WORDS {
            // In the midst of additions, each at another moment of them.
            if sent < WORDS && done > before + 3 * sent {
                let remote_addr = b.far.addr() + AT as u64 + 8 * sent;
                writer[0]
                    .post_send(&SendRequest { wr_id: sent, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr, rkey: b.far.rkey(), imm: 0, signaled: true, solicited: false })
                    .unwrap();
                sent += 1;
            }
            while posted < done + 14 {
                add(&mut b, posted);
                posted += 1;
            }
            if let Some(c) = b.cqs[0].poll() {
                assert_eq!((c.wr_id, c.status), (done, CqeStatus::Success));
                done += 1;
            } else if let Some(c) = others[0].poll() {
                assert_eq!((c.wr_id, c.status), (written, CqeStatus::Success));
                written += 1;
            } else {
                others[0].relax();
            }
        }
        // Additions that begin now meet the words as written, and changed by additions only.
        while done < posted {
            assert_eq!(b.wait(0), (done, CqeStatus::Success));
            done += 1;
        }
        for _ in 0..WORDS {
            add(&mut b, posted);
            assert_eq!(b.wait(0), (posted, CqeStatus::Success));
            let last = b.word(&b.own, posted as usize % 16 * 8);
            assert_eq!(last >> 32, n, "write {n} of word {} is gone: {last:#x}", posted % WORDS);
            assert!((last & 0xffff_ffff) < posted && b.word(&b.far, AT + (posted % WORDS) as usize * 8) == last + 1);
            posted += 1;
            done += 1;
        }
    }
    assert_eq!(b.pair.iommu_faults(), 0);
}

/// A fenced SEND carries what the READ before it has brought.
#[test]
fn a_fence_waits_for_the_bytes() {
    let mut b = bench(&Wire::default());
    let into = [sge(b.far.addr() + 40_000, 9000, b.far.lkey())];
    b.qps[1].post_recv(&RecvRequest { wr_id: 9, sges: &into }).unwrap();
    b.read(1, &[(100, 9000)], 5);
    let from = [sge(b.own.addr() + 100, 9000, b.own.lkey())];
    let send = SendRequest { wr_id: 2, opcode: WrOpcode::Send, payload: Payload::Sges(&from), remote_addr: 0, rkey: 0, imm: 0, signaled: true, solicited: false };
    b.qps[0].post_send_fenced(&send).unwrap();
    assert_eq!(b.wait(0), (1, CqeStatus::Success));
    assert_eq!(b.wait(0), (2, CqeStatus::Success));
    assert_eq!(b.wait(1), (9, CqeStatus::Success));
    assert_eq!(b.far.to_vec(40_000, 9000), b.far.to_vec(5, 9000));
}

#[test]
fn lost_answers_are_asked_for_again() {
    for lost in [1u64, 3, 6] {
        let mut b = bench(&Wire { mtu: Mtu::M1024, timeout: 8, ..Default::default() });
        let mut seen = 0;
        b.pair.world().links[1].set_hook(Some(Box::new(move |_, _| {
            seen += 1;
            (seen == lost).then_some(Fate::Dropped)
        })));
        b.read(1, &[(0, 6000)], 9);
        b.atomic(2, AtomicOp::FetchAdd(1), 8000, 16_000);
        b.read(3, &[(10_000, 100)], 16_000);
        for n in 1..=3 {
            assert_eq!(b.wait(0), (n, CqeStatus::Success), "answer {lost} lost");
        }
        assert!(b.has(0, 9, 6000) && b.has(10_000, 16_000, 100));
        assert_eq!(b.word(&b.own, 8000).wrapping_add(1), b.word(&b.far, 16_000), "executed once");
    }
}

/// The peer grants fewer than are asked for at once: those it granted are answered, the next one ends both queue pairs.
#[test]
fn more_than_was_granted_is_an_invalid_request() {
    let mut b = bench(&Wire { mtu: Mtu::M256, max_dest_rd_atomic: 3, ..Default::default() });
    // One behind the other is what is granted, again and again.
    for n in 0..40 {
        if n % 2 == 0 {
            b.read(n, &[(0, 3000)], 0);
        } else {
            b.atomic(n, AtomicOp::FetchAdd(1), 8000, 16_000);
        }
        assert_eq!(b.wait(0), (n, CqeStatus::Success));
    }
    for n in 0..6 {
        b.read(100 + n, &[(4000 * n as usize, 4000)], 100 * n as usize);
    }
    use CqeStatus::{RemoteInvalidRequest, Success, WrFlush};
    for (n, status) in (100..).zip([Success, Success, Success, RemoteInvalidRequest, WrFlush, WrFlush]) {
        assert_eq!(b.wait(0), (n, status));
    }
    for n in 0..3 {
        assert!(b.has(4000 * n, 100 * n, 4000));
    }
    assert_eq!(b.qps[1].query().unwrap().responder_state, ferric_driver::QpState::Error);
}

#[test]
fn what_may_not_be_read_is_refused() {
    let mut b = bench(&Wire::default());
    let sges = [sge(b.own.addr(), 100, b.own.lkey())];
    let request = ReadRequest { wr_id: 1, sges: &sges, remote_addr: b.far.addr(), rkey: b.far.rkey() ^ 1, signaled: true, fence: false };
    b.qps[0].post_read(&request).unwrap();
    b.read(2, &[(0, 10)], 0);
    assert_eq!(b.wait(0), (1, CqeStatus::RemoteAccess));
    assert_eq!(b.wait(0), (2, CqeStatus::WrFlush));
    assert_eq!(b.own.to_vec(0, 100), vec![0; 100]);
}

#[test]
fn answers_that_may_not_be_placed_end_the_queue_pair() {
    let mut b = bench(&Wire::default());
    b.read(1, &[(0, 5000)], 0);
    let sges = [sge(b.own.addr(), 100, b.own.lkey() ^ 0x80)];
    let request = ReadRequest { wr_id: 2, sges: &sges, remote_addr: b.far.addr(), rkey: b.far.rkey(), signaled: true, fence: false };
    b.qps[0].post_read(&request).unwrap();
    b.read(3, &[(6000, 10)], 0);
    assert_eq!(b.wait(0), (1, CqeStatus::Success));
    assert_eq!(b.wait(0), (2, CqeStatus::LocalProtection));
    assert_eq!(b.wait(0), (3, CqeStatus::WrFlush));
    assert!(b.has(0, 0, 5000));
}
