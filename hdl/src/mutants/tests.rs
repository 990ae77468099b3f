use super::list::parse;
use super::*;
use crate::board::{self, async_fifo::PulseCross, lite};
use crate::host::dma_rd::owed::Owed;
use crate::net::share::{cells::CellShare, slots::SlotShare};
use crate::net::tx::{seals, tests::makers};
use crate::prim::sum::{Ahead, Diff, LessOne, PlusOne, Sum};
use crate::prim::two_writers;
use crate::roce::requester;
use crate::stream::tests::yard::Yard;
use crate::tops;
use std::collections::BTreeMap;

const TEXT: &str = "\n\nmodule top(a,b);\n    x = a + b;\nendmodule\n\nmodule top$sub$0(a);\n    if (a[(12)+:(3)] == 3'h1) begin\n        yx = a;\n        x = a;\n    end\nendmodule\n";

fn mutant(module: &str, find: &str, put: &str) -> Mutant {
    let text = format!("[m]\nwhat = w\ntop = t\ntests = a b\nmodule = {module}\nfind = {find}\nput = {put}\n");
    parse(&text).unwrap().remove(0)
}

#[test]
fn a_mutant_changes_what_it_says_and_nothing_else() {
    let changed = |m: Mutant| match m.apply(TEXT).unwrap() {
        Outcome::Mutated(text, modules) => (text, modules.join(" ")),
        Outcome::Untouched => (String::new(), String::new()),
    };
    assert_eq!(changed(mutant(".", "a `+` b", "-")), (TEXT.replace("a + b", "a - b"), "top".into()));
    assert_eq!(changed(mutant("sub$*", "a[(#)+:(#)] `==` 3'h1", "!=")), (TEXT.replace("==", "!="), "top$sub$0".into()));
    assert_eq!(changed(mutant("none | sub*", "x = a;", "x = b;")).0, TEXT.replace(" x = a;", " x = b;"), "not inside `yx`");
    assert_eq!(changed(mutant("*ub$0", "begin yx = a;", "begin")).0, TEXT.replace("begin\n        yx = a;", "begin"), "over a line's end");
    assert_eq!(changed(mutant("=top", "x =", "y =")).1, "top");
}

#[test]
fn a_mutant_that_does_not_fit_says_so() {
    assert_eq!(mutant("sub", "x = a;", "").apply(TEXT), Ok(Outcome::Untouched));
    let error = |m: Mutant| m.apply(TEXT).unwrap_err();
    assert!(error(mutant("sub*", "x = c;", "")).contains("occurs 0 times in `top$sub$0`, not 1"));
    assert!(error(mutant("sub*", "= a;", "")).contains("occurs 2 times"));
    assert!(error(mutant(".", "a ` b", "")).contains("backticks"));
    for text in ["what = w", "[m]\nwho = w", "[m]\nwhat = w\ntop = t\nmodule = .\nfind = f", "[m]\nnothing"] {
        assert!(parse(text).is_err(), "{text}");
    }
    let whole = "[m]\nwhat = w\ntop = t\nmodule = .\nfind = f\ntests = t";
    assert!(parse(whole).is_ok());
    assert_eq!(parse(&format!("{whole}\ntests = u")).unwrap_err(), "line 7: `tests` of m is given twice");
}

/// The list still fits the gateware: so a change of a block shows here, not first in the long run.
#[test]
fn every_mutant_finds_its_place() {
    let mut emitted: BTreeMap<String, String> = BTreeMap::new();
    let mut faults = Vec::new();
    let all = list().unwrap();
    for mutant in &all {
        let verilog = emitted.entry(mutant.top.clone()).or_insert_with(|| match mutant.top.as_str() {
            "sum64" => crate::emit::emit("sum64", Sum::<64>::default()).unwrap(),
            "diff52" => crate::emit::emit("diff52", Diff::<52>::default()).unwrap(),
            "more24" => crate::emit::emit("more24", PlusOne::<24>::default()).unwrap(),
            "ahead24" => crate::emit::emit("ahead24", Ahead::<24>::default()).unwrap(),
            "less32" => crate::emit::emit("less32", LessOne::<32>::default()).unwrap(),
            "prims64" => crate::prim::tests::leaves64(),
            "yard" => crate::emit::emit("yard", Yard::<64, 8, 4>::default()).unwrap(),
            "pulse_cross" => crate::emit::emit("pulse_cross", PulseCross::default()).unwrap(),
            "lite_slave13" => crate::emit::emit("lite_slave13", lite::LiteSlave::<13>::default()).unwrap(),
            "lite_ask" => crate::emit::emit("lite_ask", lite::LiteAsk::default()).unwrap(),
            board if board::tops::find(board).is_some() => board::tops::find(board).unwrap().emit().unwrap(),
            // No card has several clients by itself.
            "slot_share2" => crate::emit::emit("slot_share2", SlotShare::<2>::new(&[])).unwrap(),
            "two_writers" => two_writers::tests::verilog(),
            "owed" => crate::emit::emit("owed", Owed::new(true)).unwrap(),
            "seal_queue" => seals::tests::verilog(),
            "makers512" => crate::emit::emit("makers512", makers::engines::<512, 64, 6, 8>()).unwrap(),
            "cell_share2_w64" => crate::emit::emit("cell_share2_w64", CellShare::<64, 8, 2>::default()).unwrap(),
            "requester3" => crate::emit::emit("requester3", requester::alone::<3, 11>()).unwrap(),
            // A block of either card will do.
            name => tops::in_core(name, 64).unwrap_or_else(|| panic!("{}: no top is called {name}", mutant.name)).emit().unwrap(),
        });
        match mutant.apply(verilog) {
            Ok(Outcome::Mutated(text, _)) if text != *verilog => {}
            Ok(Outcome::Mutated(..)) => faults.push(format!("{}: changes nothing", mutant.name)),
            Ok(Outcome::Untouched) => faults.push(format!("{}: no module `{}` in {}", mutant.name, mutant.module, mutant.top)),
            Err(e) => faults.push(e),
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(all.len() >= 30, "{} mutants", all.len());
}
