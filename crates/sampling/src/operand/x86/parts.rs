//! Operands and kinds of instructions in the form in which they are executed: found once, when an instruction is decoded.

use super::instruction::general;
use super::vectors;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// A general register, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterPart {
    pub number: u8,
    /// Bytes.
    pub size: u8,
    /// The second byte, as in ah.
    pub high: bool,
}

impl RegisterPart {
    pub fn of(register: Register) -> Option<Self> {
        let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        Some(Self { number: general(register)?, size: u8::try_from(register.size()).ok()?, high })
    }
}

/// An operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// There is none.
    None,
    Register(RegisterPart),
    /// The explicit operand in memory, with its bytes.
    Memory(u8),
    Immediate(u64),
    /// A register that is not modelled, with its bytes.
    Other(u8),
}

impl Part {
    pub fn of(raw: &Instruction, operand: u32) -> Self {
        let bytes = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
        if operand >= raw.op_count() {
            return Self::None;
        }
        match raw.op_kind(operand) {
            OpKind::Register => {
                let register = raw.op_register(operand);
                RegisterPart::of(register).map_or(Self::Other(bytes(register.size())), Self::Register)
            }
            OpKind::Memory => Self::Memory(bytes(raw.memory_size().size())),
            kind if is_immediate(kind) => Self::Immediate(raw.immediate(operand)),
            _ => Self::None,
        }
    }

    /// Number of bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Register(part) => part.size.into(),
            Self::Memory(bytes) | Self::Other(bytes) => bytes.into(),
            Self::None | Self::Immediate(_) => 8,
        }
    }
}

/// How an instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// A copy, perhaps of a part, or an address.
    Move,
    /// If the flags fulfil its condition.
    ConditionalMove,
    /// 1 if the flags fulfil its condition, otherwise 0.
    Set,
    /// A result, and flags.
    Arithmetic,
    /// The stack, or a call.
    Stack,
    /// Vectors.
    Vector,
    /// It changes no general register and no flag that is of interest.
    Nothing,
    /// What it writes is unknown.
    Unknown,
}

impl Model {
    pub fn of(raw: &Instruction) -> Self {
        use Mnemonic as M;
        match raw.mnemonic() {
            M::Mov | M::Movzx | M::Movsx | M::Movsxd | M::Lea | M::Xchg | M::Bswap => Self::Move,
            M::Cdqe | M::Cwde | M::Cdq | M::Cqo => Self::Move,
            M::Add | M::Sub | M::And | M::Or | M::Xor | M::Cmp | M::Test | M::Adc | M::Sbb => {
                if raw.op_count() == 2 { Self::Arithmetic } else { Self::Unknown }
            }
            M::Inc | M::Dec | M::Neg | M::Not => Self::Arithmetic,
            M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror => Self::Arithmetic,
            M::Shlx | M::Shrx | M::Sarx | M::Rorx => Self::Arithmetic,
            M::Mul | M::Imul | M::Mulx | M::Div | M::Idiv => Self::Arithmetic,
            M::Popcnt | M::Tzcnt | M::Lzcnt | M::Bsf | M::Bsr | M::Andn | M::Blsr => Self::Arithmetic,
            M::Bt => Self::Arithmetic,
            M::Push | M::Call | M::Pop | M::Ret | M::Leave => Self::Stack,
            M::Nop | M::Endbr64 | M::Jmp => Self::Nothing,
            mnemonic if is_conditional_move(mnemonic) => Self::ConditionalMove,
            mnemonic if is_set(mnemonic) => Self::Set,
            mnemonic if vectors::is_followed(mnemonic) => Self::Vector,
            _ => Self::Unknown,
        }
    }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

fn is_conditional_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Cmova
            | M::Cmovae
            | M::Cmovb
            | M::Cmovbe
            | M::Cmove
            | M::Cmovg
            | M::Cmovge
            | M::Cmovl
            | M::Cmovle
            | M::Cmovne
            | M::Cmovno
            | M::Cmovnp
            | M::Cmovns
            | M::Cmovo
            | M::Cmovp
            | M::Cmovs
    )
}

fn is_set(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Seta
            | M::Setae
            | M::Setb
            | M::Setbe
            | M::Sete
            | M::Setg
            | M::Setge
            | M::Setl
            | M::Setle
            | M::Setne
            | M::Setno
            | M::Setnp
            | M::Setns
            | M::Seto
            | M::Setp
            | M::Sets
    )
}
