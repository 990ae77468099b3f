//! Equivalence of every leaf with its model: all leaves of one width stand side by side in one Verilated library.

use super::{arb::*, clash::Clash, keep_mask::*, lane_ram::*, model, mux::*, pack::*, popcount::*, ram::*, rotate::*, slot::*, xor_matrix::*};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rust_hdl::prelude::*;
use verilator_sys::{Builder, Model, PortId};

/// Emits blocks under one top whose ports are `<name>_<port>`; `clock` is shared.
#[derive(Default)]
struct Bundle {
    text: String,
    ports: Vec<String>,
    instances: String,
}

impl Bundle {
    fn add<B: Block>(&mut self, name: &str, mut block: B) {
        block.connect_all();
        let mut modules = ModuleDefines::default();
        block.accept(name, &mut modules);
        let text = modules.defines();
        let top = text.split(&format!("module {name}(")).nth(1).and_then(|t| t.split("endmodule").next()).unwrap_or_default();
        let mut wires = Vec::new();
        for line in top.lines().map(str::trim).filter(|l| l.starts_with("input ") || l.starts_with("output ")) {
            let (kind, range_name) = line.trim_end_matches(';').split_once(' ').unwrap_or_default();
            let range_name = range_name.trim_start_matches("wire").trim_start_matches("reg").trim();
            let (range, port) = range_name.rsplit_once(' ').unwrap_or(("", range_name));
            if port == "clock" {
                wires.push(".clock(clock)".to_string());
                continue;
            }
            self.ports.push(format!("{kind} wire {range} {name}_{port}"));
            wires.push(format!(".{port}({name}_{port})"));
        }
        self.instances += &format!("{name} u_{name}({});\n", wires.join(", "));
        self.text += &text;
    }

    fn text(&self, top: &str) -> String {
        format!("{}\nmodule {top}(input wire clock,\n{});\n{}endmodule\n", self.text, self.ports.join(",\n"), self.instances)
    }

    fn build(self, top: &str) -> Sim {
        let text = self.text(top);
        let text = crate::mutants::requested(&text).unwrap_or(text);
        let library = Builder::new(text, top).build().unwrap_or_else(|e| panic!("{e}"));
        Sim(library.instance(None).unwrap_or_else(|e| panic!("{e}")))
    }
}

struct Sim(Model);

impl Sim {
    fn id(&self, port: &str) -> (PortId, usize) {
        let id = self.0.port(port).unwrap_or_else(|e| panic!("{e}"));
        (id, self.0.info(id).width as usize)
    }
    fn set(&mut self, port: &str, bits: &[bool]) {
        let (id, w) = self.id(port);
        assert_eq!(bits.len(), w, "{port}");
        let mut bytes = vec![0u8; w.div_ceil(8)];
        bits.iter().enumerate().for_each(|(i, &b)| bytes[i / 8] |= (b as u8) << (i % 8));
        self.0.set_bytes(id, &bytes);
    }
    fn put(&mut self, port: &str, v: usize) {
        let (id, _) = self.id(port);
        self.0.set(id, v as u64);
    }
    fn get(&self, port: &str) -> Vec<bool> {
        let (id, w) = self.id(port);
        let mut bytes = vec![0u8; w.div_ceil(8)];
        self.0.get_bytes(id, &mut bytes);
        (0..w).map(|i| bytes[i / 8] >> (i % 8) & 1 == 1).collect()
    }
    fn num(&self, port: &str) -> usize {
        let (id, _) = self.id(port);
        self.0.get(id) as usize
    }
}

fn random(rng: &mut ChaCha8Rng, n: usize) -> Vec<bool> {
    // Half of the vectors sparse, so that empty and one-hot cases occur.
    let p = if rng.gen() { 0.5 } else { 0.06 };
    (0..n).map(|_| rng.gen_bool(p)).collect()
}

fn one_hot(n: usize, i: Option<usize>) -> Vec<bool> {
    (0..n).map(|k| Some(k) == i).collect()
}

fn bytes(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8).map(|c| c.iter().enumerate().map(|(i, &b)| (b as u8) << i).sum()).collect()
}

fn column(out: usize, seed: u64) -> impl Fn(usize) -> Vec<bool> {
    move |j| random(&mut ChaCha8Rng::seed_from_u64(seed ^ (j as u64 * 7919)), out)
}

/// A record whose abi layout is in network order and has odd widths.
fn shuffled(n: usize, of: usize) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(of as u64);
    let mut all: Vec<_> = (0..of).collect();
    for i in (1..of).rev() {
        all.swap(i, rng.gen_range(0..=i));
    }
    // Keep some runs, which the emitter merges.
    all.truncate(n - 16);
    let tail: Vec<_> = (0..of).filter(|i| !all.contains(i)).take(16).collect();
    all.extend(tail);
    all
}

#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Rec {
    a: Bits<13>,
    b: Bit,
    c: Bits<34>,
}

fn bundle<const W: usize, const K: usize, const LK: usize, const L: usize>() -> Bundle {
    let mut b = Bundle::default();
    b.add("rot", ByteRotate::<W, K, LK>::default());
    b.add("rotp", ByteRotatePipe::<W, K, LK>::default());
    b.add("xm", XorMatrix::<W, 32>::new(column(32, 5)));
    b.add("km", KeepMask::<W, K>::default());
    b.add("lm", LenMask::<K, L>::default());
    b.add("rm", RangeMask::<K, L>::default());
    b.add("kl", KeepLen::<K, L>::default());
    b.add("cast", Cast::<Rec, Bits<48>>::default());
    b.add("cat", Concat2::<13, 35, 48>::default());
    b.add("slice", Slice::<W, 13>::new(W - 20));
    b.add("grow", Resize::<K, W>::default());
    b.add("cut", Resize::<W, 5>::default());
    b.add("ga", Gather::<3>::default());
    b.add("sd", ShiftDown::<W>::new(19));
    b.add("sd0", ShiftDown::<W>::new(W));
    b.add("pick", BePick::<W, Rec>::new(shuffled(48, W)));
    b.add("pack", BePack::<W, Rec>::new(shuffled(48, W)));
    b.add("ohm", OneHotMux::<Bits<W>, 3>::default());
    b.add("ixm", IndexMux::<Bit, 3, 2>::default());
    b.add("rr", RrPick::<K>::default());
    b.add("rr1", RrPick::<1>::default());
    b.add("fs", FirstSet::<K>::default());
    b.add("ohb", OneHotToBin::<K, LK>::default());
    b.add("boh", BinToOneHot::<K, L>::default());
    b.add("clash", Clash::<3, 4>::default());
    b.add("pc", PopCount::<K, L>::default());
    b.add("pcw", PopCount::<W, 12>::default());
    b.add("sm", SlotMerge::<200, W>::default());
    b.add("ram", Ram::<Bits<W>, 7>::default());
    b.add("hold", RamHold::<Rec, 4>::default());
    b.add("apart", RamApart::<Rec, 4>::default());
    b.add("pass", RamPass::<Rec, 4>::default());
    b.add("deep", RamPass::<Rec, 7>::default());
    b.add("aram", AxisRam::<W, K, 4>::default());
    b.add("as1", RamAsync::<Bit, 3>::default());
    b.add("as2", RamAsync2::<Bits<W>, 3>::default());
    b.add("lane", LaneRam::<W, K, 4>::default());
    b
}

/// Numbers of 3 bits, so that equal ones are common; a port may keep another number than it asks for.
fn clashes(sim: &mut Sim, rng: &mut ChaCha8Rng) {
    let [id, kept]: [[usize; 4]; 2] = rng.gen();
    let [id, kept] = [id, kept].map(|numbers| numbers.map(|n| n & 7));
    let held = random(rng, 4);
    for i in 0..4 {
        sim.put(&format!("clash_id${i}"), id[i]);
        sim.put(&format!("clash_kept${i}"), kept[i]);
    }
    sim.set("clash_held", &held);
    sim.0.eval();
    assert_eq!(sim.get("clash_y"), model::clash(&id, &kept, &held));
}

fn combinational<const W: usize, const K: usize, const LK: usize, const L: usize>(sim: &mut Sim, rng: &mut ChaCha8Rng) {
    let columns: Vec<_> = (0..W).map(column(32, 5)).collect();
    let list = shuffled(48, W);
    for round in 0..400 {
        clashes(sim, rng);
        let x = random(rng, W);
        let keep = random(rng, K);
        let rec = random(rng, 48);
        let n = rng.gen_range(0..K);
        let (lo, hi) = (rng.gen_range(0..1 << L), if round % 3 == 0 { K } else { rng.gen_range(0..1 << L) });
        let len = round % (K + 1);
        let last = (round % 5 != 0).then(|| rng.gen_range(0..K));
        let acc = random(rng, 200);
        let (slot, fresh) = (rng.gen_range(0..6), rng.gen());
        let mux: Vec<_> = (0..3).map(|_| random(rng, W)).collect();
        let sel = random(rng, 3);
        let ones = random(rng, 3);
        sim.set("rot_x", &x);
        sim.put("rot_n", n);
        sim.set("xm_x", &x);
        sim.set("km_keep", &keep);
        sim.put("lm_len", lo);
        sim.put("rm_lo", lo);
        sim.put("rm_hi", hi);
        sim.set("kl_keep", &model::range_mask(K, 0, len));
        sim.set("cast_x", &rec);
        sim.set("cat_a", &rec[..13]);
        sim.set("cat_b", &rec[13..]);
        sim.set("slice_x", &x);
        sim.set("grow_x", &keep);
        sim.set("cut_x", &x);
        sim.set("sd_x", &x);
        sim.set("sd0_x", &x);
        sim.set("pick_x", &x);
        sim.set("pack_x", &rec);
        for i in 0..3 {
            sim.set(&format!("ohm_x${i}"), &mux[i]);
            sim.put(&format!("ga_x${i}"), ones[i] as usize);
            sim.put(&format!("ixm_x${i}"), ones[i] as usize);
        }
        sim.set("ohm_sel", &sel);
        sim.put("ixm_sel", round % 4);
        sim.set("rr_req", &keep);
        sim.set("rr_last", &one_hot(K, last));
        sim.put("rr1_req", sel[0] as usize);
        sim.put("rr1_last", sel[1] as usize);
        sim.set("fs_x", &keep);
        sim.set("ohb_x", &one_hot(K, last));
        sim.put("boh_x", lo);
        sim.put("boh_en", sel[2] as usize);
        sim.set("pc_x", &keep);
        sim.set("pcw_x", &x);
        sim.set("sm_acc", &acc);
        sim.set("sm_data", &x);
        sim.put("sm_slot", slot);
        sim.put("sm_fresh", fresh as usize);
        sim.0.eval();
        assert_eq!(sim.get("rot_y"), model::rotate(&x, n), "rotate by {n}");
        assert_eq!(sim.get("xm_y"), model::xor_matrix(&columns, &x));
        assert_eq!(sim.get("km_mask"), model::keep_mask(&keep));
        assert_eq!(sim.get("lm_keep"), model::range_mask(K, 0, lo), "len {lo}");
        assert_eq!(sim.get("rm_keep"), model::range_mask(K, lo, hi), "range {lo}..{hi}");
        assert_eq!(sim.num("kl_len"), len);
        assert_eq!(sim.get("cast_y"), rec);
        assert_eq!(sim.get("cat_y"), rec);
        assert_eq!(sim.get("slice_y"), x[W - 20..W - 7]);
        assert_eq!(sim.get("grow_y"), (0..W).map(|i| i < K && keep[i]).collect::<Vec<_>>());
        assert_eq!(sim.get("cut_y"), x[..5]);
        assert_eq!(sim.get("ga_y"), ones);
        assert_eq!(sim.get("sd_y"), (0..W).map(|i| i + 19 < W && x[i + 19]).collect::<Vec<_>>());
        assert_eq!(sim.get("sd0_y"), vec![false; W]);
        assert_eq!(sim.get("pick_y"), model::pick(&list, &x));
        assert_eq!(sim.get("pack_y"), model::pack(&list, &rec, W));
        let or = (0..W).map(|i| (0..3).any(|k| sel[k] & mux[k][i])).collect::<Vec<_>>();
        assert_eq!(sim.get("ohm_y"), or);
        assert_eq!(sim.num("ixm_y"), (round % 4 < 3 && ones[round % 4]) as usize);
        assert_eq!(sim.get("rr_grant"), one_hot(K, model::rr_pick(&keep, last)), "req {keep:?} last {last:?}");
        assert_eq!(sim.num("rr1_grant"), sel[0] as usize);
        assert_eq!(sim.get("fs_y"), one_hot(K, keep.iter().position(|&b| b)));
        assert_eq!(sim.num("ohb_y"), last.unwrap_or(0));
        assert_eq!(sim.get("boh_y"), one_hot(K, sel[2].then_some(lo)));
        assert_eq!(sim.num("pc_count"), keep.iter().filter(|&&b| b).count());
        assert_eq!(sim.num("pcw_count"), x.iter().filter(|&&b| b).count());
        assert_eq!(sim.get("sm_y"), model::slot_merge(&acc, &x, slot, fresh), "slot {slot} fresh {fresh}");
    }
}

fn memories<const W: usize, const K: usize>(sim: &mut Sim, rng: &mut ChaCha8Rng) {
    let mut ram = vec![vec![false; W]; 128];
    let mut hold = vec![vec![false; 48]; 16];
    let mut aram = vec![(vec![false; W], vec![false; K], false); 16];
    let mut as1 = [false; 8];
    let mut as2 = vec![vec![false; W]; 8];
    let mut lane = model::LaneRam::new(K, 16);
    let mut held = None;
    let mut passed = Vec::new();
    let mut read = Vec::new();
    let mut aheld = None;
    let mut rotations = std::collections::VecDeque::new();
    for _ in 0..3000 {
        let (data, keep, row1, rec) = (random(rng, W), random(rng, K), random(rng, K), random(rng, 48));
        // Few addresses, so that collisions are common.
        let (r, w) = (rng.gen_range(0..8), rng.gen_range(0..8));
        let (we, re) = (rng.gen::<bool>(), rng.gen::<bool>());
        for (name, deep) in [("ram", 16), ("hold", 2), ("apart", 2), ("pass", 2), ("deep", 2), ("aram", 2), ("as1", 1)] {
            sim.put(&format!("{name}_read_addr"), r * deep);
            sim.put(&format!("{name}_write_addr"), w * deep);
            sim.put(&format!("{name}_write_en"), we as usize);
        }
        sim.put("as2_read_addr0", r);
        sim.put("as2_read_addr1", 7 - r);
        sim.put("as2_write_addr", w);
        sim.put("as2_write_en", we as usize);
        sim.set("as2_write_data", &data);
        sim.put("as1_write_data", data[0] as usize);
        sim.set("ram_write_data", &data);
        sim.set("hold_write_data", &rec);
        sim.put("hold_read_en", re as usize);
        sim.set("pass_write_data", &rec);
        sim.set("apart_write_data", &rec);
        sim.set("deep_write_data", &rec);
        sim.put("pass_read_en", re as usize);
        sim.put("deep_read_en", re as usize);
        sim.put("pass_pass", rec[1] as usize);
        sim.put("aram_read_en", re as usize);
        sim.set("aram_write_data", &data);
        sim.set("aram_write_keep", &keep);
        sim.put("aram_write_last", rec[0] as usize);
        sim.put("lane_waddr", w + 8);
        sim.put("lane_raddr", r + 8);
        sim.set("lane_we", &keep);
        sim.set("lane_row1", &row1);
        sim.set("lane_wdata", &data);
        sim.set("rotp_x", &data);
        sim.put("rotp_n", w % K);
        sim.put("rotp_en", re as usize);
        sim.0.settle();
        assert_eq!(sim.num("as1_read_data"), as1[r] as usize);
        assert_eq!(sim.get("as2_read_data0"), as2[r]);
        assert_eq!(sim.get("as2_read_data1"), as2[7 - r]);
        sim.0.edge();
        assert_eq!(sim.get("ram_read_data"), ram[r * 16], "old word on a collision");
        // Undefined on a collision: a simulation shows that it is neither word.
        let apart: Vec<bool> = hold[r * 2].iter().map(|bit| bit ^ (we && r == w)).collect();
        assert_eq!(sim.get("apart_read_data"), apart);
        assert_eq!(bytes(&sim.get("lane_rdata")), lane.read(r + 8));
        if re {
            held = Some(hold[r * 2].clone());
            read = apart;
            passed = if rec[1] { rec.clone() } else { hold[r * 2].clone() };
            aheld = Some(aram[r * 2].clone());
            rotations.push_back(model::rotate(&data, w % K));
            if rotations.len() > ROTATE_PIPE_LATENCY - 1 {
                assert_eq!(Some(sim.get("rotp_y")), rotations.pop_front());
            }
        }
        if let (Some(word), Some((d, k, l))) = (&held, &aheld) {
            assert_eq!(&sim.get("hold_read_data"), word);
            assert_eq!(sim.get("pass_read_data"), passed);
            assert_eq!(sim.get("deep_read_data"), read);
            assert_eq!((&sim.get("aram_read_data"), &sim.get("aram_read_keep")), (d, k));
            assert_eq!(sim.num("aram_read_last"), *l as usize);
        }
        lane.write(w + 8, &keep, &row1, &bytes(&data));
        if we {
            ram[w * 16] = data.clone();
            hold[w * 2] = rec.clone();
            aram[w * 2] = (data.clone(), keep, rec[0]);
            as1[w] = data[0];
            as2[w] = data;
        }
    }
}

/// The text of the leaves at W=64.
pub(crate) fn leaves64() -> String {
    bundle::<64, 8, 3, 4>().text("prims64")
}

fn run<const W: usize, const K: usize, const LK: usize, const L: usize>(top: &str) {
    let mut sim = bundle::<W, K, LK, L>().build(top);
    let seed = std::env::var("FERRIC_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(W as u64);
    println!("seed {seed} (FERRIC_SEED={seed} replays)");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    combinational::<W, K, LK, L>(&mut sim, &mut rng);
    memories::<W, K>(&mut sim, &mut rng);
}

#[test]
fn leaves_match_their_models_at_64() {
    run::<64, 8, 3, 4>("prims64");
}

#[test]
fn leaves_match_their_models_at_512() {
    run::<512, 64, 6, 7>("prims512");
}
