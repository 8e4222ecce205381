//! A sample as the library wrote it. The observed program can write there as well: nothing in it is trusted.

use crate::shared_ring::layout::SLOT_WORDS;

/// General registers of a sample: x86-64 has 16, in the order of instruction encoding; AArch64 x0 to x30 and sp.
pub const GENERAL: usize = 32;
/// Maximum of bytes of a stack piece.
pub const STACK_BYTES: usize = 416;
/// Bytes of the stack piece that are below the stack pointer.
pub const BELOW_STACK: u64 = 128;

const STACK_AT: usize = 12 + GENERAL;
/// The kernel's limits.
const MAX_TASK: u64 = 1 << 22;
const MAX_CPUS: u32 = 1 << 16;
/// 36 years.
const MAX_TIME: u64 = 1 << 60;
const HAS_GS: u64 = 1;
const HAS_FAULTS: u64 = 2;

/// The processor architecture of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleArchitecture {
    /// x86-64.
    X86,
    /// AArch64.
    Arm,
}

/// What a thread was doing when its timer expired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingSample {
    /// Process, in the process's own PID namespace.
    pub process: u32,
    /// Thread, in the process's own PID namespace.
    pub thread: u32,
    /// Monotonic ns, in the process's own time namespace.
    pub time: u64,
    /// CPU time of the thread since its last sample, ns; `None` if the kernel did not tell it.
    pub cpu_time: Option<u64>,
    /// The part of `cpu_time` that the kernel used, ns.
    pub kernel_time: u64,
    /// The CPU that it ran on.
    pub cpu: Option<u32>,
    /// Expirations of the thread's timer since its last sample that have no sample of their own.
    pub overruns: u32,
    /// Page faults of the thread since its last sample; `None` if the kernel did not tell it.
    pub faults: Option<u32>,
    /// The architecture, which tells what the registers are.
    pub architecture: SampleArchitecture,
    /// Instruction pointer.
    pub ip: u64,
    /// Flags, or PSTATE.
    pub flags: u64,
    /// Base of `fs:`, or TPIDR.
    pub fs_base: u64,
    /// Base of `gs:`.
    pub gs_base: Option<u64>,
    /// General registers.
    pub general: [u64; GENERAL],
    /// Where the stack piece begins.
    pub stack_address: u64,
    stack: [u8; STACK_BYTES],
    stack_bytes: usize,
}

impl RingSample {
    /// The piece of the stack from `stack_address` on.
    pub fn stack(&self) -> &[u8] {
        &self.stack[..self.stack_bytes]
    }

    /// Parses the words of a slot; `None` if the library cannot have written them.
    pub fn parse(words: &[u64; SLOT_WORDS]) -> Option<Self> {
        let (process, thread) = (words[1] as u32, (words[1] >> 32) as u32);
        let (cpu, overruns) = (words[4] as u32, (words[4] >> 32) as u32);
        let (faults, known) = (words[5] as u32, words[5] >> 48);
        let architecture = match words[5] >> 32 & 0xffff {
            1 => SampleArchitecture::X86,
            2 => SampleArchitecture::Arm,
            _ => return None,
        };
        let is_task = |number: u32| (1..=MAX_TASK).contains(&u64::from(number));
        let is_sound = is_task(process)
            && is_task(thread)
            && (cpu < MAX_CPUS || cpu == u32::MAX)
            && known & !(HAS_GS | HAS_FAULTS) == 0
            && words[2] < MAX_TIME
            && words[3] < MAX_TIME
            && words[11] as u32 as usize <= STACK_BYTES;
        if !is_sound {
            return None;
        }
        let mut general = [0; GENERAL];
        general.copy_from_slice(&words[12..STACK_AT]);
        let mut stack = [0; STACK_BYTES];
        for (bytes, word) in stack.chunks_exact_mut(8).zip(&words[STACK_AT..]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Some(Self {
            process,
            thread,
            time: words[2],
            cpu_time: (known & HAS_FAULTS != 0).then_some(words[3]),
            kernel_time: (words[11] >> 32) * 1000,
            cpu: (cpu != u32::MAX).then_some(cpu),
            overruns,
            faults: (known & HAS_FAULTS != 0).then_some(faults),
            architecture,
            ip: words[6],
            flags: words[7],
            fs_base: words[8],
            gs_base: (known & HAS_GS != 0).then_some(words[9]),
            general,
            stack_address: words[10],
            stack,
            stack_bytes: words[11] as u32 as usize,
        })
    }
}
