//! A card with more tables than an old number of four bits could tell apart.
use super::*;
use crate::assembly::TableName;
use crate::engines::Check;
use crate::host::testing::Register;

/// What an engine calls its tables.
const OWN: [&str; 16] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];

const CROWD: Engine = Engine {
    name: "crowd",
    what: "Has many tables.",
    needs: &[],
    capabilities: 0,
    receives: "",
    check: Check::None,
    doorbells: &[],
    commands: &[],
    reset: None,
    lines: |a, _| {
        for name in OWN {
            a.instance(&format!("crowd_{name}"), || Register::new(1)).waits(&[("s_ctl", &["m_ctl"]), ("m_ctl", &[])]);
            a.table(name, &format!("crowd_{name}"));
        }
    },
};

#[test]
fn a_card_has_as_many_tables_as_its_engines_bring() {
    let with = |engines: &[&str]| {
        let mut card = Card::of(engines, 64).unwrap();
        card.engines.push(&CROWD);
        card
    };
    let card = with(&[]);
    crate::lint::check("crowd", &card.emit(false, "crowd").unwrap()).unwrap_or_else(|e| panic!("{e:#?}"));
    let all: Vec<&str> = most().map(|e| e.name).collect();
    let list = with(&all).list();
    assert!(list.tables.len() > 28 && list.tables.iter().rev().zip(OWN.iter().rev()).all(|(t, name)| t.name == TableName::Own(name)), "behind those of the engines before it");
    list.assemble().unwrap_or_else(|faults| panic!("{faults:#?}"));
}
