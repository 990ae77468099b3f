//! Programs of Debian, unmodified, that connect by our librdmacm: two processes on two served cards.
use ferric_tests::programs::{free_port, Cards};
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

#[test]
fn examples_of_librdmacm() {
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    // Several connections, opened and closed; synchronous endpoints with queues of their own.
    let [_, client] = cards.connected(("ucmatose", &["-b", AT, "-c", "3", "-C", "4"]), ("ucmatose", &["-s", AT, "-c", "3", "-C", "4"]));
    assert!(client.contains("return status 0"), "{client}");
    let [_, client] = cards.connected(("rdma_server", &[]), ("rdma_client", &["-s", AT]));
    assert!(client.contains("rdma_client: end 0"), "{client}");
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

/// libfabric wants an interface with the card's address, UCX device files and what sysfs says of a GID: both processes run in namespaces that
/// have them.
#[test]
fn frameworks_on_verbs() {
    let spaces = std::process::Command::new("unshare").args(["--user", "--map-root-user", "--net", "--mount", "true"]).output();
    if !spaces.is_ok_and(|o| o.status.success()) {
        eprintln!("this machine gives ordinary users no namespaces: fi_pingpong and ucx_perftest are not run");
        return;
    }
    let _alone = alone();
    let cards = Cards::start(FERRIC);
    let script = r#"
        both() {
            FERRIC_DEVICES=$A "$@" & server=$!
            # Until it listens.
            until FERRIC_DEVICES=$B "$@" 10.0.0.1; do kill -0 $server || exit 1; sleep 0.3; done
            wait $server || exit 1
        }
        A=$1 B=$2
        # Else libfabric wants a completion queue for 256 peers, larger than the card has.
        export FI_UNIVERSE_SIZE=4
        for kind in msg dgram rdm; do both fi_pingpong -p verbs -e $kind -I 5 -S 64; done
        for layer in rc_verbs ud_verbs; do both ucx_perftest -d ferric0:1 -x $layer -t am_lat -n 7 -w 1 -s 8; done
        export UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=ferric0:1
        both ucx_perftest -t tag_lat -n 7 -w 1 -s 3000"#;
    let inside = concat!(env!("CARGO_MANIFEST_DIR"), "/../verbs/tests/as-if-installed");
    let printed = cards.program(0, inside, &["sh", "-c", script, "sh", &cards.devices(0), &cards.devices(1)]).succeed();
    let results = |start: &[&str]| printed.lines().filter(|l| l.split_whitespace().take(start.len()).eq(start.iter().copied())).count();
    assert_eq!((results(&["64", "5", "=5"]), results(&["Final:", "7"])), (6, 3), "{printed}");
}
