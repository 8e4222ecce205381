//! The answer: where the time of a program's threads went, and which code and lines it belongs to.

use crate::account::ThreadTimes;
use crate::caches::CacheSizes;
use crate::code::{self, CodeNames, CodeTime, PlaceTimes};
use crate::contended::{self, ContendedLine, SampleRate};
use crate::explained::CodeShare;
use crate::flame::{self, ChainValues};
use crate::object_use::{self, ObjectUse};
use crate::observation::Observation;
use crate::place::{Places, TimePlace};
use crate::python::PythonTime;
use crate::ranks::RankTime;
use crate::share::ShareEstimate;
use crate::sharing::ThreadSharing;
use crate::spins::Spins;
use crate::teams::TeamTime;
use crate::traffic::Traffic;
use crate::waits::ThreadWaits;
use numakit_sampling::operand::RecoveryRule;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// What is known beside the samples.
#[derive(Debug, Clone, Default)]
pub struct Surveyed {
    /// The time of all threads.
    pub times: ThreadTimes,
    /// The caches of each thread.
    pub caches: CacheSizes,
    /// Whether samples name the instruction that waited.
    pub is_precise: bool,
    /// Whether the machine has several nodes with memory.
    pub has_nodes: bool,
    /// Traffic, where samples do not name the instruction that waited.
    pub traffic: Option<Traffic>,
    /// The sizes of the objects in bytes by their places, as far as they are known.
    pub sizes: HashMap<u32, u64>,
}

/// Numbers of samples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleCounts {
    /// All.
    pub total: u64,
    /// Samples at instructions that access memory.
    pub memory: u64,
    /// Samples of `memory` whose address or object was recovered.
    pub recovered: u64,
    /// Samples of `recovered` at objects that fit a cache.
    pub in_cache: u64,
    /// Samples of `recovered` by the rule that recovered them.
    pub by_rule: BTreeMap<Cow<'static, str>, u64>,
}

/// The first line: shares of the time of all threads, between 0 and 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeShares {
    /// In the threads' own arithmetic.
    pub computing: f64,
    /// For memory that fits the caches.
    pub cached: f64,
    /// For memory of the own node.
    #[serde(alias = "near")]
    pub local: f64,
    /// For memory of other nodes.
    #[serde(alias = "far")]
    pub remote: f64,
    /// For memory of an unknown node.
    pub unknown: f64,
    /// For contended lines.
    pub contended: f64,
    /// In the kernel.
    pub kernel: f64,
    /// Ready to run, but without a CPU.
    pub runnable: f64,
    /// Asleep.
    pub asleep: f64,
}

/// Time at memory outside of the caches, from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTime {
    /// The node of the CPUs.
    pub cpu_node: u32,
    /// The node of the memory.
    pub memory_node: u32,
    /// CPU time in ns.
    pub time: u64,
}

/// Page faults of all threads, and what they took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultTime {
    /// Their part of the CPU time in the kernel, between 0 and 1; `None` without samples in the kernel.
    pub of_kernel: Option<f64>,
    /// How many pages more than at first the processes had at most. Faults beyond that brought memory that had been given back.
    pub grown_pages: u64,
}

/// Where the time went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Numbers of samples.
    pub samples: SampleCounts,
    /// Shares of the time of all threads; absent where samples do not name the instruction that waited.
    pub time: Option<TimeShares>,
    /// The time of all threads by the kernel's account.
    pub threads: ThreadTimes,
    /// The share of far memory in the time at memory of known nodes; absent on one node.
    #[serde(alias = "far_share")]
    pub remote_share: Option<ShareEstimate>,
    /// The same by pair of nodes.
    pub nodes: Vec<NodeTime>,
    /// Distinct pages by pair of nodes, where time cannot be told.
    pub traffic: Option<Traffic>,
    /// Contended lines, that with most time first.
    pub lines: Vec<ContendedLine>,
    /// Functions. Those that waited most for memory come first.
    pub functions: Vec<CodeTime>,
    /// Source lines, in the same order.
    pub source_lines: Vec<CodeTime>,
    /// The functions that used the kernel, that with most of its time first, with their parts of the time of samples in the kernel.
    pub kernel: Vec<CodeShare>,
    /// Page faults, and what they took.
    #[serde(default)]
    pub faulting: FaultTime,
    /// What threads waited for while they did not run.
    pub waits: ThreadWaits,
    /// CPU time in which threads only waited for others.
    pub spins: Spins,
    /// The ranks of an MPI job, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankTime>,
    /// Teams of gcc's OpenMP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<TeamTime>,
    /// Which threads use the same data; `None` until the observation has ended.
    #[serde(default)]
    pub sharing: Option<ThreadSharing>,
    /// What programs of Python did, in terms of Python.
    pub python: PythonTime,
    /// The caches that objects were compared with.
    pub caches: CacheSizes,
    /// How each object is used. The object with most time at memory comes first.
    #[serde(skip)]
    pub uses: Vec<ObjectUse>,
    /// The time at memory outside of the caches by call chain.
    #[serde(skip)]
    pub chains: ChainValues,
}

impl Explanation {
    /// Computes the explanation from all samples.
    pub fn new(observations: &[Observation], known: Surveyed, names: &mut dyn CodeNames) -> Self {
        let lines =
            if known.is_precise { contended::costly(observations, SampleRate::Dense) } else { Vec::new() };
        let places = Places::new(observations, &lines, known.caches, &known.sizes);
        let placed: Vec<(&Observation, TimePlace)> =
            observations.iter().map(|at| (at, places.of(at))).collect();
        let mut sum = PlaceTimes::default();
        placed.iter().for_each(|(at, place)| sum.add(*place, at.weight));
        let (functions, source_lines) = code::times(placed.iter().copied(), names);
        let uses = match &known.traffic {
            Some(traffic) => object_use::by_pages(&traffic.objects),
            None => object_use::by_time(&placed, known.has_nodes, names),
        };
        Self {
            samples: counts(&placed),
            time: known.is_precise.then(|| shares(&sum, &known.times)),
            threads: known.times,
            remote_share: if known.is_precise && known.has_nodes {
                object_use::remote(&placed).estimate()
            } else {
                None
            },
            nodes: if known.is_precise { object_use::pairs(&placed) } else { Vec::new() },
            traffic: known.traffic,
            sharing: None,
            lines,
            functions,
            source_lines,
            kernel: Vec::new(),
            faulting: FaultTime::default(),
            waits: ThreadWaits::default(),
            spins: Spins::default(),
            ranks: Vec::new(),
            teams: Vec::new(),
            python: PythonTime::default(),
            caches: known.caches,
            uses,
            chains: if known.is_precise { flame::memory_time(&placed) } else { ChainValues::new() },
        }
    }
}

fn counts(placed: &[(&Observation, TimePlace)]) -> SampleCounts {
    let mut counts = SampleCounts { total: placed.len() as u64, ..SampleCounts::default() };
    counts.by_rule = RecoveryRule::ALL.iter().map(|rule| (Cow::Borrowed(rule.word()), 0)).collect();
    for (at, place) in placed {
        counts.memory += u64::from(place.is_memory());
        counts.in_cache += u64::from(matches!(place, TimePlace::PrivateCache | TimePlace::SharedCache));
        if let Some(access) = at.access() {
            counts.recovered += 1;
            *counts.by_rule.entry(Cow::Borrowed(access.rule.word())).or_default() += 1;
        }
    }
    counts
}

/// Divides the time of all threads: the kernel says how much of it was in user mode, and samples say where that part went.
fn shares(sum: &PlaceTimes, times: &ThreadTimes) -> TimeShares {
    let (all, sampled) = (times.total() as f64, sum.total() as f64);
    if all <= 0.0 {
        return TimeShares::default();
    }
    let user = |part: u64| if sampled > 0.0 { part as f64 / sampled * times.user as f64 / all } else { 0.0 };
    TimeShares {
        computing: user(sum.computing),
        cached: user(sum.private_cache + sum.shared_cache),
        local: user(sum.local),
        remote: user(sum.remote),
        unknown: user(sum.unknown),
        contended: user(sum.contended),
        kernel: times.kernel as f64 / all,
        runnable: times.runnable as f64 / all,
        asleep: times.asleep as f64 / all,
    }
}
