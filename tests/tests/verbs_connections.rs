//! Programs of Debian, unmodified, that connect by our librdmacm: two processes on two served cards.
use ferric_tests::programs::{built, free_port, Cards};
use ferric_tests::served::alone;

const FERRIC: &str = env!("CARGO_BIN_EXE_ferric-under-test");
/// The server's card.
const AT: &str = "10.0.0.1";

#[test]
fn rping_client_and_server() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    // Validates what comes back (-V), prints it (-v).
    let [server, client] = cards.connected(("rping", &["-s", "-C", "3", "-v", "-V", "-a", AT]), ("rping", &["-c", "-C", "3", "-v", "-V", "-a", AT]));
    assert!(client.contains("ping data: rdma-ping-2: CDEFG") && server.contains("server ping data: rdma-ping-2: CDEFG"), "{server}\n{client}");
    // Once more: the card and the port number are free again.
    cards.connected(("rping", &["-s", "-C", "1", "-S", "1000", "-a", AT]), ("rping", &["-c", "-C", "1", "-S", "1000", "-a", AT]));
}

/// A client is killed without a word, again and again; the server lives on and ends what it had with it.
#[test]
fn killed_clients_connect_again() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    let mut server = cards.program(0, "rping", &["-s", "-P", "-v", "-V", "-a", AT]);
    server.says("listens at");
    for _ in 0..2 {
        let mut client = cards.program(1, "stdbuf", &["-oL", "rping", "-c", "-C", "100000", "-v", "-V", "-a", AT]);
        client.says("rdma-ping-3");
        drop(client);
    }
    let client = cards.program(1, "rping", &["-c", "-C", "2", "-v", "-V", "-a", AT]).succeed();
    assert!(client.contains("ping data: rdma-ping-1"), "{client}");
    assert!(server.is_alive(), "{}", server.text());
}

#[test]
fn requests_wait_in_the_backlog() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    let both = format!("{},{}", cards.devices(0), cards.devices(1));
    let printed = cards.program(0, "env", &[&format!("FERRIC_DEVICES={both}"), &built("backlog")]).succeed();
    assert!(printed.contains("all as it should be"), "{printed}");
}

#[test]
fn examples_of_librdmacm() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    // Several connections, opened and closed; synchronous endpoints with queues of their own.
    let [_, client] = cards.connected(("ucmatose", &["-b", AT, "-c", "3", "-C", "4"]), ("ucmatose", &["-s", AT, "-c", "3", "-C", "4"]));
    assert!(client.contains("return status 0"), "{client}");
    let [_, client] = cards.connected(("rdma_server", &[]), ("rdma_client", &["-s", AT]));
    assert!(client.contains("rdma_client: end 0"), "{client}");
    // This one asks for no inline bytes and sends 16 of them.
    let [_, client] = cards.connected(("rdma_xserver", &[]), ("rdma_xclient", &["-s", AT]));
    assert!(client.contains("rdma_xclient: end 0"), "{client}");
    // Nobody listens: the client is told.
    let (ok, printed) = cards.program(1, "rdma_client", &["-s", AT, "-p", "9"]).end();
    assert!(!ok, "{printed}");
}

#[test]
fn perftest_over_connections() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    for (program, options, start) in [("ib_send_lat", &["-s", "8"][..], "8 5"), ("ib_write_bw", &["-s", "2000"], "2000 5"), ("ib_read_lat", &["-s", "64"], "64 5")] {
        let port = free_port().to_string();
        let args = [options, &["-R", "-F", "-n", "5", "-p", &port]].concat();
        let [_, client] = cards.connected((program, &args), (program, &[&args[..], &[AT]].concat()));
        assert!(client.lines().any(|l| l.split_whitespace().take(2).collect::<Vec<_>>().join(" ") == start), "{client}");
    }
}

/// Runs a program as a server on one card and, once it listens, as a client on the other, for each list of arguments, where an interface has the
/// cards' addresses (libfabric wants that) and there are device files and what sysfs says of a GID (UCX). `None`: this machine gives ordinary users
/// no namespaces.
fn as_if_installed(program: &str, each: &[&str]) -> Option<String> {
    let spaces = std::process::Command::new("unshare").args(["--user", "--map-root-user", "--net", "--mount", "true"]).output();
    if !spaces.is_ok_and(|o| o.status.success()) {
        eprintln!("this machine gives ordinary users no namespaces: {program} is not run");
        return None;
    }
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    let script = r#"
        A=$1 B=$2 program=$3
        shift 3
        for arguments; do
            FERRIC_DEVICES=$A $program $arguments & server=$!
            until FERRIC_DEVICES=$B $program $arguments 10.0.0.1; do kill -0 $server || exit 1; sleep 0.3; done
            wait $server || exit 1
        done"#;
    let inside = concat!(env!("CARGO_MANIFEST_DIR"), "/../verbs/tests/as-if-installed");
    let devices = [0, 1].map(|card| cards.devices(card));
    let first = ["sh", "-c", script, "sh", &devices[0], &devices[1], program];
    Some(cards.program(0, inside, &[&first, each].concat()).succeed())
}

/// Lines that begin with these words.
fn lines(printed: &str, start: &[&str]) -> usize {
    printed.lines().filter(|l| l.split_whitespace().take(start.len()).eq(start.iter().copied())).count()
}

#[test]
fn fi_pingpong_on_verbs() {
    let Some(printed) = as_if_installed("fi_pingpong -p verbs -I 5 -S 64", &["-e msg", "-e dgram"]) else { return };
    assert_eq!(lines(&printed, &["64", "5", "=5"]), 4, "{printed}");
}

#[test]
fn ucx_perftest_on_verbs() {
    let Some(printed) = as_if_installed("ucx_perftest -d ferric0:1 -t am_lat -n 7 -w 1 -s 8", &["-x rc_verbs", "-x ud_verbs"]) else { return };
    assert_eq!(lines(&printed, &["Final:", "7"]), 2, "{printed}");
}
