//! The build: what it refuses, and its steps with stand-ins for the tools (the real ones: docs/boards.md).

mod common;

use common::Folder;
use ferric_boards::bitstream::{build, Environment, NoImage};
use ferric_boards::ecp5::{frequencies, simulation};
use ferric_boards::netlist::Origin;
use ferric_boards::tool::ToolError;
use ferric_boards::{boards, check, Board};

/// A builder in a folder with these programs.
fn built(board: &Board, lamp: bool, folder: &Folder, hdk: Option<&str>) -> Result<std::path::PathBuf, NoImage> {
    let path = std::env::join_paths([folder.path().join("bin"), "/usr/bin".into(), "/bin".into()]).expect("a path");
    let env = Environment { path: Some(&path), hdk: hdk.map(|h| h.as_ref()), root: folder.path() };
    let top = if lamp { boards::lamp() } else { board.top.clone() };
    build(board, &top, &env, &folder.path().join("out"))
}

fn board(key: &str) -> Board {
    boards::find(key).expect("a board")
}

/// Stand-ins that leave what the next step reads, and what they were called with.
fn ecp5_tools(folder: &Folder) {
    folder.program("bin/yosys", "echo yosys $* >> calls; grep -q '^read_verilog -D FERRIC_ECP5 top.v' synth.ys && echo {} > top.json");
    folder.program(
        "bin/nextpnr-ecp5",
        "echo nextpnr $* >> calls; test -s top.json && test -s pins.lpf && echo c > top.config\necho \"Info: Max frequency for clock 'core': 70.00 MHz (PASS at 62.50 MHz)\"",
    );
    folder.program("bin/ecppack", "echo ecppack $* >> calls; test -s top.config && for image; do :; done; echo image > \"$image\"");
}

#[test]
fn vivado_is_missing() {
    let folder = Folder::new("novivado");
    for key in ["u50", "u250", "f2"] {
        let refused = built(&board(key), false, &folder, None).expect_err("no Vivado");
        assert!(matches!(refused, NoImage::NoTool { tool: "vivado", .. }), "{refused}");
        assert!(refused.to_string().contains("not installed"), "{refused}");
    }
    assert!(!folder.path().join("out").exists(), "something was begun");
}

#[test]
fn gateware_or_hdk_is_missing() {
    let folder = Folder::new("nogateware");
    folder.program("bin/vivado", "exit 0");
    ecp5_tools(&folder);
    for key in ["u50", "ecpix5"] {
        let board = board(key);
        match built(&board, false, &folder, None) {
            Err(NoImage::NoGateware { missing, .. }) => assert!(missing.contains(&"ferric_reset.v".to_string()), "{missing:?}"),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(built(&board("f2"), false, &folder, None), Err(NoImage::NoHdk { .. })));
    // One file too few is still too few.
    let u50 = board("u50");
    let names: Vec<_> = u50.top.modules.iter().filter(|m| m.origin == Origin::Gateware).map(|m| m.name.clone()).collect();
    for name in &names[1..] {
        folder.file(&format!("target/verilog/{name}.v"), "");
    }
    assert!(matches!(built(&u50, false, &folder, None), Err(NoImage::NoGateware { missing, .. }) if missing == [format!("{}.v", names[0])]));
    folder.file(&format!("target/verilog/{}.v", names[0]), "");
    assert!(built(&u50, false, &folder, None).is_ok_and(|image| image.ends_with("out/ferric_u50.bit")));
}

#[test]
fn the_lamp_goes_through_all_steps() {
    let folder = Folder::new("lamp");
    ecp5_tools(&folder);
    let image = built(&board("ecpix5"), true, &folder, None).expect("an image");
    assert_eq!(std::fs::read_to_string(&image).expect("the image"), "image\n");
    let calls = std::fs::read_to_string(folder.path().join("out/calls")).expect("the calls");
    let wanted = ["yosys -s synth.ys", "nextpnr --um5g-85k --package CABGA554 --speed 8", "ecppack --compress --idcode 0x81113043"];
    assert!(calls.lines().zip(wanted).all(|(c, w)| c.starts_with(w)) && calls.lines().count() == 3, "{calls}");
    let pins = std::fs::read_to_string(folder.path().join("out/pins.lpf")).expect("pins");
    assert!(pins.contains("LOCATE COMP \"led_g[3]\" SITE \"R21\"") && !pins.contains("eth"), "{pins}");
}

#[test]
fn a_step_that_fails_ends_the_build() {
    let folder = Folder::new("slow");
    ecp5_tools(&folder);
    folder.program("bin/nextpnr-ecp5", "echo \"ERROR: Max frequency for clock 'core': 61.00 MHz (FAIL at 62.50 MHz)\"; exit 1");
    match built(&board("ecpix5"), true, &folder, None) {
        Err(NoImage::Tool(ToolError::Failed { step, tail, .. })) => assert!(step == "nextpnr" && tail.contains("FAIL at 62.50"), "{tail}"),
        other => panic!("{other:?}"),
    }
    assert!(!folder.path().join("out/lamp_ecpix5.bit").exists());
}

/// Another beginning is tried when a clock is too slow, and only then.
#[test]
fn placements_begin_anew_until_one_is_fast_enough() {
    let folder = Folder::new("seeds");
    ecp5_tools(&folder);
    let slow = "echo \"ERROR: Max frequency for clock 'core': 61.00 MHz (FAIL at 62.50 MHz)\"; exit 1";
    folder.program("bin/nextpnr-ecp5", &format!("echo seed $* >> seeds; case \"$*\" in *'--seed 2'*) echo c > top.config; exit 0;; esac; {slow}"));
    built(&board("ecpix5"), true, &folder, None).expect("an image with the second seed");
    assert_eq!(std::fs::read_to_string(folder.path().join("out/seeds")).expect("tries").lines().count(), 2);

    let folder = Folder::new("broken_router");
    ecp5_tools(&folder);
    folder.program("bin/nextpnr-ecp5", "echo seed $* >> seeds; echo 'ERROR: no such pin'; exit 1");
    assert!(matches!(built(&board("ecpix5"), true, &folder, None), Err(NoImage::Tool(ToolError::Failed { step, .. })) if step == "nextpnr"));
    assert_eq!(std::fs::read_to_string(folder.path().join("out/seeds")).expect("tries").lines().count(), 1);
}

#[test]
fn the_netlist_becomes_verilog_for_a_simulation() {
    let folder = Folder::new("simulation");
    folder.program(
        "bin/yosys",
        "echo $* >> calls; case \"$*\" in *synth.ys) grep -q netlist.v synth.ys && echo n > netlist.v;; *) grep -q 'hierarchy -top lamp_ecpix5' simulation.ys && cp netlist.v simulation.v;; esac",
    );
    let path = std::env::join_paths([folder.path().join("bin"), "/usr/bin".into(), "/bin".into()]).expect("a path");
    let env = Environment { path: Some(&path), hdk: None, root: folder.path() };
    let made = simulation(&board("ecpix5"), &boards::lamp(), &env, &folder.path().join("out")).expect("a netlist");
    assert_eq!(std::fs::read_to_string(made).expect("the netlist"), "n\n");
}

#[test]
fn the_last_frequency_counts() {
    let log = "Info: Max frequency for clock '$glbnet$a': 90.00 MHz (PASS at 62.50 MHz)\nx\nInfo: Max frequency for clock          'b': 200.00 MHz (PASS at 125.00 MHz)\n\
               Info: Max frequency for clock '$glbnet$a': 70.00 MHz (PASS at 62.50 MHz)\n";
    assert_eq!(frequencies(log), ["Max frequency for clock 'b': 200.00 MHz (PASS at 125.00 MHz)", "Max frequency for clock '$glbnet$a': 70.00 MHz (PASS at 62.50 MHz)"]);
}

#[test]
fn the_lamp_is_sound() {
    let mut board = board("ecpix5");
    board.top = boards::lamp();
    let has = |name: &str| board.top.ports.iter().any(|p| p.name == name);
    board.pins.retain(|p| has(&p.port));
    board.clocks.retain(|c| c.object.contains("pll.") || has(c.object));
    board.crossings.clear();
    board.false_paths.clear();
    assert_eq!(check::check(&board), []);
}
