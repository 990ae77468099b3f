//! docs/adding-an-engine.md, followed word by word in a copy of the sources.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    fs::canonicalize(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap()
}

/// What the page tells its reader to do.
#[derive(Debug)]
enum Step {
    NewFile { file: String, text: String },
    Above { file: String, anchor: String, text: String },
    Instead { file: String, anchor: String, text: String },
    Run(String),
}

/// Text between the `n`-th pair of backquotes of a line.
fn quoted(line: &str, n: usize) -> Option<String> {
    line.split('`').nth(2 * n + 1).map(String::from)
}

/// Every fenced block of the page, with the step that the sentence in front of it asks for.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut sentence = "";
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if !line.starts_with("```") {
            sentence = if line.is_empty() { sentence } else { line };
            continue;
        }
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text = text.join("\n") + "\n";
        let (first, second) = (quoted(sentence, 0), quoted(sentence, 1));
        steps.push(match (first, second) {
            (Some(file), None) if sentence.starts_with("A new file") => Step::NewFile { file, text },
            (Some(file), Some(anchor)) if sentence.contains(", above ") => Step::Above { file, anchor, text },
            (Some(file), Some(anchor)) if sentence.contains(", instead of ") => Step::Instead { file, anchor, text: text.trim_end().into() },
            _ if sentence.ends_with("Run:") => Step::Run(text.trim_end().into()),
            _ => panic!("no step: {sentence}"),
        });
    }
    steps
}

/// The sources as they are in the working tree, without what is built from them.
fn copy_sources(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|e| e.unwrap()) {
        let (name, to) = (entry.file_name(), to.join(entry.file_name()));
        match entry.file_type().unwrap() {
            kind if kind.is_dir() && name != "target" && name != ".git" => copy_sources(&entry.path(), &to),
            kind if kind.is_file() => drop(fs::copy(entry.path(), &to).unwrap_or_else(|e| panic!("{}: {e}", to.display()))),
            _ => {}
        }
    }
}

fn replace_once(file: &Path, anchor: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.matches(anchor).count(), 1, "{} has `{anchor}` once", file.display());
    fs::write(file, text.replace(anchor, new)).unwrap();
}

#[test]
fn the_page_adds_an_engine() {
    let page = fs::read_to_string(root().join("docs/adding-an-engine.md")).unwrap();
    let target = root().join("target");
    let copy = target.join("adding/ferric");
    let _ = fs::remove_dir_all(&copy);
    copy_sources(&root(), &copy);
    let (mut files, mut commands) = (0, 0);
    for step in steps(&page) {
        match step {
            Step::NewFile { file, text } => {
                let file = copy.join(file);
                assert!(!file.exists(), "{} is there already", file.display());
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
                files += 1;
            }
            Step::Above { file, anchor, text } => replace_once(&copy.join(file), &format!("\n{anchor}\n"), &format!("\n{text}{anchor}\n")),
            Step::Instead { file, anchor, text } => replace_once(&copy.join(file), &anchor, &text),
            Step::Run(command) => {
                fs::create_dir_all(copy.join("target")).unwrap();
                // Libraries of others are taken from the build of this workspace; what is made of the copy stays away from it.
                let mut bash = Command::new("bash");
                bash.args(["-c", &command]).current_dir(&copy).env("CARGO_TARGET_DIR", target.join("adding/target")).env("CARGO_BUILD_BUILD_DIR", &target);
                let ran = bash.output().expect("bash");
                assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
                commands += 1;
            }
        }
    }
    assert_eq!((files, commands), (2, 2), "steps of the page");
    let read = |file: &str| fs::read_to_string(copy.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let verilog = read("target/jumbo.v");
    assert!(verilog.contains("ferric_w64$jumbo"), "the card has the block");
    let engines = read("docs/engines.md");
    assert!(engines.contains("## jumbo") && engines.contains("| counters | `jumbo` 1 |"), "{engines}");
    // Nothing but the engine's own folder, its two words, and the pages is other than here.
    let listed = Command::new("diff").args(["-rq", "-x", "target", "-x", ".git"]).arg(root()).arg(&copy).output().expect("diff");
    let differs: Vec<String> = String::from_utf8(listed.stdout).unwrap().lines().map(String::from).collect();
    assert!(differs.len() <= 7, "{differs:#?}");
    fs::remove_dir_all(&copy).unwrap();
}
