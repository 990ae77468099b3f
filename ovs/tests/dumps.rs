//! What Open vSwitch itself makes of OpenFlow tables, tunnels and time to live among them, is text of the flow language: it is read, written again as Open vSwitch takes it, and
//! goes into the tables or is refused with a reason.
use ferric_model::switch::flow::{parse, steps_text, Field};
use ferric_model::switch::install::{NotOffloaded, Room};
use ferric_ovs::bridge::Bridge;
use ferric_ovs::diff::{names, TUNNELS};
use ferric_ovs::oracle::{Oracle, Sent, FUNCTIONS, UNDERLAY};
use ferric_ovs::server::Error;
use ferric_ovs::{rules, Folder};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Open vSwitch takes a flow that it has written itself. A frame that it treats late may bring the flow back between the two commands; the flow that is there already says nothing of
/// the text, so the datapath is emptied and the text is given again.
fn taken_back(oracle: &mut Oracle, matches: &str, actions: &str) -> Result<(), Error> {
    const TIMES: usize = 5;
    let mut time = 0;
    loop {
        let answer = oracle.server().control("dpctl/add-flow", &[matches, actions]);
        oracle.server().control("dpctl/del-flows", &[])?;
        time += 1;
        match answer {
            Err(e) if time < TIMES && e.to_string().contains("File exists") => continue,
            answer => return answer.map(drop),
        }
    }
}

#[test]
fn its_own_flows_are_read() -> Result<(), Error> {
    let folder = Folder::new("dumps");
    let mut oracle = Oracle::start(folder.path())?;
    // The bridges' own ports have names, too.
    let names: parse::Ports = names().into_iter().chain([("br0".to_owned(), 100), ("br1".to_owned(), 101), ("ovs-dummy".to_owned(), 0)]).collect();
    let (mut read, mut taken, mut refused) = (0, 0, Vec::new());
    for seed in 0..10 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let table = Bridge::random(&mut rng);
        table.ovs(&mut oracle)?;
        oracle.server().control("upcall/set-flow-limit", &["10000"])?;
        for (port, frame) in table.frames(40, &mut rng) {
            oracle.receive(port, &frame, &Sent::new())?;
        }
        let dump = oracle.server().control("dpctl/dump-flows", &["-m"])?;
        oracle.server().control("dpctl/del-flows", &[])?;
        for line in dump.lines().filter(|l| l.contains("actions:")) {
            let flow = parse::dump_line(line, &names).unwrap_or_else(|e| panic!("{e}: {line}"));
            let text = flow.to_string();
            let (matches, steps) = text.split_once(" actions:").expect("a flow has actions");
            assert_eq!(parse::flow(matches, steps, &names).as_ref(), Ok(&flow), "{line}");
            // Recirculation and user data of upcalls are of the moment; the rest Open vSwitch takes back as it is written here.
            let plain = flow.matches.foreign.is_empty() && !text.contains("userspace");
            if plain {
                taken_back(&mut oracle, matches, &steps_text(&flow.steps))?;
            }
            read += 1;
            match rules::tunnel_switch().install(&flow, Room::Any, &TUNNELS) {
                Ok(_) => taken += 1,
                Err(NotOffloaded::Origin) if flow.matches.exact(Field::InPort).is_some_and(|p| p == UNDERLAY.into() || FUNCTIONS.iter().any(|f| p == (*f).into())) => {
                    panic!("the port is there: {line}")
                }
                Err(reason) => refused.push(reason),
            }
        }
    }
    println!("{read} flows read, {taken} go into the tables, {} stay in software", refused.len());
    assert!(read > 80 && taken > 20, "{read} flows read, {taken} taken, refused: {refused:?}");
    Ok(())
}
