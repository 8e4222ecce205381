//! What registers and the stack of a function contain, in terms of its arguments.

use super::{ARGUMENT_REGISTERS, ArgumentOrigin, Arguments};
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use std::collections::BTreeMap;

const WORD: i64 = 8;
/// Registers that a called function may change.
const CHANGED_BY_CALLS: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

/// What a register or a word of the stack contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// Something else.
    Other,
    /// A number in the code.
    Constant,
    /// Computed from these arguments and constants, without a multiplication by a constant: who multiplies knows what the
    /// memory is for.
    Of(Arguments),
    /// An address on the stack, in bytes from the stack pointer at the function's entry.
    Stack(i64),
}

impl Value {
    /// A sum, a difference or a combination of bits.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Constant, Self::Constant) => Self::Constant,
            (Self::Of(some), Self::Constant) | (Self::Constant, Self::Of(some)) => Self::Of(some),
            (Self::Of(some), Self::Of(more)) => Self::Of(some.and(more)),
            _ => Self::Other,
        }
    }

    fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::Of(_), Self::Constant) | (Self::Constant, Self::Of(_)) => Self::Other,
            _ => self.with(other),
        }
    }

    /// One or the other.
    fn or(self, other: Self) -> Self {
        if self == other { self } else { self.with(other) }
    }
}

/// What is known between two instructions.
#[derive(Debug, Clone)]
pub struct State {
    registers: [Value; 16],
    /// Words of the stack, by their place as in [`Value::Stack`].
    words: BTreeMap<i64, Value>,
}

impl State {
    /// At the entry of a function.
    pub fn at_entry() -> Self {
        let mut state = Self { registers: [Value::Other; 16], words: BTreeMap::new() };
        for (position, register) in (0u8..).zip(ARGUMENT_REGISTERS) {
            state.set_register(register, Value::Of(Arguments::at(&[position])));
        }
        state.set_register(Register::RSP, Value::Stack(0));
        state
    }

    /// What holds whichever of two ways led here.
    pub fn join(&self, other: &Self) -> Self {
        let mut registers = self.registers;
        registers.iter_mut().zip(other.registers).for_each(|(mine, other)| *mine = mine.or(other));
        let both = |(at, mine): (&i64, &Value)| Some((*at, mine.or(*other.words.get(at)?)));
        Self { registers, words: self.words.iter().filter_map(both).collect() }
    }

    /// Where these arguments of a call come from that is made here.
    pub fn origin(&self, wanted: Arguments) -> ArgumentOrigin {
        let all = wanted.registers().map(|register| self.register(register)).reduce(Value::with);
        match all {
            Some(Value::Of(arguments)) => ArgumentOrigin::PassedOn(arguments),
            Some(Value::Constant) => ArgumentOrigin::Constant,
            Some(Value::Other | Value::Stack(_)) | None => ArgumentOrigin::Decided,
        }
    }

    /// What is known after an instruction that does not jump.
    pub fn execute(&mut self, of: &Instruction, factory: &mut InstructionInfoFactory) {
        let first = || self.operand(of, 0);
        match of.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => {
                self.set(of, self.operand(of, 1));
            }
            Mnemonic::Lea => self.set(of, self.address(of)),
            Mnemonic::Xor | Mnemonic::Sub if is_zero(of) => self.set(of, Value::Constant),
            Mnemonic::Add | Mnemonic::Sub => {
                let sum = match (first(), number(of)) {
                    (Value::Stack(at), Some(by)) if of.mnemonic() == Mnemonic::Add => {
                        Value::Stack(at.wrapping_add(by))
                    }
                    (Value::Stack(at), Some(by)) => Value::Stack(at.wrapping_sub(by)),
                    (value, _) => value.with(self.operand(of, 1)),
                };
                self.set(of, sum);
            }
            Mnemonic::And | Mnemonic::Or | Mnemonic::Xor => {
                // Code that aligns its stack keeps all words in their places, at an address that is not known.
                let value = first();
                let is_stack = matches!(value, Value::Stack(_)) && of.mnemonic() == Mnemonic::And;
                self.set(of, if is_stack { value } else { value.with(self.operand(of, 1)) });
            }
            Mnemonic::Imul if of.op_count() == 2 => self.set(of, first().times(self.operand(of, 1))),
            Mnemonic::Imul if of.op_count() == 3 => {
                self.set(of, self.operand(of, 1).times(self.operand(of, 2)));
            }
            Mnemonic::Mul | Mnemonic::Imul => {
                let product = self.register(Register::RAX).times(first());
                self.set_register(Register::RAX, product);
                self.set_register(Register::RDX, Value::Other);
            }
            Mnemonic::Push => {
                let value = first();
                self.move_stack(-WORD);
                self.stack().into_iter().for_each(|at| _ = self.words.insert(at, value));
            }
            Mnemonic::Pop => {
                let value = self.stack().and_then(|at| self.words.get(&at).copied());
                self.move_stack(WORD);
                self.set(of, value.unwrap_or(Value::Other));
            }
            Mnemonic::Call => CHANGED_BY_CALLS.into_iter().for_each(|it| self.set_register(it, Value::Other)),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop | Mnemonic::Endbr64 => {}
            _ if is_move_on_condition(of) => self.set(of, first().or(self.operand(of, 1))),
            _ => self.forget_written(of, factory),
        }
    }

    fn register(&self, register: Register) -> Value {
        index(register).map_or(Value::Other, |at| self.registers[at])
    }

    fn set_register(&mut self, register: Register, value: Value) {
        index(register).into_iter().for_each(|at| self.registers[at] = value);
    }

    fn stack(&self) -> Option<i64> {
        match self.register(Register::RSP) {
            Value::Stack(at) => Some(at),
            _ => None,
        }
    }

    fn move_stack(&mut self, by: i64) {
        let moved = self.stack().map_or(Value::Other, |at| Value::Stack(at.wrapping_add(by)));
        self.set_register(Register::RSP, moved);
    }

    fn operand(&self, of: &Instruction, nth: u32) -> Value {
        match of.op_kind(nth) {
            OpKind::Register => {
                let register = of.op_register(nth);
                // A part of an argument is not the argument.
                match self.register(register) {
                    Value::Of(_) if register.size() < 4 => Value::Other,
                    value => value,
                }
            }
            OpKind::Memory => {
                let known = self.word(of).and_then(|at| self.words.get(&at).copied());
                known.unwrap_or(Value::Other)
            }
            _ => Value::Constant,
        }
    }

    /// The word of the stack that a memory operand names.
    fn word(&self, of: &Instruction) -> Option<i64> {
        match self.address(of) {
            Value::Stack(at) => Some(at),
            _ => None,
        }
    }

    /// The address of a memory operand.
    fn address(&self, of: &Instruction) -> Value {
        if of.is_ip_rel_memory_operand() {
            return Value::Constant;
        }
        let (base, index) = (of.memory_base(), of.memory_index());
        let mut parts = Vec::new();
        if index != Register::None {
            let scaled = self.register(index);
            parts.push(if of.memory_index_scale() == 1 { scaled } else { scaled.times(Value::Constant) });
        }
        match (base, parts.as_slice()) {
            (Register::None, _) => {}
            (base, []) => {
                if let Value::Stack(at) = self.register(base) {
                    return Value::Stack(at.wrapping_add(of.memory_displacement64() as i64));
                }
                parts.push(self.register(base));
            }
            (base, _) => parts.push(self.register(base)),
        }
        parts.into_iter().fold(Value::Constant, Value::with)
    }

    /// Writes the first operand.
    fn set(&mut self, of: &Instruction, value: Value) {
        match of.op0_kind() {
            OpKind::Register => {
                let register = of.op0_register();
                let is_whole = register.size() >= 4;
                self.set_register(register, if is_whole { value } else { Value::Other });
            }
            OpKind::Memory => {
                let is_whole = of.memory_size().size() >= 4;
                let value = if is_whole { value } else { Value::Other };
                self.word(of).into_iter().for_each(|at| _ = self.words.insert(at, value));
            }
            _ => {}
        }
    }

    /// Forgets all that an instruction of another kind writes.
    fn forget_written(&mut self, of: &Instruction, factory: &mut InstructionInfoFactory) {
        let is_written = |access: OpAccess| {
            matches!(
                access,
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            )
        };
        let info = factory.info(of);
        let registers = info.used_registers().iter().filter(|used| is_written(used.access()));
        let written: Vec<Register> = registers.map(|used| used.register()).collect();
        let to_memory = info.used_memory().iter().any(|used| is_written(used.access()));
        let bytes = of.memory_size().size().max(1) as i64;
        if let Some(at) = self.word(of).filter(|_| to_memory) {
            self.words.retain(|word, _| *word + WORD <= at || *word >= at.wrapping_add(bytes));
        }
        written.into_iter().for_each(|register| self.set_register(register, Value::Other));
    }
}

/// The number of a general register, of which this may be a part.
fn index(register: Register) -> Option<usize> {
    register.is_gpr().then(|| register.full_register().number())
}

/// Whether the result is 0 whatever the operands are.
fn is_zero(of: &Instruction) -> bool {
    of.op0_kind() == OpKind::Register
        && of.op1_kind() == OpKind::Register
        && of.op0_register() == of.op1_register()
}

/// The number that is the second operand.
fn number(of: &Instruction) -> Option<i64> {
    match of.op1_kind() {
        OpKind::Register | OpKind::Memory => None,
        _ => Some(of.immediate(1) as i64),
    }
}

fn is_move_on_condition(of: &Instruction) -> bool {
    use iced_x86::ConditionCode;
    of.condition_code() != ConditionCode::None && of.op_count() == 2 && !of.is_jcc_short_or_near()
}
