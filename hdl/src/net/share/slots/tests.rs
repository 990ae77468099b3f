//! The bench plays the clients and the egress: it grants in the order of the requests, each by what the request says.

use super::{place::AHEAD, SlotShare};
use crate::msg::{InlineWrite, SlotGrant, SlotReq, SlotSeal};
use crate::tb::{Fields, Sink, Source, Tb};

/// Bits of a tag that number the frames of a client; the client stands above them.
const FRAME_BITS: u32 = 10;

fn tag(client: usize, frame: usize) -> u128 {
    (client as u128) << FRAME_BITS | frame as u128
}

fn owner(tag: u128) -> usize {
    (tag >> FRAME_BITS) as usize
}

fn request(client: usize, frame: usize) -> Vec<u32> {
    Fields::of::<SlotReq>().pack(&[("frame_len", tag(client, frame))])
}

/// The egress, as far as slots go.
struct Egress {
    slot: Sink,
    grant: Source,
    /// Tags in the order in which they were asked for.
    asked: Vec<u128>,
}

impl Egress {
    fn new(tb: &mut Tb, stall: u32) -> Self {
        Self { slot: tb.sink("m_slot", stall), grant: tb.source("s_grant", stall), asked: Vec::new() }
    }

    fn serve(&mut self) {
        while let Some(got) = self.slot.pop() {
            let tag = Fields::of::<SlotReq>().get(&got, "frame_len");
            self.grant.push(Fields::of::<SlotGrant>().pack(&[("base", tag)]));
            self.asked.push(tag);
        }
    }
}

fn bench<const N: usize>() -> Tb {
    let mut tb = Tb::new(&format!("slot_share{N}"), SlotShare::<N>::new(&[]));
    tb.allow_combinational();
    tb
}

fn every_grant_finds_its_client<const N: usize>() {
    const FRAMES: usize = 300;
    for stalls in [[0, 0, 0], [30, 60, 30], [70, 0, 40], [0, 80, 80]] {
        let mut tb = bench::<N>();
        let requests: Vec<_> = (0..N).map(|i| tb.source(&format!("s_slot${i}"), stalls[0])).collect();
        let grants: Vec<_> = (0..N).map(|i| tb.sink(&format!("m_grant${i}"), stalls[1])).collect();
        let mut egress = Egress::new(&mut tb, stalls[2]);
        requests.iter().enumerate().for_each(|(i, port)| (0..FRAMES).for_each(|frame| port.push(request(i, frame))));
        tb.run_until(60_000, |_| {
            egress.serve();
            grants.iter().all(|port| port.len() == FRAMES)
        });
        for (i, port) in grants.iter().enumerate() {
            for frame in 0..FRAMES {
                let got = port.pop().expect("counted");
                assert_eq!(Fields::of::<SlotGrant>().get(&got, "base"), tag(i, frame), "client {i} of {N}, frame {frame}");
            }
        }
        if stalls == [0, 0, 0] {
            // All ask all the time: each in turn, but for those who wait for their own grants.
            let counts: Vec<usize> = (0..N).map(|i| egress.asked[..N * FRAMES / 2].iter().filter(|tag| owner(**tag) == i).count()).collect();
            assert!(counts.iter().all(|n| n.abs_diff(FRAMES / 2) <= N), "{counts:?}");
        }
    }
}

#[test]
fn every_grant_finds_its_client_2() {
    every_grant_finds_its_client::<2>();
}

#[test]
fn every_grant_finds_its_client_4() {
    every_grant_finds_its_client::<4>();
}

/// Its requests stop, those of others go on.
#[test]
fn who_leaves_its_grants_blocks_itself_only() {
    const FRAMES: usize = 200;
    let mut tb = bench::<2>();
    let requests: Vec<_> = (0..2).map(|i| tb.source(&format!("s_slot${i}"), 20)).collect();
    // Nobody is ready at `m_grant[1]`.
    let grants = tb.sink("m_grant$0", 20);
    let mut egress = Egress::new(&mut tb, 20);
    requests.iter().enumerate().for_each(|(i, port)| (0..FRAMES).for_each(|frame| port.push(request(i, frame))));
    tb.run_until(10_000, |_| {
        egress.serve();
        grants.len() == FRAMES
    });
    assert_eq!(requests[1].taken(), AHEAD);
    // It takes them after all.
    let late = tb.sink("m_grant$1", 20);
    tb.run_until(10_000, |_| {
        egress.serve();
        late.len() == FRAMES
    });
    (0..FRAMES).for_each(|frame| assert_eq!(Fields::of::<SlotGrant>().get(&late.pop().expect("counted"), "base"), tag(1, frame)));
}

/// The egress takes its time: what has been shown stays (the bench looks), and both clients' seals come in their order.
#[test]
fn seals_that_are_shown_stay() {
    const SEALS: u128 = 300;
    let mut tb = bench::<2>();
    let fields = Fields::of::<SlotSeal>();
    for i in 0..2u128 {
        let port = tb.source(&format!("s_seal${i}"), 60);
        (0..SEALS).for_each(|n| port.push(fields.pack(&[("slot", i), ("psn", n)])));
    }
    let out = tb.sink("m_seal", 70);
    tb.run_until(20_000, |_| out.len() == 2 * SEALS as usize);
    let mut next = [0; 2];
    while let Some(seal) = out.pop() {
        let client = fields.get(&seal, "slot") as usize;
        assert_eq!(fields.get(&seal, "psn"), next[client], "client {client}");
        next[client] += 1;
    }
    assert_eq!(next, [SEALS; 2]);
}

/// A client that asks alone loses no cycle: its request, its inline writes and its seals are at the egress in the cycle in which it shows them.
#[test]
fn alone_is_as_if_nothing_stood_between() {
    const FRAMES: u64 = 100;
    for client in 0..2 {
        let mut tb = bench::<2>();
        let from = ["s_slot", "s_inline", "s_seal"].map(|port| tb.source(&format!("{port}${client}"), 0));
        let to = ["m_slot", "m_inline", "m_seal"].map(|port| tb.sink(port, 0));
        let grants = tb.sink(&format!("m_grant${client}"), 0);
        let grant = tb.source("s_grant", 0);
        let layouts = [Fields::of::<SlotReq>(), Fields::of::<InlineWrite>()];
        (0..FRAMES).for_each(|_| {
            from[0].push(layouts[0].zero());
            from[1].push(layouts[1].zero());
        });
        for cycle in 1..=FRAMES {
            tb.cycle();
            assert_eq!((to[0].taken(), to[1].taken()), (cycle, cycle), "client {client}");
            // A grant passes in the cycle in which it comes.
            assert_eq!(grants.taken(), cycle - 1, "client {client}");
            grant.push(Fields::of::<SlotGrant>().zero());
        }
        // Seals by themselves, with the client's own inline writes behind each.
        for n in 1..=FRAMES {
            from[2].push(Fields::of::<SlotSeal>().zero());
            tb.cycle();
            assert_eq!(to[2].taken(), n, "client {client}");
            from[1].push(layouts[1].zero());
            tb.cycle();
            assert_eq!(to[1].taken(), FRAMES + n, "client {client}");
        }
    }
}

/// Clients seal a frame when its bytes have been taken, while they write the next one's: at the egress a seal comes after its own bytes, and waits for no others.
#[test]
fn a_seal_comes_after_its_inline_bytes_and_waits_for_no_others() {
    const FRAMES: usize = 300;
    let (writes, seals) = (Fields::of::<InlineWrite>(), Fields::of::<SlotSeal>());
    for stall in [0, 40, 80] {
        let mut tb = bench::<2>();
        let clients: Vec<_> = (0..2).map(|i| (tb.source(&format!("s_inline${i}"), 0), tb.source(&format!("s_seal${i}"), 0))).collect();
        let (inline, seal) = (tb.sink("m_inline", stall), tb.sink("m_seal", 0));
        for (i, (write, _)) in clients.iter().enumerate() {
            (0..FRAMES).for_each(|frame| write.push(writes.pack(&[("dst", tag(i, frame))])));
        }
        let (mut offered, mut written, mut sealed) = ([0; 2], [0; 2], [0; 2]);
        tb.run_until(60_000, |_| {
            // Seals of this cycle first: they have to stand behind inline writes of earlier ones.
            while let Some(got) = seal.pop() {
                let tag = seals.get(&got, "psn");
                let i = owner(tag);
                assert_eq!(tag, self::tag(i, sealed[i]), "order of seals");
                assert!(written[i] > sealed[i], "client {i} sealed frame {} before its bytes", sealed[i]);
                sealed[i] += 1;
            }
            while let Some(got) = inline.pop() {
                let tag = writes.get(&got, "dst");
                let i = owner(tag);
                assert_eq!(tag, self::tag(i, written[i]), "order of inline writes");
                written[i] += 1;
            }
            for (i, (write, done)) in clients.iter().enumerate() {
                assert!(offered[i] - sealed[i] <= 4, "client {i}: seals wait for the bytes of others");
                while (offered[i] as u64) < write.taken() {
                    done.push(seals.pack(&[("psn", tag(i, offered[i]))]));
                    offered[i] += 1;
                }
            }
            sealed == [FRAMES; 2]
        });
    }
}

/// Who writes in every cycle leaves the seals of the other as they are, and the other way round.
#[test]
fn seals_and_inline_writes_of_others_do_not_meet() {
    let mut tb = bench::<2>();
    let (write, seal) = (tb.source("s_inline$1", 0), tb.source("s_seal$0", 0));
    let (inline, sealed) = (tb.sink("m_inline", 0), tb.sink("m_seal", 0));
    let layouts = (Fields::of::<InlineWrite>(), Fields::of::<SlotSeal>());
    (0..300).for_each(|_| write.push(layouts.0.zero()));
    (0..300).for_each(|_| seal.push(layouts.1.zero()));
    tb.run(300);
    assert_eq!((inline.taken(), sealed.taken()), (300, 300));
}
