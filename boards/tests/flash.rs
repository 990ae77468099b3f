//! An image that is not for the board, or would reach the golden image, is refused; a good one gives the right commands.

mod common;

use common::{bit, configuration, ecp5, mcs, Folder};
use ferric_boards::flash::{plan, tool_of, Plan, Refusal};
use ferric_boards::image::{self, ImageError, Kind};
use ferric_boards::{boards, Board};

const U50: u32 = 0x14b7_7093;
const ECP5_85: u32 = 0x8111_3043;

fn board(key: &str) -> Board {
    boards::find(key).expect("a board")
}

/// The plan for a file with these bytes.
fn planned(key: &str, bytes: impl AsRef<[u8]>, volatile: bool) -> Result<Plan, Refusal> {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let folder = Folder::new(&format!("flash{}", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
    plan(&board(key), &folder.file("image", bytes), volatile, folder.path())
}

#[test]
fn images_are_read() {
    let read = image::read(&bit("xcu50-fsvh2104-2-e", U50)).expect("an image");
    assert_eq!(read.kind, Kind::XilinxBit { part: "xcu50-fsvh2104-2-e".into() });
    assert_eq!((read.idcode, read.size), (Some(U50), configuration(U50).len() as u32));
    let data = configuration(U50);
    let read = image::read(mcs(0x0100_2000, &data).as_bytes()).expect("an image");
    assert_eq!(read, image::Image { kind: Kind::Mcs { low: 0x0100_2000, high: 0x0100_2000 + data.len() as u32 }, idcode: Some(U50), size: data.len() as u32 });
    // The IDCODE across a border of 64 KiB.
    let read = image::read(mcs(0x0100_ffd0, &data).as_bytes()).expect("an image");
    assert_eq!((read.idcode, read.size), (Some(U50), data.len() as u32));
    let read = image::read(&ecp5(ECP5_85, 4000)).expect("an image");
    assert_eq!(read, image::Image { kind: Kind::Ecp5, idcode: Some(ECP5_85), size: 4000 });
}

#[test]
fn broken_images_are_not() {
    assert_eq!(image::read(b""), Err(ImageError::Unknown));
    assert_eq!(image::read(b"\x7fELF and more"), Err(ImageError::Unknown));
    let whole = bit("xcu50-fsvh2104-2-e", U50);
    for length in 13..whole.len() {
        assert!(matches!(image::read(&whole[..length]), Err(ImageError::Short(_))), "{length} of {} bytes", whole.len());
    }
    let text = mcs(0x0100_2000, &configuration(U50));
    let mut lines: Vec<&str> = text.lines().collect();
    let changed = lines[2].replacen('F', "E", 1);
    lines[2] = &changed;
    assert_eq!(image::read(lines.join("\n").as_bytes()), Err(ImageError::Hex(3)));
    let text = text.trim_end();
    assert_eq!(image::read(&text.as_bytes()[..text.rfind('\n').expect("lines")]), Err(ImageError::Short("its records")));
    let twice = mcs(0, &[1; 32]).replace(":00000001FF\n", "") + &mcs(16, &[2; 16]);
    assert_eq!(image::read(twice.as_bytes()), Err(ImageError::Overlap(16)));
}

#[test]
fn a_part_that_is_not_the_boards() {
    assert!(matches!(planned("u50", bit("xcu250-figd2104-2-e", U50), false), Err(Refusal::WrongPart { found, .. }) if found == "xcu250-figd2104-2-e"));
    assert!(matches!(planned("u50", bit("xcu50-fsvh2104-2-e", 0x0b57_7093), false), Err(Refusal::WrongIdcode { found: 0x0b57_7093, .. })));
    assert!(matches!(planned("u50", mcs(0x0100_2000, &configuration(0x04b5_7093)), false), Err(Refusal::WrongIdcode { found: 0x04b5_7093, .. })));
    assert!(matches!(planned("u50", mcs(0x0100_2000, &[0xff; 64]), false), Err(Refusal::NoIdcode)));
    // A 45F, and the same size without transceivers.
    for other in [0x8111_2043, 0x4111_3043] {
        assert!(matches!(planned("ecpix5", ecp5(other, 4000), false), Err(Refusal::WrongIdcode { found, .. }) if found == other));
    }
}

#[test]
fn another_makers_image() {
    assert!(matches!(planned("u50", ecp5(ECP5_85, 4000), false), Err(Refusal::WrongKind { .. })));
    assert!(matches!(planned("ecpix5", bit("xcu50-fsvh2104-2-e", U50), false), Err(Refusal::WrongKind { .. })));
    assert!(matches!(planned("ecpix5", mcs(0x40_0000, &configuration(U50)), false), Err(Refusal::WrongKind { .. })));
    assert!(matches!(planned("u250", "not an image", false), Err(Refusal::NoImage { .. })));
    let missing = plan(&board("u50"), "/nowhere/a.bit".as_ref(), false, "/nowhere".as_ref());
    assert!(matches!(missing, Err(Refusal::Unreadable { .. })));
}

#[test]
fn the_golden_image_stays() {
    let data = configuration(U50);
    for low in [0, 0x0100_0000, 0x0100_1ff0] {
        assert!(matches!(planned("u50", mcs(low, &data), false), Err(Refusal::Golden { low: found, user: 0x0100_2000 }) if found == low), "{low:#x}");
    }
    assert!(planned("u50", mcs(0x0100_2000, &data), false).is_ok());
    assert!(matches!(planned("u50", mcs(0x07ff_fff0, &data), false), Err(Refusal::TooLarge { .. })));
    assert!(matches!(planned("ecpix5", ecp5(ECP5_85, 13 << 20), false), Err(Refusal::TooLarge { .. })));
    assert!(planned("ecpix5", ecp5(ECP5_85, 12 << 20), false).is_ok());
    assert!(matches!(planned("u50", mcs(0x0100_2000, &data), true), Err(Refusal::VolatileMcs)));
}

#[test]
fn what_is_done() {
    let words = |p: &Plan| p.command.join(" ");
    let done = planned("ecpix5", ecp5(ECP5_85, 4000), false).expect("a plan");
    assert!(words(&done).starts_with("openFPGALoader -b ecpix5 -f -o 0x400000 --verify "), "{done:?}");
    let done = planned("ecpix5", ecp5(ECP5_85, 4000), true).expect("a plan");
    assert!(words(&done).starts_with("openFPGALoader -b ecpix5 -m ") && !done.command.contains(&"-f".to_string()), "{done:?}");
    let done = planned("u50", bit("xcu50-fsvh2104-2-e", U50), false).expect("a plan");
    let (_, script) = done.script.as_ref().expect("a script");
    assert!(script.contains("get_hw_devices xcu50*") && script.contains("-loadbit [list up 0x01002000") && script.contains("ADDRESS_RANGE {use_file}"), "{script}");
    let done = planned("u50", bit("xcu50-fsvh2104-2-e", U50), true).expect("a plan");
    let (_, script) = done.script.as_ref().expect("a script");
    assert!(!script.contains("cfgmem"), "{script}");
}

#[test]
fn an_afi() {
    let f2 = board("f2");
    let of = |name: &str, volatile| plan(&f2, name.as_ref(), volatile, "/nowhere".as_ref());
    assert_eq!(of("agfi-0123456789abcdef0", false).expect("a plan").command.join(" "), "fpga-load-local-image -S 0 -I agfi-0123456789abcdef0");
    for name in ["afi-0123456789abcdef0", "agfi-0123456789abcdef", "agfi-0123456789abcdeg0", "ferric.bit"] {
        assert!(matches!(of(name, false), Err(Refusal::NoAfi(_))), "{name}");
    }
    assert!(matches!(of("agfi-0123456789abcdef0", true), Err(Refusal::VolatileAfi)));
}

#[test]
fn a_tool_that_is_not_there() {
    let folder = Folder::new("tools");
    for (key, tool) in [("u50", "vivado"), ("f2", "fpga-load-local-image"), ("ecpix5", "openFPGALoader")] {
        assert!(matches!(tool_of(&board(key), Some(folder.path().as_os_str())), Err(Refusal::NoTool { tool: t, .. }) if t == tool));
        folder.program(tool, "");
        assert!(tool_of(&board(key), Some(folder.path().as_os_str())).is_ok());
    }
}
