//! No file of the driver uses itself by way of others, no room of the gateware one above it, and what the transports share speaks none's language.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// A module's path from the crate's root, `["cm", "wire"]`; its text without comments and tests, which may use anything.
type Modules = BTreeMap<Vec<String>, String>;
/// Each part with the parts that it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(dir: &Path, module: &[String], into: &mut Modules) {
    for path in read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let inside = if matches!(&*name, "mod" | "lib") { module.to_vec() } else { module.iter().chain([&name]).cloned().collect() };
        if path.is_dir() && !matches!(&*name, "tests" | "bin") {
            read(&path, &inside, into);
        } else if path.extension().is_some_and(|e| e == "rs") && !name.ends_with("tests") {
            let text = read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            into.insert(inside, text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n"));
        }
    }
}

/// The paths of a tree such as `cm::{wire, types::{Event, Local as L}}`; gives what follows it.
fn tree<'a>(mut text: &'a str, mut path: Vec<String>, into: &mut Vec<Vec<String>>) -> &'a str {
    if let Some(mut list) = text.strip_prefix('{') {
        while !list.trim_start().starts_with('}') {
            list = tree(list.trim_start(), path.clone(), into);
            list = list[list.find([',', '}']).unwrap()..].trim_start_matches(',');
        }
        return &list.trim_start()[1..];
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    path.push(text[..end].to_string());
    text = &text[end..];
    if let Some(rest) = text.strip_prefix("::").filter(|rest| !rest.starts_with('<')) {
        return tree(rest, path, into);
    }
    into.push(path);
    text
}

/// What `module` names of its own crate: paths that begin with `crate`, `super`, `self` or a module declared in it, from the root on.
fn named(module: &[String], text: &str) -> Vec<Vec<String>> {
    let children: Vec<&str> = text.split("mod ").skip(1).filter_map(|rest| rest.split_once(';')).map(|(name, _)| name).collect();
    let mut paths = Vec::new();
    for word in ["crate", "super", "self"].iter().chain(&children) {
        let starts = text.match_indices(&format!("{word}::")).map(|(at, _)| at).collect::<Vec<_>>();
        for at in starts.into_iter().filter(|at| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')) {
            tree(&text[at..], Vec::new(), &mut paths);
        }
    }
    paths
        .into_iter()
        .map(|path| {
            let up = path.iter().take_while(|p| *p == "super").count();
            let from = if path[0] == "crate" { 0 } else { module.len().saturating_sub(up) };
            let skip = if matches!(&*path[0], "crate" | "self") { 1 } else { up };
            [&module[..from], &path[skip..]].concat()
        })
        .collect()
}

/// Which parts use which; a part is the first `depth` names of a module's path.
fn uses(sources: &str, depth: usize) -> Graph {
    let mut modules = Modules::new();
    read(&root().join(sources), &[], &mut modules);
    let part = |m: &[String]| m[..m.len().min(depth)].join("/");
    // What the root gives out under its own name stands for where that comes from; of `types::*` nobody knows the names.
    let given = named(&[], &modules[&[][..]]);
    let owner = |path: &[String]| (1..=path.len()).rev().map(|n| &path[..n]).find(|p| modules.contains_key(*p)).map(part);
    let mut graph = Graph::new();
    for (module, text) in modules.iter().filter(|(module, _)| !module.is_empty()) {
        let used = graph.entry(part(module)).or_default();
        for path in named(module, text).iter().filter(|path| !path.is_empty()) {
            let through = || given.iter().filter(|g| g.last().is_some_and(|name| *name == path[0] || name.is_empty())).filter_map(|g| owner(g)).collect();
            used.extend(owner(path).map_or_else(through, |one| vec![one]));
        }
        used.remove(&part(module));
    }
    assert!(graph.values().map(BTreeSet::len).sum::<usize>() > 60, "{sources}: few uses are found, so this test looks at nothing");
    graph
}

#[test]
fn no_file_of_the_driver_uses_itself() {
    let graph = uses("driver/src", usize::MAX);
    let mut circles = BTreeSet::new();
    for start in graph.keys() {
        let (mut ways, mut seen) = (VecDeque::from([vec![start]]), BTreeSet::new());
        while let Some(way) = ways.pop_front() {
            for next in graph.get(way[way.len() - 1]).into_iter().flatten().filter(|next| seen.insert(*next)) {
                let longer = [&way[..], &[next]].concat();
                if next == start {
                    circles.insert(longer.iter().map(|part| &part[..]).collect::<Vec<_>>().join(" -> "));
                }
                ways.push_back(longer);
            }
        }
    }
    assert!(circles.is_empty(), "in a circle:\n{}", circles.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn rooms_of_the_gateware_use_those_below() {
    let readme = read_to_string(root().join("hdl/README.md")).unwrap();
    let line = readme.lines().find_map(|line| line.strip_prefix("* Rooms, from below: ")).expect("hdl/README.md lists the rooms");
    let rooms: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
    let floor = |room: &str| rooms.iter().position(|r| *r == room).unwrap_or_else(|| panic!("hdl/README.md does not list the room {room}"));
    for (room, used) in uses("hdl/src", 1) {
        let above: Vec<_> = used.iter().filter(|other| floor(other) > floor(&room)).collect();
        assert!(above.is_empty(), "{room} uses {above:?}, above it in hdl/README.md");
    }
}

/// Words of RoCE's packets.
const ROCE: [&str; 8] = ["aeth", "bth", "deth", "msn", "psn", "reth", "roce", "syndrome"];
/// Those that `rdma` still says, and why.
const SAID: [(&str, &str); 7] = [
    ("complete", "syndrome"), // of a completion, which software sees
    ("gather", "aeth"),       // the gatherer still hands RoCE's headers on
    ("gather", "deth"),
    ("gather", "psn"),
    ("gather", "reth"),
    ("gather", "roce"),
    ("mr", "psn"), // of `TxDone`, which the gatherer makes too
];

/// Orders to place, and what comes of them, are neutral: RoCE's part is a word that nobody looks into.
#[test]
fn what_transports_share_knows_no_words_of_roce() {
    let mut modules = Modules::new();
    read(&root().join("hdl/src/rdma"), &[], &mut modules);
    assert!(modules.len() > 15, "{} files: this test looks at nothing", modules.len());
    let mut said = BTreeSet::new();
    for (module, text) in &modules {
        let room = module.first().map_or("mod", String::as_str);
        for name in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
            let name = name.to_lowercase();
            said.extend(name.split('_').filter_map(|part| ROCE.iter().find(|word| part.trim_end_matches(|c: char| c.is_ascii_digit()) == **word)).map(|word| (room, *word)));
        }
        if text.contains("wire::opcode") {
            said.insert((room, "opcode"));
        }
    }
    assert_eq!(said, BTreeSet::from(SAID), "hdl/src/rdma serves every transport; what belongs to RoCE goes into the order's `transport` (hdl/src/roce/word.rs)");
}
