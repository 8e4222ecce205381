//! One decoded AArch64 instruction with what the rules ask of it.

use crate::operand::AccessKind;
use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::{
    InstDecoder, Instruction, Opcode, Operand as Part, SIMDSizeCode, ShiftStyle, SizeCode,
};

/// Bytes of an instruction.
pub const LENGTH: u64 = 4;
/// The stack pointer among the numbers of registers; 31 in an instruction may also be zero.
pub const SP: u8 = 31;

/// How an address begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    Register(u8),
    /// A literal beside the code.
    Address(u64),
}

/// A register that is added, extended and shifted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Index {
    pub register: u8,
    pub style: ShiftStyle,
    pub narrow: bool,
    pub shift: u8,
}

/// What the instruction adds to its base after the access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writeback {
    Immediate(i64),
    Register(u8),
}

/// The memory operand of an instruction, in terms of the registers before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub base: Base,
    pub offset: i64,
    pub index: Option<Index>,
    pub writeback: Option<Writeback>,
    pub size: u32,
    pub kind: AccessKind,
}

/// What follows an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Jump(u64),
    Conditional(u64),
    Call,
    /// A jump or return through a register, or the end.
    Elsewhere,
}

/// A decoded instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoded {
    pub raw: Instruction,
    pub address: u64,
    pub flow: Flow,
    pub place: Option<Place>,
    /// Bits of the registers that are written.
    pub written: u32,
}

impl Decoded {
    pub fn new(bytes: [u8; 4], address: u64) -> Option<Self> {
        let raw = InstDecoder::default().decode(&mut U8Reader::new(&bytes)).ok()?;
        let kind = kind(raw.opcode);
        let place = kind.and_then(|kind| place(&raw, kind, address));
        Some(Self { raw, address, flow: flow(&raw, address), place, written: written(&raw, kind, place) })
    }

    /// The instruction may access memory in a way that is not understood.
    pub fn is_strange(&self) -> bool {
        self.place.is_none() && kind(self.raw.opcode).is_some()
    }
}

/// What an opcode does to memory.
fn kind(opcode: Opcode) -> Option<AccessKind> {
    // The names of opcodes are those of the architecture, of which there are 150 for memory.
    let name = format!("{opcode:?}");
    let name = name.split('(').next().unwrap_or_default();
    let atomics = [
        "SWP", "CAS", "LDADD", "LDCLR", "LDEOR", "LDSET", "LDSMAX", "LDSMIN", "LDUMAX", "LDUMIN", "LDXR",
        "LDAXR", "LDXP", "LDAXP", "STXR", "STLXR", "STXP", "STLXP",
    ];
    if atomics.iter().any(|prefix| name.starts_with(prefix)) {
        Some(AccessKind::Atomic)
    } else if name.starts_with("PRF") {
        Some(AccessKind::Prefetch)
    } else if name.starts_with("LD") {
        Some(AccessKind::Load)
    } else if name.starts_with("ST") {
        Some(AccessKind::Store)
    } else {
        None
    }
}

fn place(raw: &Instruction, kind: AccessKind, address: u64) -> Option<Place> {
    let (base, offset, index, writeback) = raw.operands.iter().rev().find_map(|part| match *part {
        Part::RegPreIndex(base, offset, writes) => {
            let offset = i64::from(offset);
            Some((Base::Register(base as u8), offset, None, writes.then_some(Writeback::Immediate(offset))))
        }
        Part::RegPostIndex(base, by) => {
            Some((Base::Register(base as u8), 0, None, Some(Writeback::Immediate(i64::from(by)))))
        }
        Part::RegPostIndexReg(base, by) => {
            Some((Base::Register(base as u8), 0, None, Some(Writeback::Register(by as u8))))
        }
        Part::RegRegOffset(base, register, size, style, shift) => {
            let narrow = size == SizeCode::W;
            let index = Index { register: register as u8, style, narrow, shift };
            Some((Base::Register(base as u8), 0, Some(index), None))
        }
        Part::PCOffset(offset) => Some((Base::Address(address.wrapping_add(offset as u64)), 0, None, None)),
        _ => None,
    })?;
    Some(Place { base, offset, index, writeback, size: size(raw), kind })
}

/// Number of bytes, from the name and the register; 0 of a prefetch.
fn size(raw: &Instruction) -> u32 {
    let name = format!("{:?}", raw.opcode);
    let name = name.split('(').next().unwrap_or_default();
    if name.starts_with("PRF") {
        return 0;
    }
    let status = ["STXR", "STLXR", "STXP", "STLXP"].iter().any(|prefix| name.starts_with(prefix));
    let data = raw.operands[usize::from(status)];
    let lanes = |size: SIMDSizeCode| match size {
        SIMDSizeCode::B => 1,
        SIMDSizeCode::H => 2,
        SIMDSizeCode::S => 4,
        SIMDSizeCode::D => 8,
        SIMDSizeCode::Q => 16,
    };
    let replicated = name.starts_with("LD")
        && name.ends_with('R')
        && name.as_bytes().get(2).is_some_and(u8::is_ascii_digit);
    let one = match data {
        Part::SIMDRegisterGroup(_, _, element, count) if replicated => lanes(element) * u32::from(count),
        Part::SIMDRegisterGroup(vector, _, _, count) => return lanes(vector) * u32::from(count),
        Part::SIMDRegisterGroupLane(_, element, count, _) => return lanes(element) * u32::from(count),
        Part::SIMDRegister(size, _) => lanes(size),
        _ if name.ends_with("SW") => 4,
        _ if name.ends_with('B') => 1,
        _ if name.ends_with('H') => 2,
        Part::Register(SizeCode::W, _) | Part::RegisterPair(SizeCode::W, _) => 4,
        _ => 8,
    };
    let pair = matches!(
        name,
        "LDP" | "STP" | "LDPSW" | "LDNP" | "STNP" | "LDXP" | "LDAXP" | "STXP" | "STLXP" | "CASP"
    );
    one * if pair { 2 } else { 1 }
}

/// Bits of the registers that an instruction writes.
fn written(raw: &Instruction, kind: Option<AccessKind>, place: Option<Place>) -> u32 {
    let bit = |part: &Part| match *part {
        Part::Register(_, number) if number < 31 => 1 << number,
        Part::RegisterOrSP(_, number) if number < 32 => 1 << number,
        Part::RegisterPair(_, number) if number < 30 => 3 << number,
        _ => 0u32,
    };
    let name = format!("{:?}", raw.opcode);
    let parts = &raw.operands;
    let mut bits = match kind {
        Some(AccessKind::Store | AccessKind::Prefetch) => 0,
        Some(AccessKind::Load) => bit(&parts[0]) | bit(&parts[1]),
        // The old value goes to the second register, of compare and swap to the first.
        Some(_) if name.starts_with("CAS") || name.starts_with("ST") => bit(&parts[0]),
        Some(_) if name.starts_with("LDX") || name.starts_with("LDAX") => bit(&parts[0]) | bit(&parts[1]),
        Some(_) => bit(&parts[1]),
        None if is_source_only(raw.opcode) => 0,
        None if matches!(raw.opcode, Opcode::BL | Opcode::BLR) => u32::MAX >> 13 | 1 << 30,
        None => bit(&parts[0]),
    };
    if let Some(Place { base: Base::Register(base), writeback: Some(_), .. }) = place {
        bits |= 1 << (base & 31);
    }
    bits
}

/// Instructions whose first register is read.
fn is_source_only(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::CCMN | O::CCMP | O::TBZ | O::TBNZ | O::CBZ | O::CBNZ | O::BR | O::RET | O::MSR | O::B | O::Bcc(_)
    )
}

fn flow(raw: &Instruction, address: u64) -> Flow {
    let target = raw.operands.iter().find_map(|part| match part {
        Part::PCOffset(offset) => Some(address.wrapping_add(*offset as u64)),
        _ => None,
    });
    match (raw.opcode, target) {
        (Opcode::B, Some(to)) => Flow::Jump(to),
        (Opcode::Bcc(_) | Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ, Some(to)) => {
            Flow::Conditional(to)
        }
        (Opcode::BL | Opcode::BLR, _) => Flow::Call,
        (
            Opcode::BR
            | Opcode::RET
            | Opcode::BRK
            | Opcode::HLT
            | Opcode::SVC
            | Opcode::UDF
            | Opcode::RETAA
            | Opcode::RETAB
            | Opcode::BRAA
            | Opcode::BRAB
            | Opcode::BRAAZ
            | Opcode::BRABZ,
            _,
        ) => Flow::Elsewhere,
        _ => Flow::Next,
    }
}
