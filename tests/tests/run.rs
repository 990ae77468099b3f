//! `ferric run`: unmodified programs on cards of their own.
use ferric_tests::programs::{built, free_port, libraries};
use ferric_tests::served::{alone, scratch};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const FERRIC: &str = env!("CARGO_BIN_EXE_ferric-under-test");

fn ferric(options: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(FERRIC);
    command.arg("run").arg("--libraries").arg(libraries()).args(options).arg("--").args(program);
    command
}

fn run(options: &[&str], program: &[&str]) -> Output {
    ferric(options, program).output().expect("ferric run")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stderr[..], &output.stdout].concat()).into_owned()
}

/// Server and client of a program of rdma-core; the client tries until the server listens.
fn pair(options: &[&str], program: &str, arguments: &str) -> Output {
    let (port, tool) = (free_port(), format!("{program} -g 0 {arguments}"));
    let script = format!("{tool} -p {port} -d ferric0 & s=$!; until {tool} -p {port} -d ferric1 127.0.0.1; do kill -0 $s; sleep 0.2; done; wait $s");
    run(options, &["timeout", "100", "sh", "-euc", &script])
}

#[test]
fn devices_are_there_and_programs_reach_each_other() {
    let _alone = alone();
    let info = run(&[], &["ibv_devinfo"]);
    assert!(info.status.success(), "{}", text(&info));
    assert!(["ferric0", "ferric1", "PORT_ACTIVE"].iter().all(|said| text(&info).contains(said)), "{}", text(&info));
    for (program, arguments) in [("ibv_rc_pingpong", "-c"), ("ibv_rc_pingpong", "-e -c -s 100000 -n 50"), ("ibv_uc_pingpong", "-n 50"), ("ibv_ud_pingpong", "-n 50"), ("ibv_srq_pingpong", "-c -n 50")]
    {
        let ran = pair(&[], program, arguments);
        assert!(ran.status.success() && text(&ran).matches("iters in").count() == 2, "{program} {arguments}: {}", text(&ran));
    }
}

#[test]
fn frames_are_lost_and_captured() {
    let _alone = alone();
    let capture = scratch().join("wire.pcapng");
    let ran = pair(&["--twin", "--loss", "2", "--pcap", capture.to_str().unwrap()], "ibv_rc_pingpong", "-c -n 20");
    assert!(ran.status.success(), "{}", text(&ran));
    // Twenty messages of 4096 bytes each way.
    assert!(capture.metadata().unwrap().len() > 2 * 20 * 4096);
}

#[test]
fn the_gateware_runs_programs_too() {
    let _alone = alone();
    let ran = pair(&["--gateware"], "ibv_rc_pingpong", "-c -n 2");
    assert!(ran.status.success(), "{}", text(&ran));
}

#[test]
fn exit_status_is_the_programs() {
    let _alone = alone();
    for (program, status) in [(&["true"][..], 0), (&["sh", "-c", "exit 77"], 77), (&["sh", "-c", "kill -9 $$"], 128 + 9), (&["/nowhere/program"], 127), (&["/"], 126)] {
        let ran = run(&[], program);
        assert_eq!(ran.status.code(), Some(status), "{program:?}: {}", text(&ran));
    }
    for options in [&["--cards", "1", "--loss", "1"][..], &["--pcap", "/nowhere/file"], &["--libraries", "/nowhere"]] {
        // The last folder that is given would win: these go without the one of `ferric`.
        let ran = Command::new(FERRIC).arg("run").args(options).args(["--", "true"]).output().unwrap();
        assert_eq!(ran.status.code(), Some(125), "{options:?}: {}", text(&ran));
    }
    for options in [&["--cards", "3"][..], &["--loss", "101"], &["--twin", "--gateware"], &["--functions", "5"], &["--functions", "128"], &["--gateware", "--functions", "8"]] {
        assert_eq!(run(options, &["true"]).status.code(), Some(2), "{options:?}");
    }
}

/// A signal reaches the program, and nothing is left behind; nor is when the one that started everything is killed.
#[test]
fn signals_end_the_program_and_its_cards() {
    let _alone = alone();
    let temporary = scratch();
    for (signal, status) in [(libc::SIGTERM, Some(128 + 15)), (libc::SIGKILL, None)] {
        let mut child = ferric(&[], &["sh", "-c", "echo $$; exec sleep 100"]).env("TMPDIR", &temporary).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let program = format!("/proc/{}/comm", line.trim());
        // SAFETY: no memory involved; the child has not been waited for.
        unsafe { libc::kill(child.id() as i32, signal) };
        assert_eq!(child.wait().unwrap().code(), status);
        let start = Instant::now();
        while Path::new(&program).exists() && std::fs::read_to_string(&program).is_ok_and(|name| name.trim() == "sleep") {
            assert!(start.elapsed() < Duration::from_secs(20), "the program goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
        if signal == libc::SIGTERM {
            assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "the folder of the sockets is left");
        }
    }
}

/// Two processes on one card, a function each, that reach each other by loopback.
fn processes_share(options: &[&str], arguments: &str) {
    let _alone = alone();
    let port = free_port();
    let tool = format!("ibv_rc_pingpong -g 0 -c -d ferric0 {arguments} -p {port}");
    let script = format!("{tool} & s=$!; until {tool} 127.0.0.1; do kill -0 $s; sleep 0.2; done; wait $s");
    let ran = run(&[&["--cards", "1"], options].concat(), &["timeout", "100", "sh", "-euc", &script]);
    assert!(ran.status.success() && ["::ffff:10.0.0.1", "::ffff:10.0.1.1"].iter().all(|gid| text(&ran).contains(gid)), "{}", text(&ran));
}

#[test]
fn processes_share_a_card() {
    processes_share(&[], "");
}

/// The same on gateware: what they send each other does not leave the card `switch`.
#[test]
fn processes_share_a_card_of_gateware() {
    processes_share(&["--gateware"], "-n 2");
}

/// As many processes as there are functions have a card; one more is refused. When one is killed its function is free again, and the others go on.
#[test]
fn a_killed_process_leaves_its_function_behind() {
    let _alone = alone();
    let ports: Vec<String> = (0..4).map(|_| free_port().to_string()).collect();
    let script = r#"
        cd "$TMPDIR"
        for port in "$@"; do stdbuf -oL ibv_rc_pingpong -g 0 -c -d ferric0 -p $port > $port.out & echo $! > $port.pid; done
        for port in "$@"; do until grep -qs "local address" $port.out; do sleep 0.05; done; done
        if ibv_devinfo -d ferric0 > fifth.out 2>&1; then echo "a fifth process has the card"; exit 1; fi
        kill -9 $(cat $1.pid)
        shift
        ibv_devinfo -d ferric0
        for port in "$@"; do ibv_rc_pingpong -g 0 -c -d ferric0 -p $port 127.0.0.1; wait $(cat $port.pid); cat $port.out; done
    "#;
    let arguments: Vec<&str> = ["timeout", "100", "bash", "-euc", script, "bash"].into_iter().chain(ports.iter().map(String::as_str)).collect();
    let folder = scratch();
    let ran = ferric(&["--cards", "1"], &arguments).env("TMPDIR", &folder).output().unwrap();
    assert!(ran.status.success() && text(&ran).matches("iters in").count() == 6, "{}", text(&ran));
}

/// Eight processes with a hundred queue pairs each, three of which are killed again and again: the others get every message, and the card has as many objects to give as before.
fn crowd(seconds: &str) {
    let _alone = alone();
    // As many descriptors as shells have: the card needs more.
    let mut command = Command::new("bash");
    command.args(["-c", "ulimit -Sn 1024; exec \"$@\"", "bash", FERRIC, "run", "--libraries"]).arg(libraries());
    let ran = command.args(["--cards", "1", "--functions", "8", "--", &built("crowd"), "8", "3", seconds]).output().expect("ferric run");
    assert!(ran.status.success() && text(&ran).contains("all as it should be"), "{}", text(&ran));
}

#[test]
fn killed_processes_cost_the_others_nothing() {
    crowd("3");
}

#[test]
#[ignore = "a minute; ./scripts/soak programs runs it"]
fn killed_processes_cost_the_others_nothing_for_a_minute() {
    crowd("60");
}

/// A program that closes its card and opens it again has the same function, and so its address.
#[test]
fn a_card_opened_again_is_the_same_function() {
    let _alone = alone();
    let ran = run(&["--cards", "1"], &[&built("again")]);
    assert!(ran.status.success() && text(&ran).contains("0 of 160 times another function"), "{}", text(&ran));
}

/// Twins have the larger tables. `./scripts/bench twin` says how long it takes.
#[test]
fn a_thousand_queue_pairs_are_opened() {
    let _alone = alone();
    let ran = run(&[], &[&built("many"), "1000"]);
    assert!(ran.status.success() && text(&ran).contains("1000 queue pairs in"), "{}", text(&ran));
    // More than there are.
    assert_eq!(run(&[], &[&built("many"), "1100"]).status.code(), Some(1));
}

/// A completion queue as deep as what is on its way: a twin completes at once what takes the place of completions that it has not been told of.
#[test]
fn a_completion_queue_of_the_send_queues_depth_does_not_overflow() {
    let _alone = alone();
    let port = free_port();
    let tool = format!("ib_write_bw -F -s 4096 -n 3000 -t 128 -x 0 -p {port}");
    let script = format!("{tool} -d ferric0 > /dev/null & s=$!; until {tool} -d ferric1 127.0.0.1; do kill -0 $s; sleep 0.2; done; wait $s");
    let ran = run(&[], &["timeout", "60", "sh", "-euc", &script]);
    assert!(ran.status.success() && text(&ran).contains("4096       3000"), "{}", text(&ran));
}

/// The shell of docs/ci.md, as it stands there, with `ferric` and the libraries installed under a prefix.
#[test]
fn the_shell_of_the_documents_works() {
    let _alone = alone();
    let prefix = scratch();
    let (bin, lib) = (prefix.join("bin"), prefix.join("lib/ferric"));
    [&bin, &lib].into_iter().for_each(|dir| std::fs::create_dir_all(dir).unwrap());
    std::fs::copy(FERRIC, bin.join("ferric")).unwrap();
    for name in ["libibverbs.so.1", "librdmacm.so.1"] {
        std::fs::copy(libraries().join(name), lib.join(name)).unwrap();
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ci.md")).unwrap();
    let shell = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block of shell");
    assert_eq!(shell.lines().count(), 8);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("timeout").args(["100", "sh", "-c", shell]).env("PATH", path).env("PORT", free_port().to_string()).output().unwrap();
    assert!(ran.status.success() && text(&ran).ends_with("RDMA works\n"), "{}", text(&ran));
}
