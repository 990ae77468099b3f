//! Order towards the card is made in one place. What it becomes on ARM cannot be run here; what can be seen is that nobody goes past it with
//! fences for processors, and which instructions it is made of.
use std::path::Path;

fn sources(dir: &Path, out: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, out);
        } else {
            out.push((entry.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&entry).unwrap()));
        }
    }
}

#[test]
fn rings_and_doorbells_are_ordered_for_the_card() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let of = |name: &str| &files.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name}")).1;
    // Between processors only: who looks at tables and who frees them.
    for (name, text) in files.iter().filter(|(name, _)| name != "barrier.rs" && name != "visit.rs") {
        assert!(!text.contains("atomic::fence(") && !text.contains(" fence(Ordering"), "{name} has a fence of its own");
    }
    // As rdma-core: outer-shareable, stores before the doorbell, loads behind the phase bit.
    let barrier = of("barrier.rs");
    for (function, instruction) in [("pub fn to_device", "dmb oshst"), ("pub fn from_device", "dmb oshld")] {
        let body = barrier.split_once(function).unwrap().1.split("\n}").next().unwrap();
        assert!(body.contains("target_arch = \"aarch64\"") && body.contains(instruction), "{function}: {body}");
    }
    // In front of each doorbell, and behind each look for a phase bit.
    for (name, function, call) in [
        ("post.rs", "fn tell(", "barrier::to_device()"),
        ("ring.rs", "fn ring_receive_bell(", "barrier::to_device()"),
        ("window.rs", "pub fn write64(", "barrier::to_device()"),
        ("window.rs", "pub fn write32(", "barrier::to_device()"),
        ("dma.rs", "fn record<", "barrier::from_device()"),
        ("dma.rs", "fn read_flag(", "barrier::from_device()"),
    ] {
        let body = of(name).split_once(function).unwrap_or_else(|| panic!("{function}")).1.split("\n    }").next().unwrap();
        assert!(body.contains(call), "{name}: {function} has no {call}");
    }
}
