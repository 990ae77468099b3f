//! Interpreter of the microprogram: the golden model of the engine, and the way to test the program by itself.

use super::isa::{Op, Step, PROGRAM_BITS};

/// What the engine reaches outside of itself.
pub trait World {
    /// Word `word` of line `line` of the table with this number on the control bus.
    fn control(&mut self, table: u8, line: u32, word: u8, write: Option<u32>) -> (u32, bool);
    /// Register `number` of `function`, as [`Op::Csr`].
    fn register(&mut self, function: u32, number: u32) -> u32;
    fn fetch(&mut self, function: u32, iova: u64) -> ([u32; 32], bool);
    fn write(&mut self, function: u32, iova: u64, line: [u32; 16]) -> bool;
    fn output(&mut self, function: u32, port: u32, value: u32);
    fn error(&mut self, port: u32, qpn: u32, epoch: u8);
    fn barrier(&mut self);
    fn quiesce(&mut self, writes: bool);
}

/// State of the engine.
pub struct Model {
    program: Vec<Step>,
    regs: [u32; 64],
    scratch: Vec<u32>,
    pc: u32,
    line: u32,
    function: u32,
    failed: bool,
    shift: [u32; 16],
}

impl Model {
    pub fn new(program: Vec<Step>) -> Self {
        let scratch = vec![0; 1 << super::program::SCRATCH_BITS];
        Self { program, regs: [0; 64], scratch, pc: 0, line: 0, function: 0, failed: false, shift: [0; 16] }
    }

    /// Executes one instruction.
    pub fn step(&mut self, world: &mut impl World) {
        let s = self.program[self.pc as usize];
        let (a, b) = (self.regs[s.a as usize], self.regs[s.b as usize]);
        let y = if s.use_imm { s.imm } else { b };
        let iova = u64::from(b) << 32 | u64::from(a);
        let at = a.wrapping_add(y) as usize % self.scratch.len();
        let (mut d, mut next) = (0, self.pc + 1);
        let target = u32::from(s.target);
        match s.op {
            Op::Ext => d = a >> s.sh & s.imm,
            Op::Ins => d = a & !s.imm | b << s.sh & s.imm,
            Op::Add => d = a.wrapping_add(y),
            Op::Sub => d = a.wrapping_sub(y),
            Op::Or => d = a | y,
            Op::And => d = a & y,
            Op::Shl => d = a << (y & 31),
            Op::Shr => d = a >> (y & 31),
            Op::Lt => d = (a < y).into(),
            Op::Beq if a == y => next = target,
            Op::Bne if a != y => next = target,
            Op::Blt if a < y => next = target,
            Op::Bge if a >= y => next = target,
            Op::Berr if self.failed => next = target,
            Op::Beq | Op::Bne | Op::Blt | Op::Bge | Op::Berr => {}
            Op::Jal => (d, next) = (next, target),
            Op::Jr => next = a & ((1 << PROGRAM_BITS) - 1),
            Op::Ld => d = self.scratch[at],
            Op::St => self.scratch[at] = b,
            Op::Line => self.line = a & 0xff_ffff,
            Op::CtlRead | Op::CtlWrite => {
                let write = (s.op == Op::CtlWrite).then_some(a);
                (d, self.failed) = world.control((y >> 8) as u8, self.line, (y & 63) as u8, write);
            }
            Op::Csr => d = world.register(self.function, s.imm),
            Op::Function => self.function = a,
            Op::Fetch => {
                let (words, failed) = world.fetch(self.function, iova);
                self.regs[32..].copy_from_slice(&words);
                self.failed = failed;
            }
            Op::Push => {
                self.shift.rotate_left(1);
                self.shift[15] = a;
            }
            Op::Write => self.failed = world.write(self.function, iova, self.shift),
            Op::Out => world.output(self.function, s.imm, a),
            Op::Error => world.error(s.imm, a, b as u8),
            Op::Barrier => world.barrier(),
            Op::Find => {
                let own = |word: u32| word >> 31 == 1 && word >> 16 & 0xfff == self.function;
                d = (a..b).find(|n| own(self.scratch[n.wrapping_add(s.imm) as usize % self.scratch.len()])).unwrap_or(b);
                if d < b {
                    (self.line, next) = (d, target);
                }
            }
            Op::QuiesceReads => world.quiesce(false),
            Op::QuiesceWrites => world.quiesce(true),
        }
        if s.writes() {
            self.regs[s.d as usize] = d;
        }
        self.pc = next;
    }
}
