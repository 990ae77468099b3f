//! Random attachments and random frames against the model.
use super::model::{Attached, Groups};
use super::Multicast;
use crate::host::testing::Control;
use crate::msg::{CtlReq, RxRequest};
use crate::net::within::testing::{anywhere, origin, some, words};
use crate::tb::{Fields, Sink, Source, Tb};
use ferric_abi::context::{McastCtx, PathCtx};
use ferric_model::net::networks::{Network, Networks, Through};
use std::collections::BTreeMap;

const LINES: u32 = 16;

struct Bench {
    tb: Tb,
    s: Source,
    m: Sink,
    retain: Sink,
    ctl: Control,
    stat: [u64; 2],
    groups: Groups,
    layout: Fields,
    networks: Networks,
}

impl Bench {
    fn new(stall: u32) -> Bench {
        let mut tb = Tb::new("mcast", Multicast::<4, 8>::default());
        // From the responder's `ready` to the queue's: both are registers.
        tb.allow_combinational();
        let ctl = Control::new(&mut tb, stall);
        Bench {
            s: tb.source("s", stall),
            m: tb.sink("m", stall),
            retain: tb.sink("m_retain", stall),
            ctl,
            tb,
            stat: [0; 2],
            groups: Groups(vec![None; LINES as usize]),
            layout: Fields::of::<RxRequest>(),
            networks: Networks::default(),
        }
    }

    fn cycle(&mut self) {
        self.tb.cycle();
        let stat = self.tb.get("stat");
        (0..2).for_each(|i| self.stat[i] += stat >> i & 1);
    }

    fn control(&mut self, line: u32, word: u32, write: Option<u32>) -> Option<u32> {
        self.ctl.ask(line, word, write);
        for _ in 0..2000 {
            self.cycle();
            if let Some(answer) = self.ctl.answer() {
                return answer;
            }
        }
        panic!("no answer from the table");
    }

    /// As the admin engine does it: the word with `valid` last, and alone when something is taken out.
    fn set(&mut self, line: u32, attached: Option<Attached>) {
        let old = self.groups.0[line as usize].unwrap_or_default();
        let a = attached.unwrap_or(old);
        if attached.is_some() {
            self.path(a.qpn, a.vlan);
        }
        let record = McastCtx::default().with_group(a.group).with_qpn(a.qpn).with_ipv6(a.ipv6).with_function(a.function as u8).with_valid(attached.is_some());
        for (word, bytes) in record.0.chunks(4).enumerate() {
            let value = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
            self.control(line, word as u32, Some(value));
            assert_eq!(self.control(line, word as u32, None), Some(value));
        }
        self.groups.0[line as usize] = attached;
    }

    /// The path of queue pair `qpn` is written, in VLAN `vlan`; what else a path says is noise.
    fn path(&mut self, qpn: u32, vlan: Option<u16>) {
        let (noise, layout) = (self.tb.rng().next_u32(), Fields::of::<CtlReq>());
        let mut record = PathCtx([0; 64]);
        self.tb.rng().bytes(64).iter().zip(&mut record.0).for_each(|(b, to)| *to = *b);
        let record = record.with_vlan(vlan.is_some()).with_vlan_tci(vlan.unwrap_or(noise as u16) | (noise as u16) << 12);
        for (word, bytes) in record.0.chunks(4).enumerate() {
            let value = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
            for (valid, write) in [(1, 1u64), (0, 1), (1, 0)] {
                // Only the first means anything.
                let data = if (valid, write) == (1, 1) { value } else { !value };
                self.tb.set("path_ctl_valid", valid);
                self.tb.set_wide("path_ctl", layout.pack(&[("line", qpn.into()), ("word", word as u128), ("write", write.into()), ("data", data.into())]));
                self.cycle();
            }
        }
        self.tb.set("path_ctl_valid", 0);
    }

    /// A descriptor of any content; to `group` if one is given, in the VLAN that is given.
    fn send(&mut self, group: Option<(u128, bool)>, vlan: Option<u16>, through: Through) -> Vec<u32> {
        let mut words = self.tb.rng().words(self.layout.width());
        let (to, ipv6) = group.unwrap_or((self.tb.rng().next_u64().into(), true));
        let tci = u128::from(vlan.unwrap_or(0)) | u128::from(self.tb.rng().below(16)) << 12;
        let fields =
            [("has_vlan", vlan.is_some().into()), ("vlan_tci", tci), ("multicast", u128::from(group.is_some())), ("ipv6", ipv6.into()), ("operand", to & u128::from(u64::MAX)), ("compare", to >> 64)];
        for (name, value) in fields {
            self.layout.set(&mut words, name, value);
        }
        origin(through, true).into_iter().for_each(|(name, value)| self.layout.set(&mut words, name, value));
        self.s.push(words.clone());
        words
    }
}

fn random(stall: u32, rounds: u32) {
    let mut b = Bench::new(stall);
    // Each number is that of a group of either family.
    let known: Vec<(u128, bool)> = (0..2).map(|n| 0xff0e_u128 << 112 | u128::from(b.tb.rng().next_u64() >> 3) << n).flat_map(|group| [(group, true), (group, false)]).collect();
    let (mut most, mut apart, mut foreign) = (0, 0, 0);
    let vlans = [None, Some(5), Some(0x805)];
    for _ in 0..rounds {
        let tunnels = [0, 2, 0xc, 0xf][b.tb.rng().below(4) as usize];
        b.networks = some(b.tb.rng(), 4, tunnels);
        b.tb.set_wide("networks", words(&b.networks));
        for _ in 0..b.tb.rng().below(4) {
            let rng = b.tb.rng();
            let (line, (group, ipv6), on) = (rng.below(LINES.into()) as u32, known[rng.below(4) as usize], rng.percent(60));
            // A queue pair of its own for each line, so that each has its own VLAN.
            let (qpn, vlan) = (line * 16 + rng.below(16) as u32, vlans[[0, 1, 1, 1, 2][rng.below(5) as usize]]);
            b.set(line, on.then_some(Attached { group, ipv6, qpn, vlan, function: (line % 4) as u16 }));
        }
        let (mut want, mut retained, mut stat) = (Vec::new(), BTreeMap::<u128, usize>::new(), b.stat);
        for _ in 0..12 {
            let rng = b.tb.rng();
            let mut group = rng.percent(60).then(|| known[rng.below(4) as usize]);
            if let Some((to, v6)) = group.as_mut().filter(|_| rng.percent(20)) {
                // One bit is wrong, or the family.
                match rng.below(130) {
                    n @ 0..128 => *to ^= 1 << n,
                    _ => *v6 = !*v6,
                }
            }
            let vlan = vlans[[0, 1, 1, 1, 2][b.tb.rng().below(5) as usize]];
            let through = anywhere(b.tb.rng(), 4);
            let network = Network { through, networks: b.networks };
            let words = b.send(group, vlan, through);
            let Some((to, v6)) = group else {
                want.push(words);
                continue;
            };
            let members = b.groups.members(to, v6, vlan, network);
            let all = b.groups.members(to, v6, vlan, Network::default());
            foreign += all.iter().filter(|qpn| !members.contains(qpn)).count();
            apart += vlans.iter().filter(|v| **v != vlan).map(|v| b.groups.members(to, v6, *v, network).len()).sum::<usize>();
            most = most.max(members.len());
            stat[0] += members.len() as u64;
            stat[1] += u64::from(members.is_empty());
            if members.is_empty() {
                want.push(words.clone());
            }
            *retained.entry(b.layout.get(&words, "handle") & 511).or_default() += members.len().saturating_sub(1);
            for qpn in members {
                let mut copy = words.clone();
                b.layout.set(&mut copy, "dest_qpn", qpn.into());
                want.push(copy);
            }
        }
        let owners: usize = retained.values().sum();
        let mut left = 20_000;
        while b.m.len() < want.len() || b.s.pending() > 0 || b.retain.len() < owners {
            b.cycle();
            left -= 1;
            assert!(left > 0, "{} of {} descriptors, seed {}", b.m.len(), want.len(), b.tb.seed());
        }
        (0..40).for_each(|_| b.cycle());
        let got: Vec<_> = std::iter::from_fn(|| b.m.pop()).collect();
        assert_eq!(got, want, "seed {}", b.tb.seed());
        while let Some(handle) = b.retain.pop_u64() {
            *retained.get_mut(&handle.into()).expect("a frame of this round") -= 1;
        }
        assert!(retained.values().all(|n| *n == 0), "{retained:?}");
        assert_eq!(b.stat, stat);
    }
    assert!(most >= 2 && apart > 30 && foreign > 100, "at most {most} in a group, {apart} in other VLANs, {foreign} in other networks");
}

#[test]
fn every_attached_queue_pair_gets_a_copy() {
    random(0, 60);
    random(40, 60);
}

/// A frame's owners are counted before the copy that could be given back first goes.
#[test]
fn the_frame_is_kept_before_its_copies_go() {
    let mut b = Bench::new(0);
    for line in 0..5 {
        b.set(line, Some(Attached { group: 7, ipv6: true, qpn: line + 10, vlan: None, function: 0 }));
    }
    b.send(Some((7, true)), None, Through::None);
    for _ in 0..200 {
        b.cycle();
        assert!(b.m.len() <= b.retain.len() + usize::from(b.retain.len() == 4));
    }
    assert_eq!((b.m.len(), b.retain.len()), (5, 4));
}

/// What is not for a group loses no cycle.
#[test]
fn others_pass_at_once() {
    let mut b = Bench::new(0);
    (0..40).for_each(|_| b.cycle());
    for _ in 0..100 {
        b.send(None, None, Through::None);
    }
    (0..101).for_each(|_| b.cycle());
    assert_eq!(b.m.len(), 100);
}
