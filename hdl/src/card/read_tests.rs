//! A card whose engines want more small reads in flight than ids of 8 bits tell apart.
use super::*;
use crate::bus::{MsgSink, MsgSrc};
use crate::engines::Check;
use crate::msg::{RdCmd, RdRow};
use rust_hdl::prelude::*;

/// A client that reads nothing.
#[derive(LogicBlock, Default)]
struct Idle {
    pub m_rd: MsgSrc<RdCmd>,
    pub s_rd: MsgSink<RdRow>,
}

impl Logic for Idle {
    #[hdl_gen]
    fn update(&mut self) {
        self.m_rd.valid.next = false;
        self.m_rd.data.next.iova = bits::<64>(0);
        self.m_rd.data.next.function = bits::<12>(0);
        self.m_rd.data.next.rows = bits::<4>(0);
        self.m_rd.data.next.tag = bits::<8>(0);
        self.s_rd.ready.next = true;
    }
}

const THIRSTY: Engine = Engine {
    name: "thirsty",
    what: "Wants many small reads in flight.",
    needs: &[],
    capabilities: 0,
    receives: "",
    check: Check::None,
    doorbells: &[],
    commands: &[],
    reset: None,
    lines: |a, _| {
        for name in ["idle0", "idle1", "idle2"] {
            a.instance(name, Idle::default).waits(&[("s_rd", &[])]);
            a.client_with(list::SMALL_READS, 64, &[&format!("{name}.m_rd"), &format!("{name}.s_rd")]);
        }
    },
};

#[test]
fn ids_of_reads_are_as_wide_as_the_engines_need() {
    let plain = Card::named(DEFAULT, 64).unwrap();
    let mut card = plain.clone();
    card.engines.push(&THIRSTY);
    assert_eq!((plain.read_id_bits(), plain.fits_read_ids(8), card.read_id_bits(), card.fits_read_ids(9)), (8, Ok(()), 9, Ok(())));
    let why = "the engines of this card want 320 small reads in flight, for which its reads have ids of 9 bits; the board's bridge takes 8";
    assert_eq!(card.fits_read_ids(8), Err(why.into()));
    for (card, bits) in [(&plain, 8), (&card, 9)] {
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
