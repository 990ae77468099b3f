//! Programs of Debian 12 and of Debian 13, unmodified, on our libibverbs and librdmacm: two processes on two twins that `ferric run` starts.
use ferric_tests::programs::{built, free_port, libraries, newer};
use ferric_tests::served::{alone, scratch};
use std::path::Path;
use std::process::Command;

const FERRIC: &str = env!("CARGO_BIN_EXE_ferric-under-test");

/// `server SAYS PROGRAM...` starts a program on the first card and goes on when it has said so; `client PROGRAM...` runs one on the second; `ended` waits for the server.
const FUNCTIONS: &str = r#"
    A=${FERRIC_DEVICES%%,*} B=${FERRIC_DEVICES#*,}
    export FERRIC_LOG=info FERRIC_NEIGHBOUR_WAIT=300
    server() {
        says=$1; shift
        # The shell may look before its child has emptied the file: what the server before said must not count.
        : > "$DIR/server"
        FERRIC_DEVICES=$A "$@" > "$DIR/server" 2>&1 & server=$!
        until grep -q "$says" "$DIR/server"; do kill -0 $server || { cat "$DIR/server"; exit 1; }; sleep 0.02; done
    }
    client() { FERRIC_DEVICES=$B "$@"; }
    ended() { wait $server || { cat "$DIR/server"; exit 1; }; cat "$DIR/server"; }
    # perftest makes two connections, and asks for the second whether its server listens for it yet or not: one that comes too early is refused, and the program ends.
    perftest() {
        for attempt in 1 2 3 4; do
            server "listens at" "$@" -R -F -n 5 -p $PORT
            if client "$@" -R -F -n 5 -p $PORT 10.0.0.1 > "$DIR/client" 2>&1; then cat "$DIR/client"; ended; return; fi
            grep -q "RDMA_CM_EVENT_\(UNREACHABLE\|REJECTED\)" "$DIR/client" || break
            kill $server; wait $server || true
        done
        cat "$DIR/client" "$DIR/server"
        return 1
    }
"#;

/// Runs a script with these functions, and with the programs of `newer` if there are such; what was printed. Panics when it fails.
fn run(newer: Option<&Path>, script: &str) -> String {
    let _alone = alone();
    let mut command = Command::new(FERRIC);
    command.args(["run", "--libraries"]).arg(libraries()).args(["--", "timeout", "100", "sh", "-euc", &[FUNCTIONS, script].concat()]);
    command.env("AS_IF_INSTALLED", concat!(env!("CARGO_MANIFEST_DIR"), "/../verbs/tests/as-if-installed"));
    command.env("DIR", scratch()).env("PORT", free_port().to_string());
    if let Some(bin) = newer {
        command.env("PATH", std::env::join_paths([bin.to_path_buf()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap()))).unwrap());
    }
    let ran = command.output().expect("ferric run");
    let printed = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success(), "{}:\n{script}\n{printed}", ran.status);
    printed
}

/// rsockets: both programs compare what they receive (`-T v`), without waiting, by waiting and by `rpoll`; messages inside a request, of one part of the send buffer, and of many.
const SOCKETS: &str = r#"
    for program in rstream riostream; do
        for how in "" "-T b" "-T a"; do
            for size in 30 5000 200001; do
                server "listens at" $program -T v $how -S $size -C 5 -I 3 -b 10.0.0.1
                client $program -T v $how -S $size -C 5 -I 3 -s 10.0.0.1
                ended
            done
        done
    done
"#;

fn sockets(newer: Option<&Path>) {
    let printed = run(newer, SOCKETS);
    // A line of results of each end.
    assert_eq!(printed.lines().filter(|l| l.starts_with("custom")).count(), 2 * 3 * 3 * 2, "{printed}");
}

/// Datagram queue pairs that are found by SIDR, groups, and the time of connections.
const OVER_DATAGRAMS: &str = r#"
    server "listens at" udaddy -b 10.0.0.1 -c 3 -C 4
    client udaddy -s 10.0.0.1 -c 3 -C 4
    ended
    for program in ib_send_lat ib_send_bw; do perftest $program -c UD -s 64; done
    server "joined" mckey -m 239.1.2.3 -C 3
    client mckey -m 239.1.2.3 -C 3 -s
    ended
"#;

fn datagrams(newer: Option<&Path>) {
    let printed = run(newer, OVER_DATAGRAMS);
    // Both ends of `udaddy` and of `mckey`, and lines of results of both ends of two programs.
    assert_eq!(printed.matches("return status 0").count(), 4, "{printed}");
    assert_eq!(printed.lines().filter(|l| l.split_whitespace().take(2).eq(["64", "5"])).count(), 4, "{printed}");
}

#[test]
fn programs_over_datagrams() {
    datagrams(None);
}

/// Those that were there before, too: perftest, whose libraries of other cards ask for other symbols, and rdma-core's own.
#[test]
fn programs_of_debian_13() {
    let Some(bin) = newer("programs_of_debian_13") else { return };
    datagrams(Some(&bin));
    sockets(Some(&bin));
    let script = r#"
        ibv_devinfo -v | grep -q PORT_ACTIVE
        tcp() { "$@" -p $PORT & s=$!; until client "$@" -p $PORT 127.0.0.1; do kill -0 $s; sleep 0.1; done; wait $s; }
        FERRIC_DEVICES=$A
        for options in "-c" "-e -c" "-N -t"; do tcp ibv_rc_pingpong -g 0 -n 50 $options; done
        tcp ibv_uc_pingpong -g 0 -n 5
        tcp ibv_ud_pingpong -g 0 -n 5
        tcp ibv_srq_pingpong -g 0 -n 50 -c
        for program in ib_send_lat ib_send_bw ib_write_lat ib_write_bw ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw; do perftest $program; done
        server "listens at" rping -s -C 3 -V -a 10.0.0.1
        client rping -c -C 3 -V -a 10.0.0.1
        ended
        server "listens at" ucmatose -b 10.0.0.1 -c 3 -C 4
        client ucmatose -s 10.0.0.1 -c 3 -C 4
        ended
        server "listens at" rdma_server
        client rdma_client -s 10.0.0.1
        ended
        server "listens at" rdma_xserver
        client rdma_xclient -s 10.0.0.1
        ended
    "#;
    let printed = run(Some(&bin), script);
    assert_eq!(printed.matches("iters in").count(), 12, "{printed}");
    // Lines of results: of both ends, but the latency of READs and atomics is the client's alone.
    let results = printed.lines().filter(|l| l.split_whitespace().nth(1) == Some("5") && l.split_whitespace().count() > 4).count();
    assert_eq!(results, 2 * 8 - 2, "{printed}");

    // Its two ends also talk by TCP, at the card's address and port 7471; both must have been told the same number. The server listens for that after it listens on the card, and a client that
    // is refused ends without a word.
    let script = r#"
        export A B
        "$AS_IF_INSTALLED" sh -euc '
            for connections in 10 30; do
                FERRIC_DEVICES=$A cmtime -b 10.0.0.1 -c $connections > "$DIR/server" 2>&1 & server=$!
                until grep -q ":1D2F 00000000:0000 0A" /proc/net/tcp; do kill -0 $server || { cat "$DIR/server"; exit 1; }; sleep 0.02; done
                FERRIC_DEVICES=$B cmtime -s 10.0.0.1 -c $connections || { echo "the client fails"; cat "$DIR/server"; exit 1; }
                wait $server || { echo "the server fails"; cat "$DIR/server"; exit 1; }
            done'
    "#;
    let printed = run(Some(&bin), script);
    // With queue pairs and without.
    assert_eq!(printed.matches("cm connect").count(), 2 * 2, "{printed}");
}

/// Two processes on one card, each with a function of it: what is the second one's address its own program says. Then a third one, and across the cards.
#[test]
fn functions_of_one_card_connect() {
    let script = r#"
        beside() { FERRIC_DEVICES=$A "$@"; }
        # The server has function 0.
        server "listens at" rping -s -C 3 -V -a 10.0.0.1
        beside rping -c -C 3 -V -a 10.0.0.1
        ended
        server "listens at" rdma_server
        beside rdma_client -s 10.0.0.1
        ended
        server "listens at" udaddy -b 10.0.0.1 -c 3 -C 4
        beside udaddy -s 10.0.0.1 -c 3 -C 4
        ended
        # A program that does nothing has function 0: servers have function 1, clients of the same card function 2, and those of the other card function 0 there.
        : > "$DIR/first"
        FERRIC_DEVICES=$A rping -s -a 10.0.0.1 > "$DIR/first" 2>&1 & first=$!
        until grep -q "listens at" "$DIR/first"; do kill -0 $first; sleep 0.02; done
        for who in beside client; do
            server "listens at" rping -s -C 3 -V -a 10.0.1.1
            $who rping -c -C 3 -V -a 10.0.1.1
            ended
            server "listens at" ucmatose -b 10.0.1.1 -c 3 -C 4
            $who ucmatose -s 10.0.1.1 -c 3 -C 4
            ended
        done
        # Nobody listens there, and what is another process's address is not this one's.
        ! client rping -c -C 3 -a 10.0.2.1
        ! beside rping -s -C 3 -a 10.0.0.1
        kill -0 $first
        kill $first
    "#;
    let printed = run(None, script);
    assert_eq!(printed.matches("return status 0").count(), 2 + 4, "{printed}");
}

/// The server lives on, and serves the next client. (A client that is killed while it connects ends it: it looks at its own data of the failed connection, which it has not.)
#[test]
fn cmtime_measures_connections() {
    let script = r#"
        server "listens at" cmtime -b 10.0.0.1
        for connections in 10 30; do client cmtime -s 10.0.0.1 -c $connections; done
        kill -0 $server
        kill $server
    "#;
    let printed = run(None, script);
    for step in ["resolve addr", "connect", "disconnect", "destroy"] {
        assert_eq!(printed.lines().filter(|l| l.split(':').next().is_some_and(|name| name.trim() == step)).count(), 2, "{step}: {printed}");
    }
}

/// A server that was killed answers no question.
#[test]
fn a_dead_server_of_datagrams_is_unreachable() {
    let script = r#"
        server "listens at" udaddy -b 10.0.0.1
        kill -9 $server
        ! client udaddy -s 10.0.0.1
    "#;
    let printed = run(None, script);
    assert!(printed.contains("RDMA_CM_EVENT_UNREACHABLE, error: -110"), "{printed}");
}

#[test]
fn rstream_and_riostream_compare_their_data() {
    sockets(None);
}

/// One that waits for data hears of it by its own signs of life (`-k 1`).
#[test]
fn a_peer_of_rsockets_that_dies_is_noticed() {
    let script = r#"
        server "listens at" rstream -b 10.0.0.1 -T b -k 1 -S 1000 -C 1000000
        FERRIC_DEVICES=$B rstream -s 10.0.0.1 -T b -S 1000 -C 1000000 & client=$!
        sleep 0.5
        kill -9 $client
        ! wait $server
        cat "$DIR/server"
    "#;
    let printed = run(None, script);
    assert!(printed.contains("rrecv: Connection reset by peer"), "{printed}");
}

/// What programs do wrong, and each call once as it should be.
#[test]
fn calls_of_rsockets() {
    let printed = run(None, &built("sockets"));
    assert!(printed.contains("all as it should be"), "{printed}");
}

/// What programs do wrong.
#[test]
fn wrong_calls_of_datagrams_get_error_numbers() {
    let printed = run(None, &built("datagrams"));
    assert!(printed.contains("all as it should be"), "{printed}");
}

#[test]
fn windows_and_regions_that_change() {
    let printed = run(None, &built("windows"));
    assert!(printed.contains("all as it should be"), "{printed}");
}

#[test]
fn flush_and_atomic_write_by_calls_of_their_own() {
    let printed = run(None, &built("placement"));
    assert!(printed.contains("all as it should be"), "{printed}");
}

/// Frames as programs compose them: which arrive and which do not, and what is refused.
#[test]
fn raw_frames_arrive_as_the_flow_says() {
    let printed = run(None, &built("raw"));
    assert!(printed.contains("all as it should be"), "{printed}");
}

/// perftest over raw Ethernet, whose two ends say nothing to each other but what they measure with: the server's receives are posted soon after its flow is there.
#[test]
fn programs_over_raw_ethernet() {
    let script = r#"
        for program in raw_ethernet_bw raw_ethernet_lat; do
            options="-F -d ferric0 -n 100 -s 1000"
            server "not RoCE go to" $program --server $options -B 02:fe:0a:00:00:01 -E 02:fe:0a:00:00:02
            sleep 1
            client $program --client $options -B 02:fe:0a:00:00:02 -E 02:fe:0a:00:00:01
            ended
        done
        # The physical function's alone.
        server "listens at" rping -s -C 1 -a 10.0.0.1
        if FERRIC_DEVICES=$A raw_ethernet_bw --server $options -B 02:fe:0a:00:01:01 -E 02:fe:0a:00:00:02; then exit 1; fi
        client rping -c -C 1 -a 10.0.0.1
        ended
    "#;
    let printed = run(None, script);
    assert!(printed.contains("and this process has function 1"), "{printed}");
    // A line of results of each end.
    assert_eq!(printed.lines().filter(|l| l.split_whitespace().take(2).eq(["1000", "100"])).count(), 4, "{printed}");
}

/// Random programs against a model of what a queue holds, then three threads: one posts, one polls, one resizes.
#[test]
fn completion_queues_change_their_size_under_traffic() {
    let printed = run(None, &built("resize"));
    assert!(printed.contains("all as it should be"), "{printed}");
}
