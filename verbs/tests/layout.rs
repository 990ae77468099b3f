//! Structures and numbers declared in Rust against the headers that are installed: a C program prints sizes, offsets and values.
use ferric_verbs::abi::{consts::NUMBERS, layouts};
use std::fmt::Write;
use std::process::Command;

#[test]
fn structures_and_numbers_are_those_of_the_headers() {
    let header = |name: &str| std::path::Path::new("/usr/include").join(name).exists();
    assert!(header("infiniband/verbs.h") && header("rdma/rdma_cma.h"), "headers of libibverbs and librdmacm are missing: ./scripts/setup installs them");
    let mut program = String::from("#include <stdio.h>\n#include <stddef.h>\n#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\nint main(void) {\n");
    let mut wanted = String::new();
    for l in layouts() {
        writeln!(program, "printf(\"{0} %zu\\n\", sizeof({0}));", l.name).unwrap();
        writeln!(wanted, "{} {}", l.name, l.size).unwrap();
        for (field, offset) in l.fields.iter().filter(|(f, _)| !f.starts_with("opaque")) {
            // A word of Rust's.
            let field = field.trim_start_matches("r#");
            // Address unions: every member starts where the first does.
            writeln!(program, "printf(\"{0}.{1} %zu\\n\", offsetof({0}, {1}));", l.name, field).unwrap();
            writeln!(wanted, "{}.{field} {offset}", l.name).unwrap();
        }
    }
    for (name, value) in NUMBERS {
        writeln!(program, "printf(\"{name} %llu\\n\", (unsigned long long)(unsigned int){name});").unwrap();
        writeln!(wanted, "{name} {value}").unwrap();
    }
    program.push_str("return 0; }\n");
    let dir = std::env::temp_dir().join(format!("ferric-layout-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (source, binary) = (dir.join("layout.c"), dir.join("layout"));
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new("cc").arg("-w").arg("-o").args([&binary, &source]).output().expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let printed = Command::new(&binary).output().unwrap();
    let got = String::from_utf8(printed.stdout).unwrap();
    let differ: Vec<String> = wanted.lines().zip(got.lines()).filter(|(w, g)| w != g).map(|(w, g)| format!("here {w}, in the headers {g}")).collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert_eq!(wanted.lines().count(), got.lines().count());
    std::fs::remove_dir_all(&dir).unwrap();
}
