//! The card core's outputs come from registers: no input reaches an output in the same cycle (rule 5 of the architecture).
//! `Card::cycle` relies on it.
use ferric_sim::device::library;
use ferric_sim::CardConfig;
use rand::{RngCore as _, SeedableRng};
use verilator_sys::Direction;

#[test]
fn boundary_outputs_are_registered() {
    let library = library(&CardConfig { width: 64, ..Default::default() }).unwrap();
    let mut model = library.instance(None).unwrap();
    let mut rng = ferric_sim::Rng::seed_from_u64(7);
    let ports: Vec<_> = library.ports().iter().map(|p| (model.port(&p.name).unwrap(), p.clone())).collect();
    let outputs = |model: &verilator_sys::Model| -> Vec<Vec<u8>> { ports.iter().filter(|(_, p)| p.direction == Direction::Out).map(|(id, _)| model.bytes(*id).to_vec()).collect() };
    // Constant outputs get their value at the first evaluation.
    model.settle();
    let mut changed = 0;
    let mut last = outputs(&model);
    for cycle in 0..4000 {
        for (id, p) in ports.iter().filter(|(_, p)| p.direction == Direction::In && p.name != "clock") {
            let mut bytes = vec![0; p.bytes()];
            rng.fill_bytes(&mut bytes);
            let top = p.width % 8;
            if top > 0 {
                *bytes.last_mut().unwrap() &= (1 << top) - 1;
            }
            if p.name == "reset" {
                bytes[0] = (cycle < 2000) as u8;
            }
            model.set_bytes(*id, &bytes);
        }
        let before = outputs(&model);
        model.settle();
        let after = outputs(&model);
        let names = || ports.iter().filter(|(_, p)| p.direction == Direction::Out).map(|(_, p)| p.name.clone());
        let wrong: Vec<_> = names().zip(before.iter().zip(&after)).filter(|(_, (b, a))| b != a).map(|(n, _)| n).collect();
        assert!(wrong.is_empty(), "cycle {cycle}: {wrong:?} follow an input without a register");
        model.edge();
        changed += (last != after) as u32;
        last = after;
    }
    assert!(changed > 100, "the card did nothing under random inputs");
}
