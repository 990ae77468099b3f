// What the ECP5's cells do that a board's top names (FPGA-TN-02200, FPGA-TN-02035), as far as a simulation of the top needs it.
// The PLL only shares out its input: CLKOP is CLKI, CLKOS half of it; LOCK rises after 16 cycles.
module EHXPLLL #(
    parameter CLKI_DIV = 1, parameter CLKFB_DIV = 1, parameter FEEDBK_PATH = "CLKOP",
    parameter CLKOP_ENABLE = "ENABLED", parameter CLKOP_DIV = 8, parameter CLKOP_CPHASE = 0, parameter CLKOP_FPHASE = 0,
    parameter CLKOS_ENABLE = "DISABLED", parameter CLKOS_DIV = 8, parameter CLKOS_CPHASE = 0, parameter CLKOS_FPHASE = 0
) (
    input CLKI, input CLKFB, input PHASESEL1, input PHASESEL0, input PHASEDIR, input PHASESTEP, input PHASELOADREG, input STDBY,
    input PLLWAKESYNC, input RST, input ENCLKOP, input ENCLKOS, input ENCLKOS2, input ENCLKOS3,
    output CLKOP, output CLKOS, output CLKOS2, output CLKOS3, output LOCK, output INTLOCK, output REFCLK, output CLKINTFB
);
    reg half = 1'b0;
    reg [4:0] count = 5'd0;
    always @(posedge CLKI) begin
        half <= ~half;
        if (!count[4]) count <= count + 5'd1;
    end
    assign CLKOP = CLKI;
    assign CLKOS = half;
    assign LOCK = count[4];
endmodule

module IDDRX1F (input D, input SCLK, input RST, output reg Q0, output reg Q1);
    reg rise, fall;
    always @(negedge SCLK) fall <= D;
    always @(posedge SCLK) begin
        rise <= D;
        Q0 <= RST ? 1'b0 : rise;
        Q1 <= RST ? 1'b0 : fall;
    end
endmodule

module ODDRX1F (input D0, input D1, input SCLK, input RST, output Q);
    reg first, second;
    always @(posedge SCLK) begin
        first <= RST ? 1'b0 : D0;
        second <= RST ? 1'b0 : D1;
    end
    assign Q = SCLK ? first : second;
endmodule

module DELAYG #(parameter DEL_MODE = "USER_DEFINED", parameter DEL_VALUE = 0) (input A, output Z);
    assign Z = A;
endmodule
