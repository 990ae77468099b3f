//! Slots, requests and records under stalls.
use super::{Ring, RingSetup};
use crate::msg::{CqeReq, RqAlloc, RqGrant, WqeData, WqeRead, WrDone, WrSmall};
use crate::tb::{Fields, Tb};
use ferric_abi::host::{Cqe, RecvHead, Sge};

fn setup(tb: &mut Tb, base: u32, log_slot: u8, log_count: u8) {
    let layout = Fields::of::<RingSetup>();
    tb.set_wide("setup", layout.pack(&[("valid", 1), ("base", base.into()), ("log_slot", log_slot.into()), ("log_count", log_count.into()), ("key", 0x55)]));
}

#[test]
fn slots_are_handed_out_in_order_until_none_is_left() {
    for stall in [0, 50] {
        let mut tb = Tb::new("target_ring", Ring::default());
        let (alloc, grant) = (tb.source("s_alloc", stall), tb.sink("m_grant", stall));
        let (read, data) = (tb.source("s_read", stall), tb.sink("m_read", stall));
        let g = Fields::of::<RqGrant>();
        alloc.push(Fields::of::<RqAlloc>().zero());
        tb.run_until(1000, |_| grant.len() == 1);
        assert_eq!(g.get(&grant.pop().unwrap(), "ok"), 0, "there is no ring yet");
        setup(&mut tb, 0x3000, 9, 3);
        let (mut head, mut consumer) = (0u16, 0u16);
        for _ in 0..400 {
            let some = tb.rng().below(4) as u16;
            consumer = consumer.wrapping_add(some.min(head.wrapping_sub(consumer)));
            tb.set("consumer", consumer.into());
            tb.cycle();
            alloc.push(Fields::of::<RqAlloc>().zero());
            tb.run_until(1000, |_| grant.len() == 1);
            let got = grant.pop().unwrap();
            let room = head.wrapping_sub(consumer) < 8;
            assert_eq!(g.get(&got, "ok"), u128::from(room));
            if room {
                let slot = u128::from(head % 8);
                assert_eq!((g.get(&got, "index"), g.get(&got, "handle")), (u128::from(head), slot));
                for granule in 0..2 {
                    read.push(Fields::of::<WqeRead>().pack(&[("handle", slot), ("granule", granule)]));
                }
                tb.run_until(1000, |_| data.len() == 2);
                let bytes = || Fields::of::<WqeData>().get(&data.pop().unwrap(), "data").to_le_bytes();
                assert_eq!(RecvHead(bytes()).num_sge(), 1);
                let entry = Sge(bytes());
                assert_eq!((entry.addr(), entry.length(), entry.lkey()), (0x3000 + 512 * slot as u64 + 32, 480, 0x55));
                head = head.wrapping_add(1);
            }
            assert_eq!(tb.get("head"), u64::from(head));
        }
    }
}

#[test]
fn completions_become_records() {
    let mut tb = Tb::new("target_ring", Ring::default());
    setup(&mut tb, 0x8000, 12, 2);
    let (cqe, wr, done) = (tb.source("s_cqe", 20), tb.sink("m_wr", 40), tb.source("s_done", 20));
    let (c, w) = (Fields::of::<CqeReq>(), Fields::of::<WrSmall>());
    for n in 0..40u128 {
        // The event behind a queue pair's last receive is nobody's.
        cqe.push(c.pack(&[("last", 1)]));
        cqe.push(c.pack(&[("wqe_index", n), ("status", n % 3), ("opcode", 16 + n % 2), ("qpn", 3), ("byte_len", 100 + n), ("imm", 7 * n), ("imm_valid", n % 2)]));
    }
    tb.run_until(2000, |_| wr.len() == 40);
    for n in 0..40u128 {
        let words = wr.pop().unwrap();
        assert_eq!((w.get(&words, "iova"), w.get(&words, "len")), (0x8000 + (n % 4) * 4096, 32));
        let bytes: Vec<u8> = w.get_words(&words, "data").iter().flat_map(|w| w.to_le_bytes()).collect();
        let r = Cqe(bytes[..32].try_into().unwrap());
        assert_eq!((u128::from(r.wqe_index()), u128::from(r.status()), u128::from(r.opcode()), r.qpn()), (n, n % 3, 16 + n % 2, 3));
        assert_eq!((u128::from(r.byte_len()), u128::from(r.imm()), r.imm_valid(), r.phase()), (100 + n, 7 * n, n % 2 == 1, n / 4 % 2 == 0));
        done.push(Fields::of::<WrDone>().zero());
    }
    tb.run_until(300, |_| done.pending() == 0);
}
