//! One sample.

use numakit_sys::registers::UserRegisters;

/// A thread at a moment of its CPU time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// When, in ns of CLOCK_MONOTONIC.
    pub time: u64,
    /// The CPU that it ran on.
    pub cpu: Option<u32>,
    /// The CPU time in ns that it represents.
    pub weight: u64,
    /// The registers of the program. While the kernel works for the program, they are those at its entry into the kernel.
    pub registers: UserRegisters,
    /// Whether the kernel was working for the program. Methods that do not see the kernel leave such samples out.
    pub in_kernel: bool,
    /// The top of the stack.
    pub stack: StackPiece,
    /// Page faults of the thread since its last sample; 0 where the method does not count them.
    pub faults: u32,
    /// The access that the processor itself measured, on methods through such hardware.
    pub measured: Option<MeasuredAccess>,
}

/// A part of the stack, copied with the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackPiece {
    /// The address of the first byte: the stack pointer, or somewhat below.
    pub address: u64,
    /// The bytes that were there.
    pub bytes: Vec<u8>,
}

impl StackPiece {
    /// Copies bytes from the piece; false unless it contains all of them.
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let piece = address
            .checked_sub(self.address)
            .and_then(|at| usize::try_from(at).ok())
            .and_then(|at| self.bytes.get(at..at.checked_add(into.len())?));
        match piece {
            Some(piece) => {
                into.copy_from_slice(piece);
                true
            }
            None => false,
        }
    }

    /// Replaces the piece's address and bytes; allocates nothing if it has room.
    pub fn set(&mut self, address: u64, bytes: &[u8]) {
        self.address = address;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }
}

/// An access as processors with precise memory events describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredAccess {
    /// The instruction.
    pub instruction: u64,
    /// The address.
    pub address: u64,
    /// How long the access took, in the processor's unit; 0 if the processor does not say.
    pub latency: u64,
    /// Where the data was, as `perf_mem_data_src` encodes it; 0 if the processor does not say.
    pub source: u64,
}

/// How samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleSettings {
    /// Samples per second of CPU time of a thread.
    pub frequency: u32,
    /// Bytes of the stack in each sample.
    pub stack: u32,
    /// Count page faults where the method can: one in this many is noted; 0 counts none.
    pub faults: u32,
    /// Deliver page faults with addresses and call chains where the method can.
    pub first_touch: bool,
    /// Also deliver the address of every page fault, however many there are.
    pub every_touch: bool,
}

impl Default for SampleSettings {
    /// 199 samples a second: no multiple of the kernel's tick, so that samples do not follow what programs do in its rhythm.
    fn default() -> Self {
        Self { frequency: 199, stack: 512, faults: 0, first_touch: false, every_touch: false }
    }
}

impl SampleSettings {
    /// The CPU time between two samples, in ns.
    pub fn period(&self) -> u64 {
        1_000_000_000 / u64::from(self.frequency.max(1))
    }

    /// Bytes of the stack as the kernel takes them: a multiple of 8 within the size of a record.
    pub fn stack_bytes(&self) -> u32 {
        self.stack.min(32 << 10).next_multiple_of(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_piece_of_the_stack_returns_what_it_contains_and_nothing_else(
            start in 0u64.., length in 0usize..32, at in -40i64..40, count in 0usize..40
        ) {
            let piece = StackPiece { address: start, bytes: (0..length as u8).collect() };
            let address = start.wrapping_add_signed(at);
            let mut into = vec![0xff; count];
            let inside = at >= 0 && address >= start && at as usize + count <= length;
            prop_assert_eq!(piece.read(address, &mut into), inside);
            if inside {
                let expected: Vec<u8> = (at as u8..at as u8 + count as u8).collect();
                prop_assert_eq!(into, expected);
            }
        }
    }

    #[test]
    fn settings_are_as_the_kernel_takes_them() {
        let settings = SampleSettings::default();
        assert_eq!((settings.period(), settings.stack_bytes()), (5_025_125, 512));
        let odd = SampleSettings { frequency: 0, stack: 1 << 20, ..SampleSettings::default() };
        assert_eq!((odd.period(), odd.stack_bytes()), (1_000_000_000, 32 << 10));
        assert_eq!(SampleSettings { stack: 1, ..settings }.stack_bytes(), 8);
    }
}
