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
