//! From the registers of an interrupted thread to the memory operand that the thread waited for.
//!
//! A time sample lands right behind the instruction that waited, and its registers are those after the instruction: a load
//! has often overwritten its own address. [`Decoder`] finds the instruction, and its address by rules in a fixed order. An
//! operand that it cannot find is unknown; it is never taken for computing.

mod access;
mod address_map;
mod arm;
mod memory;
mod registers;
pub mod sampled;
mod x86;

pub use access::{AccessKind, AddressSpace, Ahead, Landing, MemoryAccess, Operand, Reach, RecoveryRule};
pub use arm::ArmDecoder;
pub use registers::{ArmRegisters, STACK_POINTER, X86Registers};
pub use x86::Decoder;
