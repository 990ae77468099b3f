//! Ids of reads are as wide as a card's engines need.
use super::*;

#[test]
fn a_board_may_have_too_few_ids_for_a_card() {
    let (few, many) = (Card::of(&["echo"], 64).unwrap(), Card::named(DEFAULT, 64).unwrap());
    assert_eq!((few.read_id_bits(), few.fits_read_ids(8), many.read_id_bits(), many.fits_read_ids(9)), (8, Ok(()), 9, Ok(())));
    let why = "this card wants 184 small reads and 128 of payload in flight, for which its reads have ids of 9 bits; the board's bridge takes 8";
    assert_eq!(many.fits_read_ids(8), Err(why.into()));
    // Quotas above 256 together would halve the payload reads: small messages of slow hosts would take half as long again.
    let wide = Card::named(DEFAULT, 512).unwrap().fits_read_ids(8).unwrap_err();
    assert!(wide.contains("and 256 of payload in flight"), "{wide}");
    for (card, bits) in [(&few, 8), (&many, 9)] {
        on_a_large_stack(|| {
            let built = card.list().assemble().map_err(|f| f.join("\n"))?;
            let ports = crate::assembly::ports::of(&built);
            let ids: Vec<usize> = ports.iter().flat_map(|p| p.signals.iter().filter(|s| p.signal(&s.field).ends_with("r_id")).map(|s| s.bits)).collect();
            assert_eq!(ids, [bits, bits]);
            Ok(())
        })
        .unwrap();
    }
}
