//! Whether code is a loop that waits for other threads: it pauses the processor and changes nothing.

use super::code::Code;
use super::instruction::{Decoded, Flow};
use crate::operand::{AccessKind, AddressSpace};
use iced_x86::Mnemonic;
use std::sync::Arc;

/// Instructions from one in a loop to the jump that closes it, and of the loop.
const MAX_INSTRUCTIONS: usize = 32;
/// Bytes of a loop that only waits.
const MAX_BYTES: u64 = 192;

/// Whether the instruction is part of a loop that contains `pause`, stores nothing and calls nothing.
pub fn is_spinning(at: u64, code: &mut Code, space: &dyn AddressSpace) -> bool {
    let mut next = at;
    for _ in 0..MAX_INSTRUCTIONS {
        let Some(insn) = code.at(next, space) else { return false };
        if !only_waits(&insn) {
            return false;
        }
        match insn.flow {
            Flow::Conditional(target) | Flow::Jump(target) if is_back(target, at, insn.end()) => {
                if body(target, insn.end(), code, space) {
                    return true;
                }
                next = insn.end();
            }
            Flow::Next | Flow::Conditional(_) => next = insn.end(),
            Flow::Jump(target) if target > next && target - next < MAX_BYTES => next = target,
            _ => return false,
        }
    }
    false
}

/// Whether a jump back closes a short loop around an instruction.
fn is_back(target: u64, at: u64, end: u64) -> bool {
    target <= at && end.saturating_sub(target) <= MAX_BYTES
}

/// Whether the instructions from a loop's first to its last only wait, and one of them pauses.
fn body(start: u64, end: u64, code: &mut Code, space: &dyn AddressSpace) -> bool {
    let (mut at, mut pauses) = (start, false);
    while at < end {
        let Some(insn) = code.at(at, space) else { return false };
        if !only_waits(&insn) {
            return false;
        }
        pauses |= insn.raw.mnemonic() == Mnemonic::Pause;
        at = insn.end();
    }
    pauses
}

fn only_waits(insn: &Arc<Decoded>) -> bool {
    let stores = |kind| matches!(kind, AccessKind::Store | AccessKind::Update | AccessKind::Atomic);
    let leaves = matches!(insn.flow, Flow::Call(_) | Flow::CallIndirect | Flow::Kernel | Flow::Stop);
    !leaves && !insn.string && !insn.places.iter().any(|place| stores(place.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code at address 0x1000.
    struct Bytes(&'static [u8]);

    impl AddressSpace for Bytes {
        fn read(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }

        fn code(&self, address: u64, into: &mut [u8]) -> usize {
            let rest =
                address.checked_sub(0x1000).and_then(|at| self.0.get(at as usize..)).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            count
        }
    }

    fn spins(code: &'static [u8], at: u64) -> bool {
        is_spinning(0x1000 + at, &mut Code::default(), &Bytes(code))
    }

    #[test]
    fn a_loop_that_pauses_and_stores_nothing_spins() {
        // pause; mov (%rdi),%eax; cmp %esi,%eax; je back; ret
        let barrier = [0xf3, 0x90, 0x8b, 0x07, 0x39, 0xf0, 0x74, 0xf8, 0xc3].as_slice();
        let barrier: &'static [u8] = Box::leak(barrier.into());
        for at in [0, 2, 4, 6] {
            assert!(spins(barrier, at), "{at}");
        }
        assert!(!spins(barrier, 8), "behind the loop");
        // The same loop, which counts in memory: mov %eax,(%rdx) within.
        let counts: &'static [u8] =
            Box::leak(Box::new([0xf3, 0x90, 0x89, 0x02, 0x8b, 0x07, 0x39, 0xf0, 0x74, 0xf6, 0xc3]));
        assert!(!spins(counts, 0) && !spins(counts, 4));
        // A sum without a pause: add (%rdi),%rax; cmp %rsi,%rdi; jne back.
        let sum: &'static [u8] = Box::leak(Box::new([0x48, 0x03, 0x07, 0x48, 0x39, 0xf7, 0x75, 0xf8, 0xc3]));
        assert!(!spins(sum, 0) && !spins(sum, 3));
        // A lock that is tried inside of the loop: xchg %eax,(%rdi) stores.
        let lock: &'static [u8] = Box::leak(Box::new([0xf3, 0x90, 0x87, 0x07, 0x85, 0xc0, 0x75, 0xf8, 0xc3]));
        assert!(!spins(lock, 0));
        assert!(!spins(&[], 0));
    }
}
