//! Keys name a line by 24 bits, and no line stands under another number.
use super::tests::line_writes;
use super::MemoryKeys;
use crate::msg::{CtlReq, MrChange, MrChanged, MrReq, MrResp};
use crate::tb::{Fields, Tb};
use ferric_abi::context::MrCtx;

/// Of 16 lines the fifth holds a region: its key works, and none with a further bit in the number does, for access or for invalidation.
#[test]
fn every_bit_of_a_number_counts() {
    let mut tb = Tb::new("mr", MemoryKeys::<4, 9, 4>::default());
    let (req, resp, ctl) = (Fields::of::<MrReq>(), Fields::of::<MrResp>(), Fields::of::<CtlReq>());
    let (change, changed) = (Fields::of::<MrChange>(), Fields::of::<MrChanged>());
    let (port, answers) = (tb.source("s_req$1", 0), tb.sink("m_resp$1", 0));
    let (changes, told) = (tb.source("s_change", 0), tb.sink("m_changed", 0));
    let (ctl_req, ctl_resp) = (tb.source("s_ctl", 0), tb.sink("m_ctl", 0));
    let region = MrCtx::default().with_valid(true).with_fast(true).with_remote_write(true).with_direct(true).with_variant(0x5a).with_length(4096).with_pd(7);
    let writes = line_writes(&ctl, 5, &region);
    let count = writes.len();
    writes.into_iter().for_each(|words| ctl_req.push(words));
    tb.run_until(10_000, |_| ctl_resp.len() == count);
    let ask = |tb: &mut Tb, number: u128| {
        port.push(req.pack(&[("key", number << 8 | 0x5a), ("pd", 7), ("chk_len", 64), ("access", 4)]));
        tb.run_until(1000, |_| answers.len() == 1);
        resp.get(&answers.pop().expect("just seen"), "status")
    };
    for bit in 0..24 {
        let number = 5 ^ 1 << bit;
        assert_eq!(ask(&mut tb, number), 1, "a key of number {number:#x}");
        changes.push(change.pack(&[("key", number << 8 | 0x5a), ("pd", 7)]));
        tb.run_until(1000, |_| told.len() == 1);
        assert_eq!(changed.get(&told.pop().expect("just seen"), "status"), 1, "invalidation of number {number:#x}");
        assert_eq!(ask(&mut tb, 5), 0, "the right key still works");
    }
}
