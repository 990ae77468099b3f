//! Wildcard rules as the card sees them, by 320 bits of the key, against those over the whole key.
use super::super::decide::Facts;
use super::super::key::{key, masked, Origin};
use super::super::layers::parse;
use ferric_abi::switch::ternary::{say, slice, Said};
use ferric_abi::switch::FlowKey;
use proptest::prelude::*;

/// A frame of IPv4, IPv6, ARP or another type, whose fields are from `bytes`.
fn frame(kind: u8, bytes: [u8; 48]) -> Vec<u8> {
    let mut f = [&bytes[..12], &[[8, 0], [0x86, 0xdd], [8, 6], [0x88, 0xb5]][usize::from(kind)]].concat();
    match kind {
        0 => f.extend([&[0x45, bytes[12], 0, 28, 0, 0, 0, 0, bytes[13], 17, 0, 0], &bytes[16..24], &bytes[24..28], &[0, 8, 0, 0]].concat()),
        1 => f.extend([&[0x60, 0, 0, 0, 0, 8, 17, bytes[13]], &bytes[12..44], &bytes[44..48], &[0, 8, 0, 0]].concat()),
        2 => f.extend([&[0, 1, 8, 0, 6, 4, 0, 1], &bytes[..20]].concat()),
        _ => f.extend(bytes),
    }
    f
}

proptest! {
    /// A rule that can be said says the same of every frame; one that never fits fits none.
    #[test]
    fn rules_fit_the_same_frames(kind in 0u8..4, bytes in any::<[u8; 48]>(), kept in any::<[u8; 8]>(), flip in prop::option::of(0usize..488), v6 in any::<bool>()) {
        let layers = parse(&frame(kind, bytes)).expect("the graph has it");
        let of_frame = key(&layers, Origin { port: 8, domain: 5, remote: 0, geneve_option: false });
        // Eight bytes of the mask anywhere; the rule is of the frame's own key, or differs in a bit.
        let mut mask = FlowKey::default();
        kept.iter().for_each(|n| mask.0[usize::from(*n) % FlowKey::BYTES] = n ^ 0xa5);
        let mut rule = of_frame;
        if let Some(bit) = flip {
            rule.0[bit / 8] ^= 1 << (bit % 8);
        }
        let fits = masked(&rule, &mask) == masked(&of_frame, &mask);
        let is_v6 = Facts::of(&layers).class == 3;
        match say(&rule, &mask, v6) {
            Said::By(pattern) => prop_assert_eq!(pattern.fits(&slice(&of_frame, is_v6)), fits && v6 == is_v6),
            Said::Never => prop_assert!(!(fits && v6 == is_v6)),
            Said::Not => prop_assert!(v6),
        }
    }
}
