//! Keys under masks that are written meanwhile, against the golden model's.
use super::{Profile, LATENCY};
use crate::switch::testing::{any_mask, words};
use crate::tb::Tb;
use ferric_abi::switch::table::profile_line;
use ferric_abi::switch::FlowKey;
use ferric_model::switch::key::masked;

#[test]
fn keys_are_masked_as_the_model_does() {
    let mut tb = Tb::new("profile", Profile::default());
    let mut masks = [None; 64];
    // Those that are asked for under way.
    let (mut asked, mut none) = (0, 0);
    for _ in 0..6000 {
        let key = FlowKey(tb.rng().bytes(FlowKey::BYTES).try_into().expect("61"));
        let (valid, generation, port, packet) = (tb.rng().percent(80), tb.rng().below(4) as u8, tb.rng().below(4) as u8, tb.rng().below(4) as u8);
        tb.set("valid", valid.into());
        tb.set_wide("key", &words(&key.0)[..]);
        tb.set("generation", generation.into());
        tb.set("port_class", port.into());
        tb.set("packet_class", packet.into());
        let mask: Option<FlowKey> = masks[profile_line(generation, port, packet) as usize];
        let (write, there, line) = (tb.rng().percent(10), tb.rng().percent(70), tb.rng().below(64));
        let new = any_mask(tb.rng());
        tb.set("write", write.into());
        tb.set("there", there.into());
        tb.set("write_line", line);
        tb.set_wide("write_mask", &words(&new.0)[..]);
        if write {
            masks[line as usize] = there.then_some(new);
        }
        assert_eq!(LATENCY, 1, "the result is read in the next cycle");
        tb.cycle();
        assert_eq!(tb.get("asks"), u64::from(valid && mask.is_some()));
        if let Some(mask) = mask.filter(|_| valid) {
            assert_eq!(tb.get_wide("masked"), words(&masked(&key, &mask).0));
            asked += 1;
        } else {
            none += 1;
        }
    }
    assert!(asked > 2000 && none > 1000, "{asked} {none}");
}
