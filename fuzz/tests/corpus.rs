//! Every input that is kept is run again: those that were interesting, and those that once broke something.
use std::path::Path;

fn replay(name: &str, run: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut inputs = 0;
    for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        run(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 10, "{inputs} inputs in {}", dir.display());
}

#[test]
fn vfio_user() {
    replay("vfio_user", ferric_fuzz::vfio_user::run);
}

#[test]
fn verbs() {
    replay("verbs", ferric_fuzz::verbs::run);
}

#[test]
fn cm() {
    replay("cm", ferric_fuzz::cm::run);
}

#[test]
fn switch() {
    replay("switch", ferric_fuzz::switch::run);
}

/// Any bytes, without libFuzzer: so many that most kinds of steps meet.
#[test]
fn switch_by_chance() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut all = ferric_fuzz::switch::Met::default();
    for n in 0..20_000usize {
        let mut next = || {
            // xorshift64* (Vigna, 2016)
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes()
        };
        let bytes: Vec<u8> = (0..8 + n % 120).flat_map(|_| next()).collect();
        let met = ferric_fuzz::switch::play(&bytes);
        all = ferric_fuzz::switch::Met { read: all.read + met.read, installed: all.installed + met.installed, frames: all.frames + met.frames, sent: all.sent + met.sent };
    }
    println!("{all:?}");
    assert!(all.read > 1000 && all.installed > 100 && all.frames > 1000 && all.sent > 100, "{all:?}");
}
