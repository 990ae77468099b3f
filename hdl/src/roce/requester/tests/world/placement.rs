//! Placement of answers, and the second fetch of work requests.

use super::{found, World};
use crate::msg::*;
use crate::roce::word::opened;
use crate::tb::Fields;

impl World {
    /// Placement and the second fetch of work requests.
    pub(super) fn placement(&mut self) {
        let (fp, fa, fr) = (opened::<PlaceOp>(), Fields::of::<WqeAgain>(), Fields::of::<ReadDone>());
        if !self.free_lists.is_empty() {
            if let Some(want) = self.again.pop() {
                let qp = fa.get(&want, "qpn") as usize;
                let number = (fa.get(&want, "index") as u16).wrapping_sub(self.qps[qp].base_index) as usize;
                assert!(self.qps[qp].wrs[number].asks());
                let handle = self.free_lists.pop().expect("just seen");
                self.lists.insert(handle, (qp, number));
                self.handle.push(Fields::of::<WqeHandle>().pack(&[("handle", handle.into())]));
            }
        }
        while let Some(order) = self.place.pop() {
            let get = |name: &str| fp.get(&order, name);
            let frame = (get("has_frame") == 1).then(|| {
                self.freed += 1;
                self.held.remove(&(get("handle") as u64)).expect("a frame of a READ response")
            });
            if get("kind") == 0 {
                continue;
            }
            assert!(matches!(get("kind"), 8 | 9));
            if get("again") == 1 {
                // The queue pair has failed: told of behind all that was to be placed.
                assert!(frame.is_none() && get("pay_len") == 0 && get("free_rq") == 0);
                self.qps[get("qpn") as usize].hushed = true;
                let at = self.tb.cycles() + self.tb.rng().range(1, self.write_latency);
                let at = self.writes.back().map_or(0, |w| w.0).max(at);
                self.writes.push_back((at, usize::MAX));
                self.reports.push_back((at, fr.pack(&[("qpn", get("qpn")), ("status", 0xff)])));
                continue;
            }
            let list = get("rq_handle") as u64;
            let (qp, number) = self.lists[&list];
            if get("free_rq") == 1 {
                self.lists.remove(&list);
                self.free_lists.insert(0, list);
            }
            if get("done") == 0 && get("pay_len") == 0 {
                assert!(get("free_rq") == 1 && frame.is_none());
                continue;
            }
            let q = &mut self.qps[qp];
            let request = &q.wrs[number];
            let (_, packet) = &q.truth[&(get("psn") as u32)];
            assert_eq!((get("qpn"), get("function"), get("pd")), (qp as u128, 300 + qp as u128, 200 + qp as u128));
            assert_eq!(get("msg_off"), packet.offset.into());
            assert!(!q.hushed, "queue pair {qp}: an answer to request {number} behind the order that was to be the last");
            if let Some(frame) = frame {
                assert_eq!(get("kind"), 8);
                assert_eq!((frame.qp, frame.psn, u128::from(frame.length), get("pay_off")), (qp, get("psn") as u32, get("pay_len"), 58));
            } else {
                assert_eq!((get("kind"), get("operand") as u64, get("pay_len")), (9, found(get("psn") as u32), 8));
            }
            let entry = q.placed.entry(number).or_default();
            assert_eq!((u128::from(entry.0), entry.1), (get("msg_off"), false), "answers of request {number} out of order");
            entry.0 += get("pay_len") as u32;
            let done = get("done") == 1;
            let wrong = done && entry.0 != request.length;
            let status = match q.trouble.misplaced {
                _ if wrong => 7,
                Some((n, status)) if n == number => status,
                _ => 0,
            };
            if status == 0 && done {
                entry.1 = true;
            }
            let at = self.tb.cycles() + self.tb.rng().range(1, self.write_latency);
            let at = self.writes.back().map_or(0, |w| w.0).max(at);
            self.writes.push_back((at, qp));
            if status != 0 || done {
                self.reports.push_back((at, fr.pack(&[("qpn", qp as u128), ("transport", get("psn")), ("status", status.into())])));
            }
        }
        while self.writes.front().is_some_and(|w| w.0 <= self.tb.cycles()) {
            self.writes.pop_front();
        }
        while self.reports.front().is_some_and(|r| r.0 <= self.tb.cycles()) {
            let (_, report) = self.reports.pop_front().expect("looked at");
            self.placed.push(report);
        }
    }
}
