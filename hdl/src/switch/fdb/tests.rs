//! Addresses against the golden model's stations, which the driver's placement writes, moves and takes away meanwhile.
use super::{Fdb, Station as StationStruct, LATENCY, LINE};
use crate::switch::testing::words;
use crate::tb::{Fields, Rng, Tb};
use ferric_abi::switch::station::{self, KEY_BITS, RESULT_BITS};
use ferric_abi::switch::{destination, Encap, FlowKey, Verdict};
use ferric_driver::switch::place::{Entry, Table, Write};
use ferric_model::switch::decide::Facts;
use ferric_model::switch::tables::{Port, Station, Tables};
use std::collections::{HashMap, VecDeque};

/// Cycles after its address in which a lookup reads its lines, and its domain's flood group; a write in that cycle comes too late for it.
const LINES: usize = 2;
const FLOODS: usize = 5;
/// Domains that addresses are in, and in a few cases others that are numbered so much higher.
const DOMAINS: u64 = 6;
const HIGHER: u16 = 64;

/// What is asked: domain, address, generation.
type Asked = (u16, u64, u8);

struct Bench<const LG: usize> {
    tb: Tb,
    placement: Table<KEY_BITS, 64>,
    /// The model's tables as the card has them, but for flood groups; and these.
    tables: Tables,
    floods: HashMap<u16, u16>,
    /// Stations as they are meant to be, so that a move takes nothing away.
    writes: VecDeque<(Write, Option<(Asked, Option<Station>)>)>,
    /// What was asked in the last cycles, the newest first, with the station that the lines had.
    asked: VecDeque<Option<(Asked, Option<Station>)>>,
    due: VecDeque<Option<Verdict>>,
    seen: HashMap<u8, usize>,
}

fn any_address(rng: &mut Rng) -> (u16, u64) {
    let higher = if rng.percent(20) { HIGHER } else { 0 };
    (higher + rng.below(DOMAINS) as u16, 0x0200_0000_0000 | rng.below(300))
}

impl<const LG: usize> Bench<LG> {
    fn new() -> Self {
        // A line of the encapsulation table says which uplink it leaves by.
        let encaps = (0..4096u32).map(|n| Encap::default().with_uplink((n % 3) as u8)).collect();
        Bench {
            tb: Tb::new(&format!("fdb{LG}"), Fdb::<LG>::default()),
            placement: Table::new(LG as u32),
            tables: Tables { encaps, ..Default::default() },
            floods: HashMap::new(),
            writes: VecDeque::new(),
            asked: vec![None; FLOODS + 1].into(),
            due: vec![None; LATENCY as usize - FLOODS - 1].into(),
            seen: HashMap::new(),
        }
    }

    /// The model's verdict on a frame of a port that bridges, with the station that the lines have and the flood groups as they are now.
    fn verdict(&mut self, ((domain, mac, generation), station): (Asked, Option<Station>)) -> Verdict {
        self.tables.generation = generation;
        self.tables.outbound.fdb.clear();
        if let Some(station) = station {
            self.tables.outbound.fdb.insert((domain, mac, generation), station);
        }
        self.tables.outbound.floods = self.floods.clone();
        let key = FlowKey::default().with_domain(domain).with_dmac(mac);
        self.tables.decide(&key, &Facts::default(), &Port { bridge: true, domain, ..Default::default() })
    }

    fn cycle(&mut self, card: &mut HashMap<Asked, Station>, asks: Option<Asked>) {
        self.tb.set("valid", asks.is_some().into());
        // What is not valid is noise.
        let (domain, mac, generation) = asks.unwrap_or((3, 4, 1));
        self.tb.set("domain", domain.into());
        self.tb.set("mac", mac);
        self.tb.set("generation", generation.into());
        self.asked.push_front(asks.map(|asked| (asked, None)));
        if let Some((asked, station)) = &mut self.asked[LINES] {
            *station = card.get(asked).copied();
        }
        let ready = self.asked[FLOODS].map(|asked| self.verdict(asked));
        self.asked.truncate(FLOODS + 1);
        self.due.push_front(ready);
        let write = if self.tb.rng().percent(70) { self.writes.pop_front() } else { None };
        self.tb.set("write", write.is_some().into());
        if let Some((Write { place, entry, .. }, done)) = write {
            self.tb.set("write_way", place.way.into());
            self.tb.set("write_line", place.line.into());
            let line = entry.as_ref().map_or_else(|| vec![0; LINE.div_ceil(8)], |entry| entry.line(KEY_BITS, RESULT_BITS));
            self.tb.set_wide("write_data", &words(&line)[..]);
            match done {
                Some((asked, Some(station))) => _ = card.insert(asked, station),
                Some((asked, None)) => _ = card.remove(&asked),
                None => {}
            }
        }
        let (flood, there) = (self.tb.rng().percent(5), self.tb.rng().percent(60));
        let (domain, group) = (u64::from(any_address(self.tb.rng()).0) & ((1 << LG) - 1), self.tb.rng().below(1 << 12));
        self.tb.set("write_flood", flood.into());
        self.tb.set("flood_domain", domain);
        self.tb.set("flood_group", group);
        self.tb.set("there", there.into());
        if flood {
            self.floods.remove(&(domain as u16));
            self.floods.extend(there.then_some((domain as u16, group as u16)));
        }
        self.tb.cycle();
        let due = self.due.pop_back().expect("a cycle");
        assert_eq!(self.tb.get("found_valid"), u64::from(due.is_some()));
        let Some(due) = due else { return };
        // Nothing found is what goes to software.
        let hit = due.kind() != destination::EXCEPTION;
        assert_eq!(self.tb.get("hit"), u64::from(hit), "{due:?}");
        if hit {
            let station = self.tb.get_wide("station");
            let field = |name: &str| Fields::of::<StationStruct>().get(&station, name) as u16;
            assert_eq!((field("kind"), field("number"), field("encap")), (due.kind().into(), due.number(), due.encap()));
        }
        let entry = if due.kind() == destination::GROUP && due.number() < 16 { 16 } else { due.kind() };
        *self.seen.entry(entry).or_default() += 1;
    }

    /// A station comes, moves to another place of the network, or goes.
    fn change(&mut self) {
        let rng = self.tb.rng();
        let ((domain, mac), generation) = (any_address(rng), rng.below(2) as u8);
        let asked = (domain, mac, generation);
        let key = station::key(domain, mac);
        if rng.percent(30) {
            let write = self.placement.remove(&key, generation);
            self.writes.extend(write.map(|write| (write, Some((asked, None)))));
            return;
        }
        let encap = rng.range(1, 4095) as u16;
        let (to, result) = match rng.below(3) {
            0 => (Station::Port(encap as u8), station::port(encap as u8)),
            1 => (Station::Remote(encap), station::remote(encap, (encap % 3) as u8)),
            // Groups of few numbers are told from those of floods.
            _ => (Station::Group(encap % 16), station::group(encap % 16)),
        };
        if let Ok(writes) = self.placement.insert(Entry { key: key.into(), generation, result: result.into() }) {
            let last = writes.len() - 1;
            self.writes.extend(writes.into_iter().enumerate().map(|(n, write)| (write, (n == last).then_some((asked, Some(to))))));
        }
    }
}

fn stations<const LG: usize>() {
    let (mut b, mut card) = (Bench::<LG>::new(), HashMap::new());
    for _ in 0..20_000 {
        if b.writes.is_empty() && b.tb.rng().percent(50) {
            b.change();
        }
        let rng = b.tb.rng();
        let ((domain, mac), generation) = (any_address(rng), rng.below(2) as u8);
        let asks = b.tb.rng().percent(85).then_some((domain, mac, generation));
        b.cycle(&mut card, asks);
    }
    for kind in [destination::PORT, destination::UPLINK, destination::GROUP, destination::EXCEPTION, 16] {
        assert!(b.seen.get(&kind).is_some_and(|n| *n > 100), "{kind}: {:?}", b.seen);
    }
}

#[test]
fn stations_are_the_models_w64() {
    stations::<6>();
}

#[test]
fn stations_are_the_models_w512() {
    stations::<12>();
}
