use super::RamTwoWriters;
use crate::tb::Tb;

/// Its Verilog, for the list of mutants.
pub(crate) fn verilog() -> String {
    crate::emit::emit("two_writers", RamTwoWriters::<3, 5>::default()).unwrap()
}

/// Against an array: both write in most cycles, different words, and both ports read any.
#[test]
fn it_is_an_array_with_two_writers() {
    let mut tb = Tb::with_seed("two_writers", RamTwoWriters::<3, 5>::default(), 7);
    let mut model = [0u64; 32];
    for _ in 0..4000 {
        let addresses = [tb.rng().below(32), tb.rng().below(32)];
        let mut writes = [None; 2];
        for (i, write) in writes.iter_mut().enumerate() {
            let (on, data) = (tb.rng().below(4) > 0 && (i == 0 || addresses[0] != addresses[1]), tb.rng().below(8));
            tb.set(&format!("write_en{i}"), on.into());
            tb.set(&format!("write_addr{i}"), addresses[i]);
            tb.set(&format!("write_data{i}"), data);
            *write = on.then_some((addresses[i], data));
        }
        let reads = [tb.rng().below(32), addresses[1]];
        (0..2).for_each(|i| tb.set(&format!("read_addr{i}"), reads[i]));
        tb.begin();
        (0..2).for_each(|i| assert_eq!(tb.get(&format!("read_data{i}")), model[reads[i] as usize], "cycle {}", tb.cycles()));
        assert_eq!(tb.get("written0"), model[addresses[0] as usize], "cycle {}", tb.cycles());
        tb.end();
        writes.into_iter().flatten().for_each(|(at, data)| model[at as usize] = data);
    }
}
