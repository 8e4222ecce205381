//! Registers of threads that wait in the kernel, as far as they are known without stopping them: where they are in the
//! program, the stack pointer, and by the stack also the frame pointer.

use crate::process::ObservedProcess;
use crate::sample::StackPiece;
use numakit_sys::proc::syscall::BlockedPlace;
use numakit_sys::registers::{STACK_POINTER, UserRegisters};

/// Bytes of the stack that are read.
const PIECE: usize = 2048;
const WORD: usize = 8;
/// Frame pointers that are tried.
const MAX_POSSIBLE: usize = 8;

/// Place of the frame pointer among the general registers.
#[cfg(target_arch = "x86_64")]
const FRAME_POINTER: usize = 5;
#[cfg(not(target_arch = "x86_64"))]
const FRAME_POINTER: usize = 29;

/// The registers that a thread may have that waits at this place, and the top of its stack. They differ in the frame pointer,
/// which is not known: what looks like one may be left from an earlier call, and unwinding shows which one leads on. Functions
/// without frame pointers need none.
pub fn registers(process: &ObservedProcess, place: BlockedPlace) -> (Vec<UserRegisters>, StackPiece) {
    let mut bytes = vec![0; PIECE];
    // The stack may end before.
    while !bytes.is_empty() && !process.read(place.stack, &mut bytes) {
        bytes.truncate(bytes.len() / 2);
    }
    let stack = StackPiece { address: place.stack, bytes };
    let is_code = |address| process.mapping(address).is_some_and(|mapping| mapping.executable);
    let mut registers = UserRegisters { ip: place.instruction, ..UserRegisters::default() };
    registers.general[STACK_POINTER] = place.stack;
    let of_frame = |frame| {
        let mut with_frame = registers;
        with_frame.general[FRAME_POINTER] = frame;
        with_frame
    };
    let possible = frame_pointers(&stack, is_code).into_iter().map(of_frame);
    (std::iter::once(registers).chain(possible).collect(), stack)
}

/// What may be the frame pointer of the innermost function that has one: it points to the frame pointer of its caller, which may
/// have used the register for anything, and that is followed by an address to return to.
fn frame_pointers(stack: &StackPiece, is_code: impl Fn(u64) -> bool) -> Vec<u64> {
    let words = stack.bytes.chunks_exact(WORD).enumerate().skip(1);
    let before = |(place, word): (usize, &[u8])| {
        let back = u64::from_ne_bytes(word.try_into().ok()?);
        is_code(back).then(|| stack.address + ((place - 1) * WORD) as u64)
    };
    words.filter_map(before).take(MAX_POSSIBLE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_pointer_may_be_before_each_address_to_return_to() {
        let stack = |words: &[u64]| StackPiece {
            address: 0x7000,
            bytes: words.iter().flat_map(|word| word.to_ne_bytes()).collect(),
        };
        let is_code = |address| (0x400..0x500).contains(&address);
        let framed = stack(&[0x410, 7, 0x7018, 9, 3, 0x420, 0x7090, 0x430]);
        assert_eq!(frame_pointers(&framed, is_code), [0x7020, 0x7030]);
        assert!(frame_pointers(&stack(&[]), is_code).is_empty());
        assert_eq!(frame_pointers(&stack(&[0x410; 100]), is_code).len(), MAX_POSSIBLE);
    }
}
