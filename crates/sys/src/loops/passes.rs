//! Passes over memory that read, write or copy it. The loops are assembly: a compiler would leave out loads whose values
//! nobody uses, and would choose the stores itself.

use super::Region;

/// All lengths are multiples of this many bytes; what is left of a region is not touched.
pub const BLOCK: usize = 512;

/// The registers through which memory is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vectors {
    /// General registers: the fallback.
    Plain,
    /// 16 bytes of x86.
    Sse2,
    /// 16 bytes of Arm.
    Neon,
    /// 32 bytes.
    Avx2,
    /// 64 bytes.
    Avx512,
}

impl Vectors {
    /// All kinds of registers, the widest first.
    const ALL: [Self; 5] = [Self::Avx512, Self::Avx2, Self::Sse2, Self::Neon, Self::Plain];

    /// The kinds of registers that this CPU has, the widest first.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|vectors| vectors.is_available()).collect()
    }

    fn is_available(self) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => std::is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            _ => false,
        }
    }

    /// The widest.
    pub fn widest() -> Self {
        Self::available().first().copied().unwrap_or(Self::Plain)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Sse2 => "SSE2",
            Self::Neon => "NEON",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
        }
    }

    /// These registers if the CPU has them, else [`Self::Plain`].
    pub(super) fn checked(self) -> Self {
        if self.is_available() { self } else { Self::Plain }
    }

    /// Whether its stores can bypass the caches.
    pub fn bypasses(self) -> bool {
        self != Self::Plain
    }
}

/// Bytes of a region that passes touch.
fn whole(region: &Region) -> usize {
    region.bytes() / BLOCK * BLOCK
}

/// Calls the function of these registers: for x86 widest first, for Arm, and for others.
macro_rules! with {
    ($vectors:ident, [$wide:ident, $half:ident, $narrow:ident], $arm:ident, $plain:ident, $arguments:tt) => {
        match $vectors.checked() {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => x86::$wide $arguments,
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => x86::$half $arguments,
            #[cfg(target_arch = "x86_64")]
            Vectors::Sse2 => x86::$narrow $arguments,
            #[cfg(target_arch = "aarch64")]
            Vectors::Neon => arm::$arm $arguments,
            _ => plain::$plain $arguments,
        }
    };
}

/// Reads all of a region; returns the number of bytes.
pub fn read(region: &Region, vectors: Vectors) -> usize {
    let (start, bytes) = (region.start(), whole(region));
    // SAFETY: the region has these bytes, its start is aligned to a page, and the CPU has these registers.
    unsafe {
        match vectors.checked() {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => x86::read_512(start, start, bytes),
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => x86::read_256(start, start, bytes),
            #[cfg(target_arch = "x86_64")]
            Vectors::Sse2 => x86::read_128(start, start, bytes),
            #[cfg(target_arch = "aarch64")]
            Vectors::Neon => arm::read(start, bytes),
            _ => plain::read(start, bytes),
        }
    }
    bytes
}

/// Fills all of a region with one byte; returns the number of bytes.
pub fn write(region: &mut Region, value: u8, vectors: Vectors) -> usize {
    let (start, bytes, from) = (region.start(), whole(region), Pattern([value; 64]));
    let from = from.0.as_ptr().cast_mut();
    // SAFETY: as in `read`, and the reference to the region is the only one; the pattern is aligned and as long as a
    // register.
    unsafe { with!(vectors, [write_512, write_256, write_128], write, write, (from, start, bytes)) }
    bytes
}

/// Fills a region as [`write()`] does, with stores that bypass the caches; with ordinary ones if [`Vectors::bypasses`] says
/// no.
pub fn write_past_caches(region: &mut Region, value: u8, vectors: Vectors) -> usize {
    let (start, bytes, from) = (region.start(), whole(region), Pattern([value; 64]));
    let from = from.0.as_ptr().cast_mut();
    // SAFETY: as in `write`.
    unsafe { with!(vectors, [past_512, past_256, past_128], past, write, (from, start, bytes)) }
    bytes
}

/// Copies as much as both have; returns the number of bytes that were read, which is that of bytes written.
pub fn copy(from: &Region, to: &mut Region, vectors: Vectors) -> usize {
    let (source, start, bytes) = (from.start(), to.start(), whole(from).min(whole(to)));
    // SAFETY: both have these bytes, and are different as one is borrowed to be written.
    unsafe { with!(vectors, [copy_512, copy_256, copy_128], copy, copy, (source, start, bytes)) }
    bytes
}

/// Copies as [`copy()`] does, with stores that bypass the caches; with ordinary ones if [`Vectors::bypasses`] says no.
pub fn copy_past_caches(from: &Region, to: &mut Region, vectors: Vectors) -> usize {
    let (source, start, bytes) = (from.start(), to.start(), whole(from).min(whole(to)));
    // SAFETY: as in `copy`.
    unsafe {
        with!(vectors, [copy_past_512, copy_past_256, copy_past_128], copy_past, copy, (source, start, bytes))
    }
    bytes
}

/// The bytes that are written: as long and as aligned as the widest register.
#[repr(align(64))]
struct Pattern([u8; 64]);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::asm;

    /// Functions of source, target and length in bytes, which is a multiple of eight vectors. The
    /// first and the last template are run once, the others for eight vectors.
    macro_rules! pass {
        ($name:ident, $width:literal, [$($first:literal)?], [$($each:expr),*], [$($last:literal)?]) => {
            /// # Safety
            /// Both have these bytes and are aligned to a vector, and the CPU has such vectors.
            pub unsafe fn $name(from: *mut u8, to: *mut u8, bytes: usize) {
                if bytes == 0 {
                    return;
                }
                // SAFETY: the caller's promise; the loop ends after these bytes.
                unsafe {
                    asm!(
                        $($first,)?
                        "2:",
                        $($each,)*
                        "add {from}, {step}",
                        "add {to}, {step}",
                        "cmp {to}, {end}",
                        "jne 2b",
                        $($last,)?
                        from = inout(reg) from => _,
                        to = inout(reg) to => _,
                        end = in(reg) to.add(bytes),
                        w = const $width,
                        step = const 8 * $width,
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                        out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                        options(nostack),
                    );
                }
            }
        };
    }

    macro_rules! reads {
        ($name:ident, $width:literal, $move:literal, $register:literal $(, $last:literal)?) => {
            pass!($name, $width, [], [
                concat!($move, " ", $register, "0, [{to}]"),
                concat!($move, " ", $register, "1, [{to} + {w}]"),
                concat!($move, " ", $register, "2, [{to} + 2 * {w}]"),
                concat!($move, " ", $register, "3, [{to} + 3 * {w}]"),
                concat!($move, " ", $register, "4, [{to} + 4 * {w}]"),
                concat!($move, " ", $register, "5, [{to} + 5 * {w}]"),
                concat!($move, " ", $register, "6, [{to} + 6 * {w}]"),
                concat!($move, " ", $register, "7, [{to} + 7 * {w}]")
            ], [$($last)?]);
        };
    }

    macro_rules! writes {
        ($name:ident, $width:literal, $first:literal, $move:literal, $register:literal $(, $last:literal)?) => {
            pass!($name, $width, [$first], [
                concat!($move, " [{to}], ", $register, "0"),
                concat!($move, " [{to} + {w}], ", $register, "0"),
                concat!($move, " [{to} + 2 * {w}], ", $register, "0"),
                concat!($move, " [{to} + 3 * {w}], ", $register, "0"),
                concat!($move, " [{to} + 4 * {w}], ", $register, "0"),
                concat!($move, " [{to} + 5 * {w}], ", $register, "0"),
                concat!($move, " [{to} + 6 * {w}], ", $register, "0"),
                concat!($move, " [{to} + 7 * {w}], ", $register, "0")
            ], [$($last)?]);
        };
    }

    macro_rules! copies {
        ($name:ident, $width:literal, $load:literal, $store:literal, $register:literal $(, $last:literal)?) => {
            pass!($name, $width, [], [
                concat!($load, " ", $register, "0, [{from}]"),
                concat!($load, " ", $register, "1, [{from} + {w}]"),
                concat!($load, " ", $register, "2, [{from} + 2 * {w}]"),
                concat!($load, " ", $register, "3, [{from} + 3 * {w}]"),
                concat!($store, " [{to}], ", $register, "0"),
                concat!($store, " [{to} + {w}], ", $register, "1"),
                concat!($store, " [{to} + 2 * {w}], ", $register, "2"),
                concat!($store, " [{to} + 3 * {w}], ", $register, "3"),
                concat!($load, " ", $register, "4, [{from} + 4 * {w}]"),
                concat!($load, " ", $register, "5, [{from} + 5 * {w}]"),
                concat!($load, " ", $register, "6, [{from} + 6 * {w}]"),
                concat!($load, " ", $register, "7, [{from} + 7 * {w}]"),
                concat!($store, " [{to} + 4 * {w}], ", $register, "4"),
                concat!($store, " [{to} + 5 * {w}], ", $register, "5"),
                concat!($store, " [{to} + 6 * {w}], ", $register, "6"),
                concat!($store, " [{to} + 7 * {w}], ", $register, "7")
            ], [$($last)?]);
        };
    }

    reads!(read_512, 64, "vmovaps", "zmm", "vzeroupper");
    reads!(read_256, 32, "vmovaps", "ymm", "vzeroupper");
    reads!(read_128, 16, "movaps", "xmm");
    writes!(write_512, 64, "vmovaps zmm0, [{from}]", "vmovaps", "zmm", "vzeroupper");
    writes!(write_256, 32, "vmovaps ymm0, [{from}]", "vmovaps", "ymm", "vzeroupper");
    writes!(write_128, 16, "movaps xmm0, [{from}]", "movaps", "xmm");
    writes!(past_512, 64, "vmovaps zmm0, [{from}]", "vmovntps", "zmm", "sfence\nvzeroupper");
    writes!(past_256, 32, "vmovaps ymm0, [{from}]", "vmovntps", "ymm", "sfence\nvzeroupper");
    writes!(past_128, 16, "movaps xmm0, [{from}]", "movntps", "xmm", "sfence");
    copies!(copy_512, 64, "vmovaps", "vmovaps", "zmm", "vzeroupper");
    copies!(copy_256, 32, "vmovaps", "vmovaps", "ymm", "vzeroupper");
    copies!(copy_128, 16, "movaps", "movaps", "xmm");
    copies!(copy_past_512, 64, "vmovaps", "vmovntps", "zmm", "sfence\nvzeroupper");
    copies!(copy_past_256, 32, "vmovaps", "vmovntps", "ymm", "sfence\nvzeroupper");
    copies!(copy_past_128, 16, "movaps", "movntps", "xmm", "sfence");
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use core::arch::asm;

    /// Functions of source, target and length in bytes, which is a multiple of 64.
    macro_rules! pass {
        ($name:ident, [$($first:literal)?], [$($each:literal),*]) => {
            /// # Safety
            /// Both have these bytes and are aligned to 16.
            unsafe fn $name(from: *mut u8, to: *mut u8, bytes: usize) {
                if bytes == 0 {
                    return;
                }
                // SAFETY: the caller's promise; the loop ends after these bytes.
                unsafe {
                    asm!(
                        $($first,)?
                        "2:",
                        $($each,)*
                        "add {from}, {from}, #64",
                        "add {to}, {to}, #64",
                        "cmp {to}, {end}",
                        "b.ne 2b",
                        from = inout(reg) from => _,
                        to = inout(reg) to => _,
                        end = in(reg) to.add(bytes),
                        out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                        options(nostack),
                    );
                }
            }
        };
    }

    pass!(reading, [], ["ldp q0, q1, [{to}]", "ldp q2, q3, [{to}, #32]"]);
    pass!(writing, ["ldr q0, [{from}]"], ["stp q0, q0, [{to}]", "stp q0, q0, [{to}, #32]"]);
    pass!(passing, ["ldr q0, [{from}]"], ["stnp q0, q0, [{to}]", "stnp q0, q0, [{to}, #32]"]);
    pass!(
        copying,
        [],
        [
            "ldp q0, q1, [{from}]",
            "ldp q2, q3, [{from}, #32]",
            "stp q0, q1, [{to}]",
            "stp q2, q3, [{to}, #32]"
        ]
    );

    pass!(
        copying_past,
        [],
        [
            "ldp q0, q1, [{from}]",
            "ldp q2, q3, [{from}, #32]",
            "stnp q0, q1, [{to}]",
            "stnp q2, q3, [{to}, #32]"
        ]
    );

    pub unsafe fn read(start: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { reading(start, start, bytes) }
    }

    pub unsafe fn write(from: *mut u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { writing(from, to, bytes) }
    }

    pub unsafe fn past(from: *mut u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { passing(from, to, bytes) }
    }

    pub unsafe fn copy(from: *mut u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { copying(from, to, bytes) }
    }

    pub unsafe fn copy_past(from: *mut u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { copying_past(from, to, bytes) }
    }
}

/// Word by word.
mod plain {
    /// # Safety
    /// There are these bytes, aligned to a word.
    pub unsafe fn read(start: *mut u8, bytes: usize) {
        let mut sum = 0u64;
        for at in (0..bytes).step_by(8) {
            // SAFETY: the caller's promise.
            sum ^= unsafe { start.add(at).cast::<u64>().read() };
        }
        std::hint::black_box(sum);
    }

    /// # Safety
    /// As above; the pattern is a word or longer.
    pub unsafe fn write(from: *mut u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise.
        let word = unsafe { from.cast::<u64>().read() };
        for at in (0..bytes).step_by(8) {
            // SAFETY: the caller's promise.
            unsafe { to.add(at).cast::<u64>().write(word) };
        }
        std::hint::black_box(to);
    }

    /// # Safety
    /// Both have these bytes, aligned to a word, and do not overlap.
    pub unsafe fn copy(from: *mut u8, to: *mut u8, bytes: usize) {
        for at in (0..bytes).step_by(8) {
            // SAFETY: the caller's promise.
            unsafe { to.add(at).cast::<u64>().write(from.add(at).cast::<u64>().read()) };
        }
        std::hint::black_box(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault_cost::own_faults;
    use crate::loops::Advice;

    fn bytes(region: &Region) -> Vec<u8> {
        region.doubles().iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn every_vector_writes_and_copies_every_byte() {
        for vectors in Vectors::available() {
            for length in [4096, 3 << 12] {
                let (mut one, mut two) = (Region::map(length).unwrap(), Region::map(length).unwrap());
                assert_eq!(write(&mut one, 7, vectors), length);
                assert!(bytes(&one).iter().all(|byte| *byte == 7), "{vectors:?}");
                assert_eq!(write_past_caches(&mut one, 9, vectors), length);
                assert!(bytes(&one).iter().all(|byte| *byte == 9), "{vectors:?}");
                one.doubles_mut().iter_mut().enumerate().for_each(|(at, value)| *value = at as f64);
                assert_eq!((read(&one, vectors), copy(&one, &mut two, vectors)), (length, length));
                assert_eq!(bytes(&one), bytes(&two), "{vectors:?}");
                two.doubles_mut().fill(0.0);
                assert_eq!(copy_past_caches(&one, &mut two, vectors), length);
                assert_eq!(bytes(&one), bytes(&two), "{vectors:?}");
            }
        }
    }

    #[test]
    fn a_copy_is_as_long_as_the_shorter_one() {
        let (mut one, mut two) = (Region::map(4096).unwrap(), Region::map(8192).unwrap());
        one.doubles_mut().fill(1.0);
        assert_eq!(copy(&one, &mut two, Vectors::widest()), 4096);
        assert_eq!(two.doubles().iter().sum::<f64>(), 512.0);
    }

    #[test]
    fn a_read_touches_every_page() {
        for vectors in Vectors::available() {
            let mut region = Region::map(64 * crate::sched::page_size() as usize).unwrap();
            region.advise(Advice::Small).unwrap();
            let before = own_faults();
            read(&region, vectors);
            let faults = own_faults() - before;
            assert!((64..128).contains(&faults), "{vectors:?}: {faults}");
        }
    }

    #[test]
    fn registers_that_the_cpu_lacks_are_not_used() {
        let lacking = if cfg!(target_arch = "x86_64") { Vectors::Neon } else { Vectors::Avx512 };
        let mut region = Region::map(4096).unwrap();
        assert_eq!(write(&mut region, 1, lacking), 4096);
        assert!(
            Vectors::available().contains(&Vectors::widest()) && !Vectors::available().contains(&lacking)
        );
    }
}
