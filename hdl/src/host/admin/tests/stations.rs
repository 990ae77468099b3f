//! SET_STATION: what is refused, whose lines are touched, and in which order. The receive front compares meanwhile, so a line must never say that half of an address counts.

use super::card::Event;
use super::commands::{line, words};
use super::{functions, Bench, SIZES};
use ferric_abi::codes::AdminOpcode::*;
use ferric_abi::codes::AdminStatus::{self, *};
use ferric_abi::context::StationCtx;
use ferric_abi::csr::{space::STATION, STATIONS};

const FUNCTIONS: u32 = 1 << SIZES.functions;
const MAC: u64 = 0x02ff_0a00_0001;
/// The word that makes a line count.
const LAST: u8 = 1;

fn here(mac: u64) -> StationCtx {
    StationCtx::default().with_mac(mac).with_valid(true)
}
fn set(b: &mut Bench, status: AdminStatus, f: u32, id: u32, station: StationCtx) {
    b.expect(status, f as usize, SetStation, id, &words::<2>(&station.0));
}
fn station(b: &Bench, f: u32, id: u32) -> StationCtx {
    StationCtx(line(&b.card, STATION, f * STATIONS + id))
}

pub fn all(b: &mut Bench) {
    let start = b.card.log.len();
    (0..FUNCTIONS as usize).for_each(|f| functions::reset(b, f));
    parameters(b);
    first_come(b);
    order(b);
    isolation(b);
    let exists = |line: u32| line < FUNCTIONS * STATIONS;
    assert!(b.card.log[start..].iter().all(|e| !matches!(e, Event::Control { space: STATION, line, .. } if !exists(*line))), "lines that do not exist");
}

fn parameters(b: &mut Bench) {
    let start = b.card.log.len();
    for id in [STATIONS, STATIONS + 1, u32::MAX] {
        set(b, BadId, 1, id, here(MAC));
        set(b, BadId, 1, id, StationCtx::default());
    }
    for bad in [0, 1 << 40, MAC | 1 << 40, 0xffff_ffff_ffff] {
        set(b, BadParameter, 1, 0, here(bad));
    }
    assert_eq!(b.card.written(STATION, start), [], "what is refused changes nothing");
    for id in [0, STATIONS - 1] {
        for mac in [1, 1 << 32, 1 << 31, 0xfeff_ffff_ffff] {
            set(b, Ok, 1, id, here(mac).with_rsvd0(0x7fff));
            assert_eq!(station(b, 1, id), here(mac), "reserved bits stay zero");
        }
        set(b, Ok, 1, id, here(MAC).with_valid(false));
        assert!(!station(b, 1, id).valid());
    }
}

/// Whoever has an address keeps it, whichever function wants it and wherever; one bit beside is another address.
fn first_come(b: &mut Bench) {
    for (f, id) in [(0, 0), (1, STATIONS - 1), (3, 2)] {
        set(b, Ok, f, id, here(MAC));
        for other in 0..FUNCTIONS {
            for number in 0..STATIONS {
                let start = b.card.log.len();
                set(b, if (other, number) == (f, id) { Ok } else { InUse }, other, number, here(MAC));
                assert_eq!(b.card.written(STATION, start), [], "what is there stays as it is");
            }
        }
        for bit in [0, 31, 32, 39, 41, 47] {
            set(b, Ok, 2, 1, here(MAC ^ 1 << bit));
        }
        set(b, Ok, 2, 1, StationCtx::default());
        // Given back, or freed by the function's reset, it is anybody's.
        if f == 1 {
            functions::reset(b, f as usize);
        } else {
            set(b, Ok, f, id, StationCtx::default());
        }
        set(b, Ok, 2, 0, here(MAC));
        set(b, InUse, f, id, here(MAC));
        set(b, Ok, 2, 0, StationCtx::default());
    }
}

/// The word that makes a line count is cleared first and written last.
fn order(b: &mut Bench) {
    set(b, Ok, 1, 2, here(MAC));
    let start = b.card.log.len();
    let new = here(MAC ^ (1 << 47 | 1));
    set(b, Ok, 1, 2, new);
    let [low, high] = words::<2>(&new.0);
    let at = STATIONS + 2;
    assert_eq!(b.card.written(STATION, start), [(at, LAST, 0), (at, 0, low), (at, LAST, high)]);
    functions::reset(b, 1);
}

/// A function writes its own lines; its reset takes those and no others.
fn isolation(b: &mut Bench) {
    let mac = |f: u32, id: u32| MAC + u64::from(f << 8 | id);
    for f in 0..FUNCTIONS {
        let start = b.card.log.len();
        (0..STATIONS).for_each(|id| set(b, Ok, f, id, here(mac(f, id))));
        assert!(b.card.written(STATION, start).iter().all(|w| w.0 / STATIONS == f), "function {f}");
    }
    for f in 0..FUNCTIONS {
        functions::reset(b, f as usize);
        for other in 0..FUNCTIONS {
            let counts = (0..STATIONS).filter(|id| station(b, other, *id).valid()).count() as u32;
            assert_eq!(counts, if other <= f { 0 } else { STATIONS }, "function {other}, after the reset of {f}");
        }
        set(b, Ok, f, 0, here(mac(f, 0)));
        functions::reset(b, f as usize);
    }
    b.expect(BadParameter, 1, QueryObject, STATIONS, &[STATION.into(), 0]);
    set(b, Ok, 1, 0, here(MAC));
    let seen = b.expect(Ok, 0, QueryObject, STATIONS, &[STATION.into(), 0]);
    assert_eq!(seen[..2], words::<2>(&here(MAC).0));
    functions::reset(b, 1);
}
