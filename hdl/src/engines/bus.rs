//! The card's buses to the host, signal by signal: each is a chain, so that an engine can stand between the card and a bus. Without one they are wires.

use crate::assembly::Assembly;

/// The chain of interrupt requests.
pub const INTERRUPTS: &str = "interrupts";

/// A signal of a bus.
pub struct Line {
    /// Its chain.
    pub chain: &'static str,
    /// Its name at the border without the bus's prefix, which is that at the chassis' block.
    pub name: &'static str,
    /// It comes from outside.
    pub comes: bool,
}

const fn comes(chain: &'static str, name: &'static str) -> Line {
    Line { chain, name, comes: true }
}

const fn goes(chain: &'static str, name: &'static str) -> Line {
    Line { chain, name, comes: false }
}

impl Line {
    /// The port of the card: `prefix` and the name; the signal is `instance`'s.
    pub fn border(&self, a: &mut Assembly, prefix: &'static str, instance: &'static str) {
        let (port, inner) = (format!("{prefix}{}", self.name), format!("{instance}.{}", self.name));
        if self.comes {
            a.chain_in(self.chain, &[(&port, &inner)]);
        } else {
            a.chain_out(self.chain, &[(&inner, &port)]);
        }
    }

    /// `instance` stands in between at `place`: towards the border its port is `outer` and the name, towards the chassis `inner` and the name.
    pub fn between(&self, a: &mut Assembly, place: u32, instance: &str, outer: &str, inner: &str) {
        let (outside, inside) = (format!("{instance}.{outer}{}", self.name), format!("{instance}.{inner}{}", self.name));
        if self.comes {
            a.link(self.chain, place, &outside, &inside);
        } else {
            a.link(self.chain, place, &inside, &outside);
        }
    }
}

/// Reads of host memory (AXI4).
pub const READS: &[Line] = &[
    goes("bus ar_valid", "ar_valid"),
    comes("bus ar_ready", "ar_ready"),
    goes("bus ar_id", "ar_id"),
    goes("bus ar_addr", "ar_addr"),
    goes("bus ar_len", "ar_len"),
    goes("bus ar_user", "ar_user"),
    comes("bus r_valid", "r_valid"),
    goes("bus r_ready", "r_ready"),
    comes("bus r_id", "r_id"),
    comes("bus r_data", "r_data"),
    comes("bus r_resp", "r_resp"),
    comes("bus r_last", "r_last"),
];

/// Writes of host memory (AXI4).
pub const WRITES: &[Line] = &[
    goes("bus aw_valid", "aw_valid"),
    comes("bus aw_ready", "aw_ready"),
    goes("bus aw_addr", "aw_addr"),
    goes("bus aw_len", "aw_len"),
    goes("bus aw_user", "aw_user"),
    goes("bus w_valid", "w_valid"),
    comes("bus w_ready", "w_ready"),
    goes("bus w_data", "w_data"),
    goes("bus w_strb", "w_strb"),
    goes("bus w_last", "w_last"),
    comes("bus b_valid", "b_valid"),
    goes("bus b_ready", "b_ready"),
    comes("bus b_resp", "b_resp"),
];

/// Writes of the host to the doorbell window (AXI4).
pub const DOORBELLS: &[Line] = &[
    comes("bus db_aw_valid", "aw_valid"),
    goes("bus db_aw_ready", "aw_ready"),
    comes("bus db_aw_addr", "aw_addr"),
    comes("bus db_aw_len", "aw_len"),
    comes("bus db_w_valid", "w_valid"),
    goes("bus db_w_ready", "w_ready"),
    comes("bus db_w_data", "w_data"),
    comes("bus db_w_strb", "w_strb"),
    comes("bus db_w_last", "w_last"),
    goes("bus db_b_valid", "b_valid"),
    comes("bus db_b_ready", "b_ready"),
    goes("bus db_b_resp", "b_resp"),
];
