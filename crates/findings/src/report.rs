//! The values of a report: the JSON of `numa show --json`. `null` is not measured.

use crate::finding::Findings;
use numakit_model::Unavailable;
use serde::Serialize;

/// What a recording shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What is wrong, what it costs, and what to do.
    pub findings: Findings,
    /// What was recorded and how.
    pub recording: RecordingSummary,
    /// The machine; none in recordings of other programs.
    pub machine: Option<MachineSummary>,
    /// What is missing in the recording.
    pub losses: LossSummary,
    /// Where memory was allocated.
    pub locality: Locality,
    /// Remote accesses, and links or memory that are nearly saturated.
    #[serde(rename = "suffering")]
    pub bottlenecks: Bottlenecks,
    /// Memory traffic, beside what the memory was measured to be able to move.
    pub traffic: MemoryTraffic,
    /// The labelled phases, in the order in which they first began.
    pub phases: Vec<PhaseReport>,
    /// Labels beyond the maximum number of phases.
    pub more_phases: u64,
    /// Page faults and huge pages.
    pub faults: Faults,
    /// Free memory of each node.
    pub memory: Vec<FreeMemory>,
    /// What the CPUs did.
    pub cpus: Vec<Cpu>,
    /// Share of the time in which threads waited.
    pub pressure: Pressure,
    /// The series that changed most.
    pub movers: Vec<Mover>,
    /// What the recording itself cost.
    pub cost: Cost,
}

/// What was recorded and how.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct RecordingSummary {
    pub program: String,
    pub host: String,
    pub kernel: String,
    pub command: Option<String>,
    /// 128+signal when killed.
    pub exit_status: Option<i32>,
    /// ns since 1970 UTC.
    pub started: u64,
    /// From the first row to the last.
    pub seconds: f64,
    pub interval_seconds: Option<f64>,
    pub samples: u64,
    pub series: usize,
    /// The phase of this report; none: the whole recording.
    pub phase: Option<String>,
    /// Time that the samples of this report cover.
    pub covered_seconds: f64,
    /// Samples of this report.
    pub covered_samples: u64,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct MachineSummary {
    pub nodes: usize,
    pub packages: usize,
    pub cores: usize,
    pub cpus: usize,
    pub memory_bytes: Option<u64>,
}

/// What is missing in the recording; always of the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct LossSummary {
    pub lost_ticks: u64,
    pub lost_percent: f64,
    pub dropped_rows: u64,
    /// Rows that were damaged when the recording was recovered.
    pub damaged_rows: u64,
    /// The part of the file that could not be read, and why.
    pub damage: Option<String>,
    pub pauses: u64,
    pub paused_seconds: f64,
    pub clock_steps: Vec<ClockStep>,
    pub interval_changes: Vec<IntervalChange>,
    /// Sensors that stopped having values, or have them again.
    pub failures: Vec<Failure>,
    /// The number of further failures beyond the maximum that is kept.
    pub more_notes: u64,
    /// Metrics that were unavailable when the recording began.
    pub absent: Vec<AbsentGroup>,
}

/// The wall clock was set.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ClockStep {
    pub at_seconds: f64,
    pub by_seconds: f64,
}

/// The interval was changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct IntervalChange {
    pub at_seconds: f64,
    pub interval_seconds: f64,
}

/// A sensor stopped having values, or has them again.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Failure {
    pub at_seconds: f64,
    pub what: String,
}

/// Metrics that are absent for one reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct AbsentGroup {
    pub names: Vec<String>,
    pub why: Unavailable,
}

/// How a verdict is shown and whether it leads to advice, whatever its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// The data does not support a verdict.
    CannotTell,
    /// No action needed.
    Fine,
    /// Shown as a problem, and used for advice.
    Notable,
}

/// A verdict by one line of the table of criteria.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// How it is shown.
    #[serde(skip)]
    pub grade: Grade,
    /// One of the words of the table, or `cannot tell`.
    pub word: String,
    /// The numbers, or the reason.
    pub because: String,
    /// The share that was judged.
    pub percent: Option<f64>,
    /// The number of events of which the verdict is a share.
    pub events: Option<f64>,
}

/// What a verdict on locality is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalityBasis {
    /// The time that threads waited for memory.
    Use,
    /// The pages that threads used, where time cannot be told.
    PagesInUse,
    /// Where memory was allocated, since the recording does not say who used it.
    Allocation,
}

impl LocalityBasis {
    /// As in "locality of use".
    pub fn words(self) -> &'static str {
        match self {
            Self::Use => "use",
            Self::PagesInUse => "pages in use",
            Self::Allocation => "allocation",
        }
    }
}

/// Whose memory was used, or where it was allocated.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Locality {
    pub basis: LocalityBasis,
    pub verdict: Verdict,
    /// Sampled accesses, where NUMA balancing is on.
    pub accesses: Verdict,
    pub nodes: Vec<NodeLocality>,
}

/// Allocations on one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeLocality {
    /// The kernel's number.
    pub node: u32,
    /// The verdict on their locality.
    pub verdict: Verdict,
    /// Allocations by the node's own CPUs.
    pub local: Option<f64>,
    /// Allocations by CPUs of other nodes.
    pub remote: Option<f64>,
    /// Allocations on this node that preferred another node.
    pub miss: Option<f64>,
    /// Allocations on another node that preferred this node.
    pub foreign: Option<f64>,
    /// Whether allocations that preferred this node got memory of other nodes.
    #[serde(skip)]
    pub overflow: Verdict,
    /// Other notable verdicts, in words.
    pub signs: Vec<String>,
}

/// Remote accesses, and links or memory that are nearly saturated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bottlenecks {
    /// The worst first.
    #[serde(rename = "sufferers")]
    pub found: Vec<Bottleneck>,
    /// If there are no bottlenecks, the value that came nearest to its threshold.
    #[serde(rename = "calm")]
    pub highest: Option<String>,
    /// Why it is unknown, if it is.
    pub unknown: Option<String>,
}

/// What kind of bottleneck it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BottleneckKind {
    /// Memory on other nodes is used.
    Remote,
    /// The memory bandwidth is nearly used up.
    Memory,
    /// A link or a card between nodes is nearly saturated.
    Link,
}

/// Remote accesses, or a link or memory that is nearly saturated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bottleneck {
    /// The subject, in words.
    pub who: String,
    /// What kind of bottleneck it is.
    #[serde(skip)]
    pub kind: BottleneckKind,
    /// What it does.
    pub does: &'static str,
    /// The share over the whole time.
    pub percent: f64,
    /// The total of which it is a share.
    pub of: &'static str,
    /// The highest share over at least 0.1 s.
    pub peak_percent: f64,
    /// The time of the peak, since the start.
    pub peak_at_seconds: f64,
    /// Share of the time at or above the threshold.
    pub time_percent: f64,
    /// When the longest time at or above the threshold began, since the start.
    pub since_seconds: f64,
    /// When it ended; none: it lasted to the end.
    pub until_seconds: Option<f64>,
    /// The amount, in bytes per second.
    pub per_second: Option<f64>,
}

/// Memory traffic, and what the memory was measured to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MemoryTraffic {
    /// Whether `numa bench all` had measured the machine.
    pub is_measured: bool,
    /// Nodes with memory; packages or the machine if only these have counters.
    pub places: Vec<PlaceTraffic>,
    /// Why the traffic is unknown, if it is.
    pub unknown: Option<String>,
    /// Why the measured values should not be believed.
    pub doubts: Vec<String>,
}

/// The traffic of a node's memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaceTraffic {
    /// The place, in words.
    pub who: String,
    /// Bytes per second over the whole time.
    pub per_second: Option<f64>,
    /// Whether the traffic is what the caches of the place's CPUs transfer, from and to all nodes.
    pub is_of_caches: bool,
    /// The measured peak, in bytes per second.
    pub peak_per_second: Option<f64>,
    /// The traffic as a share of what was measured as possible.
    pub percent: Option<f64>,
    /// The share of reads in the traffic, if counters distinguish reads and writes.
    pub read_percent: Option<f64>,
    /// How long a load took at this traffic, by the measured curve of the node.
    pub load_seconds: Option<f64>,
    /// The share of reads of that curve, the nearest to that of the traffic; null if it was not chosen by that.
    pub load_read_percent: Option<u32>,
    /// How long a load from the nearest CPUs took while nothing else used the memory.
    pub idle_load_seconds: Option<f64>,
}

/// A phase: the time from its label to the next label.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct PhaseReport {
    pub name: String,
    /// How often it began.
    pub times: u64,
    pub seconds: f64,
    pub samples: u64,
    pub locality: Locality,
    /// The node with the lowest share of local allocations, if that is notable.
    pub worst_node: Option<u32>,
    pub minor_faults_per_second: Option<f64>,
    pub major_faults_per_second: Option<f64>,
}

/// Page faults and huge pages.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Faults {
    pub minor_per_second: Option<f64>,
    pub major_per_second: Option<f64>,
    pub minor: Option<f64>,
    pub major: Option<f64>,
    /// Faults that got a huge page.
    pub huge: Option<f64>,
    /// Faults that got small pages instead.
    pub small: Option<f64>,
    pub huge_pages: Verdict,
    pub hint_per_second: Option<f64>,
    pub pages_moved_per_second: Option<f64>,
}

/// Free memory of a node, or of the machine if nodes are unknown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct FreeMemory {
    pub node: Option<u32>,
    pub total_bytes: Option<f64>,
    pub begin_bytes: f64,
    pub end_bytes: f64,
    pub least_bytes: f64,
}

/// Shares of CPU time of a node, or of the machine if nodes are unknown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Cpu {
    pub node: Option<u32>,
    pub user_percent: Option<f64>,
    pub system_percent: Option<f64>,
    pub idle_percent: Option<f64>,
}

/// Share of the time in which at least one thread waited.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Pressure {
    pub memory: Verdict,
    pub cpu_percent: Option<f64>,
    pub io_percent: Option<f64>,
}

/// A series that changed by a large factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mover {
    /// Its name.
    pub series: String,
    /// Powers of ten between its minimum and its maximum, after a floor was added to both.
    pub swing: f64,
    /// How it changed.
    #[serde(flatten)]
    pub change: SeriesChange,
    /// The change as a share of the value where it began: for a rate, from the quiet rate to the peak; for a level, from the
    /// beginning to the value that is farthest from it. `None` if the value began at 0.
    pub change_percent: Option<f64>,
    /// How much neighbouring values, 0.1 s apart, differ: three of four differ by less than this. In the unit of the change.
    pub noise: Option<f64>,
    /// Other series that changed by the same at the same time.
    pub alike: Vec<String>,
}

/// How a series changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum SeriesChange {
    /// Per second.
    Rate { unit: &'static str, quiet: f64, peak: f64, peak_at_seconds: f64, active_percent: f64 },
    /// Bytes where the unit is bytes.
    Level { unit: &'static str, begin: f64, end: f64, least: f64, most: f64 },
}

/// What the recording itself cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Cost {
    pub cpu_seconds_per_sample: Option<f64>,
    /// CPU time of the sampler, in percent of one core.
    pub sampler_percent: Option<f64>,
    /// CPU time of the whole process, in percent of one core, including the writing of the file.
    pub process_percent: Option<f64>,
    pub wakeup_p50_seconds: Option<f64>,
    pub wakeup_p99_seconds: Option<f64>,
    pub wakeup_max_seconds: Option<f64>,
    pub took_p50_seconds: Option<f64>,
    pub took_p99_seconds: Option<f64>,
}
