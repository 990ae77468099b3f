//! Programs of Debian, unmodified, on our libibverbs and librdmacm: two processes on two served cards.
use ferric_tests::programs::{built, libraries, Cards};
use ferric_tests::served::{alone, scratch};
use std::process::Command;
use std::time::{Duration, Instant};

const FERRIC: &str = env!("CARGO_BIN_EXE_ferric-under-test");

#[test]
fn devices_are_shown() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    let list = cards.program(1, "ibv_devices", &[]).succeed();
    assert!(list.contains("ferric0") && list.contains("00fe0afffe000002"), "{list}");
    let info = cards.program(1, "ibv_devinfo", &["-v"]).succeed();
    for said in ["ferric0", "PORT_ACTIVE", "Ethernet", "::ffff:10.0.0.2, RoCE v2", "0xfe11", "ATOMIC_HCA"] {
        assert!(info.contains(said), "no `{said}` in\n{info}");
    }
    // No variable, no device, and that is no error.
    let none = Command::new("ibv_devices").env("LD_LIBRARY_PATH", libraries()).env_remove("FERRIC_DEVICES").output().unwrap();
    assert!(none.status.success() && !String::from_utf8_lossy(&none.stdout).contains("ferric"));
    // A card that is not there.
    let gone = Command::new("ibv_devinfo").env("LD_LIBRARY_PATH", libraries()).env("FERRIC_DEVICES", "/nowhere/a.sock").output().unwrap();
    assert!(!gone.status.success() && String::from_utf8_lossy(&gone.stderr).contains("ferric card serve"), "{gone:?}");
}

#[test]
fn ping_pong_of_rdma_core() {
    let _alone = alone();
    let mut cards = Cards::start(FERRIC);
    for (program, options) in [
        // -c: both sides compare what comes; -e: by events; -N: ibv_wr_* calls; -t: extended completion queues.
        ("ibv_rc_pingpong", &["-c"][..]),
        ("ibv_rc_pingpong", &["-e", "-c", "-s", "6000", "-m", "4096"]),
        ("ibv_rc_pingpong", &["-N", "-t"]),
        ("ibv_uc_pingpong", &[]),
        ("ibv_uc_pingpong", &["-e"]),
        ("ibv_ud_pingpong", &["-s", "1024"]),
        ("ibv_ud_pingpong", &["-e", "-s", "512"]),
        // Queue pairs that share a receive queue, whose completions come in any order.
        ("ibv_srq_pingpong", &["-q", "3", "-c"]),
        ("ibv_srq_pingpong", &["-q", "2", "-e", "-s", "3000"]),
    ] {
        let printed = cards.pair(program, &[&["-g", "0", "-n", "5"], options].concat());
        printed.iter().for_each(|p| assert!(p.contains("5 iters in"), "{p}"));
        assert!(cards.are_alive());
    }
}

/// Lines of results that perftest prints begin with the size and the iterations.
fn measured(cards: &Cards, program: &str, options: &[&str], start: &str) {
    let [_, client] = cards.pair(program, &[&["-F", "-n", "5"], options].concat());
    assert!(client.lines().any(|l| l.split_whitespace().take(2).collect::<Vec<_>>().join(" ") == start), "{client}");
}

#[test]
fn perftest_latency() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    for (program, options, start) in [
        ("ib_send_lat", &["-s", "8"][..], "8 5"),
        ("ib_send_lat", &["-s", "64", "-c", "UD"], "64 5"),
        ("ib_send_lat", &["-s", "64", "-c", "UC", "-e"], "64 5"),
        ("ib_write_lat", &["-s", "8", "-I", "32"], "8 5"),
        ("ib_write_lat", &["-s", "3000", "-c", "UC"], "3000 5"),
        ("ib_read_lat", &["-s", "2000"], "2000 5"),
        ("ib_atomic_lat", &[], "8 5"),
        ("ib_atomic_lat", &["-A", "CMP_AND_SWAP"], "8 5"),
    ] {
        measured(&cards, program, options, start);
    }
}

#[test]
fn perftest_bandwidth() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    for (program, options, start) in [
        ("ib_send_bw", &["-s", "4096"][..], "4096 5"),
        ("ib_send_bw", &["-s", "512", "-c", "UD", "-b"], "512 5"),
        ("ib_write_bw", &["-s", "4096", "-m", "4096"], "4096 5"),
        ("ib_write_bw", &["-s", "1000", "-q", "4", "-b"], "1000 20"),
        ("ib_read_bw", &["-s", "4096"], "4096 5"),
        ("ib_atomic_bw", &[], "8 5"),
    ] {
        measured(&cards, program, options, start);
    }
}

/// Cards that are pulled while programs use them: who polls is told, who waits is woken, and nobody waits for a card to let go of what it had.
#[test]
fn cards_that_are_pulled_end_programs() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    for (options, said) in [(&[][..], "poll CQ failed"), (&["-e"], "Failed to get cq_event"), (&["-t"], "poll CQ failed")] {
        let cards = Cards::start(FERRIC);
        let mut programs = cards.begin("ibv_rc_pingpong", &[&["-g", "0", "-n", "100000"], options].concat());
        // In the middle of it.
        while cards.captured(0) < 50_000 {
            assert!(programs.iter_mut().all(|p| p.is_alive()), "{}", programs[1].text());
            std::thread::sleep(Duration::from_millis(20));
        }
        [0, 1].iter().for_each(|card| cards.pull(*card));
        let start = Instant::now();
        for program in programs {
            let (ok, printed) = program.end();
            assert!(!ok && printed.contains(said), "{printed}");
        }
        assert!(start.elapsed() < Duration::from_secs(10), "it took {:?}", start.elapsed());
    }
    let mut watch = cards.program(0, "stdbuf", &["-oL", "ibv_asyncwatch"]);
    watch.says("async event FD");
    cards.pull(0);
    watch.says("event_type");
    assert!(watch.text().contains("evice fatal") || watch.text().contains("DEVICE_FATAL"), "{}", watch.text());
}

/// What programs do wrong.
#[test]
fn wrong_calls_get_error_numbers() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    let printed = cards.program(0, &built("wrong"), &[]).succeed();
    assert!(printed.contains("all as it should be"), "{printed}");
}

/// What the stock programs do not use.
#[test]
fn groups_and_states_of_send_queues() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    let both = format!("{},{}", cards.devices(0), cards.devices(1));
    let printed = cards.program(0, "env", &[&format!("FERRIC_DEVICES={both}"), &built("states")]).succeed();
    assert!(printed.contains("all as it should be"), "{printed}");
}

/// A child has its parent's memory and descriptors, not its card; and it holds no card that its parent had.
#[test]
fn children_of_programs_that_fork() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    let both = format!("{},{}", cards.devices(0), cards.devices(1));
    let (_, printed) = cards.program(0, "env", &[&format!("FERRIC_DEVICES={both}"), &built("forks")]).end();
    // It kills itself at its end.
    let child = printed.split("lives on: ").nth(1).and_then(|n| n.trim().parse().ok());
    let child: i32 = child.unwrap_or_else(|| panic!("{printed}"));
    // SAFETY: no memory involved.
    let signal = |n| unsafe { libc::kill(child, n) };
    // Its parent's cards are free.
    let next = [0, 1].map(|card| cards.program(card, "ibv_devinfo", &[]).end());
    assert_eq!(signal(0), 0, "it should have lived on");
    signal(libc::SIGKILL);
    assert!(next.iter().all(|(ok, _)| *ok), "{next:?}");
}

/// Who runs a set-uid program does not choose the card that reads its memory.
#[test]
fn set_uid_programs_do_not_believe_the_environment() {
    use std::os::unix::fs::{chown, PermissionsExt};
    let program = scratch().join("setuid");
    let source = format!("{}/../verbs/tests/setuid.c", env!("CARGO_MANIFEST_DIR"));
    let path = format!("-Wl,-rpath,{}", libraries().display());
    let built = Command::new("cc").arg("-o").arg(&program).arg(source).arg(libraries().join("libibverbs.so.1")).arg(path).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let devices = || String::from_utf8(Command::new(&program).env("FERRIC_DEVICES", "/nowhere/a.sock").output().unwrap().stdout).unwrap();
    assert_eq!(devices(), "1 devices\n");
    // Another user's program: only root can give one away.
    if chown(&program, Some(65_534), None).is_err() {
        return eprintln!("not run by root: the program cannot be given to another user");
    }
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    assert_eq!(devices(), "0 devices\n");
}
