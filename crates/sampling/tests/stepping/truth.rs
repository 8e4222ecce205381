//! What an instruction accesses, told from the registers before it.

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use numakit_sampling::operand::{AddressSpace, X86Registers};

/// What an instruction that is about to be executed does.
pub struct Truth {
    pub raw: Instruction,
    /// The address that it waits for; of a gather that of its base.
    pub address: Option<u64>,
}

const ORDER: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

pub fn value(registers: &X86Registers, register: Register) -> Option<u64> {
    match register {
        Register::FS => registers.fs_base,
        Register::GS => registers.gs_base,
        Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
        Register::None => Some(0),
        other => {
            let number = ORDER.iter().position(|r| *r == other.full_register())?;
            let full = registers.general[number];
            Some(if other.size() == 4 { full & 0xffff_ffff } else { full })
        }
    }
}

impl Truth {
    pub fn of(registers: &X86Registers, space: &dyn AddressSpace) -> Option<Self> {
        let mut bytes = [0; 15];
        let count = space.code(registers.ip, &mut bytes);
        let raw = Decoder::with_ip(64, &bytes[..count], registers.ip, DecoderOptions::NONE).decode();
        if raw.is_invalid() {
            return None;
        }
        let accesses = !matches!(raw.mnemonic(), Mnemonic::Lea | Mnemonic::Nop | Mnemonic::Reservednop);
        let address =
            if accesses { explicit(&raw, registers).or_else(|| implied(&raw, registers)) } else { None };
        Some(Self { raw, address })
    }
}

/// The operand in the instruction; a load rather than a store.
fn explicit(raw: &Instruction, registers: &X86Registers) -> Option<u64> {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(raw);
    let is_memory = |op: &u32| {
        matches!(
            raw.op_kind(*op),
            OpKind::Memory | OpKind::MemorySegRSI | OpKind::MemorySegRDI | OpKind::MemoryESRDI
        )
    };
    let operands = (0..raw.op_count()).filter(is_memory);
    let rank = |op: &u32| {
        let access = info.op_access(*op);
        u8::from(matches!(access, OpAccess::Write | OpAccess::CondWrite))
    };
    let operand = operands.min_by_key(rank)?;
    raw.virtual_address(operand, 0, |register, _, _| {
        if register.is_vector_register() { Some(0) } else { value(registers, register) }
    })
}

/// The stack, in push, pop, call, return and leave.
fn implied(raw: &Instruction, registers: &X86Registers) -> Option<u64> {
    let rsp = registers.general[4];
    match raw.mnemonic() {
        Mnemonic::Push | Mnemonic::Call | Mnemonic::Pushfq => Some(rsp.wrapping_sub(8)),
        Mnemonic::Pop | Mnemonic::Ret | Mnemonic::Popfq => Some(rsp),
        Mnemonic::Leave => Some(registers.general[5]),
        _ => None,
    }
}
