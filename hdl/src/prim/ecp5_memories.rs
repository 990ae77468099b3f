//! The models of the ECP5's memories (`ecp5_memories.v`) against arrays in Rust: block memory at every width of either port, LUT memory.
use super::ECP5_MEMORIES;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use verilator_sys::Builder;

/// Widths of the writing port (A) and the reading one (B).
const SHAPES: [(usize, usize); 11] = [(1, 1), (2, 2), (4, 4), (9, 9), (18, 18), (36, 36), (1, 4), (4, 18), (18, 4), (36, 9), (9, 36)];

/// Bits of the memory, 18 a row, that a word covers, lowest first.
fn cells(width: usize, address: usize) -> Vec<usize> {
    let row = (address >> 4) * 18;
    let byte = row + (address >> 3 & 1) * 9;
    match width {
        1 | 2 | 4 => (0..width).map(|i| byte + (address & 7 & !(width - 1)) + i).collect(),
        9 => (0..9).map(|i| byte + i).collect(),
        18 => (0..18).map(|i| row + i).collect(),
        _ => (0..36).map(|i| (address >> 5) * 36 + i).collect(),
    }
}

/// Memory `n` of the bench, its ports vectors; its row 80 (the first of INITVAL_05) begins with `first`.
fn instance(n: usize, (write, read): (usize, usize), first: u32) -> String {
    let pins: String = (0..18).map(|i| format!(", .DIA{i}(di[{i}]), .DIB{i}(di[{}]), .DOA{i}(a{n}[{i}]), .DOB{i}(b{n}[{i}])", i + 18)).collect();
    let addresses: String = (0..14).map(|i| format!(", .ADA{i}(wa[{i}]), .ADB{i}(ra[{i}])")).collect();
    let selects: String = (0..3).map(|i| format!(", .CSA{i}(1'b0), .CSB{i}(1'b0)")).collect();
    format!(
        "DP16KD #(.DATA_WIDTH_A({write}), .DATA_WIDTH_B({read}), .WRITEMODE_A(\"READBEFOREWRITE\"), .INITVAL_05(320'd{first})) m{n} (.CLKA(clock), .CLKB(clock), \
         .CEA(ce), .CEB(re), .WEA(we), .WEB(1'b0), .OCEA(1'b1), .OCEB(1'b1), .RSTA(1'b0), .RSTB(1'b0){selects}{addresses}{pins});\n"
    )
}

#[test]
fn memories_of_the_ecp5_are_their_models() {
    let first = 0x2_a5c3;
    let outputs: String = (0..SHAPES.len()).map(|n| format!(", output wire [17:0] a{n}, output wire [17:0] b{n}")).collect();
    let memories: String = SHAPES.iter().enumerate().map(|(n, &shape)| instance(n, shape, first)).collect();
    let text = format!("{ECP5_MEMORIES}module memories(input wire clock, input wire we, input wire ce, input wire re, input wire [13:0] wa, input wire [13:0] ra, input wire [35:0] di{outputs}, output wire [3:0] lut);\n{memories}\
                        TRELLIS_DPR16X4 #(.INITVAL(64'h0123456789abcdef)) l (.DI(di[3:0]), .WAD(wa[3:0]), .WRE(we), .WCK(clock), .RAD(ra[3:0]), .DO(lut));\nendmodule\n");
    let mut sim = Builder::new(text, "memories").build().and_then(|l| l.instance(None)).unwrap_or_else(|e| panic!("{e}"));
    let [we, ce, re, wa, ra, di] = ["we", "ce", "re", "wa", "ra", "di"].map(|p| sim.port(p).unwrap_or_else(|e| panic!("{e}")));
    let outs: Vec<_> = (0..SHAPES.len()).map(|n| ["a", "b"].map(|p| sim.port(&format!("{p}{n}")).unwrap_or_else(|e| panic!("{e}")))).collect();
    let mut all = vec![vec![false; 1024 * 18]; SHAPES.len()];
    all.iter_mut().for_each(|bits| (0..18).for_each(|i| bits[80 * 18 + i] = first >> i & 1 == 1));
    let lut = sim.port("lut").unwrap_or_else(|e| panic!("{e}"));
    let mut words: Vec<u64> = (0..16).map(|i| 15 - i).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(16);
    // What the ports show: nothing is known of a port before its first read.
    let mut shown = vec![[None::<u64>; 2]; SHAPES.len()];
    for step in 0..20_000 {
        // Few rows, so that words meet; the initial row among them.
        let address = |rng: &mut ChaCha8Rng| (80 + rng.gen_range(0..4)) << 4 | rng.gen_range(0..16);
        let (write, own) = (address(&mut rng), rng.gen_bool(0.9));
        let (read, other) = (address(&mut rng), rng.gen_bool(0.8));
        let (enable, data) = (rng.gen_bool(0.5) && step > 50, rng.gen::<u64>() & 0xf_ffff_ffff);
        for (port, value) in [(we, enable.into()), (ce, own.into()), (re, other.into()), (wa, write as u64), (ra, read as u64), (di, data)] {
            sim.set(port, value);
        }
        sim.settle();
        assert_eq!(sim.get(lut), words[read & 15], "step {step}, LUT memory");
        if enable {
            words[write & 15] = data & 15;
        }
        sim.edge();
        for (n, &(a, b)) in SHAPES.iter().enumerate() {
            let word = |width, address: usize| cells(width, address).iter().enumerate().fold(0, |w, (i, &c)| w | u64::from(all[n][c]) << i);
            if other {
                let got = word(b, read);
                shown[n][1] = Some(if b == 36 { got >> 18 } else { got });
                if b == 36 {
                    shown[n][0] = Some(got & 0x3_ffff);
                }
            }
            if own && a < 36 && b < 36 {
                shown[n][0] = Some(word(a, write));
            }
            if own && enable {
                for (i, &c) in cells(a, write).iter().enumerate() {
                    // From 18 bits on the lowest address bits say which bytes are written.
                    if a < 18 || write >> (i / 9) & 1 == 1 {
                        all[n][c] = data >> i & 1 == 1;
                    }
                }
            }
            for (side, wanted) in shown[n].iter().enumerate() {
                if let Some(wanted) = wanted {
                    assert_eq!(sim.get(outs[n][side]), *wanted, "step {step}, widths {a} and {b}, port {}", ["A", "B"][side]);
                }
            }
        }
    }
}
