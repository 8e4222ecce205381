//! What sensors read: a machine, and the observed processes.

use numakit_model::Topology;
use numakit_sys::SysRoot;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A machine, and the observed processes.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// Its files and counters.
    pub root: &'a SysRoot,
    /// Its topology.
    pub topology: &'a Topology,
    /// The process tree to observe, if any.
    pub target: Option<&'a Target>,
}

impl<'a> Scene<'a> {
    /// A machine without observed processes.
    pub fn new(root: &'a SysRoot, topology: &'a Topology) -> Self {
        Self { root, topology, target: None }
    }

    /// The same machine with this process tree observed.
    pub fn observing(self, target: Option<&'a Target>) -> Self {
        Self { target, ..self }
    }
}

/// The root of an observed process tree. Clones share it, so that a command can be started after
/// the sensors are selected.
#[derive(Debug, Clone)]
pub struct Target(Arc<AtomicI64>);

impl Target {
    /// A running process.
    pub fn running(pid: u32) -> Self {
        Self(Arc::new(AtomicI64::new(i64::from(pid))))
    }

    /// A command that is started later.
    pub fn awaited() -> Self {
        Self(Arc::new(AtomicI64::new(-1)))
    }

    /// The command was started.
    pub fn started(&self, pid: u32) {
        self.0.store(i64::from(pid), Ordering::Release);
    }

    /// The process; `None` before it was started.
    pub fn pid(&self) -> Option<u32> {
        u32::try_from(self.0.load(Ordering::Acquire)).ok()
    }
}
