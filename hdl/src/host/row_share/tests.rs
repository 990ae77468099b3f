//! Every client gets the rows of its own commands, in order, whoever stalls.

use super::RowShare;
use crate::msg::{RdCmd, RdRow};
use crate::tb::{Fields, Tb};

#[test]
fn rows_go_to_whom_they_belong() {
    for (seed, stall) in [(1, 0), (2, 30), (3, 70)] {
        let mut tb = Tb::with_seed("row_share", RowShare::default(), seed);
        let (fc, fr) = (Fields::of::<RdCmd>(), Fields::of::<RdRow>());
        let clients = [0, 1].map(|n| (tb.source(&format!("s_cmd${n}"), stall), tb.sink(&format!("m_row${n}"), stall)));
        let (commands, rows) = (tb.sink("m_cmd", stall), tb.source("s_row", stall));
        let mut want: [Vec<u32>; 2] = Default::default();
        for n in 0..400u128 {
            let who = tb.rng().below(2) as usize;
            let count = tb.rng().range(1, 8);
            clients[who].0.push(fc.pack(&[("iova", n << 6), ("rows", count.into()), ("tag", n & 0xff)]));
            want[who].extend((0..u128::from(count)).map(|row| (n << 8 | row) as u32));
        }
        let mut got: [Vec<u32>; 2] = Default::default();
        let total = want[0].len() + want[1].len();
        while got[0].len() + got[1].len() < total {
            assert!(tb.cycles() < 60_000, "seed {seed}: {} of {total} rows", got[0].len() + got[1].len());
            tb.cycle();
            while let Some(command) = commands.pop() {
                let (n, count) = (fc.get(&command, "iova") >> 6, fc.get(&command, "rows"));
                for row in 0..count {
                    let mut words = fr.pack(&[("tag", fc.get(&command, "tag")), ("row", row), ("last", u128::from(row + 1 == count))]);
                    fr.set_words(&mut words, "data", &[(n << 8 | row) as u32; 16]);
                    rows.push(words);
                }
            }
            for (client, got) in clients.iter().zip(&mut got) {
                got.extend(std::iter::from_fn(|| client.1.pop()).map(|row| fr.get_words(&row, "data")[15]));
            }
        }
        assert_eq!(got, want, "seed {seed}");
    }
}
