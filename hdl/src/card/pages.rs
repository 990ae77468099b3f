//! The pages of `docs/` that are written from the list: the ports of every block, and the wait graph.

use super::{Card, CARDS, ENGINES};
use crate::assembly::{Assembled, WaitGraph};
use std::fmt::Write;

/// What stands around the generated part of a page.
const BEGIN: &str = "<!-- written by `ferric-gen docs`: begin -->\n";
const END: &str = "<!-- written by `ferric-gen docs`: end -->";

/// `docs/ports.md`: every instance of `card` with its ports, what they are joined to, and what they may wait for.
/// Error: the list does not fit together.
pub fn ports(card: &Card) -> Result<String, String> {
    super::on_a_large_stack(|| Ok(port_tables(card.sizes.width, &assembled(card)?)))
}

fn port_tables(width: usize, card: &Assembled) -> String {
    let graph = WaitGraph::of(card);
    let mut page = format!(
        "# Ports\n\nWritten from the list of the card (`hdl/src/card/list.rs`, and the lines of its engines) by `ferric-gen docs`; a test compares. Types are those of `hdl/src/msg.rs`; widths are of the card of {width} bits.\n\
         A port without a type behind `Bits` is a plain signal. \"Waits for\": what may have to happen first, through which of its own ports ([deadlock.md](deadlock.md)); \"never\": it takes or gives at once.\n"
    );
    for (instance, ports) in &card.ports {
        let _ = writeln!(page, "\n## {instance}\n\n| port | | carries | joined to | waits for |\n|---|---|---|---|---|");
        for port in ports.iter().filter(|p| p.name != "clock" && p.name != "reset") {
            let name = format!("{instance}.{}", port.name);
            let others: Vec<&str> = card.joints.iter().filter_map(|j| if j.from == name { Some(j.to.as_str()) } else { (j.to == name).then_some(j.from.as_str()) }).collect();
            let waits = match graph.edges.get(&name) {
                None => String::new(),
                Some(edges) if edges.is_empty() => "never".into(),
                Some(edges) => edges.iter().map(|e| e.through.as_str()).collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", "),
            };
            let gives = !port.signals.iter().find(|s| s.field.ends_with("valid") || s.field.is_empty()).unwrap_or(&port.signals[0]).input;
            let _ = writeln!(page, "| {} | {} | {} | {} | {waits} |", port.name, if gives { "out" } else { "in" }, port.carries(), others.join(", "));
        }
    }
    page
}

/// The graph of docs/deadlock.md: which block may wait for which, through which ports.
fn graph(card: &Assembled) -> String {
    let graph = WaitGraph::of(card);
    let mut text = String::from("```mermaid\ngraph TD\n");
    for ((from, to), through) in graph.between_instances() {
        let to = if card.ports.iter().any(|(name, _)| *name == to) { to } else { format!("{to}(({to}))") };
        let _ = writeln!(text, "  {from} -- {} --> {to}", through.into_iter().map(|p| p.replace(['[', ']'], "")).collect::<Vec<_>>().join(" "));
    }
    text.push_str("```\n");
    text
}

/// `page`, the text of docs/deadlock.md, with its graph as it is now. Errors: the marks are missing, the list does not fit together.
pub fn with_graph(page: &str, card: &Card) -> Result<String, String> {
    let marks = || Some((page.find(BEGIN)? + BEGIN.len(), page.find(END)?));
    let (begin, end) = marks().ok_or("docs/deadlock.md lacks the marks around its graph")?;
    Ok(format!("{}{}{}", &page[..begin], super::on_a_large_stack(|| Ok(graph(&assembled(card)?)))?, &page[end..]))
}

fn assembled(card: &Card) -> Result<Assembled, String> {
    card.list().assemble().map_err(|faults| faults.join("\n"))
}

/// The engines and the cards that there are, a line each.
pub fn cards() -> String {
    let mut text = String::from("engines:\n");
    ENGINES.iter().for_each(|e| text.push_str(&format!("  {:<8} {}\n", e.name, e.what)));
    text.push_str("cards:\n");
    CARDS.iter().for_each(|(name, engines, what)| text.push_str(&format!("  {name:<8} {}: {what}\n", engines.join(", "))));
    text
}

/// `docs/engines.md`: every engine by its manifest and its lines. Error: a list does not fit together.
pub fn engines() -> Result<String, String> {
    let mut page = String::from(
        "# Engines and cards\n\nWritten from the manifests by `ferric-gen docs`; a test compares. A card is the chassis (`hdl/src/card/list.rs`) and engines, each with a manifest and lines of its own (`hdl/src/engines/`). \
         What is not in a card leaves no gate, no counter, no table and no capability bit in it. An engine may also stand between the ports and the card, on the chains `frames off the wire` and `frames to the wire`.\n\n## Cards\n\n| card | engines | for |\n|---|---|---|\n",
    );
    CARDS.iter().for_each(|(name, engines, what)| page.push_str(&format!("| `{name}` | {} | {what} |\n", engines.join(", "))));
    let most: Vec<&str> = super::most().map(|e| e.name).collect();
    for engine in ENGINES {
        let list = if most.contains(&engine.name) { Card::of(&most, super::WIDTHS[0]) } else { Card::of(&[engine.name], super::WIDTHS[0]) }?.list();
        let list_of = |names: Vec<String>| if names.is_empty() { "none".into() } else { names.join(", ") };
        let blocks = list.instances.iter().filter(|i| i.part == engine.name).map(|i| format!("`{}`", i.name)).collect();
        let tables = list.tables.iter().filter(|t| t.part == engine.name).map(|t| format!("{} (`{}`)", t.name, t.instance)).collect();
        let mut sums: Vec<(&str, usize, usize)> = Vec::new();
        for c in list.counters.iter().filter(|c| c.part == engine.name) {
            let own = if c.whose.is_some() { c.events.len() } else { 0 };
            match sums.iter_mut().find(|(block, ..)| *block == c.block) {
                Some((_, all, by_function)) => (*all, *by_function) = (*all + c.events.len(), *by_function + own),
                None => sums.push((c.block, c.events.len(), own)),
            }
        }
        let counters = sums.iter().map(|(block, all, own)| format!("`{block}` {all}{}", if *own > 0 { format!(" ({own} by function)") } else { String::new() })).collect();
        let bits = (0..u32::BITS).filter(|bit| engine.capabilities >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
        let doorbells = engine.doorbells.iter().map(|(offset, what)| format!("{offset:#x} ({what})")).collect();
        let commands = engine.commands.iter().map(|c| format!("{:?} ({})", c.0, c.0 as u8)).collect();
        let _ = write!(page, "\n## {}\n\n{}\n\n| | |\n|---|---|\n", engine.name, engine.what);
        for (what, text) in [
            ("needs", list_of(engine.needs.iter().map(|n| n.to_string()).collect())),
            ("receives", if engine.receives.is_empty() { "no frames".into() } else { engine.receives.into() }),
            ("check", format!("{:?}", engine.check)),
            ("bits of CAPS3", list_of(bits)),
            ("doorbells", list_of(doorbells)),
            ("admin commands", list_of(commands)),
            ("tables", list_of(tables)),
            ("counters", list_of(counters)),
            ("blocks", list_of(blocks)),
        ] {
            let _ = writeln!(page, "| {what} | {text} |");
        }
    }
    Ok(page)
}
