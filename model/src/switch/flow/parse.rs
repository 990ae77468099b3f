//! Reads the text of flows. An error names the character where it is, counted from 1, and what was expected there.
mod steps;
mod text;

use super::fields::{Form, FOREIGN, TCP_FLAGS, TUNNEL_FLAGS};
use super::{Field, Flow, Masked, Match, Step, Tag};
use ferric_abi::wire::ethertype;
use std::collections::BTreeMap;
use text::Text;

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Character, from 1.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "character {}: {}", self.at, self.what)
    }
}

impl std::error::Error for Error {}

/// Numbers of the ports that a text may name.
pub type Ports = BTreeMap<String, u32>;

/// How deep `clone`, `sample` and `encap` may stand in each other.
const DEEPEST: usize = 8;

/// Reads what a flow matches, and the actions.
pub fn flow(matches: &str, steps: &str, ports: &Ports) -> Result<Flow, Error> {
    Ok(Flow { matches: self::matches(matches, ports)?, steps: self::steps(steps, ports)? })
}

/// Reads a line of `dpctl/dump-flows`: the key, statistics, `actions:`. Places count from the line's start.
pub fn dump_line(line: &str, ports: &Ports) -> Result<Flow, Error> {
    let Some((key, steps)) = line.split_once("actions:") else {
        return Err(Error { at: line.chars().count() + 1, what: "`actions:` is missing".into() });
    };
    let begin = if key.starts_with("ufid:") { key.find(',').map_or(key.len(), |comma| comma + 1) } else { 0 };
    let end = key.find(", packets:").unwrap_or(key.len()).max(begin);
    // What `-m` writes behind the actions is no action.
    let tail = steps.find(", dp-extra-info:").unwrap_or(steps.len());
    let moved = |by: usize| move |e: Error| Error { at: e.at + by, ..e };
    let chars = |bytes: usize| line[..bytes].chars().count();
    Ok(Flow { matches: self::matches(&key[begin..end], ports).map_err(moved(chars(begin)))?, steps: self::steps(&steps[..tail], ports).map_err(moved(chars(line.len() - steps.len())))? })
}

/// Reads what a flow matches.
pub fn matches(text: &str, ports: &Ports) -> Result<Match, Error> {
    let mut t = Text::new(text, ports);
    let mut m = Match::default();
    groups(&mut t, &mut m, 0)?;
    if t.is_empty() {
        Ok(m)
    } else {
        Err(t.error("a comma, then a group such as `eth(...)`"))
    }
}

/// Reads actions.
pub fn steps(text: &str, ports: &Ports) -> Result<Vec<Step>, Error> {
    let mut t = Text::new(text, ports);
    let out = steps::list(&mut t, 0)?;
    if t.is_empty() {
        Ok(out)
    } else {
        Err(t.error("a comma, then an action"))
    }
}

/// Groups with commas between them, up to the end or a closing bracket.
fn groups(t: &mut Text, m: &mut Match, depth: usize) -> Result<(), Error> {
    t.space();
    while !t.is_empty() && !t.sees(")") {
        group(t, m, depth)?;
        t.space();
        if !t.eat(",") {
            break;
        }
        t.space();
    }
    Ok(())
}

fn group(t: &mut Text, m: &mut Match, depth: usize) -> Result<(), Error> {
    let begin = t.place();
    let name = t.word();
    t.expect("(")?;
    match name.as_str() {
        "encap" => {
            if depth >= DEEPEST || m.tags.len() <= depth {
                return Err(begin.error("`encap(...)` without `vlan(...)` before it"));
            }
            groups(t, m, depth + 1)?;
            return t.expect(")");
        }
        "eth_type" => {
            let value = masked(t, Form::Hex, 0xffff)?;
            t.expect(")")?;
            // The type of a tag belongs to the `vlan(...)` that follows.
            if matches!(value.value as u16, ethertype::VLAN | ethertype::SERVICE_VLAN) && value.mask == 0xffff && m.tags.len() <= depth && depth < 2 {
                m.tags.push(Tag { tpid: value.value as u16, ..Default::default() });
            } else {
                put(m, Field::EthType, value, &begin)?;
            }
            return Ok(());
        }
        "vlan" => {
            let Some(mut tag) = m.tags.get(depth).copied() else {
                return Err(begin.error("`vlan(...)` without `eth_type(0x8100)` or `eth_type(0x88a8)` before it"));
            };
            members(t, |t, member, place| match member {
                "vid" => masked(t, Form::Decimal, 0xfff).map(|v| tag.vid = v),
                "pcp" => masked(t, Form::Decimal, 7).map(|v| tag.pcp = v),
                "cfi" => match masked(t, Form::Decimal, 1)? {
                    Masked { value: 0, mask: 1 } => Err(place.error("there is a tag: cfi is 1")),
                    _ => Ok(()),
                },
                _ => Err(place.error("`vid`, `pcp` or `cfi`")),
            })?;
            m.tags[depth] = tag;
            return Ok(());
        }
        "tunnel" => m.tunnel = true,
        _ if FOREIGN.contains(&name.as_str()) => {
            let inside = t.balanced()?;
            t.expect(")")?;
            if !says_nothing(&name, &inside) {
                m.foreign.push(format!("{name}({inside})"));
            }
            return Ok(());
        }
        _ => {}
    }
    // A group with one value has no names in it.
    if let Some(field) = Field::of(&name, "") {
        let value = masked(t, field.form(), field.full())?;
        t.expect(")")?;
        return put(m, field, value, &begin);
    }
    if !Field::ALL.iter().any(|e| e.1 == name) {
        return Err(begin.error(&format!("a group of the flow key, not `{name}`")));
    }
    members(t, |t, member, place| {
        if name == "tunnel" && member == "geneve" {
            t.expect_open()?;
            let inside = t.balanced()?;
            t.expect(")")?;
            if !inside.is_empty() && inside != "{}" {
                m.foreign.push(format!("tunnel_geneve({inside})"));
            }
            return Ok(());
        }
        let Some(field) = Field::of(&name, member) else {
            return Err(place.error(&format!("a field of `{name}(...)`, not `{member}`")));
        };
        let value = masked(t, field.form(), field.full())?;
        put(m, field, value, &place)
    })
}

/// Whether a foreign group has a mask of zero, or says what is so for every frame that was not treated before.
fn says_nothing(name: &str, inside: &str) -> bool {
    let zero = |v: &str| v.trim_start_matches("0x").chars().all(|c| c == '0' || c == ':') && !v.is_empty();
    let last = |part: &str| part.split(['=', '/']).next_back().is_some_and(zero);
    match name {
        "recirc_id" => last(inside),
        "packet_type" => inside.split(',').all(last),
        _ => inside.is_empty() || inside.split(',').all(|part| part.contains('/') && last(part)),
    }
}

fn put(m: &mut Match, field: Field, value: Masked, place: &text::Place) -> Result<(), Error> {
    if value.mask == 0 {
        return Ok(());
    }
    match m.fields.insert(field, value) {
        None => Ok(()),
        Some(_) => Err(place.error("a field that has not been named before")),
    }
}

/// `name=value` or `name(...)` with commas between them, and the closing bracket.
fn members(t: &mut Text, mut each: impl FnMut(&mut Text, &str, text::Place) -> Result<(), Error>) -> Result<(), Error> {
    t.space();
    while !t.is_empty() && !t.sees(")") {
        let place = t.place();
        let name = t.word();
        if !t.eat("=") && !t.sees("(") {
            return Err(t.error("`=`"));
        }
        each(t, &name, place)?;
        if !t.eat(",") {
            break;
        }
        t.space();
    }
    t.expect(")")
}

/// A value, and a mask behind `/` if there is one.
fn masked(t: &mut Text, form: Form, full: u128) -> Result<Masked, Error> {
    match form {
        Form::TcpFlags => return flags(t, &TCP_FLAGS, full),
        Form::TunnelFlags => {
            t.expect_open()?;
            let value = if t.sees(")") { Masked::new(0, 0) } else { flags(t, &TUNNEL_FLAGS, full)? };
            t.expect(")")?;
            return Ok(value);
        }
        _ => {}
    }
    let value = one(t, form, full)?;
    let mask = if t.eat("/") { one(t, form, full)? } else { full };
    Ok(Masked::new(value, mask))
}

/// `+syn-ack`, `syn|ack`, or a number with a mask or without.
fn flags(t: &mut Text, names: &[&str], full: u128) -> Result<Masked, Error> {
    if t.digit() {
        let value = one(t, Form::Hex, full)?;
        let mask = if t.eat("/") { one(t, Form::Hex, full)? } else { full };
        return Ok(Masked::new(value, mask));
    }
    let signs = t.sees("+") || t.sees("-");
    let (mut value, mut mask) = (0, 0);
    loop {
        let set = if signs { t.eat("+") || !t.eat("-") } else { true };
        let place = t.place();
        let name = t.word_of(|c| c.is_ascii_alphanumeric() || "_[]".contains(c));
        let Some(bit) = names.iter().position(|n| *n == name) else {
            return Err(place.error(&format!("a flag ({}), not `{name}`", names.join(", "))));
        };
        mask |= 1 << bit;
        value |= u128::from(set) << bit;
        let more = if signs { t.sees("+") || t.sees("-") } else { t.eat("|") };
        if !more {
            return Ok(Masked::new(value, if signs { mask } else { full }));
        }
    }
}

fn one(t: &mut Text, form: Form, full: u128) -> Result<u128, Error> {
    let place = t.place();
    let value = match form {
        Form::Mac => t.mac(),
        Form::Ip4 => t.ip4(),
        Form::Ip6 => t.ip6(),
        Form::Fragment => {
            let word = t.word();
            ["no", "first", "later"].iter().position(|n| *n == word).map(|n| n as u128)
        }
        Form::Port => t.port(),
        _ => t.number(),
    };
    let wanted = match form {
        Form::Mac => "a MAC address",
        Form::Ip4 => "an IPv4 address",
        Form::Ip6 => "an IPv6 address",
        Form::Fragment => "`no`, `first` or `later`",
        Form::Port => "a port",
        _ => "a number",
    };
    match value {
        Some(value) if value <= full => Ok(value),
        Some(_) => Err(place.error(&format!("a number up to {full:#x}"))),
        None => Err(place.error(wanted)),
    }
}
