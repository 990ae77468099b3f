//! Which functions a frame may be for: those of its network. Model: `ferric_model::net::networks`.

use crate::msg::Network;
use crate::prim::pack::Gather;
use ferric_hdl_derive::{kernel, BlockDefault};
use ferric_model::net::networks::WHOLE;
use rust_hdl::prelude::*;

/// Bits of all functions' networks: a byte for each (`ferric_model::net::networks::Networks::bytes`).
pub const NETWORKS: usize = 512;
/// log2 of the bits of one.
const LG_EACH: u64 = 3;
/// The bit of it that says that the function has a tunnel.
pub const HAS: usize = 7;
/// The bit of a frame's `function` that says that it is for all of the network.
const ALL: usize = WHOLE.ilog2() as usize;
const FUNCTION_0: u64 = 1;

/// Combinational.
#[derive(LogicBlock, BlockDefault)]
#[demand(NETWORKS == 64 << LG_EACH)]
pub struct Within {
    /// What goes with the frame.
    pub network: Signal<In, Network>,
    /// Which network each function is in.
    pub networks: Signal<In, Bits<NETWORKS>>,
    /// A bit for each function.
    pub reached: Signal<Out, Bits<64>>,
    number: Signal<Local, Bits<6>>,
    shifted: Signal<Local, Bits<NETWORKS>>,
    sought: Signal<Local, Bits<8>>,
    own: Signal<Local, Bits<8>>,
    only: Signal<Local, Bits<64>>,
    all: Gather<64>,
    plain: Gather<64>,
}

#[kernel]
impl Logic for Within {
    #[hdl_gen]
    fn update(&mut self) {
        self.number.next = self.network.val().function.get_bits::<6>(0);
        self.only.next = bits::<64>(FUNCTION_0) << bit_cast::<64, 6>(self.number.val());
        self.shifted.next = self.networks.val() >> (bit_cast::<9, 6>(self.number.val()) << LG_EACH);
        self.sought.next = self.shifted.val().get_bits::<8>(0);
        for i in 0..64 {
            self.own.next = self.networks.val().get_bits::<8>(i * 8);
            self.plain.x[i].next = !self.own.val().get_bit(HAS);
            self.all.x[i].next = self.own.val().get_bit(HAS) & (self.own.val() == self.sought.val());
        }
        self.reached.next = self.plain.y.val();
        if self.network.val().tunnel {
            self.reached.next = self.only.val();
            if self.network.val().function.get_bit(ALL) {
                self.reached.next = self.all.y.val();
            }
        }
    }
}

/// What tests of blocks that look at networks have in common.
#[cfg(test)]
pub(crate) mod testing {
    use crate::msg;
    use crate::tb::{Fields, Rng};
    use ferric_model::net::networks::{Networks, Through, NOBODY};

    /// The port's words.
    pub fn words(networks: &Networks) -> Vec<u32> {
        networks.bytes().chunks(4).map(|b| u32::from_le_bytes(b.try_into().expect("four"))).collect()
    }

    /// What goes with a frame. `raw`: through no tunnel, a raw queue pair may get it.
    pub fn origin(through: Through, raw: bool) -> [(&'static str, u128); 2] {
        let none = through == Through::None;
        [("tunnel", (!none).into()), ("function", if none && !raw { NOBODY } else { through.bits() }.into())]
    }

    pub fn packed(through: Through, raw: bool) -> Vec<u32> {
        Fields::of::<msg::Network>().pack(&origin(through, raw))
    }

    /// The functions of `tunnels` have tunnels; about half of those below `functions` that could have joined another has.
    pub fn some(rng: &mut Rng, functions: u16, tunnels: u64) -> Networks {
        let mut networks = Networks::apart(tunnels);
        for f in 1..functions {
            let leader = rng.below(functions.into()) as u16;
            if leader != 0 && leader < f && networks.get(f).is_some() && networks.get(leader) == Some(leader as u8) && rng.percent(50) {
                networks = networks.join(f, leader);
            }
        }
        networks
    }

    /// Any way that a frame may have come, of functions below `functions`.
    pub fn anywhere(rng: &mut Rng, functions: u16) -> Through {
        let f = rng.below(functions.into()) as u16;
        [Through::None, Through::Only(f), Through::Shown(f), Through::Whole(f), Through::Looped(f)][rng.below(5) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{anywhere, packed, some, words};
    use super::Within;
    use crate::tb::{Rng, Tb};
    use ferric_model::net::networks::Network;

    #[test]
    fn it_is_what_the_model_says() {
        let mut tb = Tb::new("within", Within::default());
        let mut rng = Rng::new(7);
        let mut sizes = [0; 65];
        for _ in 0..3000 {
            let tunnels = rng.next_u64() | rng.next_u64();
            let (networks, through) = (some(&mut rng, 64, tunnels), anywhere(&mut rng, 64));
            tb.set_wide("networks", words(&networks));
            tb.set_wide("network", packed(through, true));
            tb.begin();
            let network = Network { through, networks };
            let want = (0..64).fold(0u64, |set, f| set | u64::from(network.has(f)) << f);
            assert_eq!(tb.get("reached"), want, "{network:?}");
            sizes[want.count_ones() as usize] += 1;
        }
        assert!(sizes[0] > 100 && sizes[1] > 100 && sizes[2..].iter().sum::<u32>() > 100, "{sizes:?}");
    }
}
