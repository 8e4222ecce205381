//! An explanation with the names of what it is about, and how the samples were taken: the content of
//! `numa explain --json`.

use crate::Explanation;
use crate::cpu_waits::CpuWaits;
use crate::cure_facts::CureProgram;
use crate::explained::ExplainedObject;
use crate::flame::FlameGraph;
use crate::hint_faults::HintFaultCounts;
use crate::objects::{BlockOrigins, ObjectKind};
use crate::projection::Projection;
use crate::remote_costs::RemoteCosts;
use crate::runtime::NamesReport;
use crate::sources::AnnotatedSource;
use serde::{Deserialize, Serialize};

/// What samples of this machine mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regime {
    /// They name the instruction that waited.
    Precise,
    /// They land at starts of blocks, as on emulated processors: only traffic can be estimated.
    Block,
    /// Samples land elsewhere. Neither time nor traffic can be told from them.
    Unknown,
}

/// Samples and threads that are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingSamples {
    /// Samples that were lost, since nobody took them from the ring buffer in time.
    pub lost: u64,
    /// Samples that were dropped on purpose, to bound memory; those that are left count more.
    pub thinned: u64,
    /// Samples whose code was no longer there when they were looked at.
    pub late: u64,
    /// Threads that used CPU time and have no sample.
    pub threads: u64,
    /// Allocations that were not logged, since the log was full.
    pub allocations: u64,
    /// Page faults that were lost, since the ring was full.
    pub faults: u64,
    /// Time in which page faults were left out, since there were too many, in ns.
    pub without_faults: u64,
}

/// A thread that was sampled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledThread {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub name: String,
}

/// A process that was observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenProcess {
    /// Its number.
    pub pid: u32,
    /// The name of its program; empty if it ended before it was read.
    pub name: String,
    /// Whether it began, or became one of those that were chosen, after the observation had begun.
    pub joined: bool,
    /// Whether it ended before the observation.
    pub ended: bool,
}

/// An object that was accessed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledObject {
    /// The first process that was seen to use it.
    pub pid: u32,
    /// All of the processes that were seen to use it.
    pub processes: Vec<u32>,
    /// What kind of object it is.
    pub kind: ObjectKind,
    /// How often it was allocated or mapped; 0 if that is not known.
    pub pieces: u64,
    /// The maximum of its bytes at one time; 0 if they are not known. What each process has for itself adds up.
    pub size: u64,
    /// Who allocated it, if it is blocks.
    #[serde(skip)]
    pub blocks: BlockOrigins,
    /// What it is: a variable, the place where it was allocated, a stack, a file.
    pub name: String,
}

/// The content of a result file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainReport {
    /// The version of this form.
    pub version: u32,
    /// What samples mean.
    pub regime: Regime,
    /// The machine: its processor, nodes and CPUs.
    pub machine: String,
    /// How samples were taken.
    #[serde(rename = "road")]
    pub method: String,
    /// Why a better method was not used, if there is one.
    #[serde(rename = "road_reason")]
    pub method_reason: Option<String>,
    /// Samples of a thread for each second of its CPU time.
    pub rate: f64,
    /// Length of the observation in seconds.
    pub seconds: f64,
    /// The command, or the process.
    pub program: String,
    /// Whether the observation has ended; until then the file is written again every few seconds.
    pub complete: bool,
    /// How the program ended, if it did.
    pub exit_status: Option<i32>,
    /// What is missing.
    pub missing: MissingSamples,
    /// The answer.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// The processes. Their number counts, as each may have memory of its own.
    pub processes: Vec<SeenProcess>,
    /// The threads; other values name them by their place here.
    pub threads_sampled: Vec<SampledThread>,
    /// What hint faults saw, if they were asked for.
    pub hint_faults: Option<HintFaultCounts>,
    /// Flame graphs.
    pub flame: FlameGraphs,
    /// The source lines of the functions with most time; empty until the observation has ended.
    pub sources: Vec<AnnotatedSource>,
    /// How names of code came about, and where they are missing.
    pub names: NamesReport,
}

/// The word in place of the command line that starts a program, where that is not known.
pub const UNKNOWN_COMMAND: &str = "CMD";

/// The word in place of the arguments of a program whose file is known: it has replaced them by a title.
pub const UNKNOWN_ARGUMENTS: &str = "ARGS";

/// Whether a command line ends with a word that is in place of others.
pub fn lacks_words(command: &str) -> bool {
    command.rsplit(' ').next().is_some_and(|last| [UNKNOWN_COMMAND, UNKNOWN_ARGUMENTS].contains(&last))
}

/// OpenMP loops that are not static in the source, by what `numa run --loops adaptive` is to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenLoops {
    /// Threads take iterations as they go. Unequal work is evened out already, and only where they run changes.
    Even,
    /// Some have schedule(guided), whose first chunks may have most of the work.
    Guided,
    /// `OMP_SCHEDULE` gives those with schedule(runtime) a fixed order, in which no thread takes iterations of another.
    Fixed,
}

impl OpenLoops {
    /// Whether their unequal work would be evened out.
    pub fn are_uneven(self) -> bool {
        self != Self::Even
    }
}

/// What an observation found, before rules judge it.
#[derive(Debug)]
pub struct Explained {
    /// Everything except the objects.
    pub report: ExplainReport,
    /// Why threads waited for a CPU.
    pub cpu_waits: CpuWaits,
    /// The objects, those with most time first; other values name them by their place here.
    pub objects: Vec<ExplainedObject>,
    /// The running processes that were observed; none: the program was started for that.
    pub attached: Vec<u32>,
    /// How to start the program again; [`UNKNOWN_COMMAND`] where that is not known, [`UNKNOWN_ARGUMENTS`] in place of arguments.
    pub command: String,
    /// The OpenMP loops of it that `numa run --loops adaptive` would change; `None` if it has none.
    pub open_loops: Option<OpenLoops>,
    /// What remote memory costs on this machine.
    pub costs: RemoteCosts,
    /// What a cure needs to know of the program; `None` until the observation has ended.
    pub cured: Option<CureProgram>,
    /// What the run would be on another machine, if the user asked for that.
    pub projected: Option<ProjectedFacts>,
}

/// What the same run would be on another machine.
#[derive(Debug)]
pub struct ProjectedFacts {
    /// Everything except the objects.
    pub projection: Projection,
    /// The objects, those with most time first.
    pub objects: Vec<ExplainedObject>,
    /// What remote memory costs there.
    pub costs: RemoteCosts,
}

/// Flame graphs of a result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlameGraphs {
    /// Time at memory outside of the caches; absent where samples do not tell time.
    pub time: Option<FlameGraph>,
    /// Memory by its first touch; absent where no page faults are seen.
    pub resident: Option<FlameGraph>,
}

impl ExplainReport {
    /// The version of the form that this program writes.
    pub const VERSION: u32 = 1;
}
