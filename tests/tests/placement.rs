//! FLUSH and ATOMIC WRITE (IBTA annex A19) on whole cards: what a verbs user sees, and what a hostile peer cannot do.
use ferric_abi::codes::WrOpcode;
use ferric_abi::wire::{feth, opcode, syndrome};
use ferric_driver::qp::{sge, Payload};
use ferric_driver::types::Mtu;
use ferric_driver::{Access, AtomicOp, AtomicRequest, AtomicWriteRequest, CqeOpcode, CqeStatus, FlushRequest, Flushed, QpConfig, QpState, SendRequest};
use ferric_sim::fabric::Fate;
use ferric_tests::pair::{Linked, Wire};
use ferric_tests::strangers::{packet, reth, Between};
use std::sync::{Arc, Mutex};

const PATIENCE: u64 = 600_000;
const BYTES: usize = 16_384;

fn linked(wire: &Wire) -> Linked {
    let pattern: Vec<u8> = (0..BYTES as u32).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    Linked::new(&QpConfig::default(), wire, &pattern).unwrap()
}

/// Requests as they are right.
fn flush(l: &Linked, wr_id: u64, what: Flushed) -> FlushRequest {
    FlushRequest { wr_id, what, global: true, persistent: false, remote_addr: l.dst.addr(), rkey: l.dst.rkey(), signaled: true, fence: false }
}

fn store(l: &Linked, wr_id: u64, value: u64, at: usize) -> AtomicWriteRequest {
    AtomicWriteRequest { wr_id, value: value.to_le_bytes(), remote_addr: l.dst.addr() + at as u64, rkey: l.dst.rkey(), signaled: true, fence: false }
}

fn write(l: &mut Linked, wr_id: u64, len: usize, at: usize, signaled: bool) {
    let from = [sge(l.src.addr(), len as u32, l.src.lkey())];
    let (remote_addr, rkey) = (l.dst.addr() + at as u64, l.dst.rkey());
    l.qps[0].post_send(&SendRequest { wr_id, opcode: WrOpcode::Write, payload: Payload::Sges(&from), remote_addr, rkey, imm: 0, signaled, solicited: false }).unwrap();
}

fn add(l: &mut Linked, wr_id: u64, at: usize) {
    let sges = [sge(l.src.addr(), 8, l.src.lkey())];
    l.qps[0].post_atomic(&AtomicRequest { wr_id, op: AtomicOp::FetchAdd(1), sges: &sges, remote_addr: l.dst.addr() + at as u64, rkey: l.dst.rkey(), signaled: true, fence: false }).unwrap();
}

fn word(l: &Linked, at: usize) -> u64 {
    u64::from_le_bytes(l.dst.to_vec(at, 8).try_into().unwrap())
}

/// When a FLUSH is complete what was written before is there, and nothing of it has been acknowledged but by the FLUSH.
#[test]
fn what_was_written_before_a_flush_is_there_when_it_is_complete() {
    let mut l = linked(&Wire { mtu: Mtu::M1024, psn: [0xff_fff8, 0x10], ..Default::default() });
    for (n, what) in [Flushed::Range(5000), Flushed::Region, Flushed::Range(0), Flushed::Range(1)].into_iter().enumerate() {
        let at = 256 * n + 1;
        write(&mut l, 1, 9001, at, false);
        let request = flush(&l, 2, what);
        // The address of a whole region may be any.
        let request = if what == Flushed::Region { FlushRequest { remote_addr: !0, ..request } } else { request };
        l.qps[0].post_flush(&request).unwrap();
        let c = l.wait(0, PATIENCE).unwrap();
        assert_eq!((c.wr_id, c.status, c.opcode), (2, CqeStatus::Success, CqeOpcode::Flush), "{what:?}");
        assert!(l.dst.to_vec(at, 9001) == l.src.to_vec(0, 9001), "{what:?}");
    }
    assert_eq!(l.pair.iommu_faults(), 0);
}

/// 8 bytes at once, in order with WRITEs and atomics on the same word, whichever answers are lost; each is executed once.
#[test]
fn an_atomic_write_is_executed_once_and_in_order() {
    const AT: usize = 4096 - 8;
    for lost in [0u64, 1, 2, 4] {
        let mut l = linked(&Wire { timeout: 8, ..Default::default() });
        let mut seen = 0;
        l.pair.world().links[1].set_hook(Some(Box::new(move |_, _| {
            seen += 1;
            (seen == lost).then_some(Fate::Dropped)
        })));
        write(&mut l, 0, 8, AT, true);
        let wrs = [store(&l, 1, 0x1122_3344_5566_7788, AT), store(&l, 3, 40, AT)];
        l.qps[0].post_atomic_write(&wrs[0]).unwrap();
        add(&mut l, 2, AT);
        l.qps[0].post_atomic_write(&wrs[1]).unwrap();
        for n in 4..=5 {
            add(&mut l, n, AT);
        }
        let last = flush(&l, 6, Flushed::Range(64));
        l.qps[0].post_flush(&last).unwrap();
        for n in 0..=6 {
            let c = l.wait(0, PATIENCE).unwrap();
            let opcode = [CqeOpcode::Write, CqeOpcode::AtomicWrite, CqeOpcode::FetchAdd, CqeOpcode::AtomicWrite, CqeOpcode::FetchAdd, CqeOpcode::FetchAdd, CqeOpcode::Flush][n];
            assert_eq!((c.wr_id, c.status, c.opcode), (n as u64, CqeStatus::Success, opcode), "answer {lost} lost");
        }
        assert_eq!(word(&l, AT), 42, "answer {lost} lost");
    }
}

/// More at once than the peer grants wait at home; a fence waits for them.
#[test]
fn they_count_as_reads_and_atomics_do() {
    let mut l = linked(&Wire { max_dest_rd_atomic: 16, ..Default::default() });
    for n in 0..40u64 {
        if n % 2 == 0 {
            let wr = store(&l, n, n, 8 * (n as usize % 4));
            l.qps[0].post_atomic_write(&wr).unwrap();
        } else {
            let wr = FlushRequest { fence: n % 3 == 0, ..flush(&l, n, Flushed::Region) };
            l.qps[0].post_flush(&wr).unwrap();
        }
    }
    for n in 0..40 {
        let c = l.wait(0, PATIENCE).unwrap();
        assert_eq!((c.wr_id, c.status), (n, CqeStatus::Success));
    }
    assert_eq!([word(&l, 0), word(&l, 16)], [36, 38]);
}

/// What a request may not do ends both queue pairs with the answer of the protocol; nothing has been written.
#[test]
fn what_may_not_be_done_is_refused() {
    use CqeStatus::{RemoteAccess, RemoteInvalidRequest, Success, WrFlush};
    let mut l = linked(&Wire::default());
    let closed = l.pair.hosts[1].region(4096, Access { remote_flush: false, remote_write: false, ..Access::ALL }).unwrap();
    let end = l.dst.addr() + BYTES as u64;
    let fine = flush(&l, 1, Flushed::Range(100));
    let whole = flush(&l, 1, Flushed::Region);
    let flushes = [
        (Access::ALL, fine, Success),
        (Access::ALL, FlushRequest { rkey: fine.rkey ^ 1, ..fine }, RemoteAccess),
        (Access::ALL, FlushRequest { rkey: fine.rkey ^ 1, ..whole }, RemoteAccess),
        (Access::ALL, FlushRequest { remote_addr: end - 99, ..fine }, RemoteAccess),
        (Access::ALL, FlushRequest { remote_addr: end, what: Flushed::Range(0), ..fine }, Success),
        (Access::ALL, FlushRequest { remote_addr: end + 1, what: Flushed::Range(0), ..fine }, RemoteAccess),
        (Access::ALL, FlushRequest { remote_addr: 0, ..fine }, RemoteAccess),
        (Access::ALL, FlushRequest { what: Flushed::Range(0x8000_0001), ..fine }, RemoteInvalidRequest),
        (Access::ALL, FlushRequest { rkey: closed.rkey(), ..whole }, RemoteAccess),
        (Access::ALL, FlushRequest { persistent: true, ..fine }, RemoteAccess),
        (Access::ALL, FlushRequest { global: false, persistent: true, ..whole }, RemoteAccess),
        (Access::ALL, FlushRequest { global: false, ..fine }, RemoteInvalidRequest),
        (Access { remote_flush: false, ..Access::ALL }, whole, RemoteInvalidRequest),
    ];
    for (access, request, status) in flushes {
        l.qps = l.pair.connected(&QpConfig::default(), &Wire { access, ..Default::default() }, [&l.cqs[0], &l.cqs[1]]).unwrap();
        l.qps[0].post_flush(&request).unwrap();
        l.qps[0].post_flush(&FlushRequest { wr_id: 2, ..fine }).unwrap();
        let got = [0; 2].map(|_| l.wait(0, PATIENCE).unwrap()).map(|c| (c.wr_id, c.status));
        assert_eq!(got, [(1, status), (2, if status == Success { Success } else { WrFlush })], "{request:?}");
    }
    let fine = store(&l, 1, !0, 64);
    let writes = [
        (Access::ALL, AtomicWriteRequest { remote_addr: fine.remote_addr + 4, ..fine }, RemoteInvalidRequest),
        (Access::ALL, AtomicWriteRequest { rkey: fine.rkey ^ 1, ..fine }, RemoteAccess),
        (Access::ALL, AtomicWriteRequest { remote_addr: end.next_multiple_of(8), ..fine }, RemoteAccess),
        (Access::ALL, AtomicWriteRequest { remote_addr: closed.addr().next_multiple_of(8), rkey: closed.rkey(), ..fine }, RemoteAccess),
        (Access { remote_write: false, ..Access::ALL }, fine, RemoteAccess),
    ];
    for (access, request, status) in writes {
        l.qps = l.pair.connected(&QpConfig::default(), &Wire { access, ..Default::default() }, [&l.cqs[0], &l.cqs[1]]).unwrap();
        l.qps[0].post_atomic_write(&request).unwrap();
        l.qps[0].post_atomic_write(&AtomicWriteRequest { wr_id: 2, ..fine }).unwrap();
        let got = [0; 2].map(|_| l.wait(0, PATIENCE).unwrap()).map(|c| (c.wr_id, c.status));
        assert_eq!(got, [(1, status), (2, WrFlush)], "{request:?}");
    }
    assert!(l.dst.to_vec(0, BYTES) == vec![0; BYTES] && closed.to_vec(0, 4096) == vec![0; 4096]);
    assert_eq!(l.pair.iommu_faults(), 0);
}

/// Opcode, PSN and syndrome of each answer that card 1 sends from now on, behind Ethernet, IPv4 and UDP; `fate` is what becomes of it.
fn overhears(l: &Linked, fate: Option<Fate>) -> Arc<Mutex<Vec<(u8, u32, u8)>>> {
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = said.clone();
    l.pair.world().links[1].set_hook(Some(Box::new(move |_, frame: &[u8]| {
        heard.lock().unwrap().push((frame[42], u32::from_be_bytes(frame[50..54].try_into().unwrap()) & 0xff_ffff, frame[54]));
        fate
    })));
    said
}

/// Packets that no requester of ours would send, from the peer's own addresses.
#[test]
fn packets_that_are_not_well_formed_change_nothing() {
    let wire = Wire::default();
    let mut l = linked(&wire);
    let between = Between::of(&l.pair, &wire, 0);
    let (va, key, psn) = (l.dst.addr() + 64, l.dst.rkey(), wire.psn[0]);
    let fetch = |bits: u32, len: u32| [&bits.to_be_bytes()[..], &reth(va, key, len)].concat();
    let bytes = [0xee; 64];
    // Opcode, headers, payload, and whether the queue pair ends (with NAK invalid request, or remote access) or has not even seen it.
    let cases: Vec<(u8, Vec<u8>, usize, u8)> = vec![
        (opcode::ATOMIC_WRITE, reth(va, key, 8), 0, syndrome::NAK_INVALID),
        (opcode::ATOMIC_WRITE, reth(va, key, 4), 4, syndrome::NAK_INVALID),
        (opcode::ATOMIC_WRITE, reth(va, key, 7), 7, syndrome::NAK_INVALID),
        (opcode::ATOMIC_WRITE, reth(va, key, 16), 16, syndrome::NAK_INVALID),
        (opcode::ATOMIC_WRITE, reth(va, key, 16), 8, syndrome::NAK_INVALID),
        (opcode::ATOMIC_WRITE, reth(va, key, 0), 8, syndrome::NAK_INVALID),
        (opcode::ATOMIC_WRITE, reth(va + 1, key, 8), 8, syndrome::NAK_INVALID),
        (opcode::ATOMIC_WRITE, vec![0; 12], 0, 0),
        (opcode::FLUSH, fetch(feth::GLOBAL, 64), 4, syndrome::NAK_INVALID),
        (opcode::FLUSH, fetch(feth::GLOBAL | feth::RESERVED, 64), 0, syndrome::NAK_INVALID),
        (opcode::FLUSH, fetch(0, 64), 0, syndrome::NAK_INVALID),
        (opcode::FLUSH, fetch(4, 64), 0, syndrome::NAK_INVALID),
        (opcode::FLUSH, fetch(feth::PERSISTENT | feth::WHOLE, 64), 0, syndrome::NAK_ACCESS),
        (opcode::FLUSH, vec![0; 16], 0, 0),
    ];
    for (opcode, headers, payload, nak) in cases {
        l.qps = l.pair.connected(&QpConfig::default(), &wire, [&l.cqs[0], &l.cqs[1]]).unwrap();
        let said = overhears(&l, None);
        l.pair.world().cards[1].receive(between.frame(&packet(opcode, l.qps[1].qpn(), psn, &headers, &bytes[..payload])));
        l.pair.world().run(3000);
        let want = if nak == 0 { vec![] } else { vec![(opcode::ACKNOWLEDGE, psn, nak)] };
        assert_eq!(*said.lock().unwrap(), want, "opcode {opcode:#x}, {payload} bytes, {headers:x?}");
        let state = if nak == 0 { QpState::Rts } else { QpState::Error };
        assert_eq!(l.qps[1].query().unwrap().responder_state, state);
        l.pair.world().links[1].set_hook(None);
    }
    assert!(l.dst.to_vec(0, BYTES) == vec![0; BYTES]);
    assert_eq!(l.pair.iommu_faults(), 0);
}

/// A duplicate is answered, under its own PSN, and has no effect: not even one that says something else than the first time.
#[test]
fn duplicates_are_answered_and_not_executed() {
    let wire = Wire::default();
    let mut l = linked(&wire);
    let between = Between::of(&l.pair, &wire, 0);
    let psn = wire.psn[0];
    let wr = store(&l, 1, 7, 64);
    l.qps[0].post_atomic_write(&wr).unwrap();
    let request = flush(&l, 2, Flushed::Region);
    l.qps[0].post_flush(&request).unwrap();
    assert_eq!([0; 2].map(|_| l.wait(0, PATIENCE).unwrap().status), [CqeStatus::Success; 2]);
    let (said, qpn) = (overhears(&l, Some(Fate::Dropped)), l.qps[1].qpn());
    let (va, key) = (l.dst.addr() + 64, l.dst.rkey());
    let again = |opcode, n: u32, headers: &[u8], payload: &[u8]| between.frame(&packet(opcode, qpn, psn + n, headers, payload));
    let frames = [
        again(opcode::ATOMIC_WRITE, 0, &reth(va, key, 8), &[0xee; 8]),
        // Its key is not asked for any more.
        again(opcode::ATOMIC_WRITE, 0, &reth(va, key ^ 1, 8), &[0xee; 8]),
        again(opcode::FLUSH, 1, &[&(feth::GLOBAL | feth::WHOLE).to_be_bytes()[..], &reth(0, key ^ 1, 0)].concat(), &[]),
    ];
    for (n, frame) in frames.into_iter().enumerate() {
        l.pair.world().cards[1].receive(frame);
        l.pair.world().run(2000);
        assert_eq!(said.lock().unwrap().pop(), Some((opcode::READ_RESPONSE_ONLY, psn + n as u32 / 2, syndrome::ACK)), "duplicate {n}");
    }
    l.pair.world().links[1].set_hook(None);
    assert_eq!(word(&l, 64), 7);
    // The connection goes on.
    let wr = store(&l, 3, 8, 64);
    l.qps[0].post_atomic_write(&wr).unwrap();
    assert_eq!(l.wait(0, PATIENCE).unwrap().status, CqeStatus::Success);
    assert_eq!(word(&l, 64), 8);
}

/// Either end is reset while they are under way; the next life owes nothing to the former one.
#[test]
fn a_reset_in_the_midst_leaves_nothing_behind() {
    let mut l = linked(&Wire { timeout: 8, ..Default::default() });
    for cycles in [40, 160, 240, 320, 480, 700] {
        for n in 0..8 {
            let (value, whole) = (store(&l, n, 1 + n, 8 * n as usize), flush(&l, n, Flushed::Region));
            if n % 2 == 0 {
                l.qps[0].post_atomic_write(&value).unwrap();
            } else {
                l.qps[0].post_flush(&whole).unwrap();
            }
        }
        l.pair.world().run(cycles);
        let first = cycles as usize % 3 / 2;
        l.qps[first].to_reset().unwrap();
        l.qps[1 - first].to_reset().unwrap();
        while l.cqs[0].poll().is_some() {}
        // PSNs far from the former ones: what is still on the wire is not of this life.
        let wire = Wire { timeout: 8, psn: [cycles as u32 * 1000, 7], ..Default::default() };
        let [a, b] = &mut l.qps;
        l.pair.connect(&wire, a, b).unwrap();
        for n in 0..3u64 {
            let wr = store(&l, 100 + n, cycles << 8 | n, 8 * n as usize);
            l.qps[0].post_atomic_write(&wr).unwrap();
        }
        let last = flush(&l, 200, Flushed::Range(8));
        l.qps[0].post_flush(&last).unwrap();
        for wr_id in [100, 101, 102, 200] {
            let c = l.wait(0, PATIENCE).unwrap();
            assert_eq!((c.wr_id, c.status), (wr_id, CqeStatus::Success), "{cycles} cycles");
        }
        assert_eq!([0, 1, 2].map(|n| word(&l, 8 * n)), [0, 1, 2].map(|n| cycles << 8 | n));
    }
    assert_eq!(l.pair.iommu_faults(), 0);
}
