//! What sensors read: a machine, and the observed processes.

use crate::SampleSource;
use numakit_model::Topology;
use numakit_processes::ChosenProcesses;
use numakit_sys::{SysRoot, clock};
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
    /// Samples of everything that runs on the machine, if they are asked for.
    pub machine_samples: Option<&'a SampleSource>,
}

impl<'a> Scene<'a> {
    /// A machine without observed processes.
    pub fn new(root: &'a SysRoot, topology: &'a Topology) -> Self {
        Self { root, topology, target: None, machine_samples: None }
    }

    /// The same machine with this process tree observed.
    pub fn observing(self, target: Option<&'a Target>) -> Self {
        Self { target, ..self }
    }

    /// The same, with everything that runs on it sampled.
    pub fn sampling_all(self, machine_samples: Option<&'a SampleSource>) -> Self {
        Self { machine_samples, ..self }
    }

    /// The samples of the observed processes, or of the machine if none are observed.
    pub fn samples(&self) -> Option<&'a SampleSource> {
        self.target.map_or(self.machine_samples, Target::samples)
    }
}

/// The roots of observed process trees. Clones share them, so that a command can be started after
/// the sensors are selected.
#[derive(Debug, Clone)]
pub struct Target {
    pid: Arc<AtomicI64>,
    /// Others beside that one.
    others: Arc<[u32]>,
    /// The choice that they belong to, if others may join.
    chosen: Option<ChosenProcesses>,
    samples: Option<SampleSource>,
}

impl Target {
    fn new(pid: i64) -> Self {
        Self { pid: Arc::new(AtomicI64::new(pid)), others: Arc::new([]), chosen: None, samples: None }
    }

    /// A running process.
    pub fn running(pid: u32) -> Self {
        Self::new(i64::from(pid))
    }

    /// Running processes, and those that join them; `None` if there are none.
    pub fn chosen(chosen: &ChosenProcesses) -> Option<Self> {
        let (first, others) = chosen.numbers().split_first()?;
        let growing = chosen.may_grow().then(|| chosen.clone());
        Some(Self { others: others.into(), chosen: growing, ..Self::running(*first) })
    }

    /// The processes that belong to the choice now, if it is time for a look. Each clone looks for itself.
    pub fn joined(&mut self, root: &SysRoot) -> Vec<u32> {
        self.chosen.as_mut().and_then(|chosen| chosen.look(root, &clock::monotonic)).unwrap_or_default()
    }

    /// A command that is started later.
    pub fn awaited() -> Self {
        Self::new(-1)
    }

    /// Its threads are sampled, or cannot be.
    pub fn sampled(self, samples: SampleSource) -> Self {
        Self { samples: Some(samples), ..self }
    }

    /// The samples of its threads.
    pub fn samples(&self) -> Option<&SampleSource> {
        self.samples.as_ref()
    }

    /// The command was started.
    pub fn started(&self, pid: u32) {
        self.pid.store(i64::from(pid), Ordering::Release);
    }

    /// All of the processes; `None` before the command was started.
    pub fn pids(&self) -> Option<Vec<u32>> {
        Some([&[self.pid()?], &*self.others].concat())
    }

    /// The first process; `None` before it was started.
    pub fn pid(&self) -> Option<u32> {
        u32::try_from(self.pid.load(Ordering::Acquire)).ok()
    }
}
