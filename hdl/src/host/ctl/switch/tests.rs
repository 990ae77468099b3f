//! Tables are played by the test: each answers with its own mark.

use super::CtlSwitch;
use crate::msg::{CtlAsk, CtlReq, CtlResp};
use crate::tb::{Fields, Tb};

/// Requests to `N` tables, and nearly a third to any of 256 numbers.
fn find<const N: usize>(name: &str) {
    let mut tb = Tb::new(name, CtlSwitch::<N>::default());
    let (ask, req, resp) = (Fields::of::<CtlAsk>(), Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
    let (master, answers) = (tb.source("s_req", 30), tb.sink("m_resp", 30));
    let tables: Vec<_> = (0..N).map(|i| (tb.sink(&format!("m_req${i}"), 40), tb.source(&format!("s_resp${i}"), 40))).collect();
    let mut expected = Vec::new();
    for _ in 0..400 {
        let table = if tb.rng().percent(30) { tb.rng().below(256) as usize } else { tb.rng().below(N as u64) as usize };
        let word = tb.rng().next_u32();
        let values = [("table", table as u128), ("line", (word >> 8).into()), ("word", (word & 63).into()), ("data", word.into())];
        master.push(ask.pack(&values));
        expected.push(((table < N).then_some(table), word));
    }
    tb.run_until(20_000, |_| {
        for (i, (requests, replies)) in tables.iter().enumerate() {
            if let Some(got) = requests.pop() {
                let data = req.get(&got, "data") as u32;
                assert_eq!(req.get(&got, "line") as u32, data >> 8);
                let answer = data.rotate_left(5) ^ i as u32;
                replies.push(resp.pack(&[("data", answer.into()), ("err", (data >> 31).into())]));
            }
        }
        answers.len() == expected.len()
    });
    for (n, (port, word)) in expected.into_iter().enumerate() {
        let got = answers.pop().expect("counted");
        let want = port.map_or((0, true), |i| (word.rotate_left(5) ^ i as u32, word >> 31 == 1));
        assert_eq!((resp.get(&got, "data") as u32, resp.get(&got, "err") == 1), want, "request {n}");
    }
}

#[test]
fn every_request_finds_its_table() {
    find::<5>("ctl_switch");
    find::<19>("ctl_switch19");
}
