//! The whole chain on a small hand-written module.

use verilator_sys::{Builder, Direction, Error, OptLevel};

const COUNTER: &str = "
module counter(input wire clock, input wire reset, input wire enable, output reg [11:0] count,
               input wire [99:0] d$in, output reg [99:0] d$out, output wire [63:0] both);
  always @(posedge clock) begin
    count <= reset ? 12'd0 : count + {11'd0, enable};
    d$out <= {d$in[98:0], d$in[99]};
  end
  assign both = {d$in[31:0], 20'd0, count};
endmodule
";

#[test]
fn counts_and_rotates() {
    let library = Builder::new(COUNTER, "counter").build().unwrap();
    let mut model = library.instance(None).unwrap();
    let mut other = library.instance(None).unwrap();
    let [reset, enable, count, din, dout, both] = ["reset", "enable", "count", "d$in", "d$out", "both"].map(|name| model.port(name).unwrap());
    assert_eq!(model.info(dout).direction, Direction::Out);
    assert_eq!(model.info(dout).width, 100);

    for m in [&mut model, &mut other] {
        m.set(reset, 1);
        m.tick();
        m.set(reset, 0);
    }
    model.set(enable, 1);
    model.set_wide(din, &[1, 2, 3, 0x8]);
    model.settle();
    assert_eq!(model.get(count), 0, "outputs before the edge");
    assert_eq!(model.get(both), 1 << 32, "inputs settled");
    model.edge();
    assert_eq!(model.get(count), 1);
    let mut words = [0; 4];
    model.get_wide(dout, &mut words);
    assert_eq!(words, [3, 4, 6, 0], "rotated by one");
    let mut bytes = [0; 13];
    model.get_bytes(dout, &mut bytes);
    assert_eq!(bytes, [3, 0, 0, 0, 4, 0, 0, 0, 6, 0, 0, 0, 0]);
    // Models are independent of each other and may move to another thread.
    std::thread::spawn(move || (0..4999).for_each(|_| model.tick()));
    other.tick();
    assert_eq!(other.get(count), 0);
}

#[test]
fn wraps_on_another_thread() {
    let mut model = Builder::new(COUNTER, "counter").build().unwrap().instance(None).unwrap();
    let (enable, count) = (model.port("enable").unwrap(), model.port("count").unwrap());
    let start = model.get(count);
    let end = std::thread::spawn(move || {
        model.set(enable, 1);
        (0..5000).for_each(|_| model.tick());
        model.get(count)
    });
    assert_eq!(end.join().unwrap(), (start + 5000) % 4096);
}

#[test]
fn traces() {
    let builder = Builder::new(COUNTER, "counter").trace(true).opt(OptLevel::O3);
    let path = std::env::temp_dir().join(format!("ferric-counter-{}.fst", std::process::id()));
    let library = builder.build().unwrap();
    let mut model = library.instance(Some(&path)).unwrap();
    let enable = model.port("enable").unwrap();
    model.set(enable, 1);
    (0..100).for_each(|_| model.tick());
    drop(model);
    let bytes = std::fs::read(&path).unwrap();
    let _ = std::fs::remove_file(&path);
    assert!(bytes.len() > 300, "the trace holds {} bytes only", bytes.len());
    // The same cycles, of which the last alone are wanted.
    let mut model = library.instance(Some(&path)).unwrap();
    model.trace_from(99);
    model.set(enable, 1);
    (0..100).for_each(|_| model.cycle());
    assert_eq!(model.cycles(), 100);
    drop(model);
    let end = std::fs::read(&path).unwrap();
    let _ = std::fs::remove_file(&path);
    assert!(!end.is_empty() && end.len() < bytes.len(), "{} bytes of one cycle, {} of a hundred", end.len(), bytes.len());
    let plain = Builder::new(COUNTER, "counter").build().unwrap();
    assert!(matches!(plain.instance(Some(&path)), Err(Error::NotTraced(_))));
}

#[test]
fn errors_speak() {
    let Err(error) = Builder::new("module broken(input wire a, output wire b); assign b = nothing;\n", "broken").build() else { panic!("a broken module was built") };
    assert!(matches!(error, Error::ToolFailed { .. }));
    assert!(error.to_string().contains("syntax error"), "{error}");
    let model = Builder::new(COUNTER, "counter").build().unwrap().instance(None).unwrap();
    let error = model.port("nix").unwrap_err().to_string();
    assert!(error.contains("no port `nix`") && error.contains("d$out"), "{error}");
}

#[test]
#[should_panic(expected = "does not fit `enable`")]
fn a_value_too_wide_is_refused() {
    let mut model = Builder::new(COUNTER, "counter").build().unwrap().instance(None).unwrap();
    let enable = model.port("enable").unwrap();
    model.set(enable, 2);
}

/// What the judge does not like is not built, and is not found in the cache the next time.
#[test]
fn a_judge_reads_what_verilator_said() {
    let text = "module narrow(input wire [7:0] a, output wire [3:0] y);\nassign y = a;\nendmodule\n";
    let builder = Builder::new(text, "narrow").judge("width", |top, verilog, said| {
        assert_eq!(top, "narrow");
        assert!(verilog.starts_with("module narrow"));
        if said.contains("WIDTH") {
            Err("too narrow".into())
        } else {
            Ok(())
        }
    });
    for _ in 0..2 {
        assert!(matches!(builder.build(), Err(Error::Refused { top, reason }) if top == "narrow" && reason == "too narrow"));
    }
    assert!(Builder::new(text, "narrow").build().is_ok(), "without a judge everything goes");
}

/// Without `clang++`, and with what `CXX` names, models are the same: once more with `g++`.
#[test]
fn g_plus_plus_builds_them_too() {
    let folder = std::env::temp_dir().join(format!("ferric-models-{}", std::process::id()));
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let output = again.env("CXX", "g++").env("FERRIC_VERILATED_DIR", &folder).args(["counts_and_rotates", "--exact"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}
