//! Every access comes out once, whole and in order, and its answer goes back: under stalls, with errors and narrow strobes.

use super::*;
use crate::tb::Tb;

fn slave() -> Tb {
    Tb::new("lite_slave13", LiteSlave::<13>::default())
}

fn run(stall: u32) {
    let mut tb = slave();
    let (aw, w, b) = (tb.source_of("aw_", &["addr"], stall), tb.source_of("w_", &["data", "strb"], stall), tb.sink_of("b_", &["resp"], stall));
    let (ar, r) = (tb.source_of("ar_", &["addr"], stall), tb.sink_of("r_", &["data", "resp"], stall));
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        let rng = tb.rng();
        writes.push([rng.below(1 << 13) as u32, rng.next_u32(), rng.below(16) as u32]);
        reads.push(rng.below(1 << 13) as u32);
    }
    for ([addr, data, strb], read) in writes.iter().zip(&reads) {
        aw.push(*addr);
        w.push_fields(&[&[*data], &[*strb]]);
        ar.push(*read);
    }
    let (mut written, mut found) = (Vec::new(), Vec::new());
    let (mut write_answers, mut read_answers) = (Vec::new(), Vec::new());
    tb.run_until(40_000, |tb| {
        // What is shown after the edge is answered at once or later; meanwhile it has to stay. A response means nothing without `done`.
        let (write_done, read_done) = (tb.get("write$held") == 1 && !tb.rng().percent(stall), tb.get("read$held") == 1 && !tb.rng().percent(stall));
        let (write_resp, read_resp, data) = (tb.rng().below(4), tb.rng().below(4), tb.rng().next_u32());
        for (port, value) in [("write$resp", write_resp), ("read$resp", read_resp), ("read$data", data.into()), ("write$done", write_done.into()), ("read$done", read_done.into())] {
            tb.set(port, value);
        }
        if write_done {
            written.push(["addr", "data", "strb"].map(|f| tb.get(&format!("write${f}")) as u32));
            write_answers.push(vec![write_resp as u32]);
        }
        if read_done {
            found.push(tb.get("read$addr") as u32);
            read_answers.push(vec![data, read_resp as u32]);
        }
        b.len() == writes.len() && r.len() == reads.len()
    });
    tb.run(20);
    assert!(written == writes && found == reads);
    assert!(write_answers.iter().all(|a| b.pop().as_ref() == Some(a)), "the writes' answers");
    assert!(read_answers.iter().all(|a| r.pop().as_ref() == Some(a)), "the reads' answers");
    assert!(b.is_empty() && r.is_empty());
}

#[test]
fn accesses_and_their_answers_pass() {
    run(0);
    run(30);
    run(70);
}

#[test]
fn a_reset_forgets_what_is_held() {
    for held in [(true, false), (false, true), (true, true)] {
        let mut tb = slave();
        let (aw, w, ar) = (tb.source_of("aw_", &["addr"], 0), tb.source_of("w_", &["data", "strb"], 0), tb.source_of("ar_", &["addr"], 0));
        // The second time the answer waits: nobody takes one here.
        for answered in [false, true] {
            if held.0 {
                aw.push(1u32);
            }
            if held.1 {
                w.push_fields(&[&[2], &[3]]);
            }
            ar.push(4u32);
            tb.run(3);
            assert_eq!((tb.get("write$held"), tb.get("read$held")), ((held == (true, true)).into(), 1));
            tb.set("write$done", (answered && held == (true, true)).into());
            tb.set("read$done", answered.into());
            tb.cycle();
            tb.set("write$done", 0);
            tb.set("read$done", 0);
            tb.set("reset", 1);
            tb.cycle();
            tb.set("reset", 0);
            assert_eq!(["write$held", "read$held", "b_valid", "r_valid"].map(|p| tb.get(p)), [0; 4]);
        }
        aw.push(5u32);
        w.push_fields(&[&[6], &[7]]);
        ar.push(8u32);
        tb.run(3);
        assert_eq!(["write$addr", "write$data", "write$strb", "write$held", "read$addr", "read$held"].map(|p| tb.get(p)), [5, 6, 7, 1, 8, 1]);
    }
}

#[test]
fn both_channels_of_a_write_are_offered_until_taken() {
    for stall in [0, 50, 80] {
        let mut tb = Tb::new("lite_ask", LiteAsk::default());
        let (mut asked, mut taken) = (0, [0, 0]);
        let mut busy = false;
        for _ in 0..2000 {
            let go = !busy && !tb.rng().percent(stall);
            tb.set("go", go.into());
            for ready in ["aw_ready", "w_ready"] {
                let value = !tb.rng().percent(stall);
                tb.set(ready, value.into());
            }
            tb.begin();
            for (n, channel) in ["aw", "w"].into_iter().enumerate() {
                taken[n] += tb.get(&format!("{channel}_valid")) & tb.get(&format!("{channel}_ready"));
            }
            if busy {
                let both = taken == [asked, asked];
                assert_eq!(tb.get("taken") == 1, both);
                busy = !both;
            } else {
                assert_eq!(taken, [asked, asked], "offered twice, or before it was asked for");
            }
            if go {
                asked += 1;
                busy = true;
            }
            tb.end();
        }
        assert!(asked > 100);
    }
}
