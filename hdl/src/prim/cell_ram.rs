//! Storage of the cell buffer: rows of `W` bits, grouped into cells of 256 bytes.

use ferric_hdl_derive::BlockNew;
use rust_hdl::prelude::*;

/// Bytes of one cell.
pub const CELL_BYTES: usize = 256;

/// `2^cells_log2` cells (bits of a cell's number above that are not looked at) of 256 / K rows, 1 write port, 1 read port of two cycles (memory, then its output register): address in cycle
/// n, data in cycle n+2. A row that is being written is not to be read: undefined, as of [`super::ram::RamApart`]. Row numbers count from 0 in each
/// cell; the bits above log2(256 / K) are not looked at.
#[derive(LogicBlock, BlockNew)]
#[given(cells_log2: usize)]
#[demand((1..=9).contains(&cells_log2), "2^{cells_log2} cells with 9 bits")]
pub struct CellRam<const W: usize, const K: usize> {
    pub clock: Signal<In, Clock>,
    pub write_en: Signal<In, Bit>,
    pub write_cell: Signal<In, Bits<9>>,
    pub write_row: Signal<In, Bits<5>>,
    pub write_data: Signal<In, Bits<W>>,
    pub read_cell: Signal<In, Bits<9>>,
    pub read_row: Signal<In, Bits<5>>,
    pub read_data: Signal<Out, Bits<W>>,
    #[init(cells_log2)]
    _cells: usize,
}

impl<const W: usize, const K: usize> Logic for CellRam<W, K> {
    fn update(&mut self) {}
    fn connect(&mut self) {
        self.read_data.connect();
    }
    fn hdl(&self) -> Verilog {
        assert!(W == 8 * K && K.is_power_of_two() && (8..=128).contains(&K), "K must be W / 8, 8 to 128");
        let row = (CELL_BYTES / K).trailing_zeros() - 1;
        let rows = (CELL_BYTES / K) << self._cells;
        Verilog::Custom(format!(
            "{apart}{style}reg [{w}:0] cells [0:{n}];\n\
             {zero}\
             reg [{w}:0] word;\n\
             always @(posedge clock) begin\n\
             \x20 if (write_en) cells[{{write_cell[{cell}:0], write_row[{row}:0]}}] <= write_data;\n\
             `ifdef FERRIC_CHECKS\n\
             \x20 word <= write_en && {{write_cell[{cell}:0], write_row[{row}:0]}} == {{read_cell[{cell}:0], read_row[{row}:0]}} ? ~write_data : cells[{{read_cell[{cell}:0], read_row[{row}:0]}}];\n\
             `else\n\
             \x20 word <= cells[{{read_cell[{cell}:0], read_row[{row}:0]}}];\n\
             `endif\n\
             \x20 read_data <= word;\n\
             end\n",
            apart = super::ram::APART,
            style = super::ram::style(rows.trailing_zeros() as usize, W),
            w = W - 1,
            cell = self._cells - 1,
            n = rows - 1,
            zero = super::ram::zeros_of("cells", "init_i", rows, W),
        ))
    }
}
