//! What sensors read: a machine, and the observed processes.

use numakit_model::{Topology, Unavailable};
use numakit_sampling::{Landing, Road};
use numakit_sys::SysRoot;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// How threads of the observed processes are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingPlan {
    /// Where the samples land.
    pub landing: Landing,
    /// Samples per second of CPU time of a thread.
    pub frequency: u32,
}

/// The root of an observed process tree. Clones share it, so that a command can be started after
/// the sensors are selected.
#[derive(Debug, Clone)]
pub struct Target {
    pid: Arc<AtomicI64>,
    /// Whether its threads are sampled, and why not.
    sampling: Option<Result<SamplingPlan, Unavailable>>,
    /// The open road to the samples, until a sensor takes it.
    road: Arc<Mutex<Option<Box<dyn Road>>>>,
}

impl Target {
    fn new(pid: i64) -> Self {
        Self { pid: Arc::new(AtomicI64::new(pid)), sampling: None, road: Arc::default() }
    }

    /// A running process.
    pub fn running(pid: u32) -> Self {
        Self::new(i64::from(pid))
    }

    /// A command that is started later.
    pub fn awaited() -> Self {
        Self::new(-1)
    }

    /// Its threads are sampled, or cannot be. [`Self::attach`] follows when it is started.
    pub fn sampled(self, plan: Result<SamplingPlan, Unavailable>) -> Self {
        Self { sampling: Some(plan), ..self }
    }

    /// Whether its threads are sampled.
    pub fn sampling(&self) -> Option<&Result<SamplingPlan, Unavailable>> {
        self.sampling.as_ref()
    }

    /// Hands over the road to the samples.
    pub fn attach(&self, road: Box<dyn Road>) {
        *self.road() = Some(road);
    }

    /// Takes the road, if it is there.
    pub fn take_road(&self) -> Option<Box<dyn Road>> {
        self.road().take()
    }

    /// Nothing in it is left half done by a panic.
    fn road(&self) -> MutexGuard<'_, Option<Box<dyn Road>>> {
        self.road.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command was started.
    pub fn started(&self, pid: u32) {
        self.pid.store(i64::from(pid), Ordering::Release);
    }

    /// The process; `None` before it was started.
    pub fn pid(&self) -> Option<u32> {
        u32::try_from(self.pid.load(Ordering::Acquire)).ok()
    }
}
