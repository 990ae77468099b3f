//! What the documents name exists: files, links, and identifiers of the code between backquotes.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Names of other projects, of the specification, and parts of names, which stand in no source of ours.
const FOREIGN: [&str; 20] = [
    "ARCHITECTURE.md",
    "IBV_WC_LOC_LEN_ERR",
    "IBV_WC_MW_BIND_ERR",
    "MOVDIR64B",
    "WE", // of a memory, as yosys names it
    "cmtime",
    "hdl/src/engines/jumbo/README.md", // made by docs/adding-an-engine.md
    "hdl/src/engines/jumbo/mod.rs",    // made by docs/adding-an-engine.md
    "ibv_query_gid_table",
    "ibv_xsrq_pingpong",
    "jumbo.jumbo_frames", // made by docs/adding-an-engine.md
    "mckey",
    "message_size",
    "ofi_rxm",
    "priority",
    "proptest-regressions/",
    "rstream",
    "udaddy",
    "udpong",
    "xbmgmt",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files below `dir` but those that are made, not written.
fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let made = name == ".git" || name == "target";
        if path.is_dir() && !made {
            files(&path, into);
        } else if path.is_file() {
            into.push(path);
        }
    }
}

fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "md")
}

/// `text` without fenced blocks, which are examples of commands and output.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// What stands between single backquotes on one line.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Targets of `[..](target)` without anchors.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()).filter(|link| !link.is_empty() && !link.contains("://"))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What is known: every word of every source, every file.
struct Known {
    root: PathBuf,
    words: HashSet<String>,
    names: HashSet<String>,
}

impl Known {
    fn new(all: &[PathBuf]) -> Self {
        let mut words: HashSet<String> = FOREIGN.iter().map(|w| w.to_string()).collect();
        for file in all.iter().filter(|f| !is_document(f)) {
            if let Ok(text) = std::fs::read_to_string(file) {
                words.extend(text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|w| !w.is_empty()).map(str::to_owned));
            }
        }
        let names = all.iter().filter_map(|f| Some(f.file_name()?.to_str()?.to_owned())).collect();
        Self { root: root(), words, names }
    }

    /// Whether `span` is nothing to judge, or something that exists. `dir` is the document's.
    fn knows(&self, dir: &Path, span: &str) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
        if FOREIGN.contains(&span) || self.names.contains(span) {
            return true;
        }
        let path = span.strip_prefix("./").unwrap_or(span);
        if path.contains('/') && path.chars().all(plain) && !path.starts_with('/') {
            let made = path.starts_with("target/") && !self.root.join("hdl/src").join(path).exists();
            let bases = [self.root.clone(), self.root.join("hdl/src"), dir.to_owned()];
            return made || path.split('/').all(|part| self.words.contains(part)) || bases.iter().any(|b| b.join(path).exists() || b.join(format!("{path}.rs")).exists());
        }
        let name = span.strip_suffix("()").unwrap_or(span);
        let parts: Vec<&str> = name.split("::").flat_map(|p| p.split('.')).collect();
        // A block of the engine that the card `virtio` takes in has the card's word in front of its name (`Assembly::absorb`).
        if name.strip_prefix("virtio_").is_some_and(|inner| self.words.contains(inner)) {
            return true;
        }
        // A prefix or suffix such as `_ex` is a part of a name.
        !parts.iter().all(|p| is_word(p)) || name.starts_with(|c: char| c.is_ascii_digit() || c == '_') || name.ends_with('_') || parts.iter().all(|p| self.words.contains(*p))
    }
}

#[test]
fn names_in_the_documents_exist_in_the_code() {
    let mut all = Vec::new();
    files(&root(), &mut all);
    let known = Known::new(&all);
    let mut wrong = Vec::new();
    let mut judged = 0;
    for file in all.iter().filter(|f| is_document(f)) {
        let dir = file.parent().unwrap_or(Path::new("."));
        let text = prose(&std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display())));
        for span in spans(&text) {
            judged += 1;
            if !known.knows(dir, span) {
                wrong.push(format!("{}: `{span}`", file.display()));
            }
        }
        wrong.extend(links(&text).filter(|l| !dir.join(l).exists()).map(|l| format!("{}: link to {l}", file.display())));
    }
    assert!(wrong.is_empty(), "named in a document, found nowhere: {wrong:#?}");
    assert!(judged > 2000, "{judged} names: are these the documents?");
}

#[test]
fn what_does_not_exist_is_found() {
    let mut all = Vec::new();
    files(&root(), &mut all);
    let known = Known::new(&all);
    let docs = root().join("docs");
    let missing = ["no_such_".to_owned() + "function", "no/such_".to_owned() + "file.rs", "tests::none_".to_owned() + "of_this"];
    assert!(missing.iter().all(|name| !known.knows(&docs, name)));
    for there in ["host/dma_rd", "QueuePair::post_send", "docs/vm.md", "./scripts/test", "12", "a + b", "m_rd/s_rd"] {
        assert!(known.knows(&docs, there), "{there}");
    }
}
