//! The right work request, whole, for whoever asks; buffers come round.

use super::WqeAgainUnit;
use crate::host::testing::{memory, SmallReads};
use crate::msg::{CtlReq, WqeAgain, WqeData, WqeFree, WqeHandle, WqeRead};
use crate::tb::{Fields, Tb};
use ferric_abi::context::RingCtx;
use std::collections::VecDeque;

#[test]
fn requests_are_fetched_from_their_ring() {
    for (seed, stall) in [(1, 0), (2, 40)] {
        let mut tb = Tb::with_seed("again", WqeAgainUnit::<4>::default(), seed);
        let mut reads = SmallReads::new(tb.sink("m_rd", stall), tb.source("s_rd", 0));
        let (want, handles) = (tb.source("s_want", stall), tb.sink("m_handle", stall));
        let (read, data, free) = (tb.source("s_read", stall), tb.sink("m_read", stall), tb.source("s_free", stall));
        tb.run(40);
        let ctl = Fields::of::<CtlReq>();
        let rings: Vec<RingCtx> = (0..16)
            .map(|_| {
                let rng = tb.rng();
                RingCtx::default().with_base(rng.next_u64() >> 8 << 9).with_function(rng.below(4096) as u16).with_log_size(rng.range(1, 15) as u8).with_stride(rng.below(4) as u8)
            })
            .collect();
        for (line, ring) in rings.iter().enumerate() {
            // Other words, and reads, say nothing about where the ring lies.
            for (word, write) in [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (0, 0), (2, 0)] {
                let at = 4 * word as usize;
                let value = u32::from_le_bytes(ring.0[at..at + 4].try_into().unwrap());
                let value = if word < 3 && write == 1 { value } else { tb.rng().next_u32() };
                tb.set_wide("ctl", ctl.pack(&[("line", line as u128), ("word", word), ("write", write), ("data", value.into())]));
                tb.set("ctl_valid", 1);
                tb.run(2);
                tb.set("ctl_valid", 0);
            }
        }
        let mut asked = VecDeque::new();
        let mut held: VecDeque<(u128, u64, u32)> = VecDeque::new();
        let mut expected: VecDeque<(Vec<u32>, bool)> = VecDeque::new();
        let (mut done, mut sent) = (0, 0);
        while done < 300 {
            assert!(tb.cycles() < 100_000, "seed {seed}: {done} of 300");
            if sent < 300 && tb.rng().percent(30) {
                let (qpn, index) = (tb.rng().below(16) as usize, tb.rng().next_u32() as u16);
                let slot = u64::from(index) & ((1 << rings[qpn].log_size()) - 1);
                let rows = 1 << rings[qpn].stride();
                asked.push_back((rings[qpn].base().wrapping_add(slot * 64 * rows), rows as u32));
                want.push(Fields::of::<WqeAgain>().pack(&[("qpn", qpn as u128), ("index", index.into())]));
                sent += 1;
            }
            tb.cycle();
            reads.step(&mut tb);
            while let Some(handle) = handles.pop() {
                let (iova, rows) = asked.pop_front().expect("an answer per question");
                held.push_back((Fields::of::<WqeHandle>().get(&handle, "handle"), iova, rows));
            }
            if !held.is_empty() && expected.is_empty() && tb.rng().percent(20) {
                let at = tb.rng().below(held.len() as u64) as usize;
                let (handle, iova, rows) = held.remove(at).expect("in range");
                for granule in [0, 4 * rows - 1] {
                    read.push(Fields::of::<WqeRead>().pack(&[("handle", handle), ("granule", granule.into())]));
                    let row = memory(iova.wrapping_add(u64::from(granule / 4) * 64));
                    let at = 4 * (granule as usize % 4);
                    expected.push_back((row[at..at + 4].to_vec(), granule > 0));
                }
                expected.back_mut().expect("pushed").1 = true;
                held.push_front((handle, u64::MAX, 0));
            }
            while let Some(answer) = data.pop() {
                let f = Fields::of::<WqeData>();
                let (words, last) = expected.pop_front().expect("an answer per read");
                assert_eq!((f.get_words(&answer, "data"), f.get(&answer, "err")), (words, 0));
                if last {
                    let (handle, mark, _) = held.pop_front().expect("being read");
                    assert_eq!(mark, u64::MAX);
                    free.push(Fields::of::<WqeFree>().pack(&[("handle", handle)]));
                    done += 1;
                }
            }
        }
    }
}
