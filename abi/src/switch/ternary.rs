//! What wildcard rules are asked with, and how they stand in the card's rows: driver and gateware (`switch/tcam`) share it. Rules see 320 bits of the key, which ones says the packet's
//! class; they are cut into chunks of five bits. A row of a group of rules says for one value of a chunk which rules take it, for each chunk.

use super::table::KEY_BITS;
use super::FlowKey;

/// Bits that a rule sees.
pub const BITS: usize = 320;
/// Bits of a chunk.
pub const CHUNK_BITS: usize = 5;
/// Chunks.
pub const CHUNKS: usize = BITS / CHUNK_BITS;
/// Rows of a group: values of a chunk.
pub const ROWS: usize = 1 << CHUNK_BITS;
/// Rules of a group: as many as one command can write a row for.
pub const RULES: usize = 14;

/// The bits that rules see, bit n in bit n % 8 of byte n / 8.
pub type Slice = [u8; BITS / 8];

/// The bit behind all others says that the packet is IPv6.
const IS_V6: usize = BITS - 1;
/// In packets that are not IPv6 an address has 32 bits.
const ADDRESS_BITS: usize = 32;

/// What rules see of an IPv6 packet.
const V6_FIELDS: [&str; 12] = ["in_port", "domain", "remote", "tag_present", "second_tag", "service_tag", "ttl_class", "proto", "fragment", "src", "dst", "dst_port"];

/// Where the bits that rules see come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This bit of the key.
    Key(usize),
    /// The packet is IPv6.
    IsV6,
    /// Zero.
    Zero,
}

/// The sources of all bits that rules see, of IPv6 packets or of all others.
pub fn sources(v6: bool) -> [Source; BITS] {
    let mut out = [Source::Zero; BITS];
    let mut at = 0;
    for field in FlowKey::LAYOUT.fields {
        let address = field.name == "src" || field.name == "dst";
        let width = match v6 {
            true if !V6_FIELDS.contains(&field.name) => 0,
            false if field.name.starts_with("rsvd") => 0,
            false if address => ADDRESS_BITS,
            _ => field.width,
        };
        for bit in 0..width {
            out[at] = Source::Key(field.offset + bit);
            at += 1;
        }
    }
    out[IS_V6] = Source::IsV6;
    out
}

fn bit(bytes: &[u8], n: usize) -> bool {
    bytes[n / 8] >> (n % 8) & 1 == 1
}

/// What rules see of a key.
pub fn slice(key: &FlowKey, v6: bool) -> Slice {
    let mut out = [0; BITS / 8];
    for (n, source) in sources(v6).iter().enumerate() {
        let is = match source {
            Source::Key(at) => bit(&key.0, *at),
            Source::IsV6 => v6,
            Source::Zero => false,
        };
        out[n / 8] |= u8::from(is) << (n % 8);
    }
    out
}

/// A rule as the card has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Bits that a packet has to have, where the mask has ones.
    pub value: Slice,
    /// Bits that count.
    pub mask: Slice,
}

/// What a rule over the whole key is for one class of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// This pattern.
    By(Pattern),
    /// No packet of the class fits it: it needs no rule.
    Never,
    /// It asks for bits that rules do not see: it cannot be said.
    Not,
}

/// A rule, for IPv6 packets or for all others.
pub fn say(key: &FlowKey, mask: &FlowKey, v6: bool) -> Said {
    let sources = sources(v6);
    let mut pattern = Pattern { value: slice(key, v6), mask: slice(mask, v6) };
    pattern.mask[IS_V6 / 8] |= 1 << (IS_V6 % 8);
    let mut unsaid = false;
    for n in (0..KEY_BITS).filter(|n| bit(&mask.0, *n) && !sources.contains(&Source::Key(*n))) {
        match always(n, v6) {
            Some(is) if is != bit(&key.0, n) => return Said::Never,
            Some(_) => {}
            None => unsaid = true,
        }
    }
    if unsaid {
        Said::Not
    } else {
        Said::By(pattern)
    }
}

/// What a bit of the key is in every packet of the class, if it is the same in all.
fn always(n: usize, v6: bool) -> Option<bool> {
    let field = FlowKey::LAYOUT.fields.iter().find(|field| (field.offset..field.offset + field.width).contains(&n))?;
    match field.name {
        "ethertype" if v6 => Some(crate::wire::ethertype::IPV6 >> (n - field.offset) & 1 == 1),
        "src" | "dst" if !v6 => Some(false),
        name if name.starts_with("rsvd") => Some(false),
        _ => None,
    }
}

impl Pattern {
    /// Whether a chunk takes a value.
    pub fn takes(&self, chunk: usize, value: usize) -> bool {
        (0..CHUNK_BITS).all(|n| {
            let at = chunk * CHUNK_BITS + n;
            !bit(&self.mask, at) || bit(&self.value, at) == (value >> n & 1 == 1)
        })
    }

    /// Whether a packet fits.
    pub fn fits(&self, packet: &Slice) -> bool {
        (0..BITS / 8).all(|n| (packet[n] ^ self.value[n]) & self.mask[n] == 0)
    }
}

/// The row of a group for one value of each chunk: bit `chunk` * 14 + rule says that the rule takes it. A rule that is not there takes nothing.
pub fn row(rules: &[Option<Pattern>; RULES], value: usize) -> [u8; CHUNKS * RULES / 8] {
    let mut out = [0; CHUNKS * RULES / 8];
    for chunk in 0..CHUNKS {
        for (n, rule) in rules.iter().enumerate() {
            let at = chunk * RULES + n;
            out[at / 8] |= u8::from(rule.is_some_and(|rule| rule.takes(chunk, value))) << (at % 8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(v6: bool) -> usize {
        sources(v6).iter().filter(|source| **source != Source::Zero).count()
    }

    #[test]
    fn both_classes_fit() {
        assert_eq!((used(false), used(true)), (KEY_BITS - 9 - 2 * 96 + 1, BITS));
    }

    #[test]
    fn what_cannot_be_said() {
        let ones = |set: fn(&mut FlowKey)| {
            let mut key = FlowKey::default();
            set(&mut key);
            key
        };
        let mac = ones(|key| _ = key.set_dmac(1));
        assert_eq!(say(&mac, &mac, true), Said::Not);
        assert!(matches!(say(&mac, &mac, false), Said::By(_)));
        // An address of more than 32 bits, and a type, that no packet of the class has.
        let address = ones(|key| _ = key.set_src(1 << 80));
        assert_eq!(say(&address, &address, false), Said::Never);
        assert!(matches!(say(&address, &address, true), Said::By(_)));
        let ethertype = ones(|key| _ = key.set_ethertype(0xffff));
        assert_eq!(say(&ones(|key| _ = key.set_ethertype(0x0800)), &ethertype, true), Said::Never);
        assert!(matches!(say(&ones(|key| _ = key.set_ethertype(0x86dd)), &ethertype, true), Said::By(_)));
    }

    #[test]
    fn rows_say_what_patterns_say() {
        let key = FlowKey(core::array::from_fn(|n| (n * 91) as u8));
        let mask = FlowKey(core::array::from_fn(|n| (n * 57) as u8));
        let pattern = Pattern { value: slice(&key, false), mask: slice(&mask, false) };
        let mut rules = [None; RULES];
        rules[5] = Some(pattern);
        for (packet, fits) in [(pattern.value, true), (slice(&mask, false), false)] {
            assert_eq!(pattern.fits(&packet), fits);
            let takes = |chunk: usize, n: usize| {
                let value = (0..CHUNK_BITS).map(|b| usize::from(bit(&packet, chunk * CHUNK_BITS + b)) << b).sum();
                bit(&row(&rules, value), chunk * RULES + n)
            };
            assert_eq!((0..CHUNKS).all(|chunk| takes(chunk, 5)), fits);
            assert!(!(0..CHUNKS).any(|chunk| takes(chunk, 4)));
        }
    }
}
