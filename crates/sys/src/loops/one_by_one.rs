//! Writes that bypass the caches, of which each waits until the one before has reached memory.

use super::Region;

/// Distance of two lines. All bytes of a line are written.
const LINE: usize = 64;

/// Whether this CPU can wait for a write that bypasses the caches.
pub const WRITES_ONE_BY_ONE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Writes whole cache lines in random order past the caches, and waits for each with a fence. `order` is where in the order
/// the next call continues. Returns how many were written: none where [`WRITES_ONE_BY_ONE`] says no.
pub fn write_one_by_one(region: &mut Region, order: &mut u64, writes: usize) -> usize {
    if !WRITES_ONE_BY_ONE {
        return 0;
    }
    let lines = (region.bytes() / LINE) as u128;
    let mut random = *order | 1;
    for _ in 0..writes {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let line = ((u128::from(random) * lines) >> 64) as usize;
        // SAFETY: the line is within the region, to which the caller has the only reference.
        unsafe { write_and_wait(region.start().add(line * LINE)) };
    }
    *order = random;
    writes
}

/// Four stores fill a line, which leaves the CPU at once as a whole.
///
/// # Safety
/// The line is memory that nobody else uses, aligned to its size.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn write_and_wait(line: *mut u8) {
    // SAFETY: the caller's promise; every x86-64 CPU has these registers.
    unsafe {
        core::arch::asm!(
            "pcmpeqd xmm0, xmm0",
            "movntps [{line}], xmm0",
            "movntps [{line} + 16], xmm0",
            "movntps [{line} + 32], xmm0",
            "movntps [{line} + 48], xmm0",
            "mfence",
            line = in(reg) line,
            out("xmm0") _,
            options(nostack),
        );
    }
}

/// # Safety
/// As above.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
unsafe fn write_and_wait(line: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!(
            "movi v0.16b, #255",
            "stnp q0, q0, [{line}]",
            "stnp q0, q0, [{line}, #32]",
            "dsb st",
            line = in(reg) line,
            out("v0") _,
            options(nostack),
        );
    }
}

/// # Safety
/// It does nothing.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn write_and_wait(_: *mut u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_written_all_over_the_region() {
        let bytes = 1 << 16;
        let mut region = Region::map(bytes).unwrap();
        let mut order = 1;
        let written =
            |region: &Region| region.doubles().iter().filter(|word| word.to_bits() == u64::MAX).count();
        let first = write_one_by_one(&mut region, &mut order, 10);
        if !WRITES_ONE_BY_ONE {
            assert_eq!((first, written(&region)), (0, 0));
            return;
        }
        let words = written(&region);
        // In random order, a line can be written twice.
        assert!(
            first == 10 && words % (LINE / 8) == 0 && (5..=10).contains(&(words / (LINE / 8))),
            "{words}"
        );
        write_one_by_one(&mut region, &mut order, 20 * bytes / LINE);
        assert_eq!(written(&region), bytes / 8);
    }
}
