//! Random packets of two PDCs, one RUD and one ROD, against the golden model's receive half.
use super::Window;
use crate::tb::Tb;
use crate::uet::testing::{Asked, Told};
use crate::uet::types::{arrival, rx_ask, RxAsk, RxTold};
use ferric_uet::model::{Arrival, Mark, Mode, Response, Rx, Seen};

const LP: usize = 3;
const LW: usize = 7;
const LR: usize = LP + LW - 6;
const LINES: usize = 1 << LP;
/// Less than the rows hold, so that the edge is the register's.
const WINDOW: u32 = 120;
const OK: Response = Response { message: 1, code: 1, length: 1, data: None };

fn seen(bytes: u32) -> Seen {
    Seen { ask: false, marked: false, retx: false, ev: 0, at: 0, bytes }
}

/// What every answer says of the state.
fn same(told: &Told, rx: &Rx, what: &str) {
    let mask = (1 << 24) - 1;
    assert_eq!(told.word("cack"), rx.cack(), "{what}: cack");
    assert_eq!(told.word("expected"), rx.psn(if rx.holed { rx.base } else { rx.expected() - empty_end(rx) }), "{what}: expected");
    assert_eq!(told.word("bytes"), rx.bytes.div_ceil(256) as u32 & mask, "{what}: bytes");
    assert_eq!(told.word("ooo"), u32::from(rx.out_of_order()), "{what}: out of order");
    assert_eq!(told.word("held") as usize, rx.held(), "{what}: held");
    assert_eq!(told.word("pending") as usize, rx.pending(), "{what}: pending");
    assert_eq!(told.word("marked") as usize, rx.marks.iter().filter(|mark| **mark != Mark::Empty).count(), "{what}: marked");
}

/// Holes among the marks of RUD: the place that ROD expects counts none.
fn empty_end(rx: &Rx) -> u32 {
    rx.marks.iter().filter(|mark| **mark == Mark::Empty).count() as u32
}

struct Bench {
    tb: Tb,
    block: Asked,
    rx: Vec<Rx>,
    /// Each arrival, what became of refusals, holes filled, CACK over more than a row, clears, SACKs of the far end; ROD that takes the oldest, and no other, behind a refusal.
    reached: [u32; 16],
}

impl Bench {
    fn new(name: &str) -> Self {
        let mut tb = Tb::new(name, Window::<LP, LW, LR>::default());
        tb.set("window", WINDOW.into());
        let block = Asked::new::<RxAsk, RxTold>(&mut tb);
        let mut bench = Self { tb, block, rx: Vec::new(), reached: [0; 16] };
        for line in 0..LINES {
            // Some of them around the end of the numbers.
            let start = if line % 2 == 0 { 0u32.wrapping_sub(bench.tb.rng().below(150) as u32) } else { bench.tb.rng().next_u32() };
            bench.open(line, start);
        }
        bench
    }

    fn open(&mut self, line: usize, start: u32) {
        let told = self.block.ask(&mut self.tb, &[("kind", rx_ask::OPEN.into()), ("line", line as u128), ("psn", start.into())]);
        self.rx.truncate(line.max(self.rx.len()));
        let rx = Rx::new(start);
        same(&told, &rx, "open");
        if line < self.rx.len() {
            self.rx[line] = rx;
        } else {
            self.rx.push(rx);
        }
    }

    /// A place that is interesting: near CACK, near the newest, at the window's edge, anywhere.
    fn place(&mut self, line: usize) -> u32 {
        let (base, newest, rng) = (self.rx[line].base, self.rx[line].newest, self.tb.rng());
        match rng.below(16) {
            0 => base.wrapping_sub(1 + rng.below(80) as u32),
            1 => base + WINDOW - 2 + rng.below(4) as u32,
            2 => base + 127 + rng.below(3) as u32,
            3 => rng.next_u32(),
            4..=7 => newest + rng.below(6) as u32,
            8..=9 => base + rng.below(WINDOW.into()) as u32,
            _ => base + rng.below(3) as u32,
        }
    }

    fn arrive(&mut self, line: usize, place: u32) {
        let mode = if line % 4 == 3 { Mode::Rod } else { Mode::Rud };
        let (retx, trim, full) = (self.tb.rng().percent(20), self.tb.rng().percent(5), self.tb.rng().percent(10));
        let rx = &mut self.rx[line];
        let psn = rx.psn(place);
        let order =
            [("kind", rx_ask::ARRIVE.into()), ("line", line as u128), ("psn", psn.into()), ("rod", u128::from(mode == Mode::Rod)), ("retx", retx.into()), ("trim", trim.into()), ("full", full.into())];
        let told = self.block.ask(&mut self.tb, &order);
        let oldest = place == rx.base;
        let holed = mode == Mode::Rod && rx.holed && !rx.marks.is_empty();
        let code = match rx.look(place, mode, WINDOW, retx) {
            Arrival::New if trim => arrival::NEW,
            Arrival::New if full && !oldest => arrival::NO_ROOM,
            Arrival::New => {
                rx.take(place, seen(0));
                arrival::NEW
            }
            Arrival::Old => arrival::OLD,
            Arrival::Pending => arrival::PENDING,
            Arrival::Kept(_) => arrival::KEPT,
            Arrival::Outside => arrival::OUTSIDE,
            Arrival::Gap(tell) => {
                rx.told = true;
                if tell {
                    arrival::GAP_TELL
                } else {
                    arrival::GAP
                }
            }
        };
        assert_eq!(told.get("arrival"), code.into(), "place {place} of {rx:?}");
        assert_eq!(told.is("first"), oldest);
        same(&told, rx, "arrive");
        self.reached[code as usize] += 1;
        self.reached[14] += u32::from(holed && code == arrival::NEW);
        self.reached[15] += u32::from(holed && code == arrival::GAP_TELL);
    }

    /// A packet that semantics have; none: any place.
    fn with_semantics(&mut self, line: usize) -> u32 {
        let rx = &self.rx[line];
        let places: Vec<u32> = rx.marks.iter().enumerate().filter(|(_, mark)| matches!(mark, Mark::Seen(_))).map(|(n, _)| rx.base + n as u32).collect();
        if places.is_empty() || self.tb.rng().percent(5) {
            return self.place(line);
        }
        places[self.tb.rng().below(places.len() as u64) as usize]
    }

    fn done(&mut self, line: usize) {
        let place = self.with_semantics(line);
        let (keep, bytes) = (line % 4 == 2 && self.tb.rng().percent(40), self.tb.rng().below(1 << 14) as u32);
        let rx = &mut self.rx[line];
        let order = [("kind", rx_ask::DONE.into()), ("line", line as u128), ("psn", rx.psn(place).into()), ("keep", keep.into()), ("bytes", bytes.into())];
        let told = self.block.ask(&mut self.tb, &order);
        let ahead = place.wrapping_sub(rx.base) as usize;
        if let Some(Mark::Seen(seen)) = rx.marks.get_mut(ahead) {
            seen.bytes = bytes;
        }
        let (before, finished) = (rx.base, rx.done(place, keep.then_some(OK), false));
        assert_eq!(told.is("ok"), finished.is_some(), "done {place} of {rx:?}");
        if let Some(finished) = finished {
            assert_eq!((told.is("filled"), told.is("beyond")), (finished.filled, finished.beyond), "done {place} of {rx:?}");
            self.reached[8] += u32::from(finished.filled);
            self.reached[9] += u32::from(finished.beyond);
            self.reached[10] += u32::from(rx.base - before > 64);
        }
        same(&told, rx, "done");
    }

    fn refuse(&mut self, line: usize) {
        let place = self.with_semantics(line);
        let rx = &mut self.rx[line];
        let order = [("kind", rx_ask::REFUSE.into()), ("line", line as u128), ("psn", rx.psn(place).into())];
        let told = self.block.ask(&mut self.tb, &order);
        let refused = rx.refuse(place).is_some();
        assert_eq!(told.is("ok"), refused, "refuse {place} of {rx:?}");
        self.reached[11] += u32::from(refused);
        same(&told, rx, "refuse");
    }

    fn clear(&mut self, line: usize) {
        let (base, newest) = (self.rx[line].base, self.rx[line].newest);
        let place = match self.tb.rng().below(4) {
            0 => self.place(line),
            1 => newest,
            _ => base + self.tb.rng().below(u64::from(newest - base) + 2) as u32,
        };
        let rx = &mut self.rx[line];
        let told = self.block.ask(&mut self.tb, &[("kind", rx_ask::CLEAR.into()), ("line", line as u128), ("psn", rx.psn(place).into())]);
        let freed = rx.clear(place);
        assert_eq!(told.word("freed") as usize, freed, "clear {place} of {rx:?}");
        self.reached[12] += u32::from(freed > 1);
        same(&told, rx, "clear");
    }

    /// Much comes behind a hole, and then what fills it: CACK goes over more than a row.
    fn burst(&mut self, line: usize) {
        let start = self.tb.rng().next_u32();
        self.open(line, start);
        for place in (1..100).chain([0]) {
            while self.rx[line].look(place, Mode::Rud, WINDOW, false) == Arrival::New {
                self.arrive(line, place);
            }
            while self.rx[line].pending() > 0 {
                self.done(line);
            }
        }
    }

    fn sack(&mut self, line: usize) {
        let told = self.block.ask(&mut self.tb, &[("kind", rx_ask::SACK.into()), ("line", line as u128)]);
        let rx = &mut self.rx[line];
        let (base, bitmap) = rx.sack();
        assert_eq!((told.word("base"), told.get("bitmap") as u64), (base, bitmap), "sack of {rx:?}");
        self.reached[13] += u32::from(base != rx.psn(rx.base));
        same(&told, rx, "sack");
    }
}

#[test]
fn what_comes_is_known_as_the_model_knows_it() {
    let mut bench = Bench::new("uet_window_test");
    for round in 0..6000u32 {
        let line = bench.tb.rng().below(LINES as u64) as usize;
        match bench.tb.rng().below(100) {
            0..=44 => {
                let place = bench.place(line);
                bench.arrive(line, place);
            }
            // Now and then semantics are slow, so that much waits behind a hole.
            45..=79 if round / 500 % 2 == 1 || line % 2 == 0 => bench.done(line),
            80..=84 => bench.refuse(line),
            85..=90 => bench.clear(line),
            91..=99 => bench.sack(line),
            _ => {
                let ahead = bench.tb.rng().below(WINDOW.into()) as u32;
                let place = bench.rx[line].base + ahead;
                bench.arrive(line, place);
            }
        }
        if round % 1000 == 999 {
            bench.burst(round as usize / 1000 % 2);
        }
    }
    assert!(bench.reached.iter().all(|n| *n > 3), "not everything was reached: {:?}", bench.reached);
}
