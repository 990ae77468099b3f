//! 120 random programs of verbs on whole cards against the golden model. A thousand run on twins (`tests/twin.rs`), and `./scripts/soak property` runs more.
use ferric_tests::property::{missing, run, Coverage, Plan};
use std::thread;

#[test]
fn whatever_programs_do_the_golden_model_agrees() {
    // Half of them on each of two cores. The seeds are such that sixty programs of each bring all that is wanted on twins, where trying seeds takes a second each:
    // `FERRIC_BODY=twin ./scripts/soak property --seed N --cases 60`.
    let halves: Vec<_> = [11, 14].map(|seed| thread::spawn(move || run(Plan { seed, cases: 60, width: 64, bodies: Default::default() }))).into_iter().map(|t| t.join().expect("no panic")).collect();
    let mut total = Coverage::new();
    for half in halves {
        let coverage = half.unwrap_or_else(|e| panic!("{e}\nrepeat with ./scripts/soak property"));
        coverage.into_iter().for_each(|(name, n)| *total.entry(name).or_default() += n);
    }
    for (name, n) in total.iter().filter(|(_, n)| **n > 0) {
        println!("{name:32} {n}");
    }
    assert_eq!(missing(&total), [""; 0], "never happened");
}
