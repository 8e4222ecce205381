//! Registers of threads that wait in the kernel, as far as they are known without stopping them: where they are in the
//! program, the stack pointer, and by the stack also the frame pointer.

use crate::process::ObservedProcess;
use crate::sample::StackPiece;
use numakit_sys::proc::syscall::BlockedPlace;
use numakit_sys::registers::{STACK_POINTER, UserRegisters};

/// Bytes of the stack that are read.
const PIECE: usize = 2048;
const WORD: usize = 8;
/// A frame is not larger than this.
const MAX_FRAME: u64 = 1 << 20;

/// Place of the frame pointer among the general registers.
#[cfg(target_arch = "x86_64")]
const FRAME_POINTER: usize = 5;
#[cfg(not(target_arch = "x86_64"))]
const FRAME_POINTER: usize = 29;

/// The registers and the top of the stack of a thread that waits at this place. A program without frame pointers needs
/// none: its unwind tables say so.
pub fn registers(process: &ObservedProcess, place: BlockedPlace) -> (UserRegisters, StackPiece) {
    let mut bytes = vec![0; PIECE];
    // The stack may end before.
    while !bytes.is_empty() && !process.read(place.stack, &mut bytes) {
        bytes.truncate(bytes.len() / 2);
    }
    let stack = StackPiece { address: place.stack, bytes };
    let is_code = |address| process.mapping(address).is_some_and(|mapping| mapping.executable);
    let mut registers = UserRegisters { ip: place.instruction, ..UserRegisters::default() };
    registers.general[STACK_POINTER] = place.stack;
    registers.general[FRAME_POINTER] = frame_pointer(&stack, is_code).unwrap_or(0);
    (registers, stack)
}

/// The frame pointer of the innermost function that has one: the first place in the stack where the address of a frame
/// further out is followed by an address to return to.
fn frame_pointer(stack: &StackPiece, is_code: impl Fn(u64) -> bool) -> Option<u64> {
    let words: Vec<u64> = stack
        .bytes
        .chunks_exact(WORD)
        .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)))
        .collect();
    let at = |place: usize| stack.address + (place * WORD) as u64;
    let is_frame = |(place, pair): (usize, &[u64])| match pair {
        [outer, back] => {
            let further = outer.checked_sub(at(place)).is_some_and(|size| size > 0 && size < MAX_FRAME);
            (further && outer % WORD as u64 == 0 && is_code(*back)).then(|| at(place))
        }
        _ => None,
    };
    words.windows(2).enumerate().find_map(is_frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_pointer_is_where_a_frame_further_out_and_a_return_address_are() {
        let stack = |words: &[u64]| StackPiece {
            address: 0x7000,
            bytes: words.iter().flat_map(|word| word.to_ne_bytes()).collect(),
        };
        let is_code = |address| (0x400..0x500).contains(&address);
        let framed = stack(&[7, 0x410, 0x7018, 9, 0x7050, 0x420, 0x7090, 0x430]);
        assert_eq!(frame_pointer(&framed, is_code), Some(0x7020));
        // A frame is further out than its pointer, and an address to return to is code.
        assert_eq!(frame_pointer(&stack(&[0x6000, 0x420, 0x7050, 0x9]), is_code), None);
        assert_eq!(frame_pointer(&stack(&[]), is_code), None);
    }
}
