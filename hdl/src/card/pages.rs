//! The pages of `docs/` that are written from the list: the ports of every block, and the wait graph.

use crate::assembly::{Assembled, WaitGraph};
use std::fmt::Write;

/// What stands around the generated part of a page.
const BEGIN: &str = "<!-- written by `ferric-gen --docs`: begin -->\n";
const END: &str = "<!-- written by `ferric-gen --docs`: end -->";

/// `docs/ports.md`: every instance of the card of `width` bits with its ports, what they are joined to, and what they may wait for.
/// Error: the list does not fit together.
pub fn ports(width: usize) -> Result<String, String> {
    super::on_a_large_stack(|| Ok(port_tables(width, &assembled(width)?)))
}

fn port_tables(width: usize, card: &Assembled) -> String {
    let graph = WaitGraph::of(card);
    let mut page = format!(
        "# Ports\n\nWritten from the list of the card (`hdl/src/card/list.rs`) by `ferric-gen --docs`; a test compares. Types are those of `hdl/src/msg.rs`; widths are of the card of {width} bits.\n\
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
pub fn with_graph(page: &str, width: usize) -> Result<String, String> {
    let marks = || Some((page.find(BEGIN)? + BEGIN.len(), page.find(END)?));
    let (begin, end) = marks().ok_or("docs/deadlock.md lacks the marks around its graph")?;
    Ok(format!("{}{}{}", &page[..begin], super::on_a_large_stack(|| Ok(graph(&assembled(width)?)))?, &page[end..]))
}

fn assembled(width: usize) -> Result<Assembled, String> {
    super::list(width)?.assemble().map_err(|faults| faults.join("\n"))
}
