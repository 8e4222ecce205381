//! Marks in the instruction stream for a simulator. On a processor they do nothing.

use std::io;

/// The meaning of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Observation starts.
    Begin,
    /// Observation ends.
    End,
}

/// Executes the instruction of a mark: `nopl 0x534e4d01(%rax)` or `nopl 0x534e4d02(%rax)`, which touch no memory. The
/// compiler moves no loads and stores across it. An error on other architectures.
#[cfg(target_arch = "x86_64")]
pub fn mark(mark: Mark) -> io::Result<()> {
    // SAFETY: an instruction that does nothing, whatever rax holds.
    unsafe {
        match mark {
            Mark::Begin => std::arch::asm!(
                ".byte 0x0f, 0x1f, 0x80, 0x01, 0x4d, 0x4e, 0x53",
                options(nostack, preserves_flags)
            ),
            Mark::End => std::arch::asm!(
                ".byte 0x0f, 0x1f, 0x80, 0x02, 0x4d, 0x4e, 0x53",
                options(nostack, preserves_flags)
            ),
        }
    }
    Ok(())
}

/// Only x86-64 has marks.
#[cfg(not(target_arch = "x86_64"))]
pub fn mark(_: Mark) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_processor_goes_on_after_a_mark() {
        mark(Mark::Begin).unwrap();
        mark(Mark::End).unwrap();
    }
}
