//! Hostile frames at a card `uet`, beside a good pair at work: each is in the counter that the software codecs say, the good pair goes on, and all that the card has it has again behind it.
use super::forge::Forge;
use super::good::Good;
use super::judge::{judge, Judged};
use super::pools::{probe, Pools};
use super::{grown, Lane, LaneConfig, Way, OPEN};
use crate::pair::Error;
use ferric_driver::types::Mac;
use ferric_driver::{Access, UetWrite};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// What is thrown, and how.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seed of the frames.
    pub seed: u64,
    /// Frames.
    pub frames: u64,
    /// Bits of the data path.
    pub width: usize,
    /// Cycles from one frame to the next.
    pub pace: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// By how much each counter grew under attack, those that did.
    pub counted: BTreeMap<String, u64>,
    /// Good messages under attack.
    pub messages: u64,
    /// The good pair's bytes in 1000 cycles, of the card and to it: alone, under attack, behind it.
    pub goodput: [[u64; 2]; 3],
    /// Cycles under attack.
    pub cycles: u64,
    /// What the card takes, as before.
    pub pools: Pools,
}

/// Every reject that an attack of some thousand frames provokes.
pub const REJECTS: &[&str] = &[
    "uet.uet_bad_ip",
    "uet.uet_stranger",
    "uet.uet_rx_udp_length",
    "uet.uet_rx_pds_short",
    "uet.uet_rx_pds_type",
    "uet.uet_rx_tss",
    "uet.uet_rx_ccx",
    "uet.uet_rx_next",
    "uet.uet_rx_next_not_allowed",
    "uet.uet_rx_ses_short",
    "uet.uet_rx_version",
    "uet.uet_rx_payload_length",
    "uet.uet_rx_short_form",
    "uet.uet_rx_header_data",
    "uet.uet_rx_range",
    "uet.uet_rx_datagram",
    "uet.uet_pdc_refused",
    "uet.uet_pdc_failed",
    "uet.uet_pdc_ousted",
    "uet.uet_pdc_stray",
    "uet.uet_pdc_bad_ack",
    "uet.uet_pdc_stale",
    "uet.uet_pdc_unknown_nack",
    "uet.uet_refused",
];

/// The least of the good pair's goodput that is left to it, in percent.
pub const LEAST: u64 = 80;
/// Good messages of each direction that are measured alone, and those in front of them.
const ALONE: u64 = 150;
const WARM: u64 = 20;
/// Cycles without the end of a good message after which the card hangs.
const PATIENCE: u64 = 400_000;
/// Cycles in which the card has done what is left.
const CALM: u64 = 2500;
/// Ticks in which PDCs without work have closed and rested (idle 20,000, safety 800).
const IDLE: u64 = 30_000;
/// Cycles between two WRITEs of the card to a bad peer, and those that are under way at a time.
const BAIT: u64 = 6000;
const BAITS: usize = 4;
/// Tags of these.
const BAIT_TAG: u32 = 1 << 31;
const FILL: u8 = 0x5a;
const BYTES: usize = 0x1000;

const CARD: Mac = Mac([2, 0, 0, 0, 7, 1]);
const FRIEND: Mac = Mac([2, 0, 0, 0, 7, 2]);
const ENEMY: Mac = Mac([2, 0, 0, 0, 7, 3]);
const FOREIGN: Mac = Mac([2, 0, 0, 0, 7, 4]);

/// Peer 0 is the good one; 1 to 3 are bad.
fn ways() -> [Way; 4] {
    let v4 = |n: u8, mac| Way { own: IpAddr::from([10, 7, n, 1]), other: IpAddr::from([10, 7, n, 2]), mac };
    let v6 = |host| IpAddr::V6(Ipv6Addr::new(0xfd07, 3, 0, 0, 0, 0, 0, host));
    [v4(0, FRIEND), v4(1, ENEMY), v4(2, ENEMY), Way { own: v6(1), other: v6(2), mac: ENEMY }]
}

struct Attack {
    lane: Lane,
    good: Good,
    forge: Forge,
    ways: [Way; 4],
    /// What the counters have to say of all frames that were given to the card.
    told: BTreeMap<&'static str, u64>,
    given: u64,
    baits: usize,
    bait: (u64, UetWrite),
    posting: bool,
    /// Messages of each direction that had ended, and when.
    last: [(u64, u64); 2],
}

impl Attack {
    fn give(&mut self, frame: Vec<u8>) {
        self.given += 1;
        match judge(&frame, &self.ways) {
            Judged::Other => *self.told.entry("other").or_default() += 1,
            Judged::Dropped(name) => *self.told.entry(name).or_default() += 1,
            Judged::Peer(_, name, parsed) => {
                *self.told.entry("uet.uet_frames").or_default() += 1;
                *self.told.entry(name).or_default() += 1;
                *self.told.entry("uet.uet_rx_reserved").or_default() += u64::from(parsed.is_some_and(|parsed| !parsed.reserved().is_empty()));
            }
        }
        self.lane.receive(frame);
    }

    /// A cycle of all.
    fn step(&mut self) -> Result<(), String> {
        let sent = self.lane.step();
        let (cycle, ticks) = (self.lane.cycle(), self.lane.ticks());
        for frame in sent {
            if frame[..6] == FRIEND.0 {
                self.good.sent(cycle, frame);
            } else {
                self.forge.hear(&frame);
            }
        }
        for frame in self.good.step(cycle, ticks)? {
            self.give(frame);
        }
        while let Some(end) = self.lane.ends.poll() {
            if end.tag >= BAIT_TAG {
                self.baits -= 1;
            } else {
                self.good.ended(&end)?;
            }
        }
        if self.posting {
            self.good.post(&self.lane);
        }
        for (direction, name) in [(0, "of the card"), (1, "to the card")] {
            let last = &mut self.last[direction];
            if self.good.done[direction] > last.0 || self.good.under_way()[direction] == 0 {
                *last = (self.good.done[direction], cycle);
            } else if cycle - last.1 > PATIENCE {
                return Err(format!("no good message {name} has ended for {PATIENCE} cycles, {} have", last.0));
            }
        }
        Ok(())
    }

    /// Until so many good messages more have ended; gives their bytes in 1000 cycles.
    fn alone(&mut self, messages: u64) -> Result<[u64; 2], String> {
        self.posting = true;
        let (done, bytes, begun) = (self.good.done, self.good.bytes, self.lane.cycle());
        self.last.iter_mut().for_each(|last| last.1 = begun);
        while (0..2).any(|n| self.good.done[n] < done[n] + messages) {
            self.step()?;
        }
        Ok(self.rate(bytes, begun))
    }

    /// Bytes of each direction in 1000 cycles since then.
    fn rate(&self, bytes: [u64; 2], begun: u64) -> [u64; 2] {
        [0, 1].map(|n| (self.good.bytes[n] - bytes[n]) * 1000 / (self.lane.cycle() - begun).max(1))
    }

    /// Until nothing is under way. It ends before idle time is skipped, in which PDCs would close.
    fn calm(&mut self) -> Result<(), String> {
        self.posting = false;
        while self.good.under_way() != [0; 2] || self.lane.world().cards[0].receive_backlog() > 0 {
            self.step()?;
        }
        (0..CALM).try_for_each(|_| self.step())
    }

    /// A WRITE to a bad peer, so that it has something to answer.
    fn bait(&mut self, n: u64) {
        let (next, write) = self.bait;
        if self.baits < BAITS && self.lane.cycle() >= next {
            self.lane.ctx.uet_write(&UetWrite { peer: 1 + (n % 2) as u16, ordered: n / 2 % 2 == 0, tag: BAIT_TAG | n as u32, ..write });
            self.baits += 1;
            self.bait.0 = self.lane.cycle() + BAIT;
        }
    }
}

/// The counters against what was said of each frame.
fn compare(told: &BTreeMap<&'static str, u64>, given: u64, counted: &BTreeMap<String, u64>) -> Result<(), String> {
    let said = |name: &str| told.get(name).copied().unwrap_or(0);
    let is = |name: &str| counted.get(name).copied().unwrap_or(0);
    let front = ["rx.rx_raw", "rx.rx_roce", "rx.rx_malformed", "rx.rx_bad_icrc", "rx.rx_no_buffer", "rx.rx_mac_error", "rx.rx_oversize", "rx.rx_stranger", "rx.rx_other_station"];
    let sum = front.iter().map(|name| is(name)).sum::<u64>();
    if is("rx.rx_frames") != given || sum != given || is("rx.rx_raw") != given {
        return Err(format!("{given} frames were given to the card, {} came, {sum} are in one of the counters of the receive front, {} were handed on", is("rx.rx_frames"), is("rx.rx_raw")));
    }
    let mine = ["uet.uet_frames", "uet.uet_bad_ip", "uet.uet_stranger"].iter().map(|name| is(name)).sum::<u64>();
    if mine + said("other") != given {
        return Err(format!("of {given} frames {mine} are in one counter of the intake, and {} are none of Ultra Ethernet", said("other")));
    }
    let parser = |name: &str| name.starts_with("uet.uet_rx") && name != "uet.uet_rx_reserved";
    let read = counted.iter().filter(|(name, _)| parser(name)).map(|(_, n)| n).sum::<u64>();
    if read != is("uet.uet_frames") {
        return Err(format!("{} frames of peers, and {read} in one counter of the parser", is("uet.uet_frames")));
    }
    let names = counted.keys().map(String::as_str).filter(|name| name.starts_with("uet.uet_rx") || mine_of(name));
    let wrong: Vec<_> = names.filter(|name| is(name) != said(name)).map(|name| format!("{name}: {} and not {}", is(name), said(name))).collect();
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("counters say otherwise than the codecs: {}", wrong.join(", ")))
    }
}

fn mine_of(name: &str) -> bool {
    matches!(name, "uet.uet_frames" | "uet.uet_bad_ip" | "uet.uet_stranger")
}

/// Throws frames. Errors name the seed.
pub fn run(plan: Plan) -> Result<Outcome, Error> {
    let fail = |what: String| {
        Error::Stuck(format!("seed {}: {what}; again with ./scripts/soak hostile --uet --seed {} --frames {} --width {} --pace {}", plan.seed, plan.seed, plan.frames, plan.width, plan.pace))
    };
    let mut lane = Lane::new(&LaneConfig { width: plan.width, ..Default::default() }, CARD)?;
    let ways = ways();
    // Another function of the card, with a region of its own.
    let other = lane.function(1)?;
    other.set_station(0, FOREIGN)?;
    let others = other.alloc_pd()?;
    let foreign = lane.region(&others, BYTES, FILL, OPEN)?;
    let enemies = lane.ctx.alloc_pd()?;
    let (own, closed, bait) = (lane.region(&enemies, BYTES, FILL, OPEN)?, lane.region(&enemies, BYTES, FILL, Access::LOCAL_WRITE)?, lane.region(&enemies, BYTES, FILL, Access::LOCAL_WRITE)?);
    let elsewhere = lane.ctx.alloc_pd()?;
    let spare = lane.region(&elsewhere, BYTES, FILL, OPEN)?;
    let pools = probe(&mut lane, &spare)?;
    for (number, way) in ways.iter().enumerate().skip(1) {
        lane.befriend(number as u16, way, &enemies)?;
    }
    let good = Good::new(&lane, 0, ways[0])?;
    let place = |region: &ferric_driver::MemoryRegion| (region.addr(), u64::from(region.rkey()));
    let places = [place(&own), place(&own), place(&own), place(&closed), place(&spare), place(&foreign), good.place()];
    let forge = Forge::new(plan.seed, CARD, &ways[1..], ways[0], FOREIGN, &places);
    let write = UetWrite { peer: 1, ordered: false, length: 700, addr: bait.addr(), lkey: bait.lkey(), raddr: 0, rkey: 0, tag: 0 };
    let mut attack = Attack { lane, good, forge, ways, told: BTreeMap::new(), given: 0, baits: 0, bait: (0, write), posting: true, last: [(0, 0); 2] };

    attack.alone(WARM).map_err(fail)?;
    let alone = attack.alone(ALONE).map_err(fail)?;
    attack.calm().map_err(fail)?;
    let before = attack.lane.counters()?;
    (attack.given, attack.posting) = (0, true);
    attack.told.clear();
    attack.alone(WARM).map_err(fail)?;
    let (done, bytes, begun) = (attack.good.done, attack.good.bytes, attack.lane.cycle());
    for n in 0..plan.frames {
        // The good peer's addresses protect from nobody who has them, so what is thrown in its name is what the parser does not take.
        let frame = loop {
            let frame = attack.forge.frame();
            match judge(&frame, &attack.ways) {
                Judged::Peer(0, "uet.uet_rx", _) => {}
                _ => break frame,
            }
        };
        attack.give(frame);
        // What closes and does not end leaves no place for a crowd of targets, and a crowd few for what closes: odd seeds begin with the crowd alone.
        if n >= plan.seed % 2 * plan.frames / 2 {
            attack.bait(n);
        }
        for _ in 0..plan.pace {
            if let Err(what) = attack.step() {
                let moved: Vec<_> = grown(&before, &attack.lane.counters()?).into_iter().filter(|(name, n)| *n > 0 && name.starts_with("uet")).collect();
                return Err(fail(format!("behind frame {n}: {what}; the model end counts {:?}, the card {moved:?}", attack.good.end.counters)));
            }
        }
    }
    let cycles = attack.lane.cycle() - begun;
    let (messages, among) = (attack.good.done.iter().sum::<u64>() - done.iter().sum::<u64>(), attack.rate(bytes, begun));
    attack.calm().map_err(fail)?;
    let counted = grown(&before, &attack.lane.counters()?);
    compare(&attack.told, attack.given, &counted).map_err(fail)?;
    (1..4).try_for_each(|peer| attack.lane.ctx.clear_uet_peer(peer))?;
    let behind = attack.alone(ALONE).map_err(fail)?;
    attack.calm().map_err(fail)?;
    if attack.baits > 0 {
        return Err(fail(format!("{} WRITEs to peers that have gone have no end", attack.baits)));
    }
    let until = attack.lane.ticks() + IDLE;
    while attack.lane.ticks() < until {
        attack.step().map_err(fail)?;
    }
    if !attack.good.end.pds.at_rest() {
        return Err(fail("the good peer has PDCs that do not close".into()));
    }
    let again = probe(&mut attack.lane, &spare)?;
    if again != pools {
        return Err(fail(format!("the card takes {again:?}, and before the attack {pools:?}")));
    }
    if [&closed, &spare, &foreign, &bait].iter().any(|region| region.to_vec(0, BYTES).iter().any(|byte| *byte != FILL)) {
        return Err(fail("memory that no peer may write to has changed".into()));
    }
    if (0..2).any(|n| among[n] * 100 < alone[n] * LEAST) {
        return Err(fail(format!("the good pair moves {among:?} bytes in 1000 cycles (of the card, to the card), and {alone:?} alone: less than {LEAST} %")));
    }
    let counted = counted.into_iter().filter(|(_, n)| *n > 0).collect();
    Ok(Outcome { counted, messages, goodput: [alone, among, behind], cycles, pools })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(all: &[(&str, u64)]) -> BTreeMap<String, u64> {
        let zero = ["uet.uet_frames", "uet.uet_bad_ip", "uet.uet_stranger", "uet.uet_rx", "uet.uet_rx_tss", "uet.uet_rx_reserved", "rx.rx_frames", "rx.rx_raw", "rx.rx_no_buffer"];
        zero.iter().map(|name| (name.to_string(), 0)).chain(all.iter().map(|(name, n)| (name.to_string(), *n))).collect()
    }

    /// A frame that is in no counter, in two, or in a wrong one, is noticed.
    #[test]
    fn each_frame_has_one_counter() {
        let told = BTreeMap::from([("uet.uet_frames", 3), ("uet.uet_rx", 2), ("uet.uet_rx_tss", 1), ("uet.uet_stranger", 1), ("other", 1)]);
        let good = [("rx.rx_frames", 5), ("rx.rx_raw", 5), ("uet.uet_frames", 3), ("uet.uet_rx", 2), ("uet.uet_rx_tss", 1), ("uet.uet_stranger", 1)];
        assert_eq!(compare(&told, 5, &counted(&good)), Ok(()));
        for (n, (name, value)) in good.iter().enumerate() {
            for wrong in [value - 1, value + 1] {
                let mut all = good;
                all[n].1 = wrong;
                assert!(compare(&told, 5, &counted(&all)).is_err(), "{name} is {wrong}");
            }
        }
        let lost = [("rx.rx_frames", 5), ("rx.rx_raw", 4), ("rx.rx_no_buffer", 1), ("uet.uet_frames", 2), ("uet.uet_rx", 1), ("uet.uet_rx_tss", 1), ("uet.uet_stranger", 1)];
        assert!(compare(&told, 5, &counted(&lost)).is_err(), "a frame that found no buffer");
        let other = [("rx.rx_frames", 5), ("rx.rx_raw", 5), ("uet.uet_frames", 3), ("uet.uet_rx", 3), ("uet.uet_stranger", 1)];
        assert!(compare(&told, 5, &counted(&other)).is_err(), "what the parser should have dropped");
    }

    /// The forge makes all kinds of frames: each reason of the parser, frames of nobody, of peers and of none of Ultra Ethernet.
    #[test]
    fn all_kinds_of_frames_are_made() {
        let ways = ways();
        let mut forge = Forge::new(1, CARD, &ways[1..], ways[0], FOREIGN, &[(0x1000, 1)]);
        let mut found = BTreeMap::new();
        for _ in 0..4000 {
            let name = match judge(&forge.frame(), &ways) {
                Judged::Other => "other",
                Judged::Dropped(name) | Judged::Peer(_, name, _) => name,
            };
            *found.entry(name).or_insert(0) += 1;
        }
        let wanted = REJECTS.iter().filter(|name| name.starts_with("uet.uet_rx") || mine_of(name)).chain(&["other", "uet.uet_rx"]);
        let missing: Vec<_> = wanted.filter(|name| !found.contains_key(**name)).collect();
        assert!(missing.is_empty(), "{missing:?} of {found:?}");
    }
}
