//! The comparison of `./scripts/switch-diff` in short: some tables, some hundred frames.
use ferric_ovs::oracle::Oracle;
use ferric_ovs::server::Error;
use ferric_ovs::tally::Tally;
use ferric_ovs::{case, Folder};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

#[test]
fn the_model_and_open_vswitch_agree() -> Result<(), Error> {
    let folder = Folder::new("short");
    let mut oracle = Oracle::start(folder.path())?;
    let mut tally = Tally::default();
    for seed in 0..24 {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
        if let Some(difference) = case(&mut oracle, 30, &mut rng, &mut tally)? {
            panic!("seed {}: {difference}", 1000 + seed);
        }
    }
    assert!(tally.compared > 600, "{tally:?}");
    for action in ["drop", "to a port", "to an uplink", "to a group", "outer header", "strip", "rewrite MAC", "push tag", "TTL - 1"] {
        assert!(tally.actions.contains_key(action), "no frame with the action {action}: {tally:?}");
    }
    Ok(())
}
