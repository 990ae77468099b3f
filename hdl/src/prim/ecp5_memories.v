// The ECP5's block memory as a netlist of yosys has it (FPGA-TN-02204): 1024 rows of two bytes of 9 bits, two ports. A word of 1, 2 or 4 bits
// lies in the lower 8 bits of a byte; one of 36 bits takes two rows, of which the lower is on DIA and DOA. From 18 bits on the lowest address
// bits enable the bytes of a write. A port that writes reads what was there before (READBEFOREWRITE) or keeps its output.
// Not modelled: output registers, resets of outputs, chip selects, writes through port B (they end a simulation); what a port reads that the other one
// writes in the same cycle is what was there before.
module DP16KD #(
    parameter DATA_WIDTH_A = 18, parameter DATA_WIDTH_B = 18, parameter REGMODE_A = "NOREG", parameter REGMODE_B = "NOREG",
    parameter RESETMODE = "SYNC", parameter ASYNC_RESET_RELEASE = "SYNC", parameter CSDECODE_A = "0b000", parameter CSDECODE_B = "0b000",
    parameter WRITEMODE_A = "NORMAL", parameter WRITEMODE_B = "NORMAL", parameter GSR = "ENABLED",
    parameter CLKAMUX = "CLKA", parameter CLKBMUX = "CLKB",
    parameter [319:0] INITVAL_00 = 320'd0, parameter [319:0] INITVAL_01 = 320'd0, parameter [319:0] INITVAL_02 = 320'd0, parameter [319:0] INITVAL_03 = 320'd0,
    parameter [319:0] INITVAL_04 = 320'd0, parameter [319:0] INITVAL_05 = 320'd0, parameter [319:0] INITVAL_06 = 320'd0, parameter [319:0] INITVAL_07 = 320'd0,
    parameter [319:0] INITVAL_08 = 320'd0, parameter [319:0] INITVAL_09 = 320'd0, parameter [319:0] INITVAL_0A = 320'd0, parameter [319:0] INITVAL_0B = 320'd0,
    parameter [319:0] INITVAL_0C = 320'd0, parameter [319:0] INITVAL_0D = 320'd0, parameter [319:0] INITVAL_0E = 320'd0, parameter [319:0] INITVAL_0F = 320'd0,
    parameter [319:0] INITVAL_10 = 320'd0, parameter [319:0] INITVAL_11 = 320'd0, parameter [319:0] INITVAL_12 = 320'd0, parameter [319:0] INITVAL_13 = 320'd0,
    parameter [319:0] INITVAL_14 = 320'd0, parameter [319:0] INITVAL_15 = 320'd0, parameter [319:0] INITVAL_16 = 320'd0, parameter [319:0] INITVAL_17 = 320'd0,
    parameter [319:0] INITVAL_18 = 320'd0, parameter [319:0] INITVAL_19 = 320'd0, parameter [319:0] INITVAL_1A = 320'd0, parameter [319:0] INITVAL_1B = 320'd0,
    parameter [319:0] INITVAL_1C = 320'd0, parameter [319:0] INITVAL_1D = 320'd0, parameter [319:0] INITVAL_1E = 320'd0, parameter [319:0] INITVAL_1F = 320'd0,
    parameter [319:0] INITVAL_20 = 320'd0, parameter [319:0] INITVAL_21 = 320'd0, parameter [319:0] INITVAL_22 = 320'd0, parameter [319:0] INITVAL_23 = 320'd0,
    parameter [319:0] INITVAL_24 = 320'd0, parameter [319:0] INITVAL_25 = 320'd0, parameter [319:0] INITVAL_26 = 320'd0, parameter [319:0] INITVAL_27 = 320'd0,
    parameter [319:0] INITVAL_28 = 320'd0, parameter [319:0] INITVAL_29 = 320'd0, parameter [319:0] INITVAL_2A = 320'd0, parameter [319:0] INITVAL_2B = 320'd0,
    parameter [319:0] INITVAL_2C = 320'd0, parameter [319:0] INITVAL_2D = 320'd0, parameter [319:0] INITVAL_2E = 320'd0, parameter [319:0] INITVAL_2F = 320'd0,
    parameter [319:0] INITVAL_30 = 320'd0, parameter [319:0] INITVAL_31 = 320'd0, parameter [319:0] INITVAL_32 = 320'd0, parameter [319:0] INITVAL_33 = 320'd0,
    parameter [319:0] INITVAL_34 = 320'd0, parameter [319:0] INITVAL_35 = 320'd0, parameter [319:0] INITVAL_36 = 320'd0, parameter [319:0] INITVAL_37 = 320'd0,
    parameter [319:0] INITVAL_38 = 320'd0, parameter [319:0] INITVAL_39 = 320'd0, parameter [319:0] INITVAL_3A = 320'd0, parameter [319:0] INITVAL_3B = 320'd0,
    parameter [319:0] INITVAL_3C = 320'd0, parameter [319:0] INITVAL_3D = 320'd0, parameter [319:0] INITVAL_3E = 320'd0, parameter [319:0] INITVAL_3F = 320'd0
) (
    input DIA17, input DIA16, input DIA15, input DIA14, input DIA13, input DIA12, input DIA11, input DIA10, input DIA9,
    input DIA8, input DIA7, input DIA6, input DIA5, input DIA4, input DIA3, input DIA2, input DIA1, input DIA0,
    input ADA13, input ADA12, input ADA11, input ADA10, input ADA9, input ADA8, input ADA7,
    input ADA6, input ADA5, input ADA4, input ADA3, input ADA2, input ADA1, input ADA0,
    input CEA, input OCEA, input CLKA, input WEA, input RSTA, input CSA2, input CSA1, input CSA0,
    output DOA17, output DOA16, output DOA15, output DOA14, output DOA13, output DOA12, output DOA11, output DOA10, output DOA9,
    output DOA8, output DOA7, output DOA6, output DOA5, output DOA4, output DOA3, output DOA2, output DOA1, output DOA0,
    input DIB17, input DIB16, input DIB15, input DIB14, input DIB13, input DIB12, input DIB11, input DIB10, input DIB9,
    input DIB8, input DIB7, input DIB6, input DIB5, input DIB4, input DIB3, input DIB2, input DIB1, input DIB0,
    input ADB13, input ADB12, input ADB11, input ADB10, input ADB9, input ADB8, input ADB7,
    input ADB6, input ADB5, input ADB4, input ADB3, input ADB2, input ADB1, input ADB0,
    input CEB, input OCEB, input CLKB, input WEB, input RSTB, input CSB2, input CSB1, input CSB0,
    output DOB17, output DOB16, output DOB15, output DOB14, output DOB13, output DOB12, output DOB11, output DOB10, output DOB9,
    output DOB8, output DOB7, output DOB6, output DOB5, output DOB4, output DOB3, output DOB2, output DOB1, output DOB0
);
    /* verilator no_inline_module */
    localparam [64*320-1:0] INIT = {
        INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38,
        INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30,
        INITVAL_2F, INITVAL_2E, INITVAL_2D, INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28,
        INITVAL_27, INITVAL_26, INITVAL_25, INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20,
        INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C, INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18,
        INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13, INITVAL_12, INITVAL_11, INITVAL_10,
        INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A, INITVAL_09, INITVAL_08,
        INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01, INITVAL_00
    };
    reg [17:0] mem [0:1023];
    integer i;
    initial for (i = 0; i < 1024; i = i + 1) mem[i] = INIT[i*20 +: 18];

    // Where in its row a word begins, and its bits there.
    function [4:0] place(input integer width, input [3:0] low);
        case (width)
            1: place = (low[3] ? 5'd9 : 5'd0) + {2'd0, low[2:0]};
            2: place = (low[3] ? 5'd9 : 5'd0) + {2'd0, low[2:1], 1'b0};
            4: place = (low[3] ? 5'd9 : 5'd0) + {2'd0, low[2], 2'b0};
            9: place = low[3] ? 5'd9 : 5'd0;
            default: place = 5'd0;
        endcase
    endfunction
    function [17:0] ones(input integer width);
        ones = width >= 18 ? 18'h3ffff : (18'd1 << width) - 18'd1;
    endfunction
    // Bits of a row that a write changes.
    function [17:0] changed(input integer width, input [3:0] low);
        changed = width == 18 ? {{9{low[1]}}, {9{low[0]}}} : ones(width) << place(width, low);
    endfunction

    wire [17:0] dia = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
    wire [13:0] ada = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
    reg [17:0] doa;
    assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = doa;
    wire [17:0] dib = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0};
    wire [13:0] adb = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
    reg [17:0] dob;
    assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = dob;

    always @(posedge CLKB) if (CEB && WEB) $stop;
    generate
        if (DATA_WIDTH_A == 36) begin : wide
            always @(posedge CLKA) if (CEA && WEA) begin
                mem[{ada[13:5], 1'b0}] <= (mem[{ada[13:5], 1'b0}] & ~{{9{ada[1]}}, {9{ada[0]}}}) | (dia & {{9{ada[1]}}, {9{ada[0]}}});
                mem[{ada[13:5], 1'b1}] <= (mem[{ada[13:5], 1'b1}] & ~{{9{ada[3]}}, {9{ada[2]}}}) | (dib & {{9{ada[3]}}, {9{ada[2]}}});
            end
        end else begin : narrow_a
            always @(posedge CLKA) if (CEA && WEA)
                mem[ada[13:4]] <= (mem[ada[13:4]] & ~changed(DATA_WIDTH_A, ada[3:0])) | ((dia << place(DATA_WIDTH_A, ada[3:0])) & changed(DATA_WIDTH_A, ada[3:0]));
            if (DATA_WIDTH_B != 36) begin : read_a
                always @(posedge CLKA) if (CEA && (!WEA || WRITEMODE_A == "READBEFOREWRITE"))
                    doa <= (mem[ada[13:4]] >> place(DATA_WIDTH_A, ada[3:0])) & ones(DATA_WIDTH_A);
            end
        end
        if (DATA_WIDTH_B == 36) begin : wide_b
            always @(posedge CLKB) if (CEB) begin
                doa <= mem[{adb[13:5], 1'b0}];
                dob <= mem[{adb[13:5], 1'b1}];
            end
        end else begin : narrow_b
            always @(posedge CLKB) if (CEB)
                dob <= (mem[adb[13:4]] >> place(DATA_WIDTH_B, adb[3:0])) & ones(DATA_WIDTH_B);
        end
    endgenerate
endmodule

// The ECP5's LUT memory: 16 words of 4 bits, written at the clock, read at any time. Not modelled: inverted clock and write enable.
module TRELLIS_DPR16X4 #(parameter WCKMUX = "WCK", parameter WREMUX = "WRE", parameter [63:0] INITVAL = 64'd0) (
    input [3:0] DI, input [3:0] WAD, input WRE, input WCK, input [3:0] RAD, output [3:0] DO
);
    /* verilator no_inline_module */
    reg [3:0] mem [0:15];
    integer i;
    initial for (i = 0; i < 16; i = i + 1) mem[i] = INITVAL[4*i +: 4];
    always @(posedge WCK) if (WRE) mem[WAD] <= DI;
    assign DO = mem[RAD];
endmodule
