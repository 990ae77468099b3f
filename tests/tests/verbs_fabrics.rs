//! Programs that look at more of a machine than libibverbs: Open MPI, UCX, libfabric and datagram rsockets of Debian, unmodified, on our libibverbs and librdmacm and two twins that
//! `ferric run` starts. `./scripts/soak programs` runs the first three on gateware.
use ferric_tests::programs::{built, libraries, newer, skipped};
use ferric_tests::served::{alone, scratch};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

const FERRIC: &str = env!("CARGO_BIN_EXE_ferric-under-test");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// `pair PROGRAM...` runs a program on the first card and, once it listens at the TCP port `$PORT`, with the first card's address behind its arguments, on the second, each with
/// `$SERVER` or `$CLIENT` behind its arguments, too.
/// `exchange RANKS LARGEST OPTIONS...` runs our program of MPI.
const FUNCTIONS: &str = r#"
    A=${FERRIC_DEVICES%%,*} B=${FERRIC_DEVICES#*,}
    # Everything of ours is in a namespace of its own: ports are free, and who listens is one of us.
    PORT=20000 SERVER="" CLIENT=""
    listens() { awk -v port=":$(printf %04X $PORT)\$" '$2 ~ port && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6; }
    pair() {
        FERRIC_DEVICES=$A "$@" $SERVER > "$DIR/server" 2>&1 & server=$!
        until listens; do kill -0 $server || { cat "$DIR/server"; return 1; }; sleep 0.02; done
        FERRIC_DEVICES=$B "$@" $CLIENT 10.0.0.1 || { cat "$DIR/server"; return 1; }
        wait $server || { cat "$DIR/server"; return 1; }
        PORT=$((PORT + 1))
    }
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    exchange() {
        ranks=$1 largest=$2; shift 2
        mpirun --oversubscribe -np $ranks "$@" "$ROOT/tests/mpi/rank" /usr/bin/python3 "$ROOT/tests/mpi/exchange.py" $largest
    }
"#;

/// What UCX and libfabric look for beside libibverbs is there only in namespaces (`as-if-installed`). `None`: this machine has not got what the test needs.
fn run(test: &str, needed: &[&str], options: &[&str], script: &str) -> Option<String> {
    run_in(&std::env::var_os("PATH").unwrap_or_default(), test, needed, options, script)
}

/// The same with these folders of programs.
fn run_in(path: &OsStr, test: &str, needed: &[&str], options: &[&str], script: &str) -> Option<String> {
    let spaces = Command::new("unshare").args(["--user", "--map-root-user", "--net", "--mount", "true"]).output();
    if !spaces.is_ok_and(|o| o.status.success()) {
        skipped(test, "this machine gives ordinary users no namespaces");
        return None;
    }
    if let Some(missing) = needed.iter().find(|file| !std::env::split_paths(path).any(|dir| dir.join(file).exists())) {
        skipped(test, &format!("there is no {missing}: ./scripts/setup installs it"));
        return None;
    }
    let _alone = alone();
    let mut command = Command::new(FERRIC);
    command.arg("run").args(options).arg("--libraries").arg(libraries()).arg("--").arg(Path::new(ROOT).join("verbs/tests/as-if-installed"));
    let patience = if options.is_empty() { "200" } else { "1200" };
    command.args(["timeout", "-k", "5", patience, "sh", "-euc", &[FUNCTIONS, script].concat()]).env("DIR", scratch()).env("ROOT", ROOT).env("PATH", path);
    let ran = command.output().expect("ferric run");
    let printed = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success(), "{}:\n{script}\n{printed}", ran.status);
    Some(printed)
}

/// What Open MPI's tests need, looked for in the folders of `PATH`.
const MPI: [&str; 2] = ["mpirun", "../lib/python3/dist-packages/mpi4py"];

/// Lines that begin with these words.
fn lines(printed: &str, start: &[&str]) -> usize {
    printed.lines().filter(|l| l.split_whitespace().take(start.len()).eq(start.iter().copied())).count()
}

/// Every byte is compared by the program. More ranks than cards: those of one card have a function each, and reach each other by loopback.
#[test]
fn open_mpi_on_ucx() {
    let script = r#"
        ucx() { exchange "$@" --mca pml ucx --mca osc ucx; }
        UCX_TLS=rc,self ucx 2 4194304
        UCX_TLS=rc,self ucx 4 4194304
        UCX_TLS=rc,self ucx 8 4096
        UCX_TLS=ud,self ucx 4 16384
    "#;
    let Some(printed) = run("open_mpi_on_ucx", &MPI, &[], script) else { return };
    assert_eq!(printed.matches("all as it should be").count(), 4, "{printed}");
}

/// `ofi_rxm` connects by librdmacm, also the ranks of one card, which have a function each and connect by loopback. `ofi_rxd` needs no connections.
#[test]
fn open_mpi_on_libfabric() {
    let script = r#"
        ofi() { provider=$1; shift; exchange "$@" --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "$provider"; }
        FI_UNIVERSE_SIZE=4 ofi "verbs;ofi_rxm" 2 4194304
        FI_UNIVERSE_SIZE=4 ofi "verbs;ofi_rxm" 4 4194304
        ofi "verbs;ofi_rxd" 8 65536
    "#;
    let Some(printed) = run("open_mpi_on_libfabric", &MPI, &[], script) else { return };
    assert_eq!(printed.matches("all as it should be").count(), 3, "{printed}");
}

/// Frames are lost.
#[test]
fn open_mpi_on_a_bad_wire() {
    let Some(printed) = run("open_mpi_on_a_bad_wire", &MPI, &["--loss", "0.5"], "UCX_TLS=rc,self exchange 2 4096 --mca pml ucx --mca osc ucx") else { return };
    assert!(printed.contains("all as it should be"), "{printed}");
}

/// Tests of `ucx_perftest` on a transport, and with how many iterations each has ended.
const UCT: &str = r#"
    uct() { over=$1; shift; pair ucx_perftest -p $PORT -d ferric0:1 -x $over -n $N -w 2 "$@"; }
    for how in short bcopy zcopy; do
        for t in am_lat am_bw; do
            uct rc_verbs -t $t -s 64 -D $how
            uct ud_verbs -t $t -s 64 -D $how
        done
        for t in put_lat put_bw; do uct rc_verbs -t $t -s 64 -D $how; done
    done
    for how in bcopy zcopy; do uct rc_verbs -t get -s 100 -D $how; done
    for t in add_lat add_mr fadd cswap; do uct rc_verbs -t $t; done
"#;
/// How many they are.
const OF_UCT: usize = 3 * (2 * 2 + 2) + 2 + 4;

#[test]
fn ucx_perftest_of_transports() {
    let Some(printed) = run("ucx_perftest_of_transports", &["ucx_perftest"], &[], &["N=20\n", UCT].concat()) else { return };
    assert_eq!(lines(&printed, &["Final:", "20"]), OF_UCT, "{printed}");
}

/// Tests of `ucx_perftest` on what chooses among transports: those of Open MPI.
const UCP: &str = r#"
    export UCX_TLS
    for UCX_TLS in rc,self ud,self; do
        for t in tag_lat tag_bw tag_sync_lat tag_sync_bw ucp_put_lat ucp_put_bw ucp_get stream_bw stream_lat ucp_am_lat ucp_am_bw; do
            for size in $SIZES; do pair ucx_perftest -p $PORT -t $t -n $N -w 2 -s $size; done
        done
        for t in ucp_add ucp_fadd ucp_swap ucp_cswap; do pair ucx_perftest -p $PORT -t $t -n $N -w 2; done
    done
"#;

#[test]
fn ucx_perftest_of_protocols() {
    let Some(printed) = run("ucx_perftest_of_protocols", &["ucx_perftest"], &[], &["N=20 SIZES='8 100000'\n", UCP].concat()) else { return };
    assert_eq!(lines(&printed, &["Final:", "20"]), 2 * (11 * 2 + 4), "{printed}");
}

/// With `-c` both ends compare what comes. UDP by the kernel's stack is there for comparison: it shows that a difference would be the card's.
///
/// Whichever end has the other's last message goes. libfabric looks for a connection's end between two completions, and gives up what it has not read of that connection: an end that had no processor
/// for a while says "flushed" of a message that has long been acknowledged, behind its last result. That is no word about the card, and the pair plays again; whatever else goes wrong is. An end that hangs is stopped after `$EACH` seconds.
const FABRICS: &str = r#"
    export FI_UNIVERSE_SIZE=4
    late() { tail -n 1 "$1" | grep -q "cq_readerr: Work Request Flushed Error" && [ $(grep -c "=5" "$1") = $(grep -c "=5" "$2") ]; }
    quoted() { sed 's/^/| /' "$DIR/server" "$DIR/client"; }
    play() {
        FERRIC_DEVICES=$A timeout -k 5 ${EACH:-90} fi_pingpong -c -I 5 "$@" -B $PORT > "$DIR/server" 2>&1 & server=$!
        until listens; do kill -0 $server || { quoted; return 1; }; sleep 0.02; done
        client=0
        FERRIC_DEVICES=$B timeout -k 5 ${EACH:-90} fi_pingpong -c -I 5 "$@" -P $PORT 10.0.0.1 > "$DIR/client" 2>&1 || client=$?
        served=0
        wait $server || served=$?
        PORT=$((PORT + 1))
        [ $client$served = 00 ] && { cat "$DIR/client"; return; }
        echo "| fi_pingpong $*: the client ended with $client, the server with $served"
        quoted
        { [ $client = 0 ] || late "$DIR/client" "$DIR/server"; } && { [ $served = 0 ] || late "$DIR/server" "$DIR/client"; } && [ $tries -lt 5 ] || return 1
        tries=$((tries + 1))
        play "$@"
    }
    pingpong() { tries=1; play "$@"; }
    pingpong -p verbs -e msg -S $LARGE
    pingpong -p verbs -e dgram -S 1024
    pingpong -p "verbs;ofi_rxm" -e rdm -S $LARGE
    pingpong -p "verbs;ofi_rxd" -e rdm -S 4096
    pingpong -p udp -e dgram -S 1024
"#;

#[test]
fn fi_pingpong_of_every_kind() {
    let script = ["LARGE=all\n", FABRICS].concat();
    let Some(printed) = run("fi_pingpong_of_every_kind", &["fi_pingpong"], &[], &script) else { return };
    assert_eq!(lines(&printed, &["1k", "5", "=5"]), 4, "{printed}");
    // The largest of all.
    assert_eq!(lines(&printed, &["6m", "5", "=5"]), 2, "{printed}");
}

/// Both ends of `udpong`, without waiting, waiting, and by `rpoll`; one way and there and back. All but the first data go over the wire between the cards, which is captured.
fn udpong(test: &str, path: &OsStr) {
    let script = r#"
        # A server that outlives a test that failed would look for datagrams for ever.
        trap '[ -z "$server" ] || kill $server' EXIT
        server=
        for how in n b a; do
            for also in "" "-T e"; do
                # It says nothing before its first client, whose first datagram it therefore may miss: the client repeats that.
                FERRIC_DEVICES=$A stdbuf -oL udpong -b 10.0.0.1 -T $how > "$DIR/server" 2>&1 & server=$!
                # udpong waits a millisecond for an answer, then sends again. A late answer overwrites the message that it repeats: from then on it sends that answer's number.
                # On a loaded machine it then never ends, or it ends without figures and says 0, as it does not look at its test's result. Neither is a word about the card.
                tries=1
                while :; do
                    said=0
                    FERRIC_DEVICES=$B timeout 20 udpong -s 10.0.0.1 -T $how $also -S 1000 -C 300 > "$DIR/client" || said=$?
                    grep "^custom" "$DIR/client" && break
                    cat "$DIR/client"
                    { [ $said = 0 ] || [ $said = 124 ]; } && [ $tries -lt 5 ] || exit 1
                    tries=$((tries + 1))
                done
                kill $server
                wait $server || true
                server=
                grep -q "client login from 10.0.0.2" "$DIR/server" || { cat "$DIR/server"; exit 1; }
            done
        done
    "#;
    let capture = scratch().join("wire.pcapng");
    let Some(printed) = run_in(path, test, &["udpong"], &["--pcap", capture.to_str().unwrap()], script) else { return };
    assert_eq!(lines(&printed, &["custom", "1000"]), 6, "{printed}");
    // Three times 300 there, and as many there and back.
    assert!(capture.metadata().unwrap().len() > (3 * 300 + 3 * 2 * 300) * 1000, "{capture:?}");
}

#[test]
fn udpong_over_datagram_sockets() {
    udpong("udpong_over_datagram_sockets", &std::env::var_os("PATH").unwrap_or_default());
}

#[test]
fn udpong_of_debian_13() {
    let Some(bin) = newer("udpong_of_debian_13") else { return };
    let path = std::env::var_os("PATH").unwrap_or_default();
    udpong("udpong_of_debian_13", &std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path))).expect("no colon"));
}

/// What programs do wrong, and each call once as it should be.
#[test]
fn calls_of_datagram_sockets() {
    let Some(printed) = run("calls_of_datagram_sockets", &[], &[], &built("messages")) else { return };
    assert!(printed.contains("all as it should be"), "{printed}");
}

/// Once on gateware, with small sizes.
#[test]
#[ignore = "ten minutes; ./scripts/soak programs runs it"]
fn all_of_them_on_gateware() {
    let script = [
        "UCX_TLS=rc,self exchange 2 16 --mca pml ucx --mca osc ucx\n",
        "FI_UNIVERSE_SIZE=4 exchange 2 16 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm'\n",
        "N=3 SIZES=8 LARGE=64 EACH=600\n",
        UCT,
        UCP,
        FABRICS,
    ];
    let needed = [&MPI[..], &["ucx_perftest", "fi_pingpong"]].concat();
    let Some(printed) = run("all_of_them_on_gateware", &needed, &["--gateware"], &script.concat()) else { return };
    assert_eq!(printed.matches("all as it should be").count(), 2, "{printed}");
    assert_eq!(lines(&printed, &["Final:", "3"]), OF_UCT + 2 * (11 + 4), "{printed}");
    assert_eq!(lines(&printed, &["64", "5", "=5"]), 2, "{printed}");
}
