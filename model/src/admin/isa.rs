//! Instructions of the admin engine and their assembler.

/// log2 of the program memory.
pub const PROGRAM_BITS: usize = 11;

/// Operation codes; the engine's and the interpreter's `match` follow these numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// `d = (a >> sh) & imm`
    Ext = 0,
    /// `d = a with the bits of imm taken from b << sh`
    Ins = 1,
    /// `d = a + y`
    Add = 2,
    /// `d = a - y`
    Sub = 3,
    /// `d = a | y`
    Or = 4,
    /// `d = a << y`
    Shl = 5,
    /// `d = a >> y`
    Shr = 6,
    /// `d = a < y`, unsigned
    Lt = 7,
    /// Branches to `target`
    Beq = 8,
    Bne = 9,
    Blt = 10,
    Bge = 11,
    /// Branch if the last control-bus or DMA operation failed
    Berr = 12,
    /// `d = pc + 1`, go to `target`
    Jal = 13,
    /// Go to `a`
    Jr = 14,
    /// `d = scratch[a + imm]`
    Ld = 15,
    /// `scratch[a + imm] = b`
    St = 16,
    /// Line number of the following control-bus operations `= a`
    Line = 17,
    /// `d = control word`; `y` = number of the table (8 bits) << 8 | word
    CtlRead = 18,
    /// `control word = a`
    CtlWrite = 19,
    /// `d = register imm` of the function: see `host::csr::word`
    Csr = 20,
    /// Function `= a` (for registers and DMA)
    Function = 21,
    /// Command slot at `b`:`a` to registers 32..63
    Fetch = 22,
    /// Next word of the line to be written `= a`
    Push = 23,
    /// 64 bytes to `b`:`a`, and wait
    Write = 24,
    /// Output `imm = a`: 0 raw queue, 2 drop translations and wait until they are gone, 3 soft reset done, 4 a command is refused (counted), 5 the
    /// function whose turn it was is being served, 6 it is to have another turn
    Out = 25,
    /// Queue pair `a`, epoch `b`, told at port `imm[0]` (0 requester, 1 responder); `imm` 0, 1: into error; 3: it has been reset, a new life begins, the receive of its
    /// unfinished message goes back; 2: into SQD; 4: out of it; 6: out of SQ error
    Error = 26,
    /// Barrier, and wait; `imm` 1: the life of the queue pair that is the line ends
    Barrier = 27,
    /// Wait for DMA reads / writes in flight
    QuiesceReads = 28,
    QuiesceWrites = 29,
    /// `d = a & y`
    And = 30,
    /// `d` and the line = the first number from `a` on whose word `scratch[d + imm]` is an object of the function; branches to `target`.
    /// Goes on if there is none below `b`.
    Find = 31,
}

/// Outputs of [`Op::Out`].
pub mod output {
    /// The raw queue.
    pub const RAW_QUEUE: u32 = 0;
    /// Translations are dropped, and gone.
    pub const TRANSLATIONS: u32 = 2;
    /// A soft reset is done.
    pub const RESET_DONE: u32 = 3;
    /// A command is refused.
    pub const REFUSED: u32 = 4;
    /// What the function is told from now on gives it another turn.
    pub const SERVED: u32 = 5;
    /// It gets one even so.
    pub const AGAIN: u32 = 6;
}

/// What [`Op::Error`] tells; other numbers: into error.
pub mod notice {
    /// Into SQD.
    pub const DRAIN: u32 = 2;
    /// A new life begins.
    pub const LIFE: u32 = 3;
    /// Out of SQD.
    pub const RESUME: u32 = 4;
    /// Out of SQ error.
    pub const SQ_RECOVERED: u32 = 6;
}

/// A register: 0 is zero, 1..31 are general, 32..63 hold the command.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct R(pub u8);

/// Second operand.
#[derive(Copy, Clone, Debug)]
pub enum Y {
    Reg(R),
    Imm(u32),
}
impl From<R> for Y {
    fn from(r: R) -> Y {
        Y::Reg(r)
    }
}
impl From<u32> for Y {
    fn from(v: u32) -> Y {
        Y::Imm(v)
    }
}

/// A place in the program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// An assembled instruction.
#[derive(Copy, Clone, Debug)]
pub struct Step {
    pub op: Op,
    pub d: u8,
    pub a: u8,
    pub b: u8,
    pub use_imm: bool,
    pub sh: u8,
    pub target: u16,
    pub imm: u32,
}

impl Step {
    /// Whether register `d` is written.
    pub fn writes(&self) -> bool {
        use Op::*;
        self.d != 0 && matches!(self.op, Ext | Ins | Add | Sub | Or | Shl | Shr | Lt | Jal | Ld | CtlRead | Csr | And | Find)
    }

    /// The bits of the engine's instruction word, fields from the lowest: `imm`, `target`, `sh`, `use_imm`, whether `d` is written, `b`, `a`, `d`, `op`.
    pub fn encode(&self) -> u128 {
        let mut at = 0;
        let mut word = 0u128;
        let mut field = |value: u64, width: u32| {
            assert!(value >> width == 0, "{value} in {width} bits of {self:?}");
            word |= u128::from(value) << at;
            at += width;
        };
        field(self.imm.into(), 32);
        field(self.target.into(), PROGRAM_BITS as u32);
        field(self.sh.into(), 5);
        field(self.use_imm.into(), 1);
        field(self.writes().into(), 1);
        field(self.b.into(), 6);
        field(self.a.into(), 6);
        field(self.d.into(), 6);
        field(self.op as u64, 5);
        word
    }
}

/// Collects instructions and resolves labels.
#[derive(Default)]
pub struct Asm {
    steps: Vec<Step>,
    jumps: Vec<(usize, Label)>,
    places: Vec<Option<u16>>,
}

impl Asm {
    /// A label to be placed later.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }
    /// The label stands here. Panics if it stands somewhere else already.
    pub fn bind(&mut self, label: Label) {
        assert!(self.places[label.0].is_none(), "label placed twice");
        self.places[label.0] = Some(self.steps.len() as u16);
    }
    /// A label that stands here.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }
    fn put(&mut self, op: Op, d: R, a: R, y: Y) -> &mut Step {
        let (b, use_imm, imm) = match y {
            Y::Reg(r) => (r.0, false, 0),
            Y::Imm(v) => (0, true, v),
        };
        self.steps.push(Step { op, d: d.0, a: a.0, b, use_imm, sh: 0, target: 0, imm });
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }
    /// An operation of one result and two operands.
    pub fn op(&mut self, op: Op, d: R, a: R, y: impl Into<Y>) {
        self.put(op, d, a, y.into());
    }
    /// `d = (a >> sh) & mask`
    pub fn ext(&mut self, d: R, a: R, sh: u8, mask: u32) {
        self.put(Op::Ext, d, a, mask.into()).sh = sh;
    }
    /// `d = a`, bits `mask << sh` taken from `b << sh`
    pub fn ins(&mut self, d: R, a: R, b: R, sh: u8, mask: u32) {
        let step = self.put(Op::Ins, d, a, (mask << sh).into());
        (step.sh, step.b) = (sh, b.0);
    }
    /// `d = value`
    pub fn li(&mut self, d: R, value: u32) {
        self.op(Op::Or, d, R(0), value);
    }
    /// `d = a`
    pub fn mov(&mut self, d: R, a: R) {
        self.op(Op::Or, d, a, 0);
    }
    /// Branch to `to` if `op` holds for `a` and `y`.
    pub fn branch(&mut self, op: Op, a: R, y: impl Into<Y>, to: Label) {
        self.jumps.push((self.steps.len(), to));
        self.put(op, R(0), a, y.into());
    }
    /// Branch if the last control-bus or DMA operation failed.
    pub fn on_error(&mut self, to: Label) {
        self.branch(Op::Berr, R(0), 0, to);
    }
    /// Goes to `to`.
    pub fn jump(&mut self, to: Label) {
        self.call(R(0), to);
    }
    /// Goes to `to`; `link` remembers where to come back to.
    pub fn call(&mut self, link: R, to: Label) {
        self.jumps.push((self.steps.len(), to));
        self.put(Op::Jal, link, R(0), 0.into());
    }
    /// Back to the caller.
    pub fn ret(&mut self, link: R) {
        self.op(Op::Jr, R(0), link, 0);
    }
    /// `scratch[a + offset] = b`
    pub fn store(&mut self, a: R, offset: u32, b: R) {
        self.put(Op::St, R(0), a, offset.into()).b = b.0;
    }
    /// An operation with two register operands and a constant.
    pub fn act(&mut self, op: Op, a: R, b: R, imm: u32) {
        self.put(op, R(0), a, imm.into()).b = b.0;
    }
    /// `d` and the line = the next object of the function from number `d` on, below `end`, of those whose words begin at `base`; if there is one, goes to `to`.
    pub fn find(&mut self, d: R, end: R, base: u32, to: Label) {
        self.jumps.push((self.steps.len(), to));
        self.put(Op::Find, d, d, base.into()).b = end.0;
    }
    /// The program. Panics if a label stands nowhere or the program does not fit.
    pub fn finish(mut self) -> Vec<Step> {
        for (at, label) in &self.jumps {
            self.steps[*at].target = self.places[label.0].expect("every label is placed");
        }
        assert!(self.steps.len() <= 1 << PROGRAM_BITS, "{} instructions do not fit", self.steps.len());
        self.steps
    }
}
