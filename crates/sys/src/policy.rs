//! Memory policies: the nodes on which the kernel allocates a process's pages.

use crate::check;
use numakit_model::CpuSet;
use numakit_model::plan::{Memory, Mode};
use std::io;

/// Space for 1024 nodes, the kernel's maximum.
const WORDS: usize = 16;
/// The kernel uses one bit less than this number.
const BITS: libc::c_ulong = (WORDS as libc::c_ulong) * 64 + 1;

/// A policy as the kernel takes it. Setting it does not allocate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPolicy {
    mode: i32,
    nodes: [u64; WORDS],
}

const MPOL_DEFAULT: i32 = 0;
const MPOL_PREFERRED: i32 = 1;
const MPOL_BIND: i32 = 2;
const MPOL_INTERLEAVE: i32 = 3;
const MPOL_PREFERRED_MANY: i32 = 5;
const MPOL_WEIGHTED_INTERLEAVE: i32 = 6;

impl MemoryPolicy {
    fn new(mode: i32, nodes: &CpuSet) -> Self {
        let mut words = [0; WORDS];
        for node in nodes.iter().filter(|&node| (node as usize) < WORDS * 64) {
            words[node as usize / 64] |= 1 << (node % 64);
        }
        Self { mode, nodes: words }
    }

    /// The kernel's default: first touch.
    pub fn local() -> Self {
        Self::new(MPOL_DEFAULT, &CpuSet::new())
    }

    /// Allocates from this node as long as it has free memory, then from others.
    pub fn preferred(node: u32) -> Self {
        Self::new(MPOL_PREFERRED, &CpuSet::range(node, node))
    }

    /// Allocates from these nodes only.
    pub fn bind(nodes: &CpuSet) -> Self {
        Self::new(MPOL_BIND, nodes)
    }

    /// The policy of a plan.
    pub fn of(memory: &Memory) -> Self {
        let mode = match memory.mode {
            Mode::Local => return Self::local(),
            Mode::Bind => MPOL_BIND,
            Mode::Prefer if memory.nodes.len() > 1 => MPOL_PREFERRED_MANY,
            Mode::Prefer => MPOL_PREFERRED,
            Mode::Interleave => MPOL_INTERLEAVE,
            Mode::Weighted => MPOL_WEIGHTED_INTERLEAVE,
        };
        Self::new(mode, &memory.nodes)
    }

    /// The option of numactl that sets this policy; `None` for the default.
    pub fn numactl(&self) -> Option<String> {
        let option = match self.mode {
            MPOL_PREFERRED => "--preferred",
            MPOL_PREFERRED_MANY => "--preferred-many",
            MPOL_BIND => "--membind",
            MPOL_INTERLEAVE => "--interleave",
            MPOL_WEIGHTED_INTERLEAVE => "--weighted-interleave",
            _ => return None,
        };
        let nodes =
            (0..WORDS as u32 * 64).filter(|node| self.nodes[*node as usize / 64] >> (node % 64) & 1 == 1);
        Some(format!("{option}={}", nodes.collect::<CpuSet>()))
    }

    /// Sets it for the calling thread; children inherit it, also across exec.
    pub fn set(&self) -> io::Result<()> {
        let (nodes, bits) = match self.mode {
            MPOL_DEFAULT => (std::ptr::null(), 0),
            _ => (self.nodes.as_ptr(), BITS),
        };
        // SAFETY: the mask has this length.
        check(unsafe { libc::syscall(libc::SYS_set_mempolicy, self.mode, nodes, bits) }).map(drop)
    }

    /// The policy of the calling thread.
    pub fn current() -> io::Result<Self> {
        let (mut mode, mut nodes) = (0i32, [0u64; WORDS]);
        // SAFETY: both variables outlive the call, and the mask has this length.
        check(unsafe {
            libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, nodes.as_mut_ptr(), BITS - 1, 0, 0)
        })?;
        // The upper bits are flags.
        Ok(Self { mode, nodes })
    }

    /// Whether the kernel accepts it: sets it for the calling thread, then restores the previous one.
    pub fn attempt(&self) -> io::Result<()> {
        let before = Self::current()?;
        self.set()?;
        before.set()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(mode: Mode, nodes: &str) -> Memory {
        Memory { mode, nodes: nodes.parse().unwrap() }
    }

    #[test]
    fn a_policy_is_set_and_read_back() {
        let before = MemoryPolicy::current().unwrap();
        for mode in [Mode::Prefer, Mode::Bind, Mode::Interleave] {
            let policy = MemoryPolicy::of(&memory(mode, "0"));
            policy.attempt().unwrap();
            assert_eq!(MemoryPolicy::current().unwrap(), before);
            policy.set().unwrap();
            assert_eq!(MemoryPolicy::current().unwrap(), policy, "{mode}");
            before.set().unwrap();
        }
        MemoryPolicy::local().set().unwrap();
        assert_eq!(MemoryPolicy::current().unwrap(), MemoryPolicy::local());
    }

    #[test]
    fn nodes_that_are_not_there_are_refused() {
        for mode in [Mode::Prefer, Mode::Bind, Mode::Interleave] {
            assert!(MemoryPolicy::of(&memory(mode, "900")).attempt().is_err(), "{mode}");
        }
        assert!(MemoryPolicy::of(&memory(Mode::Bind, "")).attempt().is_err());
    }

    #[test]
    fn several_preferred_nodes_are_a_mode_of_their_own() {
        assert_eq!(MemoryPolicy::of(&memory(Mode::Prefer, "0-1")).mode, MPOL_PREFERRED_MANY);
        assert_eq!(MemoryPolicy::of(&memory(Mode::Prefer, "1")), MemoryPolicy::preferred(1));
        assert_eq!(MemoryPolicy::of(&memory(Mode::Local, "0-1")), MemoryPolicy::local());
        assert_eq!(
            MemoryPolicy::of(&memory(Mode::Bind, "0-1,70")).numactl().as_deref(),
            Some("--membind=0-1,70")
        );
        assert_eq!(MemoryPolicy::local().numactl(), None);
    }
}
