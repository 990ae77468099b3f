//! The functional twin beside the gateware. What needs no gateware stands in `sim/tests/twin.rs`.
use ferric_driver::qp::sge;
use ferric_driver::types::Mtu;
use ferric_driver::{CqeStatus, QpConfig, ReadRequest};
use ferric_hdl::card::counters;
use ferric_sim::fabric::Fate;
use ferric_sim::{Body, CardConfig, WorldConfig};
use ferric_tests::pair::{Linked, Pair, Wire};
use ferric_tests::property::differ::{self, Differ};
use ferric_tests::property::{missing, run, Plan};

#[test]
fn its_counters_are_the_gatewares_own() {
    let names = counters::names();
    assert_eq!(ferric_twin::counters::NAMES, names);
}

/// `FERRIC_BODY=twin ./scripts/soak property` runs more.
#[test]
fn twins_do_what_the_golden_model_of_the_verbs_says() {
    let coverage = run(Plan { seed: 1, cases: 1000, width: 64, bodies: [Body::Twin; 2] }).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(missing(&coverage), [""; 0], "never happened");
}

#[test]
fn a_twin_and_gateware_understand_each_other() {
    for (seed, bodies) in [(1, [Body::Twin, Body::Gateware]), (2, [Body::Gateware, Body::Twin])] {
        run(Plan { seed, cases: 5, width: 64, bodies }).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// `./scripts/soak twin` runs more.
#[test]
fn twins_and_gateware_come_to_the_same() {
    let coverage = differ::run(Differ { seed: 1, programs: 12, width: 64 }).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(coverage["programs"], 12);
    assert!(coverage["good wire"] > 0 && coverage["calm"] > 0 && coverage["counters compared"] > 0, "{coverage:?}");
}

/// A READ whose answers are lost is asked for again, when its memory has gone: what cannot be given is left out, and neither body counts more than that.
#[test]
fn a_duplicate_that_cannot_be_answered_counts_alike() {
    let counted = [Body::Twin, Body::Gateware].map(|body| {
        let cards = vec![CardConfig { body, width: 64, ..Default::default() }; 2];
        let wire = Wire { mtu: Mtu::M1024, timeout: 6, retry_cnt: 2, ..Default::default() };
        let mut l = Linked::on(Pair::new(&WorldConfig { cards, ..Default::default() }).unwrap(), &QpConfig::default(), &wire, &[7; 8192]).unwrap();
        l.pair.world().links[1].set_hook(Some(Box::new(|_, _| Some(Fate::Dropped))));
        let count = |l: &Linked, name: &str| l.pair.hosts[1].ctx.counters(counters::index(name).unwrap() as u32, 1).unwrap()[0];
        let into = [sge(l.src.addr(), 8192, l.src.lkey())];
        l.qps[0].post_read(&ReadRequest { wr_id: 1, sges: &into, remote_addr: l.dst.addr(), rkey: l.dst.rkey(), signaled: true, fence: false }).unwrap();
        while l.pair.world().links[1].counters.dropped < 8 {
            l.pair.world().run(10);
        }
        l.pair.world().cards[1].iommu.unmap(0, l.dst.mapping());
        assert_eq!(l.wait(0, 10_000_000).unwrap().status, CqeStatus::RetryExceeded);
        assert!(count(&l, "egress.tx_aborted") > 0, "{body:?}");
        ["reply.reads", "reply.answered_again", "reply.replies_dropped", "reply.reply_errors", "resp.dup_requests", "egress.tx_aborted"].map(|name| count(&l, name))
    });
    assert_eq!(counted[0], counted[1]);
    assert_eq!(counted[0][..4], [1, 2, 0, 0]);
}
