//! Tables are played by the test: each answers with its own mark.

use super::CtlSwitch;
use crate::msg::{CtlReq, CtlResp};
use crate::tb::{Fields, Tb};

const SPACES: [u8; 5] = [1, 9, 4, 0, 15];

#[test]
fn every_space_finds_its_table() {
    let mut tb = Tb::new("ctl_switch", CtlSwitch::<5>::new(SPACES));
    let (req, resp) = (Fields::of::<CtlReq>(), Fields::of::<CtlResp>());
    let (master, answers) = (tb.source("s_req", 30), tb.sink("m_resp", 30));
    let tables: Vec<_> = (0..5).map(|i| (tb.sink(&format!("m_req${i}"), 40), tb.source(&format!("s_resp${i}"), 40))).collect();
    let mut expected = Vec::new();
    for _ in 0..400 {
        let space = tb.rng().below(16) as u8;
        let word = tb.rng().next_u32();
        let values = [("space", space.into()), ("line", (word >> 8).into()), ("word", (word & 63).into()), ("data", word.into())];
        master.push(req.pack(&values));
        expected.push((SPACES.iter().position(|s| *s == space), word));
    }
    tb.run_until(20_000, |_| {
        for (i, (requests, replies)) in tables.iter().enumerate() {
            if let Some(got) = requests.pop() {
                let data = req.get(&got, "data") as u32;
                assert_eq!(req.get(&got, "line") as u32, data >> 8);
                assert_eq!(req.get(&got, "space") as u8, SPACES[i]);
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
