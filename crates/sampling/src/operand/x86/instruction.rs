//! One decoded instruction with what the rules ask of it.

use super::evaluate::RSP;
use super::parts::{Model, Part};
use super::state::RegisterSet;
use crate::operand::AccessKind;
use iced_x86::{
    Code, CodeSize, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
    UsedMemory,
};

/// Where the base of an address comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    Flat,
    Fs,
    Gs,
}

/// One memory operand, in terms of the registers before the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub base: Option<u8>,
    pub index: Option<u8>,
    pub scale: u8,
    /// The index is a vector, so there are several addresses.
    pub gathers: bool,
    /// Addresses are 32 bits wide.
    pub narrow: bool,
    pub segment: Segment,
    pub displacement: u64,
    pub size: u32,
    pub kind: AccessKind,
    /// The operand is implied by a push, pop, call or return.
    pub stack: bool,
}

impl Place {
    /// The registers of the address.
    pub fn registers(&self) -> RegisterSet {
        [self.base, self.index].into_iter().flatten().fold(RegisterSet::default(), RegisterSet::with)
    }

    /// Whether it is at a distance from the stack pointer.
    pub fn is_on_stack(&self) -> bool {
        self.stack || (self.base == Some(RSP) && self.index.is_none())
    }

    /// Whether two operands are written the same way.
    pub fn is_same_expression(&self, other: &Self) -> bool {
        (self.base, self.index, self.scale, self.displacement, self.segment)
            == (other.base, other.index, other.scale, other.displacement, other.segment)
    }
}

/// What follows an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// The instruction behind it.
    Next,
    /// A different instruction.
    Jump(u64),
    /// The instruction behind it, or a different one.
    Conditional(u64),
    /// A function, and then the instruction behind it.
    Call(u64),
    /// A function at an address from a register or memory.
    CallIndirect,
    /// An address from a register or memory.
    JumpIndirect,
    Return,
    /// The kernel, and then mostly the instruction behind it.
    Kernel,
    /// Nothing that can be known.
    Stop,
}

/// A decoded instruction.
#[derive(Debug, Clone)]
pub(super) struct Decoded {
    pub raw: Instruction,
    pub flow: Flow,
    /// The operand that the instruction waits for: a load rather than a store.
    pub place: Option<Place>,
    /// All memory operands.
    pub places: Vec<Place>,
    /// General registers that are written, in whole or in part.
    pub written: RegisterSet,
    /// Some flags are written.
    pub writes_flags: bool,
    /// It is a string instruction, which moves its pointers.
    pub string: bool,
    /// How it is executed.
    pub model: Model,
    /// The first operands, as far as an execution reads them.
    pub parts: [Part; 4],
    /// The operand in memory that is written out, or what `lea` computes.
    pub explicit: Option<Place>,
}

impl Decoded {
    /// Takes an instruction apart.
    pub fn new(raw: Instruction, factory: &mut InstructionInfoFactory) -> Self {
        let string = raw.is_string_instruction();
        let info = factory.info(&raw);
        let mut written = RegisterSet::default();
        for used in info.used_registers() {
            let writes = matches!(
                used.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            if let (true, Some(number)) = (writes, general(used.register())) {
                written = written.with(number);
            }
        }
        let mut places: Vec<Place> = Vec::new();
        if !matches!(raw.mnemonic(), Mnemonic::Lea | Mnemonic::Nop | Mnemonic::Reservednop) {
            for used in info.used_memory() {
                let place = place(&raw, used);
                match places.iter_mut().find(|p| p.is_same_expression(&place)) {
                    Some(same) if same.kind != place.kind => same.kind = AccessKind::Update,
                    Some(_) => {}
                    None => places.push(place),
                }
            }
        }
        // The information about prefetches has no operand.
        if places.is_empty() && prefetches(&raw) {
            places.push(explicit(&raw));
        }
        if string {
            let element = u32::try_from(raw.memory_size().size()).unwrap_or(0);
            places.iter_mut().for_each(|place| place.size = element);
        }
        let flow = flow(&raw);
        let writes_flags = raw.rflags_modified() != 0;
        let place = waiting(&places);
        let model = Model::of(&raw);
        let explicit = match raw.mnemonic() {
            Mnemonic::Lea => Some(Place { segment: Segment::Flat, ..explicit(&raw) }),
            _ => places.iter().find(|place| !place.stack).copied(),
        };
        let parts = [0, 1, 2, 3].map(|operand| Part::of(&raw, operand));
        Self { raw, flow, place, places, written, writes_flags, string, model, parts, explicit }
    }

    pub fn address(&self) -> u64 {
        self.raw.ip()
    }

    pub fn end(&self) -> u64 {
        self.raw.next_ip()
    }

    /// Whether the instruction may retire together with the conditional jump behind it.
    pub fn fuses(&self) -> bool {
        use Mnemonic::{Add, And, Cmp, Dec, Inc, Sub, Test};
        matches!(self.raw.mnemonic(), Cmp | Test | Add | Sub | And | Inc | Dec)
    }

    /// Whether the instruction makes the thread wait until all others see its stores, and does nothing else.
    pub fn is_barrier(&self) -> bool {
        let is_atomic = |place: Place| place.kind == AccessKind::Atomic && place.is_on_stack();
        let adds_nothing = matches!(self.raw.mnemonic(), Mnemonic::Add | Mnemonic::Or)
            && matches!(self.parts[1], Part::Immediate(0));
        self.raw.mnemonic() == Mnemonic::Mfence || (adds_nothing && self.place.is_some_and(is_atomic))
    }

    /// The instruction repeats as long as rcx counts.
    pub fn repeats(&self) -> bool {
        self.string && (self.raw.has_rep_prefix() || self.raw.has_repne_prefix())
    }

    /// Whether control never continues at the instruction behind it.
    pub fn ends_path(&self) -> bool {
        matches!(self.flow, Flow::Jump(_) | Flow::JumpIndirect | Flow::Return | Flow::Stop)
    }
}

/// Number of the general register of which a register is a part.
pub fn general(register: Register) -> Option<u8> {
    let full = register.full_register();
    if full.is_gpr64() { u8::try_from(full.number()).ok() } else { None }
}

/// The operand that an instruction waits for.
fn waiting(places: &[Place]) -> Option<Place> {
    let rank = |place: &Place| match (place.stack, place.kind) {
        (false, AccessKind::Load | AccessKind::Operand | AccessKind::Update | AccessKind::Atomic) => 0,
        (false, _) => 1,
        (true, _) => 2,
    };
    places.iter().min_by_key(|place| rank(place)).copied()
}

fn place(raw: &Instruction, used: &UsedMemory) -> Place {
    let (base, index) = (used.base(), used.index());
    let segment = match used.segment() {
        Register::FS => Segment::Fs,
        Register::GS => Segment::Gs,
        _ => Segment::Flat,
    };
    let implied = raw.is_stack_instruction() || matches!(raw.mnemonic(), Mnemonic::Leave | Mnemonic::Enter);
    let explicit = raw.op_kinds().any(|kind| kind == iced_x86::OpKind::Memory)
        && base == raw.memory_base()
        && index == raw.memory_index()
        && used.displacement() == raw.memory_displacement64();
    let rip = raw.is_ip_rel_memory_operand();
    Place {
        base: general(base),
        index: general(index),
        scale: u8::try_from(used.scale()).unwrap_or(1),
        gathers: index.is_vector_register(),
        narrow: used.address_size() == CodeSize::Code32,
        segment,
        displacement: used.displacement(),
        size: u32::try_from(used.memory_size().size()).unwrap_or(0),
        kind: kind(raw, used.access()),
        stack: implied && !explicit && !(rip && base == Register::None),
    }
}

/// The memory operand that an instruction states, for prefetches and `lea`: the decoder reports no access for these.
fn explicit(raw: &Instruction) -> Place {
    let (base, index) = (raw.memory_base(), raw.memory_index());
    let segment = match raw.memory_segment() {
        Register::FS => Segment::Fs,
        Register::GS => Segment::Gs,
        _ => Segment::Flat,
    };
    Place {
        base: general(base),
        index: general(index),
        scale: u8::try_from(raw.memory_index_scale()).unwrap_or(1),
        gathers: index.is_vector_register(),
        narrow: base.is_gpr32() || index.is_gpr32(),
        segment,
        displacement: raw.memory_displacement64(),
        size: u32::try_from(raw.memory_size().size()).unwrap_or(0),
        kind: AccessKind::Prefetch,
        stack: false,
    }
}

fn prefetches(raw: &Instruction) -> bool {
    matches!(
        raw.mnemonic(),
        Mnemonic::Prefetch
            | Mnemonic::Prefetchit0
            | Mnemonic::Prefetchit1
            | Mnemonic::Prefetchnta
            | Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Prefetchw
            | Mnemonic::Prefetchwt1
    )
}

fn kind(raw: &Instruction, access: OpAccess) -> AccessKind {
    match access {
        OpAccess::Write | OpAccess::CondWrite => AccessKind::Store,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
            let locks = raw.has_lock_prefix() || raw.mnemonic() == Mnemonic::Xchg;
            if locks { AccessKind::Atomic } else { AccessKind::Update }
        }
        _ if is_arithmetic(raw.mnemonic()) => AccessKind::Operand,
        _ => AccessKind::Load,
    }
}

/// Whether an instruction computes in floating point, by its name: `addsd`, `vmulps`, `vfmadd231pd`.
fn is_arithmetic(mnemonic: Mnemonic) -> bool {
    const OPERATIONS: [&str; 10] =
        ["add", "sub", "mul", "div", "min", "max", "sqrt", "fmadd", "fmsub", "fnm"];
    let name = format!("{mnemonic:?}").to_ascii_lowercase();
    let operation = name.strip_prefix('v').unwrap_or(&name);
    ["ss", "sd", "ps", "pd"].iter().any(|numbers| name.ends_with(numbers))
        && OPERATIONS.iter().any(|start| operation.starts_with(start))
}

fn flow(raw: &Instruction) -> Flow {
    match raw.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump(raw.near_branch_target()),
        FlowControl::ConditionalBranch if raw.is_jcc_short_or_near() => {
            Flow::Conditional(raw.near_branch_target())
        }
        FlowControl::ConditionalBranch => Flow::Conditional(raw.near_branch_target()),
        FlowControl::Call if matches!(raw.code(), Code::Syscall) => Flow::Kernel,
        FlowControl::Call if raw.is_call_near() => Flow::Call(raw.near_branch_target()),
        FlowControl::IndirectCall => Flow::CallIndirect,
        FlowControl::IndirectBranch => Flow::JumpIndirect,
        FlowControl::Return => Flow::Return,
        FlowControl::Call | FlowControl::Interrupt => Flow::Kernel,
        FlowControl::XbeginXabortXend | FlowControl::Exception => Flow::Stop,
    }
}

/// Instructions that user programs do not execute: a decoding that meets one started at a wrong byte.
pub fn is_foreign(raw: &Instruction) -> bool {
    let rare = matches!(
        raw.mnemonic(),
        Mnemonic::In
            | Mnemonic::Out
            | Mnemonic::Insb
            | Mnemonic::Insd
            | Mnemonic::Outsb
            | Mnemonic::Outsd
            | Mnemonic::Hlt
            | Mnemonic::Iretd
            | Mnemonic::Iretq
            | Mnemonic::Retf
            | Mnemonic::Enter
            | Mnemonic::Int1
            | Mnemonic::Int
    );
    let far =
        raw.is_jmp_far() || raw.is_call_far() || raw.is_jmp_far_indirect() || raw.is_call_far_indirect();
    raw.is_invalid() || raw.is_privileged() || rare || far
}
