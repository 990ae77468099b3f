//! Choices and what became of packets, against the golden model's paths.
use super::Spray;
use crate::tb::{Fields, Tb};
use crate::uet::types::{told, Choice, SprayAsk};
use ferric_uet::model::{Policy, Spray as Model, Told};

const LP: usize = 2;

fn exercise(policy: Policy, entropies: u16) {
    let mut tb = Tb::new("uet_spray_test", Spray::<LP, { LP + 6 }>::default());
    let (orders, choices) = (tb.source("s", 30), tb.sink("m", 30));
    let (ask, choice) = (Fields::of::<SprayAsk>(), Fields::of::<Choice>());
    tb.set("last_slot", u64::from(entropies) - 1);
    tb.set("penalties", u64::from(policy == Policy::Penalties));
    let table: Vec<u16> = (0..64).map(|_| tb.rng().next_u32() as u16).collect();
    for (slot, entropy) in table.iter().enumerate() {
        tb.set("table_en", 1);
        tb.set("table_slot", slot as u64);
        tb.set("table_entropy", u64::from(*entropy));
        tb.cycle();
    }
    tb.set("table_en", 0);
    let fixed = policy == Policy::Fixed;
    let mut models: Vec<Model> = (0..1 << LP).map(|_| Model::new(policy, entropies, &mut 1)).collect();
    (0..1 << LP).for_each(|line| orders.push(ask.pack(&[("line", line), ("init", 1)])));
    let mut passed = 0;
    for round in 0..3000u32 {
        let line = tb.rng().below(1 << LP) as usize;
        if tb.rng().percent(60) {
            orders.push(ask.pack(&[("line", line as u128), ("choose", 1), ("fixed", fixed.into())]));
            tb.run_until(2000, |_| !choices.is_empty());
            let words = choices.pop().unwrap();
            let before = models[line].clone();
            let (slot, _) = models[line].choose();
            assert_eq!(choice.get(&words, "slot"), slot.into(), "{before:?}");
            assert_eq!(choice.get(&words, "entropy"), table[usize::from(slot)].into());
            passed += u32::from(before.clone() != models[line] && policy == Policy::Penalties);
        } else {
            let all = [(told::OK, Told::Ok), (told::ECN, Told::Ecn), (told::NACK, Told::Nack), (told::TIMEOUT, Told::Timeout)];
            // Now and then all paths are bad.
            let (code, what) = if round % 1000 > 900 { all[3] } else { all[tb.rng().below(4) as usize] };
            let slot = tb.rng().below(entropies.into()) as u16;
            orders.push(ask.pack(&[("line", line as u128), ("slot", slot.into()), ("what", code.into())]));
            models[line].told(slot, what);
        }
    }
    assert!(policy != Policy::Penalties || passed > 100);
}

#[test]
fn paths_are_chosen_as_the_model_chooses() {
    exercise(Policy::Penalties, 5);
    exercise(Policy::Oblivious, 64);
    exercise(Policy::Fixed, 1);
}
