//! The engine with a control switch and tables of a list: more than 16, of numbers that hosts know and of names that only their engine knows.
use super::*;
use crate::assembly::{AnyBlock, Assembly};
use crate::host::admin::isa::R;
use crate::host::admin::program::{p, ID, RES};
use crate::host::ctl::switch;
use crate::host::testing::Register;
use AdminOpcode::{QueryObject, SetPort};
use AdminStatus::{BadParameter, Ok};

/// What the engine calls its table, which hosts have no number for.
const OWN: &str = "own";

/// Word 1 of line `id` becomes p0; r0 is what stood there.
fn swap_own(program: &mut Program) {
    let bad = program.fails(AdminStatus::BadId);
    program.line(ID);
    program.read(R(RES), OWN, 1);
    program.asm.on_error(bad);
    program.write(OWN, 1, p(0));
    program.done();
}

/// Tables in front of the engine's own one, and the number by which hosts know the first of them.
const BEFORE: u8 = 18;
const FIRST: u8 = 100;

/// Ports of the admin engine that the bench drives or reads.
const PORTS: &[&str] = &[
    "look_function",
    "look_word",
    "look",
    "served",
    "again",
    "reset_done",
    "stat",
    "stat_function",
    "raw_qpn",
    "barrier",
    "barrier_done",
    "quiesce_rd",
    "quiesced_rd",
    "quiesce_wr",
    "quiesced_wr",
    "mtt_invalidate",
    "mtt_clean",
    "ends",
    "ends_qpn",
    "m_rd",
    "s_rd",
    "m_wr",
    "s_done",
];

fn list() -> Assembly {
    let mut a = Assembly::default();
    a.part("test");
    a.input::<Clock>("clock");
    a.input::<Bit>("reset");
    a.reset_by("reset");
    a.control_switch("switch");
    let plan = Plan::new(SIZES, &[Command(SetPort, swap_own)], []);
    a.instance_by("admin", "Admin", move |list| AnyBlock::new(Admin::<2>::new(&plan.with_tables(list.tables.iter().map(|t| t.name)))));
    a.instance_by("switch", "CtlSwitch", |list| switch::for_number(list.tables.len()));
    a.join("admin.m_ctl", "switch.s_req");
    a.join("switch.m_resp", "admin.s_ctl");
    a.expose_all("", "admin", PORTS);
    (0..2).for_each(|port| a.optional(&format!("admin.m_error[{port}]")));
    for n in 0..BEFORE {
        a.instance(&format!("table{n}"), move || Register::new(0x1000 + u64::from(n)));
        a.table(FIRST + n, &format!("table{n}"));
    }
    a.instance("mine", || Register::new(7));
    a.table(OWN, "mine");
    a
}

#[test]
fn a_table_of_an_engine_of_its_own_behind_many_others() {
    let mut tb = Tb::new("admin_tables", list().assemble().unwrap_or_else(|faults| panic!("{faults:#?}")));
    let (rd, rows) = (tb.sink("m_rd", 20), tb.source("s_rd", 20));
    let (wr, done) = (tb.sink("m_wr", 20), tb.source("s_done", 20));
    tb.set("mtt_clean", 1);
    let mut b = Bench::with(Engine::Rtl(Box::new(Rtl { tb, rd, rows, wr, done, ctl: None, errors: Vec::new(), barrier_in: 0 })), SIZES);
    for n in (0..BEFORE).rev() {
        let words = b.expect(Ok, 0, QueryObject, 0, &[(FIRST + n).into(), 0]);
        assert_eq!(words[0], 0x1000 + u32::from(n), "table {n}");
    }
    // Its own command finds it; hosts have no number for it, neither that on the bus nor one beyond.
    assert_eq!(b.expect(Ok, 0, SetPort, 0, &[0x1234_5678])[0], 7);
    assert_eq!(b.expect(Ok, 0, SetPort, 0, &[9])[0], 0x1234_5678);
    for number in [BEFORE.into(), (FIRST + BEFORE).into(), 0, 1, 255, 256 + u32::from(FIRST), 1 << 31] {
        b.expect(BadParameter, 0, QueryObject, 0, &[number, 0]);
    }
    // None of the others has been written to.
    for n in 0..BEFORE {
        assert_eq!(b.expect(Ok, 0, QueryObject, 0, &[(FIRST + n).into(), 1])[0], 0x1000 + u32::from(n), "table {n}");
    }
}

#[test]
fn names_are_unique_and_tables_have_an_end() {
    let mut a = list();
    a.table(OWN, "mine");
    a.table(FIRST, "table0");
    (0..16).for_each(|n| a.table(200 + n, "mine"));
    let faults = a.assemble().err().expect("faults").join("\n");
    for fault in ["two tables are called `own`", "two tables are called 100", "37 tables, and the control switch has ports for 32"] {
        assert!(faults.contains(fault), "{faults}");
    }
}
