//! The top under Verilator, and RGMII as a PHY speaks it.
use crate::board::rgmii::model::{fcs, from_lanes, lanes, wire, GAP};
use crate::board::tops;
use crate::prim::ECP5_CELLS;
use std::collections::VecDeque;
use verilator_sys::{Builder, Model, OptLevel, PortId};

const TOP: &str = include_str!("../../../../constraints/ecpix5/top.v");

/// The board between its clock pins and its Ethernet pins.
pub struct Pins {
    model: Model,
    clk: PortId,
    rx_clk: PortId,
    rx_data: PortId,
    rx_ctl: PortId,
    tx_data: PortId,
    tx_ctl: PortId,
    cycles: u64,
    /// Bytes to the card, `None` between frames.
    line: VecDeque<Option<u8>>,
    /// Frames that are not through.
    ends: VecDeque<u64>,
    queued: u64,
    passed: u64,
    /// What comes from the card.
    partial: Vec<u8>,
    idle: usize,
    frames: VecDeque<Vec<u8>>,
}

/// One module of the board. A mutant is one of the target.
fn module(name: &str) -> Result<String, String> {
    if let Some(top) = tops::find(name) {
        return top.emit();
    }
    let text = crate::tops::find(name).ok_or_else(|| format!("no module {name}"))?.emit()?;
    Ok(crate::mutants::requested(&text).unwrap_or(text))
}

impl Pins {
    /// The board, built if need be (minutes), out of its reset and ready for frames. Errors: the generator's or Verilator's.
    pub fn new() -> Result<Pins, String> {
        let modules = ["ferric_reset", "ferric_tick_64", "ferric_rgmii_tx_w64", "ferric_rgmii_rx_w64", "ferric_target_w64"];
        let modules = modules.into_iter().map(module).collect::<Result<Vec<_>, _>>()?;
        // The top comes last: it forbids nets without declaration from there on.
        Pins::of(&[&modules.concat(), TOP].concat(), OptLevel::O1)
    }

    /// The same of the board after synthesis: a netlist of `./scripts/bitstream --board ecpix5 --netlist`.
    #[cfg(test)]
    pub(super) fn of_netlist(netlist: &str) -> Result<Pins, String> {
        Pins::of(&[crate::prim::ECP5_MEMORIES, netlist].concat(), OptLevel::Netlist)
    }

    /// Module `ferric_ecpix5` of this text.
    fn of(verilog: &str, opt: OptLevel) -> Result<Pins, String> {
        let library = Builder::new([ECP5_CELLS, verilog].concat(), "ferric_ecpix5").opt(opt).build();
        let model = library.and_then(|l| l.instance(None)).map_err(|e| e.to_string())?;
        let port = |name: &str| model.port(name).map_err(|e| e.to_string());
        let [clk, rx_clk, rx_data] = [port("clk100")?, port("eth_rx_clk")?, port("eth_rx_data")?];
        let [rx_ctl, tx_data, tx_ctl] = [port("eth_rx_ctl")?, port("eth_tx_data")?, port("eth_tx_ctl")?];
        let mut pins = Pins {
            model,
            clk,
            rx_clk,
            rx_data,
            rx_ctl,
            tx_data,
            tx_ctl,
            cycles: 0,
            line: VecDeque::new(),
            ends: VecDeque::new(),
            queued: 0,
            passed: 0,
            partial: Vec::new(),
            idle: GAP,
            frames: VecDeque::new(),
        };
        pins.set("rst_n", 0);
        (0..50).for_each(|_| pins.cycle());
        pins.set("rst_n", 1);
        // Resets, then the tables of the target.
        (0..4000).for_each(|_| pins.cycle());
        Ok(pins)
    }

    /// Queues a frame for the card: padding, preamble, FCS and gap are added.
    pub fn push(&mut self, frame: &[u8]) {
        let bytes = wire(frame);
        self.queued += (bytes.len() + GAP) as u64;
        self.line.extend(bytes.into_iter().map(Some).chain([None; GAP]));
        self.ends.push_back(self.queued);
    }

    /// Frames queued that the card has not wholly had.
    pub fn waiting(&self) -> usize {
        self.ends.len()
    }

    /// A frame from the card, without preamble and FCS, both checked.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.frames.pop_front()
    }

    /// Cycles of 8 ns.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    fn set(&mut self, port: &str, value: u64) {
        let id = self.model.port(port).unwrap_or_else(|e| panic!("{e}"));
        self.model.set(id, value);
    }

    /// What an output carries. Panics: there is no such pin.
    pub fn get(&self, port: &str) -> u64 {
        self.model.get(self.model.port(port).unwrap_or_else(|e| panic!("{e}")))
    }

    fn edge(&mut self, clock: PortId, level: u64) {
        self.model.set(clock, level);
        self.model.eval();
    }

    fn sent(&self) -> u64 {
        self.model.get(self.tx_data) | self.model.get(self.tx_ctl) << 4
    }

    /// 8 ns of both clocks. The PHY's misses one in a thousand. Panics: what the card sends is no frame.
    pub fn cycle(&mut self) {
        self.cycles += 1;
        self.edge(self.clk, 1);
        let rise = self.sent();
        let slow = self.cycles % 1000 == 0;
        let (first, second) = match self.line.front() {
            Some(Some(byte)) => lanes(*byte, true, false),
            _ => lanes(0, false, false),
        };
        if !slow {
            self.receive(first);
            self.edge(self.rx_clk, 1);
        }
        self.edge(self.clk, 0);
        let fall = self.sent();
        if !slow {
            self.receive(second);
            self.edge(self.rx_clk, 0);
            if self.line.pop_front().is_some() {
                self.passed += 1;
            }
            if self.ends.front() == Some(&self.passed) {
                self.ends.pop_front();
            }
        }
        self.listen(rise, fall);
    }

    fn receive(&mut self, lanes: u64) {
        self.model.set(self.rx_data, lanes & 15);
        self.model.set(self.rx_ctl, lanes >> 4);
    }

    fn listen(&mut self, rise: u64, fall: u64) {
        let (byte, valid, error) = from_lanes(rise, fall);
        assert!(!error, "TX_ER");
        if valid {
            assert!(!self.partial.is_empty() || self.idle >= GAP, "a gap of {}", self.idle);
            self.partial.push(byte);
            self.idle = 0;
            return;
        }
        self.idle += 1;
        if !self.partial.is_empty() {
            let bytes = std::mem::take(&mut self.partial);
            assert!(bytes.len() >= 72 && bytes[..8] == [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5], "{bytes:02x?}");
            let (frame, end) = bytes[8..].split_at(bytes.len() - 12);
            assert_eq!(end, fcs(frame), "FCS");
            self.frames.push_back(frame.to_vec());
        }
    }
}
