//! What a program may read and write at any time stands in cells: a shared reference to an object of ours must not promise that it does not change.
//! The compiler does not see programs in C, so this looks at what is written here.

fn source(name: &str) -> String {
    let path = format!("{}/src/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn what_programs_see_stands_in_cells() {
    for (file, field) in [("cq.rs", "ex: UnsafeCell<CqEx>"), ("qp.rs", "ex: UnsafeCell<QpEx>"), ("srq.rs", "srq: UnsafeCell<Srq>"), ("cm/id.rs", "seen: UnsafeCell<CmId>")] {
        assert!(source(file).contains(field), "{file} has no `{field}`");
    }
}

/// Fields that a handle's owner changes are written through the cell, never beside it.
#[test]
fn nothing_is_written_behind_a_reference() {
    for (file, written) in [("cq_ex.rs", "((*seen).status, (*seen).wr_id) ="), ("qp_modify.rs", "(*object.seen()).qp_base.state =")] {
        let text = source(file);
        assert!(text.contains(written), "{file} has no `{written}`");
        let beside = ["(*cq).status", "(*qp).state =", "&mut (*object).ex"];
        assert!(beside.iter().all(|b| !text.contains(b)), "{file} writes beside the cell");
    }
}
