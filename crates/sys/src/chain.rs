//! A chain of dependent loads at known addresses, in memory larger than the private caches: the program waits for loads
//! almost all of the time. Where the samples of this chain land shows what samples of other programs mean.

use crate::check;
use std::arch::asm;
use std::ffi::{c_int, c_void};
use std::io;
use std::time::Duration;

/// Loads in a round of the loop.
const LOADS: u64 = 4;
/// The number of instructions without effect before each load, and after it.
const PADDING: u64 = 8;

/// Bytes of an instruction without effect, and of a load.
#[cfg(target_arch = "x86_64")]
const LENGTHS: (u64, u64) = (1, 3);
#[cfg(not(target_arch = "x86_64"))]
const LENGTHS: (u64, u64) = (4, 4);

const GROUP: u64 = 2 * PADDING * LENGTHS.0 + LENGTHS.1;

/// Rounds of a call, some 20 us.
const ROUNDS: u64 = 64;

/// Calls of a child at most: a second or less, even if nobody ends it.
const CALLS: u64 = 1 << 14;

/// A place in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainSpot {
    /// The target of the jump that begins each round.
    BlockStart,
    /// A load.
    Load,
    /// The instruction behind a load.
    Behind,
    /// The instruction behind that.
    OneFurther,
    /// Another instruction of the loop.
    Padding,
    /// Outside of the loop.
    Outside,
}

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([u64; 8]);

/// The chain.
pub struct LoadChain {
    /// The first word of each line is the address of the next one.
    lines: Box<[Line]>,
    at: u64,
    loop_start: u64,
}

impl std::fmt::Debug for LoadChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoadChain of {} lines", self.lines.len())
    }
}

impl LoadChain {
    /// A chain through this much memory, each line once, in an order that no prefetcher guesses.
    pub fn new(bytes: usize) -> Self {
        let count = (bytes / size_of::<Line>()).max(2);
        let mut order: Vec<u32> = (0..count as u32).collect();
        // Sattolo's shuffle makes one cycle of all lines.
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for last in (1..count).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            order.swap(last, (random % last as u64) as usize);
        }
        let mut lines = vec![Line([0; 8]); count].into_boxed_slice();
        let start = lines.as_ptr() as u64;
        for (line, next) in lines.iter_mut().zip(order) {
            line.0[0] = start + u64::from(next) * size_of::<Line>() as u64;
        }
        // This round only tells where the loop is.
        let (at, loop_start) = follow(start, 1);
        Self { lines, at, loop_start }
    }

    /// Follows the chain for this long.
    pub fn run(&mut self, time: Duration) {
        let end = crate::clock::monotonic() + time.as_nanos() as u64;
        while crate::clock::monotonic() < end {
            self.at = follow(self.at, ROUNDS).0;
        }
    }

    /// What is at an address.
    pub fn spot(&self, ip: u64) -> ChainSpot {
        let Some(offset) = ip.checked_sub(self.loop_start).filter(|offset| *offset < GROUP * LOADS) else {
            return ChainSpot::Outside;
        };
        let (nop, load) = LENGTHS;
        let behind = PADDING * nop + load;
        match offset % GROUP {
            _ if offset == 0 => ChainSpot::BlockStart,
            at if at == PADDING * nop => ChainSpot::Load,
            at if at == behind => ChainSpot::Behind,
            at if at == behind + nop => ChainSpot::OneFurther,
            _ => ChainSpot::Padding,
        }
    }

    /// Follows the chain in a child process, which shares this memory and ends with the result, or after a second.
    pub fn in_child(&self) -> io::Result<ChainProcess<'_>> {
        let mut stack = vec![0u8; 64 << 10];
        let top = stack.as_mut_ptr_range().end.map_addr(|address| address & !15);
        let at = Box::new(self.at);
        let child = crate::image::without_signals(|| {
            // SAFETY: only the child uses the stack; it reads the address and the lines, which outlive it, as its owner
            // reaps it before they are dropped. It calls nothing that needs thread-local storage.
            check(unsafe {
                libc::clone(
                    follow_in_child,
                    top.cast(),
                    libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_FS,
                    (&raw const *at).cast_mut().cast(),
                )
            } as i64)
        })?;
        Ok(ChainProcess { process: child as u32, _stack: stack, _at: at, _chain: self })
    }
}

/// A child that follows a chain. Dropping it ends and reaps it.
#[derive(Debug)]
pub struct ChainProcess<'a> {
    process: u32,
    _stack: Vec<u8>,
    _at: Box<u64>,
    _chain: &'a LoadChain,
}

impl ChainProcess<'_> {
    /// Its PID.
    pub fn id(&self) -> u32 {
        self.process
    }
}

impl Drop for ChainProcess<'_> {
    fn drop(&mut self) {
        let _ = crate::supervise::send(self.process, libc::SIGKILL);
        // Stops of a traced child may come before its end.
        loop {
            let mut status = 0;
            // SAFETY: the status outlives the call.
            let reaped = unsafe { libc::waitpid(self.process as i32, &mut status, libc::__WALL) };
            let interrupted = reaped < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
            if !interrupted && (reaped < 0 || libc::WIFEXITED(status) || libc::WIFSIGNALED(status)) {
                return;
            }
        }
    }
}

extern "C" fn follow_in_child(at: *mut c_void) -> c_int {
    // SAFETY: `in_child` passes the address of a number that outlives the child.
    let mut at = unsafe { *at.cast::<u64>() };
    for _ in 0..CALLS {
        at = follow(at, ROUNDS).0;
    }
    0
}

/// Follows a chain from a line for some rounds. Returns the line that it reached, and the address of the loop. It is not
/// inlined, so that there is only one such loop.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn follow(from: u64, rounds: u64) -> (u64, u64) {
    let (at, start);
    // SAFETY: each line contains the address of a line of the same chain, and nothing is written.
    unsafe {
        asm!(
            ".p2align 7",
            "2:",
            ".rept 4",
            ".rept 8",
            "nop",
            ".endr",
            "mov rax, qword ptr [rax]",
            ".rept 8",
            "nop",
            ".endr",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            "lea {start}, [rip + 2b]",
            rounds = inout(reg) rounds.max(1) => _,
            start = out(reg) start,
            inout("rax") from => at,
            options(nostack, readonly),
        );
    }
    (at, start)
}

#[cfg(target_arch = "aarch64")]
#[inline(never)]
fn follow(from: u64, rounds: u64) -> (u64, u64) {
    let (at, start);
    // SAFETY: each line contains the address of a line of the same chain, and nothing is written.
    unsafe {
        asm!(
            ".p2align 7",
            "2:",
            ".rept 4",
            ".rept 8",
            "nop",
            ".endr",
            "ldr {at}, [{at}]",
            ".rept 8",
            "nop",
            ".endr",
            ".endr",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            "adr {start}, 2b",
            rounds = inout(reg) rounds.max(1) => _,
            start = out(reg) start,
            at = inout(reg) from => at,
            options(nostack, readonly),
        );
    }
    (at, start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_visits_every_line() {
        let mut chain = LoadChain::new(64 << 10);
        let start = chain.lines.as_ptr() as u64;
        let (mut at, mut seen) = (start, 0);
        loop {
            at = chain.lines[((at - start) / 64) as usize].0[0];
            seen += 1;
            if at == start {
                break;
            }
        }
        assert_eq!(seen, (64 << 10) / 64);
        let before = chain.at;
        // A call makes a quarter of the way, so that some number of calls ends where it began.
        assert_ne!(follow(before, ROUNDS).0, before);
        chain.run(Duration::from_millis(1));
        assert!(chain.at >= start && (chain.at - start).is_multiple_of(64) && chain.at - start < 64 << 10);
    }

    #[test]
    fn the_code_is_where_it_is_said_to_be() {
        let chain = LoadChain::new(4096);
        let length = (GROUP * LOADS) as usize;
        // SAFETY: the code of this function is in memory and can be read.
        let code = unsafe { std::slice::from_raw_parts(chain.loop_start as *const u8, length) };
        let spots = |spot: ChainSpot| {
            (0..length).filter(|&at| chain.spot(chain.loop_start + at as u64) == spot).collect::<Vec<_>>()
        };
        for load in spots(ChainSpot::Load) {
            #[cfg(target_arch = "x86_64")]
            assert_eq!(code[load..load + 3], [0x48, 0x8b, 0x00], "{load}");
            assert_eq!(code[load - LENGTHS.0 as usize..load], code[..LENGTHS.0 as usize]);
        }
        assert_eq!((spots(ChainSpot::Load).len(), spots(ChainSpot::Behind).len()), (4, 4));
        assert_eq!((spots(ChainSpot::BlockStart), spots(ChainSpot::OneFurther).len()), (vec![0], 4));
        assert_eq!(chain.spot(chain.loop_start - 1), ChainSpot::Outside);
        assert_eq!(chain.spot(chain.loop_start + length as u64), ChainSpot::Outside);
    }

    #[test]
    fn a_child_follows_the_chain_and_leaves_nothing_behind() {
        let chain = LoadChain::new(4096);
        let child = chain.in_child().unwrap();
        let id = child.id();
        assert!(crate::proc::TaskDir::of(&crate::SysRoot::host(), id).exists());
        drop(child);
        assert!(!crate::proc::TaskDir::of(&crate::SysRoot::host(), id).exists());
    }
}
