//! Programs and libraries: debug information and unwind tables.

use numakit_explain::member_path::{self, VariableByte, layout};
use numakit_sampling::StackPiece;
use numakit_sampling::call_chains::{self, MAX_FRAMES};
use numakit_sys::registers::{STACK_POINTER, UserRegisters};

/// Bytes of stack in an input.
const STACK: usize = 256;

/// A number from the first bytes, which are removed.
fn number(input: &mut &[u8]) -> u64 {
    let Some((first, rest)) = input.split_first_chunk() else { return 0 };
    *input = rest;
    u64::from_le_bytes(*first)
}

/// The address of a variable, a byte of it, and a file with debug information.
pub fn members(mut input: &[u8]) -> bool {
    let byte = VariableByte { variable: number(&mut input), offset: number(&mut input) };
    let other = VariableByte { offset: byte.offset / 2, ..byte };
    let found = member_path::of_elf(input, &[byte, other]);
    assert!(found.keys().all(|found| *found == byte || *found == other));
    let layouts = layout::of_elf(input, &[byte.variable]);
    assert!(layouts.iter().all(|(variable, layout)| *variable == byte.variable && layout.element > 0));
    assert!(layouts.values().all(|layout| layout.member(byte.offset).is_none_or(|member| member.size > 0)));
    !found.is_empty()
}

/// The addresses of an instruction and of the stack, the content of the stack, and a file with unwind tables.
pub fn unwind_tables(mut input: &[u8]) -> bool {
    let mut registers = UserRegisters { ip: number(&mut input), ..UserRegisters::default() };
    let address = number(&mut input);
    registers.general.fill(address);
    registers.general[STACK_POINTER] = address;
    let (stack, elf) = input.split_at(input.len().min(STACK));
    let stack = StackPiece { address, bytes: stack.to_vec() };
    let Some(chain) = call_chains::of_elf(elf, &registers, &stack) else { return false };
    assert!((1..=MAX_FRAMES).contains(&chain.len()) && chain[0] == registers.ip);
    true
}
