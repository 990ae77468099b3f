//! `docs/reference.md` is what the declarations say, and the page knows every list there is.
#[path = "../examples/reference/page.rs"]
mod page;

#[test]
fn page_is_up_to_date() {
    let on_disk = std::fs::read_to_string(page::PATH).unwrap_or_default();
    let wanted = page::render();
    let line = wanted.lines().zip(on_disk.lines()).position(|(a, b)| a != b);
    assert!(on_disk == wanted, "docs/reference.md differs (first in line {line:?}); run `cargo run -p ferric-abi --example reference`");
}

#[test]
fn page_knows_every_code_list() {
    let names = |lists: Vec<page::Codes>| lists.iter().map(|c| c.name).collect::<Vec<_>>();
    assert_eq!(declared_in(include_str!("../src/codes.rs")), names(page::code_lists()));
    assert_eq!(declared_in(include_str!("../src/uet/codes.rs")), names(page::uet_code_lists()));
}

/// Names of the enums of a source with lists of codes.
fn declared_in(source: &str) -> Vec<&str> {
    // An enum of codes.rs stands as `Name {` behind its doc line.
    let body = &source[source.find("codes! {").expect("the list")..];
    let mut declared: Vec<&str> = Vec::new();
    for part in body.split("#[doc = \"").skip(1) {
        let after = &part[part.find("\"]").expect("end of the doc") + 2..];
        declared.push(after[..after.find('{').expect("the enum")].trim());
    }
    declared
}

#[test]
fn page_names_every_constant_of_the_bar() {
    let page = page::render();
    for name in ["MAGIC_VALUE", "VERSION_VALUE", "WINDOW_BITS", "DB_SQ", "DB_RQ", "DB_CQ", "DB_EQ", "DB_WQE", "DB_WQE_SIZE", "STATS"] {
        assert!(page.contains(&format!("\n| {name} | ")), "{name} is missing");
    }
    assert!(page.contains(&format!("`{:#x}`", ferric_abi::csr::DB_WQE)));
}
